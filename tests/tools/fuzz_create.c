// SPDX-License-Identifier: GPL-2.0
/*
 * Creation with wanted identities, ATTACH, REFILL and RESUME: identities that
 * cannot be, that are taken, wrong order, and callers that may not.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rdma/rdma_user_rxe.h>

#include "migr_fuzz.h"

#define FREE_QPN 0x1a0 /* nobody gets that far */
#define FREE_KEY 0x1a007
#define OFFSET 0x100000000ULL

/* what a record can say, and a create command */
struct want {
	uint32_t index;
	uint64_t offset[2];
	uint32_t qp_type;
	bool no_driver_out, bad_driver_out;
};

/*
 * ---- creation by hand: migr_create_object() says what a record of a checked
 * image says; these say what no such record could, and keep the kernel's word.
 * The make_ functions use the image as it has been loaded.
 * ----
 */

static int make_qp(struct rig *rig, int fd, uint32_t record, struct want w)
{
	const struct rxe_migr_rec_qp *qp = rig->qp[0];
	const struct ib_uverbs_create_qp in = {
		.pd_handle = qp->pd,
		.send_cq_handle = qp->send_cq,
		.recv_cq_handle = qp->recv_cq,
		.max_send_wr = 4,
		.max_recv_wr = 4,
		.max_send_sge = 1,
		.max_recv_sge = 1,
		.qp_type = (uint8_t)w.qp_type,
	};
	const struct rxe_migr_restore restore = { .handle = record };
	struct ib_uverbs_create_qp_resp out = {};
	struct rxe_create_qp_resp rings = {};
	const struct migr_write cmd = {
		.command = IB_USER_VERBS_CMD_CREATE_QP,
		.in = &in,
		.in_length = sizeof(in),
		.out = &out,
		.out_length = sizeof(out),
		.driver_out = w.no_driver_out	 ? NULL
			      : w.bad_driver_out ? (void *)16
						 : &rings,
		.driver_out_length = sizeof(rings),
		.restore = &restore,
	};
	int ret = migr_write_run(fd, &cmd);

	if (!ret) {
		EXPECT((int)out.qpn, (int)w.index);
		EXPECT(raw_destroy_qp(fd, out.qp_handle), 0);
	}
	return ret;
}

static int create_qp(struct rig *rig, int fd, struct want w)
{
	const struct rxe_migr_rec_qp *good = rig->qp[0];
	struct rxe_migr_rec_qp *rec = malloc(good->rec.length);
	int ret;

	MUST(rec);
	memcpy(rec, good, good->rec.length);
	rec->qpn = rec->wire_qpn = w.index;
	rec->sq.mmap_offset = w.offset[0];
	rec->rq.mmap_offset = w.offset[1];
	ret = load_as(rig, fd, rec->rec.handle, rec, rec->rec.length);
	if (!ret)
		ret = make_qp(rig, fd, rec->rec.handle, w);
	free(rec);
	return ret;
}

static int rc_qp(struct rig *rig, int fd, uint32_t qpn, uint64_t sq,
		 uint64_t rq)
{
	return create_qp(rig, fd,
			 (struct want){ .index = qpn,
					.offset = { sq, rq },
					.qp_type = IBV_QPT_RC });
}

static int make_cq(int fd, uint32_t record)
{
	const struct ib_uverbs_create_cq in = { .cqe = 4, .comp_channel = -1 };
	const struct rxe_migr_restore restore = { .handle = record };
	struct ib_uverbs_create_cq_resp out = {};
	struct rxe_create_cq_resp ring = {};
	const struct migr_write cmd = {
		.command = IB_USER_VERBS_CMD_CREATE_CQ,
		.in = &in,
		.in_length = sizeof(in),
		.out = &out,
		.out_length = sizeof(out),
		.driver_out = &ring,
		.driver_out_length = sizeof(ring),
		.restore = &restore,
	};

	return migr_write_run(fd, &cmd);
}

