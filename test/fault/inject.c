/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Preloaded into the tested program: makes one use of one library call fail, counts all uses, and reports leaks at the
 * end. The program is the shipped one, not a special build.
 *
 * FAULT        CALL:N:ERROR[:TIMES]  use N (from 1) of CALL fails with that errno value, and so do the following ones,
 *              TIMES in all (0: forever). CALL "memory" means every allocation function.
 * FAULT_WHOSE  whose uses count: part of the calling library's name; default: the program's own
 * FAULT_PROGRAM the program's name, to exclude its launcher; default: any
 * FAULT_REPORT the file for "call NAME USES", "fired TIMES" and "left KIND COUNT", written when the program ends
 */
/* The C library's prototypes have unions where ISO C needs pointers. */
#pragma GCC diagnostic ignored "-Wpedantic"
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <link.h>
#include <net/if.h>
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
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	REPORT_SIZE = 8192,
	BLOCKS = 1 << 17, /* tracked allocations; a power of two */
	CALLS = 64,
};

/* In the order of their first use. */
struct call {
	const char *name;
	unsigned long uses;
};

static struct {
	char wanted[64]; /* the call; empty: none */
	unsigned long first;
	unsigned long times; /* 0: forever */
	int error;
	unsigned long fired;
	struct call calls[CALLS];
	long memory_left, descriptors_left;
	uintptr_t low, high; /* whose uses count */
	uintptr_t program_low, program_high;
	char report[512];
	pid_t process; /* children do not report */
	void *blocks[BLOCKS];
} state;

static bool due(const char *name, const void *caller)
{
	struct call *call = state.calls;

	if ((uintptr_t)caller < state.low || (uintptr_t)caller >= state.high)
		return false;
	while (call->name && strcmp(call->name, name) != 0)
		call++;
	call->name = name;
	call->uses++;
	if (strcmp(state.wanted, name) != 0 || call->uses < state.first ||
	    (state.times && call->uses >= state.first + state.times))
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

/* A failed use's result: -1, NULL, or the errno value itself. */
#define CALL(answer, type, name, parameters, arguments)                                                                \
	type name parameters                                                                                           \
	{                                                                                                              \
		ACTUAL(name);                                                                                          \
		if (due(#name, CALLER))                                                                                \
			return answer;                                                                                 \
		return actual arguments;                                                                               \
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
		state.memory_left++;
		break;
	}
	return block;
}

/* Leaves a tombstone, so that later entries are found. */
static void lose(const void *block)
{
	size_t at = ((uintptr_t)block >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 47;
	void **place = block && state.blocks[at] ? place_of(block) : NULL;

	if (!place)
		return;
	*place = &state;
	state.memory_left--;
}

void *malloc(size_t size)
{
	ACTUAL(malloc);
	return due("memory", CALLER) ? nothing() : keep(actual(size), CALLER);
}

/* dlsym() itself may allocate before the real function is known. */
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
	return due("memory", CALLER) ? nothing() : keep(actual(count, size), CALLER);
}

void *realloc(void *block, size_t size)
{
	ACTUAL(realloc);
	if (due("memory", CALLER))
		return nothing();
	lose(block);
	return keep(actual(block, size), CALLER);
}

int posix_memalign(void **block, size_t alignment, size_t size)
{
	int error;

	ACTUAL(posix_memalign);
	if (due("memory", CALLER))
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
	return due("memory", CALLER) ? nothing() : keep(actual(text), CALLER);
}

/* And it may free an earlier error's text. */
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
CALL(failed(), int, recvmmsg, (int fd, struct mmsghdr *messages, unsigned count, int flags, struct timespec *time),
     (fd, messages, count, flags, time))
CALL(failed(), ssize_t, recvmsg, (int fd, struct msghdr *message, int flags), (fd, message, flags))
CALL(failed(), ssize_t, getrandom, (void *bytes, size_t length, unsigned flags), (bytes, length, flags))
CALL(failed(), int, eventfd, (unsigned count, int flags), (count, flags))
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
CALL(failed(), int, getrlimit, (__rlimit_resource_t which, struct rlimit *limit), (which, limit))

#define VARIADIC(name, first_type, second_type)                                                                        \
	int name(first_type first, second_type second, ...)                                                            \
	{                                                                                                              \
		va_list list;                                                                                          \
		long rest;                                                                                             \
		ACTUAL(name);                                                                                          \
		if (due(#name, CALLER))                                                                                \
			return failed();                                                                               \
		va_start(list, second);                                                                                \
		rest = va_arg(list, long);                                                                             \
		va_end(list);                                                                                          \
		return actual(first, second, rest);                                                                    \
	}

VARIADIC(open, const char *, int)
VARIADIC(fcntl, int, int)
VARIADIC(ioctl, int, unsigned long)

/* ---- begin and end ---- */

static int find_library(struct dl_phdr_info *library, size_t size, void *whose)
{
	uintptr_t low = UINTPTR_MAX, high = 0;

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

/* Without the standard ones, which the program may close. */
static int open_descriptors(void)
{
	struct rlimit limit = { .rlim_cur = 1024 };
	int count = 0;

	getrlimit(RLIMIT_NOFILE, &limit);
	for (int fd = STDERR_FILENO + 1; fd < (int)limit.rlim_cur && fd < 4096; fd++)
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
	state.descriptors_left = -open_descriptors();
	snprintf(state.report, sizeof(state.report), "%s", report ? report : "");
	state.times = 1;
	if (!wanted || sscanf(wanted, "%63[^:]:%lu:%d:%lu", name, &state.first, &state.error, &state.times) < 3)
		return;
	strcpy(state.wanted, name);
}

static void end(void) __attribute__((destructor));
static void end(void)
{
	static char text[REPORT_SIZE];
	size_t used = 0;
	long fd, written;

	if (getpid() != state.process || !state.report[0])
		return;
	state.wanted[0] = '\0';
	state.descriptors_left += open_descriptors();
	used += (size_t)snprintf(text, sizeof(text), "fired %lu\n", state.fired);
	for (const struct call *call = state.calls; call->name; call++)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "call %s %lu\n", call->name, call->uses);
	if (state.memory_left > 0)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "left memory %ld\n", state.memory_left);
	if (state.descriptors_left > 0)
		used += (size_t)snprintf(text + used, sizeof(text) - used, "left descriptor %ld\n",
					 state.descriptors_left);
	fd = syscall(SYS_openat, AT_FDCWD, state.report, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	if (fd < 0)
		return;
	written = syscall(SYS_write, fd, text, used);
	(void)written;
	syscall(SYS_close, fd);
}
