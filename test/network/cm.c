/* SPDX-License-Identifier: BSD-2-Clause */
#include "test/network/cm.h"

#include "transport/soft/net/socket.h"

struct cm_hosts cm_hosts;

static struct host *cm_host_of(const struct soft_transport *transport)
{
	for (unsigned i = 0; i < HOSTS; i++)
		if (cm_hosts.hosts[i].transport == transport)
			return &cm_hosts.hosts[i];
	fail();
	return NULL;
}

static struct host *host_at(const struct address *address)
{
	for (unsigned i = 0; i < HOSTS; i++)
		if (address_same_host(&cm_hosts.hosts[i].address, address))
			return &cm_hosts.hosts[i];
	return NULL;
}

/* ---- MADs ---- */

static const struct packet mad_packet = {
	.opcode = OPCODE_DATAGRAM,
	.pkey = PACKET_PKEY,
	.destination = MAD_QPN,
	.datagram = { .key = MAD_QKEY, .source = MAD_QPN },
	.length = MAD_SIZE,
};

void testbed_deliver(const struct sent_mad *sent_mad)
{
	struct frame frame = { .from = sent_mad->from, .to = sent_mad->to };
	size_t header = packet_write(&mad_packet, frame.bytes);

	assert_non_null(host_at(&sent_mad->to));
	frame.length = header + MAD_SIZE;
	memcpy(frame.bytes + header, sent_mad->bytes, MAD_SIZE);
	network_append_icrc(&frame, &cm_hosts.hosts[0].transport->icrc);
	network_deliver(&frame);
	network_read_sockets();
}

/* Called for each packet that a host sends: it must be a valid MAD. Returns true if it is dropped. */
static bool cm_packet_sent(void *context, const struct frame *frame)
{
	struct sent_mad *sent_mad = &cm_hosts.sent[cm_hosts.sent_count++ % LENGTH(cm_hosts.sent)];
	const struct host *to = host_at(&frame->to);
	struct packet packet;
	struct mad mad;

	assert_true(packet_parse(frame->bytes, frame->length, &packet));
	assert_int_equal(packet.opcode, mad_packet.opcode);
	assert_int_equal(packet.pkey, mad_packet.pkey);
	assert_int_equal(packet.destination, mad_packet.destination);
	assert_int_equal(packet.datagram.key, mad_packet.datagram.key);
	assert_int_equal(packet.datagram.source, mad_packet.datagram.source);
	assert_int_equal(packet.length, MAD_SIZE);
	*sent_mad = (struct sent_mad){ frame->from, frame->to, { 0 } };
	memcpy(sent_mad->bytes, packet.payload, MAD_SIZE);
	assert_true(parse_sent(sent_mad, &mad));
	return !to || !to->transport->cm || to == cm_hosts.silent || (cm_hosts.dropped >> mad.kind & 1);
}

void testbed_flush(void)
{
	for (unsigned i = 0; i < HOSTS; i++)
		soft_flush(cm_hosts.hosts[i].transport);
}

/* ---- replaced functions (cm.wrap) ---- */

void __real_soft_callback_begin(struct soft_transport *transport);
void __real_soft_callback_end(struct soft_transport *transport);

struct soft_endpoint *__wrap_soft_listener_find(struct soft_transport *transport, enum port_space port_space,
						uint16_t port, const struct address *local)
{
	struct host *host = cm_host_of(transport);

	assert_true(address_same_host(local, &host->address));
	if (!host->listens || port_space != PORT_SPACE_TCP)
		return NULL;
	return port == PORT ? &host->listener : port == PORT + 1 ? &host->second : NULL;
}

static struct conn *conn_of(struct soft_endpoint *endpoint)
{
	return (struct conn *)endpoint;
}

struct conn *conn_create(struct host *host)
{
	struct conn *conn = calloc(1, sizeof(*conn));

	assert_non_null(conn);
	conn->host = host;
	conn->next = cm_hosts.conns;
	cm_hosts.conns = conn;
	conn->endpoint.base.transport = &host->transport->base;
	conn->endpoint.base.options = (struct endpoint_options){
		.port_space = PORT_SPACE_TCP,
		.path = &path_unset,
	};
	conn->qp.qpn = conn->endpoint.base.qpn = cm_hosts.next_qpn++;
	conn->endpoint.qp = &conn->qp;
	return conn;
}

struct soft_endpoint *__wrap_soft_request_create(struct soft_endpoint *listener, const struct soft_path *path,
						 const struct address *peer)
{
	struct conn *conn = conn_create(cm_host_of(path->socket->transport));

	assert_true(listener == &conn->host->listener || listener == &conn->host->second);
	conn->endpoint.listener = listener;
	conn->endpoint.path = *path;
	conn->endpoint.base.local = path->local;
	conn->endpoint.base.peer = *peer;
	return &conn->endpoint;
}

void __wrap_soft_callback_begin(struct soft_transport *transport)
{
	assert_int_equal(cm_host_of(transport)->entered++, 0);
	__real_soft_callback_begin(transport);
}

void __wrap_soft_callback_end(struct soft_transport *transport)
{
	cm_host_of(transport)->entered--;
	__real_soft_callback_end(transport);
}

