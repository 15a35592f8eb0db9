// SPDX-License-Identifier: GPL-2.0
/* XRC as the drivers make it: an initiator and a target, connected in the NIC */
#include "commands/cmd.h"
#include "cq.h"
#include "eq.h"
#include "nic.h"
#include "rdma/srq.h"
#include "rig.h"

#define BYTES_SENT 100
#define FROM RIG_FREE
#define TO (RIG_FREE + 4096)
#define XRC 3 /* service type */

static struct rig *r;
static struct rig_ring async, send_cq, dummy_cq, srq_cq;
static uint32_t xrcd, other_xrcd, srq, other_srq, user_pd, mkey, initiator,
	target;
static uint64_t srq_buf, srq_db, sq_buf, sq_db;
static uint16_t posted;

static uint32_t number(uint16_t op)
{
	rig_begin(r, op, 16, 16);
	return rig_id(r);
}

static void xrc_qp_in(uint32_t domain, bool is_target)
{
	rig_qp_in(r, XRC, is_target ? dummy_cq.id : send_cq.id);
	SET(create_qp_in, r->in, qpc.rq_type, 1);
	SET(create_qp_in, r->in, qpc.xrcd, domain);
	SET(create_qp_in, r->in, qpc.no_sq, is_target);
	/* as the driver does: the PD is its own, there is no page */
	if (is_target)
		SET(create_qp_in, r->in, qpc.uar_page, 0);
}

static void setup(void)
{
	uint32_t eqn, kernel_pd;

	r = rig_up();
	rig_pages(r, 2); /* FROM and TO */
	for (int i = 0; i < BYTES_SENT; i++)
		rig_mem(r, FROM)[i] = i + 1;
	async = rig_eq(r, 4, 0,
		       1ULL << EVENT_QP_REQ_ERR | 1ULL << EVENT_QP_FATAL |
			       1ULL << EVENT_SRQ_ERROR);
	eqn = async.id;
	send_cq = rig_cq(r, 4, eqn);
	dummy_cq = rig_cq(r, 4, eqn);
	srq_cq = rig_cq(r, 4, eqn);
	xrcd = number(MLX5_CMD_OP_ALLOC_XRCD);
	other_xrcd = number(MLX5_CMD_OP_ALLOC_XRCD);
	user_pd = r->pd;
	rig_mkey_in(r, FROM, FROM, 8192);
	mkey = rig_id(r) << 8 | 0x5a;
	rig_xrc_srq_in(r, xrcd, srq_cq.id);
	/* of two pages, the second is not in memory */
	SET(create_xrc_srq_in, r->in, xrc_srq_context_entry.log_xrc_srq_size,
	    8);
	put_be64(r->in + r->in_len, RIG_NOWHERE);
	r->in_len += 8;
	srq_buf = r->buf;
	srq_db = r->db;
	srq = rig_id(r);
	rig_xrc_srq_in(r, other_xrcd, srq_cq.id);
	put_be32(rig_mem(r, r->db), 4);
	other_srq = rig_id(r);
	xrc_qp_in(other_xrcd, false); /* that of an initiator says nothing */
	sq_buf = r->buf;
	sq_db = r->db;
	initiator = rig_id(r);
	kernel_pd = number(MLX5_CMD_OP_ALLOC_PD);
	xrc_qp_in(xrcd, true);
	SET(create_qp_in, r->in, qpc.pd, kernel_pd);
	target = rig_id(r);
	rig_address(r);
	rig_connect(r, initiator, target);
	rig_connect(r, target, initiator);
	posted = 0;
}

/* One element: the second one, to see that its index comes back. */
static void post_recv(void)
{
	uint8_t *wqe = rig_mem(r, srq_buf);

	for (int i = 0; i < 2; i++, wqe += 32) {
		put_be16(wqe + 2, i + 1); /* the next one */
		put_be32(wqe + 16, 1024);
		put_be32(wqe + 20, mkey);
		put_be64(wqe + 24, TO);
	}
	put_be32(rig_mem(r, srq_db), 2);
}

/* as after an error; `posted` starts from 0 again */
static void connect_again(void)
{
	CHECK(!rig_run_id(r, MLX5_CMD_OP_2RST_QP, initiator) &&
		      !rig_run_id(r, MLX5_CMD_OP_2RST_QP, target),
	      "%s", r->log);
	rig_connect(r, initiator, target);
	rig_connect(r, target, initiator);
	put_be32(rig_mem(r, sq_db) + 4, 0);
	posted = 0;
}

static void post_send(uint8_t opcode, uint32_t number, uint64_t remote)
{
	uint8_t *wqe = rig_mem(r, sq_buf) + 64 * posted, *seg = wqe + 32;

	memset(wqe, 0, 64);
	put_be32(wqe, posted << 8 | opcode);
	wqe[11] = 8; /* signaled */
	put_be32(wqe + 16, number);
	if (opcode == 0x08) {
		put_be64(seg, remote);
		put_be32(seg + 8, mkey);
		seg += 16;
	}
	put_be32(seg, BYTES_SENT);
	put_be32(seg + 4, mkey);
	put_be64(seg + 8, FROM);
	put_be32(wqe + 4, initiator << 8 | (seg + 16 - wqe) / 16);
	put_be32(rig_mem(r, sq_db) + 4, ++posted);
	rig_send_db(r, r->uar, initiator);
	for (int i = 0; i < 20; i++)
		nic_tick(r->nic);
}

