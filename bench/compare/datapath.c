// SPDX-License-Identifier: GPL-2.0
/*
 * datapath [-l FILE] [ROUNDS]
 *
 * What a post and a poll cost under libmigrrdma, without any provider's work: lines of
 * results for compare.awk. The provider is the one of the library's tests, but while
 * something is measured its posts and polls only return. Instructions are counted by
 * single steps. Nanoseconds are those of the fastest of many short loops, ROUNDS times
 * (15), in turn with calls of the provider alone. Before the objects were replaced, as a
 * migration does it, and after. With -l FILE has each instruction, and no time is taken: see
 * listing.
 */
#include <time.h>

#include "app.h"
#include "steps.h"

enum {
	LOOPS = 50,
	CALLS = 2000,
	PEER_QPN = 0x4321,
	RKEY = 0x7700,
};

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static struct ibv_qp *qp;
static struct ibv_qp *real; /* what is behind it now */
static char memory[64], dir[] = "/tmp/datapath.XXXXXX";

/* --- a provider that does nothing --- */

static bool idle;
static struct ibv_context_ops fake_ops;

static int post_send(struct ibv_qp *q, struct ibv_send_wr *wr,
		     struct ibv_send_wr **bad)
{
	return idle ? 0 : fake_ops.post_send(q, wr, bad);
}

static int post_recv(struct ibv_qp *q, struct ibv_recv_wr *wr,
		     struct ibv_recv_wr **bad)
{
	return idle ? 0 : fake_ops.post_recv(q, wr, bad);
}

static int poll_cq(struct ibv_cq *c, int n, struct ibv_wc *wc)
{
	if (!idle)
		return fake_ops.poll_cq(c, n, wc);
	wc->qp_num = real->qp_num;
	return 1;
}

static void prepare(struct verbs_context *v)
{
	fake_ops = v->context.ops;
	v->context.ops.post_send = post_send;
	v->context.ops.post_recv = post_recv;
	v->context.ops.poll_cq = poll_cq;
}

static void finish_marker(struct ibv_qp *q, const struct fake_sent *sent)
{
	if (sent->wr.opcode == IBV_WR_RDMA_WRITE && !sent->wr.num_sge)
		fake_finish(q, UINT32_MAX, IBV_WC_SUCCESS);
}

/* --- the application --- */

static void to_rts(void)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1 };

	MUST(!ibv_modify_qp(qp, &a,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				    IBV_QP_ACCESS_FLAGS));
	a = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = PEER_QPN,
		.ah_attr = { .is_global = 1,
			     .port_num = 1,
			     .grh.dgid.raw = { 0xfe, [15] = 9 } },
	};
	MUST(!ibv_modify_qp(qp, &a,
			    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				    IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				    IBV_QP_MAX_DEST_RD_ATOMIC |
				    IBV_QP_MIN_RNR_TIMER));
	a = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS };
	MUST(!ibv_modify_qp(qp, &a,
			    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				    IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				    IBV_QP_MAX_QP_RD_ATOMIC));
}

static void begin(void)
{
	struct ibv_qp_init_attr init = { .cap = { 6, 6, 1, 1, 0 },
					 .qp_type = IBV_QPT_RC };

	MUST(mkdtemp(dir) && !setenv("MIGRRDMA_DIR", dir, 1));
	fake_work();
	fake_prepare = prepare;
	fake_posted_hook = finish_marker;
	ctx = app_open(0);
	MUST(pd = ibv_alloc_pd(ctx));
	MUST(cq = ibv_create_cq(ctx, 64, NULL, NULL, 0));
	MUST(mr = ibv_reg_mr(pd, memory, sizeof(memory),
			     IBV_ACCESS_LOCAL_WRITE));
	init.send_cq = init.recv_cq = cq;
	MUST(qp = ibv_create_qp(pd, &init));
	real = fake_newest(FAKE_QP);
	to_rts();
}

static void end(void)
{
	char path[64];

	MUST(!ibv_destroy_qp(qp) && !ibv_dereg_mr(mr) && !ibv_destroy_cq(cq));
	MUST(!ibv_dealloc_pd(pd));
	app_close(ctx);
	snprintf(path, sizeof(path), "%s/%d.sock", dir, getpid());
	MUST(!unlink(path) && !rmdir(dir));
}

/* --- who migrates it --- */

