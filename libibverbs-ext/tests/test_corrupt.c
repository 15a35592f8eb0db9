// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

#include <infiniband/verbs.h>
#include <rdma/rdma_user_rxe.h>

#include "image_builder.h"
#include "test_corrupt.h"

#define AT(h, struct_name, member, v, text)                        \
	{                                                          \
		.handle = (h),                                     \
		.offset = offsetof(struct struct_name, member),    \
		.size = sizeof(((struct struct_name *)0)->member), \
		.value = (v),                                      \
		.expect = (text),                                  \
	}

#define HDR(member, v, text) AT(C_HEADER, rxe_migr_image_hdr, member, v, text)
#define CTX(member, v, text) \
	AT(C_CONTEXT, rxe_migr_rec_context, member, v, "context: " text)
#define REC(h, member, v, text) AT(h, rxe_migr_rec, member, v, text)
#define CQ(member, v, text) AT(S_CQ, rxe_migr_rec_cq, member, v, "CQ 1: " text)
#define MR(member, v, text) AT(S_MR, rxe_migr_rec_mr, member, v, "MR 2: " text)
#define QP(member, v, text) \
	AT(S_QP_RTS, rxe_migr_rec_qp, member, v, "QP 4: " text)
#define INIT(member, v, text) \
	AT(S_QP_INIT, rxe_migr_rec_qp, member, v, "QP 9: " text)

#define MW(h, member, v, text) AT(h, rxe_migr_rec_mw, member, v, text)

#define AH(member, v, text) AT(S_AH, rxe_migr_rec_ah, member, v, "AH 18: " text)
#define GROUPS(member, v, text) \
	AT(C_MCAST, groups, member, v, "list of groups 0: " text)
#define UD(member, v, text) \
	AT(S_QP_UD, rxe_migr_rec_qp, member, v, "QP 17: " text)

#define UC(member, v, text) \
	AT(S_QP_UC, rxe_migr_rec_qp, member, v, "QP 20: " text)

#define SRQ(member, v, text) \
	AT(S_SRQ, rxe_migr_rec_srq, member, v, "SRQ 12: " text)
#define CH(member, v, text)                                 \
	AT(C_CHANNEL, rxe_migr_rec_comp_channel, member, v, \
	   "completion channel 0: " text)
#define AF(member, v, text) AT(C_ASYNC, rxe_migr_rec_async_fd, member, v, text)

/* what follows their fixed parts */
struct srq_slots {
	struct rxe_migr_rec_srq srq;
	union {
		struct rxe_recv_wqe wqe;
		char size[128];
	} slot[S_RQ_SLOTS];
};

struct groups {
	struct rxe_migr_rec_mcast mcast;
	struct rxe_migr_group group[2];
};

/* QPs of UC and UD have none */
struct no_resources {
	struct rxe_migr_rec_qp qp;
	union {
		struct rxe_send_wqe wqe;
		char size[512];
	} slot[S_SQ_SLOTS];
};

struct channel_event {
	struct rxe_migr_rec_comp_channel channel;
	uint32_t handle;
};

struct async_events {
	struct rxe_migr_rec_async_fd async;
	struct rxe_migr_event event[3];
};

/* behind the fixed part of the sample's QPs */
#define RES_AT(i, member)                                                     \
	(sizeof(struct rxe_migr_rec_qp) + (i) * sizeof(struct rxe_migr_res) + \
	 offsetof(struct rxe_migr_res, member))
#define SQ_AT(member) \
	(RES_AT(S_RD_ATOMIC, kind) + offsetof(struct rxe_send_wqe, member))
#define RQ_AT(member)                                   \
	(RES_AT(S_RD_ATOMIC, kind) + S_SQ_SLOTS * 512 + \
	 offsetof(struct rxe_recv_wqe, member))
#define RAW(at, v, text) { S_QP_RTS, at, 4, v, "QP 4: " text }

