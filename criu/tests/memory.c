// SPDX-License-Identifier: GPL-2.0
/*
 * memory: memory regions of all kinds of memory that a program can register.
 *
 *	memory [-d DEVICE] [-g GID_INDEX] [FILE]
 *
 * FILE is created; it has to be where it was after a move, and so has /memory-test of
 * POSIX shared memory. If the kernel makes transparent huge pages, the area for them
 * must have some, all over. Some regions were re-registered. "ready" goes to stdout;
 * on SIGUSR1 every region must hold what it held, be written and read by RDMA, and
 * what RDMA has written be seen by the processor, also by a child that shares the
 * memory. Work completes in an extended CQ, which was resized: all the while more
 * completions wait in it than it had room for before, across the end of its ring.
 * Then "PASS", else "FAIL: reason".
 */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "memory.h"

#define ALL                                                 \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | \
	 IBV_ACCESS_REMOTE_READ)

/* what is registered: a part of an area, at an iova of its own or its address */
struct region {
	const char *name;
	enum area area;
	size_t offset, size; /* 0: to its end */
	int access;
	uint64_t iova; /* 0: its address */
	struct ibv_mr *mr;
};

static struct region regions[] = {
	{ "private pages", PRIVATE, 0, 0, ALL, 0, NULL },
	{ "the same pages again", PRIVATE, 100, 8000, ALL, 0, NULL },
	{ "re-registered", PRIVATE, 0, 0, ALL, 0, NULL },
	{ "re-registered to be read", PRIVATE, 0, 0, IBV_ACCESS_REMOTE_READ, 0,
	  NULL },
	{ "with an iova", PRIVATE, 0, 0, ALL, 0x7000000000, NULL },
	{ "with iova 0", PRIVATE, PAGE, 0, ALL, 0, NULL },
	{ "transparent huge pages", TRANSPARENT, 0, 0, ALL, 0, NULL },
	{ "the middle of a huge page", TRANSPARENT, HUGE + 5, 77777, ALL, 0,
	  NULL },
	{ "hugetlb", HUGETLB, 0, 0, ALL, 0, NULL },
	{ "shared anonymous", ANONYMOUS, 0, 0, ALL, 0, NULL },
	{ "SysV", SYSV, 0, 0, ALL, 0, NULL },
	{ "POSIX, unlinked", UNLINKED, 0, 0, ALL, 0, NULL },
	{ "POSIX, named", NAMED, 0, 0, ALL, 0, NULL },
	{ "private of a file", COPIED, 0, 0, ALL, 0, NULL },
	{ "read-only of a file", READ_ONLY, 0, 0, IBV_ACCESS_REMOTE_READ, 0,
	  NULL },
	{ "two mappings", MIXED, 0, 0, ALL, 0, NULL },
};

#define REGIONS (sizeof(regions) / sizeof(regions[0]))
/* regions[] */
#define REREGISTERED 2 /* was of another PD, and for local use */
#define RESTRICTED 3   /* allowed everything */
#define ZERO_BASED 5   /* of iova 0 */

/* entries of the CQ: rdma_rxe makes them one less than a power of two */
#define FEW 7
#define MANY 63
#define WAITING 20 /* of them, over the move */
#define PART 256   /* of `local`, for each of those that wait */

static struct ibv_context *verbs;
static struct ibv_pd *pd, *other_pd;
static struct ibv_cq_ex *cq;
static struct ibv_qp *qp[2];
static char *local; /* MOST bytes */
static struct ibv_mr *local_mr;
static int to_child[2], to_parent[2];
static pid_t child;

/* ---- the child ---- */

/* is asked about an area: does it hold what it should in this life? */
static void be_child(void)
{
	unsigned char ask[2], yes;

	while (read(to_child[0], ask, 2) == 2) {
		yes = holds(at[ask[0]], ask[0], ask[1], 0, length[ask[0]]);
		if (write(to_parent[1], &yes, 1) != 1)
			break;
	}
	_exit(0);
}

static void start_child(void)
{
	NEED(!pipe(to_child) && !pipe(to_parent));
	NEED((child = fork()) >= 0);
	if (!child) {
		signal(SIGUSR1, SIG_IGN);
		close(to_child[1]); /* it ends with the parent */
		be_child();
	}
}

static int child_sees(int area, int life)
{
	unsigned char ask[2] = { (unsigned char)area, (unsigned char)life };
	unsigned char yes;

	NEED(write(to_child[1], ask, 2) == 2);
	NEED(read(to_parent[0], &yes, 1) == 1);
	return yes;
}

/* ---- verbs ---- */

static struct ibv_mr *reg(const struct region *r, struct ibv_pd *in, int access)
{
	struct ibv_mr *mr = ibv_reg_mr_iova(in, at[r->area] + r->offset,
					    r->size, r->iova, access);

