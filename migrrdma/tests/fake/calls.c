// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Calls, their arguments, and those that are to fail */
#include "inner.h"

#include <errno.h>

struct call {
	const char *name;
	uint64_t args[8];
	bool seen;
	int fail;
	unsigned int fails; /* how often yet */
	unsigned int after; /* so many that do not */
	struct call *next;
};

static struct call *calls;
struct fake_last fake_last;

/* with the lock */
static struct call *call_of(const char *name)
{
	struct call *c;

	for (c = calls; c && strcmp(c->name, name); c = c->next)
		;
	if (!c) {
		c = calloc(1, sizeof(*c));
		if (!c)
			die("no memory");
		c->name = name;
		c->next = calls;
		calls = c;
	}
	return c;
}

void fake_fail(const char *name, int err)
{
	fake_fail_times(name, err, 1);
}

void fake_fail_times(const char *name, int err, unsigned int times)
{
	struct call *c;

	pthread_mutex_lock(&lock);
	c = call_of(name);
	c->fail = err;
	c->fails = times;
	pthread_mutex_unlock(&lock);
}

void fake_fail_later(const char *name, int err, unsigned int after)
{
	fake_fail(name, err);
	pthread_mutex_lock(&lock);
	call_of(name)->after = after;
	pthread_mutex_unlock(&lock);
}

int enter(const char *name, const uint64_t args[8])
{
	struct call *c;
	int err;

	pthread_mutex_lock(&lock);
	c = call_of(name);
	memcpy(c->args, args, sizeof(c->args));
	c->seen = true;
	err = c->after ? 0 : c->fail;
	if (c->after)
		c->after--;
	if (err && !--c->fails)
		c->fail = 0;
	pthread_mutex_unlock(&lock);
	if (err)
		errno = err;
	return err;
}

bool fake_saw(const char *name, const uint64_t args[8])
{
	struct call *c;
	bool same;

	pthread_mutex_lock(&lock);
	c = call_of(name);
	same = c->seen && !memcmp(c->args, args, sizeof(c->args));
	if (!c->seen)
		fprintf(stderr, "fake: %s was not called\n", name);
	for (int i = 0; c->seen && i < 8; i++)
		if (c->args[i] != args[i])
			fprintf(stderr, "fake: %s: %d: %#llx, not %#llx\n",
				name, i, (unsigned long long)c->args[i],
				(unsigned long long)args[i]);
	c->seen = false;
	pthread_mutex_unlock(&lock);
	return same;
}

bool failures_left(void)
{
	bool left = false;
	struct call *c;

	while (calls) {
		c = calls;
		calls = c->next;
		if (c->fail)
			fprintf(stderr, "fake: %s has not failed\n", c->name);
		left |= c->fail;
		free(c);
	}
	return left;
}
