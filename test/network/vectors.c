/* SPDX-License-Identifier: BSD-2-Clause */
#include "test/network/vectors.h"

#include <stdlib.h>
#include <string.h>

/* clang-format off */

#define MAD(number)                                                                                                    \
	{ .opcode = 0x64, .ack_request = true, .pkey = 0xffff, .destination = 0x1, .psn = (number),                    \
	  .datagram = { 0x80010000, 0x1 }, .length = 256 }

static struct vector vectors[VECTORS] = {
	{ "req4", /* REQ of stock rping over IPv4 */
	  "4500013459a840004011cc0e0a0000020a000001d87212b7012000006400ffff000000018000000080010000000000010107"
	  "0203z7.02e39018b70010z6.b71890e3z8.01061c06505400fffe000002z10.110100000001000000a0162739a7ffff37f0"
	  "ffffffffz10.ffff0a000002z10.ffff0a000001a6d3200000400098z45.40d954z12.0a000002z12.0a000001z56.cb7465"
	  "45",
	  MAD(0) },
	{ "rep4", /* REP */
	  "45000134575940004011ce5d0a0000010a000002d87212b7012000006400ffff000000018000000080010000000000010107"
	  "0203z7.02e39018b70013z6.2a16bac1b71890e3z6.110000000000d30ce000010178e0505400fffe000001z196.e83603b9",
	  MAD(0) },
	{ "rtu4", /* RTU */
	  "4500013459c640004011cbf00a0000020a000001d87212b7012000006400ffff000000018000000180010000000000010107"
	  "0203z7.02e39018b70014z6.b71890e32a16bac1z224.2d67d10f",
	  MAD(1) },
	{ "send_only4", /* SEND only: an advertisement of rping */
	  "4500003c59c740004011cce70a0000020a000001ed1b12b7002800000400ffff0000001180d30ce00000561a8227c5200000"
	  "05530000001e72f65f1b",
	  { .opcode = 0x04, .ack_request = true, .pkey = 0xffff, .destination = 0x11, .psn = 13831392, .length = 16 } },
	{ "ack4", /* its ACK */
	  "45000030575b40004011cf5f0a0000010a000002ed1b12b7001c00001100ffff0000001100d30ce01f000001ed7c3d1a",
	  { .opcode = 0x11, .pkey = 0xffff, .destination = 0x11, .psn = 13831392,
	    .acknowledgement = { 0x1f, 1 } } },
	{ "read_request4", /* RDMA READ request for 30 bytes */
	  "4500003c575c40004011cf520a0000010a000002ed1b12b7002800000c00ffff00000011801627390000561a8227c5200000"
	  "05530000001ef72a8df8",
	  { .opcode = 0x0c, .ack_request = true, .pkey = 0xffff, .destination = 0x11, .psn = 1451833,
	    .remote = { 0x561a8227c520, 0x553, 30 } } },
	{ "read_only4", /* RDMA READ response only, 2 bytes of pad */
	  "4500005059c940004011ccd10a0000020a000001ed1b12b7003c00001020ffff00000011001627391f00000172646d612d70"
	  "696e672d303a2041r15.0000000b2e535b",
	  { .opcode = 0x10, .pad = 2, .pkey = 0xffff, .destination = 0x11, .psn = 1451833,
	    .acknowledgement = { 0x1f, 1 }, .length = 30 } },
	{ "write_only4", /* RDMA WRITE only, 2 bytes of pad */
	  "4500005c576240004011cf2c0a0000010a000002ed1b12b7004800000a20ffff000000118016273b0000561a8227da900000"
	  "045f0000001e72646d612d70696e672d303a2041r15.0000006dcf6cdc",
	  { .opcode = 0x0a, .ack_request = true, .pad = 2, .pkey = 0xffff, .destination = 0x11, .psn = 1451835,
	    .remote = { 0x561a8227da90, 0x45f, 30 }, .length = 30 } },
	{ "dreq4", /* DREQ */
	  "4500013459e440004011cbd20a0000020a000001d87212b7012000006400ffff000000018000000280010000000000010107"
	  "0203z7.02e39018b70015z6.b71890e32a16bac1000011z221.89637bef",
	  MAD(2) },
	{ "drep4", /* DREP */
	  "45000134577240004011ce440a0000010a000002d87212b7012000006400ffff000000018000000180010000000000010107"
	  "0203z7.02e39018b70016z6.2a16bac1b71890e3z224.113c8dc0",
	  MAD(1) },
	{ "req6", /* REQ of stock rping over IPv6 */
	  "6000000001201140fdz14.02fdz14.01d87212b7012000006400ffff0000000180000003800100000000000101070203z7."
	  "02e39018b60010z6.b61890e3z8.01061c06505400fffe000002z10.120100000001000000a0703ec6a7ffff37f0ffffffff"
	  "fdz14.02fdz14.01594b600000400098z45.60b150fdz14.02fdz14.01z56.cd2dbddf",
	  MAD(3) },
	{ "write_only6", /* RDMA WRITE only, 1 byte of pad */
	  "6000000000481140fdz14.01fdz14.02d4a012b7004800000a10ffff0000001280703ec800005619ba673be00000088f0000"
	  "001f72646d612d70696e672d303a2041r16.0000ef3dfcce",
	  { .opcode = 0x0a, .ack_request = true, .pad = 1, .pkey = 0xffff, .destination = 0x12, .psn = 7356104,
	    .remote = { 0x5619ba673be0, 0x88f, 31 }, .length = 31 } },
	{ "read_first4", /* RDMA READ response first */
	  "450004305bfb40004011c6bf0a0000020a000001da2912b7041c00000d00ffff0000001300b625bd1f00000172646d612d70"
	  "696e672d303a2041r1010.48ad7410",
	  { .opcode = 0x0d, .pkey = 0xffff, .destination = 0x13, .psn = 11937213,
	    .acknowledgement = { 0x1f, 1 }, .length = 1024 } },
	{ "read_middle4", /* RDMA READ response middle */
	  "4500042c5bfc40004011c6c20a0000020a000001da2912b7041800000e00ffff0000001300b625be5ar1023.668d4f53",
	  { .opcode = 0x0e, .pkey = 0xffff, .destination = 0x13, .psn = 11937214, .length = 1024 } },
	{ "read_last4", /* RDMA READ response last, 3 bytes of pad */
	  "450001385bfe40004011c9b40a0000020a000001da2912b7012400000f30ffff0000001300b625c01f0000016cr259.0000"
	  "0000d5f294ec",
	  { .opcode = 0x0f, .pad = 3, .pkey = 0xffff, .destination = 0x13, .psn = 11937216,
	    .acknowledgement = { 0x1f, 1 }, .length = 261 } },
	{ "write_first4", /* RDMA WRITE first, of 3333 bytes */
	  "4500043c586940004011ca450a0000010a000002da2912b7042800000600ffff0000001300b625c2000055b59f1614c00000"
	  "0c8a00000d0572646d612d70696e672d303a2041r1010.f5497eb5",
	  { .opcode = 0x06, .pkey = 0xffff, .destination = 0x13, .psn = 11937218,
	    .remote = { 0x55b59f1614c0, 0xc8a, 3333 }, .length = 1024 } },
	{ "write_middle4", /* RDMA WRITE middle */
	  "4500042c586a40004011ca540a0000010a000002da2912b7041800000700ffff0000001300b625c35ar1023.70d03e4b",
	  { .opcode = 0x07, .pkey = 0xffff, .destination = 0x13, .psn = 11937219, .length = 1024 } },
	{ "write_last4", /* RDMA WRITE last, 3 bytes of pad */
	  "45000134586c40004011cd4a0a0000010a000002da2912b7012000000830ffff0000001380b625c56cr259.000000007d14"
	  "047e",
	  { .opcode = 0x08, .ack_request = true, .pad = 3, .pkey = 0xffff, .destination = 0x13, .psn = 11937221, .length = 261 } },
	{ "send_first6", /* SEND first, ucmatose with 2500 bytes */
	  "6000000004181140fdz14.01fdz14.02fe8b12b7041800000000ffff0000001600c0e392z1024.82392847",
	  { .opcode = 0x00, .pkey = 0xffff, .destination = 0x16, .psn = 12641170, .length = 1024 } },
	{ "send_middle6", /* SEND middle */
	  "6000000004181140fdz14.01fdz14.02fe8b12b7041800000100ffff0000001600c0e393z1024.3a1d118b",
	  { .opcode = 0x01, .pkey = 0xffff, .destination = 0x16, .psn = 12641171, .length = 1024 } },
	{ "send_last6", /* SEND last */
	  "6000000001dc1140fdz14.01fdz14.02fe8b12b701dc00000200ffff0000001680c0e394z452.dd87456e",
	  { .opcode = 0x02, .ack_request = true, .pkey = 0xffff, .destination = 0x16, .psn = 12641172, .length = 452 } },
	{ "req_hello4", /* REQ with private data of the consumer */
	  "45000134626540004011c3510a0000020a000001d87212b7012000006400ffff000000018000001580010000000000010107"
	  "0203z7.02e39018b00010z6.b01890e3z8.01061c06505400fffe000002z10.180100000001000000a0ff72eaa7ffff37f0"
	  "ffffffffz10.ffff0a000002z10.ffff0a0000015631000000400098z45.40afb6z12.0a000002z12.0a000001d772647401"
	  "0100000000ffffz11.01z32.a29ca1f5",
	  MAD(21) },
	{ "rej_no_listener4", /* REJ: no listener */
	  "450001345cf740004011c8bf0a0000010a000002d87212b7012000006400ffff000000018000001080010000000000010107"
	  "0203z7.02e39018bf0012z10.bf1890e300000008z221.8497a8",
	  MAD(16) },
	{ "rej_consumer4", /* REJ by the consumer, with text in the private data */
	  "450001345ff740004011c5bf0a0000010a000002d87212b7012000006400ffff000000018000001380010000000000010107"
	  "0203z7.02e39018bc0012z6.3f16bac1bc1890e30000001cz72.62757379207769746820616e6f7468657220636c69656e74"
	  "z124.949f5c9f",
	  MAD(19) },
	{ "datagram4", /* a datagram of mckey with immediate data, to 239.1.1.4, 3 bytes of pad */
	  "45000048a605400040119a980a000002ef010104dd5f12b7003400006530ffff00ffffff00000000012345670000001e0000"
	  "001e8ef8075a05z11.b3028bd7",
	  { .opcode = 0x65, .pad = 3, .pkey = 0xffff, .destination = 0xffffff, .psn = 0,
	    .datagram = { 0x1234567, 0x1e },
	    .immediate = 0x0000001e, .length = 13 } },
	{ "mra4", /* MRA, after a repeated REQ */
	  "45000134d1454000401154710a0000010a000002d87212b7012000006400ffff000000018000000080010000000000010107"
	  "0203z7.02952a53120011z6.d8a3e2f712532a9500c0z222.f6788a5c",
	  MAD(0) },
	{ "rnr_nak4", /* RNR NAK */
	  "45000030d4884000401152320a0000010a000002ca8412b7001c00001100ffff000000120025f612210000408ce99788",
	  { .opcode = 0x11, .pkey = 0xffff, .destination = 0x12, .psn = 2487826,
	    .acknowledgement = { 0x21, 64 } } },
	{ "nak_sequence4", /* NAK: PSN sequence error */
	  "45000030d4894000401152310a0000010a000002ca8412b7001c00001100ffff000000120025f612600000407dddb6e5",
	  { .opcode = 0x11, .pkey = 0xffff, .destination = 0x12, .psn = 2487826,
	    .acknowledgement = { 0x60, 64 } } },
	{ "nak_operation4", /* NAK: remote operation, of a SEND that was longer than the receive */
	  "45000030d77d400040114f3d0a0000010a000002e13212b7001c00001100ffff00000014006599be6300000034fa9b7c",
	  { .opcode = 0x11, .pkey = 0xffff, .destination = 0x14, .psn = 6658494,
	    .acknowledgement = { 0x63, 0 } } },
};
/* clang-format on */

