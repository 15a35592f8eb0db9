// SPDX-License-Identifier: GPL-2.0
/* Memory keys: who may reach what, and where it is */
#include <errno.h>

#include "commands/cmd.h"
#include "mkey.h"
#include "nic.h"
#include "rig.h"

#define START 0x7f0000001800ULL /* in the middle of a page */
#define LEN 0x2800U		/* to the end of the third page */
#define ALL_RIGHTS                                                 \
	(MKEY_LOCAL_WRITE | MKEY_REMOTE_WRITE | MKEY_REMOTE_READ | \
	 MKEY_REMOTE_ATOMIC)

static struct rig *r;
static uint64_t buf; /* four pages */
static uint32_t key;

static int translate(uint64_t addr, uint32_t len, unsigned int access)
{
	struct iovec iov[8];

	return mkey_translate(r->nic, r->pd, key, addr, len, access, false, iov,
			      8);
}

static uint32_t create(void)
{
	int ret = rig_run(r);
	uint8_t *mkc = AT(create_mkey_in, r->in, memory_key_mkey_entry);

	CHECK(!ret, "%d: %s", ret, r->log);
	key = get_be32(r->out + 8) << 8 | GET(mkc, mkc, mkey_7_0);
	return key;
}

static void setup(void)
{
	r = rig_up();
	buf = rig_pages(r, 4);
	rig_mkey_in(r, buf, START, LEN);
	create();
}

/* The place of `addr`, over which `len` bytes must be reachable */
static void at(uint64_t addr, uint32_t len, uint64_t place)
{
	struct iovec iov[8];
	int n, i;

	n = mkey_translate(r->nic, r->pd, key, addr, len, ALL_RIGHTS, false,
			   iov, 8);
	CHECK(n > 0, "%#lx+%#x: %d", addr, len, n);
	for (i = 0; i < n; i++) {
		uint8_t *want = vfu_dma_ptr(nic_vfu(r->nic), place, 1);

		CHECK(iov[i].iov_base == want && iov[i].iov_len <= len,
		      "%#lx: piece %d", addr, i);
		place += iov[i].iov_len;
		len -= iov[i].iov_len;
	}
	CHECK(!len, "%u bytes missing", len);
}

static void test_range(void)
{
	setup();
	at(START, LEN, buf + 0x800);
	at(START, 1, buf + 0x800);
	at(START + LEN - 1, 1, buf + 0x2fff);
	at(START + 0x7ff, 2, buf + 0xfff); /* over the border of two pages */
	at(START + 0x800, 0x1000, buf + 0x1000);
	CHECK(translate(START - 1, 1, 0) == -EACCES, "before");
	CHECK(translate(START - 1, 2, 0) == -EACCES, "from before");
	CHECK(translate(START + LEN, 1, 0) == -EACCES, "behind");
	CHECK(translate(START + LEN - 1, 2, 0) == -EACCES, "over the end");
	CHECK(translate(START, LEN + 1, 0) == -EACCES, "too long");
	CHECK(translate(START + 1, -1U, 0) == -EACCES, "far too long");
	CHECK(translate(0, 1, 0) == -EACCES, "0");
	CHECK(translate(-1ULL, 1, 0) == -EACCES, "the last byte");
	CHECK(translate(-1ULL, 2, 0) == -EACCES, "wraps");
	CHECK(translate(-8ULL, -1U, 0) == -EACCES, "wraps");
	/* nothing is inside as well as at the end */
	CHECK(translate(START, 0, 0) == 0, "nothing");
	CHECK(translate(START + LEN, 0, 0) == 0, "nothing at the end");
	CHECK(translate(START + LEN + 1, 0, 0) == -EACCES, "nothing outside");
	rig_stop(r);
}

