// SPDX-License-Identifier: GPL-2.0
/* The limiter: what is on its way, in a ring of bytes. */

#include <stdlib.h>
#include <string.h>

#include "limit.h"

#define UNIT_MAX (66U << 10) /* a train or a frame, and what is around it */

static uint32_t size_of(uint32_t len)
{
	return (sizeof(struct limit_unit) + len + 7) & ~7U;
}

static struct limit_unit *unit_at(struct limit *l, uint32_t at)
{
	return (struct limit_unit *)(l->ring + at);
}

/* behind it, which is at 0 if there is no more at the end */
static uint32_t next(const struct limit *l, uint32_t at, uint32_t len)
{
	at += size_of(len);
	return at == l->end ? 0 : at;
}

/* Memory that nobody writes to is none: most links never need the whole ring. */
struct limit *limit_create(void)
{
	struct limit *l = malloc(sizeof(*l));

	if (l)
		memset(l, 0, offsetof(struct limit, ring));
	return l;
}

bool limit_set(struct limit *l, uint64_t rate, uint64_t delay)
{
	double train = (double)rate * LIMIT_TRAIN / 8e9;
	uint32_t at = l->head;
	uint64_t i;

	if ((double)rate * delay / 8e9 > LIMIT_TRAVEL)
		return false;
	l->train = rate && train < UNIT_MAX ? train : UNIT_MAX;
	l->link = (struct link){ .rate = rate, .delay = delay, .free = l->now };
	for (i = 0; i < l->units; i++) {
		struct limit_unit *u = unit_at(l, at);

		u->due = link_send(&l->link, l->now, u->bytes);
		at = next(l, at, u->len);
	}
	return true;
}

void limit_turn(struct limit *l, uint64_t now, bool waited)
{
	l->now = now;
	if (!waited)
		l->since = now;
	else if (l->since + LIMIT_DEBT < now)
		l->since = now - LIMIT_DEBT;
}

/* At the end of the ring, or in front of the first one */
static bool has_memory(const struct limit *l)
{
	if (!l->units)
		return true;
	if (l->tail > l->head)
		return l->tail + UNIT_MAX <= LIMIT_MEMORY || l->head > UNIT_MAX;
	return l->head - l->tail > UNIT_MAX;
}

bool limit_room(const struct limit *l)
{
	return has_memory(l) && l->link.free <= l->now + LIMIT_BACKLOG;
}

bool limit_put(struct limit *l, const struct iovec *iov, int n,
	       uint32_t packets, uint64_t bytes)
{
	struct limit_unit *u;
	uint8_t *to;

	if (!limit_room(l))
		return false;
	if (!l->units) {
		l->head = l->tail = 0;
		l->end = LIMIT_MEMORY;
	} else if (l->tail > l->head && l->tail + UNIT_MAX > LIMIT_MEMORY) {
		l->end = l->tail;
		l->tail = 0;
	}
	u = unit_at(l, l->tail);
	for (to = u->data; n; n--, iov++) {
		memcpy(to, iov->iov_base, iov->iov_len);
		to += iov->iov_len;
	}
	u->due = link_send(&l->link, l->since, bytes);
	if (u->due < l->now + l->link.delay)
		u->due = l->now + l->link.delay;
	u->bytes = bytes;
	u->packets = packets;
	u->len = to - u->data;
	l->tail += size_of(u->len);
	l->units++;
	l->packets += packets;
	l->bytes += bytes;
	return true;
}

struct limit_unit *limit_arrived(struct limit *l)
{
	struct limit_unit *u = unit_at(l, l->head);

	return l->units && u->due <= l->now ? u : NULL;
}

void limit_pop(struct limit *l)
{
	const struct limit_unit *u = unit_at(l, l->head);

	l->units--;
	l->packets -= u->packets;
	l->bytes -= u->bytes;
	l->head = next(l, l->head, u->len);
	if (!l->head)
		l->end = LIMIT_MEMORY;
}

uint64_t limit_due(const struct limit *l, bool waits)
{
	uint64_t due = LIMIT_NEVER, room = 0;

	if (l->units)
		due = ((const struct limit_unit *)(l->ring + l->head))->due;
	if (l->link.free > LIMIT_BACKLOG)
		room = l->link.free - LIMIT_BACKLOG;
	return waits && has_memory(l) && room < due ? room : due;
}
