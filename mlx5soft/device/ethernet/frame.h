/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Ethernet frames: where their headers are, checksums, segmentation. Frames
 * are untrusted; nothing here looks behind the given length.
 */
#ifndef MLX5SOFT_FRAME_H
#define MLX5SOFT_FRAME_H

#include <stdbool.h>

#include "../headers.h"
#include "bits.h"

#define VLAN_MAX_TAGS 2

struct frame {
	uint32_t l3;	 /* behind the Ethernet header and its tags */
	uint32_t l4;	 /* behind the IP header and IPv6 extension headers */
	uint32_t end;	 /* of the IP packet; padding may follow */
	uint32_t l4_end; /* of the TCP segment or the UDP datagram */
	uint16_t type;	 /* EtherType, of what the tags enclose */
	uint8_t version; /* 4 or 6; 0: not IP, or not a whole header */
	uint8_t proto;
	uint8_t l4_type; /* PROTOCOL_TCP or PROTOCOL_UDP with a whole header, or 0 */
	bool fragment;
	bool cut; /* It says it is longer: its checksums tell nothing. */
};

/*
 * Find the headers in `len` bytes. With `lso` the frame is only the headers of
 * a packet to be segmented: the lengths in them mean nothing.
 */
void frame_parse(const uint8_t *f, uint32_t len, bool lso, struct frame *h);

/* Internet checksum arithmetic: p starts at an even place of the packet */
uint64_t csum_add(uint64_t sum, const uint8_t *p, uint32_t len);
uint16_t csum_fold(uint64_t sum);

bool frame_l3_ok(const uint8_t *f, const struct frame *h);
/* A UDP datagram without a checksum is not known to be right. */
bool frame_l4_ok(const uint8_t *f, const struct frame *h);
void frame_fill_l3(uint8_t *f, const struct frame *h);
void frame_fill_l4(uint8_t *f, const struct frame *h);

#define WQE_INLINE 30 /* where the headers in a send WQE begin */

/*
 * How many bytes of headers a send WQE of `size` bytes has inline, and where
 * its data segments begin; false: they are not inside.
 */
bool wqe_headers(const uint8_t *wqe, uint32_t size, uint32_t *hdr,
		 uint32_t *data);

/* Large send: TCP or UDP payload behind `hdr` bytes of headers */
struct lso {
	const uint8_t *whole;
	uint32_t len, hdr, mss, segments;
	struct frame h;
};

#define LSO_MAX_HDR 1024U
#define LSO_MAX_MSS 0x3fffU
#define LSO_MAX_SEGMENT (LSO_MAX_HDR + LSO_MAX_MSS)

/* False: the headers are not those of a TCP or UDP packet. */
bool lso_init(struct lso *lso, const uint8_t *whole, uint32_t len, uint32_t hdr,
	      uint32_t mss);
/* Make segment i < segments, of at most LSO_MAX_SEGMENT bytes */
uint32_t lso_segment(const struct lso *lso, uint32_t i, uint8_t *f);

#endif /* MLX5SOFT_FRAME_H */
