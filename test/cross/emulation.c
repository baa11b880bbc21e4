/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Works around qemu-user's gaps between a foreign program and this kernel: it passes UDP_SEGMENT and UDP_GRO in the
 * foreign byte order, takes the interface in a struct ip_mreqn for a long, and does not know IP_MULTICAST_IF. Only
 * linked into this test's programs.
 */
#include <endian.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <string.h>
#include <sys/socket.h>

int __real_setsockopt(int fd, int level, int name, const void *value, socklen_t size);
ssize_t __real_sendmsg(int fd, const struct msghdr *message, int flags);
int __real_sendmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags);
int __real_recvmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags, struct timespec *timeout);

int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t size)
{
	const struct ip_mreqn *membership = value;

	/* Here the source's interface is also the group's, so the workaround is exact. */
	if (level == IPPROTO_IP && name == IP_MULTICAST_IF)
		return 0;
	if (level == IPPROTO_IP && (name == IP_ADD_MEMBERSHIP || name == IP_DROP_MEMBERSHIP)) {
		const struct {
			struct in_addr group, address;
			long interface;
		} emulated = { membership->imr_multiaddr, membership->imr_address, membership->imr_ifindex };

		return __real_setsockopt(fd, level, name, &emulated, sizeof(emulated));
	}
	return __real_setsockopt(fd, level, name, value, size);
}

static void translate(const struct msghdr *message, int type)
{
	struct cmsghdr *row = message->msg_controllen ? CMSG_FIRSTHDR(message) : NULL;
	uint16_t segment;
	uint32_t coalesced;

	if (!row || row->cmsg_level != IPPROTO_UDP || row->cmsg_type != type)
		return;
	if (type == UDP_SEGMENT) {
		memcpy(&segment, CMSG_DATA(row), sizeof(segment));
		segment = htole16(segment);
		memcpy(CMSG_DATA(row), &segment, sizeof(segment));
	} else {
		memcpy(&coalesced, CMSG_DATA(row), sizeof(coalesced));
		coalesced = le32toh(coalesced);
		memcpy(CMSG_DATA(row), &coalesced, sizeof(coalesced));
	}
}

/* Converting again undoes it: unsent messages are sent again. */
ssize_t __wrap_sendmsg(int fd, const struct msghdr *message, int flags)
{
	ssize_t sent;

	translate(message, UDP_SEGMENT);
	sent = __real_sendmsg(fd, message, flags);
	translate(message, UDP_SEGMENT);
	return sent;
}

int __wrap_sendmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags)
{
	int sent;

	for (unsigned index = 0; index < count; index++)
		translate(&messages[index].msg_hdr, UDP_SEGMENT);
	sent = __real_sendmmsg(fd, messages, count, flags);
	for (unsigned index = 0; index < count; index++)
		translate(&messages[index].msg_hdr, UDP_SEGMENT);
	return sent;
}

int __wrap_recvmmsg(int fd, struct mmsghdr *messages, unsigned count, int flags, struct timespec *timeout)
{
	int taken = __real_recvmmsg(fd, messages, count, flags, timeout);

	for (int index = 0; index < taken; index++)
		translate(&messages[index].msg_hdr, UDP_GRO);
	return taken;
}
