// SPDX-License-Identifier: GPL-2.0
/*
 * Capabilities: what is announced works, up to the numbers that are announced,
 * and what does not work is not announced.
 */
#include "commands/cmd.h"
#include "cq.h"
#include "nic.h"
#include "rdma/wqe.h"
#include "rig.h"

#define CAP_BYTES_OUT (16 + 4096)
#define SIZE 100U

static struct rig *r;
static struct rig_ring eq, cq;
static uint8_t general[CAP_BYTES], roce[CAP_BYTES], steering[CAP_BYTES];

#define GEN(field) GET(cmd_hca_cap, general, field)

static void query(uint16_t type, uint8_t cap[CAP_BYTES])
{
	rig_begin(r, MLX5_CMD_OP_QUERY_HCA_CAP, 16, CAP_BYTES_OUT);
	put_be16(r->in + 6, type << 1 | 1);
	CHECK(!rig_run(r), "%s", r->log);
	memcpy(cap, r->out + 16, CAP_BYTES);
}

static void setup(void)
{
	r = rig_up();
	query(0, general);
	query(4, roce);
	query(7, steering);
	eq = rig_eq(r, 6, 1, 0);
	cq = rig_cq(r, 6, eq.id);
}

/* ---- numbers ---- */

/* All the pages of a large object are the same one. */
static void same_pages(uint64_t count)
{
	uint64_t page = rig_pages(r, 1);

	for (uint64_t i = 0; i < count; i++)
		put_be64(r->in + r->in_len + 8 * i, page);
	r->in_len += 8 * count;
}

static bool runs(const char *what)
{
	int ret = rig_run(r);

	CHECK(!ret, "%s: %s", what, r->log);
	return !ret;
}

static void test_sizes(void)
{
	uint8_t *c;

	setup();
	rig_eq_in(r, 0, 1, 0);
	r->in_len = BYTES(create_eq_in);
	SET(create_eq_in, r->in, eq_context_entry.log_eq_size,
	    GEN(log_max_eq_sz));
	same_pages(64ULL << GEN(log_max_eq_sz) >> 12);
	runs("EQ");
	rig_cq_in(r, 0, eq.id);
	r->in_len = BYTES(create_cq_in);
	SET(create_cq_in, r->in, cq_context.log_cq_size, GEN(log_max_cq_sz));
	same_pages(64ULL << GEN(log_max_cq_sz) >> 12);
	runs("CQ");
	rig_qp_in(r, 0, cq.id);
	r->in_len = BYTES(create_qp_in);
	SET(create_qp_in, r->in, qpc.log_sq_size, GEN(log_max_qp_sz));
	SET(create_qp_in, r->in, qpc.log_rq_size, GEN(log_max_qp_sz));
	same_pages((64ULL + 32) << GEN(log_max_qp_sz) >> 12);
	runs("QP");
	rig_srq_in(r);
	r->in_len = BYTES(create_srq_in);
	SET(create_srq_in, r->in, srq_context_entry.log_srq_size,
	    GEN(log_max_srq_sz));
	same_pages(32ULL << GEN(log_max_srq_sz) >> 12);
	runs("SRQ");
	rig_sq_in(r, cq.id);
	r->in_len = BYTES(create_sq_in);
	c = AT(sqc, AT(create_sq_in, r->in, ctx), wq);
	SET(wq, c, log_wq_sz, GEN(log_max_wq_sz));
	same_pages(64ULL << GEN(log_max_wq_sz) >> 12);
	runs("SQ");
	for (uint32_t i = GEN(log_min_stride_sz_rq);
	     i <= GEN(log_max_stride_sz_rq); i++) {
		rig_rq_in(r, cq.id);
		r->in_len = BYTES(create_rq_in);
		c = AT(rqc, AT(create_rq_in, r->in, ctx), wq);
		SET(wq, c, log_wq_stride, i);
		same_pages(16 << GEN(log_max_stride_sz_rq) >> 12);
		runs("RQ");
	}
	rig_begin(r, MLX5_CMD_OP_CREATE_RQT, BYTES(create_rqt_in), 16);
	c = AT(create_rqt_in, r->in, rqt_context);
	SET(rqtc, c, rqt_max_size, 1 << GEN(log_max_rqt_size));
	SET(rqtc, c, rqt_actual_size, 1 << GEN(log_max_rqt_size));
	for (uint32_t i = 0; i < 1U << GEN(log_max_rqt_size); i++)
		put_be32(r->in + BYTES(create_rqt_in) + 4 * i,
			 get_be32(r->out + 8));
	r->in_len += 4 << GEN(log_max_rqt_size);
	runs("RQT");
	rig_stop(r);
}

