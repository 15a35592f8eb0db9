// SPDX-License-Identifier: GPL-2.0
/* What both sides do when the traffic is over. */
#include <string.h>
#include <time.h>

#include "conn.h"
#include "end.h"

/*
 * Both sides say where their streams ended and what they added up. What the
 * peer says must be what its stream says.
 */
static void close_run(struct traffic *t, const struct options *o, int fd)
{
	uint64_t mine[5] = { MAGIC }, peer[5], in[5] = { MAGIC };
	unsigned int i;

	for (i = 0; i < t->shape.qps; i++) {
		mine[1] += t->qp[i].next;
		mine[2] += t->qp[i].add_sum;
		mine[3] += t->qp[i].shared_sum;
		mine[4] += t->qp[i].count[OP_SEND_INV];
	}
	if (conn_send(fd, mine, 5) ||
	    conn_recv(fd, peer, 5, o->stuck_seconds)) {
		violation_fatal(&t->verdict, "the peer did not end the run");
		return;
	}
	async_settle(t, o->stuck_seconds);
	traffic_check_end(t);
	for (i = 0; i < t->shape.qps; i++) {
		in[1] += t->qp[i].verified;
		in[2] += t->qp[i].in_add;
		in[3] += t->qp[i].in_shared;
		in[4] += t->qp[i].mw.invalidated;
	}
	if (memcmp(in, peer, sizeof(in)))
		violation(&t->verdict,
			  "the peer's totals differ from its "
			  "streams': %llu operations, expected %llu; "
			  "%llu invalidations, seen %llu",
			  (unsigned long long)peer[1],
			  (unsigned long long)in[1],
			  (unsigned long long)peer[4],
			  (unsigned long long)in[4]);
}

/* Neither side goes on before the other has come here. */
static bool meet(struct traffic *t, const struct options *o, int fd)
{
	uint64_t word = MAGIC;

	if (!conn_send(fd, &word, 1) &&
	    !conn_recv(fd, &word, 1, o->stuck_seconds) && word == MAGIC)
		return true;
	violation_fatal(&t->verdict, "the peer did not end the run");
	return false;
}

static void try_stale_keys(struct traffic *t, const struct options *o, int fd)
{
	const struct timespec nap = { .tv_nsec = 1000000 };
	unsigned int ms = 0;

	if (!meet(t, o, fd))
		return;
	stale_try(t);
	while (!stale_refused(t) && !verdict_fatal(&t->verdict)) {
		nanosleep(&nap, NULL);
		if (++ms > o->stuck_seconds * 1000)
			violation_fatal(&t->verdict,
					"no answer to READs by old keys");
	}
	meet(t, o, fd);
}

void end_run(struct traffic *t, struct verbs *v, const struct options *o,
	     int fd)
{
	if (!verdict_fatal(&t->verdict))
		close_run(t, o, fd);
	if (t->events.how)
		events_end(t, o->stuck_seconds);
	if (!verdict_fatal(&t->verdict))
		try_stale_keys(t, o, fd);
	verbs_destroy(v, t, o->stuck_seconds);
}
