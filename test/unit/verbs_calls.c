/* SPDX-License-Identifier: BSD-2-Clause */
/* link: -Wl,@test/unit/verbs_calls.wrap */
/*
 * From the command line to the library call: what reaches librdmacm and libibverbs on an InfiniBand fabric, which no
 * software device can play. Every call of interest is written down as a line; the fake below answers as an InfiniBand
 * device would.
 */
#include "test/unit/unit.h"

#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <infiniband/ib.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include "cmd/run.h"
#include "cmd/table.h"
#include "transport/verbs/verbs.h"

enum {
	EVENTS_MOST = 16,
	TRACE_SIZE = 4096
};

/* What the fake remembers of one run. */
static struct {
	char trace[TRACE_SIZE];
	int pipe[2]; /* the event channel's descriptor: a byte for each waiting event */
	struct rdma_cm_event events[EVENTS_MOST];
	size_t first, count;
	struct ibv_device device;
	struct ibv_context context;
	struct ibv_qp queue;
	int completion_pipe[2];
} fake;

/* The first event is followed by others for ever, of which nobody has to do a thing. */
static bool news_without_end;

/* A listener has a client, and the device no protection domain for it. */
static bool somebody_asks;

static void trace(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void trace(const char *format, ...)
{
	size_t used = strlen(fake.trace);
	va_list list;

	va_start(list, format);
	vsnprintf(fake.trace + used, TRACE_SIZE - used, format, list);
	va_end(list);
}

static const char *text_of(const struct sockaddr *address)
{
	static char text[4][160];
	static unsigned turn;
	char *result = text[turn++ % 4];
	char host[INET6_ADDRSTRLEN];

	if (!address)
		return "none";
	if (address->sa_family == AF_IB) {
		const struct sockaddr_ib *native = (const struct sockaddr_ib *)(const void *)address;

		inet_ntop(AF_INET6, native->sib_addr.sib_raw, host, sizeof(host));
		snprintf(result, sizeof(text[0]), "gid %s sid %llx mask %llx", host,
			 (unsigned long long)be64toh(native->sib_sid),
			 (unsigned long long)be64toh(native->sib_sid_mask));
	} else if (address->sa_family == AF_INET6) {
		const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)(const void *)address;

		inet_ntop(AF_INET6, &six->sin6_addr, host, sizeof(host));
		snprintf(result, sizeof(text[0]), "[%s]:%u", host, ntohs(six->sin6_port));
	} else {
		const struct sockaddr_in *four = (const struct sockaddr_in *)(const void *)address;

		inet_ntop(AF_INET, &four->sin_addr, host, sizeof(host));
		snprintf(result, sizeof(text[0]), "%s:%u", host, ntohs(four->sin_port));
	}
	return result;
}

static struct rdma_cm_event *raise_event(struct rdma_cm_id *id, enum rdma_cm_event_type type, int status)
{
	struct rdma_cm_event *event = &fake.events[fake.count++];

	assert_true(fake.count <= EVENTS_MOST);
	*event = (struct rdma_cm_event){ .id = id, .event = type, .status = status };
	assert_int_equal(write(fake.pipe[1], "", 1), 1);
	return event;
}

static void bind_to_device(struct rdma_cm_id *id)
{
	id->verbs = &fake.context;
	id->port_num = 1;
	id->route.addr.src_addr.sa_family = AF_INET;
}

/* ---- the library, as far as these runs go ---- */

enum outcome __wrap_verbs_explain_devices(const struct log *log);
enum outcome __wrap_verbs_explain_devices(const struct log *log)
{
	(void)log;
	return OUTCOME_OK;
}

struct rdma_event_channel *__wrap_rdma_create_event_channel(void);
struct rdma_event_channel *__wrap_rdma_create_event_channel(void)
{
	struct rdma_event_channel *channel = calloc(1, sizeof(*channel));

	assert_non_null(channel);
	assert_int_equal(pipe(fake.pipe), 0);
	channel->fd = fake.pipe[0];
	return channel;
}

void __wrap_rdma_destroy_event_channel(struct rdma_event_channel *channel);
void __wrap_rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
	close(fake.pipe[0]);
	close(fake.pipe[1]);
	free(channel);
}

int __wrap_rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
			  enum rdma_port_space space);
int __wrap_rdma_create_id(struct rdma_event_channel *channel, struct rdma_cm_id **id, void *context,
			  enum rdma_port_space space)
{
	*id = calloc(1, sizeof(**id));
	assert_non_null(*id);
	(*id)->channel = channel;
	(*id)->context = context;
	(*id)->ps = space;
	trace("create_id space %#06x\n", (unsigned)space);
	return 0;
}

