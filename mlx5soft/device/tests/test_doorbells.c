// SPDX-License-Identifier: GPL-2.0
/* Doorbells, which count through the page of their object alone */
#include "cq.h"
#include "eq.h"
#include "nic.h"
#include "rdma/qp.h"
#include "rdma/wqe.h"
#include "rig.h"

#define VECTOR 5

static struct rig *r;
static struct rig_ring eq, async, cq;
static uint32_t other; /* a page that is allocated, but for nobody here */

static void setup(void)
{
	r = rig_up();
	eq = rig_eq(r, 4, VECTOR, 0);
	async = rig_eq(r, 4, VECTOR + 1, 1ULL << EVENT_QP_FATAL);
	cq = rig_cq(r, 4, eq.id);
	rig_begin(r, MLX5_CMD_OP_ALLOC_UAR, 16, 16);
	other = rig_id(r);
}

static unsigned int events(void)
{
	unsigned int count = 0;
	uint8_t eqe[64];

	while (rig_eqe(r, &eq, eqe))
		count++;
	rig_eq_db(r, r->uar, &eq, false);
	return count;
}

static void complete(void)
{
	struct obj *obj = obj_find(r->nic, OBJ_CQ, cq.id);
	uint8_t cqe[64] = { 0 };

	CHECK(cq_post(r->nic, (struct cq *)obj, cqe, CQE_REQ, false), "post");
}

static void test_cq(void)
{
	setup();
	/* no other page, and none that is not allocated */
	rig_arm_cq(r, other, &cq, false);
	rig_arm_cq(r, other + 1, &cq, false);
	rig_arm_cq(r, 0, &cq, false);
	complete();
	CHECK(!events(), "another page");
	/* in two halves */
	host_write32(r->host, r->uar * RIG_PAGE + 0x20, 0);
	CHECK(!events(), "half a doorbell");
	host_write32(r->host, r->uar * RIG_PAGE + 0x24, cq.id);
	CHECK(events() == 1, "both halves");
	/* A half from elsewhere does not get in between: ours says that all
	 * was seen.
	 */
	host_write32(r->host, r->uar * RIG_PAGE + 0x20, 1);
	host_write32(r->host, other * RIG_PAGE + 0x20, 0);
	host_write32(r->host, r->uar * RIG_PAGE + 0x24, cq.id);
	CHECK(!events(), "mixed halves");
	for (uint32_t id = cq.id + 1; id < 0xffffff; id += 0x1111)
		rig_arm_cq(r, r->uar, &(struct rig_ring){ .id = id }, false);
	rig_stop(r);
}

static void test_eq(void)
{
	const uint8_t data[EQE_DATA] = { 0 };
	struct eq *dev;

	setup();
	dev = (struct eq *)obj_find(r->nic, OBJ_EQ, eq.id);
	rig_eq_db(r, r->uar, &eq, true);
	eq_post(r->nic, dev, EVENT_PORT_CHANGE, 0, data);
	CHECK(host_irqs(r->host, VECTOR) == 1 && events() == 1, "armed");
	rig_eq_db(r, other, &eq, true);
	rig_eq_db(r, other + 1, &eq, true);
	eq_post(r->nic, dev, EVENT_PORT_CHANGE, 0, data);
	CHECK(!host_irqs(r->host, VECTOR), "another page");
	for (uint32_t id = 0; id < 256; id++)
		if (id != eq.id)
			rig_eq_db(r, r->uar, &(struct rig_ring){ .id = id },
				  true);
	rig_eq_db(r, r->uar, &eq, true);
	CHECK(host_irqs(r->host, VECTOR) == 1, "the right page");
	rig_stop(r);
}

