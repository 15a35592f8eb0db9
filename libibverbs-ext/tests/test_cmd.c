// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Commands, their errors, and what is said about them.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <infiniband/verbs_ext.h>

#include "../../tests/check.h"
#include "fake_uverbs.h"
#include "image_builder.h"
#include "migr_restore.h"

/* the blob is one ioctl whose only pointer is its own status */
static void test_blob(void)
{
	const uint64_t base = 0x7f0000aa0000ULL;
	size_t size, at = 0, again;
	char buf[256], guard[256];
	struct {
		struct ib_uverbs_ioctl_hdr hdr;
		struct ib_uverbs_attr attr[2];
	} cmd;
	struct rxe_migr_attach attach;

	size = migr_cmd_attach_blob(NULL, 0, base, 5, &at);
	CHECK(size && size <= sizeof(buf), "%zu", size);
	CHECK(at + sizeof(struct rxe_migr_status) <= size, "%zu", at);
	CHECK(at % 8 == 0, "%zu", at);

	memset(buf, 0xee, sizeof(buf));
	memset(guard, 0xee, sizeof(guard));
	CHECK(!migr_cmd_attach_blob(buf, size - 1, base, 5, &at), "fits");
	CHECK(!memcmp(buf, guard, sizeof(buf)), "written");
	again = migr_cmd_attach_blob(buf, sizeof(buf), base, 5, &at);
	CHECK(again == size, "%zu", again);
	CHECK(!memcmp(buf + size, guard, sizeof(buf) - size), "written behind");

	memcpy(&cmd, buf, sizeof(cmd));
	CHECK(cmd.hdr.length == sizeof(cmd), "%u", cmd.hdr.length);
	CHECK(cmd.hdr.num_attrs == 2, "%u", cmd.hdr.num_attrs);
	CHECK(cmd.hdr.object_id == UVERBS_OBJECT_DEVICE, "%u",
	      cmd.hdr.object_id);
	CHECK(cmd.hdr.method_id == RXE_MIGR_METHOD_ATTACH, "%#x",
	      cmd.hdr.method_id);
	CHECK(cmd.hdr.driver_id == RDMA_DRIVER_RXE, "%u", cmd.hdr.driver_id);
	CHECK(cmd.attr[0].attr_id == RXE_MIGR_ATTR_IN, "%#x",
	      cmd.attr[0].attr_id);
	CHECK(cmd.attr[0].len == sizeof(attach), "%u", cmd.attr[0].len);
	memcpy(&attach, &cmd.attr[0].data, sizeof(attach));
	CHECK(attach.fd == 5 && !attach.reserved, "%d", attach.fd);
	CHECK(cmd.attr[1].attr_id == RXE_MIGR_ATTR_OUT, "%#x",
	      cmd.attr[1].attr_id);
	CHECK(cmd.attr[1].len == sizeof(struct rxe_migr_status), "%u",
	      cmd.attr[1].len);
	CHECK(cmd.attr[1].data == base + at, "%#llx",
	      (unsigned long long)cmd.attr[1].data);
}

static void test_texts(void)
{
	struct rxe_migr_status st = {
		.guard_fd = -1,
		.why = RXE_MIGR_WHY_PEER,
		.type = RXE_MIGR_QP,
		.handle = 5,
		.qpn = 0x12,
		.peer_qpn = 0x34,
		.peer_gid = { [10] = 0xff, 0xff, 10, 0, 0, 2 },
	};
	struct migr_error e;
	uint32_t i;

	migr_status_text(&st, -EPROTO, &e);
	CHECK(!strcmp(e.text,
		      "QP 5 (QPN 0x12, peer ::ffff:10.0.0.2 QPN 0x34): the peer runs a driver without migration"),
	      "%s", e.text);
	st = (struct rxe_migr_status){ .why = RXE_MIGR_WHY_AH,
				       .type = RXE_MIGR_CQ,
				       .handle = 1 };
	migr_status_text(&st, EOPNOTSUPP, &e);
	CHECK(!strcmp(e.text,
		      "CQ 1: made by a library that keeps the address itself, and not only its number"),
	      "%s", e.text);
	st = (struct rxe_migr_status){ .why = 999, .type = 999 };
	migr_status_text(&st, EINVAL, &e);
	CHECK(!strcmp(e.text, "object 0: unknown reason"), "%s", e.text);
	migr_status_text(NULL, -ENOKEY, &e);
	CHECK(!strcmp(e.text, "context: no cluster key is set on this host"),
	      "%s", e.text);
	/* of a second STOP, and of a second ATTACH */
	CHECK(!strcmp(migr_errno_text(EALREADY),
		      "stopped already, or attached already"),
	      "%s", migr_errno_text(EALREADY));
	for (i = 0; i <= RXE_MIGR_WHY_MEMORY; i++)
		CHECK(strcmp(migr_why_text(i), "unknown reason"), "%u", i);
	for (i = RXE_MIGR_CONTEXT; i <= RXE_MIGR_MCAST; i++)
		CHECK(strcmp(migr_type_text(i), "object"), "%u", i);
}

