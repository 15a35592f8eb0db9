// SPDX-License-Identifier: GPL-2.0
#include <string.h>

#include "scene.h"

void make_scene(struct scene *s)
{
	memset(s, 0, sizeof(*s));
	s->sim = sim_create(MEMORY, NULL);
	for (int i = 0; i < 2; i++) {
		struct sim_node *n = &s->sim->nodes[i];

		sim_key(n, OTHER_PD - ALL, 2, 0, MEMORY, SIM_ALL_ACCESS);
		sim_key(n, SHORT - ALL, 1, 0, 4096, SIM_ALL_ACCESS);
		sim_key(n, READ_ONLY - ALL, 1, 0, MEMORY,
			ROCE_ACCESS_REMOTE_READ);
		sim_key(n, WRITE_ONLY - ALL, 1, 0, MEMORY,
			ROCE_ACCESS_LOCAL_WRITE | ROCE_ACCESS_REMOTE_WRITE);
	}
	s->a = sim_qp(&s->sim->nodes[0], ROCE_QPT_RC, NULL);
	s->b = sim_qp(&s->sim->nodes[1], ROCE_QPT_RC, NULL);
	sim_attributes(s->sim, &s->attr, 0, 0);
	s->recv_key = ALL;
}

void expect_sends(const char *name, const struct sim_qp *q,
		  const enum roce_wc_status *status, uint32_t n)
{
	CHECK(q->num_send_wcs == n, "%s: %u completions", name,
	      q->num_send_wcs);
	for (uint32_t i = 0; i < n && i < q->num_send_wcs; i++)
		CHECK(q->send_wcs[i].status == status[i] &&
			      q->send_wcs[i].cookie == i,
		      "%s: %u: cookie %d, status %d, not %d", name, i,
		      (int)q->send_wcs[i].cookie, q->send_wcs[i].status,
		      status[i]);
}

bool has_event(const struct sim_qp *q, enum roce_event event)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < q->num_events; i++)
		n += q->events[i] == event;
	return n == 1;
}

uint32_t errors(const struct sim_qp *q)
{
	return has_event(q, ROCE_EVENT_QP_FATAL) +
	       has_event(q, ROCE_EVENT_QP_REQ_ERR) +
	       has_event(q, ROCE_EVENT_QP_ACCESS_ERR);
}

void post(struct sim_qp *q, enum roce_wr_opcode opcode, uint32_t len)
{
	struct roce_send_wqe wqe = sim_wqe(q, opcode, 0, len, 4096);

	sim_post_send(q, &wqe);
}
