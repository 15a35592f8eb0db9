// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Single records of an image: lengths, ranges, references, rings. QPs are in
 * migr_check_qp.c, memory windows in migr_check_mw.c, what datagrams need in
 * migr_check_ah.c.
 */

#include <errno.h>
#include <string.h>

#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_rxe.h>

#include "migr_check.h"

#define N_ELEM(a) (sizeof(a) / sizeof((a)[0]))

/* rdma_rxe's limits (rxe_param.h) */
#define MAX_CQE ((1U << 15) - 1)
#define MAX_SRQ_WR (1U << 20)
#define MIN_SRQ_NUM 1U
#define MAX_SRQ_NUM (1U << 24)
#define MIN_MR_INDEX 1U
#define MAX_MR_INDEX (1U << 19)

/* a slot is at least a cache line and at most the largest WQE, rounded up */
#define MIN_LOG2_ELEM 6
#define MAX_LOG2_ELEM 12

#define MIN_PAGE 4096U
#define MAX_PAGE 65536U

/* as the driver: larger than any device hands out */
#define MAX_MMAP_OFFSET (1ULL << 44)

bool migr_type_is_object(uint32_t type)
{
	return type >= RXE_MIGR_PD && type <= RXE_MIGR_MW;
}

bool migr_type_known(uint32_t type)
{
	return type >= RXE_MIGR_PD && type <= RXE_MIGR_MCAST;
}

static uint64_t load(const struct rxe_migr_rec *rec,
		     const struct migr_field *field)
{
	const char *at = (const char *)rec + field->offset;
	uint64_t value = 0;

	memcpy(&value, at, field->size); /* little-endian */
	return value;
}

int migr_check_fields(const struct rxe_migr_rec *rec,
		      const struct migr_field *fields, size_t count,
		      struct migr_error *err)
{
	uint64_t value;
	size_t i;

	for (i = 0; i < count; i++) {
		value = load(rec, &fields[i]);
		if (value < fields[i].min || value > fields[i].max)
			return migr_bad(err, rec,
					"%s is %llu, allowed are %llu to %llu",
					fields[i].name,
					(unsigned long long)value,
					(unsigned long long)fields[i].min,
					(unsigned long long)fields[i].max);
	}
	return 0;
}

int migr_check_ref(const struct migr_index *index,
		   const struct rxe_migr_rec *rec, const char *field,
		   uint32_t handle, uint32_t type, struct migr_error *err)
{
	const struct rxe_migr_rec *target;

	if (!index)
		return 0; /* a record on its own: the kernel will see */
	target = migr_index_find(index, handle);
	if (!target)
		return migr_bad(err, rec, "%s is %u, there is no such object",
				field, handle);
	if (target->type != type)
		return migr_bad(err, rec,
				"%s is %u, which is of type %s, not %s", field,
				handle, migr_type_text(target->type),
				migr_type_text(type));
	return 0;
}

/* ---- rings ---- */

static uint64_t round_up_pow2(uint64_t n)
{
	uint64_t p = 1;

	while (p < n)
		p <<= 1;
	return p;
}

int migr_check_ring(const struct rxe_migr_rec *rec,
		    const struct migr_ring_check *check, struct migr_error *err)
{
	const struct rxe_migr_ring *ring = check->ring;
	const char *name = check->name;
	uint64_t slots = (uint64_t)ring->index_mask + 1, bytes;

	if (slots != round_up_pow2(check->entries + 1))
		return migr_bad(err, rec,
				"%s.index_mask is %#x, %llu entries make %#llx",
				name, ring->index_mask,
				(unsigned long long)check->entries,
				(unsigned long long)round_up_pow2(
					check->entries + 1) -
					1);
	if (ring->log2_elem < MIN_LOG2_ELEM ||
	    ring->log2_elem > MAX_LOG2_ELEM ||
	    1U << ring->log2_elem < check->entry_size)
		return migr_bad(err, rec,
				"%s.log2_elem is %u for entries of %zu bytes",
				name, ring->log2_elem, check->entry_size);
	if (ring->producer > ring->index_mask)
		return migr_bad(err, rec,
				"%s.producer is %u in a ring of %llu slots",
				name, ring->producer,
				(unsigned long long)slots);
	if (ring->consumer > ring->index_mask)
		return migr_bad(err, rec,
				"%s.consumer is %u in a ring of %llu slots",
				name, ring->consumer,
				(unsigned long long)slots);
	if (ring->slots > slots)
		return migr_bad(err, rec,
				"%s.slots is %u in a ring of %llu slots", name,
				ring->slots, (unsigned long long)slots);

	bytes = sizeof(struct rxe_queue_buf) + (slots << ring->log2_elem);
	if (ring->mmap_size % MIN_PAGE || ring->mmap_size < bytes ||
	    ring->mmap_size - bytes >= MAX_PAGE)
		return migr_bad(err, rec,
				"%s.mmap_size is %u for a ring of %llu bytes",
				name, ring->mmap_size,
				(unsigned long long)bytes);
	if (!ring->mmap_offset || ring->mmap_offset % MIN_PAGE ||
	    ring->mmap_offset >= MAX_MMAP_OFFSET)
		return migr_bad(err, rec, "%s.mmap_offset is %#llx", name,
				(unsigned long long)ring->mmap_offset);
	return 0;
}