/* Memory that the device may only read */
static void test_read_only(void)
{
	setup();
	host_map_ro(r->host, 0, HOST_MEMORY, RIG_FREE);
	rig_mkey_in(r, HOST_MEMORY + RIG_FREE - RIG_PAGE, 0, RIG_PAGE);
	create();
	CHECK(translate(0, 64, 0) == 1, "local read");
	CHECK(translate(0, 64, MKEY_REMOTE_READ) == 1, "remote read");
	CHECK(translate(0, 64, MKEY_LOCAL_WRITE) == -EFAULT, "local write");
	CHECK(translate(0, 64, MKEY_REMOTE_WRITE) == -EFAULT, "remote write");
	CHECK(translate(0, 8, MKEY_REMOTE_ATOMIC) == -EFAULT, "atomic");
	rig_stop(r);
}

static void test_pieces(void)
{
	struct iovec iov[3];
	uint32_t i;

	r = rig_up();
	/* pages in a disorder: never two in a row */
	buf = rig_pages(r, 8);
	rig_mkey_in(r, buf, 0, 4 * 4096);
	for (i = 0; i < 4; i++)
		put_be64(r->in + BYTES(create_mkey_in) + 8 * i,
			 buf + (7 - 2 * i) * 4096);
	create();
	at(0, 1, buf + 7 * 4096);
	at(4096, 4096, buf + 5 * 4096);
	CHECK(mkey_translate(r->nic, r->pd, key, 100, 8192, 0, false, iov, 3) ==
		      3,
	      "three pages");
	CHECK(iov[0].iov_len == 3996 && iov[1].iov_len == 4096 &&
		      iov[2].iov_len == 100,
	      "%zu, %zu, %zu", iov[0].iov_len, iov[1].iov_len, iov[2].iov_len);
	CHECK(mkey_translate(r->nic, r->pd, key, 100, 8192, 0, false, iov, 2) ==
		      -E2BIG,
	      "no room");
	CHECK(mkey_translate(r->nic, r->pd, key, 100, 8192, 0, false, NULL,
			     0) >= 0,
	      "a mere check");
	rig_stop(r);
}

static void test_rights(void)
{
	static const char *const names[] = { "lw", "rw", "rr", "a" };

	r = rig_up();
	buf = rig_pages(r, 1);
	for (unsigned int have = 0; have < 32; have++) {
		uint8_t *mkc;

		rig_mkey_in(r, buf, 0, 4096);
		mkc = AT(create_mkey_in, r->in, memory_key_mkey_entry);
		SET(mkc, mkc, lw, !!(have & MKEY_LOCAL_WRITE));
		SET(mkc, mkc, rw, !!(have & MKEY_REMOTE_WRITE));
		SET(mkc, mkc, rr, !!(have & MKEY_REMOTE_READ));
		SET(mkc, mkc, a, !!(have & MKEY_REMOTE_ATOMIC));
		SET(mkc, mkc, lr, have >> 4);
		create();
		for (int i = 0; i < 4; i++)
			CHECK((translate(0, 8, 1 << i) == 1) ==
				      !!(have & 1 << i),
			      "%#x: %s", have, names[i]);
		CHECK((translate(0, 8, ALL_RIGHTS) == 1) ==
			      ((have & ALL_RIGHTS) == ALL_RIGHTS),
		      "%#x", have);
		CHECK((translate(0, 8, MKEY_LOCAL_READ) == 1) == have >> 4,
		      "%#x: lr", have);
	}
	rig_stop(r);
}

static void test_identity(void)
{
	struct iovec iov;
	uint32_t other;

	setup();
	rig_begin(r, MLX5_CMD_OP_ALLOC_PD, 16, 16);
	other = rig_id(r);
#define TRY(pd, key) \
	mkey_translate(r->nic, pd, key, START, 8, 0, false, &iov, 1)
	CHECK(TRY(r->pd, key) == 1, "right");
	CHECK(TRY(ANY_PD, key) == 1, "of any PD");
	CHECK(TRY(other, key) == -EACCES, "another PD");
	CHECK(TRY(0, key) == -EACCES, "PD 0");
	for (uint32_t bit = 0; bit < 32; bit++)
		CHECK(TRY(r->pd, key ^ 1U << bit) == -EACCES, "bit %u", bit);
	CHECK(TRY(r->pd, 0) == -EACCES, "key 0");
	CHECK(TRY(ANY_PD, 0x100) == -EACCES, "the end of a list");
	CHECK(TRY(ANY_PD, RESD_LKEY) == -EACCES, "reserved");
	CHECK(TRY(ANY_PD, -1U) == -EACCES, "all ones");
	CHECK(!rig_run_id(r, MLX5_CMD_OP_DESTROY_MKEY, key >> 8), "%s", r->log);
	CHECK(TRY(r->pd, key) == -EACCES, "destroyed");
#undef TRY
	rig_stop(r);
}

