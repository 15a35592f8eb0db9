// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A Stopped QP in the image of its context, and its groups
 */
#include "rxe.h"
#include "rxe_queue.h"
#include "rxe_migr_out.h"

static void put_res(const struct resp_res *res, struct rxe_migr_res *to)
{
	to->first_psn = res->first_psn;
	to->last_psn = res->last_psn;
	to->cur_psn = res->cur_psn;

	switch (res->type) {
	case RXE_READ_MASK:
		to->kind = RXE_MIGR_RES_READ;
		to->rkey = res->read.rkey;
		to->length = res->read.length;
		to->value = res->read.va_org;
		break;
	case RXE_ATOMIC_MASK:
		to->kind = RXE_MIGR_RES_ATOMIC;
		to->value = res->atomic.orig_val;
		break;
	case RXE_ATOMIC_WRITE_MASK:
		to->kind = RXE_MIGR_RES_ATOMIC_WRITE;
		break;
	case RXE_FLUSH_MASK:
		to->kind = RXE_MIGR_RES_FLUSH;
		to->length = res->flush.length;
		to->value = res->flush.va;
		to->flush_type = res->flush.type;
		to->flush_level = res->flush.level;
		break;
	default:
		memset(to, 0, sizeof(*to));
		break;
	}
}

static void put_recv_wqe(const struct rxe_recv_wqe *wqe, u32 max_sge,
			 struct rxe_migr_recv_wqe *to)
{
	u32 i;

	to->valid = 1;
	to->num_sge = min_t(u32, wqe->dma.num_sge, max_sge);
	to->wr_id = wqe->wr_id;
	to->length = wqe->dma.length;
	to->resid = wqe->dma.resid;
	to->cur_sge = wqe->dma.cur_sge;
	to->sge_offset = wqe->dma.sge_offset;
	for (i = 0; i < to->num_sge; i++) {
		to->sge[i].addr = wqe->dma.sge[i].addr;
		to->sge[i].length = wqe->dma.sge[i].length;
		to->sge[i].lkey = wqe->dma.sge[i].lkey;
	}
}

static void put_qp_attr(struct rxe_qp *qp, struct rxe_migr_rec_qp *rec)
{
	const struct ib_qp_attr *attr = &qp->attr;
	const struct rxe_av *av = &qp->pri_av;

	rec->state = qp_state(qp);
	rec->access_flags = attr->qp_access_flags;
	rec->pkey_index = attr->pkey_index;
	rec->port_num = attr->port_num;
	rec->path_mtu = attr->path_mtu;
	rec->dest_qpn = attr->dest_qp_num;
	rec->rq_psn = attr->rq_psn;
	rec->sq_psn = attr->sq_psn;
	rec->max_rd_atomic = attr->max_rd_atomic;
	rec->max_dest_rd_atomic = attr->max_dest_rd_atomic;
	/*
	 * What does not fit into their bits nobody has refused. This is what the
	 * driver makes of it: so many retries never end.
	 */
	rec->min_rnr_timer = attr->min_rnr_timer & 0x1f;
	rec->timeout = attr->timeout;
	rec->retry_cnt = min_t(u32, attr->retry_cnt, 7);
	rec->rnr_retry = min_t(u32, attr->rnr_retry, 7);
	rec->qkey = attr->qkey;
	rec->sq_draining = attr->sq_draining;
	rec->en_sqd_async_notify = attr->en_sqd_async_notify;

	memcpy(rec->dgid, av->grh.dgid.raw, sizeof(rec->dgid));
	rxe_migr_sgid(av, rec->sgid);
	memcpy(rec->dmac, av->dmac, sizeof(rec->dmac));
	rec->network_type = av->network_type;
	rec->sgid_index = av->grh.sgid_index;
	rec->flow_label = av->grh.flow_label;
	rec->hop_limit = av->grh.hop_limit;
	rec->traffic_class = av->grh.traffic_class;
	rec->udp_sport = qp->src_port;
}

static void put_qp_tasks(struct rxe_qp *qp, struct rxe_migr_rec_qp *rec)
{
	rec->epoch = to_migr_qp(qp)->epoch;
	rec->peer_epoch = to_migr_qp(qp)->peer_epoch;
	rec->peer_nonce = to_migr_qp(qp)->peer_nonce;
	rec->life = to_migr_qp(qp)->life;
	rec->peer_life = to_migr_qp(qp)->peer_life;

	rec->req_psn = qp->req.psn & BTH_PSN_MASK;
	rec->req_opcode = qp->req.opcode;
	/* what is flushed in ERR leaves it behind */
	rec->req_wqe_index = qp_state(qp) == IB_QPS_ERR ?
			     rec->sq.consumer :
			     qp->req.wqe_index & rec->sq.index_mask;
	/*
	 * Others have none: the modify to RTS gives them. One while some are in
	 * use gives them all, and those come back, too.
	 */
	rec->req_rd_atomic = qp_state(qp) == IB_QPS_RTS ||
			     qp_state(qp) == IB_QPS_SQD ?
			     min_t(u32, atomic_read(&qp->req.rd_atomic),
				   rec->max_rd_atomic) : 0;
	rec->req_need_rd_atomic = qp->req.need_rd_atomic;
	rec->req_noack_pkts = qp->req.noack_pkts;
	rec->ssn = atomic_read(&qp->ssn);

	rec->comp_psn = qp->comp.psn & BTH_PSN_MASK;
	rec->comp_opcode = qp->comp.opcode;

	rec->resp_msn = qp->resp.msn;
	rec->resp_psn = qp->resp.psn & BTH_PSN_MASK;
	rec->resp_ack_psn = qp->resp.ack_psn & BTH_PSN_MASK;
	rec->resp_opcode = qp->resp.opcode;
	rec->resp_status = qp->resp.status;
	rec->resp_resid = qp->resp.resid;
	rec->resp_rkey = qp->resp.rkey;
	rec->resp_length = qp->resp.length;
	/* a QP that had resources and has none now keeps its index */
	rec->resp_res_head = rec->max_dest_rd_atomic ? qp->resp.res_head : 0;
	rec->resp_va = qp->resp.va;
	rec->resp_offset = qp->resp.offset;
	/* what UD receives is whole, and what has gone wrong it forgets */
	if (qp->resp.wqe && qp_type(qp) != IB_QPT_UD)
		put_recv_wqe(qp->resp.wqe, rxe_migr_recv_sge(qp), &rec->wqe);
	else if (rec->resp_opcode == IB_OPCODE_UC_SEND_FIRST ||
		 rec->resp_opcode == IB_OPCODE_UC_SEND_MIDDLE)
		/* its receive, of an SRQ, is done: the message was wrong */
		rec->resp_opcode = OPCODE_NONE;
}

