// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Channels, completion queues, shared receive queues and queue pairs: how they
 * are made, changed and destroyed
 */
#include "app.h"

static struct ibv_context *ctx, *real_ctx;
static struct ibv_pd *pd, *real_pd;
static struct ibv_cq *cq, *real_cq;
static struct ibv_srq *srq, *real_srq;
static int own; /* its address is the application's context of objects */

static void test_channel(void)
{
	struct ibv_comp_channel *channel, *real;

	puts("channels");
	fake_fail("ibv_create_comp_channel", EMFILE);
	FAILS_WITH(EMFILE, ibv_create_comp_channel(ctx));
	channel = ibv_create_comp_channel(ctx);
	real = fake_newest(FAKE_CHANNEL);
	MUST(channel && channel != real);
	SAW("ibv_create_comp_channel", real_ctx);
	CHECK(channel->context == ctx && channel->fd == real->fd);
	fake_fail("ibv_destroy_comp_channel", EBUSY);
	CHECK(ibv_destroy_comp_channel(channel) == EBUSY);
	CHECK(channel->context == ctx && channel->fd == real->fd);
	CHECK(!ibv_destroy_comp_channel(channel));
	SAW("ibv_destroy_comp_channel", real);
}

static void check_cq(struct ibv_cq *c, struct ibv_comp_channel *channel)
{
	struct ibv_cq *real = fake_newest(FAKE_CQ);

	MUST(c && c != real);
	CHECK(c->context == ctx && c->channel == channel);
	CHECK(c->cq_context == &own);
	CHECK(c->handle == real->handle && c->handle);
	CHECK(c->cqe == real->cqe);
	/* it may lock this */
	CHECK(!pthread_mutex_lock(&c->mutex));
	CHECK(!pthread_mutex_unlock(&c->mutex));
}

static void use_cq(struct ibv_cq *c, struct ibv_comp_channel *channel)
{
	struct ibv_cq *real = fake_newest(FAKE_CQ);
	struct ibv_modify_cq_attr attr = { 0 };

	check_cq(c, channel);
	CHECK(!ibv_resize_cq(c, 100));
	SAW("ibv_resize_cq", real, 100);
	CHECK(c->cqe == 101);
	fake_fail("ibv_resize_cq", ENOMEM);
	CHECK(ibv_resize_cq(c, 200) == ENOMEM);
	CHECK(c->cqe == 101);
	CHECK(!ibv_modify_cq(c, &attr));
	SAW("modify_cq", real, &attr);
	fake_fail("modify_cq", EINVAL);
	CHECK(ibv_modify_cq(c, &attr) == EINVAL);
	CHECK(!ibv_req_notify_cq(c, 1));
	SAW("req_notify_cq", real, 1);
	fake_fail("req_notify_cq", EIO);
	CHECK(ibv_req_notify_cq(c, 0) == EIO);

	fake_fail("ibv_destroy_cq", EBUSY);
	CHECK(ibv_destroy_cq(c) == EBUSY);
	check_cq(c, channel);
	CHECK(!ibv_destroy_cq(c));
	SAW("ibv_destroy_cq", real);
}