int __wrap_rdma_destroy_id(struct rdma_cm_id *id);
int __wrap_rdma_destroy_id(struct rdma_cm_id *id)
{
	free(id);
	return 0;
}

int __wrap_rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event);
int __wrap_rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event)
{
	char byte;
	ssize_t length = read(channel->fd, &byte, 1);

	if (!length)
		errno = EIO;
	if (length != 1)
		return -1;
	assert_true(fake.first < fake.count);
	if (news_without_end) {
		fake.events[0].event = RDMA_CM_EVENT_TIMEWAIT_EXIT;
		assert_int_equal(write(fake.pipe[1], "", 1), 1);
		*event = &fake.events[0];
		return 0;
	}
	*event = &fake.events[fake.first++];
	return 0;
}

int __wrap_rdma_ack_cm_event(struct rdma_cm_event *event);
int __wrap_rdma_ack_cm_event(struct rdma_cm_event *event)
{
	(void)event;
	return 0;
}

int __wrap_rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *address);
int __wrap_rdma_bind_addr(struct rdma_cm_id *id, struct sockaddr *address)
{
	trace("bind %s\n", text_of(address));
	bind_to_device(id);
	return 0;
}

int __wrap_rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *source, struct sockaddr *destination, int timeout);
int __wrap_rdma_resolve_addr(struct rdma_cm_id *id, struct sockaddr *source, struct sockaddr *destination, int timeout)
{
	trace("resolve %s from %s in %d ms\n", text_of(destination), text_of(source), timeout);
	bind_to_device(id);
	raise_event(id, RDMA_CM_EVENT_ADDR_RESOLVED, 0);
	return 0;
}

int __wrap_rdma_resolve_route(struct rdma_cm_id *id, int timeout);
int __wrap_rdma_resolve_route(struct rdma_cm_id *id, int timeout)
{
	(void)timeout;
	raise_event(id, RDMA_CM_EVENT_ROUTE_RESOLVED, 0);
	return 0;
}

/* A listener has shown its address; if nobody will come, the port is in use. */
int __wrap_rdma_listen(struct rdma_cm_id *id, int backlog);
int __wrap_rdma_listen(struct rdma_cm_id *id, int backlog)
{
	struct rdma_cm_id *request;

	(void)backlog;
	if (!somebody_asks) {
		errno = EADDRINUSE;
		return -1;
	}
	request = calloc(1, sizeof(*request));
	assert_non_null(request);
	request->context = id->context;
	bind_to_device(request);
	raise_event(request, RDMA_CM_EVENT_CONNECT_REQUEST, 0);
	return 0;
}

int __wrap_rdma_reject(struct rdma_cm_id *id, const void *data, uint8_t length);
int __wrap_rdma_reject(struct rdma_cm_id *id, const void *data, uint8_t length)
{
	(void)id;
	(void)data;
	(void)length;
	trace("reject\n");
	return 0;
}

int __wrap_rdma_set_option(struct rdma_cm_id *id, int level, int name, void *value, size_t length);
int __wrap_rdma_set_option(struct rdma_cm_id *id, int level, int name, void *value, size_t length)
{
	(void)id;
	assert_int_equal(level, RDMA_OPTION_ID);
	assert_int_equal(length, 1);
	trace("option %s %u\n",
	      name == RDMA_OPTION_ID_TOS	   ? "tos"
	      : name == RDMA_OPTION_ID_ACK_TIMEOUT ? "ack"
						   : "?",
	      *(uint8_t *)value);
	return 0;
}

/* Nobody listens. */
int __wrap_rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *parameters);
int __wrap_rdma_connect(struct rdma_cm_id *id, struct rdma_conn_param *parameters)
{
	trace("connect reads %u/%u retry %u rnr %u data %u\n", parameters->initiator_depth,
	      parameters->responder_resources, parameters->retry_count, parameters->rnr_retry_count,
	      parameters->private_data_len);
	raise_event(id, RDMA_CM_EVENT_REJECTED, 8);
	return 0;
}

int __wrap_rdma_create_qp_ex(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attributes);
int __wrap_rdma_create_qp_ex(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attributes)
{
	trace("create_qp %s by the manager%s\n", attributes->qp_type == IBV_QPT_UD ? "UD" : "RC",
	      (attributes->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) &&
			      attributes->create_flags == IBV_QP_CREATE_BLOCK_SELF_MCAST_LB
		      ? ", no loopback"
		      : "");
	id->qp = &fake.queue;
	return 0;
}

