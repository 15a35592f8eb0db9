// SPDX-License-Identifier: GPL-2.0
/*
 * TRACK where it cannot make soft-dirty what the device has written, and says so; and
 * where it could be thought that it cannot. And by whom it may be asked for what.
 */
#define _GNU_SOURCE /* mremap() */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fuzz_dirty.h"
#include "migr_uverbs.h"

#define FEW 16 /* pages */

static void write_page(struct pair *p, size_t i)
{
	post(&p->a, IBV_WR_RDMA_WRITE, of(p->a.mr, 0, 8), p->mr, i * PAGE);
}

/* ---- what is written unseen -------------------------------------------- */

static void expect_unseen(const struct pair *p, size_t length, bool is)
{
	struct rxe_migr_track_resp resp;

	MUST(!migr_cmd_track(p->b.ctx->cmd_fd, 0, 0, &resp));
	EXPECT((int)resp.flags, is ? RXE_MIGR_TRACK_LOST : 0);
	EXPECT(resp.unseen ? resp.unseen - (uintptr_t)p->mem < length : !is,
	       true);
}

/*
 * Pages get the right to be written without a fault, although they are clean, since their
 * mapping has grown and is soft-dirty as a whole. Once they are pinned they keep it.
 */
static void writable_and_clean(struct pair *p)
{
	const size_t length = FEW * PAGE;
	char *at = mmap(NULL, 4 * length, PROT_NONE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const int fixed = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;

	MUST(at != MAP_FAILED);
	p->mem = at + length;
	MUST(mmap(p->mem, length, PROT_READ | PROT_WRITE, fixed, -1, 0) ==
	     p->mem);
	memset(p->mem, 1, length);
	clear_soft_dirty();
	MUST(mmap(p->mem + length, length, PROT_READ | PROT_WRITE, fixed, -1,
		  0) == p->mem + length);
	MUST(!mprotect(p->mem, length, PROT_READ));
	MUST(!mprotect(p->mem, length, PROT_READ | PROT_WRITE));
	MUST(p->mr = ibv_reg_mr(p->b.pd, p->mem, length, ALL_ACCESS));

	expect_unseen(p, length, false);
	EXPECT(is_soft_dirty(p->mem), true); /* as long as all of it is */
	clear_soft_dirty();
	write_page(p, 3);
	p->mem[5 * PAGE] = 2;
	/* or this tests nothing */
	EXPECT(is_soft_dirty(p->mem + 5 * PAGE), false);
	expect_unseen(p, length, true);
	EXPECT(is_soft_dirty(p->mem + 3 * PAGE), false);
	clear_soft_dirty();
	expect_unseen(p, length, true);

	/* and now they have to ask again */
	MUST(!mprotect(p->mem, length, PROT_READ));
	MUST(!mprotect(p->mem, length, PROT_READ | PROT_WRITE));
	expect_unseen(p, length, true); /* who knows what they did before */
	clear_soft_dirty();
	write_page(p, 3);
	expect_unseen(p, length, false);
	EXPECT(is_soft_dirty(p->mem + 3 * PAGE), true);
	MUST(!ibv_dereg_mr(p->mr));
	munmap(at, 4 * length);
}

/* The same beside the MR, which has one huge page with it in common */
static void writable_beside(struct pair *p)
{
	char *at = mmap(NULL, 4 * HUGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS,
			-1, 0);
	const int fixed = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
	char *beside;

	MUST(at != MAP_FAILED);
	p->mem = (char *)(((uintptr_t)at + HUGE) & ~(HUGE - 1));
	MUST(mmap(p->mem, HUGE, PROT_READ | PROT_WRITE, fixed, -1, 0) ==
	     p->mem);
	MUST(!madvise(p->mem, HUGE, MADV_HUGEPAGE));
	memset(p->mem, 1, HUGE);
	MUST(p->mr = ibv_reg_mr(p->b.pd, p->mem, PAGE, ALL_ACCESS));
	expect_unseen(p, HUGE, false);
	clear_soft_dirty();
	MUST(mmap(p->mem + HUGE, PAGE, PROT_READ | PROT_WRITE, fixed, -1, 0) ==
	     p->mem + HUGE);
	MUST(!madvise(p->mem + HUGE, PAGE, MADV_HUGEPAGE));
	EXPECT(is_soft_dirty(p->mem), true); /* as a part of all that */
	beside = p->mem + 100 * PAGE;
	MUST(!mprotect(beside, PAGE, PROT_READ));
	MUST(!mprotect(beside, PAGE, PROT_READ | PROT_WRITE));

	expect_unseen(p, HUGE, false);
	clear_soft_dirty();
	*beside = 2;
	/* or this tests nothing */
	EXPECT(is_soft_dirty(beside), false);
	expect_unseen(p, HUGE, true);
	MUST(!ibv_dereg_mr(p->mr));
	munmap(at, 4 * HUGE);
	track(p, true); /* what was written until then */
	track(p, false);
}

static int set_huge_pages(int n)
{
	FILE *f = fopen("/proc/sys/vm/nr_hugepages", "r+e");
	int before;

	MUST(f && fscanf(f, "%d", &before) == 1);
	rewind(f);
	MUST(fprintf(f, "%d\n", n) > 0 && !fclose(f));
	return before;
}

/* of which there are no soft-dirty bits */
static void hugetlb(struct pair *p, int flags)
{
	const int before = set_huge_pages(2);

	p->mem = mmap(NULL, HUGE, PROT_READ | PROT_WRITE,
		      flags | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
	MUST(p->mem != MAP_FAILED);
	memset(p->mem, 1, HUGE);
	MUST(p->mr = ibv_reg_mr(p->b.pd, p->mem, HUGE, ALL_ACCESS));
	expect_unseen(p, HUGE, false);
	EXPECT(is_soft_dirty(p->mem), true);
	clear_soft_dirty();
	write_page(p, 3);
	EXPECT(is_soft_dirty(p->mem + 3 * PAGE), false);
	expect_unseen(p, HUGE, true);
	MUST(!ibv_dereg_mr(p->mr));
	munmap(p->mem, HUGE);
	track(p, true); /* what was written until then */
	track(p, false);
	set_huge_pages(before);
}

/* ---- memory that is gone ----------------------------------------------- */

/* whoever unmaps it misses nothing, and be it a part only */
static void unmapped(struct pair *p, enum kind kind)
{
	char written[PAGES];

	take_memory(p, kind);
	track(p, false);
	clear_soft_dirty();
	write_all(p, written);
	MUST(!munmap(p->mem, PAGES / 4 * PAGE));
	EXPECT((int)track(p, false) > 0, true);
	memset(written, 0, PAGES / 4);
	expect_marked(p, written);
	write_all(p, written);
	MUST(!munmap(p->mem, PAGES * PAGE));
	EXPECT((int)track(p, false) > 0, true);
	write_all(p, written);
	MUST(!ibv_dereg_mr(p->mr));
	EXPECT((int)track(p, false), 0);
}

/* a page that another one still has is somebody's */
static void unmapped_file(struct pair *p)
{
	int fd = memfd_create("memory", MFD_CLOEXEC);

	MUST(fd >= 0 && !ftruncate(fd, (off_t)(FEW * PAGE)));
	p->mem = mmap(NULL, FEW * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		      0);
	MUST(p->mem != MAP_FAILED);
	MUST(p->mr = ibv_reg_mr(p->b.pd, p->mem, FEW * PAGE, ALL_ACCESS));
	track(p, false);
	munmap(p->mem, FEW * PAGE);
	write_page(p, 3);
	track(p, true);
	MUST(!ftruncate(fd, 0));
	write_page(p, 3);
	track(p, false);
	MUST(!ibv_dereg_mr(p->mr));
	close(fd);
}

static long blocks(int fd)
{
	struct stat st;

	MUST(!fstat(fd, &st));
	return st.st_blocks;
}

/* what a file has given back it does not get anew, be it of huge pages */
static void punched(struct pair *p, unsigned int flags)
{
	const bool unseen = flags & MFD_HUGETLB;
	const int before = set_huge_pages(2);
	int fd = memfd_create("memory", MFD_CLOEXEC | flags);
	struct rxe_migr_track_resp resp;

	MUST(fd >= 0 && !ftruncate(fd, HUGE));
	p->mem = mmap(NULL, HUGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	MUST(p->mem != MAP_FAILED);
	memset(p->mem, 1, HUGE);
	MUST(p->mr = ibv_reg_mr(p->b.pd, p->mem, HUGE, ALL_ACCESS));
	write_page(p, 3);
	MUST(blocks(fd) > 0);
	MUST(!madvise(p->mem, HUGE, MADV_REMOVE));
	MUST(!blocks(fd));
	MUST(!migr_cmd_track(p->b.ctx->cmd_fd, RXE_MIGR_TRACK_END, 0, &resp));
	MUST(!migr_cmd_track(p->b.ctx->cmd_fd, 0, 0, &resp));
	EXPECT((int)blocks(fd), 0);
	write_page(p, 3);
	track(p, unseen);
	EXPECT((int)blocks(fd), 0);
	/* what it has got is another page, and that of the device is nobody's */
	p->mem[3 * PAGE] = 2;
	write_page(p, 3);
	track(p, unseen);
	EXPECT(p->mem[3 * PAGE], 2);
	MUST(!ibv_dereg_mr(p->mr));
	munmap(p->mem, HUGE);
	close(fd);
	set_huge_pages(before);
	track(p, unseen);
	track(p, false);
}

/* what is not mapped at the moment, but in the file */
static void unmapped_page(struct pair *p)
{
	int fd = memfd_create("memory", MFD_CLOEXEC);

	MUST(fd >= 0 && !ftruncate(fd, (off_t)(FEW * PAGE)));
	p->mem = mmap(NULL, FEW * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		      0);
	MUST(p->mem != MAP_FAILED);
	MUST(p->mr = ibv_reg_mr(p->b.pd, p->mem, FEW * PAGE, ALL_ACCESS));
	track(p, false);
	clear_soft_dirty();
	MUST(!madvise(p->mem, FEW * PAGE, MADV_DONTNEED));
	write_page(p, 3);
	EXPECT((int)track(p, false), 1);
	EXPECT(is_soft_dirty(p->mem + 3 * PAGE), true);
	EXPECT(is_soft_dirty(p->mem + 4 * PAGE), false);
	MUST(!ibv_dereg_mr(p->mr));
	munmap(p->mem, FEW * PAGE);
	close(fd);
}

/* memory that a file system would have to read, if it was not there already */
static void of_a_file(struct pair *p)
{
	static char data[FEW * PAGE] __attribute__((aligned(PAGE))) = { 1 };

	p->mem = data;
	MUST(p->mr = ibv_reg_mr(p->b.pd, p->mem, FEW * PAGE, ALL_ACCESS));
	for (int i = 0; i < 2; i++) {
		track(p, false);
		clear_soft_dirty();
		write_page(p, 3);
		EXPECT((int)track(p, false), 1);
		EXPECT(is_soft_dirty(data + 3 * PAGE), true);
	}
	MUST(!ibv_dereg_mr(p->mr));
}

/* a child has a copy of what is pinned, and all that is shared */
static void forked(struct pair *p, enum kind kind)
{
	char written[PAGES];
	int status;
	pid_t pid;

	take_memory(p, kind);
	track(p, false);
	clear_soft_dirty();
	fflush(stdout);
	pid = fork();
	MUST(pid >= 0);
	if (!pid) {
		pause();
		_exit(1);
	}
	for (int i = 0; i < 3; i++) {
		write_all(p, written);
		track(p, false);
		expect_marked(p, written);
		clear_soft_dirty();
		if (i == 1) {
			kill(pid, SIGKILL);
			MUST(waitpid(pid, &status, 0) == pid);
		}
	}
	MUST(!ibv_dereg_mr(p->mr));
	munmap(p->mem, PAGES * PAGE);
}

/* ---- contexts ---------------------------------------------------------- */

/* how many, and the last of them, or 0 */
static unsigned int lost_contexts(uint64_t *last)
{
	FILE *f = fopen("/sys/module/rdma_rxe/parameters/migr_lost", "re");
	unsigned int n;

	MUST(f && fscanf(f, "%u", &n) == 1);
	if (fscanf(f, "%" SCNu64, last) != 1)
		*last = 0;
	fclose(f);
	return n;
}

/* since there were so many: this one, and no other one; or none */
static void expect_lost(unsigned int before, uint64_t context, bool is)
{
	uint64_t last;

	EXPECT((int)(lost_contexts(&last) - before), is);
	EXPECT(last == context, is);
}

/* one that is tracked no more, be it that all else is well, and ends; or moves away */
static void untracked_life(struct rig *rig, bool commit)
{
	struct rxe_migr_track_resp resp;
	unsigned int before;
	struct pair p;
	int guard = -1;
	uint64_t last;

	before = lost_contexts(&last);
	pair_open(rig, &p);
	take_memory(&p, HUGE_PAGES);
	MUST(!migr_cmd_track(p.b.ctx->cmd_fd, 0, 0, &resp));
	clear_soft_dirty();
	MUST(!migr_cmd_track(p.b.ctx->cmd_fd, RXE_MIGR_TRACK_END, 0, &resp));
	EXPECT(resp.since != 0, true);
	write_page(&p, 3);
	if (commit) {
		guard = side_stop(&p.b);
		MUST(!migr_cmd_commit(p.b.ctx->cmd_fd));
	}
	MUST(!ibv_dereg_mr(p.mr));
	EXPECT(is_soft_dirty(p.mem + 3 * PAGE), false);
	pair_close(&p);
	if (commit)
		close(guard);
	expect_lost(before, resp.context, !commit);
	munmap(p.mem, PAGES * PAGE);
}

/* @reports: receives the number of its context, which is tracked, and has written */
static void end_abruptly(struct rig *rig, enum kind kind, int reports)
{
	struct rxe_migr_track_resp resp;
	struct pair p;

	pair_open(rig, &p);
	take_memory(&p, kind);
	MUST(!migr_cmd_track(p.b.ctx->cmd_fd, 0, 0, &resp));
	clear_soft_dirty();
	write_page(&p, 3);
	MUST(write(reports, &resp.context, sizeof(resp.context)) ==
	     sizeof(resp.context));
	_exit(fuzz_failures != 0);
}

/* one whose process closes nothing: its memory is gone before, and nobody's any more */
static void abrupt_life(struct rig *rig, enum kind kind)
{
	unsigned int before;
	uint64_t last;
	int fds[2], status;
	pid_t pid;

	before = lost_contexts(&last);
	MUST(!pipe2(fds, O_CLOEXEC));
	fflush(stdout);
	pid = fork();
	MUST(pid >= 0);
	if (!pid)
		end_abruptly(rig, kind, fds[1]);
	MUST(waitpid(pid, &status, 0) == pid);
	EXPECT(status, 0);
	MUST(read(fds[0], &last, sizeof(last)) == sizeof(last));
	expect_lost(before, last, false);
	close(fds[0]);
	close(fds[1]);
}

/* one that ends with something that is written elsewhere, or with all well */
static uint64_t one_life(struct rig *rig, bool move)
{
	struct rxe_migr_track_resp resp, again;
	char *other = map(SMALL);
	unsigned int before;
	struct pair p;
	uint64_t last;

	before = lost_contexts(&last);
	pair_open(rig, &p);
	take_memory(&p, SMALL);
	MUST(!migr_cmd_track(p.b.ctx->cmd_fd, 0, 0, &resp));
	EXPECT((int)resp.flags, RXE_MIGR_TRACK_BEGUN);
	if (move)
		MUST(mremap(p.mem, PAGES * PAGE, PAGES * PAGE,
			    MREMAP_MAYMOVE | MREMAP_FIXED, other) == other);
	MUST(!migr_cmd_track(p.b.ctx->cmd_fd, 0, 0, &again));
	EXPECT((int)again.flags, 0);
	EXPECT(again.context == resp.context, true);
	write_page(&p, 3);
	MUST(!ibv_dereg_mr(p.mr));
	pair_close(&p);
	expect_lost(before, resp.context, move);
	munmap(other, PAGES * PAGE);
	if (!move)
		munmap(p.mem, PAGES * PAGE);
	return resp.context;
}

/* ---- rounds ------------------------------------------------------------ */

/* to the end of a context nothing comes of it but this: what it says */
static void expect_round(const struct pair *p, uint64_t round, uint64_t since,
			 bool lost)
{
	const int begun = since ? 0 : RXE_MIGR_TRACK_BEGUN;
	struct rxe_migr_track_resp resp;

	MUST(!migr_cmd_track_round(p->b.ctx->cmd_fd, 0, round, &resp));
	EXPECT(resp.since == since, true);
	EXPECT((int)resp.flags, begun | (lost ? RXE_MIGR_TRACK_LOST : 0));
}

/* TRACK whose answer nobody gets */
static int track_unheard(const struct pair *p, uint64_t round)
{
	const struct rxe_migr_track in = { .round = round };

	return migr_device_run(p->b.ctx->cmd_fd, RXE_MIGR_METHOD_TRACK, &in,
			       sizeof(in), (void *)8,
			       sizeof(struct rxe_migr_track_resp));
}

/*
 * Each round is told which one was before, and all that is to be told in it, however
 * often it is asked; who has not heard it, or begins another one, is told so.
 */
static void rounds_in_order(struct rig *rig)
{
	struct rxe_migr_track_resp resp;
	char *other = map(SMALL);
	struct pair p;

	pair_open(rig, &p);
	take_memory(&p, SMALL);
	expect_round(&p, 5, 0, false);
	expect_round(&p, 5, 0, false);
	expect_round(&p, 6, 5, false);
	MUST(mremap(p.mem, PAGES * PAGE, PAGES * PAGE,
		    MREMAP_MAYMOVE | MREMAP_FIXED, other) == other);
	write_page(&p, 3);
	EXPECT(track_unheard(&p, 7), -EFAULT);
	expect_round(&p, 7, 6, true);
	expect_round(&p, 7, 6, true);
	expect_round(&p, 8, 7, false);
	write_page(&p, 3);
	EXPECT(track_unheard(&p, 0), -EFAULT);
	MUST(!migr_cmd_track_round(p.b.ctx->cmd_fd, 0, 9, &resp));
	EXPECT(resp.since && resp.since != 8, true);
	MUST(!migr_cmd_track(p.b.ctx->cmd_fd, RXE_MIGR_TRACK_END, 0, &resp));
	EXPECT(resp.since == 9, true);
	expect_round(&p, 9, 0, true); /* all of it, which is elsewhere */
	MUST(!ibv_dereg_mr(p.mr));
	pair_close(&p);
	munmap(other, PAGES * PAGE);
}

/* ---- at the same time -------------------------------------------------- */

#define ROUNDS 12

/*
 * A stranger to TRACK: he writes, by one MR or by many that come and go. What he writes, a
 * page or one of a huge page, he writes once: so nobody makes good what is missed.
 */
struct writer {
	struct pair *p;
	bool many;
	size_t step;	/* pages from one that is written to the next */
	size_t targets; /* that are written, */
	size_t allowed; /* by now, */
	size_t ready;	/* could be at once, */
	size_t written; /* and have been */
	/* held by who copies memory, as if the writer's process was frozen */
	pthread_mutex_t reg, dereg;
};

static size_t pages_of(const struct writer *w)
{
	return w->targets * w->step;
}

/* the n-th that is written, not in their order */
static size_t target(const struct writer *w, size_t n)
{
	return n * 7919 % w->targets * w->step + n * 31 % w->step;
}

static void register_some(struct writer *w, size_t first)
{
	struct pair *p = w->p;
	size_t n = pages_of(w) - first;

	pthread_mutex_lock(&w->reg);
	MUST(p->mr = ibv_reg_mr(p->b.pd, p->mem + first * PAGE,
				(n < FEW ? n : FEW) * PAGE, ALL_ACCESS));
	pthread_mutex_unlock(&w->reg);
}

static void deregister(struct writer *w)
{
	pthread_mutex_lock(&w->dereg);
	MUST(!ibv_dereg_mr(w->p->mr));
	pthread_mutex_unlock(&w->dereg);
}

static void wait_for(const size_t *n, size_t least)
{
	while (__atomic_load_n(n, __ATOMIC_ACQUIRE) < least)
		sched_yield();
}

static void *write_on(void *arg)
{
	struct writer *w = arg;
	struct pair *p = w->p;

	for (size_t n = 0; n < w->targets; n++) {
		if (w->many)
			register_some(w, target(w, n));
		__atomic_store_n(&w->ready, n + 1, __ATOMIC_RELEASE);
		wait_for(&w->allowed, n + 1);
		memcpy(p->a.mem, &(uint64_t){ n + 2 }, 8);
		write_page(p, w->many ? 0 : target(w, n));
		__atomic_store_n(&w->written, n + 1, __ATOMIC_RELEASE);
		if (w->many)
			deregister(w);
	}
	return NULL;
}

/* a round: what is soft-dirty is copied */
static size_t copy_round(struct writer *w, char *copy)
{
	const struct pair *p = w->p;
	const size_t all = pages_of(w);
	bool *dirty = calloc(all, sizeof(*dirty));
	size_t n = 0;

	MUST(dirty);
	pthread_mutex_lock(&w->reg);
	track(p, false);
	pthread_mutex_lock(&w->dereg);
	for (size_t i = 0; i < all; i += PAGES)
		read_soft_dirty(p->mem + i * PAGE, dirty + i);
	clear_soft_dirty();
	pthread_mutex_unlock(&w->dereg);
	pthread_mutex_unlock(&w->reg);
	for (size_t i = 0; i < all; i++)
		if (dirty[i]) {
			memcpy(copy + i * PAGE, p->mem + i * PAGE, PAGE);
			n++;
		}
	free(dirty);
	return n;
}

/* some are written before a round, others meanwhile, and in each second one none */
static size_t copy_rounds(struct writer *w, char *copy)
{
	size_t n = 0, before = 0, now;

	for (size_t i = 1; i <= ROUNDS; i++, before = now) {
		now = w->targets * i / ROUNDS;
		wait_for(&w->ready, before + 1);
		n += copy_round(w, copy);
		__atomic_store_n(&w->allowed, now, __ATOMIC_RELEASE);
		wait_for(&w->written, before + 1);
		n += copy_round(w, copy);
		wait_for(&w->written, now);
	}
	return n;
}

static void meanwhile(struct pair *p, enum kind kind, bool many)
{
	const bool huge = kind == HUGE_PAGES;
	struct writer w = { .p = p,
			    .many = many,
			    .step = huge ? HUGE / PAGE : 1,
			    .targets = huge ? 4 * ROUNDS : PAGES,
			    .reg = PTHREAD_MUTEX_INITIALIZER,
			    .dereg = PTHREAD_MUTEX_INITIALIZER };
	const size_t bytes = pages_of(&w) * PAGE;
	char *copy = malloc(bytes);
	pthread_t thread;
	size_t n;

	MUST(copy);
	p->mem = map_bytes(kind, bytes);
	if (!many)
		MUST(p->mr = ibv_reg_mr(p->b.pd, p->mem, bytes, ALL_ACCESS));
	copy_round(&w, copy);
	n = copy_round(&w, copy);
	/* or this tests nothing */
	EXPECT(kind == SMALL || n < pages_of(&w) / 2, true);
	MUST(!pthread_create(&thread, NULL, write_on, &w));
	n = copy_rounds(&w, copy);
	MUST(!pthread_join(thread, NULL));
	n += copy_round(&w, copy);
	printf("%zu pages in %d rounds, %zu written\n", n, 2 * ROUNDS + 1,
	       w.targets);
	EXPECT(memcmp(copy, p->mem, bytes), 0);
	if (!many)
		MUST(!ibv_dereg_mr(p->mr));
	munmap(p->mem, bytes);
	free(copy);
}

/* ---- whose memory ------------------------------------------------------ */

/* another user, who may migrate, but not look at everybody */
static void become_migrator(void)
{
	struct __user_cap_header_struct header = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct data[2] = {};

	data[CAP_CHECKPOINT_RESTORE / 32].effective =
		data[CAP_CHECKPOINT_RESTORE / 32].permitted =
			1U << CAP_CHECKPOINT_RESTORE % 32;
	MUST(!prctl(PR_SET_KEEPCAPS, 1));
	MUST(!setgid(65534) && !setuid(65534));
	MUST(!syscall(SYS_capset, &header, data));
}

static int as_migrator(int fd)
{
	struct rxe_migr_track_resp resp;
	struct rxe_migr_status st;

	become_migrator();
	EXPECT(migr_cmd_track(fd, 0, getppid(), &resp), -EACCES);
	EXPECT(migr_cmd_track(fd, 0, 1, &resp), -EACCES);
	EXPECT(migr_cmd_stop_task(fd, getppid(), &st), -EACCES);
	EXPECT(migr_cmd_track(fd, 0, -1, &resp), -ESRCH);
	/* his own, and none in particular */
	EXPECT(migr_cmd_track(fd, 0, getpid(), &resp), 0);
	EXPECT(migr_cmd_track(fd, 0, 0, &resp), 0);
	EXPECT(migr_cmd_track(fd, RXE_MIGR_TRACK_END, 0, &resp), 0);
	return fuzz_failures != 0;
}

static void others_memory(struct pair *p)
{
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	MUST(pid >= 0);
	if (!pid)
		_exit(as_migrator(p->b.ctx->cmd_fd));
	MUST(waitpid(pid, &status, 0) == pid);
	EXPECT(status, 0);
}

void attack_tracked(struct rig *rig)
{
	struct rxe_migr_track_resp resp;
	struct pair p;

	pair_open(rig, &p);
	others_memory(&p);
	MUST(!migr_cmd_track(p.b.ctx->cmd_fd, 0, 0, &resp));
	writable_and_clean(&p);
	writable_beside(&p);
	hugetlb(&p, MAP_PRIVATE);
	hugetlb(&p, MAP_SHARED);
	unmapped(&p, HUGE_PAGES);
	unmapped(&p, SMALL);
	for (enum kind kind = HUGE_PAGES; kind <= SMALL; kind++) {
		forked(&p, kind);
		meanwhile(&p, kind, false);
		meanwhile(&p, kind, true);
	}
	unmapped_file(&p);
	punched(&p, 0);
	punched(&p, MFD_HUGETLB);
	unmapped_page(&p);
	of_a_file(&p);
	pair_close(&p);
	EXPECT(one_life(rig, false) != one_life(rig, true), true);
	for (int commit = 0; commit < 2; commit++)
		untracked_life(rig, commit);
	for (enum kind kind = HUGE_PAGES; kind <= SMALL; kind++)
		abrupt_life(rig, kind);
	rounds_in_order(rig);
}
