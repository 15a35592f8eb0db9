// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The work of a queue pair: posted requests, the receive request that a SEND
 * is filling, and the responder's resources.
 */

#include <infiniband/verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_rxe.h>

#include "migr_check.h"

#define MAX_INT 0x7fffffffU
#define MAX_MESSAGE 0x80000000U
#define MAX_WQE_STATE 4 /* rdma_rxe's wqe_state_error */

/* The opcodes that rdma_rxe executes, as bits of enum ibv_wr_opcode */
static const uint32_t send_opcodes[] = {
	[IBV_QPT_RC] = 0xcbff,
	[IBV_QPT_UC] = 0x30f,
	[IBV_QPT_UD] = 0x20c,
};

static int check_resources(const struct rxe_migr_rec_qp *qp,
			   struct migr_error *err)
{
	const struct rxe_migr_res *res = (const void *)(qp + 1);
	const struct rxe_migr_rec *rec = &qp->rec;
	uint32_t i;

	if (qp->resp_res_head >= qp->max_dest_rd_atomic && qp->resp_res_head)
		return migr_bad(err, rec, "resp_res_head is %u of %u resources",
				qp->resp_res_head, qp->max_dest_rd_atomic);

	for (i = 0; i < qp->max_dest_rd_atomic; i++, res++) {
		if (res->kind > RXE_MIGR_RES_FLUSH)
			return migr_bad(err, rec, "resource %u: kind is %u", i,
					res->kind);
		if ((res->first_psn | res->last_psn | res->cur_psn) &
		    ~MIGR_PSN_MASK)
			return migr_bad(
				err, rec,
				"resource %u: first_psn, last_psn or cur_psn has more than 24 bits",
				i);
		if (res->length > MAX_MESSAGE)
			return migr_bad(err, rec, "resource %u: length is %u",
					i, res->length);
		if (res->flush_type > 0xff || res->flush_level > 0xff)
			return migr_bad(
				err, rec,
				"resource %u: flush_type or flush_level has more than 8 bits",
				i);
	}
	return 0;
}

/* progress within a scatter list */
struct cursor {
	const char *name;
	uint32_t index; /* slot, or the like */
	uint32_t num_sge, max_sge, cur_sge;
	uint32_t length, resid;
};

static int check_cursor(const struct rxe_migr_rec *rec, const struct cursor *c,
			struct migr_error *err)
{
	if (c->num_sge > c->max_sge)
		return migr_bad(err, rec,
				"%s %u: num_sge is %u, allowed are %u", c->name,
				c->index, c->num_sge, c->max_sge);
	if (c->cur_sge > c->num_sge)
		return migr_bad(err, rec, "%s %u: cur_sge is %u, num_sge is %u",
				c->name, c->index, c->cur_sge, c->num_sge);
	if (c->resid > c->length)
		return migr_bad(err, rec, "%s %u: resid is %u, length is %u",
				c->name, c->index, c->resid, c->length);
	return 0;
}

static int check_wqe(const struct rxe_migr_rec_qp *qp, uint32_t max_sge,
		     struct migr_error *err)
{
	const struct rxe_migr_recv_wqe *wqe = &qp->wqe;
	const struct cursor c = {
		.name = "wqe",
		.num_sge = wqe->num_sge,
		.max_sge = max_sge,
		.cur_sge = wqe->cur_sge,
		.length = wqe->length,
		.resid = wqe->resid,
	};
	int ret;

	if (!wqe->valid)
		return 0;
	ret = check_cursor(&qp->rec, &c, err);
	if (ret)
		return ret;
	if (wqe->cur_sge && wqe->cur_sge == wqe->num_sge)
		return migr_bad(err, &qp->rec,
				"wqe 0: cur_sge is %u, num_sge is %u",
				wqe->cur_sge, wqe->num_sge);
	if (wqe->length > MAX_INT)
		return migr_bad(err, &qp->rec, "wqe 0: length is %u",
				wqe->length);
	if (wqe->sge_offset > wqe->sge[wqe->cur_sge].length)
		return migr_bad(
			err, &qp->rec,
			"wqe 0: sge_offset is %u, the element has %u bytes",
			wqe->sge_offset, wqe->sge[wqe->cur_sge].length);
	return 0;
}

