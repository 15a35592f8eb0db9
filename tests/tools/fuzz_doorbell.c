// SPDX-License-Identifier: GPL-2.0
/*
 * What write() lets a restored process do. Its context's file was opened by
 * the restorer, who may do anything; it may do what it could with a file that
 * it opened itself, and that it can.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/capability.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rdma/rdma_user_rxe.h>

#include "migr_fuzz.h"

#define LIMIT (64 << 10)
#define BEYOND (16 << 20)
#define PLAIN_QKEY 0x11
#define PRIVILEGED_QKEY 0x80010000

struct user {
	struct rig *rig;
	int fd;	   /* of the restored context */
	char *mem; /* BEYOND bytes */
};

static int reg(const struct user *u, uint32_t pd, size_t length)
{
	struct ib_uverbs_reg_mr in = {
		.start = (uintptr_t)u->mem,
		.length = length,
		.hca_va = (uintptr_t)u->mem,
		.pd_handle = pd,
		.access_flags = IBV_ACCESS_LOCAL_WRITE,
	};
	struct ib_uverbs_reg_mr_resp out;
	int ret = raw_write(u->fd, IB_USER_VERBS_CMD_REG_MR, &in, sizeof(in),
			    &out, sizeof(out));

	if (!ret) {
		struct ib_uverbs_dereg_mr dereg = { out.mr_handle };

		MUST(!raw_write(u->fd, IB_USER_VERBS_CMD_DEREG_MR, &dereg,
				sizeof(dereg), NULL, 0));
	}
	return ret;
}

static uint32_t ud_qp(const struct user *u)
{
	struct ib_uverbs_create_qp in = {
		.pd_handle = u->rig->qp[0]->pd,
		.send_cq_handle = u->rig->qp[0]->send_cq,
		.recv_cq_handle = u->rig->qp[0]->recv_cq,
		.max_send_wr = 1,
		.max_recv_wr = 1,
		.max_send_sge = 1,
		.max_recv_sge = 1,
		.qp_type = IBV_QPT_UD,
	};
	struct {
		struct ib_uverbs_create_qp_resp core;
		struct rxe_create_qp_resp rings;
	} out;

	MUST(!raw_write(u->fd, IB_USER_VERBS_CMD_CREATE_QP, &in, sizeof(in),
			&out, sizeof(out)));
	return out.core.qp_handle;
}

static int set_qkey(const struct user *u, uint32_t qp, uint32_t qkey)
{
	struct ib_uverbs_modify_qp in = {
		.qp_handle = qp,
		.attr_mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
			     IBV_QP_QKEY,
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qkey = qkey,
	};

	/* a response is not read, but the first field is not for it, either */
	return raw_write(u->fd, IB_USER_VERBS_CMD_MODIFY_QP, &in, sizeof(in),
			 NULL, 0);
}

static int ring(const struct user *u)
{
	struct ib_uverbs_post_send in = {
		.qp_handle = u->rig->qp[0]->rec.handle,
		.wqe_size = sizeof(struct ib_uverbs_send_wr),
	};
	struct ib_uverbs_post_send_resp out;

	return raw_write(u->fd, IB_USER_VERBS_CMD_POST_SEND, &in, sizeof(in),
			 &out, sizeof(out));
}

static void *use(void *arg)
{
	const struct user *u = arg;
	uint32_t qp = ud_qp(u);

	EXPECT(ring(u), 0);
	EXPECT(reg(u, u->rig->mr->pd, LIMIT / 4), 0);
	EXPECT(reg(u, u->rig->mr->pd, BEYOND), -ENOMEM);
	EXPECT(set_qkey(u, qp, PRIVILEGED_QKEY), -EPERM);
	EXPECT(set_qkey(u, qp, PLAIN_QKEY), 0);
	MUST(!raw_destroy_qp(u->fd, qp));
	return NULL;
}

/* a thread that has a struct cred of its own, with the same in it */
static void *use_too(void *arg)
{
	struct __user_cap_header_struct hdr = {
		.version = _LINUX_CAPABILITY_VERSION_3
	};
	struct __user_cap_data_struct data[2];

	MUST(!syscall(SYS_capget, &hdr, data));
	MUST(!syscall(SYS_capset, &hdr, data));
	return use(arg);
}

/* one whose credentials differ: as if it were another process */
static void *use_other(void *arg)
{
	const struct user *u = arg;

	MUST(!syscall(SYS_setresuid, -1, 65533, -1));
	EXPECT(ring(u), -EACCES);
	return NULL;
}

static void as_thread(void *(*run)(void *), struct user *u)
{
	pthread_t t;

	MUST(!pthread_create(&t, NULL, run, u));
	MUST(!pthread_join(t, NULL));
}

/* what a fresh context allows */
static void fresh(const struct user *u)
{
	struct ibv_context *ctx = ibv_open_device(u->rig->dev);
	struct ibv_pd *pd;

	MUST(ctx);
	MUST(pd = ibv_alloc_pd(ctx));
	EXPECT(!ibv_reg_mr(pd, u->mem, BEYOND, IBV_ACCESS_LOCAL_WRITE), 1);
	EXPECT(errno, ENOMEM);
	MUST(!ibv_dealloc_pd(pd));
	MUST(!ibv_close_device(ctx));
}

static int as_user(struct rig *rig, struct copy *c)
{
	const struct rlimit limit = { LIMIT, LIMIT };
	struct user u = { .rig = rig, .fd = c->fd };
	struct rxe_migr_status st;

	u.mem = mmap(NULL, BEYOND, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(u.mem != MAP_FAILED);
	MUST(!setrlimit(RLIMIT_MEMLOCK, &limit));
	MUST(!setgid(65534) && !setresuid(65534, 65534, 65533));
	EXPECT(ring(&u), -EACCES);
	EXPECT(migr_cmd_attach(c->fd, &st), 0);
	fresh(&u);
	use(&u);
	as_thread(use_too, &u);
	as_thread(use_other, &u);
	return fuzz_failures != 0;
}

void attack_doorbell(struct rig *rig)
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
		_exit(as_user(rig, &c));
	MUST(waitpid(pid, &status, 0) == pid);
	EXPECT(status, 0);
	copy_close(&c);
}
