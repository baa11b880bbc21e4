/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Preloaded into the program under test: lets one use of one library call fail, counts all uses, and says at the end
 * what was made and not given back. The program is the one that is shipped, not a build of its own.
 *
 * FAULT        CALL:N:ERROR[:TIMES]  use N (from 1) of CALL fails with that errno value, and so do those that follow
 *              up to TIMES in all (0: for ever). CALL "memory" is each way to allocate. CALL "event" turns the N-th
 *              connection event into the one whose number is ERROR, "completion" the N-th completion's status.
 * FAULT_WHOSE  whose uses count: part of the name of the library that calls; the program's own unless told
 * FAULT_PROGRAM the program meant, as it is called; not what starts it. Any unless told
 * FAULT_REPORT the file that "call NAME USES", "fired TIMES" and "left KIND COUNT" are written to when the program ends
 */
/* The C library's own prototypes have unions where ISO C wants pointers. */
#pragma GCC diagnostic ignored "-Wpedantic"
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <infiniband/verbs.h>
#include <link.h>
#include <net/if.h>
#include <rdma/rdma_cma.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CALLS(X)                                                                                                       \
	X(memory)                                                                                                      \
	X(event)                                                                                                       \
	X(completion)                                                                                                  \
	X(socket)                                                                                                      \
	X(bind)                                                                                                        \
	X(connect)                                                                                                     \
	X(getsockname)                                                                                                 \
	X(getsockopt)                                                                                                  \
	X(setsockopt)                                                                                                  \
	X(ioctl)                                                                                                       \
	X(getifaddrs)                                                                                                  \
	X(if_nametoindex)                                                                                              \
	X(sendmmsg)                                                                                                    \
	X(sendmsg)                                                                                                     \
	X(recvmmsg)                                                                                                    \
	X(recvmsg)                                                                                                     \
	X(getrandom)                                                                                                   \
	X(eventfd)                                                                                                     \
	X(epoll_create1)                                                                                               \
	X(epoll_ctl)                                                                                                   \
	X(epoll_wait)                                                                                                  \
	X(timerfd_create)                                                                                              \
	X(timerfd_settime)                                                                                             \
	X(setitimer)                                                                                                   \
	X(pipe2)                                                                                                       \
	X(fork)                                                                                                        \
	X(open)                                                                                                        \
	X(fopen)                                                                                                       \
	X(fdopen)                                                                                                      \
	X(open_memstream)                                                                                              \
	X(rename)                                                                                                      \
	X(unlink)                                                                                                      \
	X(read)                                                                                                        \
	X(fcntl)                                                                                                       \
	X(close)                                                                                                       \
	X(sigaction)                                                                                                   \
	X(setsid)                                                                                                      \
	X(getrlimit)                                                                                                   \
	X(uname)                                                                                                       \
	X(rdma_create_event_channel)                                                                                   \
	X(rdma_create_id)                                                                                              \
	X(rdma_destroy_id)                                                                                             \
	X(rdma_bind_addr)                                                                                              \
	X(rdma_listen)                                                                                                 \
	X(rdma_resolve_addr)                                                                                           \
	X(rdma_resolve_route)                                                                                          \
	X(rdma_set_option)                                                                                             \
	X(rdma_connect)                                                                                                \
	X(rdma_establish)                                                                                              \
	X(rdma_accept)                                                                                                 \
	X(rdma_reject)                                                                                                 \
	X(rdma_disconnect)                                                                                             \
	X(rdma_migrate_id)                                                                                             \
	X(rdma_init_qp_attr)                                                                                           \
	X(rdma_create_qp_ex)                                                                                           \
	X(rdma_get_cm_event)                                                                                           \
	X(rdma_ack_cm_event)                                                                                           \
	X(rdma_join_multicast)                                                                                         \
	X(rdma_join_multicast_ex)                                                                                      \
	X(rdma_leave_multicast)                                                                                        \
	X(ibv_query_device)                                                                                            \
	X(ibv_query_port)                                                                                              \
	X(ibv_query_gid)                                                                                               \
	X(_ibv_query_gid_ex)                                                                                           \
	X(ibv_query_qp)                                                                                                \
	X(ibv_alloc_pd)                                                                                                \
	X(ibv_dealloc_pd)                                                                                              \
	X(ibv_create_comp_channel)                                                                                     \
	X(ibv_destroy_comp_channel)                                                                                    \
	X(ibv_create_cq)                                                                                               \
	X(ibv_destroy_cq)                                                                                              \
	X(ibv_get_cq_event)                                                                                            \
	X(ibv_get_async_event)                                                                                         \
	X(ibv_create_qp)                                                                                               \
	X(ibv_modify_qp)                                                                                               \
	X(ibv_destroy_qp)                                                                                              \
	X(ibv_reg_mr_iova2)                                                                                            \
	X(ibv_dereg_mr)                                                                                                \
	X(ibv_create_ah)                                                                                               \
	X(ibv_destroy_ah)                                                                                              \
	X(ibv_attach_mcast)                                                                                            \
	X(ibv_detach_mcast)                                                                                            \
	X(ibv_poll_cq)                                                                                                 \
	X(ibv_req_notify_cq)                                                                                           \
	X(ibv_post_send)                                                                                               \
	X(ibv_post_recv)