static void test_dump(void)
{
	struct migr_error e;
	size_t length;
	void *image;

	fake_reset();
	fake.image_needed = 1000000; /* more than the first guess */
	CHECK(!migr_cmd_dump(FAKE_FD, &image, &length, &e), "%s", e.text);
	CHECK(length == 1000000 && ((char *)image)[999999] == 0x5a, "%zu",
	      length);
	CHECK(fake.calls == 2, "%u", fake.calls);
	free(image);

	fake.image_grows = true;
	CHECK(migr_cmd_dump(FAKE_FD, &image, &length, &e) == -ENOSPC, "ok");
	CHECK(!image && strstr(e.text, "does not settle"), "%s", e.text);

	/* objects came or went meanwhile: again, but not for ever */
	fake_reset();
	fake.image_needed = 4096;
	fake.image_changes = 2;
	CHECK(!migr_cmd_dump(FAKE_FD, &image, &length, &e), "%s", e.text);
	CHECK(length == 4096 && fake.calls == 3, "%u", fake.calls);
	free(image);
	fake_reset();
	fake.image_changes = 1000;
	CHECK(migr_cmd_dump(FAKE_FD, &image, &length, &e) == -EAGAIN, "ok");
	CHECK(!image && fake.calls == 8, "%u", fake.calls);
	CHECK(strstr(e.text, "objects come and go"), "%s", e.text);

	fake_reset();
	fake.fail_method = RXE_MIGR_METHOD_DUMP;
	fake.fail_err = EINVAL;
	CHECK(migr_cmd_dump(FAKE_FD, &image, &length, &e) == -EINVAL, "ok");
	CHECK(strstr(e.text, "not stopped"), "%s", e.text);
}

/* EINVAL to who has a context is no answer to a program of the same version */
static void test_track(void)
{
	struct rxe_migr_track_resp resp;

	fake_reset();
	fake.fail_method = RXE_MIGR_METHOD_TRACK;
	fake.fail_err = EINVAL;
	CHECK(migr_cmd_track_round(FAKE_FD, 1, 2, &resp) == -EINVAL, "ok");
	fake.context = true;
	CHECK(migr_cmd_track_round(FAKE_FD, 1, 2, &resp) == -EPROTO, "ok");
	CHECK(migr_cmd_track(FAKE_FD, RXE_MIGR_TRACK_END, 0, &resp) == -EPROTO,
	      "ok");
	fake.fail_err = EINTR;
	CHECK(migr_cmd_track_round(FAKE_FD, 1, 2, &resp) == -EINTR, "ok");
}

static void test_stop(void)
{
	struct rxe_migr_status st;

	fake_reset();
	fake.fail_method = RXE_MIGR_METHOD_STOP;
	fake.fail_err = EPROTO;
	fake.why = RXE_MIGR_WHY_SILENT;
	CHECK(migr_cmd_stop(FAKE_FD, 0, 0, &st) == -EPROTO, "ok");
	CHECK(st.why == RXE_MIGR_WHY_SILENT && st.guard_fd == -1, "%u", st.why);
}