/* Checks the order of events. */
static void check_order(const struct conn *conn, enum soft_event_kind kind)
{
	assert_false(conn->released);
	assert_true(conn->events[kind] == 0);
	assert_int_equal(conn->events[SOFT_EVENT_DISCONNECTED] + conn->events[SOFT_EVENT_FAILED], 0);
	if (kind == SOFT_EVENT_DISCONNECTED)
		assert_int_equal(conn->events[SOFT_EVENT_ESTABLISHED], 1);
	if (kind == SOFT_EVENT_ESTABLISHED)
		assert_int_equal(conn->qp.state, QP_RTS);
	else if (kind != SOFT_EVENT_REQUESTED && conn->qp.state != QP_RESET)
		assert_int_equal(conn->qp.state, QP_ERROR);
}

static void call_requested(void *context)
{
	struct conn *conn = context;

	cm_hosts.requested(conn);
}

static void record_event(struct conn *conn, enum soft_event_kind kind, const void *data, size_t length)
{
	check_order(conn, kind);
	conn->events[kind]++;
	conn->last = kind;
	assert_true(length <= sizeof(conn->data));
	conn->data_length = length;
	if (length)
		memcpy(conn->data, data, length);
	/* After the CM has returned. */
	if (kind == SOFT_EVENT_REQUESTED && cm_hosts.requested)
		loop_timer_start(NULL, &conn->requested, 0, call_requested, conn);
}

void __wrap_soft_event_queue(struct soft_endpoint *endpoint, enum soft_event_kind kind, const void *data, size_t length)
{
	record_event(conn_of(endpoint), kind, data, length);
}

void __wrap_soft_event_failed(struct soft_endpoint *endpoint, const char *cause, const char *code_name, int code)
{
	struct conn *conn = conn_of(endpoint);

	record_event(conn, SOFT_EVENT_FAILED, NULL, 0);
	snprintf(conn->cause, sizeof(conn->cause), "%s", cause);
	conn->code_name = code_name;
	conn->code = code;
}

void __wrap_soft_event_rejected(struct soft_endpoint *endpoint, const char *cause, int reason, const void *data,
				size_t length)
{
	__wrap_soft_event_failed(endpoint, cause, "reject reason", reason);
	conn_of(endpoint)->data_length = length;
	memcpy(conn_of(endpoint)->data, data, length);
}

void __wrap_soft_qp_connect(struct soft_qp *qp, const struct soft_agreement *agreement)
{
	assert_int_equal(qp->state, QP_RESET);
	qp->state = QP_CONNECTED;
	qp->agreement = *agreement;
}

void __wrap_soft_qp_start(struct soft_qp *qp)
{
	assert_int_equal(qp->state, QP_CONNECTED);
	qp->state = QP_RTS;
}

void __wrap_soft_qp_drain(struct soft_qp *qp)
{
	qp->state = QP_ERROR;
}

bool __wrap_soft_qp_has_signalled_work(const struct soft_qp *qp)
{
	return qp->state == QP_RTS && qp->unacked;
}

uint32_t __wrap_soft_qp_last_ack(const struct soft_qp *qp)
{
	assert_int_equal(qp->state, QP_ERROR);
	return qp->last_ack;
}

void __wrap_soft_qp_acknowledged(struct soft_qp *qp, uint32_t psn)
{
	qp->acked = psn;
}

void __wrap_soft_qp_probe(struct soft_qp *qp)
{
	assert_int_equal(qp->state, QP_RTS);
	qp->probes++;
}

void __wrap_soft_qp_suspect(struct soft_qp *qp)
{
	assert_int_equal(qp->state, QP_RTS);
	qp->suspects++;
}

/* ---- set-up and tear-down ---- */

void host_exit(struct host *host)
{
	soft_cm_close(host->transport->cm);
	host->transport->cm = NULL;
}

int testbed_open(void **state)
{
	memset(&cm_hosts, 0, sizeof(cm_hosts));
	network_open(0, MTU + PACKET_OVERHEAD_MAX, 212992);
	network->intercept = cm_packet_sent;
	cm_hosts.next_qpn = 0x1234;
	for (unsigned i = 0; i < HOSTS; i++) {
		struct address address = { .family = ADDRESS_IP4, .bytes = { 10, 0, 0, (uint8_t)(i + 1) } };
		struct host *host = &cm_hosts.hosts[i];

		host->transport = stack_open();
		host->address = address;
		host->socket = stack_socket(host->transport, &address);
		address.bytes[2] = 1;
		host->other = stack_socket(host->transport, &address);
		host->mtu = MTU;
		host->listener.base.transport = &host->transport->base;
		host->listener.base.options.path = host->second.base.options.path = &path_unset;
		host->listener.base.state = ENDPOINT_LISTENING;
	}
	cm_hosts.hosts[1].listens = true;
	return 0;
}

/* Ends the test's leftovers; none may remain. */
int testbed_close(void **state)
{
	release_all();
	for (unsigned i = 0; i < HOSTS; i++)
		host_exit(&cm_hosts.hosts[i]);
	for (unsigned i = 0; i < HOSTS; i++)
		stack_close(cm_hosts.hosts[i].transport);
	while (cm_hosts.conns) {
		struct conn *conn = cm_hosts.conns;

		cm_hosts.conns = conn->next;
		loop_timer_stop(&conn->requested);
		free(conn);
	}
	network_close();
	return 0;
}
