// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * LOAD: the image from which a context is restored. The kernel has a copy of its
 * own, and believes it only if a kernel of the same cluster has signed it: what
 * is restored from it will be signed for in turn, in RESUME.
 *
 * The signature says who wrote the image, not that it is right: whatever is used
 * of a record is checked where it is used.
 */
#include <linux/crc32.h>
#include <linux/vmalloc.h>

#include "rxe.h"

/**
 * struct rxe_migr_loaded - an image
 * @records: of objects, by handle
 * @hdr: the whole image
 */
struct rxe_migr_loaded {
	struct xarray			records;
	struct rxe_migr_image_hdr	*hdr;
};

/* the fixed part of a record, which lookups promise to be there */
static size_t fixed_size(u32 type)
{
	switch (type) {
	case RXE_MIGR_CONTEXT:
		return sizeof(struct rxe_migr_rec_context);
	case RXE_MIGR_PD:
		return sizeof(struct rxe_migr_rec_pd);
	case RXE_MIGR_CQ:
		return sizeof(struct rxe_migr_rec_cq);
	case RXE_MIGR_MR:
		return sizeof(struct rxe_migr_rec_mr);
	case RXE_MIGR_QP:
		return sizeof(struct rxe_migr_rec_qp);
	case RXE_MIGR_SRQ:
		return sizeof(struct rxe_migr_rec_srq);
	case RXE_MIGR_MW:
		return sizeof(struct rxe_migr_rec_mw);
	case RXE_MIGR_AH:
		return sizeof(struct rxe_migr_rec_ah);
	case RXE_MIGR_COMP_CHANNEL:
		return sizeof(struct rxe_migr_rec_comp_channel);
	case RXE_MIGR_ASYNC_FD:
		return sizeof(struct rxe_migr_rec_async_fd);
	case RXE_MIGR_MCAST:
		return sizeof(struct rxe_migr_rec_mcast);
	default:
		return 0;	/* not known */
	}
}

static int refuse(struct rxe_migr_uc *muc, size_t at, const char *what)
{
	rxe_err_uc(&muc->uc, "image: bad %s at %zu\n", what, at);
	return -EINVAL;
}

static int chk_record(struct rxe_migr_uc *muc, const struct rxe_migr_rec *rec,
		      size_t at, size_t left)
{
	size_t fixed;

	if (left < sizeof(*rec) || rec->length < sizeof(*rec) ||
	    rec->length % 8 || rec->length > left)
		return refuse(muc, at, "length");
	if (rec->reserved)
		return refuse(muc, at, "reserved");
	fixed = fixed_size(rec->type);
	if (fixed ? rec->length < fixed : !(rec->type & RXE_MIGR_SKIPPABLE))
		return refuse(muc, at, fixed ? "length" : "type");

	return 0;
}

/* objects have handles; CONTEXT, event files and MCAST have none */
static bool is_object(const struct rxe_migr_rec *rec)
{
	return rec->type > RXE_MIGR_CONTEXT &&
	       rec->type < RXE_MIGR_COMP_CHANNEL;
}

/* the header has been checked */
static int index_records(struct rxe_migr_uc *muc, struct rxe_migr_loaded *l)
{
	size_t length = l->hdr->length;
	size_t at = l->hdr->hdr_length;
	struct rxe_migr_rec *rec;
	bool first, context;
	int err;

	for (; at < length; at += rec->length) {
		rec = (void *)l->hdr + at;
		err = chk_record(muc, rec, at, length - at);
		if (err)
			return err;
		first = at == l->hdr->hdr_length;
		context = rec->type == RXE_MIGR_CONTEXT;
		if (first != context)
			return refuse(muc, at, "CONTEXT");
		if (!is_object(rec))
			continue;
		err = xa_insert(&l->records, rec->handle, rec, GFP_KERNEL);
		if (err)
			return err == -EBUSY ? refuse(muc, at, "handle") : err;
		cond_resched();
	}

	return 0;
}

/* The MAC is that of the image without it and without the checksum */
static int chk_signature(struct rxe_migr_image_hdr *hdr)
{
	u8 mac[RXE_MIGR_IMAGE_MAC_BYTES];

	memcpy(mac, hdr->mac, sizeof(mac));
	memset(hdr->mac, 0, sizeof(hdr->mac));
	hdr->crc32 = 0;

	return rxe_migr_key_check(hdr->key_id, hdr, hdr->length, mac,
				  sizeof(mac));
}

static u32 image_crc(const struct rxe_migr_image_hdr *hdr)
{
	const u8 *data = (const u8 *)hdr;
	u64 left = hdr->length;
	u32 crc = ~0;
	size_t n;

	for (; left; left -= n, data += n) {
		n = min_t(u64, left, SZ_1M);
		crc = crc32_le(crc, data, n);
		cond_resched();
	}

	return crc;
}