/* A list of 2^20 pages, 4 GiB of small ones, and no page less than it needs */
static void test_large_region(void)
{
	uint64_t pages = 1 << 20, page;
	uint8_t *mkc;

	setup();
	CHECK(GEN(log_max_mrw_sz) >= 32, "2^%lu", GEN(log_max_mrw_sz));
	page = rig_pages(r, 1);
	for (uint32_t i = 0; i < 2; i++) {
		rig_mkey_in(r, page, 0, RIG_PAGE);
		r->in_len = BYTES(create_mkey_in);
		mkc = AT(create_mkey_in, r->in, memory_key_mkey_entry);
		SET(mkc, mkc, len, pages * RIG_PAGE);
		SET(create_mkey_in, r->in, translations_octword_actual_size,
		    pages / 2);
		same_pages(pages - 2 * i);
		if (i)
			CHECK(rig_run(r) == CMD_BAD_PARAM, "list too short");
		else
			runs("4 GiB");
	}
	rig_stop(r);
}

/* How many can be had: a few of 2^n are the device's own. */
static void count(uint16_t op, uint32_t announced, uint32_t reserved)
{
	uint32_t n = 0;

	rig_begin(r, op, 16, 16);
	while (n < announced && !rig_run(r))
		n++;
	CHECK(n + reserved >= announced, "0x%x: %u of %u: %s", op, n, announced,
	      r->log);
}

static void test_counts(void)
{
	uint8_t *addr;

	setup();
	count(MLX5_CMD_OP_ALLOC_PD, 1 << GEN(log_max_pd), 2);
	count(MLX5_CMD_OP_ALLOC_XRCD, 1 << GEN(log_max_xrcd), 1);
	count(MLX5_CMD_OP_ALLOC_TRANSPORT_DOMAIN,
	      1 << GEN(log_max_transport_domain), 1);
	count(MLX5_CMD_OP_ALLOC_Q_COUNTER, GEN(max_qp_cnt), 0);
	for (uint32_t i = 1; i < GEN(max_num_eqs); i++) {
		rig_eq_in(r, 2, i, 0);
		runs("EQ");
	}
	for (uint32_t i = 0; i < 2; i++) {
		rig_begin(r, MLX5_CMD_OP_SET_ROCE_ADDRESS,
			  BYTES(set_roce_address_in), 16);
		addr = AT(set_roce_address_in, r->in, roce_address);
		SET(roce_addr_layout, addr, roce_version, 2);
		SET(set_roce_address_in, r->in, roce_address_index,
		    GET(roce_cap, roce, roce_address_table_size) - 1 + i);
		CHECK(!rig_run(r) == !i, "GID table: %s", r->log);
	}
	rig_begin(r, MLX5_CMD_OP_CREATE_FLOW_TABLE, BYTES(create_flow_table_in),
		  16);
	SET(create_flow_table_in, r->in, flow_table_context.log_size,
	    GET(flow_table_nic_cap, steering,
		flow_table_properties_nic_receive.log_max_ft_size));
	SET(create_flow_table_in, r->in, flow_table_context.level,
	    GET(flow_table_nic_cap, steering,
		flow_table_properties_nic_receive.max_ft_level) -
		    1);
	runs("flow table");
	rig_stop(r);
}

/* ---- services and opcodes ---- */

