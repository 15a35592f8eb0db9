// SPDX-License-Identifier: GPL-2.0
/* The objects of lossy_mix, and how its lanes are connected. */
#include <endian.h>
#include <sys/mman.h>

#include "check.h"
#include "conn.h"
#include "lossy.h"
#include "pattern.h"

#define PORT 1
#define HELLO_SECONDS 60
#define LANE_SLOTS (WINDOW + RECEIVES + WINDOW)

/* 239.77.SIDE.LANE, of a side's lane */
static union ibv_gid group_of(const struct lossy *l, const struct lane *lane,
			      bool server)
{
	union ibv_gid gid = { .raw = { [10] = 0xff, 0xff, 239, 77 } };

	gid.raw[14] = server;
	gid.raw[15] = (uint8_t)(lane - l->lane);
	return gid;
}

static void create_qp(struct lossy *l, struct lane *lane)
{
	struct ibv_qp_init_attr init = {
		.send_cq = l->cq,
		.recv_cq = l->cq,
		.srq = l->srq,
		.qp_type = l->ud ? IBV_QPT_UD : IBV_QPT_UC,
		.sq_sig_all = 1,
		.cap = { .max_send_wr = WINDOW,
			 .max_recv_wr = l->srq ? 0 : RECEIVES,
			 .max_send_sge = 1,
			 .max_recv_sge = l->srq ? 0 : 1 },
	};
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = PORT,
		.qkey = QKEY,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
	};
	union ibv_gid group = group_of(l, lane, l->server);
	int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;

	MUST(lane->qp = ibv_create_qp(l->pd, &init));
	lane->qpn = lane->qp->qp_num;
	mask |= l->ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS;
	MUST(!(errno = ibv_modify_qp(lane->qp, &attr, mask)));
	if (lane->group)
		MUST(!(errno = ibv_attach_mcast(lane->qp, &group, 0)));
}

void slot_clear(char *slot)
{
	memset(slot, NOTHING, SLOT);
}

bool slot_ends(const char *slot, uint32_t bytes)
{
	for (uint32_t i = bytes; i < bytes + LOOKED_AT; i++)
		if ((unsigned char)slot[i] != NOTHING)
			return false;
	return true;
}

void lane_receive(struct lossy *l, uint32_t slot)
{
	struct lane *lane = &l->lane[slot / RECEIVES];
	struct ibv_sge sge = {
		.addr = (uintptr_t)lane->recv + slot % RECEIVES * SLOT,
		.length = SLOT,
		.lkey = l->mr->lkey,
	};
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 };
	struct ibv_recv_wr *bad;

	slot_clear(lane->recv + slot % RECEIVES * SLOT);
	receive_posted(l, slot);
	wr.wr_id = l->receive[slot].wr_id;
	errno = l->srq ? ibv_post_srq_recv(l->srq, &wr, &bad)
		       : ibv_post_recv(lane->qp, &wr, &bad);
	MUST(!errno);
}

static size_t mem_size(const struct lossy *l)
{
	return (size_t)l->lanes * LANE_SLOTS * SLOT;
}

