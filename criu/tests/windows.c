// SPDX-License-Identifier: GPL-2.0
/*
 * windows: memory windows in all states, and work with them that waits.
 *
 *	windows [-d DEVICE] [-g GID_INDEX]
 *
 * "ready" goes to stdout; on SIGUSR1 every window must be what it was: those
 * that are bound give access to what their region alone does not, all can be
 * bound anew and invalidated. A SEND with invalidate, for which nothing had been
 * posted to receive it, and what is behind it in its queue, must complete. Then
 * "PASS", else "FAIL: reason".
 */
#include <unistd.h>

#include "loop.h"

#define SIZE 65536UL
#define PART 8192UL /* twice what a window shows */
#define REMOTE (IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE)
/* rdma_rxe gives the kernel's flag, which is another bit */
#define WITH_INV (IBV_WC_WITH_INV | IBV_WC_IP_CSUM_OK)

enum {
	CLIENT,
	OWNER,
	SENDER,
	RECEIVER,
	QPS
};

enum {
	BOUND_1,
	UNBOUND_1,
	NEW_1,
	BOUND_2,
	ZERO_2, /* bound, zero based */
	READ_2, /* bound, to read only */
	INVALID_2,
	NEW_2,
	SENT_2,	  /* the SEND that waits invalidates it */
	BEHIND_2, /* it is bound, and invalidated, behind the SEND */
	WINDOWS
};

static struct ibv_pd *pd;
static struct ibv_cq *cq[QPS];
static struct ibv_qp *qp[QPS];
static struct ibv_mr *mr, *local_mr;
static struct ibv_mw *mw[WINDOWS];
static char memory[SIZE * 2] __attribute__((aligned(4096)));
static char *const local = memory + SIZE; /* PART bytes */

/* ---- work ---- */

static void post(int q, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	NEED(!ibv_post_send(qp[q], wr, &bad));
}

static struct ibv_wc wait_for(int q)
{
	struct ibv_wc wc;
	int n;

	for (int t = 0; !(n = ibv_poll_cq(cq[q], 1, &wc)); t++) {
		NEED(t < 60000);
		usleep(1000);
	}
	NEED(n == 1);
	return wc;
}

static void complete(int q, enum ibv_wc_opcode opcode)
{
	struct ibv_wc wc = wait_for(q);

	if (wc.status)
		printf("QP %d: %s\n", q, ibv_wc_status_str(wc.status));
	NEED(!wc.status && wc.opcode == opcode);
}

/* what a window shows: in its memory, and by its own addresses */
static char *part(int w)
{
	return memory + w * (PART / 2) + 100;
}

static uint64_t address(int w)
{
	return w == ZERO_2 ? 0 : (uintptr_t)part(w);
}

static struct ibv_mw_bind_info all_of(int w)
{
	return (struct ibv_mw_bind_info){
		.mr = mr,
		.addr = (uintptr_t)part(w),
		.length = PART / 2,
		.mw_access_flags = w == ZERO_2 ? REMOTE | IBV_ACCESS_ZERO_BASED
				   : w == READ_2 ? IBV_ACCESS_REMOTE_READ
						 : REMOTE,
	};
}

static void bind_1(int w, struct ibv_mw_bind_info info)
{
	struct ibv_mw_bind bind = { .bind_info = info };

	NEED(!ibv_bind_mw(qp[OWNER], mw[w], &bind));
	complete(OWNER, IBV_WC_BIND_MW);
}

/* the library does not learn the new key of a window of type 2 */
static void post_bind_2(int q, int w)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_BIND_MW };
	uint32_t rkey = ibv_inc_rkey(mw[w]->rkey);

	wr.bind_mw.mw = mw[w];
	wr.bind_mw.rkey = rkey;
	wr.bind_mw.bind_info = all_of(w);
	post(q, &wr);
	mw[w]->rkey = rkey;
}

static void bind_2(int q, int w)
{
	post_bind_2(q, w);
	complete(q, IBV_WC_BIND_MW);
}

static void post_local_inv(int q, int w)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_LOCAL_INV,
				  .invalidate_rkey = mw[w]->rkey };

	post(q, &wr);
}

static void post_send_inv(int q, int w)
{
	struct ibv_sge sge = { (uintptr_t)local, 8, local_mr->lkey };
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND_WITH_INV,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .invalidate_rkey = mw[w]->rkey };

	post(q, &wr);
}

static void receive_inv(int q, int w)
{
	struct ibv_recv_wr wr = {}, *bad;
	struct ibv_sge sge = { (uintptr_t)local, PART, local_mr->lkey };
	struct ibv_wc wc;

	wr.sg_list = &sge;
	wr.num_sge = 1;
	NEED(!ibv_post_recv(qp[q], &wr, &bad));
	wc = wait_for(q);
	NEED(!wc.status && wc.opcode == IBV_WC_RECV && wc.wc_flags & WITH_INV);
	NEED(wc.invalidated_rkey == mw[w]->rkey);
}