static uint64_t qp_db, rq_buf, sq_buf;
static uint32_t qp, key;

static uint32_t new_key(bool invalidate)
{
	uint64_t buf = rig_pages(r, 1);

	rig_mkey_in(r, buf, buf, RIG_PAGE);
	SET(create_mkey_in, r->in, memory_key_mkey_entry.en_rinval, invalidate);
	key = rig_id(r) << 8 | 0x5a;
	return key;
}

/* one QP that is its own peer, with a receive WQE */
static void connect(void)
{
	uint64_t buf = rig_pages(r, 1);

	rig_mkey_in(r, buf, buf, RIG_PAGE);
	key = rig_id(r) << 8 | 0x5a;
	rig_qp_in(r, 0, cq.id);
	rq_buf = r->buf;
	sq_buf = r->buf + (32 << 4);
	qp_db = r->db;
	qp = rig_id(r);
	rig_connect(r, qp, qp);
	put_be32(rig_mem(r, rq_buf), SIZE);
	put_be32(rig_mem(r, rq_buf) + 4, key);
	put_be64(rig_mem(r, rq_buf) + 8, buf);
	put_be32(rig_mem(r, rq_buf) + 20, END_LKEY);
	put_be32(rig_mem(r, qp_db), 1);
}

/* SEND with invalidate of this key, without data; the receiver's CQE */
static void send_invalidate(uint32_t which, uint8_t cqe[64])
{
	uint8_t *wqe = rig_mem(r, sq_buf), sent[64];

	put_be32(wqe, WQE_SEND_INVAL);
	put_be32(wqe + 4, qp << 8 | 1);
	wqe[11] = 8;
	put_be32(wqe + 12, which);
	put_be32(rig_mem(r, qp_db) + 4, 1);
	rig_send_db(r, r->uar, qp);
	for (int i = 0; i < 50; i++)
		nic_tick(r->nic);
	CHECK(rig_cqe(r, &cq, cqe) && rig_cqe(r, &cq, sent), "two CQEs");
}

static bool key_is_free(uint32_t which)
{
	rig_begin_id(r, MLX5_CMD_OP_QUERY_MKEY, which >> 8);
	r->out_len = BYTES(query_mkey_out);
	CHECK(!rig_run(r), "%s", r->log);
	return GET(query_mkey_out, r->out, memory_key_mkey_entry.free);
}

/*
 * It reaches keys that permit it. Drivers permit it for memory windows and for
 * fast registration alone, which are not announced: ordinary keys refuse.
 */
static void test_invalidate(void)
{
	uint32_t target;
	uint8_t cqe[64];

	setup();
	rig_address(r);
	CHECK(!GEN(imaicl) && GEN(umr_modify_entity_size_disabled),
	      "windows, fast registration");
	connect();
	target = new_key(true);
	send_invalidate(target, cqe);
	CHECK(cqe[63] >> 4 == CQE_RESP_SEND_INV &&
		      get_be32(cqe + CQE_AT_IMM) == target,
	      "opcode %u of %x", cqe[63] >> 4, get_be32(cqe + CQE_AT_IMM));
	CHECK(key_is_free(target), "still valid");
	connect();
	target = new_key(false);
	send_invalidate(target, cqe);
	CHECK(cqe[63] >> 4 == CQE_RESP_ERR && cqe[CQE_AT_SYNDROME] == 0x12,
	      "opcode %u, syndrome %x", cqe[63] >> 4, cqe[CQE_AT_SYNDROME]);
	CHECK(!key_is_free(target), "not valid any more");
	rig_stop(r);
}