static void test_reserved(void)
{
	struct iovec iov[2];

	setup();
#define TRY(addr, len)                                                        \
	mkey_translate(r->nic, r->pd, RESD_LKEY, addr, len, ALL_RIGHTS, true, \
		       iov, 2)
	CHECK(TRY(buf, 4 * 4096) == 1, "memory");
	CHECK(iov[0].iov_base == vfu_dma_ptr(nic_vfu(r->nic), buf, 1), "where");
	CHECK(TRY(HOST_MEMORY - 1, 1) == 1, "the last byte");
	CHECK(TRY(HOST_MEMORY, 1) == -EFAULT, "behind");
	CHECK(TRY(HOST_MEMORY - 1, 2) == -EFAULT, "over the end");
	/* the last page is there, and the first: still no way round */
	host_map(r->host, 0, -4096ULL, 4096);
	CHECK(TRY(-4096ULL, 4096) == 1, "the last page");
	CHECK(TRY(-4096ULL, 4097) == -EACCES, "wraps");
	CHECK(TRY(-1ULL, -1U) == -EACCES, "wraps");
	/* over the border of two maps */
	host_map(r->host, 0, HOST_MEMORY, 4096);
	CHECK(TRY(HOST_MEMORY - 16, 32) == 2, "two maps");
	CHECK(iov[0].iov_len == 16 && iov[1].iov_len == 16, "%zu",
	      iov[0].iov_len);
#undef TRY
	rig_stop(r);
}

/* Memory comes and goes; keys stay. */
static void test_unmapped(void)
{
	setup();
	host_unmap(r->host, 0, HOST_MEMORY);
	CHECK(translate(START, 8, 0) == -EFAULT, "unmapped");
	CHECK(mkey_translate(r->nic, r->pd, key, START, 8, 0, false, NULL, 0) >=
		      0,
	      "the key itself is right");
	host_map(r->host, 0, 0, HOST_MEMORY);
	at(START, LEN, buf + 0x800);
	host_unmap(r->host, 0, HOST_MEMORY);
	/* the last page is missing */
	host_map(r->host, 0, 0, buf + 2 * 4096);
	CHECK(translate(START + LEN - 1, 1, 0) == -EFAULT, "last page");
	CHECK(translate(START, LEN, 0) == -EFAULT, "with the last page");
	at(START, 0x1800, buf + 0x800);
	rig_stop(r);
}

static void test_invalid(void)
{
	uint8_t *mkc;

	setup();
	CHECK(mkey_invalidate(r->nic, r->pd, key) == -EACCES, "no right to");
	at(START, 1, buf + 0x800);
	rig_mkey_in(r, buf, START, LEN);
	SET(create_mkey_in, r->in, memory_key_mkey_entry.en_rinval, 1);
	create();
	CHECK(mkey_invalidate(r->nic, r->pd + 1, key) == -EACCES, "PD");
	CHECK(mkey_invalidate(r->nic, r->pd, key ^ 1) == -EACCES, "variant");
	at(START, 1, buf + 0x800);
	CHECK(!mkey_invalidate(r->nic, r->pd, key), "invalidate");
	CHECK(translate(START, 1, 0) == -EACCES, "invalid");
	CHECK(mkey_invalidate(r->nic, r->pd, key) == -EACCES, "twice");
	rig_begin_id(r, MLX5_CMD_OP_QUERY_MKEY, key >> 8);
	r->out_len = 272;
	CHECK(!rig_run(r), "%s", r->log);
	CHECK(GET(mkc, AT(query_mkey_out, r->out, memory_key_mkey_entry), free),
	      "shown as free");
	/* free from the beginning: no list is needed */
	rig_begin(r, MLX5_CMD_OP_CREATE_MKEY, BYTES(create_mkey_in), 16);
	mkc = AT(create_mkey_in, r->in, memory_key_mkey_entry);
	SET(mkc, mkc, access_mode_1_0, 1);
	SET(mkc, mkc, free, 1);
	SET(mkc, mkc, pd, r->pd);
	create();
	CHECK(translate(0, 0, 0) == -EACCES, "free");
	rig_stop(r);
}

