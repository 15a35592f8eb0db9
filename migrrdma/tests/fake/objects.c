// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* What is alive */
#include "inner.h"

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

struct object {
	enum fake_kind kind;
	void *p;
	struct object *next; /* older */
};

static const char *const kind_names[] = {
	"list", "device",  "context",  "PD",   "TD",	      "MR", "MW",
	"AH",	"channel", "CQ",       "SRQ",  "QP",	      "WQ", "WQ table",
	"XRCD", "DM",	   "counters", "flow", "flow action",
};

static struct object *objects;
static uint32_t last_handle;

/* with the lock */
static struct object **find(enum fake_kind kind, const void *p)
{
	struct object **o;

	for (o = &objects; *o; o = &(*o)->next)
		if ((*o)->kind == kind && (*o)->p == p)
			return o;
	return NULL;
}

void own(enum fake_kind kind, const void *p, const char *call)
{
	struct object **o;

	pthread_mutex_lock(&lock);
	o = find(kind, p);
	pthread_mutex_unlock(&lock);
	if (!o)
		die("%s: %p is no living %s of mine", call, p,
		    kind_names[kind]);
}
/* with the lock */
void add(enum fake_kind kind, void *p)
{
	struct object *o = malloc(sizeof(*o));

	if (!o)
		die("no memory");
	o->kind = kind;
	o->p = p;
	o->next = objects;
	objects = o;
}

void *make(enum fake_kind kind, size_t size)
{
	void *p = calloc(1, size);

	if (!p)
		die("no memory");
	pthread_mutex_lock(&lock);
	add(kind, p);
	pthread_mutex_unlock(&lock);
	return p;
}

bool fake_same_handle, fake_reuses;

uint32_t new_handle(void)
{
	if (fake_same_handle)
		return last_handle + 1;
	return __atomic_add_fetch(&last_handle, 1, __ATOMIC_RELAXED);
}

/* with the lock */
void drop(enum fake_kind kind, void *p, const char *call)
{
	struct object **o = find(kind, p), *gone;

	if (!o)
		die("%s: %p is no living %s of mine", call, p,
		    kind_names[kind]);
	gone = *o;
	*o = gone->next;
	free(gone);
}

void forget(enum fake_kind kind, void *p, const char *call)
{
	pthread_mutex_lock(&lock);
	drop(kind, p, call);
	pthread_mutex_unlock(&lock);
}

void *fake_newest(enum fake_kind kind)
{
	struct object *o;
	void *p;

	pthread_mutex_lock(&lock);
	for (o = objects; o && o->kind != kind; o = o->next)
		;
	p = o ? o->p : NULL;
	pthread_mutex_unlock(&lock);
	return p;
}

void *fake_older(const void *object)
{
	struct object *o, *older;

	pthread_mutex_lock(&lock);
	for (o = objects; o && o->p != object; o = o->next)
		;
	for (older = o ? o->next : NULL; older && older->kind != o->kind;
	     older = older->next)
		;
	pthread_mutex_unlock(&lock);
	return older ? older->p : NULL;
}

void fake_next_handle(uint32_t handle)
{
	last_handle = handle - 1;
}

unsigned int fake_alive(enum fake_kind kind)
{
	unsigned int n = 0;

	pthread_mutex_lock(&lock);
	for (struct object *o = objects; o; o = o->next)
		n += o->kind == kind;
	pthread_mutex_unlock(&lock);
	return n;
}

void fake_end(void)
{
	bool bad = objects;

	for (struct object *o = objects; o; o = o->next)
		fprintf(stderr, "fake: a %s is left: %p\n", kind_names[o->kind],
			o->p);
	bad |= items_left();
	bad |= failures_left();
	if (bad)
		die("not all is as it should be in the end");
}
