/* SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR Linux-OpenIB) */
/*
 * The image of a verbs context, as DUMP writes and signs it and LOAD reads it.
 * docs/image-format.md describes every field.
 *
 * One header, then records. All integers are little-endian. Each record starts
 * with struct rxe_migr_rec, is a multiple of 8 bytes long, and can be skipped
 * by its length. Objects refer to each other by uverbs handle. There are no
 * pointers but the application's own (user_handle, MR addresses).
 */
#ifndef RXE_MIGR_IMAGE_H
#define RXE_MIGR_IMAGE_H

#include <linux/types.h>

#define RXE_MIGR_MAGIC "RXEMIGR" /* with its NUL: 8 bytes */
#define RXE_MIGR_IMAGE_VERSION 5
#define RXE_MIGR_IMAGE_MAC_BYTES 32

enum rxe_migr_type {
	RXE_MIGR_CONTEXT = 1,
	RXE_MIGR_PD,
	RXE_MIGR_CQ,
	RXE_MIGR_MR,
	RXE_MIGR_QP,
	RXE_MIGR_SRQ,
	RXE_MIGR_AH,
	RXE_MIGR_MW,
	/* these have no handle */
	RXE_MIGR_COMP_CHANNEL,
	RXE_MIGR_ASYNC_FD,
	RXE_MIGR_MCAST,
};

struct rxe_migr_image_hdr {
	char magic[8];
	__u32 version;
	__u32 hdr_length;     /* bytes of this header; records follow */
	__aligned_u64 length; /* bytes of the whole image */
	__u32 count;	      /* records, without the CONTEXT record */
	__u32 crc32;	      /* CRC-32 (IEEE, as zlib) with this field 0 */
	__u8 key_id;	      /* of the cluster key that signed it */
	__u8 reserved[7];     /* 0 */
	/* HMAC-SHA-256 of the whole image with this field and crc32 0 */
	__u8 mac[RXE_MIGR_IMAGE_MAC_BYTES];
};

/* bit of a record's type: who does not know the type can do without it */
#define RXE_MIGR_SKIPPABLE (1U << 31)

struct rxe_migr_rec {
	__u32 type;	      /* enum rxe_migr_type */
	__u32 length;	      /* bytes, this header included; multiple of 8 */
	__u32 handle;	      /* uverbs handle; 0 for CONTEXT */
	__u32 reserved;	      /* 0 */
	__aligned_u64 user_handle; /* the application's cookie; 0 if none */
};

/* first record, exactly one */
struct rxe_migr_rec_context {
	struct rxe_migr_rec rec;
	char device[64];   /* name of the ibdev, NUL-terminated */
	__u32 max_handle;  /* largest handle in use */
	__u32 reserved;
};

struct rxe_migr_rec_pd {
	struct rxe_migr_rec rec;
};

/*
 * A ring shared with user space. `slots` slots of 1 << log2_elem bytes each
 * follow the record's fixed part. In a work queue they are 0..slots-1, and the
 * slots behind those are all zero. In a CQ they are the unpolled entries, from
 * the consumer on: slots == (producer - consumer) & index_mask.
 */
struct rxe_migr_ring {
	__aligned_u64 mmap_offset;
	__u32 mmap_size;  /* bytes, page aligned */
	__u32 log2_elem;
	__u32 index_mask; /* ring size in slots, minus 1 */
	__u32 producer;	  /* index, <= index_mask */
	__u32 consumer;
	__u32 slots;
};

struct rxe_migr_rec_cq {
	struct rxe_migr_rec rec;
	__u32 cqe;	    /* to request, gives the same ring */
	__u32 comp_channel; /* a CQ that has the same; RXE_MIGR_NO_HANDLE: none */
	__u32 comp_vector;
	__u32 notify; /* armed: enum ib_cq_notify_flags */
	struct rxe_migr_ring ring;
	/* events that the application has read, completions and others */
	__u32 comp_events_reported;
	__u32 events_reported;
	/* ring slots */
};

#define RXE_MIGR_NO_HANDLE 0xffffffffU