/* ---- records ---- */

int migr_check_length(const struct rxe_migr_rec *rec, uint64_t wanted,
		      struct migr_error *err)
{
	if (rec->length != wanted)
		return migr_bad(err, rec,
				"length is %u bytes, the content takes %llu",
				rec->length, (unsigned long long)wanted);
	return 0;
}

int migr_check_context(const struct rxe_migr_rec *rec, struct migr_error *err)
{
	static const struct migr_field fields[] = {
		MIGR_FIELD(rxe_migr_rec_context, rec.handle, 0, 0),
		MIGR_FIELD(rxe_migr_rec_context, rec.reserved, 0, 0),
		MIGR_FIELD(rxe_migr_rec_context, max_handle, 0,
			   MIGR_MAX_HANDLE),
		MIGR_FIELD(rxe_migr_rec_context, reserved, 0, 0),
	};
	const struct rxe_migr_rec_context *ctx = (const void *)rec;
	int ret;

	ret = migr_check_length(rec, sizeof(*ctx), err);
	if (!ret)
		ret = migr_check_fields(rec, fields, N_ELEM(fields), err);
	if (ret)
		return ret;
	if (!ctx->device[0] || !memchr(ctx->device, '\0', sizeof(ctx->device)))
		return migr_bad(err, rec,
				"device is not a name that ends in NUL");
	return 0;
}

static int check_pd(const struct migr_index *index,
		    const struct rxe_migr_rec *rec, struct migr_error *err)
{
	(void)index;
	return migr_check_length(rec, sizeof(struct rxe_migr_rec_pd), err);
}

static int check_cq(const struct migr_index *index,
		    const struct rxe_migr_rec *rec, struct migr_error *err)
{
	static const struct migr_field fields[] = {
		MIGR_FIELD(rxe_migr_rec_cq, cqe, 1, MAX_CQE),
		MIGR_FIELD(rxe_migr_rec_cq, comp_vector, 0, 0xffff),
		MIGR_FIELD(rxe_migr_rec_cq, notify, 0, 3),
	};
	const struct rxe_migr_rec_cq *cq = (const void *)rec;
	const struct migr_ring_check ring = {
		.name = "ring",
		.ring = &cq->ring,
		.entries = cq->cqe,
		.entry_size = sizeof(struct ib_uverbs_wc),
	};
	const uint32_t unpolled =
		(cq->ring.producer - cq->ring.consumer) & cq->ring.index_mask;
	int ret;

	ret = migr_check_fields(rec, fields, N_ELEM(fields), err);
	if (!ret)
		ret = migr_check_channel_of(index, cq, err);
	if (!ret)
		ret = migr_check_ring(rec, &ring, err);
	if (!ret)
		ret = migr_check_length(
			rec, sizeof(*cq) + migr_ring_bytes(&cq->ring), err);
	if (ret)
		return ret;

	if (cq->ring.slots != unpolled)
		return migr_bad(
			err, rec,
			"ring.slots is %u, there are %u unpolled entries",
			cq->ring.slots, unpolled);
	return 0;
}

static int check_srq(const struct migr_index *index,
		     const struct rxe_migr_rec *rec, struct migr_error *err)
{
	static const struct migr_field fields[] = {
		MIGR_FIELD(rxe_migr_rec_srq, srq_num, MIN_SRQ_NUM, MAX_SRQ_NUM),
		MIGR_FIELD(rxe_migr_rec_srq, max_wr, 1, MAX_SRQ_WR),
		MIGR_FIELD(rxe_migr_rec_srq, max_sge, 1, RXE_MIGR_MAX_SGE),
		MIGR_FIELD(rxe_migr_rec_srq, error, 0, 1),
		MIGR_FIELD(rxe_migr_rec_srq, reserved, 0, 0),
	};
	const struct rxe_migr_rec_srq *srq = (const void *)rec;
	const struct migr_ring_check ring = {
		.name = "ring",
		.ring = &srq->ring,
		.entries = srq->max_wr,
		.entry_size = sizeof(struct rxe_recv_wqe) +
			      srq->max_sge * sizeof(struct rxe_sge),
	};
	int ret;

	ret = migr_check_ref(index, rec, "pd", srq->pd, RXE_MIGR_PD, err);
	if (!ret)
		ret = migr_check_fields(rec, fields, N_ELEM(fields), err);
	if (!ret)
		ret = migr_check_ring(rec, &ring, err);
	if (!ret)
		ret = migr_check_length(
			rec, sizeof(*srq) + migr_ring_bytes(&srq->ring), err);
	if (ret)
		return ret;
	if (srq->limit > srq->ring.index_mask)
		return migr_bad(err, rec, "limit is %u in a ring of %u entries",
				srq->limit, srq->ring.index_mask);
	return migr_check_receives(rec, &srq->ring, (const char *)(srq + 1),
				   srq->max_sge, err);
}

