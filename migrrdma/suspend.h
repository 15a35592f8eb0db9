/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Suspension: no queue pair of the process has a request under way, and what the
 * application posts meanwhile waits here. It is not disturbed (MigrRDMA, section 3.4).
 */
#ifndef MIGRRDMA_SUSPEND_H
#define MIGRRDMA_SUSPEND_H

#include "shadow.h"

/* what a suspension has found */
struct suspension {
	unsigned int qps; /* suspended: in RTS, of a type that has a send queue */
	unsigned int markers; /* that had to be waited for */
	unsigned int taken;   /* completions that the application has not yet */
	uint64_t wait_ns;     /* for threads in verbs */
	uint64_t drain_ns;    /* for send queues */
	char reason[128];     /* why not */
};

/**
 * layer_suspend - suspend all queue pairs of the process, and wait until they are drained
 * @timeout_ms: budget; when it is over the process runs on as before, and so it does when
 *	who has asked for that by the socket goes away
 * @s: receives what was found
 *
 * Until layer_resume(), verbs of QPs wait; those of other objects until somebody asks for
 * anything else: peers may wait for what needs them.
 * Their peers must be under the layer, too: a marker is a WRITE of no bytes.
 *
 * Return: 0; EBUSY if they are suspended, EOPNOTSUPP if one of them cannot be,
 * ETIMEDOUT; with a reason
 */
int layer_suspend(unsigned int timeout_ms, struct suspension *s);

/**
 * layer_suspend_some - the same, of these QPs only
 * @qpns: their numbers, as the application knows them
 * @n: at least 1
 *
 * All others go on. Verbs of these QPs wait until layer_resume(), and those that close
 * their contexts or free a window; others only while the layer goes through the lists.
 * One that takes its time holds the layer up, so the budget may be exceeded.
 *
 * Return: the same, EINVAL if there is no such QP
 */
int layer_suspend_some(const uint32_t *qpns, unsigned int n,
		       unsigned int timeout_ms, struct suspension *s);

/**
 * layer_resume - post what has been collected, and let posts through again
 * @s: receives the reason why not
 *
 * A send queue may be full of what was posted before. Then posts of that QP are collected
 * until suspend_go_on() has found room, and the next suspension of it waits for that.
 *
 * Return: 0, EINVAL if nothing is suspended, EBUSY if a QP has no peer yet
 */
int layer_resume(struct suspension *s);

/**
 * layer_give_up - the same, whatever there is
 *
 * QPs that are replaced and not connected are in ERR: the application learns that from
 * completions.
 */
void layer_give_up(void);

/**
 * suspend_go_on - post more of what was collected; to be called again if there is a rest,
 *		   and nothing while all is suspended
 *
 * Return: was that all?
 */
bool suspend_go_on(void);

/**
 * suspend_hold - keep the process suspended, as it is
 *
 * Return: is it? Then suspend_release() is to be called.
 */
bool suspend_hold(void);
void suspend_release(void);

/**
 * suspend_take_turn - the same; or keep the process from being suspended
 *
 * Return: is it? suspend_release() is to be called in any case.
 */
bool suspend_take_turn(void);

/* with it: from now on verbs of suspended QPs, too, wait for the gate only */
void suspend_let_verbs(void);

/* with it, or within the gate: all QPs, or some? */
bool suspend_is_whole(void);

/* marker.c: before there is one */
void suspend_make_markers(void);

/* the QP has been destroyed, or is in RESET: none of its completions is to come */
void suspend_forget_marker(struct shadow_qp *qp);

/* is it the completion of a marker? Then it is noted. The CQ's lock is held. */
bool suspend_is_marker(struct shadow_cq *cq, const struct ibv_wc *wc);

/*
 * Post a marker to a real QP: to send, or to receive if that is in ERR. The lock of the
 * CQ is held. Return: 0, EBUSY if there is one or the CQ has no room, or what the
 * provider says
 */
int suspend_post_marker(struct shadow_qp *qp);
int suspend_post_recv_marker(struct shadow_qp *qp);

/**
 * marker_is_awaited - is one of a suspended QP to come? Others may have one of a suspension
 *		       before. The CQ's lock is held.
 */
bool marker_is_awaited(const struct shadow_cq *cq);

/**
 * marker_post - the same, of a request that binds a real window, or invalidates its key
 *
 * When the QP is not marked any more, its marker_status says whether that was done.
 */
int marker_post(struct shadow_qp *qp, struct ibv_send_wr *wr);

/**
 * marker_make_ah - a UD QP that has been in RTS gets an address handle for its markers; with
 *		    the gate closed
 *
 * Return: 0, EADDRNOTAVAIL if its port has no GID, or what the device says
 */
int marker_make_ah(struct shadow_qp *qp);
void marker_drop_ah(struct shadow_qp *qp);
/* of that of the real one before: it is destroyed */
void marker_unmake_ah(struct shadow_qp *qp);

/* in a process that has just been forked */
void suspend_in_child(void);

#endif