static int create_cq(struct rig *rig, int fd, uint64_t offset)
{
	struct rxe_migr_rec_cq *rec = malloc(rig->cq->rec.length);
	int ret;

	MUST(rec);
	memcpy(rec, rig->cq, rig->cq->rec.length);
	rec->ring.mmap_offset = offset;
	ret = load_as(rig, fd, rec->rec.handle, rec, rec->rec.length);
	if (!ret)
		ret = make_cq(fd, rec->rec.handle);
	free(rec);
	return ret;
}

static int make_mr(int fd, uint32_t record, uint32_t pd, uint64_t start,
		   uint64_t length, uint32_t access)
{
	const struct ib_uverbs_reg_mr in = {
		.start = start,
		.length = length,
		.hca_va = start,
		.pd_handle = pd,
		.access_flags = access,
	};
	const struct rxe_migr_restore restore = { .handle = record };
	struct ib_uverbs_reg_mr_resp out = {};
	const struct migr_write cmd = {
		.command = IB_USER_VERBS_CMD_REG_MR,
		.in = &in,
		.in_length = sizeof(in),
		.out = &out,
		.out_length = sizeof(out),
		.restore = &restore,
	};

	return migr_write_run(fd, &cmd);
}

static int reg_mr(struct rig *rig, int fd, uint32_t key, uint32_t pd,
		  uint64_t start, uint64_t length, uint32_t access)
{
	struct rxe_migr_rec_mr rec = *rig->mr;
	int ret;

	rec.key = rec.wire_key = key;
	rec.start = start;
	rec.size = length;
	rec.access = access;
	ret = load_as(rig, fd, rec.rec.handle, &rec, sizeof(rec));
	return ret ?: make_mr(fd, rec.rec.handle, pd, start, length, access);
}