static int check_mr(const struct migr_index *index,
		    const struct rxe_migr_rec *rec, struct migr_error *err)
{
	static const struct migr_field fields[] = {
		MIGR_FIELD(rxe_migr_rec_mr, key, MIN_MR_INDEX << 8,
			   MAX_MR_INDEX << 8 | 0xff),
	};
	const struct rxe_migr_rec_mr *mr = (const void *)rec;
	const uint32_t writes =
		IB_UVERBS_ACCESS_REMOTE_WRITE | IB_UVERBS_ACCESS_REMOTE_ATOMIC;
	/* for writing, as access says itself */
	const uint32_t pins =
		IB_UVERBS_ACCESS_LOCAL_WRITE | IB_UVERBS_ACCESS_MW_BIND;
	int ret;

	ret = migr_check_length(rec, sizeof(*mr), err);
	if (!ret)
		ret = migr_check_ref(index, rec, "pd", mr->pd, RXE_MIGR_PD,
				     err);
	if (!ret)
		ret = migr_check_fields(rec, fields, N_ELEM(fields), err);
	if (ret)
		return ret;

	if (mr->wire_key != mr->key)
		return migr_bad(err, rec, "wire_key is %#x, not key %#x",
				mr->wire_key, mr->key);
	if (mr->access & ~(MIGR_ACCESS_ALL | RXE_MIGR_ACCESS_PINNED) ||
	    (mr->access & writes &&
	     !(mr->access & IB_UVERBS_ACCESS_LOCAL_WRITE)) ||
	    (mr->access & RXE_MIGR_ACCESS_PINNED && mr->access & pins))
		return migr_bad(err, rec, "access is %#x", mr->access);
	if (mr->start + mr->size < mr->start)
		return migr_bad(err, rec, "size is %#llx at start %#llx",
				(unsigned long long)mr->size,
				(unsigned long long)mr->start);
	if (mr->iova + mr->size < mr->iova ||
	    (mr->iova ^ mr->start) & (MIN_PAGE - 1))
		return migr_bad(err, rec,
				"iova is %#llx for %#llx bytes at start %#llx",
				(unsigned long long)mr->iova,
				(unsigned long long)mr->size,
				(unsigned long long)mr->start);
	return 0;
}

static const struct {
	size_t min_length;
	int (*check)(const struct migr_index *index,
		     const struct rxe_migr_rec *rec, struct migr_error *err);
} records[] = {
	[RXE_MIGR_PD] = { sizeof(struct rxe_migr_rec_pd), check_pd },
	[RXE_MIGR_CQ] = { sizeof(struct rxe_migr_rec_cq), check_cq },
	[RXE_MIGR_MR] = { sizeof(struct rxe_migr_rec_mr), check_mr },
	[RXE_MIGR_QP] = { sizeof(struct rxe_migr_rec_qp), migr_check_qp },
	[RXE_MIGR_SRQ] = { sizeof(struct rxe_migr_rec_srq), check_srq },
	[RXE_MIGR_AH] = { sizeof(struct rxe_migr_rec_ah), migr_check_ah },
	[RXE_MIGR_MW] = { sizeof(struct rxe_migr_rec_mw), migr_check_mw },
	[RXE_MIGR_COMP_CHANNEL] = { sizeof(struct rxe_migr_rec_comp_channel),
				    migr_check_channel },
	[RXE_MIGR_ASYNC_FD] = { sizeof(struct rxe_migr_rec_async_fd),
				migr_check_async },
	[RXE_MIGR_MCAST] = { sizeof(struct rxe_migr_rec_mcast),
			     migr_check_mcast },
};

int migr_check_frame(const struct rxe_migr_rec *rec, uint32_t max_handle,
		     struct migr_error *err)
{
	if (rec->reserved)
		return migr_bad(err, rec, "reserved is %#x, not 0",
				rec->reserved);
	if (rec->type == RXE_MIGR_CONTEXT)
		return migr_bad(err, rec, "type CONTEXT a second time");
	if (!migr_type_known(rec->type))
		return migr_bad(err, rec,
				"type is not part of version %u images",
				RXE_MIGR_IMAGE_VERSION);
	if (rec->handle > max_handle)
		return migr_bad(err, rec, "handle is larger than max_handle %u",
				max_handle);
	/* before any check looks at another record */
	if (rec->length < records[rec->type].min_length)
		return migr_bad(err, rec, "length is %u bytes, less than %zu",
				rec->length, records[rec->type].min_length);
	return 0;
}

int migr_check_record(const struct migr_index *index,
		      const struct rxe_migr_rec *rec, struct migr_error *err)
{
	return records[rec->type].check(index, rec, err);
}
