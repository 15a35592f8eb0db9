// SPDX-License-Identifier: GPL-2.0
/* Posting receives, to a QP or to the queue that all share. */
#include <inttypes.h>
#include <string.h>

#include "traffic.h"

/* Receive buffer @index of QP @owner, or of the SRQ; it is for @qp, or not. */
static int post_buffer(struct traffic *t, struct ibv_qp *qp, uint64_t wr_id,
		       unsigned int owner, uint64_t index)
{
	const struct memory *m = &t->memory;
	const struct shape *s = m->shape;
	const uint32_t cut[2] = { recv_cut(s, index), s->max };
	char *slot = local_recv(m, owner, index);
	struct ibv_sge sge[2];
	struct ibv_recv_wr wr = {
		.wr_id = wr_id,
		.sg_list = sge,
		.num_sge = 2,
	}, *bad;
	struct piece p[2];
	int i;

	cut_pieces(p, cut, 2, s->max);
	for (i = 0; i < 2; i++) {
		sge[i].addr = (uintptr_t)slot + p[i].at;
		sge[i].length = p[i].len;
		sge[i].lkey = m->region[REGION_LOCAL].mr->lkey;
	}
	return qp ? ibv_post_recv(qp, &wr, &bad)
		  : ibv_post_srq_recv(t->srq.srq, &wr, &bad);
}

int post_receive(struct traffic_qp *q, uint64_t index)
{
	int rc = post_buffer(q->t, q->qp, wr_id_make(true, q->index, index),
			     q->index, index);

	if (rc)
		violation_fatal(&q->t->verdict,
				"QP %u: ibv_post_recv of RQ %" PRIu64 ": %s",
				q->index, index, strerror(rc));
	else
		q->rq.posted = index + 1;
	return rc ? -1 : 0;
}

/* All that is not held back. The limit is armed in between, see srq.h. */
int post_shared(struct traffic *t)
{
	struct srq *s = &t->srq;
	uint64_t wr_id;
	uint32_t at;
	int rc;

	while (srq_next(s, &wr_id, &at)) {
		rc = post_buffer(t, NULL, wr_id, at / t->shape.window, at);
		if (rc) {
			violation_fatal(&t->verdict,
					"ibv_post_srq_recv of SRQ %" PRIu64
					": %s",
					wr_id_index(wr_id), strerror(rc));
			return -1;
		}
	}
	return 0;
}