enum call {
#define X(name) CALL_##name,
	CALLS(X)
#undef X
	CALL_COUNT
};

static const char *const names[] = {
#define X(name) #name,
	CALLS(X)
#undef X
};

enum kind {
	LEFT_MEMORY,
	LEFT_CHANNEL,
	LEFT_ID,
	LEFT_DOMAIN,
	LEFT_COMPLETION_CHANNEL,
	LEFT_COMPLETION_QUEUE,
	LEFT_QUEUE_PAIR,
	LEFT_REGION,
	LEFT_HANDLE,
	LEFT_DESCRIPTOR,
	LEFT_KINDS
};

static const char *const kinds[] = {
	"memory",	    "event channel", "identifier", "protection domain", "completion channel",
	"completion queue", "queue pair",    "region",	   "address handle",	"descriptor"
};

enum {
	REPORT_SIZE = 8192,
	BLOCKS = 1 << 17, /* allocations that are followed; a power of two */
};

static struct {
	enum call call;
	unsigned long first;
	unsigned long times; /* 0: for ever */
	int error;
	bool wanted;
	unsigned long fired;
	unsigned long uses[CALL_COUNT];
	long left[LEFT_KINDS];
	uintptr_t low, high; /* whose uses count */
	uintptr_t program_low, program_high;
	char report[512];
	pid_t process; /* children do not report */
	void *blocks[BLOCKS];
	struct ibv_context_ops device; /* the driver's, of the one device there is */
	int (*query_port)(struct ibv_context *, uint8_t, struct ibv_port_attr *, size_t);
} state;

static bool due(enum call call, const void *caller)
{
	unsigned long use;

	if ((uintptr_t)caller < state.low || (uintptr_t)caller >= state.high)
		return false;
	use = ++state.uses[call];
	if (!state.wanted || state.call != call || use < state.first ||
	    (state.times && use >= state.first + state.times))
		return false;
	state.fired++;
	return true;
}

static bool from_program(const void *caller)
{
	return (uintptr_t)caller >= state.program_low && (uintptr_t)caller < state.program_high;
}

static int failed(void)
{
	errno = state.error;
	return -1;
}

static void *nothing(void)
{
	errno = state.error;
	return NULL;
}

