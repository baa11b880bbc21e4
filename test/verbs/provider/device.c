/* SPDX-License-Identifier: BSD-2-Clause */
/* Devices: 10.0.D.P, fd00::D:P and fe80::2:c903:N lead to port P of device D. */
#include "test/verbs/provider/provider.h"

#include <arpa/inet.h>
#include <errno.h>
#include <infiniband/ib.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#undef ibv_get_device_list
#undef ibv_query_port

static void add_gid(struct port *port, uint8_t number, const union ibv_gid *gid, enum ibv_gid_type type)
{
	int index = port->gid_count++;

	port->gids[index] = (struct ibv_gid_entry){
		.gid = *gid, .gid_index = (uint32_t)index, .port_num = number, .gid_type = type, .ndev_ifindex = 1
	};
}

static void fill_port(struct device *device, unsigned index, uint8_t number)
{
	struct port *port = &device->ports[number - 1];
	union ibv_gid local = { .raw = { 0xfe, 0x80, [11] = 2, [12] = 0xc9, [13] = 3 } };
	union ibv_gid mapped = { .raw = { [10] = 0xff, [11] = 0xff, [12] = 10 } };

	local.raw[15] = mapped.raw[15] = number;
	local.raw[15] = (uint8_t)(number + index * PORTS);
	mapped.raw[14] = (uint8_t)index;
	port->lid = (uint16_t)(1 + number + index * PORTS);
	port->mtu = IBV_MTU_2048;
	port->state = IBV_PORT_ACTIVE;
	port->fabric = device->fabric;
	port->max_message = 1u << 30;
	port->address = (struct sockaddr_in){ .sin_family = AF_INET };
	memcpy(&port->address.sin_addr, &mapped.raw[12], 4);
	port->address6.sin6_family = AF_INET6;
	port->address6.sin6_addr.s6_addr[0] = 0xfd;
	port->address6.sin6_addr.s6_addr[13] = (uint8_t)index;
	port->address6.sin6_addr.s6_addr[15] = number;
	if (device->fabric != PROVIDER_ROCE) {
		add_gid(port, number, &local, IBV_GID_TYPE_IB);
		return;
	}
	for (int way = 0; way < 4; way++)
		add_gid(port, number, way < 2 ? &local : &mapped,
			way % 2 ? IBV_GID_TYPE_ROCE_V2 : IBV_GID_TYPE_ROCE_V1);
	port->gid_index = 3;
}

struct device *device_add(enum provider_fabric fabric, unsigned index)
{
	static const char *const names[] = { "roce", "ib", "iw" };
	struct device *device = provider_allocate(sizeof(*device));
	struct ibv_context *context = &device->verbs.context;

	snprintf(device->base.name, sizeof(device->base.name), "%s%u", names[fabric], index);
	snprintf(device->base.dev_name, sizeof(device->base.dev_name), "uverbs%u", index);
	device->base.transport_type = fabric == PROVIDER_IWARP ? IBV_TRANSPORT_IWARP : IBV_TRANSPORT_IB;
	provider_write("", "/sys/class/infiniband/%s/node_type", device->base.name);
	provider_write(device->base.name, "/sys/class/infiniband_verbs/%s/ibdev", device->base.dev_name);
	provider_write(DEVICE_NUMBER, "/sys/class/infiniband_verbs/%s/dev", device->base.dev_name);
	provider_write(DEVICE_FILE, "/dev/infiniband/%s", device->base.dev_name);
	device->fabric = fabric;
	device->inline_max = 64;
	device->refuses_no_loopback = fabric == PROVIDER_ROCE;
	device->limits = (struct ibv_device_attr){ .max_qp_wr = 4096,
						   .max_cqe = 65536,
						   .max_qp_rd_atom = 16,
						   .max_qp_init_rd_atom = 16,
						   .max_sge = SGES_MAX,
						   .phys_port_cnt = PORTS,
						   .max_mcast_grp = fabric == PROVIDER_IWARP ? 0 : 8192,
						   .vendor_id = fabric == PROVIDER_IWARP ? 0x626d74 : 0 };
	for (uint8_t number = 1; number <= PORTS; number++)
		fill_port(device, index, number);
	doorbell_open(&device->bell);
	device->verbs.sz = sizeof(device->verbs);
	device->verbs.create_qp_ex = qp_create_own;
	context->abi_compat = __VERBS_ABI_IS_EXTENDED;
	context->device = &device->base;
	context->async_fd = device->bell.fd;
	context->cmd_fd = memfd_create("uverbs", MFD_CLOEXEC);
	context->ops.poll_cq = cq_poll;
	context->ops.req_notify_cq = cq_notify;
	context->ops.post_send = qp_post_send;
	context->ops.post_recv = qp_post_receive;
	return device;
}

