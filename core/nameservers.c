/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/nameservers.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
	DNS_PORT = 53
};

/* RFC 1035: the name servers (NS) of the root, class IN, which every server can answer. */
static const uint8_t query[17] = { [2] = 1 /* recursion desired */, [5] = 1 /* question */, [14] = 2, [16] = 1 };

static void ask_server(struct nameservers *servers, const char *text)
{
	struct nameserver *server = &servers->list[servers->count];
	struct sockaddr_storage storage;
	size_t length;

	if (!address_parse(text, ADDRESS_FORMAT_IP, &server->address))
		return;
	server->address.port = DNS_PORT;
	length = address_to_socket(&server->address, &storage);
	server->socket = socket(storage.ss_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (server->socket < 0)
		return;
	/* An unreachable one does not answer. */
	if (!connect(server->socket, (struct sockaddr *)&storage, (socklen_t)length))
		send(server->socket, query, sizeof(query), 0);
	servers->count++;
}

void nameservers_ask(struct nameservers *servers)
{
	FILE *file = fopen("/etc/resolv.conf", "re");
	char line[256], text[64];

	servers->count = 0;
	while (file && servers->count < NAMESERVERS_MAX && fgets(line, sizeof(line), file))
		if (sscanf(line, "nameserver %63s", text) == 1)
			ask_server(servers, text);
	if (file)
		fclose(file);
	servers->none_named = !servers->count;
	if (servers->none_named)
		ask_server(servers, "127.0.0.1");
}

bool nameserver_has_answered(struct nameserver *server)
{
	uint8_t byte;
	ssize_t length = recv(server->socket, &byte, sizeof(byte), 0);

	close(server->socket);
	return length >= 0;
}