/* A message comes for it while its queue goes: the connection must stand, whatever the manager's event has waited for.
 */
static struct verbs_endpoint *completing;

void __wrap_rdma_destroy_qp(struct rdma_cm_id *id);
void __wrap_rdma_destroy_qp(struct rdma_cm_id *id)
{
	id->qp = NULL;
	if (completing)
		verbs_endpoint_settle(completing);
	completing = NULL;
}

int __wrap_rdma_init_qp_attr(struct rdma_cm_id *id, struct ibv_qp_attr *attributes, int *mask);
int __wrap_rdma_init_qp_attr(struct rdma_cm_id *id, struct ibv_qp_attr *attributes, int *mask)
{
	(void)id;
	(void)attributes;
	*mask = IBV_QP_STATE;
	return 0;
}

static int join(struct rdma_cm_id *id, const char *how, struct sockaddr *address, void *context)
{
	static const uint8_t assigned[16] = { 0xff, 0x12, 0x60, 0x1b, 0xff, 0xff, [15] = 0x77 };
	struct rdma_cm_event *event;

	trace("join %s %s\n", text_of(address), how);
	event = raise_event(id, RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	event->param.ud = (struct rdma_ud_param){
		.private_data = context,
		.ah_attr = { .dlid = 0xc001, .sl = 3, .is_global = 1, .port_num = 1 },
		.qp_num = 0xffffff,
		.qkey = 0x01234567,
	};
	memcpy(event->param.ud.ah_attr.grh.dgid.raw, assigned, sizeof(assigned));
	return 0;
}

int __wrap_rdma_join_multicast(struct rdma_cm_id *id, struct sockaddr *address, void *context);
int __wrap_rdma_join_multicast(struct rdma_cm_id *id, struct sockaddr *address, void *context)
{
	return join(id, "as full member", address, context);
}

int __wrap_rdma_join_multicast_ex(struct rdma_cm_id *id, struct rdma_cm_join_mc_attr_ex *attributes, void *context);
int __wrap_rdma_join_multicast_ex(struct rdma_cm_id *id, struct rdma_cm_join_mc_attr_ex *attributes, void *context)
{
	assert_int_equal(attributes->comp_mask, RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS);
	assert_int_equal(attributes->join_flags, RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER);
	return join(id, "as send-only full member", attributes->addr, context);
}

int __wrap_rdma_leave_multicast(struct rdma_cm_id *id, struct sockaddr *address);
int __wrap_rdma_leave_multicast(struct rdma_cm_id *id, struct sockaddr *address)
{
	(void)id;
	trace("leave %s\n", text_of(address));
	return 0;
}

int __wrap_ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attributes);
int __wrap_ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attributes)
{
	(void)context;
	*attributes = (struct ibv_device_attr){ .max_qp_wr = 1024, .max_cqe = 4096, .max_qp_rd_atom = 16 };
	return 0;
}

int __wrap_ibv_query_port(struct ibv_context *context, uint8_t port, struct _compat_ibv_port_attr *compatible);
int __wrap_ibv_query_port(struct ibv_context *context, uint8_t port, struct _compat_ibv_port_attr *compatible)
{
	struct ibv_port_attr *attributes = (struct ibv_port_attr *)compatible;

	(void)context;
	(void)port;
	attributes->active_mtu = IBV_MTU_2048;
	attributes->max_msg_sz = 1u << 30;
	attributes->link_layer = IBV_LINK_LAYER_INFINIBAND;
	return 0;
}

struct ibv_pd *__wrap_ibv_alloc_pd(struct ibv_context *context);
struct ibv_pd *__wrap_ibv_alloc_pd(struct ibv_context *context)
{
	struct ibv_pd *domain;

	if (somebody_asks) {
		errno = ENOMEM;
		return NULL;
	}
	domain = calloc(1, sizeof(*domain));
	assert_non_null(domain);
	domain->context = context;
	return domain;
}

int __wrap_ibv_dealloc_pd(struct ibv_pd *domain);
int __wrap_ibv_dealloc_pd(struct ibv_pd *domain)
{
	free(domain);
	return 0;
}

struct ibv_comp_channel *__wrap_ibv_create_comp_channel(struct ibv_context *context);
struct ibv_comp_channel *__wrap_ibv_create_comp_channel(struct ibv_context *context)
{
	struct ibv_comp_channel *channel = calloc(1, sizeof(*channel));

