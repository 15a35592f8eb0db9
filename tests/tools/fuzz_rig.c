// SPDX-License-Identifier: GPL-2.0
/*
 * What migr_fuzz attacks: see migr_fuzz.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../connect.h"
#include "migr_fuzz.h"

#define FIRST_PSN 0xfffff0 /* wraps soon */
#define GID_INDEX 1
#define ACCESS                                              \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | \
	 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

/* ---- live objects ---- */

void side_open(struct rig *rig, struct side *s)
{
	/* a limit that the driver looks at only when something is received */
	struct ibv_srq_init_attr srq = { .attr = { DEPTH, 2, 1 << 20 } };
	struct ibv_recv_wr recv = { .wr_id = 5 }, *bad;
	struct ibv_qp_init_attr init = {
		.cap = { DEPTH, DEPTH, 2, 2, 0 },
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};

	MUST(s->ctx = ibv_open_device(rig->dev));
	MUST(!ibv_query_gid(s->ctx, 1, GID_INDEX, &rig->gid));
	MUST(s->pd = ibv_alloc_pd(s->ctx));
	MUST(s->cq = ibv_create_cq(s->ctx, 4 * DEPTH * N_QPS, NULL, NULL, 0));
	/* objects of a type that is dumped earlier come earlier */
	MUST(s->srq = ibv_create_srq(s->pd, &srq));
	s->mem = mmap(NULL, 2 * MSG, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(s->mem != MAP_FAILED);
	MUST(s->mr = ibv_reg_mr(s->pd, s->mem, 2 * MSG,
				ACCESS | IBV_ACCESS_MW_BIND));
	init.send_cq = init.recv_cq = s->cq;
	for (int i = 0; i < N_QPS; i++)
		MUST(s->qp[i] = ibv_create_qp(s->pd, &init));
	for (int i = 0; i < 3; i++)
		MUST(!ibv_post_srq_recv(s->srq, &recv, &bad));
}

void side_close(struct side *s)
{
	for (int i = 0; i < N_QPS; i++)
		MUST(!ibv_destroy_qp(s->qp[i]));
	MUST(!ibv_destroy_srq(s->srq));
	MUST(!ibv_destroy_cq(s->cq));
	MUST(!ibv_dereg_mr(s->mr));
	MUST(!ibv_dealloc_pd(s->pd));
	MUST(!ibv_close_device(s->ctx));
}

void qp_reset(struct ibv_qp *qp)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RESET };

	MUST(!ibv_modify_qp(qp, &a, IBV_QP_STATE));
}

void qp_connect_as(const struct rig *rig, struct ibv_qp *qp, uint32_t peer,
		   uint32_t sq_psn, uint32_t rq_psn, int access,
		   uint8_t resources)
{
	struct ibv_qp_attr a = rc_attr(&rig->gid, GID_INDEX, peer);

	a.qp_access_flags = (unsigned int)access;
	a.rq_psn = rq_psn & 0xffffff;
	a.sq_psn = sq_psn & 0xffffff;
	a.max_dest_rd_atomic = resources;
	MUST(!rc_to_rtr(qp, &a) && !rc_to_rts(qp, &a));
}

void qp_connect(const struct rig *rig, struct ibv_qp *qp, uint32_t peer,
		uint32_t sq_psn, uint32_t rq_psn)
{
	qp_connect_as(rig, qp, peer, sq_psn, rq_psn, ACCESS, 4);
}

int qp_post_send(struct side *s, int i)
{
	struct ibv_sge sge = { (uintptr_t)s->mem, MSG, s->mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = 1, .sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND
	};
	struct ibv_send_wr *bad;

	return ibv_post_send(s->qp[i], &wr, &bad);
}

bool qp_polled(struct side *s)
{
	struct ibv_wc wc;

	return ibv_poll_cq(s->cq, 1, &wc) > 0;
}

