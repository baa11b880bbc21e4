/* SPDX-License-Identifier: BSD-2-Clause */
/* Causes of failures in words, with hints at the remedy. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "transport/rejection.h"
#include "transport/verbs/verbs.h"

#if WITH_SOFT
#define SOFT_HINT "; without a device: --transport soft"
#else
#define SOFT_HINT ""
#endif
#define CONNECTION_MANAGER "/dev/infiniband/rdma_cm"

/* Returns 0 if the directory has an entry whose name begins with prefix; else ENOENT or the error of opendir(). */
static int find_entry(const char *directory, const char *prefix)
{
	DIR *entries = opendir(directory);
	struct dirent *entry;
	bool found = false;

	if (!entries)
		return errno;
	while (!found && (entry = readdir(entries)))
		found = entry->d_name[0] != '.' && !strncmp(entry->d_name, prefix, strlen(prefix));
	closedir(entries);
	return found ? 0 : ENOENT;
}

static enum outcome outcome_of(int error)
{
	return error == EMFILE || error == ENFILE || error == ENOMEM || error == EAGAIN ? OUTCOME_INTERNAL
											: OUTCOME_NO_DEVICE;
}

enum outcome verbs_report_devices(const struct log *log)
{
	static const struct {
		const char *directory, *prefix, *missing, *hint;
	} checks[] = {
		{ "/sys/class/infiniband", "", "no RDMA device on this machine (/sys/class/infiniband is empty)",
		  "software device: rdma link add rxe0 type rxe netdev INTERFACE" SOFT_HINT },
		{ "/sys/class/infiniband_verbs", "uverbs",
		  "the kernel's verbs interface is not loaded (no /sys/class/infiniband_verbs/uverbs*)",
		  "modprobe ib_uverbs" },
		{ "/dev/infiniband", "uverbs", "the verbs devices are missing (no /dev/infiniband/uverbs*)",
		  "in a container, pass the devices in /dev/infiniband into it" },
	};

	for (size_t i = 0; i < sizeof(checks) / sizeof(*checks); i++) {
		int error = find_entry(checks[i].directory, checks[i].prefix);

		if (!error)
			continue;
		if (error != ENOENT) {
			log_errno(log, checks[i].directory, error, "looking for RDMA devices");
			return outcome_of(error);
		}
		log_error(log, NULL, "%s", checks[i].missing);
		log_hint(log, "%s", checks[i].hint);
		return OUTCOME_NO_DEVICE;
	}
	if (!access(CONNECTION_MANAGER, R_OK | W_OK))
		return OUTCOME_OK;
	if (errno != ENOENT) {
		log_errno(log, CONNECTION_MANAGER, errno, "opening the RDMA connection manager");
		log_hint(log, "run as root, or give this user the right: chmod a+rw /dev/infiniband/rdma_cm");
	} else if (!find_entry("/sys/class/misc", "rdma_cm")) {
		log_error(log, CONNECTION_MANAGER, "the device file is missing");
		log_hint(log, "in a container, pass the devices in /dev/infiniband into it");
	} else {
		log_error(log, NULL, "the RDMA connection manager is not loaded (no " CONNECTION_MANAGER ")");
		log_hint(log, "modprobe rdma_ucm");
	}
	return OUTCOME_NO_DEVICE;
}

enum outcome verbs_report_no_channel(const struct log *log, int error)
{
	log_errno(log, CONNECTION_MANAGER, error, "creating an event channel");
	return outcome_of(error);
}

enum outcome verbs_report_resources(const struct log *log, const char *object, const char *what, int error)
{
	struct rlimit locked;

	log_errno(log, object, error, "%s", what);
	if (error == EAGAIN)
		log_hint(log, "the control group of this process may have used up its rdma.max");
	else if ((error == ENOMEM || error == EPERM) && !getrlimit(RLIMIT_MEMLOCK, &locked) &&
		 locked.rlim_cur != RLIM_INFINITY)
		log_hint(log,
			 "at most %llu KiB of memory may be locked, and RDMA locks its memory: ulimit -l unlimited",
			 (unsigned long long)locked.rlim_cur / 1024);
	return OUTCOME_INTERNAL;
}

