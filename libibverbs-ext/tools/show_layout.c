// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The fields of an image. This is the only table of them, and the one that
 * tests/test_format.c holds to docs/image-format.md.
 */

#include "show.h"

#define FIELD(type, member, how) SHOW_FIELD(type, #member, member, how)
#define HDR(m, how) FIELD(rxe_migr_image_hdr, m, how)
#define REC(m, how) FIELD(rxe_migr_rec, m, how)
#define CTX(m, how) FIELD(rxe_migr_rec_context, m, how)
#define MR(m, how) FIELD(rxe_migr_rec_mr, m, how)
#define MW(m, how) FIELD(rxe_migr_rec_mw, m, how)
#define AH(m, how) FIELD(rxe_migr_rec_ah, m, how)
#define MCAST(m, how) FIELD(rxe_migr_rec_mcast, m, how)
#define GROUP(m, how) FIELD(rxe_migr_group, m, how)
#define RING(m, how) FIELD(rxe_migr_ring, m, how)
#define CQ(m, how) FIELD(rxe_migr_rec_cq, m, how)
#define WQE(m, how) FIELD(rxe_migr_recv_wqe, m, how)
#define SGE(m, how) FIELD(rxe_migr_sge, m, how)
#define QP(m, how) FIELD(rxe_migr_rec_qp, m, how)
#define RES(m, how) FIELD(rxe_migr_res, m, how)
#define SRQ(m, how) FIELD(rxe_migr_rec_srq, m, how)
#define CHANNEL(m, how) FIELD(rxe_migr_rec_comp_channel, m, how)
#define ASYNC(m, how) FIELD(rxe_migr_rec_async_fd, m, how)
#define EVENT(m, how) FIELD(rxe_migr_event, m, how)

/*
 * A record: its type, whose name is also that of its section of the text, and the
 * end of its structure's name
 */
