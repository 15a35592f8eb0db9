// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * All memory regions of a process are registered anew, by several threads: each of them
 * pins the pages of one at a time, and large ones come first.
 */
#include <string.h>
#include <unistd.h>

#include "build.h"
#include "crew.h"

struct work {
	struct shadow_mr **mrs;
	size_t n;
	_Atomic(struct shadow_mr *) failed; /* one of them, and why */
	atomic_int err;
};

static void register_one(struct work *w, struct shadow_mr *mr)
{
	struct shadow_mr *none = NULL;

	errno = 0;
	mr->other = mr_make(mr);
	if (!mr->other && atomic_compare_exchange_strong(&w->failed, &none, mr))
		atomic_store(&w->err, errno ? errno : EIO);
}

static bool register_next(size_t i, void *arg)
{
	struct work *w = arg;

	if (atomic_load(&w->failed))
		return false;
	register_one(w, w->mrs[i]);
	return true;
}

/* As many threads as there are processors, which have the pages to pin */
static void register_all(struct work *w)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	crew_do(w->n, cpus > 0 ? (size_t)cpus : 1, register_next, w);
}

static int by_pd(const void *a, const void *b)
{
	const struct shadow_mr *x = *(struct shadow_mr *const *)a;
	const struct shadow_mr *y = *(struct shadow_mr *const *)b;

	if (x->mr.pd != y->mr.pd)
		return x->mr.pd < y->mr.pd ? -1 : 1;
	return (x->mr.length > y->mr.length) - (x->mr.length < y->mr.length);
}

/*
 * The smallest of each PD by this thread, which stays. Of a thread that has ended the
 * kernel does not tell whose it was, and if the shadow process has made PD and QPs,
 * nothing else tells migrd whose these are.
 */
static void register_own(struct work *w)
{
	const struct ibv_pd *pd = NULL;
	size_t left = 0;

	qsort(w->mrs, w->n, sizeof(*w->mrs), by_pd);
	for (size_t i = 0; i < w->n && !atomic_load(&w->failed); i++) {
		if (w->mrs[i]->mr.pd == pd) {
			w->mrs[left++] = w->mrs[i];
			continue;
		}
		pd = w->mrs[i]->mr.pd;
		register_one(w, w->mrs[i]);
	}
	w->n = left;
}

static int larger_first(const void *a, const void *b)
{
	size_t x = (*(struct shadow_mr *const *)a)->mr.length;
	size_t y = (*(struct shadow_mr *const *)b)->mr.length;

	return (x < y) - (x > y);
}

static size_t count(void)
{
	struct shadow_context *c;
	struct shadow_mr *mr;
	size_t n = 0;

	EACH (c, mr, mrs)
		n++;
	return n;
}

static int undo(int err, struct swap *s)
{
	build_unmake();
	return err ? err : swap_refuse(s, ENOMEM, "no memory for regions");
}

int build_regions(struct swap *s)
{
	struct work w = { .n = count() };
	struct shadow_context *c;
	struct shadow_mr *mr;
	size_t i = 0;
	int err = 0;

	w.mrs = calloc(w.n + 1, sizeof(*w.mrs));
	if (!w.mrs)
		return undo(0, s);
	EACH (c, mr, mrs)
		w.mrs[i++] = mr;
	s->objects += (unsigned int)w.n;
	register_own(&w);
	qsort(w.mrs, w.n, sizeof(*w.mrs), larger_first);
	register_all(&w);
	free(w.mrs);
	mr = atomic_load(&w.failed);
	if (mr) {
		err = atomic_load(&w.err);
		swap_refuse(s, err, "no other MR for %u: %s", mr->mr.lkey,
			    strerror(err));
		return undo(err, s);
	}
	return 0;
}
