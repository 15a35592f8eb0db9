// SPDX-License-Identifier: GPL-2.0
/* Memory windows of type 2, of the NIC: they belong to the QP that binds them. */
#include <stdlib.h>

#include "fakeparts.h"

#define KEY_INDEX(key) ((key) >> 8)

static struct ibv_mw *alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct fake_net *net = fake_net_of(pd->context);
	struct fake_mw *m;

	if (net->mws == MOST_MWS)
		return NULL;
	m = &net->mw[net->mws++];
	m->key = net->mws << 8 | 0xfe;
	m->mw.context = pd->context;
	m->mw.rkey = m->key;
	m->mw.type = type;
	return &m->mw;
}

static int dealloc_mw(struct ibv_mw *mw)
{
	return fake_destroyed_one(fake_net_of(mw->context), FAULT_DEALLOC_MW);
}

void fake_mw_new(struct fake_net *net, unsigned int side)
{
	net->context[side].ops.alloc_mw = alloc_mw;
	net->context[side].ops.dealloc_mw = dealloc_mw;
}

static struct fake_mw *find(struct fake_net *net, uint32_t key)
{
	unsigned int i = KEY_INDEX(key) - 1;

	if (i < net->mws && (net->mw[i].key == key || net->mw[i].stale == key))
		return &net->mw[i];
	return NULL;
}

static struct fake_qp *other_qp(struct fake_qp *q)
{
	struct fake_qp *first = q->net->qp[q->side];

	return q == first ? q + 1 : first;
}

/* Only what is free is bound, under a key that is new. */
enum ibv_wc_status fake_bind(struct fake_qp *q, const struct fake_send *s)
{
	const struct ibv_mw_bind_info *info = &s->wr.bind_mw.bind_info;
	struct fake_mw *m = find(q->net, s->old_key);
	struct fake_net *net = q->net;

	if (!m || m->qp || s->wr.bind_mw.rkey == m->key ||
	    KEY_INDEX(s->wr.bind_mw.rkey) != KEY_INDEX(m->key))
		return IBV_WC_MW_BIND_ERR;
	if (fake_mistake(net, FAULT_BIND_LOST, true))
		return IBV_WC_SUCCESS;
	if (!fake_mistake(net, FAULT_BIND_KEY, true))
		m->key = s->wr.bind_mw.rkey;
	m->qp = fake_mistake(net, FAULT_BIND_QP, true) ? other_qp(q) : q;
	m->addr = info->addr;
	m->length = info->length;
	if (fake_mistake(net, FAULT_BIND_SHORT, true))
		m->length /= 2;
	m->access = info->mw_access_flags;
	if (fake_mistake(net, FAULT_BIND_ACCESS, true))
		m->access &= ~IBV_ACCESS_REMOTE_WRITE;
	return IBV_WC_SUCCESS;
}

/* The windows of a QP are invalidated by itself and its peer. */
enum ibv_wc_status fake_invalidate(struct fake_qp *q, uint32_t key, bool local)
{
	struct fake_net *net = q->net;
	struct fake_mw *m = find(net, key), *other;

	if (!m || m->qp != q)
		return local ? IBV_WC_LOC_QP_OP_ERR : IBV_WC_REM_INV_REQ_ERR;
	if (fake_mistake(net,
			 local ? FAULT_LOCAL_INV_LOST : FAULT_SEND_INV_LOST,
			 true))
		return IBV_WC_SUCCESS;
	if (fake_mistake(net, FAULT_INV_STALE, true))
		net->stale_keys = true;
	if (net->stale_keys)
		m->stale = key;
	m->qp = NULL;
	other = m == net->mw ? m + 1 : m - 1;
	if (fake_mistake(net, FAULT_INV_OTHER, other->qp))
		other->qp = NULL;
	return IBV_WC_SUCCESS;
}

/* Key 0 is that of every MR. */
bool fake_reaches(struct fake_qp *q, const struct ibv_send_wr *wr, uint32_t len)
{
	bool read = wr->opcode == IBV_WR_RDMA_READ;
	int access = read ? IBV_ACCESS_REMOTE_READ : IBV_ACCESS_REMOTE_WRITE;
	uint64_t at = wr->wr.rdma.remote_addr;
	struct fake_mw *m;

	if (!wr->wr.rdma.rkey || !len)
		return true;
	m = find(q->net, wr->wr.rdma.rkey);
	return m && m->qp == q->peer && m->access & access && at >= m->addr &&
	       at - m->addr <= m->length && m->length - (at - m->addr) >= len;
}

void fake_spoil_inv(struct fake_qp *q, const struct ibv_send_wr *wr,
		    struct ibv_wc *wc)
{
	/* as rdma_rxe has it, and as it should be */
	unsigned int flag = q->side ? IBV_WC_WITH_INV : IBV_WC_IP_CSUM_OK;
	struct fake_net *net = q->net;

	if (wr->opcode == IBV_WR_SEND_WITH_INV) {
		wc->wc_flags |= flag;
		wc->invalidated_rkey = wr->invalidate_rkey;
		if (fake_mistake(net, FAULT_SEND_INV_SILENT, true))
			wc->wc_flags = 0;
		if (fake_mistake(net, FAULT_SEND_INV_KEY, true))
			wc->invalidated_rkey--;
	} else if (fake_mistake(net, FAULT_INV_UNASKED, !wc->wc_flags)) {
		wc->wc_flags |= flag;
	}
}
