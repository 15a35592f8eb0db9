/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The language of tests/fuzz_vfu.c, and of vfu_config.record: an input is a
 * list of operations. Each begins with a byte, FUZZ_OP(what, descriptors, kind);
 * "u16" and the like are little-endian. What is missing at the end of the input
 * is 0.
 */
#ifndef FUZZ_OPS_H
#define FUZZ_OPS_H

enum {
	FUZZ_RAW,     /* u8 length, bytes: sent as they are */
	FUZZ_MESSAGE, /* u8 command, u8 length, bytes: with a proper header */
	FUZZ_LIE, /* as before, with u32 size before the bytes: in the header */
	FUZZ_ZEROS,   /* u16 length: sent */
	FUZZ_HANGUP,  /* then a new client; any descriptors: with handshake */
	FUZZ_REPLIES, /* the client reads them */
	FUZZ_DMA,     /* u64 iova, u16 length: the device accesses memory */
	FUZZ_IRQ,     /* u8 vector */
};

enum {
	FUZZ_SEALED,
	FUZZ_UNSEALED,
	FUZZ_EVENTFD,
	FUZZ_SOCKET
};

#define FUZZ_OP(what, nfds, kind) ((what) | (nfds) << 3 | (kind) << 6)
#define FUZZ_WHAT(op) ((op) & 7)
#define FUZZ_NFDS(op) ((op) >> 3 & 7) /* 7: more than fit */
#define FUZZ_KIND(op) ((op) >> 6)

#define FUZZ_MEMORY 0x10000 /* bytes of the two memfds */
#define FUZZ_VECTORS 20

#endif /* FUZZ_OPS_H */
