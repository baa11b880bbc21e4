/* SPDX-License-Identifier: BSD-2-Clause */
/* Replaces dial.c without WITH_DIAGNOSTICS: one attempt, at the first address. */
#include "cmd/dial.h"

enum outcome dial_look_up(struct dial *dial)
{
	const struct dial_options *options = &dial->options;
	enum outcome outcome;

	resolver_start(&dial->resolver, &options->run->log, options->host, options->format, 0);
	outcome = lookup_finish(&dial->resolver, options->run, options->common, options->source->family);
	if (outcome)
		return outcome;
	dial->address = dial->resolver.addresses[0];
	dial->address.port = options->port;
	address_text(&dial->address, dial->name);
	return OUTCOME_OK;
}

bool dial_look_up_beside(struct dial *dial, enum outcome *outcome)
{
	*outcome = dial_look_up(dial);
	return true;
}

void dial_begin(struct dial *dial)
{
	enum outcome outcome = dial->options.handlers->connect(dial->options.context);

	if (outcome)
		dial_failed(dial, outcome);
}

void dial_failed(struct dial *dial, enum outcome outcome)
{
	dial->options.handlers->failed(dial->options.context, outcome);
}

void dial_give_up(struct dial *dial)
{
	run_report_error(dial->options.run);
}

void dial_hint(struct dial *dial)
{
	(void)dial;
}

void dial_stop(struct dial *dial)
{
	(void)dial;
}
