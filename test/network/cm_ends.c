/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>

#include "test/network/cm.h"

/* ---- actions of commands ---- */

struct conn *connect_from(struct host *host, const struct host *to, uint16_t port)
{
	struct conn *conn = conn_create(host);

	conn->endpoint.path = (struct soft_path){
		.socket = host->socket,
		.local = host->address,
		.peer = to->address,
		.mtu = host->mtu,
	};
	conn->endpoint.base.local = host->address;
	conn->endpoint.base.local.port = 40000;
	conn->endpoint.base.peer = to->address;
	conn->endpoint.base.peer.port = port;
	assert_int_equal(soft_cm_connect(&conn->endpoint.base, "connect", DATA_SIZE), OUTCOME_OK);
	return conn;
}

struct conn *connect_one(void)
{
	return connect_from(&cm_hosts.hosts[0], &cm_hosts.hosts[1], PORT);
}

struct conn *connect_for_1_ms(void)
{
	struct conn *conn = connect_one();

	network_run(CLOCK_NS_PER_MS);
	return conn;
}

void do_accept(struct conn *conn)
{
	if (!conn->released && !conn->events[SOFT_EVENT_FAILED])
		assert_int_equal(soft_cm_accept(&conn->endpoint.base, "accept!", DATA_SIZE), OUTCOME_OK);
}

void do_release(struct conn *conn)
{
	if (conn->released)
		return;
	soft_cm_release(&conn->endpoint);
	assert_null(conn->endpoint.cm_id);
	conn->released = true;
}

void do_reject(struct conn *conn)
{
	if (conn->released)
		return;
	soft_cm_reject(&conn->endpoint.base, "not you", DATA_SIZE);
	do_release(conn);
}

bool is_established(const struct conn *conn)
{
	return !conn->released && conn->last == SOFT_EVENT_ESTABLISHED;
}

void do_disconnect(struct conn *conn)
{
	if (is_established(conn))
		assert_int_equal(soft_cm_disconnect(&conn->endpoint.base), OUTCOME_OK);
}

struct conn *passive_conn(void)
{
	for (struct conn *conn = cm_hosts.conns; conn; conn = conn->next)
		if (conn->events[SOFT_EVENT_REQUESTED])
			return conn;
	return NULL;
}

enum cm_state state_of(const struct conn *conn)
{
	return conn->endpoint.cm_id ? conn->endpoint.cm_id->state : CM_IDLE;
}

/* ---- MADs ---- */

bool parse_sent(const struct sent_mad *sent_mad, struct mad *mad)
{
	return mad_parse(sent_mad->bytes, MAD_SIZE, mad);
}

const struct sent_mad *last_sent(enum mad_kind kind, const struct host *host, struct mad *mad)
{
	for (size_t i = 0; i < LENGTH(cm_hosts.sent) && i < cm_hosts.sent_count; i++) {
		const struct sent_mad *sent_mad = &cm_hosts.sent[(cm_hosts.sent_count - 1 - i) % LENGTH(cm_hosts.sent)];

		if (parse_sent(sent_mad, mad) && mad->kind == kind &&
		    address_same_host(&sent_mad->from, &host->address))
			return sent_mad;
	}
	return NULL;
}

unsigned count_sent(enum mad_kind kind)
{
	unsigned count = 0;
	struct mad mad;

	assert_true(cm_hosts.sent_count <= LENGTH(cm_hosts.sent));
	for (size_t i = 0; i < cm_hosts.sent_count; i++)
		count += parse_sent(&cm_hosts.sent[i], &mad) && mad.kind == kind;
	return count;
}

void testbed_inject(const struct host *from, const struct host *to, const struct mad *mad)
{
	struct sent_mad sent_mad = { from->address, to->address, { 0 } };

	mad_write(mad, sent_mad.bytes);
	testbed_deliver(&sent_mad);
	testbed_flush();
}

static void check_cm_empty(void)
{
	for (unsigned i = 0; i < HOSTS; i++) {
		const struct soft_cm *cm = cm_hosts.hosts[i].transport->cm;

		if (!cm) /* it has ended */
			continue;
		assert_int_equal(cm_hosts.hosts[i].listener.pending_requests, 0);
		assert_int_equal(cm_hosts.hosts[i].second.pending_requests, 0);
		assert_int_equal(cm->half_open, 0);
		assert_int_equal(cm->orphans, 0);
		assert_int_equal(cm->timewait.count, 0);
		assert_null(cm->timewait.first);
		assert_null(cm->rep_sent.first);
		for (unsigned index = 0; index < CM_INDEXES; index++)
			assert_int_equal(cm->tables[index].count, 0);
	}
}

void release_all(void)
{
	for (struct conn *conn = cm_hosts.conns; conn; conn = conn->next)
		do_release(conn);
	network_drain();
	check_cm_empty();
}

struct conn *connect_pair(struct conn **other)
{
	struct conn *active;

	cm_hosts.requested = do_accept;
	active = connect_for_1_ms();
	*other = passive_conn();
	assert_true(is_established(active) && is_established(*other));
	return active;
}

/* ---- checks and ICMP errors ---- */

