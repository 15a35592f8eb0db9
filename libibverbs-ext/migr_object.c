// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Single objects: made with the identities of their record, then filled.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rdma/rdma_user_rxe.h>

#include "migr_check.h"
#include "migr_restore.h"

#define N_ELEM(a) (sizeof(a) / sizeof((a)[0]))

int migr_restore_error(struct migr_restore *r, const struct rxe_migr_rec *rec,
		       const char *doing, int ret)
{
	migr_bad(r->err, rec, "%s: %s", doing, migr_errno_text(ret));
	return ret;
}

static int create_error(struct migr_restore *r, const struct rxe_migr_rec *rec,
			const char *identity, int ret)
{
	if (ret == -EBUSY)
		migr_bad(r->err, rec, "%s is taken on this host", identity);
	else if (ret == -ERANGE)
		migr_bad(r->err, rec,
			 "%s is outside the range of this host's device",
			 identity);
	else if (ret == -ENOENT)
		migr_bad(r->err, rec,
			 "the image that was loaded has no such object");
	else
		migr_restore_error(r, rec, identity, ret);
	return ret;
}

/*
 * Did the driver make the ring of the record? Of its answer only the size
 * counts: it is written before the driver sets the wanted offset, which REFILL
 * compares.
 */
static int same_ring(struct migr_restore *r, const struct rxe_migr_rec *rec,
		     const char *name, const struct rxe_migr_ring *ring,
		     const struct mminfo *made)
{
	if (made->size == ring->mmap_size)
		return 0;
	migr_bad(r->err, rec, "%s: the driver made a ring of %u bytes, not %u",
		 name, made->size, ring->mmap_size);
	return -EPROTO;
}

int migr_alloc_pd(int fd, uint32_t *handle)
{
	const struct ib_uverbs_alloc_pd in = {};
	struct ib_uverbs_alloc_pd_resp out = {};
	const struct migr_write cmd = {
		.command = IB_USER_VERBS_CMD_ALLOC_PD,
		.in = &in,
		.in_length = sizeof(in),
		.out = &out,
		.out_length = sizeof(out),
	};
	int ret = migr_write_run(fd, &cmd);

	*handle = out.pd_handle;
	return ret;
}

int migr_free_pd(int fd, uint32_t handle)
{
	const struct ib_uverbs_dealloc_pd in = { .pd_handle = handle };
	const struct migr_write cmd = {
		.command = IB_USER_VERBS_CMD_DEALLOC_PD,
		.in = &in,
		.in_length = sizeof(in),
	};

	return migr_write_run(fd, &cmd);
}

/* Did it get the identity that it asked for? */
static int check_number(struct migr_restore *r, const struct rxe_migr_rec *rec,
			const char *what, uint32_t wanted, uint32_t got)
{
	if (got == wanted)
		return 0;
	migr_bad(r->err, rec, "%s %#x came out as %#x", what, wanted, got);
	return -EPROTO;
}

static int check_handle(struct migr_restore *r, const struct rxe_migr_rec *rec,
			uint32_t handle)
{
	return check_number(r, rec, "handle", rec->handle, handle);
}

static int create_pd(struct migr_restore *r, const struct rxe_migr_rec *rec)
{
	uint32_t handle;
	int ret = migr_alloc_pd(r->fd, &handle);

	if (ret)
		return migr_restore_error(r, rec, "allocation", ret);
	return check_handle(r, rec, handle);
}

/* The file of the CQ's channel, -1: it has none */
static int find_channel(struct migr_restore *r,
			const struct rxe_migr_rec_cq *cq, int *fd)
{
	int *place = NULL;

	*fd = -1;
	if (cq->comp_channel == RXE_MIGR_NO_HANDLE)
		return 0;
	if (r->files)
		place = migr_files_channel(r->files, cq->comp_channel);
	if (place) {
		*fd = *place;
		return 0;
	}
	migr_bad(r->err, &cq->rec,
		 "comp_channel: a CQ with one cannot be restored alone");
	return -EOPNOTSUPP;
}

