// SPDX-License-Identifier: GPL-2.0
/*
 * Several processes: what one does with its context must neither touch the
 * objects of the others nor wait for them, and ends with the process.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "migr_fuzz.h"

#define MANY_FILES 200000

/* ---- objects of all kinds come and go while others are looked for ---- */

/* one of each, and all of them destroyed again */
static void all_kinds(struct rig *rig, struct ibv_context *ctx, char *mem)
{
	struct ibv_srq_init_attr srq_init = { .attr = { 4, 1, 0 } };
	struct ibv_qp_init_attr init = { .cap = { 4, 4, 1, 1, 0 } };
	struct ibv_ah_attr to = { .is_global = 1, .port_num = 1 };
	struct ibv_comp_channel *channel = ibv_create_comp_channel(ctx);
	struct ibv_pd *pd = ibv_alloc_pd(ctx), *other = ibv_alloc_pd(ctx);
	struct ibv_cq *cq = ibv_create_cq(ctx, 4, NULL, channel, 0);
	struct ibv_srq *srq = ibv_create_srq(pd, &srq_init);
	struct ibv_mr *mr = ibv_reg_mr(pd, mem, MSG, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_mw *mw = ibv_alloc_mw(pd, IBV_MW_TYPE_1);
	struct ibv_qp *rc, *ud;
	struct ibv_ah *ah;

	MUST(channel && pd && other && cq && srq && mr && mw);
	to.grh.dgid = rig->gid;
	to.grh.sgid_index = 1;
	MUST(ah = ibv_create_ah(pd, &to));
	init.send_cq = init.recv_cq = cq;
	init.qp_type = IBV_QPT_UD;
	MUST(ud = ibv_create_qp(pd, &init));
	init.qp_type = IBV_QPT_RC;
	init.srq = srq;
	MUST(rc = ibv_create_qp(pd, &init));

	MUST(!raw_rereg_mr(ctx->cmd_fd, mr->handle, IBV_REREG_MR_CHANGE_PD,
			   other->handle, 0));
	MUST(!raw_rereg_mr(ctx->cmd_fd, mr->handle, IBV_REREG_MR_CHANGE_PD,
			   pd->handle, 0));
	MUST(!ibv_dealloc_pd(other));

	MUST(!ibv_destroy_qp(rc) && !ibv_destroy_qp(ud));
	MUST(!ibv_destroy_ah(ah) && !ibv_dealloc_mw(mw) && !ibv_dereg_mr(mr));
	MUST(!ibv_destroy_srq(srq) && !ibv_destroy_cq(cq));
	MUST(!ibv_dealloc_pd(pd) && !ibv_destroy_comp_channel(channel));
}

static pid_t neighbour(struct rig *rig, bool keep_context)
{
	pid_t pid = fork();
	struct ibv_context *ctx = NULL;
	char *mem;

	MUST(pid >= 0);
	if (pid)
		return pid;
	MUST(mem = aligned_alloc(4096, MSG));
	for (;;) {
		if (!ctx)
			MUST(ctx = ibv_open_device(rig->dev));
		all_kinds(rig, ctx, mem);
		if (keep_context)
			continue;
		MUST(!ibv_close_device(ctx));
		ctx = NULL;
	}
}

static void walks(struct rig *rig, double seconds)
{
	double end = fuzz_now() + seconds;
	unsigned int stops = 0, dumps = 0;
	struct rxe_migr_dump_resp resp;
	struct rxe_migr_status st;
	static char buf[1 << 18];
	struct side s = {};
	pid_t pids[3];
	int status;

	fflush(stdout);
	for (size_t i = 0; i < 3; i++)
		pids[i] = neighbour(rig, i);
	side_open(rig, &s);
	while (!stops || fuzz_now() < end) {
		MUST(!migr_cmd_stop(s.ctx->cmd_fd, 0, 0, &st));
		for (int i = 0; i < 20; i++, dumps++)
			EXPECT(migr_cmd_dump_once(s.ctx->cmd_fd, buf,
						  sizeof(buf), &resp),
			       0);
		close(st.guard_fd);
		stops++;
	}
	for (size_t i = 0; i < 3; i++) {
		MUST(!kill(pids[i], SIGKILL));
		MUST(waitpid(pids[i], &status, 0) == pids[i]);
		EXPECT(WIFSIGNALED(status), 1); /* it did not give up before */
	}
	printf("%u times stopped, %u dumps\n", stops, dumps);
	side_close(&s);
}

/* ---- a guard that outlives the application ---- */

/* the mappings keep the file of the context, too */
static void unmap_rings(void)
{
	unsigned long from, to;
	FILE *maps = fopen("/proc/self/maps", "r");
	char line[512];

	MUST(maps);
	while (fgets(line, sizeof(line), maps))
		if (strstr(line, "/dev/infiniband/uverbs") &&
		    sscanf(line, "%lx-%lx", &from, &to) == 2)
			MUST(!munmap((void *)from, to - from));
	fclose(maps);
}

static bool gone(uint32_t qpn)
{
	char command[80];
	int status;

	snprintf(command, sizeof(command),
		 "s=$(rdma res show qp lqpn %u) || exit 2; [ -z \"$s\" ]", qpn);
	status = system(command);
	MUST(WIFEXITED(status) && WEXITSTATUS(status) < 2);
	return !WEXITSTATUS(status);
}

struct outlived {
	struct rig *rig;
	struct side peer;
	int to_child[2], to_parent[2];
};

/*
 * The application and its guard. There is work that was posted after STOP: if
 * the QP of the dead ran on, the peer would see what no image has.
 */
static void die_before_guard(struct outlived *o)
{
	struct rxe_migr_status st;
	struct side s = {};
	char go;

	side_open(o->rig, &s);
	MUST(write(o->to_parent[1], &s.qp[0]->qp_num, 4) == 4);
	MUST(read(o->to_child[0], &go, 1) == 1);
	qp_connect(o->rig, s.qp[0], o->peer.qp[0]->qp_num, 5, 5);
	MUST(!migr_cmd_stop(s.ctx->cmd_fd, 0, 0, &st));
	MUST(!qp_post_send(&s, 0));
	close(s.ctx->cmd_fd);
	close(s.ctx->async_fd);
	unmap_rings();
	close(st.guard_fd);
	_exit(0);
}

static void outlive_once(struct outlived *o)
{
	double end = fuzz_now() + 60;
	uint32_t qpn;
	int status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	MUST(pid >= 0);
	if (!pid)
		die_before_guard(o);
	MUST(read(o->to_parent[0], &qpn, 4) == 4);
	qp_reset(o->peer.qp[0]);
	qp_connect(o->rig, o->peer.qp[0], qpn, 5, 5);
	MUST(!qp_post_recv(&o->peer, 0));
	MUST(write(o->to_child[1], "", 1) == 1);
	MUST(waitpid(pid, &status, 0) == pid && !status);
	while (!gone(qpn))
		MUST(fuzz_now() < end);
	/* what was sent before the QP went has come by now */
	EXPECT(qp_polled(&o->peer), false);
}

static void open_files(rlim_t n)
{
	const struct rlimit limit = { n + 100, n + 100 };

	MUST(!setrlimit(RLIMIT_NOFILE, &limit));
	for (rlim_t i = 0; i < n; i++)
		MUST(dup(STDIN_FILENO) >= 0);
}

/*
 * The application that gets killed; dying takes it some time. First goes its
 * memory, then its files in the order of their numbers.
 */
static void application(struct outlived *o, rlim_t files)
{
	struct side s = {};
	uint32_t ids[2];
	char go;

	open_files(files);
	side_open(o->rig, &s);
	MUST(mmap(NULL, 128 << 20, PROT_READ | PROT_WRITE,
		  MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1,
		  0) != MAP_FAILED);
	ids[0] = s.qp[0]->qp_num;
	ids[1] = (uint32_t)s.ctx->cmd_fd;
	MUST(write(o->to_parent[1], ids, sizeof(ids)) == sizeof(ids));
	MUST(read(o->to_child[0], &go, 1) == 1);
	qp_connect(o->rig, s.qp[0], o->peer.qp[0]->qp_num, 5, 5);
	MUST(write(o->to_parent[1], "", 1) == 1);
	MUST(read(o->to_child[0], &go, 1) == 1);
	MUST(!qp_post_send(&s, 0));
	MUST(write(o->to_parent[1], "", 1) == 1);
	pause();
}

enum life {
	ALIVE,
	CLOSING,
	DEAD
};

/* the files that a process is closing are not its own any more */
static enum life life_of(pid_t pid)
{
	char path[64], line[128], state = 0;
	long files = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	MUST(f = fopen(path, "r"));
	while (fgets(line, sizeof(line), f)) {
		sscanf(line, "State: %c", &state);
		sscanf(line, "FDSize: %ld", &files);
	}
	fclose(f);
	if (state == 'Z')
		return DEAD;
	return files ? ALIVE : CLOSING;
}

/*
 * The guard goes when the application has been killed, but still has its file;
 * with `files`, when it has begun to close so many. Was it early enough?
 */
static bool kill_once(struct outlived *o, rlim_t files)
{
	double end = fuzz_now() + 60;
	struct rxe_migr_status st;
	bool in_time = !files;
	uint32_t ids[2];
	int fd, pidfd;
	pid_t pid;
	char go;

	fflush(stdout);
	pid = fork();
	MUST(pid >= 0);
	if (!pid)
		application(o, files);
	MUST(read(o->to_parent[0], ids, sizeof(ids)) == sizeof(ids));
	qp_reset(o->peer.qp[0]);
	qp_connect(o->rig, o->peer.qp[0], ids[0], 5, 5);
	MUST(!qp_post_recv(&o->peer, 0));
	MUST(write(o->to_child[1], "", 1) == 1);
	MUST(read(o->to_parent[0], &go, 1) == 1);
	MUST((pidfd = pidfd_open(pid, 0)) >= 0);
	MUST((fd = pidfd_getfd(pidfd, (int)ids[1], 0)) >= 0);
	MUST(!migr_cmd_stop(fd, 0, 0, &st));
	MUST(write(o->to_child[1], "", 1) == 1);
	MUST(read(o->to_parent[0], &go, 1) == 1);
	close(fd);
	close(pidfd);
	MUST(!kill(pid, SIGKILL));
	while (files && life_of(pid) == ALIVE)
		MUST(fuzz_now() < end);
	close(st.guard_fd);
	if (files)
		in_time = life_of(pid) == CLOSING;
	MUST(waitpid(pid, NULL, 0) == pid);
	while (!gone(ids[0]))
		MUST(fuzz_now() < end);
	EXPECT(qp_polled(&o->peer), false);
	return in_time;
}

static void outlive(struct rig *rig)
{
	struct outlived o = { .rig = rig };
	unsigned int in_time = 0;

	MUST(!pipe(o.to_child) && !pipe(o.to_parent));
	side_open(rig, &o.peer);
	for (int i = 0; i < 10 && !fuzz_failures; i++)
		outlive_once(&o);
	for (int i = 0; i < 10 && !fuzz_failures; i++)
		kill_once(&o, 0);
	for (int i = 0; i < 10 && !fuzz_failures; i++)
		in_time += kill_once(&o, MANY_FILES);
	printf("%u times killed while files were closed\n", in_time);
	EXPECT(in_time > 0, true);
	side_close(&o.peer);
	for (int i = 0; i < 2; i++) {
		close(o.to_child[i]);
		close(o.to_parent[i]);
	}
}

/* ---- memory that nobody brings ---- */

struct slow {
	struct copy c;
	int ret;
};

static void *attach(void *arg)
{
	struct rxe_migr_status st;
	struct slow *s = arg;

	s->ret = migr_cmd_attach(s->c.fd, &st);
	return NULL;
}

/* a whole life of another context, as soon as the pipe says so */
static pid_t other_life(struct rig *rig, int start)
{
	struct rxe_migr_status st;
	struct side s = {};
	pid_t pid = fork();
	char go;

	MUST(pid >= 0);
	if (pid)
		return pid;
	MUST(read(start, &go, 1) == 1);
	side_open(rig, &s);
	MUST(!migr_cmd_stop(s.ctx->cmd_fd, 0, 0, &st));
	close(st.guard_fd);
	side_close(&s);
	_exit(0);
}

static bool ended(pid_t pid, double seconds)
{
	double end = fuzz_now() + seconds;
	int status;

	while (fuzz_now() < end) {
		if (waitpid(pid, &status, WNOHANG) == pid) {
			EXPECT(status, 0);
			return true;
		}
		usleep(10000);
	}
	return false;
}

/* one context waits for memory in ATTACH; another one has its life */
static void slow_memory(struct rig *rig)
{
	struct slow s = { .ret = 1 };
	int start[2], faults;
	bool in_time;
	pthread_t t;
	pid_t other;

	MUST(!pipe(start));
	fflush(stdout);
	other = other_life(rig, start[0]);
	copy_open(rig, &s.c);
	copy_create(rig, &s.c);
	faults = faults_hold(rig->mem, 2 * MSG);
	MUST(!pthread_create(&t, NULL, attach, &s));
	faults_wait(faults);
	MUST(write(start[1], "", 1) == 1);
	in_time = ended(other, 60);
	EXPECT(in_time, true);
	EXPECT(s.ret, 1); /* it still waits */
	EXPECT(raw_dereg_mr(s.c.fd, rig->mr->rec.handle), -EBUSY);

	faults_serve(faults, rig->mem, 2 * MSG);
	MUST(!pthread_join(t, NULL));
	EXPECT(s.ret, 0);
	EXPECT(raw_dereg_mr(s.c.fd, rig->mr->rec.handle), 0);
	if (!in_time)
		EXPECT(ended(other, 60), true);
	close(start[0]);
	close(start[1]);
	copy_close(&s.c);
}

void attack_lives(struct rig *rig, double seconds)
{
	outlive(rig);
	slow_memory(rig);
	walks(rig, seconds);
}
