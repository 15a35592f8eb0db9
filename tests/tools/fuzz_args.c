// SPDX-License-Identifier: GPL-2.0
/*
 * Commands on a live context with arguments that make no sense.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rdma/rdma_user_rxe.h>

#include "migr_fuzz.h"

#define KERNEL_ADDRESS 0xffff888000000000ULL

static const uint16_t methods[] = {
	RXE_MIGR_METHOD_STOP,	    RXE_MIGR_METHOD_COMMIT,
	RXE_MIGR_METHOD_DUMP,	    RXE_MIGR_METHOD_RESOLVE,
	RXE_MIGR_METHOD_ATTACH,	    RXE_MIGR_METHOD_RESUME,
	RXE_MIGR_METHOD_RESUME + 1,
};

/* what the core's parser has to catch, for every method */
static void shapes(int fd)
{
	static char big[65536];
	struct rxe_migr_status st;
	int ret;

	for (size_t m = 0; m < sizeof(methods) / sizeof(*methods); m++) {
		for (size_t in = 0; in <= 40; in++) {
			if (in == 16 || in == 8)
				continue; /* a right size, of something */
			ret = migr_device_run(fd, methods[m], big, in, &st,
					      sizeof(st));
			EXPECT(ret < 0, 1);
			ret = migr_device_run(fd, methods[m], big, in, NULL, 0);
			EXPECT(ret < 0, 1);
		}
		memset(big, 0xff, sizeof(big));
		EXPECT(migr_device_run(fd, methods[m], big, 65535, big, 65535) <
			       0,
		       1);
		memset(big, 0, sizeof(big));
		EXPECT(migr_device_run(fd, methods[m], (void *)16, 16, &st,
				       sizeof(st)) < 0,
		       1);
		EXPECT(migr_device_run(fd, methods[m], (void *)KERNEL_ADDRESS,
				       16, &st, sizeof(st)) < 0,
		       1);
		EXPECT(migr_device_run(fd, methods[m], big, 16, NULL, 0) < 0,
		       1);
	}
	EXPECT(migr_device_run(fd, RXE_MIGR_METHOD_STOP, NULL, 0, NULL, 0),
	       -EINVAL);
	EXPECT(migr_device_run(fd, RXE_MIGR_METHOD_RESUME, NULL, 0, (void *)16,
			       sizeof(st)),
	       -EFAULT, -EINVAL);
}

static int stop(int fd, struct rxe_migr_stop in, void *out)
{
	return migr_device_run(fd, RXE_MIGR_METHOD_STOP, &in, sizeof(in), out,
			       sizeof(struct rxe_migr_status));
}

static void bad_stops(int fd, int other)
{
	struct rxe_migr_status st;
	void *readonly =
		mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int null = open("/dev/null", O_RDWR);

	EXPECT(stop(fd, (struct rxe_migr_stop){ .fd = -1 }, &st), -EBADF);
	EXPECT(stop(fd, (struct rxe_migr_stop){ .fd = 1 << 30 }, &st), -EBADF);
	EXPECT(stop(fd, (struct rxe_migr_stop){ .fd = null }, &st), -EBADF);
	EXPECT(stop(fd, (struct rxe_migr_stop){ .fd = other }, &st), -EBADF);
	EXPECT(stop(fd, (struct rxe_migr_stop){ .fd = fd, .flags = 2 }, &st),
	       -EINVAL);
	EXPECT(stop(fd, (struct rxe_migr_stop){ .fd = fd, .flags = ~0U }, &st),
	       -EINVAL);
	EXPECT(stop(fd, (struct rxe_migr_stop){ .fd = fd, .pid = -1 }, &st),
	       -ESRCH);
	/* the answer cannot be written: nothing may stay stopped */
	for (int i = 0; i < 3; i++) {
		struct rxe_migr_stop in = { .fd = fd, .flags = i == 2 };

		EXPECT(stop(fd, in, (void *)16), -EFAULT);
		EXPECT(stop(fd, in, readonly), -EFAULT);
		EXPECT(stop(fd, in, (void *)KERNEL_ADDRESS), -EFAULT);
	}
	EXPECT(migr_cmd_stop(null, 0, 0, &st), -EOPNOTSUPP);
	munmap(readonly, 4096);
	close(null);
}