static int create_cq(struct migr_restore *r, const struct rxe_migr_rec *rec)
{
	const struct rxe_migr_rec_cq *cq = (const void *)rec;
	int channel, ret = find_channel(r, cq, &channel);
	const struct ib_uverbs_create_cq in = {
		.user_handle = rec->user_handle,
		.cqe = cq->cqe,
		/* a hint, and this host may have fewer of them */
		.comp_vector = r->comp_vectors
				       ? cq->comp_vector % r->comp_vectors
				       : cq->comp_vector,
		.comp_channel = channel,
	};
	const struct rxe_migr_restore restore = { .handle = rec->handle };
	struct ib_uverbs_create_cq_resp out = {};
	struct rxe_create_cq_resp ring = {};
	const struct migr_write cmd = {
		.command = IB_USER_VERBS_CMD_CREATE_CQ,
		.in = &in,
		.in_length = sizeof(in),
		.out = &out,
		.out_length = sizeof(out),
		.driver_out = &ring,
		.driver_out_length = sizeof(ring),
		.restore = &restore,
	};
	char identity[48];

	if (ret)
		return ret;
	ret = migr_write_run(r->fd, &cmd);
	if (ret) {
		snprintf(identity, sizeof(identity), "mmap_offset %#llx",
			 (unsigned long long)cq->ring.mmap_offset);
		return create_error(r, rec, identity, ret);
	}
	ret = check_handle(r, rec, out.cq_handle);
	if (!ret)
		ret = same_ring(r, rec, "ring", &cq->ring, &ring.mi);
	return ret;
}

static int create_srq(struct migr_restore *r, const struct rxe_migr_rec *rec)
{
	const struct rxe_migr_rec_srq *srq = (const void *)rec;
	const struct ib_uverbs_create_srq in = {
		.user_handle = rec->user_handle,
		.pd_handle = srq->pd,
		.max_wr = srq->max_wr,
		.max_sge = srq->max_sge,
	};
	const struct rxe_migr_restore restore = { .handle = rec->handle };
	struct ib_uverbs_create_srq_resp out = {};
	struct rxe_create_srq_resp ring = {};
	const struct migr_write cmd = {
		.command = IB_USER_VERBS_CMD_CREATE_SRQ,
		.in = &in,
		.in_length = sizeof(in),
		.out = &out,
		.out_length = sizeof(out),
		.driver_out = &ring,
		.driver_out_length = sizeof(ring),
		.restore = &restore,
	};
	char identity[32];
	int ret = migr_write_run(r->fd, &cmd);

	if (ret) {
		snprintf(identity, sizeof(identity), "number %#x",
			 srq->srq_num);
		return create_error(r, rec, identity, ret);
	}
	ret = check_handle(r, rec, out.srq_handle);
	if (!ret)
		ret = check_number(r, rec, "number", srq->srq_num,
				   ring.srq_num);
	if (!ret)
		ret = same_ring(r, rec, "ring", &srq->ring, &ring.mi);
	return ret;
}

static int create_mr(struct migr_restore *r, const struct rxe_migr_rec *rec)
{
	const struct rxe_migr_rec_mr *mr = (const void *)rec;
	const struct ib_uverbs_reg_mr in = {
		.start = mr->start,
		.length = mr->size,
		.hca_va = mr->iova,
		.pd_handle = mr->pd,
		.access_flags = mr->access & ~RXE_MIGR_ACCESS_PINNED,
	};
	const struct rxe_migr_restore restore = { .handle = rec->handle };
	struct ib_uverbs_reg_mr_resp out = {};
	const struct migr_write cmd = {
		.command = IB_USER_VERBS_CMD_REG_MR,
		.in = &in,
		.in_length = sizeof(in),
		.out = &out,
		.out_length = sizeof(out),
		.restore = &restore,
	};
	char identity[32];
	int ret = migr_write_run(r->fd, &cmd);

	if (ret) {
		snprintf(identity, sizeof(identity), "key %#x", mr->key);
		return create_error(r, rec, identity, ret);
	}
	ret = check_handle(r, rec, out.mr_handle);
	if (!ret)
		ret = check_number(r, rec, "lkey", mr->key, out.lkey);
	if (!ret)
		ret = check_number(r, rec, "rkey", mr->key, out.rkey);
	return ret;
}

/* The MR and the QP to which it is bound are there, so it comes out bound */
static int create_mw(struct migr_restore *r, const struct rxe_migr_rec *rec)
{
	const struct rxe_migr_rec_mw *mw = (const void *)rec;
	const struct ib_uverbs_alloc_mw in = {
		.pd_handle = mw->pd,
		.mw_type = (uint8_t)mw->mw_type,
	};
	const struct rxe_migr_restore restore = { .handle = rec->handle };
	struct ib_uverbs_alloc_mw_resp out = {};
	const struct migr_write cmd = {
		.command = IB_USER_VERBS_CMD_ALLOC_MW,
		.in = &in,
		.in_length = sizeof(in),
		.out = &out,
		.out_length = sizeof(out),
		.restore = &restore,
	};
	char identity[32];
	int ret = migr_write_run(r->fd, &cmd);

	if (ret == -EINVAL)
		return migr_restore_error(r, rec,
					  "creation (the kernel log says more)",
					  ret);
	if (ret) {
		snprintf(identity, sizeof(identity), "key %#x", mw->rkey);
		return create_error(r, rec, identity, ret);
	}
	ret = check_handle(r, rec, out.mw_handle);
	if (!ret)
		ret = check_number(r, rec, "rkey", mw->rkey, out.rkey);
	return ret;
}

