// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * From an image to objects on a fresh device file.
 *
 * The core gives each new object the lowest free handle. So the objects are
 * made in the order of their handles; where nothing belongs, or where what
 * belongs there needs something that is not made yet, a PD holds the place.
 * It makes room later: then its handle is the lowest free one.
 */

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "migr_check.h"
#include "migr_restore.h"

void migr_restore_init(struct migr_restore *r, int fd, struct migr_error *err)
{
	memset(r, 0, sizeof(*r));
	r->fd = fd;
	r->err = err;
}

void migr_restore_release(struct migr_restore *r)
{
	migr_gids_free(&r->gids);
	free(r->address);
	r->address = NULL;
}

/* Take the lowest free handle, which must be `handle` */
static int hold_place(struct migr_restore *r, uint32_t handle)
{
	uint32_t got;
	int ret = migr_alloc_pd(r->fd, &got);

	if (!ret && got != handle) {
		migr_bad(
			r->err, NULL,
			"handle %u: the file is not fresh, its next handle is %u",
			handle, got);
		return -EBUSY;
	}
	if (ret)
		migr_bad(r->err, NULL, "handle %u: no PD to hold the place: %s",
			 handle, migr_errno_text(ret));
	return ret;
}

static int free_place(struct migr_restore *r, uint32_t handle)
{
	int ret = migr_free_pd(r->fd, handle);

	if (ret)
		migr_bad(
			r->err, NULL,
			"handle %u: cannot free the PD that holds the place: %s",
			handle, migr_errno_text(ret));
	return ret;
}

/* A place holder is no PD of the application */
static int check_pd(struct migr_restore *r, const struct rxe_migr_rec *rec,
		    const uint32_t *held, size_t n)
{
	uint32_t pd;

	switch (rec->type) {
	case RXE_MIGR_MR:
		pd = ((const struct rxe_migr_rec_mr *)rec)->pd;
		break;
	case RXE_MIGR_QP:
		pd = ((const struct rxe_migr_rec_qp *)rec)->pd;
		break;
	case RXE_MIGR_SRQ:
		pd = ((const struct rxe_migr_rec_srq *)rec)->pd;
		break;
	case RXE_MIGR_AH:
		pd = ((const struct rxe_migr_rec_ah *)rec)->pd;
		break;
	case RXE_MIGR_MW:
		pd = ((const struct rxe_migr_rec_mw *)rec)->pd;
		break;
	default:
		return 0;
	}
	while (n)
		if (held[--n] == pd)
			return migr_bad(r->err, rec,
					"pd is %u, there is no such object",
					pd);
	return 0;
}

int migr_place_object(struct migr_restore *r, const struct rxe_migr_rec *rec)
{
	uint32_t handle = 0, *held = NULL, *more;
	size_t n = 0, room = 0;
	int ret = 0, ret2;

	do {
		if (n == room) {
			room = room ? 2 * room : 16;
			more = realloc(held, room * sizeof(*held));
			if (!more) {
				ret = migr_restore_error(r, rec, "places",
							 -ENOMEM);
				goto out;
			}
			held = more;
		}
		ret = migr_alloc_pd(r->fd, &handle);
		if (ret) {
			migr_restore_error(r, rec, "place", ret);
			goto out;
		}
		held[n++] = handle;
	} while (handle < rec->handle);

	if (handle != rec->handle) {
		ret = -EBUSY;
		migr_bad(r->err, rec, "the handle is taken in this context");
		goto out;
	}
	ret = check_pd(r, rec, held, n);
	if (ret)
		goto out;
	n--;
	ret = free_place(r, handle);
	if (!ret)
		ret = migr_create_object(r, rec);
out:
	while (n) {
		ret2 = migr_free_pd(r->fd, held[--n]);
		if (ret2 && !ret)
			ret = migr_restore_error(r, rec, "places", ret2);
	}
	free(held);
	return ret;
}

/* ---- all of it ---- */

static int get_context(struct migr_restore *r)
{
	struct migr_ioctl cmd;
	int ret;

	migr_ioctl_init(&cmd, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_GET_CONTEXT);
	migr_ioctl_out(&cmd, UVERBS_ATTR_GET_CONTEXT_NUM_COMP_VECTORS,
		       &r->comp_vectors, sizeof(r->comp_vectors));
	ret = migr_ioctl_run(r->fd, &cmd);
	if (ret) {
		migr_bad(r->err, NULL, "context: %s",
			 ret == -EINVAL ? "the file has one already"
					: migr_errno_text(ret));
	}
	return ret;
}

void migr_files_close(struct migr_files *files)
{
	unsigned int i;

	if (files->async_fd >= 0)
		close(files->async_fd);
	for (i = 0; i < files->channels; i++)
		if (files->channel[i].fd >= 0)
			close(files->channel[i].fd);
	free(files->channel);
	*files = (struct migr_files){ .async_fd = -1 };
}