#define ACTUAL(name)                                                                                                   \
	static __typeof__(name) *actual;                                                                               \
	if (!actual)                                                                                                   \
	*(void **)&actual = dlsym(RTLD_NEXT, #name)

#define CALLER __builtin_return_address(0)

/* What a failed use answers: -1, NULL, or the errno value itself. */
#define CALL(answer, type, name, parameters, arguments)                                                                \
	type name parameters                                                                                           \
	{                                                                                                              \
		ACTUAL(name);                                                                                          \
		if (due(CALL_##name, CALLER))                                                                          \
			return answer;                                                                                 \
		return actual arguments;                                                                               \
	}

/* The same, of a call that makes something of a kind, and of one that gives it back. */
#define MAKE(type, name, kind, parameters, arguments)                                                                  \
	type name parameters                                                                                           \
	{                                                                                                              \
		type made;                                                                                             \
		ACTUAL(name);                                                                                          \
		if (due(CALL_##name, CALLER))                                                                          \
			return nothing();                                                                              \
		made = actual arguments;                                                                               \
		state.left[kind] += made && from_program(CALLER);                                                      \
		return made;                                                                                           \
	}

#define GIVE(answer, name, kind, parameters, arguments)                                                                \
	int name parameters                                                                                            \
	{                                                                                                              \
		int result;                                                                                            \
		ACTUAL(name);                                                                                          \
		/* The refusal of the kernel leaves the thing with it: not the program's leak. */                      \
		if (due(CALL_##name, CALLER)) {                                                                        \
			state.left[kind]--;                                                                            \
			return answer;                                                                                 \
		}                                                                                                      \
		result = actual arguments;                                                                             \
		state.left[kind] -= !result && from_program(CALLER);                                                   \
		return result;                                                                                         \
	}

/* ---- memory ---- */

static void **place_of(const void *block)
{
	size_t at = ((uintptr_t)block >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 47;

	for (size_t tries = 0; tries < BLOCKS; tries++, at = (at + 1) % BLOCKS)
		if (state.blocks[at] == block)
			return &state.blocks[at];
	return NULL;
}

static void *keep(void *block, const void *caller)
{
	size_t at = ((uintptr_t)block >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 47;

	if (!block || !from_program(caller))
		return block;
	for (size_t tries = 0; tries < BLOCKS; tries++, at = (at + 1) % BLOCKS) {
		if (state.blocks[at] && state.blocks[at] != &state)
			continue;
		state.blocks[at] = block;
		state.left[LEFT_MEMORY]++;
		break;
	}
	return block;
}

/* A tombstone stays, so that what lies behind it is found. */
static void lose(const void *block)
{
	size_t at = ((uintptr_t)block >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 47;
	void **place = block && state.blocks[at] ? place_of(block) : NULL;

	if (!place)
		return;
	*place = &state;
	state.left[LEFT_MEMORY]--;
}

void *malloc(size_t size)
{
	ACTUAL(malloc);
	return due(CALL_memory, CALLER) ? nothing() : keep(actual(size), CALLER);
}

/* dlsym() itself may ask for memory before it can say where the real one is. */
void *calloc(size_t count, size_t size)
{
	static volatile bool asking; /* dlsym() is declared to call nobody back */
	static char early[4096];
	static size_t used;
	static __typeof__(calloc) *actual;

	if (!actual && asking) {
		void *block = early + used;

		used += (count * size + 15) & ~(size_t)15;
		return used <= sizeof(early) ? block : NULL;
	}
	asking = true;
	if (!actual)
		*(void **)&actual = dlsym(RTLD_NEXT, "calloc");
	asking = false;
	return due(CALL_memory, CALLER) ? nothing() : keep(actual(count, size), CALLER);
}

void *realloc(void *block, size_t size)
{
	ACTUAL(realloc);
	if (due(CALL_memory, CALLER))
		return nothing();
	lose(block);
	return keep(actual(block, size), CALLER);
}

int posix_memalign(void **block, size_t alignment, size_t size)
{
	int error;

	ACTUAL(posix_memalign);
	if (due(CALL_memory, CALLER))
		return state.error;
	error = actual(block, alignment, size);
	if (!error)
		keep(*block, CALLER);
	return error;
}

#undef strdup
char *strdup(const char *text)
{
	ACTUAL(strdup);
	return due(CALL_memory, CALLER) ? nothing() : keep(actual(text), CALLER);
}

/* And it may free what it said of an earlier failure. */
void free(void *block)
{
	static volatile bool asking; /* dlsym() is declared to call nobody back */
	static __typeof__(free) *actual;

	if (!actual && asking)
		return;
	asking = true;
	if (!actual)
		*(void **)&actual = dlsym(RTLD_NEXT, "free");
	asking = false;
	lose(block);
	actual(block);
}

/* ---- the C library ---- */

CALL(failed(), int, socket, (int domain, int type, int protocol), (domain, type, protocol))
CALL(failed(), int, bind, (int fd, const struct sockaddr *address, socklen_t length), (fd, address, length))
CALL(failed(), int, connect, (int fd, const struct sockaddr *address, socklen_t length), (fd, address, length))
CALL(failed(), int, getsockname, (int fd, struct sockaddr *restrict address, socklen_t *restrict length),
     (fd, address, length))
CALL(failed(), int, getsockopt, (int fd, int level, int name, void *restrict value, socklen_t *restrict length),
     (fd, level, name, value, length))
CALL(failed(), int, setsockopt, (int fd, int level, int name, const void *value, socklen_t length),
     (fd, level, name, value, length))
CALL(failed(), int, getifaddrs, (struct ifaddrs * *list), (list))
CALL((errno = state.error, 0U), unsigned, if_nametoindex, (const char *name), (name))
CALL(failed(), int, sendmmsg, (int fd, struct mmsghdr *messages, unsigned count, int flags),
     (fd, messages, count, flags))
CALL(failed(), ssize_t, sendmsg, (int fd, const struct msghdr *message, int flags), (fd, message, flags))
CALL(failed(), int, recvmmsg, (int fd, struct mmsghdr *messages, unsigned count, int flags, struct timespec *time),
     (fd, messages, count, flags, time))
CALL(failed(), ssize_t, recvmsg, (int fd, struct msghdr *message, int flags), (fd, message, flags))
CALL(failed(), ssize_t, getrandom, (void *bytes, size_t length, unsigned flags), (bytes, length, flags))
CALL(failed(), int, eventfd, (unsigned count, int flags), (count, flags))
CALL(failed(), int, epoll_create1, (int flags), (flags))
CALL(failed(), int, epoll_ctl, (int fd, int operation, int target, struct epoll_event *event),
     (fd, operation, target, event))
CALL(failed(), int, epoll_wait, (int fd, struct epoll_event *events, int max, int time), (fd, events, max, time))
CALL(failed(), int, timerfd_create, (clockid_t clock, int flags), (clock, flags))
CALL(failed(), int, timerfd_settime, (int fd, int flags, const struct itimerspec *time, struct itimerspec *old),
     (fd, flags, time, old))
CALL(failed(), int, setitimer,
     (__itimer_which_t which, const struct itimerval *restrict time, struct itimerval *restrict old),
     (which, time, old))
CALL(failed(), int, pipe2, (int ends[2], int flags), (ends, flags))
CALL(failed(), pid_t, fork, (void), ())
CALL(nothing(), FILE *, fopen, (const char *restrict path, const char *restrict mode), (path, mode))
CALL(nothing(), FILE *, fdopen, (int fd, const char *mode), (fd, mode))
CALL(nothing(), FILE *, open_memstream, (char **text, size_t *length), (text, length))
CALL(failed(), int, rename, (const char *from, const char *to), (from, to))
CALL(failed(), int, unlink, (const char *path), (path))
CALL(failed(), ssize_t, read, (int fd, void *bytes, size_t length), (fd, bytes, length))
CALL(failed(), int, close, (int fd), (fd))
CALL(failed(), int, sigaction, (int number, const struct sigaction *restrict new, struct sigaction *restrict old),
     (number, new, old))
CALL(failed(), pid_t, setsid, (void), ())
CALL(failed(), int, getrlimit, (__rlimit_resource_t which, struct rlimit *limit), (which, limit))
CALL(failed(), int, uname, (struct utsname * names_), (names_))

static long third(va_list list)
{
	return va_arg(list, long);
}

#define VARIADIC(name, first_type, second_type)                                                                        \
	int name(first_type first, second_type second, ...)                                                            \
	{                                                                                                              \
		va_list list;                                                                                          \
		long rest;                                                                                             \
		ACTUAL(name);                                                                                          \
		if (due(CALL_##name, CALLER))                                                                          \
			return failed();                                                                               \
		va_start(list, second);                                                                                \
		rest = third(list);                                                                                    \
		va_end(list);                                                                                          \
		return actual(first, second, rest);                                                                    \
	}

VARIADIC(open, const char *, int)
VARIADIC(fcntl, int, int)
VARIADIC(ioctl, int, unsigned long)

/* ---- librdmacm ---- */

MAKE(struct rdma_event_channel *, rdma_create_event_channel, LEFT_CHANNEL, (void), ())

void rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
	ACTUAL(rdma_destroy_event_channel);
	state.left[LEFT_CHANNEL] -= from_program(CALLER);
	actual(channel);
}

int rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
		   enum rdma_port_space space)
{
	int result;

	ACTUAL(rdma_create_id);
	if (due(CALL_rdma_create_id, CALLER))
		return failed();
	result = actual(channel, id, context, space);
	state.left[LEFT_ID] += !result && from_program(CALLER);
	return result;
}

GIVE(failed(), rdma_destroy_id, LEFT_ID, (struct rdma_cm_id * id), (id))
CALL(failed(), int, rdma_bind_addr, (struct rdma_cm_id * id, struct sockaddr *address), (id, address))
CALL(failed(), int, rdma_listen, (struct rdma_cm_id * id, int backlog), (id, backlog))
CALL(failed(), int, rdma_resolve_addr,
     (struct rdma_cm_id * id, struct sockaddr *source, struct sockaddr *destination, int time),
     (id, source, destination, time))
CALL(failed(), int, rdma_resolve_route, (struct rdma_cm_id * id, int time), (id, time))
CALL(failed(), int, rdma_set_option, (struct rdma_cm_id * id, int level, int name, void *value, size_t length),
     (id, level, name, value, length))
CALL(failed(), int, rdma_connect, (struct rdma_cm_id * id, struct rdma_conn_param *parameters), (id, parameters))
CALL(failed(), int, rdma_establish, (struct rdma_cm_id * id), (id))
CALL(failed(), int, rdma_accept, (struct rdma_cm_id * id, struct rdma_conn_param *parameters), (id, parameters))
CALL(failed(), int, rdma_reject, (struct rdma_cm_id * id, const void *data, uint8_t length), (id, data, length))
CALL(failed(), int, rdma_disconnect, (struct rdma_cm_id * id), (id))
CALL(failed(), int, rdma_migrate_id, (struct rdma_cm_id * id, struct rdma_event_channel *channel), (id, channel))
CALL(failed(), int, rdma_init_qp_attr, (struct rdma_cm_id * id, struct ibv_qp_attr *attributes, int *mask),
     (id, attributes, mask))
CALL(failed(), int, rdma_join_multicast, (struct rdma_cm_id * id, struct sockaddr *address, void *context),
     (id, address, context))
CALL(failed(), int, rdma_join_multicast_ex,
     (struct rdma_cm_id * id, struct rdma_cm_join_mc_attr_ex *attributes, void *context), (id, attributes, context))
CALL(failed(), int, rdma_leave_multicast, (struct rdma_cm_id * id, struct sockaddr *address), (id, address))
CALL(failed(), int, rdma_ack_cm_event, (struct rdma_cm_event * event), (event))

int rdma_create_qp_ex(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attributes)
{
	int result;

	ACTUAL(rdma_create_qp_ex);
	if (due(CALL_rdma_create_qp_ex, CALLER))
		return failed();
	result = actual(id, attributes);
	state.left[LEFT_QUEUE_PAIR] += !result;
	return result;
}

void rdma_destroy_qp(struct rdma_cm_id *id)
{
	ACTUAL(rdma_destroy_qp);
	state.left[LEFT_QUEUE_PAIR]--;
	actual(id);
}

int rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event)
{
	int result;

	ACTUAL(rdma_get_cm_event);
	if (due(CALL_rdma_get_cm_event, CALLER))
		return failed();
	result = actual(channel, event);
	if (result)
		return result;
	state.left[LEFT_ID] += (*event)->event == RDMA_CM_EVENT_CONNECT_REQUEST;
	/* A request stays one: its new identifier has no owner yet to hear of anything else. */
	if (due(CALL_event, CALLER) && (*event)->event != RDMA_CM_EVENT_CONNECT_REQUEST) {
		(*event)->event = (enum rdma_cm_event_type)(state.error & 0xff);
		(*event)->status = -(state.error >> 8);
		memset(&(*event)->param, 0, sizeof((*event)->param));
	}
	return 0;
}

/* ---- libibverbs ---- */

static int poll_queue(struct ibv_cq *queue, int max, struct ibv_wc *completions)
{
	int count;

	if (due(CALL_ibv_poll_cq, CALLER))
		return -1;
	count = state.device.poll_cq(queue, max, completions);
	for (int i = 0; i < count; i++) {
		if (!due(CALL_completion, CALLER))
			continue;
		completions[i].status = (enum ibv_wc_status)state.error;
		completions[i].opcode = (enum ibv_wc_opcode)0x7f;
		completions[i].byte_len = UINT32_MAX;
	}
	return count;
}

static int notify(struct ibv_cq *queue, int solicited)
{
	return due(CALL_ibv_req_notify_cq, CALLER) ? state.error : state.device.req_notify_cq(queue, solicited);
}

static int post_send(struct ibv_qp *queue, struct ibv_send_wr *requests, struct ibv_send_wr **bad)
{
	return due(CALL_ibv_post_send, CALLER) ? state.error : state.device.post_send(queue, requests, bad);
}

static int post_receive(struct ibv_qp *queue, struct ibv_recv_wr *requests, struct ibv_recv_wr **bad)
{
	return due(CALL_ibv_post_recv, CALLER) ? state.error : state.device.post_recv(queue, requests, bad);
}

static int query_port(struct ibv_context *context, uint8_t port, struct ibv_port_attr *attributes, size_t length)
{
	return due(CALL_ibv_query_port, CALLER) ? state.error : state.query_port(context, port, attributes, length);
}

/* The headers call the driver through its table: what is not a function of the library is taken over there. */
static void take_over(struct ibv_context *context)
{
	struct verbs_context *verbs = verbs_get_ctx(context);

	if (context->ops.poll_cq == poll_queue)
		return;
	state.device = context->ops;
	context->ops.poll_cq = poll_queue;
	context->ops.req_notify_cq = notify;
	context->ops.post_send = post_send;
	context->ops.post_recv = post_receive;
	if (!verbs || !verbs->query_port)
		return;
	state.query_port = verbs->query_port;
	verbs->query_port = query_port;
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attributes)
{
	ACTUAL(ibv_query_device);
	if (from_program(CALLER))
		take_over(context);
	return due(CALL_ibv_query_device, CALLER) ? state.error : actual(context, attributes);
}

CALL(failed(), int, ibv_query_gid, (struct ibv_context * context, uint8_t port, int index, union ibv_gid *gid),
     (context, port, index, gid))
CALL(state.error, int, _ibv_query_gid_ex,
     (struct ibv_context * context, uint32_t port, uint32_t index, struct ibv_gid_entry *entry, uint32_t flags,
      size_t length),
     (context, port, index, entry, flags, length))
CALL(state.error, int, ibv_query_qp,
     (struct ibv_qp * queue, struct ibv_qp_attr *attributes, int mask, struct ibv_qp_init_attr *initial),
     (queue, attributes, mask, initial))
MAKE(struct ibv_pd *, ibv_alloc_pd, LEFT_DOMAIN, (struct ibv_context * context), (context))
GIVE(state.error, ibv_dealloc_pd, LEFT_DOMAIN, (struct ibv_pd * domain), (domain))
MAKE(struct ibv_comp_channel *, ibv_create_comp_channel, LEFT_COMPLETION_CHANNEL, (struct ibv_context * context),
     (context))
GIVE(state.error, ibv_destroy_comp_channel, LEFT_COMPLETION_CHANNEL, (struct ibv_comp_channel * channel), (channel))
MAKE(struct ibv_cq *, ibv_create_cq, LEFT_COMPLETION_QUEUE,
     (struct ibv_context * context, int entries, void *cq_context, struct ibv_comp_channel *channel, int vector),
     (context, entries, cq_context, channel, vector))
GIVE(state.error, ibv_destroy_cq, LEFT_COMPLETION_QUEUE, (struct ibv_cq * queue), (queue))
CALL(failed(), int, ibv_get_cq_event, (struct ibv_comp_channel * channel, struct ibv_cq **queue, void **context),
     (channel, queue, context))
CALL(failed(), int, ibv_get_async_event, (struct ibv_context * context, struct ibv_async_event *event),
     (context, event))
MAKE(struct ibv_qp *, ibv_create_qp, LEFT_QUEUE_PAIR, (struct ibv_pd * domain, struct ibv_qp_init_attr *attributes),
     (domain, attributes))
CALL(state.error, int, ibv_modify_qp, (struct ibv_qp * queue, struct ibv_qp_attr *attributes, int mask),
     (queue, attributes, mask))
GIVE(state.error, ibv_destroy_qp, LEFT_QUEUE_PAIR, (struct ibv_qp * queue), (queue))
MAKE(struct ibv_mr *, ibv_reg_mr_iova2, LEFT_REGION,
     (struct ibv_pd * domain, void *memory, size_t length, uint64_t address, unsigned access),
     (domain, memory, length, address, access))
GIVE(state.error, ibv_dereg_mr, LEFT_REGION, (struct ibv_mr * region), (region))
MAKE(struct ibv_ah *, ibv_create_ah, LEFT_HANDLE, (struct ibv_pd * domain, struct ibv_ah_attr *attributes),
     (domain, attributes))
GIVE(state.error, ibv_destroy_ah, LEFT_HANDLE, (struct ibv_ah * handle), (handle))
CALL(state.error, int, ibv_attach_mcast, (struct ibv_qp * queue, const union ibv_gid *gid, uint16_t lid),
     (queue, gid, lid))
CALL(state.error, int, ibv_detach_mcast, (struct ibv_qp * queue, const union ibv_gid *gid, uint16_t lid),
     (queue, gid, lid))

/* ---- begin and end ---- */

static int find_library(struct dl_phdr_info *library, size_t size, void *whose)
{
	uintptr_t low = UINTPTR_MAX, high = 0;

	(void)size;
	for (int i = 0; i < library->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &library->dlpi_phdr[i];

		if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_X))
			continue;
		low = library->dlpi_addr + segment->p_vaddr;
		high = low + segment->p_memsz;
	}
	if (!library->dlpi_name[0]) {
		state.program_low = low;
		state.program_high = high;
	}
	if (whose ? strstr(library->dlpi_name, whose) != NULL : !library->dlpi_name[0]) {
		state.low = low;
		state.high = high;
	}
	return 0;
}

static int open_descriptors(void)
{
	struct rlimit limit = { .rlim_cur = 1024 };
	int count = 0;

	getrlimit(RLIMIT_NOFILE, &limit);
	for (int fd = 0; fd < (int)limit.rlim_cur && fd < 4096; fd++)
		count += syscall(SYS_fcntl, fd, F_GETFD) >= 0;
	return count;
}

static void begin(void) __attribute__((constructor));
static void begin(void)
{
	const char *wanted = getenv("FAULT");
	const char *report = getenv("FAULT_REPORT");
	const char *program = getenv("FAULT_PROGRAM");
	char name[64];

	if (program && strcmp(program, program_invocation_name) != 0)
		return;
	dl_iterate_phdr(find_library, getenv("FAULT_WHOSE"));
	state.process = getpid();
	state.left[LEFT_DESCRIPTOR] = -open_descriptors();
	snprintf(state.report, sizeof(state.report), "%s", report ? report : "");
	state.times = 1;
	if (!wanted || sscanf(wanted, "%63[^:]:%lu:%d:%lu", name, &state.first, &state.error, &state.times) < 3)
		return;
	for (unsigned call = 0; call < CALL_COUNT; call++) {
		if (strcmp(name, names[call]) != 0)
			continue;
		state.call = (enum call)call;
		state.wanted = true;
	}
}

static void end(void) __attribute__((destructor));
static void end(void)
{
	static char text[REPORT_SIZE];
	size_t used = 0;
	long fd, written;

	if (getpid() != state.process || !state.report[0])
		return;
	state.wanted = false;
	state.left[LEFT_DESCRIPTOR] += open_descriptors();
	used += (size_t)snprintf(text, sizeof(text), "fired %lu\n", state.fired);
	for (unsigned call = 0; call < CALL_COUNT && used < sizeof(text); call++)
		if (state.uses[call])
			used += (size_t)snprintf(text + used, sizeof(text) - used, "call %s %lu\n", names[call],
						 state.uses[call]);
	for (unsigned kind = 0; kind < LEFT_KINDS && used < sizeof(text); kind++)
		if (state.left[kind] > 0)
			used += (size_t)snprintf(text + used, sizeof(text) - used, "left %s %ld\n", kinds[kind],
						 state.left[kind]);
	fd = syscall(SYS_openat, AT_FDCWD, state.report, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	if (fd < 0)
		return;
	written = syscall(SYS_write, fd, text, used);
	(void)written;
	syscall(SYS_close, fd);
}
