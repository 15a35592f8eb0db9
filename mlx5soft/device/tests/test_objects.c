// SPDX-License-Identifier: GPL-2.0
/*
 * Objects: who needs whom, numbers that are not there, numbers used up, lists
 * of pages and doorbell records that are wrong.
 */
#include <stdlib.h>

#include "commands/cmd.h"
#include "nic.h"
#include "probe.h"

static struct rig *r;

static int destroy(uint16_t op, uint32_t id)
{
	return rig_run_id(r, op, id);
}

static void busy(uint16_t op, uint32_t id)
{
	CHECK(destroy(op, id) == CMD_RES_BUSY, "0x%x of %u", op, id);
}

static void test_busy(void)
{
	struct probe p;
	uint32_t qp, srq;

	r = rig_start();
	probe_run(r, &p);
	busy(MLX5_CMD_OP_DEALLOC_UAR, r->uar);
	busy(MLX5_CMD_OP_DEALLOC_PD, r->pd);
	busy(MLX5_CMD_OP_DEALLOC_TRANSPORT_DOMAIN, p.td);
	busy(MLX5_CMD_OP_DEALLOC_XRCD, p.xrcd);
	busy(MLX5_CMD_OP_DESTROY_EQ, p.comp_eq.id);
	busy(MLX5_CMD_OP_DESTROY_CQ, p.rx_cq.id);
	busy(MLX5_CMD_OP_DESTROY_CQ, p.tx_cq.id);
	busy(MLX5_CMD_OP_DESTROY_RQT, p.rqt);
	rig_begin(r, MLX5_CMD_OP_DESTROY_FLOW_TABLE, 64, 16);
	SET(destroy_flow_table_in, r->in, table_id, p.ft);
	CHECK(rig_run(r) == CMD_RES_BUSY, "table with a group");
	rig_begin(r, MLX5_CMD_OP_DESTROY_FLOW_GROUP, 64, 16);
	SET(destroy_flow_group_in, r->in, table_id, p.ft);
	SET(destroy_flow_group_in, r->in, group_id, p.group);
	CHECK(rig_run(r) == CMD_RES_BUSY, "group with an entry");

	/* a QP on each kind of shared receive queue */
	rig_srq_in(r);
	srq = rig_id(r);
	rig_qp_in(r, 0, p.rx_cq.id);
	SET(create_qp_in, r->in, qpc.rq_type, 1);
	SET(create_qp_in, r->in, qpc.srqn_rmpn_xrqn, srq);
	qp = rig_id(r);
	busy(MLX5_CMD_OP_DESTROY_SRQ, srq);
	CHECK(!destroy(MLX5_CMD_OP_DESTROY_QP, qp), "%s", r->log);
	CHECK(!destroy(MLX5_CMD_OP_DESTROY_SRQ, srq), "%s", r->log);
	rig_qp_in(r, 0, p.rx_cq.id);
	SET(create_qp_in, r->in, qpc.rq_type, 1);
	SET(create_qp_in, r->in, qpc.srqn_rmpn_xrqn, p.rmp);
	qp = rig_id(r);
	busy(MLX5_CMD_OP_DESTROY_RMP, p.rmp);
	CHECK(!destroy(MLX5_CMD_OP_DESTROY_QP, qp), "%s", r->log);
	/* all of that has changed nothing */
	probe_remove(r, &p);
	rig_stop(r);
}

/* What could not be created holds nothing. */
static void test_failed(void)
{
	struct rig_ring eq, cq;

	r = rig_up();
	eq = rig_eq(r, 2, 0, 0);
	cq = rig_cq(r, 2, eq.id);
	rig_qp_in(r, 0, cq.id);
	SET(create_qp_in, r->in, qpc.pd, r->pd + 1);
	CHECK(rig_run(r) == CMD_BAD_RES, "PD");
	rig_xrc_srq_in(r, 1, cq.id);
	CHECK(rig_run(r) == CMD_BAD_RES, "XRCD");
	rig_cq_in(r, 2, eq.id);
	SET(create_cq_in, r->in, cq_context.uar_page, r->uar + 1);
	CHECK(rig_run(r) == CMD_BAD_RES, "UAR");
	rig_eq_in(r, 2, 0, 0);
	SET(create_eq_in, r->in, eq_context_entry.uar_page, r->uar + 1);
	CHECK(rig_run(r) == CMD_BAD_RES, "UAR");
	rig_cq_in(r, 2, eq.id + 1);
	CHECK(rig_run(r) == CMD_BAD_RES, "EQ");
	rig_cq_in(r, 2, -1U);
	CHECK(rig_run(r) == CMD_BAD_RES, "EQ");
	rig_mkey_in(r, RIG_FREE, 0, 4096);
	SET(create_mkey_in, r->in, memory_key_mkey_entry.pd, 0);
	CHECK(rig_run(r) == CMD_BAD_RES, "PD");
	rig_sq_in(r, cq.id + 1);
	CHECK(rig_run(r) == CMD_BAD_RES, "CQ");
	CHECK(!destroy(MLX5_CMD_OP_DESTROY_CQ, cq.id), "%s", r->log);
	CHECK(!destroy(MLX5_CMD_OP_DESTROY_EQ, eq.id), "%s", r->log);
	CHECK(!destroy(MLX5_CMD_OP_DEALLOC_PD, r->pd), "%s", r->log);
	CHECK(!destroy(MLX5_CMD_OP_DEALLOC_UAR, r->uar), "%s", r->log);
	rig_stop(r);
}

