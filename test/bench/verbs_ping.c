/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * verbs_ping server|client|hold poll|epoll ADDRESS COUNT SIZE
 *
 * The minimum cost of a ping over verbs: the six messages of cmd/rping/protocol.h, of the same sizes, between two
 * processes, and nothing else: no loop, no time limits, no options, no payload written or compared. The connection
 * manager makes the connection. The client prints the microseconds of one ping.
 *
 *   poll    looks at the completion queue again and again
 *   epoll   waits for each completion in epoll_wait(), for ten seconds at most, then reads: as anything with a time
 * limit
 *
 * hold makes COUNT connections, one after the other with a ping each, prints a line, and keeps them until end of file
 * on standard input.
 *
 * A minimum of completions: READs, receives, and few of the client's sends, to free the send queue.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/epoll.h>

#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#include "cmd/rping/protocol.h"
#include "core/clock.h"
#include "test/bench/need.h"

enum {
	PORT = 7175,
	RECEIVES = 4,
	REPORT_EVERY = 16, /* pings */
	SENDS = 4 * REPORT_EVERY,
	ENTRIES = SENDS + RECEIVES,
	LONGEST_MS = 10000,
	WARM_UP = 20,	  /* untimed pings */
	SOONEST_RETRY = 1 /* 0.01 ms (ibv_modify_qp(3), min_rnr_timer) */
};

struct plan {
	bool in_epoll;
	long count;
	uint32_t size;
};

struct end {
	struct rdma_cm_id *id;
	struct ibv_comp_channel *channel; /* NULL: polls */
	int epoll;
	struct ibv_cq *completions;
	struct ibv_mr *mailbox, *source, *sink;
	uint8_t *memory;
	uint8_t messages[2 + RECEIVES][ADVERTISEMENT_SIZE]; /* two to send, then the received ones */
	uint32_t size;
};

/* Each end's parameters. */
static struct rdma_conn_param parameters(void)
{
	return (struct rdma_conn_param){
		.responder_resources = 1, .initiator_depth = 1, .retry_count = 7, .rnr_retry_count = 7
	};
}

static void receive(struct end *end, uint64_t index)
{
	need(!rdma_post_recv(end->id, (void *)(uintptr_t)index, end->messages[2 + index], ADVERTISEMENT_SIZE,
			     end->mailbox),
	     "verbs_ping: receive");
}

static void arm(const struct end *end)
{
	need(!ibv_req_notify_cq(end->completions, 0), "verbs_ping: arm");
}

/* Events are not acknowledged: the queue is never destroyed. */
static void sleep_until_completion(const struct end *end)
{
	struct epoll_event event;
	struct ibv_cq *completions;
	void *context;

	need(epoll_wait(end->epoll, &event, 1, LONGEST_MS) == 1, "verbs_ping: epoll_wait");
	need(!ibv_get_cq_event(end->channel, &completions, &context), "verbs_ping: completion event");
	arm(end);
}