/* an open completion channel with CQs; rec.handle is 0 */
struct rxe_migr_rec_comp_channel {
	struct rxe_migr_rec rec;
	__u32 cq;     /* handle of the CQ by which it is known: its CQs name it */
	__u32 events; /* completion events that nobody has read */
	/* events times __u32: handle of the CQ, the oldest first; filled to 8 */
};

struct rxe_migr_event {
	__u32 type;   /* enum ib_event_type */
	__u32 handle; /* of the CQ, QP or SRQ; of other events the port, or 0 */
};

/* the asynchronous event file, unless it is closed; rec.handle is 0 */
struct rxe_migr_rec_async_fd {
	struct rxe_migr_rec rec;
	__u32 events; /* that nobody has read */
	__u32 reserved;
	/* events times struct rxe_migr_event, the oldest first */
};

/*
 * bit of an MR's access: its pages are pinned for writing, though it allows none
 * any more; so it can be registered again to allow it
 */
#define RXE_MIGR_ACCESS_PINNED (1U << 31)

struct rxe_migr_rec_mr {
	struct rxe_migr_rec rec;
	__u32 pd;     /* handle */
	__u32 key;    /* lkey = rkey */
	__u32 access; /* enum ib_access_flags, and the bit above */
	__u32 wire_key; /* what peers use; equal to key */
	__aligned_u64 start; /* address in the application */
	__aligned_u64 size;  /* bytes */
	__aligned_u64 iova;
};

/* a memory window */
struct rxe_migr_rec_mw {
	struct rxe_migr_rec rec;
	__u32 pd;	/* handle */
	__u32 mw_type;	/* enum ib_mw_type */
	__u32 rkey;
	__u32 wire_key; /* what peers use; equal to rkey */
	__u32 state;	/* 1 free, only type 2; 2 valid */
	__u32 access;	/* enum ib_access_flags */
	__u32 mr;	/* handle; RXE_MIGR_NO_HANDLE if size is 0 */
	__u32 qp;	/* handle; RXE_MIGR_NO_HANDLE but for type 2, valid */
	__aligned_u64 addr;
	__aligned_u64 size; /* bytes */
};

/* an address handle */
struct rxe_migr_rec_ah {
	struct rxe_migr_rec rec;
	__u32 pd;     /* handle */
	__u32 ah_num; /* what work requests call it */
	__u8 dgid[16];
	__u8 sgid[16]; /* of the source; the destination uses its own */
	__u32 flow_label;
	__u8 network_type; /* 1 IPv4, 2 IPv6 */
	__u8 sgid_index;
	__u8 hop_limit;
	__u8 traffic_class;
};

struct rxe_migr_group {
	__u8 mgid[16];
	__u32 mlid; /* 16 bits; means nothing to RoCE */
	__u32 reserved;
};

/* the multicast groups of a UD QP that has some; rec.handle is 0 */
struct rxe_migr_rec_mcast {
	struct rxe_migr_rec rec;
	__u32 qp; /* handle */
	__u32 groups;
	/* groups times struct rxe_migr_group */
};

struct rxe_migr_rec_srq {
	struct rxe_migr_rec rec;
	__u32 pd;     /* handle */
	__u32 srq_num;
	__u32 max_wr; /* to request, gives the same ring */
	__u32 max_sge;
	__u32 limit;  /* 0: not armed */
	__u32 error;  /* 0 or 1 */
	struct rxe_migr_ring ring;
	__u32 events_reported; /* that the application has read */
	__u32 reserved;
	/* ring slots */
};

/* a responder resource: READ or ATOMIC that may be asked for again */
enum rxe_migr_res_kind {
	RXE_MIGR_RES_NONE,
	RXE_MIGR_RES_READ,
	RXE_MIGR_RES_ATOMIC,
	RXE_MIGR_RES_ATOMIC_WRITE,
	RXE_MIGR_RES_FLUSH,
};

struct rxe_migr_res {
	__u32 kind;
	__u32 first_psn;
	__u32 last_psn;
	__u32 cur_psn;
	__u32 rkey;	    /* READ */
	__u32 length;	    /* READ, FLUSH: bytes */
	__aligned_u64 value; /* READ, FLUSH: address; ATOMIC: old value */
	__u32 flush_type;
	__u32 flush_level;
};