static const struct {
	uint16_t op;
	enum obj_kind kind; /* whose numbers it takes */
} by_number[] = {
	{ MLX5_CMD_OP_DEALLOC_PD, OBJ_PD },
	{ MLX5_CMD_OP_DEALLOC_UAR, OBJ_UAR },
	{ MLX5_CMD_OP_DEALLOC_XRCD, OBJ_XRCD },
	{ MLX5_CMD_OP_DEALLOC_TRANSPORT_DOMAIN, OBJ_TD },
	{ MLX5_CMD_OP_DEALLOC_Q_COUNTER, OBJ_Q_COUNTER },
	{ MLX5_CMD_OP_DESTROY_EQ, OBJ_EQ },
	{ MLX5_CMD_OP_QUERY_EQ, OBJ_EQ },
	{ MLX5_CMD_OP_DESTROY_CQ, OBJ_CQ },
	{ MLX5_CMD_OP_MODIFY_CQ, OBJ_CQ },
	{ MLX5_CMD_OP_QUERY_CQ, OBJ_CQ },
	{ MLX5_CMD_OP_DESTROY_MKEY, OBJ_MKEY },
	{ MLX5_CMD_OP_QUERY_MKEY, OBJ_MKEY },
	{ MLX5_CMD_OP_DESTROY_SRQ, OBJ_SRQ },
	{ MLX5_CMD_OP_QUERY_SRQ, OBJ_SRQ },
	{ MLX5_CMD_OP_DESTROY_XRC_SRQ, OBJ_XRC_SRQ },
	{ MLX5_CMD_OP_QUERY_XRC_SRQ, OBJ_XRC_SRQ },
	{ MLX5_CMD_OP_DESTROY_RMP, OBJ_RMP },
	{ MLX5_CMD_OP_MODIFY_RMP, OBJ_RMP },
	{ MLX5_CMD_OP_QUERY_RMP, OBJ_RMP },
	{ MLX5_CMD_OP_DESTROY_QP, OBJ_QP },
	{ MLX5_CMD_OP_RST2INIT_QP, OBJ_QP },
	{ MLX5_CMD_OP_2ERR_QP, OBJ_QP },
	{ MLX5_CMD_OP_2RST_QP, OBJ_QP },
	{ MLX5_CMD_OP_QUERY_QP, OBJ_QP },
	{ MLX5_CMD_OP_ATTACH_TO_MCG, OBJ_QP },
	{ MLX5_CMD_OP_DETACH_FROM_MCG, OBJ_QP },
	{ MLX5_CMD_OP_DESTROY_SQ, OBJ_SQ },
	{ MLX5_CMD_OP_MODIFY_SQ, OBJ_SQ },
	{ MLX5_CMD_OP_QUERY_SQ, OBJ_SQ },
	{ MLX5_CMD_OP_DESTROY_RQ, OBJ_RQ },
	{ MLX5_CMD_OP_QUERY_RQ, OBJ_RQ },
	{ MLX5_CMD_OP_DESTROY_TIR, OBJ_TIR },
	{ MLX5_CMD_OP_DESTROY_TIS, OBJ_TIS },
	{ MLX5_CMD_OP_DESTROY_RQT, OBJ_RQT },
};

