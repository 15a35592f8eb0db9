/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What went wrong: all violations are counted, the first ones are kept word
 * for word. Safe from any thread.
 */
#ifndef MIX_VERDICT_H
#define MIX_VERDICT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum {
	VERDICT_KEPT = 20,
	VERDICT_TEXT = 320,
};

struct verdict {
	pthread_mutex_t lock;
	uint64_t count;
	bool fatal; /* no point in going on; read without the lock */
	char text[VERDICT_KEPT][VERDICT_TEXT];
};

#define VERDICT_INIT { .lock = PTHREAD_MUTEX_INITIALIZER }

void violation(struct verdict *v, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* As violation(), and the run ends: a QP in error, a peer that left. */
void violation_fatal(struct verdict *v, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static inline bool verdict_fatal(const struct verdict *v)
{
	return __atomic_load_n(&v->fatal, __ATOMIC_RELAXED);
}

#endif
