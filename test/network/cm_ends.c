/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>

#include "test/network/cm.h"

/* ---- what commands do ---- */

struct party *connect_from(struct host *host, const struct host *to, uint16_t port)
{
	struct party *party = party_create(host);

	party->endpoint.path = (struct soft_path){
		.socket = host->socket,
		.local = host->address,
		.peer = to->address,
		.mtu = host->mtu,
	};
	party->endpoint.base.local = host->address;
	party->endpoint.base.local.port = 40000;
	party->endpoint.base.peer = to->address;
	party->endpoint.base.peer.port = port;
	assert_int_equal(soft_cm_connect(&party->endpoint, "connect", DATA_SIZE), OUTCOME_OK);
	return party;
}

struct party *connect_one(void)
{
	return connect_from(&world.hosts[0], &world.hosts[1], PORT);
}

void do_accept(struct party *party)
{
	if (!party->gone && !party->told[SOFT_EVENT_FAILED])
		assert_int_equal(soft_cm_accept(&party->endpoint, "accept!", DATA_SIZE), OUTCOME_OK);
}

void do_forget(struct party *party)
{
	if (party->gone)
		return;
	soft_cm_release(&party->endpoint);
	assert_null(party->endpoint.cm_id);
	party->gone = true;
}

void do_reject(struct party *party)
{
	if (party->gone)
		return;
	assert_int_equal(soft_cm_reject(&party->endpoint, "not you", DATA_SIZE), OUTCOME_OK);
	do_forget(party);
}

bool is_up(const struct party *party)
{
	return !party->gone && party->last == SOFT_EVENT_ESTABLISHED;
}

void do_disconnect(struct party *party)
{
	if (is_up(party))
		assert_int_equal(soft_cm_disconnect(&party->endpoint), OUTCOME_OK);
}

void do_hear(struct party *party)
{
	if (!party->gone && party->qp.state >= QP_CONNECTED && party->qp.state < QP_ERROR)
		soft_cm_packet_received(&party->endpoint);
}

struct party *guest(void)
{
	for (struct party *party = world.parties; party; party = party->next)
		if (party->told[SOFT_EVENT_REQUESTED])
			return party;
	return NULL;
}

enum cm_state state_of(const struct party *party)
{
	return party->endpoint.cm_id ? party->endpoint.cm_id->state : CM_IDLE;
}

/* ---- MADs that fly ---- */

bool mad_of_flight(const struct flight *flight, struct mad *mad)
{
	return mad_parse(flight->bytes, MAD_SIZE, mad);
}

const struct flight *last_of(enum mad_kind kind, const struct host *host, struct mad *mad)
{
	for (size_t i = 0; i < LENGTH(world.seen) && i < world.seen_count; i++) {
		const struct flight *flight = &world.seen[(world.seen_count - 1 - i) % LENGTH(world.seen)];

		if (mad_of_flight(flight, mad) && mad->kind == kind && address_same_host(&flight->from, &host->address))
			return flight;
	}
	return NULL;
}

unsigned count_of(enum mad_kind kind)
{
	unsigned count = 0;
	struct mad mad;

	assert_true(world.seen_count <= LENGTH(world.seen));
	for (size_t i = 0; i < world.seen_count; i++)
		count += mad_of_flight(&world.seen[i], &mad) && mad.kind == kind;
	return count;
}

void world_inject(const struct host *from, const struct host *to, const struct mad *mad)
{
	struct flight flight = { from->address, to->address, { 0 } };

	mad_write(mad, flight.bytes);
	world_arrive(&flight);
	world_flush();
}

bool no_ready(const struct flight *flight)
{
	struct mad mad;

	return !mad_of_flight(flight, &mad) || mad.kind != MAD_RTU;
}

bool no_reply(const struct flight *flight)
{
	struct mad mad;

	return !mad_of_flight(flight, &mad) || mad.kind != MAD_REP;
}

bool no_goodbye(const struct flight *flight)
{
	struct mad mad;

	return !mad_of_flight(flight, &mad) || (mad.kind != MAD_DREQ && mad.kind != MAD_DREP);
}

bool no_refusal(const struct flight *flight)
{
	struct mad mad;

	return !mad_of_flight(flight, &mad) || mad.kind != MAD_REJ;
}

bool nothing_at_all(const struct flight *flight)
{
	(void)flight;
	return false;
}

void check_nothing_left(void)
{
	for (unsigned i = 0; i < HOSTS; i++) {
		const struct soft_cm *cm = world.hosts[i].transport->cm;

		assert_int_equal(world.hosts[i].listener.pending_requests, 0);
		assert_int_equal(world.hosts[i].second.pending_requests, 0);
		assert_int_equal(cm->half_open, 0);
		assert_int_equal(cm->orphans, 0);
		assert_int_equal(cm->timewait.count, 0);
		assert_null(cm->timewait.first);
		assert_null(cm->rep_sent.first);
		for (unsigned index = 0; index < CM_INDEXES; index++)
			assert_int_equal(cm->tables[index].count, 0);
	}
}

