/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages of the InfiniBand connection manager: management datagrams (MADs) of 256 bytes between the QPs 1 of two
 * hosts. IBTA volume 1, chapter 12.
 *
 *   +--------+------------------------------+--------------------------------+
 *   | header | fields of the kind           | private data: all of the rest  |
 *   |   24   |                              | (REJ: additional information   |
 *   +--------+------------------------------+   first)                       |
 *
 * Private data has no length on the wire. Unused bytes are 0.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	MAD_SIZE = 256,
	MAD_QPN = 1,
	MAD_GID_SIZE = 16,
	MAD_INFORMATION_MAX = 72, /* of a REJ */
};

#define MAD_QKEY      UINT32_C(0x80010000)
#define MAD_DREQ_MARK UINT32_C(0x61636b3a) /* "ack:" */

/* Attribute IDs. */
enum mad_kind {
	MAD_REQ = 0x10,	     /* connection request */
	MAD_MRA = 0x11,	     /* message receipt acknowledgement: the reply takes longer */
	MAD_REJ = 0x12,	     /* rejected */
	MAD_REP = 0x13,	     /* reply to a request: accepted */
	MAD_RTU = 0x14,	     /* ready to use */
	MAD_DREQ = 0x15,     /* disconnect request */
	MAD_DREP = 0x16,     /* disconnect reply */
	MAD_SIDR_REQ = 0x17, /* service ID resolution request: rejected as not supported */
	MAD_SIDR_REP = 0x18,
};

/* Bytes of private data. In a REQ they include the address header. */
enum {
	MAD_REQ_PRIVATE = 92,
	MAD_REP_PRIVATE = 196,
	MAD_ADDRESS_SIZE = 36,
	MAD_REQ_USER_PRIVATE = MAD_REQ_PRIVATE - MAD_ADDRESS_SIZE,
};

enum mad_transport {
	MAD_TRANSPORT_RC = 0,
	MAD_TRANSPORT_UC = 1, /* 2: RD; 3: XRC */
};

/*
 * The messages have further fields, which mad_write() sets to 0. Here a number has 32 or 64 bits, for mad.c's table.
 *
 * The path as the sender of a REQ sees it.
 */
struct mad_path {
	uint32_t local_lid; /* 0xffff on RoCE, both */
	uint32_t remote_lid;
	uint8_t local_gid[MAD_GID_SIZE];
	uint8_t remote_gid[MAD_GID_SIZE];
	uint32_t packet_rate; /* 6-bit code: 3 is 10 Gb/s; soft-RoCE sends 0 */
	uint32_t traffic_class;
	uint32_t hop_limit;
	uint32_t ack_timeout; /* 5 bits: mad_timeout() of the passive QP */
};

struct mad_req {
	uint64_t service_id;
	uint64_t ca_guid;
	uint32_t qpn;			  /* 24 bits */
	uint32_t responder_resources;	  /* READs that the sender serves at once */
	uint32_t initiator_depth;	  /* READs that the sender has outstanding */
	uint32_t remote_response_timeout; /* 5 bits: mad_timeout() within which the receiver replies */
	uint32_t transport;		  /* enum mad_transport */
	uint32_t starting_psn;		  /* 24 bits: the first PSN that the receiver of this message sends */
	uint32_t local_response_timeout;  /* 5 bits: mad_timeout() within which the sender replies to a REP */
	uint32_t retry_count;		  /* 3 bits */
	uint32_t pkey;
	uint32_t path_mtu;	  /* mtu_code() */
	uint32_t rnr_retry_count; /* 3 bits; 7: infinite */
	uint32_t max_cm_retries;  /* 4 bits */
	struct mad_path path;
};

struct mad_rep {
	uint32_t qpn;	       /* 24 bits */
	uint32_t starting_psn; /* 24 bits */
	uint32_t responder_resources;
	uint32_t initiator_depth;
	uint32_t target_ack_delay; /* 5 bits: mad_timeout() */
	uint32_t rnr_retry_count;  /* 3 bits */
	uint64_t ca_guid;
};

/* The message that a REJ or an MRA answers. */
enum mad_answered {
	MAD_ANSWERED_REQ = 0,
	MAD_ANSWERED_REP = 1,
	MAD_ANSWERED_OTHER = 2, /* for a REJ: none, as after a timeout */
};

struct mad_rej {
	uint32_t answered;	     /* enum mad_answered */
	uint32_t reason;	     /* enum rejection, or another of IBTA 12.6.7.2 */
	uint32_t information_length; /* at most MAD_INFORMATION_MAX */
	const uint8_t *information;
};

struct mad_mra {
	uint32_t answered;	  /* enum mad_answered */
	uint32_t service_timeout; /* 5 bits: mad_timeout() until the reply */
};

enum {
	MAD_SIDR_UNSUPPORTED = 1
};

/* The start of its private data is our own format: a stock peer sends zeros, and ignores it. */
struct mad_dreq {
	uint32_t remote_qpn; /* of the receiver, 24 bits */
	uint32_t mark;	     /* MAD_DREQ_MARK: acked_psn is set */
	uint32_t acked_psn;  /* the sender's queue pair has executed all requests up to it, and executes no more */
};

struct mad {
	enum mad_kind kind;
	uint64_t transaction;
	uint32_t local_id;  /* communication ID of the sender; of SIDR_REQ, SIDR_REP: request ID */
	uint32_t remote_id; /* communication ID of the receiver; 0 in a REQ, SIDR_REQ, SIDR_REP */
	union {
		struct mad_req req;
		struct mad_mra mra;
		struct mad_rej rej;
		struct mad_rep rep;
		struct mad_dreq dreq;
		uint32_t status; /* of a SIDR_REP */
	};
	const uint8_t *private_data; /* points into the parsed bytes; for writing NULL: none */
	size_t private_length;	     /* after mad_parse(): the kind's maximum */
};

/*
 * Parses a MAD. Returns false unless it is one of the above kinds, class version 2. Values fit their bits, and are not
 * checked further.
 */
bool mad_parse(const uint8_t *bytes, size_t length, struct mad *mad);

/* Writes all 256 bytes. Truncates values to their bits, and private data and information to the kind's maximum. */
void mad_write(const struct mad *mad, uint8_t bytes[MAD_SIZE]);

/* The header before the consumer's private data in a REQ between IP addresses (IBTA annex A11). */
struct mad_address {
	uint8_t version; /* of IP: 4 or 6 */
	uint16_t port;	 /* of the requester, host order */
	uint8_t source[16];
	uint8_t destination[16]; /* in both an IPv4 address is in the first 4 bytes */
};

/* Returns false if the private data does not begin with such a header. */
bool mad_address_parse(const uint8_t *private_data, size_t length, struct mad_address *address);
void mad_address_write(const struct mad_address *address, uint8_t private_data[MAD_ADDRESS_SIZE]);

/* Returns the service ID of a listener. port_space: enum port_space. */
static inline uint64_t mad_service_id(uint16_t port_space, uint16_t port)
{
	return (uint64_t)port_space << 16 | port;
}

/* Returns false if it is not such a service ID. */
bool mad_service_split(uint64_t service_id, uint16_t *port_space, uint16_t *port);

/* Returns 4.096 us x 2^exponent (its lower five bits) in nanoseconds. */
static inline int64_t mad_timeout(unsigned exponent)
{
	return INT64_C(4096) << (exponent & 31);
}
