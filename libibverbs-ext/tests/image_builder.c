// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include <infiniband/verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_rxe.h>

#include "image_builder.h"

_Static_assert(!(S_CQE & (S_CQE + 1)), "also the index mask");

#define RING_GAP 0x100000ULL

uint32_t builder_log2_elem(size_t size)
{
	uint32_t log2 = 6;

	while ((size_t)1 << log2 < size)
		log2++;
	return log2;
}

static uint32_t ring_slots(uint32_t entries)
{
	uint32_t slots = 1;

	while (slots < entries + 1)
		slots <<= 1;
	return slots;
}

uint32_t builder_mmap_size(uint32_t entries, uint32_t log2_elem)
{
	uint32_t size = sizeof(struct rxe_queue_buf) +
			(ring_slots(entries) << log2_elem);

	return (size + 4095) & ~4095U;
}

size_t builder_send_size(uint32_t sge, uint32_t inline_data)
{
	size_t size = sge * sizeof(struct rxe_sge);

	if (inline_data > size)
		size = inline_data;
	return sizeof(struct rxe_send_wqe) + size;
}

size_t builder_recv_size(uint32_t sge)
{
	return sizeof(struct rxe_recv_wqe) + sge * sizeof(struct rxe_sge);
}

static void *append(struct builder *b, size_t length)
{
	void *at;

	while (b->length + length > b->room) {
		b->room = b->room ? 2 * b->room : 4096;
		b->data = realloc(b->data, b->room);
		if (!b->data)
			abort();
	}
	at = b->data + b->length;
	memset(at, 0, length);
	b->length += length;
	return at;
}

void *builder_add(struct builder *b, uint32_t type, uint32_t handle,
		  size_t length)
{
	struct rxe_migr_rec *rec = append(b, length);

	rec->type = type;
	rec->length = (uint32_t)length;
	rec->handle = handle;
	if (type == RXE_MIGR_CQ || type == RXE_MIGR_QP)
		rec->user_handle = 0x7f0000001000ULL + 64 * handle;
	return rec;
}

void builder_start(struct builder *b, uint32_t max_handle)
{
	struct rxe_migr_rec_context *ctx;
	struct rxe_migr_image_hdr *hdr;

	memset(b, 0, sizeof(*b));
	hdr = append(b, sizeof(*hdr));
	memcpy(hdr->magic, RXE_MIGR_MAGIC, sizeof(hdr->magic));
	hdr->version = RXE_MIGR_IMAGE_VERSION;
	hdr->hdr_length = sizeof(*hdr);

	ctx = builder_add(b, RXE_MIGR_CONTEXT, 0, sizeof(*ctx));
	strcpy(ctx->device, "rxe0");
	ctx->max_handle = max_handle;
}

void builder_pd(struct builder *b, uint32_t handle)
{
	builder_add(b, RXE_MIGR_PD, handle, sizeof(struct rxe_migr_rec_pd));
}

static void fill_ring(struct rxe_migr_ring *ring, uint64_t place,
		      uint32_t entries, size_t elem, uint32_t slots)
{
	ring->log2_elem = builder_log2_elem(elem);
	ring->index_mask = ring_slots(entries) - 1;
	ring->mmap_offset = place * RING_GAP;
	ring->mmap_size = builder_mmap_size(entries, ring->log2_elem);
	ring->slots = slots;
}

void builder_cq(struct builder *b, uint32_t handle, uint32_t consumer,
		uint32_t producer)
{
	const size_t elem =
		sizeof(struct ib_uverbs_wc) + 40; /* as the kernel's */
	uint32_t slots = (producer - consumer) & S_CQE, i;
	struct rxe_migr_rec_cq *cq;

	cq = builder_add(b, RXE_MIGR_CQ, handle,
			 sizeof(*cq) +
				 ((size_t)slots << builder_log2_elem(elem)));
	cq->cqe = S_CQE;
	cq->comp_channel = RXE_MIGR_NO_HANDLE;
	cq->notify = 2;
	fill_ring(&cq->ring, 4 * handle + 1, S_CQE, elem, slots);
	cq->ring.consumer = consumer;
	cq->ring.producer = producer;
	for (i = 0; i < slots; i++)
		memset((char *)(cq + 1) + (i << cq->ring.log2_elem), 0x40 + i,
		       sizeof(struct ib_uverbs_wc));
}

