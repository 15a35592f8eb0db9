// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "replace_rig.h"

#include <dirent.h>
#include <poll.h>
#include <sys/timerfd.h>

#include "bury.h"

struct world w;
struct swap swapped;

bool readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

/* as applications do it, with all that they set */
void to_rtr(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_READ,
	};

	MUST(!ibv_modify_qp(qp, &attr,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				    IBV_QP_ACCESS_FLAGS));
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = PEER_QPN,
		.rq_psn = PEER_PSN,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 5,
		.ah_attr = { .is_global = 1,
			     .port_num = 1,
			     .grh = { .sgid_index = SGID_INDEX,
				      .dgid.raw = { 0xfe, [15] = 9 } } },
	};
	MUST(!ibv_modify_qp(qp, &attr,
			    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				    IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				    IBV_QP_MAX_DEST_RD_ATOMIC |
				    IBV_QP_MIN_RNR_TIMER));
}

void to_rts(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS,
				    .timeout = 14,
				    .retry_cnt = 7,
				    .rnr_retry = 7,
				    .sq_psn = OWN_PSN,
				    .max_rd_atomic = 1 };

	to_rtr(qp);
	MUST(!ibv_modify_qp(qp, &attr,
			    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				    IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				    IBV_QP_MAX_QP_RD_ATOMIC));
	attr = (struct ibv_qp_attr){ .min_rnr_timer = 12 };
	MUST(!ibv_modify_qp(qp, &attr, IBV_QP_MIN_RNR_TIMER));
}

static struct ibv_qp *make_qp(struct ibv_srq *srq)
{
	struct ibv_qp_init_attr attr = { .send_cq = w.cq,
					 .recv_cq = w.cq,
					 .srq = srq,
					 .cap = { 6, 1, 2, 1, 14 },
					 .qp_type = IBV_QPT_RC };
	struct ibv_qp *qp = ibv_create_qp(pd, &attr);

	MUST(qp);
	to_rts(qp);
	return qp;
}

void world_make(void)
{
	struct ibv_srq_init_attr attr = { .attr = { 8, 2, 0 } };

	w.channel = ibv_create_comp_channel(ctx);
	MUST(w.channel);
	w.cq = ibv_create_cq(ctx, 64, &w, w.channel, 1);
	MUST(w.cq);
	w.srq = ibv_create_srq(pd, &attr);
	MUST(w.srq);
	w.mr = ibv_reg_mr(pd, w.memory, sizeof(w.memory),
			  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
	MUST(w.mr);
	w.qp = make_qp(NULL);
	w.of_srq = make_qp(w.srq);
	world_look();
}

/* the QPs of the world are the last ones that are made, by whomever */
void world_look(void)
{
	w.real_cq = fake_newest(FAKE_CQ);
	w.real_srq = fake_newest(FAKE_QP);
	w.real = fake_older(w.real_srq);
	real_ctx = fake_newest(FAKE_CONTEXT);
}

void world_destroy(void)
{
	CHECK(!ibv_destroy_qp(w.qp) && !ibv_destroy_qp(w.of_srq));
	CHECK(!ibv_destroy_srq(w.srq) && !ibv_dereg_mr(w.mr));
	CHECK(!ibv_destroy_cq(w.cq) && !ibv_destroy_comp_channel(w.channel));
}

int recv_one(struct ibv_qp *qp, uint64_t wr_id)
{
	struct ibv_sge sge = { (uintptr_t)w.memory, 8, w.mr->lkey };
	struct ibv_recv_wr *bad,
		wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 };

	return ibv_post_recv(qp, &wr, &bad);
}

int recv_srq(uint64_t wr_id)
{
	struct ibv_sge sge = { (uintptr_t)w.memory, 8, w.mr->lkey };
	struct ibv_recv_wr *bad,
		wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 };

	return ibv_post_srq_recv(w.srq, &wr, &bad);
}

int write_one(struct ibv_qp *qp, uint64_t wr_id, uint32_t rkey)
{
	struct ibv_sge sge = { (uintptr_t)w.memory, 8, w.mr->lkey };
	struct ibv_send_wr *bad, wr = { .wr_id = wr_id,
					.sg_list = &sge,
					.num_sge = 1,
					.opcode = IBV_WR_RDMA_WRITE,
					.send_flags = IBV_SEND_SIGNALED,
					.wr.rdma = { 0x1000, rkey } };

	return ibv_post_send(qp, &wr, &bad);
}

void replace_all(void)
{
	int err = layer_replace(NULL, 0, LONG, &swapped);

	CHECK(!err, "%d: %s", err, swapped.reason);
	world_look();
}

static void tell(struct ibv_qp *qp, uint32_t num)
{
	const union ibv_gid gid = { .raw = { 0xfe, [15] = 77 } };

	CHECK(!layer_set_peer(qp->qp_num, num, &gid, "peer", &swapped), "%s",
	      swapped.reason);
}

void tell_peers(void)
{
	tell(w.qp, 0x5001);
	tell(w.of_srq, 0x5002);
}

void connect_all(void)
{
	int err;

	tell_peers();
	err = layer_connect(&swapped);
	CHECK(!err, "%d: %s", err, swapped.reason);
}

void world_replace(void)
{
	suspend();
	replace_all();
	connect_all();
	resume();
}

void check_recvs(struct ibv_qp *real, const uint64_t *ids, unsigned int n)
{
	const struct fake_recv *r = fake_recvs(real);
	unsigned int seen;

	for (seen = 0; r; seen++, r = r->next)
		CHECK(seen < n && r->wr_id == ids[seen], "RECV %u is %#llx",
		      seen, (unsigned long long)r->wr_id);
	CHECK(seen == n, "%u RECVs, not %u", seen, n);
}

/* --- who is held --- */

/* Does the process show that it holds still, by its own number? */
bool shows_sign(void)
{
	char path[300], to[64] = "", pid[16] = "";
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *d;
	FILE *f;

	MUST(dir);
	while ((d = readdir(dir))) {
		snprintf(path, sizeof(path), "/proc/self/fd/%s", d->d_name);
		memset(to, 0, sizeof(to));
		if (readlink(path, to, sizeof(to) - 1) > 0 &&
		    strstr(to, "/memfd:libmigrrdma:suspended"))
			break;
	}
	if (d) {
		MUST(f = fopen(path, "r"));
		MUST(fgets(pid, sizeof(pid), f) && !fclose(f));
	}
	closedir(dir);
	return d && atoi(pid) == getpid() && strchr(pid, '\n');
}

void hold(unsigned int seconds)
{
	int err;

	suspend();
	err = layer_hold(LONG, seconds, &swapped);
	CHECK(!err, "%d: %s", err, swapped.reason);
	CHECK(shows_sign() && layer_is_held());
}

void world_is_back(void)
{
	close(real_ctx->cmd_fd);
}

void world_leaves_host(void)
{
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);

	MUST(fd >= 0 && dup2(fd, real_ctx->cmd_fd) == real_ctx->cmd_fd);
	MUST(!close(fd));
	CHECK(bury_is_dead(real_ctx));
}