/* The limits of real drivers, from their sources (rdma-core 65 and Linux): docs/hardware.md has the references. */
void device_drive(struct device *device, const char *name)
{
	static const struct driver {
		const char *name;
		uint32_t inline_max;
		int work_max, reads_answered, reads_begun;
		uint32_t vendor;
		int groups;
	} drivers[] = {
		{ "mlx5", 828, 32768, 16, 16, 0x02c9, 1 << 21 },
		{ "irdma", 101, 4063, 127, 64, 0x8086, 65536 },
		{ "bnxt_re", 96, 65407, 126, 126, 0x14e4, 0 },
		{ "mlx4", 1024, 16351, 16, 128, 0x02c9, 8192 },
	};
	const struct driver *driver = drivers;

	while (strcmp(driver->name, name) != 0)
		if (++driver == drivers + sizeof(drivers) / sizeof(*drivers))
			abort();
	snprintf(device->base.name, sizeof(device->base.name), "%s_0", name);
	device->inline_max = driver->inline_max;
	device->inline_is_refused_silently = !strcmp(name, "bnxt_re");
	device->limits.max_qp_wr = driver->work_max;
	device->limits.max_qp_rd_atom = driver->reads_answered;
	device->limits.max_qp_init_rd_atom = driver->reads_begun;
	device->limits.max_cqe = 4194303;
	device->limits.max_mcast_grp = driver->groups;
	if (!strcmp(name, "mlx4")) /* a card with its second port set to Ethernet */
		device->ports[1].fabric = PROVIDER_ROCE;
	device->limits.vendor_id = driver->vendor;
}

void device_free(struct device *device)
{
	if (device->opened)
		provider_die("%s was opened and not closed", device->base.name);
	while (device->events) {
		struct async_event *event = device->events;

		device->events = event->next;
		free(event);
	}
	close(device->bell.fd);
	close(device->verbs.context.cmd_fd);
	free(device);
}

static bool is_of_device(int fd)
{
	struct stat status;

	return !fstat(fd, &status) && !S_ISCHR(status.st_mode);
}

bool device_is_held(const struct device *device)
{
	return is_of_device(device->verbs.context.cmd_fd) || is_of_device(device->bell.fd);
}

/* Like librdmacm since release 30: a device known to be removed is closed once no identifier uses it. */
void device_put(struct device *device)
{
	for (const struct cm_id *id = provider.ids; id; id = id->next)
		if (id->device == device)
			return;
	if (!device->removed || device->listed)
		return;
	for (size_t index = 0; index < DEVICES_MAX; index++)
		if (provider.devices[index] == device)
			provider.devices[index] = NULL;
	device_free(device);
}

/* It looks for added and removed devices when it meets an unknown one. */
void device_get(struct cm_id *id)
{
	id->base.verbs = &id->device->verbs.context;
	if (id->device->listed)
		return;
	for (size_t index = 0; index < DEVICES_MAX; index++) {
		struct device *device = provider.devices[index];

		if (!device)
			continue;
		device->listed = !device->removed;
		device_put(device);
	}
}

