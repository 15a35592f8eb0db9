// SPDX-License-Identifier: GPL-2.0
/* Objects of the rig, as the stock drivers create them */
#include "nic.h"
#include "rig.h"

/* the list of pages at the end of a command */
static void put_pages(struct rig *r, uint64_t buf, uint64_t size)
{
	uint64_t i, count = (size + RIG_PAGE - 1) / RIG_PAGE;

	for (i = 0; i < count; i++)
		put_be64(r->in + r->in_len + 8 * i, buf + i * RIG_PAGE);
	r->in_len += 8 * count;
}

static void new_buffer(struct rig *r, uint64_t size)
{
	r->buf = rig_pages(r, (size + RIG_PAGE - 1) / RIG_PAGE);
	put_pages(r, r->buf, size);
}

static uint64_t new_record(struct rig *r)
{
	r->db = rig_pages(r, 1);
	return r->db;
}

void rig_eq_in(struct rig *r, uint8_t log_size, uint8_t vector, uint64_t events)
{
	uint8_t *in =
		rig_begin(r, MLX5_CMD_OP_CREATE_EQ, BYTES(create_eq_in), 16);
	uint8_t *eqc = AT(create_eq_in, in, eq_context_entry);
	uint32_t i;

	SET(eqc, eqc, log_eq_size, log_size);
	SET(eqc, eqc, uar_page, r->uar);
	SET(eqc, eqc, intr, vector);
	put_be64(AT(create_eq_in, in, event_bitmask), events);
	new_buffer(r, 64ULL << log_size);
	/* drivers give all entries to the software first */
	for (i = 0; i < 1U << log_size; i++)
		rig_mem(r, r->buf)[i * 64 + 63] = 1;
}

static void cqe_buffer(struct rig *r, uint8_t log_size)
{
	new_buffer(r, 64ULL << log_size);
	for (uint32_t i = 0; i < 1U << log_size; i++)
		rig_mem(r, r->buf)[i * 64 + 63] = 0xf1; /* invalid */
}

static const uint8_t peer_gid[16] = { [10] = 255, 255, 10, 0, 0, 1 };
static const uint8_t peer_mac[6] = { 0x52, 0x54, 0, 0x12, 0x5c, 1 };

void rig_address(struct rig *r)
{
	uint8_t *addr;

	rig_begin(r, MLX5_CMD_OP_SET_ROCE_ADDRESS, BYTES(set_roce_address_in),
		  16);
	addr = AT(set_roce_address_in, r->in, roce_address);
	memcpy(addr, peer_gid, sizeof(peer_gid));
	memcpy(AT(roce_addr_layout, addr, source_mac_47_32), peer_mac,
	       sizeof(peer_mac));
	SET(roce_addr_layout, addr, roce_version, 2);
	CHECK(!rig_run(r), "%s", r->log);
}

void rig_connect(struct rig *r, uint32_t qp, uint32_t peer)
{
	uint8_t *qpc, *ads;

	for (uint16_t op = MLX5_CMD_OP_RST2INIT_QP;
	     op <= MLX5_CMD_OP_RTR2RTS_QP; op++) {
		rig_begin(r, op, 272, 16);
		SET(rst2init_qp_in, r->in, qpn, qp);
		qpc = AT(rst2init_qp_in, r->in, qpc);
		SET(qpc, qpc, mtu, 3);
		SET(qpc, qpc, log_msg_max, 30);
		SET(qpc, qpc, remote_qpn, peer);
		SET(qpc, qpc, rwe, 1);
		SET(qpc, qpc, rre, 1);
		SET(qpc, qpc, retry_count, 2);
		ads = AT(qpc, qpc, primary_address_path);
		SET(ads, ads, vhca_port_num, 1);
		SET(ads, ads, hop_limit, 64);
		SET(ads, ads, udp_sport, 0xc001);
		memcpy(AT(ads, ads, rgid_rip), peer_gid, sizeof(peer_gid));
		memcpy(AT(ads, ads, rmac_47_32), peer_mac, sizeof(peer_mac));
		CHECK(!rig_run(r), "0x%x: %s", op, r->log);
	}
}

void rig_cq_in(struct rig *r, uint8_t log_size, uint32_t eqn)
{
	uint8_t *in =
		rig_begin(r, MLX5_CMD_OP_CREATE_CQ, BYTES(create_cq_in), 16);
	uint8_t *cqc = AT(create_cq_in, in, cq_context);

	SET(cqc, cqc, log_cq_size, log_size);
	SET(cqc, cqc, uar_page, r->uar);
	SET(cqc, cqc, c_eqn_or_apu_element, eqn);
	SET(cqc, cqc, dbr_addr, new_record(r));
	cqe_buffer(r, log_size);
}

