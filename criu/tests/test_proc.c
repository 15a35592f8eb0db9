// SPDX-License-Identifier: GPL-2.0
/* What /proc says, on this very process */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../tests/check.h"
#include "rdma_plugin.h"

static void kinds(void)
{
	struct stat st;

	CHECK(rp_link_kind("anon_inode:[infinibandevent]") == RP_EVENT);
	CHECK(rp_link_kind("anon_inode:[eventpoll]") == RP_OTHER);
	CHECK(rp_link_kind("/memfd:rdma_plugin_memory (deleted)") ==
	      RP_STANDIN);
	CHECK(rp_link_kind("/memfd:libmigrrdma:suspended (deleted)") ==
	      RP_SUSPENDED);
	CHECK(rp_link_kind("/memfd:libmigrrdma:suspended") == RP_OTHER);
	CHECK(rp_link_kind("/dev/infiniband/uverbs0") == RP_OTHER);
	CHECK(!stat("/dev/null", &st));
	CHECK(rp_char_kind(st.st_rdev) == RP_OTHER);
}

static void maps(void)
{
	struct rp_map m;

	MUST(rp_parse_map(
		"7f01000-7f03000 rw-s 00005000 00:06 481      /dev/infiniband/uverbs0\n",
		&m));
	CHECK(m.start == 0x7f01000 && m.end == 0x7f03000);
	CHECK(m.offset == 0x5000 && m.prot == (PROT_READ | PROT_WRITE));
	CHECK(m.shared);
	MUST(rp_parse_map("7f01000-7f03000 r--p 00005000 00:06 481 /lib/x\n",
			  &m));
	CHECK(!m.shared && m.prot == PROT_READ);
	CHECK(!rp_parse_map("7f01000-7f03000 rw-s 00000000 00:01 0 x\n", &m));
	CHECK(!rp_parse_map("garbage\n", &m));
	CHECK(!rp_parse_map("", &m));
}

static void scan(void)
{
	int fd = memfd_create(RP_STANDIN_NAME, 0);
	int high = fcntl(fd, F_DUPFD, 100);
	struct rp_task task;

	CHECK(!rp_compare_files(fd, high));
	CHECK(rp_compare_files(fd, 0) * rp_compare_files(0, fd) < 0);
	MUST(!rp_task_scan(getpid(), &task));
	MUST(task.max_fd >= high && task.nr_fds == 2 && !task.nr_maps);
	CHECK(task.fds[0].kind == RP_STANDIN);
	rp_task_free(&task);
	for (int i = 0; i < 40; i++) /* the arrays grow */
		CHECK(dup(fd) >= 0);
	MUST(!rp_task_scan(getpid(), &task));
	CHECK(task.nr_fds == 42);
	rp_task_free(&task);
	CHECK(rp_task_vpid(getpid()) > 0);
}

