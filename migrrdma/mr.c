// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Protection domains and memory regions
 */
#include "bound.h"
#include "gate.h"
#include "names.h"
#include "spares.h"

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
	LINK(to_context(s->pd.context), pds, s);
	return &s->pd;
}

/* an application's allocator is asked for its own parent domain */
static void *alloc_for(struct ibv_pd *pd, void *shadow, size_t size,
		       size_t alignment, uint64_t resource_type)
{
	struct shadow_pd *s = shadow;

	(void)pd;
	return s->parent.alloc(&s->pd, s->parent.pd_context, size, alignment,
			       resource_type);
}

static void free_for(struct ibv_pd *pd, void *shadow, void *ptr,
		     uint64_t resource_type)
{
	struct shadow_pd *s = shadow;

	(void)pd;
	s->parent.free(&s->pd, s->parent.pd_context, ptr, resource_type);
}

struct ibv_pd *pd_make(struct shadow_pd *s)
{
	struct ibv_context *ctx = coming_context(s->pd.context);
	struct ibv_parent_domain_init_attr a = s->parent;

	if (!a.pd)
		return real()->ibv_alloc_pd(ctx);
	a.pd = coming_pd(a.pd);
	if (a.comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS) {
		a.alloc = a.alloc ? alloc_for : NULL;
		a.free = a.free ? free_for : NULL;
		a.comp_mask |= IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT;
		a.pd_context = s;
	}
	return verbs_get_ctx(ctx)->alloc_parent_domain(ctx, &a);
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *ctx)
{
	struct shadow_pd *s;

	if (!is_shadow(ctx))
		return real()->ibv_alloc_pd(ctx);

	s = new_pd(ctx);
	return s ? GATED(made_pd(s, pd_make(s))) : NULL;
}

struct ibv_pd *
shadow_alloc_parent_domain(struct ibv_context *ctx,
			   struct ibv_parent_domain_init_attr *attr)
{
	struct shadow_pd *s = new_pd(ctx);

	if (!s)
		return NULL;
	s->parent = *attr;
	if (!(attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT))
		s->parent.pd_context = NULL;
	return GATED(made_pd(s, pd_make(s)));
}

struct ibv_pd *ibv_import_pd(struct ibv_context *ctx, uint32_t pd_handle)
{
	struct shadow_pd *s;

	if (!is_shadow(ctx))
		return real()->ibv_import_pd(ctx, pd_handle);

	s = new_pd(ctx);
	if (!s)
		return NULL;
	s->imported = true;
	return GATED(made_pd(s, real()->ibv_import_pd(real_context(ctx),
						      pd_handle)));
}

static int dealloc_pd(struct shadow_pd *s)
{
	int err = real()->ibv_dealloc_pd(s->real);

	if (!err)
		UNLINK(to_context(s->pd.context), pds, s);
	return err;
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
	int err;

	if (!is_shadow(pd->context))
		return real()->ibv_dealloc_pd(pd);
	err = GATED(dealloc_pd(to_pd(pd)));
	if (!err)
		free(to_pd(pd));
	return err;
}

void ibv_unimport_pd(struct ibv_pd *pd)
{
	if (!is_shadow(pd->context)) {
		real()->ibv_unimport_pd(pd);
		return;
	}
	gate_enter();
	real()->ibv_unimport_pd(real_pd(pd));
	UNLINK(to_context(pd->context), pds, to_pd(pd));
	gate_leave();
	free(to_pd(pd));
}

/* --- memory regions --- */

static struct shadow_mr *new_mr(struct ibv_pd *pd, enum mr_kind kind)
{
	struct shadow_mr *s = calloc(1, sizeof(*s));