static void bad(const char *what)
{
	int ret = rig_run(r);

	CHECK(ret == CMD_BAD_PARAM, "%s: %d", what, ret);
}

#define MKC(field, value) \
	SET(create_mkey_in, r->in, memory_key_mkey_entry.field, value)
#define OCTWORDS(n) \
	SET(create_mkey_in, r->in, translations_octword_actual_size, n)

static void test_contexts(void)
{
	setup();
	for (uint32_t mode = 2; mode < 32; mode++) {
		rig_mkey_in(r, buf, 0, 4096);
		MKC(access_mode_1_0, mode);
		MKC(access_mode_4_2, mode >> 2);
		bad("mode");
	}
	for (uint32_t log = 0; log < 12; log++) {
		rig_mkey_in(r, buf, 0, 4096);
		MKC(log_page_size, log);
		bad("page size");
	}
	rig_mkey_in(r, buf, 0, 4096);
	MKC(log_page_size, 63);
	bad("page size");
	rig_mkey_in(r, buf, 0, 4096);
	MKC(length64, 1);
	bad("a list for everything");
	/* lengths near 2^64, with each page size, need more than one page */
	for (uint32_t log = 12; log <= 40; log++)
		for (uint64_t len = 1; len <= 1ULL << 32; len <<= 8) {
			rig_mkey_in(r, buf, 0, 4096);
			MKC(log_page_size, log);
			MKC(len, -len);
			bad("length");
			MKC(start_addr, 1ULL << 11);
			bad("length from the middle of a page");
			MKC(start_addr, len);
			bad("up to the end");
			MKC(start_addr, len + 1);
			bad("over the end");
		}
	/* the list: shorter than it says, and saying less than is needed */
	rig_mkey_in(r, buf, 0, 3 * 4096);
	OCTWORDS(1);
	bad("number");
	OCTWORDS(-1);
	bad("number");
	OCTWORDS(3);
	bad("number");
	OCTWORDS(2);
	create();
	at(2 * 4096, 4096, buf + 2 * 4096);
	/* the end of the address space is a place as any other */
	rig_mkey_in(r, buf, -8192ULL, 8192);
	create();
	at(-8192ULL, 8192, buf);
	CHECK(translate(-1ULL, 1, 0) == 1, "the last byte");
	CHECK(translate(-1ULL, 2, 0) == -EACCES, "wraps");
	rig_mkey_in(r, buf, -8192ULL, 8193);
	bad("over the end");
	/* physical: no list; all memory, or a part */
	rig_mkey_in(r, buf, buf + 16, 4096);
	MKC(access_mode_1_0, 0);
	create();
	at(buf + 16, 4096, buf + 16);
	CHECK(translate(buf + 15, 1, 0) == -EACCES, "before");
	CHECK(translate(buf + 16 + 4096, 1, 0) == -EACCES, "behind");
	rig_mkey_in(r, 0, 0, 0);
	MKC(access_mode_1_0, 0);
	MKC(length64, 1);
	create();
	at(0, HOST_MEMORY, 0);
	CHECK(translate(RIG_NOWHERE, 1, 0) == -EFAULT, "nowhere");
	CHECK(translate(-1ULL, 2, 0) == -EACCES, "wraps");
	rig_stop(r);
}

int main(void)
{
	test_range();
	test_read_only();
	test_pieces();
	test_rights();
	test_identity();
	test_reserved();
	test_unmapped();
	test_invalid();
	test_contexts();
	return check_result();
}
