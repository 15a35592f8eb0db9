// SPDX-License-Identifier: GPL-2.0
/*
 * device_steps DEVICE GID_INDEX LABEL
 *
 * How many instructions of user space a post and a poll have with a real provider, by
 * single steps: lines of results for compare.awk, as of the device LABEL. Two QPs of this
 * process are each other's peers. Under libmigrrdma with MIGRRDMA_DIR it is that of the
 * layer, and then that after both were replaced, as a migration does it.
 */
#include <infiniband/verbs.h>
#include <unistd.h>

#include "check.h"
#include "connect.h"
#include "steps.h"

enum {
	BYTES = 64,
	PATIENCE_MS = 20000,
};

static const char *label, *dir;
static struct ibv_qp *from, *to;
static struct ibv_mr *mr;
static char memory[2][BYTES];

static const char *const names[] = { "post_write", "post_read", "post_recv",
				     "post_send", "poll" };

#define N_OPS (sizeof(names) / sizeof(names[0]))

/* --- two queue pairs --- */

static struct ibv_context *open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = NULL;

	MUST(list);
	for (int i = 0; list[i] && !ctx; i++)
		if (!strcmp(name, ibv_get_device_name(list[i])))
			ctx = ibv_open_device(list[i]);
	ibv_free_device_list(list);
	return ctx;
}

static void connect_qp(struct ibv_qp *qp, const union ibv_gid *gid, int index,
		       const struct ibv_qp *peer)
{
	struct ibv_qp_attr a = rc_attr(gid, index, peer->qp_num);

	a.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
	MUST(!rc_to_rtr(qp, &a) && !rc_to_rts(qp, &a));
}

static void begin(const char *device, int index)
{
	struct ibv_qp_init_attr init = { .cap = { 8, 8, 1, 1, 0 },
					 .qp_type = IBV_QPT_RC,
					 .sq_sig_all = 1 };
	struct ibv_context *ctx = open_device(device);
	struct ibv_pd *pd;
	union ibv_gid gid;

	MUST(ctx && !ibv_query_gid(ctx, 1, index, &gid));
	MUST(pd = ibv_alloc_pd(ctx));
	MUST(mr = ibv_reg_mr(pd, memory, sizeof(memory),
			     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				     IBV_ACCESS_REMOTE_READ));
	MUST(init.send_cq = ibv_create_cq(ctx, 16, NULL, NULL, 0));
	MUST(init.recv_cq = ibv_create_cq(ctx, 16, NULL, NULL, 0));
	MUST(from = ibv_create_qp(pd, &init));
	MUST(to = ibv_create_qp(pd, &init));
	connect_qp(from, &gid, index, to);
	connect_qp(to, &gid, index, from);
}

/* --- replaced --- */

/* the number behind the one that it is called by */
static unsigned int real_of(const char *json, const char *member,
			    unsigned int name)
{
	char key[64];
	unsigned int real;
	const char *at;

	snprintf(key, sizeof(key), "\"%s\": %u, \"real\": ", member, name);
	at = strstr(json, key);
	MUST(at && sscanf(at + strlen(key), "%u", &real) == 1);
	return real;
}

static void replace(const char *gid)
{
	unsigned int a, b, key;
	const char *all;

	word(dir, "suspend %d", PATIENCE_MS);
	word(dir, "replace %d", PATIENCE_MS);
	all = word(dir, "names");
	a = real_of(all, "qpn", from->qp_num);
	b = real_of(all, "qpn", to->qp_num);
	key = real_of(all, "virtual", mr->rkey);
	word(dir, "keys self");
	word(dir, "key self %u %u", mr->rkey, key);
	word(dir, "peer %u %u %s self", from->qp_num, b, gid);
	word(dir, "peer %u %u %s self", to->qp_num, a, gid);
	word(dir, "connect");
	word(dir, "resume");
	word_end();
}

/* --- operations --- */

static int post_send(enum ibv_wr_opcode opcode)
{
	struct ibv_sge sge = { (uintptr_t)memory[0], BYTES, mr->lkey };
	struct ibv_send_wr *bad,
		wr = { .sg_list = &sge,
		       .num_sge = 1,
		       .opcode = opcode,
		       .wr.rdma = { (uintptr_t)memory[1], mr->rkey } };

	return ibv_post_send(from, &wr, &bad);
}

static int post_recv(void)
{
	struct ibv_sge sge = { (uintptr_t)memory[1], BYTES, mr->lkey };
	struct ibv_recv_wr *bad, wr = { .sg_list = &sge, .num_sge = 1 };

	return ibv_post_recv(to, &wr, &bad);
}

static void take_one(struct ibv_cq *cq)
{
	struct ibv_wc wc;
	int n;

	for (int i = 0; !(n = ibv_poll_cq(cq, 1, &wc)); i++) {
		MUST(i < PATIENCE_MS);
		usleep(1000);
	}
	MUST(n == 1 && wc.status == IBV_WC_SUCCESS);
}

/* one that is like the others, after some that may not be */
static void step_send(enum ibv_wr_opcode opcode)
{
	int err;

	for (int i = 0; i < 2; i++) {
		MUST(!post_send(opcode));
		take_one(from->send_cq);
	}
	mark();
	err = post_send(opcode);
	mark();
	MUST(!err);
	take_one(from->send_cq);
}

static void step_recv(void)
{
	int err;

	MUST(!post_recv() && !post_recv());
	mark();
	err = post_recv();
	mark();
	MUST(!err);
}

static void step_poll(void)
{
	struct ibv_wc wc;
	int n;

	MUST(!post_send(IBV_WR_RDMA_WRITE) && !post_send(IBV_WR_RDMA_WRITE));
	take_one(from->send_cq);
	usleep(100000); /* the other one is there, or what follows says that it is not */
	mark();
	n = ibv_poll_cq(from->send_cq, 1, &wc);
	mark();
	MUST(n == 1 && wc.status == IBV_WC_SUCCESS);
}

static void step(void)
{
	step_send(IBV_WR_RDMA_WRITE);
	step_send(IBV_WR_RDMA_READ);
	step_recv();
	step_send(IBV_WR_SEND);
	for (int i = 0; i < 3; i++)
		take_one(to->recv_cq);
	step_poll();
}

static void told(unsigned int number, unsigned int instructions)
{
	printf("datapath %s-%s %s 0 instructions instructions %u\n",
	       number >= N_OPS ? "moved"
	       : dir	       ? "layer"
			       : "none",
	       label, names[number % N_OPS], instructions);
}

static int run(void *arg)
{
	char **argv = arg, gid[64];
	const char *all, *at;

	begin(argv[1], atoi(argv[2]));
	step();
	if (!dir)
		return 0;
	all = word(dir, "names");
	at = strstr(all, "\"gid\": \"");
	MUST(at && sscanf(at + 8, "%63[^\"]", gid) == 1);
	replace(gid);
	step();
	return 0;
}

int main(int argc, char **argv)
{
	int counts;

	if (argc != 4) {
		fputs("usage: device_steps DEVICE GID_INDEX LABEL\n", stderr);
		return 2;
	}
	label = argv[3];
	dir = getenv("MIGRRDMA_DIR");
	setvbuf(stdout, NULL, _IOLBF, 0);
	counts = steps_of(run, argv, told);
	return counts != (dir ? 2 : 1) * (int)N_OPS;
}
