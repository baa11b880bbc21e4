/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Devices with the limits of real drivers, as their sources have them (rdma-core 65 and Linux): docs/hardware.md says
 * which function each rule is from. What they refuse with no errno value at all is 0 here.
 */
#include "test/verbs/provider/provider.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
	UNIT = 64, /* mlx5: a basic block of the send queue */
	MLX5_SEND_UNITS = 32768,
	MLX5_OVERHEAD = 192, /* of a work request of an RC queue pair: control, UMR, mkey, KLMs */
	MLX5_LONGEST = 1024,
	IRDMA_QUANTA = 32768,
	IRDMA_RESERVED = 258,
	IRDMA_INLINE = 101,
	BNXT_HEADER = 32,
	BNXT_ELEMENT = 16,
	BNXT_ELEMENTS = 6,
	MLX4_INLINE = 1024,
};

static uint32_t align(uint32_t value, uint32_t to)
{
	return (value + to - 1) / to * to;
}

static uint32_t power_of_two(uint64_t least)
{
	uint32_t value = 1;

	while (value < least)
		value *= 2;
	return value;
}

/* The limit is one of blocks, of which a work request takes several, and more with inline data. */
static int mlx5_refuses(const struct ibv_qp_cap *cap)
{
	uint32_t size = MLX5_OVERHEAD + 16 * cap->max_send_sge;

	if (cap->max_inline_data && size < MLX5_OVERHEAD + align(4 + cap->max_inline_data, 16))
		size = MLX5_OVERHEAD + align(4 + cap->max_inline_data, 16);
	if (size > MLX5_LONGEST)
		return EINVAL;
	return power_of_two((uint64_t)cap->max_send_wr * align(size, UNIT)) / UNIT > MLX5_SEND_UNITS ||
			       cap->max_recv_wr > MLX5_SEND_UNITS
		       ? EINVAL
		       : -1;
}

static int irdma_refuses(const struct ibv_qp_cap *cap)
{
	unsigned shift = cap->max_inline_data <= 39 ? 1 : 2; /* two elements, as an immediate counts for one */

	if (cap->max_inline_data > IRDMA_INLINE || cap->max_send_wr > IRDMA_QUANTA || cap->max_recv_wr > IRDMA_QUANTA)
		return EINVAL;
	return power_of_two(((uint64_t)cap->max_send_wr << shift) + IRDMA_RESERVED) > IRDMA_QUANTA ? EINVAL : -1;
}

static int bnxt_refuses(const struct ibv_qp_cap *cap)
{
	return BNXT_HEADER + align(cap->max_inline_data, BNXT_HEADER) > BNXT_HEADER + BNXT_ELEMENT * BNXT_ELEMENTS ? 0
														   : -1;
}

static int mlx4_refuses(const struct ibv_qp_cap *cap)
{
	return cap->max_inline_data > MLX4_INLINE ? EINVAL : -1;
}

static const struct driver {
	const char *name;
	int (*refuses)(const struct ibv_qp_cap *cap);
	int max_work, reads_answered, reads_begun;
	uint32_t vendor;
	int groups;
} drivers[] = {
	{ "mlx5", mlx5_refuses, MLX5_SEND_UNITS, 16, 16, 0x02c9, 1 << 21 },
	{ "irdma", irdma_refuses, (IRDMA_QUANTA - IRDMA_RESERVED) / 8, 127, 64, 0x8086, 65536 },
	{ "bnxt_re", bnxt_refuses, 65407, 126, 126, 0x14e4, 0 },
	{ "mlx4", mlx4_refuses, 16351, 16, 128, 0x02c9, 8192 },
};

void device_drive(struct device *device, const char *name)
{
	const struct driver *driver = drivers;

	while (strcmp(driver->name, name) != 0)
		driver++;
	snprintf(device->base.name, sizeof(device->base.name), "%s_0", name);
	device->refuses = driver->refuses;
	device->inline_max = UINT32_MAX;
	device->limits.max_qp_wr = driver->max_work;
	device->limits.max_qp_rd_atom = driver->reads_answered;
	device->limits.max_qp_init_rd_atom = driver->reads_begun;
	device->limits.max_cqe = 4194303;
	device->limits.max_mcast_grp = driver->groups;
	if (!strcmp(name, "mlx4")) /* a card whose second port is set to Ethernet */
		device->ports[1].fabric = PROVIDER_ROCE;
	device->limits.vendor_id = driver->vendor;
}
