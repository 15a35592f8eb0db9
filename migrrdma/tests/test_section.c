// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Read-side sections: who is waited for
 */
#include "app.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "clock.h"
#include "section.h"

enum {
	THREADS = 8,
	ROUNDS = 200
};

#define LONG (clock_ns() + 20 * 1000000000ULL)

/* a thread that is in so many sections as it is told */
struct reader {
	pthread_t thread;
	atomic_int want, depth;
};

static void *read_side(void *arg)
{
	struct reader *r = arg;
	int want;

	while ((want = r->want) >= 0) {
		if (want > r->depth) {
			section_begin();
			r->depth++;
		} else if (want < r->depth) {
			r->depth--;
			section_end();
		} else {
			usleep(50);
		}
	}
	return NULL;
}

static void want(struct reader *r, int depth)
{
	r->want = depth;
	WAIT(r->depth == depth);
}

static void start(struct reader *r)
{
	*r = (struct reader){};
	MUST(!pthread_create(&r->thread, NULL, read_side, r));
}

static void stop(struct reader *r)
{
	want(r, 0);
	r->want = -1;
	MUST(!pthread_join(r->thread, NULL));
}

static atomic_bool waiting, waited;

static void *wait_for_all(void *arg)
{
	(void)arg;
	waiting = true;
	CHECK(sections_wait(LONG));
	waited = true;
	return NULL;
}

static void test_wait(void)
{
	struct reader r;
	pthread_t waiter;

	puts("a thread in a section");
	CHECK(sections_wait(LONG)); /* there is none */
	start(&r);
	CHECK(sections_wait(LONG)); /* it has never been in one */
	want(&r, 1);
	CHECK(!sections_wait(clock_ns() + 2000000));
	CHECK(!sections_wait(0)); /* long ago, but it looks once */
	want(&r, 3);
	CHECK(!sections_wait(clock_ns() + 2000000));
	want(&r, 1); /* the outer one has not ended */
	CHECK(!sections_wait(clock_ns() + 2000000));
	want(&r, 0);
	CHECK(sections_wait(0));
	want(&r, 2);
	MUST(!pthread_create(&waiter, NULL, wait_for_all, NULL));
	WAIT(waiting);
	want(&r, 1);
	CHECK(!waited);
	want(&r, 0);
	MUST(!pthread_join(waiter, NULL));
	CHECK(waited);

	/* who waits is not waited for, unless it is in one itself */
	section_begin();
	CHECK(!sections_wait(0));
	section_end();
	CHECK(sections_wait(0));
	stop(&r);
	CHECK(sections_wait(0));
}

/* only those that are in one */
static void test_some(void)
{
	struct reader r[THREADS];

	puts("some of many threads");
	for (int i = 0; i < THREADS; i++) {
		start(&r[i]);
		want(&r[i], 1);
	}
	for (int i = 0; i < THREADS; i++) {
		CHECK(!sections_wait(0));
		if (i & 1)
			stop(&r[i]);
		else
			want(&r[i], 0);
	}
	CHECK(sections_wait(0));
	/* in the list there is one in the middle, at both ends */
	for (int i = 0; i < THREADS; i += 2) {
		want(&r[i], 1);
		CHECK(!sections_wait(0));
		stop(&r[i]);
		CHECK(sections_wait(0));
	}
}

static pthread_key_t late;

/* as a library that uses verbs when a thread ends */
static void in_destructor(void *arg)
{
	(void)arg;
	section_begin();
	section_end();
}

static void *come_and_go(void *arg)
{
	atomic_uint *sections = arg;

	pthread_setspecific(late, arg);
	for (int i = 0; i < 3; i++) {
		section_begin();
		++*sections;
		section_end();
	}
	return NULL;
}

static atomic_bool done;

static void *wait_again_and_again(void *arg)
{
	(void)arg;
	while (!done)
		CHECK(sections_wait(LONG));
	return NULL;
}

static void test_come_and_go(void)
{
	atomic_uint sections = 0;
	pthread_t t[THREADS], waiter;

	puts("threads that come and go");
	MUST(!pthread_key_create(&late, in_destructor));
	MUST(!pthread_create(&waiter, NULL, wait_again_and_again, NULL));
	for (int n = 0; n < ROUNDS; n++) {
		for (int i = 0; i < THREADS; i++)
			MUST(!pthread_create(&t[i], NULL, come_and_go,
					     &sections));
		for (int i = 0; i < THREADS; i++)
			pthread_join(t[i], NULL);
	}
	done = true;
	pthread_join(waiter, NULL);
	CHECK(sections == THREADS * ROUNDS * 3);
	CHECK(sections_wait(0));
	pthread_key_delete(late);
}

