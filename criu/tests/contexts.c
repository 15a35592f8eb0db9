// SPDX-License-Identifier: GPL-2.0
/*
 * contexts: verbs objects to move, without traffic while they move.
 *
 *	contexts [-Ck] [-c CONTEXTS] [-p PROCESSES] [-e EXTRA]
 *		 [-d DEVICE]... [-g GID_INDEX]
 *
 * Each process opens some contexts and makes a PD, an MR, a CQ and two QPs in
 * each, of the devices by turns. On SIGUSR1 it connects the two QPs of a context to
 * each other, writes to the peer's memory and reads it back, with what it made
 * before. With -C all contexts of all processes are connected at the start: a ring
 * for each device, in which the second QP of a context is the peer of the first one
 * of the next. They have had events by then, of which the last one is acknowledged
 * only afterwards. With -k processes stay when they have closed their contexts. "ready" and "PASS" or "FAIL: reason" go to stdout, one line
 * per process.
 *
 * EXTRA is something that cannot be moved: "events" (a second asynchronous event
 * file), "second" (the same, and the first one is closed), "shared" (a context that
 * a child has, too, as it has the memory), "table" (the same, of a child that has the same
 * table of descriptors), "orphan" (a child that has only the
 * mapping), "executed" (another program, this one again, has the context, and not the
 * memory), "bare" (the device is open once more, and has no context there), or
 * another MR, which a child has "registered", or one page of which is "unmapped",
 * "readonly", "dontneed" or "replaced" by now.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loop.h"

#define SIZE 8192
#define MAX 16	  /* contexts of a process */
#define ALL 256	  /* contexts of all processes */
#define PIECE 256 /* of the memory, one per QP and use: */
#define SOURCE 0
#define BACK 2048   /* read from the peer */
#define TARGET 4096 /* written by the peer */
#define PAGES 1024  /* of an MR that is spoiled: */
#define SPOILED 700 /* this one */

struct ctx {
	struct ibv_context *verbs;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_qp *qp[2];
	struct ibv_async_event event;
	char *mem;
};

static const char *devices[8]; /* none: the first there is */
static int nr_devices;
static int gid_index = 1;
static int connected, stays;
static int memory = MAP_PRIVATE;
static int contexts = 1, processes = 1;

/* what the processes know of each other's contexts */
static struct shared {
	struct peer {
		uint64_t mem;
		uint32_t rkey, qpn[2];
	} ctx[ALL];
	atomic_int made, linked, used; /* processes */
} *shared;

static void all_are(atomic_int *step)
{
	atomic_fetch_add(step, 1);
	while (atomic_load(step) < processes)
		usleep(1000);
}

/*
 * of QP `i` of context `n` of all: QP !i of the next one on the device, the previous,
 * or its own
 */
static const struct peer *peer_of(int n, int i)
{
	int all = contexts * processes, step = nr_devices ? nr_devices : 1;

	if (connected)
		n = (i ? n + step : n + all - step) % all;
	return &shared->ctx[n];
}

/* context `n` of all */
static void make(struct ctx *c, int n)
{
	struct peer *self = &shared->ctx[n];
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.cap = { .max_send_wr = 16,
			 .max_recv_wr = 16,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags =
			IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
	};

	c->verbs = loop_open(nr_devices ? devices[n % nr_devices] : NULL);
	NEED(c->pd = ibv_alloc_pd(c->verbs));
	c->mem = mmap(NULL, SIZE, PROT_READ | PROT_WRITE,
		      memory | MAP_ANONYMOUS, -1, 0);
	NEED(c->mem != MAP_FAILED);
	memset(c->mem, 0, SIZE);
	NEED(c->mr = ibv_reg_mr(c->pd, c->mem, SIZE,
				IBV_ACCESS_LOCAL_WRITE |
					IBV_ACCESS_REMOTE_WRITE |
					IBV_ACCESS_REMOTE_READ));
	NEED(c->cq = ibv_create_cq(c->verbs, 32, c, NULL, 0));
	init.send_cq = init.recv_cq = c->cq;
	for (int i = 0; i < 2; i++) {
		NEED(c->qp[i] = ibv_create_qp(c->pd, &init));
		NEED(!ibv_modify_qp(c->qp[i], &attr,
				    IBV_QP_STATE | IBV_QP_PKEY_INDEX |
					    IBV_QP_PORT | IBV_QP_ACCESS_FLAGS));
		self->qpn[i] = c->qp[i]->qp_num;
	}
	self->mem = (uintptr_t)c->mem;
	self->rkey = c->mr->rkey;
}