static int dump(int fd, uint64_t addr, uint64_t length, void *out)
{
	const struct rxe_migr_buf in = { addr, length };

	return migr_device_run(fd, RXE_MIGR_METHOD_DUMP, &in, sizeof(in), out,
			       sizeof(struct rxe_migr_dump_resp));
}

static void dumps(int fd)
{
	static char buf[1 << 18];
	struct rxe_migr_dump_resp resp;

	EXPECT(dump(fd, 0, 0, &resp), -ENOSPC);
	EXPECT(dump(fd, (uintptr_t)buf, resp.needed - 1, &resp), -ENOSPC);
	EXPECT(dump(fd, 0, ~0ULL, &resp), -EFAULT);
	EXPECT(dump(fd, 16, 1 << 20, &resp), -EFAULT);
	EXPECT(dump(fd, KERNEL_ADDRESS, 1 << 20, &resp), -EFAULT);
	EXPECT(dump(fd, ~0ULL, ~0ULL, &resp), -EFAULT);
	EXPECT(dump(fd, (uintptr_t)buf, sizeof(buf), (void *)16), -EFAULT);
	EXPECT(dump(fd, (uintptr_t)buf, ~0ULL, &resp), 0);
	EXPECT(dump(fd, (uintptr_t)buf, sizeof(buf), &resp), 0);
}

static int resolve(int fd, int what, int own)
{
	const struct rxe_migr_resolve in = { what, own };
	struct rxe_migr_resolve_resp out;

	return migr_device_run(fd, RXE_MIGR_METHOD_RESOLVE, &in, sizeof(in),
			       &out, sizeof(out));
}

static void resolves(struct ibv_context *ctx, struct ibv_context *other,
		     int guard)
{
	int fd = ctx->cmd_fd, pipes[2], dir = open("/", O_RDONLY | O_PATH);

	MUST(!pipe(pipes));
	EXPECT(resolve(fd, -1, fd), -EBADF);
	EXPECT(resolve(fd, 1 << 30, fd), -EBADF);
	EXPECT(resolve(fd, fd, -1), -EBADF);
	EXPECT(resolve(fd, fd, ctx->async_fd), -EBADF);
	EXPECT(resolve(fd, fd, other->cmd_fd), -EBADF);
	EXPECT(resolve(fd, pipes[0], fd), -ENOENT);
	EXPECT(resolve(fd, dir, fd), -ENOENT, -EBADF);
	EXPECT(resolve(fd, other->cmd_fd, fd), -ENOENT);
	EXPECT(resolve(fd, other->async_fd, fd), -ENOENT);
	EXPECT(resolve(fd, guard, fd), -ENOENT);
	EXPECT(resolve(fd, ctx->async_fd, fd), 0);
	close(pipes[0]);
	close(pipes[1]);
	close(dir);
}