/* what a section has written is there when it has been waited for */
static struct reader_data {
	atomic_bool closed;
	unsigned int plain;
	atomic_uint sum;
} data;

static void *write_in_sections(void *arg)
{
	(void)arg;
	for (;;) {
		section_begin();
		if (atomic_load_explicit(&data.closed, memory_order_relaxed)) {
			section_end();
			return NULL;
		}
		data.plain++;
		atomic_fetch_add_explicit(&data.sum, 1, memory_order_relaxed);
		section_end();
	}
}

static void test_order(void)
{
	pthread_t writer;
	unsigned int plain;

	puts("what sections have done");
	for (int n = 0; n < ROUNDS; n++) {
		data.closed = false;
		data.plain = data.sum = 0;
		MUST(!pthread_create(&writer, NULL, write_in_sections, NULL));
		WAIT(data.sum > 10);
		data.closed = true;
		MUST(sections_wait(LONG));
		plain = data.plain;
		CHECK(plain == data.sum);
		pthread_join(writer, NULL);
		CHECK(data.plain == plain); /* there was no further one */
	}
}

/* --- signals in a thread's first section, and at its end --- */

static _Thread_local bool comes; /* one, while the list's lock is held */
static _Thread_local volatile sig_atomic_t handled;

static void use_verbs(int number)
{
	(void)number;
	section_begin();
	section_end();
	handled++;
}

/* The linker calls it instead. */
int __real_pthread_mutex_unlock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex);

int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex)
{
	sig_atomic_t before = handled;

	if (comes) {
		comes = false;
		raise(SIGUSR1);
		CHECK(handled == before);
	}
	return __real_pthread_mutex_unlock(mutex);
}

static void *begin_first(void *arg)
{
	(void)arg;
	own_section.depth++; /* and here it comes */
	raise(SIGUSR1);
	CHECK(handled == 1 && own_section.depth == 0);
	section_enlist();
	CHECK(own_section.depth == 1);
	MUST(own_section.next != &own_section);
	CHECK(!sections_wait(0));
	section_end();
	CHECK(sections_wait(LONG));
	return NULL;
}

static void *enlist_first(void *arg)
{
	(void)arg;
	comes = true;
	section_begin();
	CHECK(!comes && own_section.depth == 1);
	section_end();
	WAIT(handled == 1); /* now it may */
	CHECK(sections_wait(LONG));
	comes = true;
	return NULL;
}

static void test_signals(void)
{
	const struct sigaction action = { .sa_handler = use_verbs };
	pthread_t thread;

	puts("a handler that uses verbs");
	MUST(!sigaction(SIGUSR1, &action, NULL));
	MUST(!pthread_create(&thread, NULL, begin_first, NULL));
	MUST(!pthread_join(thread, NULL));
	MUST(!pthread_create(&thread, NULL, enlist_first, NULL));
	MUST(!pthread_join(thread, NULL));
	CHECK(sections_wait(0));
}

static int status_of(pid_t child)
{
	int status;

	MUST(child > 0 && waitpid(child, &status, 0) == child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 255;
}

static void test_fork(void)
{
	struct reader r;
	pid_t child;

	puts("fork()");
	start(&r);
	want(&r, 1);
	section_begin();
	section_end();
	CHECK(!sections_wait(0));
	child = fork(); /* it does not have the thread */
	if (!child)
		_exit(!sections_wait(LONG));
	CHECK(!status_of(child));

	section_begin();
	child = fork(); /* it is in the section, too */
	if (!child) {
		if (sections_wait(0))
			_exit(1);
		section_end();
		if (!sections_wait(LONG))
			_exit(2);
		/* and has threads of its own */
		start(&r);
		want(&r, 1);
		if (sections_wait(0))
			_exit(3);
		stop(&r);
		_exit(sections_wait(LONG) ? 0 : 4);
	}
	CHECK(!status_of(child));
	section_end();
	CHECK(!sections_wait(0)); /* here it is */
	stop(&r);
	CHECK(sections_wait(0));
}

int main(void)
{
	CHECK(!sections_init());
	CHECK(!sections_init()); /* as after fork() */
	test_wait();
	test_some();
	test_come_and_go();
	test_order();
	test_signals();
	test_fork();
	return check_result();
}
