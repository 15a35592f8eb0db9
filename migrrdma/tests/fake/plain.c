// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Objects without shadows */
#include "inner.h"

#define MAKE_PLAIN(kind, type, function, attr_type)                     \
	static type *function(struct ibv_context *ctx, attr_type *attr) \
	{                                                               \
		type *p;                                                \
                                                                        \
		OWN(CONTEXT, ctx);                                      \
		ENTER_OR(NULL, ctx, attr);                              \
		p = make(FAKE_##kind, sizeof(*p));                      \
		p->context = ctx;                                       \
		return p;                                               \
	}
#define DESTROY_PLAIN(kind, type, function) \
	static int function(type *p)        \
	{                                   \
		OWN(kind, p);               \
		ENTER_ERR(p);               \
		OWN(CONTEXT, p->context);   \
		DESTROY(kind, p);           \
		return 0;                   \
	}
MAKE_PLAIN(XRCD, struct ibv_xrcd, open_xrcd, struct ibv_xrcd_init_attr)
DESTROY_PLAIN(XRCD, struct ibv_xrcd, close_xrcd)
MAKE_PLAIN(TD, struct ibv_td, alloc_td, struct ibv_td_init_attr)
DESTROY_PLAIN(TD, struct ibv_td, dealloc_td)
MAKE_PLAIN(DM, struct ibv_dm, alloc_dm, struct ibv_alloc_dm_attr)
DESTROY_PLAIN(DM, struct ibv_dm, free_dm)
MAKE_PLAIN(COUNTERS, struct ibv_counters, create_counters,
	   struct ibv_counters_init_attr)
DESTROY_PLAIN(COUNTERS, struct ibv_counters, destroy_counters)
MAKE_PLAIN(ACTION, struct ibv_flow_action, create_flow_action_esp,
	   struct ibv_flow_action_esp_attr)
DESTROY_PLAIN(ACTION, struct ibv_flow_action, destroy_flow_action)
MAKE_PLAIN(RWQ, struct ibv_rwq_ind_table, make_rwq_ind_table,
	   struct ibv_rwq_ind_table_init_attr)
DESTROY_PLAIN(RWQ, struct ibv_rwq_ind_table, destroy_rwq_ind_table)
DESTROY_PLAIN(FLOW, struct ibv_flow, destroy_flow)
DESTROY_PLAIN(WQ, struct ibv_wq, destroy_wq)

struct ibv_dm *ibv_import_dm(struct ibv_context *ctx, uint32_t dm_handle)
{
	struct ibv_dm *dm;

	OWN(CONTEXT, ctx);
	ENTER_OR(NULL, ctx, dm_handle);
	dm = make(FAKE_DM, sizeof(*dm));
	dm->context = ctx;
	return dm;
}

void ibv_unimport_dm(struct ibv_dm *dm)
{
	ENTER(dm);
	DESTROY(DM, dm);
}

static int modify_flow_action_esp(struct ibv_flow_action *action,
				  struct ibv_flow_action_esp_attr *attr)
{
	OWN(ACTION, action);
	ENTER_ERR(action, attr);
	return 0;
}

static int read_counters(struct ibv_counters *counters, uint64_t *value,
			 uint32_t n, uint32_t flags)
{
	OWN(COUNTERS, counters);
	ENTER_ERR(counters, value, n, flags);
	return 0;
}

static int attach_counters_point_flow(struct ibv_counters *counters,
				      struct ibv_counter_attach_attr *attr,
				      struct ibv_flow *flow)
{
	OWN(COUNTERS, counters);
	OWN_OR_NULL(FLOW, flow);
	ENTER_ERR(counters, attr, flow);
	return 0;
}

static struct ibv_flow *create_flow(struct ibv_qp *qp,
				    struct ibv_flow_attr *attr)
{
	struct ibv_flow *flow;

	OWN(QP, qp);
	ENTER_OR(NULL, qp, attr);
	flow = make(FAKE_FLOW, sizeof(*flow));
	flow->context = qp->context;
	return flow;
}

static int wq_post_recv(struct ibv_wq *wq, struct ibv_recv_wr *wr,
			struct ibv_recv_wr **bad_wr)
{
	OWN(WQ, wq);
	ENTER_ERR(wq, wr, bad_wr);
	return 0;
}

static struct ibv_wq *create_wq(struct ibv_context *ctx,
				struct ibv_wq_init_attr *attr)
{
	struct ibv_wq *wq;

	OWN(CONTEXT, ctx);
	OWN(PD, attr->pd);
	OWN(CQ, attr->cq);
	KEEP(wq, *attr);
	attr->max_wr *= 2;
	attr->max_sge *= 2;
	ENTER_OR(NULL, ctx);
	wq = make(FAKE_WQ, sizeof(*wq));
	wq->context = ctx;
	wq->pd = attr->pd;
	wq->cq = attr->cq;
	wq->wq_num = new_handle();
	wq->post_recv = wq_post_recv;
	return wq;
}

static int modify_wq(struct ibv_wq *wq, struct ibv_wq_attr *attr)
{
	OWN(WQ, wq);
	ENTER_ERR(wq, attr);
	return 0;
}

static struct ibv_rwq_ind_table *
create_rwq_ind_table(struct ibv_context *ctx,
		     struct ibv_rwq_ind_table_init_attr *attr)
{
	for (int i = 0; i < 1 << attr->log_ind_tbl_size; i++)
		OWN(WQ, attr->ind_tbl[i]);
	return make_rwq_ind_table(ctx, attr);
}

void plain_ops(struct verbs_context *v)
{
	v->read_counters = read_counters;
	v->attach_counters_point_flow = attach_counters_point_flow;
	v->create_counters = create_counters;
	v->destroy_counters = destroy_counters;
	v->alloc_dm = alloc_dm;
	v->free_dm = free_dm;
	v->modify_flow_action_esp = modify_flow_action_esp;
	v->destroy_flow_action = destroy_flow_action;
	v->create_flow_action_esp = create_flow_action_esp;
	v->dealloc_td = dealloc_td;
	v->alloc_td = alloc_td;
	v->destroy_rwq_ind_table = destroy_rwq_ind_table;
	v->create_rwq_ind_table = create_rwq_ind_table;
	v->destroy_wq = destroy_wq;
	v->modify_wq = modify_wq;
	v->create_wq = create_wq;
	v->open_xrcd = open_xrcd;
	v->close_xrcd = close_xrcd;
	v->ibv_create_flow = create_flow;
	v->ibv_destroy_flow = destroy_flow;
}