/* in no order, and twice */
static void order(struct rig *rig, struct side *s)
{
	int fd = s->ctx->cmd_fd;
	struct rxe_migr_dump_resp resp;
	struct rxe_migr_status st, st2;

	EXPECT(commit_it(fd), -EINVAL);
	EXPECT(migr_cmd_commit(fd, RXE_MIGR_COMMIT_CHECK_ONLY, 0, &st),
	       -EINVAL);
	EXPECT(dump(fd, 0, 0, &resp), -EINVAL);
	EXPECT(migr_cmd_attach(fd, &st), -EINVAL);
	EXPECT(migr_cmd_resume(fd, &st), -EINVAL);
	EXPECT(refill_qp(fd, s->qp[0]->handle), -EBUSY, -EINVAL);
	EXPECT(refill_qp(fd, 0xffffffff), -ENOENT, -EINVAL);
	EXPECT(refill_qp(fd, s->cq->handle), -ENOENT, -EINVAL);
	EXPECT(migr_cmd_stop(fd, RXE_MIGR_STOP_CHECK_ONLY, 0, &st), 0);
	EXPECT(st.guard_fd, -1);
	EXPECT(migr_cmd_stop(fd, 0, 0, &st), 0);
	EXPECT(migr_cmd_stop(fd, 0, 0, &st2), -EALREADY);
	EXPECT(migr_cmd_stop(fd, RXE_MIGR_STOP_CHECK_ONLY, 0, &st2), -EALREADY);
	dumps(fd);
	resolves(s->ctx, rig->peer.ctx, st.guard_fd);
	EXPECT(migr_cmd_resume(fd, &st2), -EINVAL);
	close(st.guard_fd);
	EXPECT(dump(fd, 0, 0, &resp), -EINVAL);

	/* committed: what is closed does not go on, but can be stopped again */
	EXPECT(migr_cmd_stop(fd, 0, 0, &st), 0);
	EXPECT(migr_cmd_commit(fd, 4, 0, &st2), -EINVAL);
	EXPECT(migr_cmd_commit(fd, RXE_MIGR_COMMIT_CHECK_ONLY, 5000, &st2), 0);
	EXPECT(st2.why, RXE_MIGR_WHY_NONE);
	EXPECT(commit_it(fd), 0);
	EXPECT(commit_it(fd), 0);
	close(st.guard_fd);
	EXPECT(migr_cmd_stop(fd, 0, 100, &st), 0);
	close(st.guard_fd);
}

/* what comes after STOP is in the image, or there is none */
static void newcomers(struct rig *rig)
{
	struct ibv_srq_init_attr srq_init = { .attr = { 4, 1, 0 } };
	struct ibv_ah_attr to = { .is_global = 1, .port_num = 1 };
	struct ibv_comp_channel *channel;
	struct rxe_migr_dump_resp resp, more;
	struct rxe_migr_status st;
	static char buf[1 << 18];
	struct side s = {};
	struct ibv_srq *srq;
	struct ibv_ah *ah;
	struct ibv_mw *mw;
	struct ibv_cq *cq;
	struct ibv_pd *pd;
	uint32_t nameless;
	int fd;

	side_open(rig, &s);
	fd = s.ctx->cmd_fd;
	to.grh.dgid = rig->gid;
	to.grh.sgid_index = 1;
	EXPECT(migr_cmd_stop(fd, 0, 0, &st), 0);
	EXPECT(dump(fd, (uintptr_t)buf, sizeof(buf), &resp), 0);

	MUST(srq = ibv_create_srq(s.pd, &srq_init));
	EXPECT(dump(fd, (uintptr_t)buf, sizeof(buf), &more), 0);
	EXPECT((int)more.count, (int)resp.count + 1);
	MUST(!ibv_destroy_srq(srq));
	MUST(ah = ibv_create_ah(s.pd, &to));
	EXPECT(dump(fd, (uintptr_t)buf, sizeof(buf), &more), 0);
	EXPECT((int)more.count, (int)resp.count + 1);
	MUST(!ibv_destroy_ah(ah));
	MUST(!raw_nameless_ah(rig, &s, &nameless));
	EXPECT(dump(fd, (uintptr_t)buf, sizeof(buf), &more), -EAGAIN);
	MUST(!raw_destroy_ah(fd, nameless));
	MUST(mw = ibv_alloc_mw(s.pd, IBV_MW_TYPE_1));
	EXPECT(dump(fd, (uintptr_t)buf, sizeof(buf), &more), 0);
	EXPECT((int)more.count, (int)resp.count + 1);
	MUST(!ibv_dealloc_mw(mw));
	MUST(channel = ibv_create_comp_channel(s.ctx));
	MUST(cq = ibv_create_cq(s.ctx, 4, NULL, channel, 0));
	EXPECT(dump(fd, (uintptr_t)buf, sizeof(buf), &more), 0);
	EXPECT((int)more.count, (int)resp.count + 2);
	MUST(!close(channel->fd)); /* then it is none */
	EXPECT(dump(fd, (uintptr_t)buf, sizeof(buf), &more), 0);
	EXPECT((int)more.count, (int)resp.count + 1);
	MUST(!ibv_destroy_cq(cq));
	free(channel);

	MUST(pd = ibv_alloc_pd(s.ctx));
	EXPECT(dump(fd, (uintptr_t)buf, sizeof(buf), &more), 0);
	EXPECT((int)more.count, (int)resp.count + 1);
	MUST(!ibv_dealloc_pd(pd));
	EXPECT(dump(fd, (uintptr_t)buf, sizeof(buf), &more), 0);
	EXPECT((int)more.count, (int)resp.count);
	close(st.guard_fd);
	side_close(&s);
}

