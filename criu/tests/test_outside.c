// SPDX-License-Identifier: GPL-2.0
/*
 * Who has a file of the tree and is not in it. CRIU is a child, the file is ours:
 * so the process that may be outside is this one.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../tests/check.h"
#include "dump.h"

struct dump_task *dump_tasks;
struct dump_context *dump_contexts, *dump_foreign;

static int file, go[2], ready[2], end[2];
static uint32_t users; /* of the file, as the module would count them */

enum {
	MAPS = 2,
};

static struct dump_file files[2];

const struct dump_file *dump_find_file(int fd)
{
	for (size_t i = 0; i < 2; i++)
		if (files[i].context && !rp_compare_files(files[i].fd, fd))
			return &files[i];
	return NULL;
}

int migr_cmd_resolve(int fd, int other_fd, struct rxe_migr_resolve_resp *resp)
{
	(void)fd;
	(void)other_fd;
	resp->users = users;
	return 0;
}

static pid_t start_criu(void)
{
	pid_t pid = fork(), child;
	char c;
	int err;

	MUST(pid >= 0);
	if (pid)
		return pid;
	child = fork(); /* has the file, too */
	if (!child)
		for (;;)
			pause();
	MUST(read(go[0], &c, 1) == 1);
	err = dump_check_outside();
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	_exit(!err ? 0 : err == -EOPNOTSUPP ? 1 : 2);
}

static int result(pid_t criu)
{
	int status;

	MUST(write(go[1], "", 1) == 1);
	MUST(waitpid(criu, &status, 0) == criu && WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* a thread whose files are its own */
static void *keep(void *arg)
{
	char c;

	MUST(!unshare(CLONE_FILES));
	MUST(write(ready[1], "", 1) == 1);
	MUST(read(end[0], &c, 1) == 1);
	return arg;
}

int main(void)
{
	struct dump_task task = { .scan.pid = getpid() };
	struct rp_map maps[MAPS + 1] = { { .shared = true },
					 { .shared = true } };
	struct rp_task tree = { .pid = 17, .maps = maps, .nr_maps = MAPS + 1 };
	struct dump_context context = { .task = &tree, .number = 3 };
	struct dump_context second = { .task = &tree,
				       .number = 4,
				       .guard = -1 };
	struct stat st;
	pthread_t thread;
	pid_t criu;
	char c;

	file = open("/dev/zero", O_RDONLY);
	MUST(file >= 0 && !fstat(file, &st));
	MUST(!pipe(go) && !pipe(ready) && !pipe(end));
	context.fd = file;
	context.dev.rdev = st.st_rdev;
	for (size_t i = 0; i < MAPS + 1; i++)
		maps[i].rdev = st.st_rdev;
	files[0] = (struct dump_file){ .fd = file,
				       .context = &context,
				       .type = RXE_MIGR_CONTEXT };
	dump_foreign = &context;
	CHECK(result(start_criu()) == 1);
	dump_foreign = NULL;
	dump_contexts = &context;

	CHECK(result(start_criu()) == 1);
	/* that of the tree, its maps, a guard, CRIU's: so many there should be */
	context.nr_own = 1;
	context.guard = 5;
	users = 1 + MAPS + 1 + 1;
	CHECK(result(start_criu()) == 0); /* and nobody is looked for */
	context.table_shared = true;	  /* where they are counted only once */
	CHECK(result(start_criu()) == 1);
	context.table_shared = false;
	/* another one of the task and device, of which all rings are */
	second.dev = context.dev;
	second.fd = open("/dev/zero", O_RDONLY);
	files[1] = (struct dump_file){ .fd = second.fd,
				       .context = &second,
				       .type = RXE_MIGR_CONTEXT };
	context.next = &second;
	maps[MAPS].shared = true;
	second.nr_own = 3; /* 2 * 5: 3 maps, 1 + 1 and a guard, 3 + 1 */
	CHECK(result(start_criu()) == 0);
	second.nr_own++; /* fewer than we know of: who knows */
	CHECK(result(start_criu()) == 1);
	context.next = NULL;
	maps[MAPS].shared = false;
	files[1].context = NULL;
	close(second.fd);
	dump_foreign = &context;
	CHECK(result(start_criu()) == 1);
	dump_foreign = NULL;
	users++;
	CHECK(result(start_criu()) == 1);
	context.guard = -1;
	users -= 2;
	CHECK(result(start_criu()) == 0);
	users = 0;
	dump_tasks = &task;
	CHECK(result(start_criu()) == 0);
	dump_tasks = NULL;
	context.dev.rdev++;
	CHECK(result(start_criu()) == 0);
	context.dev.rdev--;

	criu = start_criu();
	close(file);
	CHECK(open("/dev/zero", O_RDONLY) == file); /* another one */
	CHECK(result(criu) == 0);

	close(file);
	file = open("/dev/zero", O_RDONLY);
	MUST(file == context.fd);
	criu = start_criu();
	MUST(!pthread_create(&thread, NULL, keep, NULL));
	MUST(read(ready[0], &c, 1) == 1);
	close(file);
	CHECK(result(criu) == 1);
	MUST(write(end[1], "", 1) == 1);
	pthread_join(thread, NULL);
	return check_result();
}