void lanes_alloc(struct lossy *l)
{
	l->mem = mmap(NULL, mem_size(l), PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(l->mem != MAP_FAILED);
	MUST(l->lane = calloc(l->lanes, sizeof(*l->lane)));
	MUST(l->receive =
		     calloc((size_t)l->lanes * RECEIVES, sizeof(*l->receive)));
	for (uint32_t i = 0; i < l->lanes; i++) {
		struct lane *lane = &l->lane[i];

		lane->group = l->groups && i % 2;
		lane->send = l->mem + (size_t)i * LANE_SLOTS * SLOT;
		lane->recv = lane->send + WINDOW * SLOT;
		lane->slots = lane->recv + RECEIVES * SLOT;
		for (int s = 0; s < WINDOW; s++)
			slot_clear(lane->slots + s * SLOT);
		lane->key_out = key_of(l->seed, 2 * i + l->server);
		lane->key_in = key_of(l->seed, 2 * i + !l->server);
	}
}

void lanes_free(struct lossy *l)
{
	munmap(l->mem, mem_size(l));
	free(l->lane);
	free(l->receive);
}

void lanes_open(struct lossy *l)
{
	struct ibv_srq_init_attr srq = { .attr = { l->lanes * RECEIVES, 1,
						   0 } };

	lanes_alloc(l);
	MUST(l->pd = ibv_alloc_pd(l->v.context));
	MUST(l->cq = ibv_create_cq(l->v.context,
				   (int)l->lanes * (WINDOW + RECEIVES), NULL,
				   NULL, 0));
	MUST(l->mr = ibv_reg_mr(l->pd, l->mem, mem_size(l),
				IBV_ACCESS_LOCAL_WRITE |
					IBV_ACCESS_REMOTE_WRITE));
	if (l->srq_wanted)
		MUST(l->srq = ibv_create_srq(l->pd, &srq));
	for (uint32_t i = 0; i < l->lanes; i++)
		create_qp(l, &l->lane[i]);
	for (uint32_t slot = 0; slot < l->lanes * RECEIVES; slot++)
		lane_receive(l, slot);
}

static struct ibv_ah_attr path(struct lossy *l, const union ibv_gid *to)
{
	return (struct ibv_ah_attr){
		.is_global = 1,
		.port_num = PORT,
		.grh = { .dgid = *to,
			 .sgid_index = (uint8_t)l->v.gid_index,
			 .hop_limit = 64 },
	};
}

struct ibv_ah *lane_ah(struct lossy *l, const union ibv_gid *to)
{
	struct ibv_ah_attr attr = path(l, to);
	struct ibv_ah *ah;

	MUST(ah = ibv_create_ah(l->pd, &attr));
	return ah;
}

static uint32_t first_psn(const struct lane *lane)
{
	return (uint32_t)key_of(lane->key_out, lane->qpn) & 0xffffff;
}

static void connect_lane(struct lossy *l, struct lane *lane, uint32_t psn)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.dest_qp_num = lane->peer_qpn,
		.rq_psn = psn,
		.path_mtu = IBV_MTU_1024,
		.ah_attr = path(l, &lane->peer),
	};
	union ibv_gid group = group_of(l, lane, !l->server);
	int mask = IBV_QP_STATE;

	if (l->ud)
		lane->ah = lane_ah(l, lane->group ? &group : &lane->peer);
	else
		mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
			IBV_QP_RQ_PSN;
	MUST(!(errno = ibv_modify_qp(lane->qp, &attr, mask)));
	attr.qp_state = IBV_QPS_RTS;
	attr.sq_psn = first_psn(lane);
	MUST(!(errno = ibv_modify_qp(lane->qp, &attr,
				     IBV_QP_STATE | IBV_QP_SQ_PSN)));
}

void lanes_connect(struct lossy *l, int fd)
{
	uint64_t gid[2], w[WORDS];

	memcpy(gid, l->v.gid.raw, sizeof(gid));
	MUST(!conn_send(fd, gid, 2));
	for (uint32_t i = 0; i < l->lanes; i++) {
		struct lane *lane = &l->lane[i];

		w[W_QPN_PSN] = (uint64_t)lane->qpn << 32 | first_psn(lane);
		w[W_ADDR] = (uintptr_t)lane->slots;
		w[W_RKEY] = l->mr->rkey;
		MUST(!conn_send(fd, w, WORDS));
	}
	MUST(!conn_recv(fd, gid, 2, HELLO_SECONDS));
	for (uint32_t i = 0; i < l->lanes; i++) {
		struct lane *lane = &l->lane[i];

		MUST(!conn_recv(fd, w, WORDS, HELLO_SECONDS));
		memcpy(lane->peer.raw, gid, sizeof(gid));
		lane->peer_qpn = (uint32_t)(w[W_QPN_PSN] >> 32);
		lane->peer_addr = w[W_ADDR];
		lane->peer_rkey = (uint32_t)w[W_RKEY];
		connect_lane(l, lane, (uint32_t)w[W_QPN_PSN]);
	}
	/* nobody sends before the other can receive */
	MUST(!conn_send(fd, w, 1) && !conn_recv(fd, w, 1, HELLO_SECONDS));
}

void lanes_close(struct lossy *l)
{
	for (uint32_t i = 0; i < l->lanes; i++) {
		struct lane *lane = &l->lane[i];
		union ibv_gid group = group_of(l, lane, l->server);

		if (lane->group)
			MUST(!(errno = ibv_detach_mcast(lane->qp, &group, 0)));
		MUST(!ibv_destroy_qp(lane->qp));
		MUST(!lane->ah || !ibv_destroy_ah(lane->ah));
		for (uint64_t n = 0; n < lane->followed; n++)
			MUST(!ibv_destroy_ah(lane->old_ah[n]));
	}
	MUST(!l->srq || !ibv_destroy_srq(l->srq));
	MUST(!ibv_destroy_cq(l->cq));
	MUST(!ibv_dereg_mr(l->mr));
	MUST(!ibv_dealloc_pd(l->pd));
	MUST(!ibv_close_device(l->v.context));
}