/* both CQs of the sample have one channel, known by the first */
static void builder_events(struct builder *b)
{
	static const uint32_t comp[] = { S_CQ_WRAPPED, S_CQ, S_CQ_WRAPPED };
	static const struct rxe_migr_event events[] = {
		{ IBV_EVENT_CQ_ERR, S_CQ },
		{ IBV_EVENT_SQ_DRAINED, S_QP_SQD },
		{ IBV_EVENT_PORT_ACTIVE, 1 },
	};
	struct rxe_migr_rec_comp_channel *channel;
	struct rxe_migr_rec_async_fd *async;
	struct rxe_migr_rec_cq *cq;

	cq = (void *)builder_find(b->data, b->length, S_CQ);
	cq->comp_channel = S_CQ;
	cq = (void *)builder_find(b->data, b->length, S_CQ_WRAPPED);
	cq->comp_channel = S_CQ;
	channel = builder_add(b, RXE_MIGR_COMP_CHANNEL, 0,
			      sizeof(*channel) + sizeof(comp) + 4);
	channel->cq = S_CQ;
	channel->events = 3;
	memcpy(channel + 1, comp, sizeof(comp));
	async = builder_add(b, RXE_MIGR_ASYNC_FD, 0,
			    sizeof(*async) + sizeof(events));
	async->events = 3;
	memcpy(async + 1, events, sizeof(events));
}

void builder_no_channel(struct builder *b)
{
	static const uint32_t cqs[] = { S_CQ, S_CQ_WRAPPED };
	struct rxe_migr_rec_cq *cq;

	for (int i = 0; i < 2; i++) {
		cq = (void *)builder_find(b->data, b->length, cqs[i]);
		cq->comp_channel = RXE_MIGR_NO_HANDLE;
	}
	builder_find_type(b->data, b->length, RXE_MIGR_COMP_CHANNEL)->type =
		77 | RXE_MIGR_SKIPPABLE;
	builder_seal(b->data, b->length);
}

void builder_mr(struct builder *b, uint32_t handle, uint32_t pd, uint32_t key)
{
	struct rxe_migr_rec_mr *mr =
		builder_add(b, RXE_MIGR_MR, handle, sizeof(*mr));

	mr->pd = pd;
	mr->key = key;
	mr->wire_key = key;
	mr->access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
		     IBV_ACCESS_REMOTE_READ | IBV_ACCESS_MW_BIND;
	mr->start = 0x7f1234561040ULL;
	mr->size = 0x12345;
	mr->iova = mr->start;
}

void builder_mws(struct builder *b)
{
	static const struct {
		uint32_t handle, type, state, qp;
		uint64_t size;
	} mws[] = {
		{ S_MW_BOUND, 1, 2, RXE_MIGR_NO_HANDLE, 0x12345 },
		{ S_MW_UNBOUND, 1, 2, RXE_MIGR_NO_HANDLE, 0 },
		{ S_MW_OF_QP, 2, 2, S_QP_SQD, 0x1000 },
		{ S_MW_FREE, 2, 1, RXE_MIGR_NO_HANDLE, 0 },
	};
	struct rxe_migr_rec_mw *mw;
	uint32_t i;

	for (i = 0; i < sizeof(mws) / sizeof(mws[0]); i++) {
		mw = builder_add(b, RXE_MIGR_MW, mws[i].handle, sizeof(*mw));
		mw->pd = S_PD2;
		mw->mw_type = mws[i].type;
		mw->rkey = mw->wire_key = S_MW_KEY + 0x101 * i;
		mw->state = mws[i].state;
		mw->mr = RXE_MIGR_NO_HANDLE;
		mw->qp = mws[i].qp;
		if (!mws[i].size)
			continue;
		mw->access = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
		mw->mr = S_MR2;
		mw->addr = 0x7f1234561040ULL;
		mw->size = mws[i].size;
	}
}

static void fill_dma(struct rxe_dma_info *dma, uint32_t resid)
{
	dma->length = 3000;
	dma->resid = resid;
	dma->num_sge = S_SGE;
	dma->sge[0].length = 1000;
	dma->sge[1].length = 2000;
	if (resid < 2000)
		dma->cur_sge = 1;
}

