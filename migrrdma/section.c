// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "section.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"

_Thread_local struct section own_section = { .depth = SECTION_UNKNOWN };

static struct section *sections;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_key_t key;
static bool is_on; /* before that nobody waits */

/* A handler would want the lock, or find what is half done. */
static void block_signals(sigset_t *before)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, before);
}

static void list(struct section *s)
{
	s->next = sections;
	s->link = &sections;
	if (s->next)
		s->next->link = &s->next;
	sections = s;
}

/* at the end of a thread, unless it was the one that ends the process */
static void delist(void *section)
{
	struct section *s = section;
	sigset_t before;

	block_signals(&before);
	pthread_mutex_lock(&lock);
	*s->link = s->next;
	if (s->next)
		s->next->link = s->link;
	pthread_mutex_unlock(&lock);
	/* other destructors may use verbs, too */
	s->depth = SECTION_UNKNOWN;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* a child has only the thread that made it */
static void in_child(void)
{
	struct section *s = &own_section;

	pthread_mutex_init(&lock, NULL);
	sections = NULL;
	if (s->depth >= 0)
		list(s);
}

void section_enlist(void)
{
	struct section *s = &own_section;
	sigset_t before;

	if (!is_on) {
		s->depth = 1;
		return;
	}
	block_signals(&before);
	pthread_mutex_lock(&lock);
	if (s->depth < 0) {
		list(s);
		s->depth = 1;
	} else { /* a handler has been here since this section began */
		s->depth++;
	}
	pthread_mutex_unlock(&lock);
	pthread_setspecific(key, s);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static int membarrier(int command)
{
	return (int)syscall(SYS_membarrier, command, 0, 0);
}

int sections_init(void)
{
	int err;

	if (membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED))
		return errno;
	err = pthread_key_create(&key, delist);
	if (!err)
		err = pthread_atfork(NULL, NULL, in_child);
	is_on = !err;
	return err;
}

/* One that was restored from an image may have to say so again. */
void sections_barrier(void)
{
	if (!membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED))
		return;
	membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
	membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED);
}

static unsigned int wait; /* which one this is */

void sections_begin_wait(void)
{
	wait++;
	sections_barrier();
}

bool sections_have_ended(void)
{
	struct section *s;
	bool left = false;

	pthread_mutex_lock(&lock);
	for (s = sections; s; s = s->next) {
		if (__atomic_load_n(&s->depth, __ATOMIC_ACQUIRE) <= 0)
			s->ended = wait;
		left |= s->ended != wait;
	}
	pthread_mutex_unlock(&lock);
	return !left;
}

bool sections_wait(uint64_t deadline)
{
	const struct timespec pause = { .tv_nsec = 20000 };

	sections_begin_wait();
	while (!sections_have_ended()) {
		if (clock_ns() > deadline)
			return false;
		nanosleep(&pause, NULL);
	}
	return true;
}
