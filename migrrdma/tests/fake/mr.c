// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* PDs, MRs and AHs */
#define _GNU_SOURCE
#include "inner.h"

#include <errno.h>
#include <unistd.h>

#undef ibv_reg_mr
#undef ibv_reg_mr_iova

struct fake_pd {
	struct ibv_pd pd;
	bool imported;
	struct ibv_parent_domain_init_attr parent;
};

static struct fake_pd *new_pd(struct ibv_context *ctx)
{
	struct fake_pd *pd = make(FAKE_PD, sizeof(*pd));

	pd->pd.context = ctx;
	pd->pd.handle = new_handle();
	return pd;
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *ctx)
{
	OWN(CONTEXT, ctx);
	ENTER_OR(NULL, ctx);
	COMMAND_OR(NULL, ctx);
	return &new_pd(ctx)->pd;
}

struct ibv_pd *ibv_import_pd(struct ibv_context *ctx, uint32_t pd_handle)
{
	struct fake_pd *pd;

	OWN(CONTEXT, ctx);
	ENTER_OR(NULL, ctx, pd_handle);
	pd = new_pd(ctx);
	pd->imported = true;
	pd->pd.handle = pd_handle;
	return &pd->pd;
}

void ibv_unimport_pd(struct ibv_pd *pd)
{
	OWN(PD, pd);
	ENTER(pd);
	if (!((struct fake_pd *)pd)->imported)
		die("%s: this PD was not imported", __func__);
	DESTROY(PD, pd);
}

static struct ibv_pd *
alloc_parent_domain(struct ibv_context *ctx,
		    struct ibv_parent_domain_init_attr *attr)
{
	struct fake_pd *pd;

	OWN(CONTEXT, ctx);
	OWN(PD, attr->pd);
	OWN_OR_NULL(TD, attr->td);
	KEEP(pd, *attr);
	ENTER_OR(NULL, ctx);
	pd = new_pd(ctx);
	pd->parent = *attr;
	return &pd->pd;
}

void *fake_parent_alloc(struct ibv_pd *real, size_t size, size_t align,
			uint64_t type)
{
	struct fake_pd *pd = (struct fake_pd *)real;

	OWN(PD, real);
	return pd->parent.alloc(real, pd->parent.pd_context, size, align, type);
}

void fake_parent_free(struct ibv_pd *real, void *ptr, uint64_t type)
{
	struct fake_pd *pd = (struct fake_pd *)real;

	OWN(PD, real);
	pd->parent.free(real, pd->parent.pd_context, ptr, type);
}

int ibv_dealloc_pd(struct ibv_pd *pd)
{
	OWN(PD, pd);
	ENTER_ERR(pd);
	if (windows_of(pd))
		return EBUSY;
	DESTROY(PD, pd);
	return 0;
}

bool fake_slow;

static void note_most(void)
{
	unsigned int n = fake_alive(FAKE_MR);

	pthread_mutex_lock(&lock);
	if (n > fake_last.mrs_at_once)
		fake_last.mrs_at_once = n;
	pthread_mutex_unlock(&lock);
}

static struct ibv_mr *new_mr(struct ibv_pd *pd, void *addr, size_t length)
{
	struct ibv_mr *mr = make(FAKE_MR, sizeof(*mr));

	if (fake_slow)
		usleep(1000);
	if (gettid() == getpid())
		fake_last.regions++;
	note_most();

	mr->context = pd->context;
	mr->pd = pd;
	mr->addr = addr;
	mr->length = length;
	mr->handle = new_handle();
	mr->lkey = mr->handle << 8;
	mr->rkey = mr->handle << 8 | 1;
	return mr;
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length,
			  int access)
{
	OWN(PD, pd);
	ENTER_OR(NULL, pd, addr, length, access);
	COMMAND_OR(NULL, pd->context);
	return new_mr(pd, addr, length);
}

struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length,
			       uint64_t iova, int access)
{
	OWN(PD, pd);
	ENTER_OR(NULL, pd, addr, length, iova, access);
	COMMAND_OR(NULL, pd->context);
	return new_mr(pd, addr, length);
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length,
				uint64_t iova, unsigned int access)
{
	OWN(PD, pd);
	ENTER_OR(NULL, pd, addr, length, iova, access);
	COMMAND_OR(NULL, pd->context);
	return new_mr(pd, addr, length);
}

struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset,
				 size_t length, uint64_t iova, int fd,
				 int access)
{
	OWN(PD, pd);
	ENTER_OR(NULL, pd, offset, length, iova, fd, access);
	return new_mr(pd, (void *)(uintptr_t)offset, length);
}

struct ibv_mr *ibv_import_mr(struct ibv_pd *pd, uint32_t mr_handle)
{
	OWN(PD, pd);
	ENTER_OR(NULL, pd, mr_handle);
	return new_mr(pd, NULL, 0);
}

void ibv_unimport_mr(struct ibv_mr *mr)
{
	ENTER(mr);
	DESTROY(MR, mr);
}

