// SPDX-License-Identifier: GPL-2.0
/*
 * The application counts the events that it acknowledged, the kernel those
 * that it handed out, and a destroy waits until both agree. And none comes twice.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "migr_fuzz.h"

#define EVENTS 3
#define ROOM (1 << 18)

static void get_event(struct side *s)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_SQD,
		.en_sqd_async_notify = 1,
	};
	struct ibv_async_event event;

	MUST(!ibv_modify_qp(s->qp[0], &attr,
			    IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY));
	MUST(!ibv_get_async_event(s->ctx, &event));
	MUST(event.event_type == IBV_EVENT_SQ_DRAINED);
	attr.qp_state = IBV_QPS_RTS;
	MUST(!ibv_modify_qp(s->qp[0], &attr, IBV_QP_STATE));
}

/* the source of the move: an image, and then nothing */
static void leave(struct rig *rig, void *image, size_t *length)
{
	struct rxe_migr_dump_resp resp;
	struct rxe_migr_status st;
	struct side s = {};

	side_open(rig, &s);
	qp_connect(rig, s.qp[0], s.qp[1]->qp_num, 5, 5);
	qp_connect(rig, s.qp[1], s.qp[0]->qp_num, 5, 5);
	for (int i = 0; i < EVENTS; i++)
		get_event(&s);
	MUST(!migr_cmd_stop(s.ctx->cmd_fd, 0, 0, &st));
	MUST(!migr_cmd_dump_once(s.ctx->cmd_fd, image, ROOM, &resp));
	*length = resp.needed;
	_exit(0);
}

/* an event that nobody reads */
static void leave_event(struct side *s)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_SQD,
		.en_sqd_async_notify = 1,
	};

	double end = fuzz_now() + 20;

	MUST(!ibv_modify_qp(s->qp[0], &attr,
			    IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY));
	attr.qp_state = IBV_QPS_RTS;
	while (ibv_modify_qp(s->qp[0], &attr,
			     IBV_QP_STATE)) /* not drained yet */
		MUST(fuzz_now() < end);
}

static bool has_event(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 200);
}

/* QP_LAST_WQE_REACHED comes once, also if the QP is stopped, and if it moves */
static void last_wqe(struct rig *rig)
{
	struct ibv_qp_attr error = { .qp_state = IBV_QPS_ERR };
	struct rig moved = { .dev = rig->dev, .gid = rig->gid };
	struct ibv_qp_init_attr init = { .cap = { DEPTH, 0, 1, 0, 0 },
					 .qp_type = IBV_QPT_RC };
	struct ibv_async_event event;
	struct rxe_migr_status st;
	struct side s = {};
	struct copy c;

	memcpy(moved.cdev, rig->cdev, sizeof(moved.cdev));
	side_open(rig, &s);
	/* the last one: copies are made in this order */
	MUST(!ibv_destroy_qp(s.qp[1]));
	init.send_cq = init.recv_cq = s.cq;
	init.srq = s.srq;
	MUST(s.qp[1] = ibv_create_qp(s.pd, &init));
	qp_connect(rig, s.qp[1], s.qp[0]->qp_num, 5, 5);
	MUST(!ibv_modify_qp(s.qp[1], &error, IBV_QP_STATE));
	MUST(!ibv_get_async_event(s.ctx, &event));
	EXPECT((int)event.event_type, IBV_EVENT_QP_LAST_WQE_REACHED);
	ibv_ack_async_event(&event);
	EXPECT(migr_cmd_stop(s.ctx->cmd_fd, 0, 0, &st), 0);
	close(st.guard_fd);
	EXPECT(has_event(s.ctx->async_fd), false);

	rig_take(&moved, &s);
	EXPECT(moved.qp[1]->last_wqe, 1);
	copy_open(&moved, &c);
	copy_create(&moved, &c);
	EXPECT(load_good(&moved, c.fd), 0);
	EXPECT(refill_cq(c.fd, moved.cq->rec.handle), 0);
	EXPECT(refill_srq(c.fd, moved.srq->rec.handle), 0);
	for (int i = 0; i < N_QPS; i++)
		EXPECT(refill_qp(c.fd, moved.qp[i]->rec.handle), 0);
	EXPECT(migr_cmd_attach(c.fd, &st), 0);
	EXPECT(migr_cmd_resume(c.fd, &st), 0);
	EXPECT(has_event(c.files.async_fd), false);
	copy_close(&c);
	migr_image_free(&moved.img);
	free(moved.image);
}

