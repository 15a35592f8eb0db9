// SPDX-License-Identifier: GPL-2.0
/*
 * CRIU plug-in for processes with RDMA objects: the hooks. They do nothing for
 * processes without such objects.
 */
#include <criu/criu-plugin.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rdma_plugin.h"

static int stage = -1;

/*
 * CRIU's options; the first member of struct cr_options is what becomes of the
 * tasks after a dump. CRIU exports the variable but installs no header for it.
 */
extern struct {
	int final_state;
} opts __attribute__((weak));

enum {
	TASK_ALIVE = 1,
	TASK_DEAD = 2,
	TASK_STOPPED = 3
};

/*
 * Will the tasks live on after a good dump? "No" is safe when in doubt: the QPs
 * then run on when the tasks turn out to live, just a little later.
 */
static bool tasks_live(void)
{
	return &opts && (opts.final_state == TASK_ALIVE ||
			 opts.final_state == TASK_STOPPED);
}

static int rdma_init(int now)
{
	stage = now;
	/* its tasks may be what is restored here, and have their numbers still */
	rp_dump_settle();
	rp_track_begin();
	if (stage == CR_PLUGIN_STAGE__RESTORE) {
		rp_late_begin();
		return rp_restore_init();
	}
	if (rp_image_new_dump())
		return -EPERM;
	if (stage == CR_PLUGIN_STAGE__DUMP)
		rp_dump_begin();
	return 0;
}

static void rdma_exit(int now, int ret)
{
	if (now == CR_PLUGIN_STAGE__DUMP)
		rp_dump_finish(ret, tasks_live());
	if (now != CR_PLUGIN_STAGE__RESTORE)
		return;
	if (!ret && !rp_late_done())
		rp_err("a task with RDMA objects was not resumed");
	rp_restore_fini();
}

CR_PLUGIN_REGISTER(RP_NAME, rdma_init, rdma_exit)

/* the descriptor is the one name that CRIU looks for */
extern cr_plugin_desc_t CR_PLUGIN_DESC __attribute__((visibility("default")));

static int to_criu(int ret)
{
	if (ret == RP_NOT_OURS)
		return -ENOTSUP;
	return ret < 0 ? -EPERM : ret;
}

static int rdma_pause(int pid)
{
	if (stage != CR_PLUGIN_STAGE__PRE_DUMP)
		return -ENOTSUP;
	return to_criu(rp_track_note(pid));
}
CR_PLUGIN_REGISTER_HOOK(CR_PLUGIN_HOOK__PAUSE_DEVICES, rdma_pause)

static int rdma_checkpoint(int pid)
{
	return to_criu(rp_dump_take(pid));
}
CR_PLUGIN_REGISTER_HOOK(CR_PLUGIN_HOOK__CHECKPOINT_DEVICES, rdma_checkpoint)

static int rdma_handle_vma(int fd, const struct stat *st)
{
	(void)fd;
	if (S_ISCHR(st->st_mode) && stage == CR_PLUGIN_STAGE__PRE_DUMP)
		return to_criu(rp_track_round(st->st_rdev));
	return S_ISCHR(st->st_mode) && rp_dump_knows(st->st_rdev) ? 0
								  : -ENOTSUP;
}
CR_PLUGIN_REGISTER_HOOK(CR_PLUGIN_HOOK__HANDLE_DEVICE_VMA, rdma_handle_vma)

static int rdma_dump_file(int lfd, int id)
{
	return to_criu(rp_dump_file(lfd, id));
}
CR_PLUGIN_REGISTER_HOOK(CR_PLUGIN_HOOK__DUMP_EXT_FILE, rdma_dump_file)

static int rdma_restore_file(int id)
{
	return to_criu(rp_restore_file(id));
}
CR_PLUGIN_REGISTER_HOOK(CR_PLUGIN_HOOK__RESTORE_EXT_FILE, rdma_restore_file)

static int rdma_update_vma(const char *path, const uint64_t addr,
			   const uint64_t old_pgoff, uint64_t *new_pgoff,
			   int *fd)
{
	(void)path;
	return to_criu(rp_restore_vma(addr, old_pgoff, new_pgoff, fd));
}
CR_PLUGIN_REGISTER_HOOK(CR_PLUGIN_HOOK__UPDATE_VMA_MAP, rdma_update_vma)

static int rdma_late(int pid)
{
	int err = rp_late_attach(pid);

	if (err && err != RP_NOT_OURS)
		rp_late_kill();
	return to_criu(err);
}
CR_PLUGIN_REGISTER_HOOK(CR_PLUGIN_HOOK__RESUME_DEVICES_LATE, rdma_late)