/**
 * rxe_migr_sign - sign an image and give it its checksum
 * @hdr: the image, complete but for key_id, mac and crc32, which are 0
 *
 * Context: process; sleeps.
 * Return: 0, -ENOKEY or an error of the crypto layer
 */
int rxe_migr_sign(struct rxe_migr_image_hdr *hdr)
{
	u8 mac[RXE_MIGR_IMAGE_MAC_BYTES];
	int err;

	err = rxe_migr_key_sign(&hdr->key_id, hdr, hdr->length, mac,
				sizeof(mac));
	if (err)
		return err;
	memcpy(hdr->mac, mac, sizeof(mac));
	hdr->crc32 = ~image_crc(hdr);

	return 0;
}

static int chk_header(struct rxe_migr_uc *muc, struct rxe_migr_image_hdr *hdr,
		      u64 length)
{
	if (memcmp(hdr->magic, RXE_MIGR_MAGIC, sizeof(hdr->magic)))
		return refuse(muc, 0, "magic");
	if (hdr->version != RXE_MIGR_IMAGE_VERSION)
		return -EPROTO;
	if (memchr_inv(hdr->reserved, 0, sizeof(hdr->reserved)))
		return refuse(muc, 0, "reserved");
	if (hdr->length != length)
		return refuse(muc, 0, "length");
	if (hdr->hdr_length < sizeof(*hdr) || hdr->hdr_length % 8 ||
	    hdr->hdr_length >= length)
		return refuse(muc, 0, "hdr_length");

	return chk_signature(hdr);
}

static void loaded_free(struct rxe_migr_loaded *l)
{
	if (!l)
		return;
	xa_destroy(&l->records);
	vfree(l->hdr);
	kfree(l);
}

/**
 * rxe_migr_unload - forget the image of a context
 * @muc: the context; its lock is held, or nobody else has it
 */
void rxe_migr_unload(struct rxe_migr_uc *muc)
{
	loaded_free(muc->loaded);
	muc->loaded = NULL;
}

/* in pieces: at once it may be INT_MAX bytes */
static int copy_in(void *to, const struct rxe_migr_buf *buf)
{
	const void __user *from = u64_to_user_ptr(buf->addr);
	u64 left = buf->length;
	size_t n;

	for (; left; left -= n, to += n, from += n) {
		n = min_t(u64, left, SZ_1M);
		if (copy_from_user(to, from, n))
			return -EFAULT;
	}

	return 0;
}

/**
 * rxe_migr_load - give a context the image from which it is to be restored
 * @muc: the context; its lock is held
 * @buf: the image in user space
 *
 * Context: process; sleeps.
 * Return: 0, or an error as rxe_migr_abi.h says
 */
int rxe_migr_load(struct rxe_migr_uc *muc, const struct rxe_migr_buf *buf)
{
	struct rxe_migr_loaded *l;
	int err;

	if (muc->attached || muc->stopped)
		return -EBUSY;
	if (buf->length < sizeof(*l->hdr))
		return refuse(muc, 0, "length");

	l = kzalloc(sizeof(*l), GFP_KERNEL);
	if (!l)
		return -ENOMEM;
	xa_init(&l->records);
	/* as large as what the caller may have: it could be dumped, too */
	l->hdr = __vmalloc(buf->length, GFP_KERNEL_ACCOUNT | __GFP_NOWARN);
	if (!l->hdr)
		err = -ENOMEM;
	else
		err = copy_in(l->hdr, buf);
	if (!err)
		err = chk_header(muc, l->hdr, buf->length);
	if (!err)
		err = index_records(muc, l);
	if (err) {
		loaded_free(l);
		return err;
	}

	rxe_migr_unload(muc);
	muc->loaded = l;
	muc->restored = true;

	return 0;
}

/**
 * rxe_migr_record - a record of the image of a context
 * @muc: the context; its lock is held for as long as the record is used
 * @type: enum rxe_migr_type
 * @handle: of the object
 *
 * Return: the record, at least its fixed part, or NULL
 */
const void *rxe_migr_record(struct rxe_migr_uc *muc, u32 type, u32 handle)
{
	const struct rxe_migr_rec *rec = NULL;

	if (muc->loaded)
		rec = xa_load(&muc->loaded->records, handle);

	return rec && rec->type == type ? rec : NULL;
}

/**
 * rxe_migr_next_record - all records of the image of a context
 * @muc: the context; its lock is held for as long as the records are used
 * @rec: the one before, or NULL
 *
 * Return: the next one, at least its fixed part, or NULL
 */
const struct rxe_migr_rec *
rxe_migr_next_record(struct rxe_migr_uc *muc, const struct rxe_migr_rec *rec)
{
	struct rxe_migr_image_hdr *hdr;
	size_t at;

	if (!muc->loaded)
		return NULL;
	hdr = muc->loaded->hdr;
	at = rec ? (void *)rec - (void *)hdr + rec->length : hdr->hdr_length;

	return at < hdr->length ? (void *)hdr + at : NULL;
}