	assert_non_null(channel);
	channel->context = context;
	channel->fd = fake.completion_pipe[0];
	return channel;
}

int __wrap_ibv_destroy_comp_channel(struct ibv_comp_channel *channel);
int __wrap_ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	free(channel);
	return 0;
}

static int nothing_to_poll(struct ibv_cq *queue, int most, struct ibv_wc *completions)
{
	(void)queue;
	(void)most;
	(void)completions;
	return 0;
}

static int notify(struct ibv_cq *queue, int solicited)
{
	(void)queue;
	(void)solicited;
	return 0;
}

static int take_receives(struct ibv_qp *queue, struct ibv_recv_wr *requests, struct ibv_recv_wr **bad)
{
	(void)queue;
	(void)requests;
	(void)bad;
	return 0;
}

struct ibv_cq *__wrap_ibv_create_cq(struct ibv_context *context, int entries, void *owner,
				    struct ibv_comp_channel *channel, int vector);
struct ibv_cq *__wrap_ibv_create_cq(struct ibv_context *context, int entries, void *owner,
				    struct ibv_comp_channel *channel, int vector)
{
	struct ibv_cq *queue = calloc(1, sizeof(*queue));

	(void)entries;
	(void)vector;
	assert_non_null(queue);
	queue->context = context;
	queue->channel = channel;
	queue->cq_context = owner;
	return queue;
}

int __wrap_ibv_destroy_cq(struct ibv_cq *queue);
int __wrap_ibv_destroy_cq(struct ibv_cq *queue)
{
	free(queue);
	return 0;
}

struct ibv_qp *__wrap_ibv_create_qp(struct ibv_pd *domain, struct ibv_qp_init_attr *attributes);
struct ibv_qp *__wrap_ibv_create_qp(struct ibv_pd *domain, struct ibv_qp_init_attr *attributes)
{
	(void)domain;
	trace("create_qp %s of our own\n", attributes->qp_type == IBV_QPT_UD ? "UD" : "RC");
	return &fake.queue;
}

int __wrap_ibv_modify_qp(struct ibv_qp *queue, struct ibv_qp_attr *attributes, int mask);
int __wrap_ibv_modify_qp(struct ibv_qp *queue, struct ibv_qp_attr *attributes, int mask)
{
	(void)queue;
	if (mask & IBV_QP_STATE)
		trace("modify_qp to %d\n", (int)attributes->qp_state);
	return 0;
}

int __wrap_ibv_destroy_qp(struct ibv_qp *queue);
int __wrap_ibv_destroy_qp(struct ibv_qp *queue)
{
	(void)queue;
	return 0;
}

struct ibv_ah *__wrap_ibv_create_ah(struct ibv_pd *domain, struct ibv_ah_attr *attributes);
struct ibv_ah *__wrap_ibv_create_ah(struct ibv_pd *domain, struct ibv_ah_attr *attributes)
{
	struct ibv_ah *handle = calloc(1, sizeof(*handle));

	(void)domain;
	assert_non_null(handle);
	assert_int_equal(attributes->dlid, 0xc001);
	return handle;
}

int __wrap_ibv_destroy_ah(struct ibv_ah *handle);
int __wrap_ibv_destroy_ah(struct ibv_ah *handle)
{
	free(handle);
	return 0;
}

int __wrap_ibv_attach_mcast(struct ibv_qp *queue, const union ibv_gid *gid, uint16_t lid);
int __wrap_ibv_attach_mcast(struct ibv_qp *queue, const union ibv_gid *gid, uint16_t lid)
{
	(void)queue;
	trace("attach %02x..%02x lid %#x\n", gid->raw[0], gid->raw[15], lid);
	return 0;
}

int __wrap_ibv_detach_mcast(struct ibv_qp *queue, const union ibv_gid *gid, uint16_t lid);
int __wrap_ibv_detach_mcast(struct ibv_qp *queue, const union ibv_gid *gid, uint16_t lid)
{
	(void)queue;
	trace("detach %02x..%02x lid %#x\n", gid->raw[0], gid->raw[15], lid);
	return 0;
}

static struct ibv_mr *registration(void)
{
	struct ibv_mr *region = calloc(1, sizeof(*region));

	assert_non_null(region);
	return region;
}

