/* SPDX-License-Identifier: BSD-2-Clause */
/* Conformance: how connections begin and end. */
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "test/conformance/pair.h"

CASE(listen_on_any_port)
{
	REQUIRE(bench, bench_listen(bench, NULL));
	REQUIRE(bench, bench->listener->local.port != 0);
	REQUIRE(bench, bench->listener->state == ENDPOINT_LISTENING);
}

CASE(port_in_use)
{
	struct endpoint_options options = bench_options(bench);
	struct endpoint *second;
	struct address address;

	REQUIRE(bench, bench_listen(bench, &options));
	address = bench->listener->local;
	second = end_create(&bench->listening, ENDPOINT_LISTENER, &options);
	REQUIRE(bench, endpoint_listen(second, &address) == OUTCOME_NO_CONNECTION);
	endpoint_destroy(second);
}

CASE(resolve_finds_the_device)
{
	REQUIRE(bench, bench_resolve(bench, NULL));
	REQUIRE(bench, bench->client.records[0].event == EVENT_ADDRESS_RESOLVED);
	REQUIRE(bench, bench->client.records[1].event == EVENT_ROUTE_RESOLVED);
	REQUIRE(bench, bench->client.endpoint->domain->device[0] != '\0');
	REQUIRE(bench, bench->client.endpoint->domain->max_message >= 65536);
	REQUIRE(bench, bench->client.endpoint->qpn != 0);
	REQUIRE(bench, bench->client.endpoint->local.family == bench->address.family);
}

CASE(connect_carries_data_both_ways)
{
	REQUIRE(bench, bench_connect_both(bench));
	REQUIRE(bench, bench->listening.private_length >= 5);
	REQUIRE(bench, !memcmp(bench->listening.private_data, "hello", 5));
	REQUIRE(bench, bench->client.private_length >= 7);
	REQUIRE(bench, !memcmp(bench->client.private_data, "welcome", 7));
	REQUIRE(bench, bench->client.endpoint->state == ENDPOINT_ESTABLISHED);
	REQUIRE(bench, bench->server.endpoint->peer.port == bench->client.endpoint->local.port);
}

CASE(nobody_listens)
{
	enum outcome outcome;

	REQUIRE(bench, bench_resolve(bench, NULL));
	outcome = endpoint_connect(bench->client.endpoint, NULL, 0);
	bench_report(bench);
	if (!outcome) {
		REQUIRE(bench, bench_await_event(bench, &bench->client, EVENT_FAILED));
		outcome = bench->client.records[bench->client.count - 1].outcome;
	}
	REQUIRE(bench, outcome == OUTCOME_NO_CONNECTION);
	REQUIRE(bench, bench->error.kind != ERROR_OTHER);
}

CASE(server_rejects)
{
	bench->accept = false;
	REQUIRE(bench, bench_listen(bench, NULL));
	REQUIRE(bench, bench_resolve(bench, NULL));
	REQUIRE(bench, !endpoint_connect(bench->client.endpoint, NULL, 0));
	REQUIRE(bench, bench_await_event(bench, &bench->client, EVENT_FAILED));
	REQUIRE(bench, bench->client.records[bench->client.count - 1].outcome == OUTCOME_NO_CONNECTION);
	REQUIRE(bench, *bench->error.cause && bench->error.kind == ERROR_OTHER);
	REQUIRE(bench, bench->listener->state == ENDPOINT_LISTENING);
}

CASE(server_never_answers)
{
	struct endpoint_options options = bench_options(bench);
	int64_t start;

	bench->answer_requests = false;
	REQUIRE(bench, bench_listen(bench, &options));
	options.timeout = CLOCK_NS_PER_S / 2;
	REQUIRE(bench, bench_resolve(bench, &options));
	start = clock_now();
	REQUIRE(bench, !endpoint_connect(bench->client.endpoint, NULL, 0));
	REQUIRE(bench, bench_await_event(bench, &bench->client, EVENT_FAILED));
	REQUIRE(bench, bench->client.records[bench->client.count - 1].outcome == OUTCOME_NO_CONNECTION);
	REQUIRE(bench, bench->error.kind == ERROR_NO_REPLY);
	REQUIRE(bench, clock_now() - start >= CLOCK_NS_PER_S / 2);
	REQUIRE(bench, clock_now() - start < 3 * CLOCK_NS_PER_S);
}

