// SPDX-License-Identifier: GPL-2.0
/* Headers, checksums and segmentation of frames, good and hostile */

#include "packets.h"
#include "../../../tests/check.h"

/* RFC 1071, the plain way */
static uint16_t slow_sum(const uint8_t *p, uint32_t len, uint32_t sum)
{
	uint32_t i;

	for (i = 0; i < len; i++)
		sum += i & 1 ? p[i] : p[i] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

static bool l4_right(const uint8_t *f, const struct frame *h)
{
	uint32_t len = h->l4_end - h->l4, pseudo;

	pseudo = h->version == 4 ? slow_sum(f + h->l3 + 12, 8, 0)
				 : slow_sum(f + h->l3 + 8, 32, 0);
	return slow_sum(f + h->l4, len, pseudo + h->l4_type + len) == 0xffff;
}

static void sums(void)
{
	/* RFC 1071, section 3 */
	static const uint8_t rfc[] = { 0x00, 0x01, 0xf2, 0x03,
				       0xf4, 0xf5, 0xf6, 0xf7 };
	uint8_t buf[1500];
	uint32_t i, len;

	MUST(csum_fold(csum_add(0, rfc, 8)) == 0xddf2);
	for (i = 0; i < sizeof(buf); i++)
		buf[i] = rand();
	for (len = 0; len < sizeof(buf); len++)
		MUST(csum_fold(csum_add(0, buf, len)) == slow_sum(buf, len, 0));
	memset(buf, 0xff, sizeof(buf));
	MUST(csum_fold(csum_add(0, buf, sizeof(buf))) == 0xffff);
	MUST(csum_fold(csum_add(0, buf, 0)) == 0);
}

/* Every kind of packet: filled checksums are right, a flipped bit is seen. */
static void checksums(void)
{
	static uint8_t f[70000];
	struct recipe r = { 0 };
	struct frame h;
	uint32_t len, i, n = 0;
	uint8_t bit;

	for (i = 0; i < 4 * 3 * 3 * 130; i++) {
		r.version = i & 1 ? 6 : 4;
		r.proto = i & 2 ? PROTOCOL_UDP : PROTOCOL_TCP;
		r.tags = i / 4 % 3;
		r.options = i / 12 % 3 * 8;
		r.payload = i / 36;
		r.padding = i % 7;
		r.tcp_options = i % 3 * 4;
		len = packet_make(f, &r);
		frame_parse(f, len, false, &h);
		MUST(h.version == r.version && h.l4_type == r.proto);
		MUST(h.l3 == 14U + 4 * r.tags && h.end == len - r.padding);
		MUST(h.l4 == h.l3 + (r.version == 4 ? 20 : 40) + r.options);
		frame_fill_l3(f, &h);
		frame_fill_l4(f, &h);
		MUST(frame_l3_ok(f, &h) && frame_l4_ok(f, &h));
		MUST(l4_right(f, &h));
		MUST(r.version == 6 ||
		     slow_sum(f + h.l3, h.l4 - h.l3, 0) == 0xffff);
		bit = 1 << rand() % 8;
		f[h.l4 + (uint32_t)rand() % 4] ^= bit; /* a port */
		MUST(!frame_l4_ok(f, &h));
		if (r.version == 4) {
			f[h.l3 + 8] ^= bit;
			MUST(!frame_l3_ok(f, &h));
		}
		n++;
	}
	MUST(n);
}

static void special(void)
{
	uint8_t f[2000];
	struct recipe r = { .version = 4, .proto = PROTOCOL_UDP, .payload = 2 };
	struct frame h;
	uint32_t len, i;

	/* UDP without a checksum is not known to be right... */
	len = packet_make(f, &r);
	frame_parse(f, len, false, &h);
	MUST(h.l4_type == PROTOCOL_UDP && !frame_l4_ok(f, &h));
	/* ...and a sum of zero goes out as ones */
	for (i = 0; i < 65536; i++) {
		put_be16(f + h.l4 + 8, i);
		frame_fill_l4(f, &h);
		MUST(get_be16(f + h.l4 + 6));
		MUST(frame_l4_ok(f, &h));
	}
	/* fragments have no ports */
	r.fragment = 0x2000;
	len = packet_make(f, &r);
	frame_parse(f, len, false, &h);
	MUST(h.fragment && !h.l4_type && !frame_l4_ok(f, &h));
	r.fragment = 0x0001;
	len = packet_make(f, &r);
	frame_parse(f, len, false, &h);
	MUST(h.fragment && !h.l4_type);
	r.fragment = 0x4000; /* do not fragment */
	len = packet_make(f, &r);
	frame_parse(f, len, false, &h);
	MUST(!h.fragment && h.l4_type == PROTOCOL_UDP);
	/* a datagram shorter, and one longer than its packet */
	put_be16(f + h.l4 + 4, 9);
	frame_parse(f, len, false, &h);
	MUST(h.l4_type && h.l4_end == h.end - 1);
	put_be16(f + h.l4 + 4, 11);
	frame_parse(f, len, false, &h);
	MUST(!h.l4_type);
	/* A packet longer than its frame has all its headers, and is not right.
	 */
	for (i = 0; i < 2; i++) {
		r = (struct recipe){ .version = i & 1 ? 6 : 4,
				     .proto = PROTOCOL_TCP,
				     .payload = 10 };
		len = packet_make(f, &r);
		frame_parse(f, len, false, &h);
		frame_fill_l3(f, &h);
		frame_fill_l4(f, &h);
		frame_parse(f, len - 1, false, &h);
		MUST(h.cut && h.version == r.version && h.end == len - 1);
		MUST(h.l4_type == PROTOCOL_TCP && h.l4_end == h.end);
		MUST(!frame_l3_ok(f, &h) && !frame_l4_ok(f, &h));
		/* but a whole header it must have */
		frame_parse(f, h.l4 - 1, false, &h);
		MUST(!h.version && !h.cut);
	}
	/* an IPv6 fragment, whole and not */
	r = (struct recipe){ .version = 6,
			     .proto = PROTOCOL_TCP,
			     .options = 8 };
	len = packet_make(f, &r);
	f[14 + 6] = 44;
	f[14 + 41] = 0;
	frame_parse(f, len, false, &h);
	MUST(!h.fragment && h.l4_type == PROTOCOL_TCP && h.l4 == 14 + 48);
	put_be16(f + 14 + 42, 1);
	frame_parse(f, len, false, &h);
	MUST(h.fragment && !h.l4_type);
	/* a routing header with segments left hides the destination */
	f[14 + 6] = 43;
	put_be16(f + 14 + 42, 1);
	frame_parse(f, len, false, &h);
	MUST(!h.l4_type && h.proto == 43);
	/* three tags, an address resolution, nothing */
	memset(f, 0, sizeof(f));
	for (i = 12; i < 24; i += 4)
		put_be16(f + i, ETHERTYPE_CVLAN);
	frame_parse(f, 100, false, &h);
	MUST(!h.version && h.type == ETHERTYPE_CVLAN && h.l3 == 22);
	put_be16(f + 12, 0x0806);
	frame_parse(f, 60, false, &h);
	MUST(!h.version && h.type == 0x0806 && h.l3 == 14);
	frame_parse(f, 13, false, &h);
	MUST(!h.version && !h.l3);
}

/* A large send is the same bytes in order, each packet right by itself. */
static void large(const struct recipe *r, uint32_t mss)
{
	static uint8_t whole[70000], out[LSO_MAX_SEGMENT];
	uint32_t len = packet_make(whole, r), hdr = len - r->payload, i, n,
		 at = 0;
	struct frame h;
	struct lso lso;
	uint8_t flags;

	MUST(lso_init(&lso, whole, len, hdr, mss));
	MUST(lso.segments == (r->payload + mss - 1) / mss);
	for (i = 0; i < lso.segments; i++) {
		n = lso_segment(&lso, i, out);
		MUST(n - hdr <= mss && (n - hdr == mss || n + at == len));
		MUST(!memcmp(out + hdr, whole + hdr + at, n - hdr));
		frame_parse(out, n, false, &h);
		MUST(h.version == r->version && h.l4_type == r->proto);
		MUST(h.end == n && h.l4_end == n);
		MUST(frame_l3_ok(out, &h) && l4_right(out, &h));
		if (r->version == 4)
			MUST(get_be16(out + h.l3 + 4) ==
			     (uint16_t)(0xfffe + i));
		if (r->proto == PROTOCOL_TCP) {
			flags = out[h.l4 + 13];
			MUST(get_be32(out + h.l4 + 4) == 0xfffff000 + at);
			MUST(!(flags & 0x09) == (i + 1 < lso.segments));
			MUST(!(flags & 0x80) == (i > 0));
			MUST(flags & 0x10);
		}
		at += n - hdr;
	}
	MUST(at == r->payload);
}

static void large_sends(void)
{
	struct recipe r = { .flags = 0x99 }; /* CWR, ACK, PSH, FIN */
	uint32_t i;

	for (i = 0; i < 300; i++) {
		r.version = i & 1 ? 6 : 4;
		r.proto = i & 2 ? PROTOCOL_UDP : PROTOCOL_TCP;
		r.tags = i % 3;
		r.tcp_options = i % 5 * 4;
		r.payload = 1 + rand() % 60000;
		large(&r, 1 + rand() % LSO_MAX_MSS);
	}
	r = (struct recipe){ .version = 4,
			     .proto = PROTOCOL_TCP,
			     .flags = 0x99,
			     .payload = 100 };
	large(&r, 1);
	large(&r, 99);
	large(&r, 100);
	large(&r, 101);
}

static void wqes(void)
{
	uint8_t wqe[64] = { 0 };
	uint32_t hdr, data, size, inl;

	for (size = 0; size <= 64; size += 16)
		for (inl = 0; inl < 65536; inl++) {
			put_be16(wqe + 28, inl);
			if (!wqe_headers(wqe, size, &hdr, &data)) {
				MUST(size < 32 || WQE_INLINE + inl > size - 16);
				continue;
			}
			MUST(hdr == inl && data <= size && !(data & 15));
			MUST(data >= WQE_INLINE + hdr &&
			     data < WQE_INLINE + hdr + 16);
		}
	put_be16(wqe + 28, 18); /* headers, then one data segment */
	MUST(wqe_headers(wqe, 64, &hdr, &data) && data == 48);
	put_be16(wqe + 28, 0x8000); /* a tag to insert, which is not offered */
	MUST(!wqe_headers(wqe, 64, &hdr, &data));
}

/* In memory of its exact size, so that the sanitizer sees a step outside */
static void hostile_one(const uint8_t *from, uint32_t len, uint32_t hdr,
			uint32_t mss)
{
	uint8_t *f = malloc(len ? len : 1), *out = malloc(LSO_MAX_SEGMENT);
	struct lso lso;
	struct frame h;

	memcpy(f, from, len);
	frame_parse(f, len, false, &h);
	MUST(h.l3 <= 22 && h.l4 <= h.end && h.l4_end <= h.end && h.end <= len);
	frame_l3_ok(f, &h);
	frame_l4_ok(f, &h);
	frame_fill_l3(f, &h);
	frame_fill_l4(f, &h);
	if (lso_init(&lso, f, len, hdr, mss)) {
		MUST(lso.segments);
		MUST(lso_segment(&lso, 0, out) <= LSO_MAX_SEGMENT);
		MUST(lso_segment(&lso, lso.segments - 1, out) <=
		     LSO_MAX_SEGMENT);
	}
	free(f);
	free(out);
}

static void hostile(void)
{
	uint8_t f[4000];
	struct recipe r;
	uint32_t i, len, flips;

	for (i = 0; i < 200000; i++) {
		r = (struct recipe){ .version = i & 1 ? 6 : 4,
				     .proto = i & 2 ? PROTOCOL_UDP
						    : PROTOCOL_TCP,
				     .tags = i % 3,
				     .options = i / 7 % 4 * 8,
				     .payload = rand() % 100 };
		len = packet_make(f, &r);
		for (flips = rand() % 6; flips; flips--)
			f[12 + rand() % 70] = rand();
		if (rand() % 2)
			len = rand() % (len + 1);
		hostile_one(f, len, rand() % 120, rand() % 200);
	}
	len = packet_make(f, &(struct recipe){ .version = 4, .proto = 6 });
	hostile_one(f, len, 0, 1);
	hostile_one(f, len, len + 1, 1);
	hostile_one(f, len, len, 0);
	hostile_one(f, len, len, 0xffffffff);
	hostile_one(f, len, 0xffffffff, 1000);
	for (i = 0; i < len; i++) /* headers that end too early */
		hostile_one(f, len, i, 100);
}

int main(void)
{
	sums();
	checksums();
	special();
	large_sends();
	wqes();
	hostile();
	return check_result();
}