static void open_end(struct end *end, struct rdma_cm_id *id, const struct plan *plan)
{
	struct ibv_qp_init_attr attributes = {
		.cap = { .max_send_wr = SENDS, .max_recv_wr = RECEIVES, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
	};
	struct epoll_event event = { .events = EPOLLIN };

	end->id = id;
	end->size = plan->size;
	end->channel = plan->in_epoll ? ibv_create_comp_channel(id->verbs) : NULL;
	end->completions = ibv_create_cq(id->verbs, ENTRIES, NULL, end->channel, 0);
	need(end->completions, "verbs_ping: completion queue");
	end->epoll = plan->in_epoll ? epoll_create1(0) : -1;
	need(!plan->in_epoll || !epoll_ctl(end->epoll, EPOLL_CTL_ADD, end->channel->fd, &event), "verbs_ping: epoll");
	if (end->channel)
		arm(end);
	attributes.send_cq = attributes.recv_cq = end->completions;
	need(!rdma_create_qp(id, NULL, &attributes), "verbs_ping: queue pair");
	end->memory = calloc(2, end->size);
	need(end->memory, "verbs_ping: memory");
	end->mailbox = rdma_reg_msgs(id, end->messages, sizeof(end->messages));
	end->source = rdma_reg_read(id, end->memory, end->size);
	end->sink = rdma_reg_write(id, end->memory + end->size, end->size);
	need(end->mailbox && end->source && end->sink, "verbs_ping: memory region");
	for (uint64_t index = 0; index < RECEIVES; index++)
		receive(end, index);
}

/* Waits for a message, or the completion of a READ. Returns the message's bytes, valid until the next one. */
static const uint8_t *await(struct end *end, enum ibv_wc_opcode wanted)
{
	struct ibv_wc taken;
	int count;

	for (;;) {
		count = ibv_poll_cq(end->completions, 1, &taken);
		if (!count) {
			if (end->channel)
				sleep_until_completion(end);
			continue;
		}
		need(count > 0, "verbs_ping: poll");
		if (taken.status != IBV_WC_SUCCESS) {
			fprintf(stderr, "verbs_ping: %s\n", ibv_wc_status_str(taken.status));
			exit(1);
		}
		if (taken.opcode == wanted)
			break;
	}
	if (wanted != IBV_WC_RECV)
		return NULL;
	receive(end, taken.wr_id);
	return end->messages[2 + taken.wr_id];
}

static void advertise(struct end *end, unsigned index, bool reported)
{
	need(!rdma_post_send(end->id, NULL, end->messages[index], ADVERTISEMENT_SIZE, end->mailbox,
			     reported ? IBV_SEND_SIGNALED : 0),
	     "verbs_ping: send");
}

static void offer(struct end *end, unsigned index, const struct ibv_mr *region)
{
	struct advertisement advertisement = { (uintptr_t)region->addr, region->rkey, end->size };

	advertisement_write(&advertisement, end->messages[index]);
}

static void ping(struct end *end, long count)
{
	for (long done = 0; done < count; done++) {
		advertise(end, 0, false);
		await(end, IBV_WC_RECV);
		advertise(end, 1, done % REPORT_EVERY == 0);
		await(end, IBV_WC_RECV);
	}
}

static void answer(struct end *end)
{
	struct ibv_sge data = { (uintptr_t)end->memory, end->size, end->source->lkey };
	struct ibv_sge message = { (uintptr_t)end->messages[0], ADVERTISEMENT_SIZE, end->mailbox->lkey };
	struct ibv_send_wr go_ahead = { .sg_list = &message, .num_sge = 1, .opcode = IBV_WR_SEND };
	struct ibv_send_wr write = { .next = &go_ahead, .sg_list = &data, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE };
	struct ibv_send_wr *bad;
	struct advertisement peer;

	advertisement_read(await(end, IBV_WC_RECV), &peer);
	need(peer.size == end->size, "verbs_ping: the sizes differ");
	need(!rdma_post_read(end->id, NULL, end->memory, end->size, end->source, IBV_SEND_SIGNALED, peer.address,
			     peer.key),
	     "verbs_ping: READ");
	await(end, IBV_WC_RDMA_READ);
	advertise(end, 0, false);
	advertisement_read(await(end, IBV_WC_RECV), &peer);
	write.wr.rdma.remote_addr = peer.address;
	write.wr.rdma.rkey = peer.key;
	need(!ibv_post_send(end->id->qp, &write, &bad), "verbs_ping: WRITE");
}

static void hasten(const struct end *end)
{
	struct ibv_qp_attr attributes = { .min_rnr_timer = SOONEST_RETRY };

	need(!ibv_modify_qp(end->id->qp, &attributes, IBV_QP_MIN_RNR_TIMER), "verbs_ping: modify");
}

static void serve(struct rdma_cm_id *id, struct sockaddr *address, const struct plan *plan)
{
	struct rdma_conn_param accepted = parameters();
	struct rdma_cm_id *request;
	struct end end;

	need(!rdma_bind_addr(id, address) && !rdma_listen(id, 1), "verbs_ping: listen");
	need(!rdma_get_request(id, &request), "verbs_ping: request");
	open_end(&end, request, plan);
	need(!rdma_accept(request, &accepted), "verbs_ping: accept");
	hasten(&end);
	for (long done = 0; done < WARM_UP + plan->count; done++)
		answer(&end);
	/* The client leaves when it has its last answer; a disconnect of ours might flush that. */
	need(!rdma_get_cm_event(request->channel, &request->event), "verbs_ping: event");
}

static void join(struct end *end, struct rdma_cm_id *id, struct sockaddr *address, const struct plan *plan)
{
	struct rdma_conn_param asked = parameters();

	need(!rdma_resolve_addr(id, NULL, address, 2000) && !rdma_resolve_route(id, 2000), "verbs_ping: resolve");
	open_end(end, id, plan);
	need(!rdma_connect(id, &asked), "verbs_ping: connect");
	hasten(end);
	offer(end, 0, end->source);
	offer(end, 1, end->sink);
}

static void measure(struct rdma_cm_id *id, struct sockaddr *address, const struct plan *plan)
{
	struct end end;
	int64_t start;

	join(&end, id, address, plan);
	ping(&end, WARM_UP);
	start = clock_now();
	ping(&end, plan->count);
	start = clock_now() - start;
	rdma_disconnect(id);
	printf("%.3f\n", (double)start / (double)plan->count / (double)CLOCK_NS_PER_US);
}

static void hold(struct rdma_cm_id *id, struct sockaddr *address, const struct plan *plan)
{
	struct end *ends = calloc((size_t)plan->count, sizeof(*ends));

	need(ends, "verbs_ping: memory");
	for (long each = 0; each < plan->count; each++) {
		need(!each || !rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), "verbs_ping: id");
		join(&ends[each], id, address, plan);
		ping(&ends[each], 1);
	}
	puts("held");
	fflush(stdout);
	while (getchar() != EOF)
		continue;
}

int main(int argc, char **argv)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(PORT) };
	bool server = argc > 1 && !strcmp(argv[1], "server"), holds = argc > 1 && !strcmp(argv[1], "hold");
	struct plan plan = { .in_epoll = argc > 2 && !strcmp(argv[2], "epoll") };
	struct rdma_cm_id *id;

	if (argc == 6) {
		plan.count = atol(argv[4]);
		plan.size = (uint32_t)atol(argv[5]);
	}
	if (plan.count < 1 || plan.size < 1 || plan.size > PING_SIZE_MAX ||
	    inet_pton(AF_INET, argv[3], &address.sin_addr) != 1 || (!server && !holds && strcmp(argv[1], "client")) ||
	    (!plan.in_epoll && strcmp(argv[2], "poll"))) {
		fprintf(stderr, "usage: verbs_ping server|client|hold poll|epoll ADDRESS COUNT SIZE\n");
		return 2;
	}
	need(!rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP), "verbs_ping: id");
	(server ? serve : holds ? hold : measure)(id, (struct sockaddr *)&address, &plan);
	return 0;
}
