// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Addresses on the new host: of QPs whose peers stay where they are, and of
 * those that move together.
 */

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "../../tests/check.h"
#include "fake_uverbs.h"
#include "image_builder.h"
#include "migr_restore.h"

#define MAX_IMAGES 2

/* IPv4 addresses by their last two bytes, 10.0.A.B */
#define V4(a, b) { [10] = 0xff, 0xff, 10, 0, (a), (b) }

static const uint8_t source[16] = V4(0, 1), elsewhere[16] = V4(0, 2),
		     beyond[16] = V4(7, 7), here[16] = V4(0, 9),
		     here_too[16] = V4(5, 9);

static struct rxe_migr_rec_qp *qp_of(const struct builder *b, uint32_t handle)
{
	return (void *)builder_find(b->data, b->length, handle);
}

/* QPs at handles 2, 3, ... with these numbers, in RTS at the source */
static void build(struct builder *b, const uint32_t *qpn, uint32_t n)
{
	struct builder_qp q = {
		.pd = 0, .send_cq = 1, .recv_cq = 1, .state = IBV_QPS_RTS
	};
	uint32_t i;

	builder_start(b, n + 2);
	builder_pd(b, 0);
	builder_cq(b, 1, 0, 0);
	for (i = 0; i < n; i++) {
		q.handle = 2 + i;
		q.qpn = qpn[i];
		builder_qp(b, &q);
	}
	builder_finish(b);
}

static void connect_to(const struct builder *b, uint32_t handle,
		       const uint8_t *gid, uint32_t qpn)
{
	struct rxe_migr_rec_qp *qp = qp_of(b, handle);

	memcpy(qp->sgid, source, 16);
	memcpy(qp->dgid, gid, 16);
	qp->dest_qpn = qpn;
	builder_seal(b->data, b->length);
}

/* what migr_relocate() has found */
static struct {
	struct migr_image img[MAX_IMAGES];
	size_t n;
} moved;

static void release(void)
{
	while (moved.n)
		migr_image_free(&moved.img[--moved.n]);
}

/* the images stay as they are: they are signed */
static int relocate(const struct builder *b, size_t n, struct migr_error *err)
{
	struct migr_place place[MAX_IMAGES];
	struct migr_gids gids = {};
	struct migr_image again;
	size_t i;
	int ret;

	err->text[0] = '\0';
	fake.context = true;
	release();
	MUST(!migr_gids_query(FAKE_FD, &gids));
	for (i = 0; i < n; i++) {
		ret = migr_image_parse(b[i].data, b[i].length, &moved.img[i],
				       err);
		CHECK(!ret, "%s", err->text);
		place[i] = (struct migr_place){ &moved.img[i], &gids };
	}
	moved.n = n;
	ret = migr_relocate(place, n, err);
	CHECK(!ret == !err->text[0], "%d, \"%s\"", ret, err->text);
	for (i = 0; i < n; i++) {
		CHECK(!ret == !!moved.img[i].address, "%zu", i);
		CHECK(!migr_image_parse(b[i].data, b[i].length, &again, err),
		      "%s", err->text);
		migr_image_free(&again);
	}
	migr_gids_free(&gids);
	return ret;
}

static void check_at(size_t image, uint32_t handle, const uint8_t *sgid,
		     const uint8_t *dgid)
{
	const struct migr_image *img = &moved.img[image];
	const struct migr_address *at;
	unsigned int i;

	for (i = 0; i < img->count; i++)
		if (img->records[i]->handle == handle)
			break;
	MUST(i < img->count && img->address);
	at = &img->address[i];
	CHECK(!memcmp(at->sgid, sgid, 16), "QP %u: from .%u.%u", handle,
	      at->sgid[14], at->sgid[15]);
	CHECK(!memcmp(at->dgid, dgid, 16), "QP %u: to .%u.%u", handle,
	      at->dgid[14], at->dgid[15]);
}

/* each other, itself, and one that stays behind; no route to the source */
static void test_together(void)
{
	static const uint32_t qpn[] = { 0x40, 0x41, 0x42, 0x43 };
	struct fake_object *made;
	struct migr_error err;
	struct builder b;
	struct migr_files files;

	build(&b, qpn, 4);
	connect_to(&b, 2, source, 0x41);
	connect_to(&b, 3, source, 0x40);
	connect_to(&b, 4, source, 0x42);
	connect_to(&b, 5, elsewhere, 0x41);
	fake_reset();
	CHECK(!relocate(&b, 1, &err), "%s", err.text);
	CHECK(fake.routes_asked == 2, "%u", fake.routes_asked);
	check_at(0, 2, here_too, here_too);
	check_at(0, 3, here_too, here_too);
	check_at(0, 4, here_too, here_too);
	check_at(0, 5, here, elsewhere);

	/* whoever restores it has nothing to choose any more */
	fake_reset();
	CHECK(!migr_restore_context(FAKE_FD, &moved.img[0], &files, &err), "%s",
	      err.text);
	migr_files_close(&files);
	CHECK(!fake.routes_asked, "%u", fake.routes_asked);
	made = fake.object;
	CHECK(made[2].sgid_index == 4 && made[5].sgid_index == 5, "%u, %u",
	      made[2].sgid_index, made[5].sgid_index);
	CHECK(!memcmp(made[2].dgid, here_too, 16));
	CHECK(!memcmp(made[5].dgid, elsewhere, 16));
	builder_free(&b);
}

