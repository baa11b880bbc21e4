/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The paths to ADDRESS: pings over each, and each path's routers, which show where a worse path differs from the
 * others.
 *
 *   a refusal, or another error         that
 *   ends at an earlier router           its packets are lost behind that router
 *   long packets end earlier            long ones are lost behind that router
 *   packets are lost on the way there   the first router that no good path has
 *   late, in either direction           that router, or the way back
 *   nothing passes, all routers answer  the way back, which is traced from there
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/param.h>

#include "cmd/doctor/doctor.h"
#include "core/route.h"
#include "core/units.h"

enum {
	/*
	 * Per path. If every hundredth packet is lost, some 20 losses are noticed, of which 9 may be chance
	 * (rping/paths.c).
	 */
	PINGS = 800,
	PINGS_FEW = PINGS / 2,
	SECONDS = 3, /* for these pings, at most */
	SECONDS_MORE = 10,
	ROCE_OVERHEAD = 28, /* BTH, RETH and ICRC, beside a payload */
	LIST_SIZE = 320,
};

struct paths {
	struct doctor *doctor;
	struct address peer;
	size_t count;
	bool routed; /* a router is on the way */
	bool failed; /* no path passes */
	struct path_facts facts[UDP_SENDERS_MAX];
	struct trace traces[UDP_SENDERS_MAX]; /* with short packets */
	struct trace long_traces[UDP_SENDERS_MAX];
	bool ends_early[UDP_SENDERS_MAX], long_ends_early[UDP_SENDERS_MAX];
	bool reported[UDP_SENDERS_MAX];
};

/* ---- texts ---- */

static bool same_router(const struct address *one, const struct address *other)
{
	return one->family && address_same_host(one, other);
}

static const char *router_text(const struct address *router, char text[ADDRESS_TEXT_SIZE])
{
	return router->family ? address_host(router, text) : "*";
}

/* ---- common routers ---- */

static bool same_routers(const struct trace *one, const struct trace *other)
{
	if (one->hops != other->hops)
		return false;
	for (unsigned hop = 0; hop < one->hops; hop++)
		if (!address_same_host(&one->routers[hop], &other->routers[hop]))
			return false;
	return true;
}

/* Routers limit their answers. If all other paths have one router at a hop, so has a path without an answer. */
static void fill_common(struct paths *paths, unsigned hop)
{
	const struct address *common = NULL;

	for (size_t i = 0; i < paths->count; i++) {
		const struct address *router = &paths->traces[i].routers[hop];

		if (router->family && common && !address_same_host(router, common))
			return;
		if (router->family)
			common = router;
	}
	for (size_t i = 0; common && i < paths->count; i++)
		if (hop < paths->traces[i].hops)
			paths->traces[i].routers[hop] = *common;
}

static bool good_path_has(const struct paths *paths, const struct address *router)
{
	for (size_t i = 0; i < paths->count; i++)
		if (paths->facts[i].good && trace_has(&paths->traces[i], router))
			return true;
	return false;
}

/* The path's first router that no good path has; NULL: none. Sets whether the one before it is silent. */
static const struct address *own_router(const struct paths *paths, size_t index, bool *silent)
{
	const struct trace *trace = &paths->traces[index];

	for (unsigned hop = 0; hop < trace->hops; hop++) {
		*silent = hop && !trace->routers[hop - 1].family;
		if (trace->routers[hop].family && !good_path_has(paths, &trace->routers[hop]))
			return &trace->routers[hop];
	}
	return NULL;
}

/* The hops up to a router that has also answered at an earlier hop; 0: none. */
static unsigned hops_of_loop(const struct trace *trace)
{
	for (unsigned hop = 2; hop < trace->hops; hop++)
		for (unsigned before = 0; before + 1 < hop; before++)
			if (same_router(&trace->routers[before], &trace->routers[hop]))
				return hop + 1;
	return 0;
}

/* The last answering router; NULL: none. */
static const struct address *last_router(const struct trace *trace)
{
	return trace->hops ? &trace->routers[trace->hops - 1] : NULL;
}

static unsigned longest(const struct paths *paths)
{
	unsigned hops = 0;

	for (size_t i = 0; i < paths->count; i++)
		if (paths->traces[i].hops > hops)
			hops = paths->traces[i].hops;
	return hops;
}

/* ---- the findings ---- */