	if (s) {
		s->mr.context = pd->context;
		s->mr.pd = pd;
		s->kind = kind;
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
}

/* its names, and its place in the list */
static int list_mr(struct shadow_mr *s)
{
	struct shadow_context *c = to_context(s->mr.context);
	int err;

	pthread_mutex_lock(&c->lock);
	err = names_mr(s);
	if (!err)
		TAILQ_INSERT_TAIL(&c->mrs, s, entry);
	pthread_mutex_unlock(&c->lock);
	return err;
}

static int drop_spare(void *mr)
{
	return real()->ibv_dereg_mr(mr);
}

static void drop_real(struct shadow_mr *s)
{
	if (s->kind == MR_IMPORTED)
		real()->ibv_unimport_mr(s->real);
	else
		real()->ibv_dereg_mr(s->real);
	s->real = NULL;
}

/*
 * It is that one, if its keys can be had. If not, is another one to be made? A device that
 * gives them out in turn has one after as many as there are names; one that is imported
 * has the same keys always. Each spare one counts as much as it, of what a process may pin.
 */
static bool try_mr(struct shadow_mr *s, struct ibv_mr *mr,
		   struct spares *spares)
{
	bool again;
	int err;

	s->real = mr;
	if (!mr) {
		again = spares->n;
		spares_drop(spares, drop_spare);
		return again;
	}
	err = list_mr(s);
	again = err == EEXIST && s->kind != MR_IMPORTED &&
		spares->tries++ < names_told();
	if (!again || !spares_have_room(spares))
		spares_drop(spares, drop_spare);
	if (again && spares->room) {
		spares->of[spares->n++] = mr;
	} else if (err) {
		drop_real(s);
		errno = err == EEXIST ? ENOMEM : err;
	}
	return again;
}

static struct ibv_mr *made_mr(struct shadow_mr *s)
{
	if (!s->real) {
		free(s);
		return NULL;
	}
	copy_mr(s);
	if (s->kind != MR_MEMORY || s->iova != (uintptr_t)s->real->addr)
		atomic_store(&to_context(s->mr.context)->has_iovas, true);
	return &s->mr;
}

#define TRIED_MR(s, call)                         \
	({                                        \
		struct spares spares_ = {};       \
                                                  \
		while (try_mr(s, call, &spares_)) \
			;                         \
		made_mr(s);                       \
	})

/* of memory; all that there are ways to ask for */
struct ibv_mr *mr_make(struct shadow_mr *s)
{
	return real()->ibv_reg_mr_iova2(coming_pd(s->mr.pd), s->mr.addr,
					s->mr.length, s->iova, s->access);
}

/*
 * the verb that makes a region, with the real PD, of which the rest is the same; and
 * what is remembered of it
 */
#define MAKE_MR(kind_, iova_, access_, function, pd, ...)                      \
	do {                                                                   \
		struct shadow_mr *s;                                           \
                                                                               \
		if (!is_shadow((pd)->context))                                 \
			return function(pd, __VA_ARGS__);                      \
		s = new_mr(pd, kind_);                                         \
		if (!s)                                                        \
			return NULL;                                           \
		s->iova = iova_;                                               \
		s->access = access_;                                           \
		return GATED(TRIED_MR(s, function(real_pd(pd), __VA_ARGS__))); \
	} while (0)

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length,
			  int access)
{
	MAKE_MR(MR_MEMORY, (uintptr_t)addr, (unsigned int)access,
		real()->ibv_reg_mr, pd, addr, length, access);
}

struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length,
			       uint64_t iova, int access)
{
	MAKE_MR(MR_MEMORY, iova, (unsigned int)access, real()->ibv_reg_mr_iova,
		pd, addr, length, iova, access);
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length,
				uint64_t iova, unsigned int access)
{
	MAKE_MR(MR_MEMORY, iova, access, real()->ibv_reg_mr_iova2, pd, addr,
		length, iova, access);
}

struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset,
				 size_t length, uint64_t iova, int fd,
				 int access)
{
	MAKE_MR(MR_DMABUF, 0, 0, real()->ibv_reg_dmabuf_mr, pd, offset, length,
		iova, fd, access);
}

struct ibv_mr *ibv_import_mr(struct ibv_pd *pd, uint32_t mr_handle)
{
	MAKE_MR(MR_IMPORTED, 0, 0, real()->ibv_import_mr, pd, mr_handle);
}

