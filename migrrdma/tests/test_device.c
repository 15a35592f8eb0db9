// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Devices and contexts
 */
#include "app.h"

#include <arpa/inet.h>
#include <infiniband/mlx5dv.h>

static void check_device(struct ibv_device *device, int n)
{
	char name[64];

	snprintf(name, sizeof(name), "fake%d", n);
	CHECK(!strcmp(ibv_get_device_name(device), name));
	CHECK(device->node_type == IBV_NODE_CA);
	CHECK(device->transport_type == IBV_TRANSPORT_IB);
	snprintf(name, sizeof(name), "uverbs%d", n);
	CHECK(!strcmp(device->dev_name, name));
	snprintf(name, sizeof(name), "/sys/dev%d", n);
	CHECK(!strcmp(device->dev_path, name));
	snprintf(name, sizeof(name), "/sys/ib%d", n);
	CHECK(!strcmp(device->ibdev_path, name));
	CHECK(ibv_get_device_guid(device) == htonl((uint32_t)n + 0x1000));
	CHECK(ibv_get_device_index(device) == n + 10);
	CHECK(!fake_dv_is_supported(device));
}

static void test_lists(void)
{
	struct ibv_device **lists[4];
	int n = -1;

	puts("device lists");
	lists[0] = ibv_get_device_list(&n);
	MUST(lists[0]);
	CHECK(n == FAKE_DEVICES);
	for (int l = 1; l < 4; l++) {
		lists[l] = ibv_get_device_list(NULL);
		MUST(lists[l]);
		CHECK(lists[l] != lists[0]);
	}
	for (int l = 0; l < 4; l++) {
		CHECK(!lists[l][FAKE_DEVICES]);
		for (int i = 0; i < FAKE_DEVICES; i++) {
			check_device(lists[l][i], i);
			CHECK(lists[l][i] == lists[0][i]);
		}
	}
	CHECK(fake_alive(FAKE_LIST) == 4);

	/* any order; what is left works */
	ibv_free_device_list(lists[1]);
	check_device(lists[0][1], 1);
	ibv_free_device_list(lists[0]);
	check_device(lists[2][2], 2);
	ibv_free_device_list(lists[3]);
	check_device(lists[2][0], 0);
	CHECK(fake_alive(FAKE_DEVICE) == FAKE_DEVICES);
	ibv_free_device_list(lists[2]);
	CHECK(fake_alive(FAKE_DEVICE) == 0);
}

static void test_list_fails(void)
{
	int n = 5;

	puts("no device list");
	fake_fail("ibv_get_device_list", ENOMEM);
	FAILS_WITH(ENOMEM, ibv_get_device_list(&n));
	CHECK(n == 0);
	fake_fail("ibv_get_device_list", EPERM);
	FAILS_WITH(EPERM, ibv_get_device_list(NULL));
}

static void test_open(void)
{
	struct ibv_device **list, *device, *real;
	struct ibv_context *ctx, *other, *real_ctx;

	puts("open and close");
	list = ibv_get_device_list(NULL);
	MUST(list);
	device = list[1];

	fake_fail("ibv_open_device", EACCES);
	FAILS_WITH(EACCES, ibv_open_device(device));

	ctx = ibv_open_device(device);
	MUST(ctx);
	real_ctx = fake_newest(FAKE_CONTEXT);
	MUST(real_ctx && real_ctx != ctx);
	real = real_ctx->device;
	SAW("ibv_open_device", real);
	CHECK(fake_dv_is_supported(real));
	CHECK(ctx->device == device && device != real);
	CHECK(ctx->cmd_fd == 101 && ctx->async_fd == real_ctx->async_fd);
	CHECK(ctx->num_comp_vectors == 4);
	CHECK(verbs_get_ctx(ctx));

	/* the list is gone, the contexts have it */
	ibv_free_device_list(list);
	CHECK(fake_alive(FAKE_DEVICE) == 1);
	check_device(ctx->device, 1);
	other = ibv_open_device(ctx->device);
	MUST(other && other != ctx);
	CHECK(other->device == ctx->device);

	/* and a new list the same device */
	list = ibv_get_device_list(NULL);
	MUST(list);
	CHECK(list[1] == device);
	ibv_free_device_list(list);

	fake_fail("ibv_close_device", EBUSY);
	CHECK(ibv_close_device(ctx) == EBUSY);
	check_device(ctx->device, 1);
	CHECK(!ibv_close_device(other));
	check_device(ctx->device, 1);
	CHECK(ibv_query_device(ctx, &(struct ibv_device_attr){ 0 }) == 0);
	app_close(ctx);
	CHECK(fake_alive(FAKE_CONTEXT) == 0);

	puts("another device where one was");
	fake_prefix = "other";
	list = ibv_get_device_list(NULL);
	MUST(list);
	CHECK(!strcmp(ibv_get_device_name(list[1]), "other1"));
	ibv_free_device_list(list);
	fake_prefix = "fake";
}