	if (!mr)
		printf("region %s\n", r->name);
	NEED(mr);
	return mr;
}

/* registered as it should be, now or in the end */
static void make_region(struct region *r)
{
	if (r == regions + REREGISTERED) {
		r->mr = reg(r, other_pd, IBV_ACCESS_LOCAL_WRITE);
		NEED(!loop_rereg(r->mr,
				 IBV_REREG_MR_CHANGE_PD |
					 IBV_REREG_MR_CHANGE_ACCESS,
				 pd, r->access));
	} else if (r == regions + RESTRICTED) {
		r->mr = reg(r, pd, ALL);
		NEED(!loop_rereg(r->mr, IBV_REREG_MR_CHANGE_ACCESS, pd,
				 r->access));
		/* rdma_rxe changes nothing else */
		NEED(loop_rereg(r->mr, IBV_REREG_MR_CHANGE_TRANSLATION, pd,
				0) == EOPNOTSUPP);
	} else {
		r->mr = reg(r, pd, r->access);
	}
}

static void make(const char *device, int gid_index)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = FEW,
					    .wc_flags =
						    IBV_WC_EX_WITH_BYTE_LEN };
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC,
					 .sq_sig_all = 1,
					 .cap = { WAITING + 1, 1, 1, 1, 0 } };
	struct region *r;

	verbs = loop_open(device);
	NEED(other_pd = ibv_alloc_pd(verbs));
	NEED(pd = ibv_alloc_pd(verbs));
	NEED(local_mr = ibv_reg_mr(pd, local, MOST, IBV_ACCESS_LOCAL_WRITE));
	for (r = regions; r < regions + REGIONS; r++) {
		if (!r->size)
			r->size = length[r->area] - r->offset;
		if (!r->iova && r != regions + ZERO_BASED)
			r->iova = (uintptr_t)at[r->area] + r->offset;
		make_region(r);
	}
	NEED(cq = ibv_create_cq_ex(verbs, &attr));
	NEED(ibv_cq_ex_to_cq(cq)->cqe == FEW);
	NEED(!ibv_resize_cq(ibv_cq_ex_to_cq(cq), MANY));
	NEED(ibv_cq_ex_to_cq(cq)->cqe == MANY);
	init.send_cq = init.recv_cq = ibv_cq_ex_to_cq(cq);
	for (int i = 0; i < 2; i++)
		NEED(qp[i] = ibv_create_qp(pd, &init));
	for (int i = 0; i < 2; i++)
		loop_connect(qp[i], qp[!i]->qp_num, gid_index, ALL);
}

static void post(const struct region *r, enum ibv_wr_opcode opcode)
{
	struct ibv_sge sge = { (uintptr_t)local, (uint32_t)r->size,
			       local_mr->lkey };
	struct ibv_send_wr wr = { .wr_id = (uintptr_t)r,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = opcode,
				  .wr.rdma = { r->iova, r->mr->rkey } },
			   *bad;

	NEED(!ibv_post_send(qp[0], &wr, &bad));
}

static void start_poll(void)
{
	struct ibv_poll_cq_attr attr = {};
	int ret;

	for (int t = 0; (ret = ibv_start_poll(cq, &attr)) == ENOENT; t++) {
		NEED(t < 60000);
		usleep(1000);
	}
	NEED(!ret);
}

static void complete_with(const struct region *r, enum ibv_wc_status status)
{
	start_poll();
	if (cq->wr_id != (uintptr_t)r || cq->status != status)
		printf("region %s: status %d\n", r->name, cq->status);
	NEED(cq->wr_id == (uintptr_t)r && cq->status == status);
}

static void complete(const struct region *r, enum ibv_wc_opcode opcode)
{
	complete_with(r, IBV_WC_SUCCESS);
	NEED(ibv_wc_read_opcode(cq) == opcode);
	NEED(ibv_wc_read_byte_len(cq) == r->size);
	ibv_end_poll(cq);
}

/* with that the QPs have come to their end */
static void refused(const struct region *r)
{
	post(r, IBV_WR_RDMA_WRITE);
	complete_with(r, IBV_WC_REM_ACCESS_ERR);
	ibv_end_poll(cq);
}

/* of the area's life number `life` RDMA reads what the processor wrote */
static void check_read(const struct region *r, int life)
{
	memset(local, 0, r->size);
	post(r, IBV_WR_RDMA_READ);
	complete(r, IBV_WC_RDMA_READ);
	if (!holds(local, r->area, life, r->offset, r->size))
		printf("region %s: read\n", r->name);
	NEED(holds(local, r->area, life, r->offset, r->size));
}