static uint32_t send_opcode(const struct rxe_migr_rec_qp *qp)
{
	return qp->qp_type == IBV_QPT_UD ? IBV_WR_SEND : IBV_WR_RDMA_WRITE;
}

static void fill_resources(struct rxe_migr_rec_qp *qp)
{
	struct rxe_migr_res *res = (void *)(qp + 1);

	if (!qp->max_dest_rd_atomic)
		return;
	res[1].kind = RXE_MIGR_RES_READ;
	res[1].first_psn = 0x100;
	res[1].last_psn = 0x103;
	res[1].cur_psn = 0x102;
	res[2].kind = RXE_MIGR_RES_ATOMIC;
}

static void fill_recv_wqe(struct rxe_migr_recv_wqe *wqe)
{
	wqe->valid = 1;
	wqe->num_sge = S_SGE;
	wqe->cur_sge = 1;
	wqe->length = 3000;
	wqe->resid = 1000;
	wqe->sge[0].length = 1000;
	wqe->sge[1].length = 2000;
	wqe->sge_offset = 1000;
}

static void fill_content(struct rxe_migr_rec_qp *qp)
{
	struct rxe_migr_res *res = (void *)(qp + 1);
	char *sq = (char *)(res + qp->max_dest_rd_atomic);
	char *rq = sq + ((size_t)qp->sq.slots << qp->sq.log2_elem);
	struct rxe_send_wqe *send;
	struct rxe_recv_wqe *recv;
	uint32_t i;

	fill_resources(qp);
	for (i = 0; i < qp->sq.slots; i++) {
		send = (void *)(sq + (i << qp->sq.log2_elem));
		send->wr.opcode = send_opcode(qp);
		if (qp->qp_type == IBV_QPT_UD)
			send->wr.wr.ud.ah_num = S_AH_NUM;
		fill_dma(&send->dma, i ? 3000 : 500);
	}
	for (i = 0; i < qp->rq.slots; i++) {
		recv = (void *)(rq + (i << qp->rq.log2_elem));
		recv->wr_id = i;
		fill_dma(&recv->dma, 3000);
	}
	if (qp->qp_type != IBV_QPT_UD)
		fill_recv_wqe(&qp->wqe);
}

static void fill_path(struct rxe_migr_rec_qp *qp, int ipv6)
{
	static const uint8_t v4[16] = { [10] = 0xff, 0xff, 10, 0, 0, 7 };
	static const uint8_t v6[16] = { 0xfd, 0x01, [15] = 7 };

	memcpy(qp->dgid, ipv6 ? v6 : v4, 16);
	memcpy(qp->sgid, ipv6 ? v6 : v4, 16);
	qp->sgid[15] = 1;
	qp->network_type = ipv6 ? RXE_NETWORK_TYPE_IPV6 : RXE_NETWORK_TYPE_IPV4;
	qp->sgid_index = 1;
	qp->hop_limit = 64;
	qp->dest_qpn = 0x77;
	qp->udp_sport = 0xc123;
	qp->life = 0x0123456789abcdef;
}

void builder_srq(struct builder *b, uint32_t handle, uint32_t pd, uint32_t num)
{
	const size_t recv = builder_recv_size(S_SGE);
	struct rxe_migr_rec_srq *srq;

	srq = builder_add(b, RXE_MIGR_SRQ, handle,
			  sizeof(*srq) + ((size_t)S_RQ_SLOTS
					  << builder_log2_elem(recv)));
	srq->pd = pd;
	srq->srq_num = num;
	srq->max_wr = S_WR;
	srq->max_sge = S_SGE;
	srq->limit = 3;
	fill_ring(&srq->ring, 4 * handle + 1, S_WR, recv, S_RQ_SLOTS);
	srq->ring.consumer = 2;
	srq->ring.producer = 6;
}

