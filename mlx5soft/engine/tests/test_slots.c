// SPDX-License-Identifier: GPL-2.0
/*
 * Many WQEs with long lists under way, with memory for them and without: what
 * has no room waits, and all complete in order.
 */
#include <stdlib.h>
#include <string.h>

#include "sim.h"

#define MEMORY 65536
#define WQES 60
#define PART 16

static bool no_memory;

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);

void *__wrap_calloc(size_t count, size_t size)
{
	return no_memory ? NULL : __real_calloc(count, size);
}

/* lists of 0 to 8 elements, from all over the memory */
static void post(struct sim_qp *q, uint32_t i)
{
	struct roce_sge sge[8];
	struct roce_send_wqe wqe =
		sim_wqe(q, ROCE_WR_RDMA_WRITE, 0, 0, 32768 + 128 * i);

	wqe.sge = sge;
	wqe.num_sge = i * 7 % 9;
	for (uint32_t k = 0; k < wqe.num_sge; k++)
		sge[k] = (struct roce_sge){ (i * 8 + k) * 37, PART, 1000 };
	sim_post_send(q, &wqe);
}

static void check(const struct sim_qp *a, const struct sim_qp *b, uint32_t i)
{
	const uint8_t *from = a->node->mem;
	const uint8_t *to = b->node->mem + 32768 + 128 * i;

	CHECK(a->send_wcs[i].cookie == i && !a->send_wcs[i].status,
	      "%u: cookie %d, status %d", i, (int)a->send_wcs[i].cookie,
	      a->send_wcs[i].status);
	for (uint32_t k = 0; k < i * 7 % 9; k++)
		CHECK(!memcmp(to + k * PART, from + (i * 8 + k) * 37, PART),
		      "%u: data of element %u", i, k);
}

static void test_room(bool memory)
{
	struct sim *sim = sim_create(MEMORY, NULL);
	struct sim_qp *a = sim_qp(&sim->nodes[0], ROCE_QPT_RC, NULL);
	struct sim_qp *b = sim_qp(&sim->nodes[1], ROCE_QPT_RC, NULL);
	struct roce_qp_attr attr;
	uint32_t early;

	for (uint32_t i = 0; i < 32768; i++)
		a->node->mem[i] = sim_random(sim);
	sim_attributes(sim, &attr, 0, 0);
	sim_connect(a, b, &attr);
	/* nothing comes back yet: as many as there is room for */
	sim->unplugged = true;
	for (uint32_t i = 0; i < WQES; i++)
		post(a, i);
	no_memory = !memory;
	sim_run(sim, 100000);
	early = sim->frames;
	CHECK(memory ? early >= WQES : early && early < WQES / 2,
	      "%u packets on their way", early);
	sim->unplugged = false;
	sim_run(sim, SIM_LONG);
	no_memory = false;
	CHECK(a->num_send_wcs == WQES, "%u completions", a->num_send_wcs);
	for (uint32_t i = 0; i < a->num_send_wcs; i++)
		check(a, b, i);
	sim_destroy(sim);
}

int main(void)
{
	test_room(true);
	test_room(false);
	return check_result();
}