static void put_qp(struct rxe_migr_out *out, struct rxe_qp *qp,
		   struct ib_uobject *uobj)
{
	struct rxe_queue *sq = qp->sq.queue;
	struct rxe_queue *rq = qp->srq ? NULL : qp->rq.queue;
	u32 n_res = rxe_migr_connected(qp) ? qp->attr.max_dest_rd_atomic : 0;
	struct rxe_migr_ring sq_ring = rxe_migr_out_ring(sq);
	struct rxe_migr_ring rq_ring = {};
	struct rxe_migr_rec_qp *rec;
	struct rxe_migr_res *res;
	u32 events = rxe_migr_get_qp_events(&qp->ibqp);
	u8 *slots;
	u32 i;

	if (rq)
		rq_ring = rxe_migr_out_ring(rq);
	rxe_migr_out_note(out, &events, sizeof(events));
	rec = rxe_migr_out_object(out, RXE_MIGR_QP, sizeof(*rec),
				  n_res * sizeof(*res) + slots_size(&sq_ring) +
				  slots_size(&rq_ring), uobj);
	/*
	 * In both passes, for peers in this context that come before. An earlier
	 * image may say so still.
	 */
	if (rxe_migr_connected(qp))
		WRITE_ONCE(to_migr_qp(qp)->dumped_alive, true);
	if (!rec)
		return;

	rec->pd = qp->ibqp.pd->uobject->id;
	rec->send_cq = cq_handle(qp->ibqp.send_cq);
	rec->recv_cq = cq_handle(qp->ibqp.recv_cq);
	rec->qpn = qp_num(qp);
	rec->wire_qpn = qp->elem.index;
	rec->qp_type = qp_type(qp);
	rec->sq_sig_all = qp->sq_sig_type == IB_SIGNAL_ALL_WR;
	rec->max_send_wr = ring_request(sq);
	rec->max_send_sge = qp->sq.max_sge;
	rec->max_inline_data = qp->sq.max_inline;
	rec->max_recv_wr = rq ? ring_request(rq) : 0;
	rec->max_recv_sge = qp->rq.max_sge;
	rec->srq = qp->srq ? srq_handle(qp->ibqp.srq) : RXE_MIGR_NO_HANDLE;
	put_qp_attr(qp, rec);
	rec->max_dest_rd_atomic = n_res;
	rec->sq = sq_ring;
	rec->rq = rq_ring;
	/* first, as who is not there has no life */
	rec->peer_absent = rxe_migr_peer_absent(qp);
	put_qp_tasks(qp, rec);
	rec->events_reported = events;
	rec->last_wqe = qp->last_wqe;

	res = (struct rxe_migr_res *)(rec + 1);
	for (i = 0; i < n_res; i++)
		put_res(&qp->resp.resources[i], &res[i]);
	slots = rxe_migr_out_slots(sq, (u8 *)&res[n_res], 0, sq_ring.slots);
	if (rq)
		rxe_migr_out_slots(rq, slots, 0, rq_ring.slots);
}

/* the groups follow their QP */
static void dump_groups(struct rxe_migr_out *out, struct rxe_qp *qp,
			struct ib_uobject *uobj)
{
	u32 n = rxe_migr_get_groups(&qp->ibqp, NULL, 0);
	size_t size = n * sizeof(struct rxe_migr_group);
	struct rxe_migr_rec_mcast *rec;
	struct rxe_migr_group *groups;

	if (!n) {
		rxe_migr_out_note(out, &n, sizeof(n));
		return;
	}

	groups = kvzalloc(size, GFP_KERNEL);
	if (!groups) {
		out->err = -ENOMEM;
		return;
	}

	if (rxe_migr_get_groups(&qp->ibqp, groups, n) != n)
		out->changed = true;
	rxe_migr_out_note(out, groups, size);
	rec = rxe_migr_out_record(out, RXE_MIGR_MCAST, sizeof(*rec) + size);
	if (rec) {
		rec->qp = uobj->id;
		rec->groups = n;
		memcpy(rec + 1, groups, size);
	}
	kvfree(groups);
}

/*
 * The application can still create QPs, which are not Stopped, and modify
 * them, which takes the same lock.
 */
void rxe_migr_dump_qp(struct rxe_migr_out *out, void *obj,
		      struct ib_uobject *uobj)
{
	struct rxe_migr_qp *m = to_migr_qp(obj);

	mutex_lock(&m->lock);
	if (m->qp.migr == RXE_MIGR_STOPPED)
		put_qp(out, &m->qp, uobj);
	else
		out->changed = true;
	mutex_unlock(&m->lock);
	dump_groups(out, &m->qp, uobj);
}