static int by_cq(const void *a, const void *b)
{
	const struct migr_channel *x = a, *y = b;

	return (x->cq > y->cq) - (x->cq < y->cq);
}

int *migr_files_channel(const struct migr_files *files, uint32_t cq)
{
	const struct migr_channel key = { .cq = cq };
	struct migr_channel *c;

	if (!files->channels)
		return NULL;
	c = bsearch(&key, files->channel, files->channels, sizeof(key), by_cq);
	return c ? &c->fd : NULL;
}

int migr_cmd_new_channel(int fd)
{
	const struct ib_uverbs_create_comp_channel in = {};
	struct ib_uverbs_create_comp_channel_resp out = {};
	const struct migr_write cmd = {
		.command = IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL,
		.in = &in,
		.in_length = sizeof(in),
		.out = &out,
		.out_length = sizeof(out),
	};
	int ret = migr_write_run(fd, &cmd);

	return ret ? ret : (int)out.fd;
}

static int make_channels(struct migr_restore *r, const struct migr_image *img,
			 struct migr_files *files)
{
	const struct rxe_migr_rec_comp_channel *rec;
	unsigned int i;
	int fd;

	files->channel =
		calloc((size_t)img->count + 1, sizeof(*files->channel));
	if (!files->channel) {
		migr_bad(r->err, NULL, "no memory");
		return -ENOMEM;
	}
	for (i = 0; i < img->count; i++) {
		rec = (const void *)img->records[i];
		if (rec->rec.type != RXE_MIGR_COMP_CHANNEL)
			continue;
		fd = migr_cmd_new_channel(r->fd);
		if (fd < 0)
			return migr_restore_error(r, &rec->rec, "creation", fd);
		files->channel[files->channels++] =
			(struct migr_channel){ .cq = rec->cq, .fd = fd };
	}
	qsort(files->channel, files->channels, sizeof(*files->channel), by_cq);
	return 0;
}

static int make_files(struct migr_restore *r, const struct migr_image *img,
		      struct migr_files *files)
{
	const struct ib_uverbs_attr *fd;
	struct migr_ioctl cmd;
	int ret;

	migr_ioctl_init(&cmd, UVERBS_OBJECT_ASYNC_EVENT,
			UVERBS_METHOD_ASYNC_EVENT_ALLOC);
	fd = migr_ioctl_new_fd(&cmd, UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE);
	ret = migr_ioctl_run(r->fd, &cmd);
	if (ret) {
		migr_bad(r->err, NULL, "context: async event file: %s",
			 migr_errno_text(ret));
		return ret;
	}
	files->async_fd = (int)fd->data_s64;
	return make_channels(r, img, files);
}

/* The kernel takes its own copy, and what is restored from then on, from it */
static int load(struct migr_restore *r, const struct migr_image *img)
{
	int ret = migr_cmd_load(r->fd, img->data, img->length);

	if (ret)
		migr_bad(r->err, NULL, "%s", migr_load_text(ret));
	return ret;
}

enum place {
	PLACE_GAP,
	PLACE_LATER,
	PLACE_DONE
};

/* is everything there that the object refers to? */
static bool is_ready(const uint8_t *places, const struct rxe_migr_rec *rec)
{
	const struct rxe_migr_rec_mr *mr = (const void *)rec;
	const struct rxe_migr_rec_qp *qp = (const void *)rec;
	const struct rxe_migr_rec_srq *srq = (const void *)rec;
	const struct rxe_migr_rec_ah *ah = (const void *)rec;

	switch (rec->type) {
	case RXE_MIGR_AH:
		return places[ah->pd] == PLACE_DONE;
	case RXE_MIGR_MR:
		return places[mr->pd] == PLACE_DONE;
	case RXE_MIGR_SRQ:
		return places[srq->pd] == PLACE_DONE;
	case RXE_MIGR_QP:
		return places[qp->pd] == PLACE_DONE &&
		       places[qp->send_cq] == PLACE_DONE &&
		       places[qp->recv_cq] == PLACE_DONE &&
		       (qp->srq == RXE_MIGR_NO_HANDLE ||
			places[qp->srq] == PLACE_DONE);
	case RXE_MIGR_MW:
		return false; /* comes last: second_pass() */
	default:
		return true;
	}
}

/* every handle gets its object, or a PD */
static int first_pass(struct migr_restore *r, const struct migr_index *index,
		      uint8_t *places, uint32_t max_handle)
{
	const struct rxe_migr_rec *rec;
	unsigned int next = 0;
	uint32_t handle;
	int ret;

	for (handle = 0; next < index->count && handle <= max_handle;
	     handle++) {
		rec = index->by_handle[next];
		if (rec->handle != handle) {
			places[handle] = PLACE_GAP;
			ret = hold_place(r, handle);
		} else if (!is_ready(places, rec)) {
			next++;
			places[handle] = PLACE_LATER;
			ret = hold_place(r, handle);
		} else {
			next++;
			places[handle] = PLACE_DONE;
			ret = migr_create_object(r, rec);
		}
		if (ret)
			return ret;
	}
	return 0;
}

