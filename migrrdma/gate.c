// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "gate.h"

#include <time.h>

#include "cancel.h"
#include "clock.h"
#include "control.h"
#include "section.h"

#define SOON 5000000		   /* ns */
#define FIRST 500000000		   /* in which who closes comes first */
#define PATIENCE 1000000000	   /* ns */
#define MORE_PATIENCE 10000000000L /* a part of what migr-layer waits for us */
#define FOREVER (UINT64_MAX / 2)   /* of a deadline */

struct contexts contexts = TAILQ_HEAD_INITIALIZER(contexts);
static struct contexts put_away = TAILQ_HEAD_INITIALIZER(put_away);
static pthread_mutex_t contexts_lock = PTHREAD_MUTEX_INITIALIZER;

/* Who is within may enter again, as by a callback: only one who is alone closes it. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	unsigned int within, kept; /* out, as it was closed, or is to be */
	unsigned int closing;	   /* who waits for that, and comes first */
	bool closed;
	enum {
		TO_NOBODY,
		TO_WAITED_FOR, /* who may have what others wait for */
		TO_ALL,
	} yields; /* to who waits for a suspended QP */
} gate = { .lock = PTHREAD_MUTEX_INITIALIZER,
	   .changed = PTHREAD_COND_INITIALIZER };

/* Nor is a thread cancelled there. */
static _Thread_local struct {
	unsigned int depth;
	unsigned int batches; /* with a lock of the layer's */
	int cancel;
} own;

void gate_add_context(struct shadow_context *ctx)
{
	pthread_mutex_lock(&contexts_lock);
	TAILQ_INSERT_TAIL(ctx->put_away ? &put_away : &contexts, ctx, entry);
	pthread_mutex_unlock(&contexts_lock);
}

void gate_remove_context(struct shadow_context *ctx)
{
	pthread_mutex_lock(&contexts_lock);
	TAILQ_REMOVE(ctx->put_away ? &put_away : &contexts, ctx, entry);
	pthread_mutex_unlock(&contexts_lock);
}

void gate_lock_contexts(void)
{
	pthread_mutex_lock(&contexts_lock);
}

void gate_unlock_contexts(void)
{
	pthread_mutex_unlock(&contexts_lock);
}

void gate_put_away(struct shadow_context *ctx)
{
	pthread_mutex_lock(&contexts_lock);
	TAILQ_REMOVE(&contexts, ctx, entry);
	TAILQ_INSERT_TAIL(&put_away, ctx, entry);
	ctx->put_away = true;
	pthread_mutex_unlock(&contexts_lock);
}

static bool is_of(const struct contexts *list, int cmd_fd)
{
	struct shadow_context *c;

	TAILQ_FOREACH (c, list, entry)
		if (c->real->cmd_fd == cmd_fd && c->unplugged)
			return true;
	return false;
}

bool gate_is_unplugged(int cmd_fd)
{
	bool is;

	/* nor is there the lock, in a child */
	if (!control_is_on())
		return false;
	pthread_mutex_lock(&contexts_lock);
	is = is_of(&contexts, cmd_fd) || is_of(&put_away, cmd_fd);
	pthread_mutex_unlock(&contexts_lock);
	return is;
}

void gate_begin_batch(void)
{
	own.batches++;
}

void gate_end_batch(void)
{
	own.batches--;
}

/* A batch of the provider's is a section. */
bool gate_is_waited_for(void)
{
	return own.depth > 1 || own.batches || own_section.depth > 0;
}

static bool yields_to_us(void)
{
	return gate.yields == TO_ALL ||
	       (gate.yields == TO_WAITED_FOR && gate_is_waited_for());
}

/* Who is waited for may have what those within wait for. */
static bool is_kept(void)
{
	return gate.closed ||
	       (gate.closing && !gate_is_waited_for() && gate.yields != TO_ALL);
}

void gate_enter_with(const bool *suspended)
{
	/* a child that was forked within still leaves it */
	if (!control_is_on() && !own.depth)
		return;
	if (!own.depth++)
		own.cancel = cancel_off();
	pthread_mutex_lock(&gate.lock);
	while (is_kept() || (*suspended && !yields_to_us())) {
		bool kept = is_kept();

		gate.kept += kept;
		pthread_cond_wait(&gate.changed, &gate.lock);
		gate.kept -= kept;
		if (kept && !gate.kept)
			pthread_cond_broadcast(&gate.changed);
	}
	gate.within++;
	pthread_mutex_unlock(&gate.lock);
}

