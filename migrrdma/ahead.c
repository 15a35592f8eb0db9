// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "ahead.h"

#include "build.h"
#include "clock.h"
#include "gate.h"
#include "suspend.h"
#include "swap.h"

#define PATIENCE 2000000000 /* ns, with a verb that does not return */

enum {
	AT_ONCE = 16, /* QPs, and then verbs that wait have their turn */
};

static atomic_bool there_are;
static atomic_uint turn; /* connections that have ended */

unsigned int ahead_turn(void)
{
	return turn;
}

/* what is done with each of some QPs; without @peers they are made, or none of them */
struct job {
	const uint32_t *qpns, *peers;
	unsigned int n;
	const union ibv_gid *gid;
};

static int do_one(const struct job *j, unsigned int i, struct swap *s)
{
	struct shadow_qp *qp = swap_find(j->qpns[i], s);

	if (!qp)
		return EINVAL;
	if (j->peers)
		return connect_ahead(qp, j->peers[i], j->gid, s);
	return qp_has_peer(qp)
		       ? build_ahead(qp, s)
		       : swap_refuse(s, EINVAL, "QP 0x%06x leads to no other",
				     qp->qp.qp_num);
}

/* some at a time, while verbs wait, for which they are let in */
static int do_all(const struct job *j, uint64_t deadline, struct swap *s)
{
	unsigned int i = 0;
	int err = 0, one;
	struct swap why;

	if (suspend_hold()) {
		suspend_release();
		return swap_refuse(s, EBUSY, "it is suspended");
	}
	while (i < j->n && (!err || j->peers)) {
		if (!gate_close(j->peers ? clock_ns() + PATIENCE : deadline))
			return swap_refuse(s, ETIMEDOUT,
					   "a verb does not return");
		do {
			one = do_one(j, i++, err ? &why : s);
			err = err ? err : one;
		} while (i < j->n && i % AT_ONCE && (!err || j->peers));
		gate_let_in();
	}
	return err;
}

int layer_prepare(const uint32_t *qpns, unsigned int n, unsigned int timeout_ms,
		  struct swap *s)
{
	const struct job j = { .qpns = qpns, .n = n };
	uint64_t begin = clock_ns();
	int err;

	*s = (struct swap){};
	there_are = true;
	err = do_all(&j, begin + (uint64_t)timeout_ms * 1000000, s);
	s->build_ns = clock_ns() - begin;
	if (err && err != EBUSY)
		ahead_end();
	return err;
}

int layer_lead(const uint32_t *qpns, const uint32_t *peers, unsigned int n,
	       const union ibv_gid *gid, struct swap *s)
{
	const struct job j = {
		.qpns = qpns, .peers = peers, .n = n, .gid = gid
	};

	*s = (struct swap){};
	return do_all(&j, 0, s);
}

void ahead_left(void)
{
	there_are = true;
}

/* Return: was there one more? */
static bool drop(unsigned int most)
{
	struct shadow_context *c;
	struct shadow_qp *qp;

	EACH (c, qp, qps)
		if (qp->other) {
			if (!most--)
				return true;
			build_drop(qp);
		}
	return false;
}

void ahead_drop(void)
{
	if (there_are)
		there_are = drop(UINT32_MAX);
}

/* What stays is not taken for what is to come. */
void ahead_end(void)
{
	uint64_t deadline = clock_ns() + PATIENCE;

	turn++;
	if (layer_is_held())
		return;
	while (there_are && gate_close(deadline)) {
		there_are = drop(AT_ONCE);
		gate_let_in();
	}
}
