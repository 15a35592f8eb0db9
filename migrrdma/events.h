/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Events of completion channels and contexts. With control on, the layer acknowledges
 * them to the real objects at once, and the application to the layer, so that real
 * objects can be replaced whatever it does.
 */
#ifndef MIGRRDMA_EVENTS_H
#define MIGRRDMA_EVENTS_H

#include "shadow.h"

/* the CQ is about to be armed */
void events_arm(struct shadow_cq *cq, bool solicited_only);

/* was it armed, and no event has come since? The context's lock is held. */
bool events_armed(const struct shadow_cq *cq);

/* the application is to have another event of it; the context's lock is held */
void events_add(struct shadow_cq *cq);

/**
 * events_carry - read all events of a real channel
 * @keep: are they the application's? It gets them before others, then.
 *
 * Context: the context's lock is held
 */
void events_carry(struct ibv_comp_channel *real, bool keep);

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