/* Where the packets of a bad path are lost, as far as that is known. */
static const char *locate(const struct paths *paths, size_t index, char text[LIST_SIZE])
{
	const struct trace *trace = &paths->traces[index], *of_long = &paths->long_traces[index];
	const struct path_facts *facts = &paths->facts[index];
	const struct address *router = NULL;
	char host[ADDRESS_TEXT_SIZE];
	bool silent = false;

	if (*facts->refusal)
		return facts->refusal;
	if (paths->ends_early[index]) {
		router = last_router(trace);
		if (router)
			return log_text(text, LIST_SIZE, "packets end behind %s", address_host(router, host));
		return "packets do not reach the first router";
	}
	if (paths->long_ends_early[index]) {
		router = last_router(of_long);
		if (router)
			return log_text(text, LIST_SIZE,
					"packets of the path MTU, or the answers that quote them, end behind %s, but "
					"short ones pass",
					address_host(router, host));
	}
	if (!paths->routed)
		return "there is no router: the link or one of the hosts loses them";
	if (facts->lost_back && !facts->lost_out)
		return "they were lost on the way back: run rdmatest doctor there";
	if (!facts->answered && !facts->lost_out)
		return trace->hops ? "every router on the way there answers: run rdmatest doctor there, to check the "
				     "way back; or if some packets pass, use a longer --timeout"
				   : "its routers are not known";
	router = own_router(paths, index, &silent);
	if (router)
		return log_text(text, LIST_SIZE, "%s is the first router that no good path has%s%s",
				address_host(router, host), silent ? "; the one before it does not answer" : "",
				facts->lost_out ? "" : "; or the fault is on the way back");
	return "no router that answers is only on these paths: run rdmatest doctor there, to check the way back";
}

/* One finding for all bad paths with the same verdict. */
static void report_worse(struct paths *paths, size_t first)
{
	const struct path_facts *facts = &paths->facts[first];
	char list[LIST_SIZE] = "", text[LIST_SIZE], other[LIST_SIZE];
	const char *where = locate(paths, first, text);
	unsigned count = 0;

	for (size_t i = first; i < paths->count; i++) {
		if (!paths->facts[i].worse || strcmp(paths->facts[i].worse, facts->worse) != 0 ||
		    strcmp(locate(paths, i, other), where) != 0)
			continue;
		log_add(list, LIST_SIZE, ", ", "%u", paths->traces[i].port);
		paths->reported[i] = true;
		count++;
	}
	finding_add(paths->doctor, facts->failed ? FINDING_FAIL : FINDING_WARN, "path",
		    "%u of %zu %s (UDP port%s %s): %s", count, paths->count, facts->worse, units_plural(count), list,
		    where);
}

/* One line for all paths with the same routers. */
static void report_routers(struct paths *paths, size_t first)
{
	const struct trace *trace = &paths->traces[first];
	char ports[LIST_SIZE] = "", routers[LIST_SIZE] = "", host[ADDRESS_TEXT_SIZE];
	/* A late answer that does not quote its packet counts for a later hop. If pings pass, there is no loop. */
	unsigned loop = paths->failed ? hops_of_loop(trace) : 0, count = 0;
	enum finding_status status = FINDING_OK;
	const char *end = "";

	for (size_t i = first; i < paths->count; i++) {
		if (paths->reported[i] || !same_routers(&paths->traces[i], trace))
			continue;
		paths->reported[i] = true;
		count++;
		log_add(ports, LIST_SIZE, ", ", "%u", paths->traces[i].port);
	}
	for (unsigned hop = 0; hop < (loop ? loop : trace->hops); hop++)
		log_add(routers, LIST_SIZE, ", ", "%s", router_text(&trace->routers[hop], host));
	if (loop) {
		status = FINDING_FAIL;
		log_add(routers, LIST_SIZE, ", ", "...");
		end = ": a routing loop\nip route get, on each of them";
	} else if (paths->failed && paths->doctor->unexplained && trace->hops) {
		status = FINDING_WARN;
		end = ": packets end behind the last one\nip route get, there and on the next one; is its host up?";
	} else if (paths->failed && paths->routed && trace->asked && !trace->hops) {
		status = FINDING_WARN;
		end = "\nip route get, ip neigh: is the gateway right, and up?";
	}
	finding_add(paths->doctor, status, "routers", "%s (UDP port%s %s)%s",
		    trace->hops	     ? routers
		    : !paths->routed ? "none: it is on this link"
		    : trace->asked   ? "none answers"
				     : "not traced: another process has the port",
		    units_plural(count), ports, end);
}