static void test_mlx5dv(void)
{
	struct mlx5dv_context attrs = {
		.comp_mask = MLX5DV_CONTEXT_MASK_STRIDING_RQ,
	};
	struct ibv_context *ctx = app_open(0);

	puts("what mlx5dv knows of a device");
	fake_fail("mlx5dv_query_device", EIO);
	CHECK(mlx5dv_query_device(ctx, &attrs) == EIO);
	attrs.comp_mask = MLX5DV_CONTEXT_MASK_STRIDING_RQ;
	CHECK(!mlx5dv_query_device(ctx, &attrs));
	SAW("mlx5dv_query_device", fake_newest(FAKE_CONTEXT), &attrs);
	CHECK(attrs.flags == MLX5DV_CONTEXT_FLAGS_CQE_V1);
	CHECK(!attrs.comp_mask);

	attrs.comp_mask = MLX5DV_CONTEXT_MASK_STRIDING_RQ;
	CHECK(!mlx5dv_query_device(fake_newest(FAKE_CONTEXT), &attrs));
	CHECK(attrs.comp_mask);
	app_close(ctx);
}

static void test_queries(void)
{
	struct ibv_context *ctx = app_open(0), *real;
	struct ibv_values_ex values = { 0 };
	struct ibv_device_attr_ex attr_ex;
	struct ibv_device_attr attr;
	struct ibv_gid_entry entry;
	struct ibv_port_attr port;
	struct ibv_ah_attr ah;
	uint8_t mac[ETHERNET_LL_SIZE];
	union ibv_gid gid;
	uint16_t vid;
	__be16 pkey;

	puts("what is asked of a device");
	real = fake_newest(FAKE_CONTEXT);
	CHECK(!ibv_query_device(ctx, &attr) && attr.max_qp == 77);
	SAW("ibv_query_device", real, &attr);
	fake_fail("ibv_query_device", EIO);
	CHECK(ibv_query_device(ctx, &attr) == EIO);
	CHECK(!ibv_query_device_ex(ctx, NULL, &attr_ex));
	CHECK(attr_ex.orig_attr.max_qp == 78);
	SAW("query_device_ex", real, NULL, &attr_ex, sizeof(attr_ex));
	CHECK(!ibv_query_rt_values_ex(ctx, &values));
	CHECK(values.raw_clock.tv_sec == 5);
	SAW("query_rt_values", real, &values);

	CHECK(!ibv_query_port(ctx, 2, &port) && port.lid == 52);
	SAW("query_port", real, 2, &port, sizeof(port));
	fake_fail("query_port", EINVAL);
	CHECK(ibv_query_port(ctx, 2, &port) == EINVAL);
	memset(&port, 0, sizeof(port));
	CHECK(!(ibv_query_port)(ctx, 2, (void *)&port) && port.lid == 2);
	SAW("ibv_query_port", real, 2, &port);

	CHECK(!ibv_query_gid(ctx, 1, 3, &gid));
	SAW("ibv_query_gid", real, 1, 3, &gid);
	CHECK(!ibv_query_gid_ex(ctx, 1, 4, &entry, 0));
	SAW("_ibv_query_gid_ex", real, 1, 4, &entry, 0, sizeof(entry));
	CHECK(ibv_query_gid_table(ctx, &entry, 1, 0) == FAKE_GIDS);
	SAW("_ibv_query_gid_table", real, &entry, 1, 0, sizeof(entry));
	CHECK(!ibv_query_pkey(ctx, 2, 5, &pkey));
	SAW("ibv_query_pkey", real, 2, 5, &pkey);
	CHECK(ibv_get_pkey_index(ctx, 2, htons(0x8001)) == 6);
	SAW("ibv_get_pkey_index", real, 2, htons(0x8001));
	CHECK(!ibv_resolve_eth_l2_from_gid(ctx, &ah, mac, &vid));
	SAW("ibv_resolve_eth_l2_from_gid", real, &ah, mac, &vid);
	app_close(ctx);
}

static void *list_one(void *arg)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	(void)arg;
	MUST(list);
	check_device(list[0], 0);
	ibv_free_device_list(list);
	return NULL;
}

/* this thread gets real devices now, and no other does */
static void list_elsewhere(void)
{
	pthread_t thread;

	MUST(!pthread_create(&thread, NULL, list_one, NULL));
	pthread_join(thread, NULL);
}

