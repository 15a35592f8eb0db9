// SPDX-License-Identifier: GPL-2.0
/* What STOP refuses, it names; and when that is gone, it stops. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "migr_fuzz.h"

/* STOP finds the one thing that cannot be moved; `type` is that object's */
static void refused(const struct side *s, uint32_t why, uint32_t type)
{
	struct rxe_migr_status st;

	if (!EXPECT(migr_cmd_stop(s->ctx->cmd_fd, 0, 0, &st), -EOPNOTSUPP))
		close(st.guard_fd);
	EXPECT((int)st.why, (int)why);
	EXPECT((int)st.type, (int)type);
}

static void stops(const struct side *s)
{
	struct rxe_migr_status st;

	if (!EXPECT(migr_cmd_stop(s->ctx->cmd_fd, 0, 0, &st), 0))
		close(st.guard_fd);
}

static void address_handle(const struct rig *rig, struct side *s)
{
	uint32_t handle;

	MUST(!raw_nameless_ah(rig, s, &handle));
	refused(s, RXE_MIGR_WHY_AH, RXE_MIGR_AH);
	MUST(!raw_destroy_ah(s->ctx->cmd_fd, handle));
	stops(s);
}

/* a child's copy is the child's: here the pages are those that were registered */
static void forked(const struct side *s)
{
	pid_t child = fork();

	MUST(child >= 0);
	if (!child)
		for (;;)
			pause();
	memset(s->mem, 1, 2 * MSG);
	stops(s);
	MUST(!kill(child, SIGKILL) && waitpid(child, NULL, 0) == child);
}

/* ATTACH could not pin what was registered, or would pin something else */
static void memory(const struct side *s)
{
	MUST(!mprotect(s->mem, MSG, PROT_READ));
	refused(s, RXE_MIGR_WHY_MEMORY, RXE_MIGR_MR);
	MUST(!mprotect(s->mem, MSG, PROT_READ | PROT_WRITE));
	stops(s);
	MUST(!madvise(s->mem + MSG, MSG, MADV_DONTNEED));
	refused(s, RXE_MIGR_WHY_MEMORY, RXE_MIGR_MR);
	MUST(!munmap(s->mem, MSG));
	refused(s, RXE_MIGR_WHY_MEMORY, RXE_MIGR_MR);
}

void attack_refusals(struct rig *rig)
{
	struct side s = {};

	side_open(rig, &s);
	stops(&s);
	address_handle(rig, &s);
	forked(&s);
	memory(&s);
	side_close(&s);
}