/*
 * The core resolves the address, which fails if nobody answers. So for that of a
 * host this asks for our own: the driver takes the one of the record that was loaded.
 */
static int create_ah(struct migr_restore *r, const struct rxe_migr_rec *rec)
{
	const struct rxe_migr_rec_ah *ah = (const void *)rec;
	struct ib_uverbs_create_ah in = {
		.user_handle = rec->user_handle,
		.pd_handle = ah->pd,
		.attr = {
			.grh = {
				.flow_label = ah->flow_label,
				.hop_limit = ah->hop_limit,
				.traffic_class = ah->traffic_class,
			},
			.is_global = 1,
			.port_num = 1,
		},
	};
	const struct rxe_migr_restore restore = { .handle = rec->handle };
	struct ib_uverbs_create_ah_resp out = {};
	struct rxe_create_ah_resp made = {};
	const struct migr_write cmd = {
		.command = IB_USER_VERBS_CMD_CREATE_AH,
		.in = &in,
		.in_length = sizeof(in),
		.out = &out,
		.out_length = sizeof(out),
		.driver_out = &made,
		.driver_out_length = sizeof(made),
		.restore = &restore,
	};
	char identity[96], gid[INET6_ADDRSTRLEN];
	const struct ib_uverbs_gid_entry *own;
	const uint8_t *dgid = ah->dgid;
	int ret;

	ret = migr_find_way(r, rec, &dgid, &own);
	if (ret)
		return ret;
	in.attr.grh.sgid_index = (uint8_t)own->gid_index;
	memcpy(in.attr.grh.dgid,
	       migr_gid_is_multicast(dgid) ? dgid : (const void *)own->gid,
	       sizeof(in.attr.grh.dgid));
	ret = migr_write_run(r->fd, &cmd);
	if (ret) {
		snprintf(identity, sizeof(identity), "number %u", ah->ah_num);
		if (ret != -EBUSY && ret != -ERANGE)
			snprintf(identity, sizeof(identity),
				 "to %s (GID index %u)",
				 inet_ntop(AF_INET6, dgid, gid, sizeof(gid)),
				 in.attr.grh.sgid_index);
		return create_error(r, rec, identity, ret);
	}
	ret = check_handle(r, rec, out.ah_handle);
	if (!ret)
		ret = check_number(r, rec, "number", ah->ah_num, made.ah_num);
	return ret;
}

/* Its QP is there; while it is stopped, what comes is lost */
static int join_groups(struct migr_restore *r, const struct rxe_migr_rec *rec)
{
	const struct rxe_migr_rec_mcast *mcast = (const void *)rec;
	const struct rxe_migr_group *group = (const void *)(mcast + 1);
	struct ib_uverbs_attach_mcast in = { .qp_handle = mcast->qp };
	const struct migr_write cmd = {
		.command = IB_USER_VERBS_CMD_ATTACH_MCAST,
		.in = &in,
		.in_length = sizeof(in),
	};
	char doing[96], gid[INET6_ADDRSTRLEN];
	uint32_t i;
	int ret;

	for (i = 0; i < mcast->groups; i++, group++) {
		memcpy(in.gid, group->mgid, sizeof(in.gid));
		in.mlid = (uint16_t)group->mlid;
		ret = migr_write_run(r->fd, &cmd);
		if (!ret)
			continue;
		snprintf(doing, sizeof(doing), "QP %u cannot join %s",
			 mcast->qp,
			 inet_ntop(AF_INET6, group->mgid, gid, sizeof(gid)));
		return migr_restore_error(r, rec, doing, ret);
	}
	return 0;
}