/* contexts of a process, processes of a tree */
static void test_two_images(void)
{
	static const uint32_t first[] = { 0x50, 0x51 }, second[] = { 0x60 };
	struct migr_error err;
	struct builder b[2];

	build(&b[0], first, 2);
	build(&b[1], second, 1);
	connect_to(&b[0], 2, source, 0x60);
	connect_to(&b[0], 3, elsewhere, 0x60);
	connect_to(&b[1], 2, source, 0x50);
	fake_reset();
	CHECK(!relocate(b, 2, &err), "%s", err.text);
	check_at(0, 2, here_too, here_too);
	check_at(0, 3, here, elsewhere);
	check_at(1, 2, here_too, here_too);
	builder_free(&b[0]);
	builder_free(&b[1]);
}

/* numbers repeat from host to host, and a peer may mean another one */
static void test_strangers(void)
{
	static const uint32_t qpn[] = { 0x40, 0x41, 0x42 };
	struct migr_error err;
	struct builder b;

	build(&b, qpn, 3);
	connect_to(&b, 2, elsewhere, 0x41);
	connect_to(&b, 3, elsewhere, 0x40);
	connect_to(&b, 4, source, 0x40);
	fake_reset();
	CHECK(!relocate(&b, 1, &err), "%s", err.text);
	check_at(0, 2, here, elsewhere);
	check_at(0, 3, here, elsewhere);
	check_at(0, 4, here, source);
	builder_free(&b);
}

/* back on the host, or with an address that moves along: nothing changes */
static void test_at_home(void)
{
	static const uint32_t qpn[] = { 0x40 };
	struct migr_error err;
	struct builder b;

	build(&b, qpn, 1);
	connect_to(&b, 2, elsewhere, 0x41);
	memcpy(qp_of(&b, 2)->sgid, here_too, 16);
	builder_seal(b.data, b.length);
	fake_reset();
	CHECK(!relocate(&b, 1, &err), "%s", err.text);
	check_at(0, 2, here_too, elsewhere);
	/* nobody else will ask whether there is a way */
	memset(fake.reach, MIGR_REACH_NONE, sizeof(fake.reach));
	CHECK(relocate(&b, 1, &err) == -EHOSTUNREACH, "accepted");
	builder_free(&b);
}

/* which of several GIDs: index of 10.0.5.9 is 4, of 10.0.0.9 is 5 */
static void test_choice(void)
{
	static const struct {
		uint8_t reach4, reach5, old_index;
		const uint8_t *want; /* NULL: refused */
	} cases[] = {
		{ MIGR_REACH_ROUTE, MIGR_REACH_BEST, 4, here },
		{ MIGR_REACH_BEST, MIGR_REACH_ROUTE, 5, here_too },
		{ MIGR_REACH_NONE, MIGR_REACH_ROUTE, 4, here },
		{ MIGR_REACH_ROUTE, MIGR_REACH_NONE, 5, here_too },
		{ MIGR_REACH_ROUTE, MIGR_REACH_ROUTE, 5, here },
		{ MIGR_REACH_ROUTE, MIGR_REACH_ROUTE, 4, here_too },
		{ MIGR_REACH_UNKNOWN, MIGR_REACH_NONE, 5, here_too },
		{ MIGR_REACH_UNKNOWN, MIGR_REACH_UNKNOWN, 5, here },
		{ MIGR_REACH_NONE, MIGR_REACH_NONE, 5, NULL },
	};
	static const uint32_t qpn[] = { 0x40 };
	struct migr_error err;
	struct builder b;
	size_t i;
	int ret;

	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		build(&b, qpn, 1);
		connect_to(&b, 2, elsewhere, 0x41);
		qp_of(&b, 2)->sgid_index = cases[i].old_index;
		builder_seal(b.data, b.length);
		fake_reset();
		fake.reach[4] = cases[i].reach4;
		fake.reach[5] = cases[i].reach5;
		ret = relocate(&b, 1, &err);
		CHECK(ret == (cases[i].want ? 0 : -EHOSTUNREACH), "%zu: %d", i,
		      ret);
		if (cases[i].want)
			check_at(0, 2, cases[i].want, elsewhere);
		builder_free(&b);
	}
}

