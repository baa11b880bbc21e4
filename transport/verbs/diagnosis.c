/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Causes of failures in words, with remedies. Files of /sys and /dev are read only after a call has failed, to explain
 * it: they decide nothing, and where they cannot be read that is said instead of a remedy.
 */
#include <errno.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "core/device_file.h"
#include "core/privileges.h"
#include "core/remedy.h"
#include "core/sysfs.h"
#include "transport/verbs/verbs.h"

#if WITH_SOFT
#define SOFT_HINT "without a device: --transport soft"
#else
#define SOFT_HINT ""
#endif
#define DEVICES	 "/sys/class/infiniband"
#define VERBS	 "/sys/class/infiniband_verbs"
#define FILES	 "/dev/infiniband"
#define MANAGER	 "/sys/class/misc/rdma_cm"
#define PROVIDER "install its package: ibverbs-providers (Debian), libibverbs (Fedora)"

static enum outcome outcome_of(int error)
{
	return error == EMFILE || error == ENFILE || error == ENOMEM || error == EAGAIN ? OUTCOME_INTERNAL
											: OUTCOME_NO_DEVICE;
}

static void hint_module(struct error *reason, const char *module)
{
	error_hint(reason, "%s", remedy_find(PROBLEM_MODULES, remedy_facts(), module, NULL).text);
}

static bool is_listed(struct ibv_device **devices, const char *file)
{
	for (; devices && *devices; devices++)
		if (!strcmp((*devices)->dev_name, file))
			return true;
	return false;
}

/*
 * libibverbs leaves out a device whose file is not there, and one without a provider. Writes which devices of the
 * kernel lack what, and a remedy for the first, "" if none is known. Returns their number.
 */
static unsigned find_left_out(char text[ERROR_CAUSE_SIZE], struct remedy *remedy)
{
	struct ibv_device **devices = ibv_get_device_list(NULL);
	struct names names = sysfs_names(VERBS);
	unsigned count = 0;

	for (int i = 0; i < names.count; i++) {
		const char *file = names.entries[i]->d_name;
		char device[SYSFS_TEXT_SIZE], path[SYSFS_PATH_SIZE], number[SYSFS_PATH_SIZE];
		char cause[DEVICE_FILE_TEXT_SIZE];
		size_t used = count ? strlen(text) : 0;
		bool here;

		/* Another network namespace may have it. */
		if (is_listed(devices, file) || !sysfs_name(device, VERBS "/%s/ibdev", file) ||
		    !sysfs_has(DEVICES "/%s", device))
			continue;
		here = sysfs_has("%s", sysfs_path(path, FILES "/%s", file));
		if (!count++ && here)
			strcpy(remedy->text, PROVIDER);
		else if (count == 1)
			device_file_check(path, sysfs_path(number, VERBS "/%s/dev", file), cause, remedy);
		log_text(text + used, ERROR_CAUSE_SIZE - used, "%s%s has no %s", used ? ", " : "", device,
			 here ? "provider library" : path);
	}
	sysfs_names_free(&names);
	if (devices)
		ibv_free_device_list(devices);
	return count;
}

/* libibverbs lists no device. */
static enum outcome report_no_device(struct error *reason)
{
	char text[ERROR_CAUSE_SIZE], mode[SYSFS_TEXT_SIZE];
	struct remedy remedy = { .text = SOFT_HINT };
	struct names names;
	int error;

	errno = 0;
	names = sysfs_names(DEVICES);
	error = names.count ? 0 : errno;
	sysfs_names_free(&names);
	if (error && error != ENOENT) {
		error_errno(reason, DEVICES, error, "looking for RDMA devices");
		return outcome_of(error);
	}
	if (find_left_out(text, &remedy)) {
		error_set(reason, NULL, "no usable RDMA device: %s", text);
	} else if (names.count) {
		error_set(reason, NULL, "the kernel's verbs interface is not loaded (no " VERBS "/uverbs*)");
		hint_module(reason, "ib_uverbs");
		return OUTCOME_NO_DEVICE;
	} else if (!sysfs_has("/sys/class")) {
		error_set(reason, NULL, "no RDMA device found; /sys, which may say why, is not mounted");
	} else if (sysfs_line(mode, "/sys/module/ib_core/parameters/netns_mode") && *mode == 'N') {
		error_set(reason, NULL, "no RDMA device in this network namespace (rdma system: netns exclusive)");
	} else {
		error_set(reason, NULL, "no RDMA device on this machine (" DEVICES " is empty)");
	}
	if (*remedy.text)
		error_hint(reason, "%s", remedy.text);
	return OUTCOME_NO_DEVICE;
}