static void test_services(void)
{
	bool announced;
	uint32_t id;
	uint8_t *qpc;

	setup();
	rig_address(r);
	for (uint8_t type = 0; type < 6; type++) {
		announced = type == 0	? GEN(rc)
			    : type == 1 ? GEN(uc)
			    : type == 2 ? GEN(ud)
			    : type == 3 ? GEN(xrc)
					: GEN(dct);
		rig_qp_in(r, type, cq.id);
		if (type == 3) {
			rig_begin(r, MLX5_CMD_OP_ALLOC_XRCD, 16, 16);
			id = rig_id(r);
			rig_qp_in(r, type, cq.id);
			SET(create_qp_in, r->in, qpc.rq_type, 1);
			SET(create_qp_in, r->in, qpc.xrcd, id);
		}
		CHECK(!rig_run(r) == announced, "type %u: %s", type, r->log);
	}
	/* the largest message, and as many READs as there may be */
	rig_qp_in(r, 0, cq.id);
	id = rig_id(r);
	for (uint16_t op = MLX5_CMD_OP_RST2INIT_QP;
	     op <= MLX5_CMD_OP_RTR2RTS_QP; op++) {
		rig_begin(r, op, 272, 16);
		SET(rst2init_qp_in, r->in, qpn, id);
		qpc = AT(rst2init_qp_in, r->in, qpc);
		SET(qpc, qpc, mtu, 5);
		SET(qpc, qpc, log_msg_max, GEN(log_max_msg));
		SET(qpc, qpc, log_sra_max, GEN(log_max_ra_req_qp));
		SET(qpc, qpc, log_rra_max, GEN(log_max_ra_res_qp));
		SET(qpc, qpc, primary_address_path.vhca_port_num, 1);
		runs("the largest numbers");
	}
	rig_stop(r);
}

/* What test_cq.c shows to work, and what is refused */
static void test_completions(void)
{
	setup();
	CHECK(GEN(cq_moderation) && GEN(cq_resize) && GEN(cq_oi), "of CQs");
	CHECK(!GEN(cqe_compression), "compression");
	rig_cq_in(r, 4, eq.id);
	SET(create_cq_in, r->in, cq_context.cqe_comp_en, 1);
	CHECK(rig_run(r) == CMD_BAD_PARAM, "compression");
	CHECK(!GEN(cq_eq_remap), "another EQ");
	rig_begin(r, MLX5_CMD_OP_MODIFY_CQ, BYTES(modify_cq_in), 16);
	SET(modify_cq_in, r->in, cqn, cq.id);
	put_be32(r->in + 12, 1 << 3);
	CHECK(rig_run(r) == CMD_BAD_PARAM, "another EQ");
	rig_stop(r);
}

/* What a driver would take from these is answered as unknown, or refused. */
static void test_absent(void)
{
	static const struct {
		const char *name;
		uint16_t op;
	} ops[] = {
		{ "DCT", MLX5_CMD_OP_CREATE_DCT },
		{ "DEVX", MLX5_CMD_OP_CREATE_UCTX },
		{ "on-demand paging", MLX5_CMD_OP_PAGE_FAULT_RESUME },
		{ "signatures", MLX5_CMD_OP_CREATE_PSV },
		{ "e-switch", MLX5_CMD_OP_QUERY_ESW_VPORT_CONTEXT },
		{ "interrupt moderation", MLX5_CMD_OP_CONFIG_INT_MODERATION },
		{ "congestion control", MLX5_CMD_OP_QUERY_CONG_STATUS },
		{ "XRQ", MLX5_CMD_OP_CREATE_XRQ },
	};

	setup();
	CHECK(!GEN(dct) && !GEN(log_max_uctx) && !GEN(pg) && !GEN(sho) &&
		      !GEN(eswitch_manager) && !GEN(cc_query_allowed) &&
		      !GEN(log_max_xrq) && !GEN(bf) && !GEN(apm) &&
		      !GEN(striding_rq) && !GEN(roce_accl),
	      "announced");
	for (size_t i = 0; i < N_ELEM(ops); i++) {
		rig_begin(r, ops[i].op, 512, 512);
		CHECK(rig_run(r) == CMD_BAD_OP, "%s", ops[i].name);
	}
	rig_stop(r);
}

int main(void)
{
	test_sizes();
	test_large_region();
	test_counts();
	test_services();
	test_invalidate();
	test_completions();
	test_absent();
	return check_result();
}
