// SPDX-License-Identifier: GPL-2.0
/*
 * later: a context that has registered memory, of huge pages, and makes its queues later.
 *
 * On the first SIGUSR1 it does, what the device then writes is checked, and queues and MRs
 * go: the processor has written nothing of that. "written" tells so. On the second SIGUSR1
 * the memory has to be as it was then.
 */
#include <sys/mman.h>

#include "loop.h"

#define HUGE (2UL << 20)
#define AT (HUGE / 2) /* what the device writes */
#define BYTES 4096
#define ACCESS (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)

static char *map(void)
{
	char *mem = mmap(NULL, 2 * HUGE, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	NEED(mem != MAP_FAILED);
	mem = (char *)(((uintptr_t)mem + HUGE - 1) & ~(HUGE - 1));
	NEED(!madvise(mem, HUGE, MADV_HUGEPAGE));
	memset(mem, 1, HUGE);
	return mem;
}

/* or nothing is shown: of small pages all are in each round */
static int has_huge_pages(void)
{
	FILE *f = fopen("/proc/self/smaps", "re");
	unsigned long kb, sum = 0;
	char line[256];

	NEED(f);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "AnonHugePages: %lu", &kb) == 1)
			sum += kb;
	fclose(f);
	return sum >= HUGE >> 10;
}

static void write_to(struct ibv_qp *qp, struct ibv_cq *cq,
		     const struct ibv_mr *from, const struct ibv_mr *to)
{
	struct ibv_sge sge = { (uintptr_t)from->addr, BYTES, from->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_RDMA_WRITE },
			   *bad;
	struct ibv_wc wc;

	wr.wr.rdma.remote_addr = (uintptr_t)to->addr + AT;
	wr.wr.rdma.rkey = to->rkey;
	NEED(!ibv_post_send(qp, &wr, &bad));
	while (!ibv_poll_cq(cq, 1, &wc))
		;
	NEED(wc.status == IBV_WC_SUCCESS);
}

/* two QPs, of which one writes to the other, come and go */
static void use(struct ibv_pd *pd, const struct ibv_mr *from,
		const struct ibv_mr *to)
{
	struct ibv_cq *cq = ibv_create_cq(pd->context, 4, NULL, NULL, 0);
	struct ibv_qp_init_attr init = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.cap = { 4, 4, 1, 1, 0 },
	};
	struct ibv_qp *qp[2];

	NEED(cq);
	for (int i = 0; i < 2; i++)
		NEED(qp[i] = ibv_create_qp(pd, &init));
	for (int i = 0; i < 2; i++)
		loop_connect(qp[i], qp[!i]->qp_num, 1, ACCESS);
	write_to(qp[0], cq, from, to);
	for (int i = 0; i < 2; i++)
		NEED(!ibv_destroy_qp(qp[i]));
	NEED(!ibv_destroy_cq(cq));
}

int main(void)
{
	static char source[BYTES];
	struct ibv_context *verbs = loop_open(NULL);
	struct ibv_mr *from, *to;
	char *mem = map();
	struct ibv_pd *pd;

	memset(source, 'x', BYTES);
	NEED(pd = ibv_alloc_pd(verbs));
	NEED(to = ibv_reg_mr(pd, mem, HUGE, ACCESS));
	NEED(from = ibv_reg_mr(pd, source, BYTES, ACCESS));
	NEED(has_huge_pages());
	loop_wait();

	use(pd, from, to);
	NEED(!ibv_dereg_mr(from) && !ibv_dereg_mr(to));
	NEED(!memcmp(mem + AT, source, BYTES));
	puts("written");
	loop_wait();

	NEED(mem[AT - 1] == 1 && mem[AT + BYTES] == 1);
	NEED(!memcmp(mem + AT, source, BYTES));
	puts("PASS");
	return 0;
}