static void identities(struct rig *rig, int fd)
{
	const struct rxe_migr_rec_qp *qp = rig->qp[0];
	const struct rxe_migr_rec_mr *mr = rig->mr;
	struct want w = { .index = FREE_QPN,
			  .offset = { OFFSET, 2 * OFFSET },
			  .qp_type = IBV_QPT_RC };

	EXPECT(create_qp(rig, fd, w), 0);
	EXPECT(rc_qp(rig, fd, qp->qpn, OFFSET, 2 * OFFSET), -EBUSY);
	EXPECT(rc_qp(rig, fd, rig->peer.qp[0]->qp_num, OFFSET, 2 * OFFSET),
	       -EBUSY);
	EXPECT(rc_qp(rig, fd, 0, OFFSET, 2 * OFFSET), -ERANGE);
	EXPECT(rc_qp(rig, fd, 1, OFFSET, 2 * OFFSET), -ERANGE);
	EXPECT(rc_qp(rig, fd, 0xffffff, OFFSET, 2 * OFFSET), -ERANGE);
	EXPECT(rc_qp(rig, fd, 0x1000000 + FREE_QPN, OFFSET, 2 * OFFSET),
	       -ERANGE);
	EXPECT(rc_qp(rig, fd, 0xffffffff, OFFSET, 2 * OFFSET), -ERANGE);
	EXPECT(rc_qp(rig, fd, FREE_QPN, 1, 0), -EINVAL);
	EXPECT(rc_qp(rig, fd, FREE_QPN, 0, OFFSET + 8), -EINVAL);
	EXPECT(rc_qp(rig, fd, FREE_QPN, 1ULL << 44, 0), -EINVAL);
	EXPECT(rc_qp(rig, fd, FREE_QPN, 0, ~4095ULL), -EINVAL);
	/* the same place twice harms only who asked for it */
	EXPECT(rc_qp(rig, fd, FREE_QPN, OFFSET, OFFSET), 0, -EINVAL, -EBUSY);
	EXPECT(rc_qp(rig, fd, FREE_QPN, qp->sq.mmap_offset, 0), 0, -EINVAL,
	       -EBUSY);

	/* the record of another type, or of nothing */
	MUST(!load_good(rig, fd));
	EXPECT(make_qp(rig, fd, rig->cq->rec.handle, w), -ENOENT);
	EXPECT(make_qp(rig, fd, mr->rec.handle, w), -ENOENT);
	EXPECT(make_qp(rig, fd, mr->pd, w), -ENOENT);
	EXPECT(make_qp(rig, fd, 0xffff, w), -ENOENT);
	EXPECT(make_qp(rig, fd, 0xffffffff, w), -ENOENT);
	EXPECT(make_cq(fd, qp->rec.handle), -ENOENT);
	EXPECT(make_mr(fd, qp->rec.handle, mr->pd, mr->start, MSG, 1), -ENOENT);
	for (w.qp_type = IBV_QPT_UC; w.qp_type < 16; w.qp_type++)
		EXPECT(create_qp(rig, fd, w), -EOPNOTSUPP, -EINVAL, -EPERM);
	w.qp_type = IBV_QPT_RC;
	w.no_driver_out = true;
	EXPECT(create_qp(rig, fd, w), -EINVAL);
	w.no_driver_out = false;
	w.bad_driver_out = true;
	EXPECT(create_qp(rig, fd, w), -EFAULT);
	w.bad_driver_out = false;
	EXPECT(create_qp(rig, fd, w), 0);

	EXPECT(create_cq(rig, fd, OFFSET + 1), -EINVAL);
	EXPECT(create_cq(rig, fd, 1ULL << 63), -EINVAL);
	EXPECT(create_cq(rig, fd, OFFSET), 0);

	EXPECT(reg_mr(rig, fd, mr->key, mr->pd, mr->start, MSG, 1), -EBUSY);
	EXPECT(reg_mr(rig, fd, mr->key ^ 1, mr->pd, mr->start, MSG, 1), -EBUSY);
	EXPECT(reg_mr(rig, fd, rig->peer.mr->rkey, mr->pd, mr->start, MSG, 1),
	       -EBUSY);
	EXPECT(reg_mr(rig, fd, 0, mr->pd, mr->start, MSG, 1), -ERANGE);
	EXPECT(reg_mr(rig, fd, ~0U, mr->pd, mr->start, MSG, 1), -ERANGE);
	EXPECT(reg_mr(rig, fd, FREE_KEY, 0xffff, mr->start, MSG, 1) < 0, 1);
	EXPECT(reg_mr(rig, fd, FREE_KEY, mr->pd, mr->start, MSG, ~0U) < 0, 1);
}

/* a command that is not about the object of its record */
static void another_mr(struct rig *rig, int fd)
{
	const struct rxe_migr_rec_mr *mr = rig->mr;
	struct rxe_migr_rec_mr rec = *mr;

	rec.key = rec.wire_key = FREE_KEY;
	MUST(!load_as(rig, fd, rec.rec.handle, &rec, sizeof(rec)));
	EXPECT(make_mr(fd, rec.rec.handle, mr->pd, mr->start + 4096, mr->size,
		       mr->access),
	       -EINVAL);
	EXPECT(make_mr(fd, rec.rec.handle, mr->pd, mr->start, mr->size + 1,
		       mr->access),
	       -EINVAL);
	EXPECT(make_mr(fd, rec.rec.handle, mr->pd, mr->start, mr->size,
		       mr->access ^ IBV_ACCESS_REMOTE_READ),
	       -EINVAL);
	EXPECT(make_mr(fd, rec.rec.handle, mr->pd, mr->start, mr->size,
		       mr->access),
	       0);
	rec.wire_key ^= 1;
	MUST(!load_as(rig, fd, rec.rec.handle, &rec, sizeof(rec)));
	EXPECT(make_mr(fd, rec.rec.handle, mr->pd, mr->start, mr->size,
		       mr->access),
	       -EINVAL);
}