int qp_post_read(struct side *s, int i, uint32_t rkey, const void *from)
{
	struct ibv_sge sge = { (uintptr_t)s->mem + MSG, MSG, s->mr->lkey };
	struct ibv_send_wr wr = { .wr_id = 2,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_RDMA_READ };
	struct ibv_send_wr *bad;

	wr.wr.rdma.remote_addr = (uintptr_t)from;
	wr.wr.rdma.rkey = rkey;
	return ibv_post_send(s->qp[i], &wr, &bad);
}

int qp_post_recv(struct side *s, int i)
{
	struct ibv_sge sge = { (uintptr_t)s->mem + MSG, MSG, s->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = 3, .sg_list = &sge, .num_sge = 1 };
	struct ibv_recv_wr *bad;

	return ibv_post_recv(s->qp[i], &wr, &bad);
}

void side_wait(struct side *s, int n)
{
	double end = fuzz_now() + 20;
	struct ibv_wc wc;

	while (n && fuzz_now() < end)
		if (ibv_poll_cq(s->cq, 1, &wc) > 0) {
			MUST(wc.status == IBV_WC_SUCCESS);
			n--;
		}
	MUST(!n);
}

/* ---- rig ---- */

int side_stop(const struct side *s)
{
	struct rxe_migr_status st;

	MUST(!migr_cmd_stop(s->ctx->cmd_fd, 0, 0, &st));
	return st.guard_fd;
}

void side_dump(const struct side *s)
{
	struct migr_error err;
	size_t length;
	void *image;

	MUST(!migr_cmd_dump(s->ctx->cmd_fd, &image, &length, &err));
	free(image);
}

void side_runs_on(const struct side *s)
{
	int guard = side_stop(s);

	side_dump(s);
	close(guard);
}

void rig_take(struct rig *rig, struct side *s)
{
	struct rxe_migr_status st;
	struct migr_error err;
	size_t length;
	int ret;

	ret = migr_cmd_stop(s->ctx->cmd_fd, 0, 0, &st);
	migr_status_text(&st, ret, &err);
	if (!ret)
		ret = migr_cmd_dump(s->ctx->cmd_fd, &rig->image, &length, &err);
	if (ret) {
		fprintf(stderr, "no image: %s\n", err.text);
		exit(2);
	}
	rig->mem = s->mem;
	side_close(s);
	close(st.guard_fd); /* nobody has run on: its peers would know */
	rig_use_image(rig, length);
}

void rig_use_image(struct rig *rig, size_t length)
{
	struct migr_error err;
	int n = 0;

	if (migr_image_parse(rig->image, length, &rig->img, &err)) {
		fprintf(stderr, "no image: %s\n", err.text);
		exit(2);
	}
	for (unsigned int i = 0; i < rig->img.count; i++) {
		const void *rec = rig->img.records[i];

		switch (rig->img.records[i]->type) {
		case RXE_MIGR_CQ:
			rig->cq = rec;
			break;
		case RXE_MIGR_SRQ:
			rig->srq = rec;
			break;
		case RXE_MIGR_MR:
			rig->mr = rec;
			break;
		case RXE_MIGR_QP:
			MUST(n < N_QPS);
			rig->qp[n++] = rec;
			break;
		}
	}
	MUST(rig->cq && rig->srq && rig->mr && n == N_QPS);
}

/*
 * The image has work in both directions: receives that are waiting, sends that
 * wait for a receive of the peer, a READ behind them, completions not polled.
 */