/* Before its request is answered. Only some backends report that at once; on others the answer fails. */
CASE(client_withdraws)
{
	struct endpoint_options options = bench_options(bench);
	enum outcome outcome = OUTCOME_OK;

	options.timeout = 0;
	bench->answer_requests = false;
	REQUIRE(bench, bench_listen(bench, &options));
	REQUIRE(bench, bench_resolve(bench, NULL));
	REQUIRE(bench, !endpoint_connect(bench->client.endpoint, NULL, 0));
	REQUIRE(bench, bench_await_event(bench, &bench->listening, EVENT_REQUEST));
	endpoint_destroy(bench->client.endpoint);
	bench->client.endpoint = NULL;
	bench_linger(bench, 50);
	if (!bench->server.count)
		outcome = bench_accept(bench);
	bench_report(bench);
	if (!outcome) {
		REQUIRE(bench, bench_await_event(bench, &bench->server, EVENT_FAILED));
		outcome = bench->server.records[bench->server.count - 1].outcome;
	}
	REQUIRE(bench, outcome == OUTCOME_NO_CONNECTION);
	REQUIRE(bench, *bench->error.cause);
	REQUIRE(bench, bench->server.count <= 1);
	REQUIRE(bench, bench->listener->state == ENDPOINT_LISTENING);
}

/* It has no effect on a reported request; one that arrives at the same time is rejected. */
CASE(listener_is_destroyed_at_a_request)
{
	static struct end other;
	struct endpoint_options options = bench_options(bench);
	const struct end *rejected = &other;

	options.timeout = 0;
	bench->answer_requests = false;
	bench->listening.destroy_at = EVENT_REQUEST;
	REQUIRE(bench, bench_listen(bench, &options));
	REQUIRE(bench, bench_resolve(bench, &options));
	other = bench->client;
	other.endpoint->context = &other;
	region_destroy(bench->client_region);
	bench->client = (struct end){ .bench = bench };
	REQUIRE(bench, bench_resolve(bench, &options));
	bench->listener = NULL;
	REQUIRE(bench, !endpoint_connect(bench->client.endpoint, NULL, 0));
	REQUIRE(bench, !endpoint_connect(other.endpoint, NULL, 0));
	REQUIRE(bench, bench_await_event(bench, &bench->listening, EVENT_REQUEST));
	if (bench->server.endpoint->peer.port == other.endpoint->local.port)
		rejected = &bench->client;
	REQUIRE(bench, bench_await_event(bench, rejected, EVENT_FAILED));
	REQUIRE(bench, rejected->records[rejected->count - 1].outcome == OUTCOME_NO_CONNECTION);
	REQUIRE(bench, !bench_accept(bench));
	REQUIRE(bench, bench_await_event(bench, &bench->server, EVENT_ESTABLISHED));
	REQUIRE(bench, bench_await_event(bench, rejected == &other ? &bench->client : &other, EVENT_ESTABLISHED));
	REQUIRE(bench, end_events(&bench->listening, EVENT_REQUEST) == 1);
	endpoint_destroy(other.endpoint);
}

static void disconnect_from(struct bench *bench, struct end *leaver, struct end *other)
{
	bench->accept_receives = 4;
	REQUIRE(bench, bench_connect_both(bench));
	REQUIRE(bench, !endpoint_disconnect(leaver->endpoint));
	REQUIRE(bench, bench_await_event(bench, other, EVENT_DISCONNECTED));
	REQUIRE(bench, bench_await_event(bench, leaver, EVENT_DISCONNECTED));
	bench_linger(bench, 50);
	/* The posted receives were flushed, which is not reported. */
	REQUIRE(bench, end_completions(&bench->server, WORK_RECEIVE) == 0);
	REQUIRE(bench, end_events(leaver, EVENT_DISCONNECTED) == 1);
	REQUIRE(bench, end_events(other, EVENT_DISCONNECTED) == 1);
}

CASE(client_disconnects)
{
	disconnect_from(bench, &bench->client, &bench->server);
}

CASE(server_disconnects)
{
	disconnect_from(bench, &bench->server, &bench->client);
}

CASE(destroying_tells_the_peer)
{
	REQUIRE(bench, bench_connect_both(bench));
	endpoint_destroy(bench->client.endpoint);
	bench->client.endpoint = NULL;
	REQUIRE(bench, bench_await_event(bench, &bench->server, EVENT_DISCONNECTED));
}

/* Destroys the endpoint in the callback of each event; no event may follow. */
CASE(destroyed_inside_its_events)
{
	static const enum event_kind events[] = { EVENT_ADDRESS_RESOLVED, EVENT_ROUTE_RESOLVED, EVENT_ESTABLISHED };

	REQUIRE(bench, bench_listen(bench, NULL));
	for (size_t index = 0; index < sizeof(events) / sizeof(*events); index++) {
		struct end *client = &bench->client;
		size_t told;

		client->count = 0;
		client->destroy_at = events[index];
		if (events[index] == EVENT_ESTABLISHED) {
			REQUIRE(bench, bench_resolve(bench, NULL));
			REQUIRE(bench, !endpoint_connect(client->endpoint, NULL, 0));
		} else {
			REQUIRE(bench, bench_start_client(bench, NULL));
		}
		REQUIRE(bench, bench_await_event(bench, client, events[index]));
		REQUIRE(bench, client->endpoint == NULL);
		told = client->count;
		bench_linger(bench, 50);
		REQUIRE(bench, client->count == told);
		region_destroy(bench->client_region);
		bench->client_region = NULL;
	}
}