#undef ibv_reg_mr
struct ibv_mr *__wrap_ibv_reg_mr(struct ibv_pd *domain, void *memory, size_t length, int access);
struct ibv_mr *__wrap_ibv_reg_mr(struct ibv_pd *domain, void *memory, size_t length, int access)
{
	(void)domain;
	(void)memory;
	(void)length;
	(void)access;
	return registration();
}

struct ibv_mr *__wrap_ibv_reg_mr_iova2(struct ibv_pd *domain, void *memory, size_t length, uint64_t address,
				       unsigned int access);
struct ibv_mr *__wrap_ibv_reg_mr_iova2(struct ibv_pd *domain, void *memory, size_t length, uint64_t address,
				       unsigned int access)
{
	(void)domain;
	(void)memory;
	(void)length;
	(void)address;
	(void)access;
	return registration();
}

int __wrap_ibv_dereg_mr(struct ibv_mr *region);
int __wrap_ibv_dereg_mr(struct ibv_mr *region)
{
	free(region);
	return 0;
}

/* ---- the runs ---- */

#define ARGUMENTS_MOST 16

/* Runs a command line, checks its exit code, and that the calls were these. */
static void expect_calls(const struct command *command, const char *line, enum outcome outcome, const char *calls)
{
	char words[256], *argv[ARGUMENTS_MOST + 1] = { 0 }, *rest = words;
	struct capture capture;
	int argc = 0, out, kept = dup(STDOUT_FILENO);
	enum outcome ended;

	memset(&fake, 0, sizeof(fake));
	snprintf(words, sizeof(words), "%s", line);
	while ((argv[argc] = strsep(&rest, " ")))
		assert_true(++argc < ARGUMENTS_MOST);
	assert_int_equal(pipe(fake.completion_pipe), 0);
	fake.context.device = &fake.device;
	fake.context.async_fd = dup(fake.completion_pipe[0]);
	fake.context.ops.poll_cq = nothing_to_poll;
	fake.context.ops.req_notify_cq = notify;
	fake.context.ops.post_recv = take_receives;
	fake.device.transport_type = IBV_TRANSPORT_IB;
	snprintf(fake.device.name, sizeof(fake.device.name), "ib0");
	fake.queue = (struct ibv_qp){ .context = &fake.context, .qp_num = 17 };
	out = memfd_create("stdout", 0);
	fflush(stdout);
	dup2(out, STDOUT_FILENO);
	capture_begin(&capture);
	ended = command_run(command, command->name, argc, argv);
	capture_end(&capture);
	fflush(stdout);
	dup2(kept, STDOUT_FILENO);
	close(out);
	close(kept);
	close(fake.context.async_fd);
	close(fake.completion_pipe[0]);
	close(fake.completion_pipe[1]);
	if (ended != outcome)
		print_message("%s\n", capture.text);
	assert_int_equal(ended, outcome);
	assert_string_equal(fake.trace, calls);
}

static void mckey_native_gid(void **state)
{
	(void)state;
	expect_calls(&mckey_command, "mckey -M ff12:401b:ffff::5 -b 10.0.0.1 -C 0", OUTCOME_OK,
		     "create_id space 0x0111\n"
		     "bind 10.0.0.1:0\n"
		     "create_qp UD by the manager\n"
		     "join gid ff12:401b:ffff::5 sid 1110000 mask ffffffffffff0000 as full member\n"
		     "leave gid ff12:401b:ffff::5 sid 1110000 mask ffffffffffff0000\n");
}

static void mckey_assigned_gid(void **state)
{
	(void)state;
	expect_calls(&mckey_command, "mckey -M 0 -b 10.0.0.1 -C 0", OUTCOME_OK,
		     "create_id space 0x0111\n"
		     "bind 10.0.0.1:0\n"
		     "create_qp UD by the manager\n"
		     "join gid :: sid 1110000 mask ffffffffffff0000 as full member\n"
		     "leave gid :: sid 1110000 mask ffffffffffff0000\n");
}

static void mckey_assigned_address(void **state)
{
	(void)state;
	expect_calls(&mckey_command, "mckey -m 0.0.0.0 -b 10.0.0.1 -C 0", OUTCOME_OK,
		     "create_id space 0x0111\n"
		     "resolve 0.0.0.0:0 from 10.0.0.1:0 in 10000 ms\n"
		     "create_qp UD by the manager\n"
		     "join 0.0.0.0:0 as full member\n"
		     "leave 0.0.0.0:0\n");
}