/* Every number that no object of the right kind has */
static void test_unknown(void)
{
	static const uint32_t ids[] = { 0,	1,	2,	  15,	   16,
					63,	64,	65,	  66,	   255,
					0x7fff, 0x8000, 0x7fffff, 0xffffff };
	const struct cmd_desc *d;
	struct probe p;
	int ret;

	r = rig_start();
	probe_run(r, &p);
	for (size_t i = 0; i < N_ELEM(by_number); i++)
		for (size_t k = 0; k < N_ELEM(ids); k++) {
			if (obj_find(r->nic, by_number[i].kind, ids[k]))
				continue;
			d = cmd_find(by_number[i].op);
			rig_begin(r, d->op, d->in < 16 ? 16 : d->in, d->out);
			put_be32(r->in + 8, ids[k]);
			ret = rig_run(r);
			CHECK(ret == CMD_BAD_RES, "%s of %u: %d", d->name,
			      ids[k], ret);
		}
	/* numbers shared by kinds: one is not the other */
	CHECK(destroy(MLX5_CMD_OP_DESTROY_SRQ, p.rmp) == CMD_BAD_RES, "RMP");
	CHECK(destroy(MLX5_CMD_OP_DESTROY_RMP, p.xrc_srq) == CMD_BAD_RES,
	      "XRC SRQ");
	CHECK(destroy(MLX5_CMD_OP_DESTROY_QP, p.sq) == CMD_BAD_RES, "SQ");
	CHECK(destroy(MLX5_CMD_OP_DESTROY_SQ, p.rq) == CMD_BAD_RES, "RQ");
	/* twice */
	CHECK(!destroy(MLX5_CMD_OP_DESTROY_SQ, p.sq), "%s", r->log);
	CHECK(destroy(MLX5_CMD_OP_DESTROY_SQ, p.sq) == CMD_BAD_RES, "twice");
	rig_stop(r);
}

/* ---- limits ---- */

static void use_up(uint16_t alloc, uint16_t dealloc, enum obj_kind kind,
		   uint32_t limit)
{
	uint32_t id, count = 0;
	int ret;

	for (;;) {
		rig_begin(r, alloc, 16, 16);
		ret = rig_run(r);
		if (ret)
			break;
		id = get_be32(r->out + 8);
		CHECK(id < limit && obj_find(r->nic, kind, id), "%u", id);
		count++;
	}
	CHECK(ret == CMD_LIMIT, "%d", ret);
	CHECK(count > limit / 2, "only %u of kind %d", count, kind);
	/* the one given back comes again */
	CHECK(!destroy(dealloc, limit - 2), "%s", r->log);
	rig_begin(r, alloc, 16, 16);
	CHECK(rig_id(r) == limit - 2, "%s", r->log);
	CHECK(rig_run(r) == CMD_LIMIT, "used up again");
}

static void test_limits(void)
{
	uint32_t first, second;
	int ret;

	r = rig_up();
	use_up(MLX5_CMD_OP_ALLOC_UAR, MLX5_CMD_OP_DEALLOC_UAR, OBJ_UAR,
	       BAR_SIZE / UAR_PAGE);
	use_up(MLX5_CMD_OP_ALLOC_XRCD, MLX5_CMD_OP_DEALLOC_XRCD, OBJ_XRCD, 256);
	use_up(MLX5_CMD_OP_ALLOC_TRANSPORT_DOMAIN,
	       MLX5_CMD_OP_DEALLOC_TRANSPORT_DOMAIN, OBJ_TD, 256);
	use_up(MLX5_CMD_OP_ALLOC_Q_COUNTER, MLX5_CMD_OP_DEALLOC_Q_COUNTER,
	       OBJ_Q_COUNTER, 256);
	use_up(MLX5_CMD_OP_ALLOC_PD, MLX5_CMD_OP_DEALLOC_PD, OBJ_PD, 1 << 15);
	/* the drivers were told how many EQs there are */
	for (uint32_t i = 0; i < VECTORS - 1; i++)
		rig_eq(r, 2, i, 0);
	rig_eq_in(r, 2, 0, 0);
	CHECK(rig_run(r) == CMD_LIMIT, "one EQ too many");
	/* all of it comes back at once */
	CHECK(!rig_run_id(r, MLX5_CMD_OP_TEARDOWN_HCA, 0), "%s", r->log);
	for (int kind = 0; kind < OBJ_KINDS; kind++)
		CHECK(!r->nic->table[kind].count && !r->nic->table[kind].slot,
		      "kind %d", kind);
	rig_init_hca(r);
	/* a number just freed is not the next one */
	rig_mkey_in(r, RIG_FREE, 0, 4096);
	first = rig_id(r);
	CHECK(!destroy(MLX5_CMD_OP_DESTROY_MKEY, first), "%s", r->log);
	rig_mkey_in(r, RIG_FREE, 0, 4096);
	second = rig_id(r);
	CHECK(first != second, "%u", first);
	rig_mkey_in(r, RIG_FREE, 0, 4096);
	for (ret = 0; !ret;) /* nothing stops it but the numbers */
		ret = rig_run(r);
	CHECK(ret == CMD_LIMIT, "%d", ret);
	rig_stop(r);
}