static void connect_qp(struct ctx *c, int n, int i)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_2048,
		.dest_qp_num = peer_of(n, i)->qpn[!i],
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.ah_attr = { .is_global = 1,
			     .port_num = 1,
			     .grh = { .sgid_index = gid_index,
				      .hop_limit = 64 } },
	};

	NEED(!ibv_query_gid(c->verbs, 1, gid_index, &attr.ah_attr.grh.dgid));
	NEED(!ibv_modify_qp(c->qp[i], &attr,
			    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				    IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				    IBV_QP_MAX_DEST_RD_ATOMIC |
				    IBV_QP_MIN_RNR_TIMER));
	attr.qp_state = IBV_QPS_RTS;
	attr.timeout = 14;
	attr.retry_cnt = attr.rnr_retry = 7;
	attr.max_rd_atomic = 1;
	NEED(!ibv_modify_qp(c->qp[i], &attr,
			    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				    IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				    IBV_QP_MAX_QP_RD_ATOMIC));
}

/* an event, of the first QP */
static void get_event(struct ctx *c)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_SQD,
		.en_sqd_async_notify = 1,
	};

	NEED(!ibv_modify_qp(c->qp[0], &attr,
			    IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY));
	NEED(!ibv_get_async_event(c->verbs, &c->event));
	NEED(c->event.event_type == IBV_EVENT_SQ_DRAINED);
	NEED(c->event.element.qp == c->qp[0]);
	attr.qp_state = IBV_QPS_RTS;
	NEED(!ibv_modify_qp(c->qp[0], &attr, IBV_QP_STATE));
}

static void get_events(struct ctx *c)
{
	get_event(c);
	ibv_ack_async_event(&c->event);
	get_event(c);
}

static void run(struct ctx *c, int n, int i, enum ibv_wr_opcode opcode,
		int local)
{
	const struct peer *peer = peer_of(n, i);
	struct ibv_sge sge = { .addr = (uintptr_t)c->mem + local + i * PIECE,
			       .length = 64,
			       .lkey = c->mr->lkey };
	struct ibv_send_wr wr = { .wr_id = 100 + i,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = opcode,
				  .wr.rdma.remote_addr =
					  peer->mem + TARGET + i * PIECE,
				  .wr.rdma.rkey = peer->rkey },
			   *bad;
	struct ibv_wc wc = { .wr_id = 0 };
	int got = 0;

	errno = ibv_post_send(c->qp[i], &wr, &bad);
	NEED(!errno);
	for (int t = 0; t < 20000 && !got; t++) {
		got = ibv_poll_cq(c->cq, 1, &wc);
		if (!got)
			usleep(1000);
	}
	NEED(got == 1);
	if (wc.status || wc.wr_id != wr.wr_id ||
	    wc.qp_num != c->qp[i]->qp_num) {
		printf("FAIL: context %d, QP %d: %s\n", n, i,
		       ibv_wc_status_str(wc.status));
		exit(1);
	}
}

/* both QPs write to their peers and read it back */
static void use(struct ctx *c, int n)
{
	for (int i = 0; i < 2 && !connected; i++)
		connect_qp(c, n, i);
	for (int i = 0; i < 2; i++) {
		memset(c->mem + SOURCE + i * PIECE, 'a' + n + i, 64);
		run(c, n, i, IBV_WR_RDMA_WRITE, SOURCE);
		run(c, n, i, IBV_WR_RDMA_READ, BACK);
		NEED(!memcmp(c->mem + SOURCE + i * PIECE,
			     c->mem + BACK + i * PIECE, 64));
	}
}

