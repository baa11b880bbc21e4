/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The messages of the InfiniBand connection manager: management datagrams (MADs) of 256 bytes between the queue pairs 1
 * of two hosts. InfiniBand Architecture volume 1, chapter 12.
 *
 *   +--------+------------------------------+--------------------------------+
 *   | header | fields of the kind           | private data: all of the rest  |
 *   |   24   |                              | (REJ: additional information   |
 *   +--------+------------------------------+   first)                       |
 *
 * Private data has no length on the wire: what its sender did not use is 0.
 */
#ifndef TRANSPORT_SOFT_MAD_H
#define TRANSPORT_SOFT_MAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	MAD_SIZE = 256,
	MAD_QPN = 1,
	MAD_GID_SIZE = 16,
	MAD_INFORMATION_MOST = 72, /* of a REJ */
};

#define MAD_QKEY UINT32_C(0x80010000)

/* The numbers are the attribute ids of the header. */
enum mad_kind {
	MAD_REQ = 0x10,	 /* connection request */
	MAD_MRA = 0x11,	 /* message receipt acknowledged: the answer takes time */
	MAD_REJ = 0x12,	 /* rejected */
	MAD_REP = 0x13,	 /* reply to a request: accepted */
	MAD_RTU = 0x14,	 /* ready to use */
	MAD_DREQ = 0x15, /* disconnect request */
	MAD_DREP = 0x16, /* and its reply */
	/* What is answered as not supported: */
	MAD_SIDR_REQ = 0x17, /* a datagram's queue pair is asked for */
	MAD_SIDR_REP = 0x18,
	MAD_LAP = 0x19, /* another path for a connection */
	MAD_APR = 0x1a,
};

/* Bytes of private data of a kind; in a REQ the address header is a part of them. */
enum {
	MAD_REQ_PRIVATE = 92,
	MAD_MRA_PRIVATE = 222,
	MAD_REJ_PRIVATE = 148,
	MAD_REP_PRIVATE = 196,
	MAD_RTU_PRIVATE = 224,
	MAD_DREQ_PRIVATE = 220,
	MAD_DREP_PRIVATE = 224,
	MAD_SIDR_REQ_PRIVATE = 216,
	MAD_SIDR_REP_PRIVATE = 136,
	MAD_LAP_PRIVATE = 168,
	MAD_APR_PRIVATE = 148,
	MAD_ADDRESS_SIZE = 36,
	MAD_REQ_USER_PRIVATE = MAD_REQ_PRIVATE - MAD_ADDRESS_SIZE,
};

enum mad_transport {
	MAD_TRANSPORT_RC = 0,
	MAD_TRANSPORT_UC = 1,
	MAD_TRANSPORT_RD = 2,
	MAD_TRANSPORT_EXTENDED = 3, /* XRC */
};

/* The path as the sender of a REQ sees it. */
struct mad_path {
	uint16_t local_lid; /* 0xffff on RoCE, both */
	uint16_t remote_lid;
	uint8_t local_gid[MAD_GID_SIZE];
	uint8_t remote_gid[MAD_GID_SIZE];
	uint32_t flow_label; /* 20 bits */
	uint8_t packet_rate; /* 6 bits, a code: 3 is 10 Gb/s; soft-RoCE says 0 */
	uint8_t traffic_class;
	uint8_t hop_limit;
	uint8_t service_level; /* 4 bits */
	bool subnet_local;
	uint8_t ack_timeout; /* 5 bits: mad_timeout() of the passive queue */
};

struct mad_req {
	uint64_t service_id;
	uint64_t ca_guid;
	uint32_t qkey;
	uint32_t qpn;			 /* 24 bits */
	uint8_t responder_resources;	 /* READs the sender answers at once */
	uint8_t initiator_depth;	 /* READs the sender has under way at once */
	uint8_t remote_response_timeout; /* 5 bits: mad_timeout() for the receiver to answer; it answers that fast */
	uint8_t transport;		 /* enum mad_transport */
	bool flow_control;		 /* end to end */
	uint32_t starting_psn;		 /* 24 bits: where the receiver of this message begins to send */
	uint8_t local_response_timeout;	 /* 5 bits: mad_timeout() for the sender to answer a REP */
	uint8_t retry_count;		 /* 3 bits */
	uint16_t pkey;
	uint8_t path_mtu; /* mtu_code() */
	bool rdc_exists;
	uint8_t rnr_retry_count; /* 3 bits; 7: for ever */
	uint8_t max_cm_retries;	 /* 4 bits */
	bool srq;
	uint8_t extended_transport; /* 3 bits */
	struct mad_path path;
	bool alternate_path; /* one is named: only parsed, always written as none */
};