/* REFILL and RESUME when it is not their time */
static void order(struct rig *rig)
{
	const struct rxe_migr_rec_qp *qp = rig->qp[0];
	uint32_t handle = qp->rec.handle;
	struct rxe_migr_status st;
	struct copy c;

	copy_open(rig, &c);
	EXPECT(refill_qp(c.fd, handle), -ENOENT, -EINVAL);
	for (unsigned int i = 0; i < rig->img.count; i++)
		if (rig->img.records[i]->type != RXE_MIGR_ASYNC_FD)
			MUST(!migr_create_object(&c.r, rig->img.records[i]));
	EXPECT(refill_qp(c.fd, handle), -EINVAL); /* in RESET */
	EXPECT(migr_cmd_resume(c.fd, &st), -EINVAL);
	MUST(!migr_connect_qp(&c.r, &qp->rec));
	/* of another QP, of none */
	EXPECT(refill_as(rig, c.fd, UVERBS_OBJECT_QP, handle, rig->qp[1],
			 rig->qp[1]->rec.length),
	       -EINVAL);
	EXPECT(refill_as(rig, c.fd, UVERBS_OBJECT_QP, handle, NULL, 0),
	       -ENOENT);
	EXPECT(refill_as(rig, c.fd, UVERBS_OBJECT_CQ, rig->cq->rec.handle, NULL,
			 0),
	       -ENOENT);
	MUST(!load_good(rig, c.fd));
	EXPECT(refill_qp(c.fd, handle), 0);
	EXPECT(refill_qp(c.fd, handle), -EBUSY);
	EXPECT(migr_cmd_stop(c.fd, 0, 0, &st), -EOPNOTSUPP);
	EXPECT(migr_cmd_attach(c.fd, &st), 0);
	EXPECT(migr_cmd_attach(c.fd, &st), -EALREADY);
	EXPECT(load_good(rig, c.fd), -EBUSY);
	EXPECT(refill_cq(c.fd, rig->cq->rec.handle), -EBUSY);
	EXPECT(migr_cmd_resume(c.fd, &st), -EINVAL); /* the other QP */
	MUST(!migr_connect_qp(&c.r, &rig->qp[1]->rec));
	EXPECT(refill_qp(c.fd, rig->qp[1]->rec.handle), 0);
	EXPECT(migr_cmd_resume(c.fd, &st), 0);
	EXPECT(migr_cmd_resume(c.fd, &st), -EINVAL);
	/* there is no image any more */
	EXPECT(refill_qp(c.fd, handle), -ENOENT);
	EXPECT(make_cq(c.fd, rig->cq->rec.handle), -ENOENT);
	copy_close(&c);
}

static int modify_qp(struct rig *rig, int fd, enum ibv_qp_state state,
		     const uint8_t *dgid, const uint32_t *record)
{
	const struct rxe_migr_rec_qp *qp = rig->qp[0];
	struct ib_uverbs_modify_qp in = {
		.qp_handle = qp->rec.handle,
		.qp_state = (uint8_t)state,
		.attr_mask = state == IBV_QPS_INIT
				     ? IBV_QP_STATE | IBV_QP_PKEY_INDEX |
					       IBV_QP_PORT | IBV_QP_ACCESS_FLAGS
				     : IBV_QP_STATE | IBV_QP_AV |
					       IBV_QP_PATH_MTU |
					       IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
					       IBV_QP_MAX_DEST_RD_ATOMIC |
					       IBV_QP_MIN_RNR_TIMER,
		.port_num = 1,
		.path_mtu = (uint8_t)qp->path_mtu,
		.dest_qp_num = qp->dest_qpn,
		.dest = { .sgid_index = qp->sgid_index,
			  .is_global = 1,
			  .port_num = 1 },
	};
	const struct rxe_migr_restore restore = { record ? *record : 0, 0 };
	const struct migr_write cmd = {
		.command = IB_USER_VERBS_CMD_MODIFY_QP,
		.in = &in,
		.in_length = sizeof(in),
		.restore = record ? &restore : NULL,
	};

	memcpy(in.dest.dgid, dgid, sizeof(in.dest.dgid));
	return migr_write_run(fd, &cmd);
}

