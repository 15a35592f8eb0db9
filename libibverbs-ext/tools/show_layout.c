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

/* clang-format off */
static const struct show_field header_fields[] = {
	HDR(magic, magic),
	HDR(version, decimal),
	HDR(hdr_length, decimal),
	HDR(length, decimal),
	HDR(count, decimal),
	HDR(crc32, hex),
	HDR(key_id, decimal),
	HDR(reserved, reserved_bytes),
	HDR(mac, bytes),
};

static const struct show_field record_fields[] = {
	REC(type, record_type),
	REC(length, decimal),
	REC(handle, record_handle),
	REC(reserved, reserved),
	REC(user_handle, hex),
};

static const struct show_field context_fields[] = {
	CTX(device, string),
	CTX(max_handle, decimal),
	CTX(reserved, reserved),
};

static const struct show_field mr_fields[] = {
	MR(pd, handle),
	MR(key, hex),
	MR(access, access),
	MR(wire_key, hex),
	MR(start, hex),
	MR(size, decimal),
	MR(iova, hex),
};

static const struct show_field ring_fields[] = {
	RING(mmap_offset, hex),
	RING(mmap_size, decimal),
	RING(log2_elem, decimal),
	RING(index_mask, hex),
	RING(producer, decimal),
	RING(consumer, decimal),
	RING(slots, decimal),
};
/* clang-format on */

static const struct show_layout show_ring_layout = {
	.name = "Ring",
	.section = "### Ring",
	SHOW_FIELDS(ring_fields),
	.size = sizeof(struct rxe_migr_ring),
};
static const struct show_form show_completions = {
	.as = SHOW_GROUP,
	.group = &show_ring_layout,
	.slot = &show_wc,
	.used = "unpolled",
	.packed = true,
};
static const struct show_form show_sends = {
	.as = SHOW_GROUP,
	.group = &show_ring_layout,
	.slot = &show_send,
	.used = "posted",
};
static const struct show_form show_receives = {
	.as = SHOW_GROUP,
	.group = &show_ring_layout,
	.slot = &show_recv,
	.used = "posted",
};

/* clang-format off */
static const struct show_field cq_fields[] = {
	CQ(cqe, decimal),
	CQ(comp_channel, handle),
	CQ(comp_vector, decimal),
	CQ(notify, notify),
	CQ(ring, completions),
	CQ(comp_events_reported, decimal),
	CQ(events_reported, decimal),
};

static const struct show_field sge_fields[] = {
	SGE(addr, hex),
	SGE(length, decimal),
	SGE(lkey, hex),
};
/* clang-format on */

const struct show_layout show_sge = {
	.name = "sge",
	SHOW_FIELDS(sge_fields),
	.size = sizeof(struct rxe_migr_sge),
};
static const struct show_form show_sges = { .as = SHOW_GROUP,
					    .group = &show_sge };

/* clang-format off */
static const struct show_field wqe_fields[] = {
	WQE(valid, decimal),
	WQE(num_sge, decimal),
	WQE(wr_id, hex),
	WQE(length, decimal),
	WQE(resid, decimal),
	WQE(cur_sge, decimal),
	WQE(sge_offset, decimal),
	WQE(sge, sges),
};
/* clang-format on */

/* without a section: its fields are described as the QP's */
static const struct show_layout show_wqe_layout = {
	.name = "wqe",
	SHOW_FIELDS(wqe_fields),
	.size = sizeof(struct rxe_migr_recv_wqe),
};
static const struct show_form show_wqe = { .as = SHOW_GROUP,
					   .group = &show_wqe_layout };

/* clang-format off */
static const struct show_field qp_fields[] = {
	/* creation */
	QP(pd, handle),
	QP(send_cq, handle),
	QP(recv_cq, handle),
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
	QP(reserved, reserved),
};

static const struct show_field res_fields[] = {
	RES(kind, res_kind),
	RES(first_psn, hex24),
	RES(last_psn, hex24),
	RES(cur_psn, hex24),
	RES(rkey, hex),
	RES(length, decimal),
	RES(value, hex),
	RES(flush_type, hex),
	RES(flush_level, hex),
};

static const struct show_field srq_fields[] = {
	SRQ(pd, handle),
	SRQ(srq_num, hex24),
	SRQ(max_wr, decimal),
	SRQ(max_sge, decimal),
	SRQ(limit, decimal),
	SRQ(error, decimal),
	SRQ(ring, receives),
	SRQ(events_reported, decimal),
	SRQ(reserved, reserved),
};