/* Reports a device file that cannot be opened. Returns OUTCOME_OK if it can. */
static enum outcome report_file(struct error *reason, const char *object, const char *path, const char *number)
{
	char cause[DEVICE_FILE_TEXT_SIZE];
	struct remedy remedy;
	int error = device_file_check(path, number, cause, &remedy);

	if (!error)
		return OUTCOME_OK;
	error_failure(reason,
		      &(struct failure){
			      .object = object, .phase = "opening the device file", .code = error > 0 ? error : 0 },
		      "%s", cause);
	if (*remedy.text)
		error_hint(reason, "%s", remedy.text);
	return outcome_of(error);
}

enum outcome verbs_report_no_channel(struct error *reason, int error)
{
	struct ibv_device **devices;
	enum outcome outcome = OUTCOME_OK;
	int count = 0;

	if (outcome_of(error) == OUTCOME_NO_DEVICE) {
		devices = ibv_get_device_list(&count);
		if (devices)
			ibv_free_device_list(devices);
		if (!count)
			return report_no_device(reason);
		if (sysfs_has("/sys/class/misc") && !sysfs_has(MANAGER)) {
			error_set(reason, NULL, "the RDMA connection manager is not loaded (no " MANAGER ")");
			hint_module(reason, "rdma_ucm");
			return OUTCOME_NO_DEVICE;
		}
		outcome = report_file(reason, VERBS_MANAGER_FILE, VERBS_MANAGER_FILE, MANAGER "/dev");
	}
	if (outcome)
		return outcome;
	error_errno(reason, VERBS_MANAGER_FILE, error, "creating an event channel");
	return outcome_of(error);
}

enum outcome verbs_report_resources(struct error *reason, const char *object, const char *what, int error)
{
	struct rlimit locked;

	error_errno(reason, object, error, "%s", what);
	if (error == EAGAIN)
		error_hint(reason, "the control group of this process may have used up its rdma.max");
	else if ((error == ENOMEM || error == EPERM) && !getrlimit(RLIMIT_MEMLOCK, &locked) &&
		 locked.rlim_cur != RLIM_INFINITY &&
		 !(privileges_have(CAP_IPC_LOCK) && privileges_user_namespace_is_initial()))
		error_hint(reason, "at most %llu KiB of memory may be locked, and RDMA locks its memory: %s",
			   (unsigned long long)locked.rlim_cur / 1024,
			   remedy_find(PROBLEM_MEMORY,
				       remedy_facts() | (locked.rlim_max == RLIM_INFINITY ? FACT_MAY_RAISE : 0), NULL,
				       NULL)
				   .text);
	return OUTCOME_INTERNAL;
}

/* The kernel has found a device for the endpoint that librdmacm cannot open. Returns OUTCOME_OK without a reason. */
static enum outcome report_unopened(const struct endpoint *endpoint, const char *what)
{
	struct ibv_device **devices = ibv_get_device_list(NULL);
	char text[ERROR_CAUSE_SIZE], path[96], number[96];
	struct remedy remedy = { .text = "" };
	enum outcome outcome = OUTCOME_OK;

