// SPDX-License-Identifier: GPL-2.0
/*
 * memory: memory regions of all kinds of memory that a program can register.
 *
 *	memory [-d DEVICE] [-g GID_INDEX] [FILE]
 *
 * FILE is created, and has to be where it was after a move. If the kernel makes
 * transparent huge pages, the area for them must have some, all over. "ready" goes to
 * stdout; on SIGUSR1 every region must hold what it held, be written and read by
 * RDMA, and what RDMA has written be seen by the processor, also by a child that
 * shares the memory. Work completes in an extended CQ, which was resized; one
 * completion is waiting in it all the while. Then "PASS", else "FAIL: reason".
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loop.h"

#define PAGE 4096UL
#define HUGE (2UL << 20)
#define MOST (2 * HUGE) /* bytes of a region */
#define ALL                                                 \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | \
	 IBV_ACCESS_REMOTE_READ)

enum area {
	PRIVATE,
	TRANSPARENT, /* huge pages */
	HUGETLB,
	ANONYMOUS, /* from here on to UNLINKED: shared with the child */
	SYSV,
	UNLINKED,  /* POSIX shared memory without a name */
	COPIED,	   /* a file's, private */
	READ_ONLY, /* a file's */
	MIXED,	   /* one region, two mappings of different kinds */
	AREAS
};

static char *at[AREAS];
static const size_t length[AREAS] = {
	[PRIVATE] = 3 * PAGE,	[TRANSPARENT] = MOST, [HUGETLB] = HUGE,
	[ANONYMOUS] = 2 * PAGE, [SYSV] = 2 * PAGE,    [UNLINKED] = 2 * PAGE,
	[COPIED] = 2 * PAGE,	[READ_ONLY] = PAGE,   [MIXED] = 2 * PAGE,
};

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
	{ "with an iova", PRIVATE, 0, 0, ALL, 0x7000000000, NULL },
	{ "with iova 0", PRIVATE, PAGE, 0, ALL, 0, NULL },
	{ "transparent huge pages", TRANSPARENT, 0, 0, ALL, 0, NULL },
	{ "the middle of a huge page", TRANSPARENT, HUGE + 5, 77777, ALL, 0,
	  NULL },
	{ "hugetlb", HUGETLB, 0, 0, ALL, 0, NULL },
	{ "shared anonymous", ANONYMOUS, 0, 0, ALL, 0, NULL },
	{ "SysV", SYSV, 0, 0, ALL, 0, NULL },
	{ "POSIX, unlinked", UNLINKED, 0, 0, ALL, 0, NULL },
	{ "private of a file", COPIED, 0, 0, ALL, 0, NULL },
	{ "read-only of a file", READ_ONLY, 0, 0, IBV_ACCESS_REMOTE_READ, 0,
	  NULL },
	{ "two mappings", MIXED, 0, 0, ALL, 0, NULL },
};

#define REGIONS (sizeof(regions) / sizeof(regions[0]))
#define ZERO_BASED 3 /* regions[] of iova 0 */

static struct ibv_context *verbs;
static struct ibv_pd *pd;
static struct ibv_cq_ex *cq;
static struct ibv_qp *qp[2];
static char *local; /* MOST bytes */
static struct ibv_mr *local_mr;
static int to_child[2], to_parent[2];
static pid_t child;

/* ---- memory ---- */

static void *map(size_t size, int prot, int flags, int fd)
{
	void *p = mmap(NULL, size, prot, flags, fd, 0);

	NEED(p != MAP_FAILED);
	return p;
}

static void *map_transparent(size_t size)
{
	char *p = map(size + HUGE, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1);

	p = (char *)(((uintptr_t)p + HUGE - 1) & ~(HUGE - 1));
	/* pages that are shared with a child are split before they are pinned */
	NEED(!madvise(p, size, MADV_HUGEPAGE) &&
	     !madvise(p, size, MADV_DONTFORK));
	return p;
}

/* whoever switches them off wants to see the rest */
static int kernel_has_thp(void)
{
	FILE *f = fopen("/sys/kernel/mm/transparent_hugepage/enabled", "re");
	char line[64] = "";

	if (!f)
		return 0;
	NEED(fgets(line, sizeof(line), f));
	fclose(f);
	return !strstr(line, "[never]");
}

/* of the mapping at this address */
static unsigned long huge_kb(const void *p)
{
	unsigned long first, end, kb = 0;
	FILE *f = fopen("/proc/self/smaps", "re");
	char line[512];
	int here = 0;

	NEED(f);
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx ", &first, &end) == 2)
			here = (uintptr_t)p >= first && (uintptr_t)p < end;
		else if (here && sscanf(line, "AnonHugePages: %lu", &kb) == 1)
			break;
	}
	fclose(f);
	return kb;
}

static void check_transparent(void)
{
	unsigned long kb = huge_kb(at[TRANSPARENT]);

	printf("%lu KiB in transparent huge pages\n", kb);
	NEED(!kernel_has_thp() || kb * 1024 == length[TRANSPARENT]);
}

static void *map_sysv(size_t size)
{
	int id = shmget(IPC_PRIVATE, size, 0600);
	void *p;

	NEED(id >= 0);
	p = shmat(id, NULL, 0);
	NEED(p != (void *)-1);
	return p;
}

