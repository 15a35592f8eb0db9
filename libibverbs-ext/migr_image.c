// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The frame of an image: header, checksum, chain of records, and what must be
 * unique in all of it. The fields of single records are in migr_check.c.
 */

#include <endian.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "migr_check.h"

#if __BYTE_ORDER != __LITTLE_ENDIAN
#error "images are little-endian and are read in place"
#endif

_Static_assert(sizeof(struct rxe_migr_image_hdr) == 72, "part of the format");
_Static_assert(sizeof(struct rxe_migr_rec) == 24, "part of the format");

int migr_bad(struct migr_error *err, const struct rxe_migr_rec *rec,
	     const char *format, ...)
{
	va_list args;
	int n;

	if (!rec)
		n = snprintf(err->text, sizeof(err->text), "image: ");
	else if (rec->type == RXE_MIGR_CONTEXT)
		n = snprintf(err->text, sizeof(err->text), "context: ");
	else
		n = snprintf(err->text, sizeof(err->text),
			     "%s %u: ", migr_type_text(rec->type), rec->handle);
	va_start(args, format);
	vsnprintf(err->text + n, sizeof(err->text) - n, format, args);
	va_end(args);
	return -EINVAL;
}

/* ---- header ---- */

static uint32_t image_crc(const void *data, size_t length)
{
	struct rxe_migr_image_hdr hdr;
	uLong crc;

	memcpy(&hdr, data, sizeof(hdr));
	hdr.crc32 = 0;
	crc = crc32_z(0, (const Bytef *)&hdr, sizeof(hdr));
	return crc32_z(crc, (const Bytef *)data + sizeof(hdr),
		       length - sizeof(hdr));
}

void migr_image_seal(const struct migr_image *img)
{
	struct rxe_migr_image_hdr *hdr = (void *)(uintptr_t)img->data;

	hdr->crc32 = image_crc(img->data, img->length);
}

static int check_header(const void *data, size_t length, struct migr_error *err)
{
	const struct rxe_migr_image_hdr *hdr = data;
	uint32_t crc;

	if (!data || length < sizeof(*hdr))
		return migr_bad(
			err, NULL,
			"length is %zu bytes, less than the header's %zu",
			data ? length : 0, sizeof(*hdr));
	if ((uintptr_t)data % 8)
		return migr_bad(err, NULL, "not aligned to 8 bytes in memory");
	if (memcmp(hdr->magic, RXE_MIGR_MAGIC, sizeof(hdr->magic)))
		return migr_bad(err, NULL,
				"magic is not \"" RXE_MIGR_MAGIC "\"");
	if (hdr->version != RXE_MIGR_IMAGE_VERSION) {
		migr_bad(err, NULL, "version is %u, this software knows %u",
			 hdr->version, RXE_MIGR_IMAGE_VERSION);
		return -EPROTONOSUPPORT;
	}
	if (memcmp(hdr->reserved, (char[sizeof(hdr->reserved)]){},
		   sizeof(hdr->reserved)))
		return migr_bad(err, NULL, "reserved is not 0");
	if (hdr->length != length)
		return migr_bad(err, NULL,
				"length is %zu bytes, the header says %llu",
				length, (unsigned long long)hdr->length);
	if (hdr->hdr_length < sizeof(*hdr) || hdr->hdr_length % 8 ||
	    hdr->hdr_length > length)
		return migr_bad(err, NULL, "hdr_length is %u", hdr->hdr_length);
	crc = image_crc(data, length);
	if (crc != hdr->crc32)
		return migr_bad(err, NULL,
				"crc32 is %#010x, the content's is %#010x",
				hdr->crc32, crc);
	return 0;
}

/* ---- chain of records ---- */

/*
 * Step to the record behind `rec` (NULL: to the first one); *next is NULL at
 * the end.
 */
static int next_record(const struct migr_image *img,
		       const struct rxe_migr_rec *rec,
		       const struct rxe_migr_rec **next, struct migr_error *err)
{
	const struct rxe_migr_image_hdr *hdr = img->data;
	const char *base = img->data;
	size_t at =
		rec ? (const char *)rec - base + rec->length : hdr->hdr_length;
	size_t left = img->length - at;

	*next = NULL;
	if (!left)
		return 0;
	if (left < sizeof(*rec))
		return migr_bad(
			err, NULL,
			"record at %zu: %zu bytes left, less than a record's header",
			at, left);
	rec = (const void *)(base + at);
	if (rec->length < sizeof(*rec) || rec->length % 8 || rec->length > left)
		return migr_bad(
			err, NULL,
			"record at %zu (%s): length is %u of %zu bytes left",
			at, migr_type_text(rec->type), rec->length, left);
	*next = rec;
	return 0;
}

