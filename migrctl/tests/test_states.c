// SPDX-License-Identifier: GPL-2.0
/*
 * All that two ends of a move can come to, with each of them dying, and the connection being
 * lost, wherever that can be: never do both run the container, and when both are alive again
 * in the end one of them does.
 */
#include "check.h"
#include "states.h"

struct world {
	enum move_state s, t;
	bool s_lives, t_lives; /* the processes of the move */
	bool connected;
	bool grant, runs, dropped; /* under way */
	bool s_runs, t_runs;	   /* the container */
	bool t_has_run;		   /* and partners may have noticed */
	bool t_died;		   /* with its host: nothing is known there */
};

enum {
	MOST = 20000,
};

static struct world seen[MOST];
static int n_seen;

static bool same(const struct world *a, const struct world *b)
{
	return a->s == b->s && a->t == b->t && a->s_lives == b->s_lives &&
	       a->t_lives == b->t_lives && a->connected == b->connected &&
	       a->grant == b->grant && a->runs == b->runs &&
	       a->dropped == b->dropped && a->s_runs == b->s_runs &&
	       a->t_runs == b->t_runs && a->t_has_run == b->t_has_run &&
	       a->t_died == b->t_died;
}

static void see(const struct world *w)
{
	for (int i = 0; i < n_seen; i++)
		if (same(&seen[i], w))
			return;
	MUST(n_seen < MOST);
	seen[n_seen++] = *w;
}

static void set_s(struct world *w, enum move_state to)
{
	if (w->s == to)
		return;
	CHECK(state_may_follow(MOVE_SOURCE, w->s, to), "%s to %s",
	      state_name(w->s), state_name(to));
	w->s = to;
	w->s_runs = to == MOVE_BACK || to < MOVE_HELD;
}

static void set_t(struct world *w, enum move_state to)
{
	if (w->t == to)
		return;
	CHECK(state_may_follow(MOVE_TARGET, w->t, to), "%s to %s",
	      state_name(w->t), state_name(to));
	w->t = to;
	w->t_runs = to == MOVE_RUNNING;
	w->t_has_run |= w->t_runs;
}

static void lose_connection(struct world *w)
{
	w->connected = w->grant = w->runs = w->dropped = false;
}

/* what one end does next by itself; false if it waits for the other one */
static bool s_goes_on(struct world *w)
{
	if (!w->s_lives) {
		if (state_is_last(w->s))
			return false;
		set_s(w, state_orphaned(MOVE_SOURCE, w->s, false));
		w->s_lives = true;
		return true;
	}
	if (w->connected && w->s < MOVE_STOPPING)
		set_s(w, MOVE_STOPPING);
	else if (w->connected && w->s == MOVE_STOPPING)
		set_s(w, MOVE_HELD);
	else if (w->connected && w->s == MOVE_HELD && w->t == MOVE_READY) {
		set_s(w, MOVE_GRANTED);
		w->grant = true;
	} else if (!w->connected && w->s < MOVE_GRANTED)
		set_s(w, MOVE_BACK);
	else
		return false;
	return true;
}

static bool t_goes_on(struct world *w)
{
	if (!w->t_lives) {
		if (state_is_last(w->t) || w->t_died)
			return false;
		set_t(w, state_orphaned(MOVE_TARGET, w->t, w->t_runs));
		w->t_lives = true;
		return true;
	}
	if (w->connected && w->t == MOVE_PREPARING)
		set_t(w, MOVE_COPYING);
	else if (w->connected && w->t == MOVE_COPYING && w->s == MOVE_HELD)
		set_t(w, MOVE_READY);
	else if (w->t == MOVE_GRANTED) {
		set_t(w, MOVE_RUNNING);
		w->runs = w->connected;
	} else if (!w->connected && w->t < MOVE_READY)
		set_t(w, MOVE_DROPPED);
	else
		return false;
	return true;
}

/* what is under way arrives */
static bool arrives(struct world *w)
{
	if (w->grant && w->t_lives) {
		w->grant = false;
		if (w->t == MOVE_READY)
			set_t(w, MOVE_GRANTED);
		return true;
	}
	if ((w->runs || w->dropped) && w->s_lives) {
		set_s(w, state_after(MOVE_SOURCE, w->s,
				     w->runs ? ANSWER_RUNS : ANSWER_DROPPED));
		w->runs = w->dropped = false;
		return true;
	}
	return false;
}