static void mckey_ipoib_space(void **state)
{
	(void)state;
	for (int way = 0; way < 2; way++)
		expect_calls(&mckey_command,
			     way ? "mckey -m 239.1.2.3 -p ipoib -C 0" : "mckey -m 239.1.2.3 -p 0x0002 -C 0", OUTCOME_OK,
			     "create_id space 0x0002\n"
			     "resolve 239.1.2.3:0 from none in 10000 ms\n"
			     "create_qp UD by the manager\n"
			     "join 239.1.2.3:0 as full member\n"
			     "leave 239.1.2.3:0\n");
}

static void mckey_send_only(void **state)
{
	(void)state;
	expect_calls(&mckey_command, "mckey -m 239.1.2.3 -o -s -l -C 0", OUTCOME_OK,
		     "create_id space 0x0111\n"
		     "resolve 239.1.2.3:0 from none in 10000 ms\n"
		     "create_qp UD by the manager, no loopback\n"
		     "join 239.1.2.3:0 as send-only full member\n"
		     "leave 239.1.2.3:0\n");
}

static void mckey_own_queue(void **state)
{
	(void)state;
	expect_calls(&mckey_command, "mckey -m 239.1.2.3 --own-qp -C 0", OUTCOME_OK,
		     "create_id space 0x0111\n"
		     "resolve 239.1.2.3:0 from none in 10000 ms\n"
		     "create_qp UD of our own\n"
		     "modify_qp to 1\n"
		     "modify_qp to 2\n"
		     "modify_qp to 3\n"
		     "join 239.1.2.3:0 as full member\n"
		     "attach ff..77 lid 0xc001\n"
		     "detach ff..77 lid 0xc001\n"
		     "leave 239.1.2.3:0\n");
}

/* A send-only member's queue is not attached, also when it is our own. */
static void mckey_own_queue_send_only(void **state)
{
	(void)state;
	expect_calls(&mckey_command, "mckey -m 239.1.2.3 --own-qp -o -s -C 0", OUTCOME_OK,
		     "create_id space 0x0111\n"
		     "resolve 239.1.2.3:0 from none in 10000 ms\n"
		     "create_qp UD of our own\n"
		     "modify_qp to 1\n"
		     "modify_qp to 2\n"
		     "modify_qp to 3\n"
		     "join 239.1.2.3:0 as send-only full member\n"
		     "leave 239.1.2.3:0\n");
}

static void ucmatose_native_gid_client(void **state)
{
	(void)state;
	expect_calls(&ucmatose_command, "ucmatose -f gid -s fe80::2:c903:1 -b fe80::2:c903:2 -P ib --timeout 2",
		     OUTCOME_NO_CONNECTION,
		     "create_id space 0x013f\n"
		     "resolve gid fe80::2:c903:1 sid 13f1d2f mask ffffffffffffffff from "
		     "gid fe80::2:c903:2 sid 13f0000 mask ffffffffffff0000 in 2000 ms\n"
		     "create_qp RC by the manager\n"
		     "connect reads 1/1 retry 7 rnr 7 data 32\n");
}

static void ucmatose_native_gid_server(void **state)
{
	(void)state;
	expect_calls(&ucmatose_command, "ucmatose -f gid -b fe80::2:c903:1 -p 5000", OUTCOME_NO_CONNECTION,
		     "create_id space 0x0106\n"
		     "bind gid fe80::2:c903:1 sid 1061388 mask ffffffffffffffff\n");
}

static void ucmatose_options(void **state)
{
	(void)state;
	expect_calls(&ucmatose_command, "ucmatose -s 10.0.0.2 -P ib -t 0x60 -a 14", OUTCOME_NO_CONNECTION,
		     "create_id space 0x013f\n"
		     "resolve 10.0.0.2:7471 from none in 10000 ms\n"
		     "option tos 96\n"
		     "option ack 14\n"
		     "create_qp RC by the manager\n"
		     "connect reads 1/1 retry 7 rnr 7 data 32\n");
}

/* The loop has its turns all the same: the deadline comes. */
static void news_do_not_keep_the_loop(void **state)
{
	(void)state;
	news_without_end = true;
	expect_calls(&ucmatose_command, "ucmatose -s 10.0.0.2 --deadline 100ms", OUTCOME_FAILED,
		     "create_id space 0x0106\n"
		     "resolve 10.0.0.2:7471 from none in 10000 ms\n");
	news_without_end = false;
}