static const struct show_field channel_fields[] = {
	CHANNEL(cq, handle),
	CHANNEL(events, decimal),
};

static const struct show_field async_fields[] = {
	ASYNC(events, decimal),
	ASYNC(reserved, reserved),
};

static const struct show_field event_fields[] = {
	EVENT(type, event_type),
	EVENT(handle, handle),
};

/* an event of a channel is nothing but this */
static const struct show_field cq_event_fields[] = {
	{ .name = "cq", .size = sizeof(uint32_t), .form = &show_handle },
};
/* clang-format on */

const struct show_layout show_header = {
	.name = "header",
	.section = "## Header",
	SHOW_FIELDS(header_fields),
	.size = sizeof(struct rxe_migr_image_hdr),
};

const struct show_layout show_record = {
	.name = "record",
	.section = "## Records",
	SHOW_FIELDS(record_fields),
	.size = sizeof(struct rxe_migr_rec),
};

static const struct show_layout context = {
	.name = "CONTEXT",
	.section = "### CONTEXT",
	.type = RXE_MIGR_CONTEXT,
	.no_handle = true,
	SHOW_FIELDS(context_fields),
	.size = sizeof(struct rxe_migr_rec_context),
};

static const struct show_layout pd = {
	.name = "PD",
	.section = "### PD",
	.type = RXE_MIGR_PD,
	.size = sizeof(struct rxe_migr_rec_pd),
};

static const struct show_layout mr = {
	.name = "MR",
	.section = "### MR",
	.type = RXE_MIGR_MR,
	SHOW_FIELDS(mr_fields),
	.size = sizeof(struct rxe_migr_rec_mr),
};

static const struct show_layout cq = {
	.name = "CQ",
	.section = "### CQ",
	.type = RXE_MIGR_CQ,
	SHOW_FIELDS(cq_fields),
	.size = sizeof(struct rxe_migr_rec_cq),
};

static const struct show_layout res = {
	.name = "resource",
	.section = "A responder resource",
	.sparse = true,
	SHOW_FIELDS(res_fields),
	.size = sizeof(struct rxe_migr_res),
};

const struct show_layout show_qp = {
	.name = "QP",
	.section = "### QP",
	.type = RXE_MIGR_QP,
	SHOW_FIELDS(qp_fields),
	.size = sizeof(struct rxe_migr_rec_qp),
	.items_name = "resources",
	.items = &res,
	.items_at = offsetof(struct rxe_migr_rec_qp, max_dest_rd_atomic),
};

static const struct show_layout srq = {
	.name = "SRQ",
	.section = "### SRQ",
	.type = RXE_MIGR_SRQ,
	SHOW_FIELDS(srq_fields),
	.size = sizeof(struct rxe_migr_rec_srq),
};

static const struct show_layout cq_event = {
	.name = "event",
	SHOW_FIELDS(cq_event_fields),
	.size = sizeof(uint32_t),
};

static const struct show_layout channel = {
	.name = "COMP_CHANNEL",
	.section = "### COMP_CHANNEL",
	.type = RXE_MIGR_COMP_CHANNEL,
	.no_handle = true,
	SHOW_FIELDS(channel_fields),
	.size = sizeof(struct rxe_migr_rec_comp_channel),
	.items_name = "unread",
	.items = &cq_event,
	.items_at = offsetof(struct rxe_migr_rec_comp_channel, events),
};

static const struct show_layout event = {
	.name = "event",
	.section = "An event",
	SHOW_FIELDS(event_fields),
	.size = sizeof(struct rxe_migr_event),
};

static const struct show_layout async = {
	.name = "ASYNC_FD",
	.section = "### ASYNC_FD",
	.type = RXE_MIGR_ASYNC_FD,
	.no_handle = true,
	SHOW_FIELDS(async_fields),
	.size = sizeof(struct rxe_migr_rec_async_fd),
	.items_name = "unread",
	.items = &event,
	.items_at = offsetof(struct rxe_migr_rec_async_fd, events),
};

const struct show_layout *const show_layouts[] = {
	&show_header,	   &show_record, &context, &pd,	 &mr,
	&show_ring_layout, &cq,		 &show_qp, &res, &srq,
	&channel,	   &async,	 &event,   NULL,
};

const struct show_layout *show_layout_of(uint32_t type)
{
	unsigned int i;

	for (i = 0; show_layouts[i]; i++)
		if (type && show_layouts[i]->type == type)
			return show_layouts[i];
	return NULL;
}
