/* SPDX-License-Identifier: BSD-2-Clause */
/* link: -Wl,--wrap=recv -Wl,--wrap=ioctl -Wl,--wrap=getsockopt -Wl,--wrap=if_nametoindex */
/* Route look-ups, and the kernel's replies. */
#include "test/unit/unit.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "core/route.h"

static struct {
	struct nlmsghdr header;
	struct rtmsg route;
	struct rtattr row;
	uint32_t interface;
} reply;
static uint16_t answer = RTM_NEWROUTE;
static size_t received; /* bytes of the reply */
static unsigned vrf;	/* to which the process's sockets are bound */
static uint8_t asked[256];

ssize_t __wrap_recv(int fd, void *bytes, size_t size, int flags)
{
	memset(bytes, 0xff, size);
	memcpy(bytes, &reply, received);
	return (ssize_t)received;
}

int __wrap_ioctl(int fd, unsigned long request, struct ifreq *value)
{
	if (request == SIOCGIFMTU)
		value->ifr_mtu = 1500;
	return 0;
}

int __wrap_getsockopt(int fd, int level, int option, void *value, socklen_t *length)
{
	assert_int_equal(option, SO_BINDTODEVICE);
	strcpy(value, vrf ? "red" : "");
	return 0;
}

unsigned __wrap_if_nametoindex(const char *name)
{
	return strcmp(name, "red") ? 0 : vrf;
}

static int find(uint32_t length, size_t bytes, struct route *route)
{
	const struct address peer = { .family = ADDRESS_IP4, .bytes = { 10, 0, 0, 2 } };
	const struct address source = { .family = ADDRESS_IP4, .bytes = { 10, 0, 0, 1 } };
	int ends[2], error;

	reply.header = (struct nlmsghdr){ .nlmsg_len = length, .nlmsg_type = answer };
	reply.row = (struct rtattr){ .rta_len = RTA_LENGTH(sizeof(reply.interface)), .rta_type = RTA_OIF };
	reply.interface = 7;
	received = bytes;
	assert_int_equal(pipe(ends), 0);
	error = route_find(ends[1], route_vrf(), &peer, &source, route);
	assert_true(read(ends[0], asked, sizeof(asked)) > 0);
	close(ends[0]);
	close(ends[1]);
	return error;
}

TEST(reply_is_read, NULL, NULL)
{
	struct route route;

	assert_int_equal(find(sizeof(reply), sizeof(reply), &route), 0);
	assert_int_equal(route.interface, 7);
	assert_int_equal(route.mtu, 1500);
}

/* No byte is read beyond the received ones, whatever the reply's length. */
TEST(reply_names_another_length, NULL, NULL)
{
	static const struct {
		uint32_t named;
		size_t received;
	} rows[] = {
		{ sizeof(reply), sizeof(reply) - 4 },
		{ UINT32_MAX, sizeof(reply) },
		{ sizeof(reply.header), sizeof(reply.header) },
		{ 0, sizeof(reply) },
		{ NLMSG_SPACE(sizeof(struct rtmsg)) - 1, sizeof(reply) },
	};
	struct route route;

	for (size_t i = 0; i < LENGTH(rows); i++)
		assert_int_equal(find(rows[i].named, rows[i].received, &route), EMSGSIZE);
}

/* The reply of a kernel without IPv6 (ipv6.disable=1). */
TEST(family_is_unknown, NULL, NULL)
{
	struct route route;

	answer = NLMSG_ERROR;
	reply.route = (struct rtmsg){ 0 };
	memcpy(&reply.route, &(int){ -EOPNOTSUPP }, sizeof(int));
	assert_int_equal(find(sizeof(reply), sizeof(reply), &route), EAFNOSUPPORT);
	answer = RTM_NEWROUTE;
}

/* "ip vrf exec": this process's packets use the VRF's routes. */
TEST(routes_of_a_vrf, NULL, NULL)
{
	struct route route;
	struct {
		struct rtattr row;
		unsigned interface;
	} output = { .row = { .rta_len = RTA_LENGTH(sizeof(unsigned)), .rta_type = RTA_OIF } };

	assert_int_equal(find(sizeof(reply), sizeof(reply), &route), 0);
	assert_null(memmem(asked, sizeof(asked), &output.row, sizeof(output.row)));
	vrf = output.interface = 5;
	assert_int_equal(find(sizeof(reply), sizeof(reply), &route), 0);
	assert_non_null(memmem(asked, sizeof(asked), &output, sizeof(output)));
	vrf = 0;
}
