/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counters of the ports in use; as text only those that show a loss, congestion or a bad link, in words. It is only a
 * note: no counter fails a run, because others use the port, too.
 */
#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "cmd/reporting/reporting.h"
#include "cmd/run.h"

/* The conclusion from a row's counters, as an index. */
#define LOSS	   "0"
#define NOT_READY  "1"
#define CONGESTION "2"
#define LINK	   "3"
#define TWICE	   "4"
#define HELD	   "5"
#define HOLDS	   "6"
/* Printed only beside a LOSS: soft-RoCE repeats requests without need, and a busy peer is late. */
#define LOSS_TOO "7"
/* A LOSS of packets to this port, or from it. Without an answer it may be either. */
#define LOSS_HERE  "8"
#define LOSS_THERE "9"
/* On a card LOSS_THERE: its peer missed the answer. Else LOSS_TOO. */
#define UNANSWERED "A"

enum way {
	HERE = 1,
	THERE = 2,
};

static const char ways[][18] = { "", " on the way here", " on the way there", " both ways" };

static const char conclusions[][40] = {
	": packets were lost or late",
	": a receiver was not ready",
	": congestion",
	": check the cable",
	": the network duplicates packets",
	": the switch or peer slows this host",
	": this host slows the switch or peer",
};

/*
 * One row per line of a note: its conclusion, its words, with * for the plural s, and the counters that it sums up. The
 * names are from Linux's drivers/infiniband, in this order: mlx5 (hw/mlx5/counters.c) and soft, rxe
 * (sw/rxe/rxe_hw_counters.c), bnxt_re (hw/bnxt_re/hw_counters.c), irdma (hw/irdma/verbs.c). The last ones are in every
 * driver's folder "counters" (core/sysfs.c). Those of pauses are in drivers/net/ethernet: mlx5, bnxt and qede, ice,
 * i40e, mlx4, and igb; # is a priority. A PFC frame may pause several.
 */
/* clang-format off */
static const char rows[] =
	LOSS_HERE "packet* out of sequence|out_of_sequence|out_of_seq_request|oos_drop_count|Rcvd Out of order packets|\n"
	LOSS_THERE "sequence NAK* received|packet_seq_err|rcvd_seq_err|seq_err_naks_rcvd|Nak Sequence Error|\n"
	LOSS_HERE "response* missing|implied_nak_seq_err|missing_resp|Nak Sequence Error Implied|\n"
	LOSS "ACK timeout*|local_ack_timeout_err|to_retransmits|RTO|\n"
	LOSS_HERE "damaged packet*|rx_icrc_encapsulated|icrc_error|CRC errors|\n"
	LOSS_HERE "discarded packet*|rx_roce_discards|\n"
	LOSS_THERE "discarded packet*|port_xmit_discards|tx_roce_discards|\n"
	LOSS_THERE "READ* resumed|resumed_reads|\n"
	LOSS_THERE "packet* dropped by this host's own queue (tc -s qdisc)|send_drops|\n"
	LOSS "connection request* sent again|repeated_requests|\n"
	LOSS "TCP segment* sent again|tcpRetransSegs|RetransSegs|\n"
	UNANSWERED "duplicate request*|duplicate_request|dup_req|\n"
	LOSS_TOO "ACK timeout*|ack_timeout|\n"
	LOSS_TOO "late response*|late_responses|\n"
	LOSS_TOO "packet* sent again|resent_packets|\n"
	NOT_READY "RNR NAK* received|rnr_nak_retry_err|rcvd_rnr_err|rnr_naks_rcvd|RNR received|\n"
	NOT_READY "RNR NAK* sent|send_rnr_err|RNR sent|\n"
	NOT_READY "message* without a receive|out_of_buffer|rx_out_of_buffer|\n"
	CONGESTION "ECN mark*|np_ecn_marked_roce_packets|rx_ecn_marked_pkts|RxECNMrkd|\n"
	CONGESTION "CNP* received|rp_cnp_handled|rx_cnp_pkts|cnpHandled|\n"
	CONGESTION "CNP* sent|np_cnp_sent|np_cnp_pkts|tx_cnp_pkts|cnpSent|\n"
	HELD "pause frame* received|rx_pause_ctrl_phy|rx_pause_frames|link_xoff_rx.nic|port.link_xoff_rx|rx_pause|rx_flow_control_xoff|\n"
	HELD "PFC pause* received|rx_prio#_pause|rx_pfc_frames|rx_priority_#_xoff.nic|port.rx_priority_#_xoff|rx_pause_prio_#|\n"
	HOLDS "pause frame* sent|tx_pause_ctrl_phy|tx_pause_frames|link_xoff_tx.nic|port.link_xoff_tx|tx_pause|tx_flow_control_xoff|\n"
	HOLDS "PFC pause* sent|tx_prio#_pause|tx_pfc_frames|tx_priority_#_xoff.nic|port.tx_priority_#_xoff|tx_pause_prio_#|\n"
	TWICE "response* received twice|duplicate_response|\n"
	LINK "symbol error*|symbol_error|\n"
	LINK "receive error*|port_rcv_errors|rx_roce_errors|\n"
	LINK "link failure*|link_downed|\n";