void vector_open(const struct vector *vector, struct vector_datagram *datagram)
{
	const uint8_t *ip = vector->bytes;
	enum icrc_family family = ip[0] >> 4 == 4 ? ICRC_IP4 : ICRC_IP6;
	size_t ip_size = family == ICRC_IP4 ? 20 : 40;
	const uint8_t *udp = ip + ip_size;

	memset(datagram, 0, sizeof(*datagram));
	datagram->bytes = udp + 8;
	datagram->length = vector->length - ip_size - 8;
	if (family == ICRC_IP4) {
		datagram->identification = (uint16_t)(ip[4] << 8 | ip[5]);
		datagram->may_fragment = !(ip[6] & 0x40);
	}
	icrc_flow_prepare(&datagram->flow, family, ip + (family == ICRC_IP4 ? 12 : 8),
			  ip + (family == ICRC_IP4 ? 16 : 24), (uint16_t)(udp[0] << 8 | udp[1]),
			  (uint16_t)(udp[2] << 8 | udp[3]));
}

static uint8_t digit(char text)
{
	return (uint8_t)(text <= '9' ? text - '0' : text - 'a' + 10);
}

size_t vector_unpack(const char *text, uint8_t *bytes)
{
	size_t length = 0;
	uint8_t last = 0;

	while (*text) {
		char kind = *text;
		size_t count = 1;

		if (kind == 'z' || kind == 'r') {
			char *end;

			count = strtoul(text + 1, &end, 10);
			text = end + 1;
		}
		for (; count; count--) {
			if (kind == 'z')
				last = 0;
			else if (kind == 'r')
				last = last == 'z' ? 'A' : (uint8_t)(last + 1);
			else
				last = (uint8_t)(digit(text[0]) << 4 | digit(text[1]));
			if (bytes)
				bytes[length] = last;
			length++;
		}
		if (kind != 'z' && kind != 'r')
			text += 2;
	}
	return length;
}

/* The allocation has exactly the length of the packet: a read beyond it is detected. */
const struct vector *vector_at(size_t index)
{
	struct vector *vector = &vectors[index];
	uint8_t *bytes;

	if (vector->bytes)
		return vector;
	vector->length = vector_unpack(vector->text, NULL);
	bytes = malloc(vector->length);
	if (!bytes)
		abort();
	vector_unpack(vector->text, bytes);
	vector->bytes = bytes;
	return vector;
}

const struct vector *vector_named(const char *name)
{
	for (size_t i = 0; i < VECTORS; i++)
		if (!strcmp(vectors[i].name, name))
			return vector_at(i);
	return NULL;
}
