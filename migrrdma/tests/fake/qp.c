// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* QPs */
#include "inner.h"

#include <errno.h>
#include <sys/param.h>
#include <unistd.h>

#include <rdma/ib_user_verbs.h>

static struct fake_qp *new_qp(struct ibv_context *ctx,
			      const struct ibv_qp_init_attr_ex *attr)
{
	struct fake_qp *f = make(FAKE_QP, sizeof(*f));
	struct ibv_qp *qp = &f->ex.qp_base;

	qp->context = ctx;
	qp->qp_context = attr->qp_context;
	qp->pd = attr->comp_mask & IBV_QP_INIT_ATTR_PD ? attr->pd : NULL;
	qp->send_cq = attr->send_cq;
	qp->recv_cq = attr->recv_cq;
	qp->srq = attr->srq;
	qp->qp_type = attr->qp_type;
	qp->state = IBV_QPS_RESET;
	qp->handle = new_handle();
	qp->qp_num = 0x10000 + qp->handle;
	f->cap = attr->cap;
	f->sq_sig_all = attr->sq_sig_all;
	f->refuse = -1;
	pthread_mutex_init(&f->batch_lock, NULL);
	return f;
}

static void own_attr(const struct ibv_qp_init_attr *attr, const char *call)
{
	if (attr->send_cq)
		own(FAKE_CQ, attr->send_cq, call);
	if (attr->recv_cq)
		own(FAKE_CQ, attr->recv_cq, call);
	if (attr->srq)
		own(FAKE_SRQ, attr->srq, call);
}

bool fake_exact, fake_small;

static void grow_cap(struct ibv_qp_cap *cap)
{
	if (fake_exact) {
		cap->max_send_sge = MIN(cap->max_send_sge, FAKE_MOST_SGES);
		return;
	}
	cap->max_send_wr += 10;
	cap->max_recv_wr += 20;
	cap->max_send_sge += 30;
	cap->max_recv_sge += 40;
	cap->max_inline_data += 50;
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex ex = { .comp_mask = IBV_QP_INIT_ATTR_PD };

	OWN(PD, pd);
	own_attr(attr, __func__);
	memcpy(&ex, attr, sizeof(*attr));
	ex.pd = pd;
	KEEP(qp, ex);
	KEEP(qps, fake_last.qps + 1);
	grow_cap(&attr->cap);
	ENTER_OR(NULL, pd);
	COMMAND_OR(NULL, pd->context);
	ex.cap = attr->cap;
	return &new_qp(pd->context, &ex)->ex.qp_base;
}

static struct ibv_qp *create_qp_ex(struct ibv_context *ctx,
				   struct ibv_qp_init_attr_ex *attr)
{
	struct fake_qp *f;
	struct ibv_qp_ex *ex;

	OWN(CONTEXT, ctx);
	own_attr((struct ibv_qp_init_attr *)attr, __func__);
	if (attr->comp_mask & IBV_QP_INIT_ATTR_PD)
		OWN(PD, attr->pd);
	if (attr->comp_mask & IBV_QP_INIT_ATTR_XRCD)
		OWN(XRCD, attr->xrcd);
	if (attr->comp_mask & IBV_QP_INIT_ATTR_IND_TABLE)
		OWN(RWQ, attr->rwq_ind_tbl);
	KEEP(qp, *attr);
	KEEP(qps, fake_last.qps + 1);
	grow_cap(&attr->cap);
	ENTER_OR(NULL, ctx);
	COMMAND_OR(NULL, ctx);
	f = new_qp(ctx, attr);
	f->extended = attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	if (!f->extended)
		return &f->ex.qp_base;
	ex = &f->ex;
	wr_ops(ex, attr->send_ops_flags);
	return &ex->qp_base;
}

static struct ibv_qp *open_qp(struct ibv_context *ctx,
			      struct ibv_qp_open_attr *attr)
{
	struct ibv_qp_init_attr_ex ex = { .qp_type = IBV_QPT_XRC_RECV };
	struct ibv_qp *qp;

