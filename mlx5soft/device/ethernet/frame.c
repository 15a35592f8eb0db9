// SPDX-License-Identifier: GPL-2.0
/* Ethernet frames: headers, checksums, segmentation. */

#include "ethernet/frame.h"

#define MAX_EXTENSIONS 8
#define IP6_HOP_BY_HOP 0
#define IP6_ROUTING 43
#define IP6_FRAGMENT 44
#define IP6_DESTINATION 60
#define TCP_FIN 0x01
#define TCP_PSH 0x08
#define TCP_CWR 0x80

/* ---- headers ---- */

static void set_end(struct frame *h, uint32_t end, uint32_t len)
{
	h->cut = end > len;
	h->end = h->cut ? len : end;
}

static bool parse_ipv4(const uint8_t *f, uint32_t len, bool lso,
		       struct frame *h)
{
	const uint8_t *ip = f + h->l3;

	if (len < h->l3 + IPV4_BYTES || ip[0] >> 4 != 4)
		return false;
	h->l4 = h->l3 + (ip[0] & 15) * 4;
	set_end(h, lso ? len : h->l3 + get_be16(ip + 2), len);
	h->proto = ip[9];
	h->fragment = get_be16(ip + 6) & 0x3fff; /* more, or not the first */
	return h->l4 >= h->l3 + IPV4_BYTES && h->end >= h->l4;
}

/* What we cannot look through stays as the protocol. */
static bool parse_ipv6(const uint8_t *f, uint32_t len, bool lso,
		       struct frame *h)
{
	const uint8_t *ip = f + h->l3, *ext;
	uint32_t n;
	int i;

	if (len < h->l3 + IPV6_BYTES || ip[0] >> 4 != 6)
		return false;
	h->l4 = h->l3 + IPV6_BYTES;
	set_end(h, lso ? len : h->l4 + get_be16(ip + 4), len);
	h->proto = ip[6];
	for (i = 0; i < MAX_EXTENSIONS && h->l4 + 8 <= h->end; i++) {
		ext = f + h->l4;
		n = 8 + 8 * ext[1];
		if (h->proto == IP6_FRAGMENT) {
			n = 8;
			h->fragment = get_be16(ext + 2) & 0xfff9;
		} else if (h->proto == IP6_ROUTING) {
			if (ext[3]) /* the destination is another */
				break;
		} else if (h->proto != IP6_HOP_BY_HOP &&
			   h->proto != IP6_DESTINATION) {
			break;
		}
		if (n > h->end - h->l4)
			break;
		h->proto = ext[0];
		h->l4 += n;
		if (h->fragment)
			break;
	}
	return true;
}

static void parse_l4(const uint8_t *f, bool lso, struct frame *h)
{
	uint32_t room = h->end - h->l4, n;

	h->l4_end = h->end;
	if (h->fragment)
		return;
	if (h->proto == PROTOCOL_TCP && room >= 20) {
		h->l4_type = PROTOCOL_TCP;
	} else if (h->proto == PROTOCOL_UDP && room >= UDP_BYTES) {
		n = lso ? room : get_be16(f + h->l4 + 4);
		if (n < UDP_BYTES || n > room)
			return;
		h->l4_type = PROTOCOL_UDP;
		h->l4_end = h->l4 + n;
	}
}

void frame_parse(const uint8_t *f, uint32_t len, bool lso, struct frame *h)
{
	int tags;

	memset(h, 0, sizeof(*h));
	if (len < ETH_BYTES)
		return;
	h->l3 = ETH_BYTES;
	for (tags = 0;; tags++) {
		h->type = get_be16(f + h->l3 - 2);
		if ((h->type != ETHERTYPE_CVLAN &&
		     h->type != ETHERTYPE_SVLAN) ||
		    tags == VLAN_MAX_TAGS || len < h->l3 + VLAN_BYTES)
			break;
		h->l3 += VLAN_BYTES;
	}
	if (h->type == ETHERTYPE_IPV4 && parse_ipv4(f, len, lso, h))
		h->version = 4;
	else if (h->type == ETHERTYPE_IPV6 && parse_ipv6(f, len, lso, h))
		h->version = 6;
	if (h->version)
		parse_l4(f, lso, h);
	else
		*h = (struct frame){ .l3 = h->l3, .type = h->type };
}

/* ---- checksums ---- */