enum outcome verbs_report_shortage(const struct endpoint *endpoint, const char *what, int error)
{
	struct rdma_cm_id *id = ((const struct verbs_endpoint *)endpoint)->id;
	const char *object = endpoint->name;
	/* The kernel has found a device: librdmacm knows the local address before it opens the device. */
	bool cannot_open = error == ENODEV && rdma_get_local_addr(id)->sa_family && !id->verbs;
	struct ibv_device **devices = cannot_open ? ibv_get_device_list(NULL) : NULL;
	enum outcome outcome = OUTCOME_OK;

	for (struct ibv_device **device = devices; device && *device && error == ENODEV; device++) {
		struct ibv_context *context = NULL;
		char path[96];

		/* libibverbs tries other names for a file that it may not open, and loses errno. */
		snprintf(path, sizeof(path), "/dev/infiniband/%s", (*device)->dev_name);
		if (!access(path, R_OK | W_OK))
			context = ibv_open_device(*device);
		if (context) {
			ibv_close_device(context);
			continue;
		}
		error = errno;
		object = ibv_get_device_name(*device);
		what = "opening the device";
		outcome = outcome_of(error);
	}
	if (outcome || outcome_of(error) == OUTCOME_INTERNAL) {
		verbs_report_resources(endpoint->log, object, what, error);
		outcome = outcome_of(error);
	}
	if (devices)
		ibv_free_device_list(devices);
	return outcome;
}

enum {
	ERROR_NOT_SUPPORTED = 524 /* the kernel's ENOTSUPP, which user space does not define */
};

/* The cause of an errno value of librdmacm in words. */
static const char *error_cause(int error)
{
	switch (error) {
	case ENODEV:
		return "no RDMA device on the route to it";
	case ETIMEDOUT:
		return "no answer in time";
	case EHOSTUNREACH:
	case ENETUNREACH:
		return "no route to the host";
	case EADDRNOTAVAIL:
		return "not an address of this host with an RDMA device";
	case EADDRINUSE:
		return "the port is in use";
	case ECONNREFUSED:
		return "nobody listens there";
	case ECONNRESET:
		return "the peer closed the connection";
	case ERROR_NOT_SUPPORTED:
		return "the kernel does not support this";
	default:
		return strerror(error);
	}
}

enum outcome verbs_report_failure(const struct endpoint *endpoint, const char *what, int error)
{
	log_failure(
		endpoint->log,
		&(struct failure){
			.object = endpoint->name, .phase = what, .code = error, .kind = endpoint_errno_kind(error) },
		"%s", error_cause(error));
	return OUTCOME_NO_CONNECTION;
}

enum outcome verbs_report_address(const struct endpoint *endpoint, const char *what, int error)
{
	enum outcome outcome = verbs_report_shortage(endpoint, what, error);

	return outcome ? outcome : verbs_report_failure(endpoint, what, error);
}

const char *verbs_event_cause(const struct rdma_cm_event *event)
{
	/* The status of a reject is the CM's reason, on iWARP -errno. That of any other event is -errno. */
	if (event->event == RDMA_CM_EVENT_REJECTED && event->status >= 0)
		return rejection_text(event->status);
	/* On iWARP the peer's program has rejected: TCP had connected. */
	if (event->event == RDMA_CM_EVENT_REJECTED && event->status == -ECONNRESET)
		return rejection_text(REJECTED_BY_CONSUMER);
	if (event->event == RDMA_CM_EVENT_DEVICE_REMOVAL)
		return "the device was removed";
	if (event->status < 0)
		return error_cause(-event->status);
	return "connection manager error";
}

enum error_kind verbs_event_kind(const struct rdma_cm_event *event)
{
	if (event->event == RDMA_CM_EVENT_REJECTED && event->status >= 0)
		return endpoint_rejection_kind(event->status);
	return endpoint_errno_kind(-event->status);
}
