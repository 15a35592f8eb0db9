/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Writing the image of a context
 */
#ifndef RXE_MIGR_OUT_H
#define RXE_MIGR_OUT_H

/*
 * Where the image goes. The writer counts on when there is no more room, so
 * one pass with no room at all tells how much is needed.
 */
struct rxe_migr_out {
	u8	*buf;
	size_t	room;	/* bytes of @buf */
	size_t	used;	/* bytes written or wanted */
	u32	count;
	u32	max_handle;
	u32	objects; /* CRC-32 over all identities, events and groups */
	bool	changed; /* objects came after STOP */
	int	err;
	struct xarray channels; /* to the CQ by which each is known */
};

/* ib_uobject is the first member of the core's private uobjects */
static inline u32 cq_handle(struct ib_cq *ibcq)
{
	return ((struct ib_uobject *)ibcq->uobject)->id;
}

static inline u32 qp_handle(struct ib_qp *ibqp)
{
	return ((struct ib_uobject *)ibqp->uobject)->id;
}

static inline u32 srq_handle(struct ib_srq *ibsrq)
{
	return ((struct ib_uobject *)ibsrq->uobject)->id;
}

/* number of entries to ask for so that the same ring comes out */
static inline u32 ring_request(struct rxe_queue *q)
{
	return (q->index_mask + 1) / 2;
}

static inline size_t slots_size(const struct rxe_migr_ring *ring)
{
	return (size_t)ring->slots << ring->log2_elem;
}

/* rxe_migr_out.c: NULL if there is no room */
void *rxe_migr_out_reserve(struct rxe_migr_out *out, size_t n);
void *rxe_migr_out_record(struct rxe_migr_out *out, enum rxe_migr_type type,
			  size_t size);
void *rxe_migr_out_object(struct rxe_migr_out *out, enum rxe_migr_type type,
			  size_t fixed, size_t tail, struct ib_uobject *uobj);
void rxe_migr_out_note(struct rxe_migr_out *out, const void *data, size_t size);
struct rxe_migr_ring rxe_migr_out_ring(struct rxe_queue *q);
u8 *rxe_migr_out_slots(struct rxe_queue *q, u8 *to, u32 first, u32 slots);

/* rxe_migr_dump_qp.c */
void rxe_migr_dump_qp(struct rxe_migr_out *out, void *obj,
		      struct ib_uobject *uobj);

#endif