void rig_cq_resize_in(struct rig *r, uint8_t log_size, uint32_t cqn)
{
	uint8_t *in =
		rig_begin(r, MLX5_CMD_OP_MODIFY_CQ, BYTES(modify_cq_in), 16);

	SET(modify_cq_in, in, op_mod, 1);
	SET(modify_cq_in, in, cqn, cqn);
	SET(modify_cq_in, in, cq_context.log_cq_size, log_size);
	cqe_buffer(r, log_size);
}

void rig_mkey_in(struct rig *r, uint64_t buf, uint64_t start, uint64_t len)
{
	uint8_t *in = rig_begin(r, MLX5_CMD_OP_CREATE_MKEY,
				BYTES(create_mkey_in), 16);
	uint8_t *mkc = AT(create_mkey_in, in, memory_key_mkey_entry);
	uint64_t offset = start % RIG_PAGE;
	uint64_t count = (offset + len + RIG_PAGE - 1) / RIG_PAGE;

	SET(mkc, mkc, access_mode_1_0, 1); /* a list of pages */
	SET(mkc, mkc, lr, 1);
	SET(mkc, mkc, lw, 1);
	SET(mkc, mkc, rr, 1);
	SET(mkc, mkc, rw, 1);
	SET(mkc, mkc, a, 1);
	SET(mkc, mkc, pd, r->pd);
	SET(mkc, mkc, qpn, 0xffffff);
	SET(mkc, mkc, mkey_7_0, 0x5a);
	SET(mkc, mkc, start_addr, start);
	SET(mkc, mkc, len, len);
	SET(mkc, mkc, log_page_size, 12);
	SET(mkc, mkc, translations_octword_size, (count + 1) / 2);
	SET(create_mkey_in, in, translations_octword_actual_size,
	    (count + 1) / 2);
	put_pages(r, buf, offset + len);
	if (count & 1) { /* whole octwords */
		put_be64(r->in + r->in_len, 0);
		r->in_len += 8;
	}
}

void rig_srq_in(struct rig *r)
{
	uint8_t *in =
		rig_begin(r, MLX5_CMD_OP_CREATE_SRQ, BYTES(create_srq_in), 16);
	uint8_t *c = AT(create_srq_in, in, srq_context_entry);

	SET(srqc, c, log_srq_size, 4);
	SET(srqc, c, log_rq_stride, 1);
	SET(srqc, c, pd, r->pd);
	SET(srqc, c, dbr_addr, new_record(r));
	new_buffer(r, 32 << 4);
}

void rig_xrc_srq_in(struct rig *r, uint32_t xrcd, uint32_t cqn)
{
	uint8_t *in = rig_begin(r, MLX5_CMD_OP_CREATE_XRC_SRQ,
				BYTES(create_xrc_srq_in), 16);
	uint8_t *c = AT(create_xrc_srq_in, in, xrc_srq_context_entry);

	SET(xrc_srqc, c, log_xrc_srq_size, 4);
	SET(xrc_srqc, c, log_rq_stride, 1);
	SET(xrc_srqc, c, pd, r->pd);
	SET(xrc_srqc, c, xrcd, xrcd);
	SET(xrc_srqc, c, cqn, cqn);
	SET(xrc_srqc, c, user_index, RIG_USER_INDEX);
	SET(xrc_srqc, c, db_record_addr_l, new_record(r) >> 2);
	new_buffer(r, 32 << 4);
}

static void wq_in(struct rig *r, uint8_t *wq, uint8_t log_stride)
{
	SET(wq, wq, wq_type, 1);
	SET(wq, wq, pd, r->pd);
	SET(wq, wq, uar_page, r->uar);
	SET(wq, wq, dbr_addr, new_record(r));
	SET(wq, wq, log_wq_sz, 4);
	SET(wq, wq, log_wq_stride, log_stride);
	new_buffer(r, 16 << log_stride);
}

void rig_rmp_in(struct rig *r)
{
	uint8_t *in =
		rig_begin(r, MLX5_CMD_OP_CREATE_RMP, BYTES(create_rmp_in), 16);

	wq_in(r, AT(rmpc, AT(create_rmp_in, in, ctx), wq), 5);
}

