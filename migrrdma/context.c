// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Contexts: their tables of functions, which inline verbs go through, their events, and
 * what is asked of a device.
 */
#include "control.h"
#include "events.h"
#include "gate.h"
#include "names.h"
#include "slots.h"

/* --- tables --- */

static int query_port(struct ibv_context *ctx, uint8_t port_num,
		      struct ibv_port_attr *attr, size_t attr_len)
{
	struct shadow_context *s = to_context(ctx);

	return GATED(
		s->real_verbs->query_port(s->real, port_num, attr, attr_len));
}

static int query_device_ex(struct ibv_context *ctx,
			   const struct ibv_query_device_ex_input *input,
			   struct ibv_device_attr_ex *attr, size_t attr_size)
{
	struct shadow_context *s = to_context(ctx);

	return GATED(s->real_verbs->query_device_ex(s->real, input, attr,
						    attr_size));
}

static int query_rt_values(struct ibv_context *ctx,
			   struct ibv_values_ex *values)
{
	struct shadow_context *s = to_context(ctx);

	return GATED(s->real_verbs->query_rt_values(s->real, values));
}

/*
 * The following objects have no shadow: the application gets the real one, which leads to
 * the real context, so what is made of a shadow is all there is to interpose.
 */

/* a context that has had one is not replaced: nobody says when it is gone */
static void *note(struct shadow_context *s, const char *what, void *object)
{
	if (object)
		s->foreign = what;
	return object;
}

static struct ibv_xrcd *open_xrcd(struct ibv_context *ctx,
				  struct ibv_xrcd_init_attr *attr)
{
	struct shadow_context *s = to_context(ctx);

	return GATED(note(s, "an XRC domain",
			  s->real_verbs->open_xrcd(s->real, attr)));
}

static struct ibv_td *alloc_td(struct ibv_context *ctx,
			       struct ibv_td_init_attr *attr)
{
	struct shadow_context *s = to_context(ctx);

	return GATED(note(s, "a thread domain",
			  s->real_verbs->alloc_td(s->real, attr)));
}

static struct ibv_dm *alloc_dm(struct ibv_context *ctx,
			       struct ibv_alloc_dm_attr *attr)
{
	struct shadow_context *s = to_context(ctx);

	return GATED(note(s, "device memory",
			  s->real_verbs->alloc_dm(s->real, attr)));
}

static struct ibv_counters *create_counters(struct ibv_context *ctx,
					    struct ibv_counters_init_attr *attr)
{
	struct shadow_context *s = to_context(ctx);

	return GATED(note(s, "counters",
			  s->real_verbs->create_counters(s->real, attr)));
}

static struct ibv_flow_action *
create_flow_action_esp(struct ibv_context *ctx,
		       struct ibv_flow_action_esp_attr *attr)
{
	struct shadow_context *s = to_context(ctx);

	return GATED(
		note(s, "a flow action",
		     s->real_verbs->create_flow_action_esp(s->real, attr)));
}

static struct ibv_flow *create_flow(struct ibv_qp *qp,
				    struct ibv_flow_attr *attr)
{
	struct shadow_context *s = to_context(qp->context);

	return GATED_WITH(to_qp(qp),
			  note(s, "a flow",
			       s->real_verbs->ibv_create_flow(to_qp(qp)->real,
							      attr)));
}

static struct ibv_wq *create_wq(struct ibv_context *ctx,
				struct ibv_wq_init_attr *attr)
{
	struct shadow_context *s = to_context(ctx);
	struct ibv_wq_init_attr a = *attr;
	struct ibv_wq *wq;

	gate_enter();
	a.pd = real_pd(attr->pd);
	a.cq = real_cq(attr->cq);
	wq = note(s, "a work queue", s->real_verbs->create_wq(s->real, &a));
	gate_leave();
	attr->max_wr = a.max_wr;
	attr->max_sge = a.max_sge;
	return wq;
}

static struct ibv_rwq_ind_table *
create_rwq_ind_table(struct ibv_context *ctx,
		     struct ibv_rwq_ind_table_init_attr *attr)
{
	struct shadow_context *s = to_context(ctx);

	return GATED(note(s, "an indirection table",
			  s->real_verbs->create_rwq_ind_table(s->real, attr)));
}