/* everything with real objects, as they come of an imported context */
static void test_import(void)
{
	struct ibv_context *ctx, *second;
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_UD };
	struct ibv_srq_init_attr srq_init = { .attr.max_wr = 1 };
	struct ibv_ah_attr ah_attr = { .dlid = 9, .port_num = 1 };
	struct ibv_async_event event = { .event_type = IBV_EVENT_QP_FATAL };
	struct ibv_async_event cq_err = { .event_type = IBV_EVENT_CQ_ERR };
	struct ibv_async_event srq_err = { .event_type = IBV_EVENT_SRQ_ERR };
	struct ibv_wc wc = { .slid = 8 };
	struct ibv_comp_channel *channel;
	struct ibv_port_attr port;
	struct ibv_pd *pd, *pd2;
	struct ibv_qp_attr attr;
	struct ibv_device **list;
	struct ibv_cq *cq, *got;
	struct ibv_srq *srq;
	struct ibv_ece ece;
	struct ibv_ah *ah;
	struct ibv_mr *mr;
	struct ibv_mw *mw;
	struct ibv_dm *dm;
	struct ibv_qp *qp;
	union ibv_gid gid;
	char buf[8];
	void *p;

	puts("an imported context is real");
	fake_fail("ibv_import_device", EBADF);
	FAILS_WITH(EBADF, ibv_import_device(7));
	/* the thread is no longer importing */
	list = ibv_get_device_list(NULL);
	MUST(list);
	CHECK(!fake_dv_is_supported(list[0]));
	ibv_free_device_list(list);

	fake_importing = list_elsewhere;
	ctx = ibv_import_device(7);
	MUST(ctx);
	fake_importing = NULL;
	CHECK(ctx == fake_newest(FAKE_CONTEXT));
	CHECK(fake_dv_is_supported(ctx->device));
	list = ibv_get_device_list(NULL);
	MUST(list);
	CHECK(!fake_dv_is_supported(list[1]));
	CHECK(list[1] != ctx->device);
	ibv_free_device_list(list);

	CHECK(ibv_get_device_index(ctx->device) == 11);
	CHECK(ibv_get_device_guid(ctx->device) == htonl(0x1001));
	second = ibv_open_device(ctx->device);
	CHECK(second == fake_newest(FAKE_CONTEXT));
	CHECK(!ibv_close_device(second));

	CHECK(!ibv_query_port(ctx, 1, &port) && port.lid == 51);
	CHECK(!(ibv_query_port)(ctx, 1, (void *)&port));
	CHECK(!ibv_query_gid(ctx, 1, 0, &gid));
	pd = ibv_alloc_pd(ctx);
	MUST(pd && pd == fake_newest(FAKE_PD));
	pd2 = ibv_import_pd(ctx, 5);
	MUST(pd2 && pd2 == fake_newest(FAKE_PD));
	mr = ibv_reg_mr(pd, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE);
	MUST(mr && mr == fake_newest(FAKE_MR));
	CHECK(!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, pd2, NULL, 0, 0));
	CHECK(mr->pd == pd2);
	CHECK(!ibv_dereg_mr(mr));
	mr = ibv_reg_mr_iova(pd, buf, sizeof(buf), 0, IBV_ACCESS_LOCAL_WRITE);
	MUST(mr && mr == fake_newest(FAKE_MR));
	CHECK(!ibv_dereg_mr(mr));
	mr = ibv_reg_mr_iova2(pd, buf, sizeof(buf), 0, 1);
	MUST(mr && mr == fake_newest(FAKE_MR));
	CHECK(!ibv_dereg_mr(mr));
	mr = ibv_reg_dmabuf_mr(pd, 0, 8, 0, 3, 0);
	MUST(mr && mr == fake_newest(FAKE_MR));
	CHECK(!ibv_dereg_mr(mr));
	mr = ibv_import_mr(pd, 4);
	MUST(mr && mr == fake_newest(FAKE_MR));
	ibv_unimport_mr(mr);
	dm = ibv_import_dm(ctx, 3);
	MUST(dm && dm->context == ctx);
	ibv_unimport_dm(dm);
	mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
	MUST(mw && mw == fake_newest(FAKE_MW));
	CHECK(!ibv_dealloc_mw(mw));

	ah = ibv_create_ah(pd, &ah_attr);
	MUST(ah && ah == fake_newest(FAKE_AH));
	CHECK(!ibv_destroy_ah(ah));
	ah = ibv_create_ah_from_wc(pd, &wc, NULL, 1);
	MUST(ah && ah == fake_newest(FAKE_AH));
	CHECK(!ibv_destroy_ah(ah));

	channel = ibv_create_comp_channel(ctx);
	MUST(channel && channel == fake_newest(FAKE_CHANNEL));
	cq = ibv_create_cq(ctx, 1, &init, channel, 0);
	MUST(cq && cq == fake_newest(FAKE_CQ));
	CHECK(!ibv_resize_cq(cq, 4) && cq->cqe == 5);
	CHECK(!ibv_poll_cq(cq, 1, &wc) && !ibv_req_notify_cq(cq, 0));
	fake_cq_event(cq);
	CHECK(!ibv_get_cq_event(channel, &got, &p));
	CHECK(got == cq && p == &init);
	ibv_ack_cq_events(cq, 1);
	SAW("ibv_ack_cq_events", cq, 1);
	srq = ibv_create_srq(pd, &srq_init);
	MUST(srq && srq == fake_newest(FAKE_SRQ));
	CHECK(srq_init.attr.max_wr == 101);
	CHECK(!ibv_query_srq(srq, &srq_init.attr));
	CHECK(!ibv_modify_srq(srq, &srq_init.attr, IBV_SRQ_LIMIT));

	init.send_cq = cq;
	init.recv_cq = cq;
	init.srq = srq;
	qp = ibv_create_qp(pd, &init);
	MUST(qp && qp == fake_newest(FAKE_QP));
	CHECK(!ibv_qp_to_qp_ex(qp));
	attr.qp_state = IBV_QPS_INIT;
	CHECK(!ibv_modify_qp(qp, &attr, IBV_QP_STATE));
	CHECK(qp->state == IBV_QPS_INIT);
	CHECK(!ibv_query_qp(qp, &attr, IBV_QP_STATE, &init));
	CHECK(init.send_cq == cq && init.recv_cq == cq && init.srq == srq);
	CHECK(ibv_query_qp_data_in_order(qp, IBV_WR_SEND, 0) == 1);
	CHECK(!ibv_query_ece(qp, &ece) && !ibv_set_ece(qp, &ece));
	CHECK(!ibv_attach_mcast(qp, &gid, 1) && !ibv_detach_mcast(qp, &gid, 1));

	event.element.qp = qp;
	cq_err.element.cq = cq;
	srq_err.element.srq = srq;
	fake_async_event(ctx, &event);
	fake_async_event(ctx, &cq_err);
	fake_async_event(ctx, &srq_err);
	CHECK(!ibv_get_async_event(ctx, &event) && event.element.qp == qp);
	ibv_ack_async_event(&event);
	CHECK(!ibv_get_async_event(ctx, &event) && event.element.cq == cq);
	ibv_ack_async_event(&event);
	CHECK(!ibv_get_async_event(ctx, &event) && event.element.srq == srq);
	ibv_ack_async_event(&event);

	CHECK(!ibv_destroy_qp(qp));
	CHECK(!ibv_destroy_srq(srq));
	CHECK(!ibv_destroy_cq(cq));
	CHECK(!ibv_destroy_comp_channel(channel));
	ibv_unimport_pd(pd2);
	CHECK(!ibv_dealloc_pd(pd));
	app_close(ctx);
}

