/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is tried. The errors are those that the manual pages of Linux and rdma-core give for each call, and those that
 * the kernel's code returns besides.
 */
#include "test/fault/cells.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>
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
	SERVER("rping-server-own-queue", RPING_SERVER " -q", RPING_CLIENT, .transport = "verbs"),
	CLIENT("rping-client-own-queue", RPING_CLIENT " -q", RPING_SERVER, .transport = "verbs"),
	CLIENT("rping-client-options", RPING_CLIENT " --tos 32 --ack-timeout 14", RPING_SERVER, .transport = "verbs"),
	CLIENT("selftest", "selftest --timeout ~ --deadline !", NULL, .transport = "soft"),
	{ .name = NULL },
};

#define ERRORS(...) (const int[]){ __VA_ARGS__, 0 }
#define ROW(name, exits, causes, ...) { .call = #name, .codes = exits, .times = 1, .errors = ERRORS causes, __VA_ARGS__ }

static const int memory[] = { ENOMEM, 0 };
static const int gone[] = { EPERM, ENETDOWN, ENOBUFS, EINVAL, 0 };

/* A connection event in place of another one: its number, and in the higher bits the negated status. */
#define EVENT(number, status) ((number) | (status) << 8)

const struct row cell_rows[] = {
	{ .call = "memory", .errors = memory, .codes = "0 1 4 5", .times = 1, .words = "[Oo]ut of memory|allocate memory" },
	{ .call = "memory", .errors = memory, .codes = "1 3 4 5", .times = 0, .words = "[Oo]ut of memory|allocate memory" },
	{ .call = "sendmmsg", .errors = gone, .codes = "0 1 4", .times = 0, .words = "timed out|left|the peer disconnected|went away|did not arrive|(was|were) not sent|no client|no datagram|does not answer|gave up|refused by the peer" },

	ROW(socket, "0 4 5", (EACCES, EAFNOSUPPORT, EINVAL, EMFILE, ENFILE, ENOBUFS, ENOMEM, EPROTONOSUPPORT), .transport = "soft", .reports = true),
	ROW(bind, "0 4 5", (EACCES, EADDRINUSE, EADDRNOTAVAIL, EBADF, EINVAL, ENOMEM), .transport = "soft"),
	ROW(connect, "0 4 5", (EACCES, EPERM, EADDRNOTAVAIL, EAGAIN, ECONNREFUSED, EHOSTUNREACH, EINVAL, ENETUNREACH, ETIMEDOUT), .transport = "soft"),
	ROW(getsockname, "4 5", (EBADF, EINVAL, ENOBUFS), .transport = "soft"),
	ROW(getsockopt, "0", (EBADF, EINVAL, ENOPROTOOPT), .transport = "soft"),
	ROW(setsockopt, "0 4 5", (EBADF, EINVAL, ENOPROTOOPT, EPERM, ENODEV, ENOBUFS), .transport = "soft"),
	ROW(ioctl, "0", (EBADF, EINVAL, ENODEV), .transport = "soft"),
	ROW(getifaddrs, "0", (ENOMEM, EMFILE, EACCES), .transport = "soft"),
	ROW(if_nametoindex, "0", (ENODEV), .transport = "soft"),
	ROW(sendmmsg, "0", (EAGAIN, EINTR, EPERM, EACCES, ECONNREFUSED, EHOSTUNREACH, EINVAL, EMSGSIZE, ENETUNREACH, ENOBUFS, ENOMEM), .transport = "soft"),
	ROW(recvmmsg, "0", (EAGAIN, EINTR, ECONNREFUSED, EINVAL, ENOMEM), .transport = "soft"),
	ROW(recvmsg, "0", (EAGAIN, EINTR, EINVAL, ENOMEM), .transport = "soft"),
	ROW(getrandom, "0", (EAGAIN, EINTR), .transport = "soft"),
	ROW(eventfd, "5", (EINVAL, EMFILE, ENFILE, ENODEV, ENOMEM), .transport = "soft"),
	ROW(timerfd_create, "0", (EINVAL, EMFILE, ENFILE, ENODEV, ENOMEM), .transport = "soft"),
	ROW(timerfd_settime, "0", (EINVAL), .transport = "soft"),
	ROW(setitimer, "0", (EINVAL), .transport = "soft"),
	ROW(pipe2, "5", (EMFILE, ENFILE), .transport = "soft"),
	ROW(fork, "5", (EAGAIN, ENOMEM), .transport = "soft"),
	ROW(open, "0 5", (EACCES, EEXIST, EMFILE, ENFILE, ENOENT, ENOSPC, EROFS, EINTR), .transport = "soft"),
	ROW(fopen, "0 5", (EACCES, EMFILE, ENOENT, ENOMEM, ENOSPC, EROFS), .transport = "soft"),
	ROW(fdopen, "5", (EBADF, EINVAL, ENOMEM), .transport = "soft"),
	ROW(open_memstream, "0 5", (EMFILE, ENOMEM), .transport = "soft", .words = "out of memory|\\([0-9]+\\)"),
	ROW(rename, "5", (EACCES, ENOSPC, EROFS, ENOENT), .transport = "soft"),
	ROW(unlink, "0", (EACCES, EROFS, ENOENT), .transport = "soft"),
	ROW(read, "0", (EAGAIN, EINTR, EIO), .transport = "soft"),
	ROW(fcntl, "0 2", (EBADF, EINVAL), .transport = "soft"),
	ROW(close, "0 5", (EINTR, EIO), .transport = "soft", .leaves = true),
	ROW(sigaction, "0", (EINVAL), .transport = "soft"),
	ROW(getrlimit, "0", (EINVAL), .transport = "soft"),

	ROW(rdma_create_event_channel, "3 5", (ENODEV, EACCES, EMFILE, ENOMEM), .transport = "verbs"),
	ROW(rdma_create_id, "0 5", (EINVAL, ENODEV, ENOMEM), .transport = "verbs"),
	ROW(rdma_destroy_id, "0", (EINVAL), .transport = "verbs", .leaves = true),
	ROW(rdma_bind_addr, "0 4", (EADDRINUSE, EADDRNOTAVAIL, EINVAL, ENODEV), .transport = "verbs"),
	ROW(rdma_bind_addr, "0 5", (ENOMEM), .transport = "verbs"),
	ROW(rdma_listen, "4", (EADDRINUSE, EINVAL), .transport = "verbs"),
	ROW(rdma_listen, "5", (ENOMEM), .transport = "verbs"),
	ROW(rdma_resolve_addr, "4", (EADDRNOTAVAIL, EINVAL, ENETUNREACH, ENODEV, ETIMEDOUT), .transport = "verbs"),
	ROW(rdma_resolve_addr, "5", (ENOMEM), .transport = "verbs"),
	ROW(rdma_resolve_route, "4", (EINVAL, ENODEV, ENOMEM), .transport = "verbs"),
	ROW(rdma_set_option, "1", (EINVAL, ENOSYS), .transport = "verbs"),
	ROW(rdma_connect, "4", (ECONNREFUSED, EINVAL, ENOMEM, ETIMEDOUT), .transport = "verbs"),
	ROW(rdma_establish, "4", (EINVAL), .transport = "verbs"),
	ROW(rdma_accept, "1 4", (ECONNRESET, EINVAL, ENOMEM), .transport = "verbs", .words = "\\([0-9]+\\)"),
	ROW(rdma_reject, "0", (EINVAL), .transport = "verbs"),
	ROW(rdma_disconnect, "0 1", (EINVAL, ENOTCONN), .transport = "verbs"),
	ROW(rdma_migrate_id, "1", (EINVAL, ENOMEM), .transport = "verbs"),
	ROW(rdma_init_qp_attr, "0 1 5", (EINVAL, ENOMEM), .transport = "verbs"),
	ROW(rdma_create_qp_ex, "0 1 5", (EINVAL, ENOMEM, ENOSYS, EPERM), .transport = "verbs"),
	ROW(rdma_get_cm_event, "0 1 5", (EAGAIN, EINTR, EINVAL, EIO, ENODEV, ENOMEM), .transport = "verbs"),
	ROW(rdma_join_multicast, "4", (EADDRNOTAVAIL, EINVAL, ENODEV, ENOMEM), .transport = "verbs"),
	ROW(rdma_join_multicast_ex, "4", (EADDRNOTAVAIL, EINVAL, ENODEV, ENOMEM), .transport = "verbs"),
	ROW(rdma_leave_multicast, "0", (EADDRNOTAVAIL, EINVAL), .transport = "verbs", .leaves = true),
	ROW(ibv_query_device, "5", (EINVAL, EIO, ENOMEM), .transport = "verbs"),
	ROW(ibv_query_port, "0 5", (EINVAL, EIO, ENOMEM), .transport = "verbs"),
	ROW(ibv_query_gid, "0 4", (EINVAL), .transport = "verbs"),
	ROW(_ibv_query_gid_ex, "0", (EINVAL, ENODATA, EOPNOTSUPP), .transport = "verbs"),
	ROW(ibv_query_qp, "0", (EINVAL, EOPNOTSUPP), .transport = "verbs"),
	ROW(ibv_alloc_pd, "5", (EINVAL, ENOMEM), .transport = "verbs"),
	ROW(ibv_dealloc_pd, "0", (EBUSY, EINVAL), .transport = "verbs", .leaves = true),
	ROW(ibv_create_comp_channel, "5", (EMFILE, ENOMEM), .transport = "verbs"),
	ROW(ibv_destroy_comp_channel, "0", (EBUSY), .transport = "verbs", .leaves = true),
	ROW(ibv_create_cq, "1 5", (EINVAL, ENOMEM, ENOSYS), .transport = "verbs"),
	ROW(ibv_destroy_cq, "0", (EBUSY), .transport = "verbs", .leaves = true),
	ROW(ibv_get_cq_event, "0 1", (EAGAIN, EINTR, EIO), .transport = "verbs", .words = "the device was removed"),
	ROW(ibv_get_async_event, "0", (EAGAIN, EINTR, EIO), .transport = "verbs"),
	ROW(ibv_create_qp, "0 1 5", (EINVAL, ENOMEM, ENOSYS, EPERM), .transport = "verbs"),
	ROW(ibv_modify_qp, "0 1 5", (EINVAL, ENOMEM, ETIMEDOUT), .transport = "verbs"),
	ROW(ibv_destroy_qp, "0", (EBUSY), .transport = "verbs", .leaves = true),
	ROW(ibv_reg_mr_iova2, "1 5", (EAGAIN, EINVAL, ENOMEM, EPERM), .transport = "verbs"),
	ROW(ibv_dereg_mr, "0", (EBUSY), .transport = "verbs", .leaves = true),
	ROW(ibv_create_ah, "5", (EINVAL, ENOMEM), .transport = "verbs"),
	ROW(ibv_destroy_ah, "0", (EBUSY), .transport = "verbs", .leaves = true),
	ROW(ibv_attach_mcast, "4", (EINVAL, ENOMEM), .transport = "verbs"),
	ROW(ibv_detach_mcast, "0", (EINVAL), .transport = "verbs", .leaves = true),
	ROW(ibv_poll_cq, "0 1", (EIO), .transport = "verbs"),
	ROW(ibv_req_notify_cq, "0 1 5", (EINVAL, EIO), .transport = "verbs"),
	ROW(ibv_post_send, "1 5", (EFAULT, EINVAL, ENOMEM), .transport = "verbs"),
	ROW(ibv_post_recv, "1 5", (EFAULT, EINVAL, ENOMEM), .transport = "verbs"),
	ROW(event, "0 1 4", (EVENT(RDMA_CM_EVENT_ADDR_ERROR, ETIMEDOUT), EVENT(RDMA_CM_EVENT_ROUTE_ERROR, ETIMEDOUT), EVENT(RDMA_CM_EVENT_CONNECT_ERROR, ENOMEM),
	    EVENT(RDMA_CM_EVENT_UNREACHABLE, ETIMEDOUT), EVENT(RDMA_CM_EVENT_REJECTED, 0), EVENT(RDMA_CM_EVENT_DISCONNECTED, 0),
	    EVENT(RDMA_CM_EVENT_DEVICE_REMOVAL, 0), EVENT(RDMA_CM_EVENT_MULTICAST_ERROR, EINVAL), EVENT(RDMA_CM_EVENT_ADDR_CHANGE, 0),
	    EVENT(RDMA_CM_EVENT_TIMEWAIT_EXIT, 0)), .transport = "verbs", .words = "RDMA_CM_EVENT_|the (server|client|peer|device) |disconnect|timed out"),
	ROW(completion, "0 1", (IBV_WC_LOC_LEN_ERR, IBV_WC_LOC_QP_OP_ERR, IBV_WC_LOC_PROT_ERR, IBV_WC_WR_FLUSH_ERR, IBV_WC_BAD_RESP_ERR,
	    IBV_WC_LOC_ACCESS_ERR, IBV_WC_REM_INV_REQ_ERR, IBV_WC_REM_ACCESS_ERR, IBV_WC_REM_OP_ERR, IBV_WC_RETRY_EXC_ERR, IBV_WC_RNR_RETRY_EXC_ERR,
	    IBV_WC_REM_ABORT_ERR, IBV_WC_FATAL_ERR, IBV_WC_GENERAL_ERR), .transport = "verbs", .words = "completion status|timed out|the (server|client|peer) |did not arrive|were not sent|no datagram|nothing came"),
	{ .call = NULL },
};
/* clang-format on */
