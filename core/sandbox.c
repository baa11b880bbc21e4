/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The filter compares each system call with two lists: rules, then calls, the frequent ones first. Linux 5.11 and later
 * skip it for a call that is allowed with any arguments. System call numbers differ between architectures, and some
 * calls do not exist on all.
 */
#include "core/sandbox.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__) && defined(__LP64__)
#define PROCESSOR AUDIT_ARCH_X86_64
#elif defined(__aarch64__) && defined(__LP64__) && __BYTE_ORDER == __LITTLE_ENDIAN
#define PROCESSOR AUDIT_ARCH_AARCH64
#elif defined(__arm__) && defined(__ARM_EABI__) && __BYTE_ORDER == __LITTLE_ENDIAN
#define PROCESSOR AUDIT_ARCH_ARM
#elif defined(__riscv) && __riscv_xlen == 64
#define PROCESSOR AUDIT_ARCH_RISCV64
#elif defined(__s390x__)
#define PROCESSOR AUDIT_ARCH_S390X
#else
#define PROCESSOR 0 /* unknown: no filter */
#endif

struct rule {
	uint16_t call;
	uint8_t needs;	  /* grants */
	uint8_t argument; /* if mask is not 0: index of the argument whose masked bits must equal value */
	uint32_t mask;
	uint32_t value;
};

enum {
	OPEN_MASK = O_ACCMODE | O_CREAT | O_TRUNC,
	REQUEST_KIND = 0xff00,	 /* of an ioctl */
	REQUEST_RDMA = 0x1b00,	 /* RDMA_IOCTL_MAGIC */
	REQUEST_SOCKET = 0x8900, /* interfaces, by a socket */
	PROGRAM_MAX = 512,
	INSTRUCTIONS_MAX = 6, /* of a rule */
};

/* TCGETS2, which glibc 2.42 uses for TCGETS. <asm/termbits.h>, which has its struct, conflicts with <termios.h>. */
#define GET_TERMINAL _IOC(_IOC_READ, 'T', 0x2a, 44)

#define EVERY UINT32_MAX
#define OPENS(call, argument)                                                                                          \
	{ call, 0, argument, OPEN_MASK, O_RDONLY }, { call, SANDBOX_DEVICES, argument, OPEN_MASK, O_RDWR },            \
	{                                                                                                              \
		call, SANDBOX_FILES, argument, O_ACCMODE | O_APPEND, O_WRONLY                                          \
	}

/* clang-format off */
/* A system call with several rules is allowed if one of them allows it. */
static const struct rule rules[] = {
	{ .call = SYS_ioctl, .argument = 1, .mask = REQUEST_KIND, .value = REQUEST_RDMA },
	{ .call = SYS_ioctl, .argument = 1, .mask = REQUEST_KIND, .value = REQUEST_SOCKET },
	{ .call = SYS_ioctl, .argument = 1, .mask = EVERY, .value = TCGETS },
	{ .call = SYS_ioctl, .argument = 1, .mask = EVERY, .value = GET_TERMINAL },
	{ .call = SYS_ioctl, .argument = 1, .mask = EVERY, .value = TIOCGWINSZ },
	/* sockets: UDP, and netlink for interfaces and devices; no other family */
	{ .call = SYS_socket, .argument = 0, .mask = EVERY, .value = AF_INET },
	{ .call = SYS_socket, .argument = 0, .mask = EVERY, .value = AF_INET6 },
	{ .call = SYS_socket, .argument = 0, .mask = EVERY, .value = AF_NETLINK },
	/* memory without PROT_EXEC */
#if defined(SYS_mmap) && !defined(__s390x__)
	{ .call = SYS_mmap, .argument = 2, .mask = PROT_EXEC },
#endif
#ifdef SYS_mmap2
	{ .call = SYS_mmap2, .argument = 2, .mask = PROT_EXEC },
#endif
	{ .call = SYS_mprotect, .argument = 2, .mask = PROT_EXEC },
	/* files: libibverbs reads /sys, and opens the device of a listener's peer */
	OPENS(SYS_openat, 2),
#ifdef SYS_open
	OPENS(SYS_open, 1),
	{ .call = SYS_rename, .needs = SANDBOX_FILES }, { .call = SYS_unlink, .needs = SANDBOX_FILES },
#endif
#ifdef SYS_renameat
	{ .call = SYS_renameat, .needs = SANDBOX_FILES },
#endif
	{ .call = SYS_renameat2, .needs = SANDBOX_FILES }, { .call = SYS_unlinkat, .needs = SANDBOX_FILES },
};

