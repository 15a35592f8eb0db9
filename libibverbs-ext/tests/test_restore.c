// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Objects come back at their handles, with few calls, or not at all and with
 * a reason.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "../../tests/check.h"
#include "fake_uverbs.h"
#include "image_builder.h"
#include "migr_restore.h"

static int restore(const struct builder *b, struct migr_error *err)
{
	struct migr_image img;
	struct migr_files files = { .async_fd = 77 };
	int *channel, ret;

	err->text[0] = '\0';
	ret = migr_image_parse(b->data, b->length, &img, err);
	CHECK(!ret, "%s", err->text);
	if (ret)
		return ret;
	ret = migr_restore_context(FAKE_FD, &img, &files, err);
	/* the channel of the sample */
	channel = migr_files_channel(&files, S_CQ);
	if (!ret && img.records[img.count - 1]->type == RXE_MIGR_ASYNC_FD)
		CHECK(channel && *channel >= 0 &&
			      fake.object[S_CQ].channel == *channel &&
			      fake.object[S_CQ_WRAPPED].channel == *channel,
		      "%d", fake.object[S_CQ].channel);
	else
		CHECK(!files.channels, "%u", files.channels);
	CHECK((files.async_fd >= 0) == !ret, "async_fd %d, ret %d",
	      files.async_fd, ret);
	CHECK(!ret == !err->text[0], "%d, \"%s\"", ret, err->text);
	migr_files_close(&files);
	migr_image_free(&img);
	return ret;
}

static void test_sample(void)
{
	static const struct {
		uint32_t type, identity, state, sgid_index;
	} want[] = {
		[S_PD] = { RXE_MIGR_PD, 0, 0, 0 },
		[S_CQ] = { RXE_MIGR_CQ, 0, 0, 0 },
		[S_MR] = { RXE_MIGR_MR, 0x4321ab, 0, 0 },
		[S_MR_EARLY] = { RXE_MIGR_MR, 0x1ff, 0, 0 },
		[S_QP_RTS] = { RXE_MIGR_QP, 0x12, IBV_QPS_RTS, 5 },
		[S_PD2] = { RXE_MIGR_PD, 0, 0, 0 },
		[S_CQ_WRAPPED] = { RXE_MIGR_CQ, 0, 0, 0 },
		[S_MR2] = { RXE_MIGR_MR, 0x2ff, 0, 0 },
		[8] = { 0, 0, 0, 0 },
		[S_QP_INIT] = { RXE_MIGR_QP, 0x13, IBV_QPS_INIT, 0 },
		[S_QP_SQD] = { RXE_MIGR_QP, 0x9999, IBV_QPS_RTS, 6 },
		[S_QP_SRQ] = { RXE_MIGR_QP, 0x14, IBV_QPS_RTR, 5 },
		[S_SRQ] = { RXE_MIGR_SRQ, S_SRQ_NUM, 0, 0 },
		[S_MW_BOUND] = { RXE_MIGR_MW, S_MW_KEY, 0, 0 },
		[S_MW_UNBOUND] = { RXE_MIGR_MW, S_MW_KEY + 0x101, 0, 0 },
		[S_MW_OF_QP] = { RXE_MIGR_MW, S_MW_KEY + 0x202, 0, 0 },
		[S_MW_FREE] = { RXE_MIGR_MW, S_MW_KEY + 0x303, 0, 0 },
		[S_QP_UD] = { RXE_MIGR_QP, 0x15, IBV_QPS_RTS, 0 },
		[S_AH] = { RXE_MIGR_AH, S_AH_NUM, 0, 5 },
		[S_AH_GROUP] = { RXE_MIGR_AH, 0x7fff, 0, 6 },
		[S_QP_UC] = { RXE_MIGR_QP, 0x16, IBV_QPS_RTS, 5 },
	};
	const unsigned int n = sizeof(want) / sizeof(want[0]);
	const struct fake_object *o;
	struct migr_error err;
	struct builder b;
	unsigned int i;
	int fills;

	builder_sample(&b);
	((struct rxe_migr_rec_cq *)builder_find(b.data, b.length, S_CQ))
		->comp_vector = 7;
	builder_seal(b.data, b.length);
	fake_reset();
	CHECK(!restore(&b, &err), "%s", err.text);
	for (i = 0; i < n; i++) {
		o = &fake.object[i];
		CHECK(o->type == want[i].type, "%u: %u", i, o->type);
		if (!o->type)
			continue;
		CHECK(o->identity == want[i].identity, "%u: %#x", i,
		      o->identity);
		CHECK(o->state == want[i].state, "%u: %u", i, o->state);
		CHECK(o->sgid_index == want[i].sgid_index, "%u: %u", i,
		      o->sgid_index);
		fills = o->type == RXE_MIGR_CQ || o->type == RXE_MIGR_QP ||
			o->type == RXE_MIGR_SRQ;
		CHECK(o->filled == fills, "%u", i);
	}
	CHECK(fake.object[S_QP_UD].qkey == 0x11111111, "%#x",
	      fake.object[S_QP_UD].qkey);
	CHECK(fake.object[S_QP_UD].groups == 2, "%u",
	      fake.object[S_QP_UD].groups);
	CHECK(fake.in_use == 20, "%u", fake.in_use);
	CHECK(fake.object[S_CQ].comp_vector == 1, "%u",
	      fake.object[S_CQ].comp_vector);

	CHECK(restore(&b, &err) == -EINVAL, "accepted");
	CHECK(strstr(err.text, "has one already"), "%s", err.text);
	builder_free(&b);
}

