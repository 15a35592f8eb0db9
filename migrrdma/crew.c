// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "crew.h"

#include <pthread.h>
#include <stdatomic.h>

enum {
	STACK_BYTES = 256 << 10, /* an application may have all of it locked */
};

struct crew {
	size_t pieces;
	atomic_size_t next;
	bool (*piece)(size_t i, void *arg);
	void *arg;
};

static void *work(void *arg)
{
	struct crew *c = arg;
	size_t i;

	while ((i = atomic_fetch_add(&c->next, 1)) < c->pieces)
		if (!c->piece(i, c->arg))
			atomic_store(&c->next, c->pieces);
	return NULL;
}

void crew_do(size_t pieces, size_t threads, bool (*piece)(size_t i, void *arg),
	     void *arg)
{
	struct crew c = { .pieces = pieces, .piece = piece, .arg = arg };
	pthread_t thread[CREW_MOST];
	pthread_attr_t attr;
	size_t n = 0;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	while (n + 1 < CREW_MOST && n + 1 < threads && n + 1 < pieces &&
	       !pthread_create(thread + n, &attr, work, &c))
		n++;
	pthread_attr_destroy(&attr);
	work(&c);
	while (n)
		pthread_join(thread[--n], NULL);
}