#define RECORD(id, suffix, ...)                                            \
	&(const struct show_layout)                                        \
	{                                                                  \
		.name = #id, .section = "### " #id, .type = RXE_MIGR_##id, \
		.size = sizeof(struct rxe_migr_rec_##suffix), __VA_ARGS__  \
	}

/* clang-format off */
const struct show_layout show_header = {
	.name = "header",
	.section = "## Header",
	.size = sizeof(struct rxe_migr_image_hdr),
	SHOW_FIELDS(
		HDR(magic, magic),
		HDR(version, decimal),
		HDR(hdr_length, decimal),
		HDR(length, decimal),
		HDR(count, decimal),
		HDR(crc32, hex),
		HDR(key_id, decimal),
		HDR(reserved, reserved_bytes),
		HDR(mac, bytes))
};

const struct show_layout show_record = {
	.name = "record",
	.section = "## Records",
	.size = sizeof(struct rxe_migr_rec),
	SHOW_FIELDS(
		REC(type, record_type),
		REC(length, decimal),
		REC(handle, record_handle),
		REC(reserved, reserved),
		REC(user_handle, hex))
};

/* ---- what is in records, or behind their fields ---- */

static const struct show_layout ring = {
	.name = "Ring",
	.section = "### Ring",
	.size = sizeof(struct rxe_migr_ring),
	SHOW_FIELDS(
		RING(mmap_offset, hex),
		RING(mmap_size, decimal),
		RING(log2_elem, decimal),
		RING(index_mask, hex),
		RING(producer, decimal),
		RING(consumer, decimal),
		RING(slots, decimal))
};

static const struct show_form show_completions = {
	.as = SHOW_GROUP,
	.group = &ring,
	.slot = &show_wc,
	.used = "unpolled",
	.packed = true,
};

static const struct show_form show_sends = {
	.as = SHOW_GROUP,
	.group = &ring,
	.slot = &show_send,
	.used = "posted",
};

static const struct show_form show_receives = {
	.as = SHOW_GROUP,
	.group = &ring,
	.slot = &show_recv,
	.used = "posted",
};

const struct show_layout show_sge = {
	.name = "sge",
	.size = sizeof(struct rxe_migr_sge),
	SHOW_FIELDS(
		SGE(addr, hex),
		SGE(length, decimal),
		SGE(lkey, hex))
};

static const struct show_form show_sges = {
	.as = SHOW_GROUP,
	.group = &show_sge,
};

/* without a section: its fields are described as the QP's */
static const struct show_layout recv_wqe = {
	.name = "wqe",
	.size = sizeof(struct rxe_migr_recv_wqe),
	SHOW_FIELDS(
		WQE(valid, decimal),
		WQE(num_sge, decimal),
		WQE(wr_id, hex),
		WQE(length, decimal),
		WQE(resid, decimal),
		WQE(cur_sge, decimal),
		WQE(sge_offset, decimal),
		WQE(sge, sges))
};

static const struct show_form show_wqe = {
	.as = SHOW_GROUP,
	.group = &recv_wqe,
};

static const struct show_layout resource = {
	.name = "resource",
	.section = "A responder resource",
	.size = sizeof(struct rxe_migr_res),
	.sparse = true,
	SHOW_FIELDS(
		RES(kind, res_kind),
		RES(first_psn, hex24),
		RES(last_psn, hex24),
		RES(cur_psn, hex24),
		RES(rkey, hex),
		RES(length, decimal),
		RES(value, hex),
		RES(flush_type, hex),
		RES(flush_level, hex))
};

static const struct show_layout group = {
	.name = "group",
	.section = "A group",
	.size = sizeof(struct rxe_migr_group),
	SHOW_FIELDS(
		GROUP(mgid, gid),
		GROUP(mlid, hex),
		GROUP(reserved, reserved))
};

/* an event of a channel is nothing but this */
static const struct show_layout cq_event = {
	.name = "event",
	.size = sizeof(uint32_t),
	SHOW_FIELDS({ .name = "cq", .size = sizeof(uint32_t), .form = &show_decimal }),
};

static const struct show_layout event = {
	.name = "event",
	.section = "An event",
	.size = sizeof(struct rxe_migr_event),
	SHOW_FIELDS(
		EVENT(type, event_type),
		EVENT(handle, decimal))
};

/* ---- all of them; who adds a record adds it here ---- */

const struct show_layout *const show_layouts[] = {
	&show_header,
	&show_record,
	RECORD(CONTEXT, context,
		.no_handle = true,
		SHOW_FIELDS(
			CTX(device, string),
			CTX(max_handle, decimal),
			CTX(reserved, reserved))),
	RECORD(PD, pd),
	RECORD(MR, mr,
		SHOW_FIELDS(
			MR(pd, decimal),
			MR(key, hex),
			MR(access, access),
			MR(wire_key, hex),
			MR(start, hex),
			MR(size, decimal),
			MR(iova, hex))),
	RECORD(MW, mw,
		SHOW_FIELDS(
			MW(pd, decimal),
			MW(mw_type, decimal),
			MW(rkey, hex),
			MW(wire_key, hex),
			MW(state, mw_state),
			MW(access, access),
			MW(mr, handle),
			MW(qp, handle),
			MW(addr, hex),
			MW(size, decimal))),
	RECORD(AH, ah,
		SHOW_FIELDS(
			AH(pd, decimal),
			AH(ah_num, decimal),
			AH(dgid, gid),
			AH(sgid, gid),
			AH(flow_label, hex),
			AH(network_type, network),
			AH(sgid_index, decimal),
			AH(hop_limit, decimal),
			AH(traffic_class, decimal))),
	&ring,
	RECORD(CQ, cq,
		SHOW_FIELDS(
			CQ(cqe, decimal),
			CQ(comp_channel, handle),
			CQ(comp_vector, decimal),
			CQ(notify, notify),
			CQ(ring, completions),
			CQ(comp_events_reported, decimal),
			CQ(events_reported, decimal))),
	RECORD(QP, qp,
		.items_name = "resources",
		.items = &resource,
		.items_at = offsetof(struct rxe_migr_rec_qp, max_dest_rd_atomic),
		SHOW_FIELDS(
			/* creation */
			QP(pd, decimal),
			QP(send_cq, decimal),
			QP(recv_cq, decimal),
			QP(qpn, hex24),
			QP(qp_type, qp_type),
			QP(sq_sig_all, decimal),
			QP(max_send_wr, decimal),
			QP(max_send_sge, decimal),
			QP(max_inline_data, decimal),
			QP(max_recv_wr, decimal),
			QP(max_recv_sge, decimal),
			/* attributes */
			QP(state, qp_state),
			QP(access_flags, access),
			QP(pkey_index, decimal),
			QP(port_num, decimal),
			QP(path_mtu, mtu),
			QP(dest_qpn, hex24),
			QP(rq_psn, hex24),
			QP(sq_psn, hex24),
			QP(max_rd_atomic, decimal),
			QP(max_dest_rd_atomic, decimal),
			QP(min_rnr_timer, decimal),
			QP(timeout, decimal),
			QP(retry_cnt, decimal),
			QP(rnr_retry, decimal),
			QP(qkey, hex),
			QP(sq_draining, decimal),
			QP(en_sqd_async_notify, decimal),
			/* address vector */
			QP(dgid, gid),
			QP(sgid, gid),
			QP(dmac, ether),
			QP(network_type, network),
			QP(sgid_index, decimal),
			QP(flow_label, hex),
			QP(hop_limit, decimal),
			QP(traffic_class, decimal),
			QP(udp_sport, decimal),
			/* migration and progress */
			QP(epoch, decimal),
			QP(peer_epoch, decimal),
			QP(req_psn, hex24),
			QP(req_opcode, bth),
			QP(req_wqe_index, decimal),
			QP(req_rd_atomic, decimal),
			QP(req_need_rd_atomic, decimal),
			QP(req_noack_pkts, decimal),
			QP(ssn, decimal),
			QP(comp_psn, hex24),
			QP(comp_opcode, bth),
			QP(resp_msn, decimal),
			QP(resp_psn, hex24),
			QP(resp_ack_psn, hex24),
			QP(resp_opcode, bth),
			QP(resp_status, wc_status),
			QP(resp_resid, decimal),
			QP(resp_rkey, hex),
			QP(resp_length, decimal),
			QP(resp_res_head, decimal),
			QP(resp_va, hex),
			QP(resp_offset, decimal),
			QP(wqe, wqe),
			QP(sq, sends),
			QP(rq, receives),
			QP(events_reported, decimal),
			QP(wire_qpn, hex24),
			QP(srq, handle),
			QP(last_wqe, decimal),
			QP(peer_absent, decimal),
			QP(life, hex),
			QP(peer_life, hex),
			QP(peer_nonce, hex),
			QP(reserved, reserved))),
	&resource,
	RECORD(MCAST, mcast,
		.no_handle = true,
		.items_name = "joined",
		.items = &group,
		.items_at = offsetof(struct rxe_migr_rec_mcast, groups),
		SHOW_FIELDS(
			MCAST(qp, decimal),
			MCAST(groups, decimal))),
	&group,
	RECORD(SRQ, srq,
		SHOW_FIELDS(
			SRQ(pd, decimal),
			SRQ(srq_num, hex24),
			SRQ(max_wr, decimal),
			SRQ(max_sge, decimal),
			SRQ(limit, decimal),
			SRQ(error, decimal),
			SRQ(ring, receives),
			SRQ(events_reported, decimal),
			SRQ(reserved, reserved))),
	RECORD(COMP_CHANNEL, comp_channel,
		.no_handle = true,
		.items_name = "unread",
		.items = &cq_event,
		.items_at = offsetof(struct rxe_migr_rec_comp_channel, events),
		SHOW_FIELDS(
			CHANNEL(cq, decimal),
			CHANNEL(events, decimal))),
	RECORD(ASYNC_FD, async_fd,
		.no_handle = true,
		.items_name = "unread",
		.items = &event,
		.items_at = offsetof(struct rxe_migr_rec_async_fd, events),
		SHOW_FIELDS(
			ASYNC(events, decimal),
			ASYNC(reserved, reserved))),
	&event,
	NULL,
};
/* clang-format on */

const struct show_layout *show_layout_of(uint32_t type)
{
	unsigned int i;

	for (i = 0; show_layouts[i]; i++)
		if (type && show_layouts[i]->type == type)
			return show_layouts[i];
	return NULL;
}