/* a command whose driver's answer has a length, but no place */
static int write_unanswered(int fd, uint32_t command, const void *in,
			    size_t in_length, void *out, size_t out_length,
			    size_t driver_length)
{
	struct migr_ioctl cmd;

	migr_ioctl_init(&cmd, UVERBS_OBJECT_DEVICE, UVERBS_METHOD_INVOKE_WRITE);
	migr_ioctl_const(&cmd, UVERBS_ATTR_WRITE_CMD, command);
	migr_ioctl_in(&cmd, UVERBS_ATTR_CORE_IN, in, in_length);
	migr_ioctl_out(&cmd, UVERBS_ATTR_CORE_OUT, out, out_length);
	migr_ioctl_out(&cmd, UVERBS_ATTR_UHW_OUT, NULL, driver_length);
	return migr_ioctl_run(fd, &cmd);
}

static void refused(int fd, uint32_t type, uint32_t handle)
{
	struct rxe_migr_status st;

	if (!EXPECT(migr_cmd_stop(fd, 0, 0, &st), -EOPNOTSUPP))
		close(st.guard_fd);
	EXPECT((int)st.type, (int)type);
	EXPECT((int)st.handle, (int)handle);
}

/* rings of which nobody was told where they can be mapped */
static void unmapped(struct rig *rig)
{
	const struct ib_uverbs_create_cq new_cq = { .cqe = 4,
						    .comp_channel = -1 };
	struct ib_uverbs_create_cq_resp cq = {};
	struct ib_uverbs_create_qp new_qp = { .max_send_wr = 4,
					      .max_recv_wr = 4,
					      .max_send_sge = 1,
					      .max_recv_sge = 1,
					      .qp_type = IBV_QPT_RC };
	struct ib_uverbs_create_qp_resp qp = {};
	struct ib_uverbs_destroy_cq old_cq = {};
	struct ib_uverbs_destroy_cq_resp gone;
	struct ib_uverbs_resize_cq resize = {};
	struct ib_uverbs_resize_cq_resp resized;
	struct rxe_migr_dump_resp resp;
	struct rxe_migr_status st;
	static char buf[1 << 18];
	struct side s = {};
	int fd;

	side_open(rig, &s);
	fd = s.ctx->cmd_fd;
	EXPECT(write_unanswered(fd, IB_USER_VERBS_CMD_CREATE_CQ, &new_cq,
				sizeof(new_cq), &cq, sizeof(cq),
				sizeof(struct rxe_create_cq_resp)),
	       0);
	refused(fd, RXE_MIGR_CQ, cq.cq_handle);
	old_cq.cq_handle = cq.cq_handle;
	EXPECT(raw_write(fd, IB_USER_VERBS_CMD_DESTROY_CQ, &old_cq,
			 sizeof(old_cq), &gone, sizeof(gone)),
	       0);

	new_qp.pd_handle = s.pd->handle;
	new_qp.send_cq_handle = new_qp.recv_cq_handle = s.cq->handle;
	EXPECT(write_unanswered(fd, IB_USER_VERBS_CMD_CREATE_QP, &new_qp,
				sizeof(new_qp), &qp, sizeof(qp),
				sizeof(struct rxe_create_qp_resp)),
	       0);
	refused(fd, RXE_MIGR_QP, qp.qp_handle);
	EXPECT(raw_destroy_qp(fd, qp.qp_handle), 0);

	EXPECT(migr_cmd_stop(fd, 0, 0, &st), 0);
	resize.cq_handle = s.cq->handle;
	resize.cqe = 2 * s.cq->cqe;
	EXPECT(write_unanswered(fd, IB_USER_VERBS_CMD_RESIZE_CQ, &resize,
				sizeof(resize), &resized, sizeof(resized),
				sizeof(struct rxe_resize_cq_resp)),
	       0);
	EXPECT(dump(fd, (uintptr_t)buf, sizeof(buf), &resp), -EAGAIN);
	close(st.guard_fd);
	side_close(&s);
}