void rig_open(struct rig *rig, const char *device)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct side moved = {};

	for (; list && *list; list++)
		if (!strcmp(device, ibv_get_device_name(*list)))
			rig->dev = *list;
	if (!rig->dev) {
		fprintf(stderr, "no device %s\n", device);
		exit(2);
	}
	snprintf(rig->cdev, sizeof(rig->cdev), "/dev/infiniband/%s",
		 rig->dev->dev_name);

	side_open(rig, &moved);
	side_open(rig, &rig->peer);
	for (int i = 0; i < N_QPS; i++) {
		qp_connect(rig, moved.qp[i], rig->peer.qp[i]->qp_num, FIRST_PSN,
			   FIRST_PSN);
		qp_connect(rig, rig->peer.qp[i], moved.qp[i]->qp_num, FIRST_PSN,
			   FIRST_PSN);
		for (int k = 0; k < 3; k++)
			MUST(!qp_post_recv(&moved, i));
		MUST(!qp_post_recv(&rig->peer, i));
		MUST(!qp_post_send(&moved, i));
		MUST(!qp_post_send(&rig->peer, i));
	}
	side_wait(&rig->peer, 2 * N_QPS);
	MUST(!qp_post_send(&moved, 1));
	MUST(!qp_post_read(&moved, 1, rig->peer.mr->rkey, rig->peer.mem));
	rig_take(rig, &moved);
}

void rig_close(struct rig *rig)
{
	side_close(&rig->peer);
	migr_image_free(&rig->img);
	free(rig->image);
}

void rig_renew_peer(struct rig *rig, int i)
{
	const struct rxe_migr_rec_qp *rec = rig->qp[i];
	struct ibv_wc wc;

	qp_reset(rig->peer.qp[i]);
	while (ibv_poll_cq(rig->peer.cq, 1, &wc) > 0)
		;
	qp_connect(rig, rig->peer.qp[i], rec->qpn, rec->resp_psn,
		   rec->comp_psn);
	MUST(!qp_post_recv(&rig->peer, i));
	MUST(!qp_post_recv(&rig->peer, i));
}

long rig_counter(const struct rig *rig, const char *name)
{
	char path[128];
	long n = -1;
	FILE *f;

	snprintf(path, sizeof(path),
		 "/sys/class/infiniband/%s/ports/1/hw_counters/%s",
		 ibv_get_device_name(rig->dev), name);
	MUST(f = fopen(path, "r"));
	MUST(fscanf(f, "%ld", &n) == 1);
	fclose(f);
	return n;
}

void rig_wait_for(const struct rig *rig, const char *name, long n)
{
	double end = fuzz_now() + 30;

	while (rig_counter(rig, name) < n)
		MUST(fuzz_now() < end);
}

void rig_wait_more(const struct rig *rig, const char *name, int more)
{
	rig_wait_for(rig, name, rig_counter(rig, name) + more);
}

/* ---- copies ---- */

void copy_open(struct rig *rig, struct copy *c)
{
	struct migr_image none = rig->img;
	int ret;

	none.count = 0;
	MUST((c->fd = open(rig->cdev, O_RDWR | O_CLOEXEC)) >= 0);
	ret = migr_restore_context(c->fd, &none, &c->files, &c->err);
	MUST(!ret);
	migr_restore_init(&c->r, c->fd, &c->err);
}

static void copy_must(struct copy *c, int ret)
{
	if (!ret)
		return;
	fprintf(stderr, "cannot restore: %s\n", c->err.text);
	exit(2);
}

void copy_create(struct rig *rig, struct copy *c)
{
	for (unsigned int i = 0; i < rig->img.count; i++)
		if (rig->img.records[i]->type < RXE_MIGR_COMP_CHANNEL)
			copy_must(c, migr_create_object(&c->r,
							rig->img.records[i]));
	for (int i = 0; i < N_QPS; i++)
		copy_must(c, migr_connect_qp(&c->r, &rig->qp[i]->rec));
}

void copy_renew_qp(struct rig *rig, struct copy *c, int i)
{
	MUST(!raw_destroy_qp(c->fd, rig->qp[i]->rec.handle));
	copy_must(c, migr_create_object(&c->r, &rig->qp[i]->rec));
	copy_must(c, migr_connect_qp(&c->r, &rig->qp[i]->rec));
}

void copy_close(struct copy *c)
{
	migr_restore_release(&c->r);
	migr_files_close(&c->files);
	close(c->fd);
}

/* ---- raw commands ---- */

