/* SPDX-License-Identifier: BSD-2-Clause */
#include "test/verbs/provider/provider.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/interface.h"
#include "core/log.h"
#include "core/route.h"
#include "core/route_cause.h"

struct provider provider;

void provider_die(const char *format, ...)
{
	va_list list;

	va_start(list, format);
	fputs("provider: ", stderr);
	vfprintf(stderr, format, list);
	fputc('\n', stderr);
	va_end(list);
	abort();
}

void provider_trace(const char *format, ...)
{
	size_t used = strlen(provider.trace);
	va_list list;

	va_start(list, format);
	vsnprintf(provider.trace + used, TRACE_SIZE - used, format, list);
	va_end(list);
}

/* The program's own: it must report a lack of memory. */
void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size)
{
	return provider_fails("calloc") ? NULL : __real_calloc(count, size);
}

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size)
{
	return provider_fails("malloc") ? NULL : __real_malloc(size);
}

void *__real_realloc(void *memory, size_t size);
void *__wrap_realloc(void *memory, size_t size)
{
	return provider_fails("realloc") ? NULL : __real_realloc(memory, size);
}

void *provider_allocate(size_t size)
{
	void *memory = __real_calloc(1, size);

	if (!memory)
		provider_die("out of memory");
	return memory;
}

bool provider_fails(const char *call)
{
	if (!provider.fails || strcmp(provider.fails, call) != 0 || provider.calls++ < provider.fails_after ||
	    (provider.fails_once && provider.calls > provider.fails_after + 1))
		return false;
	errno = provider.fails_with;
	return true;
}

void provider_fail(const char *call, int error, unsigned after)
{
	provider.fails = call;
	provider.fails_with = error;
	provider.fails_after = after;
	provider.calls = 0;
}

/* ---- actions ---- */

uint32_t provider_random(uint32_t below)
{
	uint32_t *state = &provider.random;

	*state ^= *state << 13;
	*state ^= *state >> 17;
	*state ^= *state << 5;
	return *state % below;
}

/* A watcher of a channel is called again while there are actions. */
static void set_bells(void)
{
	for (struct cm_channel *channel = provider.channels; channel; channel = channel->next)
		doorbell_set(&channel->bell,
			     provider.actions || channel->waiting || (provider.events_without_end && provider.ids));
}

struct action *provider_action(action_run *run, unsigned lane)
{
	struct action *action = provider_allocate(sizeof(*action));

	action->run = run;
	action->lane = lane;
	LIST_APPEND(provider.actions, action);
	set_bells();
	return action;
}

void provider_forget(const void *subject)
{
	struct action *action = provider.actions, *next;

	for (; action; action = next) {
		next = action->next;
		if (action->subject != subject)
			continue;
		LIST_REMOVE(provider.actions, action);
		free(action);
	}
}

static bool is_first_of_its_lane(const struct action *action)
{
	const struct action *first = provider.actions;

	while (first->lane != action->lane)
		first = first->next;
	return first == action;
}

static struct action *choose(void)
{
	struct action *action = provider.actions;
	uint32_t count = 0, index;

	if (!provider.seed)
		return action;
	for (; action; action = action->next)
		count += is_first_of_its_lane(action);
	index = provider_random(count);
	for (action = provider.actions; index || !is_first_of_its_lane(action); action = action->next)
		index -= is_first_of_its_lane(action);
	return action;
}

void provider_pump(void)
{
	unsigned count = provider.seed ? provider_random(4) : 1000;

	while (count-- && provider.actions) {
		struct action *action = choose();

		LIST_REMOVE(provider.actions, action);
		if (action->until > clock_now()) {
			LIST_APPEND(provider.actions, action);
			continue;
		}
		action->run(action);
		free(action);
	}
	set_bells();
}

/* ---- descriptors ---- */

void doorbell_open(struct doorbell *bell)
{
	bell->fd = eventfd(0, EFD_CLOEXEC);
	bell->raised = false;
	if (bell->fd < 0)
		provider_die("eventfd: %s", strerror(errno));
}