#define TURNS 3

static unsigned int turn_of(const struct rxe_migr_rec *rec)
{
	switch (rec->type) {
	case RXE_MIGR_MW:
		return 2;
	case RXE_MIGR_QP:
		return 1;
	default:
		return 0;
	}
}

/*
 * What had to wait: PDs and CQs never do, MRs, AHs and SRQs need only those, QPs the
 * SRQs, too, and windows MRs and QPs. Windows come last in any case: the core
 * destroys the youngest first when the file is closed, and rdma_rxe wants no QP
 * to go before the window that is bound to it.
 */
static int second_pass(struct migr_restore *r, const struct migr_index *index,
		       const uint8_t *places, unsigned int turn)
{
	const struct rxe_migr_rec *rec;
	unsigned int i;
	int ret;

	for (i = 0; i < index->count; i++) {
		rec = index->by_handle[i];
		if (places[rec->handle] != PLACE_LATER || turn_of(rec) != turn)
			continue;
		ret = free_place(r, rec->handle);
		if (!ret)
			ret = migr_create_object(r, rec);
		if (ret)
			return ret;
	}
	return 0;
}

static int free_gaps(struct migr_restore *r, const struct migr_index *index,
		     const uint8_t *places)
{
	uint32_t handle, end;
	int ret;

	end = index->count ? index->by_handle[index->count - 1]->handle : 0;
	for (handle = 0; handle < end; handle++) {
		if (places[handle] != PLACE_GAP)
			continue;
		ret = free_place(r, handle);
		if (ret)
			return ret;
	}
	return 0;
}

static int create_all(struct migr_restore *r, const struct migr_image *img)
{
	uint32_t max_handle = img->context->max_handle;
	struct migr_index index;
	unsigned int turn;
	uint8_t *places;
	int ret;

	ret = migr_index_init(&index, img);
	places = calloc((size_t)max_handle + 1, sizeof(*places));
	if (ret || !places) {
		migr_bad(r->err, NULL, "no memory");
		ret = -ENOMEM;
		goto out;
	}
	ret = first_pass(r, &index, places, max_handle);
	for (turn = 0; turn < TURNS && !ret; turn++)
		ret = second_pass(r, &index, places, turn);
	if (!ret)
		ret = free_gaps(r, &index, places);
out:
	free(places);
	migr_index_free(&index);
	return ret;
}

/* CQs first: a refilled QP may complete into them; then it joins its groups */
static int refill_all(struct migr_restore *r, const struct migr_image *img)
{
	static const uint32_t order[] = { RXE_MIGR_CQ, RXE_MIGR_SRQ,
					  RXE_MIGR_QP, RXE_MIGR_MCAST };
	unsigned int i;
	size_t k;
	int ret;

	for (k = 0; k < sizeof(order) / sizeof(order[0]); k++) {
		for (i = 0; i < img->count; i++) {
			if (img->records[i]->type != order[k])
				continue;
			ret = migr_refill_object(r, img->records[i]);
			if (ret)
				return ret;
		}
	}
	return 0;
}

/* by handle, as who makes objects knows them; not if all is as it was */
static int index_addresses(struct migr_restore *r, const struct migr_image *img)
{
	struct migr_path path;
	unsigned int i;

	if (!img->address)
		return 0;
	r->address = calloc((size_t)img->context->max_handle + 1,
			    sizeof(*r->address));
	if (!r->address) {
		migr_bad(r->err, NULL, "no memory");
		return -ENOMEM;
	}
	for (i = 0; i < img->count; i++)
		if (migr_path_of(img->records[i], &path))
			r->address[img->records[i]->handle] = &img->address[i];
	return 0;
}

int migr_restore_context(int cdev_fd, const struct migr_image *img,
			 struct migr_files *files, struct migr_error *err)
{
	struct migr_error ignored;
	struct migr_restore r;
	int ret;

	migr_restore_init(&r, cdev_fd, err ? err : &ignored);
	r.files = files;
	*files = (struct migr_files){ .async_fd = -1 };
	ret = get_context(&r);
	if (!ret)
		ret = load(&r, img);
	if (!ret)
		ret = make_files(&r, img, files);
	if (!ret)
		ret = index_addresses(&r, img);
	if (!ret)
		ret = create_all(&r, img);
	if (!ret)
		ret = refill_all(&r, img);
	if (ret)
		migr_files_close(files);
	migr_restore_release(&r);
	return ret;
}
