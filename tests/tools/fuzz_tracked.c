// SPDX-License-Identifier: GPL-2.0
/*
 * TRACK where it cannot make soft-dirty what the device has written, and says so; and
 * where it could be thought that it cannot. And by whom it may be asked for what.
 */
#define _GNU_SOURCE /* mremap() */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
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

static int free_huge_pages(void)
{
	FILE *f = fopen("/proc/meminfo", "re");
	char line[128];
	int n = -1;

	while (f && n < 0 && fgets(line, sizeof(line), f))
		if (sscanf(line, "HugePages_Free: %d", &n) != 1)
			n = -1;
	MUST(f && n >= 0);
	fclose(f);
	return n;
}

/* Nothing is taken from the pool in the place of what was given back to it. */
static void given_back(struct pair *p)
{
	const int before = set_huge_pages(2);
	struct rxe_migr_track_resp resp;

	p->mem = mmap(NULL, HUGE, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
	MUST(p->mem != MAP_FAILED);
	memset(p->mem, 1, HUGE);
	MUST(p->mr = ibv_reg_mr(p->b.pd, p->mem, HUGE, ALL_ACCESS));
	MUST(!migr_cmd_track(p->b.ctx->cmd_fd, 0, 0, &resp));
	write_page(p, 3);
	EXPECT(free_huge_pages(), 1);
	MUST(!madvise(p->mem, HUGE, MADV_DONTNEED));
	EXPECT(free_huge_pages(), 1); /* the device has it still */
	MUST(!migr_cmd_track(p->b.ctx->cmd_fd, 0, 0, &resp));
	EXPECT(free_huge_pages(), 1);
	write_page(p, 3);
	MUST(!ibv_dereg_mr(p->mr));
	EXPECT(free_huge_pages(), 2);
	munmap(p->mem, HUGE);
	MUST(!migr_cmd_track(p->b.ctx->cmd_fd, 0, 0, &resp));
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
	hugetlb(&p, MAP_PRIVATE);
	hugetlb(&p, MAP_SHARED);
	given_back(&p);
	unmapped(&p, HUGE_PAGES);
	unmapped(&p, SMALL);
	for (enum kind kind = HUGE_PAGES; kind <= SMALL; kind++) {
		forked(&p, kind);
		tracked_meanwhile(&p, kind);
	}
	unmapped_file(&p);
	punched(&p, 0);
	punched(&p, MFD_HUGETLB);
	unmapped_page(&p);
	of_a_file(&p);
	pair_close(&p);
	tracked_rounds(rig);
}