static int create_qp(struct migr_restore *r, const struct rxe_migr_rec *rec)
{
	const struct rxe_migr_rec_qp *qp = (const void *)rec;
	const struct ib_uverbs_create_qp in = {
		.user_handle = rec->user_handle,
		.pd_handle = qp->pd,
		.send_cq_handle = qp->send_cq,
		.recv_cq_handle = qp->recv_cq,
		.max_send_wr = qp->max_send_wr,
		.max_recv_wr = qp->max_recv_wr,
		.max_send_sge = qp->max_send_sge,
		.max_recv_sge = qp->max_recv_sge,
		.max_inline_data = qp->max_inline_data,
		.sq_sig_all = (uint8_t)qp->sq_sig_all,
		.qp_type = (uint8_t)qp->qp_type,
		.is_srq = qp->srq != RXE_MIGR_NO_HANDLE,
		.srq_handle = qp->srq,
	};
	const struct rxe_migr_restore restore = { .handle = rec->handle };
	struct ib_uverbs_create_qp_resp out = {};
	struct rxe_create_qp_resp rings = {};
	const struct migr_write cmd = {
		.command = IB_USER_VERBS_CMD_CREATE_QP,
		.in = &in,
		.in_length = sizeof(in),
		.out = &out,
		.out_length = sizeof(out),
		.driver_out = &rings,
		.driver_out_length = sizeof(rings),
		.restore = &restore,
	};
	char identity[32];
	int ret = migr_write_run(r->fd, &cmd);

	if (ret) {
		snprintf(identity, sizeof(identity), "QPN %#x", qp->qpn);
		return create_error(r, rec, identity, ret);
	}
	ret = check_handle(r, rec, out.qp_handle);
	if (!ret)
		ret = check_number(r, rec, "QPN", qp->qpn, out.qpn);
	if (!ret)
		ret = same_ring(r, rec, "sq", &qp->sq, &rings.sq_mi);
	if (!ret && !in.is_srq)
		ret = same_ring(r, rec, "rq", &qp->rq, &rings.rq_mi);
	return ret;
}

static int refill(struct migr_restore *r, const struct rxe_migr_rec *rec,
		  uint16_t object, uint16_t method)
{
	struct migr_ioctl cmd;
	int ret;

	migr_ioctl_init(&cmd, object, method);
	migr_ioctl_handle(&cmd, RXE_MIGR_ATTR_REFILL_HANDLE, rec->handle);
	ret = migr_ioctl_run(r->fd, &cmd);
	if (ret)
		migr_restore_error(r, rec,
				   ret == -EINVAL
					   ? "REFILL (the kernel log says more)"
					   : "REFILL",
				   ret);
	return ret;
}

static int refill_cq(struct migr_restore *r, const struct rxe_migr_rec *rec)
{
	return refill(r, rec, UVERBS_OBJECT_CQ, RXE_MIGR_METHOD_CQ_REFILL);
}

static int refill_srq(struct migr_restore *r, const struct rxe_migr_rec *rec)
{
	return refill(r, rec, UVERBS_OBJECT_SRQ, RXE_MIGR_METHOD_SRQ_REFILL);
}

static int refill_qp(struct migr_restore *r, const struct rxe_migr_rec *rec)
{
	int ret = migr_connect_qp(r, rec);

	return ret ? ret
		   : refill(r, rec, UVERBS_OBJECT_QP,
			    RXE_MIGR_METHOD_QP_REFILL);
}

/* in the order of what needs what */
static const struct {
	uint32_t type;
	int (*create)(struct migr_restore *r, const struct rxe_migr_rec *rec);
	int (*refill)(struct migr_restore *r, const struct rxe_migr_rec *rec);
} kinds[] = {
	{ RXE_MIGR_PD, create_pd, NULL },
	{ RXE_MIGR_CQ, create_cq, refill_cq },
	{ RXE_MIGR_SRQ, create_srq, refill_srq },
	{ RXE_MIGR_MR, create_mr, NULL },
	{ RXE_MIGR_QP, create_qp, refill_qp },
	{ RXE_MIGR_AH, create_ah, NULL },
	{ RXE_MIGR_MCAST, NULL, join_groups },
	{ RXE_MIGR_MW, create_mw, NULL },
};

int migr_create_object(struct migr_restore *r, const struct rxe_migr_rec *rec)
{
	size_t i;

	for (i = 0; i < N_ELEM(kinds); i++)
		if (kinds[i].type == rec->type && kinds[i].create)
			return kinds[i].create(r, rec);
	return migr_restore_error(r, rec, "creation", -EINVAL);
}

int migr_refill_object(struct migr_restore *r, const struct rxe_migr_rec *rec)
{
	size_t i;

	for (i = 0; i < N_ELEM(kinds); i++)
		if (kinds[i].type == rec->type && kinds[i].refill)
			return kinds[i].refill(r, rec);
	return 0;
}
