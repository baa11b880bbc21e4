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

#define SERVER_LIMITS	" --ready-fd 9 --timeout ~ --idle-timeout ~ --deadline 5s"
#define CLIENT_LIMITS	" --timeout ~ --deadline 5s"
#define RPING_SERVER	"rping -s -a @ -p 71%" SERVER_LIMITS
#define RPING_CLIENT	"rping -c -a @ -p 71% --source ^ -C 2 -V" CLIENT_LIMITS
#define UCMATOSE_SERVER "ucmatose -b @ -p 72% -c 2 -C 2" SERVER_LIMITS
#define UCMATOSE_CLIENT "ucmatose -s @ -p 72% --source ^ -c 2 -C 2" CLIENT_LIMITS
#define MCKEY_RECEIVER	"mckey -m 239.1.%.1 -b @ -C 2" SERVER_LIMITS
#define MCKEY_SENDER	"mckey -m 239.1.%.1 -b ^ -s -C 2 --pause 20ms" CLIENT_LIMITS
#define FILES		" --json --pidfile /tmp/faults.pid.% --prometheus /tmp/faults.prom.%"

#define SERVER(role, own, other, ...) { .name = role, .line = own, .peer = other, .passive = true, __VA_ARGS__ }
#define CLIENT(role, own, other, ...) { .name = role, .line = own, .peer = other, __VA_ARGS__ }

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
	SERVER("mckey-receiver-own-queue", MCKEY_RECEIVER " --own-qp", MCKEY_SENDER, .transport = "verbs"),
	CLIENT("rping-client-options", RPING_CLIENT " --tos 32 --ack-timeout 14", RPING_SERVER, .transport = "verbs"),
	CLIENT("selftest", "selftest --timeout ~ --deadline 5s", NULL, .transport = "soft"),
	{ .name = NULL },
};

#define ERRORS(...) (const int[]){ __VA_ARGS__, 0 }
#define ALL "0 1 2 3 4 5"
#define ROW(name, exits, ...) { .call = #name, .codes = exits, .times = 1, .errors = ERRORS(__VA_ARGS__) }

static const int memory[] = { ENOMEM, 0 };
static const int gone[] = { EPERM, ENETDOWN, ENOBUFS, EINVAL, 0 };

/* A connection event in place of another one: its number, and in the higher bits the negated status. */
#define EVENT(number, status) ((number) | (status) << 8)

