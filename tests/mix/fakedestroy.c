// SPDX-License-Identifier: GPL-2.0
/* The ends of the NIC's objects, and of what only test-faults has made. */
#include <errno.h>

#include "fakeparts.h"

int fake_destroyed_one(struct fake_net *net, enum fault fault)
{
	__atomic_fetch_add(&net->destroyed, 1, __ATOMIC_RELAXED);
	return fake_mistake(net, fault, true) ? EBUSY : 0;
}

unsigned int fake_destroyed(const struct fake_net *net)
{
	return net->destroyed;
}

int ibv_destroy_qp(struct ibv_qp *qp)
{
	return fake_destroyed_one(fake_net_of(qp->context), FAULT_DESTROY_QP);
}

int ibv_destroy_cq(struct ibv_cq *cq)
{
	return fake_destroyed_one(fake_net_of(cq->context), FAULT_DESTROY_CQ);
}

int ibv_destroy_srq(struct ibv_srq *srq)
{
	return fake_destroyed_one(fake_net_of(srq->context), FAULT_DESTROY_SRQ);
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	return fake_destroyed_one(fake_net_of(channel->context),
				  FAULT_DESTROY_CHANNEL);
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
	return fake_destroyed_one(fake_net_of(mr->context), FAULT_DEREG_MR);
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
	return fake_destroyed_one(fake_net_of(pd->context), FAULT_DEALLOC_PD);
}

/* which has its own way to say so */
int ibv_close_device(struct ibv_context *context)
{
	errno = fake_destroyed_one(fake_net_of(context), FAULT_CLOSE);
	return errno ? -1 : 0;
}
