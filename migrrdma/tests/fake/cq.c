// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Channels and CQs */
#include "inner.h"

#include <errno.h>
#include <unistd.h>

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *ctx)
{
	struct ibv_comp_channel *channel;

	OWN(CONTEXT, ctx);
	ENTER_OR(NULL, ctx);
	COMMAND_OR(NULL, ctx);
	channel = make(FAKE_CHANNEL, sizeof(*channel));
	channel->context = ctx;
	channel->fd = open_fd();
	return channel;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	OWN(CHANNEL, channel);
	ENTER_ERR(channel);
	close(channel->fd);
	DESTROY(CHANNEL, channel);
	return 0;
}

int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq,
		     void **cq_context)
{
	struct item item;

	OWN(CHANNEL, channel);
	ENTER_OR(-1, channel);
	if (!get(&cq_events, channel, &item)) {
		errno = EAGAIN;
		return -1;
	}
	unring(channel->fd);
	*cq = item.event.element.cq;
	OWN(CQ, *cq);
	*cq_context = (*cq)->cq_context;
	return 0;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int nevents)
{
	OWN(CQ, cq);
	ENTER(cq, nevents);
}

static struct fake_cq *new_cq(struct ibv_context *ctx, int cqe,
			      void *cq_context,
			      struct ibv_comp_channel *channel)
{
	struct fake_cq *cq = make(FAKE_CQ, sizeof(*cq));

	cq->ex.context = ctx;
	cq->ex.channel = channel;
	cq->ex.cq_context = cq_context;
	cq->ex.handle = new_handle();
	cq->ex.cqe = fake_small ? cqe / 2 : fake_exact ? cqe : cqe + 1;
	return cq;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *ctx, int cqe, void *cq_context,
			     struct ibv_comp_channel *channel, int comp_vector)
{
	OWN(CONTEXT, ctx);
	OWN_OR_NULL(CHANNEL, channel);
	KEEP(cqs, fake_last.cqs + 1);
	ENTER_OR(NULL, ctx, cqe, channel, comp_vector);
	COMMAND_OR(NULL, ctx);
	return ibv_cq_ex_to_cq(&new_cq(ctx, cqe, cq_context, channel)->ex);
}

static struct fake_cq *ex_of(struct ibv_cq_ex *ex, const char *call)
{
	struct fake_cq *cq = (struct fake_cq *)ex;

	own(FAKE_CQ, ex, call);
	if (!cq->extended)
		die("%s: a plain CQ", call);
	return cq;
}

static int take(struct fake_cq *cq)
{
	struct item item;

	if (!get(&completions, cq, &item))
		return ENOENT;
	cq->polling = true;
	cq->wc = item.wc;
	cq->ex.wr_id = item.wc.wr_id;
	cq->ex.status = item.wc.status;
	return 0;
}

static int start_poll(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
	struct fake_cq *cq = ex_of(ex, __func__);

	ENTER_ERR(ex, attr);
	if (cq->polling)
		die("start_poll: twice");
	return take(cq);
}

static int next_poll(struct ibv_cq_ex *ex)
{
	struct fake_cq *cq = ex_of(ex, __func__);

	ENTER_ERR(ex);
	if (!cq->polling)
		die("next_poll: without start");
	return take(cq);
}

static void end_poll(struct ibv_cq_ex *ex)
{
	struct fake_cq *cq = ex_of(ex, __func__);

	ENTER(ex);
	if (!cq->polling)
		die("end_poll: without start");
	cq->polling = false;
}

#define READ(type, name, value)                           \
	static type name(struct ibv_cq_ex *ex)            \
	{                                                 \
		struct fake_cq *cq = ex_of(ex, __func__); \
                                                          \
		ENTER(ex);                                \
		return (type)(value);                     \
	}
READ(enum ibv_wc_opcode, read_opcode, cq->wc.opcode)
READ(uint32_t, read_vendor_err, cq->wc.vendor_err)
READ(uint32_t, read_byte_len, cq->wc.byte_len)
READ(__be32, read_imm_data, cq->wc.imm_data)
READ(uint32_t, read_qp_num, cq->wc.qp_num)
READ(uint32_t, read_src_qp, cq->wc.src_qp)
READ(unsigned int, read_wc_flags, cq->wc.wc_flags)
READ(uint32_t, read_slid, cq->wc.slid)
READ(uint8_t, read_sl, cq->wc.sl)
READ(uint8_t, read_dlid_path_bits, cq->wc.dlid_path_bits)
/* the rest is made of the id, each in its own way */
READ(uint64_t, read_completion_ts, cq->wc.wr_id << 32 | 1)
READ(uint16_t, read_cvlan, cq->wc.wr_id + 2)
READ(uint32_t, read_flow_tag, cq->wc.wr_id + 3)
READ(uint64_t, read_completion_wallclock_ns, cq->wc.wr_id << 32 | 4)