void gate_enter(void)
{
	gate_enter_with(&(bool){ false });
}

/* Who has begun before there was a gate is not within, whatever there is now. */
void gate_leave(void)
{
	if (!own.depth)
		return;
	pthread_mutex_lock(&gate.lock);
	if (!--gate.within)
		pthread_cond_broadcast(&gate.changed);
	pthread_mutex_unlock(&gate.lock);
	if (!--own.depth)
		cancel_back(own.cancel);
}

static struct timespec timespec_of(uint64_t ns)
{
	return (struct timespec){ .tv_sec = (time_t)(ns / 1000000000),
				  .tv_nsec = (long)(ns % 1000000000) };
}

/* with the lock; false if it does not come to be so */
static bool wait_for_none(uint64_t deadline)
{
	const struct timespec until = timespec_of(deadline);
	int err = 0;

	while ((gate.within || gate.closed) && !err)
		err = pthread_cond_clockwait(&gate.changed, &gate.lock,
					     CLOCK_MONOTONIC, &until);
	return !err;
}

/*
 * Verbs of several threads may leave no moment in which there is none. But one that is
 * within may wait for another: so they are kept out for some time only.
 */
bool gate_close(uint64_t deadline)
{
	uint64_t first = clock_ns() + FIRST;
	bool good;

	pthread_mutex_lock(&gate.lock);
	gate.closing++;
	good = wait_for_none(first < deadline ? first : deadline);
	gate.closing--;
	gate.closed |= good;
	if (!good) {
		pthread_cond_broadcast(&gate.changed);
		if (first < deadline)
			good = wait_for_none(deadline);
		gate.closed |= good;
	}
	pthread_mutex_unlock(&gate.lock);
	return good;
}

void gate_open(void)
{
	pthread_mutex_lock(&gate.lock);
	gate.closed = false;
	pthread_cond_broadcast(&gate.changed);
	pthread_mutex_unlock(&gate.lock);
}

void gate_let_in(void)
{
	const struct timespec until = timespec_of(clock_ns() + SOON);
	int err = 0;

	pthread_mutex_lock(&gate.lock);
	gate.closed = false;
	pthread_cond_broadcast(&gate.changed);
	while (gate.kept && !err)
		err = pthread_cond_clockwait(&gate.changed, &gate.lock,
					     CLOCK_MONOTONIC, &until);
	pthread_mutex_unlock(&gate.lock);
}

static void yield(int to)
{
	pthread_mutex_lock(&gate.lock);
	gate.yields = to;
	pthread_cond_broadcast(&gate.changed);
	pthread_mutex_unlock(&gate.lock);
}

/* Nobody knows of the application's locks: who has one may be waited for, too. */
void gate_close_surely(void)
{
	if (gate_close(clock_ns() + PATIENCE))
		return;
	yield(TO_WAITED_FOR);
	if (!gate_close(clock_ns() + MORE_PATIENCE)) {
		yield(TO_ALL);
		gate_close(FOREVER);
	}
	yield(TO_NOBODY);
}

/* All locks are to be made anew. */
void gate_in_child(void)
{
	struct shadow_context *c;

	pthread_mutex_init(&gate.lock, NULL);
	pthread_cond_init(&gate.changed, NULL);
	gate.within = own.depth;
	gate.kept = gate.closing = 0;
	gate.closed = false;
	pthread_mutex_init(&contexts_lock, NULL);
	TAILQ_FOREACH (c, &put_away, entry)
		c->put_away = false;
	TAILQ_CONCAT(&contexts, &put_away, entry);
}

/* Nobody who has one of them waits for another. */
void lock_cqs(struct shadow_cq *all)
{
	for (; all; all = all->also)
		pthread_mutex_lock(&all->lock);
}

void unlock_cqs(struct shadow_cq *all)
{
	for (; all; all = all->also)
		pthread_mutex_unlock(&all->lock);
}
