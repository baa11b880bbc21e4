/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inside of the transport: what a backend provides, and what it gets for its work. Commands do not include this.
 */
#ifndef TRANSPORT_BACKEND_H
#define TRANSPORT_BACKEND_H

#include "transport/transport.h"

/* The functions of transport.h that differ between backends; the contracts are written there. */
struct backend {
	const char *name;
	bool opens_devices; /* transport_opens_devices() */
	enum outcome (*open)(struct loop *loop, const struct log *log, struct transport **transport);
	void (*close)(struct transport *transport);
	enum outcome (*channel_create)(struct transport *transport, struct channel **channel);
	void (*channel_destroy)(struct channel *channel);
	enum outcome (*region_create)(struct domain *domain, size_t length, unsigned access, struct region **region);
	void (*region_destroy)(struct region *region);
	/* Allocates the backend's struct around an endpoint whose base the caller then fills. */
	enum outcome (*endpoint_create)(struct channel *channel, enum endpoint_kind kind,
					const struct endpoint_options *options, struct endpoint **endpoint);
	void (*endpoint_destroy)(struct endpoint *endpoint);
	enum outcome (*listen)(struct endpoint *endpoint, const struct address *address);
	enum outcome (*resolve)(struct endpoint *endpoint, const struct address *source,
				const struct address *destination);
	enum outcome (*open_queue)(struct endpoint *endpoint);
	enum outcome (*connect)(struct endpoint *endpoint, const void *data, size_t length);
	enum outcome (*accept)(struct endpoint *endpoint, const void *data, size_t length);
	enum outcome (*reject)(struct endpoint *endpoint, const void *data, size_t length);
	enum outcome (*disconnect)(struct endpoint *endpoint);
	enum outcome (*join)(struct endpoint *endpoint, void *context);
	enum outcome (*leave)(struct endpoint *endpoint);
	enum outcome (*post)(struct endpoint *endpoint, const struct work *work, size_t count);
	enum outcome (*migrate)(struct endpoint *endpoint, struct channel *channel);
	/* True if packets from that local address take the device that the options name. NULL: every address does. */
	bool (*source_fits)(struct transport *transport, const struct path_options *options,
			    const struct address *source);
	void (*path)(const struct endpoint *endpoint, struct path *path); /* path is open; NULL: nothing is known */
	void (*silence)(const struct endpoint *endpoint, char text[]); /* endpoint_silence(); NULL: nothing is known */
	void (*served)(const struct endpoint *listener,
		       char text[]); /* endpoint_served(); NULL: whatever it is bound to */
	const struct path_refusal *refusals;
};

/* Every channel begins with this. */
struct channel {
	struct transport *transport;
};

/* Sets the fields of a new endpoint's base. */
void endpoint_initialise(struct endpoint *endpoint, struct channel *channel, enum endpoint_kind kind,
			 const struct endpoint_options *options);

/* The value of an option of the path, PATH_UNSET if it is left open. */
#define endpoint_option(endpoint, option) ((endpoint)->options.path ? (endpoint)->options.path->option : PATH_UNSET)
/* From --tos or --dscp; PATH_UNSET if it is left open. */
int endpoint_type_of_service(const struct endpoint *endpoint);

/*
 * The one setter of an endpoint's state: refuses a transition that has no place in its life (which is a defect of
 * ours, and said so), traces the others, and starts or stops the deadline of the phase.
 */
bool endpoint_enter(struct endpoint *endpoint, enum endpoint_state state);

/* Names the endpoint after its peer, or a listener after its own address. */
void endpoint_name(struct endpoint *endpoint);

/* Hands an event to the command, unless the endpoint is gone. */
void endpoint_report(struct endpoint *endpoint, const struct endpoint_event *event);

/*
 * A peer asks: hands EVENT_REQUEST to the listener's command, or refuses a request that came another way than the
 * listener's options ask for.
 */
void endpoint_requested(struct endpoint *listener, struct endpoint *request, const uint8_t *private_data,
			size_t length);

/* Memory is short for a request that the caller refuses: says so and hands EVENT_REFUSED to the listener's command. */
void endpoint_starved(struct endpoint *listener);
/* The same where the cause was told. OUTCOME_NO_CONNECTION is the affair of the peer: nobody hears of it. */
void endpoint_turned_away(struct endpoint *listener, enum outcome outcome);

/*
 * Hands EVENT_FAILED to the command, once; the cause was printed by the caller. Harmless on an endpoint that has failed
 * or is gone.
 */
void endpoint_fail(struct endpoint *endpoint, enum outcome outcome);
/* The same for a connection that the peer refused with some words. */
void endpoint_refused(struct endpoint *endpoint, const uint8_t *private_data, size_t length);

/*
 * Hands a completion to the command; prints the cause of a failed one first (raw: the backend's number of the status;
 * words: what the backend knows better than the common vocabulary, or NULL).
 * Work of an endpoint that is not, or no longer, established is dropped. On the accepting end the first message may
 * come before the news that the connection is established: then this reports EVENT_ESTABLISHED first.
 */
void endpoint_complete(struct endpoint *endpoint, const struct completion *completion, unsigned raw, const char *words);

/* The event EVENT_ESTABLISHED, unless endpoint_complete() was earlier. */
void endpoint_established(struct endpoint *endpoint, const uint8_t *private_data, size_t length);

enum {
	ENDPOINT_REFUSAL_SIZE = PRIVATE_DATA_MOST + 5
};

/*
 * A refusing peer of ours says why in plain letters: returns them as ": \"words\"" for the end of a message. A stock
 * one sends nothing or zeros, and anything else is not shown: returns "". data may be NULL.
 */
const char *endpoint_refusal_text(const uint8_t *data, size_t length, char text[ENDPOINT_REFUSAL_SIZE]);

enum {
	REJECTED_NO_LISTENER = 8,
	REJECTED_BY_CONSUMER = 28, /* the peer's program said no */
};

/* Why the peer's connection manager rejected, in words: any number is fine. transport/rejection.c. */
const char *rejection_text(int reason);

/*
 * False for the failure of a peer that never got connected, or what a listener has to say of those who ask, if enough
 * of that was told lately: anybody can ask a server as often as it likes, and its log is not to grow by that.
 */
bool endpoint_is_worth_telling(const struct endpoint *endpoint);

/* The exit code of a failure in this phase of an endpoint's life. */
enum outcome endpoint_outcome(const struct endpoint *endpoint);

/* Every backend that was built in, ending with NULL: transport/registry.c. */
extern const struct backend *const backend_registry[];

#endif
