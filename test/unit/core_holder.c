/* SPDX-License-Identifier: BSD-2-Clause */
/* The holder of a UDP port: real sockets of this process. */
#include "test/unit/unit.h"

#include <sys/socket.h>
#include <unistd.h>

#include "core/holder.h"

/* Binds any free port. Returns the descriptor, or -1 without that family. */
static int bind_any(struct address *address)
{
	struct sockaddr_storage storage;
	socklen_t length = (socklen_t)address_to_socket(address, &storage);
	int fd = socket(storage.ss_family, SOCK_DGRAM, 0);

	if (fd >= 0 &&
	    (bind(fd, (struct sockaddr *)&storage, length) || getsockname(fd, (struct sockaddr *)&storage, &length))) {
		close(fd);
		return -1;
	}
	address_from_socket(&storage, address);
	return fd;
}

TEST(holder_is_named)
{
	static const char *const hosts[] = { "127.0.0.1", "::1" };

	for (size_t i = 0; i < LENGTH(hosts); i++) {
		struct holder holder = { .text = "" }, nobody = { .text = "" };
		struct address address;
		char text[HOLDER_SIZE];
		int fd;

		assert_true(address_parse(hosts[i], ADDRESS_FORMAT_IP, &address));
		address.port = 0;
		fd = bind_any(&address);
		if (fd < 0)
			continue;
		snprintf(text, sizeof(text), "PID %d (", (int)getpid());
		holder_find(&holder, &address);
		assert_int_equal(strncmp(holder.text, text, strlen(text)), 0);
		assert_true(holder.is_own);
		close(fd);
		holder_find(&holder, &address); /* kept */
		assert_true(*holder.text);
		holder_find(&nobody, &address);
		assert_string_equal(nobody.text, "");
		assert_false(nobody.is_own);
	}
}