static bool is_at(const struct port *port, const struct sockaddr *address)
{
	const struct sockaddr_in *four = (const struct sockaddr_in *)(const void *)address;
	const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)(const void *)address;
	const struct sockaddr_ib *native = (const struct sockaddr_ib *)(const void *)address;

	if (address->sa_family == AF_INET)
		return four->sin_addr.s_addr == port->address.sin_addr.s_addr;
	if (address->sa_family == AF_INET6)
		return !memcmp(&six->sin6_addr, &port->address6.sin6_addr, 16);
	return native->sib_pkey == htobe16(0xffff) && !memcmp(&native->sib_addr, port->gids[0].gid.raw, 16);
}

struct device *device_at(const struct sockaddr *address, uint8_t *port)
{
	for (size_t index = 0; index < DEVICES_MAX; index++) {
		struct device *device = provider.devices[index];

		for (uint8_t number = 1; device && !device->removed && number <= PORTS; number++)
			if (is_at(&device->ports[number - 1], address)) {
				*port = number;
				return device;
			}
	}
	return NULL;
}

union ibv_gid device_gid(const struct device *device, uint8_t number, const struct sockaddr *address, uint8_t *index)
{
	const struct port *port = &device->ports[number - 1];

	*index = (uint8_t)(address->sa_family == AF_INET ? port->gid_index : 0);
	return port->gids[*index].gid;
}

/* ---- libibverbs ---- */

bool device_is_known(const struct device *device)
{
	return !device->has_no_provider && provider_has("/dev/infiniband/%s", device->base.dev_name);
}

struct ibv_device **ibv_get_device_list(int *count)
{
	struct ibv_device **list = provider_allocate((DEVICES_MAX + 1) * sizeof(struct ibv_device *));
	int found = 0;

	for (size_t index = 0; index < DEVICES_MAX; index++)
		if (provider.devices[index] && !provider.devices[index]->removed &&
		    device_is_known(provider.devices[index]))
			list[found++] = &provider.devices[index]->base;
	if (count)
		*count = found;
	return list;
}

void ibv_free_device_list(struct ibv_device **list)
{
	free(list);
}

const char *ibv_get_device_name(struct ibv_device *device)
{
	return device->name;
}

struct ibv_context *ibv_open_device(struct ibv_device *base)
{
	struct device *device = (struct device *)base;

	if (provider_fails(__func__))
		return NULL;
	device->opened++;
	return &device->verbs.context;
}

int ibv_close_device(struct ibv_context *context)
{
	device_of(context)->opened--;
	return 0;
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attributes)
{
	if (provider_fails(__func__))
		return errno;
	*attributes = device_of(context)->limits;
	return 0;
}

int ibv_query_port(struct ibv_context *context, uint8_t number, struct _compat_ibv_port_attr *compatible)
{
	struct ibv_port_attr *attributes = (struct ibv_port_attr *)compatible;
	const struct device *device = device_of(context);
	const struct port *port = &device->ports[number - 1];

	if (provider_fails(__func__))
		return errno;
	if (!number || number > PORTS)
		provider_die("%s: there is no port %u", __func__, number);
	attributes->state = port->state;
	attributes->active_mtu = port->mtu;
	attributes->max_msg_sz = port->max_message;
	attributes->gid_tbl_len = port->gid_count;
	attributes->lid = port->lid;
	attributes->link_layer =
		port->fabric == PROVIDER_INFINIBAND ? IBV_LINK_LAYER_INFINIBAND : IBV_LINK_LAYER_ETHERNET;
	return 0;
}

int _ibv_query_gid_ex(struct ibv_context *context, uint32_t number, uint32_t index, struct ibv_gid_entry *entry,
		      uint32_t flags, size_t size)
{
	const struct port *port = &device_of(context)->ports[number - 1];

	if (provider_fails("ibv_query_gid_ex"))
		return errno;
	if (index >= (uint32_t)port->gid_count || flags || size != sizeof(*entry))
		return ENODATA;
	*entry = port->gids[index];
	return 0;
}

