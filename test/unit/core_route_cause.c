/* SPDX-License-Identifier: BSD-2-Clause */
/* link: -Wl,--wrap=route_open -Wl,--wrap=route_find -Wl,--wrap=route_by_interface -Wl,--wrap=interface_elsewhere */
/* link: -Wl,--wrap=if_indextoname -Wl,--wrap=if_nametoindex -Wl,--wrap=host_find_card */
/* link: -Wl,--wrap=route_neighbour -Wl,--wrap=interface_read -Wl,--wrap=sysfs_read -Wl,--wrap=fopen */
/* Causes from the kernel's tables: what only RDMA devices would show. The others: test/soft/routes. */
#include "test/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/rtnetlink.h>

#include "core/host.h"
#include "core/interface.h"
#include "core/route.h"
#include "core/route_cause.h"

enum {
	F0 = 2, /* has the local address */
	F1 = 3	/* has the route */
};

static bool by_f0; /* the peer has a route by that interface, too */
static const char *card;
static unsigned facts; /* of each interface */

int __wrap_route_open(void)
{
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

int __wrap_route_find(int fd, unsigned vrf, const struct address *peer, const struct address *source,
		      struct route *route)
{
	*route = (struct route){ .interface = F1 };
	return 0;
}

bool __wrap_route_by_interface(int fd, const struct address *peer, const struct address *source, unsigned interface,
			       struct route *route)
{
	return interface == F0 && by_f0;
}

bool __wrap_interface_elsewhere(const struct address *address, unsigned index, char name[])
{
	strcpy(name, "f0");
	return true;
}

char *__wrap_if_indextoname(unsigned index, char name[])
{
	return strcpy(name, index == F1 ? "f1" : "f0");
}

unsigned __wrap_if_nametoindex(const char *name)
{
	return strcmp(name, "f1") ? F0 : F1;
}

bool __wrap_host_find_card(const char *interface, char device[])
{
	assert_string_equal(interface, "f1");
	strcpy(device, card);
	return *card;
}

/* A socket's packets take the route, a device's the interface of the local address, if that has one. */
TEST(address_of_another_interface, NULL, NULL)
{
	static const struct {
		bool from_device, by_f0;
		const char *card, *text;
	} rows[] = {
		{ false, false, "mlx5_1", "packets from 10.0.0.2 leave by f1, though f0 has it" },
		{ false, true, "mlx5_1", "packets from 10.0.0.2 leave by f1, though f0 has it" },
		{ true, true, "mlx5_1", "" },
		{ true, false, "mlx5_1",
		  "10.0.0.2 is on f0, but the route to the peer is by f1 (mlx5_1): use that one, or give f0 a route "
		  "there" },
		{ true, false, "", "10.0.0.2 is on f0, but the route to the peer is by f1: give f0 a route there" },
	};
	const struct address local = { .family = ADDRESS_IP4, .bytes = { 10, 0, 0, 2 } };
	const struct address peer = { .family = ADDRESS_IP4, .bytes = { 10, 100, 0, 14 } };
	char text[ROUTE_CAUSE_SIZE];

	for (size_t row = 0; row < LENGTH(rows); row++) {
		by_f0 = rows[row].by_f0;
		card = rows[row].card;
		assert_int_equal((rows[row].from_device ? route_is_elsewhere : route_strays)(&local, &peer, text),
				 *rows[row].text != 0);
		assert_string_equal(text, rows[row].text);
	}
}

struct route_neighbour __wrap_route_neighbour(int fd, unsigned interface, const struct address *address)
{
	return (struct route_neighbour){ .state = NUD_FAILED };
}

struct interface __wrap_interface_read(const char *name)
{
	return (struct interface){ .facts = facts };
}

bool __wrap_sysfs_read(enum sysfs_reading reading, char text[], const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static bool bonded; /* f1 is a bond of InfiniBand's interfaces, else itself one */

bool __wrap_sysfs_read(enum sysfs_reading reading, char text[], const char *format, ...)
{
	char path[SYSFS_PATH_SIZE];
	va_list list;

	va_start(list, format);
	vsnprintf(path, sizeof(path), format, list);
	va_end(list);
	if (text)
		strcpy(text, !strcmp(path, bonded ? "/sys/class/net/ib0/pkey" : "/sys/class/net/f1/pkey") ? "0x8001"
			     : bonded && !strcmp(path, "/sys/class/net/f1/bonding/slaves")		  ? "ib0 ib1"
													  : "");
	return text && *text;
}

/* InfiniBand has partitions instead of VLANs. */
TEST(partition, NULL, NULL)
{
	static const struct {
		unsigned facts;
		const char *text;
	} rows[] = {
		{ INTERFACE_HERE | INTERFACE_UP | INTERFACE_LINK,
		  "10.100.0.14 answers no ARP on f1: is it up, and in partition 0x8001?" },
		{ INTERFACE_HERE | INTERFACE_UP, "f1 has no link: is its port active, and in partition 0x8001 (cat "
						 "/sys/class/infiniband/*/ports/*/pkeys/*)?" },
	};
	const struct address any = { .family = ADDRESS_IP4 };
	const struct address peer = { .family = ADDRESS_IP4, .bytes = { 10, 100, 0, 14 } };
	char text[ROUTE_CAUSE_SIZE];

	by_f0 = false;
	for (size_t row = 0; row < 2 * LENGTH(rows); row++) {
		facts = rows[row / 2].facts;
		bonded = row % 2;
		assert_true(route_cause(&any, &peer, text));
		assert_string_equal(text, rows[row / 2].text);
	}
	bonded = false;
}

FILE *__real_fopen(const char *path, const char *mode);

/* fe80::1 is f0's, and another host has f1's. */
FILE *__wrap_fopen(const char *path, const char *mode)
{
	static char lines[] = "fe800000000000000000000000000001 02 40 20 80       f0\n"
			      "fe800000000000000000000000000001 03 40 20 c8       f1\n";

	return strcmp(path, "/proc/self/net/if_inet6") ? __real_fopen(path, mode) : fmemopen(lines, strlen(lines), "r");
}

TEST(address_of_two_interfaces, NULL, NULL)
{
	struct address address = { .family = ADDRESS_IP6, .bytes = { 0xfe, 0x80, [15] = 1 }, .scope = F0 };
	char text[ROUTE_CAUSE_SIZE];

	route_cause_local(&address, text);
	assert_string_equal(text, "");
	address.scope = F1;
	assert_true(route_cause_local(&address, text));
	assert_non_null(strstr(text, "cannot be used: another host has it (dadfailed)"));
}
