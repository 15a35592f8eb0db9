// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Memory windows */
#include "inner.h"

#include <errno.h>

struct fake_mw {
	struct ibv_mw mw;
	struct fake_window is;
	struct fake_mw *next;
};

bool fake_binds;
static struct fake_mw *windows; /* with the lock */

static struct ibv_mw *alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct fake_mw *f;

	OWN(PD, pd);
	ENTER_OR(NULL, pd, type);
	f = make(FAKE_MW, sizeof(*f));
	f->mw.context = pd->context;
	f->mw.pd = pd;
	f->mw.type = type;
	f->mw.handle = new_handle();
	f->mw.rkey = f->is.rkey = f->mw.handle << 8;
	pthread_mutex_lock(&lock);
	f->next = windows;
	windows = f;
	pthread_mutex_unlock(&lock);
	return &f->mw;
}

static int dealloc_mw(struct ibv_mw *mw)
{
	struct fake_mw **at = &windows;

	OWN(MW, mw);
	ENTER_ERR(mw);
	pthread_mutex_lock(&lock);
	while (&(*at)->mw != mw)
		at = &(*at)->next;
	*at = (*at)->next;
	pthread_mutex_unlock(&lock);
	if (fake_reuses)
		fake_next_handle(mw->handle);
	DESTROY(MW, mw);
	return 0;
}

struct fake_window fake_window(const struct ibv_mw *real)
{
	struct fake_window is;

	OWN(MW, real);
	pthread_mutex_lock(&lock);
	is = ((const struct fake_mw *)real)->is;
	pthread_mutex_unlock(&lock);
	return is;
}

bool windows_of(const void *object)
{
	const struct fake_mw *f;

	if (!fake_binds)
		return false;
	pthread_mutex_lock(&lock);
	for (f = windows; f; f = f->next)
		if (f->mw.pd == object || f->is.mr == object ||
		    f->is.qp == object)
			break;
	pthread_mutex_unlock(&lock);
	return f;
}

/* --- requests, with the lock --- */

static bool bind(const struct ibv_qp *qp, const struct fake_sent *sent)
{
	const struct ibv_mw_bind_info *info = &sent->wr.bind_mw.bind_info;
	struct fake_mw *f = (struct fake_mw *)sent->wr.bind_mw.mw;
	bool of_qp = f->mw.type == IBV_MW_TYPE_2;

	if (f->is.rkey != sent->mw_rkey || f->mw.pd != qp->pd)
		return false;
	if (of_qp && (f->is.valid || !info->length ||
		      !((f->is.rkey ^ sent->wr.bind_mw.rkey) & 0xff)))
		return false;
	f->is = (struct fake_window){
		.valid = info->length,
		.qp = of_qp ? qp : NULL,
		.mr = info->length ? info->mr : NULL,
		.addr = info->addr,
		.length = info->length,
		.access = info->mw_access_flags,
		.rkey = (f->is.rkey & ~0xffU) | (sent->wr.bind_mw.rkey & 0xff),
	};
	return true;
}

/* by a QP, or its peer: of windows that are its own */
static bool invalidate(const struct ibv_qp *qp, uint32_t key)
{
	struct fake_mw *f;

	for (f = windows; f; f = f->next)
		if (f->is.rkey == key && f->is.valid && f->is.qp == qp)
			break;
	if (f)
		f->is = (struct fake_window){ .rkey = key };
	return f;
}

enum ibv_wc_status do_window(const struct ibv_qp *qp,
			     const struct fake_sent *sent)
{
	if (!fake_binds)
		return IBV_WC_SUCCESS;
	if (sent->wr.opcode == IBV_WR_BIND_MW && !bind(qp, sent))
		return IBV_WC_MW_BIND_ERR;
	if (sent->wr.opcode == IBV_WR_LOCAL_INV &&
	    !invalidate(qp, sent->wr.invalidate_rkey))
		return IBV_WC_LOC_QP_OP_ERR;
	return IBV_WC_SUCCESS;
}

unsigned int fake_inv_flag = IBV_WC_WITH_INV;

void fake_invalidated(struct ibv_qp *real, uint32_t key)
{
	struct ibv_wc wc = {
		.wr_id = FAKE_NO_RECV,
		.opcode = IBV_WC_RECV,
		.qp_num = real->qp_num,
		.wc_flags = fake_inv_flag,
		.invalidated_rkey = key,
	};

	OWN(QP, real);
	pthread_mutex_lock(&lock);
	if (!invalidate(real, key))
		die("no window of this QP has the key %#x", key);
	put_completion(real->recv_cq, &wc);
	pthread_mutex_unlock(&lock);
}

/* The caller is told another key at once. */
static int queue_bind(struct ibv_qp *qp, struct ibv_mw *mw,
		      const struct ibv_mw_bind *b)
{
	struct ibv_send_wr *bad, wr = {
		.wr_id = b->wr_id,
		.opcode = IBV_WR_BIND_MW,
		.send_flags = b->send_flags,
		.bind_mw = { mw, ibv_inc_rkey(mw->rkey), b->bind_info },
	};

	return fake_binds ? work((struct fake_qp *)qp, &wr, &bad) : 0;
}

static int bind_mw(struct ibv_qp *qp, struct ibv_mw *mw,
		   struct ibv_mw_bind *bind)
{
	int err;

	OWN(QP, qp);
	OWN(MW, mw);
	OWN_OR_NULL(MR, bind->bind_info.mr);
	KEEP(bind, *bind);
	ENTER_ERR(qp, mw);
	err = queue_bind(qp, mw, bind);
	if (err)
		return err;
	mw->rkey = ibv_inc_rkey(mw->rkey);
	return ring_bell(qp->context);
}

void mw_ops(struct verbs_context *v)
{
	v->context.ops.alloc_mw = alloc_mw;
	v->context.ops.bind_mw = bind_mw;
	v->context.ops.dealloc_mw = dealloc_mw;
}
