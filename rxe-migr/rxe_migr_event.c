// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Event files, and how many events of an object the application has read.
 *
 * The answer to a destroy command says how many, and libibverbs then waits until
 * the application has acknowledged as many. Its own count moves with its memory,
 * so the kernel's has to come along, and so have the events that nobody has read.
 * The core keeps both to itself, and a driver has no business with them otherwise:
 * core_uverbs.h is the core's private header, of the kernel for which this is built
 * (rxe-migr/build).
 *
 * An application that runs while it is dumped can read an event between two looks.
 * That changes a count, and the events in a queue, and DUMP compares both.
 */
#include <linux/crc32.h>

#include "core_uverbs.h"
#include "rxe.h"

void rxe_migr_get_cq_events(struct ib_cq *cq, u32 *comp, u32 *async)
{
	*comp = READ_ONCE(cq->uobject->comp_events_reported);
	*async = READ_ONCE(cq->uobject->uevent.events_reported);
}

void rxe_migr_set_cq_events(struct ib_cq *cq, u32 comp, u32 async)
{
	WRITE_ONCE(cq->uobject->comp_events_reported, comp);
	WRITE_ONCE(cq->uobject->uevent.events_reported, async);
}

u32 rxe_migr_get_qp_events(struct ib_qp *qp)
{
	return READ_ONCE(qp->uobject->uevent.events_reported);
}

void rxe_migr_set_qp_events(struct ib_qp *qp, u32 async)
{
	WRITE_ONCE(qp->uobject->uevent.events_reported, async);
}

u32 rxe_migr_get_srq_events(struct ib_srq *srq)
{
	return READ_ONCE(srq->uobject->uevent.events_reported);
}

void rxe_migr_set_srq_events(struct ib_srq *srq, u32 async)
{
	WRITE_ONCE(srq->uobject->uevent.events_reported, async);
}

/* A destroy command holds the object exclusively; it lets it go only if it fails. */
static bool is_being_destroyed(struct ib_uobject *uobj)
{
	return atomic_read(&uobj->usecnt) < 0;
}

/* --- completion channels --- */

/**
 * rxe_migr_channel - the completion channel of a CQ
 * @cq: the CQ, of an application, with a reference
 *
 * A channel that the application has closed tells nobody anything, as none.
 *
 * Return: what tells channels apart, or NULL if there is none
 */
void *rxe_migr_channel(struct ib_cq *cq)
{
	struct ib_uverbs_event_queue *q = cq->cq_context;

	return q && !READ_ONCE(q->is_closed) ? q : NULL;
}

/**
 * rxe_migr_file_channel - the completion channel of an event file
 * @uobj: its uobject
 *
 * Return: as rxe_migr_channel()
 */
void *rxe_migr_file_channel(struct ib_uobject *uobj)
{
	return &container_of(uobj, struct ib_uverbs_completion_event_file,
			     uobj)->ev_queue;
}

/**
 * rxe_migr_get_comp_events - the events in the completion channel of a CQ
 * @cq: the CQ, with a reference, which has a channel
 * @handles: receives the handles of the CQs that they tell of
 * @max: how many at most
 * @crc: receives a checksum of all
 *
 * Return: how many there are; -EFBIG if there are more than anybody would wait for with
 * interrupts off; or -EAGAIN if one of these CQs is being destroyed: it may have no
 * record, and its events are removed last of all
 */
int rxe_migr_get_comp_events(struct ib_cq *cq, u32 *handles, int max, u32 *crc)
{
	struct ib_uverbs_event_queue *q = cq->cq_context;
	struct ib_uverbs_event *event;
	struct ib_ucq_object *uobj;
	bool busy = false;
	u32 handle;
	int n = 0;

	*crc = 0;
	spin_lock_irq(&q->lock);
	list_for_each_entry(event, &q->event_list, list) {
		uobj = container_of(event->counter, struct ib_ucq_object,
				    comp_events_reported);
		busy |= is_being_destroyed(&uobj->uevent.uobject);
		handle = uobj->uevent.uobject.id;
		*crc = crc32_le(*crc, (u8 *)&handle, sizeof(handle));
		if (n++ < max)
			handles[n - 1] = handle;
		if (n > RXE_MIGR_MOST_EVENTS)
			break;
	}
	spin_unlock_irq(&q->lock);

	if (n > RXE_MIGR_MOST_EVENTS)
		return -EFBIG;
	return busy ? -EAGAIN : n;
}

/* --- the asynchronous event file --- */

/**
 * rxe_migr_get_async_events - the events in the asynchronous event file
 * @ufile: the context's file
 * @events: receives them
 * @max: how many at most
 * @crc: receives a checksum of all, if there is such a file
 *
 * Return: how many there are, -ENOENT if the file is closed, or was never open, or
 * -EFBIG or -EAGAIN as rxe_migr_get_comp_events()
 */
int rxe_migr_get_async_events(struct ib_uverbs_file *ufile,
			      struct rxe_migr_event *events, int max, u32 *crc)
{
	struct ib_uverbs_async_event_file *file;
	struct ib_uverbs_event *event;
	struct ib_uevent_object *uobj;
	bool busy = false;
	int n = 0;

