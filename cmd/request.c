/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/request.h"

#include <string.h>

struct request {
	struct log log;		       /* of the run */
	char reason[PRIVATE_DATA_MAX]; /* the cause of the first error; "": none was reported */
};

static void request_error(const struct log *log, const struct error *error)
{
	struct request *request = log->context;

	if (!*request->reason)
		log_text(request->reason, sizeof(request->reason), "%s", error->cause);
	log_report(&request->log, error);
}

static void request_hint(const struct log *log, const char *text)
{
	const struct request *request = log->context;

	log_hint(&request->log, "%s", text);
}

enum outcome request_accept(struct environment *environment, struct endpoint *endpoint,
			    enum outcome (*accept)(void *context), void *context)
{
	static const struct log_sink sink = { .error = request_error, .hint = request_hint };
	struct request request = { .log = environment->log };
	const char *reason = request.reason;
	enum outcome outcome;

	environment->log.sink = &sink;
	environment->log.context = &request;
	outcome = accept(context);
	environment->log = request.log;
	if (!outcome)
		return OUTCOME_OK;
	if (!*reason)
		reason = "out of resources";
	endpoint_reject(endpoint, reason, strlen(reason));
	return outcome;
}
