/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The interface between transport/ and its backends, each in its own folder. Commands do not include it. Each file
 * calls only those below it:
 *
 *   transport.c   the calls of transport.h, and which backend a name means
 *   endpoint.c    the states of an endpoint, its deadlines, the order of its events and completions, causes in words
 *   path.c        local addresses that belong to the options of a path
 */
#pragma once

#include "transport/transport.h"

/* A backend's functions. transport.h specifies them. */
struct backend {
	const char *name;
	bool opens_devices; /* transport_opens_devices() */
	enum outcome (*open)(struct loop *loop, const struct log *log, struct error *error,
			     struct transport **transport);
	void (*close)(struct transport *transport);
	enum outcome (*channel_create)(struct transport *transport, struct channel **channel);
	enum outcome (*region_create)(struct domain *domain, size_t length, unsigned access, struct region **region);
	void (*region_destroy)(struct region *region);
	/* Allocates the backend's struct and calls endpoint_initialise(). */
	enum outcome (*endpoint_create)(struct channel *channel, enum endpoint_kind kind,
					const struct endpoint_options *options, struct endpoint **endpoint);
	void (*endpoint_destroy)(struct endpoint *endpoint);
	enum outcome (*listen)(struct endpoint *endpoint);  /* on endpoint->local */
	enum outcome (*resolve)(struct endpoint *endpoint); /* endpoint->peer, from endpoint->local if that is set */
	enum outcome (*create_qp)(struct endpoint *endpoint);
	enum outcome (*connect)(struct endpoint *endpoint, const void *data, size_t length);
	enum outcome (*accept)(struct endpoint *endpoint, const void *data, size_t length);
	void (*reject)(struct endpoint *endpoint, const void *data, size_t length);
	enum outcome (*disconnect)(struct endpoint *endpoint);
	enum outcome (*join)(struct endpoint *endpoint); /* NULL: no domain has multicast */
	enum outcome (*post)(struct endpoint *endpoint, const struct work *work, size_t count);
	enum outcome (*migrate)(struct endpoint *endpoint, struct channel *channel); /* NULL: nothing to do */
	/* transport_check_path() without the interface. NULL: there are no devices to choose from. */
	enum outcome (*check_path)(struct transport *transport, const struct path_options *options);
	/* Whether a local address belongs to the device in the options. NULL: every address does. */
	bool (*source_fits)(struct transport *transport, const struct path_options *options,
			    const struct address *source);
	/*
	 * Whether a local address belongs to such a device, whatever GID index is requested; then gets the device,
	 * its port and the GID index. NULL: there are no devices.
	 */
	bool (*source_path)(struct transport *transport, const struct path_options *options,
			    const struct address *source, struct path *path);
	void (*path)(const struct endpoint *endpoint, struct path *path); /* path is initialised; NULL: unknown */
	void (*timeout_cause)(const struct endpoint *endpoint,
			      char text[]); /* endpoint_timeout_cause(); NULL: unknown */
	/* May add a hint to the error of EVENT_FAILED or a completion, and change its kind. NULL: nothing to add. */
	void (*explain)(const struct endpoint *endpoint, struct error *error);
	/* Adds to text with path_add_local(). NULL: none to add. */
	void (*local_addresses)(const struct endpoint *listener, char text[ENDPOINT_ADDRESSES_SIZE]);
	void (*counters)(struct transport *transport); /* sets transport->counters; NULL: it is up to date */
	/* Reasons, for transport_unsupported(). */
	const char *unsupported[FEATURE_COUNT];
};

extern const struct backend verbs_backend, soft_backend;

/* A program with one backend calls it directly, which is smaller. */
#define SEVERAL_BACKENDS (WITH_VERBS + WITH_SOFT > 1)
#define DEFAULT_BACKEND	 (WITH_VERBS ? &verbs_backend : &soft_backend)

static inline const struct backend *backend_of(const struct transport *transport)
{
	return SEVERAL_BACKENDS ? transport->backend : DEFAULT_BACKEND;
}

/* Base of the backend's struct. */
struct channel {
	struct transport *transport;
};

/* Initialises the base of a new endpoint. A request has its listener's channel and options. */
void endpoint_initialise(struct endpoint *endpoint, struct channel *channel, enum endpoint_kind kind,
			 const struct endpoint_options *options);

/* HAS_GROUPS and HAS_GIDS (cmd/flags.mk): whether a command of the program uses groups, or native GIDs. */
#define endpoint_is_group(endpoint) (HAS_GROUPS && (endpoint)->kind == ENDPOINT_GROUP)

/* The value of a path option that WITH_EXTRAS=0 leaves out, or PATH_UNSET. */
#define endpoint_option(endpoint, option) (WITH_EXTRAS ? (endpoint)->options.path->option : PATH_UNSET)
#define endpoint_option_or(endpoint, option, preset)                                                                   \
	(endpoint_option(endpoint, option) == PATH_UNSET ? (preset) : endpoint_option(endpoint, option))

/* A failed call, and the caller of endpoint_fail(), endpoint_rejected() or endpoint_refuse(), put the cause here. */
static inline struct error *endpoint_error(const struct endpoint *endpoint)
{
	return &endpoint->transport->error;
}

/*
 * Sets an endpoint's state, and starts or stops its deadline. Logs the transition; if it is not allowed, which is our
 * bug, logs an error and returns false. Without WITH_DIAGNOSTICS it does neither.
 */
bool endpoint_enter(struct endpoint *endpoint, enum endpoint_state state);

