// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Event files: which channels CQs have, and events that nobody has read.
 *
 * A channel is known by one of its CQs. All of them name that one, which names
 * itself.
 */

#include <infiniband/verbs.h>

#include "migr_check.h"

static const struct rxe_migr_rec_cq *cq_of(const struct migr_index *index,
					   uint32_t handle)
{
	const struct rxe_migr_rec *rec = migr_index_find(index, handle);

	return rec && rec->type == RXE_MIGR_CQ ? (const void *)rec : NULL;
}

/* The CQ's channel, from the CQ's side */
int migr_check_channel_of(const struct migr_index *index,
			  const struct rxe_migr_rec_cq *cq,
			  struct migr_error *err)
{
	const struct rxe_migr_rec_cq *first;

	if (!index || cq->comp_channel == RXE_MIGR_NO_HANDLE)
		return 0;
	first = cq_of(index, cq->comp_channel);
	if (!first || first->comp_channel != cq->comp_channel)
		return migr_bad(
			err, &cq->rec,
			"comp_channel is %u, by which no channel is known",
			cq->comp_channel);
	return 0;
}

int migr_check_channel(const struct migr_index *index,
		       const struct rxe_migr_rec *rec, struct migr_error *err)
{
	const struct rxe_migr_rec_comp_channel *channel = (const void *)rec;
	const uint32_t *event = (const void *)(channel + 1);
	const struct rxe_migr_rec_cq *cq;
	uint64_t length;
	uint32_t i;

	length = sizeof(*channel) +
		 (((uint64_t)channel->events * sizeof(*event) + 7) & ~7ULL);
	if (rec->handle)
		return migr_bad(err, rec, "a channel has no handle");
	if (rec->length != length)
		return migr_bad(err, rec,
				"length is %u bytes, %u events take %llu",
				rec->length, channel->events,
				(unsigned long long)length);
	cq = cq_of(index, channel->cq);
	if (!cq || cq->comp_channel != channel->cq)
		return migr_bad(err, rec, "cq is %u, which is no CQ with it",
				channel->cq);
	for (i = 0; i < channel->events; i++) {
		cq = cq_of(index, event[i]);
		if (!cq || cq->comp_channel != channel->cq)
			return migr_bad(
				err, rec,
				"event %u is of %u, which is no CQ of channel %u",
				i, event[i], channel->cq);
	}
	return 0;
}

uint32_t migr_event_object(uint32_t event)
{
	switch (event) {
	case IBV_EVENT_CQ_ERR:
		return RXE_MIGR_CQ;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		return RXE_MIGR_SRQ;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		return RXE_MIGR_QP;
	default:
		return 0;
	}
}

int migr_check_async(const struct migr_index *index,
		     const struct rxe_migr_rec *rec, struct migr_error *err)
{
	const struct rxe_migr_rec_async_fd *async = (const void *)rec;
	const struct rxe_migr_event *event = (const void *)(async + 1);
	uint64_t length =
		sizeof(*async) + (uint64_t)async->events * sizeof(*event);
	uint32_t i, type;
	int ret = 0;

	if (rec->handle || async->reserved)
		return migr_bad(err, rec, "handle or reserved is not 0");
	if (rec->length != length)
		return migr_bad(err, rec,
				"length is %u bytes, %u events take %llu",
				rec->length, async->events,
				(unsigned long long)length);
	for (i = 0; i < async->events && !ret; i++, event++) {
		type = migr_event_object(event->type);
		if (type)
			ret = migr_check_ref(index, rec, "event's handle",
					     event->handle, type, err);
		else if (event->type > IBV_EVENT_GID_CHANGE)
			ret = migr_bad(err, rec, "event %u is of type %u", i,
				       event->type);
		else if (event->handle > 1)
			ret = migr_bad(err, rec, "event %u is of port %u", i,
				       event->handle);
	}
	return ret;
}