void rig_sq_in(struct rig *r, uint32_t cqn)
{
	uint8_t *in =
		rig_begin(r, MLX5_CMD_OP_CREATE_SQ, BYTES(create_sq_in), 16);
	uint8_t *c = AT(create_sq_in, in, ctx);

	SET(sqc, c, cqn, cqn);
	wq_in(r, AT(sqc, c, wq), 6);
}

void rig_rq_in(struct rig *r, uint32_t cqn)
{
	uint8_t *in =
		rig_begin(r, MLX5_CMD_OP_CREATE_RQ, BYTES(create_rq_in), 16);
	uint8_t *c = AT(create_rq_in, in, ctx);

	SET(rqc, c, cqn, cqn);
	wq_in(r, AT(rqc, c, wq), 5);
}

void rig_wq_state(struct rig *r, uint16_t op, uint32_t id, uint8_t from,
		  uint8_t to)
{
	/* MODIFY_SQ has everything at the same place */
	rig_begin(r, op, BYTES(modify_rq_in), 16);
	SET(modify_rq_in, r->in, rqn, id);
	SET(modify_rq_in, r->in, rq_state, from);
	SET(rqc, AT(modify_rq_in, r->in, ctx), state, to);
	CHECK(!rig_run(r), "%s", r->log);
}

uint32_t rig_sq(struct rig *r, uint32_t td, uint32_t cqn)
{
	uint32_t tis, sq;

	rig_begin(r, MLX5_CMD_OP_CREATE_TIS, BYTES(create_tis_in), 16);
	SET(tisc, AT(create_tis_in, r->in, ctx), transport_domain, td);
	tis = rig_id(r);
	rig_sq_in(r, cqn);
	SET(sqc, AT(create_sq_in, r->in, ctx), tis_lst_sz, 1);
	SET(sqc, AT(create_sq_in, r->in, ctx), tis_num_0, tis);
	sq = rig_id(r);
	rig_wq_state(r, MLX5_CMD_OP_MODIFY_SQ, sq, WQ_RST, WQ_RDY);
	return sq;
}

void rig_qp_in(struct rig *r, uint8_t type, uint32_t cqn)
{
	uint8_t *in =
		rig_begin(r, MLX5_CMD_OP_CREATE_QP, BYTES(create_qp_in), 16);
	uint8_t *qpc = AT(create_qp_in, in, qpc);

	SET(qpc, qpc, st, type);
	SET(qpc, qpc, pm_state, 3);
	SET(qpc, qpc, pd, r->pd);
	SET(qpc, qpc, uar_page, r->uar);
	SET(qpc, qpc, log_sq_size, 4);
	SET(qpc, qpc, log_rq_size, 4);
	SET(qpc, qpc, log_rq_stride, 1);
	SET(qpc, qpc, cqn_snd, cqn);
	SET(qpc, qpc, cqn_rcv, cqn);
	SET(qpc, qpc, dbr_addr, new_record(r));
	new_buffer(r, (32 << 4) + (64 << 4));
}

/* ---- rings ---- */

struct rig_ring rig_eq(struct rig *r, uint8_t log_size, uint8_t vector,
		       uint64_t events)
{
	struct rig_ring eq = { .log_size = log_size };

	rig_eq_in(r, log_size, vector, events);
	eq.buf = r->buf;
	eq.id = rig_id(r) & 0xff;
	return eq;
}

struct rig_ring rig_cq(struct rig *r, uint8_t log_size, uint32_t eqn)
{
	struct rig_ring cq = { .log_size = log_size };

	rig_cq_in(r, log_size, eqn);
	cq.buf = r->buf;
	cq.db = r->db;
	cq.id = rig_id(r);
	return cq;
}

static bool take(struct rig *r, struct rig_ring *ring, uint8_t entry[64])
{
	uint32_t mask = (1U << ring->log_size) - 1;
	const uint8_t *at = rig_mem(r, ring->buf) + (ring->ci & mask) * 64;

	if ((at[63] & 1) != (ring->ci >> ring->log_size & 1))
		return false;
	memcpy(entry, at, 64);
	ring->ci++;
	return true;
}

bool rig_eqe(struct rig *r, struct rig_ring *eq, uint8_t eqe[64])
{
	return take(r, eq, eqe);
}

bool rig_cqe(struct rig *r, struct rig_ring *cq, uint8_t cqe[64])
{
	uint32_t mask = (1U << cq->log_size) - 1;

	if (rig_mem(r, cq->buf)[(cq->ci & mask) * 64 + 63] >> 4 == 0xf)
		return false;
	return take(r, cq, cqe);
}
