// SPDX-License-Identifier: GPL-2.0
/* What the NIC of each side consists of. */
#include <stdlib.h>

#include "fakeparts.h"

static void connect_qp(struct fake_net *net, unsigned int side, unsigned int i)
{
	struct fake_qp *q = &net->qp[side][i];

	q->net = net;
	q->side = side;
	q->peer = &net->qp[!side][i];
	q->qp.context = &net->context[side];
	q->qp.qp_num = 0x100 * (1 + side) + i;
	q->qp.send_cq = net->cq[side][0];
	q->qp.recv_cq = net->cq[side][net->setup.cqs - 1];
	q->qp.qp_type = net->setup.ud ? IBV_QPT_UD : IBV_QPT_RC;
	q->qp.srq = net->setup.srq ? &net->srq[side].srq : NULL;
	net->list[side][i] = &q->qp;
}

static void new_cq(struct fake_net *net, unsigned int side, unsigned int i)
{
	struct fake_cq *cq = calloc(1, sizeof(*cq));

	if (!cq)
		abort();
	cq->cq.context = &net->context[side];
	cq->cq.cq_context = &net->cq[side][i];
	cq->net = net;
	cq->side = side;
	net->cq[side][i] = &cq->cq;
}

static void new_side(struct fake_net *net, unsigned int side)
{
	unsigned int qps = net->setup.qps;

	net->context[side].abi_compat = net;
	fake_data_path(&net->context[side].ops);
	net->qp[side] = calloc(qps, sizeof(*net->qp[side]));
	net->list[side] = calloc(qps, sizeof(*net->list[side]));
	if (!net->qp[side] || !net->list[side])
		abort();
	new_cq(net, side, 0);
	new_cq(net, side, 1);
	fake_srq_new(net, side);
	fake_mw_new(net, side);
}

struct fake_net *fake_net_new(const struct fake_setup *setup, enum fault fault,
			      unsigned int after)
{
	struct fake_net *net = calloc(1, sizeof(*net));
	unsigned int side, i;

	if (!net)
		abort();
	net->setup = *setup;
	net->fault = fault;
	net->after = after;
	for (side = 0; side < 2; side++)
		new_side(net, side);
	fake_events_new(net);
	for (side = 0; side < 2; side++)
		for (i = 0; i < setup->qps; i++)
			connect_qp(net, side, i);
	return net;
}

void fake_net_free(struct fake_net *net)
{
	unsigned int side;

	fake_events_free(net);
	for (side = 0; side < 2; side++) {
		free(net->qp[side]);
		free(net->list[side]);
		free(net->cq[side][0]);
		free(net->cq[side][1]);
	}
	free(net);
}

struct ibv_qp **fake_qps(struct fake_net *net, unsigned int side)
{
	return net->list[side];
}

struct ibv_cq **fake_cqs(struct fake_net *net, unsigned int side)
{
	return net->cq[side];
}

struct ibv_srq *fake_srq(struct fake_net *net, unsigned int side)
{
	return &net->srq[side].srq;
}

struct ibv_comp_channel *fake_channel(struct fake_net *net, unsigned int side,
				      unsigned int i)
{
	return &net->channel[side][i].channel;
}

struct ibv_context *fake_context(struct fake_net *net, unsigned int side)
{
	return &net->context[side];
}

void fake_set_shared(struct fake_net *net, unsigned int side, uint64_t addr)
{
	net->shared[side] = addr;
}

bool fake_made_mistake(const struct fake_net *net)
{
	return net->made;
}