int raw_refill(int fd, uint16_t object, uint32_t handle)
{
	struct migr_ioctl cmd;

	migr_ioctl_init(&cmd, object, RXE_MIGR_METHOD_QP_REFILL);
	migr_ioctl_handle(&cmd, RXE_MIGR_ATTR_REFILL_HANDLE, handle);
	return migr_ioctl_run(fd, &cmd);
}

int raw_destroy_qp_events(int fd, uint32_t handle, uint32_t *events)
{
	const struct ib_uverbs_destroy_qp in = { .qp_handle = handle };
	struct ib_uverbs_destroy_qp_resp out;
	const struct migr_write cmd = {
		.command = IB_USER_VERBS_CMD_DESTROY_QP,
		.in = &in,
		.in_length = sizeof(in),
		.out = &out,
		.out_length = sizeof(out),
	};
	int ret = migr_write_run(fd, &cmd);

	if (!ret)
		*events = out.events_reported;
	return ret;
}

int raw_destroy_qp(int fd, uint32_t handle)
{
	uint32_t events;

	return raw_destroy_qp_events(fd, handle, &events);
}

int raw_write(int fd, uint32_t command, void *in, size_t in_length, void *out,
	      size_t out_length)
{
	struct ib_uverbs_cmd_hdr hdr = {
		.command = command,
		.in_words = (uint16_t)((sizeof(hdr) + in_length) / 4),
		.out_words = (uint16_t)(out_length / 4),
	};
	const uint64_t response = (uintptr_t)out;
	char cmd[256];
	size_t length = sizeof(hdr) + in_length;

	MUST(length <= sizeof(cmd));
	if (out)
		memcpy(in, &response, sizeof(response));
	memcpy(cmd, &hdr, sizeof(hdr));
	memcpy(cmd + sizeof(hdr), in, in_length);
	return write(fd, cmd, length) == (ssize_t)length ? 0 : -errno;
}

int raw_rereg_mr(int fd, uint32_t handle, uint32_t flags, uint32_t pd,
		 uint32_t access)
{
	const struct ib_uverbs_rereg_mr in = {
		.mr_handle = handle,
		.flags = flags,
		.pd_handle = pd,
		.access_flags = access,
	};
	struct ib_uverbs_rereg_mr_resp out;
	const struct migr_write cmd = {
		.command = IB_USER_VERBS_CMD_REREG_MR,
		.in = &in,
		.in_length = sizeof(in),
		.out = &out,
		.out_length = sizeof(out),
	};

	return migr_write_run(fd, &cmd);
}

int raw_dereg_mr(int fd, uint32_t handle)
{
	const struct ib_uverbs_dereg_mr in = { handle };
	const struct migr_write cmd = {
		.command = IB_USER_VERBS_CMD_DEREG_MR,
		.in = &in,
		.in_length = sizeof(in),
	};

	return migr_write_run(fd, &cmd);
}

int raw_nameless_ah(const struct rig *rig, const struct side *s,
		    uint32_t *handle)
{
	struct ib_uverbs_create_ah in = { .pd_handle = s->pd->handle,
					  .attr = { .is_global = 1,
						    .port_num = 1,
						    .grh.sgid_index =
							    GID_INDEX } };
	struct ib_uverbs_create_ah_resp out = {};
	const struct migr_write cmd = {
		.command = IB_USER_VERBS_CMD_CREATE_AH,
		.in = &in,
		.in_length = sizeof(in),
		.out = &out,
		.out_length = sizeof(out),
	};
	int ret;

	memcpy(in.attr.grh.dgid, rig->gid.raw, sizeof(in.attr.grh.dgid));
	ret = migr_write_run(s->ctx->cmd_fd, &cmd);
	*handle = out.ah_handle;
	return ret;
}

int raw_destroy_ah(int fd, uint32_t handle)
{
	const struct ib_uverbs_destroy_ah in = { .ah_handle = handle };
	const struct migr_write cmd = {
		.command = IB_USER_VERBS_CMD_DESTROY_AH,
		.in = &in,
		.in_length = sizeof(in),
	};

	return migr_write_run(fd, &cmd);
}
