// SPDX-License-Identifier: GPL-2.0
/* What STOP refuses, it names; and when that is gone, it stops. */
#include <errno.h>
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

void attack_refusals(struct rig *rig)
{
	struct side s = {};

	side_open(rig, &s);
	stops(&s);
	address_handle(rig, &s);
	side_close(&s);
}
