/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The address of a peer, without socket or verbs types: an IPv4 or IPv6 address or a native GID, and a port.
 *
 * Numeric addresses are parsed in place. A child process looks up names, because getaddrinfo(3) may block for tens of
 * seconds and the loop must not. The child returns the result through a pipe that the loop watches.
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
	ADDRESS_TEXT_SIZE = 80,	 /* "[fe80::...%interface]:65535" with its final 0 */
	ADDRESS_RESOLVE_MAX = 8, /* addresses kept of one name */
};

/* What address_parse() and the resolver accept. */
enum address_format {
	ADDRESS_FORMAT_ANY = 0, /* a name, IPv4 or IPv6 */
	ADDRESS_FORMAT_IP,	/* a numeric IPv4 or IPv6 address */
	ADDRESS_FORMAT_IP4,
	ADDRESS_FORMAT_IP6,
	ADDRESS_FORMAT_GID, /* a native GID, written as an IPv6 address */
};

/*
 * Parses a numeric address ("10.0.0.1", "fe80::1%eth0", with ADDRESS_FORMAT_GID "fe80::1"). The port stays 0.
 * Returns false and leaves *address unchanged if text is not a numeric address of that format.
 */
bool address_parse(const char *text, enum address_format format, struct address *address);

/* Writes "10.0.0.1:7174", "[fd00::1%eth0]:7174", or without a port just the address. Returns text. */
const char *address_text(const struct address *address, char text[ADDRESS_TEXT_SIZE]);

/* As address_text(), without the port. */
const char *address_host(const struct address *address, char text[ADDRESS_TEXT_SIZE]);

bool address_is_any(const struct address *address);
bool address_is_multicast(const struct address *address);
bool address_is_link_local(const struct address *address); /* IPv6 only */
/* Compares family, bytes and scope, not the port. */
bool address_same_host(const struct address *one, const struct address *other);

/* Conversion to and from sockaddr, IPv4 and IPv6 only. address_to_socket() returns the length, 0 for another family. */
size_t address_to_socket(const struct address *address, struct sockaddr_storage *socket_address);
bool address_from_socket(const struct sockaddr_storage *socket_address, struct address *address);

struct resolver;

/*
 * The result: count addresses (port 0), valid only during the call. After an error, which the resolver has reported,
 * count is 0. The outcome is OUTCOME_NO_CONNECTION if the name is unknown or the timeout expired, OUTCOME_USAGE if text
 * is not an address of the format, OUTCOME_INTERNAL if the child failed. The callback may restart or free the resolver.
 */
typedef void resolver_callback(void *context, enum outcome outcome, const struct address *addresses, size_t count);

/* One name look-up. Zeroed before its first start. */
struct resolver {
	struct loop *loop;
	const struct log *log;
	const char *text;
	resolver_callback *callback;
	void *context;
	struct loop_io readable;
	struct loop_timer deadline; /* of the child; with time 0, delivers an immediate result */
	enum outcome immediate;	    /* of a result that needs no child: a numeric address, or an error */
	pid_t child;
	int pipe;
	size_t received; /* bytes of result */
	struct {
		int32_t error; /* EAI_* (negative), errno of EAI_SYSTEM (positive), or 0 */
		uint32_t count;
		struct address addresses[ADDRESS_RESOLVE_MAX];
	} result;
};

/*
 * Looks text up and calls back from the loop, never before resolver_start() returns. text must stay valid until then.
 * timeout is in nanoseconds, 0 for none. resolver_stop() kills the child and makes no callback. It may be called at any
 * time.
 *
 * Call it before memory is registered with a device: after fork(2), kernels before 5.12 give the parent a copy of a
 * page that it writes, and the device keeps the old one.
 */
void resolver_start(struct resolver *resolver, struct loop *loop, const struct log *log, const char *text,
		    enum address_format format, int64_t timeout, resolver_callback *callback, void *context);
void resolver_stop(struct resolver *resolver);

/* As if_indextoname(3), but uses a socket family that --sandbox allows. Returns false if there is no such interface. */
bool address_interface_name(unsigned index, char name[IF_NAMESIZE]);

#endif
