/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/rping/control.h"

static size_t send_offset(uint32_t index)
{
	return (size_t)index * ADVERTISEMENT_SIZE;
}

static size_t receive_offset(uint32_t index)
{
	return send_offset(CONTROL_SENDS + index);
}

enum outcome control_create(struct control *control, struct domain *domain)
{
	return region_create(domain, receive_offset(CONTROL_RECEIVES), REGION_LOCAL, &control->region);
}

void control_destroy(struct control *control)
{
	region_destroy(control->region);
	control->region = NULL;
}

static struct work control_receive_work(const struct control *control, uint32_t index)
{
	return (struct work){
		.kind = WORK_RECEIVE,
		.tag = index,
		.region = control->region,
		.offset = receive_offset(index),
		.length = ADVERTISEMENT_SIZE,
	};
}

enum outcome control_post_receives(struct control *control, struct endpoint *endpoint)
{
	struct work works[CONTROL_RECEIVES];

	for (uint32_t index = 0; index < CONTROL_RECEIVES; index++)
		works[index] = control_receive_work(control, index);
	return endpoint_post(endpoint, works, CONTROL_RECEIVES);
}

enum outcome control_receive(struct control *control, struct endpoint *endpoint, const struct completion *completion,
			     struct advertisement *advertisement)
{
	struct work repost = control_receive_work(control, completion->tag);

	if (completion->length != ADVERTISEMENT_SIZE) {
		log_error(endpoint->transport->log, endpoint->name, "receive: a message of %u bytes instead of %d",
			  completion->length, ADVERTISEMENT_SIZE);
		return OUTCOME_FAILED;
	}
	advertisement_read(control->region->memory + repost.offset, advertisement);
	return endpoint_post(endpoint, &repost, 1);
}

void control_write(struct control *control, uint32_t index, const struct advertisement *advertisement)
{
	advertisement_write(advertisement, control->region->memory + send_offset(index));
}

struct work control_send(const struct control *control, uint32_t index)
{
	return (struct work){
		.kind = WORK_SEND,
		.tag = index,
		.region = control->region,
		.offset = send_offset(index),
		.length = ADVERTISEMENT_SIZE,
	};
}