/* as much as the window shows, `behind` its beginning */
static void post_rdma(int q, int w, enum ibv_wr_opcode opcode, int behind)
{
	struct ibv_sge sge = { (uintptr_t)local, PART / 2, local_mr->lkey };
	struct ibv_send_wr wr = { .opcode = opcode,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .wr.rdma = { address(w) + behind,
					       mw[w]->rkey } };

	post(q, &wr);
}

/* it is bound to the owner, and gives access */
static void use(int w)
{
	static char next;

	memset(part(w), ++next, PART / 2);
	post_rdma(CLIENT, w, IBV_WR_RDMA_READ, 0);
	complete(CLIENT, IBV_WC_RDMA_READ);
	NEED(!memcmp(local, part(w), PART / 2));
	if (w == READ_2)
		return;
	memset(local, ++next, PART / 2);
	post_rdma(CLIENT, w, IBV_WR_RDMA_WRITE, 0);
	complete(CLIENT, IBV_WC_RDMA_WRITE);
	NEED(!memcmp(local, part(w), PART / 2));
}

static int gid_index = 1;

static void connect_pair(int q)
{
	loop_connect(qp[q], qp[q ^ 1]->qp_num, gid_index, REMOTE);
	loop_connect(qp[q ^ 1], qp[q]->qp_num, gid_index, REMOTE);
}

/*
 * What was posted last fails, and with it the QP; if that is no fault of the peer,
 * rdma_rxe may also say that it was flushed.
 */
static void fails(int q, enum ibv_wc_status status)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };
	struct ibv_wc wc = wait_for(q);

	if (wc.status != status)
		printf("QP %d: %s\n", q, ibv_wc_status_str(wc.status));
	NEED(wc.status == status || (wc.status == IBV_WC_WR_FLUSH_ERR &&
				     status != IBV_WC_REM_ACCESS_ERR));
	for (int i = q & ~1; i <= (q | 1); i++) {
		NEED(!ibv_modify_qp(qp[i], &attr, IBV_QP_STATE));
		while (ibv_poll_cq(cq[i], 1, &wc))
			;
	}
	connect_pair(q);
}

static void refused(int q, int w, enum ibv_wr_opcode opcode, int behind)
{
	post_rdma(q, w, opcode, behind);
	fails(q, IBV_WC_REM_ACCESS_ERR);
}

/* ---- life ---- */

static void alloc(int w)
{
	NEED(mw[w] = ibv_alloc_mw(pd,
				  w < BOUND_2 ? IBV_MW_TYPE_1 : IBV_MW_TYPE_2));
}

static void make(const char *device)
{
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC,
					 .sq_sig_all = 1,
					 .cap = { 8, 8, 1, 1, 0 } };
	struct ibv_context *verbs = loop_open(device);

	NEED(pd = ibv_alloc_pd(verbs));
	/* only through windows */
	NEED(mr = ibv_reg_mr(pd, memory, SIZE,
			     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND));
	NEED(local_mr = ibv_reg_mr(pd, local, PART, IBV_ACCESS_LOCAL_WRITE));
	/* who is killed loses the youngest first: these after their QP */
	alloc(BOUND_2);
	alloc(READ_2);
	for (int i = 0; i < QPS; i++) {
		NEED(cq[i] = ibv_create_cq(verbs, 16, NULL, NULL, 0));
		init.send_cq = init.recv_cq = cq[i];
		NEED(qp[i] = ibv_create_qp(pd, &init));
	}
	connect_pair(CLIENT);
	connect_pair(SENDER);
	for (int i = 0; i < WINDOWS; i++)
		if (!mw[i])
			alloc(i);
}

/* more than there is, by a sum that wraps; and the MR stays as it is */
static void misuse(void)
{
	struct ibv_mw_bind bind = { .bind_info = all_of(NEW_1) };
	uint32_t rkey = mw[NEW_1]->rkey;

	bind.bind_info.length = -bind.bind_info.addr;
	NEED(!ibv_bind_mw(qp[OWNER], mw[NEW_1], &bind));
	fails(OWNER, IBV_WC_MW_BIND_ERR);
	mw[NEW_1]->rkey = rkey; /* the library has counted it on */
	NEED(loop_rereg(mr, IBV_REREG_MR_CHANGE_ACCESS, pd,
			IBV_ACCESS_LOCAL_WRITE) == EINVAL);
}