void forget_all(void)
{
	for (struct party *party = world.parties; party; party = party->next)
		do_forget(party);
	network_drain();
	check_nothing_left();
}

unsigned count_up(void)
{
	unsigned count = 0;

	for (struct party *party = world.parties; party; party = party->next)
		count += is_up(party);
	return count;
}

struct party *connect_pair(struct party **other)
{
	struct party *active;

	world.requested = do_accept;
	active = connect_one();
	network_run(CLOCK_NS_PER_MS);
	*other = guest();
	assert_true(is_up(active) && is_up(*other));
	return active;
}

/* ---- single stories ---- */

void check_agreement(const struct party *one, const struct party *other)
{
	const struct soft_agreement *here = &one->qp.agreement;
	const struct soft_agreement *there = &other->qp.agreement;

	assert_int_equal(here->sq_psn, there->rq_psn);
	assert_int_equal(here->rq_psn, there->sq_psn);
	assert_int_equal(here->peer_qpn, other->qp.number);
	assert_int_equal(there->peer_qpn, one->qp.number);
	assert_int_equal(here->path.mtu, there->path.mtu);
	assert_int_equal(here->reads_out, there->reads_in);
	assert_int_equal(here->reads_in, there->reads_out);
	assert_true(here->reads_in && here->reads_out);
	assert_int_equal(here->rnr_retry_count, 7);
	assert_int_equal(there->rnr_retry_count, 7);
	assert_int_equal(there->retry_count, 7);
	assert_int_equal(there->ack_timeout, 18);
	assert_true(address_same_host(&here->path.peer, &other->host->address));
	assert_true(address_same_host(&there->path.peer, &one->host->address));
}

void unreachable(struct host *host, const struct host *peer, int error, uint32_t qp, uint32_t id, size_t length)
{
	uint8_t quoted[64] = { 0 };

	bytes_write(quoted + 5, 3, qp);
	if (qp == MAD_QPN)
		bytes_write(quoted + 44, 4, id);
	soft_cm_unreachable(host->transport, host->socket, &peer->address, error, quoted, length);
}

void refuse(struct host *host, const struct host *peer, uint32_t qp, uint32_t id, size_t length)
{
	unreachable(host, peer, ECONNREFUSED, qp, id, length);
}

void refuse_message(struct host *host, const struct party *party)
{
	refuse(host, &world.hosts[1], MAD_QPN, party->endpoint.cm_id->local_id, 48);
}

/* ---- messages of a real peer: soft-RoCE of Linux 6.1, 10.0.0.1 or .2 as ours are ---- */

enum {
	REAL_MAD_4 = 20 + 8 + 12 + 8, /* behind IP, UDP, BTH and DETH */
	REAL_MAD_6 = 40 + 8 + 12 + 8,
};

struct mad captured(const char *name, const struct party *to)
{
	const struct vector *vector = vector_named(name);
	struct mad mad;

	assert_non_null(vector);
	assert_true(mad_parse(vector->bytes + (vector->bytes[0] >> 4 == 4 ? REAL_MAD_4 : REAL_MAD_6), MAD_SIZE, &mad));
	if (to) {
		mad.remote_id = to->endpoint.cm_id->local_id;
		if (mad.kind == MAD_DREQ)
			mad.dreq.remote_qpn = to->qp.number;
	}
	return mad;
}

/* ---- peers that do what they should not ---- */

uint64_t fingerprint(void)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < 2; i++) {
		const struct soft_cm *cm = world.hosts[i].transport->cm;

		sum = sum * 31 + world.hosts[i].listener.pending_requests;
		sum = sum * 31 + cm->half_open;
		sum = sum * 31 + cm->orphans;
		sum = sum * 31 + cm->timewait.count;
		for (unsigned index = 0; index < CM_INDEXES; index++)
			sum = sum * 31 + cm->tables[index].count;
	}
	for (const struct party *party = world.parties; party; party = party->next) {
		const struct soft_cm_id *cm_id = party->endpoint.cm_id;

		sum = sum * 31 + party->qp.state;
		for (unsigned kind = SOFT_EVENT_REQUESTED; kind <= SOFT_EVENT_FAILED; kind++)
			sum = sum * 31 + party->told[kind];
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

struct mad mad_forge(enum mad_kind kind, const struct party *target, const struct host *peer)
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
		mad.dreq.remote_qpn = target->qp.number;
	if (kind == MAD_REJ)
		mad.rej = (struct mad_rej){ .answered = MAD_ANSWERED_OTHER,
					    .reason = MAD_REASON_CONSUMER,
					    .information = no_guid,
					    .information_length = 8 };
	return mad;
}

struct party *connect_without(bool (*allowed)(const struct flight *flight))
{
	struct party *active;

	world.requested = do_accept;
	world.allowed = allowed;
	active = connect_one();
	network_run(50 * CLOCK_NS_PER_MS);
	return active;
}