/* the public call says how much it needs */
static void test_needed(void)
{
	struct ibv_context ctx = { .cmd_fd = FAKE_FD };
	struct rxe_migr_image_hdr hdr;
	size_t length = 0;
	int count = -1;

	fake_reset();
	fake.image_needed = 4096;
	CHECK(ibv_dump_context(&ctx, &count, NULL, 0) == ENOSPC, "ok");
	CHECK(count == 7, "%d", count);
	CHECK(ibv_dump_context(&ctx, NULL, &hdr, sizeof(hdr)) == ENOSPC, "ok");
	CHECK(hdr.length == 4096 && hdr.count == 7, "%llu",
	      (unsigned long long)hdr.length);
	CHECK(!memcmp(hdr.magic, RXE_MIGR_MAGIC, 8), "magic");
	CHECK(!ibv_migr_dump_size(&ctx, &length) && length == 4096, "%zu",
	      length);
	CHECK(strstr(ibv_migr_error_str(), "4096 bytes, there are 72"), "%s",
	      ibv_migr_error_str());
}

/* contexts of devices that know nothing of this */
static void test_foreign(void)
{
	struct ibv_context null = { .cmd_fd = open("/dev/null", O_RDWR) };
	struct ibv_context stock = { .cmd_fd = FAKE_FD };
	struct rxe_migr_resolve_resp resolved;
	struct rxe_migr_rec_pd pd = { .rec = { .type = RXE_MIGR_PD,
					       .length = sizeof(pd) } };
	struct rxe_migr_status st;
	struct ibv_context *ctx;
	char buf[64], text[80];
	size_t size;
	int count, i;

	fake_reset();
	fake.stock = 1;
	for (i = 0; i < 2; i++) {
		ctx = i ? &stock : &null;
		CHECK(ibv_dump_context(ctx, &count, buf, sizeof(buf)) ==
			      EOPNOTSUPP,
		      "%d", i);
		CHECK(strstr(ibv_migr_error_str(), "not a migratable rdma_rxe"),
		      "%s", ibv_migr_error_str());
		CHECK(ibv_migr_dump_size(ctx, &size) == EOPNOTSUPP, "%d", i);
		CHECK(ibv_migr_stop(ctx, 0, &st) == EOPNOTSUPP, "%d", i);
		CHECK(ibv_migr_check_peers(ctx, 0, &st) == EOPNOTSUPP, "%d", i);
		CHECK(ibv_migr_commit(ctx, 0, 0, &st) == EOPNOTSUPP, "%d", i);
		CHECK(ibv_migr_attach(ctx, &st) == EOPNOTSUPP, "%d", i);
		CHECK(ibv_migr_resume(ctx, &st) == EOPNOTSUPP, "%d", i);
		CHECK(ibv_migr_resolve(ctx, 0, &resolved) == EOPNOTSUPP, "%d",
		      i);
	}
	ibv_migr_status_str(&st, EOPNOTSUPP, text, sizeof(text));
	CHECK(strstr(text, "not a migratable"), "%s", text);
	CHECK(ibv_restore_object(&null, NULL, RXE_MIGR_PD, IBV_RESTORE_CREATE,
				 &pd, sizeof(pd)) == EOPNOTSUPP,
	      "restored");
	close(null.cmd_fd);
}

