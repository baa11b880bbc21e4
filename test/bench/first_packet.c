/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * first_packet COMMAND [ARGUMENT...]: the microseconds from the moment before a command is started until its first
 * datagram to 127.0.0.1, port 4791, is here. The clock is outside of it, so that what the loader does counts. The
 * command is then ended.
 *
 * first_packet -e COMMAND [ARGUMENT...]: until it ends, which must be with 0.
 */
#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/clock.h"
#include "test/bench/need.h"

enum {
	ROCE_PORT = 4791,
	LONGEST_MS = 5000
};

static int listener(void)
{
	struct sockaddr_in local = {
		.sin_family = AF_INET,
		.sin_port = htons(ROCE_PORT),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&local, sizeof(local)))
		die("first_packet: socket");
	return fd;
}

static pid_t start(char **command)
{
	pid_t child = vfork();

	if (child < 0)
		die("first_packet: fork");
	if (child)
		return child;
	execvp(command[0], command);
	_exit(127);
}

int main(int argc, char **argv)
{
	bool to_end = argc > 1 && !strcmp(argv[1], "-e");
	struct pollfd packet = { .events = POLLIN };
	int64_t begin, end = 0;
	int status = 0;
	pid_t child;

	if (argc < 2 + to_end) {
		fprintf(stderr, "usage: first_packet [-e] COMMAND [ARGUMENT...]\n");
		return 2;
	}
	packet.fd = to_end ? -1 : listener();
	begin = clock_now();
	child = start(argv + 1 + to_end);
	if (!to_end && poll(&packet, 1, LONGEST_MS) != 1)
		fprintf(stderr, "first_packet: no datagram came within %d ms\n", LONGEST_MS);
	else if (!to_end)
		end = clock_now();
	if (!to_end)
		kill(child, SIGKILL);
	if (waitpid(child, &status, 0) != child)
		die("first_packet: wait");
	if (to_end)
		end = clock_now();
	if (to_end ? status : !packet.revents)
		return 1;
	printf("%.1f\n", (double)(end - begin) / (double)CLOCK_NS_PER_US);
	return 0;
}
