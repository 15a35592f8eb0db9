// SPDX-License-Identifier: GPL-2.0
/*
 * The hash of receive side scaling: vectors of the RSS verification suite,
 * and what a TIR selects
 */

#include "ethernet/rss.h"
#include "packets.h"
#include "../../../tests/check.h"

static const uint8_t key[40] = {
	0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67,
	0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb,
	0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30,
	0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
};

struct vector {
	uint8_t version;
	uint8_t src[16], dst[16];
	uint16_t sport, dport;
	uint32_t ip_hash, tcp_hash;
};

static const struct vector vectors[] = {
	{ 4,
	  { 66, 9, 149, 187 },
	  { 161, 142, 100, 80 },
	  2794,
	  1766,
	  0x323e8fc2,
	  0x51ccc178 },
	{ 4,
	  { 199, 92, 111, 2 },
	  { 65, 69, 140, 83 },
	  14230,
	  4739,
	  0xd718262a,
	  0xc626b0ea },
	{ 4,
	  { 24, 19, 198, 95 },
	  { 12, 22, 207, 184 },
	  12898,
	  38024,
	  0xd2d0a5de,
	  0x5c2b394a },
	{ 4,
	  { 38, 27, 205, 30 },
	  { 209, 142, 163, 6 },
	  48228,
	  2217,
	  0x82989176,
	  0xafc7327f },
	{ 4,
	  { 153, 39, 163, 191 },
	  { 202, 188, 127, 2 },
	  44251,
	  1303,
	  0x5d1809c5,
	  0x10e828a2 },
	{ 6,
	  { 0x3f, 0xfe, 0x25, 0x01, 0x02, 0x00, 0x1f, 0xff, 0, 0, 0, 0, 0, 0, 0,
	    7 },
	  { 0x3f, 0xfe, 0x25, 0x01, 0x02, 0x00, 0x00, 0x03, 0, 0, 0, 0, 0, 0, 0,
	    1 },
	  2794,
	  1766,
	  0x2cc18cd5,
	  0x40207d3d },
	{ 6,
	  { 0x3f, 0xfe, 0x05, 0x01, 0x00, 0x08, 0, 0, 0x02, 0x60, 0x97, 0xff,
	    0xfe, 0x40, 0xef, 0xab },
	  { 0xff, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1 },
	  14230,
	  4739,
	  0x0f0c461c,
	  0xdde51bbf },
	{ 6,
	  { 0x3f, 0xfe, 0x19, 0x00, 0x45, 0x45, 0x00, 0x03, 0x02, 0x00, 0xf8,
	    0xff, 0xfe, 0x21, 0x67, 0xcf },
	  { 0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0x02, 0x00, 0xf8, 0xff, 0xfe, 0x21,
	    0x67, 0xcf },
	  44251,
	  38024,
	  0x4b61e985,
	  0x02d1feef },
};

static void make_tirc(uint8_t *tirc, bool v6, bool udp, uint32_t fields)
{
	uint8_t *sel = AT(tirc, tirc, rx_hash_field_selector_outer);

	memset(tirc, 0, BYTES(tirc));
	SET(tirc, tirc, rx_hash_fn, 2);
	memcpy(AT(tirc, tirc, rx_hash_toeplitz_key), key, sizeof(key));
	SET(rx_hash_field_select, sel, l3_prot_type, v6);
	SET(rx_hash_field_select, sel, l4_prot_type, udp);
	SET(rx_hash_field_select, sel, selected_fields, fields);
}

static void make_frame(uint8_t *f, struct frame *h, const struct vector *v,
		       uint8_t proto)
{
	struct recipe r = { .version = v->version,
			    .proto = proto,
			    .payload = 10 };
	uint32_t len = packet_make(f, &r), alen = v->version == 4 ? 4 : 16;

	frame_parse(f, len, false, h);
	memcpy(f + h->l3 + (alen == 4 ? 12 : 8), v->src, alen);
	memcpy(f + h->l3 + (alen == 4 ? 16 : 24), v->dst, alen);
	put_be16(f + h->l4, v->sport);
	put_be16(f + h->l4 + 2, v->dport);
}

static void verification_suite(void)
{
	uint8_t f[200], tirc[BYTES(tirc)], type;
	const struct vector *v;
	struct frame h;
	size_t i;

	for (i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
		v = &vectors[i];
		make_frame(f, &h, v, PROTOCOL_TCP);
		make_tirc(tirc, v->version == 6, false, 0x3);
		MUST(rss_hash(tirc, f, &h, &type) == v->ip_hash);
		MUST(type == (v->version == 6 ? 0x0a : 0x05));
		make_tirc(tirc, v->version == 6, false, 0xf);
		MUST(rss_hash(tirc, f, &h, &type) == v->tcp_hash);
		MUST(type == (v->version == 6 ? 0x5a : 0x55));
		make_frame(f, &h, v, PROTOCOL_UDP);
		make_tirc(tirc, v->version == 6, true, 0xf);
		MUST(rss_hash(tirc, f, &h, &type) == v->tcp_hash);
		MUST(type == (v->version == 6 ? 0xaa : 0xa5));
	}
}

static void selection(void)
{
	uint8_t f[200], tirc[BYTES(tirc)], type;
	struct vector v = vectors[0], back = v;
	struct frame h, other;
	uint32_t hash;

	make_frame(f, &h, &v, PROTOCOL_TCP);
	/* fields that the frame has not */
	make_tirc(tirc, true, false, 0x3);
	MUST(!rss_hash(tirc, f, &h, &type) && !type);
	make_tirc(tirc, false, true, 0xf);
	MUST(!rss_hash(tirc, f, &h, &type) && !type);
	other = h;
	other.l4_type = 0;
	make_tirc(tirc, false, false, 0xf);
	MUST(!rss_hash(tirc, f, &other, &type) && !type);
	/* one field */
	make_tirc(tirc, false, false, 0x2);
	MUST(rss_hash(tirc, f, &h, &type) == rss_toeplitz(key, v.dst, 4));
	MUST(type == 0x04);
	/* no function */
	SET(tirc, tirc, rx_hash_fn, 0);
	MUST(!rss_hash(tirc, f, &h, &type) && !type);
	/* inverted XOR of all bytes */
	make_tirc(tirc, false, false, 0x3);
	SET(tirc, tirc, rx_hash_fn, 1);
	MUST(rss_hash(tirc, f, &h, &type) ==
	     (uint8_t)~(66 ^ 9 ^ 149 ^ 187 ^ 161 ^ 142 ^ 100 ^ 80));
	/* both directions of a connection alike */
	memcpy(back.src, v.dst, 16);
	memcpy(back.dst, v.src, 16);
	back.sport = v.dport;
	back.dport = v.sport;
	make_tirc(tirc, false, false, 0xf);
	SET(tirc, tirc, rx_hash_symmetric, 1);
	hash = rss_hash(tirc, f, &h, &type);
	make_frame(f, &h, &back, PROTOCOL_TCP);
	MUST(hash && rss_hash(tirc, f, &h, &type) == hash);
}

int main(void)
{
	verification_suite();
	selection();
	return check_result();
}