/* Verbs of these objects find the real context and need no entry here. */
static void init_tables(struct shadow_context *s)
{
	struct verbs_context *v = &s->verbs;
	struct verbs_context *r = s->real_verbs;

	v->context.ops = (struct ibv_context_ops){
		.poll_cq = shadow_poll_cq,
		.req_notify_cq = shadow_req_notify_cq,
		.post_srq_recv = shadow_post_srq_recv,
		.post_send = shadow_post_send,
		.post_recv = shadow_post_recv,
	};
	if (s->real->ops.alloc_mw) {
		v->context.ops.alloc_mw = shadow_alloc_mw;
		v->context.ops.dealloc_mw = shadow_dealloc_mw;
		v->context.ops.bind_mw = shadow_bind_mw;
	}
	if (!r)
		return;

	v->context.abi_compat = __VERBS_ABI_IS_EXTENDED;
	v->sz = r->sz < sizeof(*v) ? r->sz : sizeof(*v);

/* what the real context has not is not supported, and has no function */
#define OFFER(op, function)                        \
	do {                                       \
		if (verbs_get_ctx_op(s->real, op)) \
			v->op = function;          \
	} while (0)
	OFFER(query_port, query_port);
	OFFER(query_device_ex, query_device_ex);
	OFFER(query_rt_values, query_rt_values);
	OFFER(open_xrcd, open_xrcd);
	OFFER(alloc_td, alloc_td);
	OFFER(alloc_dm, alloc_dm);
	OFFER(create_counters, create_counters);
	OFFER(create_flow_action_esp, create_flow_action_esp);
	OFFER(ibv_create_flow, create_flow);
	OFFER(create_wq, create_wq);
	OFFER(create_rwq_ind_table, create_rwq_ind_table);
	OFFER(alloc_parent_domain, shadow_alloc_parent_domain);
	OFFER(advise_mr, shadow_advise_mr);
	OFFER(alloc_null_mr, shadow_alloc_null_mr);
	OFFER(reg_dm_mr, shadow_reg_dm_mr);
	OFFER(create_cq_ex, shadow_create_cq_ex);
	OFFER(modify_cq, shadow_modify_cq);
	OFFER(create_srq_ex, shadow_create_srq_ex);
	OFFER(get_srq_num, shadow_get_srq_num);
	OFFER(post_srq_ops, shadow_post_srq_ops);
	OFFER(create_qp_ex, shadow_create_qp_ex);
	OFFER(open_qp, shadow_open_qp);
	OFFER(modify_qp_rate_limit, shadow_modify_qp_rate_limit);
#undef OFFER
}

/* --- open and close --- */

static void init_lists(struct shadow_context *s)
{
	pthread_mutex_init(&s->verbs.context.mutex, NULL);
	pthread_mutex_init(&s->lock, NULL);
	pthread_mutex_init(&s->groups_lock, NULL);
	pthread_mutex_init(&s->carried_lock, NULL);
	TAILQ_INIT(&s->pds);
	TAILQ_INIT(&s->ahs);
	TAILQ_INIT(&s->mrs);
	TAILQ_INIT(&s->mws);
	TAILQ_INIT(&s->channels);
	TAILQ_INIT(&s->cqs);
	TAILQ_INIT(&s->srqs);
	TAILQ_INIT(&s->qps);
	LIST_INIT(&s->slots);
	STAILQ_INIT(&s->carried);
}

static void free_context(struct shadow_context *s)
{
	free(s->gids);
	free(s->windows);
	names_free(s->windows_at);
	pthread_mutex_destroy(&s->carried_lock);
	pthread_mutex_destroy(&s->groups_lock);
	pthread_mutex_destroy(&s->lock);
	pthread_mutex_destroy(&s->verbs.context.mutex);
	free(s);
}

static int open_real(struct shadow_context *s, struct ibv_device *device)
{
	struct ibv_context *ctx = &s->verbs.context;
	int err = 0;

	s->real = device_open(device);
	if (!s->real)
		return errno;
	ctx->device = device;
	ctx->cmd_fd = s->real->cmd_fd;
	ctx->async_fd = s->real->async_fd;
	ctx->num_comp_vectors = s->real->num_comp_vectors;
	if (control_is_on()) {
		err = relay_open(&s->async, s->real->async_fd);
		ctx->async_fd = s->async.fd;
	}
	if (err)
		real()->ibv_close_device(s->real);
	return err;
}

static struct ibv_context *open_device(struct ibv_device *device,
				       struct shadow_device *d)
{
	struct shadow_context *s = calloc(1, sizeof(*s));
	int err;