static struct ibv_mr *reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm,
				uint64_t dm_offset, size_t length,
				unsigned int access)
{
	OWN(PD, pd);
	OWN(DM, dm);
	ENTER_OR(NULL, pd, dm, dm_offset, length, access);
	return new_mr(pd, NULL, length);
}

static struct ibv_mr *alloc_null_mr(struct ibv_pd *pd)
{
	OWN(PD, pd);
	ENTER_OR(NULL, pd);
	return new_mr(pd, NULL, 0);
}

int ibv_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr,
		 size_t length, int access)
{
	int err;

	OWN(MR, mr);
	if (flags & IBV_REREG_MR_CHANGE_PD)
		OWN(PD, pd);
	err = ENTER(mr, flags, pd, addr, length, access);
	if (err && err != IBV_REREG_MR_ERR_DO_FORK_OLD)
		return err;
	mr->lkey += 0x10;
	mr->rkey += 0x10;
	if (flags & IBV_REREG_MR_CHANGE_PD)
		mr->pd = pd;
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION) {
		mr->addr = addr;
		mr->length = length;
	}
	return err;
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
	OWN(MR, mr);
	ENTER_ERR(mr);
	if (windows_of(mr))
		return EBUSY;
	if (fake_reuses)
		fake_next_handle(mr->handle);
	DESTROY(MR, mr);
	return 0;
}

static int advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice,
		     uint32_t flags, struct ibv_sge *sg_list, uint32_t num_sges)
{
	OWN(PD, pd);
	ENTER_ERR(pd, advice, flags, sg_list, num_sges);
	return 0;
}

struct fake_ah {
	struct ibv_ah ah;
	union ibv_gid dgid;
};

struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct fake_ah *f;

	OWN(PD, pd);
	KEEP(ah, *attr);
	ENTER_OR(NULL, pd, attr->dlid, attr->port_num);
	f = make(FAKE_AH, sizeof(*f));
	f->ah.context = pd->context;
	f->ah.pd = pd;
	f->ah.handle = new_handle();
	f->dgid = attr->grh.dgid;
	return &f->ah;
}

const union ibv_gid *fake_dgid(const struct ibv_ah *real)
{
	OWN(AH, real);
	return &((const struct fake_ah *)real)->dgid;
}

/* in the kernel's table, in which there are no groups */
static int find_gid(const union ibv_gid *gid)
{
	for (int i = 0; i < FAKE_GIDS; i++)
		if (!memcmp(&fake_gids[i].gid, gid, sizeof(*gid)))
			return i;
	errno = ENOENT;
	return -1;
}

static int set_way_back(const struct ibv_grh *grh, struct ibv_ah_attr *attr)
{
	union ibv_gid to = { .raw = { [10] = 0xff, 0xff } }, from = to;
	const uint8_t *ipv4 = (const uint8_t *)grh + 20;
	int index;

	if (*(const uint8_t *)grh >> 4 == 6) {
		to = grh->dgid;
		from = grh->sgid;
	} else {
		memcpy(from.raw + 12, ipv4 + 12, 4);
		memcpy(to.raw + 12, ipv4 + 16, 4);
	}
	index = find_gid(&to);
	if (index < 0)
		return index;
	attr->is_global = 1;
	attr->grh.sgid_index = (uint8_t)index;
	attr->grh.dgid = from;
	return 0;
}

int ibv_init_ah_from_wc(struct ibv_context *ctx, uint8_t port_num,
			struct ibv_wc *wc, struct ibv_grh *grh,
			struct ibv_ah_attr *attr)
{
	OWN(CONTEXT, ctx);
	ENTER_ERR(ctx, port_num, wc, grh);
	memset(attr, 0, sizeof(*attr));
	attr->dlid = wc->slid;
	attr->port_num = port_num;
	return wc->wc_flags & IBV_WC_GRH ? set_way_back(grh, attr) : 0;
}

/* libibverbs calls these two by their names, too */
struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc,
				     struct ibv_grh *grh, uint8_t port_num)
{
	struct ibv_ah_attr attr;
	int err;

	OWN(PD, pd);
	ENTER_OR(NULL, pd, wc, grh, port_num);
	err = ibv_init_ah_from_wc(pd->context, port_num, wc, grh, &attr);
	if (err) {
		errno = err;
		return NULL;
	}
	return ibv_create_ah(pd, &attr);
}

int ibv_destroy_ah(struct ibv_ah *ah)
{
	OWN(AH, ah);
	ENTER_ERR(ah);
	DESTROY(AH, ah);
	return 0;
}

int ibv_resolve_eth_l2_from_gid(struct ibv_context *ctx,
				struct ibv_ah_attr *attr,
				uint8_t eth_mac[ETHERNET_LL_SIZE],
				uint16_t *vid)
{
	OWN(CONTEXT, ctx);
	ENTER_ERR(ctx, attr, eth_mac, vid);
	return 0;
}

void mr_ops(struct verbs_context *v)
{
	v->advise_mr = advise_mr;
	v->alloc_null_mr = alloc_null_mr;
	v->reg_dm_mr = reg_dm_mr;
	v->alloc_parent_domain = alloc_parent_domain;
}