static void *map_unlinked(size_t size)
{
	int fd = shm_open("/memory-test", O_RDWR | O_CREAT | O_EXCL, 0600);
	void *p;

	NEED(fd >= 0 && !shm_unlink("/memory-test"));
	NEED(!ftruncate(fd, size));
	p = map(size, PROT_READ | PROT_WRITE, MAP_SHARED, fd);
	close(fd);
	return p;
}

/* the second page is of shared memory */
static void *map_mixed(size_t size)
{
	char *p = map(size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		      -1);

	NEED(mmap(p + PAGE, size - PAGE, PROT_READ | PROT_WRITE,
		  MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == p + PAGE);
	return p;
}

/* byte `i` of an area, in its life number `life` */
static char pattern(int area, int life, size_t i)
{
	return (char)(i * 7 + i / PAGE + area * 31 + life * 101);
}

static void fill(char *to, int area, int life, size_t from, size_t size)
{
	for (size_t i = 0; i < size; i++)
		to[i] = pattern(area, life, from + i);
}

static int holds(const char *p, int area, int life, size_t from, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (p[i] != pattern(area, life, from + i))
			return 0;
	return 1;
}

static void map_all(const char *file)
{
	const int rw = PROT_READ | PROT_WRITE;
	int fd = open(file, O_RDWR | O_CREAT | O_TRUNC, 0600);

	NEED(fd >= 0);
	fill(local, READ_ONLY, 0, 0, length[COPIED]);
	NEED(write(fd, local, length[COPIED]) == (ssize_t)length[COPIED]);
	at[PRIVATE] = map(length[PRIVATE], rw, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	NEED(!madvise(at[PRIVATE], length[PRIVATE], MADV_NOHUGEPAGE));
	at[TRANSPARENT] = map_transparent(length[TRANSPARENT]);
	at[HUGETLB] = map(length[HUGETLB], rw,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1);
	at[ANONYMOUS] =
		map(length[ANONYMOUS], rw, MAP_SHARED | MAP_ANONYMOUS, -1);
	at[SYSV] = map_sysv(length[SYSV]);
	at[UNLINKED] = map_unlinked(length[UNLINKED]);
	at[COPIED] = map(length[COPIED], rw, MAP_PRIVATE, fd);
	at[READ_ONLY] = map(length[READ_ONLY], PROT_READ, MAP_SHARED, fd);
	at[MIXED] = map_mixed(length[MIXED]);
	close(fd);
	for (int a = 0; a < AREAS; a++)
		if (a != READ_ONLY)
			fill(at[a], a, 0, 0, length[a]);
}

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

static void make(const char *device, int gid_index)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = 4,
					    .wc_flags =
						    IBV_WC_EX_WITH_BYTE_LEN };
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC,
					 .sq_sig_all = 1,
					 .cap = { 8, 8, 1, 1, 0 } };
	struct region *r;

	verbs = loop_open(device);
	NEED(pd = ibv_alloc_pd(verbs));
	NEED(local_mr = ibv_reg_mr(pd, local, MOST, IBV_ACCESS_LOCAL_WRITE));
	for (r = regions; r < regions + REGIONS; r++) {
		if (!r->size)
			r->size = length[r->area] - r->offset;
		if (!r->iova && r != regions + ZERO_BASED)
			r->iova = (uintptr_t)at[r->area] + r->offset;
		r->mr = ibv_reg_mr_iova(pd, at[r->area] + r->offset, r->size,
					r->iova, r->access);
		if (!r->mr)
			printf("region %s\n", r->name);
		NEED(r->mr);
	}
	NEED(cq = ibv_create_cq_ex(verbs, &attr));
	NEED(!ibv_resize_cq(ibv_cq_ex_to_cq(cq), 40));
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

static void complete(const struct region *r, enum ibv_wc_opcode opcode)
{
	struct ibv_poll_cq_attr attr = {};
	int ret;

	for (int t = 0; (ret = ibv_start_poll(cq, &attr)) == ENOENT; t++) {
		NEED(t < 60000);
		usleep(1000);
	}
	NEED(!ret);
	if (cq->wr_id != (uintptr_t)r || cq->status)
		printf("region %s: status %d\n", r->name, cq->status);
	NEED(cq->wr_id == (uintptr_t)r && !cq->status);
	NEED(ibv_wc_read_opcode(cq) == opcode);
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
	if (a >= ANONYMOUS && a <= UNLINKED)
		NEED(child_sees(a, life[a]));
}

static void destroy(void)
{
	for (int i = 0; i < 2; i++)
		NEED(!ibv_destroy_qp(qp[i]));
	NEED(!ibv_destroy_cq(ibv_cq_ex_to_cq(cq)));
	for (size_t i = 0; i < REGIONS; i++)
		NEED(!ibv_dereg_mr(regions[i].mr));
	NEED(!ibv_dereg_mr(local_mr) && !ibv_dealloc_pd(pd));
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
	local = map(MOST, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		    -1);
	map_all(optind < argc ? argv[optind] : "memory.bin");
	start_child();
	make(device, gid_index);
	check_transparent();
	post(regions, IBV_WR_RDMA_READ); /* completes in time, or later */
	loop_wait();
	complete(regions, IBV_WC_RDMA_READ);
	NEED(!ibv_resize_cq(ibv_cq_ex_to_cq(cq), 200));
	for (size_t i = 0; i < REGIONS; i++)
		use(regions + i);
	destroy();
	close(to_child[1]);
	NEED(wait(NULL) == child);
	puts("PASS");
	return 0;
}