const struct row cell_rows[] = {
	{ .call = "memory", .errors = memory, .codes = ALL, .times = 1, .words = "[Oo]ut of memory|allocate memory" },
	{ .call = "memory", .errors = memory, .codes = ALL, .times = 0, .words = "[Oo]ut of memory|allocate memory" },
	{ .call = "sendmmsg", .errors = gone, .codes = ALL, .times = 0 },

	ROW(socket, ALL, EACCES, EAFNOSUPPORT, EINVAL, EMFILE, ENFILE, ENOBUFS, ENOMEM, EPROTONOSUPPORT),
	ROW(bind, ALL, EACCES, EADDRINUSE, EADDRNOTAVAIL, EBADF, EINVAL, ENOMEM),
	ROW(connect, ALL, EACCES, EPERM, EADDRNOTAVAIL, EAGAIN, ECONNREFUSED, EHOSTUNREACH, EINVAL, ENETUNREACH, ETIMEDOUT),
	ROW(getsockname, ALL, EBADF, EINVAL, ENOBUFS),
	ROW(getsockopt, ALL, EBADF, EINVAL, ENOPROTOOPT),
	ROW(setsockopt, ALL, EBADF, EINVAL, ENOPROTOOPT, EPERM, ENODEV, ENOBUFS),
	ROW(ioctl, ALL, EBADF, EINVAL, ENODEV),
	ROW(getifaddrs, ALL, ENOMEM, EMFILE, EACCES),
	ROW(if_nametoindex, ALL, ENODEV),
	ROW(sendmmsg, ALL, EAGAIN, EINTR, EPERM, EACCES, ECONNREFUSED, EHOSTUNREACH, EINVAL, EMSGSIZE, ENETUNREACH, ENOBUFS, ENOMEM),
	ROW(recvmmsg, ALL, EAGAIN, EINTR, ECONNREFUSED, EINVAL, ENOMEM),
	ROW(recvmsg, ALL, EAGAIN, EINTR, EINVAL, ENOMEM),
	ROW(getrandom, ALL, EAGAIN, EINTR),
	ROW(eventfd, ALL, EINVAL, EMFILE, ENFILE, ENODEV, ENOMEM),
	ROW(timerfd_create, ALL, EINVAL, EMFILE, ENFILE, ENODEV, ENOMEM),
	ROW(timerfd_settime, ALL, EINVAL),
	ROW(timer_create, ALL, EAGAIN, EINVAL, ENOMEM),
	ROW(timer_settime, ALL, EINVAL),
	ROW(pipe2, ALL, EMFILE, ENFILE),
	ROW(fork, ALL, EAGAIN, ENOMEM),
	ROW(open, ALL, EACCES, EEXIST, EMFILE, ENFILE, ENOENT, ENOSPC, EROFS, EINTR),
	ROW(fopen, ALL, EACCES, EMFILE, ENOENT, ENOMEM, ENOSPC, EROFS),
	ROW(fdopen, ALL, EBADF, EINVAL, ENOMEM),
	ROW(fmemopen, ALL, EINVAL, ENOMEM),
	ROW(open_memstream, ALL, EMFILE, ENOMEM),
	ROW(opendir, ALL, EACCES, EMFILE, ENFILE, ENOENT, ENOMEM),
	ROW(rename, ALL, EACCES, ENOSPC, EROFS, ENOENT),
	ROW(unlink, ALL, EACCES, EROFS, ENOENT),
	ROW(read, ALL, EAGAIN, EINTR, EIO),
	ROW(fcntl, ALL, EBADF, EINVAL),
	ROW(close, ALL, EINTR, EIO),
	ROW(sigaction, ALL, EINVAL),
	ROW(setitimer, ALL, EINVAL),
	ROW(getrlimit, ALL, EINVAL),

	ROW(rdma_create_event_channel, ALL, ENODEV, EACCES, EMFILE, ENOMEM),
	ROW(rdma_create_id, ALL, EINVAL, ENODEV, ENOMEM),
	ROW(rdma_destroy_id, ALL, EINVAL),
	ROW(rdma_bind_addr, ALL, EADDRINUSE, EADDRNOTAVAIL, EINVAL, ENODEV, ENOMEM),
	ROW(rdma_listen, ALL, EADDRINUSE, EINVAL, ENOMEM),
	ROW(rdma_resolve_addr, ALL, EADDRNOTAVAIL, EINVAL, ENETUNREACH, ENODEV, ENOMEM, ETIMEDOUT),
	ROW(rdma_resolve_route, ALL, EINVAL, ENODEV, ENOMEM),
	ROW(rdma_set_option, ALL, EINVAL, ENOSYS),
	ROW(rdma_connect, ALL, ECONNREFUSED, EINVAL, ENOMEM, ETIMEDOUT),
	ROW(rdma_establish, ALL, EINVAL),
	ROW(rdma_accept, ALL, ECONNRESET, EINVAL, ENOMEM),
	ROW(rdma_reject, ALL, EINVAL),
	ROW(rdma_disconnect, ALL, EINVAL, ENOTCONN),
	ROW(rdma_migrate_id, ALL, EINVAL, ENOMEM),
	ROW(rdma_init_qp_attr, ALL, EINVAL, ENOMEM),
	ROW(rdma_create_qp_ex, ALL, EINVAL, ENOMEM, ENOSYS, EPERM),
	ROW(rdma_get_cm_event, ALL, EAGAIN, EINTR, EINVAL, EIO, ENODEV, ENOMEM),
	ROW(rdma_join_multicast, ALL, EADDRNOTAVAIL, EINVAL, ENODEV, ENOMEM),
	ROW(rdma_join_multicast_ex, ALL, EADDRNOTAVAIL, EINVAL, ENODEV, ENOMEM),
	ROW(rdma_leave_multicast, ALL, EADDRNOTAVAIL, EINVAL),
	ROW(ibv_query_device, ALL, EINVAL, EIO, ENOMEM),
	ROW(ibv_query_port, ALL, EINVAL, EIO, ENOMEM),
	ROW(ibv_query_gid, ALL, EINVAL),
	ROW(_ibv_query_gid_ex, ALL, EINVAL, ENODATA, EOPNOTSUPP),
	ROW(ibv_query_qp, ALL, EINVAL, EOPNOTSUPP),
	ROW(ibv_alloc_pd, ALL, EINVAL, ENOMEM),
	ROW(ibv_dealloc_pd, ALL, EBUSY, EINVAL),
	ROW(ibv_create_comp_channel, ALL, EMFILE, ENOMEM),
	ROW(ibv_destroy_comp_channel, ALL, EBUSY),
	ROW(ibv_create_cq, ALL, EINVAL, ENOMEM, ENOSYS),
	ROW(ibv_destroy_cq, ALL, EBUSY),
	ROW(ibv_get_cq_event, ALL, EAGAIN, EINTR, EIO),
	ROW(ibv_get_async_event, ALL, EAGAIN, EINTR, EIO),
	ROW(ibv_create_qp, ALL, EINVAL, ENOMEM, ENOSYS, EPERM),
	ROW(ibv_modify_qp, ALL, EINVAL, ENOMEM, ETIMEDOUT),
	ROW(ibv_destroy_qp, ALL, EBUSY),
	ROW(ibv_reg_mr_iova2, ALL, EAGAIN, EINVAL, ENOMEM, EPERM),
	ROW(ibv_dereg_mr, ALL, EBUSY),
	ROW(ibv_create_ah, ALL, EINVAL, ENOMEM),
	ROW(ibv_destroy_ah, ALL, EBUSY),
	ROW(ibv_attach_mcast, ALL, EINVAL, ENOMEM),
	ROW(ibv_detach_mcast, ALL, EINVAL),
	ROW(ibv_poll_cq, ALL, EIO),
	ROW(ibv_req_notify_cq, ALL, EINVAL, EIO),
	ROW(ibv_post_send, ALL, EFAULT, EINVAL, ENOMEM),
	ROW(ibv_post_recv, ALL, EFAULT, EINVAL, ENOMEM),
	ROW(event, ALL, EVENT(RDMA_CM_EVENT_ADDR_ERROR, ETIMEDOUT), EVENT(RDMA_CM_EVENT_ROUTE_ERROR, ETIMEDOUT), EVENT(RDMA_CM_EVENT_CONNECT_ERROR, ENOMEM),
	    EVENT(RDMA_CM_EVENT_UNREACHABLE, ETIMEDOUT), EVENT(RDMA_CM_EVENT_REJECTED, 0), EVENT(RDMA_CM_EVENT_DISCONNECTED, 0),
	    EVENT(RDMA_CM_EVENT_DEVICE_REMOVAL, 0), EVENT(RDMA_CM_EVENT_MULTICAST_ERROR, EINVAL), EVENT(RDMA_CM_EVENT_ADDR_CHANGE, 0),
	    EVENT(RDMA_CM_EVENT_TIMEWAIT_EXIT, 0)),
	ROW(completion, ALL, IBV_WC_LOC_LEN_ERR, IBV_WC_LOC_QP_OP_ERR, IBV_WC_LOC_PROT_ERR, IBV_WC_WR_FLUSH_ERR, IBV_WC_BAD_RESP_ERR,
	    IBV_WC_LOC_ACCESS_ERR, IBV_WC_REM_INV_REQ_ERR, IBV_WC_REM_ACCESS_ERR, IBV_WC_REM_OP_ERR, IBV_WC_RETRY_EXC_ERR, IBV_WC_RNR_RETRY_EXC_ERR,
	    IBV_WC_REM_ABORT_ERR, IBV_WC_FATAL_ERR, IBV_WC_GENERAL_ERR),
	{ .call = NULL },
};
/* clang-format on */