	file = READ_ONCE(ufile->default_async_file);
	if (!file)
		return -ENOENT;

	spin_lock_irq(&file->ev_queue.lock);
	*crc = 0;
	list_for_each_entry(event, &file->ev_queue.event_list, list) {
		struct rxe_migr_event e = {
			.type = event->desc.async.event_type,
			.handle = event->desc.async.element,
		};

		if (event->counter) {
			uobj = container_of(event->counter,
					    struct ib_uevent_object,
					    events_reported);
			busy |= is_being_destroyed(&uobj->uobject);
			e.handle = uobj->uobject.id;
		}
		*crc = crc32_le(*crc, (u8 *)&e, sizeof(e));
		if (n++ < max)
			events[n - 1] = e;
		if (n > RXE_MIGR_MOST_EVENTS)
			break;
	}
	if (file->ev_queue.is_closed)
		n = -ENOENT;
	else if (n > RXE_MIGR_MOST_EVENTS)
		n = -EFBIG;
	else if (busy)
		n = -EAGAIN;
	spin_unlock_irq(&file->ev_queue.lock);

	return n;
}

/**
 * rxe_migr_is_default_async - is it the file whose events are in images?
 * @ufile: the context's file
 * @uobj: an asynchronous event file of it
 */
bool rxe_migr_is_default_async(struct ib_uverbs_file *ufile,
			       struct ib_uobject *uobj)
{
	struct ib_uverbs_async_event_file *file;

	file = READ_ONCE(ufile->default_async_file);
	return file && &file->uobj == uobj;
}

/* --- events that are put back --- */

/**
 * rxe_migr_alloc_event - memory for an event that is going to be put back
 * @spare: list that gets it
 *
 * The core takes it when the event comes, from where there may be none, and then the
 * event is lost.
 *
 * Context: process; sleeps.
 * Return: 0 or -ENOMEM
 */
int rxe_migr_alloc_event(struct list_head *spare)
{
	struct ib_uverbs_event *event;

	event = kzalloc(sizeof(*event), GFP_KERNEL_ACCOUNT);
	if (!event)
		return -ENOMEM;
	list_add(&event->list, spare);

	return 0;
}

/**
 * rxe_migr_free_events - those that were not put back
 * @spare: from rxe_migr_alloc_event()
 */
void rxe_migr_free_events(struct list_head *spare)
{
	struct ib_uverbs_event *event, *next;

	list_for_each_entry_safe(event, next, spare, list)
		kfree(event);
}

static struct ib_uverbs_event *first_event(struct list_head *spare)
{
	return list_first_entry(spare, struct ib_uverbs_event, list);
}

/* as the core's handlers do, with the event and, unless it is NULL, its object */
static void put_event(struct ib_uverbs_event_queue *q,
		      struct ib_uverbs_event *event, struct list_head *obj_list)
{
	spin_lock_irq(&q->lock);
	if (!q->is_closed) {
		list_move_tail(&event->list, &q->event_list);
		if (obj_list)
			list_add_tail(&event->obj_list, obj_list);
	}
	spin_unlock_irq(&q->lock);

	wake_up_interruptible(&q->poll_wait);
	kill_fasync(&q->async_queue, SIGIO, POLL_IN);
}

/**
 * rxe_migr_put_comp_event - a completion event
 * @spare: has an event for it
 * @cq: the CQ, which has a channel, with a reference
 */
void rxe_migr_put_comp_event(struct list_head *spare, struct ib_cq *cq)
{
	struct ib_uverbs_event *event = first_event(spare);
	struct ib_ucq_object *uobj = cq->uobject;

	event->desc.comp.cq_handle = uobj->uevent.uobject.user_handle;
	event->counter = &uobj->comp_events_reported;
	put_event(cq->cq_context, event, &uobj->comp_list);
}

/**
 * rxe_migr_put_async_event - an event of a CQ, QP or SRQ
 * @spare: has an event for it
 * @uobj: the object, with a reference
 * @type: of the event
 */
void rxe_migr_put_async_event(struct list_head *spare, struct ib_uobject *uobj,
			      u32 type)
{
	struct ib_uevent_object *obj = container_of(uobj, struct ib_uevent_object,
						    uobject);
	struct ib_uverbs_event *event = first_event(spare);

	if (!obj->event_file)
		return;
	event->desc.async.element = uobj->user_handle;
	event->desc.async.event_type = type;
	event->counter = &obj->events_reported;
	put_event(&obj->event_file->ev_queue, event, &obj->event_list);
}

/**
 * rxe_migr_put_port_event - an event that is of no object
 * @spare: has an event for it
 * @ufile: the context's file
 * @port: its port
 * @type: of the event
 */
void rxe_migr_put_port_event(struct list_head *spare,
			     struct ib_uverbs_file *ufile, u32 port, u32 type)
{
	struct ib_uverbs_async_event_file *file;
	struct ib_uverbs_event *event = first_event(spare);

	file = READ_ONCE(ufile->default_async_file);
	if (!file)
		return;
	event->desc.async.element = port;
	event->desc.async.event_type = type;
	put_event(&file->ev_queue, event, NULL);
}
