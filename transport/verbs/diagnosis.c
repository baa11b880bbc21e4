/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Causes of failures in words, with remedies. core/host.h reads files of /sys and /dev only after a call has failed, to
 * explain it; they decide nothing. Without WITH_DIAGNOSTICS an error is the kernel's or librdmacm's.
 */
#include <errno.h>
#include <string.h>

#include "core/host.h"
#include "transport/verbs/verbs.h"

static enum outcome outcome_of(int error)
{
	return error == EMFILE || error == ENFILE || error == ENOMEM || error == EAGAIN ? OUTCOME_INTERNAL
											: OUTCOME_NO_DEVICE;
}

/* libibverbs omits devices without a file or provider. NULL: any device. */
static bool is_listed(const char *file)
{
	struct ibv_device **devices = ibv_get_device_list(NULL);
	bool listed = false;

	for (struct ibv_device **device = devices; device && *device && !listed; device++)
		listed = !file || !strcmp((*device)->dev_name, file);
	if (devices)
		ibv_free_device_list(devices);
	return listed;
}

enum outcome verbs_error_no_channel(struct error *reason, int error)
{
	int found =
		WITH_DIAGNOSTICS && outcome_of(error) == OUTCOME_NO_DEVICE ? host_cause(reason, is_listed, false) : 0;

	if (!WITH_DIAGNOSTICS)
		error_set(reason, NULL, "no RDMA device can be used: " VERBS_MANAGER_FILE ": %s (%d)", strerror(error),
			  error);
	else if (!found)
		error_errno(reason, VERBS_MANAGER_FILE, error, "creating an event channel");
	return outcome_of(found ? found : error);
}

enum outcome verbs_error_resources(struct error *reason, const char *object, const char *what, int error)
{
	char text[HOST_MEMORY_SIZE];
	struct remedy remedy;

	error_errno(reason, object, error, "%s", what);
	if (error == EAGAIN)
		error_hint(reason, "the control group of this process may have used up its rdma.max");
	else if (WITH_DIAGNOSTICS && (error == ENOMEM || error == EPERM) && host_memory_is_limited(text, &remedy))
		error_hint(reason, "%s: %s", text, remedy.text);
	return OUTCOME_INTERNAL;
}

/* The kernel has found a device for the endpoint that librdmacm cannot open. Returns OUTCOME_OK without a reason. */
static enum outcome report_unopened(const struct endpoint *endpoint, const char *what)
{
	struct error *reason = endpoint_error(endpoint);
	struct ibv_device **devices;
	enum outcome outcome = OUTCOME_OK;

	if (host_cause(reason, is_listed, true)) {
		log_text(reason->object, sizeof(reason->object), "%s", endpoint->name);
		log_text(reason->phase, sizeof(reason->phase), "%s", what);
		return OUTCOME_NO_DEVICE;
	}
	devices = ibv_get_device_list(NULL);
	for (struct ibv_device **device = devices; device && *device && !outcome; device++) {
		struct ibv_context *context = ibv_open_device(*device);

		if (context)
			ibv_close_device(context);
		else
			outcome = verbs_error_resources(reason, ibv_get_device_name(*device), "opening the device",
							errno);
	}
	if (devices)
		ibv_free_device_list(devices);
	return outcome;
}

enum outcome verbs_error_shortage(const struct endpoint *endpoint, const char *what, int error)
{
	struct rdma_cm_id *id = ((const struct verbs_endpoint *)endpoint)->id;

	if (outcome_of(error) == OUTCOME_INTERNAL)
		return verbs_error_resources(endpoint_error(endpoint), endpoint->name, what, error);
	/* librdmacm knows the local address before it opens the device. */
	if (WITH_DIAGNOSTICS && error == ENODEV && rdma_get_local_addr(id)->sa_family && !id->verbs)
		return report_unopened(endpoint, what);
	return OUTCOME_OK;
}

enum {
	ERROR_NOT_SUPPORTED = 524 /* the kernel's ENOTSUPP, which user space does not define */
};

/* The cause of a librdmacm errno value in words. */
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
	case EAFNOSUPPORT:
		return "this kernel has no IPv6";
	case EADDRINUSE:
		return "the port is in use";
	case ECONNREFUSED: /* of TCP */
		return "nobody listens there: this device is iWARP (TCP), and the peer's must be, too";
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

static const char *failure_cause(const struct endpoint *endpoint, int error)
{
	if (!WITH_DIAGNOSTICS)
		return strerror(error);
	/* ENOENT: no GID of the device matches the address, such as a loopback one. */
	return error == ENODEV || error == ENOENT ? no_device_cause(endpoint) : error_cause(error);
}

enum outcome verbs_error_call(const struct endpoint *endpoint, const char *what)
{
	int error = errno;

	return endpoint_no_connection(endpoint, what, error, failure_cause(endpoint, error));
}