/* ---- attempts ---- */

/* No path failed, and too few pings were answered on each to show few losses: a distant or busy host is slow. */
static bool few_pings(const struct paths *paths)
{
	uint64_t most = 0;

	for (size_t i = 0; i < paths->count; i++) {
		if (paths->facts[i].failed)
			return false;
		most = MAX(most, paths->facts[i].answered);
	}
	return most < PINGS_FEW;
}

static void ping_for(struct paths *paths, int seconds, struct path_facts *of_paths)
{
	struct child_run ping = { .running = false };
	struct ping_facts facts = { .paths = of_paths, .path_count = paths->count };
	char options[64], host[ADDRESS_TEXT_SIZE];

	log_text(options, sizeof(options), "-C %d --duration %ds -S %" PRIu32 " --paths %zu", PINGS, seconds,
		 paths->doctor->mtu, paths->count);
	ping_send(paths->doctor, address_host(&paths->peer, host), options, &ping, &facts);
	child_run_free(&ping);
}

/* Pings passed, and then one did not, or few did: a host that was busy for a moment does that, too. */
static bool is_uncertain(const struct path_facts *facts)
{
	return facts->worse && facts->answered && strcmp(facts->worse, "lost packets") != 0;
}

/* Such a path is bad only if a second attempt agrees, as long as the first: in less it may have too few pings. */
static void ping_uncertain(struct paths *paths, int seconds)
{
	struct path_facts again[UDP_SENDERS_MAX] = { 0 };
	bool uncertain = false;

	for (size_t i = 0; i < paths->count; i++)
		uncertain |= is_uncertain(&paths->facts[i]);
	if (!uncertain)
		return;
	ping_for(paths, seconds, again);
	for (size_t i = 0; i < paths->count; i++)
		if (is_uncertain(&paths->facts[i]) && again[i].answered && !again[i].worse)
			paths->facts[i] = again[i];
}

/* Pings over each path, with the path MTU if the server takes that, to find paths that do not pass it. */
static void ping_paths(struct paths *paths)
{
	struct doctor *doctor = paths->doctor;
	unsigned worse = 0, failed = 0;
	int seconds = SECONDS;
	struct error error;

	ping_for(paths, seconds, paths->facts);
	if (few_pings(paths))
		ping_for(paths, seconds = SECONDS_MORE, paths->facts);
	error = doctor->probe.errors.first;
	ping_uncertain(paths, seconds);
	for (size_t i = 0; i < paths->count; i++) {
		if (paths->facts[i].port)
			paths->traces[i].port = paths->facts[i].port;
		worse += paths->facts[i].worse && !paths->facts[i].port;
		failed += paths->facts[i].failed;
	}
	paths->failed &= failed == paths->count;
	if (failed == paths->count)
		finding_add(doctor, FINDING_FAIL, "path", "none of %zu passes: %s", paths->count, error.cause);
	else if (worse)
		finding_add(doctor, failed ? FINDING_FAIL : FINDING_WARN, "path",
			    "%u of %zu worse than the others, at unknown UDP ports%s", worse, paths->count,
			    doctor->verbs_selected ? ": a card chooses its own; rping --paths shows which connections"
						   : "");
	else
		return;
	memset(paths->facts, 0, sizeof(paths->facts));
}

static bool same_end(const struct trace *one, const struct trace *other)
{
	return one->hops == other->hops && (!one->hops || same_router(last_router(one), last_router(other)));
}

/*
 * Failed paths that end before the others: the next router may merely have reached its answer limit. Tries it again,
 * for one path per such router: once, and as long as --timeout lasts up to three more times with a pause.
 */
static void check_ends(struct paths *paths)
{
	size_t count = 0, of[UDP_SENDERS_MAX];
	struct trace traces[UDP_SENDERS_MAX];
	unsigned hops = longest(paths);

	for (size_t i = 0; i < paths->count; i++) {
		bool known = false;

		paths->ends_early[i] = paths->facts[i].failed && paths->traces[i].asked && paths->traces[i].hops < hops;
		for (size_t j = 0; j < count; j++)
			known |= same_end(&paths->traces[of[j]], &paths->traces[i]);
		if (!paths->ends_early[i] || known)
			continue;
		of[count] = i;
		traces[count] = paths->traces[i];
		traces[count++].limit = hops;
	}
	if (count)
		trace_routers(paths->doctor, &paths->peer, 0, traces, count);
	for (size_t j = 0; j < count; j++)
		for (size_t i = 0; i < paths->count; i++)
			if (traces[j].hops > paths->traces[of[j]].hops &&
			    same_end(&paths->traces[of[j]], &paths->traces[i]))
				paths->ends_early[i] = false;
}