/* Allowed with any arguments. */
static const uint16_t calls[] = {
	/* each ping */
	SYS_sendmmsg, SYS_recvmmsg,
#ifdef SYS_epoll_wait
	SYS_epoll_wait,
#endif
	SYS_epoll_pwait, SYS_read, SYS_write,
#ifdef SYS_clock_gettime
	SYS_timerfd_settime, SYS_clock_gettime, SYS_gettimeofday, SYS_clock_nanosleep,
#endif
#ifdef SYS_clock_gettime64
	SYS_clock_gettime64, SYS_recvmmsg_time64, SYS_timerfd_settime64, SYS_futex_time64,
	SYS_ppoll_time64, SYS_clock_nanosleep_time64,
#endif
	/* sockets */
	SYS_sendmsg, SYS_recvmsg, SYS_sendto, SYS_recvfrom, SYS_bind, SYS_connect, SYS_getsockname, SYS_getsockopt,
	SYS_setsockopt,
	/* waiting, time */
	SYS_epoll_ctl, SYS_eventfd2, SYS_ppoll, SYS_timerfd_create, SYS_setitimer, SYS_nanosleep,
	SYS_futex, SYS_sched_yield,
#ifdef SYS_poll
	SYS_poll,
#endif
	/* memory */
#ifdef __s390x__
	SYS_mmap, /* its arguments are in memory, which a filter cannot read */
#endif
	SYS_munmap, SYS_mremap, SYS_madvise, SYS_brk,
	/* files: reading, and open descriptors */
#ifdef SYS_open
	SYS_access, SYS_readlink, SYS_stat, SYS_lstat,
#endif
	SYS_close, SYS_readv, SYS_writev, SYS_pread64, SYS_lseek, SYS_fstat, SYS_fcntl, SYS_dup, SYS_dup3,
	SYS_getdents64, SYS_faccessat, SYS_readlinkat,
#ifdef SYS_newfstatat
	SYS_newfstatat,
#endif
#ifdef SYS_statx
	SYS_statx,
#endif
#ifdef SYS_fcntl64
	SYS_fcntl64, SYS__llseek, SYS_fstat64, SYS_stat64, SYS_fstatat64,
#endif
	/* signals and exit */
	SYS_rt_sigaction, SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_sigaltstack,
#ifdef SYS_sigreturn
	SYS_sigreturn,
#endif
	SYS_restart_syscall, SYS_getpid, SYS_gettid, SYS_exit, SYS_exit_group,
	/* other calls of libraries */
	SYS_getrandom, SYS_prlimit64, SYS_sysinfo, SYS_uname, SYS_sched_getaffinity, SYS_getuid, SYS_geteuid,
};
/* clang-format on */

struct program {
	struct sock_filter instructions[PROGRAM_MAX];
	unsigned short length;
};

/* A program that does not fit lacks its final return: the kernel rejects it. */
static void emit(struct program *program, unsigned code, uint32_t value, unsigned if_true, unsigned if_false)
{
	if (program->length < PROGRAM_MAX)
		program->instructions[program->length++] = (struct sock_filter){
			.code = (uint16_t)code, .jt = (uint8_t)if_true, .jf = (uint8_t)if_false, .k = value
		};
}

static void emit_load(struct program *program, size_t offset)
{
	emit(program, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

static void emit_rule(struct program *program, const struct rule *rule)
{
	size_t low_half = __BYTE_ORDER == __BIG_ENDIAN ? 4 : 0;

	emit(program, BPF_JMP | BPF_JEQ | BPF_K, rule->call, 0, rule->mask ? INSTRUCTIONS_MAX - 1 : 1);
	if (rule->mask) {
		emit_load(program, offsetof(struct seccomp_data, args) + rule->argument * sizeof(uint64_t) + low_half);
		emit(program, BPF_ALU | BPF_AND | BPF_K, rule->mask, 0, 0);
		emit(program, BPF_JMP | BPF_JEQ | BPF_K, rule->value, 0, 1);
	}
	emit(program, BPF_RET | BPF_K, SECCOMP_RET_ALLOW, 0, 0);
	if (rule->mask)
		emit_load(program, offsetof(struct seccomp_data, nr));
}

static void emit_program(struct program *program, unsigned grants)
{
	/* raise() and abort(): signals to this process only. */
	const struct rule own_signals[] = {
		{ .call = SYS_tgkill, .mask = EVERY, .value = (uint32_t)getpid() },
		{ .call = SYS_tkill, .mask = EVERY, .value = (uint32_t)getpid() },
	};

	emit_load(program, offsetof(struct seccomp_data, arch));
	emit(program, BPF_JMP | BPF_JEQ | BPF_K, PROCESSOR, 1, 0);
	emit(program, BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS, 0, 0);
	emit_load(program, offsetof(struct seccomp_data, nr));
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		if ((rules[i].needs & grants) == rules[i].needs)
			emit_rule(program, &rules[i]);
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++)
		emit_rule(program, &(struct rule){ .call = calls[i] });
	for (size_t i = 0; i < sizeof(own_signals) / sizeof(own_signals[0]); i++)
		emit_rule(program, &own_signals[i]);
	emit(program, BPF_RET | BPF_K, SECCOMP_RET_TRAP, 0, 0);
}

static const char label[] = "sandbox";

bool sandbox_is_possible(const struct log *log)
{
	if (!PROCESSOR)
		log_error(log, label, "not supported on this processor architecture");
	else if (prctl(PR_GET_SECCOMP, 0, 0, 0, 0) < 0)
		log_errno(log, label, errno, "the kernel has no system call filters");
	else
		return true;
	return false;
}

enum outcome sandbox_enter(const struct log *log, unsigned grants, sandbox_refused *refused)
{
	const struct sigaction action = { .sa_sigaction = refused, .sa_flags = SA_SIGINFO };
	struct program program = { .length = 0 };
	struct sock_fprog loaded = { .filter = program.instructions };

	emit_program(&program, grants);
	loaded.len = program.length;
	if (!sigaction(SIGSYS, &action, NULL) && !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) &&
	    !syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &loaded))
		return OUTCOME_OK;
	log_errno(log, label, errno, "installing the system call filter");
	return OUTCOME_INTERNAL;
}