/* a context that is closed before its guard */
static void orphan_guard(struct rig *rig)
{
	struct rxe_migr_status st;
	struct side s = {};

	side_open(rig, &s);
	EXPECT(migr_cmd_stop(s.ctx->cmd_fd, 0, 0, &st), 0);
	side_close(&s);
	close(st.guard_fd);

	side_open(rig, &s);
	EXPECT(migr_cmd_stop(s.ctx->cmd_fd, 0, 0, &st), 0);
	close(s.ctx->cmd_fd);
	close(s.ctx->async_fd);
	close(st.guard_fd);
	munmap(s.mem, 2 * MSG);
}

static void mappings(struct rig *rig)
{
	static const off_t offsets[] = { 0, 4096, 1LL << 43, 1LL << 44,
					 0x7ffffffffffff000LL };
	struct side a = {};
	void *p;

	side_open(rig, &a);
	for (size_t i = 0; i < sizeof(offsets) / sizeof(*offsets); i++) {
		p = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_SHARED,
			 a.ctx->cmd_fd, offsets[i]);
		EXPECT(p == MAP_FAILED, 1);
	}
	side_close(&a);
}

/* a peer that never answers: it has another one */
static void silent_peer(struct rig *rig)
{
	struct rxe_migr_status st;
	struct side s = {};

	side_open(rig, &s);
	qp_connect(rig, s.qp[0], s.qp[1]->qp_num, 1, 1);
	qp_connect(rig, s.qp[1], 0x123456, 1, 1); /* nobody has this */
	EXPECT(migr_cmd_stop(s.ctx->cmd_fd, 0, 300, &st), -ETIMEDOUT);
	EXPECT(st.why, RXE_MIGR_WHY_SILENT);
	side_close(&s);
}

/* the image of a stopped context can be restored */
static void dumps_well(int fd)
{
	struct migr_image img;
	struct migr_error err;
	size_t length;
	void *image;

	if (EXPECT(migr_cmd_dump(fd, &image, &length, &err), 0))
		return;
	if (EXPECT(migr_image_parse(image, length, &img, &err), 0))
		fprintf(stderr, "%s\n", err.text);
	else
		migr_image_free(&img);
	free(image);
}

/* the kernel takes back what it has dumped */
static void moves_well(struct rig *rig, struct side *s)
{
	struct rig moved = { .dev = rig->dev, .gid = rig->gid };
	struct copy c;

	memcpy(moved.cdev, rig->cdev, sizeof(moved.cdev));
	rig_take(&moved, s);
	copy_open(&moved, &c);
	copy_create(&moved, &c);
	EXPECT(refill_cq(c.fd, moved.cq->rec.handle), 0);
	for (int i = 0; i < N_QPS; i++)
		EXPECT(refill_qp(c.fd, moved.qp[i]->rec.handle), 0);
	copy_close(&c);
	migr_image_free(&moved.img);
	free(moved.image);
}

