/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The gate that verbs go through which make, destroy, change or query an object. Who
 * suspends the process closes it and has all objects for himself; posts and polls have
 * sections instead. Without control nobody closes it, and it is not there.
 */
#ifndef MIGRRDMA_GATE_H
#define MIGRRDMA_GATE_H

#include "shadow.h"

/* Contexts of this process, in the order they were opened: with the gate closed */
extern struct contexts {
	struct shadow_context *tqh_first, **tqh_last;
} contexts;

#define EACH(ctx, obj, list)                  \
	TAILQ_FOREACH (ctx, &contexts, entry) \
		TAILQ_FOREACH (obj, &(ctx)->list, entry)

/* contexts make themselves known, and no longer; within the gate */
void gate_add_context(struct shadow_context *ctx);
void gate_remove_context(struct shadow_context *ctx);

/* within the gate, by who looks at all contexts: none is added, nor removed */
void gate_lock_contexts(void);
void gate_unlock_contexts(void);

/* One that is unplugged is in the list no more; with the gate closed. */
void gate_put_away(struct shadow_context *ctx);

/* is it the file of one that is unplugged? */
bool gate_is_unplugged(int cmd_fd);

/** gate_enter - begin a verb; it may wait while the process is suspended */
void gate_enter(void);
void gate_leave(void);

/**
 * gate_enter_with - begin a verb of a QP, or of a context
 * @suspended: is the QP suspended, or one of the context's: the verb waits, also while the
 *	gate is open. Written with the gate closed.
 */
void gate_enter_with(const bool *suspended);

/* from its start to its end a batch may have a lock of the layer's */
void gate_begin_batch(void);
void gate_end_batch(void);

/* within the gate: do others wait for more of this thread, a batch, or a verb around this one? */
bool gate_is_waited_for(void);

/* in the list of the context, or not any more */
#define LINK(ctx, list, obj)                                   \
	do {                                                   \
		pthread_mutex_lock(&(ctx)->lock);              \
		TAILQ_INSERT_TAIL(&(ctx)->list, (obj), entry); \
		pthread_mutex_unlock(&(ctx)->lock);            \
	} while (0)
#define UNLINK(ctx, list, obj)                            \
	do {                                              \
		pthread_mutex_lock(&(ctx)->lock);         \
		TAILQ_REMOVE(&(ctx)->list, (obj), entry); \
		pthread_mutex_unlock(&(ctx)->lock);       \
	} while (0)

/* the value of such a verb, with errno as it has left it */
#define GATED_BY(enter, verb)        \
	({                           \
		__typeof__(verb) r_; \
                                     \
		enter;               \
		r_ = (verb);         \
		gate_leave();        \
		r_;                  \
	})
#define GATED(verb) GATED_BY(gate_enter(), verb)
/* of a shadow QP or context */
#define GATED_WITH(obj, verb) GATED_BY(gate_enter_with(&(obj)->suspended), verb)

/**
 * gate_close - wait until no verb is under way, and let none begin; at first not even
 *		while it waits
 * @deadline: in ns of CLOCK_MONOTONIC
 *
 * Return: true, or false if one does not end
 */
bool gate_close(uint64_t deadline);
void gate_open(void);

/** gate_let_in - open it, to be closed soon again: who waits has been let in before that */
void gate_let_in(void);

/**
 * gate_close_surely - the same, while QPs are suspended and the gate was open
 *
 * Who is within may wait for a CQ that a thread has in a provider's batch, which waits for
 * a suspended QP itself: after a second that one waits no more. Threads that have none wait on, but
 * not for ever, as one of them may have a lock of the application's that is waited for:
 * after ten more nobody waits. What a verb does to a QP then is found when that is resumed
 * or connected.
 */
void gate_close_surely(void);

/* in a process that has just been forked */
void gate_in_child(void);

/* there: nobody has this lock, whoever had it */
static inline void unlock_in_child(pthread_mutex_t *lock)
{
	pthread_mutex_init(lock, NULL);
}

/** lock_cqs - lock several CQs: the first one, and those behind it by @also; or NULL */
void lock_cqs(struct shadow_cq *all);
void unlock_cqs(struct shadow_cq *all);

#endif