/* what goes wrong on the destination, and how it is told */
static void test_refusals(void)
{
	struct rxe_migr_rec_qp *qp;
	struct rxe_migr_rec_ah *ah;
	struct migr_error err;
	struct builder b;

	builder_sample(&b);

	fake_reset();
	fake.taken_qpn = 0x12;
	CHECK(restore(&b, &err) == -EBUSY, "accepted");
	CHECK(!strcmp(err.text, "QP 4: QPN 0x12 is taken on this host"), "%s",
	      err.text);

	fake_reset();
	fake.taken_key = 0x4321ab;
	CHECK(restore(&b, &err) == -EBUSY, "accepted");
	CHECK(!strcmp(err.text, "MR 2: key 0x4321ab is taken on this host"),
	      "%s", err.text);

	fake_reset();
	fake.taken_key = S_MW_KEY;
	CHECK(restore(&b, &err) == -EBUSY, "accepted");
	CHECK(!strcmp(err.text, "MW 13: key 0x8000100 is taken on this host"),
	      "%s", err.text);

	fake_reset();
	fake.taken_ah = S_AH_NUM;
	CHECK(restore(&b, &err) == -EBUSY, "accepted");
	CHECK(!strcmp(err.text, "AH 18: number 9 is taken on this host"), "%s",
	      err.text);

	fake_reset();
	ah = (void *)builder_find(b.data, b.length, S_AH);
	memcpy(fake.dead_gid, ah->dgid, 16);
	CHECK(!restore(&b, &err), "%s", err.text);
	CHECK(!memcmp(fake.object[S_AH].dgid, ah->dgid, 16));

	fake_reset();
	qp = (void *)builder_find(b.data, b.length, S_QP_RTS);
	memcpy(fake.dead_gid, qp->dgid, 16);
	CHECK(!restore(&b, &err), "%s", err.text);
	CHECK(!memcmp(fake.object[S_QP_RTS].dgid, qp->dgid, 16));

	fake_reset();
	fake.active_mtu = IBV_MTU_512;
	CHECK(restore(&b, &err) == -EMSGSIZE, "accepted");
	CHECK(!strcmp(err.text,
		      "QP 4: QPN 0x12: path_mtu is 1024 bytes, the port of this host's device has 512"),
	      "%s", err.text);

	qp = (void *)builder_find(b.data, b.length, S_QP_SQD);
	qp->sgid[0] = 0xfe;
	qp->sgid[1] = 0x80;
	qp->sgid_index = 1;
	builder_seal(b.data, b.length);
	fake_reset();
	CHECK(!restore(&b, &err), "%s", err.text);
	CHECK(fake.object[S_QP_SQD].sgid_index == 0, "%u",
	      fake.object[S_QP_SQD].sgid_index);

	/* another size of the same ring would not fit the mapping */
	qp->sq.mmap_size += 4096;
	builder_seal(b.data, b.length);
	fake_reset();
	CHECK(restore(&b, &err) == -EPROTO, "accepted");
	CHECK(strstr(err.text, "QP 10: sq: the driver made"), "%s", err.text);
	builder_free(&b);
}