static int collect(struct migr_image *img, struct migr_error *err)
{
	const struct rxe_migr_image_hdr *hdr = img->data;
	const struct rxe_migr_rec *rec;
	unsigned int total = 0;
	int ret;

	ret = next_record(img, NULL, &rec, err);
	if (ret)
		return ret;
	if (!rec || rec->type != RXE_MIGR_CONTEXT)
		return migr_bad(err, NULL,
				"type of the first record is not CONTEXT");
	ret = migr_check_context(rec, err);
	if (ret)
		return ret;
	img->context = (const void *)rec;

	/* how many there really are, before memory is asked for */
	for (;;) {
		ret = next_record(img, rec, &rec, err);
		if (ret)
			return ret;
		if (!rec)
			break;
		total++;
	}
	if (total != hdr->count)
		return migr_bad(err, NULL, "count is %u, there are %u records",
				hdr->count, total);

	img->records = calloc(total ? total : 1, sizeof(*img->records));
	if (!img->records) {
		migr_bad(err, NULL, "no memory for %u records", total);
		return -ENOMEM;
	}

	rec = &img->context->rec;
	while (!next_record(img, rec, &rec, err) && rec) {
		if (rec->type & RXE_MIGR_SKIPPABLE)
			continue; /* of a later time, perhaps */
		ret = migr_check_frame(rec, img->context->max_handle, err);
		if (ret)
			return ret;
		img->records[img->count++] = rec;
	}
	return 0;
}

/* ---- index by handle ---- */

static int by_handle(const void *a, const void *b)
{
	const struct rxe_migr_rec *x = *(const struct rxe_migr_rec *const *)a;
	const struct rxe_migr_rec *y = *(const struct rxe_migr_rec *const *)b;

	return (x->handle > y->handle) - (x->handle < y->handle);
}

int migr_index_init(struct migr_index *index, const struct migr_image *img)
{
	unsigned int i;

	index->count = 0;
	index->by_handle =
		calloc((size_t)img->count + 1, sizeof(*index->by_handle));
	if (!index->by_handle)
		return -ENOMEM;
	for (i = 0; i < img->count; i++)
		if (migr_type_is_object(img->records[i]->type))
			index->by_handle[index->count++] = img->records[i];
	qsort(index->by_handle, index->count, sizeof(*index->by_handle),
	      by_handle);
	return 0;
}

void migr_index_free(struct migr_index *index)
{
	free(index->by_handle);
	index->by_handle = NULL;
	index->count = 0;
}

const struct rxe_migr_rec *migr_index_find(const struct migr_index *index,
					   uint32_t handle)
{
	struct rxe_migr_rec key = { .handle = handle };
	const struct rxe_migr_rec *wanted = &key;
	const struct rxe_migr_rec **found;

	found = bsearch(&wanted, index->by_handle, index->count,
			sizeof(*index->by_handle), by_handle);
	return found ? *found : NULL;
}

/* ---- what must be unique ---- */

/* `size` numbers from `start` on are taken by a record */
struct claim {
	uint64_t start;
	uint64_t size;
	const struct rxe_migr_rec *rec;
};