/* a peer that STOP has not asked is not for an image to name */
static void another_peer(struct rig *rig)
{
	struct ibv_qp_attr attr = { .dest_qp_num = 0x123456 };
	struct rxe_migr_status st;
	struct side s = {};
	size_t length;
	void *image;
	int fd;

	side_open(rig, &s);
	fd = s.ctx->cmd_fd;
	qp_connect(rig, s.qp[0], s.qp[1]->qp_num, 5, 5);
	qp_connect(rig, s.qp[1], s.qp[0]->qp_num, 5, 5);
	EXPECT(migr_cmd_stop(fd, 0, 0, &st), 0);
	dumps_well(fd);
	MUST(!ibv_modify_qp(s.qp[0], &attr, IBV_QP_DEST_QPN));
	EXPECT(migr_cmd_dump(fd, &image, &length, NULL), -EAGAIN);
	attr.dest_qp_num = s.qp[1]->qp_num;
	MUST(!ibv_modify_qp(s.qp[0], &attr, IBV_QP_DEST_QPN));
	close(st.guard_fd);
	EXPECT(migr_cmd_stop(fd, 0, 0, &st), 0);
	dumps_well(fd);
	close(st.guard_fd);
	side_close(&s);
}

/* work that is flushed before the requester has seen it */
static void flushed(struct rig *rig)
{
	struct ibv_qp_attr error = { .qp_state = IBV_QPS_ERR };
	double end = fuzz_now() + 20;
	struct rxe_migr_status st;
	struct side s = {};
	size_t length;
	void *image;
	int fd;

	side_open(rig, &s);
	fd = s.ctx->cmd_fd;
	qp_connect(rig, s.qp[0], s.qp[1]->qp_num, 5, 5);
	qp_connect(rig, s.qp[1], s.qp[0]->qp_num, 5, 5);
	/* a QP that has no peer any more has no resources either */
	for (int i = 0; i < N_QPS; i++)
		MUST(!qp_post_read(&s, i, s.mr->rkey, s.mem));
	side_wait(&s, N_QPS);
	EXPECT(migr_cmd_stop(fd, 0, 0, &st), 0);
	for (int i = 0; i < 6; i++)
		MUST(!qp_post_send(&s, i % 2));
	qp_reset(s.qp[0]);
	dumps_well(fd);
	/* nobody has asked this peer */
	qp_connect(rig, s.qp[0], s.qp[1]->qp_num, 5, 5);
	EXPECT(migr_cmd_dump(fd, &image, &length, NULL), -EAGAIN);
	qp_reset(s.qp[0]);
	MUST(!ibv_modify_qp(s.qp[1], &error, IBV_QP_STATE));
	dumps_well(fd);
	close(st.guard_fd);
	while (!qp_polled(&s))
		MUST(fuzz_now() < end);
	moves_well(rig, &s);
}

/* connected while Stopped: nobody knows what the peer understands */
static void late_peer(struct rig *rig)
{
	struct rxe_migr_status st;
	struct side s = {};
	long before;

	side_open(rig, &s);
	EXPECT(migr_cmd_stop(s.ctx->cmd_fd, 0, 0, &st), 0);
	before = rig_counter(rig, "migr_nak_stopped_sent");
	qp_connect(rig, s.qp[0], 0x123456, 1, 1);
	EXPECT(commit_it(s.ctx->cmd_fd), 0);
	usleep(50000); /* the kernel counts anew only after some time */
	EXPECT((int)(rig_counter(rig, "migr_nak_stopped_sent") - before), 0);
	close(st.guard_fd);
	side_close(&s);
}

