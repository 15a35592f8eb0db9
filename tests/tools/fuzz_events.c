// SPDX-License-Identifier: GPL-2.0
/*
 * The application counts the events that it acknowledged, the kernel those
 * that it handed out, and a destroy waits until both agree.
 */
#include <stdio.h>
#include <stdlib.h>
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
}