/* a send queue with WQEs that do nothing but complete */
static void test_sq(void)
{
	uint32_t sq;
	uint64_t db, buf;
	uint8_t cqe[64];

	setup();
	rig_sq_in(r, cq.id);
	SET(sqc, AT(create_sq_in, r->in, ctx), user_index, 0x123456);
	db = r->db;
	buf = r->buf;
	sq = rig_id(r);
	for (int i = 0; i < 16; i++) {
		put_be32(rig_mem(r, buf) + 64 * i + 4, sq << 8 | 1);
		rig_mem(r, buf)[64 * i + 11] = 8; /* signaled */
	}
	put_be32(rig_mem(r, db) + 4, 1);
	rig_send_db(r, r->uar, sq);
	CHECK(!rig_cqe(r, &cq, cqe), "queue in reset");
	rig_wq_state(r, MLX5_CMD_OP_MODIFY_SQ, sq, WQ_RST, WQ_RDY);
	rig_send_db(r, other, sq);
	CHECK(!rig_cqe(r, &cq, cqe), "another page");
	rig_send_db(r, other + 1, sq);
	CHECK(!rig_cqe(r, &cq, cqe), "not allocated");
	rig_send_db(r, r->uar, sq + 1);
	CHECK(!rig_cqe(r, &cq, cqe), "another number");
	/* the second half is enough, in both buffers of the register */
	for (int i = 0; i < 2; i++) {
		put_be32(rig_mem(r, db) + 4, i + 1);
		host_write32(r->host, r->uar * RIG_PAGE + 0x800 + 0x100 * i, 0);
		nic_tick(r->nic);
		CHECK(!rig_cqe(r, &cq, cqe), "first half");
		host_write32(r->host, r->uar * RIG_PAGE + 0x804 + 0x100 * i,
			     sq << 8);
		nic_tick(r->nic);
		CHECK(rig_cqe(r, &cq, cqe), "second half");
		CHECK(get_be32(cqe + 56) == sq, "number");
		CHECK(get_be32(cqe + 32) == 0x123456, "user's number");
	}
	put_be32(rig_mem(r, cq.db), 2);
	put_be32(rig_mem(r, db) + 4, 2 + 16);
	rig_send_db(r, r->uar, sq);
	for (int i = 0; i < 16; i++)
		CHECK(rig_cqe(r, &cq, cqe), "%d", i);
	rig_stop(r);
}

/* Its receive queue is at r->buf and its send queue behind that, 16 WQEs each */
static struct qp *connected_to_itself(void)
{
	uint32_t id;

	setup();
	rig_address(r);
	rig_qp_in(r, 0, cq.id);
	id = rig_id(r);
	rig_connect(r, id, id);
	return (struct qp *)obj_find(r->nic, OBJ_QP, id);
}

/*
 * ...of a QP. When the doorbell record cannot be read, or says what cannot be,
 * nobody knows whether anything is posted: an event tells, and no completion of
 * a WQE that perhaps is none. What is posted is flushed when the record is right.
 */
static void test_qp(const char *what, uint32_t record, bool unmapped)
{
	struct qp *qp = connected_to_itself();
	uint64_t db = r->db, sq = r->buf + (32 << 4);
	uint8_t cqe[64], eqe[64];
	uint32_t id = qp->obj.id;

	for (int i = 0; i < 16; i++) {
		put_be32(rig_mem(r, sq) + 64 * i + 4, id << 8 | 1); /* NOP */
		rig_mem(r, sq)[64 * i + 11] = 8; /* signaled */
	}
	put_be32(rig_mem(r, db) + 4, 16);
	rig_send_db(r, r->uar, id);
	for (int i = 0; i < 16; i++)
		CHECK(rig_cqe(r, &cq, cqe) && cqe[63] >> 4 == CQE_REQ, "%d", i);
	put_be32(rig_mem(r, cq.db), 16);
	put_be32(rig_mem(r, db) + 4, record);
	if (unmapped)
		qp->db = RIG_NOWHERE;
	for (int i = 0; i < 3; i++)
		rig_send_db(r, r->uar, id);
	CHECK(rig_eqe(r, &async, eqe) && eqe[1] == EVENT_QP_FATAL &&
		      get_be32(eqe + 56) == id,
	      "%s: no event", what);
	CHECK(roce_qp_state(qp->roce) == ROCE_QPS_ERR, "%s: state %u", what,
	      roce_qp_state(qp->roce));
	CHECK(!rig_cqe(r, &cq, cqe), "%s: opcode %u", what, cqe[63] >> 4);
	qp->db = db;
	put_be32(rig_mem(r, db) + 4, 16 + 2);
	rig_send_db(r, r->uar, id);
	for (int i = 0; i < 2; i++)
		CHECK(rig_cqe(r, &cq, cqe) && cqe[63] >> 4 == CQE_REQ_ERR &&
			      cqe[55] == 5 && get_be16(cqe + 60) == 16 + i,
		      "%s: opcode %u, syndrome %u", what, cqe[63] >> 4,
		      cqe[55]);
	CHECK(!rig_cqe(r, &cq, cqe) && !rig_eqe(r, &async, eqe), "%s: once",
	      what);
	rig_stop(r);
}

