// SPDX-License-Identifier: GPL-2.0
/*
 * Queue pairs come and go.
 */
#include <stdlib.h>

#include "impl.h"

static bool init_valid(const struct roce_qp_init *init)
{
	switch (init->type) {
	case ROCE_QPT_GSI:
	case ROCE_QPT_RC:
	case ROCE_QPT_UC:
	case ROCE_QPT_UD:
	case ROCE_QPT_XRC_SEND:
	case ROCE_QPT_XRC_RECV:
		break;
	default:
		return false;
	}
	return init->qpn <= QPN_MASK && init->max_send_wr &&
	       init->max_send_sge <= ROCE_MAX_SGE &&
	       init->max_recv_sge <= ROCE_MAX_SGE;
}

static void free_qp(struct roce_qp *qp)
{
	slots_free(qp);
	free(qp->resp.sges);
	free(qp->resp.resources);
	free(qp);
}

static struct roce_qp *alloc_qp(const struct roce_qp_init *init)
{
	struct roce_qp *qp = calloc(1, sizeof(*qp));

	if (!qp)
		return NULL;
	qp->init = *init;
	qp->init.srq |= init->type == ROCE_QPT_XRC_RECV;
	/* one more: an element to point to */
	qp->resp.sges = calloc(init->max_recv_sge + 1, sizeof(*qp->resp.sges));
	if (slots_init(qp) || !qp->resp.sges) {
		free_qp(qp);
		return NULL;
	}
	return qp;
}

static void put_into_bucket(struct roce_engine *e, struct roce_qp *qp)
{
	struct roce_qp **bucket = &e->buckets[qp->wire_qpn & e->bucket_mask];

	qp->hash_next = *bucket;
	*bucket = qp;
}

/* The number of buckets grows with that of QPs. */
static int reserve_buckets(struct roce_engine *e, uint32_t count)
{
	uint32_t size = e->buckets ? e->bucket_mask + 1 : 16;
	struct roce_qp **buckets;

	while (size < count)
		size *= 2;
	if (e->buckets && size == e->bucket_mask + 1)
		return 0;
	buckets = calloc(size, sizeof(*buckets));
	if (!buckets)
		return -ENOMEM;
	free(e->buckets);
	e->buckets = buckets;
	e->bucket_mask = size - 1;
	for (struct roce_qp *qp = e->all; qp; qp = qp->all_next)
		put_into_bucket(e, qp);
	return 0;
}

int roce_qp_create(struct roce_engine *e, const struct roce_qp_init *init,
		   struct roce_qp **out)
{
	uint32_t qpn = init->type == ROCE_QPT_GSI ? ROCE_GSI_QPN : init->qpn;
	struct roce_qp *qp;

	if (!init_valid(init))
		return -EINVAL;
	if (engine_find_qp(e, qpn))
		return -EEXIST;
	qp = alloc_qp(init);
	if (!qp)
		return -ENOMEM;
	if (timer_reserve(e, e->qps + 1) || reserve_buckets(e, e->qps + 1)) {
		free_qp(qp);
		return -ENOMEM;
	}
	e->qps++;
	qp->engine = e;
	qp->wire_qpn = qpn;
	put_into_bucket(e, qp);
	qp->all_next = e->all;
	qp->all_prev = &e->all;
	if (e->all)
		e->all->all_prev = &qp->all_next;
	e->all = qp;
	qp_reset(qp);
	*out = qp;
	return 0;
}

void roce_qp_destroy(struct roce_qp *qp)
{
	struct roce_engine *e = qp->engine;
	struct roce_qp **p = &e->buckets[qp->wire_qpn & e->bucket_mask];

	while (*p != qp)
		p = &(*p)->hash_next;
	*p = qp->hash_next;
	*qp->all_prev = qp->all_next;
	if (qp->all_next)
		qp->all_next->all_prev = qp->all_prev;
	group_leave_all(qp);
	timer_remove(qp);
	engine_remove_runnable(qp);
	engine_remove_ack(qp);
	e->qps--;
	free_qp(qp);
}

/* The state of a new QP; what was in the queues is forgotten. */
void qp_reset(struct roce_qp *qp)
{
	struct requester *req = &qp->req;
	struct responder *resp = &qp->resp;
	struct roce_sge *recv_sges = resp->sges;

	timer_remove(qp);
	engine_remove_runnable(qp);
	engine_remove_ack(qp);
	slots_drop(qp);
	free(resp->resources);
	memset(resp, 0, sizeof(*resp));
	resp->sges = recv_sges;
	resp->pd = qp->init.pd;
	*req = (struct requester){
		.slots = req->slots,
		.sges = req->sges,
		.sge_size = req->sge_size,
		.mask = req->mask,
		.ack_deadline = NEVER,
		.rnr_deadline = NEVER,
	};
	memset(&qp->attr, 0, sizeof(qp->attr));
	qp->mtu = qp->engine->port_mtu;
	qp->sq_draining = false;
	qp->comm_est = false;
	qp->flush_recv = false;
	qp->look_deadline = NEVER;
	qp->last_wqe = false;
}

enum roce_qp_state roce_qp_state(const struct roce_qp *qp)
{
	return qp->attr.state;
}

void roce_qp_query(const struct roce_qp *qp, struct roce_qp_attr *attr,
		   bool *sq_draining)
{
	*attr = qp->attr;
	attr->cur_state = attr->state;
	*sq_draining = qp->sq_draining;
}

const struct roce_qp_counters *roce_qp_counters(const struct roce_qp *qp)
{
	return &qp->counters;
}