/*
 * Traces paths without an answered ping with packets as long as the pings. Sends long packets only to routers that
 * answer short ones, so that none reaches the host.
 */
static void trace_long(struct paths *paths)
{
	size_t count = 0, of[UDP_SENDERS_MAX];
	struct trace traces[UDP_SENDERS_MAX];

	for (size_t i = 0; i < paths->count; i++) {
		if (paths->facts[i].answered || !paths->facts[i].worse || !paths->traces[i].hops ||
		    *paths->facts[i].refusal || paths->ends_early[i])
			continue;
		of[count] = i;
		traces[count++] = (struct trace){ .port = paths->traces[i].port, .limit = paths->traces[i].hops };
	}
	if (count)
		trace_routers(paths->doctor, &paths->peer, paths->doctor->mtu + ROCE_OVERHEAD, traces, count);
	for (size_t i = 0; i < count; i++) {
		paths->long_traces[of[i]] = traces[i];
		/* By its last router, not by the number of hops: a late answer may count for a later hop. */
		paths->long_ends_early[of[i]] =
			traces[i].asked && !trace_has(&traces[i], last_router(&paths->traces[of[i]]));
	}
}

/* Sets doctor->local. Returns false if there are no routers on the way. */
static bool is_routed(struct doctor *doctor, const struct endpoint *target, const struct address *peer)
{
	struct address source = *doctor->source.addresses;
	struct route route;

	if (path_find_source(target, peer->family, &source) || !route_look_up(peer, &source, &route))
		return false;
	doctor->local = address_is_any(&source) ? route.source : source;
	return !address_is_any(&route.gateway);
}

void paths_trace(struct doctor *doctor, const struct endpoint *target, const struct address *peer)
{
	const struct doctor_options *options = doctor->options;
	uint16_t first = (uint16_t)(options->udp_port			       ? options->udp_port
				    : options->paths || doctor->verbs_selected ? UDP_PORT_FIRST
									       : UDP_PORT_ROCE);
	bool routed = is_routed(doctor, target, peer);
	struct paths *paths;

	free(doctor->paths);
	doctor->paths = NULL;
	if (!routed && !options->paths)
		return;
	paths = doctor->paths = run_allocate(doctor->run, 1, sizeof(*paths));
	if (!paths)
		return;
	paths->doctor = doctor;
	paths->peer = *peer;
	paths->routed = routed;
	paths->count = options->paths ? (size_t)options->paths : 1;
	for (size_t i = 0; i < paths->count; i++)
		paths->traces[i].port = (uint16_t)(first + i);
	if (routed && !options->paths)
		trace_routers(doctor, peer, 0, paths->traces, paths->count);
}

void paths_check(struct doctor *doctor)
{
	struct paths *paths = doctor->paths;
	unsigned hops;

	if (!paths)
		return;
	paths->failed = doctor->unanswered;
	if (doctor->options->paths)
		ping_paths(paths);
	if (paths->routed) {
		/* The ports are known now. */
		if (doctor->options->paths)
			trace_routers(doctor, &paths->peer, 0, paths->traces, paths->count);
		check_ends(paths);
		trace_long(paths);
	}
	hops = longest(paths);
	/* A passing path has as many routers as the longest one. */
	for (size_t i = 0; i < paths->count; i++)
		if (paths->traces[i].hops && paths->facts[i].port && !paths->facts[i].failed)
			paths->traces[i].hops = hops;
	for (unsigned hop = 0; hop < hops; hop++)
		fill_common(paths, hop);
	for (size_t i = 0; i < paths->count; i++)
		if (!paths->reported[i])
			report_routers(paths, i);
	memset(paths->reported, 0, sizeof(paths->reported));
	for (size_t i = 0; i < paths->count; i++)
		if (paths->facts[i].worse && !paths->reported[i])
			report_worse(paths, i);
}
