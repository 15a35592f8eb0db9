// SPDX-License-Identifier: GPL-2.0
#include "steps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
	MOST_S = 1000000, /* that a log may count */
};

/*
 * From a line that has this text on it is that step. Lines that are none of these belong to
 * the step that they are in: the log is read for what takes long, not for its own sake.
 * "goes back" is a call of a plug-in in the middle of something: its lines, and then that again.
 */
struct mark {
	const char *text, *step;
	bool goes_back;
};

static const struct mark of_dump[] = {
	{ "freezing cgroup", STEPS_FREEZE, false },
	{ "SEIZE ", STEPS_FREEZE, false },
	{ "' hook 10 ", STEPS_RDMA "look", true },
	{ "' hook 11 ", STEPS_RDMA "STOP", false },
	{ "' hook ", STEPS_RDMA "objects", true },
	{ "Will take ", "namespaces", false },
	{ "Running network-lock", "network", false },
	{ "mnt: ", "mounts", false },
	{ "\ttype ", "mounts", false },
	{ "Collecting mappings", "mappings", false },
	{ "Parasite syscall_ip", "parasite", false },
	{ "Dumping opened files", "files", false },
	{ "Dumping pages", "memory", false },
	{ "Obtaining task auvx", "tasks", false },
	{ "'s namespaces", "namespaces", false },
	{ "cg: Dumping", "cgroups", false },
};

static const struct mark of_restore[] = {
	{ "rdma: waits for word", "wait", false },
	{ "rdma: has word", STEPS_RDMA "RESUME", false },
	{ "' hook 9 ", STEPS_RDMA "ATTACH", false },
	{ "' hook ", STEPS_RDMA "objects", true },
	{ "Forking task", "tasks", false },
	{ "Restoring namespaces", "namespaces", false },
	{ "Running setup-namespaces", "namespaces", false },
	{ "cg: Move into", "cgroups", false },
	{ "mnt: Restoring mount", "mounts", false },
	{ "mnt-v2: ", "mounts", false },
	{ "VMAs in image", "memory", false },
	{ "New mmap", "memory", false },
	{ "Switched to the restorer", "memory", false },
	{ "Opening fdinfo-s", "files", false },
	{ "Restoring children", "tasks", false },
	{ "Running post-restore", "tasks", false },
	{ "Preparing seqsk", "tasks", false },
	{ "Tasks resumed", STEPS_AFTER, false },
};

double steps_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

void steps_add(struct steps *s, const char *what, double at, double end)
{
	struct step *last = s->n ? s->list + s->n - 1 : NULL;
	struct step *list;

	if (last && (!strcmp(last->what, what) || s->n == STEPS_MOST)) {
		last->end = end;
		return;
	}
	list = reallocarray(s->list, (size_t)s->n + 1, sizeof(*list));
	if (!list)
		return; /* nothing else is lost */
	s->list = list;
	list[s->n++] = (struct step){ what, at, end };
}

void steps_free(struct steps *s)
{
	free(s->list);
	*s = (struct steps){ 0 };
}

/* ---- a log --------------------------------------------------------------------- */

struct reader {
	const struct mark *marks;
	size_t nr_marks;
	const char *anchor; /* the text of a line whose time is known */
	double anchored; /* when it was written, as the log counts; < 0: not found */
	bool ends;	 /* nothing after it counts */
	const char *in, *back; /* the step, and what it goes back to or NULL */
	struct steps found;    /* as the log counts */
};

static const struct mark *mark_of(const struct reader *r, const char *line)
{
	for (size_t i = 0; i < r->nr_marks; i++)
		if (strstr(line, r->marks[i].text))
			return r->marks + i;
	return NULL;
}

static void enter(struct reader *r, const char *line)
{
	const struct mark *m = mark_of(r, line);

	/* what the plug-in itself says is still its call */
	if (r->back && !strstr(line, "rdma: ")) {
		r->in = r->back;
		r->back = NULL;
	}
	if (!m)
		return;
	if (m->goes_back && !r->back)
		r->back = r->in;
	r->in = m->step;
}

/*
 * Two that take turns, as CRIU and the plug-in do for each mapping of a queue, become one of each:
 * they take as long, and thousands of them would leave no room for what comes then. Where
 * the first freeze begins is to be known, though the plug-in is called between them.
 */
static void join_turns(struct steps *s)
{
	struct step *a;

	if (s->n < 4)
		return;
	a = s->list + s->n - 4;
	if (strcmp(a[0].what, a[2].what) || strcmp(a[1].what, a[3].what) ||
	    !strcmp(a[0].what, STEPS_FREEZE) ||
	    !strcmp(a[1].what, STEPS_FREEZE))
		return;
	a[0].end += a[2].end - a[2].at;
	a[1].at = a[0].end;
	a[1].end = a[3].end;
	s->n -= 2;
}

static void read_lines(struct reader *r, FILE *f)
{
	double before = 0, at;
	char line[4096], *rest;

	while ((r->anchored < 0 || !r->ends) && fgets(line, sizeof(line), f)) {
		if (line[0] != '(')
			continue;
		at = strtod(line + 1, &rest);
		if (*rest != ')' || !(at >= 0 && at < MOST_S))
			continue;
		if (at < before)
			at = before; /* of another process */
		steps_add(&r->found, r->in, before, at);
		join_turns(&r->found);
		before = at;
		if (strstr(line, r->anchor) && r->anchored < 0)
			r->anchored = at;
		enter(r, line);
	}
}

static bool read_log(struct steps *s, struct reader *r, const char *log,
		     double from, double when)
{
	const struct step *step;
	FILE *f = fopen(log, "re");
	double shift;

	if (!f)
		return false;
	r->anchored = -1;
	read_lines(r, f);
	fclose(f);
	shift = when - r->anchored;
	for (int i = 0; i < r->found.n && r->anchored >= 0; i++) {
		step = r->found.list + i;
		if (step->end + shift > from)
			steps_add(s, step->what,
				  step->at + shift > from ? step->at + shift
							  : from,
				  step->end + shift);
	}
	steps_free(&r->found);
	return r->anchored >= 0;
}

bool steps_of_dump(struct steps *s, const char *log, double from, double held)
{
	struct reader r = {
		.marks = of_dump,
		.nr_marks = sizeof(of_dump) / sizeof(of_dump[0]),
		.anchor = "Running post-dump",
		.ends = true,
		.in = "start",
	};

	return read_log(s, &r, log, from, held);
}

bool steps_of_restore(struct steps *s, const char *log, double from,
		      double restored)
{
	struct reader r = {
		.marks = of_restore,
		.nr_marks = sizeof(of_restore) / sizeof(of_restore[0]),
		.anchor = "rdma: waits for word",
		.in = "images",
	};

	return read_log(s, &r, log, from, restored);
}

json_t *steps_told(const struct steps *s, double from)
{
	json_t *all = json_array();
	const struct step *step;

	for (int i = 0; i < s->n; i++) {
		step = s->list + i;
		json_array_append_new(all,
				      json_pack("{sssfsf}", "step", step->what,
						"at_ms",
						(step->at - from) * 1000, "ms",
						(step->end - step->at) * 1000));
	}
	return all;
}
