// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Completion events and asynchronous events
 */
#include "app.h"

static struct ibv_context *ctx, *real_ctx;
static struct ibv_pd *pd;
static int own[3]; /* their addresses are the application's contexts */

static void test_completion(void)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = 1, .cq_context = &own[1] };
	struct ibv_comp_channel *channel, *other, *real, *real_other;
	struct ibv_cq *plain, *extended, *elsewhere, *cq;
	struct ibv_cq *real_plain, *real_extended, *real_elsewhere;
	void *context;

	puts("completion events");
	channel = ibv_create_comp_channel(ctx);
	real = fake_newest(FAKE_CHANNEL);
	other = ibv_create_comp_channel(ctx);
	real_other = fake_newest(FAKE_CHANNEL);
	MUST(channel && other);
	plain = ibv_create_cq(ctx, 1, &own[0], channel, 0);
	real_plain = fake_newest(FAKE_CQ);
	attr.channel = channel;
	extended = ibv_cq_ex_to_cq(ibv_create_cq_ex(ctx, &attr));
	real_extended = fake_newest(FAKE_CQ);
	elsewhere = ibv_create_cq(ctx, 1, NULL, other, 0);
	real_elsewhere = fake_newest(FAKE_CQ);
	MUST(plain && extended && elsewhere);

	fake_fail("ibv_get_cq_event", EINTR);
	FAILS_WITH(EINTR, !ibv_get_cq_event(channel, &cq, &context));
	FAILS_WITH(EAGAIN, !ibv_get_cq_event(channel, &cq, &context));

	fake_cq_event(real_plain);
	fake_cq_event(real_elsewhere);
	fake_cq_event(real_extended);
	CHECK(!ibv_get_cq_event(channel, &cq, &context));
	SAW("ibv_get_cq_event", real);
	CHECK(cq == plain && context == &own[0]);
	CHECK(!ibv_get_cq_event(channel, &cq, &context));
	CHECK(cq == extended && context == &own[1]);
	CHECK(!ibv_get_cq_event(other, &cq, &context));
	SAW("ibv_get_cq_event", real_other);
	CHECK(cq == elsewhere && !context);

	ibv_ack_cq_events(plain, 3);
	SAW("ibv_ack_cq_events", real_plain, 3);
	ibv_ack_cq_events(extended, 1);
	SAW("ibv_ack_cq_events", real_extended, 1);

	CHECK(!ibv_destroy_cq(plain));
	CHECK(!ibv_destroy_cq(extended));
	CHECK(!ibv_destroy_cq(elsewhere));
	CHECK(!ibv_destroy_comp_channel(channel));
	CHECK(!ibv_destroy_comp_channel(other));
}

/* an event of the real object comes with the application's, and goes back */
static void check_event(enum ibv_event_type type, void *real, void *app)
{
	struct ibv_async_event event = { .event_type = type };

	event.element.cq = real;
	fake_async_event(real_ctx, &event);
	memset(&event, 0, sizeof(event));
	CHECK(!ibv_get_async_event(ctx, &event), "type %d", type);
	SAW("ibv_get_async_event", real_ctx);
	CHECK(event.event_type == type);
	CHECK(event.element.cq == app, "type %d", type);
	ibv_ack_async_event(&event);
	SAW("ibv_ack_async_event", real, type);
	/* it is the application's and may be used again */
	CHECK(event.element.cq == app && event.event_type == type);
}

static void check_port(enum ibv_event_type type)
{
	struct ibv_async_event event = { .event_type = type };

	event.element.port_num = 2;
	fake_async_event(real_ctx, &event);
	memset(&event, 0, sizeof(event));
	CHECK(!ibv_get_async_event(ctx, &event));
	CHECK(event.event_type == type && event.element.port_num == 2);
	ibv_ack_async_event(&event);
	SAW("ibv_ack_async_event", 2, type);
}