CASE(own_qp)
{
	struct endpoint_options options = bench_options(bench);
	struct work work;

	options.own_qp = true;
	bench->accept_receives = 1;
	REQUIRE(bench, bench_connect(bench, &options));
	work = (struct work){ .kind = WORK_SEND, .region = bench->client_region, .length = 100 };
	REQUIRE(bench, !endpoint_post(bench->client.endpoint, &work, 1));
	REQUIRE(bench, bench_await_completions(bench, &bench->server, WORK_RECEIVE, 1));
	REQUIRE(bench, bench_await_completions(bench, &bench->client, WORK_SEND, 1));
	REQUIRE(bench, end_last_completion(&bench->server, WORK_RECEIVE)->length == 100);
	REQUIRE(bench, !endpoint_disconnect(bench->client.endpoint));
	REQUIRE(bench, bench_await_event(bench, &bench->client, EVENT_DISCONNECTED));
	REQUIRE(bench, bench_await_event(bench, &bench->server, EVENT_DISCONNECTED));
}

CASE(type_of_service)
{
	struct endpoint_options options = bench_options(bench);
	struct path_options path = PATH_OPEN;

	options.path = &path;
	path.type_of_service = 96;
	REQUIRE(bench, bench_connect(bench, &options));
}

CASE(ack_timeout)
{
	struct endpoint_options options = bench_options(bench);
	struct path_options path = PATH_OPEN;

	options.path = &path;
	path.ack_timeout = 14;
	REQUIRE(bench, bench_connect(bench, &options));
}

CASE(migrate_everything)
{
	struct channel *channel;

	REQUIRE(bench, bench_connect_both(bench));
	REQUIRE(bench, !channel_create(bench->transport, &channel));
	REQUIRE(bench, !endpoint_migrate(bench->listener, channel));
	REQUIRE(bench, !endpoint_migrate(bench->client.endpoint, channel));
	REQUIRE(bench, !endpoint_migrate(bench->server.endpoint, channel));
	bench->channel = channel;
	REQUIRE(bench, !endpoint_disconnect(bench->server.endpoint));
	REQUIRE(bench, bench_await_event(bench, &bench->client, EVENT_DISCONNECTED));
	REQUIRE(bench, bench_await_event(bench, &bench->server, EVENT_DISCONNECTED));
	/* The listener takes a new client on the new channel. */
	endpoint_destroy(bench->client.endpoint);
	endpoint_destroy(bench->server.endpoint);
	bench->client.count = bench->server.count = 0;
	bench->server.endpoint = NULL;
	region_destroy(bench->client_region);
	REQUIRE(bench, bench_resolve(bench, NULL));
	REQUIRE(bench, !endpoint_connect(bench->client.endpoint, NULL, 0));
	REQUIRE(bench, bench_await_event(bench, &bench->client, EVENT_ESTABLISHED));
}

/* The kernel moves pending events with the id; they are reported once, on the new channel. */
CASE(migrate_with_a_waiting_event)
{
	struct channel *channel;

	REQUIRE(bench, bench_connect_both(bench));
	REQUIRE(bench, !channel_create(bench->transport, &channel));
	REQUIRE(bench, !endpoint_disconnect(bench->server.endpoint));
	REQUIRE(bench, !endpoint_migrate(bench->client.endpoint, channel));
	REQUIRE(bench, bench_await_event(bench, &bench->client, EVENT_DISCONNECTED));
	bench_linger(bench, 50);
	REQUIRE(bench, end_events(&bench->client, EVENT_DISCONNECTED) == 1);
}

CASE(device_removed, .removal = true)
{
	bench->accept_receives = 4;
	REQUIRE(bench, bench_connect_both(bench));
	REQUIRE(bench, system(bench->remove_command) == 0);
	REQUIRE(bench, bench_await_event(bench, &bench->client, EVENT_FAILED));
	REQUIRE(bench, bench_await_event(bench, &bench->server, EVENT_FAILED));
	REQUIRE(bench, bench->client.records[bench->client.count - 1].outcome == OUTCOME_FAILED);
	REQUIRE(bench, end_events(&bench->client, EVENT_FAILED) == 1);
	REQUIRE(bench, bench->client.endpoint->domain->removed);
}