static void test_cq(void)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = 7, .cq_context = &own };
	struct ibv_parent_domain_init_attr parent = { .pd = pd };
	struct ibv_comp_channel *channel, *real_channel;
	struct ibv_cq_init_attr_ex before;
	struct ibv_pd *domain;
	struct ibv_cq_ex *ex;
	struct ibv_cq *c;

	puts("CQs");
	channel = ibv_create_comp_channel(ctx);
	MUST(channel);
	real_channel = fake_newest(FAKE_CHANNEL);
	fake_fail("ibv_create_cq", ENOMEM);
	fake_last.cqs = 0;
	FAILS_WITH(ENOMEM, ibv_create_cq(ctx, 5, &own, channel, 1));
	CHECK(fake_last.cqs == 1); /* nothing is left out in a second try */
	c = ibv_create_cq(ctx, 5, &own, channel, 1);
	SAW("ibv_create_cq", real_ctx, 5, real_channel, 1);
	use_cq(c, channel);
	c = ibv_create_cq(ctx, 5, &own, NULL, 1);
	SAW("ibv_create_cq", real_ctx, 5, NULL, 1);
	use_cq(c, NULL);

	puts("extended CQs");
	fake_fail("create_cq_ex", ENOMEM);
	FAILS_WITH(ENOMEM, ibv_create_cq_ex(ctx, &attr));
	before = attr;
	ex = ibv_create_cq_ex(ctx, &attr);
	MUST(ex);
	SAW("create_cq_ex", real_ctx);
	CHECK(fake_last.cq.cqe == 7);
	CHECK(!memcmp(&attr, &before, sizeof(attr)));
	CHECK(ex->comp_mask == 0x70);
	use_cq(ibv_cq_ex_to_cq(ex), NULL);

	domain = ibv_alloc_parent_domain(ctx, &parent);
	MUST(domain);
	attr.channel = channel;
	attr.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD;
	attr.parent_domain = domain;
	attr.comp_vector = 2;
	attr.wc_flags = IBV_WC_EX_WITH_SL;
	before = attr;
	ex = ibv_create_cq_ex(ctx, &attr);
	MUST(ex);
	CHECK(!memcmp(&attr, &before, sizeof(attr)));
	CHECK(fake_last.cq.channel == real_channel);
	CHECK(fake_last.cq.parent_domain == fake_newest(FAKE_PD));
	CHECK(fake_last.cq.cqe == 7 && fake_last.cq.comp_vector == 2);
	CHECK(ex->read_sl && !ex->read_slid && !ex->read_tm_info);
	use_cq(ibv_cq_ex_to_cq(ex), channel);

	/* without the flag it may be anything */
	attr.comp_mask = 0;
	attr.parent_domain = (struct ibv_pd *)&own;
	ex = ibv_create_cq_ex(ctx, &attr);
	MUST(ex);
	use_cq(ibv_cq_ex_to_cq(ex), channel);
	CHECK(!ibv_dealloc_pd(domain));
	CHECK(!ibv_destroy_comp_channel(channel));
}

/* --- SRQs --- */

static void check_srq(struct ibv_srq *s, struct ibv_pd *of)
{
	struct ibv_srq *real = fake_newest(FAKE_SRQ);

	MUST(s && s != real);
	CHECK(s->context == ctx && s->pd == of && s->srq_context == &own);
	CHECK(s->handle == real->handle && s->handle);
	CHECK(!pthread_mutex_lock(&s->mutex));
	CHECK(!pthread_mutex_unlock(&s->mutex));
}

static void use_srq(struct ibv_srq *s, struct ibv_pd *of)
{
	struct ibv_srq *real = fake_newest(FAKE_SRQ);
	struct ibv_srq_attr attr = { .srq_limit = 3 };
	uint32_t num;

	check_srq(s, of);
	CHECK(!ibv_modify_srq(s, &attr, IBV_SRQ_LIMIT));
	SAW("ibv_modify_srq", real, &attr, IBV_SRQ_LIMIT);
	CHECK(!ibv_query_srq(s, &attr) && attr.max_wr == 31);
	SAW("ibv_query_srq", real, &attr);
	CHECK(!ibv_get_srq_num(s, &num) && num == 4711);
	SAW("get_srq_num", real, &num);
	fake_fail("ibv_destroy_srq", EBUSY);
	CHECK(ibv_destroy_srq(s) == EBUSY);
	check_srq(s, of);
	CHECK(!ibv_destroy_srq(s));
	SAW("ibv_destroy_srq", real);
}