struct rxe_migr_sge {
	__aligned_u64 addr;
	__u32 length;
	__u32 lkey;
};

#define RXE_MIGR_MAX_SGE 32

/* the receive WQE that a SEND in progress is filling */
struct rxe_migr_recv_wqe {
	__u32 valid; /* 0 or 1 */
	__u32 num_sge;
	__aligned_u64 wr_id;
	__u32 length;
	__u32 resid;
	__u32 cur_sge;
	__u32 sge_offset;
	struct rxe_migr_sge sge[RXE_MIGR_MAX_SGE];
};

struct rxe_migr_rec_qp {
	struct rxe_migr_rec rec;
	/* creation */
	__u32 pd;
	__u32 send_cq;
	__u32 recv_cq;
	__u32 qpn;
	__u32 qp_type;	  /* enum ib_qp_type */
	__u32 sq_sig_all; /* 0 or 1 */
	__u32 max_send_wr; /* to request, gives the same ring */
	__u32 max_send_sge;
	__u32 max_inline_data;
	__u32 max_recv_wr;
	__u32 max_recv_sge;
	/* attributes (IBA 11.2.5.3) */
	__u32 state; /* enum ib_qp_state */
	__u32 access_flags;
	__u32 pkey_index;
	__u32 port_num;
	__u32 path_mtu; /* enum ib_mtu */
	__u32 dest_qpn;
	__u32 rq_psn;
	__u32 sq_psn;
	__u32 max_rd_atomic;
	__u32 max_dest_rd_atomic;
	__u32 min_rnr_timer;
	__u32 timeout;
	__u32 retry_cnt;
	__u32 rnr_retry;
	__u32 qkey;
	__u32 sq_draining; /* SQD */
	__u32 en_sqd_async_notify;
	/* address vector */
	__u8 dgid[16];
	__u8 sgid[16]; /* of the source; the destination uses its own */
	__u8 dmac[6];
	__u8 network_type; /* 1 IPv4, 2 IPv6 */
	__u8 sgid_index;
	__u32 flow_label;
	__u8 hop_limit;
	__u8 traffic_class;
	__u16 udp_sport;
	/* migration */
	__u32 epoch;	  /* the next restore has one more */
	__u32 peer_epoch; /* the last one accepted from the peer */
	/* requester */
	__u32 req_psn;
	__u32 req_opcode; /* ~0: none */
	__u32 req_wqe_index;
	__u32 req_rd_atomic; /* credits left */
	__u32 req_need_rd_atomic;
	__u32 req_noack_pkts;
	__u32 ssn;
	/* completer */
	__u32 comp_psn;
	__u32 comp_opcode; /* ~0: none */
	/* responder */
	__u32 resp_msn;
	__u32 resp_psn;
	__u32 resp_ack_psn;
	__u32 resp_opcode; /* ~0: none */
	__u32 resp_status; /* enum ib_wc_status */
	__u32 resp_resid;
	__u32 resp_rkey;
	__u32 resp_length;
	__u32 resp_res_head;
	__aligned_u64 resp_va;
	__aligned_u64 resp_offset;
	struct rxe_migr_recv_wqe wqe;
	struct rxe_migr_ring sq;
	struct rxe_migr_ring rq;
	__u32 events_reported; /* that the application has read */
	__u32 wire_qpn;	       /* what peers use; equal to qpn */
	/* handle, or RXE_MIGR_NO_HANDLE; with one, all of rq is 0 */
	__u32 srq;
	__u16 last_wqe; /* 0 or 1: LAST_WQE_REACHED has been raised */
	__u16 peer_absent; /* 0 or 1: the QP runs without RESUME_ACK */
	__aligned_u64 life; /* of the connection at this end; or 0 */
	__aligned_u64 peer_life; /* at the other; 0: it is not known */
	__u32 peer_nonce; /* of the RESUME of peer_epoch */
	__u32 reserved;
	/* max_dest_rd_atomic times struct rxe_migr_res, SQ slots, RQ slots */
};

#endif /* RXE_MIGR_IMAGE_H */