static void test_arguments(void)
{
	struct rxe_migr_rec_async_fd async = {
		.rec = { .type = RXE_MIGR_ASYNC_FD, .length = sizeof(async) },
	};
	struct ibv_context ctx = { .cmd_fd = FAKE_FD };
	struct rxe_migr_status st;
	struct rxe_migr_rec *mr, *cq;
	struct builder b;
	void *object = &b;
	unsigned int calls;
	char text[16];

	builder_sample(&b);
	mr = builder_find(b.data, b.length, S_MR);
	cq = builder_find(b.data, b.length, S_CQ);
	fake_reset();
	fake.context = true;

	CHECK(ibv_dump_context(NULL, NULL, NULL, 0) == EINVAL, "ok");
	CHECK(ibv_dump_context(&ctx, NULL, NULL, 5) == EINVAL, "ok");
	CHECK(ibv_migr_stop(&ctx, 0, NULL) == EINVAL, "ok");
	CHECK(ibv_migr_stop(NULL, 0, &st) == EINVAL, "ok");

#define RESTORE(type, cmd, rec, length) \
	ibv_restore_object(&ctx, &object, type, cmd, rec, length)
	CHECK(RESTORE(RXE_MIGR_MR, 99, mr, mr->length) == EINVAL, "ok");
	CHECK(RESTORE(RXE_MIGR_MR, -1, mr, mr->length) == EINVAL, "ok");
	CHECK(RESTORE(RXE_MIGR_CQ, 0, mr, mr->length) == EINVAL, "ok");
	CHECK(RESTORE(RXE_MIGR_MR, 0, NULL, 100) == EINVAL, "ok");
	CHECK(RESTORE(RXE_MIGR_MR, 0, mr, 23) == EINVAL, "ok");
	CHECK(RESTORE(RXE_MIGR_MR, 0, mr, mr->length - 1) == EINVAL, "ok");
	CHECK(RESTORE(RXE_MIGR_CQ, IBV_RESTORE_MR_KEYS, cq, cq->length) ==
		      EINVAL,
	      "ok");
	CHECK(object == &b, "touched");
	CHECK(RESTORE(RXE_MIGR_CQ, IBV_RESTORE_CREATE, cq, cq->length) ==
		      EOPNOTSUPP,
	      "ok");
	CHECK(strstr(ibv_migr_error_str(), "a CQ with one cannot be"), "%s",
	      ibv_migr_error_str());
	builder_no_channel(&b);
	CHECK(RESTORE(RXE_MIGR_CQ, IBV_RESTORE_CREATE, cq, cq->length) ==
		      ENOENT,
	      "ok");
	CHECK(strstr(ibv_migr_error_str(), "CQ 1: the image that was loaded"),
	      "%s", ibv_migr_error_str());
	CHECK(ibv_migr_load(&ctx, b.data, 10) == EINVAL, "ok");
	CHECK(ibv_migr_load(&ctx, b.data + 4, b.length - 4) == EINVAL, "ok");
	CHECK(strstr(ibv_migr_error_str(), "not aligned to 8"), "%s",
	      ibv_migr_error_str());
	fake.fail_method = RXE_MIGR_METHOD_LOAD;
	fake.fail_err = EBADMSG;
	CHECK(ibv_migr_load(&ctx, b.data, b.length) == EBADMSG, "ok");
	CHECK(strstr(ibv_migr_error_str(), "not signed"), "%s",
	      ibv_migr_error_str());
	fake.fail_err = EPROTO;
	CHECK(ibv_migr_load(&ctx, b.data, b.length) == EPROTONOSUPPORT, "ok");
	CHECK(strstr(ibv_migr_error_str(), "of a version"), "%s",
	      ibv_migr_error_str());
	fake.fail_method = 0;
	CHECK(!ibv_migr_load(&ctx, b.data, b.length), "%s",
	      ibv_migr_error_str());
	CHECK(!RESTORE(RXE_MIGR_CQ, IBV_RESTORE_CREATE, cq, cq->length), "%s",
	      ibv_migr_error_str());
	CHECK(object == (void *)(uintptr_t)cq->user_handle, "%p", object);
	CHECK(!RESTORE(RXE_MIGR_CQ, IBV_RESTORE_REFILL, cq, cq->length), "%s",
	      ibv_migr_error_str());
	CHECK(fake.object[S_CQ].filled && fake.in_use == 1, "%u", fake.in_use);
	/* every context has one: there is nothing to do, and no pointer */
	calls = fake.calls;
	CHECK(!RESTORE(RXE_MIGR_ASYNC_FD, IBV_RESTORE_CREATE, &async,
		       sizeof(async)),
	      "%s", ibv_migr_error_str());
	CHECK(!object, "%p", object);
	/* what an image must not have either; nothing is tried */
	mr->reserved = 1;
	CHECK(RESTORE(RXE_MIGR_MR, 0, mr, mr->length) == EINVAL, "ok");
	CHECK(strstr(ibv_migr_error_str(), "MR 2: reserved"), "%s",
	      ibv_migr_error_str());
	mr->reserved = 0;
	mr->handle = 1 << 20;
	CHECK(RESTORE(RXE_MIGR_MR, 0, mr, mr->length) == EINVAL, "ok");
	CHECK(strstr(ibv_migr_error_str(), "larger than max_handle 1048575"),
	      "%s", ibv_migr_error_str());
	mr->handle = S_MR;
	CHECK(fake.calls == calls, "%u", fake.calls - calls);
	/* its PD is not there */
	CHECK(RESTORE(RXE_MIGR_MR, IBV_RESTORE_MR_KEYS, mr, mr->length) ==
		      EINVAL,
	      "ok");
	((struct rxe_migr_rec_mr *)mr)->access = ~0U;
	CHECK(RESTORE(RXE_MIGR_MR, 0, mr, mr->length) == EINVAL, "ok");
	CHECK(strstr(ibv_migr_error_str(), "MR 2: access"), "%s",
	      ibv_migr_error_str());

	CHECK(ibv_migr_image_check(b.data, 10, text, sizeof(text)) == EINVAL,
	      "ok");
	CHECK(!strncmp(text, "image: length i", sizeof(text)), "%s", text);
	builder_free(&b);
}

