/* SPDX-License-Identifier: BSD-2-Clause */
/* What doctor takes from ICMP errors about its ordinary packets. */
#include <time.h>

#include <linux/errqueue.h>
#include <netinet/in.h>

#include "test/unit/doctor_bench.h"

/* The answer to a packet to the peer, from the peer. */
static enum trace_answer answer_of(const char *peer, uint8_t type, uint8_t code)
{
	struct {
		struct sock_extended_err error;
		struct sockaddr_storage from;
	} body = { .error = { .ee_type = type, .ee_code = code } };
	uint8_t control[CMSG_SPACE(sizeof(body))] __attribute__((aligned(8))) = { 0 };
	struct sockaddr_storage name;
	struct msghdr message = { .msg_name = &name, .msg_control = control, .msg_controllen = sizeof(control) };
	struct cmsghdr *row = CMSG_FIRSTHDR(&message);
	struct address address, from;
	bool four;

	assert_true(address_parse(peer, ADDRESS_FORMAT_IP, &address));
	four = address.family == ADDRESS_IP4;
	message.msg_namelen = (socklen_t)address_to_socket(&address, &name);
	body.from = name;
	body.error.ee_origin = four ? SO_EE_ORIGIN_ICMP : SO_EE_ORIGIN_ICMP6;
	*row = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof(body)),
				 .cmsg_level = four ? IPPROTO_IP : IPPROTO_IPV6,
				 .cmsg_type = four ? IP_RECVERR : IPV6_RECVERR };
	memcpy(CMSG_DATA(row), &body, sizeof(body));
	return trace_read_answer(&message, &address, &from);
}

TEST(answers)
{
	static const struct {
		const char *peer;
		uint8_t type, code;
		enum trace_answer answer;
	} rows[] = {
		{ "10.0.0.2", 11, 0, TRACE_ROUTER },	 { "10.0.0.2", 3, 1, TRACE_REFUSED },
		{ "10.0.0.2", 3, 3, TRACE_CLOSED },	 { "10.0.0.2", 3, 9, TRACE_PROHIBITED },
		{ "10.0.0.2", 3, 10, TRACE_PROHIBITED }, { "10.0.0.2", 3, 13, TRACE_PROHIBITED },
		{ "10.0.0.2", 12, 3, TRACE_REFUSED },	 { "fd00::2", 3, 0, TRACE_ROUTER },
		{ "fd00::2", 1, 0, TRACE_REFUSED },	 { "fd00::2", 1, 1, TRACE_PROHIBITED },
		{ "fd00::2", 1, 4, TRACE_CLOSED },
	};

	for (size_t i = 0; i < LENGTH(rows); i++)
		assert_int_equal(answer_of(rows[i].peer, rows[i].type, rows[i].code), rows[i].answer);
}