	for (struct ibv_device **device = devices; device && *device && !outcome; device++) {
		const char *name = ibv_get_device_name(*device);
		struct ibv_context *context;

		log_text(path, sizeof(path), FILES "/%s", (*device)->dev_name);
		log_text(number, sizeof(number), VERBS "/%s/dev", (*device)->dev_name);
		outcome = report_file(endpoint_error(endpoint), name, path, number);
		/* libibverbs would wait for udev to replace a file that it may not open. */
		context = outcome ? NULL : ibv_open_device(*device);
		if (context)
			ibv_close_device(context);
		else if (!outcome)
			outcome = verbs_report_resources(endpoint_error(endpoint), name, "opening the device", errno);
	}
	if (devices)
		ibv_free_device_list(devices);
	if (outcome || !find_left_out(text, &remedy))
		return outcome;
	error_failure(endpoint_error(endpoint),
		      &(struct failure){ .object = endpoint->name, .phase = what, .code = ENODEV },
		      "the RDMA device on the route cannot be used: %s", text);
	if (*remedy.text)
		error_hint(endpoint_error(endpoint), "%s", remedy.text);
	return OUTCOME_NO_DEVICE;
}

enum outcome verbs_report_shortage(const struct endpoint *endpoint, const char *what, int error)
{
	struct rdma_cm_id *id = ((const struct verbs_endpoint *)endpoint)->id;

	if (outcome_of(error) == OUTCOME_INTERNAL)
		return verbs_report_resources(endpoint_error(endpoint), endpoint->name, what, error);
	/* librdmacm knows the local address before it opens the device. */
	if (error == ENODEV && rdma_get_local_addr(id)->sa_family && !id->verbs)
		return report_unopened(endpoint, what);
	return OUTCOME_OK;
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

/* The kernel finds no device for the endpoint's address. */
static const char *no_device_cause(const struct endpoint *endpoint)
{
	if (endpoint->kind == ENDPOINT_LISTENER)
		return error_cause(EADDRNOTAVAIL);
	if (endpoint->kind == ENDPOINT_CONNECTION && address_is_any(&endpoint->peer))
		return "it is not the address of a host";
	if (address_is_loopback(&endpoint->peer))
		return "a loopback address leads to no RDMA device";
	return error_cause(ENODEV);
}

enum outcome verbs_report_failure(const struct endpoint *endpoint, const char *what)
{
	int error = errno;

	return endpoint_no_connection(endpoint, what, error,
				      error == ENODEV ? no_device_cause(endpoint) : error_cause(error));
}

enum outcome verbs_report_address(const struct endpoint *endpoint, const char *what)
{
	int error = errno;
	enum outcome outcome = verbs_report_shortage(endpoint, what, error);

	errno = error;
	return outcome ? outcome : verbs_report_failure(endpoint, what);
}

static const char *event_cause(const struct endpoint *endpoint, const struct rdma_cm_event *event)
{
	/* The status of a reject is the CM's reason, on iWARP -errno. That of any other event is -errno. */
	if (event->event == RDMA_CM_EVENT_REJECTED && event->status >= 0)
		return rejection_text(event->status);
	/* On iWARP the peer's program has rejected: TCP had connected. */
	if (event->event == RDMA_CM_EVENT_REJECTED && event->status == -ECONNRESET)
		return rejection_text(REJECTED_BY_CONSUMER);
	if (event->event == RDMA_CM_EVENT_DEVICE_REMOVAL)
		return "the device was removed";
	if (event->status == -ENODEV)
		return no_device_cause(endpoint);
	if (event->status < 0)
		return error_cause(-event->status);
	return "connection manager error";
}

void verbs_report_event(const struct endpoint *endpoint, const struct rdma_cm_event *event)
{
	bool rejected = event->event == RDMA_CM_EVENT_REJECTED;
	char peer_text[ENDPOINT_REJECT_TEXT_SIZE], timeout_cause[ENDPOINT_TIMEOUT_CAUSE_SIZE];
	char code_name[64];

	log_text(code_name, sizeof(code_name), "%s, status", rdma_event_str(event->event));
	error_failure(endpoint_error(endpoint),
		      &(struct failure){ .object = endpoint->name,
					 .phase = endpoint_state_text(endpoint->state),
					 .code_name = code_name,
					 .code = event->status,
					 .kind = rejected && event->status >= 0 ? endpoint_rejection_kind(event->status)
										: endpoint_errno_kind(-event->status) },
		      "%s%s", event_cause(endpoint, event),
		      rejected ? endpoint_reject_text(event->param.conn.private_data,
						      event->param.conn.private_data_len, peer_text)
			       : endpoint_timeout_cause(endpoint, timeout_cause));
}
