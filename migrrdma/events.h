/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Events of completion channels and contexts. With control on, the layer acknowledges
 * them to the real objects at once, and the application to the layer, so that real
 * objects can be replaced whatever it does.
 */
#ifndef MIGRRDMA_EVENTS_H
#define MIGRRDMA_EVENTS_H

#include "shadow.h"

/* the application is to have another event of it; the context's lock is held */
void events_add(struct shadow_cq *cq);

/* not the one, after all, that armed.c has given it. Return: false if it has been read */
bool events_take_back(struct shadow_cq *cq);

/**
 * events_carry - read all events of a real channel
 * @keep: may they be the application's? It gets them before others, then.
 *
 * Context: with @keep, nobody has locks of CQs
 */
void events_carry(struct ibv_comp_channel *real, bool keep);

/**
 * events_expect - the event of a completion that has been found already may be on its way: it
 *	comes at once, and is dropped then; or the completion came before the CQ was armed
 * @is_locked: the CQ's lock is held. Else those of other CQs of the channel are sorted.
 */
void events_expect(struct shadow_cq *cq, bool is_locked);

/**
 * events_sort_begin - from now on nobody is told of events in the real channels of contexts
 *	with suspended QPs: the layer reads them, and carries those of the application
 *
 * Context: the gate is closed, for all three. No completion of the layer's is there yet.
 */
void events_sort_begin(void);

/* read what there is, again and again. Return: may one be to come that is the layer's? */
bool events_sort(void);

/* such ones have come, or do not any more; the application is told itself again */
void events_sort_end(void);

/* The same of asynchronous events; those that the layer has caused are noted only. */
void events_carry_async(struct shadow_context *ctx, struct ibv_context *real);

/* The QP stays in ERR: what was noted of it is the application's, and comes to be. */
void events_give_up(struct shadow_qp *qp);

/*
 * The device is gone. Who has armed a CQ gets an event, and all who wait for others EIO;
 * QPs with SRQs have reached their last RECV, and the context gets
 * IBV_EVENT_DEVICE_FATAL.
 */
void events_unplug(struct shadow_context *ctx);
void events_unplug_async(struct shadow_context *ctx);

/* The real object is gone: wait until the application has acknowledged all events. */
void events_end_cq(struct shadow_cq *cq);
void events_end_srq(struct shadow_srq *srq);
void events_end_qp(struct shadow_qp *qp);

/* forget what the application has not got; the context's lock is held */
void events_forget_cq(struct shadow_cq *cq);
void events_forget_async(struct shadow_context *ctx);

#endif