void doorbell_set(struct doorbell *bell, bool raised)
{
	uint64_t value = 1;

	if (raised == bell->raised)
		return;
	bell->raised = raised;
	if ((raised ? write(bell->fd, &value, sizeof(value)) : read(bell->fd, &value, sizeof(value))) != sizeof(value))
		provider_die("a descriptor of the provider was closed by another");
}

int doorbell_empty(const struct doorbell *bell, const char *call)
{
	if (!(fcntl(bell->fd, F_GETFL) & O_NONBLOCK))
		provider_die("%s: would wait forever", call);
	errno = EAGAIN;
	return -1;
}

/* ---- the file system, as far as the backend reads it ---- */

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *place)
{
	return remove(path);
}

static const char *elsewhere(const char *path, char buffer[256])
{
	if (!*provider.root || (strncmp(path, "/sys", 4) != 0 && strncmp(path, "/dev/infiniband", 15) != 0 &&
				strncmp(path, "/proc/sys/net/core", 18) != 0))
		return path;
	snprintf(buffer, 256, "%s%s", provider.root, path);
	return buffer;
}

int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
	char buffer[256];
	va_list list;
	mode_t mode;

	va_start(list, flags);
	mode = flags & O_CREAT ? va_arg(list, mode_t) : 0;
	va_end(list);
	path = elsewhere(path, buffer);
	return path == buffer && provider_fails("open") ? -1 : __real_open(path, flags, mode);
}

int __real_stat(const char *path, struct stat *status);
int __wrap_stat(const char *path, struct stat *status)
{
	char buffer[256];

	return __real_stat(elsewhere(path, buffer), status);
}

int __real_scandir(const char *path, struct dirent ***entries, int (*is_kept)(const struct dirent *),
		   int (*order)(const struct dirent **, const struct dirent **));
int __wrap_scandir(const char *path, struct dirent ***entries, int (*is_kept)(const struct dirent *),
		   int (*order)(const struct dirent **, const struct dirent **))
{
	char buffer[256];

	return provider_fails("scandir") ? -1 : __real_scandir(elsewhere(path, buffer), entries, is_kept, order);
}

int __real_access(const char *path, int mode);
int __wrap_access(const char *path, int mode)
{
	char buffer[256];

	return __real_access(elsewhere(path, buffer), mode);
}

bool provider_has(const char *format, ...)
{
	char path[256], buffer[256];
	va_list list;

	va_start(list, format);
	vsnprintf(path, sizeof(path), format, list);
	va_end(list);
	return !__real_access(elsewhere(path, buffer), F_OK);
}

void provider_write(const char *content, const char *format, ...)
{
	char path[128], buffer[256];
	va_list list;
	FILE *file;

	va_start(list, format);
	vsnprintf(path, sizeof(path), format, list);
	va_end(list);
	elsewhere(path, buffer);
	for (char *slash = buffer + strlen(provider.root) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = 0;
		mkdir(buffer, 0755);
		*slash = '/';
	}
	remove(buffer);
	if (!strcmp(content, DEVICE_FILE)) {
		if (symlink(DEVICE_FILE, buffer))
			provider_die("symlink: %s", strerror(errno));
		return;
	}
	file = fopen(buffer, "w");
	if (!file || fputs(content, file) < 0 || fclose(file))
		provider_die("%s: %s", buffer, strerror(errno));
}

void provider_remove(const char *path)
{
	char buffer[256];

	if (nftw(elsewhere(path, buffer), remove_entry, 8, FTW_DEPTH | FTW_PHYS))
		provider_die("%s: %s", path, strerror(errno));
}

/* For the interface "lo", which every machine has. */
static size_t add_addresses(struct interface_address *list, size_t max)
{
	size_t count = 0;

	for (; count < provider.crowd && count < max; count++)
		list[count] =
			(struct interface_address){ .address = { ADDRESS_IP4, .bytes = { 10, 9 } }, .name = "lo" };
	for (size_t index = 0; index < DEVICES_MAX; index++)
		for (int port = 0; provider.devices[index] && port < PORTS && count < max; port++) {
			const struct sockaddr_in *address = &provider.devices[index]->ports[port].address;

			list[count] = (struct interface_address){ .address.family = ADDRESS_IP4, .name = "lo" };
			memcpy(list[count++].address.bytes, &address->sin_addr, 4);
		}
	return count;
}