	OWN(CONTEXT, ctx);
	OWN(XRCD, attr->xrcd);
	KEEP(open, *attr);
	ENTER_OR(NULL, ctx);
	if (attr->comp_mask & IBV_QP_OPEN_ATTR_CONTEXT)
		ex.qp_context = attr->qp_context;
	qp = &new_qp(ctx, &ex)->ex.qp_base;
	qp->qp_num = attr->qp_num;
	return qp;
}

struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
	struct fake_qp *f = (struct fake_qp *)qp;

	OWN(QP, qp);
	return f->extended ? &f->ex : NULL;
}

enum ibv_qp_state fake_state(const struct ibv_qp *real)
{
	enum ibv_qp_state state;

	OWN(QP, real);
	pthread_mutex_lock(&lock);
	state = real->state;
	pthread_mutex_unlock(&lock);
	return state;
}

void fake_dies(struct ibv_qp *real)
{
	OWN(QP, real);
	((struct fake_qp *)real)->died = true;
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask)
{
	struct fake_qp *f = (struct fake_qp *)qp;

	OWN(QP, qp);
	ENTER_ERR(qp, attr, attr_mask);
	COMMAND_OR(EIO, qp->context);
	KEEP(modify, *attr);
	pthread_mutex_lock(&lock);
	if (attr_mask & IBV_QP_STATE)
		__atomic_store_n(&qp->state, attr->qp_state, __ATOMIC_RELAXED);
	pthread_mutex_unlock(&lock);
	f->was_rts = qp->state == IBV_QPS_RTS ||
		     (f->was_rts && qp->state != IBV_QPS_RESET);
	if (attr_mask & IBV_QP_ACCESS_FLAGS)
		f->access = attr->qp_access_flags;
#define SET(bit, member)                               \
	do {                                           \
		if (attr_mask & IBV_QP_##bit)          \
			f->attr.member = attr->member; \
	} while (0)
	SET(PORT, port_num);
	SET(QKEY, qkey);
	SET(AV, ah_attr);
	SET(PATH_MTU, path_mtu);
	SET(DEST_QPN, dest_qp_num);
	SET(RQ_PSN, rq_psn);
	SET(SQ_PSN, sq_psn);
	SET(TIMEOUT, timeout);
	SET(MIN_RNR_TIMER, min_rnr_timer);
#undef SET
	if (works && attr_mask & IBV_QP_STATE && qp->state == IBV_QPS_ERR)
		flush(qp);
	if (attr_mask & IBV_QP_STATE && qp->state == IBV_QPS_RESET) {
		drop_recvs(&f->recvs);
		f->last_wqe = false;
	}
	return 0;
}

/* and those who are at it */
static void count_query(int begins)
{
	static unsigned int now;

	pthread_mutex_lock(&lock);
	now += (unsigned int)begins;
	fake_last.queries += begins > 0;
	if (now > fake_last.queries_at_once)
		fake_last.queries_at_once = now;
	pthread_mutex_unlock(&lock);
}

int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask,
		 struct ibv_qp_init_attr *init_attr)
{
	OWN(QP, qp);
	ENTER_ERR(qp, attr, attr_mask, init_attr);
	COMMAND_OR(EIO, qp->context);
	count_query(1);
	if (fake_slow)
		usleep(1000);
	count_query(-1);
	*attr = ((struct fake_qp *)qp)->attr;
	if (((struct fake_qp *)qp)->died) {
		pthread_mutex_lock(&lock);
		qp->state = IBV_QPS_ERR; /* by libibverbs */
		pthread_mutex_unlock(&lock);
	}
	attr->qp_state = qp->state;
	attr->qp_access_flags = ((struct fake_qp *)qp)->access;
	*init_attr = (struct ibv_qp_init_attr){
		.qp_context = qp->qp_context,
		.send_cq = qp->send_cq,
		.recv_cq = qp->recv_cq,
		.srq = qp->srq,
		.cap.max_send_wr = 123,
		.qp_type = qp->qp_type,
		.sq_sig_all = 1,
	};
	return 0;
}

int ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op,
			       uint32_t flags)
{
	OWN(QP, qp);
	ENTER_OR(0, qp, op, flags);
	return 1;
}

int ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	OWN(QP, qp);
	ENTER_ERR(qp, ece);
	return 0;
}

int ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	OWN(QP, qp);
	ENTER_ERR(qp, ece);
	return 0;
}