static void test_srq(void)
{
	struct ibv_srq_init_attr attr = {
		.srq_context = &own,
		.attr = { .max_wr = 5, .max_sge = 1 },
	};
	struct ibv_srq_init_attr_ex
      ex =
          {
              .srq_context = &own,
              .attr = {.max_wr = 5, .max_sge = 1, .srq_limit = 2},
              .srq_type = IBV_SRQT_XRC,
              .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
                           IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
              .pd = pd,
              .cq = cq,
          },
      before;
	struct ibv_xrcd_init_attr xrcd_attr = { 0 };
	struct ibv_xrcd *xrcd;
	struct ibv_srq *s;

	puts("SRQs");
	fake_fail("ibv_create_srq", ENOMEM);
	FAILS_WITH(ENOMEM, ibv_create_srq(pd, &attr));
	CHECK(attr.srq_context == &own);
	attr.attr.max_wr = 5;
	attr.attr.max_sge = 1;
	s = ibv_create_srq(pd, &attr);
	SAW("ibv_create_srq", real_pd);
	CHECK(attr.srq_context == &own);
	CHECK(attr.attr.max_wr == 105 && attr.attr.max_sge == 101);
	use_srq(s, pd);

	puts("extended SRQs");
	xrcd = ibv_open_xrcd(ctx, &xrcd_attr);
	MUST(xrcd);
	ex.xrcd = xrcd;
	before = ex;
	fake_fail("create_srq_ex", ENOMEM);
	FAILS_WITH(ENOMEM, ibv_create_srq_ex(ctx, &ex));
	ex = before;
	s = ibv_create_srq_ex(ctx, &ex);
	SAW("create_srq_ex", real_ctx);
	CHECK(fake_last.srq.pd == real_pd && fake_last.srq.cq == real_cq);
	CHECK(fake_last.srq.xrcd == xrcd);
	before.attr.max_wr = 105;
	before.attr.max_sge = 101;
	CHECK(!memcmp(&ex, &before, sizeof(ex)));
	use_srq(s, pd);

	/* without their flags, they may be anything */
	ex.comp_mask = IBV_SRQ_INIT_ATTR_TYPE;
	ex.pd = (struct ibv_pd *)&own;
	ex.cq = (struct ibv_cq *)&own;
	s = ibv_create_srq_ex(ctx, &ex);
	use_srq(s, NULL);

	/* verbs.h takes the plain function for these */
	ex.comp_mask = IBV_SRQ_INIT_ATTR_PD;
	ex.pd = pd;
	ex.attr.max_wr = 1;
	s = ibv_create_srq_ex(ctx, &ex);
	SAW("ibv_create_srq", real_pd);
	CHECK(ex.attr.max_wr == 101);
	use_srq(s, pd);
	CHECK(!ibv_close_xrcd(xrcd));
}

/* --- QPs --- */

static void check_qp(struct ibv_qp *qp, struct ibv_pd *of, bool queues)
{
	struct ibv_qp *real = fake_newest(FAKE_QP);

	MUST(qp && qp != real);
	CHECK(qp->context == ctx && qp->qp_context == &own && qp->pd == of);
	CHECK(qp->send_cq == (queues ? cq : NULL));
	CHECK(qp->recv_cq == (queues ? cq : NULL));
	CHECK(qp->srq == (queues ? srq : NULL));
	CHECK(qp->handle == real->handle && qp->handle);
	CHECK(qp->qp_num == real->qp_num && qp->qp_num);
	CHECK(qp->state == real->state && qp->qp_type == real->qp_type);
	CHECK(!pthread_mutex_lock(&qp->mutex));
	CHECK(!pthread_mutex_unlock(&qp->mutex));
}

static void use_qp(struct ibv_qp *qp, struct ibv_pd *of, bool queues)
{
	struct ibv_qp *real = fake_newest(FAKE_QP);
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT };
	struct ibv_qp_rate_limit_attr limit = { 0 };
	struct ibv_qp_init_attr init;
	union ibv_gid gid = { 0 };
	struct ibv_ece ece;

	check_qp(qp, of, queues);
	CHECK(!ibv_modify_qp(qp, &attr, IBV_QP_STATE));
	SAW("ibv_modify_qp", real, &attr, IBV_QP_STATE);
	CHECK(qp->state == IBV_QPS_INIT);
	attr.qp_state = IBV_QPS_RTR;
	fake_fail("ibv_modify_qp", EINVAL);
	CHECK(ibv_modify_qp(qp, &attr, IBV_QP_STATE) == EINVAL);
	CHECK(qp->state == IBV_QPS_INIT);

	/* nobody asks this process to be suspended: access is as it was given */
	attr.qp_access_flags = IBV_ACCESS_REMOTE_READ;
	CHECK(!ibv_modify_qp(qp, &attr, IBV_QP_ACCESS_FLAGS));
	SAW("ibv_modify_qp", real, &attr, IBV_QP_ACCESS_FLAGS);
	CHECK(fake_last.modify.qp_access_flags == IBV_ACCESS_REMOTE_READ);
	CHECK(attr.qp_access_flags == IBV_ACCESS_REMOTE_READ);

	/* it has got there by itself */
	real->state = IBV_QPS_ERR;
	CHECK(!ibv_query_qp(qp, &attr, IBV_QP_STATE, &init));
	SAW("ibv_query_qp", real, &attr, IBV_QP_STATE, &init);
	CHECK(attr.qp_state == IBV_QPS_ERR && qp->state == IBV_QPS_ERR);
	CHECK(init.qp_context == &own && init.srq == qp->srq);
	CHECK(init.send_cq == qp->send_cq && init.recv_cq == qp->recv_cq);
	CHECK(init.cap.max_send_wr == 123 && init.sq_sig_all == 1);
	CHECK(init.qp_type == qp->qp_type);
	memset(&init, 0x55, sizeof(init));
	fake_fail("ibv_query_qp", EIO);
	CHECK(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init) == EIO);
	CHECK(init.sq_sig_all == 0x55555555);

	CHECK(ibv_query_qp_data_in_order(qp, IBV_WR_SEND, 1) == 1);
	SAW("ibv_query_qp_data_in_order", real, IBV_WR_SEND, 1);
	CHECK(!ibv_query_ece(qp, &ece));
	SAW("ibv_query_ece", real, &ece);
	CHECK(!ibv_set_ece(qp, &ece));
	SAW("ibv_set_ece", real, &ece);
	CHECK(!ibv_modify_qp_rate_limit(qp, &limit));
	SAW("modify_qp_rate_limit", real, &limit);
	CHECK(!ibv_attach_mcast(qp, &gid, 0xc000));
	SAW("ibv_attach_mcast", real, &gid, 0xc000);
	CHECK(ibv_detach_mcast(qp, &gid, 0xc001) == EINVAL);
	SAW("ibv_detach_mcast", real, &gid, 0xc001);
	CHECK(ibv_destroy_qp(qp) == EBUSY);
	CHECK(!ibv_detach_mcast(qp, &gid, 0xc000));
	fake_fail("ibv_attach_mcast", ENOMEM);
	CHECK(ibv_attach_mcast(qp, &gid, 1) == ENOMEM);

	fake_fail("ibv_destroy_qp", EBUSY);
	CHECK(ibv_destroy_qp(qp) == EBUSY);
	check_qp(qp, of, queues);
	CHECK(!ibv_destroy_qp(qp));
	SAW("ibv_destroy_qp", real);
}