size_t __wrap_interface_addresses(struct interface_address *list)
{
	return add_addresses(list, INTERFACE_ADDRESSES_MAX);
}

size_t __wrap_interface_list(const char *name, struct interface_address **list)
{
	const size_t max = provider.crowd + DEVICES_MAX * PORTS;

	*list = name && strcmp(name, "lo") != 0 ? NULL : calloc(max, sizeof(**list));
	return *list ? add_addresses(*list, max) : 0;
}

bool __real_route_look_up(const struct address *peer, const struct address *source, struct route *route);
bool __wrap_route_look_up(const struct address *peer, const struct address *source, struct route *route)
{
	memcpy(provider.looked_up_from, source->bytes, sizeof(provider.looked_up_from));
	return __real_route_look_up(peer, source, route);
}

bool __wrap_interface_of(const struct address *address, char name[IF_NAMESIZE])
{
	strcpy(name, "lo");
	return true;
}

struct doctor;

bool __wrap_trace_refusal(struct doctor *doctor, const struct address *peer, char text[ERROR_HINT_SIZE])
{
	log_text(text, ERROR_HINT_SIZE, "%s", provider.refusal ? provider.refusal : "");
	return *text;
}

/* The kernel's tables, which do not have these devices. */
bool __wrap_route_cause(const struct address *local, const struct address *peer, char text[ROUTE_CAUSE_SIZE])
{
	log_text(text, ROUTE_CAUSE_SIZE, "%s", provider.route_cause ? provider.route_cause : "");
	return *text;
}

bool __wrap_route_is_elsewhere(const struct address *local, const struct address *peer, char text[ROUTE_CAUSE_SIZE])
{
	log_text(text, ROUTE_CAUSE_SIZE, "%s", provider.elsewhere ? provider.elsewhere : "");
	return *text;
}

/* ---- begin and end ---- */

void provider_begin(enum provider_fabric fabric, unsigned seed)
{
	memset(&provider, 0, sizeof(provider));
	provider.fabric = fabric;
	provider.seed = seed;
	provider.random = 2463534242u ^ (seed * 2654435761u);
	provider.keeps_completions = seed % 2;
	provider.last_number = 16;
	strcpy(provider.root, "/tmp/provider.XXXXXX");
	if (!mkdtemp(provider.root))
		provider_die("mkdtemp: %s", strerror(errno));
	provider_write(DEVICE_FILE, "/dev/infiniband/rdma_cm");
	provider_write(DEVICE_NUMBER, "/sys/class/misc/rdma_cm/dev");
	for (unsigned index = 0; index < 2; index++)
		provider.devices[index] = device_add(fabric, index);
}

void provider_end(void)
{
	unsigned left[] = { provider.channels != NULL,
			    provider.ids != NULL,
			    provider.qps != NULL,
			    provider.cqs != NULL,
			    provider.completion_channels != NULL,
			    provider.regions != NULL,
			    provider.attachments != NULL,
			    provider.protection_domains,
			    provider.handles };
	static const char *const names[] = { "event channel",	 "identifier",	       "queue pair",
					     "completion queue", "completion channel", "region",
					     "attachment",	 "protection domain",  "address handle" };

	if (!*provider.root)
		return;
	for (size_t index = 0; index < sizeof(left) / sizeof(*left); index++)
		if (left[index])
			provider_die("not given back: %s", names[index]);
	while (provider.actions)
		provider_forget(provider.actions->subject);
	for (size_t index = 0; index < DEVICES_MAX; index++)
		if (provider.devices[index])
			device_free(provider.devices[index]);
	nftw(provider.root, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
	memset(&provider, 0, sizeof(provider));
}
