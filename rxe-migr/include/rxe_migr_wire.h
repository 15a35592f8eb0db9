/* SPDX-License-Identifier: (GPL-2.0 OR Linux-OpenIB) */
/*
 * The migration protocol on the wire: every constant of it, and nothing else.
 *
 * Included by the kernel module, the libraries, the dissector and the tests.
 * docs/protocol.md explains the packets; the two values that MigrOS (USENIX
 * ATC'21) chose, the NAK syndrome and the RESUME opcode, are kept so that
 * traces compare.
 */
#ifndef RXE_MIGR_WIRE_H
#define RXE_MIGR_WIRE_H

/* BTH opcodes, RC class (top three bits 0) */
#define MIGR_OPCODE_RESUME 0x19	    /* request: BTH, AETH, METH */
#define MIGR_OPCODE_RESUME_ACK 0x1a /* response: BTH, AETH, METH */

/*
 * RD class, so that who does not know it drops it, whatever the type of the QP
 * (IBA C9-10: an opcode of another service)
 */
#define MIGR_OPCODE_ASK 0x59 /* question, STOPPED or NOTICE: BTH, AETH, METH */

/* AETH syndrome of an RC Acknowledge (0x11): NAK class, code 5 */
#define MIGR_AETH_NAK_STOPPED 0x65

/*
 * Capability: the second lowest of the six reserved bits (resv6a) of BTH byte 4,
 * set in every RC packet that a migratable driver sends. Version 1 had the lowest
 * one, so that each takes the other for a driver that cannot migrate.
 */
#define MIGR_BTH_CAP_BYTE 4
#define MIGR_BTH_CAP_BIT 0x02

/*
 * METH, the migration extended transport header. Follows the AETH of RESUME,
 * RESUME_ACK, STOPPED, NOTICE and questions. All fields are big-endian; MIGR_METH_* are
 * byte offsets.
 */
#define MIGR_METH_VER_KIND 0  /* u8: version << 4 | kind */
#define MIGR_METH_KEY_ID 1    /* u8: which cluster key signed it */
#define MIGR_METH_FLAGS 2     /* u8: MIGR_METH_FLAG_* */
#define MIGR_METH_RESV1 3     /* u8: sent 0, ignored */
#define MIGR_METH_EPOCH 4     /* be32: of the sender; it grows */
#define MIGR_METH_OLD_QPN 8   /* be32: QPN that the receiver knows */
#define MIGR_METH_NEW_QPN 12  /* be32: QPN from now on */
#define MIGR_METH_GID 16      /* 16 bytes: GID from now on */
#define MIGR_METH_UDP_PORT 32 /* be16: UDP source port from now on */
#define MIGR_METH_RESV2 34    /* be16: sent 0, ignored */
#define MIGR_METH_NONCE 36    /* be32: of a restore or a STOP, and its answer */
#define MIGR_METH_LIFE 40     /* be64: of the sender's QP; 0: it has none */
#define MIGR_METH_MAC 48      /* 16 bytes: truncated HMAC-SHA-256 */
#define MIGR_METH_BYTES 64

#define MIGR_METH_VERSION 2
#define MIGR_METH_KIND_RESUME 1
#define MIGR_METH_KIND_MOVED 2 /* to RESUME: the QP has left, for this place */
#define MIGR_METH_KIND_ASK 3 /* changes nothing, and is acknowledged */
#define MIGR_METH_KIND_NOBODY 4 /* ... as this, if there is no such peer */
#define MIGR_METH_KIND_CHALLENGE 5 /* to RESUME: sign it for this life */
#define MIGR_METH_KIND_STOPPED 6 /* the QP is Stopped, unasked, or to a question */
#define MIGR_METH_KIND_PAUSED 7	 /* to that, unasked: it has been heard */
#define MIGR_METH_KIND_NOTICE 8	 /* to where the QP was, and its answer */

#define MIGR_METH_FLAG_UNHEARD 0x01 /* signed for no life: it is not known */
#define MIGR_METH_FLAG_HINT 0x02 /* of NOTICE's answer: where the peer is by now */
#define MIGR_METH_FLAG_FOLLOWED 0x04 /* of NOTICE: nobody needs the tombstone */

#define MIGR_MAC_BYTES 16
#define MIGR_KEY_BYTES 32

/*
 * What the MAC covers, concatenated: BTH opcode (1 byte), destination QPN
 * (3 bytes), PSN (3 bytes), AETH (4 bytes), METH with its MAC field zero. And what
 * is not sent: the life of the receiver's QP, big-endian, or 0.
 */
#define MIGR_MAC_METH (1 + 3 + 3 + 4)
#define MIGR_MAC_LIFE (MIGR_MAC_METH + MIGR_METH_BYTES)
#define MIGR_MAC_INPUT_BYTES (MIGR_MAC_LIFE + 8)

/* NAK_STOPPED carries the low 24 bits of the sender's epoch as AETH.MSN */
#define MIGR_NAK_EPOCH_MASK 0x00ffffff

#endif /* RXE_MIGR_WIRE_H */
