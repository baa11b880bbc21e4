/* SPDX-License-Identifier: BSD-2-Clause */
#include "cmd/rping/mailbox.h"

static size_t send_offset(uint32_t index)
{
	return (size_t)index * ADVERTISEMENT_SIZE;
}

static size_t receive_offset(uint32_t index)
{
	return send_offset(MAILBOX_SENDS + index);
}

enum outcome mailbox_create(struct mailbox *mailbox, struct domain *domain)
{
	return region_create(domain, receive_offset(MAILBOX_RECEIVES), REGION_LOCAL, &mailbox->region);
}

void mailbox_destroy(struct mailbox *mailbox)
{
	region_destroy(mailbox->region);
	mailbox->region = NULL;
}

static struct work receive(const struct mailbox *mailbox, uint32_t index)
{
	return (struct work){
		.kind = WORK_RECEIVE,
		.tag = index,
		.region = mailbox->region,
		.offset = receive_offset(index),
		.length = ADVERTISEMENT_SIZE,
	};
}

enum outcome mailbox_open(struct mailbox *mailbox, struct endpoint *endpoint)
{
	struct work works[MAILBOX_RECEIVES];

	for (uint32_t index = 0; index < MAILBOX_RECEIVES; index++)
		works[index] = receive(mailbox, index);
	return endpoint_post(endpoint, works, MAILBOX_RECEIVES);
}

enum outcome mailbox_take(struct mailbox *mailbox, struct endpoint *endpoint, const struct completion *completion,
			  struct advertisement *advertisement)
{
	struct work again = receive(mailbox, completion->tag);

	if (completion->length != ADVERTISEMENT_SIZE) {
		log_error(endpoint->transport->log, endpoint->name, "receive: a message of %u bytes instead of %d",
			  completion->length, ADVERTISEMENT_SIZE);
		return OUTCOME_FAILED;
	}
	advertisement_read(mailbox->region->memory + again.offset, advertisement);
	return endpoint_post(endpoint, &again, 1);
}

void mailbox_write(struct mailbox *mailbox, uint32_t index, const struct advertisement *advertisement)
{
	advertisement_write(advertisement, mailbox->region->memory + send_offset(index));
}

struct work mailbox_send(const struct mailbox *mailbox, uint32_t index)
{
	return (struct work){
		.kind = WORK_SEND,
		.tag = index,
		.region = mailbox->region,
		.offset = send_offset(index),
		.length = ADVERTISEMENT_SIZE,
	};
}
