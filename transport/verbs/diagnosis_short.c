/* SPDX-License-Identifier: BSD-2-Clause */
/* In place of diagnosis.c without WITH_CAUSES: the error of the kernel or of librdmacm as it is. */
#include <errno.h>
#include <string.h>

#include "transport/verbs/verbs.h"

static enum outcome outcome_of(int error)
{
	return error == EMFILE || error == ENFILE || error == ENOMEM || error == EAGAIN ? OUTCOME_INTERNAL
											: OUTCOME_NO_DEVICE;
}

enum outcome verbs_report_no_channel(struct error *reason, int error)
{
	error_set(reason, NULL, "no RDMA device can be used: " VERBS_MANAGER_FILE ": %s (%d)", strerror(error), error);
	return outcome_of(error);
}

enum outcome verbs_report_resources(struct error *reason, const char *object, const char *what, int error)
{
	error_errno(reason, object, error, "%s", what);
	return OUTCOME_INTERNAL;
}

enum outcome verbs_report_shortage(const struct endpoint *endpoint, const char *what, int error)
{
	enum outcome outcome = outcome_of(error);

	return outcome == OUTCOME_INTERNAL
		       ? verbs_report_resources(endpoint_error(endpoint), endpoint->name, what, error)
		       : OUTCOME_OK;
}

enum outcome verbs_report_failure(const struct endpoint *endpoint, const char *what)
{
	return endpoint_no_connection(endpoint, what, errno, strerror(errno));
}

enum outcome verbs_report_address(const struct endpoint *endpoint, const char *what)
{
	enum outcome outcome = verbs_report_shortage(endpoint, what, errno);

	return outcome ? outcome : verbs_report_failure(endpoint, what);
}

void verbs_report_event(const struct endpoint *endpoint, const struct rdma_cm_event *event)
{
	error_failure(endpoint_error(endpoint),
		      &(struct failure){ .object = endpoint->name,
					 .phase = endpoint_state_text(endpoint->state),
					 .code = event->status },
		      "%s", event->status < 0 ? strerror(-event->status) : rdma_event_str(event->event));
}
