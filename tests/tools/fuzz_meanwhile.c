// SPDX-License-Identifier: GPL-2.0
/*
 * TRACK, and copies of memory, while the device writes.
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "fuzz_dirty.h"

#define ROUNDS 12

/*
 * A stranger to TRACK: he writes, by one MR or by many that come and go. What he writes, a
 * page or one of a huge page, he writes once: so nobody makes good what is missed.
 */
struct writer {
	struct pair *p;
	bool many;
	size_t step;	/* pages from one that is written to the next */
	size_t targets; /* that are written, */
	size_t allowed; /* by now, */
	size_t ready;	/* could be at once, */
	size_t written; /* and have been */
	/* held by who copies memory, as if the writer's process was frozen */
	pthread_mutex_t reg, dereg;
};

static size_t pages_of(const struct writer *w)
{
	return w->targets * w->step;
}

/* the n-th that is written, not in their order */
static size_t target(const struct writer *w, size_t n)
{
	return n * 7919 % w->targets * w->step + n * 31 % w->step;
}

static void register_some(struct writer *w, size_t first)
{
	struct pair *p = w->p;
	size_t n = pages_of(w) - first;

	pthread_mutex_lock(&w->reg);
	MUST(p->mr = ibv_reg_mr(p->b.pd, p->mem + first * PAGE,
				(n < FEW ? n : FEW) * PAGE, ALL_ACCESS));
	pthread_mutex_unlock(&w->reg);
}

static void deregister(struct writer *w)
{
	pthread_mutex_lock(&w->dereg);
	MUST(!ibv_dereg_mr(w->p->mr));
	pthread_mutex_unlock(&w->dereg);
}

static void wait_for(const size_t *n, size_t least)
{
	while (__atomic_load_n(n, __ATOMIC_ACQUIRE) < least)
		sched_yield();
}

static void *write_on(void *arg)
{
	struct writer *w = arg;
	struct pair *p = w->p;

	for (size_t n = 0; n < w->targets; n++) {
		if (w->many)
			register_some(w, target(w, n));
		__atomic_store_n(&w->ready, n + 1, __ATOMIC_RELEASE);
		wait_for(&w->allowed, n + 1);
		memcpy(p->a.mem, &(uint64_t){ n + 2 }, 8);
		write_page(p, w->many ? 0 : target(w, n));
		__atomic_store_n(&w->written, n + 1, __ATOMIC_RELEASE);
		if (w->many)
			deregister(w);
	}
	return NULL;
}

/* a round: what is soft-dirty is copied */
static size_t copy_round(struct writer *w, char *copy)
{
	const struct pair *p = w->p;
	const size_t all = pages_of(w);
	bool *dirty = calloc(all, sizeof(*dirty));
	size_t n = 0;

	MUST(dirty);
	pthread_mutex_lock(&w->reg);
	track(p, false);
	pthread_mutex_lock(&w->dereg);
	for (size_t i = 0; i < all; i += PAGES)
		read_soft_dirty(p->mem + i * PAGE, dirty + i);
	clear_soft_dirty();
	pthread_mutex_unlock(&w->dereg);
	pthread_mutex_unlock(&w->reg);
	for (size_t i = 0; i < all; i++)
		if (dirty[i]) {
			memcpy(copy + i * PAGE, p->mem + i * PAGE, PAGE);
			n++;
		}
	free(dirty);
	return n;
}

/* some are written before a round, others meanwhile, and in each second one none */
static size_t copy_rounds(struct writer *w, char *copy)
{
	size_t n = 0, before = 0, now;

	for (size_t i = 1; i <= ROUNDS; i++, before = now) {
		now = w->targets * i / ROUNDS;
		wait_for(&w->ready, before + 1);
		n += copy_round(w, copy);
		__atomic_store_n(&w->allowed, now, __ATOMIC_RELEASE);
		wait_for(&w->written, before + 1);
		n += copy_round(w, copy);
		wait_for(&w->written, now);
	}
	return n;
}

static void meanwhile(struct pair *p, enum kind kind, bool many)
{
	const bool huge = kind == HUGE_PAGES;
	struct writer w = { .p = p,
			    .many = many,
			    .step = huge ? HUGE / PAGE : 1,
			    .targets = huge ? 4 * ROUNDS : PAGES,
			    .reg = PTHREAD_MUTEX_INITIALIZER,
			    .dereg = PTHREAD_MUTEX_INITIALIZER };
	const size_t bytes = pages_of(&w) * PAGE;
	char *copy = malloc(bytes);
	pthread_t thread;
	size_t n;

	MUST(copy);
	p->mem = map_bytes(kind, bytes);
	if (!many)
		MUST(p->mr = ibv_reg_mr(p->b.pd, p->mem, bytes, ALL_ACCESS));
	copy_round(&w, copy);
	n = copy_round(&w, copy);
	/* or this tests nothing */
	EXPECT(kind == SMALL || n < pages_of(&w) / 2, true);
	MUST(!pthread_create(&thread, NULL, write_on, &w));
	n = copy_rounds(&w, copy);
	MUST(!pthread_join(thread, NULL));
	n += copy_round(&w, copy);
	printf("%zu pages in %d rounds, %zu written\n", n, 2 * ROUNDS + 1,
	       w.targets);
	EXPECT(memcmp(copy, p->mem, bytes), 0);
	if (!many)
		MUST(!ibv_dereg_mr(p->mr));
	munmap(p->mem, bytes);
	free(copy);
}

void tracked_meanwhile(struct pair *p, enum kind kind)
{
	meanwhile(p, kind, false);
	meanwhile(p, kind, true);
}
