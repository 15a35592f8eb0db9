// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Writing an image: records, and what is in rings
 */
#include <linux/crc32.h>

#include "rxe.h"
#include "rxe_queue.h"
#include "rxe_migr_out.h"

/* @n zeroed bytes at the end of the image, or NULL if there is no room */
void *rxe_migr_out_reserve(struct rxe_migr_out *out, size_t n)
{
	u8 *p = NULL;

	if (out->used + n <= out->room) {
		p = out->buf + out->used;
		memset(p, 0, n);
	}
	out->used += n;

	return p;
}

void *rxe_migr_out_record(struct rxe_migr_out *out, enum rxe_migr_type type,
			  size_t size)
{
	struct rxe_migr_rec *rec = rxe_migr_out_reserve(out, size);

	if (size > U32_MAX) /* rec->length */
		out->err = -EFBIG;
	out->count++;
	if (rec) {
		rec->type = type;
		rec->length = size;
	}

	return rec;
}

void *rxe_migr_out_object(struct rxe_migr_out *out, enum rxe_migr_type type,
			  size_t fixed, size_t tail, struct ib_uobject *uobj)
{
	struct rxe_migr_rec *rec = rxe_migr_out_record(out, type, fixed + tail);

	out->max_handle = max_t(u32, out->max_handle, uobj->id);
	if (rec) {
		rec->handle = uobj->id;
		rec->user_handle = uobj->user_handle;
	}

	return rec;
}

/* what must be the same in both passes */
void rxe_migr_out_note(struct rxe_migr_out *out, const void *data, size_t size)
{
	out->objects = crc32_le(out->objects, data, size);
}

/*
 * How many slots of the ring go into the image: the application may be in the
 * middle of writing a WQE behind the producer, so all but those that nobody
 * ever used. A CQ is written by the driver alone, its live slots are enough.
 */
static u32 ring_slots(struct rxe_queue *q, u32 prod, u32 cons)
{
	u32 n = q->index_mask + 1;

	if (q->type == QUEUE_TYPE_TO_CLIENT)
		return (prod - cons) & q->index_mask;

	if (prod < cons)
		return n;

	while (n > prod && !memchr_inv(queue_addr_from_index(q, n - 1), 0,
				       1 << q->log2_elem_size))
		n--;

	return n;
}

/*
 * What a ring is at this moment. The application may post or poll meanwhile, so
 * each index is read once.
 */
struct rxe_migr_ring rxe_migr_out_ring(struct rxe_queue *q)
{
	u32 prod = queue_get_producer(q, q->type) & q->index_mask;
	u32 cons = queue_get_consumer(q, q->type) & q->index_mask;

	return (struct rxe_migr_ring){
		.mmap_offset	= q->ip->info.offset,
		.mmap_size	= q->ip->info.size,
		.log2_elem	= q->log2_elem_size,
		.index_mask	= q->index_mask,
		.producer	= prod,
		.consumer	= cons,
		.slots		= ring_slots(q, prod, cons),
	};
}

u8 *rxe_migr_out_slots(struct rxe_queue *q, u8 *to, u32 first, u32 slots)
{
	size_t size = 1 << q->log2_elem_size;
	u32 i;

	for (i = 0; i < slots; i++, to += size)
		memcpy(to, queue_addr_from_index(q, first + i), size);

	return to;
}