static void test_states(void)
{
	struct rxe_migr_rec_qp *qp;
	struct migr_error err;
	struct builder b;

	builder_sample(&b);
	qp = (void *)builder_find(b.data, b.length, S_QP_INIT);
	qp->state = IBV_QPS_ERR;
	builder_seal(b.data, b.length);
	fake_reset();
	CHECK(!restore(&b, &err), "%s", err.text);
	CHECK(fake.object[S_QP_INIT].state == IBV_QPS_INIT, "%u",
	      fake.object[S_QP_INIT].state);

	qp->state = IBV_QPS_RTR;
	qp->life = 1;
	qp->network_type = 1;
	qp->dest_qpn = 1;
	memcpy(qp->dgid, "\0\0\0\0\0\0\0\0\0\0\xff\xff\n\0\0\1", 16);
	memcpy(qp->sgid, qp->dgid, 16);
	qp->sgid_index = 5;
	builder_seal(b.data, b.length);
	fake_reset();
	CHECK(!restore(&b, &err), "%s", err.text);
	CHECK(fake.object[S_QP_INIT].state == IBV_QPS_RTR, "%u",
	      fake.object[S_QP_INIT].state);
	CHECK(fake.object[S_QP_INIT].sgid_index == 5, "%u",
	      fake.object[S_QP_INIT].sgid_index);

	qp->state = IBV_QPS_ERR;
	qp->port_num = 0; /* failed before it was ever set up */
	builder_seal(b.data, b.length);
	fake_reset();
	CHECK(!restore(&b, &err), "%s", err.text);
	CHECK(fake.object[S_QP_INIT].state == IBV_QPS_RESET, "%u",
	      fake.object[S_QP_INIT].state);
	builder_free(&b);
}

/* a window has a lower handle than what it is bound to, and comes last */
static void test_window_first(void)
{
	static const struct builder_qp qp = {
		.handle = S_QP_SQD,
		.pd = S_PD2,
		.send_cq = S_CQ,
		.recv_cq = S_CQ,
		.qpn = 0x14,
		.state = IBV_QPS_INIT,
	};
	struct rxe_migr_rec_mw *mw;
	struct migr_error err;
	struct builder b;

	builder_start(&b, S_MAX_HANDLE);
	builder_mws(&b);
	mw = (void *)builder_find(b.data, b.length, S_MW_OF_QP);
	mw->rec.handle = S_PD;
	builder_qp(&b, &qp);
	builder_mr(&b, S_MR2, S_PD2, 0x2ff);
	builder_cq(&b, S_CQ, 0, 0);
	builder_pd(&b, S_PD2);
	builder_finish(&b);
	fake_reset();
	CHECK(!restore(&b, &err), "%s", err.text);
	CHECK(fake.object[S_PD].type == RXE_MIGR_MW, "%u",
	      fake.object[S_PD].type);
	CHECK(fake.in_use == 8, "%u", fake.in_use);
	builder_free(&b);
}

