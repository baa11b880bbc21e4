/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The receiver: every member gets a copy of every datagram, and expects -C of them from every sending QP. The run waits
 * for its first datagram without a limit. It ends GRACE after all expected datagrams have arrived, or after
 * --idle-timeout without a new one; at once if the first sender has another -C or -S.
 *
 * A datagram whose immediate data is not its sender's QP number is foreign traffic: every mckey, including the stock
 * one, sends its QP number. So is a further sender's datagram with another -C or -S than the first one's. Foreign
 * datagrams are counted, and do not fail the run. An mckey datagram with damaged immediate data counts as foreign, and
 * is therefore missing.
 */
#include <inttypes.h>

#include "cmd/mckey/mckey.h"

/*
 * The run waits this long for another sender: the QPs of a stock sender with -c send one after another, and the second
 * may start when the first has finished.
 */
#define GRACE (200 * CLOCK_NS_PER_MS)

static enum outcome receiver_post(struct member *member, uint32_t slot)
{
	const struct work work = {
		.kind = WORK_RECEIVE,
		.tag = slot,
		.region = member->region,
		.offset = (size_t)slot * member->slot_size,
		.length = member->slot_size,
	};

	return endpoint_post(member->endpoint, &work, 1);
}

enum outcome receiver_prepare(struct member *member)
{
	enum outcome outcome = OUTCOME_OK;

	member->slots = member->endpoint->options.receive_depth; /* the device may support less */
	for (uint32_t slot = 0; !outcome && slot < member->slots; slot++)
		outcome = receiver_post(member, slot);
	return outcome;
}

int64_t receiver_time_left(struct mckey *mckey)
{
	int64_t limit = mckey->incomplete ? mckey->options->idle_timeout : GRACE,
		left = mckey->progress + limit - clock_now();
	char text[UNITS_TEXT_SIZE];

	if (left > 0)
		return left;
	if (WITH_DIAGNOSTICS && mckey->incomplete)
		mckey->cause = log_text(mckey->silence, sizeof(mckey->silence), ": no datagram for %s (--idle-timeout)",
					units_duration(limit, text));
	return 0;
}

/* Every member expects -C datagrams from a new sender. Returns NULL after an error. */
static struct sender *add_sender(struct mckey *mckey, uint32_t qpn, const struct address *address)
{
	struct senders *senders = &mckey->senders;
	size_t size = sizeof(struct sender) + senders->members * sizeof(struct flow);
	struct sender *sender;

	if (senders->count == SENDERS_MAX || (senders->count + 1) * senders->members > FLOWS_MAX) {
		log_error(mckey->log, mckey->figures.target, "more than %u senders", senders->count);
		return NULL;
	}
	sender = run_allocate(mckey->run, 1, size);
	if (!sender) {
		run_record_outcome(mckey->run, OUTCOME_INTERNAL);
		return NULL;
	}
	sender->qpn = qpn;
	sender->address = *address;
	sender_add(senders, sender);
	mckey->incomplete += senders->members;
	mckey->recheck = true;
	return sender;
}

static void report_wrong(const struct mckey *mckey, const struct sender *sender, const char *option, uint64_t number,
			 uint64_t expected)
{
	char name[SENDER_NAME_SIZE];

	log_error(mckey->log, sender_name(sender, name), "sends with %s %" PRIu64 ": expected %s %" PRIu64, option,
		  number, option, expected);
}

/* Of a sender's damaged datagrams only the first is reported. difference: NULL if it is intact. */
static void report_faults(const struct mckey *mckey, const struct sender *sender, uint32_t length,
			  const struct datagram_mark *mark, const struct payload_difference *difference)
{
	char name[SENDER_NAME_SIZE];

	if (length != mckey->figures.size)
		report_wrong(mckey, sender, "-S", length, mckey->figures.size);
	else if (mckey->differs)
		report_wrong(mckey, sender, "-C", mark->total, mckey->count);
	if (difference && sender->counts.damaged == 1)
		log_error(mckey->log, sender_name(sender, name),
			  "a datagram is damaged: byte %zu is 0x%02x instead of 0x%02x", difference->position,
			  difference->found, difference->expected);
}

static bool has_mark(const struct member *member, const struct completion *completion)
{
	return completion->length <= member->slot_size - DATAGRAM_HEADER_SIZE && completion->has_immediate &&
	       completion->immediate == completion->source_qpn;
}

static enum outcome count_foreign(struct mckey *mckey)
{
	mckey->figures.foreign++;
	return OUTCOME_OK;
}

/* A stock sender's datagrams beyond -C are not progress: a run that misses another sender's datagrams must end. */
static void count_progress(struct mckey *mckey, const struct flow *flow)
{
	if (flow->arrived > mckey->count)
		return;
	mckey_figures_counted(mckey, flow->arrived == 1);
	if (flow->arrived == mckey->count && !--mckey->incomplete)
		mckey->recheck = true;
}

