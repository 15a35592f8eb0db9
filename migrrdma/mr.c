// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Protection domains and memory regions
 */
#include "shadow.h"

/* --- protection domains --- */

/*
 * new_TYPE(), of which each file has one: a shadow that the real object may name, or
 * NULL and ENOMEM. What comes of it: the shadow, or NULL if there is no real object,
 * with errno as that has left it.
 */

static struct shadow_pd *new_pd(struct ibv_context *ctx)
{
	struct shadow_pd *s = calloc(1, sizeof(*s));

	if (s)
		s->pd.context = ctx;
	else
		errno = ENOMEM;
	return s;
}

static struct ibv_pd *made_pd(struct shadow_pd *s, struct ibv_pd *pd)
{
	if (!pd) {
		free(s);
		return NULL;
	}
	s->real = pd;
	s->pd.handle = pd->handle;
	return &s->pd;
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *ctx)
{
	struct shadow_pd *s;

	if (!is_shadow(ctx))
		return real()->ibv_alloc_pd(ctx);

	s = new_pd(ctx);
	return s ? made_pd(s, real()->ibv_alloc_pd(real_context(ctx))) : NULL;
}

struct ibv_pd *ibv_import_pd(struct ibv_context *ctx, uint32_t pd_handle)
{
	struct shadow_pd *s;

	if (!is_shadow(ctx))
		return real()->ibv_import_pd(ctx, pd_handle);

	s = new_pd(ctx);
	return s ? made_pd(s,
			   real()->ibv_import_pd(real_context(ctx), pd_handle))
		 : NULL;
}

/* an application's allocator is asked for its own parent domain */
static void *alloc_for(struct ibv_pd *pd, void *shadow, size_t size,
		       size_t alignment, uint64_t resource_type)
{
	struct shadow_pd *s = shadow;

	(void)pd;
	return s->alloc(&s->pd, s->pd_context, size, alignment, resource_type);
}

static void free_for(struct ibv_pd *pd, void *shadow, void *ptr,
		     uint64_t resource_type)
{
	struct shadow_pd *s = shadow;

	(void)pd;
	s->free(&s->pd, s->pd_context, ptr, resource_type);
}

struct ibv_pd *
shadow_alloc_parent_domain(struct ibv_context *ctx,
			   struct ibv_parent_domain_init_attr *attr)
{
	struct ibv_parent_domain_init_attr a = *attr;
	struct shadow_context *c = to_context(ctx);
	struct shadow_pd *s = new_pd(ctx);

	if (!s)
		return NULL;
	a.pd = real_pd(attr->pd);
	s->has_td = attr->td;
	if (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT)
		s->pd_context = attr->pd_context;
	if (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS) {
		s->alloc = attr->alloc;
		s->free = attr->free;
		a.alloc = attr->alloc ? alloc_for : NULL;
		a.free = attr->free ? free_for : NULL;
		a.comp_mask |= IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;
		a.pd_context = s;
	}
	return made_pd(s, c->real_verbs->alloc_parent_domain(c->real, &a));
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
	bool shadow = is_shadow(pd->context);
	int err = real()->ibv_dealloc_pd(real_pd(pd));

	if (!err && shadow)
		free(to_pd(pd));
	return err;
}

void ibv_unimport_pd(struct ibv_pd *pd)
{
	bool shadow = is_shadow(pd->context);

	real()->ibv_unimport_pd(real_pd(pd));
	if (shadow)
		free(to_pd(pd));
}

/* --- memory regions --- */

static struct shadow_mr *new_mr(struct ibv_pd *pd)
{
	struct shadow_mr *s = calloc(1, sizeof(*s));

	if (s) {
		s->mr.context = pd->context;
		s->mr.pd = pd;
	} else {
		errno = ENOMEM;
	}
	return s;
}

static void copy_mr(struct shadow_mr *s)
{
	s->mr.addr = s->real->addr;
	s->mr.length = s->real->length;
	s->mr.handle = s->real->handle;
	s->mr.lkey = s->real->lkey;
	s->mr.rkey = s->real->rkey;
}

static struct ibv_mr *made_mr(struct shadow_mr *s, struct ibv_mr *mr)
{
	if (!mr) {
		free(s);
		return NULL;
	}
	s->real = mr;
	copy_mr(s);
	return &s->mr;
}

/* the verb that makes a region, with the real PD, of which the rest is the same */
#define MAKE_MR(function, pd, ...)                                        \
	do {                                                              \
		struct shadow_mr *s;                                      \
                                                                          \
		if (!is_shadow((pd)->context))                            \
			return function(pd, __VA_ARGS__);                 \
		s = new_mr(pd);                                           \
		return s ? made_mr(s, function(real_pd(pd), __VA_ARGS__)) \
			 : NULL;                                          \
	} while (0)

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length,
			  int access)
{
	MAKE_MR(real()->ibv_reg_mr, pd, addr, length, access);
}

struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length,
			       uint64_t iova, int access)
{
	MAKE_MR(real()->ibv_reg_mr_iova, pd, addr, length, iova, access);
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length,
				uint64_t iova, unsigned int access)
{
	MAKE_MR(real()->ibv_reg_mr_iova2, pd, addr, length, iova, access);
}

struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset,
				 size_t length, uint64_t iova, int fd,
				 int access)
{
	MAKE_MR(real()->ibv_reg_dmabuf_mr, pd, offset, length, iova, fd,
		access);
}

struct ibv_mr *ibv_import_mr(struct ibv_pd *pd, uint32_t mr_handle)
{
	MAKE_MR(real()->ibv_import_mr, pd, mr_handle);
}

struct ibv_mr *shadow_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm,
				uint64_t dm_offset, size_t length,
				unsigned int access)
{
	MAKE_MR(to_context(pd->context)->real_verbs->reg_dm_mr, pd, dm,
		dm_offset, length, access);
}

struct ibv_mr *shadow_alloc_null_mr(struct ibv_pd *pd)
{
	struct shadow_mr *s = new_mr(pd);

	if (!s)
		return NULL;
	return made_mr(s, to_context(pd->context)
				  ->real_verbs->alloc_null_mr(real_pd(pd)));
}

int ibv_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr,
		 size_t length, int access)
{
	struct shadow_mr *s = to_mr(mr);
	bool moves =
		flags & IBV_REREG_MR_CHANGE_PD; /* else @pd may be anything */
	int err;

	if (!is_shadow(mr->context))
		return real()->ibv_rereg_mr(mr, flags, pd, addr, length,
					    access);

	err = real()->ibv_rereg_mr(s->real, flags, moves ? real_pd(pd) : NULL,
				   addr, length, access);
	/* whatever it says, the real one knows what is left */
	copy_mr(s);
	if (moves && s->real->pd == real_pd(pd))
		mr->pd = pd;
	return err;
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
	bool shadow = is_shadow(mr->context);
	int err = real()->ibv_dereg_mr(real_mr(mr));

	if (!err && shadow)
		free(to_mr(mr));
	return err;
}

void ibv_unimport_mr(struct ibv_mr *mr)
{
	bool shadow = is_shadow(mr->context);

	real()->ibv_unimport_mr(real_mr(mr));
	if (shadow)
		free(to_mr(mr));
}

int shadow_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice,
		     uint32_t flags, struct ibv_sge *sg_list, uint32_t num_sges)
{
	return to_context(pd->context)
		->real_verbs->advise_mr(real_pd(pd), advice, flags, sg_list,
					num_sges);
}