/* what nobody has read comes once, with RESUME, and not for the question alone */
static void unread(struct rig *rig)
{
	struct rig moved = { .dev = rig->dev, .gid = rig->gid };
	long sent = rig_counter(rig, "migr_resume_sent");
	struct ib_uverbs_async_event_desc event;
	struct rxe_migr_status st;
	struct side s = {};
	uint32_t events = 0;
	struct copy c;

	memcpy(moved.cdev, rig->cdev, sizeof(moved.cdev));
	side_open(rig, &s);
	for (int i = 0; i < N_QPS; i++)
		qp_connect(rig, s.qp[i], s.qp[!i]->qp_num, 5, 5);
	leave_event(&s);
	rig_take(&moved, &s);

	copy_open(&moved, &c);
	copy_create(&moved, &c);
	EXPECT(load_good(&moved, c.fd), 0);
	EXPECT(refill_cq(c.fd, moved.cq->rec.handle), 0);
	EXPECT(refill_srq(c.fd, moved.srq->rec.handle), 0);
	for (int i = 0; i < N_QPS; i++)
		EXPECT(refill_qp(c.fd, moved.qp[i]->rec.handle), 0);
	EXPECT(migr_cmd_resume_check(c.fd, &st), -EINVAL);
	EXPECT(migr_cmd_attach(c.fd, &st), 0);
	for (int i = 0; i < 2; i++)
		EXPECT(migr_cmd_resume_check(c.fd, &st), 0);
	EXPECT(has_event(c.files.async_fd), false);
	EXPECT((int)(rig_counter(rig, "migr_resume_sent") - sent), 0);
	EXPECT(migr_cmd_resume(c.fd, &st), 0);
	EXPECT(migr_cmd_resume_check(c.fd, &st), -EINVAL);
	if (EXPECT(has_event(c.files.async_fd), true)) {
		MUST(read(c.files.async_fd, &event, sizeof(event)) ==
		     sizeof(event));
		EXPECT((int)event.event_type, IBV_EVENT_SQ_DRAINED);
	}
	EXPECT(has_event(c.files.async_fd), false);
	MUST(!raw_destroy_qp_events(c.fd, moved.qp[0]->rec.handle, &events));
	EXPECT((int)events, 1);
	copy_close(&c);
	migr_image_free(&moved.img);
	free(moved.image);
}

void attack_events(struct rig *rig)
{
	struct rig moved = { .dev = rig->dev, .gid = rig->gid };
	struct copy c;
	size_t *length;
	int status;
	pid_t pid;

	length = mmap(NULL, ROOM + 4096, PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	MUST(length != MAP_FAILED);
	moved.image = (char *)length + 4096;
	snprintf(moved.cdev, sizeof(moved.cdev), "%s", rig->cdev);
	fflush(stdout);
	pid = fork();
	MUST(pid >= 0);
	if (!pid)
		leave(rig, moved.image, length);
	MUST(waitpid(pid, &status, 0) == pid && !status);
	rig_use_image(&moved, *length);

	copy_open(&moved, &c);
	copy_create(&moved, &c);
	for (int i = 0; i < N_QPS; i++)
		EXPECT(refill_qp(c.fd, moved.qp[i]->rec.handle), 0);
	for (int i = 0; i < N_QPS; i++) {
		uint32_t events = 0;

		MUST(!raw_destroy_qp_events(c.fd, moved.qp[i]->rec.handle,
					    &events));
		EXPECT((int)events, (int)moved.qp[i]->events_reported);
	}
	EXPECT((int)(moved.qp[0]->events_reported +
		     moved.qp[1]->events_reported),
	       EVENTS);
	copy_close(&c);
	migr_image_free(&moved.img);
	MUST(!munmap(length, ROOM + 4096));
	last_wqe(rig);
	unread(rig);
}