/* the sample's QPs are connected to 10.0.0.7 and fd01::7 */
static void test_relocate(void)
{
	struct ibv_context ctx = { .cmd_fd = FAKE_FD };
	const struct rxe_migr_rec_qp *qp;
	struct iovec images[2] = {};
	struct builder b;

	builder_sample(&b);
	images[0] = (struct iovec){ b.data, b.length };
	qp = (void *)builder_find(b.data, b.length, S_QP_RTS);
	fake_reset();
	fake.context = true;

	CHECK(ibv_migr_relocate(NULL, images, 1) == EINVAL, "ok");
	CHECK(ibv_migr_relocate(&ctx, NULL, 1) == EINVAL, "ok");
	CHECK(ibv_migr_relocate(&ctx, images, 0) == EINVAL, "ok");
	/* the second one is none: nothing changes */
	CHECK(ibv_migr_relocate(&ctx, images, 2) == EINVAL, "ok");
	CHECK(strstr(ibv_migr_error_str(), "image: length is 0"), "%s",
	      ibv_migr_error_str());
	CHECK(qp->sgid[15] == 1 && qp->sgid_index == 1, "%u", qp->sgid[15]);

	fake.reach[6] = fake.reach[7] = MIGR_REACH_NONE;
	CHECK(ibv_migr_relocate(&ctx, images, 1) == EHOSTUNREACH, "ok");
	CHECK(strstr(ibv_migr_error_str(), "to peer fd01::7 QPN 0x77"), "%s",
	      ibv_migr_error_str());
	CHECK(qp->sgid[15] == 1 && qp->sgid_index == 1, "%u", qp->sgid[15]);

	fake.reach[7] = MIGR_REACH_ROUTE;
	fake.active_mtu = IBV_MTU_512;
	CHECK(ibv_migr_relocate(&ctx, images, 1) == EMSGSIZE, "ok");
	CHECK(strstr(ibv_migr_error_str(), "path_mtu is 1024 bytes"), "%s",
	      ibv_migr_error_str());
	CHECK(qp->sgid[15] == 1 && qp->sgid_index == 1, "%u", qp->sgid[15]);

	fake.active_mtu = IBV_MTU_1024;
	CHECK(!ibv_migr_relocate(&ctx, images, 1), "%s", ibv_migr_error_str());
	CHECK(qp->sgid[15] == 9 && qp->sgid_index == 5, "%u", qp->sgid[15]);
	CHECK(!ibv_migr_image_check(b.data, b.length, NULL, 0), "checksum");
	builder_free(&b);
}

int main(void)
{
	test_blob();
	test_texts();
	test_dump();
	test_track();
	test_stop();
	test_needed();
	test_relocate();
	test_foreign();
	test_arguments();
	return check_result();
}