/* ---- pages and doorbell records ---- */

static void refused(const char *what)
{
	int ret = rig_run(r);

	CHECK(ret == CMD_BAD_PARAM, "%s: %d", what, ret);
}

static void make(int kind, uint32_t eqn, uint32_t cqn, uint32_t xrcd)
{
	switch (kind) {
	case 0:
		rig_eq_in(r, 6, 0, 0);
		break;
	case 1:
		rig_cq_in(r, 6, eqn);
		break;
	case 2:
		rig_mkey_in(r, RIG_FREE, 0x1800, 0x1000);
		break;
	case 3:
		rig_srq_in(r);
		break;
	case 4:
		rig_xrc_srq_in(r, xrcd, cqn);
		break;
	case 5:
		rig_rmp_in(r);
		break;
	case 6:
		rig_qp_in(r, 0, cqn);
		break;
	case 7:
		rig_sq_in(r, cqn);
		break;
	case 8:
		rig_rq_in(r, cqn);
		break;
	}
}

static void test_lists(void)
{
	struct rig_ring eq, cq;
	uint32_t xrcd, len;

	r = rig_up();
	eq = rig_eq(r, 2, 0, 0);
	cq = rig_cq(r, 2, eq.id);
	rig_begin(r, MLX5_CMD_OP_ALLOC_XRCD, 16, 16);
	xrcd = rig_id(r);
	for (int kind = 0; kind <= 8; kind++) {
		make(kind, eq.id, cq.id, xrcd);
		CHECK(!rig_run(r), "kind %d: %s", kind, r->log);
		len = r->in_len;
		for (r->in_len--; r->in_len >= len - 8; r->in_len--)
			refused("list too short");
		/* Pages that are not there are not looked at yet. */
		r->in_len = len;
		put_be64(r->in + len - 8, RIG_NOWHERE);
		CHECK(!rig_run(r), "kind %d: %s", kind, r->log);
		put_be64(r->in + len - 8, -1ULL);
		CHECK(!rig_run(r), "kind %d: %s", kind, r->log);
	}
	rig_stop(r);
}

/* sums that must not wrap to something small */
static void test_wraps(void)
{
	static const struct {
		unsigned int shift;
		uint64_t offset, size;
	} cases[] = {
		{ 12, 0, -1ULL },      { 12, 0, -4095ULL },
		{ 12, -1ULL, 1 },      { 12, -4096ULL, 4096 },
		{ 43, 0, -1ULL },      { 43, 1ULL << 62, 1 },
		{ 62, 1, 1ULL << 62 }, { 63, 0, 1 },
		{ 64, 0, 1 },	       { 11, 0, 1 },
		{ 0, 0, 1 },	       { -1U, 0, 1 },
	};
	const uint8_t list[8] = { 0 };
	struct pas pas;

	for (size_t i = 0; i < N_ELEM(cases); i++)
		CHECK(pas_init(&pas, list, sizeof(list), cases[i].shift,
			       cases[i].offset, cases[i].size) == -EINVAL,
		      "case %zu", i);
	CHECK(!pas_init(&pas, list, sizeof(list), 43, 1ULL << 42, 1ULL << 42),
	      "half a large page");
	pas_free(&pas);
}

#define EQC(field) eq_context_entry.field
#define CQC(field) cq_context.field