void builder_qp(struct builder *b, const struct builder_qp *q)
{
	const size_t send = builder_send_size(S_SGE, S_INLINE);
	const size_t recv = builder_recv_size(S_SGE);
	const uint32_t resources = q->type ? 0 : S_RD_ATOMIC;
	struct rxe_migr_rec_qp *qp;
	size_t rq = (size_t)S_RQ_SLOTS << builder_log2_elem(recv);
	size_t length = sizeof(*qp) + resources * sizeof(struct rxe_migr_res) +
			((size_t)S_SQ_SLOTS << builder_log2_elem(send)) +
			(q->has_srq ? 0 : rq);

	qp = builder_add(b, RXE_MIGR_QP, q->handle, length);
	qp->pd = q->pd;
	qp->send_cq = q->send_cq;
	qp->recv_cq = q->recv_cq;
	qp->qpn = q->qpn;
	qp->wire_qpn = q->qpn;
	qp->qp_type = q->type ? q->type : IBV_QPT_RC;
	qp->max_send_wr = S_WR;
	qp->max_send_sge = S_SGE;
	qp->max_inline_data = S_INLINE;
	qp->state = q->state;
	qp->access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
	qp->port_num = 1;
	qp->path_mtu = IBV_MTU_1024;
	qp->rq_psn = 0x123456;
	qp->sq_psn = 0xfffffe;
	qp->max_dest_rd_atomic = resources;
	qp->min_rnr_timer = 12;
	qp->timeout = 14;
	qp->retry_cnt = 6;
	qp->rnr_retry = 7;
	qp->sq_draining = q->state == IBV_QPS_SQD;
	if (q->type == IBV_QPT_UD)
		qp->qkey = 0x11111111;
	else if (q->state >= IBV_QPS_RTR)
		fill_path(qp, q->ipv6);
	qp->epoch = 3;
	qp->req_psn = 0xffffff;
	qp->req_opcode = ~0U;
	qp->comp_psn = 0xfffffe;
	if (q->type) {
		qp->comp_opcode = ~0U;
		qp->comp_psn = 0x123; /* of no meaning */
		qp->resp_opcode = q->type == IBV_QPT_UC ? 0x21 : 0x64;
	} else {
		qp->max_rd_atomic = qp->req_rd_atomic = 16;
		qp->comp_opcode = 0x0e; /* in the middle of a READ */
		qp->resp_opcode = 0x01; /* SEND_MIDDLE */
		qp->resp_res_head = 3;
	}
	fill_ring(&qp->sq, 4 * q->handle + 2, S_WR, send, S_SQ_SLOTS);
	qp->sq.producer = S_SQ_SLOTS;
	qp->srq = RXE_MIGR_NO_HANDLE;
	if (q->has_srq) {
		qp->srq = S_SRQ;
	} else {
		qp->max_recv_wr = S_WR;
		qp->max_recv_sge = S_SGE;
		fill_ring(&qp->rq, 4 * q->handle + 3, S_WR, recv, S_RQ_SLOTS);
		qp->rq.producer = 3;
	}
	fill_content(qp);
}

static void builder_ah(struct builder *b, uint32_t handle, uint32_t ah_num,
		       int group)
{
	static const uint8_t v4[16] = { [10] = 0xff, 0xff, 10, 0, 0, 7 };
	static const uint8_t v6[16] = { 0xfd, 0x01, [15] = 1 };
	static const uint8_t mgid[16] = { 0xff, 0x0e, [15] = 5 };
	struct rxe_migr_rec_ah *ah;

	ah = builder_add(b, RXE_MIGR_AH, handle, sizeof(*ah));
	ah->pd = S_PD2;
	ah->ah_num = ah_num;
	memcpy(ah->dgid, group ? mgid : v4, 16);
	memcpy(ah->sgid, group ? v6 : v4, 16);
	ah->sgid[15] = 1;
	ah->network_type =
		group ? RXE_NETWORK_TYPE_IPV6 : RXE_NETWORK_TYPE_IPV4;
	ah->sgid_index = 1;
	ah->hop_limit = 64;
}

void builder_datagrams(struct builder *b)
{
	static const struct builder_qp ud = {
		.handle = S_QP_UD,
		.pd = S_PD2,
		.send_cq = S_CQ,
		.recv_cq = S_CQ,
		.qpn = 0x15,
		.state = IBV_QPS_RTS,
		.type = IBV_QPT_UD,
	};
	static const struct rxe_migr_group groups[] = {
		{ .mgid = { 0xff, 0x0e, [15] = 5 } },
		{ .mgid = { [10] = 0xff, 0xff, 239, 1, 2, 3 }, .mlid = 0xc001 },
	};
	struct rxe_migr_rec_mcast *mcast;

	builder_ah(b, S_AH, S_AH_NUM, 0);
	builder_ah(b, S_AH_GROUP, 0x7fff, 1);
	builder_qp(b, &ud);
	mcast = builder_add(b, RXE_MIGR_MCAST, 0,
			    sizeof(*mcast) + sizeof(groups));
	mcast->qp = S_QP_UD;
	mcast->groups = 2;
	memcpy(mcast + 1, groups, sizeof(groups));
}

