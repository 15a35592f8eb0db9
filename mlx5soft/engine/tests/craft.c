// SPDX-License-Identifier: GPL-2.0
#include <string.h>

#include "craft.h"

/* CRC-32 as the specification draws it, and not as zlib computes it. */
static uint32_t crc32_bits(uint32_t crc, const uint8_t *p, size_t n)
{
	while (n--) {
		crc ^= *p++;
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
	}
	return crc;
}

uint32_t icrc(const uint8_t *frame, size_t len)
{
	static const uint8_t ones[8] = { 0xff, 0xff, 0xff, 0xff,
					 0xff, 0xff, 0xff, 0xff };
	uint8_t m[8192], *ip = m + 14, *udp;

	memcpy(m, frame, len);
	if (ip[0] >> 4 == 4) {
		udp = ip + 20;
		ip[1] = ip[8] = ip[10] = ip[11] = 0xff;
	} else {
		udp = ip + 40;
		ip[0] |= 0xf;
		ip[1] = ip[2] = ip[3] = ip[7] = 0xff;
	}
	udp[6] = udp[7] = 0xff;
	udp[8 + 4] = 0xff;
	return ~crc32_bits(crc32_bits(~0U, ones, 8), ip, len - 14);
}

enum parse_result parse(struct packet *pkt, const uint8_t *data, size_t len)
{
	enum parse_result res = packet_parse_network(pkt, data, len);

	return res == PARSE_OK ? packet_parse_transport(pkt) : res;
}

struct sim *sim;
struct roce_config config;
struct sim_qp *a, *b;
uint8_t last[2][8192];
size_t last_len[2];
uint32_t count[2];
bool swallow[2];

static bool capture(struct sim *s, int from, uint8_t *data, size_t len)
{
	uint32_t crc = icrc(data, len - 4);
	uint8_t want[4] = { crc, crc >> 8, crc >> 16, crc >> 24 };

	(void)s;
	CHECK(!memcmp(want, data + len - 4, 4), "ICRC");
	memcpy(last[from], data, len);
	last_len[from] = len;
	count[from]++;
	return swallow[from];
}

void setup(enum roce_qp_type type, bool ipv6)
{
	struct roce_qp_attr attr;

	sim = sim_create(1 << 20, &config);
	sim->ipv6 = ipv6;
	sim->filter = capture;
	a = sim_qp(&sim->nodes[0], type, NULL);
	b = sim_qp(&sim->nodes[1], type, NULL);
	sim_attributes(sim, &attr, 0, 0);
	attr.timeout = 0;
	sim_connect(a, b, &attr);
	for (int i = 0; i < 65536; i++)
		sim->nodes[0].mem[i] = i;
	last_len[0] = last_len[1] = 0;
	count[0] = count[1] = 0;
	swallow[0] = swallow[1] = false;
}

size_t craft(uint8_t *frame, int to, const struct crafted *c)
{
	uint32_t flags = packet_flags(c->opcode), len;
	struct roce_av src, dst;
	uint8_t ext[64] = { 0 }, buf[8192] = { 0 }, *made;
	struct header h = { .ext = ext };

	sim_address(sim, !to, &src);
	sim_address(sim, to, &dst);
	h.smac = src.dmac;
	h.sgid = src.dgid;
	h.dmac = dst.dmac;
	h.dgid = dst.dgid;
	h.opcode = c->opcode;
	h.ack_req = !c->quiet;
	h.psn = c->psn & PSN_MASK;
	h.dest_qpn = to ? b->qpn : a->qpn;
	if (flags & PKT_RETH || flags & PKT_ATOMICETH) {
		put_be64(ext, c->addr);
		put_be32(ext + 8, c->rkey);
		put_be32(ext + 12, c->len);
		h.ext_len = RETH_BYTES;
	}
	if (flags & PKT_ATOMICETH) {
		put_be64(ext + 12, c->add);
		put_be64(ext + 20, c->compare);
		h.ext_len = ATOMICETH_BYTES;
	}
	if (flags & PKT_AETH) {
		ext[0] = c->syndrome;
		h.ext_len = AETH_BYTES;
	}
	if (flags & PKT_ATOMICACKETH)
		h.ext_len += ATOMICACKETH_BYTES;
	if (flags & (PKT_IMM | PKT_INV))
		h.ext_len += IMM_BYTES;
	made = packet_build(&h, buf + MAX_HEADER_BYTES, c->payload, &len);
	memcpy(frame, made, len);
	return len;
}