static void prepare(void)
{
	bind_1(BOUND_1, all_of(BOUND_1));
	bind_1(UNBOUND_1, all_of(UNBOUND_1));
	bind_1(UNBOUND_1, (struct ibv_mw_bind_info){ .mr = mr });
	bind_2(OWNER, BOUND_2);
	bind_2(OWNER, ZERO_2);
	bind_2(OWNER, READ_2);
	bind_2(OWNER, INVALID_2);
	misuse();
	use(BOUND_1);
	use(BOUND_2);
	use(ZERO_2);
	use(READ_2);
	use(INVALID_2);
	post_local_inv(OWNER, INVALID_2);
	complete(OWNER, IBV_WC_LOCAL_INV);
	bind_2(RECEIVER, SENT_2);
	/* nobody receives it, and LOCAL_INV waits for what is before it */
	post_send_inv(SENDER, SENT_2);
	usleep(10000);
	post_bind_2(SENDER, BEHIND_2);
	post_local_inv(SENDER, BEHIND_2);
	post_rdma(CLIENT, BOUND_1, IBV_WR_RDMA_READ, 0); /* in time, or later */
}

static void check(void)
{
	complete(CLIENT, IBV_WC_RDMA_READ);
	use(BOUND_1);
	use(BOUND_2);
	use(ZERO_2);
	use(READ_2);
	/* what shows nothing, or not this */
	refused(CLIENT, UNBOUND_1, IBV_WR_RDMA_READ, 0);
	refused(CLIENT, INVALID_2, IBV_WR_RDMA_READ, 0);
	refused(CLIENT, READ_2, IBV_WR_RDMA_WRITE, 0);
	refused(CLIENT, BOUND_1, IBV_WR_RDMA_WRITE, 1);
	refused(CLIENT, BOUND_2, IBV_WR_RDMA_READ, -1);
	refused(CLIENT, ZERO_2, IBV_WR_RDMA_READ, 1);
	receive_inv(RECEIVER, SENT_2);
	complete(SENDER, IBV_WC_SEND);
	complete(SENDER, IBV_WC_BIND_MW);
	complete(SENDER, IBV_WC_LOCAL_INV);
	bind_2(OWNER, BEHIND_2);
	use(BEHIND_2);

	for (int w = BOUND_1; w <= NEW_1; w++) {
		bind_1(w, all_of(w));
		use(w);
	}
	bind_2(OWNER, INVALID_2);
	use(INVALID_2);
	bind_2(OWNER, NEW_2);
	use(NEW_2);
	post_local_inv(OWNER, BOUND_2);
	complete(OWNER, IBV_WC_LOCAL_INV);
	bind_2(OWNER, BOUND_2);
	use(BOUND_2);
	post_send_inv(CLIENT, NEW_2);
	receive_inv(OWNER, NEW_2);
	complete(CLIENT, IBV_WC_SEND);
	/* what is free stays free */
	post_local_inv(OWNER, NEW_2);
	complete(OWNER, IBV_WC_LOCAL_INV);
	post_send_inv(CLIENT, NEW_2);
	receive_inv(OWNER, NEW_2);
	complete(CLIENT, IBV_WC_SEND);

	/* no access any more; and others' windows are none of a QP's business */
	refused(CLIENT, NEW_2, IBV_WR_RDMA_READ, 0);
	refused(SENDER, BOUND_2, IBV_WR_RDMA_READ, 0);
	post_local_inv(SENDER, BOUND_2);
	fails(SENDER, IBV_WC_LOC_QP_OP_ERR);
	use(BOUND_2);
}

/* the region knows that windows are bound, to the last; that ends with its QP */
static void destroy(void)
{
	struct ibv_context *verbs = pd->context;

	for (int i = 0; i < WINDOWS; i++)
		if (i != ZERO_2)
			NEED(ibv_dereg_mr(mr) && !ibv_dealloc_mw(mw[i]));
	NEED(ibv_dereg_mr(mr));
	for (int i = 0; i < QPS; i++)
		NEED(!ibv_destroy_qp(qp[i]) && !ibv_destroy_cq(cq[i]));
	NEED(!ibv_dereg_mr(mr) && !ibv_dereg_mr(local_mr));
	NEED(!ibv_dealloc_mw(mw[ZERO_2]));
	NEED(!ibv_dealloc_pd(pd) && !ibv_close_device(verbs));
}

int main(int argc, char **argv)
{
	const char *device = NULL;
	int opt;

	while ((opt = getopt(argc, argv, "d:g:")) != -1) {
		if (opt == 'd')
			device = optarg;
		else if (opt == 'g')
			gid_index = atoi(optarg);
		else
			return 2;
	}
	make(device);
	prepare();
	loop_wait();
	check();
	destroy();
	puts("PASS");
	return 0;
}