/*
 * The same of its receive queue, for which a message comes: it is one that the
 * QP sends to itself.
 */
static void test_recv(const char *what, uint32_t record, bool unmapped)
{
	struct qp *qp = connected_to_itself();
	uint64_t db = r->db, sq = r->buf + (32 << 4), start;
	uint8_t cqe[64], eqe[64];
	uint32_t id = qp->obj.id;

	put_be32(rig_mem(r, sq), WQE_SEND);
	put_be32(rig_mem(r, sq) + 4, id << 8 | 1);
	put_be32(rig_mem(r, db), record);
	put_be32(rig_mem(r, db) + 4, 1);
	if (unmapped) {
		put_be32(rig_mem(r, 0), 1); /* that of sends is mapped */
		qp->db = -4ULL;
	}
	for (int i = 0; i < 10; i++)
		rig_send_db(r, r->uar, id);
	CHECK(roce_qp_state(qp->roce) == ROCE_QPS_ERR && !qp->rq_ci,
	      "%s: state %u, at %u", what, roce_qp_state(qp->roce), qp->rq_ci);
	CHECK(rig_cqe(r, &cq, cqe) && cqe[63] >> 4 == CQE_REQ_ERR,
	      "%s: opcode %u", what, cqe[63] >> 4);
	CHECK(!rig_cqe(r, &cq, cqe), "%s: opcode %u", what, cqe[63] >> 4);
	CHECK(rig_eqe(r, &async, eqe) && eqe[1] == EVENT_QP_FATAL &&
		      get_be32(eqe + 56) == id,
	      "%s: no event", what);
	qp->db = db;
	put_be32(rig_mem(r, db), 2);
	start = nic_now();
	while (qp->rq_ci != 2 && nic_now() - start < 2000000000)
		nic_tick(r->nic);
	for (int i = 0; i < 2; i++)
		CHECK(rig_cqe(r, &cq, cqe) && cqe[63] >> 4 == CQE_RESP_ERR &&
			      cqe[55] == 5 && get_be16(cqe + 60) == i,
		      "%s: opcode %u, syndrome %u", what, cqe[63] >> 4,
		      cqe[55]);
	CHECK(!rig_cqe(r, &cq, cqe) && !rig_eqe(r, &async, eqe), "%s: once",
	      what);
	rig_stop(r);
}

/*
 * A WQE that comes with its doorbell (BlueFlame) rings, and is read from the
 * ring like any other: the capabilities say so.
 */
static void test_whole_wqe(void)
{
	uint8_t wqe[64] = { 0 }, cqe[64];
	uint64_t db, buf;
	uint32_t sq;

	setup();
	rig_begin(r, MLX5_CMD_OP_QUERY_HCA_CAP, 16, 4112);
	CHECK(!rig_run(r), "%s", r->log);
	CHECK(!GET(cmd_hca_cap, r->out + 16, bf), "no BlueFlame");
	rig_sq_in(r, cq.id);
	db = r->db;
	buf = r->buf;
	sq = rig_id(r);
	rig_wq_state(r, MLX5_CMD_OP_MODIFY_SQ, sq, WQ_RST, WQ_RDY);
	put_be32(wqe + 4, sq << 8 | 1);
	for (int i = 0; i < 2; i++) {
		/* in the ring the second is signaled, in the register both */
		wqe[11] = 8 * i;
		memcpy(rig_mem(r, buf) + 64 * i, wqe, sizeof(wqe));
		wqe[11] = 8;
		put_be32(rig_mem(r, db) + 4, i + 1);
		for (int at = 0; at < 64; at += 8)
			host_write(r->host,
				   r->uar * RIG_PAGE + 0x800 + 0x100 * i + at,
				   wqe + at, 8);
		nic_tick(r->nic);
		CHECK(rig_cqe(r, &cq, cqe) == i, "WQE %d", i);
	}
	CHECK(!rig_cqe(r, &cq, cqe), "more than one");
	rig_stop(r);
}

int main(void)
{
	test_cq();
	test_eq();
	test_sq();
	test_qp("more than the ring has", 16 + 17, false);
	test_qp("back", 16 - 1, false);
	test_qp("not in memory", 16, true);
	test_qp("not in memory", 16 + 1, true);
	test_recv("more than the ring has", 17, false);
	test_recv("back", -1, false);
	test_recv("not in memory", 1, true);
	test_whole_wqe();
	return check_result();
}
