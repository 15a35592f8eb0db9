// SPDX-License-Identifier: GPL-2.0
/*
 * What the lanes of migr_points do, and what must have come of it: see points.h.
 */
#include <arpa/inet.h>
#include <string.h>

#include "points.h"

#define IMM 0x10203040U
#define FILLER 0xee
#define SHORT 8	      /* bytes of the messages that are not of the opcode */
#define FIRST 1000ULL /* what a CAS or FETCH_ADD finds */
#define ADD 7ULL

/* the same place in what is wanted */
static char *wanted(const struct lane *l, enum role role, const char *mem)
{
	return l->half[role].want + (mem - l->half[role].mem);
}

static uint64_t remote(const char *mem)
{
	return (uintptr_t)mem;
}

static uint32_t imm(const struct lane *l, int i)
{
	return htonl(IMM + (uint32_t)(l->index * 16 + i));
}

static uint32_t rkey(const struct rig *rig)
{
	return rig->end[RESPONDER].mr->rkey;
}

static void set_sge(struct rig *rig, struct lane *l, enum role role,
		    const char *at, uint32_t length)
{
	ibv_wr_set_sge(l->half[role].qpx, rig->end[role].mr->lkey, remote(at),
		       length);
}

/* ---- opcodes ---- */

static void from_slot(struct rig *rig, struct lane *l, int i)
{
	set_sge(rig, l, REQUESTER, slot_from(l, REQUESTER, i), l->c->size);
}

static void to_slot(struct rig *rig, struct lane *l, int i)
{
	set_sge(rig, l, REQUESTER, slot_to(l, REQUESTER, i), l->c->size);
}

static void post_send(struct rig *rig, struct lane *l, int i)
{
	ibv_wr_send(l->half[REQUESTER].qpx);
	from_slot(rig, l, i);
}

static void post_send_imm(struct rig *rig, struct lane *l, int i)
{
	ibv_wr_send_imm(l->half[REQUESTER].qpx, imm(l, i));
	from_slot(rig, l, i);
}

static void post_send_inv(struct rig *rig, struct lane *l, int i)
{
	ibv_wr_send_inv(l->half[REQUESTER].qpx, l->half[RESPONDER].mw[i]->rkey);
	from_slot(rig, l, i);
}

static void post_write(struct rig *rig, struct lane *l, int i)
{
	ibv_wr_rdma_write(l->half[REQUESTER].qpx, rkey(rig),
			  remote(slot_to(l, RESPONDER, i)));
	from_slot(rig, l, i);
}

static void post_write_imm(struct rig *rig, struct lane *l, int i)
{
	ibv_wr_rdma_write_imm(l->half[REQUESTER].qpx, rkey(rig),
			      remote(slot_to(l, RESPONDER, i)), imm(l, i));
	from_slot(rig, l, i);
}

static void post_read(struct rig *rig, struct lane *l, int i)
{
	ibv_wr_rdma_read(l->half[REQUESTER].qpx, rkey(rig),
			 remote(slot_from(l, RESPONDER, i)));
	to_slot(rig, l, i);
}

/* all of them at one place, so that each sees what the one before has left */
static void post_cas(struct rig *rig, struct lane *l, int i)
{
	ibv_wr_atomic_cmp_swp(l->half[REQUESTER].qpx, rkey(rig),
			      remote(slot_to(l, RESPONDER, 0)),
			      FIRST + (uint64_t)i * ADD,
			      FIRST + (uint64_t)(i + 1) * ADD);
	to_slot(rig, l, i);
}

static void post_add(struct rig *rig, struct lane *l, int i)
{
	ibv_wr_atomic_fetch_add(l->half[REQUESTER].qpx, rkey(rig),
				remote(slot_to(l, RESPONDER, 0)), ADD);
	to_slot(rig, l, i);
}

static void post_atomic_write(struct rig *rig, struct lane *l, int i)
{
	ibv_wr_atomic_write(l->half[REQUESTER].qpx, rkey(rig),
			    remote(slot_to(l, RESPONDER, i)),
			    slot_from(l, REQUESTER, i));
}

static void post_flush(struct rig *rig, struct lane *l, int i)
{
	ibv_wr_flush(l->half[REQUESTER].qpx, rkey(rig),
		     remote(slot_to(l, RESPONDER, i)), l->c->size,
		     IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE);
}

