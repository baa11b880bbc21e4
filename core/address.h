/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where a peer is, without a socket or verbs type in it: an IPv4 or IPv6 address or a native GID, and a port.
 *
 * Numbers are parsed in place. Real names are looked up by a short-lived child process, because getaddrinfo(3) may
 * block for tens of seconds and the loop must not; its answer comes back through a pipe that the loop watches.
 */
#ifndef CORE_ADDRESS_H
#define CORE_ADDRESS_H

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/log.h"
#include "core/loop.h"
#include "core/outcome.h"

struct sockaddr_storage;

enum address_family {
	ADDRESS_NONE = 0,
	ADDRESS_IP4,
	ADDRESS_IP6,
	ADDRESS_GID,
};

struct address {
	enum address_family family;
	uint8_t bytes[16]; /* network order; IPv4 uses the first four */
	uint16_t port;	   /* host order */
	uint32_t scope;	   /* interface index of a link-local IPv6 address, else 0 */
};

enum {
	ADDRESS_TEXT_SIZE = 80,	  /* "[fe80::...%interface]:65535" with its final 0 */
	ADDRESS_RESOLVE_MOST = 8, /* addresses kept of one name */
};

/* Which spellings address_parse() and the resolver accept. */
enum address_format {
	ADDRESS_FORMAT_ANY = 0, /* a name, IPv4 or IPv6 */
	ADDRESS_FORMAT_IP,	/* a numeric IPv4 or IPv6 address */
	ADDRESS_FORMAT_IP4,
	ADDRESS_FORMAT_IP6,
	ADDRESS_FORMAT_GID, /* a native GID, written as an IPv6 address */
};

/*
 * Parses a numeric address ("10.0.0.1", "fe80::1%eth0", with ADDRESS_FORMAT_GID "fe80::1"). The port stays 0.
 * Returns false, and leaves *address alone, if text is not numeric or not of that format.
 */
bool address_parse(const char *text, enum address_format format, struct address *address);

/* Writes "10.0.0.1:7174", "[fd00::1%eth0]:7174", or without a port just the address. Returns text. */
const char *address_text(const struct address *address, char text[ADDRESS_TEXT_SIZE]);

/* As address_text(), but never the port. */
const char *address_host(const struct address *address, char text[ADDRESS_TEXT_SIZE]);

bool address_is_any(const struct address *address);
bool address_is_multicast(const struct address *address);
bool address_is_link_local(const struct address *address); /* of IPv6 */
/* Same family, bytes and scope; the port does not count. */
bool address_same_host(const struct address *one, const struct address *other);

/* To and from the socket API (IPv4 and IPv6 only). address_to_socket() returns the length of the result. */
size_t address_to_socket(const struct address *address, struct sockaddr_storage *socket_address);
bool address_from_socket(const struct sockaddr_storage *socket_address, struct address *address);

struct resolver;

/*
 * The answer: count addresses (port 0) that stay valid only during the call, or count 0 after the resolver has said why
 * on stderr, with the outcome for the exit code: OUTCOME_NO_CONNECTION if the name is unknown or the time is up,
 * OUTCOME_USAGE if the text is a wrong number or not of the format. The callback may start the resolver anew, or free
 * it.
 */
typedef void resolver_callback(void *owner, enum outcome outcome, const struct address *addresses, size_t count);

/* A look-up under way. A member of the object that asks; zeroed before its first start. */
struct resolver {
	struct loop *loop;
	const struct log *log;
	const char *text;
	resolver_callback *callback;
	void *owner;
	struct loop_io readable;
	struct loop_timer deadline; /* of the child, or the next turn for an early answer */
	enum outcome early;	    /* of an answer that needs no child: a numeric address, or a failure */
	pid_t child;
	int pipe;
	size_t received; /* bytes of answer so far */
	struct {
		int32_t error; /* of getaddrinfo(3), 0 if there are addresses */
		uint32_t count;
		struct address addresses[ADDRESS_RESOLVE_MOST];
	} answer;
};

/*
 * Looks text up and calls back from the loop, never before it returns. text must live until then. timeout in
 * nanoseconds, 0 for none. resolver_stop() ends it without a callback (and kills the child); harmless when idle.
 *
 * To be done before memory is registered with a device: after a fork(2) kernels before 5.12 move the parent's pages
 * away from under the device.
 */
void resolver_start(struct resolver *resolver, struct loop *loop, const struct log *log, const char *text,
		    enum address_format format, int64_t timeout, resolver_callback *callback, void *owner);
void resolver_stop(struct resolver *resolver);

/* The interface of that index; false if there is none. As if_indextoname(3), by a socket that --sandbox allows. */
bool address_interface_name(unsigned index, char name[IF_NAMESIZE]);

#endif