struct ibv_mr *shadow_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm,
				uint64_t dm_offset, size_t length,
				unsigned int access)
{
	MAKE_MR(MR_DM, 0, 0, to_context(pd->context)->real_verbs->reg_dm_mr, pd,
		dm, dm_offset, length, access);
}

struct ibv_mr *shadow_alloc_null_mr(struct ibv_pd *pd)
{
	struct shadow_mr *s = new_mr(pd, MR_NULL);

	if (!s)
		return NULL;
	return GATED(
		TRIED_MR(s, to_context(pd->context)
				    ->real_verbs->alloc_null_mr(real_pd(pd))));
}

/*
 * Whatever it says, the real one knows what is left. Its names are others if its keys are;
 * if it cannot have these it is of no use any more, as after any command that has failed.
 */
static int rereg_mr(struct shadow_mr *s, int flags, struct ibv_pd *pd,
		    void *addr, size_t length, int access)
{
	struct shadow_context *c = to_context(s->mr.context);
	bool moves =
		flags & IBV_REREG_MR_CHANGE_PD; /* else @pd may be anything */
	uint32_t lkey = s->real->lkey, rkey = s->real->rkey;
	int err =
		real()->ibv_rereg_mr(s->real, flags, moves ? real_pd(pd) : NULL,
				     addr, length, access);
	int unnamed = 0;

	pthread_mutex_lock(&c->lock); /* others may tell of it meanwhile */
	copy_mr(s);
	if (s->real->lkey != lkey || s->real->rkey != rkey) {
		names_drop_mr(s);
		unnamed = names_mr(s);
	}
	if (err != IBV_REREG_MR_ERR_INPUT)
		bound_doubt_mr(s);
	if (moves && s->real->pd == real_pd(pd))
		s->mr.pd = pd;
	if (!err || err == IBV_REREG_MR_ERR_DO_FORK_OLD) {
		if (flags & IBV_REREG_MR_CHANGE_TRANSLATION)
			s->iova = (uintptr_t)addr;
		if (flags & IBV_REREG_MR_CHANGE_ACCESS)
			s->access = (unsigned int)access;
	}
	pthread_mutex_unlock(&c->lock);
	if (unnamed) {
		errno = unnamed;
		err = IBV_REREG_MR_ERR_CMD;
	}
	return err;
}

int ibv_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr,
		 size_t length, int access)
{
	if (!is_shadow(mr->context))
		return real()->ibv_rereg_mr(mr, flags, pd, addr, length,
					    access);
	return GATED(rereg_mr(to_mr(mr), flags, pd, addr, length, access));
}

static void unlist_mr(struct shadow_mr *s)
{
	struct shadow_context *c = to_context(s->mr.context);

	pthread_mutex_lock(&c->lock);
	TAILQ_REMOVE(&c->mrs, s, entry);
	names_drop_mr(s);
	bound_forget_mr(s);
	pthread_mutex_unlock(&c->lock);
}

static int dereg_mr(struct shadow_mr *s)
{
	int err = real()->ibv_dereg_mr(s->real);

	if (!err)
		unlist_mr(s);
	return err;
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
	int err;

	if (!is_shadow(mr->context))
		return real()->ibv_dereg_mr(mr);
	err = GATED(dereg_mr(to_mr(mr)));
	if (!err)
		free(to_mr(mr));
	return err;
}

void ibv_unimport_mr(struct ibv_mr *mr)
{
	if (!is_shadow(mr->context)) {
		real()->ibv_unimport_mr(mr);
		return;
	}
	gate_enter();
	real()->ibv_unimport_mr(real_mr(mr));
	unlist_mr(to_mr(mr));
	gate_leave();
	free(to_mr(mr));
}

int shadow_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice,
		     uint32_t flags, struct ibv_sge *sg_list, uint32_t num_sges)
{
	return GATED(to_context(pd->context)
			     ->real_verbs->advise_mr(real_pd(pd), advice, flags,
						     sg_list, num_sges));
}