/* a QP leads to where its own record says, if that is asked for, and in its time */
static void leads(struct rig *rig)
{
	static const uint8_t group[16] = { [10] = 0xff, 0xff, 224, 0, 0, 9 };
	const uint8_t *own = rig->gid.raw;
	const uint32_t none = 0x7777;
	const uint32_t *good = &rig->qp[0]->rec.handle;
	struct copy c;

	copy_open(rig, &c);
	for (unsigned int i = 0; i < rig->img.count; i++)
		if (rig->img.records[i]->type != RXE_MIGR_ASYNC_FD)
			MUST(!migr_create_object(&c.r, rig->img.records[i]));
	EXPECT(modify_qp(rig, c.fd, IBV_QPS_INIT, own, good), -EINVAL);
	EXPECT(modify_qp(rig, c.fd, IBV_QPS_INIT, own, NULL), 0);
	EXPECT(modify_qp(rig, c.fd, IBV_QPS_RTR, own, &none), -ENOENT);
	EXPECT(modify_qp(rig, c.fd, IBV_QPS_RTR, own, &rig->cq->rec.handle),
	       -ENOENT);
	EXPECT(modify_qp(rig, c.fd, IBV_QPS_RTR, own, &rig->qp[1]->rec.handle),
	       -EINVAL);
	EXPECT(modify_qp(rig, c.fd, IBV_QPS_RTR, group, good), -EINVAL);
	EXPECT(modify_qp(rig, c.fd, IBV_QPS_RTR, own, good), 0);
	copy_close(&c);
}

/* an MR that is not to be written any more can be written again, also elsewhere */
static void registered_again(struct rig *rig)
{
	struct rig moved = { .dev = rig->dev, .gid = rig->gid };
	struct rxe_migr_status st;
	struct side s = {};
	struct copy c;

	side_open(rig, &s);
	MUST(!raw_rereg_mr(s.ctx->cmd_fd, s.mr->handle,
			   IBV_REREG_MR_CHANGE_ACCESS, 0,
			   IBV_ACCESS_REMOTE_READ));
	memcpy(moved.cdev, rig->cdev, sizeof(moved.cdev));
	rig_take(&moved, &s);
	copy_open(&moved, &c);
	copy_create(&moved, &c);
	MUST(!mprotect(moved.mem, 2 * MSG, PROT_READ));
	EXPECT(migr_cmd_attach(c.fd, &st), -EFAULT);
	MUST(!mprotect(moved.mem, 2 * MSG, PROT_READ | PROT_WRITE));
	EXPECT(migr_cmd_attach(c.fd, &st), 0);
	EXPECT(raw_rereg_mr(c.fd, moved.mr->rec.handle,
			    IBV_REREG_MR_CHANGE_ACCESS, 0,
			    IBV_ACCESS_LOCAL_WRITE),
	       0);
	copy_close(&c);
	migr_image_free(&moved.img);
	free(moved.image);
}