static int by_start(const void *a, const void *b)
{
	const struct claim *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

static int check_claims(struct claim *claims, size_t n, const char *what,
			struct migr_error *err)
{
	size_t i;

	qsort(claims, n, sizeof(*claims), by_start);
	for (i = 1; i < n; i++)
		if (claims[i].start - claims[i - 1].start < claims[i - 1].size)
			return migr_bad(err, claims[i].rec,
					"%s %#llx is also that of %s %u", what,
					(unsigned long long)claims[i].start,
					migr_type_text(claims[i - 1].rec->type),
					claims[i - 1].rec->handle);
	return 0;
}

/* each adds up to two claims; returns how many */
static int claim_handle(const struct rxe_migr_rec *rec, struct claim *c)
{
	if (!migr_type_is_object(rec->type))
		return 0;
	c[0] = (struct claim){ rec->handle, 1, rec };
	return 1;
}

static int claim_qpn(const struct rxe_migr_rec *rec, struct claim *c)
{
	if (rec->type != RXE_MIGR_QP)
		return 0;
	c[0] = (struct claim){ ((const struct rxe_migr_rec_qp *)rec)->qpn, 1,
			       rec };
	return 1;
}

static int claim_key(const struct rxe_migr_rec *rec, struct claim *c)
{
	const struct rxe_migr_rec_mr *mr = (const void *)rec;
	const struct rxe_migr_rec_mw *mw = (const void *)rec;

	/* the low byte is a random tag, the index above it must be unique */
	if (rec->type == RXE_MIGR_MR)
		c[0] = (struct claim){ mr->key >> 8, 1, rec };
	else if (rec->type == RXE_MIGR_MW)
		c[0] = (struct claim){ mw->rkey >> 8, 1, rec };
	else
		return 0;
	return 1;
}

static int claim_srq_num(const struct rxe_migr_rec *rec, struct claim *c)
{
	if (rec->type != RXE_MIGR_SRQ)
		return 0;
	c[0] = (struct claim){ ((const struct rxe_migr_rec_srq *)rec)->srq_num,
			       1, rec };
	return 1;
}

static int claim_ah_num(const struct rxe_migr_rec *rec, struct claim *c)
{
	if (rec->type != RXE_MIGR_AH)
		return 0;
	c[0] = (struct claim){ ((const struct rxe_migr_rec_ah *)rec)->ah_num, 1,
			       rec };
	return 1;
}

/* a QP has one list of its groups */
static int claim_groups(const struct rxe_migr_rec *rec, struct claim *c)
{
	if (rec->type != RXE_MIGR_MCAST)
		return 0;
	c[0] = (struct claim){ ((const struct rxe_migr_rec_mcast *)rec)->qp, 1,
			       rec };
	return 1;
}

static int claim_channel(const struct rxe_migr_rec *rec, struct claim *c)
{
	if (rec->type != RXE_MIGR_COMP_CHANNEL)
		return 0;
	c[0] = (struct claim){
		((const struct rxe_migr_rec_comp_channel *)rec)->cq, 1, rec
	};
	return 1;
}

static int claim_async(const struct rxe_migr_rec *rec, struct claim *c)
{
	if (rec->type != RXE_MIGR_ASYNC_FD)
		return 0;
	c[0] = (struct claim){ 0, 1, rec };
	return 1;
}

static int claim_mmap(const struct rxe_migr_rec *rec, struct claim *c)
{
	const struct rxe_migr_rec_cq *cq = (const void *)rec;
	const struct rxe_migr_rec_qp *qp = (const void *)rec;
	const struct rxe_migr_rec_srq *srq = (const void *)rec;

	switch (rec->type) {
	case RXE_MIGR_SRQ:
		c[0] = (struct claim){ srq->ring.mmap_offset,
				       srq->ring.mmap_size, rec };
		return 1;
	case RXE_MIGR_CQ:
		c[0] = (struct claim){ cq->ring.mmap_offset, cq->ring.mmap_size,
				       rec };
		return 1;
	case RXE_MIGR_QP:
		c[0] = (struct claim){ qp->sq.mmap_offset, qp->sq.mmap_size,
				       rec };
		c[1] = (struct claim){ qp->rq.mmap_offset, qp->rq.mmap_size,
				       rec };
		return qp->srq == RXE_MIGR_NO_HANDLE ? 2 : 1;
	default:
		return 0;
	}
}

static int check_unique(const struct migr_image *img, const char *what,
			int (*claim)(const struct rxe_migr_rec *,
				     struct claim *),
			struct migr_error *err)
{
	struct claim *claims;
	size_t n = 0;
	unsigned int i;
	int ret;

	claims = calloc(2 * (size_t)img->count + 2, sizeof(*claims));
	if (!claims) {
		migr_bad(err, NULL, "no memory");
		return -ENOMEM;
	}
	for (i = 0; i < img->count; i++)
		n += claim(img->records[i], claims + n);
	ret = check_claims(claims, n, what, err);
	free(claims);
	return ret;
}

/* ---- all of it ---- */

/* every channel that a CQ names has a record */
static int check_channels(const struct migr_image *img, struct migr_error *err)
{
	const struct rxe_migr_rec_cq *cq;
	unsigned int i, n = 0;

	for (i = 0; i < img->count; i++) {
		cq = (const void *)img->records[i];
		if (cq->rec.type == RXE_MIGR_COMP_CHANNEL)
			n++;
		else if (cq->rec.type == RXE_MIGR_CQ &&
			 cq->comp_channel == cq->rec.handle)
			n--;
	}
	return n ? migr_bad(err, NULL, "a completion channel has no record")
		 : 0;
}

static int check_records(const struct migr_image *img, struct migr_error *err)
{
	struct migr_index index;
	unsigned int i;
	int ret;

	ret = check_unique(img, "handle", claim_handle, err);
	if (ret)
		return ret;
	ret = migr_index_init(&index, img);
	if (ret) {
		migr_bad(err, NULL, "no memory");
		return ret;
	}
	for (i = 0; i < img->count && !ret; i++)
		ret = migr_check_record(&index, img->records[i], err);
	migr_index_free(&index);
	if (!ret)
		ret = check_unique(img, "qpn", claim_qpn, err);
	if (!ret)
		ret = check_unique(img, "srq_num", claim_srq_num, err);
	if (!ret)
		ret = check_unique(img, "ah_num", claim_ah_num, err);
	if (!ret)
		ret = check_unique(img, "qp", claim_groups, err);
	if (!ret)
		ret = check_unique(img, "key index", claim_key, err);
	if (!ret)
		ret = check_unique(img, "mmap_offset", claim_mmap, err);
	if (!ret)
		ret = check_unique(img, "cq", claim_channel, err);
	if (!ret)
		ret = check_unique(img, "context", claim_async, err);
	if (!ret)
		ret = check_channels(img, err);
	return ret;
}

int migr_image_parse(const void *data, size_t length, struct migr_image *img,
		     struct migr_error *err)
{
	struct migr_error ignored;
	int ret;

	if (!err)
		err = &ignored;
	memset(img, 0, sizeof(*img));
	img->data = data;
	img->length = length;

	ret = check_header(data, length, err);
	if (!ret)
		ret = collect(img, err);
	if (!ret)
		ret = check_records(img, err);
	if (ret)
		migr_image_free(img);
	return ret;
}

void migr_image_free(struct migr_image *img)
{
	free(img->address);
	free(img->records);
	memset(img, 0, sizeof(*img));
}
