// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "ahead.h"

#include "build.h"
#include "clock.h"
#include "gate.h"
#include "suspend.h"
#include "swap.h"

#define PATIENCE 10000000000 /* ns */

enum {
	AT_ONCE = 16, /* QPs, and then verbs that wait have their turn */
};

static atomic_bool there_are;

static int make_some(const uint32_t *qpns, unsigned int n, struct swap *s)
{
	struct shadow_qp *qp;
	int err = 0;

	for (unsigned int i = 0; i < n && !err; i++) {
		qp = swap_find(qpns[i], s);
		if (!qp)
			err = EINVAL;
		else if (!qp_has_peer(qp))
			err = swap_refuse(s, EINVAL,
					  "QP 0x%06x leads to no other",
					  qp->qp.qp_num);
		else
			err = build_ahead(qp, s);
	}
	return err;
}

static int make_all(const uint32_t *qpns, unsigned int n, uint64_t deadline,
		    struct swap *s)
{
	unsigned int some;
	int err = 0;

	for (; n && !err; qpns += some, n -= some) {
		some = n < AT_ONCE ? n : AT_ONCE;
		if (!gate_close(deadline))
			return swap_refuse(s, ETIMEDOUT,
					   "a verb does not return");
		err = make_some(qpns, some, s);
		gate_open();
	}
	return err;
}

int layer_prepare(const uint32_t *qpns, unsigned int n, unsigned int timeout_ms,
		  struct swap *s)
{
	uint64_t begin = clock_ns();
	int err;

	*s = (struct swap){};
	if (suspend_hold()) {
		suspend_release();
		return swap_refuse(s, EBUSY, "it is suspended");
	}
	there_are = true;
	err = make_all(qpns, n, begin + (uint64_t)timeout_ms * 1000000, s);
	s->build_ns = clock_ns() - begin;
	if (err)
		ahead_end();
	return err;
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

void ahead_end(void)
{
	if (layer_is_held())
		return;
	while (there_are && gate_close(clock_ns() + PATIENCE)) {
		there_are = drop(AT_ONCE);
		gate_open();
	}
}