/* who sends to it has an AH, and that needs no route; QPs that ask the same do */
static void test_ah(void)
{
	static const uint32_t qpn[] = { 0x40 };
	struct rxe_migr_rec_ah *ah;
	struct migr_error err;
	struct builder b;
	int with_qp;

	for (with_qp = 0; with_qp < 2; with_qp++) {
		builder_start(&b, 4);
		builder_pd(&b, 0);
		builder_cq(&b, 1, 0, 0);
		ah = builder_add(&b, RXE_MIGR_AH, 2, sizeof(*ah));
		ah->ah_num = 1;
		memcpy(ah->dgid, elsewhere, 16);
		memcpy(ah->sgid, source, 16);
		ah->network_type = 1;
		ah->sgid_index = 5;
		if (with_qp)
			builder_qp(&b, &(struct builder_qp){
					       .handle = 3,
					       .recv_cq = 1,
					       .send_cq = 1,
					       .qpn = qpn[0],
					       .state = IBV_QPS_RTS });
		builder_finish(&b);
		if (with_qp)
			connect_to(&b, 3, elsewhere, 0x41);
		fake_reset();
		memset(fake.reach, MIGR_REACH_NONE, sizeof(fake.reach));
		if (with_qp) {
			CHECK(relocate(&b, 1, &err) == -EHOSTUNREACH,
			      "accepted");
		} else {
			CHECK(!relocate(&b, 1, &err), "%s", err.text);
			check_at(0, 2, here, elsewhere);
			/* but one that has a route is better */
			fake.reach[4] = MIGR_REACH_ROUTE;
			CHECK(!relocate(&b, 1, &err), "%s", err.text);
			check_at(0, 2, here_too, elsewhere);
		}
		builder_free(&b);
	}
}

/* many QPs of two peers in turn: asked once of each, named in their order */
static void test_many(void)
{
	struct migr_error err;
	unsigned int asked = 0;
	struct builder b;
	uint32_t qpn[64], n, i;

	for (i = 0; i < 64; i++)
		qpn[i] = 0x40 + i;
	for (n = 2; n <= 64; n += 62) {
		build(&b, qpn, n);
		for (i = 0; i < n; i++)
			connect_to(&b, 2 + i, i % 2 ? elsewhere : beyond,
				   0x77 + i);
		fake_reset();
		CHECK(!relocate(&b, 1, &err), "%s", err.text);
		CHECK(fake.routes_asked &&
			      (!asked || fake.routes_asked == asked),
		      "%u", fake.routes_asked);
		asked = fake.routes_asked;
		for (i = 0; i < n; i++)
			check_at(0, 2 + i, here, i % 2 ? elsewhere : beyond);
		memset(fake.reach, MIGR_REACH_NONE, sizeof(fake.reach));
		CHECK(relocate(&b, 1, &err) == -EHOSTUNREACH, "accepted");
		CHECK(strstr(err.text, "QPN 0x40: no route") &&
			      strstr(err.text,
				     "7.7 QPN 0x77, nor to ::ffff:10.0.0.2"),
		      "%s", err.text);
		builder_free(&b);
	}
}

static void test_refusals(void)
{
	static const uint32_t qpn[] = { 0x40, 0x41, 0x42 };
	static const uint8_t link_local[16] = { 0xfe, 0x80, [15] = 1 };
	struct migr_error err;
	struct builder b;

	build(&b, qpn, 3);
	connect_to(&b, 2, elsewhere, 0x41);
	connect_to(&b, 3, elsewhere, 0x77);
	connect_to(&b, 4, beyond, 0x77);
	fake_reset();
	memset(fake.reach, MIGR_REACH_NONE, sizeof(fake.reach));
	CHECK(relocate(&b, 1, &err) == -EHOSTUNREACH, "accepted");
	CHECK(!strcmp(err.text,
		      "QP 2: QPN 0x40: no route from an IPv4 RoCEv2 GID of this host's device to peer ::ffff:10.0.0.2 QPN 0x41, nor to ::ffff:10.0.7.7"),
	      "%s", err.text);
	builder_free(&b);

	/* the table's link-local GID is for those that had one */
	build(&b, qpn, 1);
	memcpy(qp_of(&b, 2)->sgid, link_local, 16);
	qp_of(&b, 2)->sgid[15] = 2;
	memcpy(qp_of(&b, 2)->dgid, link_local, 16);
	qp_of(&b, 2)->network_type = 2;
	builder_seal(b.data, b.length);
	fake_reset();
	CHECK(!relocate(&b, 1, &err), "%s", err.text);
	check_at(0, 2, link_local, link_local);
	builder_free(&b);
}

int main(void)
{
	test_together();
	test_two_images();
	test_strangers();
	test_at_home();
	test_choice();
	test_ah();
	test_many();
	test_refusals();
	release();
	return check_result();
}