static void read_tm_info(struct ibv_cq_ex *ex, struct ibv_wc_tm_info *info)
{
	struct fake_cq *cq = ex_of(ex, __func__);

	ENTER(ex, info);
	info->tag = cq->wc.wr_id + 5;
	info->priv = (uint32_t)cq->wc.wr_id + 6;
}

static struct ibv_cq_ex *create_cq_ex(struct ibv_context *ctx,
				      struct ibv_cq_init_attr_ex *attr)
{
	struct fake_cq *cq;
	struct ibv_cq_ex *ex;

	OWN(CONTEXT, ctx);
	OWN_OR_NULL(CHANNEL, attr->channel);
	if (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD)
		OWN(PD, attr->parent_domain);
	KEEP(cq, *attr);
	KEEP(cqs, fake_last.cqs + 1);
	ENTER_OR(NULL, ctx);
	COMMAND_OR(NULL, ctx);
	cq = new_cq(ctx, (int)attr->cqe, attr->cq_context, attr->channel);
	cq->extended = true;
	ex = &cq->ex;
	ex->comp_mask = 0x70;
	ex->start_poll = start_poll;
	ex->next_poll = next_poll;
	ex->end_poll = end_poll;
	ex->read_opcode = read_opcode;
	ex->read_vendor_err = read_vendor_err;
	ex->read_wc_flags = read_wc_flags;
#define FOR(flag, op)                                  \
	do {                                           \
		if (attr->wc_flags & IBV_WC_EX_##flag) \
			ex->op = op;                   \
	} while (0)
	FOR(WITH_BYTE_LEN, read_byte_len);
	FOR(WITH_IMM, read_imm_data);
	FOR(WITH_QP_NUM, read_qp_num);
	FOR(WITH_SRC_QP, read_src_qp);
	FOR(WITH_SLID, read_slid);
	FOR(WITH_SL, read_sl);
	FOR(WITH_DLID_PATH_BITS, read_dlid_path_bits);
	FOR(WITH_COMPLETION_TIMESTAMP, read_completion_ts);
	FOR(WITH_CVLAN, read_cvlan);
	FOR(WITH_FLOW_TAG, read_flow_tag);
	FOR(WITH_TM_INFO, read_tm_info);
	FOR(WITH_COMPLETION_TIMESTAMP_WALLCLOCK, read_completion_wallclock_ns);
#undef FOR
	return ex;
}

int ibv_resize_cq(struct ibv_cq *cq, int cqe)
{
	OWN(CQ, cq);
	ENTER_ERR(cq, cqe);
	cq->cqe = cqe + 1;
	return 0;
}

static int modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr)
{
	OWN(CQ, cq);
	ENTER_ERR(cq, attr);
	KEEP(moderate, attr->moderate);
	return 0;
}

int ibv_destroy_cq(struct ibv_cq *cq)
{
	OWN(CQ, cq);
	ENTER_ERR(cq);
	purge(&cq_events, cq);
	purge(&completions, cq);
	DESTROY(CQ, cq);
	return 0;
}

static int poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc)
{
	struct item item;
	int n;

	OWN(CQ, cq);
	ENTER_OR(-1, cq, num_entries, wc);
	for (n = 0; n < num_entries && get(&completions, cq, &item); n++)
		wc[n] = item.wc;
	return n;
}

void (*fake_armed_hook)(struct ibv_cq *real);

static int req_notify_cq(struct ibv_cq *cq, int solicited_only)
{
	OWN(CQ, cq);
	ENTER_ERR(cq, solicited_only);
	pthread_mutex_lock(&lock);
	((struct fake_cq *)cq)->armed = solicited_only ? 2 : 1;
	pthread_mutex_unlock(&lock);
	if (fake_armed_hook)
		fake_armed_hook(cq);
	return 0;
}

void cq_ops(struct verbs_context *v)
{
	v->context.ops.poll_cq = poll_cq;
	v->context.ops.req_notify_cq = req_notify_cq;
	v->modify_cq = modify_cq;
	v->create_cq_ex = create_cq_ex;
}
