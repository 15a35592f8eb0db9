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
	u32 l3;	    /* behind the Ethernet header and its tags */
	u32 l4;	    /* behind the IP header and IPv6 extension headers */
	u32 end;    /* of the IP packet; padding may follow */
	u32 l4_end; /* of the TCP segment or the UDP datagram */
	u16 type;   /* EtherType, of what the tags enclose */
	u8 version; /* 4 or 6; 0: not IP, or not a whole header */
	u8 proto;
	u8 l4_type; /* PROTOCOL_TCP or PROTOCOL_UDP with a whole header, or 0 */
	bool fragment;
	bool cut; /* It says it is longer: its checksums tell nothing. */
};

/*
 * Find the headers in `len` bytes. With `lso` the frame is only the headers of
 * a packet to be segmented: the lengths in them mean nothing.
 */
void frame_parse(const u8 *f, u32 len, bool lso, struct frame *h);

/* Internet checksum arithmetic: p starts at an even place of the packet */
u64 csum_add(u64 sum, const u8 *p, u32 len);
u16 csum_fold(u64 sum);

bool frame_l3_ok(const u8 *f, const struct frame *h);
/* A UDP datagram without a checksum is not known to be right. */
bool frame_l4_ok(const u8 *f, const struct frame *h);
void frame_fill_l3(u8 *f, const struct frame *h);
void frame_fill_l4(u8 *f, const struct frame *h);

#define WQE_INLINE 30 /* where the headers in a send WQE begin */

/*
 * How many bytes of headers a send WQE of `size` bytes has inline, and where
 * its data segments begin; false: they are not inside.
 */
bool wqe_headers(const u8 *wqe, u32 size, u32 *hdr, u32 *data);

/* Large send: TCP or UDP payload behind `hdr` bytes of headers */
struct lso {
	const u8 *whole;
	u32 len, hdr, mss, segments;
	struct frame h;
};

#define LSO_MAX_HDR 1024U
#define LSO_MAX_MSS 0x3fffU
#define LSO_MAX_SEGMENT (LSO_MAX_HDR + LSO_MAX_MSS)

/* False: the headers are not those of a TCP or UDP packet. */
bool lso_init(struct lso *lso, const u8 *whole, u32 len, u32 hdr, u32 mss);
/* Make segment i < segments, of at most LSO_MAX_SEGMENT bytes */
u32 lso_segment(const struct lso *lso, u32 i, u8 *f);

#endif /* MLX5SOFT_FRAME_H */