static int check_dma(const struct rxe_migr_rec *rec, const char *name,
		     uint32_t slot, uint32_t max_sge,
		     const struct rxe_dma_info *dma, struct migr_error *err)
{
	const struct cursor c = {
		.name = name,
		.index = slot,
		.num_sge = dma->num_sge,
		.max_sge = max_sge,
		.cur_sge = dma->cur_sge,
		.length = dma->length,
		.resid = dma->resid,
	};

	return check_cursor(rec, &c, err);
}

static int check_send(const struct rxe_migr_rec *rec, uint32_t slot,
		      const void *at, uint32_t max_sge, struct migr_error *err)
{
	const struct rxe_migr_rec_qp *qp = (const void *)rec;
	const struct rxe_send_wqe *wqe = at;

	if (wqe->wr.opcode > 31 ||
	    !(send_opcodes[qp->qp_type] >> wqe->wr.opcode & 1))
		return migr_bad(err, rec, "sq slot %u: opcode is %#x", slot,
				wqe->wr.opcode);
	if (wqe->state > MAX_WQE_STATE)
		return migr_bad(err, rec, "sq slot %u: state is %u", slot,
				wqe->state);
	if ((wqe->first_psn | wqe->last_psn) & ~MIGR_PSN_MASK)
		return migr_bad(
			err, rec,
			"sq slot %u: first_psn or last_psn has more than 24 bits",
			slot);
	if (wqe->has_rd_atomic > 1)
		return migr_bad(err, rec, "sq slot %u: has_rd_atomic is %u",
				slot, wqe->has_rd_atomic);
	if (wqe->wr.send_flags & IBV_SEND_INLINE &&
	    (uint64_t)wqe->dma.sge_offset + wqe->dma.resid >
		    qp->max_inline_data)
		return migr_bad(err, rec,
				"sq slot %u: %u bytes inline, from %u on", slot,
				wqe->dma.resid, wqe->dma.sge_offset);
	/* the address is in the request: a host's own, which it will not be */
	if (qp->qp_type == IBV_QPT_UD && !wqe->wr.wr.ud.ah_num)
		return migr_bad(err, rec, "sq slot %u: ah_num is 0", slot);
	return check_dma(rec, "sq slot", slot, max_sge, &wqe->dma, err);
}

static int check_recv(const struct rxe_migr_rec *rec, uint32_t slot,
		      const void *at, uint32_t max_sge, struct migr_error *err)
{
	const struct rxe_recv_wqe *wqe = at;

	return check_dma(rec, "rq slot", slot, max_sge, &wqe->dma, err);
}

/* what is posted and not finished, which all has to be there */
static int check_slots(const struct rxe_migr_rec *rec,
		       const struct rxe_migr_ring *ring, const char *slots,
		       uint32_t max_sge,
		       int (*check)(const struct rxe_migr_rec *rec,
				    uint32_t slot, const void *at,
				    uint32_t max_sge, struct migr_error *err),
		       struct migr_error *err)
{
	uint32_t i = ring->consumer;
	int ret;

	while (i != ring->producer) {
		if (i >= ring->slots)
			return migr_bad(err, rec,
					"slot %u is posted, and there are %u",
					i, ring->slots);
		ret = check(rec, i, slots + ((size_t)i << ring->log2_elem),
			    max_sge, err);
		if (ret)
			return ret;
		i = (i + 1) & ring->index_mask;
	}
	return 0;
}

int migr_check_receives(const struct rxe_migr_rec *rec,
			const struct rxe_migr_ring *ring, const char *slots,
			uint32_t max_sge, struct migr_error *err)
{
	return check_slots(rec, ring, slots, max_sge, check_recv, err);
}

int migr_check_work(const struct rxe_migr_rec_qp *qp, uint32_t recv_sge,
		    struct migr_error *err)
{
	const struct rxe_migr_res *res = (const void *)(qp + 1);
	const char *sq = (const char *)(res + qp->max_dest_rd_atomic);
	const char *rq = sq + migr_ring_bytes(&qp->sq);
	int ret;

	ret = check_resources(qp, err);
	if (!ret)
		ret = check_wqe(qp, recv_sge, err);
	if (!ret)
		ret = check_slots(&qp->rec, &qp->sq, sq, qp->max_send_sge,
				  check_send, err);
	if (!ret)
		ret = migr_check_receives(&qp->rec, &qp->rq, rq,
					  qp->max_recv_sge, err);
	return ret;
}