enum {
	PORT_TRIED = 1025 /* needs no privilege, and is below the usual ranges of ports that the kernel chooses */
};

/*
 * Whether an id can be bound to the endpoint's local address with a port of its own. Then EADDRNOTAVAIL means that the
 * kernel has no free port to choose, not that the address is unknown.
 */
static bool can_bind(const struct endpoint *endpoint)
{
	struct address local = endpoint->local;
	struct sockaddr_storage storage;
	struct rdma_cm_id *id;
	bool bound;

	if (rdma_create_id(NULL, &id, NULL, (enum rdma_port_space)endpoint->options.port_space))
		return false;
	if (!local.family)
		local.family = endpoint->peer.family;
	local.port = PORT_TRIED;
	bound = !rdma_bind_addr(id, verbs_socket_address(&local, &endpoint->options, &storage)) || errno == EADDRINUSE;
	rdma_destroy_id(id);
	return bound;
}

/* The object of a connection's error is the peer. */
static enum outcome report_unbound(const struct endpoint *endpoint, const char *what)
{
	bool named = endpoint->kind == ENDPOINT_CONNECTION && !address_is_any(&endpoint->local);
	char text[128], host[ADDRESS_TEXT_SIZE];

	if (!endpoint->local.port && can_bind(endpoint))
		log_text(text, sizeof(text), "no local port is free: all of net.ipv4.ip_local_port_range are in use");
	else
		log_text(text, sizeof(text), "%s%s%s", named ? address_host(&endpoint->local, host) : "",
			 named ? " is " : "", error_cause(EADDRNOTAVAIL));
	return endpoint_no_connection(endpoint, what, EADDRNOTAVAIL, text);
}

enum outcome verbs_error_address(const struct endpoint *endpoint, const char *what)
{
	int error = errno;
	enum outcome outcome = verbs_error_shortage(endpoint, what, error);

	if (WITH_DIAGNOSTICS && error == EADDRNOTAVAIL)
		return report_unbound(endpoint, what);
	errno = error;
	return outcome ? outcome : verbs_error_call(endpoint, what);
}

static const char *event_cause(const struct endpoint *endpoint, const struct rdma_cm_event *event)
{
	if (!WITH_DIAGNOSTICS)
		return event->status < 0 ? strerror(-event->status) : rdma_event_str(event->event);
	/* A reject's status is the CM's reason, on iWARP -errno. Any other event's is -errno. */
	if (event->event == RDMA_CM_EVENT_REJECTED && event->status >= 0)
		return rejection_text(event->status);
	/* On iWARP the peer's program has rejected, or a program without iWARP has closed: TCP had connected. */
	if (event->event == RDMA_CM_EVENT_REJECTED && event->status == -ECONNRESET)
		return event->param.conn.private_data_len
			       ? rejection_text(REJECTED_BY_CONSUMER)
			       : "refused by the peer, or a service without iWARP has that TCP port";
	if (event->event == RDMA_CM_EVENT_DEVICE_REMOVAL)
		return "the device was removed";
	/* librdmacm's own: it knows no device with the GUID of the kernel's. */
	if (event->event == RDMA_CM_EVENT_ADDR_ERROR && event->status == -1)
		return no_device_cause(endpoint);
	/* Linux ends connections to a neighbour whose link-layer address has changed (cma_netevent_callback()). */
	if (event->event == RDMA_CM_EVENT_UNREACHABLE && endpoint->state == ENDPOINT_ESTABLISHED)
		return "the peer's or its router's link-layer address has changed";
	if (event->status < 0)
		return failure_cause(endpoint, -event->status);
	return "connection manager error";
}

void verbs_error_event(const struct endpoint *endpoint, const struct rdma_cm_event *event)
{
	bool rejected = event->event == RDMA_CM_EVENT_REJECTED;
	char peer_text[ENDPOINT_REJECT_TEXT_SIZE], timeout_cause[ENDPOINT_TIMEOUT_CAUSE_SIZE];
	char code_name[64];

	/* Else endpoint_timeout_cause() decides. */
	if (rejected)
		endpoint->transport->explained = false;
	error_failure(
		endpoint_error(endpoint),
		&(struct failure){ .object = endpoint->name,
				   .phase = endpoint_state_text(endpoint->state),
				   .code_name = !WITH_DIAGNOSTICS ? NULL
								  : log_text(code_name, sizeof(code_name), "%s, status",
									     rdma_event_str(event->event)),
				   .code = event->status,
				   .kind = !WITH_DIAGNOSTICS		    ? ERROR_OTHER
					   : rejected && event->status >= 0 ? endpoint_rejection_kind(event->status)
									    : endpoint_errno_kind(-event->status) },
		"%s%s", event_cause(endpoint, event),
		WITH_DIAGNOSTICS && rejected ? endpoint_reject_text(event->param.conn.private_data,
								    event->param.conn.private_data_len, peer_text)
					     : endpoint_timeout_cause(endpoint, timeout_cause));
}
