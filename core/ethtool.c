/* SPDX-License-Identifier: BSD-2-Clause */
#include "core/ethtool.h"

#include <linux/sockios.h>
#include <net/if.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/log.h"

enum {
	SPARE = 4096 /* statistics that the driver may get meanwhile: the kernel does not ask for the room */
};

bool ethtool_ask(const char *interface, void *request)
{
	struct ifreq message = { .ifr_data = request };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool answered;

	if (fd < 0)
		return false;
	log_text(message.ifr_name, sizeof(message.ifr_name), "%s", interface);
	answered = !ioctl(fd, SIOCETHTOOL, &message);
	close(fd);
	return answered;
}

void *ethtool_statistics(const char *interface, uint32_t command)
{
	struct ethtool_drvinfo driver = { .cmd = ETHTOOL_GDRVINFO };
	uint32_t *request = NULL;

	if (ethtool_ask(interface, &driver) && driver.n_stats)
		request = calloc((size_t)driver.n_stats + SPARE, ETH_GSTRING_LEN);
	if (!request)
		return NULL;
	request[0] = command;
	request[1] = command == ETHTOOL_GSTRINGS ? ETH_SS_STATS : 0;
	if (ethtool_ask(interface, request))
		return request;
	free(request);
	return NULL;
}