static int modify_qp_rate_limit(struct ibv_qp *qp,
				struct ibv_qp_rate_limit_attr *attr)
{
	OWN(QP, qp);
	ENTER_ERR(qp, attr);
	return 0;
}

/* its place among them, or their number */
static unsigned int group_of(const struct fake_qp *f, const union ibv_gid *gid,
			     uint16_t lid)
{
	unsigned int i = 0;

	while (i < f->n_groups &&
	       (memcmp(&f->groups[i].gid, gid, sizeof(*gid)) ||
		f->groups[i].lid != lid))
		i++;
	return i;
}

bool fake_in_group(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	const struct fake_qp *f = (struct fake_qp *)qp;

	return group_of(f, gid, lid) < f->n_groups;
}

int ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	struct fake_qp *f = (struct fake_qp *)qp;

	OWN(QP, qp);
	ENTER_ERR(qp, gid, lid);
	COMMAND_OR(EIO, qp->context);
	if (fake_in_group(qp, gid, lid))
		return 0;
	if (f->n_groups == FAKE_GROUPS)
		return ENOMEM;
	f->groups[f->n_groups].gid = *gid;
	f->groups[f->n_groups++].lid = lid;
	return 0;
}

int ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	struct fake_qp *f = (struct fake_qp *)qp;

	OWN(QP, qp);
	ENTER_ERR(qp, gid, lid);
	COMMAND_OR(EIO, qp->context);
	if (!fake_in_group(qp, gid, lid))
		return EINVAL;
	f->groups[group_of(f, gid, lid)] = f->groups[f->n_groups - 1];
	f->n_groups--;
	return 0;
}

int ibv_destroy_qp(struct ibv_qp *qp)
{
	OWN(QP, qp);
	ENTER_ERR(qp);
	if (((struct fake_qp *)qp)->n_groups || windows_of(qp))
		return EBUSY;
	free_work(qp);
	drop_recvs(&((struct fake_qp *)qp)->recvs);
	purge(&async_events, qp);
	DESTROY(QP, qp);
	return 0;
}

bool fake_bells;

/* as rxe: what is posted is in memory that the kernel sees, whatever comes of this */
int ring_bell(const struct ibv_context *ctx)
{
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_post_send cmd;
	} bell = { .hdr.command = IB_USER_VERBS_CMD_POST_SEND };

	return fake_bells && write(ctx->cmd_fd, &bell, FAKE_BELL) != FAKE_BELL
		       ? errno
		       : 0;
}

static int queue_sends(struct ibv_qp *qp, struct ibv_send_wr *wr,
		       struct ibv_send_wr **bad_wr)
{
	if (works)
		return work((struct fake_qp *)qp, wr, bad_wr);
	POST_ALL(qp, wr, bad_wr, send);
	return 0;
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr,
		     struct ibv_send_wr **bad_wr)
{
	int err, rung;

	OWN(QP, qp);
	err = ENTER(qp, wr, bad_wr);
	if (err) {
		*bad_wr = wr;
		return err;
	}
	for (struct ibv_send_wr *w = wr; w; w = w->next) {
		check_wr(qp, w);
		if (w->opcode == IBV_WR_BIND_MW)
			KEEP(mw_rkey, w->bind_mw.mw->rkey);
	}
	err = queue_sends(qp, wr, bad_wr);
	rung = ring_bell(qp->context);
	return rung ? rung : err;
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr,
		     struct ibv_recv_wr **bad_wr)
{
	int err;

	OWN(QP, qp);
	err = ENTER(qp, wr, bad_wr);
	if (err) {
		*bad_wr = wr;
		return err;
	}
	if (works)
		return queue_recvs(&((struct fake_qp *)qp)->recvs, wr,
				   ((struct fake_qp *)qp)->cap.max_recv_wr,
				   bad_wr);
	POST_ALL(qp, wr, bad_wr, recv);
	return 0;
}

void qp_ops(struct verbs_context *v)
{
	v->context.ops.post_send = post_send;
	v->context.ops.post_recv = post_recv;
	v->modify_qp_rate_limit = modify_qp_rate_limit;
	v->open_qp = open_qp;
	v->create_qp_ex = create_qp_ex;
}