/* Sets endpoint->name from the peer's address, or a listener's own. */
void endpoint_set_name(struct endpoint *endpoint);

/*
 * Enters the event's state, sets the time that it took, and reports it. Ignored if the endpoint has failed or is
 * destroyed. endpoint_error() has the cause of EVENT_FAILED and EVENT_REQUEST_FAILED.
 */
void endpoint_deliver(struct endpoint *endpoint, struct endpoint_event *event);
/* These report an event of that kind; endpoint_rejected() EVENT_FAILED with the private data of a REJ. */
void endpoint_deliver_kind(struct endpoint *endpoint, enum event_kind kind);
void endpoint_fail(struct endpoint *endpoint, enum outcome outcome);
void endpoint_rejected(struct endpoint *endpoint, const uint8_t *private_data, size_t length);
/* A callback of the loop: the endpoint fails because its state took longer than --timeout. */
void endpoint_timed_out(void *endpoint);

/* Reports EVENT_REQUEST on the listener. Refuses a request that arrived on another interface than its options name. */
void endpoint_deliver_request(struct endpoint *listener, struct endpoint *request, const uint8_t *private_data,
			      size_t length);

/* The caller rejects a request because it is out of memory: reports EVENT_REQUEST_FAILED with that error. */
void endpoint_request_no_memory(struct endpoint *listener);
/* Reports EVENT_REQUEST_FAILED, but not for OUTCOME_NO_CONNECTION, which is the peer's failure. */
void endpoint_request_failed(struct endpoint *listener, enum outcome outcome);
/* Rejects a request with the cause of endpoint_error(). Logs OUTCOME_NO_CONNECTION, reports any other outcome. */
void endpoint_refuse(struct endpoint *listener, struct endpoint *request, enum outcome outcome);

/*
 * Reports a completion, and a failed one's error. code_name and code: as in struct failure. words: the backend's own
 * text, or NULL for completion_status_text()'s, which a program without WITH_DIAGNOSTICS has only for soft. Drops
 * completions of a connection that is not established. On the accepting side the first receive may come before the RTU:
 * then reports EVENT_ESTABLISHED first.
 */
void endpoint_complete(struct endpoint *endpoint, const struct completion *completion, const char *code_name, int code,
		       const char *words);
/* The code_name for an enum ibv_wc_status. */
#define COMPLETION_CODE_NAME "completion status"

/* Reports EVENT_ESTABLISHED unless endpoint_complete() already has. */
void endpoint_established(struct endpoint *endpoint, const uint8_t *private_data, size_t length);

enum {
	ENDPOINT_REJECT_TEXT_SIZE = PRIVATE_DATA_MAX + 5
};

/*
 * Returns the text in a REJ's private data as ": \"text\"" for the end of a message. Our peers send text, stock peers
 * nothing or zeros: returns "" without printable characters. data may be NULL.
 */
const char *endpoint_reject_text(const uint8_t *data, size_t length, char text[ENDPOINT_REJECT_TEXT_SIZE]);

/* REJ reasons that we send or act upon: IBTA volume 1, 12.6.7.2. */
enum rejection {
	REJECTED_NO_RESOURCES = 3,
	REJECTED_TIMEOUT = 4,
	REJECTED_INVALID_ID = 6,
	REJECTED_NO_LISTENER = 8, /* invalid service ID */
	REJECTED_TRANSPORT = 9,
	REJECTED_STALE = 10,
	REJECTED_GID = 12,
	REJECTED_MTU = 26,	   /* information: mtu_code() of an acceptable MTU */
	REJECTED_BY_CONSUMER = 28, /* the peer's program rejected, with private data */
};

/* Returns a reason's text, or one for an unknown reason. */
const char *rejection_text(int reason);

/* The kind of a connection error, by errno value or REJ reason. */
enum error_kind endpoint_errno_kind(int error);
enum error_kind endpoint_rejection_kind(int reason);

/*
 * Counts a line about this endpoint against the rate limit of the log. Returns false if it must not be logged now. Only
 * listeners and connections that are being accepted are limited: anybody can send requests to a server.
 */
bool endpoint_take_log_line(const struct endpoint *endpoint);

/* Sets *error. Returns OUTCOME_INTERNAL. */
enum outcome transport_no_memory(struct error *error, const char *object, const char *phase);
/* Sets endpoint_error(). code: an errno value, or 0. Returns OUTCOME_NO_CONNECTION. */
enum outcome endpoint_no_connection(const struct endpoint *endpoint, const char *phase, int code, const char *cause);
/* Returns the exit code for a failure in the endpoint's state. */
enum outcome endpoint_outcome(const struct endpoint *endpoint);

/* ---- path.c ---- */

/* If the endpoint's options name an interface, sets it as the scope of a link-local address without one. */
void path_find_interface(const struct endpoint *endpoint, struct address *local);

/* Sets the error: a request came to another interface, device, port or GID than the listener's options name. */
void path_exclude(const struct endpoint *request);

/* Adds an address to the text of endpoint_local_addresses(). Returns false if there is no room for more. */
bool path_add_local(char text[ENDPOINT_ADDRESSES_SIZE], const struct address *address);
/* A backend's local_addresses(): those of interfaces that belong to a device, as source_fits() says, and to the
 * options. */
void path_local_addresses(const struct endpoint *listener, char text[ENDPOINT_ADDRESSES_SIZE]);

/* Returns false if the options name an interface that does not have the endpoint's local address. */
bool path_has_interface(const struct endpoint *endpoint);