/* pages that are not there, and then are */
static void attach(struct rig *rig)
{
	struct rxe_migr_status st;
	struct copy c;
	void *p;

	copy_open(rig, &c);
	copy_create(rig, &c);
	EXPECT(raw_rereg_mr(c.fd, rig->mr->rec.handle,
			    IBV_REREG_MR_CHANGE_ACCESS, 0, 1),
	       -EINVAL);
	MUST(!munmap(rig->mem, 2 * MSG));
	for (int i = 0; i < 3; i++) {
		EXPECT(migr_cmd_attach(c.fd, &st), -EFAULT);
		EXPECT(st.why, RXE_MIGR_WHY_PIN);
		EXPECT(st.handle, rig->mr->rec.handle);
	}
	p = mmap(rig->mem, 2 * MSG, PROT_READ,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	MUST(p == rig->mem);
	EXPECT(migr_cmd_attach(c.fd, &st), -EFAULT);
	MUST(!mprotect(p, 2 * MSG, PROT_READ | PROT_WRITE));
	EXPECT(migr_cmd_attach(c.fd, &st), 0);
	EXPECT(raw_rereg_mr(c.fd, rig->mr->rec.handle,
			    IBV_REREG_MR_CHANGE_ACCESS, 0, 1),
	       0);
	copy_close(&c);

	/* an impossible range stays a shell */
	copy_open(rig, &c);
	copy_create(rig, &c);
	reg_mr(rig, c.fd, FREE_KEY, rig->mr->pd, ~0ULL - MSG, MSG, 1);
	reg_mr(rig, c.fd, FREE_KEY + 0x100, rig->mr->pd, 4096, 1ULL << 62, 1);
	EXPECT(migr_cmd_attach(c.fd, &st) < 0, 1);
	copy_close(&c);
}

void attack_restore(struct rig *rig)
{
	struct copy c;

	copy_open(rig, &c);
	copy_create(rig, &c);
	identities(rig, c.fd);
	another_mr(rig, c.fd);
	copy_close(&c);
	order(rig);
	leads(rig);
	attach(rig);
	registered_again(rig);
}

/* ---- without the capability ---- */

static int as_nobody(struct rig *rig, struct copy *c, int live)
{
	const struct rxe_migr_rec_qp *qp = rig->qp[0];
	struct rxe_migr_track_resp tracked;
	struct rxe_migr_resolve_resp what;
	struct rxe_migr_dump_resp resp;
	struct rxe_migr_status st;

	MUST(!setgid(65534) && !setuid(65534));
	EXPECT(migr_cmd_stop(live, 0, 0, &st), -EPERM);
	EXPECT(migr_cmd_stop(live, RXE_MIGR_STOP_CHECK_ONLY, 0, &st), -EPERM);
	EXPECT(commit_it(live), -EPERM);
	EXPECT(migr_cmd_dump_once(live, NULL, 0, &resp), -EPERM);
	EXPECT(migr_cmd_resolve(live, live, &what), -EPERM);
	EXPECT(migr_cmd_track(live, 0, 0, &tracked), -EPERM);
	EXPECT(migr_cmd_resume(c->fd, &st), -EPERM);
	EXPECT(load_good(rig, c->fd), -EPERM);
	EXPECT(refill_qp(c->fd, qp->rec.handle), -EPERM);
	EXPECT(refill_cq(c->fd, rig->cq->rec.handle), -EPERM);
	EXPECT(make_qp(rig, c->fd, qp->rec.handle,
		       (struct want){ .qp_type = IBV_QPT_RC }),
	       -EPERM);
	EXPECT(make_cq(c->fd, rig->cq->rec.handle), -EPERM);
	EXPECT(make_mr(c->fd, rig->mr->rec.handle, rig->mr->pd, rig->mr->start,
		       rig->mr->size, rig->mr->access),
	       -EPERM);
	EXPECT(migr_cmd_attach(live, &st), -EINVAL); /* not restored */
	EXPECT(open("/sys/module/rdma_rxe/parameters/migr_key", O_WRONLY), -1);
	return fuzz_failures != 0;
}

void attack_unprivileged(struct rig *rig)
{
	struct copy c;
	int status;
	pid_t pid;

	copy_open(rig, &c);
	copy_create(rig, &c);
	fflush(stdout);
	pid = fork();
	MUST(pid >= 0);
	if (!pid)
		_exit(as_nobody(rig, &c, rig->peer.ctx->cmd_fd));
	MUST(waitpid(pid, &status, 0) == pid);
	EXPECT(status, 0);
	copy_close(&c);
}