static void arrives(struct lane *l, int i)
{
	memcpy(wanted(l, RESPONDER, slot_to(l, RESPONDER, i)),
	       slot_from(l, REQUESTER, i), l->c->size);
}

static void is_read(struct lane *l, int i)
{
	memcpy(wanted(l, REQUESTER, slot_to(l, REQUESTER, i)),
	       slot_from(l, RESPONDER, i), l->c->size);
}

/* each once: else the next one finds something else */
static void counts(struct lane *l, int i)
{
	uint64_t before = FIRST + (uint64_t)i * ADD, after = before + ADD;
	uint64_t first = FIRST;

	memcpy(wanted(l, REQUESTER, slot_to(l, REQUESTER, i)), &before, 8);
	memcpy(wanted(l, RESPONDER, slot_to(l, RESPONDER, 0)), &after, 8);
	memcpy(slot_to(l, RESPONDER, 0), &first, 8);
}

static void nothing(struct lane *l, int i)
{
	(void)l;
	(void)i;
}

const struct op ops[] = {
	{ "SEND", IBV_WC_SEND, 0, IBV_WC_RECV, IBV_WC_GRH, true, post_send,
	  arrives },
	{ "SEND_WITH_IMM", IBV_WC_SEND, IBV_WC_WITH_IMM, IBV_WC_RECV,
	  IBV_WC_GRH | IBV_WC_WITH_IMM, true, post_send_imm, arrives },
	{ "SEND_WITH_INV", IBV_WC_SEND, 0, IBV_WC_RECV, IBV_WC_GRH | WITH_INV,
	  true, post_send_inv, arrives },
	{ "WRITE", IBV_WC_RDMA_WRITE, 0, 0, 0, true, post_write, arrives },
	{ "WRITE_WITH_IMM", IBV_WC_RDMA_WRITE, IBV_WC_WITH_IMM,
	  IBV_WC_RECV_RDMA_WITH_IMM, IBV_WC_GRH | IBV_WC_WITH_IMM, true,
	  post_write_imm, arrives },
	{ "READ", IBV_WC_RDMA_READ, 0, 0, 0, true, post_read, is_read },
	{ "CAS", IBV_WC_COMP_SWAP, 0, 0, 0, false, post_cas, counts },
	{ "FETCH_ADD", IBV_WC_FETCH_ADD, 0, 0, 0, false, post_add, counts },
	{ "FLUSH", IBV_WC_FLUSH, 0, 0, 0, true, post_flush, nothing },
	{ "ATOMIC_WRITE", IBV_WC_ATOMIC_WRITE, 0, 0, 0, false,
	  post_atomic_write, arrives },
};
const int n_ops = sizeof(ops) / sizeof(ops[0]);

/* ---- what is wanted ---- */

static uint64_t wr_id(const struct lane *l, enum cq cq, int i)
{
	return (uint64_t)l->n << 32 | (uint64_t)l->index << 16 |
	       (uint64_t)cq << 8 | (uint64_t)i;
}

/* fields that are not named are 0 in all completions of rdma_rxe for RC */
static struct ibv_wc *want_wc(struct lane *l, enum role role, enum cq cq, int i,
			      enum ibv_wc_opcode opcode, uint32_t length,
			      unsigned int flags)
{
	struct half *h = &l->half[role];

	NEED(h->wcs[cq] < MAX_WC);
	h->wc[cq][h->wcs[cq]] = (struct ibv_wc){
		.wr_id = wr_id(l, cq, i),
		.status = IBV_WC_SUCCESS,
		.opcode = opcode,
		.byte_len = length,
		.qp_num = h->qp->qp_num,
		.wc_flags = flags,
	};
	return &h->wc[cq][h->wcs[cq]++];
}

/* one that the message i of this lane will take */
static void post_recv(struct rig *rig, struct lane *l, enum role role, int i)
{
	struct half *h = &l->half[role];
	struct ibv_sge sge = { remote(slot_to(l, role, i)),
			       (uint32_t)slot_size(l->c),
			       rig->end[role].mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = wr_id(l, RECV, i),
				  .sg_list = &sge,
				  .num_sge = 1 };
	struct ibv_recv_wr *bad;

	if (h->srq)
		NEED(!ibv_post_srq_recv(h->srq, &wr, &bad));
	else
		NEED(!ibv_post_recv(h->qp, &wr, &bad));
}

