/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/request.h"

#include <string.h>

enum outcome request_accept(struct environment *environment, struct endpoint *endpoint,
			    enum outcome (*accept)(void *context), void *context)
{
	const struct errors *errors = environment->log.errors;
	enum outcome outcome = accept(context);
	char reason[PRIVATE_DATA_MAX];

	if (!outcome)
		return OUTCOME_OK;
	environment_report_error(environment);
	log_text(reason, sizeof(reason), "%s", errors->last.cause);
	endpoint_reject(endpoint, reason, strlen(reason));
	return outcome;
}