/* What comes before there is a connection to fail is the server's failure. */
static void servers_without_a_domain(void **state)
{
	(void)state;
	somebody_asks = true;
	expect_calls(&rping_command, "rping -s -P --idle-timeout 20ms", OUTCOME_INTERNAL,
		     "create_id space 0x0106\n"
		     "bind 0.0.0.0:7174\n"
		     "reject\n");
	expect_calls(&rping_command, "rping -s", OUTCOME_INTERNAL,
		     "create_id space 0x0106\n"
		     "bind 0.0.0.0:7174\n"
		     "reject\n");
	expect_calls(&ucmatose_command, "ucmatose", OUTCOME_INTERNAL,
		     "create_id space 0x0106\n"
		     "bind 0.0.0.0:7471\n"
		     "reject\n");
	somebody_asks = false;
}

/* ---- a device that fails ---- */

static void count_event(void *owner, struct endpoint *endpoint, const struct endpoint_event *event)
{
	(void)endpoint;
	assert_int_equal(event->kind, EVENT_FAILED);
	++*(unsigned *)owner;
}

static void stop(void *loop)
{
	loop_stop(loop);
}

/* Its other end is closed, which the fake of librdmacm takes for an error. */
static void fail_channel(struct verbs_transport *transport)
{
	struct loop_timer timer = { 0 };

	close(fake.pipe[1]);
	fake.pipe[1] = -1;
	loop_timer_start(transport->base.loop, &timer, 2 * CLOCK_NS_PER_MS, stop, transport->base.loop);
	loop_run(transport->base.loop);
}

/*
 * A completion queue that fails when only disconnections are awaited, or nothing at all, harms nobody, nor does a
 * channel when all has ended; else it fails all that need it, with a reason.
 */
static void a_failure_nobody_needs_to_know(void **state)
{
	static const struct endpoint_handlers handlers = { .event = count_event };
	static const struct {
		enum endpoint_state states[2];
		bool done;
		bool channel;
		unsigned failures;
	} rounds[] = {
		{ { ENDPOINT_DISCONNECTING, ENDPOINT_DISCONNECTING }, false, false, 0 },
		{ { ENDPOINT_DISCONNECTING, ENDPOINT_ESTABLISHED }, false, false, 2 },
		{ { ENDPOINT_DISCONNECTED, ENDPOINT_RESOLVING_ROUTE }, false, false, 2 },
		{ { ENDPOINT_JOINED, ENDPOINT_JOINED }, false, false, 2 },
		{ { ENDPOINT_JOINED, ENDPOINT_JOINED }, true, false, 0 },
		{ { ENDPOINT_DISCONNECTED, ENDPOINT_DESTROYED }, false, true, 0 },
		{ { ENDPOINT_JOINED, ENDPOINT_JOINED }, true, true, 0 },
		{ { ENDPOINT_DISCONNECTED, ENDPOINT_DISCONNECTING }, false, true, 1 },
	};

	(void)state;
	for (size_t round = 0; round < sizeof(rounds) / sizeof(*rounds); round++) {
		struct log log = { .name = "test" };
		struct verbs_endpoint endpoints[2] = { 0 };
		struct verbs_slot slots[2] = { { .endpoint = &endpoints[0] }, { .endpoint = &endpoints[1] } };
		struct verbs_transport transport = {
			.base = { .loop = loop_create(), .log = &log },
			.slots = slots,
			.slot_count = 2,
		};
		struct verbs_domain domain = { .base = { .transport = &transport.base, .device = "ib0" } };
		struct channel *channel;
		struct capture capture;
		unsigned failures = 0;

		assert_int_equal(verbs_channel_create(&transport.base, &channel), OUTCOME_OK);
		for (size_t index = 0; index < 2; index++) {
			endpoints[index].base.transport = &transport.base;
			endpoints[index].base.channel = channel;
			endpoints[index].base.domain = &domain.base;
			endpoints[index].base.state = rounds[round].states[index];
			endpoints[index].base.done = rounds[round].done;
			endpoints[index].base.handlers = &handlers;
			endpoints[index].base.owner = &failures;
		}
		capture_begin(&capture);
		if (rounds[round].channel)
			fail_channel(&transport);
		else
			verbs_domain_failed(&domain, EINVAL, "arming a completion queue");
		capture_end(&capture);
		assert_int_equal(failures, rounds[round].failures);
		assert_int_equal(strstr(capture.text, rounds[round].channel
							      ? "event channel: reading an event: Input/output error"
							      : "ib0: arming a completion queue: Invalid argument") !=
					 NULL,
				 failures > 0);
		verbs_channel_free((struct verbs_channel *)channel);
		loop_destroy(transport.base.loop);
	}
}

