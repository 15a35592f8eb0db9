// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "handles.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include <rdma/ib_user_verbs.h>

struct handles {
	uint32_t n;
	uint64_t *table;
};

static struct handles *_Atomic handles;
static _Thread_local bool reading;

void handles_are(uint64_t *table, uint32_t n)
{
	static struct handles *before; /* a thread may still be at it */
	struct handles *h = malloc(sizeof(*h));

	if (!h)
		abort(); /* events of objects that there are would be lost */
	*h = (struct handles){ n, table };
	if (before)
		free(before->table);
	free(before);
	before = atomic_exchange(&handles, h);
}

void handles_begin(void)
{
	reading = true;
}

void handles_end(void)
{
	reading = false;
}

/* Both kinds of events begin with it; it is a port's number in some. */
static void name_event(void *event)
{
	const struct handles *h = atomic_load(&handles);
	struct ib_uverbs_comp_event_desc *e = event;
	uint32_t number;

	if (h && handle_number(e->cq_handle, &number) && number < h->n)
		e->cq_handle = h->table[number];
}

/* glibc's own name for it, which nobody interposes; it can be cancelled as read() can */
ssize_t __read(int fd, void *buf, size_t bytes);

ssize_t read(int fd, void *buf, size_t bytes)
{
	ssize_t n = __read(fd, buf, bytes);

	if (reading && n >= (ssize_t)sizeof(struct ib_uverbs_comp_event_desc))
		name_event(buf);
	return n;
}
