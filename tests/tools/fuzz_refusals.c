// SPDX-License-Identifier: GPL-2.0
/*
 * What STOP refuses, it names; and when that is gone, it stops. What is odd, and no
 * harm, it does not refuse, and it fits into the image.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../connect.h"
#include "migr_fuzz.h"

/*
 * STOP finds the one thing that cannot be moved; `type` is that object's, `pid` who
 * will attach, or 0
 */
static void refused_in(const struct side *s, pid_t pid, uint32_t why,
		       uint32_t type)
{
	struct rxe_migr_status st;

	if (!EXPECT(migr_cmd_stop_task(s->ctx->cmd_fd, pid, &st), -EOPNOTSUPP))
		close(st.guard_fd);
	EXPECT((int)st.why, (int)why);
	EXPECT((int)st.type, (int)type);
}

static void refused(const struct side *s, uint32_t why, uint32_t type)
{
	refused_in(s, 0, why, type);
}

static void stops_in(const struct side *s, pid_t pid)
{
	struct rxe_migr_status st;

	if (!EXPECT(migr_cmd_stop_task(s->ctx->cmd_fd, pid, &st), 0))
		close(st.guard_fd);
}

static void stops(const struct side *s)
{
	stops_in(s, 0);
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

/* A child registers `mem`, and if it `lives` on, waits. Its handle for the MR */
static uint32_t child_registers(const struct side *s, char *mem, bool lives,
				pid_t *child)
{
	struct ibv_mr *mr;
	uint32_t handle;
	int done[2];

	MUST(!pipe(done));
	*child = fork();
	MUST(*child >= 0);
	if (!*child) {
		MUST(mr = ibv_reg_mr(s->pd, mem, MSG, IBV_ACCESS_LOCAL_WRITE));
		MUST(write(done[1], &mr->handle, 4) == 4);
		while (lives)
			pause();
		_exit(0);
	}
	MUST(read(done[0], &handle, 4) == 4);
	MUST(!close(done[0]) && !close(done[1]));
	if (!lives)
		MUST(waitpid(*child, NULL, 0) == *child);
	return handle;
}

/* at the same address there is other memory here, or the same */
static void registered_elsewhere(const struct side *s)
{
	char *shared = mmap(NULL, MSG, PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint32_t handle;
	pid_t child;

	MUST(shared != MAP_FAILED);
	handle = child_registers(s, s->mem, true, &child);
	stops(s);
	refused_in(s, getpid(), RXE_MIGR_WHY_MEMORY, RXE_MIGR_MR);
	MUST(!raw_dereg_mr(s->ctx->cmd_fd, handle));
	MUST(!kill(child, SIGKILL) && waitpid(child, NULL, 0) == child);

	handle = child_registers(s, shared, false, &child);
	refused(s, RXE_MIGR_WHY_MEMORY, RXE_MIGR_MR);
	stops_in(s, getpid());
	MUST(!raw_dereg_mr(s->ctx->cmd_fd, handle));
	MUST(!munmap(shared, MSG));
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

struct stopper {
	int fd, ret;
	struct rxe_migr_status st;
};

static void *stop(void *arg)
{
	struct stopper *s = arg;

	s->ret = migr_cmd_stop(s->fd, 0, 20000, &s->st);
	return NULL;
}

/* while STOP asks a peer, its context gets an image to be restored from */
static void loaded(struct rig *rig)
{
	long probes = rig_counter(rig, "migr_probe_sent");
	double end = fuzz_now() + 10;
	struct side s = {}, peer = {};
	struct stopper stopper;
	pthread_t thread;

	side_open(rig, &s);
	side_open(rig, &peer);
	qp_connect(rig, s.qp[0], peer.qp[0]->qp_num, 5, 5);
	qp_connect(rig, peer.qp[0], 0x123456, 5, 5); /* so it does not answer */
	stopper.fd = s.ctx->cmd_fd;
	MUST(!pthread_create(&thread, NULL, stop, &stopper));
	while (rig_counter(rig, "migr_probe_sent") == probes)
		MUST(fuzz_now() < end);
	EXPECT(load_good(rig, s.ctx->cmd_fd), 0);
	qp_reset(peer.qp[0]);
	qp_connect(rig, peer.qp[0], s.qp[0]->qp_num, 5, 5);
	MUST(!pthread_join(thread, NULL));
	EXPECT(stopper.ret, -EOPNOTSUPP);
	EXPECT((int)stopper.st.type, RXE_MIGR_CONTEXT);
	if (!stopper.ret)
		close(stopper.st.guard_fd);
	side_close(&s);
	side_close(&peer);
}

/* more retries, and a longer timer, than there are bits for */
static void too_patient(struct rig *rig)
{
	struct side s = {}, peer = {};
	struct rig own = *rig;
	struct ibv_qp_attr a;

	side_open(rig, &s);
	side_open(rig, &peer);
	qp_connect(rig, peer.qp[0], s.qp[0]->qp_num, 5, 5);
	a = rc_attr(&rig->gid, 1, peer.qp[0]->qp_num);
	a.rq_psn = a.sq_psn = 5;
	a.min_rnr_timer = 0xec;
	a.retry_cnt = 8;
	a.rnr_retry = 255;
	MUST(!rc_to_rtr(s.qp[0], &a) && !rc_to_rts(s.qp[0], &a));
	rig_take(&own, &s);
	EXPECT((int)own.qp[0]->min_rnr_timer, 0x0c);
	EXPECT((int)own.qp[0]->retry_cnt, 7);
	EXPECT((int)own.qp[0]->rnr_retry, 7);
	side_close(&peer);
	migr_image_free(&own.img);
	free(own.image);
}

void attack_refusals(struct rig *rig)
{
	struct side s = {};

	side_open(rig, &s);
	stops(&s);
	address_handle(rig, &s);
	forked(&s);
	registered_elsewhere(&s);
	memory(&s);
	side_close(&s);
	loaded(rig);
	too_patient(rig);
}
