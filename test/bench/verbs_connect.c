/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * verbs_connect server ADDRESS COUNT
 * verbs_connect client ADDRESS COUNT
 *
 * The least that a connection can cost over librdmacm: COUNT of them, made at once, and ended at once when the last one
 * stands. One protection domain and one completion queue for all, queues of one entry, no messages, no time limits, no
 * loop but the read of the event channel.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include <rdma/rdma_cma.h>

#include "test/bench/bare.h"
#include "test/bench/need.h"

enum {
	PORT = 7176,
	RESOLVE_MS = 10000
};

struct crowd {
	struct rdma_event_channel *channel;
	struct ibv_cq *completions; /* NULL before the first connection */
	struct rdma_cm_id **ids;
	long count, opened, made, ended;
};

static void open_queues(struct crowd *crowd, struct rdma_cm_id *id)
{
	struct ibv_qp_init_attr attributes = {
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};

	if (!crowd->completions)
		crowd->completions = ibv_create_cq(id->verbs, 16, NULL, NULL, 0);
	need(crowd->completions, "verbs_connect: completion queue");
	attributes.send_cq = attributes.recv_cq = crowd->completions;
	need(!rdma_create_qp(id, NULL, &attributes), "verbs_connect: queue pair");
}

static void ask(struct crowd *crowd, struct rdma_cm_id *id)
{
	struct rdma_conn_param asked = bare_parameters();

	open_queues(crowd, id);
	need(!rdma_connect(id, &asked), "verbs_connect: connect");
}

static void accept_request(struct crowd *crowd, struct rdma_cm_id *id)
{
	struct rdma_conn_param accepted = bare_parameters();

	need(crowd->opened < crowd->count, "verbs_connect: one request too many");
	crowd->ids[crowd->opened++] = id;
	open_queues(crowd, id);
	need(!rdma_accept(id, &accepted), "verbs_connect: accept");
}

/* Only the client says so: a connection needs one end that does. */
static void end_all(const struct crowd *crowd)
{
	for (long each = 0; each < crowd->count; each++)
		need(!rdma_disconnect(crowd->ids[each]), "verbs_connect: disconnect");
}

static void follow(struct crowd *crowd, bool is_server, struct rdma_cm_id *id, enum rdma_cm_event_type event)
{
	switch (event) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		accept_request(crowd, id);
		break;
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		need(!rdma_resolve_route(id, RESOLVE_MS), "verbs_connect: resolve route");
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		ask(crowd, id);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		if (++crowd->made == crowd->count && !is_server)
			end_all(crowd);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		if (is_server)
			need(!rdma_disconnect(id), "verbs_connect: disconnect");
		crowd->ended++;
		break;
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		break;
	default:
		fprintf(stderr, "verbs_connect: %s\n", rdma_event_str(event));
		exit(1);
	}
}

static void run(struct crowd *crowd, bool is_server)
{
	while (crowd->ended < crowd->count) {
		struct rdma_cm_event *event;
		struct rdma_cm_id *id;
		enum rdma_cm_event_type type;

		need(!rdma_get_cm_event(crowd->channel, &event), "verbs_connect: event");
		id = event->id;
		type = event->event;
		need(!rdma_ack_cm_event(event), "verbs_connect: acknowledge");
		follow(crowd, is_server, id, type);
	}
	for (long each = 0; each < crowd->count; each++) {
		rdma_destroy_qp(crowd->ids[each]);
		need(!rdma_destroy_id(crowd->ids[each]), "verbs_connect: destroy");
	}
}

static void listen_on(struct crowd *crowd, struct sockaddr *address)
{
	struct rdma_cm_id *id;

	need(!rdma_create_id(crowd->channel, &id, NULL, RDMA_PS_TCP), "verbs_connect: id");
	need(!rdma_bind_addr(id, address) && !rdma_listen(id, (int)crowd->count), "verbs_connect: listen");
}

static void resolve(struct crowd *crowd, struct sockaddr *address)
{
	while (crowd->opened < crowd->count) {
		struct rdma_cm_id **id = &crowd->ids[crowd->opened++];

		need(!rdma_create_id(crowd->channel, id, NULL, RDMA_PS_TCP), "verbs_connect: id");
		need(!rdma_resolve_addr(*id, NULL, address, RESOLVE_MS), "verbs_connect: resolve address");
	}
}

int main(int argc, char **argv)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(PORT) };
	bool is_server = argc > 1 && !strcmp(argv[1], "server");
	struct crowd crowd = { .count = argc == 4 ? atol(argv[3]) : 0 };

	if (crowd.count < 1 || inet_pton(AF_INET, argv[2], &address.sin_addr) != 1 ||
	    (!is_server && strcmp(argv[1], "client"))) {
		fprintf(stderr, "usage: verbs_connect server|client ADDRESS COUNT\n");
		return 2;
	}
	crowd.ids = calloc((size_t)crowd.count, sizeof(struct rdma_cm_id *));
	crowd.channel = rdma_create_event_channel();
	need(crowd.ids && crowd.channel, "verbs_connect: start");
	(is_server ? listen_on : resolve)(&crowd, (struct sockaddr *)&address);
	run(&crowd, is_server);
	return 0;
}
