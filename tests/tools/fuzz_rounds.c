// SPDX-License-Identifier: GPL-2.0
/*
 * What TRACK tells of rounds that follow each other, or do not; and the module, of contexts
 * that have ended.
 */
#define _GNU_SOURCE /* mremap() */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fuzz_dirty.h"
#include "migr_uverbs.h"

/* ---- the end of contexts ---------------------------------------------- */

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
		MUST(!commit_it(p.b.ctx->cmd_fd));
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

void tracked_rounds(struct rig *rig)
{
	EXPECT(one_life(rig, false) != one_life(rig, true), true);
	for (int commit = 0; commit < 2; commit++)
		untracked_life(rig, commit);
	for (enum kind kind = HUGE_PAGES; kind <= SMALL; kind++)
		abrupt_life(rig, kind);
	rounds_in_order(rig);
}
