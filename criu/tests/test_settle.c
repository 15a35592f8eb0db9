// SPDX-License-Identifier: GPL-2.0
/* The mappings in a dump, and its end: COMMIT when CRIU has killed the tree, and only then */
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#define migr_cmd_commit fake_commit
#include "../dump.c"
#undef migr_cmd_commit

#include "../../tests/check.h"

#define TASKS 3
#define RDEV 100

struct dump_task *dump_tasks;
struct dump_context *dump_contexts, *dump_foreign;
static int commits, releases, forgets;

int fake_commit(int fd, uint32_t flags, uint32_t timeout_ms,
		struct rxe_migr_status *st)
{
	(void)fd;
	(void)flags;
	(void)timeout_ms;
	(void)st;
	commits++;
	return 0;
}

void dump_release_all(void)
{
	releases++;
}

static int foreign_releases;

void dump_release_foreign(void)
{
	foreign_releases++;
}

void dump_forget_plugin(void)
{
	forgets++;
}

int dump_check_outside(void)
{
	return 0;
}

const struct dump_file *dump_find_file(int fd)
{
	(void)fd;
	return NULL;
}

int dump_refuse_shared(const struct rp_task *task, int number,
		       const struct dump_file *known)
{
	(void)task;
	(void)number;
	(void)known;
	return -1;
}

bool dump_owns_foreign_map(const struct rp_task *task, const struct rp_map *map)
{
	(void)task;
	(void)map;
	return false;
}

int dump_write_foreign(void)
{
	return 0;
}

unsigned int log_warnings; /* of log.c */

int criu_get_image_dir(void)
{
	return -1;
}

/* what plugin.c calls beside dump.c */
static int released_before = -1; /* the restore has begun */

int rp_restore_init(void)
{
	released_before = releases;
	return 0;
}

void rp_restore_fini(void)
{
}

int rp_restore_file(uint32_t id)
{
	(void)id;
	return RP_NOT_OURS;
}

int rp_restore_vma(uint64_t start, uint64_t offset, uint64_t *new_offset,
		   int *fd)
{
	(void)start;
	(void)offset;
	(void)new_offset;
	(void)fd;
	return RP_NOT_OURS;
}

void rp_track_begin(void)
{
}

int rp_track_note(pid_t pid)
{
	(void)pid;
	return RP_NOT_OURS;
}

int rp_track_round(dev_t rdev)
{
	(void)rdev;
	return RP_NOT_OURS;
}

int rp_dump_take(pid_t pid)
{
	(void)pid;
	return RP_NOT_OURS;
}

void rp_late_begin(void)
{
}

int rp_late_attach(pid_t pid)
{
	(void)pid;
	return RP_NOT_OURS;
}

bool rp_late_done(void)
{
	return true;
}

void rp_late_kill(void)
{
}

extern cr_plugin_desc_t CR_PLUGIN_DESC; /* of plugin.c */

/* each task has one context; the first `dying` are killed after the dump */
static void outcome(int dying, int wanted)
{
	struct dump_context contexts[TASKS] = {};
	struct rp_task tasks[TASKS] = {};
	struct dump_task task = {};

	for (int i = 0; i < TASKS; i++) {
		tasks[i].pid = fork();
		MUST(tasks[i].pid >= 0);
		if (!tasks[i].pid)
			for (;;)
				pause();
		contexts[i].task = tasks + i;
		contexts[i].next = i + 1 < TASKS ? contexts + i + 1 : NULL;
	}
	dump_contexts = contexts;
	dump_tasks = &task; /* there are some */
	commits = releases = foreign_releases = 0;
	owner = getpid();
	rp_dump_finish(false, false);
	CHECK(!commits && !releases && foreign_releases == 1);
	for (int i = 0; i < dying; i++)
		kill(tasks[i].pid, SIGKILL);
	settle();
	CHECK(commits == wanted && releases == 1);
	dump_contexts = NULL;
	dump_tasks = NULL;
	for (int i = 0; i < TASKS; i++) {
		kill(tasks[i].pid, SIGKILL);
		waitpid(tasks[i].pid, NULL, 0);
	}
}

/* nothing of one dump is left when something else begins, in the same process */
static void again(int stage)
{
	const bool is_dump = stage == CR_PLUGIN_STAGE__DUMP;
	struct dump_task task = {};

	dump_tasks = &task;
	written = true;
	rp_dump_finish(false, false);
	CHECK(outcome_due);
	releases = forgets = 0;
	released_before = -1;
	CHECK(!CR_PLUGIN_DESC.init(stage));
	CHECK(!written && !outcome_due && releases == 1);
	CHECK(forgets == is_dump);
	CHECK(released_before == (stage == CR_PLUGIN_STAGE__RESTORE ? 1 : -1));
	dump_tasks = NULL;
}

/* a connection cannot go on from images of tasks that go on themselves */
static void left_alone(void)
{
	struct rxe_migr_rec_qp qp = { .rec.type = RXE_MIGR_QP,
				      .qp_type = IBV_QPT_RC,
				      .state = IBV_QPS_RTS };
	const struct rxe_migr_rec *records[] = { &qp.rec };
	struct dump_context context = { .img = { .records = records,
						 .count = 1 } };
	struct dump_task task = {};

	dump_contexts = &context;
	dump_tasks = &task;
	log_warnings = 0;
	rp_dump_finish(false, false);
	rp_dump_finish(true, true);
	CHECK(!log_warnings);
	rp_dump_finish(false, true);
	CHECK(log_warnings == 1);
	qp.state = IBV_QPS_INIT;
	rp_dump_finish(false, true);
	CHECK(log_warnings == 1);
	outcome_due = false;
	dump_contexts = NULL;
	dump_tasks = NULL;
}

/* who maps a ring for itself alone has none: what the device writes is not there */
static void mapped_privately(void)
{
	const struct rxe_migr_ring ring = { .mmap_offset = 0x5000,
					    .mmap_size = 0x2000 };
	const struct rxe_migr_ring *all[] = { &ring };
	struct rp_map map = { 0x1000, 0x3000, 0x5000, PROT_READ, true, RDEV };
	struct dump_task task = {
		.scan = { .pid = 17, .maps = &map, .nr_maps = 1 }
	};
	struct dump_context context = { .task = &task.scan,
					.dev.rdev = RDEV,
					.rings = { all, 1 } };

	dump_tasks = &task;
	dump_contexts = &context;
	CHECK(!check_maps());
	map.shared = false;
	CHECK(check_maps() == -EOPNOTSUPP);
	map.shared = true;
	map.offset = 0x6000;
	CHECK(check_maps() == -EOPNOTSUPP);
	map.offset = 0x5000;
	map.end = 0x2000;
	CHECK(check_maps() == -EOPNOTSUPP);
	map.rdev = 0; /* not ours to judge */
	CHECK(!check_maps());
	dump_contexts = NULL;
	dump_tasks = NULL;
}

int main(void)
{
	mapped_privately();
	left_alone();
	outcome(TASKS, TASKS);
	outcome(0, 0);
	outcome(1, 0); /* it has come to its own end */
	again(CR_PLUGIN_STAGE__DUMP);
	again(CR_PLUGIN_STAGE__PRE_DUMP);
	again(CR_PLUGIN_STAGE__RESTORE);
	return check_result();
}