static bool arrived(void)
{
	return !memcmp(rig_mem(r, FROM), rig_mem(r, TO), BYTES_SENT);
}

static void test_messages(void)
{
	uint8_t cqe[64];

	setup();
	post_recv();
	for (uint16_t i = 0; i < 2; i++) {
		memset(rig_mem(r, TO), 0, BYTES_SENT);
		post_send(0x0a, srq, 0);
		CHECK(rig_cqe(r, &send_cq, cqe) && cqe[63] >> 4 == CQE_REQ &&
			      get_be16(cqe + 60) == i,
		      "SEND");
		CHECK(rig_cqe(r, &srq_cq, cqe) &&
			      cqe[63] >> 4 == CQE_RESP_SEND &&
			      get_be32(cqe + 32) == RIG_USER_INDEX &&
			      get_be32(cqe + 44) == BYTES_SENT &&
			      get_be32(cqe + 56) == target &&
			      get_be16(cqe + 60) == i,
		      "CQ of the SRQ");
		CHECK(arrived(), "data");
	}
	/* the memory is of the SRQ's PD, not of the target's */
	memset(rig_mem(r, TO), 0, BYTES_SENT);
	post_send(0x08, srq, TO);
	CHECK(rig_cqe(r, &send_cq, cqe) && cqe[63] >> 4 == CQE_REQ && arrived(),
	      "WRITE");
	CHECK(!rig_cqe(r, &srq_cq, cqe) && !rig_cqe(r, &dummy_cq, cqe),
	      "nothing else");
	rig_stop(r);
}

static void test_refused(const char *what, bool gone, uint32_t *number,
			 uint8_t opcode)
{
	uint8_t cqe[64], eqe[64];

	setup();
	post_recv();
	if (gone) {
		rig_run_id(r, MLX5_CMD_OP_DESTROY_XRC_SRQ, srq);
		CHECK(!r->out[0], "%s: %s", what, r->log);
	}
	post_send(opcode, *number, TO);
	CHECK(rig_cqe(r, &send_cq, cqe) && cqe[63] >> 4 == CQE_REQ_ERR &&
		      cqe[55] == 0x12 && cqe[54] == 0x61,
	      "%s: syndrome %02x, %02x", what, cqe[55], cqe[54]);
	CHECK(!rig_cqe(r, &srq_cq, cqe) && !rig_cqe(r, &dummy_cq, cqe) &&
		      !arrived(),
	      "%s: target", what);
	CHECK(rig_eqe(r, &async, eqe) && eqe[1] == EVENT_QP_REQ_ERR &&
		      get_be32(eqe + 56) == target && !rig_eqe(r, &async, eqe),
	      "%s: event", what);
	rig_stop(r);
}

static void expect_event(uint8_t type, uint32_t number)
{
	uint8_t eqe[64];

	CHECK(rig_eqe(r, &async, eqe) && eqe[1] == type &&
		      (get_be32(eqe + 56) & 0xffffff) == number,
	      "event 0x%x about 0x%x", eqe[1], get_be32(eqe + 56));
}

/*
 * An element that cannot be read is an error, and not one that is missing.
 * Which one comes after it nobody knows: none does.
 */
static void test_unreadable(void)
{
	uint8_t cqe[64], eqe[64];

	setup();
	post_recv();
	put_be16(rig_mem(r, srq_buf) + 2, 128);
	put_be32(rig_mem(r, srq_db), 3); /* the third is behind it */
	post_send(0x0a, srq, 0);
	CHECK(rig_cqe(r, &send_cq, cqe) && cqe[63] >> 4 == CQE_REQ, "SEND");
	CHECK(rig_cqe(r, &srq_cq, cqe) && cqe[63] >> 4 == CQE_RESP_SEND,
	      "the first");
	post_send(0x0a, srq, 0);
	CHECK(rig_cqe(r, &send_cq, cqe) && cqe[63] >> 4 == CQE_REQ_ERR &&
		      cqe[55] == 0x14,
	      "opcode %u, syndrome %02x", cqe[63] >> 4, cqe[55]);
	CHECK(rig_cqe(r, &srq_cq, cqe) && cqe[63] >> 4 == CQE_RESP_ERR &&
		      cqe[55] == 0x02 && get_be16(cqe + 60) == 128,
	      "opcode %u, syndrome %02x", cqe[63] >> 4, cqe[55]);
	expect_event(EVENT_SRQ_ERROR, srq);
	/* the page is there now; others still get nothing, and its own event */
	((struct srq *)obj_find(r->nic, OBJ_XRC_SRQ, srq))->pas.page[1] =
		rig_pages(r, 1);
	connect_again();
	post_send(0x0a, srq, 0);
	CHECK(rig_cqe(r, &send_cq, cqe) && cqe[63] >> 4 == CQE_REQ_ERR &&
		      cqe[55] == 0x14,
	      "again: opcode %u, syndrome %02x", cqe[63] >> 4, cqe[55]);
	CHECK(!rig_cqe(r, &srq_cq, cqe) && !rig_cqe(r, &dummy_cq, cqe),
	      "which element is this: %u", get_be16(cqe + 60));
	expect_event(EVENT_QP_FATAL, target);
	CHECK(!rig_eqe(r, &async, eqe), "event 0x%x", eqe[1]);
	rig_stop(r);
}

