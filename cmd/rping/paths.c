/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/rping/paths.h"

#include <inttypes.h>
#include <stdlib.h>

#include "core/terminal.h"
#include "core/units.h"

enum {
	MANY_LOSSES = 3, /* times the losses of the best eighth of the paths */
	MORE_LOSSES = 3, /* and this many more: smaller differences are chance if all paths lose packets */
	GOOD_LOSSES = 2, /* at most this many times: beyond it a path is neither good nor worse */
	SLOW = 2,	 /* times the round trip of the fastest third */
	SLOW_COUNT = 10, /* pings, the minimum for a verdict */
	FEW = 10,	 /* below this part of the usual pings in the same time */
	NAMED_MAX = 16,	 /* paths, in the verdict */
};

/* Connections that share a processor differ by this much. */
#define SLOW_LEAST (100 * CLOCK_NS_PER_US)

struct usual {
	uint64_t losses;     /* maximum of the best eighth of a server's paths */
	uint64_t round_trip; /* maximum of the fastest third: most paths may have the slow router */
	uint64_t pings;	     /* minimum of the third with the most */
};

static int compare_numbers(const void *one, const void *other)
{
	uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;

	return (a > b) - (a < b);
}

/* The highest of the lowest 1/parts of the values. */
static uint64_t lowest(uint64_t *values, size_t count, size_t parts)
{
	qsort(values, count, sizeof(*values), compare_numbers);
	return count ? values[(count - 1) / parts] : 0;
}

static uint64_t highest(uint64_t *values, size_t count, size_t parts)
{
	lowest(values, count, parts);
	return count ? values[count - 1 - (count - 1) / parts] : 0;
}

static uint64_t middle_round_trip(const struct target *path)
{
	return (uint64_t)histogram_percentile(path->histogram, 500);
}

static uint64_t losses_of(const struct target *path)
{
	return (uint64_t)path->losses.out + path->losses.back;
}

static struct usual usual_of(const struct target *path, int64_t count)
{
	uint64_t losses[UDP_SENDERS_MAX], round_trips[UDP_SENDERS_MAX], pings[UDP_SENDERS_MAX];
	size_t good = 0;

	for (; count; count--, path = path->next) {
		if (path->failed || !path->histogram->all.count)
			continue;
		losses[good] = losses_of(path);
		pings[good] = path->histogram->all.count;
		round_trips[good++] = middle_round_trip(path);
	}
	return (struct usual){ lowest(losses, good, 8), lowest(round_trips, good, 3), highest(pings, good, 3) };
}

static const char *compare(const struct target *path, struct usual usual)
{
	uint64_t round_trip = middle_round_trip(path);

	if (path->failed)
		return "failed";
	if (losses_of(path) > MANY_LOSSES * (usual.losses + MORE_LOSSES))
		return "lost packets";
	/* It is slow, or waits for lost packets. */
	if (path->histogram->all.count < usual.pings / FEW)
		return "slow";
	/* A lasting difference: nearly all of its pings. */
	if (path->histogram->all.count >= SLOW_COUNT && round_trip > SLOW * usual.round_trip + SLOW_LEAST &&
	    (uint64_t)histogram_percentile(path->histogram, 100) > usual.round_trip)
		return "slow";
	return NULL;
}

static void print_header(const struct target *path, bool narrow)
{
	run_print(path->peer.run, "path  %s   pings%s      p50%s", path->udp ? "UDP port" : " CM port       QPN",
		  path->udp ? "  losses" : "", narrow ? "" : "      p99      max");
}

static void print_path(const struct target *path, unsigned number, bool narrow)
{
	const struct histogram *times = path->histogram;
	char p50[UNITS_TEXT_SIZE] = "-", p99[UNITS_TEXT_SIZE] = "-", max[UNITS_TEXT_SIZE] = "-";
	char qpn[16] = "", losses[24] = "", others[2 * UNITS_TEXT_SIZE];
	struct losses of_path;

	if (target_losses(path, &of_path))
		log_text(losses, sizeof(losses), "  %6" PRIu64, losses_of(path));
	else if (path->udp)
		log_text(losses, sizeof(losses), "  %6s", "-");
	else
		log_text(qpn, sizeof(qpn), "  0x%06" PRIx32, path->qpn);
	if (times->all.count) {
		units_time(histogram_percentile(times, 500), p50);
		if (histogram_has(times, 990))
			units_time(histogram_percentile(times, 990), p99);
		units_time(times->all.maximum, max);
	}
	log_text(others, sizeof(others), "  %7s  %7s", p99, max);
	run_print(path->peer.run, "%4u  %8u%s  %6" PRIu64 "%s  %7s%s%s%s", number, path->port, qpn,
		  path->counts.answered.count, losses, p50, narrow ? "" : others, path->worse ? "  " : "",
		  path->worse ? path->worse : "");
}