/* who runs opens and closes others meanwhile */
static void running(void)
{
	pid_t pid = fork();
	struct rp_task task;

	MUST(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			close(dup(0));
	}
	for (int i = 0; i < 500; i++) {
		MUST(!rp_task_scan(pid, &task));
		MUST(task.nr_fds == 42);
		rp_task_free(&task);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static bool says_suspended(pid_t pid)
{
	struct rp_task task;
	bool suspended;

	MUST(!rp_task_scan(pid, &task));
	suspended = task.suspended;
	rp_task_free(&task);
	return suspended;
}

static int make_sign(const char *text)
{
	int fd = memfd_create(RP_SUSPENDED_NAME, MFD_CLOEXEC);

	MUST(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	return fd;
}

/* the sign is none of the task's RDMA files, and of one process only */
static void suspended(void)
{
	static const char *const wrong[][2] = {
		{ "", "" },    { "", "\n\n" }, { "", "\n1" }, { "0", "\n" },
		{ "1", "\n" }, { "-", "\n" },  { " ", "\n" },
	};
	struct rp_task task;
	char text[32];
	size_t nr_fds;
	pid_t pid;
	int fd;

	MUST(!rp_task_scan(getpid(), &task));
	CHECK(!task.suspended);
	nr_fds = task.nr_fds;
	rp_task_free(&task);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		snprintf(text, sizeof(text), "%s%d%s", wrong[i][0], getpid(),
			 wrong[i][1]);
		fd = make_sign(text);
		CHECK(!says_suspended(getpid()), "%s", text);
		close(fd);
	}
	snprintf(text, sizeof(text), "%d\n", getpid());
	fd = make_sign(text);
	MUST(!rp_task_scan(getpid(), &task));
	CHECK(task.suspended && task.nr_fds == nr_fds);
	rp_task_free(&task);
	pid = fork(); /* inherits it */
	MUST(pid >= 0);
	if (!pid)
		for (;;)
			pause();
	CHECK(!says_suspended(pid) && says_suspended(getpid()));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	close(fd);
	CHECK(!says_suspended(getpid()));
}

static void pins(void)
{
	const struct rlimit limit = { 8192, 16384 };
	struct rp_pins p;

	MUST(!setrlimit(RLIMIT_MEMLOCK, &limit));
	MUST(!rp_task_pins(getpid(), &p));
	CHECK(p.limit == 8192 && !p.pinned && rp_pins_fit(&p));
	p = (struct rp_pins){ .pinned = 8192, .limit = 8192 };
	CHECK(rp_pins_fit(&p));
	p.limit = 8191; /* of which no page may be a part */
	CHECK(!rp_pins_fit(&p));
	p.unlimited = true;
	CHECK(rp_pins_fit(&p));
	CHECK(rp_task_pins(1 << 22, &p)); /* no pid is larger */
	CHECK(rp_task_parent(getpid()) == getppid());
	/* to make another one a chroot does not allow */
	CHECK(rp_task_same_userns(getpid()) && rp_task_same_userns(getppid()));
	CHECK(!rp_task_same_userns(1 << 22));
}

static void dying(void)
{
	pid_t pid = fork();

	if (!pid)
		for (;;)
			pause();
	CHECK(!rp_task_dying(pid) && !rp_task_dying(getpid()));
	kill(pid, SIGKILL);
	CHECK(rp_task_dying(pid)); /* pending, exiting or a zombie */
	waitpid(pid, NULL, 0);
	CHECK(rp_task_dying(pid)); /* gone */

	/* it does not look so because of what it calls itself */
	MUST(!prctl(PR_SET_NAME, "a) Z\nb"));
	CHECK(!rp_task_dying(getpid()));
	MUST(!prctl(PR_SET_NAME, "a\nb"));
	CHECK(!rp_task_dying(getpid()));
}

static void *go_on(void *unused)
{
	for (;;)
		pause();
	return unused;
}

static bool first_has_ended(pid_t pid)
{
	char path[64], text[2] = "";
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/statm", pid, pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	MUST(fd >= 0 && read(fd, text, 2) == 2);
	close(fd);
	return !memcmp(text, "0 ", 2);
}

static void has_memory(void)
{
	pid_t pid = fork();
	pthread_t thread;

	if (!pid) {
		MUST(!pthread_create(&thread, NULL, go_on, NULL));
		pthread_exit(NULL);
	}
	CHECK(rp_task_has_memory(getpid()));
	while (!first_has_ended(pid))
		usleep(1000);
	CHECK(rp_task_has_memory(pid)); /* the other thread's */
	kill(pid, SIGKILL);
	waitid(P_PID, (id_t)pid, NULL, WEXITED | WNOWAIT);
	CHECK(!rp_task_has_memory(pid)); /* a zombie */
	waitpid(pid, NULL, 0);
	CHECK(!rp_task_has_memory(pid)); /* gone */
}

int main(void)
{
	kinds();
	maps();
	scan();
	running();
	suspended();
	pins();
	dying();
	has_memory();
	return check_result();
}
