/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/ucmatose/ucmatose.h"

#include <string.h>

#define ROW(kind, name, member, ...) FIGURE(kind, name, struct ucmatose_figures, member, __VA_ARGS__)

static const struct figure ucmatose_figures[] = {
	ROW(TEXT, "role", role, .flags = FIGURE_LABEL),
	ROW(TEXT, "target", target, .flags = FIGURE_LABEL),
	FIGURES_OF_CODE(OBJECT, "path", struct ucmatose_figures, path, common_report_path, .forms = IN_FULL),
	FIGURES_OPEN("connections"),
	ROW(GAUGE, "asked", asked, .forms = IN_FULL),
	ROW(COUNT, "made", rates[CONNECTION_CONNECTING].count),
	ROW(COUNT, "failed", failed, .forms = IN_FULL, .flags = FIGURE_UNLESS_0),
	ROW(COUNT, "refused", refused, .forms = IN_FULL, .flags = FIGURE_UNLESS_0),
	ROW(RATE, "rate", rates[CONNECTION_CONNECTING], .forms = IN_FULL),
	FIGURES_CLOSE,
	ROW(HISTOGRAM, "resolve_address", steps[EVENT_ADDRESS_RESOLVED], .forms = IN_FULL),
	ROW(HISTOGRAM, "resolve_route", steps[EVENT_ROUTE_RESOLVED], .forms = IN_FULL),
	ROW(HISTOGRAM, "connect", steps[EVENT_ESTABLISHED], .forms = IN_FULL),
	ROW(HISTOGRAM, "accept", steps[EVENT_REQUEST], .forms = IN_FULL),
	ROW(HISTOGRAM, "disconnect", steps[EVENT_DISCONNECTED], .forms = IN_FULL),
	FIGURES_OPEN("messages"),
	ROW(GAUGE, "size", size, .forms = IN_FULL),
	ROW(COUNT, "sent", rates[CONNECTION_SENDING].count),
	ROW(COUNT, "received", rates[CONNECTION_RECEIVING].count),
	ROW(COUNT, "verified", verified, .forms = IN_FULL, .flags = FIGURE_UNLESS_0),
	ROW(RATE, "sent_rate", rates[CONNECTION_SENDING]),
	ROW(RATE, "received_rate", rates[CONNECTION_RECEIVING]),
	ROW(BANDWIDTH, "sent_bytes", rates[CONNECTION_SENDING], .forms = IN_FULL),
	ROW(BANDWIDTH, "received_bytes", rates[CONNECTION_RECEIVING], .forms = IN_FULL),
	FIGURES_CLOSE,
	FIGURES_END,
};

/* The IPv6 any address also accepts IPv4 connections, but not on iWARP. */
const char *ucmatose_listen_address(const struct ucmatose_options *options)
{
	if (options->bind)
		return options->bind;
	return options->format >= ADDRESS_FORMAT_IP6 || EXTRA(options->common.family.ip6) ? "::" : "0.0.0.0";
}

void ucmatose_figures_begin(struct ucmatose *ucmatose, enum connection_state state)
{
	if (WITH_REPORT && state <= CONNECTION_RECEIVING && !ucmatose->figures.rates[state].from)
		ucmatose->figures.rates[state].from = clock_now();
}

void ucmatose_figures_restart(struct ucmatose *ucmatose, enum connection_state state)
{
	if (WITH_REPORT && !ucmatose->figures.rates[state].count)
		ucmatose->figures.rates[state].from = clock_now();
}

void ucmatose_figures_clear(struct ucmatose *ucmatose)
{
	if (!WITH_REPORT)
		return;
	memset(&ucmatose->figures, 0, sizeof(ucmatose->figures));
	memset(&ucmatose->before, 0, sizeof(ucmatose->before));
	ucmatose_figures_restart(ucmatose, CONNECTION_CONNECTING);
}

void ucmatose_figures_count(const struct ucmatose_connection *connection, enum connection_state state)
{
	struct ucmatose *ucmatose = connection->ucmatose;

	if (!WITH_REPORT)
		return;
	ucmatose->figures.rates[state].count++;
	ucmatose->figures.rates[state].to = ucmatose->progressed;
	ucmatose->figures.verified += state == CONNECTION_RECEIVING && connection->peer_is_ours;
}

void ucmatose_figures_time(struct ucmatose *ucmatose, const struct endpoint_event *event)
{
	bool accepted = ucmatose->is_server && event->kind == EVENT_ESTABLISHED;

	if (event->took && event->kind <= EVENT_DISCONNECTED)
		histogram_add(&ucmatose->figures.steps[accepted ? EVENT_REQUEST : event->kind], event->took);
}

struct figures ucmatose_figures_update(void *state)
{
	struct ucmatose *ucmatose = state;
	struct ucmatose_figures *figures = &ucmatose->figures;

	figures->role = ucmatose->is_server ? "server" : "client";
	figures->target = ucmatose->is_server ? ucmatose_listen_address(ucmatose->options) : ucmatose->options->server;
	figures->asked = ucmatose->wanted;
	figures->refused = ucmatose->refused;
	figures->failed = ucmatose->in_state[CONNECTION_FAILED];
	figures->size = ucmatose->size;
	for (int i = CONNECTION_CONNECTING; i <= CONNECTION_RECEIVING; i++) {
		figures->rates[i].bytes = figures->rates[i].count * figures->size;
		figures->rates[i].goes_on = ucmatose->in_state[i];
	}
	return (struct figures){ ucmatose_figures,
				 figures,
				 &ucmatose->before,
				 sizeof(*figures),
				 .summarised = figures->rates[CONNECTION_CONNECTING].count,
				 .under_way = figures->rates[CONNECTION_CONNECTING].count };
}
