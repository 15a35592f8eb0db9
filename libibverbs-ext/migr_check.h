/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Checks of single records of an image. Internal to this folder.
 */
#ifndef MIGR_CHECK_H
#define MIGR_CHECK_H

#include <stdbool.h>

#include "migr_cmd.h"

/* "QP 5: <format>" into err; returns -EINVAL. rec == NULL: "image: ..." */
__attribute__((format(printf, 3, 4))) int
migr_bad(struct migr_error *err, const struct rxe_migr_rec *rec,
	 const char *format, ...);

/* Objects by ascending handle */
struct migr_index {
	const struct rxe_migr_rec **by_handle;
	unsigned int count;
};

int migr_index_init(struct migr_index *index, const struct migr_image *img);
void migr_index_free(struct migr_index *index);

/* NULL if no object has this handle */
const struct rxe_migr_rec *migr_index_find(const struct migr_index *index,
					   uint32_t handle);

/* Is the record one that an image may hold, besides CONTEXT? */
bool migr_type_known(uint32_t type);

/* Objects have handles; event files and lists of groups have none */
bool migr_type_is_object(uint32_t type);

/* what max_handle of a context may be at most */
#define MIGR_MAX_HANDLE ((1U << 20) - 1)

/* What all records have in common; and their fixed part is there */
int migr_check_frame(const struct rxe_migr_rec *rec, uint32_t max_handle,
		     struct migr_error *err);

/*
 * Length and fields of one known record, references by `index` (NULL: they
 * are not checked). migr_check_frame() has taken all records.
 */
int migr_check_record(const struct migr_index *index,
		      const struct rxe_migr_rec *rec, struct migr_error *err);
int migr_check_context(const struct rxe_migr_rec *rec, struct migr_error *err);

/* The fields of a table: each within its limits */
struct migr_field {
	const char *name;
	uint16_t offset; /* in the record */
	uint16_t size;	 /* 1, 2, 4 or 8 bytes */
	uint64_t min, max;
};

#define MIGR_FIELD(type, member, lo, hi)                    \
	{                                                   \
		.name = #member,                            \
		.offset = offsetof(struct type, member),    \
		.size = sizeof(((struct type *)0)->member), \
		.min = (lo),                                \
		.max = (hi),                                \
	}

int migr_check_fields(const struct rxe_migr_rec *rec,
		      const struct migr_field *fields, size_t count,
		      struct migr_error *err);

/* A ring and where its slots lie */
struct migr_ring_check {
	const char *name; /* "sq" */
	const struct rxe_migr_ring *ring;
	uint64_t entries;  /* that creation will ask for */
	size_t entry_size; /* bytes that a slot must hold at least */
};

int migr_check_ring(const struct rxe_migr_rec *rec,
		    const struct migr_ring_check *check,
		    struct migr_error *err);

/* bytes of the slots in the record */
static inline uint64_t migr_ring_bytes(const struct rxe_migr_ring *ring)
{
	return (uint64_t)ring->slots << ring->log2_elem;
}

/* migr_check_event.c */
int migr_check_channel(const struct migr_index *index,
		       const struct rxe_migr_rec *rec, struct migr_error *err);
int migr_check_async(const struct migr_index *index,
		     const struct rxe_migr_rec *rec, struct migr_error *err);
/* whose handle goes with an event; 0: a port's number, or nothing */
uint32_t migr_event_object(uint32_t event);
int migr_check_channel_of(const struct migr_index *index,
			  const struct rxe_migr_rec_cq *cq,
			  struct migr_error *err);

int migr_check_qp(const struct migr_index *index,
		  const struct rxe_migr_rec *rec, struct migr_error *err);
/* `recv_sge`: elements of a receive, of the QP's own or its SRQ's, at most */
int migr_check_work(const struct rxe_migr_rec_qp *qp, uint32_t recv_sge,
		    struct migr_error *err);
int migr_check_receives(const struct rxe_migr_rec *rec,
			const struct rxe_migr_ring *ring, const char *slots,
			uint32_t max_sge, struct migr_error *err);
/* the record takes just so many bytes */
int migr_check_length(const struct rxe_migr_rec *rec, uint64_t wanted,
		      struct migr_error *err);
int migr_check_ah(const struct migr_index *index,
		  const struct rxe_migr_rec *rec, struct migr_error *err);
int migr_check_mcast(const struct migr_index *index,
		     const struct rxe_migr_rec *rec, struct migr_error *err);
int migr_check_mw(const struct migr_index *index,
		  const struct rxe_migr_rec *rec, struct migr_error *err);
int migr_check_ref(const struct migr_index *index,
		   const struct rxe_migr_rec *rec, const char *field,
		   uint32_t handle, uint32_t type, struct migr_error *err);

#define MIGR_PSN_MASK 0xffffffU

/* access flags that rdma_rxe accepts for an MR or a QP from user space */
#define MIGR_ACCESS_ALL 0x3ff0031fU

#endif /* MIGR_CHECK_H */