static void test_async(void)
{
	static const enum ibv_event_type of_qp[] = {
		IBV_EVENT_QP_FATAL,   IBV_EVENT_QP_REQ_ERR,
		IBV_EVENT_COMM_EST,   IBV_EVENT_QP_ACCESS_ERR,
		IBV_EVENT_PATH_MIG,   IBV_EVENT_PATH_MIG_ERR,
		IBV_EVENT_SQ_DRAINED, IBV_EVENT_QP_LAST_WQE_REACHED,
	};
	static const enum ibv_event_type of_port[] = {
		IBV_EVENT_DEVICE_FATAL,	     IBV_EVENT_PORT_ACTIVE,
		IBV_EVENT_PORT_ERR,	     IBV_EVENT_LID_CHANGE,
		IBV_EVENT_PKEY_CHANGE,	     IBV_EVENT_SM_CHANGE,
		IBV_EVENT_CLIENT_REREGISTER, IBV_EVENT_GID_CHANGE,
	};
	struct ibv_xrcd_init_attr xrcd_attr = { 0 };
	struct ibv_srq_init_attr srq_attr = { .srq_context = &own[1] };
	struct ibv_srq_init_attr_ex srq_ex = {
		.srq_context = &own[1],
		.srq_type = IBV_SRQT_XRC,
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE,
	};
	struct ibv_cq_init_attr_ex cq_ex_attr = { .cq_context = &own[0] };
	struct ibv_qp_init_attr attr = { .qp_context = &own[2] };
	struct ibv_qp_init_attr_ex ex = { .qp_context = &own[2] };
	struct ibv_qp_open_attr open = { .comp_mask = IBV_QP_OPEN_ATTR_XRCD };
	struct ibv_wq_init_attr wq_attr = { .max_wr = 1 };
	struct ibv_srq *srq, *srqx, *real_srq, *real_srqx;
	struct ibv_cq *cq, *cqx, *real_cq, *real_cqx;
	struct ibv_qp *qps[3], *real_qps[3];
	struct ibv_async_event event;
	struct ibv_xrcd *xrcd;
	struct ibv_wq *wq;

	puts("asynchronous events");
	cq = ibv_create_cq(ctx, 1, &own[0], NULL, 0);
	real_cq = fake_newest(FAKE_CQ);
	cqx = ibv_cq_ex_to_cq(ibv_create_cq_ex(ctx, &cq_ex_attr));
	real_cqx = fake_newest(FAKE_CQ);
	srq = ibv_create_srq(pd, &srq_attr);
	real_srq = fake_newest(FAKE_SRQ);
	srqx = ibv_create_srq_ex(ctx, &srq_ex);
	real_srqx = fake_newest(FAKE_SRQ);
	MUST(cq && cqx && srq && srqx);
	attr.send_cq = attr.recv_cq = ex.send_cq = ex.recv_cq = cq;
	attr.qp_type = ex.qp_type = IBV_QPT_RC;
	ex.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	ex.pd = pd;
	qps[0] = ibv_create_qp(pd, &attr);
	real_qps[0] = fake_newest(FAKE_QP);
	qps[1] = ibv_create_qp_ex(ctx, &ex);
	real_qps[1] = fake_newest(FAKE_QP);
	xrcd = ibv_open_xrcd(ctx, &xrcd_attr);
	MUST(xrcd);
	open.xrcd = xrcd;
	qps[2] = ibv_open_qp(ctx, &open);
	real_qps[2] = fake_newest(FAKE_QP);
	wq_attr.pd = pd;
	wq_attr.cq = cq;
	wq = ibv_create_wq(ctx, &wq_attr);
	MUST(qps[0] && qps[1] && qps[2] && wq);

	fake_fail("ibv_get_async_event", EINTR);
	FAILS_WITH(EINTR, !ibv_get_async_event(ctx, &event));

	check_event(IBV_EVENT_CQ_ERR, real_cq, cq);
	check_event(IBV_EVENT_CQ_ERR, real_cqx, cqx);
	check_event(IBV_EVENT_SRQ_ERR, real_srq, srq);
	check_event(IBV_EVENT_SRQ_LIMIT_REACHED, real_srqx, srqx);
	for (int q = 0; q < 3; q++)
		for (size_t i = 0; i < sizeof(of_qp) / sizeof(*of_qp); i++)
			check_event(of_qp[i], real_qps[q], qps[q]);
	check_event(IBV_EVENT_WQ_FATAL, wq, wq);
	for (size_t i = 0; i < sizeof(of_port) / sizeof(*of_port); i++)
		check_port(of_port[i]);
	CHECK(cq->cq_context == &own[0] && srq->srq_context == &own[1]);
	CHECK(qps[0]->qp_context == &own[2] && qps[1]->qp_context == &own[2]);

	CHECK(!ibv_destroy_wq(wq));
	for (int q = 0; q < 3; q++)
		CHECK(!ibv_destroy_qp(qps[q]));
	CHECK(!ibv_close_xrcd(xrcd));
	CHECK(!ibv_destroy_srq(srq) && !ibv_destroy_srq(srqx));
	CHECK(!ibv_destroy_cq(cq) && !ibv_destroy_cq(cqx));
}

int main(void)
{
	ctx = app_open(0);
	real_ctx = fake_newest(FAKE_CONTEXT);
	pd = ibv_alloc_pd(ctx);
	MUST(pd);
	test_completion();
	test_async();
	CHECK(!ibv_dealloc_pd(pd));
	app_close(ctx);
	return app_end();
}