void check_agreement(const struct conn *one, const struct conn *other)
{
	const struct soft_agreement *here = &one->qp.agreement;
	const struct soft_agreement *there = &other->qp.agreement;

	assert_int_equal(here->sq_psn, there->rq_psn);
	assert_int_equal(here->rq_psn, there->sq_psn);
	assert_int_equal(here->peer_qpn, other->qp.qpn);
	assert_int_equal(there->peer_qpn, one->qp.qpn);
	assert_int_equal(one->endpoint.path.mtu, other->endpoint.path.mtu);
	assert_int_equal(here->reads_out, there->reads_in);
	assert_int_equal(here->reads_in, there->reads_out);
	assert_true(here->reads_in && here->reads_out);
	assert_int_equal(here->rnr_retry_count, 7);
	assert_int_equal(there->rnr_retry_count, 7);
	assert_int_equal(there->retry_count, 7);
	assert_int_equal(there->ack_timeout, 18);
	assert_true(address_same_host(&one->endpoint.path.peer, &other->host->address));
	assert_true(address_same_host(&other->endpoint.path.peer, &one->host->address));
}

void icmp_unreachable(struct host *host, const struct host *peer, int error, uint32_t qp, uint32_t id, size_t length)
{
	uint8_t quoted[64] = { 0 };

	bytes_write(quoted + 5, 3, qp);
	if (qp == MAD_QPN)
		bytes_write(quoted + 44, 4, id);
	soft_cm_unreachable(host->transport, host->socket,
			    &(struct soft_icmp){ .peer = peer->address, .from = peer->address, .error = error }, quoted,
			    length);
}

void icmp_port_unreachable(struct host *host, const struct host *peer, uint32_t qp, uint32_t id, size_t length)
{
	icmp_unreachable(host, peer, ECONNREFUSED, qp, id, length);
}

void icmp_for_mad(struct host *host, const struct conn *conn)
{
	icmp_port_unreachable(host, &cm_hosts.hosts[1], MAD_QPN, conn->endpoint.cm_id->local_id, 48);
}

/* ---- MADs captured from Linux 6.1 rxe, addresses 10.0.0.1 and 10.0.0.2 ---- */

enum {
	REAL_MAD_4 = 20 + 8 + 12 + 8, /* after IP, UDP, BTH and DETH */
	REAL_MAD_6 = 40 + 8 + 12 + 8,
};

struct mad captured(const char *name, const struct conn *to)
{
	const struct vector *vector = vector_named(name);
	struct mad mad;

	assert_non_null(vector);
	assert_true(mad_parse(vector->bytes + (vector->bytes[0] >> 4 == 4 ? REAL_MAD_4 : REAL_MAD_6), MAD_SIZE, &mad));
	if (to) {
		mad.remote_id = to->endpoint.cm_id->local_id;
		if (mad.kind == MAD_DREQ)
			mad.dreq.remote_qpn = to->qp.qpn;
	}
	return mad;
}

/* ---- invalid MADs ---- */

uint64_t state_hash(void)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < 2; i++) {
		const struct soft_cm *cm = cm_hosts.hosts[i].transport->cm;

		sum = sum * 31 + cm_hosts.hosts[i].listener.pending_requests;
		sum = sum * 31 + cm->half_open;
		sum = sum * 31 + cm->orphans;
		sum = sum * 31 + cm->timewait.count;
		for (unsigned index = 0; index < CM_INDEXES; index++)
			sum = sum * 31 + cm->tables[index].count;
	}
	for (const struct conn *conn = cm_hosts.conns; conn; conn = conn->next) {
		const struct soft_cm_id *cm_id = conn->endpoint.cm_id;

		sum = sum * 31 + conn->qp.state;
		for (unsigned kind = SOFT_EVENT_REQUESTED; kind <= SOFT_EVENT_FAILED; kind++)
			sum = sum * 31 + conn->events[kind];
		if (!cm_id)
			continue;
		sum = sum * 31 + cm_id->state;
		sum = sum * 31 + cm_id->local_id;
		sum = sum * 31 + cm_id->remote_id;
		sum = sum * 31 + cm_id->resends;
		for (unsigned byte = 0; byte < MAD_SIZE; byte++)
			sum = sum * 31 + cm_id->message[byte];
	}
	return sum;
}

struct mad mad_forge(enum mad_kind kind, const struct conn *target, const struct host *peer)
{
	const struct soft_cm_id *cm_id = target->endpoint.cm_id;
	static const uint8_t no_guid[8];
	struct mad mad = {
		.kind = kind,
		.transaction = cm_id->transaction,
		.local_id = cm_id->peer_known ? cm_id->remote_id : 0x5a5a5a5a,
		.remote_id = cm_id->local_id,
	};

	if (kind == MAD_REP)
		mad.rep = (struct mad_rep){ .qpn = 77, .ca_guid = peer->transport->guid };
	if (kind == MAD_DREQ)
		mad.dreq.remote_qpn = target->qp.qpn;
	if (kind == MAD_REJ)
		mad.rej = (struct mad_rej){ .answered = MAD_ANSWERED_OTHER,
					    .reason = REJECTED_BY_CONSUMER,
					    .information = no_guid,
					    .information_length = 8 };
	return mad;
}

struct conn *connect_dropping(unsigned dropped)
{
	struct conn *active;

	cm_hosts.requested = do_accept;
	cm_hosts.dropped = dropped;
	active = connect_one();
	network_run(50 * CLOCK_NS_PER_MS);
	return active;
}
