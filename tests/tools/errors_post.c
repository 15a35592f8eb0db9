// SPDX-License-Identifier: GPL-2.0
/* Work requests, good ones and those that a case describes. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "verbs_errors.h"

#define MOST_ELEMENTS 64

static uint64_t address(enum place place, uint64_t start, uint32_t length)
{
	switch (place) {
	case AT_START:
		break;
	case AT_END:
		return start + REGION - length;
	case BEFORE_START:
		return start - 8;
	case PAST_END:
		return start + REGION + 8 - length;
	case WRAPS:
		return -16ULL;
	case MISALIGNED:
		return start + 4;
	}
	return start;
}

static bool is_atomic(enum ibv_wr_opcode opcode)
{
	return opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
	       opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

static void post_failed(struct end *e, int err)
{
	size_t at = strlen(e->posting);
	const char *name = strerrorname_np(err);

	snprintf(e->posting + at, TEXT - at, "post:%s ", name ? name : "?");
}

void post_send(struct end *e, const struct wrong *w, uint64_t wr_id)
{
	struct rig *rig = e->rig;
	bool atomic = is_atomic(w->opcode);
	uint32_t length = w->length ? w->length : atomic ? 8 : MSG;
	struct ibv_sge sge[MOST_ELEMENTS];
	struct ibv_send_wr *bad, wr = {
		.wr_id = wr_id,
		.opcode = w->opcode,
		.sg_list = sge,
		.num_sge = w->empty	 ? 0
			   : w->elements ? w->elements
					 : 1,
		.send_flags = w->flags,
	};
	uint64_t local = (uintptr_t)rig->buffer + REGION_AT;
	uint64_t remote = address(w->remote, e->peer_addr, length);
	int ret;

	if (!w->unsignaled)
		wr.send_flags |= IBV_SEND_SIGNALED;
	if (w->inlined)
		wr.send_flags |= IBV_SEND_INLINE;
	for (int i = 0; i < wr.num_sge; i++)
		sge[i] = (struct ibv_sge){
			.addr = address(w->local, local, length),
			.length = length,
			.lkey = rig->lkey[w->lkey],
		};
	if (e->test->type == IBV_QPT_UD) {
		wr.wr.ud.ah = e->ah;
		wr.wr.ud.remote_qpn = e->peer_qpn;
		if (e->test->dest == TO_NOBODY)
			wr.wr.ud.remote_qpn ^= OTHER_QPN;
		wr.wr.ud.remote_qkey = w->qkey ? w->qkey : QKEY;
	} else if (atomic) {
		wr.wr.atomic.remote_addr = remote;
		wr.wr.atomic.rkey = e->peer_rkey[w->rkey];
		wr.wr.atomic.compare_add = 1;
	} else {
		wr.wr.rdma.remote_addr = remote;
		wr.wr.rdma.rkey = e->peer_rkey[w->rkey];
	}
	if (w->opcode == IBV_WR_SEND_WITH_INV)
		wr.invalidate_rkey = e->peer_rkey[w->rkey];
	ret = ibv_post_send(e->qp, &wr, &bad);
	if (ret)
		post_failed(e, ret);
}

void post_good(struct end *e, uint64_t first, unsigned int count)
{
	const struct wrong good = { .opcode = IBV_WR_SEND };

	while (count--)
		post_send(e, &good, first++);
}

void post_recvs(struct end *e, uint64_t first, unsigned int count)
{
	struct rig *rig = e->rig;
	bool server = rig->server;
	uint32_t length = server && e->test->recv_bytes ? e->test->recv_bytes
							: RECV_BYTES;
	struct ibv_sge sge = {
		.addr = address(server ? e->test->recv_at : AT_START,
				(uintptr_t)rig->buffer + REGION_AT, length),
		.length = length,
		.lkey = rig->lkey[server ? e->test->recv_key : K_GOOD],
	};
	struct ibv_recv_wr *bad, wr = { .sg_list = &sge, .num_sge = 1 };
	int ret;

	for (; count--; first++) {
		wr.wr_id = first;
		ret = e->srq ? ibv_post_srq_recv(e->srq, &wr, &bad)
			     : ibv_post_recv(e->qp, &wr, &bad);
		if (ret)
			post_failed(e, ret);
	}
}