static void use(const struct region *r)
{
	static int life[AREAS];
	const int a = r->area;

	NEED(holds(at[a], a, life[a], 0, length[a]));
	check_read(r, life[a]);
	if (!(r->access & IBV_ACCESS_REMOTE_WRITE))
		return;
	life[a]++;
	fill(at[a], a, life[a], 0, length[a]);
	check_read(r, life[a]);
	/* the region by RDMA, and the processor what is around it */
	life[a]++;
	fill(at[a], a, life[a], 0, r->offset);
	fill(at[a] + r->offset + r->size, a, life[a], r->offset + r->size,
	     length[a] - r->offset - r->size);
	fill(local, a, life[a], r->offset, r->size);
	post(r, IBV_WR_RDMA_WRITE);
	complete(r, IBV_WC_RDMA_WRITE);
	if (!holds(at[a], a, life[a], 0, length[a]))
		printf("region %s: written\n", r->name);
	NEED(holds(at[a], a, life[a], 0, length[a]));
	if (a >= ANONYMOUS && a <= NAMED)
		NEED(child_sees(a, life[a]));
}

/* ---- the resized CQ ---- */

/* number `n` of those that wait is told from the others by its length, too */
static uint32_t part_size(int n)
{
	return (uint32_t)(PART - WAITING + n - 1);
}

static int has_part(int n)
{
	return holds(local + (size_t)n * PART, PRIVATE, 0, (size_t)n,
		     part_size(n));
}

static void read_part(int n)
{
	struct ibv_sge sge = { (uintptr_t)local + (size_t)n * PART,
			       part_size(n), local_mr->lkey };
	struct ibv_send_wr wr = { .wr_id = (uint64_t)n,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_RDMA_READ,
				  .wr.rdma = { regions[0].iova + (uint64_t)n,
					       regions[0].mr->rkey } },
			   *bad;

	NEED(!ibv_post_send(qp[0], &wr, &bad));
}

/* what is polled now */
static void need_part(int n)
{
	if (cq->wr_id != (uint64_t)n || cq->status)
		printf("completion %d is %llu, status %d\n", n,
		       (unsigned long long)cq->wr_id, cq->status);
	NEED(cq->wr_id == (uint64_t)n && !cq->status);
	NEED(ibv_wc_read_opcode(cq) == IBV_WC_RDMA_READ);
	NEED(ibv_wc_read_byte_len(cq) == part_size(n));
}

/* the end of the ring is in the middle of those that wait */
static void leave_waiting(void)
{
	for (int i = 0; i <= MANY - WAITING / 2; i++) {
		read_part(0);
		start_poll();
		need_part(0);
		ibv_end_poll(cq);
	}
	memset(local, 0, MOST);
	for (int i = 0; i <= WAITING; i++)
		read_part(i);
	/* the data of the last one have come: all others have completed */
	for (int t = 0; !has_part(WAITING); t++) {
		NEED(t < 60000);
		usleep(1000);
	}
}

/* at a time, but for the last one, which may complete later */
static void poll_waiting(void)
{
	start_poll();
	for (int i = 0; i < WAITING; i++) {
		NEED(!i || !ibv_next_poll(cq));
		need_part(i);
		NEED(has_part(i));
	}
	ibv_end_poll(cq);
	start_poll();
	need_part(WAITING);
	NEED(ibv_next_poll(cq) == ENOENT);
	ibv_end_poll(cq);
}

static void destroy(void)
{
	for (int i = 0; i < 2; i++)
		NEED(!ibv_destroy_qp(qp[i]));
	NEED(!ibv_destroy_cq(ibv_cq_ex_to_cq(cq)));
	for (size_t i = 0; i < REGIONS; i++)
		NEED(!ibv_dereg_mr(regions[i].mr));
	NEED(!ibv_dereg_mr(local_mr) && !ibv_dealloc_pd(pd));
	NEED(!ibv_dealloc_pd(other_pd));
	NEED(!ibv_close_device(verbs));
}

int main(int argc, char **argv)
{
	const char *device = NULL;
	int opt, gid_index = 1;

	while ((opt = getopt(argc, argv, "d:g:")) != -1) {
		if (opt == 'd')
			device = optarg;
		else if (opt == 'g')
			gid_index = atoi(optarg);
		else
			return 2;
	}
	NEED(!unshare(CLONE_NEWIPC)); /* CRIU moves SysV memory with it */
	NEED(local = calloc(1, MOST));
	map_areas(optind < argc ? argv[optind] : "memory.bin");
	start_child();
	make(device, gid_index);
	check_transparent();
	leave_waiting();
	loop_wait();
	poll_waiting();
	NEED(!ibv_resize_cq(ibv_cq_ex_to_cq(cq), 200));
	for (size_t i = 0; i < REGIONS; i++)
		use(regions + i);
	refused(regions + RESTRICTED);
	destroy();
	close(to_child[1]);
	NEED(wait(NULL) == child && !shm_unlink(NAME));
	puts("PASS");
	return 0;
}
