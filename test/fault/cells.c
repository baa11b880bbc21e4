/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is tried. The errors are those that the manual pages of Linux give for each call, and those that the kernel's
 * code returns besides.
 */
#include "test/fault/cells.h"

#include <errno.h>
#include <stddef.h>

#define SERVER_LIMITS	" --timeout ~ --idle-timeout ~ --deadline !"
#define CLIENT_LIMITS	" --timeout ~ --deadline !"
#define RPING_SERVER	"rping -s -a @ -p 71%" SERVER_LIMITS
#define RPING_CLIENT	"rping -c -a @ -p 71% --source ^ -C 2 -V" CLIENT_LIMITS
#define UCMATOSE_SERVER "ucmatose -b @ -p 72% -c 2 -C 2" SERVER_LIMITS
#define UCMATOSE_CLIENT "ucmatose -s @ -p 72% --source ^ -c 2 -C 2" CLIENT_LIMITS
#define MCKEY_RECEIVER	"mckey -m 239.1.%.1 -b @ -C 2" SERVER_LIMITS
#define MCKEY_SENDER	"mckey -m 239.1.%.1 -b ^ -s -C 2 --pause 20ms" CLIENT_LIMITS
#define FILES		" --json-stream --prometheus &/prometheus.%"

/* What follows the peer are more fields by name. */
#define SERVER(role, own, ...) { .name = role, .line = own, .passive = true, .peer = __VA_ARGS__ }
#define CLIENT(role, own, ...) { .name = role, .line = own, .peer = __VA_ARGS__ }

/* clang-format off */
const struct role roles[] = {
	SERVER("rping-server", RPING_SERVER, RPING_CLIENT),
	CLIENT("rping-client", RPING_CLIENT, RPING_SERVER),
	SERVER("ucmatose-server", UCMATOSE_SERVER, UCMATOSE_CLIENT),
	CLIENT("ucmatose-client", UCMATOSE_CLIENT, UCMATOSE_SERVER),
	SERVER("mckey-receiver", MCKEY_RECEIVER, MCKEY_SENDER),
	CLIENT("mckey-sender", MCKEY_SENDER, MCKEY_RECEIVER),
	SERVER("rping-server-files", RPING_SERVER FILES, RPING_CLIENT),
	CLIENT("rping-client-json", RPING_CLIENT " --json", RPING_SERVER),
	CLIENT("rping-client-poll", RPING_CLIENT " --poll", RPING_SERVER),
	CLIENT("ucmatose-client-migrating", UCMATOSE_CLIENT " -m", UCMATOSE_SERVER),
	CLIENT("selftest", "selftest --timeout ~ --deadline !", NULL),
	{ .name = NULL },
};

#define ERRORS(...) (const int[]){ __VA_ARGS__, 0 }
#define ROW(name, exits, causes, ...) { .call = #name, .codes = exits, .times = 1, .errors = ERRORS causes, __VA_ARGS__ }

static const int memory[] = { ENOMEM, 0 };
static const int gone[] = { EPERM, ENETDOWN, ENOBUFS, EINVAL, 0 };

const struct row cell_rows[] = {
	{ .call = "memory", .errors = memory, .codes = "0 1 4 5", .times = 1, .words = "[Oo]ut of memory|allocate memory" },
	{ .call = "memory", .errors = memory, .codes = "1 3 4 5", .times = 0, .words = "[Oo]ut of memory|allocate memory" },
	{ .call = "sendmmsg", .errors = gone, .codes = "0 1 4", .times = 0, .words = "timed out|left|the peer disconnected|went away|did not arrive|(was|were) not sent|no client|no datagram|does not answer|gave up|refused by the peer" },

	ROW(socket, "0 4 5", (EACCES, EAFNOSUPPORT, EINVAL, EMFILE, ENFILE, ENOBUFS, ENOMEM, EPROTONOSUPPORT), .reports = true),
	ROW(bind, "0 4 5", (EACCES, EADDRINUSE, EADDRNOTAVAIL, EBADF, EINVAL, ENOMEM)),
	ROW(connect, "0 4 5", (EACCES, EPERM, EADDRNOTAVAIL, EAGAIN, ECONNREFUSED, EHOSTUNREACH, EINVAL, ENETUNREACH, ETIMEDOUT)),
	ROW(getsockname, "4 5", (EBADF, EINVAL, ENOBUFS)),
	ROW(getsockopt, "0", (EBADF, EINVAL, ENOPROTOOPT)),
	ROW(setsockopt, "0 4 5", (EBADF, EINVAL, ENOPROTOOPT, EPERM, ENODEV, ENOBUFS)),
	ROW(ioctl, "0", (EBADF, EINVAL, ENODEV)),
	ROW(getifaddrs, "0", (ENOMEM, EMFILE, EACCES)),
	ROW(if_nametoindex, "0", (ENODEV)),
	ROW(sendmmsg, "0", (EAGAIN, EINTR, EPERM, EACCES, ECONNREFUSED, EHOSTUNREACH, EINVAL, EMSGSIZE, ENETUNREACH, ENOBUFS, ENOMEM)),
	ROW(recvmmsg, "0", (EAGAIN, EINTR, ECONNREFUSED, EINVAL, ENOMEM)),
	ROW(recvmsg, "0", (EAGAIN, EINTR, EINVAL, ENOMEM)),
	ROW(getrandom, "0", (EAGAIN, EINTR)),
	ROW(eventfd, "5", (EINVAL, EMFILE, ENFILE, ENODEV, ENOMEM)),
	ROW(timerfd_create, "0", (EINVAL, EMFILE, ENFILE, ENODEV, ENOMEM)),
	ROW(timerfd_settime, "0", (EINVAL)),
	ROW(setitimer, "0", (EINVAL)),
	ROW(pipe2, "5", (EMFILE, ENFILE)),
	ROW(fork, "5", (EAGAIN, ENOMEM)),
	ROW(open, "0 5", (EACCES, EEXIST, EMFILE, ENFILE, ENOENT, ENOSPC, EROFS, EINTR)),
	ROW(fopen, "0 5", (EACCES, EMFILE, ENOENT, ENOMEM, ENOSPC, EROFS)),
	ROW(fdopen, "5", (EBADF, EINVAL, ENOMEM)),
	ROW(open_memstream, "0 5", (EMFILE, ENOMEM), .words = "out of memory|\\([0-9]+\\)"),
	ROW(rename, "5", (EACCES, ENOSPC, EROFS, ENOENT)),
	ROW(unlink, "0", (EACCES, EROFS, ENOENT)),
	ROW(read, "0", (EAGAIN, EINTR, EIO)),
	ROW(fcntl, "0 2", (EBADF, EINVAL)),
	ROW(close, "0 5", (EINTR, EIO), .leaves = true),
	ROW(sigaction, "0", (EINVAL)),
	ROW(getrlimit, "0", (EINVAL)),
	{ .call = NULL },
};
/* clang-format on */
