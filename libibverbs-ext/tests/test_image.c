// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * An image that is not exactly right is refused, whatever is wrong with it.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_user_rxe.h>

#include "../../tests/check.h"
#include "image_builder.h"
#include "test_corrupt.h"

static int parse(const void *data, size_t length, struct migr_error *err)
{
	struct migr_image img;
	int ret;

	err->text[0] = '\0';
	ret = migr_image_parse(data, length, &img, err);
	if (!ret)
		migr_image_free(&img);
	return ret;
}

static void test_valid(const struct builder *b)
{
	struct migr_error err = {};
	struct migr_image img;
	int ret;

	ret = migr_image_parse(b->data, b->length, &img, &err);
	CHECK(!ret, "%s", err.text);
	if (ret)
		return;
	CHECK(img.count == 23, "%u records", img.count);
	CHECK(!strcmp(img.context->device, "rxe0"), "%s", img.context->device);
	CHECK(img.records[0]->type == RXE_MIGR_PD, "%u", img.records[0]->type);
	CHECK(img.records[9]->handle == S_QP_SQD, "%u", img.records[9]->handle);
	migr_image_free(&img);
	CHECK(!migr_image_parse(b->data, b->length, &img, NULL), "no err");
	migr_image_free(&img);
	migr_image_free(&img);
}

static void test_bits(const struct builder *b)
{
	struct migr_error err;
	size_t i;

	for (i = 0; i < 8 * b->length; i++) {
		b->data[i / 8] ^= 1 << i % 8;
		CHECK(parse(b->data, b->length, &err) < 0, "bit %zu", i);
		CHECK(err.text[0], "bit %zu", i);
		b->data[i / 8] ^= 1 << i % 8;
	}
}

/* A QP comes before its SRQ, which says what the QP's receives may be */
static void test_srq_behind(void)
{
	static const struct builder_qp with_srq = {
		.handle = S_QP_SRQ,
		.pd = S_PD,
		.send_cq = S_CQ_WRAPPED,
		.recv_cq = S_CQ_WRAPPED,
		.qpn = 0x14,
		.state = IBV_QPS_RTR,
		.has_srq = 1,
	};
	struct rxe_migr_rec_srq *srq;
	struct rxe_migr_rec_qp *qp;
	struct migr_error err;
	struct builder b;
	char *copy;

	builder_start(&b, S_MAX_HANDLE);
	builder_pd(&b, S_PD);
	builder_cq(&b, S_CQ_WRAPPED, 0, 0);
	builder_qp(&b, &with_srq);
	builder_srq(&b, S_SRQ, S_PD, S_SRQ_NUM);
	builder_finish(&b);
	CHECK(!parse(b.data, b.length, &err), "%s", err.text);

	qp = (void *)builder_find(b.data, b.length, S_QP_SRQ);
	srq = (void *)builder_find(b.data, b.length, S_SRQ);
	srq->max_sge = 1U << 31;
	qp->wqe.num_sge = (1U << 30) + 1;
	qp->wqe.cur_sge = 1U << 30;
	builder_seal(b.data, b.length);
	CHECK(parse(b.data, b.length, &err) == -EINVAL, "wild");
	CHECK(strstr(err.text, "wqe 0: num_sge"), "%s", err.text);

	/* the image ends within it; the sanitizer sees a step too far */
	b.length = (char *)srq - b.data + sizeof(srq->rec);
	srq->rec.length = sizeof(srq->rec);
	builder_finish(&b);
	copy = malloc(b.length);
	memcpy(copy, b.data, b.length);
	CHECK(parse(copy, b.length, &err) == -EINVAL, "short");
	CHECK(strstr(err.text, "SRQ 12: length is 24 bytes, less"), "%s",
	      err.text);
	free(copy);
	builder_free(&b);
}