/* One line per server. On a narrow terminal a row has only the figures that compare() uses. */
static void print_tables(const struct rping_client *client)
{
	size_t count = (size_t)client->options->paths, index = 0;
	size_t width = terminal_width(fileno(client->run->output->stream));
	bool narrow = width && width < TERMINAL_WIDTH;

	for (const struct target *path = client->targets; path; path = path->next, index++) {
		if (index % count == 0 && client->count > count)
			run_print(client->run, "%s:", path->peer.name);
		if (index % count == 0)
			print_header(path, narrow);
		print_path(path, (unsigned)(index % count) + 1, narrow);
	}
}

static void name_worse(const struct rping_client *client, unsigned count, char worse[RPING_WORSE_SIZE])
{
	unsigned named = 0;

	if (count == client->count)
		return; /* there are no others */
	if (client->count > (size_t)client->options->paths) {
		log_text(worse, RPING_WORSE_SIZE, "; %u worse than the others", count);
		return;
	}
	log_text(worse, RPING_WORSE_SIZE, "; worse than the others: %s port%s", client->targets->udp ? "UDP" : "CM",
		 units_plural(count));
	for (const struct target *path = client->targets; path && named < NAMED_MAX; path = path->next)
		if (path->worse)
			log_add(worse, RPING_WORSE_SIZE, named++ ? ", " : " ", "%u", path->port);
	if (count > named)
		log_add(worse, RPING_WORSE_SIZE, " and ", "%u more", count - named);
}

/* A failed path has its own hint. */
static void hint_at_routers(const struct target *path)
{
	const struct dial_options *dial = &path->dial.options;
	const struct run *run = path->peer.run;
	char words[PATH_WORDS_SIZE];

	if (!COMMAND_doctor || !path->udp || run->ping)
		return;
	common_path_words(run->command->options, run->given, dial->common, words);
	log_hint(&run->log, "to find their routers: rdmatest doctor %s -p %u --paths %" PRId64 "%s --transport %s",
		 dial->host, dial->port, path->peer.options->paths, words, transport_name(run->transport));
}

/* For the parent command. */
static void leave_path(const struct target *path, unsigned index, struct usual usual)
{
	struct ping_facts *facts = path->peer.run->ping;
	struct path_facts *left = HAS_CHILD_RUNS && facts && index < facts->path_count ? &facts->paths[index] : NULL;

	if (!left)
		return;
	*left = (struct path_facts){
		.port = path->udp ? path->port : 0,
		.worse = path->worse,
		.good = !path->worse && losses_of(path) <= GOOD_LOSSES * usual.losses,
		.answered = peer_answered(&path->peer),
		.failed = path->failed,
		.lost_out = path->losses.out > 0,
		.lost_back = path->losses.back > 0,
	};
	if (path->refused && path->error)
		log_text(left->refusal, sizeof(left->refusal), "%s", path->error);
}

bool rping_compare_paths(const struct rping_client *client, char worse[RPING_WORSE_SIZE])
{
	int64_t count = client->options->paths;
	struct target *path = client->targets, *connected = NULL;
	unsigned worse_count = 0;

	*worse = '\0';
	while (path) {
		struct usual usual = usual_of(path, count);

		for (unsigned index = 0; index < count; index++, path = path->next) {
			path->worse = compare(path, usual);
			leave_path(path, index, usual);
			worse_count += path->worse != NULL;
			if (path->worse && !path->failed)
				connected = path;
		}
	}
	reporting_end_last_interval(client->run->reporting);
	print_tables(client);
	if (worse_count)
		name_worse(client, worse_count, worse);
	if (connected)
		hint_at_routers(connected);
	return worse_count;
}