static void replace(void)
{
	word(dir, "suspend 20000");
	word(dir, "replace 20000");
	word(dir, "keys peer");
	word(dir, "key peer %u %u", RKEY, RKEY + 0x100);
	word(dir, "peer %u 20481 fe80::1 peer", qp->qp_num);
	word(dir, "connect");
	word(dir, "resume");
	word_end();
	real = fake_newest(FAKE_QP);
}

/* --- the operations --- */

static struct ibv_sge sge;
static struct ibv_recv_wr recv_wr = { .sg_list = &sge, .num_sge = 1 };

static int send_as(struct ibv_qp *q, enum ibv_wr_opcode opcode)
{
	struct ibv_send_wr *bad, wr = { .sg_list = &sge,
					.num_sge = 1,
					.opcode = opcode,
					.wr.rdma.rkey = RKEY };

	return ibv_post_send(q, &wr, &bad);
}

static int op_write(struct ibv_qp *q)
{
	return send_as(q, IBV_WR_RDMA_WRITE);
}

static int op_read(struct ibv_qp *q)
{
	return send_as(q, IBV_WR_RDMA_READ);
}

static int op_send(struct ibv_qp *q)
{
	return send_as(q, IBV_WR_SEND);
}

static int op_recv(struct ibv_qp *q)
{
	struct ibv_recv_wr *bad;

	return ibv_post_recv(q, &recv_wr, &bad);
}

static int op_poll(struct ibv_qp *q)
{
	struct ibv_wc wc;

	return ibv_poll_cq(q->send_cq, 1, &wc) - 1;
}

static const struct op {
	const char *name;
	int (*run)(struct ibv_qp *q);
} ops[] = {
	{ "post_write", op_write }, { "post_read", op_read },
	{ "post_send", op_send },   { "post_recv", op_recv },
	{ "poll", op_poll },
};

#define N_OPS (sizeof(ops) / sizeof(ops[0]))

static void tell(const char *way, const struct op *op, const char *part,
		 const char *unit, double value)
{
	printf("datapath %s-null %s 0 %s %s %.2f\n", way, op->name, part, unit,
	       value);
}

/* --- instructions --- */

static void step(struct ibv_qp *q)
{
	for (size_t i = 0; i < N_OPS; i++) {
		MUST(!ops[i].run(q)); /* the first one is not like the others */
		mark();
		if (ops[i].run(q))
			abort();
		mark();
	}
}

static void told(unsigned int number, unsigned int instructions)
{
	static const char *const steps[] = { "none", "layer", "moved" };

	MUST(number < 3 * N_OPS);
	tell(steps[number / N_OPS], &ops[number % N_OPS], "instructions",
	     "instructions", instructions);
}

/* --- time --- */

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static double call_ns(const struct op *op, struct ibv_qp *q)
{
	double from, ns, least = 1e9;

	for (int loop = 0; loop < LOOPS; loop++) {
		from = now_ns();
		for (int i = 0; i < CALLS; i++)
			op->run(q);
		ns = (now_ns() - from) / CALLS;
		least = ns < least ? ns : least;
	}
	return least;
}

static void take_time(const char *way, int rounds)
{
	for (int round = 0; round < rounds; round++)
		for (size_t i = 0; i < N_OPS; i++) {
			tell("none", &ops[i], "ns", "ns",
			     call_ns(&ops[i], real));
			tell(way, &ops[i], "ns", "ns", call_ns(&ops[i], qp));
		}
}

static int run(void *arg)
{
	int rounds = *(int *)arg;

	begin();
	sge = (struct ibv_sge){ (uintptr_t)memory, 8, mr->lkey };
	idle = true;
	step(real);
	step(qp);
	take_time("layer", rounds);
	idle = false;
	replace();
	idle = true;
	step(qp);
	take_time("moved", rounds);
	idle = false;
	end();
	return check_result();
}

static int usage(void)
{
	fputs("usage: datapath [-l FILE] [ROUNDS]\n", stderr);
	return 2;
}

int main(int argc, char **argv)
{
	int rounds = 15, option;

	while ((option = getopt(argc, argv, "l:")) != -1) {
		if (option != 'l')
			return usage();
		rounds = 0;
		steps_list = fopen(optarg, "we");
		if (!steps_list) {
			perror(optarg);
			return 1;
		}
	}
	if (argc - optind > 1)
		return usage();
	if (argc > optind) {
		rounds = atoi(argv[optind]);
		if (rounds <= 0)
			return usage();
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (steps_of(run, &rounds, told) != 3 * N_OPS)
		return 1;
	return steps_list && fclose(steps_list);
}