/* in a buffer of just that size, so that a sanitizer sees a step too far */
static void test_truncated(const struct builder *b)
{
	struct rxe_migr_image_hdr *hdr;
	struct migr_error err;
	size_t length;
	char *copy;

	for (length = 0; length < b->length; length++) {
		copy = malloc(length ? length : 1);
		memcpy(copy, b->data, length);
		CHECK(parse(copy, length, &err) == -EINVAL, "length %zu",
		      length);
		if (length >= sizeof(*hdr)) {
			hdr = (void *)copy;
			hdr->length = length;
			builder_seal(copy, length);
			CHECK(parse(copy, length, &err) == -EINVAL,
			      "sealed at %zu", length);
		}
		free(copy);
	}
}

static void apply(char *data, size_t length, const struct corruption *c)
{
	struct rxe_migr_rec *rec;
	char *at = data;

	if (c->handle == C_CONTEXT) {
		at += sizeof(struct rxe_migr_image_hdr);
	} else if (c->handle == C_CHANNEL) {
		at = (char *)builder_find_type(data, length,
					       RXE_MIGR_COMP_CHANNEL);
	} else if (c->handle == C_ASYNC) {
		at = (char *)builder_find_type(data, length, RXE_MIGR_ASYNC_FD);
	} else if (c->handle == C_MCAST) {
		at = (char *)builder_find_type(data, length, RXE_MIGR_MCAST);
	} else if (c->handle != C_HEADER) {
		rec = builder_find(data, length, c->handle);
		if (!rec)
			abort();
		at = (char *)rec;
	}
	memcpy(at + c->offset, &c->value, c->size);
}

static void test_corruptions(const struct builder *b)
{
	struct migr_error err;
	char *copy = malloc(b->length);
	size_t i;
	int ret;

	for (i = 0; i < corruption_count; i++) {
		const struct corruption *c = &corruptions[i];

		memcpy(copy, b->data, b->length);
		apply(copy, b->length, c);
		CHECK(memcmp(copy, b->data, b->length), "%s changes nothing",
		      c->expect);
		builder_seal(copy, b->length);
		ret = parse(copy, b->length, &err);
		CHECK(ret == -EINVAL || ret == -EPROTONOSUPPORT,
		      "wanted \"%s\", got %d", c->expect, ret);
		CHECK(strstr(err.text, c->expect), "wanted \"%s\", got \"%s\"",
		      c->expect, err.text);
	}
	free(copy);
	CHECK(corruption_count >= 60, "only %zu", corruption_count);
}

/* numbers that two objects have; on the wire as well */
static void test_twice(void)
{
	struct rxe_migr_rec_mr *mr;
	struct rxe_migr_rec_mw *mw;
	struct rxe_migr_rec_qp *qp;
	struct rxe_migr_rec_ah *ah;
	struct migr_error err;
	struct builder b;

	builder_sample(&b);
	mr = (void *)builder_find(b.data, b.length, S_MR);
	mr->key = mr->wire_key = 0x133;
	builder_seal(b.data, b.length);
	CHECK(parse(b.data, b.length, &err) == -EINVAL, "accepted");
	CHECK(strstr(err.text, "key index 0x1 is also that of"), "%s",
	      err.text);
	builder_free(&b);

	builder_sample(&b);
	mw = (void *)builder_find(b.data, b.length, S_MW_FREE);
	mw->rkey = mw->wire_key = S_MW_KEY + 1;
	builder_seal(b.data, b.length);
	CHECK(parse(b.data, b.length, &err) == -EINVAL, "accepted");
	CHECK(strstr(err.text, "key index 0x80001 is also that of MW 1"), "%s",
	      err.text);
	builder_free(&b);

	builder_sample(&b);
	builder_srq(&b, 8, S_PD, S_SRQ_NUM);
	builder_finish(&b);
	CHECK(parse(b.data, b.length, &err) == -EINVAL, "accepted");
	CHECK(strstr(err.text, "srq_num 0x20005 is also that of"), "%s",
	      err.text);
	builder_free(&b);

	builder_sample(&b);
	ah = (void *)builder_find(b.data, b.length, S_AH_GROUP);
	ah->ah_num = S_AH_NUM;
	builder_seal(b.data, b.length);
	CHECK(parse(b.data, b.length, &err) == -EINVAL, "accepted");
	CHECK(strstr(err.text, "ah_num 0x9 is also that of AH 1"), "%s",
	      err.text);
	builder_free(&b);

	builder_sample(&b);
	qp = (void *)builder_find(b.data, b.length, S_QP_RTS);
	qp->qpn = qp->wire_qpn = 0x13;
	builder_seal(b.data, b.length);
	CHECK(parse(b.data, b.length, &err) == -EINVAL, "accepted");
	CHECK(strstr(err.text, "qpn 0x13 is also that of"), "%s", err.text);
	builder_free(&b);
}