/* whichever call fails: an error, a reason, and no file left open */
static void test_any_failure(void)
{
	unsigned int calls, i;
	struct migr_error err;
	struct builder b;
	int first, last;

	builder_sample(&b);
	fake_reset();
	CHECK(!restore(&b, &err), "%s", err.text);
	calls = fake.calls;
	first = dup(0);
	for (i = 1; i <= calls; i++) {
		fake_reset();
		fake.fail_call = i;
		CHECK(restore(&b, &err) == -ENOMEM, "call %u", i);
	}
	last = dup(0);
	CHECK(last == first + 1, "%d, %d", first, last);
	builder_free(&b);
}

static unsigned int calls_for(uint32_t qps)
{
	struct builder_qp q = {
		.pd = 0, .send_cq = 1, .recv_cq = 1, .state = IBV_QPS_RTS
	};
	struct migr_error err;
	struct builder b;
	uint32_t i;

	builder_start(&b, 2 + 2 * qps);
	builder_pd(&b, 0);
	builder_cq(&b, 1, 0, 0);
	for (i = 0; i < qps; i++) {
		q.handle = 2 + 2 * i;
		q.qpn = 100 + i;
		builder_qp(&b, &q);
		builder_mr(&b, q.handle + 1, 0, (i + 1) << 8);
	}
	builder_finish(&b);
	fake_reset();
	CHECK(!restore(&b, &err), "%s", err.text);
	CHECK(fake.in_use == 2 + 2 * qps, "%u", fake.in_use);
	builder_free(&b);
	return fake.calls;
}

static void test_linear(void)
{
	unsigned int small = calls_for(16), big = calls_for(1024);

	/* create, three states, REFILL and the MR: six calls each */
	CHECK(big - small == (1024 - 16) * 6, "%u, %u", small, big);
}

/* one object at a time, in an order that is not that of the handles */
static void test_single(void)
{
	static const uint32_t order[] = { S_PD2, S_PD,	   S_CQ_WRAPPED,
					  S_CQ,	 S_QP_SQD, S_MR };
	static const uint8_t here[16] = { 0xfd, 2, [15] = 9 };
	struct rxe_migr_rec_qp *qp;
	struct migr_error err = {};
	struct migr_restore r;
	struct builder b;
	void *loaded;
	size_t i;
	int ret;

	builder_sample(&b);
	builder_no_channel(&b);
	fake_reset();
	fake.context = true;
	migr_restore_init(&r, FAKE_FD, &err);
	MUST(loaded = malloc(b.length));
	memcpy(loaded, b.data, b.length);
	MUST(!migr_cmd_load(FAKE_FD, loaded, b.length));
	for (i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
		ret = migr_place_object(&r, builder_find(b.data, b.length,
							 order[i]));
		CHECK(!ret, "%u: %s", order[i], err.text);
		CHECK(fake.in_use == i + 1, "%u", fake.in_use);
		CHECK(fake.object[order[i]].type, "%u", order[i]);
	}
	ret = migr_place_object(&r, builder_find(b.data, b.length, S_MR));
	CHECK(ret == -EBUSY, "%d", ret);
	CHECK(strstr(err.text, "MR 2: the handle is taken"), "%s", err.text);
	CHECK(fake.in_use == i, "%u", fake.in_use);
	/* its peer has moved along, which is not in what was loaded */
	qp = (void *)builder_find(b.data, b.length, S_QP_SQD);
	memcpy(qp->dgid, here, sizeof(here));
	ret = migr_refill_object(&r, &qp->rec);
	CHECK(!ret && fake.object[S_QP_SQD].filled, "%s", err.text);
	CHECK(!memcmp(fake.object[S_QP_SQD].dgid, here, sizeof(here)));
	migr_restore_release(&r);
	free(loaded);
	builder_free(&b);
}

int main(void)
{
	test_sample();
	test_refusals();
	test_states();
	test_window_first();
	test_any_failure();
	test_linear();
	test_single();
	return check_result();
}