/* --- what a provider lacks --- */

static size_t real_size;

static void make_plain(struct verbs_context *v)
{
	v->context.abi_compat = NULL;
}

static void lose_ops(struct verbs_context *v)
{
	size_t sz = v->sz;

	memset(v, 0, offsetof(struct verbs_context, sz));
	v->sz = sz;
	v->context.ops.alloc_mw = NULL;
	v->context.ops.bind_mw = NULL;
	v->context.ops.dealloc_mw = NULL;
}

static void make_smaller(struct verbs_context *v)
{
	v->sz = real_size;
}

#define UNSUPPORTED(expr) FAILS_WITH(EOPNOTSUPP, expr)

static void check_nothing(struct ibv_context *ctx)
{
	struct ibv_qp_init_attr_ex qp_ex = { .qp_type = IBV_QPT_RC };
	struct ibv_srq_init_attr_ex srq_ex = { .srq_type = IBV_SRQT_XRC,
					       .comp_mask = 1 };
	struct ibv_srq_init_attr srq_init = { 0 };
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC };
	struct ibv_parent_domain_init_attr parent = { 0 };
	struct ibv_ops_wr op, *bad_op = NULL;
	struct ibv_device_attr_ex attr_ex;
	struct ibv_port_attr port;
	struct ibv_srq *srq;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	uint32_t num;

	pd = ibv_alloc_pd(ctx);
	cq = ibv_create_cq(ctx, 1, NULL, NULL, 0);
	MUST(pd && cq);
	srq = ibv_create_srq(pd, &srq_init);
	init.send_cq = cq;
	init.recv_cq = cq;
	qp = ibv_create_qp(pd, &init);
	MUST(srq && qp);
	parent.pd = pd;
	qp_ex.send_cq = cq;
	qp_ex.recv_cq = cq;

	/* there are older functions for these */
	CHECK(!ibv_query_port(ctx, 2, &port) && port.lid == 2);
	CHECK(!ibv_query_device_ex(ctx, NULL, &attr_ex));
	CHECK(attr_ex.orig_attr.max_qp == 77);

	CHECK(ibv_query_rt_values_ex(ctx, NULL) == EOPNOTSUPP);
	UNSUPPORTED(ibv_open_xrcd(ctx, NULL));
	UNSUPPORTED(ibv_alloc_td(ctx, NULL));
	UNSUPPORTED(ibv_alloc_dm(ctx, NULL));
	UNSUPPORTED(ibv_create_counters(ctx, NULL));
	UNSUPPORTED(ibv_create_flow_action_esp(ctx, NULL));
	UNSUPPORTED(ibv_create_flow(qp, NULL));
	UNSUPPORTED(ibv_create_wq(ctx, NULL));
	UNSUPPORTED(ibv_create_rwq_ind_table(ctx, NULL));
	UNSUPPORTED(ibv_alloc_parent_domain(ctx, &parent));
	CHECK(ibv_advise_mr(pd, 0, 0, NULL, 0) == EOPNOTSUPP);
	UNSUPPORTED(ibv_alloc_null_mr(pd));
	UNSUPPORTED(ibv_reg_dm_mr(pd, NULL, 0, 0, 0));
	UNSUPPORTED(ibv_create_cq_ex(ctx, NULL));
	CHECK(ibv_modify_cq(cq, NULL) == EOPNOTSUPP);
	UNSUPPORTED(ibv_create_srq_ex(ctx, &srq_ex));
	CHECK(ibv_get_srq_num(srq, &num) == EOPNOTSUPP);
	CHECK(ibv_post_srq_ops(srq, &op, &bad_op) == EOPNOTSUPP);
	CHECK(bad_op == &op);
	UNSUPPORTED(ibv_create_qp_ex(ctx, &qp_ex));
	UNSUPPORTED(ibv_open_qp(ctx, NULL));
	CHECK(ibv_modify_qp_rate_limit(qp, NULL) == EOPNOTSUPP);

	CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_srq(srq));
	CHECK(!ibv_destroy_cq(cq) && !ibv_dealloc_pd(pd));
}