/* and so did the peers */
static void check_written(struct ctx *c, int n)
{
	for (int i = 0; i < 2; i++) {
		int from = peer_of(n, !i) - shared->ctx;

		NEED(c->mem[TARGET + i * PIECE] == (char)('a' + from + i));
	}
}

/* everything goes away in order, as an application would do it */
static void destroy(struct ctx *c)
{
	if (connected)
		ibv_ack_async_event(&c->event);
	for (int i = 0; i < 2; i++)
		NEED(!ibv_destroy_qp(c->qp[i]));
	NEED(!ibv_destroy_cq(c->cq));
	NEED(!ibv_dereg_mr(c->mr));
	NEED(!ibv_dealloc_pd(c->pd));
	NEED(!ibv_close_device(c->verbs));
}

static void wait_forever(void)
{
	for (;;)
		pause();
}

static void make_event_file(struct ibv_context *verbs)
{
	struct {
		struct ib_uverbs_ioctl_hdr hdr;
		struct ib_uverbs_attr attr;
	} cmd = {
		.hdr.length = sizeof(cmd),
		.hdr.object_id = UVERBS_OBJECT_ASYNC_EVENT,
		.hdr.method_id = UVERBS_METHOD_ASYNC_EVENT_ALLOC,
		.hdr.num_attrs = 1,
		.hdr.driver_id = RDMA_DRIVER_RXE,
		.attr.attr_id = UVERBS_ATTR_ASYNC_EVENT_ALLOC_FD_HANDLE,
		.attr.flags = UVERBS_ATTR_F_MANDATORY,
	};

	NEED(!ioctl(verbs->cmd_fd, RDMA_VERBS_IOCTL, &cmd));
}