static void fill(struct lane *l, enum role role)
{
	struct half *h = &l->half[role];
	const size_t half = SLOTS * slot_size(l->c);

	for (size_t i = 0; i < half; i++)
		h->mem[i] = (char)((size_t)(l->index + role) * 37 + i * 7 +
				   (i >> 8));
	memset(h->mem + half, FILLER, half);
	memcpy(h->want, h->mem, 2 * half);
	memset(h->wcs, 0, sizeof(h->wcs));
	memset(h->got, 0, sizeof(h->got));
}

/* what a SEND of SHORT bytes leaves */
static void short_arrives(struct lane *l, enum role from, int i)
{
	enum role to = from == REQUESTER ? RESPONDER : REQUESTER;

	memcpy(wanted(l, to, slot_to(l, to, i)), slot_from(l, from, i), SHORT);
}

/* there are more receives than are wanted now: for what work_post_last() sends */
void work_prepare(struct rig *rig, struct lane *l)
{
	const struct op *op = l->c->op;
	struct ibv_wc *wc;

	fill(l, REQUESTER);
	fill(l, RESPONDER);
	post_recv(rig, l, REQUESTER, SLOTS - 1);
	for (int i = op->recv_flags ? 0 : MESSAGES; i < SLOTS; i++)
		post_recv(rig, l, RESPONDER, i);

	for (int i = 0; i < MESSAGES; i++) {
		op->effect(l, i);
		want_wc(l, REQUESTER, SEND, i, op->opcode, l->c->size,
			op->send_flags);
		if (!op->recv_flags)
			continue;
		wc = want_wc(l, RESPONDER, RECV, i, op->recv_opcode, l->c->size,
			     op->recv_flags);
		if (op->recv_flags & IBV_WC_WITH_IMM)
			wc->imm_data = imm(l, i);
		if (op->recv_flags & WITH_INV)
			wc->invalidated_rkey = l->half[RESPONDER].mw[i]->rkey;
	}
	short_arrives(l, REQUESTER, MESSAGES);
	want_wc(l, REQUESTER, SEND, MESSAGES, IBV_WC_SEND, SHORT,
		IBV_WC_WITH_IMM);
	wc = want_wc(l, RESPONDER, RECV, MESSAGES, IBV_WC_RECV, SHORT,
		     IBV_WC_GRH | IBV_WC_WITH_IMM);
	wc->imm_data = imm(l, MESSAGES);
}

void work_post(struct rig *rig, struct lane *l)
{
	struct ibv_qp_ex *qp = l->half[REQUESTER].qpx;

	ibv_wr_start(qp);
	for (int i = 0; i < MESSAGES; i++) {
		qp->wr_id = wr_id(l, SEND, i);
		qp->wr_flags = 0;
		l->c->op->post(rig, l, i);
	}
	qp->wr_id = wr_id(l, SEND, MESSAGES);
	ibv_wr_send_imm(qp, imm(l, MESSAGES));
	set_sge(rig, l, REQUESTER, slot_from(l, REQUESTER, MESSAGES), SHORT);
	NEED(!ibv_wr_complete(qp));
}

/* each message asks for a response, and rdma_rxe sends one to each */
unsigned int work_packets(const struct lane *l)
{
	const bool sends = l->at == at_names[SENT] || l->at == at_names[LOST];
	const bool requests = (l->c->moved == REQUESTER) == sends;
	const unsigned int data = l->c->size ? (l->c->size + MTU - 1) / MTU : 1;
	unsigned int each;

	switch (l->c->op->opcode) {
	case IBV_WC_RDMA_READ:
		each = requests ? 1 : data;
		break;
	case IBV_WC_FLUSH:
		each = 1;
		break;
	default:
		each = requests ? data : 1;
		break;
	}
	return MESSAGES * each + 1;
}

/* a window can be bound if it is new, or has been invalidated */
static void post_bind(struct rig *rig, struct lane *l, int i)
{
	struct half *h = &l->half[RESPONDER];
	const struct ibv_mw_bind_info info = {
		.mr = rig->end[RESPONDER].mr,
		.addr = remote(slot_to(l, RESPONDER, i)),
		.length = slot_size(l->c),
		.mw_access_flags = IBV_ACCESS_REMOTE_WRITE,
	};
	uint32_t next = ibv_inc_rkey(h->mw[i]->rkey);

	h->qpx->wr_id = wr_id(l, SEND, i);
	ibv_wr_bind_mw(h->qpx, h->mw[i], next, &info);
	h->mw[i]->rkey = next;
}

