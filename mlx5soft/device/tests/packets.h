/* SPDX-License-Identifier: GPL-2.0 */
/* Frames to test with */
#ifndef MLX5SOFT_PACKETS_H
#define MLX5SOFT_PACKETS_H

#include "ethernet/frame.h"

struct recipe {
	uint8_t version, proto;
	uint32_t payload;
	int tags;
	uint32_t options;    /* bytes of IPv4 options or of an IPv6 header */
	uint32_t padding;    /* behind the packet */
	uint16_t fragment;   /* as in IPv4's header */
	uint8_t tcp_options; /* bytes */
	uint8_t flags;	     /* of TCP */
};

/* Make a frame with right lengths and no checksums; returns its length. */
static inline uint32_t packet_make(uint8_t *f, const struct recipe *r)
{
	uint32_t l4_hdr = r->proto == PROTOCOL_TCP ? 20U + r->tcp_options : 8,
		 at, i;
	uint32_t l4_len = l4_hdr + r->payload, l3;

	for (i = 0; i < 12; i++)
		f[i] = 0x52 + i;
	at = 12;
	for (i = 0; i < (uint32_t)r->tags; i++, at += 4) {
		put_be16(f + at, r->tags == 2 && !i ? ETHERTYPE_SVLAN
						    : ETHERTYPE_CVLAN);
		put_be16(f + at + 2, 0x6000 + 100 + i);
	}
	put_be16(f + at, r->version == 4 ? ETHERTYPE_IPV4 : ETHERTYPE_IPV6);
	l3 = at += 2;
	if (r->version == 4) {
		memset(f + at, 0, 20 + r->options);
		f[at] = 0x45 + r->options / 4;
		put_be16(f + at + 2, 20 + r->options + l4_len);
		put_be16(f + at + 4, 0xfffe);
		put_be16(f + at + 6, r->fragment);
		f[at + 8] = 64;
		f[at + 9] = r->proto;
		put_be32(f + at + 12, 0x0a000001);
		put_be32(f + at + 16, 0x0a000002);
		memset(f + at + 20, 1, r->options); /* NOP */
		at += 20 + r->options;
	} else {
		memset(f + at, 0, 40 + r->options);
		f[at] = 0x60;
		put_be16(f + at + 4, r->options + l4_len);
		f[at + 6] = r->options ? 60 : r->proto;
		f[at + 7] = 64;
		for (i = 0; i < 32; i++)
			f[at + 8 + i] = 0x20 + 7 * i;
		at += 40;
		if (r->options) {
			f[at] = r->proto;
			f[at + 1] = r->options / 8 - 1;
			at += r->options;
		}
	}
	memset(f + at, 0, l4_hdr);
	put_be16(f + at, 1000);
	put_be16(f + at + 2, 2000);
	if (r->proto == PROTOCOL_TCP) {
		put_be32(f + at + 4, 0xfffff000);
		f[at + 12] = l4_hdr / 4 << 4;
		f[at + 13] = r->flags;
		memset(f + at + 20, 1, r->tcp_options);
	} else {
		put_be16(f + at + 4, l4_len);
	}
	at += l4_hdr;
	for (i = 0; i < r->payload; i++)
		f[at + i] = i * 31 + i / 256 + l3;
	at += r->payload;
	memset(f + at, 0xa5, r->padding);
	return at + r->padding;
}

#endif /* MLX5SOFT_PACKETS_H */