int ibv_query_gid(struct ibv_context *context, uint8_t number, int index, union ibv_gid *gid)
{
	struct ibv_gid_entry entry;

	if (ibv_query_gid_ex(context, number, (uint32_t)index, &entry, 0))
		return -1;
	*gid = entry.gid;
	return 0;
}

/* ---- asynchronous events ---- */

void device_event(struct device *device, enum ibv_event_type type, void *element)
{
	struct async_event *event = provider_allocate(sizeof(*event));

	event->base.event_type = type;
	event->base.element.qp = element;
	LIST_APPEND(device->events, event);
	doorbell_set(&device->bell, true);
}

void device_port_event(struct device *device, enum ibv_event_type type, uint8_t port)
{
	device_event(device, type, NULL);
	for (struct async_event *event = device->events; event; event = event->next)
		if (event->base.event_type == type)
			event->base.element.port_num = port;
}

void device_forget(struct device *device, const void *element)
{
	for (struct async_event *event = device->events, *next; event; event = next) {
		next = event->next;
		if (event->base.element.qp != element)
			continue;
		LIST_REMOVE(device->events, event);
		free(event);
	}
	doorbell_set(&device->bell, device->events || device->removed);
}

static bool is_of_queue_pair(enum ibv_event_type type)
{
	return type == IBV_EVENT_QP_FATAL || type == IBV_EVENT_QP_REQ_ERR || type == IBV_EVENT_QP_ACCESS_ERR ||
	       type == IBV_EVENT_COMM_EST;
}

static void count(const struct ibv_async_event *event, unsigned difference)
{
	if (is_of_queue_pair(event->event_type))
		((struct queue_pair *)event->element.qp)->asynchronous += difference;
	else if (event->event_type == IBV_EVENT_CQ_ERR)
		((struct completion_queue *)event->element.cq)->asynchronous += difference;
}

int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *result)
{
	struct device *device = device_of(context);
	struct async_event *event = device->events;

	provider_pump();
	if (provider_fails(__func__))
		return -1;
	if (!event && device->removed) {
		errno = EIO;
		return -1;
	}
	if (!event)
		return doorbell_empty(&device->bell, __func__);
	device->events = event->next;
	*result = event->base;
	free(event);
	count(result, 1);
	doorbell_set(&device->bell, device->events || device->removed);
	return 0;
}

void ibv_ack_async_event(struct ibv_async_event *event)
{
	count(event, -1u);
}

const char *ibv_event_type_str(enum ibv_event_type type)
{
	static const char *const texts[] = {
		[IBV_EVENT_CQ_ERR] = "CQ error",
		[IBV_EVENT_QP_FATAL] = "queue pair fatal",
		[IBV_EVENT_QP_REQ_ERR] = "queue pair request error",
		[IBV_EVENT_QP_ACCESS_ERR] = "queue pair access error",
		[IBV_EVENT_DEVICE_FATAL] = "device fatal",
		[IBV_EVENT_PORT_ACTIVE] = "port active",
		[IBV_EVENT_GID_CHANGE] = "GID table change",
	};

	return type < sizeof(texts) / sizeof(*texts) && texts[type] ? texts[type] : "unknown";
}

void device_remove(struct device *device, unsigned ways)
{
	device->removed = true;
	if (ways & REMOVAL_BY_MANAGER)
		for (struct cm_id *id = provider.ids; id; id = id->next)
			if (id->device == device)
				cm_raise(id, RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
	if (ways & REMOVAL_BY_ASYNC)
		device_event(device, IBV_EVENT_DEVICE_FATAL, NULL);
	doorbell_set(&device->bell, true);
	for (struct completion_channel *channel = provider.completion_channels; channel; channel = channel->next)
		if (device_of(channel->base.context) == device)
			doorbell_set(&channel->bell, true);
	for (struct queue_pair *qp = provider.qps; qp; qp = qp->next)
		if (qp->device == device)
			qp->base.state = IBV_QPS_ERR; /* and no more work is flushed */
	provider_pump();
}