/* what has no handle is there once too often, or not at all */
static void test_event_files(void)
{
	static const uint32_t types[] = { RXE_MIGR_COMP_CHANNEL,
					  RXE_MIGR_ASYNC_FD, RXE_MIGR_MCAST };
	struct rxe_migr_rec *rec, *more;
	struct migr_error err;
	struct builder b;
	uint32_t size;
	size_t i;

	for (i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		builder_sample(&b);
		size = builder_find_type(b.data, b.length, types[i])->length;
		more = builder_add(&b, types[i], 0, size);
		rec = builder_find_type(b.data, b.length, types[i]);
		memcpy(more, rec, size);
		builder_finish(&b);
		CHECK(parse(b.data, b.length, &err) == -EINVAL, "accepted");
		CHECK(strstr(err.text, "is also that of"), "%s", err.text);
		builder_free(&b);
	}
	builder_sample(&b);
	builder_find_type(b.data, b.length, types[0])->type =
		77 | RXE_MIGR_SKIPPABLE;
	builder_seal(b.data, b.length);
	CHECK(parse(b.data, b.length, &err) == -EINVAL, "accepted");
	CHECK(strstr(err.text, "a completion channel has no record"), "%s",
	      err.text);
	builder_free(&b);
}

static void test_checksum_text(const struct builder *b)
{
	struct migr_error err;

	b->data[b->length - 1] ^= 1;
	CHECK(parse(b->data, b->length, &err) == -EINVAL, "accepted");
	CHECK(strstr(err.text, "crc32"), "%s", err.text);
	b->data[b->length - 1] ^= 1;
	CHECK(parse(b->data + 4, b->length - 4, &err) == -EINVAL, "accepted");
	CHECK(strstr(err.text, "aligned"), "%s", err.text);
}

/* a longer header is one of a later minor version: its rest is skipped */
static void test_long_header(const struct builder *b)
{
	const size_t size = sizeof(struct rxe_migr_image_hdr), more = 24;
	char *copy = calloc(1, b->length + more);
	struct rxe_migr_image_hdr *hdr = (void *)copy;
	struct migr_error err;

	memcpy(copy, b->data, size);
	memcpy(copy + size + more, b->data + size, b->length - size);
	hdr->hdr_length += more;
	hdr->length += more;
	builder_seal(copy, b->length + more);
	CHECK(!parse(copy, b->length + more, &err), "%s", err.text);
	free(copy);
}

static void test_empty(void)
{
	struct migr_error err;
	struct builder b;

	builder_start(&b, 0);
	builder_finish(&b);
	CHECK(!parse(b.data, b.length, &err), "%s", err.text);
	builder_free(&b);
}

/* xorshift: the same sequence everywhere */
static uint32_t next_random(uint32_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 17;
	*seed ^= *seed << 5;
	return *seed;
}

static void test_random(const struct builder *b)
{
	uint32_t seed = 0x20211, i, n;
	struct migr_error err;
	char *copy = malloc(b->length);

	for (i = 0; i < 20000; i++) {
		memcpy(copy, b->data, b->length);
		for (n = 1 + next_random(&seed) % 4; n; n--)
			copy[next_random(&seed) % b->length] =
				(char)next_random(&seed);
		builder_seal(copy, b->length);
		parse(copy, b->length, &err); /* must return */
	}
	free(copy);
}

int main(void)
{
	struct builder b;

	builder_sample(&b);
	test_valid(&b);
	test_truncated(&b);
	test_corruptions(&b);
	test_twice();
	test_srq_behind();
	test_event_files();
	test_checksum_text(&b);
	test_long_header(&b);
	test_empty();
	test_random(&b);
	test_bits(&b);
	builder_free(&b);
	return check_result();
}