uint64_t csum_add(uint64_t sum, const uint8_t *p, uint32_t len)
{
	for (; len >= 4; p += 4, len -= 4)
		sum += get_be32(p);
	if (len >= 2) {
		sum += get_be16(p);
		p += 2;
		len -= 2;
	}
	if (len)
		sum += *p << 8;
	return sum;
}

uint16_t csum_fold(uint64_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

/* over the TCP segment or UDP datagram and the pseudo header */
static uint16_t sum_l4(const uint8_t *f, const struct frame *h)
{
	uint32_t len = h->l4_end - h->l4;
	uint64_t sum = h->version == 4 ? csum_add(0, f + h->l3 + 12, 8)
				       : csum_add(0, f + h->l3 + 8, 32);

	return csum_fold(csum_add(sum + h->l4_type + len, f + h->l4, len));
}

bool frame_l3_ok(const uint8_t *f, const struct frame *h)
{
	if (h->cut)
		return false;
	if (h->version == 4)
		return csum_fold(csum_add(0, f + h->l3, h->l4 - h->l3)) ==
		       0xffff;
	return h->version == 6;
}

bool frame_l4_ok(const uint8_t *f, const struct frame *h)
{
	if (!h->l4_type || h->cut ||
	    (h->l4_type == PROTOCOL_UDP && !get_be16(f + h->l4 + 6)))
		return false;
	return sum_l4(f, h) == 0xffff;
}

void frame_fill_l3(uint8_t *f, const struct frame *h)
{
	uint8_t *at = f + h->l3 + 10;

	if (h->version != 4)
		return;
	put_be16(at, 0);
	put_be16(at, ~csum_fold(csum_add(0, f + h->l3, h->l4 - h->l3)));
}

void frame_fill_l4(uint8_t *f, const struct frame *h)
{
	uint8_t *at = f + h->l4 + (h->l4_type == PROTOCOL_TCP ? 16 : 6);
	uint16_t sum;

	if (!h->l4_type || h->cut)
		return;
	put_be16(at, 0);
	sum = ~sum_l4(f, h);
	if (!sum && h->l4_type == PROTOCOL_UDP)
		sum = 0xffff; /* 0 would say: none */
	put_be16(at, sum);
}

/* ---- sending ---- */

/* The first two bytes of headers are in the Ethernet segment itself. */
bool wqe_headers(const uint8_t *wqe, uint32_t size, uint32_t *hdr,
		 uint32_t *data)
{
	if (size < 32)
		return false;
	*hdr = get_be16(wqe + 28);
	*data = 32;
	if (*hdr <= 2)
		return true;
	*data += (*hdr - 2 + 15) & ~15U;
	return *data <= size;
}

bool lso_init(struct lso *lso, const uint8_t *whole, uint32_t len, uint32_t hdr,
	      uint32_t mss)
{
	lso->whole = whole;
	lso->len = len;
	lso->hdr = hdr;
	lso->mss = mss;
	if (!mss || mss > LSO_MAX_MSS || hdr > LSO_MAX_HDR || hdr > len)
		return false;
	frame_parse(whole, hdr, true, &lso->h);
	lso->segments = len == hdr ? 1 : (len - hdr - 1) / mss + 1;
	return lso->h.l4_type;
}

uint32_t lso_segment(const struct lso *lso, uint32_t i, uint8_t *f)
{
	uint32_t at = i * lso->mss, rest = lso->len - lso->hdr - at;
	uint32_t n = rest < lso->mss ? rest : lso->mss;
	struct frame h = lso->h;
	uint8_t *ip = f + h.l3, *l4 = f + h.l4;

	memcpy(f, lso->whole, lso->hdr);
	memcpy(f + lso->hdr, lso->whole + lso->hdr + at, n);
	h.end = h.l4_end = lso->hdr + n;
	if (h.version == 4) {
		put_be16(ip + 2, h.end - h.l3);
		put_be16(ip + 4, get_be16(ip + 4) + i);
	} else {
		put_be16(ip + 4, h.end - h.l3 - IPV6_BYTES);
	}
	if (h.l4_type == PROTOCOL_UDP) {
		put_be16(l4 + 4, h.end - h.l4);
	} else {
		put_be32(l4 + 4, get_be32(l4 + 4) + at);
		if (i) /* only the first says it */
			l4[13] &= ~TCP_CWR;
		if (i + 1 < lso->segments) /* only the last */
			l4[13] &= ~(TCP_FIN | TCP_PSH);
	}
	frame_fill_l3(f, &h);
	frame_fill_l4(f, &h);
	return h.end;
}