/* The same of a doorbell record that cannot be read, or says what cannot be */
static void test_lost(uint32_t record, bool unmapped)
{
	uint8_t cqe[64], eqe[64];
	struct srq *obj;

	setup();
	post_recv();
	put_be32(rig_mem(r, srq_db), record);
	obj = (struct srq *)obj_find(r->nic, OBJ_XRC_SRQ, srq);
	if (unmapped)
		obj->db = RIG_NOWHERE;
	post_send(0x0a, srq, 0);
	CHECK(rig_cqe(r, &send_cq, cqe) && cqe[63] >> 4 == CQE_REQ_ERR &&
		      cqe[55] == 0x14,
	      "opcode %u, syndrome %02x", cqe[63] >> 4, cqe[55]);
	CHECK(!rig_cqe(r, &srq_cq, cqe) && !obj->ci, "it was taken");
	expect_event(EVENT_SRQ_ERROR, srq);
	expect_event(EVENT_QP_FATAL, target);
	CHECK(!rig_eqe(r, &async, eqe), "event 0x%x", eqe[1]);
	rig_stop(r);
}

/* What a query says of the state, before and after */
static void test_state(void)
{
	static const struct {
		uint16_t query;
		enum obj_kind kind;
		size_t at;
		uint8_t good, bad;
	} kinds[] = {
		{ MLX5_CMD_OP_QUERY_SRQ, OBJ_SRQ, 16, 0, 1 },
		{ MLX5_CMD_OP_QUERY_XRC_SRQ, OBJ_XRC_SRQ, 16, 0, 1 },
		{ MLX5_CMD_OP_QUERY_RMP, OBJ_RMP, 16 + 16 + 1, 1, 3 },
	};
	struct roce_recv_wqe wqe = { 0 };
	struct srq *obj;
	uint32_t id;

	setup();
	for (size_t i = 0; i < N_ELEM(kinds); i++) {
		if (kinds[i].kind == OBJ_SRQ)
			rig_srq_in(r);
		else if (kinds[i].kind == OBJ_XRC_SRQ)
			rig_xrc_srq_in(r, xrcd, srq_cq.id);
		else
			rig_rmp_in(r);
		id = rig_id(r);
		obj = (struct srq *)obj_find(r->nic, kinds[i].kind, id);
		for (int failed = 0; failed < 2; failed++) {
			rig_begin_id(r, kinds[i].query, id);
			r->out_len = 16 + 16 + BYTES(rmpc);
			CHECK(!rig_run(r), "%s", r->log);
			CHECK(r->out[kinds[i].at] >> 4 ==
				      (failed ? kinds[i].bad : kinds[i].good),
			      "kind %zu: state %u", i,
			      r->out[kinds[i].at] >> 4);
			obj->db = RIG_NOWHERE;
			CHECK(srq_take(r->nic, obj, &wqe) < 0, "taken");
		}
	}
	rig_stop(r);
}

static void test_create(void)
{
	setup();
	xrc_qp_in(77, true);
	CHECK(rig_run(r) == CMD_BAD_RES, "target without XRCD");
	xrc_qp_in(77, false);
	CHECK(rig_run(r) == CMD_BAD_RES, "initiator without XRCD");
	xrc_qp_in(xrcd, false);
	SET(create_qp_in, r->in, qpc.rq_type, 0);
	CHECK(rig_run(r) == CMD_BAD_PARAM, "receive queue");
	xrc_qp_in(xrcd, false);
	SET(create_qp_in, r->in, qpc.uar_page, 0);
	CHECK(rig_run(r) == CMD_BAD_RES, "initiator without page");
	CHECK(!rig_run_id(r, MLX5_CMD_OP_DESTROY_XRC_SRQ, srq), "SRQ");
	CHECK(rig_run_id(r, MLX5_CMD_OP_DEALLOC_XRCD, xrcd) == CMD_RES_BUSY,
	      "domain of a target");
	CHECK(!rig_run_id(r, MLX5_CMD_OP_DESTROY_QP, target), "target");
	CHECK(!rig_run_id(r, MLX5_CMD_OP_DEALLOC_XRCD, xrcd), "domain");
	rig_stop(r);
}

int main(void)
{
	static uint32_t none = 0x123456;

	test_messages();
	test_refused("no SRQ", false, &none, 0x0a);
	test_refused("SRQ is gone", true, &srq, 0x0a);
	test_refused("other domain", false, &other_srq, 0x0a);
	test_refused("WRITE, other domain", false, &other_srq, 0x08);
	test_unreadable();
	test_lost(257, false);
	test_lost(-1, false);
	test_lost(1, true);
	test_state();
	test_create();
	return check_result();
}
