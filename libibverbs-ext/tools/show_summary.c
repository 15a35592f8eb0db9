// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The summary of an image: how much of what, and where its work stands.
 */

#include <errno.h>
#include <stdlib.h>

#include "migr_check.h"
#include "show.h"

struct known {
	struct migr_index index;
	uint32_t *unread; /* by handle: asynchronous events of a QP */
};

static const struct show_layout *layout_or_unknown(uint32_t type)
{
	static const struct show_layout unknown = { .name = "unknown" };

	return show_layout_of(type) ?: &unknown;
}

static void show_count(struct show *s, const struct migr_image *img,
		       const struct show_layout *layout)
{
	const struct rxe_migr_rec *rec = &img->context->rec;
	uint64_t count = 0, bytes = 0;

	for (; rec; rec = show_next(img, rec))
		if (layout_or_unknown(rec->type) == layout) {
			count++;
			bytes += rec->length;
		}
	if (!count)
		return;
	show_open(s, layout->name, '{');
	if (s->json)
		show_text(s, "type", layout->name);
	show_number(s, "count", count);
	show_number(s, "bytes", bytes);
	show_close(s);
}

static void show_counts(struct show *s, const struct migr_image *img)
{
	unsigned int i;

	show_open(s, "types", '[');
	for (i = 0; show_layouts[i]; i++)
		if (show_layouts[i]->type)
			show_count(s, img, show_layouts[i]);
	show_count(s, img, layout_or_unknown(0));
	show_close(s);
}

/* what the lines about QPs want to know; 0 or -errno */
static int look(struct known *known, const struct migr_image *img)
{
	const struct rxe_migr_rec_async_fd *async;
	const struct rxe_migr_event *event;
	unsigned int i;
	uint32_t e;
	int ret;

	known->unread = calloc((size_t)img->context->max_handle + 1,
			       sizeof(*known->unread));
	if (!known->unread)
		return -ENOMEM;
	ret = migr_index_init(&known->index, img);
	if (ret) {
		free(known->unread);
		return ret;
	}
	for (i = 0; i < img->count; i++) {
		async = (const void *)img->records[i];
		if (async->rec.type != RXE_MIGR_ASYNC_FD)
			continue;
		event = (const void *)(async + 1);
		for (e = 0; e < async->events; e++)
			if (migr_event_object(event[e].type) == RXE_MIGR_QP)
				known->unread[event[e].handle]++;
	}
	return 0;
}

static void show_unpolled(struct show *s, const struct migr_index *index,
			  const char *name, uint32_t handle)
{
	const struct rxe_migr_rec_cq *cq =
		(const void *)migr_index_find(index, handle);

	show_open(s, name, '{');
	show_number(s, "handle", handle);
	show_number(s, "unpolled", show_ring_used(&cq->ring));
	show_close(s);
}

/* a field as it is in the record */
static void show_member(struct show *s, const struct rxe_migr_rec *rec,
			size_t offset)
{
	const struct show_field *field = show_layout_of(rec->type)->field;

	while (field->offset != offset)
		field++;
	show_value(s, field->name, field->form, (const char *)rec + offset,
		   field->size);
}

static void show_one_qp(struct show *s, const struct known *known,
			const struct rxe_migr_rec_qp *qp)
{
	static const size_t members[] = {
		offsetof(struct rxe_migr_rec_qp, qpn),
		offsetof(struct rxe_migr_rec_qp, state),
		offsetof(struct rxe_migr_rec_qp, dgid),
		offsetof(struct rxe_migr_rec_qp, dest_qpn),
		offsetof(struct rxe_migr_rec_qp, epoch),
	};
	char name[32];
	size_t i;

	snprintf(name, sizeof(name), "QP %u", qp->rec.handle);
	show_open(s, name, '{');
	if (s->json)
		show_number(s, "handle", qp->rec.handle);
	for (i = 0; i < sizeof(members) / sizeof(members[0]); i++)
		show_member(s, &qp->rec, members[i]);
	show_number(s, "sends", show_ring_used(&qp->sq));
	show_number(s, "receives", show_ring_used(&qp->rq));
	show_unpolled(s, &known->index, "send_cq", qp->send_cq);
	show_unpolled(s, &known->index, "recv_cq", qp->recv_cq);
	show_number(s, "unread", known->unread[qp->rec.handle]);
	show_close(s);
}

static void show_one_srq(struct show *s, const struct rxe_migr_rec_srq *srq)
{
	char name[32];

	snprintf(name, sizeof(name), "SRQ %u", srq->rec.handle);
	show_open(s, name, '{');
	if (s->json)
		show_number(s, "handle", srq->rec.handle);
	show_member(s, &srq->rec, offsetof(struct rxe_migr_rec_srq, srq_num));
	show_number(s, "receives", show_ring_used(&srq->ring));
	show_close(s);
}

static void show_queues(struct show *s, const struct migr_image *img,
			const struct known *known)
{
	const struct rxe_migr_rec *rec;
	unsigned int i;

	show_open(s, "qps", '[');
	for (i = 0; i < img->count; i++) {
		rec = img->records[i];
		if (rec->type == RXE_MIGR_QP)
			show_one_qp(s, known, (const void *)rec);
	}
	show_close(s);
	show_open(s, "srqs", '[');
	for (i = 0; i < img->count; i++) {
		rec = img->records[i];
		if (rec->type == RXE_MIGR_SRQ)
			show_one_srq(s, (const void *)rec);
	}
	show_close(s);
}

/* what waits in all files and queues together */
static void show_events(struct show *s, const struct migr_image *img)
{
	const struct rxe_migr_rec_comp_channel *channel;
	const struct rxe_migr_rec_async_fd *async;
	uint64_t comp = 0, other = 0;
	unsigned int i;

	for (i = 0; i < img->count; i++) {
		channel = (const void *)img->records[i];
		async = (const void *)img->records[i];
		if (channel->rec.type == RXE_MIGR_COMP_CHANNEL)
			comp += channel->events;
		else if (async->rec.type == RXE_MIGR_ASYNC_FD)
			other += async->events;
	}
	show_open(s, "unread", '{');
	show_number(s, "completion", comp);
	show_number(s, "asynchronous", other);
	show_close(s);
}

int show_summary(struct show *s, const char *file, const struct migr_image *img)
{
	struct known known;
	int ret;

	ret = look(&known, img);
	if (ret)
		return ret;
	show_begin(s, file, img);
	s->lines = 1;
	show_member(s, &img->context->rec,
		    offsetof(struct rxe_migr_rec_context, device));
	show_counts(s, img);
	show_queues(s, img, &known);
	show_events(s, img);
	show_close(s);
	migr_index_free(&known.index);
	free(known.unread);
	return 0;
}