/* Nothing would tell it of its completions. */
static void a_failed_device_takes_nobody(void **state)
{
	struct log log = { .name = "test" };
	struct ibv_context context = { 0 };
	struct rdma_cm_id id = { .verbs = &context };
	struct verbs_transport transport = { .base = { .log = &log } };
	struct verbs_domain domain = { .base = { .transport = &transport.base, .device = "ib0" }, .context = &context };
	struct verbs_endpoint endpoint = { .base = { .transport = &transport.base, .kind = ENDPOINT_CONNECTION },
					   .id = &id };
	struct capture capture;

	(void)state;
	transport.domains = &domain;
	capture_begin(&capture);
	assert_int_equal(verbs_domain_attach(&endpoint), OUTCOME_OK);
	verbs_domain_failed(&domain, EINVAL, "arming a completion queue");
	assert_int_equal(verbs_domain_attach(&endpoint), OUTCOME_FAILED);
	capture_end(&capture);
	assert_non_null(strstr(capture.text, "ib0: the device has failed before"));
}

/*
 * An iWARP client that is cut short while it keeps the news of its connection back: what the device still completes
 * finds nothing to settle.
 */
static void news_kept_back_are_freed_once(void **state)
{
	struct log log = { .name = "test" };
	struct verbs_slot slot = { 0 };
	struct verbs_transport transport = { .base = { .log = &log }, .slots = &slot, .slot_count = 1 };
	struct verbs_endpoint *endpoint = calloc(1, sizeof(*endpoint));

	(void)state;
	assert_non_null(endpoint);
	*endpoint = (struct verbs_endpoint){
		.base = { .transport = &transport.base, .state = ENDPOINT_DESTROYED },
		.id = calloc(1, sizeof(*endpoint->id)),
		.queue = &fake.queue,
		.news = calloc(1, sizeof(*endpoint->news)),
	};
	assert_true(endpoint->id && endpoint->news);
	completing = endpoint;
	verbs_endpoint_free(endpoint);
	assert_null(completing);
}

static void hear_nothing(void *owner, struct endpoint *endpoint, const struct endpoint_event *event)
{
	(void)owner;
	(void)endpoint;
	assert_int_equal(event->kind, EVENT_FAILED);
}

/* Peers that ask and take it back, again and again, do not fill a server's log; what fails the listener is told. */
static void strangers_do_not_fill_the_log(void **state)
{
	static const struct endpoint_handlers handlers = { .event = hear_nothing };
	const struct rdma_cm_event event = { .event = RDMA_CM_EVENT_REJECTED, .status = 28 };
	struct log log = { .name = "test" };
	struct transport transport = { .log = &log };
	struct verbs_endpoint endpoint = {
		.base = { .transport = &transport, .kind = ENDPOINT_CONNECTION, .handlers = &handlers }
	};
	struct capture capture;
	unsigned lines = 0;

	(void)state;
	capture_begin(&capture);
	for (unsigned i = 0; i < 50; i++) {
		endpoint.base.state = ENDPOINT_ACCEPTING;
		verbs_endpoint_event(&endpoint, &event, NULL);
		assert_int_equal(endpoint.base.state, ENDPOINT_FAILED);
	}
	endpoint.base.kind = ENDPOINT_LISTENER;
	endpoint.base.state = ENDPOINT_LISTENING;
	verbs_endpoint_event(&endpoint, &event, NULL);
	capture_end(&capture);
	for (const char *at = capture.text; (at = strchr(at, '\n')); at++)
		lines++;
	assert_int_equal(lines, 11);
	assert_non_null(strstr(capture.text, "listening: "));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mckey_native_gid),
		cmocka_unit_test(mckey_assigned_gid),
		cmocka_unit_test(mckey_assigned_address),
		cmocka_unit_test(mckey_ipoib_space),
		cmocka_unit_test(mckey_send_only),
		cmocka_unit_test(mckey_own_queue),
		cmocka_unit_test(mckey_own_queue_send_only),
		cmocka_unit_test(ucmatose_native_gid_client),
		cmocka_unit_test(ucmatose_native_gid_server),
		cmocka_unit_test(ucmatose_options),
		cmocka_unit_test(news_do_not_keep_the_loop),
		cmocka_unit_test(servers_without_a_domain),
		cmocka_unit_test(a_failure_nobody_needs_to_know),
		cmocka_unit_test(a_failed_device_takes_nobody),
		cmocka_unit_test(news_kept_back_are_freed_once),
		cmocka_unit_test(strangers_do_not_fill_the_log),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