void builder_seal(void *data, size_t length)
{
	struct rxe_migr_image_hdr *hdr = data;

	hdr->crc32 = 0;
	hdr->crc32 = (uint32_t)crc32(0, data, (uInt)length);
}

void builder_finish(struct builder *b)
{
	struct rxe_migr_image_hdr *hdr = (void *)b->data;
	struct rxe_migr_rec *rec;
	size_t at;

	hdr->length = b->length;
	hdr->count = 0;
	for (at = hdr->hdr_length; at < b->length; at += rec->length) {
		rec = (void *)(b->data + at);
		hdr->count += rec->type != RXE_MIGR_CONTEXT;
	}
	builder_seal(b->data, b->length);
}

void builder_sample(struct builder *b)
{
	static const struct builder_qp qps[] = {
		{ S_QP_RTS, S_PD, S_CQ, S_CQ_WRAPPED, 0x12, IBV_QPS_RTS, 0, 0,
		  0 },
		{ S_QP_INIT, S_PD2, S_CQ, S_CQ, 0x13, IBV_QPS_INIT, 0, 0, 0 },
		{ S_QP_SQD, S_PD2, S_CQ, S_CQ, 0x9999, IBV_QPS_SQD, 1, 0, 0 },
		{ .handle = S_QP_SRQ,
		  .pd = S_PD2,
		  .send_cq = S_CQ,
		  .recv_cq = S_CQ,
		  .qpn = 0x14,
		  .state = IBV_QPS_RTR,
		  .has_srq = 1 },
		{ .handle = S_QP_UC,
		  .pd = S_PD2,
		  .send_cq = S_CQ,
		  .recv_cq = S_CQ,
		  .qpn = 0x16,
		  .state = IBV_QPS_RTS,
		  .type = IBV_QPT_UC },
	};
	size_t i;

	builder_start(b, S_MAX_HANDLE);
	builder_pd(b, S_PD);
	builder_pd(b, S_PD2);
	builder_cq(b, S_CQ, 3, 7);
	builder_cq(b, S_CQ_WRAPPED, 14, 2);
	builder_mr(b, S_MR, S_PD, 0x4321ab);
	builder_add(b, 1000 | RXE_MIGR_SKIPPABLE, S_MAX_HANDLE + 5,
		    40); /* of a later time */
	builder_mr(b, S_MR_EARLY, S_PD2, 0x1ff);
	builder_mr(b, S_MR2, S_PD2, 0x2ff);
	for (i = 0; i < sizeof(qps) / sizeof(qps[0]); i++)
		builder_qp(b, &qps[i]);
	builder_srq(b, S_SRQ, S_PD2, S_SRQ_NUM);
	builder_mws(b);
	builder_datagrams(b);
	builder_events(b);
	builder_finish(b);
}

void builder_free(struct builder *b)
{
	free(b->data);
	memset(b, 0, sizeof(*b));
}

/* an object by its handle, or what has none by its type */
static struct rxe_migr_rec *find(void *data, size_t length, uint32_t handle,
				 uint32_t type)
{
	struct rxe_migr_image_hdr *hdr = data;
	struct rxe_migr_rec *rec;
	bool object;
	size_t at;

	for (at = hdr->hdr_length; at < length; at += rec->length) {
		rec = (void *)((char *)data + at);
		object = rec->type != RXE_MIGR_CONTEXT &&
			 rec->type != RXE_MIGR_MCAST &&
			 rec->type != RXE_MIGR_COMP_CHANNEL &&
			 rec->type != RXE_MIGR_ASYNC_FD;
		if (type ? rec->type == type : object && rec->handle == handle)
			return rec;
	}
	return NULL;
}

struct rxe_migr_rec *builder_find(void *data, size_t length, uint32_t handle)
{
	return find(data, length, handle, 0);
}

struct rxe_migr_rec *builder_find_type(void *data, size_t length, uint32_t type)
{
	return find(data, length, 0, type);
}
