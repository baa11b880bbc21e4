/* SPDX-License-Identifier: BSD-2-Clause */
/* The rdma_cm event channel: copies an event, acknowledges it, then handles it. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "transport/verbs/verbs.h"

enum {
	EVENTS_MAX = 32 /* per turn of the loop */
};

/*
 * rdma_destroy_id(), rdma_leave_multicast() and rdma_migrate_id() block until the id's events are acknowledged, and
 * event handlers call them. So the event is copied and acknowledged first. Its private data is freed with it and is
 * copied, too.
 */
static bool take_event(struct rdma_event_channel *events, struct rdma_cm_event *event, uint8_t data[UINT8_MAX])
{
	struct rdma_cm_event *taken;

	errno = 0;
	if (rdma_get_cm_event(events, &taken))
		return false;
	*event = *taken;
	/* librdmacm itself has failed, to open the device, or to move or attach the QP: errno has the cause. */
	if (event->status == -1 && errno)
		event->status = -errno;
	/* NULL without data, and for a group, whose data would be at the same place. */
	if (taken->param.conn.private_data)
		event->param.conn.private_data =
			memcpy(data, taken->param.conn.private_data, taken->param.conn.private_data_len);
	rdma_ack_cm_event(taken);
	return true;
}

static bool is_done(const struct endpoint *endpoint)
{
	return endpoint->done || endpoint->state == ENDPOINT_DISCONNECTED || endpoint->state >= ENDPOINT_FAILED;
}

/* Returns the endpoint of a slot if it is on the channel and waits for an event, or NULL. */
static struct endpoint *waiting_endpoint(const struct verbs_channel *channel, const struct verbs_slot *slot)
{
	struct endpoint *endpoint = slot->endpoint ? &slot->endpoint->base : NULL;

	return endpoint && endpoint->channel == &channel->base && !is_done(endpoint) ? endpoint : NULL;
}

/*
 * Fails the endpoints that wait for an event, and stops the watcher, because the channel would stay readable. If no
 * endpoint waits, the next turn of the loop tries again.
 */
static void channel_failed(struct verbs_channel *channel, int error)
{
	struct verbs_transport *transport = verbs_of(channel->base.transport);

	for (uint32_t slot = 0; slot < transport->slot_count; slot++) {
		struct endpoint *endpoint = waiting_endpoint(channel, &transport->slots[slot]);

		if (!endpoint)
			continue;
		error_errno(&transport->base.error, "event channel", error, "reading an event");
		loop_io_stop(&channel->readable);
		endpoint_fail(endpoint, OUTCOME_INTERNAL);
	}
}

static void handle_event(struct rdma_cm_event *event, const struct log *log)
{
	struct verbs_endpoint *endpoint = event->id->context;

	log_debug(log, "%s: %s, status %d", endpoint->base.name[0] ? endpoint->base.name : "endpoint",
		  rdma_event_str(event->event), event->status);
	verbs_endpoint_event(endpoint, event);
}

/*
 * Handles many events per turn, because the kernel drops requests beyond the backlog, which costs a client seconds. The
 * number is limited, because established connections must be served while thousands of clients connect.
 */
static void channel_readable(void *context)
{
	struct verbs_channel *channel = context;
	struct rdma_cm_event event;
	uint8_t data[UINT8_MAX];

	for (unsigned count = 0; count < EVENTS_MAX; count++) {
		if (take_event(channel->events, &event, data)) {
			handle_event(&event, channel->base.transport->log);
			continue;
		}
		if (errno != EAGAIN && errno != EINTR)
			channel_failed(channel, errno);
		return;
	}
}

/*
 * librdmacm waits twice five seconds for udev to replace a file that may not be opened. A missing file may appear when
 * librdmacm requests it from the kernel.
 */
static struct rdma_event_channel *create_events(void)
{
	int fd = open(VERBS_MANAGER_FILE, O_RDWR | O_CLOEXEC);

	if (fd < 0 && errno != ENOENT)
		return NULL;
	if (fd >= 0)
		close(fd);
	return rdma_create_event_channel();
}

enum outcome verbs_channel_create(struct transport *transport, struct channel **result)
{
	struct verbs_transport *verbs = verbs_of(transport);
	struct verbs_channel *channel = calloc(1, sizeof(*channel));

	if (channel)
		channel->events = create_events();
	if (!channel || !channel->events) {
		int error = errno;

		free(channel);
		return verbs_error_no_channel(&transport->error, error);
	}
	channel->base.transport = transport;
	verbs_watch(transport, &channel->readable, channel->events->fd, channel_readable, channel);
	channel->next = verbs->channels;
	verbs->channels = channel;
	*result = &channel->base;
	return OUTCOME_OK;
}

void verbs_channel_free(struct verbs_channel *channel)
{
	loop_io_stop(&channel->readable);
	rdma_destroy_event_channel(channel->events);
	free(channel);
}