/* who cannot know asks: the other end's daemon lives, and reads its journal */
static bool s_asks(struct world *w)
{
	enum move_state before = w->s;

	if (!w->s_lives || w->connected)
		return false;
	set_s(w, state_after(MOVE_SOURCE, w->s,
			     w->t_died ? ANSWER_DIED
				       : state_answer(MOVE_TARGET, w->t)));
	return w->s != before;
}

static bool t_asks(struct world *w)
{
	enum move_state before = w->t;

	if (!w->t_lives || w->connected)
		return false;
	set_t(w,
	      state_after(MOVE_TARGET, w->t, state_answer(MOVE_SOURCE, w->s)));
	return w->t != before;
}

/* CRIU sees the end of who gives it a word: see gate.c */
static void s_dies(struct world *w)
{
	w->s_lives = false;
	lose_connection(w);
	if (w->s < MOVE_GRANTED)
		w->s_runs = true;
}

static void t_dies(struct world *w)
{
	w->t_lives = false;
	lose_connection(w);
	if (w->t == MOVE_GRANTED)
		w->t_runs = w->t_has_run = true;
}

static void t_host_dies(struct world *w)
{
	t_dies(w);
	w->t_runs = false;
	w->t_died = true;
}

static void t_gives_up(struct world *w)
{
	if (!w->t_lives || w->t >= MOVE_GRANTED)
		return;
	set_t(w, MOVE_DROPPED);
	w->dropped = w->connected;
}

/* Whatever happens next may be any of these. */
static void try_all(const struct world *from)
{
	bool (*const steps[])(struct world *) = { s_goes_on, t_goes_on, arrives,
						  s_asks, t_asks };
	void (*const faults[])(struct world *) = { s_dies, t_dies, t_host_dies,
						   t_gives_up,
						   lose_connection };
	struct world w;

	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		w = *from;
		if (steps[i](&w))
			see(&w);
	}
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
		w = *from;
		faults[i](&w);
		see(&w);
	}
}

/* without another fault, but the connection is not made again */
static void comes_to_its_end(struct world w)
{
	const struct world from = w;

	lose_connection(&w);
	for (int i = 0; i < 100; i++)
		if (!s_goes_on(&w) && !t_goes_on(&w) && !s_asks(&w) &&
		    !t_asks(&w))
			break;
	if (w.t_died)
		/* it may have run there: somebody has to say that it does not */
		CHECK(w.s == MOVE_GRANTED || w.s_runs || from.s == MOVE_LEFT);
	else
		CHECK(w.s_runs != w.t_runs && state_is_last(w.s) &&
			      state_is_last(w.t),
		      "%s and %s", state_name(w.s), state_name(w.t));
}

static void test_never_two(void)
{
	struct world w = { .s_lives = true,
			   .t_lives = true,
			   .connected = true,
			   .s_runs = true };

	see(&w);
	for (int i = 0; i < n_seen; i++) {
		w = seen[i];
		CHECK(!w.s_runs || (!w.t_runs && !w.t_has_run), "%s and %s",
		      state_name(w.s), state_name(w.t));
		comes_to_its_end(w);
		try_all(&w);
	}
	printf("%d states of both\n", n_seen);
	CHECK(n_seen > 100);
}

/* Who is at a host that has been fenced, or is a new one, goes on. */
static void test_other_is_dead(void)
{
	CHECK(state_after(MOVE_SOURCE, MOVE_GRANTED, ANSWER_FENCED) ==
	      MOVE_BACK);
	CHECK(state_after(MOVE_SOURCE, MOVE_GRANTED, ANSWER_DIED) ==
	      MOVE_GRANTED);
	CHECK(state_after(MOVE_TARGET, MOVE_READY, ANSWER_DIED) == MOVE_READY);
	CHECK(state_after(MOVE_TARGET, MOVE_READY, ANSWER_FENCED) ==
	      MOVE_GRANTED);
	CHECK(state_after(MOVE_TARGET, MOVE_READY, ANSWER_UNKNOWN) ==
	      MOVE_READY);
}

static void test_names(void)
{
	enum move_answer a;
	enum move_state s;

	for (int i = 0; i < MOVE_STATES; i++)
		CHECK(state_of(state_name((enum move_state)i), &s) &&
		      s == (enum move_state)i);
	for (int i = 0; i < MOVE_ANSWERS; i++)
		CHECK(answer_of(answer_name((enum move_answer)i), &a) &&
		      a == (enum move_answer)i);
	CHECK(!state_of("", &s) && !state_of(NULL, &s) && !answer_of("no", &a));
}

int main(void)
{
	test_never_two();
	test_other_is_dead();
	test_names();
	return check_result();
}