static void check_cap(const struct ibv_qp_cap *cap)
{
	CHECK(cap->max_send_wr == 11 && cap->max_recv_wr == 22);
	CHECK(cap->max_send_sge == 33 && cap->max_recv_sge == 44);
	CHECK(cap->max_inline_data == 55);
}

static void test_qp(void)
{
	struct ibv_qp_init_attr attr =
                              {
                                  .qp_context = &own,
                                  .send_cq = cq,
                                  .recv_cq = cq,
                                  .srq = srq,
                                  .cap = {1, 2, 3, 4, 5},
                                  .qp_type = IBV_QPT_RC,
                                  .sq_sig_all = 1,
                              },
                          before = attr;
	struct ibv_qp *qp;

	puts("QPs");
	fake_fail("ibv_create_qp", ENOMEM);
	fake_last.qps = 0;
	FAILS_WITH(ENOMEM, ibv_create_qp(pd, &attr));
	CHECK(fake_last.qps == 1);
	attr = before;
	qp = ibv_create_qp(pd, &attr);
	SAW("ibv_create_qp", real_pd);
	CHECK(!memcmp(&fake_last.qp.cap, &before.cap, sizeof(before.cap)));
	CHECK(fake_last.qp.send_cq == real_cq);
	CHECK(fake_last.qp.recv_cq == real_cq);
	CHECK(fake_last.qp.srq == real_srq && fake_last.qp.sq_sig_all == 1);
	check_cap(&attr.cap);
	before.cap = attr.cap;
	CHECK(!memcmp(&attr, &before, sizeof(attr)));
	CHECK(!ibv_qp_to_qp_ex(qp));
	use_qp(qp, pd, true);

	memset(&attr, 0, sizeof(attr));
	attr.qp_context = &own;
	attr.qp_type = IBV_QPT_UD;
	qp = ibv_create_qp(pd, &attr);
	use_qp(qp, pd, false);
}

