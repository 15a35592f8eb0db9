// SPDX-License-Identifier: GPL-2.0
/* Old keys of the peer's windows, tried out when all else is over. */
#include <inttypes.h>
#include <string.h>

#include "traffic.h"

#define POLL_BATCH 16

/* A byte of the first slot. The key is the one before that which was last told. */
static void try_key(struct traffic_qp *q)
{
	const struct memory *m = &q->t->memory;
	struct ibv_sge sge = {
		.addr = (uintptr_t)local_slot(m, q->index, 0),
		.length = 1,
		.lkey = m->region[REGION_LOCAL].mr->lkey,
	};
	struct ibv_send_wr wr = {
		.wr_id = wr_id_make(false, q->index, q->sq.tail),
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_READ,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma.remote_addr = q->t->remote.addr[REGION_SLOTS] +
				       off_slot(m->shape, q->index, 0),
		.wr.rdma.rkey = q->mw.stale,
	}, *bad;
	int rc = ibv_post_send(q->qp, &wr, &bad);

	if (rc)
		violation_fatal(&q->t->verdict,
				"QP %u: ibv_post_send of a READ by an old"
				" key: %s",
				q->index, strerror(rc));
	q->mw.tries = !rc;
}

void stale_try(struct traffic *t)
{
	unsigned int i;

	for (i = t->side; i < t->shape.qps; i += 2)
		if (t->qp[i].mw.peer_gen > 1)
			try_key(&t->qp[i]);
}

/* What was posted to receive, on whichever side, is flushed meanwhile. */
static void on_answer(struct traffic *t, const struct ibv_wc *wc)
{
	unsigned int i = wr_id_qp(wc->wr_id);
	struct mw *w;

	if (wr_id_recv(wc->wr_id) || i >= t->shape.qps)
		return;
	w = &t->qp[i].mw;
	if (wc->status == IBV_WC_REM_ACCESS_ERR)
		t->stale_refused++;
	else
		violation(&t->verdict,
			  "QP %u: READ by 0x%08x, the old key of a window: %s,"
			  " expected %s",
			  i, w->stale, ibv_wc_status_str(wc->status),
			  ibv_wc_status_str(IBV_WC_REM_ACCESS_ERR));
	w->tries = false;
}

bool stale_refused(struct traffic *t)
{
	struct ibv_wc wc[POLL_BATCH];
	unsigned int i;
	int n, k;

	for (i = 0; i < t->cqs; i++)
		while ((n = ibv_poll_cq(t->cq[i], POLL_BATCH, wc)) > 0)
			for (k = 0; k < n; k++)
				on_answer(t, &wc[k]);
	for (i = 0; i < t->shape.qps && !t->qp[i].mw.tries; i++)
		;
	return i == t->shape.qps;
}
