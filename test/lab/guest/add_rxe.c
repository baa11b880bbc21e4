/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * add_rxe DEVICE INTERFACE: makes a soft-RoCE device, as "rdma link add DEVICE type rxe netdev INTERFACE" does. For a
 * guest without the libraries that rdma needs; a card does not need this.
 */
#include <errno.h>
#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct request {
	struct nlmsghdr header;
	char attributes[256];
};

/* Room for three names of at most 63 characters. */
static void add_text(struct request *request, unsigned short type, const char *text)
{
	struct nlattr *attribute = (struct nlattr *)((char *)request + NLMSG_ALIGN(request->header.nlmsg_len));
	size_t length = strnlen(text, 63) + 1;

	attribute->nla_type = type;
	attribute->nla_len = (unsigned short)(NLA_HDRLEN + length);
	memcpy((char *)attribute + NLA_HDRLEN, text, length - 1);
	request->header.nlmsg_len = NLMSG_ALIGN(request->header.nlmsg_len) + NLA_ALIGN(attribute->nla_len);
}

int main(int argc, char **argv)
{
	struct request request = { .header = { .nlmsg_len = NLMSG_LENGTH(0),
					       .nlmsg_type = RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, RDMA_NLDEV_CMD_NEWLINK),
					       .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK } };
	struct {
		struct nlmsghdr header;
		struct nlmsgerr error;
		char rest[1024];
	} answer;
	int netlink = socket(AF_NETLINK, SOCK_RAW, NETLINK_RDMA);

	if (argc != 3) {
		fprintf(stderr, "usage: add_rxe DEVICE INTERFACE\n");
		return 2;
	}
	add_text(&request, RDMA_NLDEV_ATTR_DEV_NAME, argv[1]);
	add_text(&request, RDMA_NLDEV_ATTR_LINK_TYPE, "rxe");
	add_text(&request, RDMA_NLDEV_ATTR_NDEV_NAME, argv[2]);
	if (netlink < 0 || send(netlink, &request, request.header.nlmsg_len, 0) < 0 ||
	    recv(netlink, &answer, sizeof(answer), 0) < (ssize_t)NLMSG_LENGTH(sizeof(answer.error))) {
		perror("add_rxe");
		return 1;
	}
	if (answer.header.nlmsg_type != NLMSG_ERROR || answer.error.error) {
		fprintf(stderr, "add_rxe: %s on %s: %s\n", argv[1], argv[2], strerror(-answer.error.error));
		return 1;
	}
	return 0;
}