/* what was registered is there no more; false if it is not known how */
static int spoil(const char *how, struct ctx *c)
{
	const size_t size = 4096, all = PAGES * size;
	char *mem = mmap(NULL, all, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *page = mem + SPOILED * size;
	struct ibv_pd *pd;

	NEED(mem != MAP_FAILED);
	NEED(pd = ibv_alloc_pd(c->verbs));
	NEED(ibv_reg_mr(pd, mem, all, IBV_ACCESS_LOCAL_WRITE));
	if (!strcmp(how, "unmapped"))
		return !munmap(page, size);
	if (!strcmp(how, "readonly"))
		return !mprotect(page, size, PROT_READ);
	if (!strcmp(how, "dontneed"))
		return !madvise(page, size, MADV_DONTNEED);
	return !strcmp(how, "replaced") &&
	       mremap(page, size, size, MREMAP_MAYMOVE | MREMAP_FIXED,
		      mem + (SPOILED + 1) * size) == page + size &&
	       mmap(page, size, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == page;
}

/* at these addresses its memory is another, and it has no file open any more */
static void register_in_child(struct ctx *c)
{
	struct ibv_pd *pd;
	int done[2];
	char byte;

	NEED(pd = ibv_alloc_pd(c->verbs));
	NEED(!pipe(done));
	if (!fork()) {
		NEED(ibv_reg_mr(pd, c->mem, SIZE, IBV_ACCESS_LOCAL_WRITE));
		NEED(!close(c->verbs->cmd_fd) && !close(c->verbs->async_fd));
		NEED(!close(done[0]) && !close(done[1]));
		wait_forever();
	}
	NEED(!close(done[1]));
	NEED(!read(done[0], &byte, 1) && !close(done[0]));
}

static int open_bare(const struct ibv_context *verbs)
{
	char path[128];

	snprintf(path, sizeof(path), "/dev/infiniband/%s",
		 verbs->device->dev_name);
	return open(path, O_RDWR);
}

static void execute(struct ctx *c)
{
	NEED(!fcntl(c->verbs->cmd_fd, F_SETFD, 0));
	NEED(!fcntl(c->verbs->async_fd, F_SETFD, 0));
	execlp("contexts", "contexts", "-E", NULL);
	NEED(!"contexts is to be found");
}

static void make_extra(const char *extra, struct ctx *c)
{
	if (!strcmp(extra, "events")) {
		make_event_file(c->verbs);
	} else if (!strcmp(extra, "second")) {
		make_event_file(c->verbs);
		NEED(!close(c->verbs->async_fd));
	} else if (!strcmp(extra, "shared")) {
		if (!fork())
			wait_forever();
	} else if (!strcmp(extra, "table")) {
		if (!syscall(SYS_clone, CLONE_FILES | SIGCHLD, 0, 0, 0, 0))
			wait_forever();
	} else if (!strcmp(extra, "orphan")) {
		if (!fork()) {
			close(c->verbs->cmd_fd);
			close(c->verbs->async_fd);
			wait_forever();
		}
	} else if (!strcmp(extra, "bare")) {
		NEED(open_bare(c->verbs) >= 0);
	} else if (!strcmp(extra, "executed")) {
		execute(c);
	} else if (!strcmp(extra, "registered")) {
		register_in_child(c);
	} else if (!spoil(extra, c)) {
		printf("FAIL: unknown extra %s\n", extra);
		exit(2);
	}
}

/* -E, for "executed": SIGUSR1 is blocked, and the context somewhere */
static int be_executed(void)
{
	loop_wait();
	puts("PASS");
	return 0;
}

static int process(int number, const char *extra)
{
	struct ctx c[MAX] = { { .mem = NULL } };
	int first = number * contexts;

	for (int i = 0; i < contexts; i++)
		make(c + i, first + i);
	all_are(&shared->made);
	for (int i = 0; i < 2 * contexts && connected; i++)
		connect_qp(c + i / 2, first + i / 2, i % 2);
	for (int i = 0; i < contexts && connected; i++)
		get_events(c + i);
	all_are(&shared->linked);
	if (extra)
		make_extra(extra, c);
	loop_wait();
	for (int i = 0; i < contexts; i++)
		use(c + i, first + i);
	all_are(&shared->used);
	for (int i = 0; i < contexts; i++)
		check_written(c + i, first + i);
	for (int i = 0; i < contexts; i++)
		destroy(c + i);
	puts("PASS");
	if (stays)
		wait_forever();
	return 0;
}

int main(int argc, char **argv)
{
	const char *extra = NULL;
	int opt, status, ret = 0;

	setvbuf(stdout, NULL, _IOLBF, 0);
	while ((opt = getopt(argc, argv, "Ckc:p:e:d:g:E")) != -1) {
		if (opt == 'E')
			return be_executed();
		if (opt == 'C')
			connected = 1;
		else if (opt == 'k')
			stays = 1;
		else if (opt == 'c')
			contexts = atoi(optarg);
		else if (opt == 'p')
			processes = atoi(optarg);
		else if (opt == 'e')
			extra = optarg;
		else if (opt == 'd' && nr_devices < 8)
			devices[nr_devices++] = optarg;
		else if (opt == 'g')
			gid_index = atoi(optarg);
		else
			return 2;
	}
	if (contexts < 1 || contexts > MAX || processes < 1 ||
	    processes > ALL / contexts ||
	    (nr_devices && contexts * processes % nr_devices))
		return 2;
	if (extra && (!strcmp(extra, "shared") || !strcmp(extra, "table")))
		memory = MAP_SHARED;
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	NEED(shared != MAP_FAILED);
	for (int i = 1; i < processes; i++)
		if (!fork())
			return process(i, extra);
	ret = process(0, extra);
	while (wait(&status) > 0)
		ret |= status;
	return !!ret;
}