/* Finds the datagram's sender and flow, and counts it there. A later sender with another -C or -S is another test's. */
static enum outcome count_datagram(struct member *member, const struct completion *completion, const uint8_t *slot)
{
	struct mckey *mckey = member->mckey;
	uint32_t length = completion->length, qpn = completion->source_qpn;
	bool may_be_ip4 = mckey->group.family == ADDRESS_IP4 && member->endpoint->domain->fabric != FABRIC_INFINIBAND;
	struct address address = { 0 };
	struct payload_difference difference;
	struct datagram_mark mark;
	struct sender *sender;
	struct flow *flow;
	bool intact, differs;

	if (!has_mark(member, completion))
		return count_foreign(mckey);
	datagram_source(slot, may_be_ip4, &address);
	intact = datagram_read(slot + DATAGRAM_HEADER_SIZE, length, mckey->pattern, qpn, &mark, &difference);
	differs = length != mckey->figures.size || (mark.total && mark.total != mckey->count);
	sender = sender_find(&mckey->senders, qpn, &address);
	if (!sender && mckey->senders.count && differs)
		return count_foreign(mckey);
	if (!sender && !(sender = add_sender(mckey, qpn, &address)))
		return OUTCOME_FAILED;
	flow = &sender->flows[member - mckey->members];
	if (!flow_count(flow, sender, &mark, !intact))
		return OUTCOME_OK;
	mckey->differs = differs;
	if (WITH_DIAGNOSTICS && (differs || !intact))
		report_faults(mckey, sender, length, &mark, intact ? NULL : &difference);
	if (differs)
		return OUTCOME_FAILED;
	count_progress(mckey, flow);
	return OUTCOME_OK;
}

enum outcome receiver_completed(struct member *member, const struct completion *completion)
{
	const uint8_t *slot = member->region->memory + (size_t)completion->tag * member->slot_size;
	enum outcome outcome = count_datagram(member, completion, slot);

	return outcome ? outcome : receiver_post(member, completion->tag);
}

static void report_missing(const struct mckey *mckey, const struct sender *sender)
{
	const struct counts counts = sender_counts(&mckey->senders, sender, mckey->expected);
	uint64_t all = counts.received + counts.lost;
	char name[SENDER_NAME_SIZE];

	sender_name(sender, name);
	if (counts.lost)
		log_error(mckey->log, name, "%" PRIu64 " of %" PRIu64 " datagram%s did not arrive%s", counts.lost, all,
			  units_plural(all), mckey->cause ? mckey->cause : "");
	if (counts.damaged)
		log_error(mckey->log, name, "%" PRIu64 " damaged datagram%s", counts.damaged,
			  units_plural(counts.damaged));
}

void receiver_result(struct mckey *mckey, struct mckey_result *result)
{
	const struct senders *senders = &mckey->senders;
	const struct sender *sender = senders->found;
	struct counts all;

	/* For a sender with another -C or -S only gaps are losses. */
	mckey->expected = mckey->differs ? 0 : mckey->count;
	all = senders_counts(senders, mckey->expected);
	*result = (struct mckey_result){ all.received, all.received + all.lost, "datagram", "received", "", "", NULL };
	if (!senders->count)
		result->asked = mckey->figures.asked * mckey->count;
	if (all.damaged)
		run_record_outcome(mckey->run, OUTCOME_FAILED);
	for (size_t i = 0; WITH_DIAGNOSTICS && i < senders->count; i++) {
		sender = sender->next;
		report_missing(mckey, sender);
	}
	/* It destroys its QP at once, and soft-RoCE drops its unsent datagrams. */
	if (WITH_DIAGNOSTICS && !senders->count && !transport_opens_devices(transport_name(mckey->run->transport)))
		result->hint =
			WITH_EXTRAS && drops_of_groups(&mckey->run->transport->drops,
						       mckey->group.family == ADDRESS_IP6,
						       mckey->count * (uint64_t)mckey->options->size, mckey->arrived)
				? mckey->arrived
				: "is there a sender in this network? routers may block multicast, and switches that "
				  "snoop IGMP or MLD need a querier";
	else if (WITH_DIAGNOSTICS && (!senders->count || (all.lost && all.unnumbered)))
		result->hint = "a stock mckey -s on soft-RoCE loses datagrams: run rdmatest mckey -s there";
	if (mckey->differs)
		result->note = ", a sender has another -C or -S";
	else if (all.damaged)
		result->note = ", some of them damaged";
	else if (!mckey->run->outcome && result->done == result->asked)
		result->note = all.unnumbered ? ", number and length verified" : ", every byte verified";
}