static void test_qp_ex(void)
{
	struct ibv_xrcd_init_attr xrcd_attr = { 0 };
	struct ibv_qp_init_attr_ex attr =
                                 {
                                     .qp_context = &own,
                                     .send_cq = cq,
                                     .recv_cq = cq,
                                     .srq = srq,
                                     .cap = {1, 2, 3, 4, 5},
                                     .qp_type = IBV_QPT_RC,
                                     .comp_mask =
                                         IBV_QP_INIT_ATTR_PD |
                                         IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
                                     .pd = pd,
                                     .send_ops_flags = IBV_QP_EX_WITH_SEND,
                                 },
                             before = attr;
	struct ibv_qp_open_attr open =
                              {
                                  .comp_mask = IBV_QP_OPEN_ATTR_NUM |
                                               IBV_QP_OPEN_ATTR_XRCD |
                                               IBV_QP_OPEN_ATTR_TYPE |
                                               IBV_QP_OPEN_ATTR_CONTEXT,
                                  .qp_num = 99,
                                  .qp_context = &own,
                                  .qp_type = IBV_QPT_XRC_RECV,
                              },
                          open_before;
	struct ibv_xrcd *xrcd;
	struct ibv_qp_ex *ex;
	struct ibv_qp *qp;

	puts("extended QPs");
	fake_fail("create_qp_ex", ENOMEM);
	FAILS_WITH(ENOMEM, ibv_create_qp_ex(ctx, &attr));
	attr = before;
	qp = ibv_create_qp_ex(ctx, &attr);
	SAW("create_qp_ex", real_ctx);
	CHECK(fake_last.qp.pd == real_pd && fake_last.qp.srq == real_srq);
	CHECK(fake_last.qp.send_cq == real_cq);
	CHECK(fake_last.qp.recv_cq == real_cq);
	check_cap(&attr.cap);
	before.cap = attr.cap;
	CHECK(!memcmp(&attr, &before, sizeof(attr)));
	ex = ibv_qp_to_qp_ex(qp);
	MUST(ex);
	CHECK(&ex->qp_base == qp && (void *)ex != fake_newest(FAKE_QP));
	CHECK(ex->comp_mask == 0x90);
	CHECK(ex->wr_send && !ex->wr_send_imm && !ex->wr_flush);
	use_qp(qp, pd, true);

	/* extended, but without this */
	attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS;
	qp = ibv_create_qp_ex(ctx, &attr);
	CHECK(!ibv_qp_to_qp_ex(qp));
	use_qp(qp, pd, true);
	/* verbs.h takes the plain function for this one */
	attr.comp_mask = IBV_QP_INIT_ATTR_PD;
	attr.cap.max_send_wr = 1;
	qp = ibv_create_qp_ex(ctx, &attr);
	SAW("ibv_create_qp", real_pd);
	CHECK(attr.cap.max_send_wr == 11);
	use_qp(qp, pd, true);

	puts("XRC");
	xrcd = ibv_open_xrcd(ctx, &xrcd_attr);
	MUST(xrcd);
	memset(&attr, 0, sizeof(attr));
	attr.qp_context = &own;
	attr.qp_type = IBV_QPT_XRC_RECV;
	attr.comp_mask = IBV_QP_INIT_ATTR_XRCD;
	attr.xrcd = xrcd;
	attr.pd = (struct ibv_pd *)&own; /* no flag */
	qp = ibv_create_qp_ex(ctx, &attr);
	CHECK(fake_last.qp.xrcd == xrcd);
	use_qp(qp, NULL, false);

	open.xrcd = xrcd;
	fake_fail("open_qp", ENOENT);
	FAILS_WITH(ENOENT, ibv_open_qp(ctx, &open));
	open_before = open;
	qp = ibv_open_qp(ctx, &open);
	SAW("open_qp", real_ctx);
	CHECK(!memcmp(&open, &open_before, sizeof(open)));
	CHECK(fake_last.open.qp_num == 99 && fake_last.open.xrcd == xrcd);
	MUST(qp);
	CHECK(qp->qp_num == 99 && qp->qp_type == IBV_QPT_XRC_RECV);
	use_qp(qp, NULL, false);

	open.comp_mask &= ~(uint32_t)IBV_QP_OPEN_ATTR_CONTEXT;
	qp = ibv_open_qp(ctx, &open);
	MUST(qp);
	CHECK(!qp->qp_context);
	CHECK(!ibv_destroy_qp(qp));
	CHECK(!ibv_close_xrcd(xrcd));
}

int main(void)
{
	struct ibv_srq_init_attr attr = { .attr.max_wr = 1 };

	ctx = app_open(0);
	real_ctx = fake_newest(FAKE_CONTEXT);
	pd = ibv_alloc_pd(ctx);
	MUST(pd);
	real_pd = fake_newest(FAKE_PD);
	cq = ibv_create_cq(ctx, 1, NULL, NULL, 0);
	MUST(cq);
	real_cq = fake_newest(FAKE_CQ);
	srq = ibv_create_srq(pd, &attr);
	MUST(srq);
	real_srq = fake_newest(FAKE_SRQ);

	test_channel();
	test_cq();
	test_srq();
	test_qp();
	test_qp_ex();

	CHECK(!ibv_destroy_srq(srq));
	CHECK(!ibv_destroy_cq(cq));
	CHECK(!ibv_dealloc_pd(pd));
	app_close(ctx);
	return app_end();
}