const struct corruption corruptions[] = {
	/* frame */
	HDR(magic, 0x1234, "magic"),
	HDR(version, 1, "version is 1"),
	HDR(version, 2, "version is 2"),
	HDR(version, 3, "version is 3"),
	HDR(version, 4, "version is 4"),
	HDR(version, 6, "version is 6"),
	HDR(version, 0, "version is 0"),
	HDR(hdr_length, 24, "hdr_length"),
	HDR(hdr_length, 76, "hdr_length"),
	HDR(hdr_length, 0xfffffff8, "hdr_length"),
	HDR(hdr_length, 72 + 24, "record at 96"),
	HDR(length, 0, "length"),
	HDR(length, ~0ULL, "length"),
	HDR(count, 10, "count is 10, there are 24"),
	HDR(count, 0xffffffff, "count"),
	HDR(reserved[6], 1, "reserved"),

	/* chain */
	REC(S_PD, length, 0, "length is 0"),
	REC(S_PD, length, 8, "length is 8"),
	REC(S_PD, length, 25, "length is 25"),
	REC(S_PD, length, 0xfffffff8, "length is 4294967288"),
	REC(S_PD, length, 0x7fffffff, "length"),
	REC(S_PD, length, 48, "count is 24, there are 23"),
	REC(S_MR, length, 24, "length"),
	REC(S_PD, type, RXE_MIGR_CONTEXT, "type CONTEXT a second time"),
	REC(S_PD, type, 0, "type"),
	REC(S_PD, type, RXE_MIGR_MCAST + 1, "object 0: type is not part"),
	REC(S_PD, type, RXE_MIGR_ASYNC_FD,
	    "async event file 0: length is 24 bytes, less"),
	REC(S_PD, type, RXE_MIGR_QP, "QP 0: length is 24 bytes, less"),
	REC(S_PD, type, 77, "object 0: type is not part"),
	REC(S_PD, type, 77 | RXE_MIGR_SKIPPABLE,
	    "pd is 0, there is no such object"),
	REC(S_PD, reserved, 1, "PD 0: reserved"),
	REC(S_PD, handle, S_MAX_HANDLE + 1, "max_handle"),
	REC(S_PD2, handle, S_PD, "handle 0 is also that of"),
	REC(S_QP_RTS, handle, S_CQ, "handle 0x1 is also that of"),
	AT(C_CONTEXT, rxe_migr_rec_context, rec.type, RXE_MIGR_PD,
	   "type of the first record"),
	CTX(rec.handle, 1, "rec.handle"),
	CTX(rec.reserved, 1, "rec.reserved"),
	CTX(rec.length, sizeof(struct rxe_migr_rec_context) - 8, "length"),
	CTX(max_handle, 1U << 20, "max_handle"),
	AT(C_CONTEXT, rxe_migr_rec_context, max_handle, 1, "max_handle 1"),
	CTX(reserved, 1, "reserved"),
	CTX(device[0], 0, "device"),

	/* CQ */
	CQ(cqe, 0, "cqe"),
	CQ(cqe, 32768, "cqe"),
	CQ(cqe, 16, "ring.index_mask"),
	CQ(comp_channel, 0, "comp_channel is 0, by which no channel"),
	CQ(comp_channel, S_CQ_WRAPPED, "comp_channel is 6, by which no"),
	AT(S_CQ, rxe_migr_rec_cq, comp_channel, RXE_MIGR_NO_HANDLE,
	   "CQ 6: comp_channel is 1, by which no channel is known"),
	CQ(comp_channel, 8, "comp_channel is 8"),
	CQ(comp_vector, 0x10000, "comp_vector"),
	CQ(notify, 4, "notify"),
	CQ(ring.index_mask, 14, "ring.index_mask"),
	CQ(ring.index_mask, 0xffffffff, "ring.index_mask"),
	CQ(ring.log2_elem, 5, "ring.log2_elem"),
	CQ(ring.log2_elem, 6, "length"),
	CQ(ring.log2_elem, 13, "ring.log2_elem"),
	CQ(ring.log2_elem, 0xffffffff, "ring.log2_elem"),
	CQ(ring.producer, 16, "ring.producer"),
	CQ(ring.producer, 8, "ring.slots is 4, there are 5 unpolled entries"),
	CQ(ring.consumer, 16, "ring.consumer"),
	CQ(ring.consumer, 8, "ring.slots is 4, there are 15 unpolled entries"),
	CQ(ring.slots, 17, "ring.slots"),
	CQ(ring.slots, 8, "length"),
	CQ(ring.mmap_size, 0, "ring.mmap_size"),
	CQ(ring.mmap_size, 4097, "ring.mmap_size"),
	CQ(ring.mmap_size, 0x20000, "ring.mmap_size"),
	CQ(ring.mmap_offset, 0, "ring.mmap_offset"),
	CQ(ring.mmap_offset, 4097, "ring.mmap_offset"),
	CQ(ring.mmap_offset, 1ULL << 44, "ring.mmap_offset"),
	AT(S_CQ, rxe_migr_rec_cq, ring.mmap_offset,
	   (4 * S_QP_RTS + 2) * 0x100000ULL + 4096, "mmap_offset"),

	/* MR */
	MR(pd, S_CQ, "pd is 1, which is of type CQ, not PD"),
	MR(pd, 8, "pd is 8, there is no such object"),
	MR(key, 0x7f, "key"),
	MR(key, 0x8000100, "key"),
	MR(access, 1U << 5, "access"),
	MR(access, 1U << 7, "access"),
	MR(access, IBV_ACCESS_REMOTE_WRITE, "access"),
	MR(access, RXE_MIGR_ACCESS_PINNED | IBV_ACCESS_LOCAL_WRITE, "access"),
	MR(access, RXE_MIGR_ACCESS_PINNED | IBV_ACCESS_MW_BIND, "access"),
	MR(wire_key, 0x4321ac, "wire_key is 0x4321ac, not key"),
	MR(size, ~0ULL, "size"),
	MR(start, -4096ULL + 0x40, "size"),
	MR(iova, -4096ULL + 0x40, "iova"),
	MR(iova, 0x7f1234561041ULL, "iova"),

	AT(S_MR2, rxe_migr_rec_mr, access, IBV_ACCESS_LOCAL_WRITE,
	   "MW 13: mr is 7, to which no window can be bound"),
	AT(S_MR2, rxe_migr_rec_mr, access, IBV_ACCESS_MW_BIND,
	   "MW 13: access is 0x6, MR 7 cannot be written"),
	AT(S_MR2, rxe_migr_rec_mr, pd, S_PD, "MW 13: mr is 7, of PD 0, not 5"),
	AT(S_MR2, rxe_migr_rec_mr, size, 0x12344,
	   "MW 13: addr is 0x7f1234561040, size 0x12345: outside of MR 7"),

	/* MW */
	REC(S_PD, type, RXE_MIGR_MW, "MW 0: length is 24 bytes, less"),
	MW(S_MW_BOUND, pd, S_CQ, "MW 13: pd is 1, which is of type CQ"),
	MW(S_MW_BOUND, pd, S_PD, "MW 13: mr is 7, of PD 5, not 0"),
	MW(S_MW_BOUND, mw_type, 0, "MW 13: mw_type"),
	MW(S_MW_BOUND, mw_type, 3, "MW 13: mw_type"),
	MW(S_MW_BOUND, mw_type, 2, "MW 13: qp is 4294967295, there is no"),
	MW(S_MW_BOUND, rkey, 0x80000ff, "MW 13: rkey is"),
	MW(S_MW_BOUND, rkey, 0x10000100, "MW 13: rkey is"),
	MW(S_MW_BOUND, wire_key, S_MW_KEY + 1, "MW 13: wire_key is 0x"),
	MW(S_MW_BOUND, state, 0, "MW 13: state"),
	MW(S_MW_BOUND, state, 3, "MW 13: state"),
	MW(S_MW_BOUND, state, 1, "MW 13: state is 1, of type 1"),
	MW(S_MW_UNBOUND, state, 1, "MW 14: state is 1, of type 1"),
	MW(S_MW_BOUND, access, 1U << 7, "MW 13: access is 0x80"),
	MW(S_MW_BOUND, access, IBV_ACCESS_ZERO_BASED, "MW 13: access is 0x20"),
	MW(S_MW_BOUND, mr, RXE_MIGR_NO_HANDLE,
	   "MW 13: mr is 4294967295, there is no such"),
	MW(S_MW_BOUND, mr, S_CQ, "MW 13: mr is 1, which is of type CQ, not MR"),
	MW(S_MW_BOUND, mr, S_MR, "MW 13: mr is 2, of PD 0, not 5"),
	MW(S_MW_UNBOUND, mr, S_MR2, "MW 14: mr is 7, of a window without one"),
	MW(S_MW_BOUND, qp, S_QP_SQD, "MW 13: qp is 10, of a window without"),
	MW(S_MW_BOUND, addr, 0x7f123456103f, "MW 13: addr is 0x7f123456103f"),
	MW(S_MW_BOUND, addr, 0x7f1234561041, "MW 13: addr is 0x7f1234561041"),
	MW(S_MW_BOUND, addr, ~0ULL, "MW 13: addr is 0xffffffffffffffff"),
	MW(S_MW_BOUND, size, 0, "MW 13: mr is 7, of a window without one"),
	MW(S_MW_BOUND, size, ~0ULL, "outside of MR 7"),
	MW(S_MW_OF_QP, size, 0, "MW 15: size is 0 in state 2"),
	MW(S_MW_OF_QP, state, 1, "MW 15: size is 4096 in state 1"),
	MW(S_MW_OF_QP, qp, RXE_MIGR_NO_HANDLE,
	   "MW 15: qp is 4294967295, there is no such"),
	MW(S_MW_OF_QP, qp, S_MR2, "MW 15: qp is 7, which is of type MR, not"),
	MW(S_MW_OF_QP, qp, S_QP_RTS, "MW 15: qp is 4, of PD 0, not 5"),
	MW(S_MW_OF_QP, mw_type, 1, "MW 15: qp is 10, of a window without one"),
	MW(S_MW_FREE, qp, S_QP_SQD, "MW 16: qp is 10, of a window without"),
	MW(S_MW_FREE, mr, S_MR2, "MW 16: mr is 7, of a window without one"),
	MW(S_MW_FREE, size, 1, "MW 16: size is 1 in state 1"),
	MW(S_MW_FREE, state, 2, "MW 16: size is 0 in state 2"),

	/* AH */
	REC(S_PD, type, RXE_MIGR_AH, "AH 0: length is 24 bytes, less"),
	AH(pd, S_CQ, "pd is 1, which is of type CQ, not PD"),
	AH(pd, 8, "pd is 8, there is no such object"),
	AH(ah_num, 0, "ah_num"),
	AH(ah_num, 1U << 15, "ah_num"),
	AH(network_type, 0, "network_type"),
	AH(network_type, 3, "network_type"),
	AH(network_type, 2, "network_type is 2, sgid is of the other"),
	AH(sgid[0], 1, "network_type is 1, sgid is of the other"),
	AH(dgid[0], 1, "network_type is 1, dgid is of the other"),

	/* MCAST */
	REC(S_PD, type, RXE_MIGR_MCAST, "list of groups 0: length is 24"),
	AT(C_MCAST, rxe_migr_rec, handle, 1,
	   "list of groups 1: a list of groups has no handle"),
	GROUPS(mcast.qp, S_CQ, "qp is 1, which is of type CQ, not QP"),
	GROUPS(mcast.qp, 8, "qp is 8, there is no such object"),
	GROUPS(mcast.qp, S_QP_RTS, "qp is 4, which is not UD"),
	GROUPS(mcast.groups, 0, "length"),
	GROUPS(mcast.groups, 1, "length is 80 bytes, the content takes 56"),
	GROUPS(mcast.groups, 0x10000002, "length"),
	GROUPS(mcast.groups, ~0U, "length"),
	GROUPS(group[0].mgid[0], 0xfe, "group 0: mgid is no multicast"),
	GROUPS(group[1].mgid[12], 10, "group 1: mgid is no multicast"),
	GROUPS(group[1].mlid, 0x10000, "group 1: mlid is 0x10000"),
	GROUPS(group[0].reserved, 1, "group 0: reserved"),

	/* a QP of UD */
	UD(qp_type, IBV_QPT_UC, "dest_qpn is 0"),
	UD(qp_type, IBV_QPT_RC, "dest_qpn is 0"),
	UD(qp_type, 5, "qp_type"),
	UD(qp_type, 1, "qp_type"),
	UD(state, IBV_QPS_SQE, "state is SQE, which rdma_rxe"),
	UD(max_dest_rd_atomic, 4, "length"),
	UD(req_opcode, 0x04, "req_opcode"),
	UD(resp_opcode, 0x04, "resp_opcode"),
	UD(resp_opcode, 0x60, "resp_opcode"),
	UD(resp_opcode, 0x66, "resp_opcode"),
	UD(comp_opcode, 0x0d, "comp_opcode"),
	AT(S_QP_UD, no_resources, slot[2].wqe.wr.opcode, IBV_WR_RDMA_WRITE,
	   "QP 17: sq slot 2: opcode is 0"),
	AT(S_QP_UD, no_resources, slot[0].wqe.wr.wr.ud.ah_num, 0,
	   "QP 17: sq slot 0: ah_num is 0"),

	/* a QP of UC */
	UC(qp_type, IBV_QPT_RC, "req_psn is 0xffffff, before"),
	UC(qp_type, IBV_QPT_UD, "resp_opcode"),
	UC(dest_qpn, 0, "dest_qpn"),
	UC(network_type, 0, "network_type"),
	UC(req_opcode, 0x04, "req_opcode"),
	UC(req_opcode, 0x2c, "req_opcode"),
	UC(resp_opcode, 0x01, "resp_opcode"),
	UC(resp_opcode, 0x2c, "resp_opcode"),
	UC(comp_opcode, 0x0d, "comp_opcode"),
	UC(peer_absent, 2, "peer_absent"),
	UC(life, 0, "life"),
	UC(wqe.valid, 0, "resp_opcode is 0x21, without a receive WQE"),
	UC(req_rd_atomic, 1, "req_rd_atomic"),
	AT(S_QP_UC, no_resources, slot[1].wqe.wr.opcode, IBV_WR_RDMA_READ,
	   "QP 20: sq slot 1: opcode is 0x4"),

	/* SRQ */
	SRQ(pd, S_CQ, "pd is 1, which is of type CQ, not PD"),
	SRQ(srq_num, 0, "srq_num"),
	SRQ(max_wr, 0, "max_wr"),
	SRQ(max_wr, 16, "ring.index_mask"),
	SRQ(max_sge, 33, "max_sge"),
	SRQ(max_sge, 16, "ring.log2_elem"),
	SRQ(limit, 16, "limit is 16 in a ring of 15"),
	SRQ(error, 2, "error"),
	SRQ(reserved, 1, "reserved"),
	SRQ(ring.slots, 17, "ring.slots"),
	SRQ(ring.slots, 5, "length"),
	SRQ(ring.producer, 16, "ring.producer"),
	SRQ(ring.mmap_offset, 1, "ring.mmap_offset"),
	AT(S_SRQ, srq_slots, slot[2].wqe.dma.num_sge, 3,
	   "SRQ 12: rq slot 2: num_sge"),
	AT(S_SRQ, srq_slots, slot[5].wqe.dma.resid, 1, "rq slot 5: resid"),
	AT(S_QP_SRQ, rxe_migr_rec_qp, srq, S_CQ,
	   "QP 11: srq is 1, which is of type CQ, not SRQ"),
	AT(S_QP_SRQ, rxe_migr_rec_qp, srq, RXE_MIGR_NO_HANDLE,
	   "QP 11: rq.log2_elem"),
	AT(S_QP_SRQ, rxe_migr_rec_qp, max_recv_wr, 1, "rq is not empty"),
	AT(S_QP_SRQ, rxe_migr_rec_qp, rq.slots, 1, "rq is not empty"),
	AT(S_QP_SRQ, rxe_migr_rec_qp, wqe.num_sge, 3, "wqe 0: num_sge is 3"),
	QP(srq, S_SRQ, "rq is not empty, although srq is 12"),

	/* event files */
	AT(C_CHANNEL, rxe_migr_rec_comp_channel, rec.handle, 1,
	   "completion channel 1: a channel has no handle"),
	CH(cq, S_CQ_WRAPPED, "cq is 6, which is no CQ with it"),
	CH(cq, S_PD, "cq is 0"),
	CH(events, 2, "length is 48 bytes, 2 events take 40"),
	CH(events, 0xffffffff, "length"),
	AT(C_CHANNEL, channel_event, handle, S_QP_RTS, "event 0 is of 4"),
	AF(reserved, 1, "reserved"),
	AF(rec.handle, 1, "handle"),
	AF(events, 4, "length is 56 bytes, 4 events take 64"),
	AF(events, 0x20000000, "length"),
	AT(C_ASYNC, async_events, event[0].type, 99, "event 0 is of type 99"),
	AT(C_ASYNC, async_events, event[0].type, IBV_EVENT_SRQ_ERR,
	   "event's handle is 1, which is of type CQ, not SRQ"),
	AT(C_ASYNC, async_events, event[0].handle, S_QP_RTS,
	   "event's handle is 4, which is of type QP, not CQ"),
	AT(C_ASYNC, async_events, event[1].handle, S_CQ,
	   "event's handle is 1, which is of type CQ, not QP"),
	AT(C_ASYNC, async_events, event[2].handle, 2, "event 2 is of port 2"),

	/* QP: creation */
	QP(pd, S_MR, "pd is 2, which is of type MR"),
	QP(send_cq, S_PD, "send_cq is 0, which is of type PD"),
	QP(recv_cq, 8, "recv_cq is 8, there is no such"),
	QP(recv_cq, 0xffffffff, "recv_cq"),
	QP(qpn, 0x1000012, "qpn"),
	QP(qpn, 1, "qpn"),
	QP(qp_type, IBV_QPT_UD, "comp_opcode is 0xe"),
	QP(sq_sig_all, 2, "sq_sig_all"),
	QP(max_send_wr, 1U << 21, "max_send_wr"),
	QP(max_send_wr, 16, "sq.index_mask"),
	QP(max_send_sge, 33, "max_send_sge"),
	QP(max_send_sge, 32, "sq.log2_elem"),
	QP(max_inline_data, 513, "max_inline_data"),
	QP(max_inline_data, 512, "sq.log2_elem"),
	QP(max_recv_wr, 0, "rq.index_mask"),
	QP(max_recv_sge, 33, "max_recv_sge"),
	QP(max_recv_sge, 16, "rq.log2_elem"),

	/* QP: attributes */
	QP(state, IBV_QPS_SQE, "state is SQE"),
	QP(state, 7, "state"),
	QP(access_flags, 1U << 31, "access_flags"),
	QP(pkey_index, 0x10000, "pkey_index"),
	QP(port_num, 2, "port_num"),
	QP(port_num, 0, "port_num"),
	INIT(port_num, 0, "port_num"),
	QP(path_mtu, 0, "path_mtu"),
	QP(path_mtu, 6, "path_mtu"),
	QP(dest_qpn, 0, "dest_qpn"),
	QP(dest_qpn, 1U << 24, "dest_qpn"),
	QP(rq_psn, 1U << 24, "rq_psn"),
	QP(sq_psn, 1U << 31, "sq_psn"),
	QP(max_rd_atomic, 129, "max_rd_atomic"),
	QP(max_dest_rd_atomic, 512, "max_dest_rd_atomic"),
	QP(max_dest_rd_atomic, 3, "max_dest_rd_atomic is 3, not a power"),
	QP(max_dest_rd_atomic, 8, "length"),
	QP(min_rnr_timer, 32, "min_rnr_timer"),
	QP(timeout, 32, "timeout"),
	QP(retry_cnt, 8, "retry_cnt"),
	QP(rnr_retry, 8, "rnr_retry"),
	QP(sq_draining, 2, "sq_draining"),
	QP(en_sqd_async_notify, 2, "en_sqd_async_notify"),
	QP(network_type, 0, "network_type"),
	QP(network_type, 2, "network_type"),
	QP(network_type, 3, "network_type"),
	QP(dgid[10], 0, "network_type is 1, dgid"),

	/* QP: progress */
	QP(req_psn, 1U << 24, "req_psn"),
	QP(req_psn, 0xfffffd, "req_psn is 0xfffffd, before comp_psn"),
	QP(req_opcode, 0x100, "req_opcode"),
	QP(req_opcode, 0x11, "req_opcode"),
	QP(req_noack_pkts, 1U << 31, "req_noack_pkts"),
	QP(epoch, ~0U, "epoch"),
	QP(req_wqe_index, 5, "req_wqe_index is 5, the send queue goes"),
	QP(comp_opcode, 0x04, "comp_opcode"),
	QP(resp_resid, 9, "resp_resid"),
	QP(resp_opcode, 0x19, "resp_opcode"),
	QP(req_wqe_index, 16, "req_wqe_index"),
	QP(req_rd_atomic, 17, "req_rd_atomic"),
	QP(req_rd_atomic, 0xffffffff, "req_rd_atomic"),
	QP(req_need_rd_atomic, 2, "req_need_rd_atomic"),
	QP(comp_psn, 1U << 24, "comp_psn"),
	QP(comp_opcode, 0xfffffffe, "comp_opcode"),
	QP(resp_psn, 1U << 24, "resp_psn"),
	QP(resp_ack_psn, 1U << 24, "resp_ack_psn"),
	QP(resp_opcode, 0x100, "resp_opcode"),
	QP(resp_status, 22, "resp_status"),
	QP(resp_res_head, 4, "resp_res_head"),
	QP(wqe.valid, 2, "wqe.valid"),
	QP(wqe.valid, 0, "resp_opcode is 0x1, without a receive WQE"),
	QP(wqe.num_sge, 3, "wqe 0: num_sge"),
	QP(wqe.cur_sge, 3, "wqe 0: cur_sge"),
	QP(wqe.cur_sge, 2, "wqe 0: cur_sge"),
	QP(wqe.resid, 3001, "wqe 0: resid"),
	QP(wqe.length, 1U << 31, "wqe 0: length"),
	QP(wqe.sge_offset, 2001, "wqe 0: sge_offset"),
	RAW(RES_AT(1, length), (1U << 31) + 1, "resource 1: length"),
	RAW(RES_AT(1, kind), 5, "resource 1: kind"),
	RAW(RES_AT(1, first_psn), 1U << 24, "resource 1: first_psn"),
	RAW(RES_AT(3, last_psn), 1U << 24, "resource 3"),
	RAW(RES_AT(0, cur_psn), 1U << 24, "resource 0"),
	RAW(RES_AT(2, flush_type), 256, "resource 2: flush_type"),

	/* QP: rings */
	QP(sq.producer, 16, "sq.producer"),
	QP(sq.consumer, 16, "sq.consumer"),
	QP(sq.slots, 17, "sq.slots"),
	QP(sq.slots, 5, "length"),
	QP(sq.log2_elem, 8, "sq.log2_elem"),
	QP(sq.mmap_size, 8192, "sq.mmap_size"),
	QP(rq.index_mask, 7, "rq.index_mask"),
	QP(rq.log2_elem, 6, "rq.log2_elem"),
	QP(rq.slots, 0xffffffff, "rq.slots"),
	QP(rq.mmap_offset, 1, "rq.mmap_offset"),
	QP(wire_qpn, 0x13, "wire_qpn is 0x13, not qpn"),
	QP(last_wqe, 1, "last_wqe is 1, in state 3"),
	QP(last_wqe, 2, "last_wqe"),
	QP(peer_absent, 2, "peer_absent"),
	QP(reserved, 1, "reserved"),
	QP(life, 0, "life is 0, in state 3"),
	INIT(peer_absent, 1, "peer_absent is 1, in state 1 of type 2"),
	RAW(SQ_AT(wr.opcode), 0x20, "sq slot 0: opcode"),
	RAW(SQ_AT(wr.opcode), 10, "sq slot 0: opcode is 0xa"),
	RAW(SQ_AT(state), 5, "sq slot 0: state"),
	RAW(SQ_AT(first_psn), 1U << 24, "sq slot 0: first_psn"),
	RAW(SQ_AT(has_rd_atomic), 2, "sq slot 0: has_rd_atomic"),
	RAW(SQ_AT(dma.num_sge), 3, "sq slot 0: num_sge"),
	RAW(SQ_AT(dma.cur_sge), 3, "sq slot 0: cur_sge"),
	RAW(SQ_AT(dma.resid), 3001, "sq slot 0: resid"),
	RAW(SQ_AT(wr.send_flags), IBV_SEND_INLINE,
	    "sq slot 0: 500 bytes inline"),
	QP(sq.producer, 6, "slot 4 is posted, and there are 4"),
	QP(rq.producer, 8, "slot 6 is posted, and there are 6"),
	QP(rq.consumer, 14, "slot 14 is posted, and there are 6"),
	RAW(RQ_AT(dma.num_sge), 3, "rq slot 0: num_sge"),
	RAW(RQ_AT(dma.resid), 3001, "rq slot 0: resid"),
};

const size_t corruption_count = sizeof(corruptions) / sizeof(corruptions[0]);
