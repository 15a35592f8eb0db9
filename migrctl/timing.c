// SPDX-License-Identifier: GPL-2.0
#include "timing.h"

#include <string.h>

enum {
	MOST_MS = 100000000,
};

void timing_begin(struct timing *t)
{
	*t = (struct timing){ .begun = steps_now() };
}

void timing_free(struct timing *t)
{
	steps_free(&t->dump);
	steps_free(&t->sent);
	steps_free(&t->suspended);
	steps_free(&t->connected);
	json_decref(t->there);
	t->there = NULL;
}

void timing_mark(struct timing *t, const char *phase)
{
	if (t->n == TIMING_MOST)
		return;
	t->marks[t->n].phase = phase;
	t->marks[t->n++].at = steps_now();
}

void timing_step(struct timing *t, const char *what, double began)
{
	steps_add(&t->sent, what, began, steps_now());
}

void timing_there(struct timing *t, double told, double answered, double ms)
{
	double slack = answered - told - ms / 1000;

	t->there_at = told + (slack > 0 ? slack / 2 : 0);
}

/* ---- the layer ----------------------------------------------------------------- */

struct layer_step {
	const char *key, *step;
};

/* They follow each other. */
static void add_layer(struct steps *s, const struct layer_step *list,
		      const json_t *said, double at)
{
	double ms;

	for (; list->key; list++) {
		ms = json_number_value(json_object_get(said, list->key));
		if (!(ms >= 0 && ms <= MOST_MS))
			return;
		steps_add(s, list->step, at, at + ms / 1000);
		at += ms / 1000;
	}
}

void timing_layer(struct timing *t, const json_t *said, double resumed)
{
	static const struct layer_step before[] = {
		{ "suspend_ms", STEPS_LAYER "suspend" },
		{ "replace_partners_ms", STEPS_LAYER "replace partners" },
		{ "hold_ms", STEPS_LAYER "hold" },
		{ NULL, NULL },
	};
	static const struct layer_step after[] = {
		{ "restore_replace_ms", STEPS_LAYER "replace" },
		{ "exchange_ms", STEPS_LAYER "exchange" },
		{ "connect_ms", STEPS_LAYER "connect" },
		{ "resume_ms", STEPS_LAYER "resume" },
		{ NULL, NULL },
	};

	if (!said)
		return;
	add_layer(&t->suspended, before, said, t->stop);
	if (resumed > 0)
		add_layer(&t->connected, after, said, resumed);
}

double timing_suspended(const struct timing *t)
{
	const struct steps *s = &t->connected;

	return s->n ? (s->list[s->n - 1].end - t->stop) * 1000 : 0;
}

json_t *timing_told(const struct timing *t)
{
	json_t *all = json_array();
	double from = t->begun;

	for (int i = 0; i < t->n; i++) {
		json_array_append_new(all, json_pack("{sssf}", "phase",
						     t->marks[i].phase, "ms",
						     (t->marks[i].at - from) *
							     1000));
		from = t->marks[i].at;
	}
	return all;
}

/* ---- both ends ----------------------------------------------------------------- */

static void add(json_t *all, const char *host, const char *step, double at_ms,
		double ms)
{
	json_array_append_new(all, json_pack("{sssssfsf}", "host", host, "step",
					     step, "at_ms", at_ms, "ms", ms));
}

static void add_here(json_t *all, const struct timing *t,
		     const struct steps *steps, const char *host)
{
	const struct step *s;

	for (int i = 0; i < steps->n; i++) {
		s = steps->list + i;
		add(all, host, s->what, (s->at - t->stop) * 1000,
		    (s->end - s->at) * 1000);
	}
}

/* What the other end says is taken for what it is: names and numbers, for people to look at. */
static double add_there(json_t *all, const struct timing *t, const char *host)
{
	double at_ms, ms, resumed = 0, shift = (t->there_at - t->stop) * 1000;
	const json_t *o;
	const char *step;
	size_t i;

	json_array_foreach (t->there, i, o) {
		step = json_string_value(json_object_get(o, "step"));
		at_ms = json_number_value(json_object_get(o, "at_ms"));
		ms = json_number_value(json_object_get(o, "ms"));
		if (!step || i == STEPS_MOST || !(at_ms >= 0 && ms >= 0) ||
		    at_ms + ms > MOST_MS)
			break;
		add(all, host, step, at_ms + shift, ms);
		if (!strcmp(step, STEPS_AFTER))
			resumed = at_ms + shift;
	}
	return resumed;
}

/* until it is frozen it runs on, though it was told to stop */
static double frozen_ms(const struct timing *t)
{
	for (int i = 0; i < t->dump.n; i++)
		if (!strcmp(t->dump.list[i].what, STEPS_FREEZE))
			return (t->dump.list[i].at - t->stop) * 1000;
	return 0;
}

json_t *timing_steps(const struct timing *t, const char *here,
		     const char *there, double *stopped_ms)
{
	json_t *all = json_array();
	double resumed;

	add_here(all, t, &t->suspended, here);
	add_here(all, t, &t->dump, here);
	add_here(all, t, &t->sent, here);
	resumed = add_there(all, t, there);
	add_here(all, t, &t->connected, here);
	*stopped_ms = resumed > 0 ? resumed - frozen_ms(t) : 0;
	return all;
}