static void test_lacking(void)
{
	struct verbs_context *v;
	struct ibv_context *ctx;
	struct ibv_pd *pd;

	puts("no extended context");
	fake_prepare = make_plain;
	ctx = app_open(0);
	CHECK(!verbs_get_ctx(ctx));
	check_nothing(ctx);
	app_close(ctx);

	puts("no functions");
	fake_prepare = lose_ops;
	ctx = app_open(0);
	check_nothing(ctx);
	pd = ibv_alloc_pd(ctx);
	UNSUPPORTED(ibv_alloc_mw(pd, IBV_MW_TYPE_1));
	CHECK(!ibv_dealloc_pd(pd));
	app_close(ctx);

	puts("none that fits in");
	fake_prepare = make_smaller;
	real_size = sizeof(*v) - offsetof(struct verbs_context, sz);
	ctx = app_open(0);
	check_nothing(ctx);
	app_close(ctx);

	puts("one of them just fits in, and one not");
	real_size = sizeof(*v) - offsetof(struct verbs_context, alloc_td);
	ctx = app_open(0);
	v = verbs_get_ctx(ctx);
	MUST(v);
	CHECK(v->sz == real_size);
	CHECK(verbs_get_ctx_op(ctx, alloc_td));
	CHECK(!v->alloc_parent_domain && !v->query_port);
	UNSUPPORTED(ibv_alloc_parent_domain(ctx, NULL));
	app_close(ctx);

	puts("a libibverbs that is newer");
	real_size = sizeof(*v) + 64;
	ctx = app_open(0);
	v = verbs_get_ctx(ctx);
	CHECK(v->sz == sizeof(*v));
	CHECK(verbs_get_ctx_op(ctx, query_port));
	app_close(ctx);
	fake_prepare = NULL;
}

int main(void)
{
	test_lists();
	test_list_fails();
	test_open();
	test_mlx5dv();
	test_queries();
	test_import();
	test_lacking();
	return app_end();
}