int work_bind(struct rig *rig, struct lane *l)
{
	struct ibv_qp_ex *qp = l->half[RESPONDER].qpx;

	if (!op_binds(l->c->op))
		return 0;
	ibv_wr_start(qp);
	qp->wr_flags = 0;
	for (int i = 0; i < MESSAGES; i++)
		post_bind(rig, l, i);
	NEED(!ibv_wr_complete(qp));
	return MESSAGES;
}

static void want_last(struct lane *l, enum role from)
{
	enum role to = from == REQUESTER ? RESPONDER : REQUESTER;
	const int i = SLOTS - 1;

	short_arrives(l, from, i);
	want_wc(l, from, SEND, i, IBV_WC_SEND, SHORT, 0);
	want_wc(l, to, RECV, i, IBV_WC_RECV, SHORT, IBV_WC_GRH);
}

void work_prepare_last(struct rig *rig, struct lane *l)
{
	(void)rig;
	for (int i = 0; op_binds(l->c->op) && i < MESSAGES; i++)
		want_wc(l, RESPONDER, SEND, i, IBV_WC_BIND_MW, 0, 0);
	want_last(l, REQUESTER);
	want_last(l, RESPONDER);
}

void work_post_last(struct rig *rig, struct lane *l)
{
	work_bind(rig, l);
	for (int role = 0; role < 2; role++) {
		struct ibv_qp_ex *qp = l->half[role].qpx;

		ibv_wr_start(qp);
		qp->wr_id = wr_id(l, SEND, SLOTS - 1);
		qp->wr_flags = 0;
		ibv_wr_send(qp);
		set_sge(rig, l, role, slot_from(l, role, SLOTS - 1), SHORT);
		NEED(!ibv_wr_complete(qp));
	}
}

/* ---- what has come ---- */

void wc_check(struct lane *l, enum role role, enum cq cq,
	      const struct ibv_wc *wc)
{
	struct half *h = &l->half[role];
	const struct ibv_wc *want = &h->wc[cq][h->got[cq]];
	const struct {
		const char *name;
		uint64_t is, wanted;
	} field[] = {
#define FIELD(f) { #f, wc->f, want->f }
		FIELD(status),	       FIELD(wr_id),	FIELD(opcode),
		FIELD(vendor_err),     FIELD(byte_len), FIELD(imm_data),
		FIELD(qp_num),	       FIELD(src_qp),	FIELD(wc_flags),
		FIELD(pkey_index),     FIELD(slid),	FIELD(sl),
		FIELD(dlid_path_bits),
#undef FIELD
	};
	const char *where = cq == SEND ? "send" : "receive";

	if (h->got[cq] == h->wcs[cq]) {
		lane_failed(l, "%s: one more %s completion: wr_id %#lx, %s",
			    role_names[role], where, (unsigned long)wc->wr_id,
			    ibv_wc_status_str(wc->status));
		return;
	}
	for (size_t i = 0; i < sizeof(field) / sizeof(field[0]); i++) {
		if (field[i].is == field[i].wanted)
			continue;
		lane_failed(l, "%s: %s completion %d: %s is %#lx, not %#lx",
			    role_names[role], where, h->got[cq], field[i].name,
			    (unsigned long)field[i].is,
			    (unsigned long)field[i].wanted);
		break;
	}
	h->got[cq]++;
}

void memory_check(struct rig *rig, struct lane *l)
{
	const size_t slot = slot_size(l->c);

	(void)rig;
	for (int role = 0; role < 2; role++) {
		const struct half *h = &l->half[role];

		for (size_t i = 0; i < 2 * SLOTS * slot; i++) {
			if (h->mem[i] == h->want[i])
				continue;
			lane_failed(l,
				    "%s: %s slot %zu, byte %zu is %#x, not %#x",
				    role_names[role],
				    i < SLOTS * slot ? "sent" : "received",
				    i / slot % SLOTS, i % slot,
				    (unsigned char)h->mem[i],
				    (unsigned char)h->want[i]);
			break;
		}
	}
}
