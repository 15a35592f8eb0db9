/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Two connected QPs and keys with which something is wrong.
 */
#ifndef SCENE_H
#define SCENE_H

#include "sim.h"

#define MEMORY (1U << 20)
#define RECV_BYTES 256

enum key {
	ALL = 1000,
	OTHER_PD,
	SHORT,
	READ_ONLY,
	WRITE_ONLY,
	NO_KEY
};

struct scene {
	struct sim *sim;
	struct sim_qp *a, *b;
	struct roce_qp_attr attr; /* of both */
	struct roce_send_wqe wqe; /* the one that is wrong */
	struct roce_sge sge[16];
	uint32_t recv_key;
};

void make_scene(struct scene *s);
/* the completions of @q, with cookies 0, 1, ... */
void expect_sends(const char *name, const struct sim_qp *q,
		  const enum roce_wc_status *status, uint32_t n);
/* exactly once */
bool has_event(const struct sim_qp *q, enum roce_event event);
/* how many different error events there were */
uint32_t errors(const struct sim_qp *q);
void post(struct sim_qp *q, enum roce_wr_opcode opcode, uint32_t len);

#endif /* SCENE_H */