static void test_sizes(void)
{
	struct rig_ring eq;

	r = rig_up();
	eq = rig_eq(r, 2, 0, 0);
	for (uint32_t log = 7; log < 32; log++) {
		rig_eq_in(r, 6, 0, 0);
		SET(create_eq_in, r->in, EQC(log_eq_size), log);
		refused("EQ");
		rig_cq_in(r, 6, eq.id);
		SET(create_cq_in, r->in, CQC(log_cq_size), log);
		refused("CQ");
	}
	rig_eq_in(r, 6, VECTORS, 0);
	refused("vector");
	rig_cq_in(r, 6, eq.id);
	SET(create_cq_in, r->in, CQC(cqe_sz), 1); /* 128 bytes each */
	refused("CQ");
	SET(create_cq_in, r->in, CQC(cqe_sz), 2);
	refused("CQE size");
	/* An offset that needs another page, and large pages that do not */
	rig_cq_in(r, 6, eq.id);
	SET(create_cq_in, r->in, CQC(page_offset), 1);
	refused("offset");
	for (uint32_t log = 1; log < 32; log++) {
		SET(create_cq_in, r->in, CQC(log_page_size), log);
		SET(create_cq_in, r->in, CQC(page_offset), 31);
		CHECK(!rig_run(r), "page of 2^%u: %s", log + 12, r->log);
		CHECK(!destroy(MLX5_CMD_OP_DESTROY_CQ, get_be32(r->out + 8)),
		      "%s", r->log);
		rig_cq_in(r, 6, eq.id);
	}
	/* doorbell records */
	for (uint32_t off = 1; off < 8; off++) {
		rig_cq_in(r, 6, eq.id);
		r->in[BYTE_OF(create_cq_in, cq_context) +
		      BYTE_OF(cqc, dbr_addr) + 7] |= off;
		refused("CQ's record");
		rig_qp_in(r, 0, 0);
		SET(create_qp_in, r->in, qpc.dbr_addr, RIG_FREE + off);
		refused("QP's record");
	}
	rig_stop(r);
}

static int group_with(uint32_t ft, size_t at, size_t len)
{
	uint8_t *mask;
	int ret;

	rig_begin(r, MLX5_CMD_OP_CREATE_FLOW_GROUP, BYTES(create_flow_group_in),
		  16);
	SET(create_flow_group_in, r->in, table_id, ft);
	mask = AT(create_flow_group_in, r->in, match_criteria);
	bits_set(mask, at, len, -1ULL);
	ret = rig_run(r);
	if (!ret) {
		rig_begin(r, MLX5_CMD_OP_DESTROY_FLOW_GROUP, 64, 16);
		SET(destroy_flow_group_in, r->in, table_id, ft);
		SET(destroy_flow_group_in, r->in, group_id,
		    GET(create_flow_group_out, r->out, group_id));
		CHECK(!rig_run(r), "%s", r->log);
	}
	return ret;
}

#define OUTER(field)                                             \
	{ #field, BITS_AT(fte_match_param, outer_headers.field), \
	  BITS_LEN(fte_match_set_lyr_2_4, field) }

/* A rule on what the device does not look at would match too much. */
static void test_flow_fields(void)
{
	static const struct {
		const char *name;
		size_t at, len;
	} known[] = {
		OUTER(smac_47_16), OUTER(smac_15_0),   OUTER(dmac_47_16),
		OUTER(dmac_15_0),  OUTER(ethertype),   OUTER(first_prio),
		OUTER(first_cfi),  OUTER(first_vid),   OUTER(ip_protocol),
		OUTER(cvlan_tag),  OUTER(svlan_tag),   OUTER(frag),
		OUTER(ip_version), OUTER(tcp_sport),   OUTER(tcp_dport),
		OUTER(udp_sport),  OUTER(udp_dport),
	}, unknown[] = {
		OUTER(ip_dscp), OUTER(ip_ecn), OUTER(tcp_flags),
		OUTER(ttl_hoplimit),
		{ "inner", BITS_AT(fte_match_param, inner_headers.ethertype),
		  16 },
		{ "misc", BITS_AT(fte_match_param, misc_parameters), 1 },
		{ "metadata", BITS_AT(fte_match_param, misc_parameters_2), 32 },
		{ "the last", 8 * BYTES(fte_match_param) - 1, 1 },
	};
	uint32_t ft;

	r = rig_up();
	rig_begin(r, MLX5_CMD_OP_CREATE_FLOW_TABLE, BYTES(create_flow_table_in),
		  16);
	ft = rig_id(r);
	for (size_t i = 0; i < N_ELEM(known); i++)
		CHECK(!group_with(ft, known[i].at, known[i].len), "%s: %s",
		      known[i].name, r->log);
	for (size_t i = 0; i < 8; i++) /* both addresses, of IPv6 */
		CHECK(!group_with(ft,
				  BITS_AT(fte_match_param,
					  outer_headers.src_ipv4_src_ipv6) +
					  32 * i,
				  32),
		      "%s", r->log);
	for (size_t i = 0; i < N_ELEM(unknown); i++)
		CHECK(group_with(ft, unknown[i].at, unknown[i].len) ==
			      CMD_BAD_PARAM,
		      "%s", unknown[i].name);
	rig_stop(r);
}

int main(void)
{
	test_busy();
	test_flow_fields();
	test_failed();
	test_unknown();
	test_limits();
	test_lists();
	test_wraps();
	test_sizes();
	return check_result();
}