	if (!s) {
		errno = ENOMEM;
		return NULL;
	}
	init_lists(s);
	err = open_real(s, device);
	if (err) {
		free_context(s);
		errno = err;
		return NULL;
	}
	s->device = shadow_device_get(d);
	s->real_verbs = verbs_get_ctx(s->real);
	init_tables(s);
	gate_add_context(s);
	return &s->verbs.context;
}

static int close_device(struct shadow_context *s)
{
	int err;

	gate_remove_context(s); /* before another one has its file's number */
	err = real()->ibv_close_device(s->real);
	if (err)
		gate_add_context(s);
	return err;
}

struct ibv_context *ibv_open_device(struct ibv_device *device)
{
	struct shadow_device *d = to_device(device);

	if (!d)
		return real()->ibv_open_device(device);

	control_start();
	return GATED(open_device(device, d));
}

int ibv_close_device(struct ibv_context *ctx)
{
	struct shadow_context *s;
	int err;

	if (!is_shadow(ctx))
		return real()->ibv_close_device(ctx);
	s = to_context(ctx);
	err = GATED_WITH(s, close_device(s));
	if (err)
		return err;

	if (control_is_on()) {
		events_forget_async(s);
		relay_close(&s->async);
	}
	slots_free_retired(s);
	names_free(s->keys);
	names_free(s->qpns);
	shadow_device_put(s->device);
	free_context(s);
	return 0;
}

/* --- what is asked of a device --- */

int ibv_query_device(struct ibv_context *ctx, struct ibv_device_attr *attr)
{
	if (!is_shadow(ctx))
		return real()->ibv_query_device(ctx, attr);
	return GATED(real()->ibv_query_device(real_context(ctx), attr));
}

int ibv_query_port(struct ibv_context *ctx, uint8_t port_num,
		   struct _compat_ibv_port_attr *attr)
{
	if (!is_shadow(ctx))
		return real()->ibv_query_port(ctx, port_num, attr);
	return GATED(real()->ibv_query_port(real_context(ctx), port_num, attr));
}

int ibv_query_gid(struct ibv_context *ctx, uint8_t port_num, int index,
		  union ibv_gid *gid)
{
	if (!is_shadow(ctx))
		return real()->ibv_query_gid(ctx, port_num, index, gid);
	return GATED(
		real()->ibv_query_gid(real_context(ctx), port_num, index, gid));
}

int _ibv_query_gid_ex(struct ibv_context *ctx, uint32_t port_num,
		      uint32_t gid_index, struct ibv_gid_entry *entry,
		      uint32_t flags, size_t entry_size)
{
	if (!is_shadow(ctx))
		return real()->_ibv_query_gid_ex(ctx, port_num, gid_index,
						 entry, flags, entry_size);
	return GATED(real()->_ibv_query_gid_ex(real_context(ctx), port_num,
					       gid_index, entry, flags,
					       entry_size));
}

ssize_t _ibv_query_gid_table(struct ibv_context *ctx,
			     struct ibv_gid_entry *entries, size_t max_entries,
			     uint32_t flags, size_t entry_size)
{
	if (!is_shadow(ctx))
		return real()->_ibv_query_gid_table(ctx, entries, max_entries,
						    flags, entry_size);
	return GATED(real()->_ibv_query_gid_table(real_context(ctx), entries,
						  max_entries, flags,
						  entry_size));
}

int ibv_query_pkey(struct ibv_context *ctx, uint8_t port_num, int index,
		   __be16 *pkey)
{
	if (!is_shadow(ctx))
		return real()->ibv_query_pkey(ctx, port_num, index, pkey);
	return GATED(real()->ibv_query_pkey(real_context(ctx), port_num, index,
					    pkey));
}

int ibv_get_pkey_index(struct ibv_context *ctx, uint8_t port_num, __be16 pkey)
{
	if (!is_shadow(ctx))
		return real()->ibv_get_pkey_index(ctx, port_num, pkey);
	return GATED(
		real()->ibv_get_pkey_index(real_context(ctx), port_num, pkey));
}

struct ibv_dm *ibv_import_dm(struct ibv_context *ctx, uint32_t dm_handle)
{
	if (!is_shadow(ctx))
		return real()->ibv_import_dm(ctx, dm_handle);
	return GATED(note(to_context(ctx), "device memory",
			  real()->ibv_import_dm(real_context(ctx), dm_handle)));
}
