// SPDX-License-Identifier: GPL-2.0
/* Receive side scaling. */

#include "ethernet/rss.h"

enum {
	FN_NONE = 0,
	FN_XOR8 = 1, /* inverted */
	FN_TOEPLITZ = 2
};

/* of the TIR's field selector */
enum {
	SRC_IP = 1 << 0,
	DST_IP = 1 << 1,
	L4_SPORT = 1 << 2,
	L4_DPORT = 1 << 3
};
#define PORTS (L4_SPORT | L4_DPORT)

/* of the CQE's rss_hash_type: two bits each for IP and L4, source and
 * destination
 */
enum {
	TYPE_IP_SRC_SHIFT = 0,
	TYPE_IP_DST_SHIFT = 2,
	TYPE_L4_SRC_SHIFT = 4,
	TYPE_L4_DST_SHIFT = 6
};

uint32_t rss_toeplitz(const uint8_t *key, const uint8_t *data, uint32_t len)
{
	uint64_t window = (uint64_t)get_be32(key) << 32;
	uint32_t hash = 0, i;
	int bit;

	for (i = 0; i < len; i++) {
		window |= (uint64_t)key[i + 4] << 24;
		for (bit = 7; bit >= 0; bit--) {
			if (data[i] >> bit & 1)
				hash ^= window >> 32;
			window <<= 1;
		}
	}
	return hash;
}

static uint32_t xor8(const uint8_t *data, uint32_t len)
{
	uint8_t x = 0;

	while (len--)
		x ^= data[len];
	return (uint8_t)~x;
}

/* Append source and destination, those that are selected. */
static uint32_t take(uint8_t *to, const uint8_t *src, const uint8_t *dst,
		     uint32_t len, uint32_t fields, bool symmetric)
{
	const uint8_t *swap = src;
	uint32_t n = 0;

	if (symmetric && fields == 3 && memcmp(src, dst, len) > 0) {
		src = dst;
		dst = swap;
	}
	if (fields & 1) {
		memcpy(to, src, len);
		n = len;
	}
	if (fields & 2) {
		memcpy(to + n, dst, len);
		n += len;
	}
	return n;
}

uint32_t rss_hash(const uint8_t *tirc, const uint8_t *f, const struct frame *h,
		  uint8_t *type)
{
	const uint8_t *sel = AT_RO(tirc, tirc, rx_hash_field_selector_outer);
	const uint8_t *key = AT_RO(tirc, tirc, rx_hash_toeplitz_key);
	uint32_t fields = GET(rx_hash_field_select, sel, selected_fields);
	uint8_t fn = GET(tirc, tirc, rx_hash_fn), data[36], l3, l4;
	bool symmetric = GET(tirc, tirc, rx_hash_symmetric);
	bool v6 = GET(rx_hash_field_select, sel, l3_prot_type);
	bool udp = GET(rx_hash_field_select, sel, l4_prot_type);
	const uint8_t *addr = f + h->l3 + (v6 ? 8 : 12);
	uint32_t n, alen = v6 ? 16 : 4;

	*type = 0;
	if (fn == FN_NONE || !fields || h->version != (v6 ? 6 : 4) ||
	    (fields & PORTS &&
	     h->l4_type != (udp ? PROTOCOL_UDP : PROTOCOL_TCP)))
		return 0;
	n = take(data, addr, addr + alen, alen, fields & 3, symmetric);
	n += take(data + n, f + h->l4, f + h->l4 + 2, 2, fields >> 2 & 3,
		  symmetric);
	l3 = v6 ? 2 : 1;
	l4 = udp ? 2 : 1;
	if (fields & SRC_IP)
		*type |= l3 << TYPE_IP_SRC_SHIFT;
	if (fields & DST_IP)
		*type |= l3 << TYPE_IP_DST_SHIFT;
	if (fields & L4_SPORT)
		*type |= l4 << TYPE_L4_SRC_SHIFT;
	if (fields & L4_DPORT)
		*type |= l4 << TYPE_L4_DST_SHIFT;
	return fn == FN_TOEPLITZ ? rss_toeplitz(key, data, n) : xor8(data, n);
}