static void paused_timeout(unsigned int seconds)
{
	FILE *f = fopen("/sys/module/rdma_rxe/parameters/migr_paused_timeout",
			"w");

	MUST(f);
	MUST(fprintf(f, "%u\n", seconds) > 0);
	MUST(!fclose(f));
}

static void await_error(struct ibv_qp *qp)
{
	struct ibv_qp_attr a = {};
	struct ibv_qp_init_attr init;
	double end = fuzz_now() + 60;

	while (a.qp_state != IBV_QPS_ERR && fuzz_now() < end)
		MUST(!ibv_query_qp(qp, &a, IBV_QP_STATE, &init));
	EXPECT((int)a.qp_state, IBV_QPS_ERR);
}

static void await_status(struct side *s, uint32_t qpn,
			 enum ibv_wc_status status)
{
	double end = fuzz_now() + 20;
	struct ibv_wc wc;

	while (ibv_poll_cq(s->cq, 1, &wc) <= 0)
		MUST(fuzz_now() < end);
	EXPECT((int)wc.qp_num, (int)qpn);
	EXPECT((int)wc.status, (int)status);
}

/* a peer that stays Stopped for too long costs a QP that waits for it */
static void abandoned(struct rig *rig, bool outstanding)
{
	struct side away = {}, s = {};
	struct ibv_async_event event;
	double end = fuzz_now() + 20;
	struct rxe_migr_status st;
	struct pollfd events;
	long before;

	side_open(rig, &away);
	side_open(rig, &s);
	qp_connect(rig, s.qp[0], away.qp[0]->qp_num, 5, 5);
	qp_connect(rig, away.qp[0], s.qp[0]->qp_num, 5, 5);
	if (outstanding) {
		before = rig_counter(rig, "rcvd_rnr_err");
		MUST(!qp_post_send(&s, 0)); /* there is no receive for it */
		while (rig_counter(rig, "rcvd_rnr_err") == before)
			MUST(fuzz_now() < end);
	} else {
		MUST(!qp_post_recv(&s, 0));
	}
	before = rig_counter(rig, "migr_qp_paused");
	EXPECT(migr_cmd_stop(away.ctx->cmd_fd, 0, 0, &st), 0);
	while (rig_counter(rig, "migr_qp_paused") == before)
		MUST(fuzz_now() < end);
	paused_timeout(1);
	await_error(s.qp[0]);
	paused_timeout(600);
	events = (struct pollfd){ s.ctx->async_fd, POLLIN, 0 };
	if (!fuzz_failures && outstanding) {
		await_status(&s, s.qp[0]->qp_num, IBV_WC_RETRY_EXC_ERR);
	} else if (!fuzz_failures) {
		await_status(&s, s.qp[0]->qp_num, IBV_WC_WR_FLUSH_ERR);
		MUST(poll(&events, 1, 20000) == 1);
		MUST(!ibv_get_async_event(s.ctx, &event));
		EXPECT((int)event.event_type, IBV_EVENT_QP_FATAL);
		ibv_ack_async_event(&event);
	}
	close(st.guard_fd);
	side_close(&away);
	side_close(&s);
}

void attack_arguments(struct rig *rig)
{
	struct side s = {};

	side_open(rig, &s);
	qp_connect(rig, s.qp[0], s.qp[1]->qp_num, 5, 5);
	qp_connect(rig, s.qp[1], s.qp[0]->qp_num, 5, 5);
	shapes(s.ctx->cmd_fd);
	bad_stops(s.ctx->cmd_fd, rig->peer.ctx->cmd_fd);
	order(rig, &s);
	side_close(&s);
	newcomers(rig);
	another_peer(rig);
	flushed(rig);
	orphan_guard(rig);
	mappings(rig);
	silent_peer(rig);
	late_peer(rig);
	abandoned(rig, true);
	abandoned(rig, false);
	unmapped(rig);
}