/* clang-format on */

static bool has_name(const char *row, const char *name)
{
	while (row = strchr(row, '|') + 1, *row != '\n') {
		const char *rest = name;

		while (*row != '|' && (*rest == *row || (*row == '#' && isdigit((unsigned char)*rest))))
			row++, rest++;
		if (*row == '|' && !*rest)
			return true;
	}
	return false;
}

static bool same_port(const struct network_counter *counter, const struct network_counter *other)
{
	return counter && counter->device == other->device && counter->port == other->port;
}

/* The sum of the port's counters in the row. first is the port's first counter. */
static uint64_t sum_of(const struct network_counter *first, const char *row)
{
	uint64_t sum = 0;

	for (const struct network_counter *counter = first; same_port(counter, first); counter = counter->next)
		if (has_name(row, counter->name))
			sum += counter->increase;
	return sum;
}

/* The row's conclusion for that port. mlx5 and rxe share the name for duplicate requests, but not for NAKs. */
static char kind_of(const struct network_counter *first, const char *row)
{
	if (*row != *UNANSWERED)
		return *row;
	for (const struct network_counter *counter = first; same_port(counter, first); counter = counter->next)
		if (first->port && has_name("|packet_seq_err|dup_req|\n", counter->name))
			return *LOSS_THERE;
	return *LOSS_TOO;
}

static unsigned ways_of(const struct network_counter *first)
{
	unsigned found = 0;

	for (const char *row = rows; *row; row = strchr(row, '\n') + 1)
		if (kind_of(first, row) >= *LOSS_HERE && sum_of(first, row))
			found |= *row == *LOSS_HERE ? HERE : THERE;
	return found;
}

/* Only soft has these: a device does not count them. */
static void print_packets(FILE *stream, const struct network_counter *first, unsigned lost)
{
	uint64_t sent = lost == HERE ? 0 : sum_of(first, "|sent_packets|\n");
	uint64_t received = lost == THERE ? 0 : sum_of(first, "|received_packets|\n");

	if (sent)
		fprintf(stream, " (of %" PRIu64 " sent%s", sent, received ? "" : ")");
	if (received)
		fprintf(stream, "%s%" PRIu64 " received)", sent ? ", " : " (of ", received);
	fputc('\n', stream);
}

/* "2 ACK timeouts" */
static void print_sum(FILE *stream, const char *row, uint64_t sum)
{
	fprintf(stream, "%" PRIu64 " ", sum);
	for (const char *word = row + 1; *word != '|'; word++)
		if (*word != '*')
			fputc(*word, stream);
		else if (sum > 1)
			fputc('s', stream);
}