struct mad_rep {
	uint32_t qkey;
	uint32_t qpn;	       /* 24 bits */
	uint32_t starting_psn; /* 24 bits */
	uint8_t responder_resources;
	uint8_t initiator_depth;
	uint8_t target_ack_delay; /* 5 bits: mad_timeout() */
	uint8_t failover;	  /* 2 bits: 0 the alternate path is accepted, 1 not supported, 2 rejected */
	bool flow_control;
	uint8_t rnr_retry_count; /* 3 bits */
	bool srq;
	uint64_t ca_guid;
};

/* Which message a REJ or an MRA answers. */
enum mad_answered {
	MAD_ANSWERED_REQ = 0,
	MAD_ANSWERED_REP = 1,
	MAD_ANSWERED_OTHER = 2, /* of a REJ: none, as at a time-out; of an MRA: LAP */
};

enum mad_reason {
	MAD_REASON_NO_RESOURCES = 3,
	MAD_REASON_TIMEOUT = 4,
	MAD_REASON_UNSUPPORTED = 5,
	MAD_REASON_INVALID_ID = 6,
	MAD_REASON_SERVICE_ID = 8, /* nobody listens */
	MAD_REASON_TRANSPORT = 9,
	MAD_REASON_STALE = 10,
	MAD_REASON_GID = 12,
	MAD_REASON_MTU = 26, /* information: the code of the MTU that would do */
	MAD_REASON_RESPONDER_RESOURCES = 27,
	MAD_REASON_CONSUMER = 28, /* the user said no, with private data */
	MAD_REASON_RNR_RETRY = 29,
	MAD_REASON_DUPLICATE_ID = 30,
	MAD_REASON_CLASS_VERSION = 31,
};

struct mad_rej {
	uint8_t answered;	    /* enum mad_answered */
	uint16_t reason;	    /* enum mad_reason, or another of the specification's */
	uint8_t information_length; /* at most MAD_INFORMATION_MOST */
	const uint8_t *information;
};

struct mad_mra {
	uint8_t answered;	 /* enum mad_answered */
	uint8_t service_timeout; /* 5 bits: mad_timeout() until the answer */
};

enum {
	MAD_SIDR_UNSUPPORTED = 1,
	MAD_APR_UNSUPPORTED = 2,
};

struct mad_dreq {
	uint32_t remote_queue_number; /* of the receiver, 24 bits */
};

struct mad {
	enum mad_kind kind;
	uint64_t transaction;
	uint32_t local_id;  /* of the connection, at the sender; of SIDR_REQ and SIDR_REP: of the request */
	uint32_t remote_id; /* at the receiver; 0 in a REQ, SIDR_REQ, SIDR_REP */
	union {
		struct mad_req req;
		struct mad_mra mra;
		struct mad_rej rej;
		struct mad_rep rep;
		struct mad_dreq dreq;
		uint8_t status; /* of a SIDR_REP or APR */
	};
	const uint8_t *private_data; /* into the bytes that were parsed, or what to write (NULL: none) */
	size_t private_length;	     /* after parsing all that the kind has */
};

/*
 * Reads a MAD. Returns false, and *mad is worthless, if it is none of the connection manager's messages above in the
 * version that everybody speaks. Values are as the peer sent them, within their bits; nothing else is checked.
 */
bool mad_parse(const uint8_t *bytes, size_t length, struct mad *mad);

/*
 * Writes all 256 bytes. Values are cut to their bits; private data beyond what the kind holds is cut off (the callers
 * check it), and so is information.
 */
void mad_write(const struct mad *mad, uint8_t bytes[MAD_SIZE]);

/* The header in front of the user's private data in a REQ between IP addresses. */
struct mad_address {
	uint8_t version; /* of IP: 4 or 6 */
	uint16_t port;	 /* of the requester, host order */
	uint8_t source[16];
	uint8_t destination[16]; /* an IPv4 address is in the first four bytes of these two */
};

/* Returns false if the private data of a REQ does not begin with such a header. */
bool mad_address_parse(const uint8_t *private_data, size_t length, struct mad_address *address);
void mad_address_write(const struct mad_address *address, uint8_t private_data[MAD_ADDRESS_SIZE]);

/* The service id that a listener on a port of a port space (enum port_space) has. */
static inline uint64_t mad_service_id(uint16_t port_space, uint16_t port)
{
	return (uint64_t)port_space << 16 | port;
}

/* Returns false if it is no service id of that form. */
bool mad_service_split(uint64_t service_id, uint16_t *port_space, uint16_t *port);

/* A time-out of 4.096 us x 2^exponent (its lower five bits), in nanoseconds. */
static inline int64_t mad_timeout(unsigned exponent)
{
	return INT64_C(4096) << (exponent & 31);
}

#endif
