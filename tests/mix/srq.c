// SPDX-License-Identifier: GPL-2.0
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "pattern.h"
#include "srq.h"
#include "tracker.h"

int srq_init(struct srq *s, struct ibv_srq *srq, uint32_t size, uint32_t qps,
	     bool hold, struct verdict *verdict)
{
	uint32_t i;

	memset(s, 0, sizeof(*s));
	s->element = calloc(size, sizeof(*s->element));
	s->free = calloc(size, sizeof(*s->free));
	s->last = calloc(qps, sizeof(*s->last));
	if (!s->element || !s->free || !s->last)
		return -1;
	s->srq = srq;
	s->verdict = verdict;
	s->size = size;
	s->qps = qps;
	s->hold = hold;
	s->arm_at = size;
	for (i = 0; i < size; i++)
		s->free[s->freed++] = i;
	return 0;
}

void srq_free(struct srq *s)
{
	free(s->element);
	free(s->free);
	free(s->last);
	memset(s, 0, sizeof(*s));
}

/* A NIC that says 0 says that the event is on its way. */
static void query_limit(struct srq *s)
{
	struct ibv_srq_attr attr;
	int rc = ibv_query_srq(s->srq, &attr);

	if (rc)
		violation_fatal(s->verdict, "ibv_query_srq: %s", strerror(rc));
	else if (!attr.srq_limit)
		s->must = true;
	else if (attr.srq_limit != s->limit)
		violation(s->verdict,
			  "ibv_query_srq: srq_limit is %u, expected %u",
			  attr.srq_limit, s->limit);
	if (!rc && attr.max_wr < s->size)
		violation(s->verdict,
			  "ibv_query_srq: max_wr is %u, expected %u or more",
			  attr.max_wr, s->size);
}

/*
 * Half of the queue is left at the least, so that messages seldom find none.
 * Where nothing is held back the limit is one that is always reached.
 */
static void arm(struct srq *s)
{
	struct ibv_srq_attr attr = { .srq_limit = s->size };
	uint32_t half = s->size / 2;
	int rc;

	if (s->hold)
		attr.srq_limit = half + mix64(s->posted) % half;
	s->limit = attr.srq_limit;
	s->armed_at = s->posted;
	rc = ibv_modify_srq(s->srq, &attr, IBV_SRQ_LIMIT);
	if (rc)
		violation_fatal(s->verdict, "ibv_modify_srq to limit %u: %s",
				s->limit, strerror(rc));
	else
		query_limit(s);
}

static bool holds(const struct srq *s)
{
	return s->hold && s->limit && s->posted - s->armed_at >= s->limit;
}

bool srq_next(struct srq *s, uint64_t *wr_id, uint32_t *buffer)
{
	uint64_t free = s->freed - s->posted;
	struct srq_element *e;

	if (!s->limit && s->posted >= s->arm_at)
		arm(s);
	if (!free || holds(s))
		return false;
	*buffer = s->free[s->posted % s->size];
	e = &s->element[*buffer];
	/* the first turn is 1: 0 is what was never posted */
	e->index = e->index ? e->index + s->size : s->size + *buffer;
	e->number = s->posted++;
	e->posted = true;
	*wr_id = wr_id_make(true, SRQ_QP, e->index);
	if (holds(s))
		query_limit(s);
	return true;
}

static void check_order(struct srq *s, uint64_t index, uint64_t number,
			unsigned int qp)
{
	if (number >= s->next) {
		s->passed += number - s->next;
		s->next = number + 1;
	} else {
		s->passed--;
	}
	if (qp == s->qps)
		return;
	if (number < s->last[qp])
		violation(s->verdict,
			  "QP %u SRQ %" PRIu64
			  ": out of order, element %" PRIu64
			  " after element %" PRIu64,
			  qp, index, number, s->last[qp] - 1);
	else
		s->last[qp] = number + 1;
	if (s->passed >= s->qps)
		violation(s->verdict,
			  "QP %u SRQ %" PRIu64 ": %" PRIu64
			  " elements are passed over, too many for %u QPs",
			  qp, index, s->passed, s->qps);
}

bool srq_complete(struct srq *s, uint64_t wr_id, unsigned int qp,
		  uint32_t *buffer)
{
	uint64_t index = wr_id_index(wr_id);
	struct srq_element *e = &s->element[index % s->size];

	if (index > e->index || index < s->size) {
		violation(s->verdict,
			  "SRQ %" PRIu64 ": completed but never posted", index);
		return false;
	}
	if (index < e->index || !e->posted) {
		violation(s->verdict, "SRQ %" PRIu64 ": completed again",
			  index);
		return false;
	}
	e->posted = false;
	if (s->limit && e->number >= s->armed_at &&
	    e->number + 1 + s->limit > s->posted)
		s->must = true;
	check_order(s, index, e->number, qp);
	*buffer = index % s->size;
	s->free[s->freed++ % s->size] = *buffer;
	return true;
}

/* What all QPs have gone past will not be used any more. */
static void check_passed(struct srq *s)
{
	uint64_t least = s->next;
	uint32_t i;

	for (i = 0; i < s->qps; i++)
		if (s->last[i] < least)
			least = s->last[i];
	for (i = 0; i < s->size && s->passed; i++)
		if (s->element[i].posted && s->element[i].number < least)
			violation(s->verdict,
				  "SRQ %" PRIu64 ": skipped, element %" PRIu64
				  " is older than all QPs' last",
				  s->element[i].index, s->element[i].number);
}

void srq_polled(struct srq *s, bool empty)
{
	int64_t taken = s->next + (s->qps - s->passed);

	if (!empty)
		return;
	if (s->prove && taken <= s->proof)
		violation(s->verdict,
			  "SRQ limit event, but element %" PRId64
			  " cannot have been taken: at most %" PRId64 " were",
			  s->proof, taken);
	s->prove = false;
}

void srq_limit_reached(struct srq *s)
{
	s->events++;
	if (!s->limit) {
		violation(s->verdict,
			  "SRQ limit event %" PRIu64
			  ", but the limit was not armed since the last",
			  s->events);
		return;
	}
	s->prove = true;
	s->proof = (int64_t)s->armed_at - s->limit;
	s->must = false;
	s->limit = 0;
	s->arm_at = s->posted + s->size + mix64(s->posted + 1) % s->size;
	check_passed(s);
}

static void explain_limit(struct srq *s)
{
	if (s->must)
		violation_fatal(
			s->verdict,
			"lost SRQ limit event: limit %u, armed when %" PRIu64
			" were posted; now %" PRIu64 " are, and %" PRIu64
			" taken",
			s->limit, s->armed_at, s->posted, s->next);
}

void srq_explain_stuck(struct srq *s)
{
	explain_limit(s);
	violation_fatal(s->verdict,
			"stuck: SRQ: posted %" PRIu64 ", taken %" PRIu64
			", passed over %" PRIu64 ", held back %" PRIu64
			", limit %u",
			s->posted, s->next, s->passed, s->freed - s->posted,
			s->limit);
}

void srq_check_end(struct srq *s)
{
	uint32_t i;

	explain_limit(s);
	for (i = 0; i < s->size && s->passed; i++)
		if (s->element[i].posted && s->element[i].number < s->next)
			violation(s->verdict,
				  "SRQ %" PRIu64 ": element %" PRIu64
				  " was never used, later ones were",
				  s->element[i].index, s->element[i].number);
}