static void print_conclusion(FILE *stream, const char *conclusion, unsigned lost)
{
	fprintf(stream, "%s%s", conclusion, conclusion == *conclusions ? ways[lost] : "");
}

/*
 * Prints a line about the port whose first counter that is, or nothing. A conclusion follows all its sums: "rxe0/1: 2
 * sequence NAKs received, 1 ACK timeout: packets were lost or late on the way there; 1 RNR NAK sent: a receiver ...".
 */
static void print_port(FILE *stream, const struct network_counter *first)
{
	const char *conclusion = NULL;
	unsigned lost = ways_of(first);

	for (const char *row = rows; *row; row = strchr(row, '\n') + 1) {
		uint64_t sum = sum_of(first, row);
		char kind = kind_of(first, row);
		const char *next = kind == *LOSS_TOO ? conclusion : conclusions[kind < *LOSS_HERE ? kind - *LOSS : 0];

		if (!sum || !next)
			continue;
		if (!conclusion) {
			fprintf(stream, first->port ? "%s/%u: " : "%s: ", first->device, first->port);
		} else if (next == conclusion) {
			fputs(", ", stream);
		} else {
			print_conclusion(stream, conclusion, lost);
			fputs("; ", stream);
		}
		print_sum(stream, row, sum);
		conclusion = next;
	}
	if (!conclusion)
		return;
	print_conclusion(stream, conclusion, lost);
	if (conclusion == conclusions[*LINK - *LOSS])
		fputc('\n', stream);
	else
		print_packets(stream, first, lost);
}

char *reporting_network_note(struct transport *transport)
{
	const struct network_counter *last = NULL, *counter = transport_counters(transport);
	char *text = NULL;
	size_t size = 0;
	FILE *stream = WITH_EXTRAS ? open_memstream(&text, &size) : NULL;

	for (; stream && counter; last = counter, counter = counter->next)
		if (!same_port(last, counter))
			print_port(stream, counter);
	if (stream)
		fclose(stream);
	if (size)
		text[size - 1] = '\0';
	return text;
}

const char *reporting_network_hint(const struct transport *transport, const char *note, bool paths,
				   char text[REPORTING_HINT_SIZE])
{
	/* Not if it is known where: on this host, or at a cable. */
	bool lost = note && strstr(note, *conclusions) && !strstr(note, " dropped by this host") &&
		    !strstr(note, conclusions[*LINK - *LOSS]);

	*text = '\0';
	if (lost && transport->untried & UNTRIED_CLASS)
		log_text(text, REPORTING_HINT_SIZE, "try a traffic class with PFC or ECN: --dscp");
	if (COMMAND_doctor && lost && paths && transport->untried & UNTRIED_PATH)
		log_add(text, REPORTING_HINT_SIZE, "; ", "%srdmatest doctor HOST --paths 8", *text ? "" : "try ");
	/* Damaged packets are lost, too: a device counts them by their interface. */
	if (lost && transport->untried & UNTRIED_CLASS)
		log_add(text, REPORTING_HINT_SIZE, "; ", "link errors: ethtool -S");
	return text;
}

void reporting_add_network(struct reporting *reporting)
{
	struct report *report = &reporting->report;
	const struct network_counter *counter = transport_counters(reporting->run->transport);
	char port[4];

	report_list(report, "network");
	for (; counter; counter = counter->next) {
		if (!counter->increase)
			continue;
		report_object(report, NULL);
		report_text(report, "device", counter->device);
		/* A label for Prometheus. */
		if (report->format->form == IN_PROMETHEUS && counter->port)
			report_text(report, "port", log_text(port, sizeof(port), "%u", counter->port));
		else
			report_count_known(report, "port", counter->port, counter->port);
		report_text(report, "counter", counter->name);
		report_counter(report, "increase", counter->increase);
		report_end(report);
	}
	report_end(report);
}
