// SPDX-License-Identifier: GPL-2.0
/* The client's memory */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "client.h"

#define RW (VFU_DMA_READ | VFU_DMA_WRITE)
#define SIZE 0x10000UL

static struct fixture f;
static int mem;
static uint8_t *guest; /* the client's view of `mem` */

static void start(void)
{
	fixture_start(&f);
	mem = memory(SIZE, MFD_ALLOW_SEALING);
	guest = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, mem, 0);
	for (size_t i = 0; i < SIZE; i++)
		guest[i] = i ^ i >> 8;
}

static void stop(void)
{
	munmap(guest, SIZE);
	close(mem);
	fixture_stop(&f);
}

static unsigned int count_mappings(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	unsigned int n = 0;
	char line[512];

	while (fgets(line, sizeof(line), maps))
		n += !!strstr(line, "/memfd:test");
	fclose(maps);
	return n;
}

static void test_map(void)
{
	uint64_t generation;
	uint8_t buf[256];

	start();
	generation = vfu_dma_generation(f.vfu);
	CHECK(!vfu_dma_ptr(f.vfu, 0, 1), "nothing is mapped");
	CHECK(vfu_dma_read(f.vfu, 0, buf, 1) == -EFAULT, "mapped");
	CHECK(!vfu_dma_read(f.vfu, 0, buf, 0), "0 bytes");
	CHECK(!dma_map(&f, mem, 0x2000, 0x100000, 0x3000, RW), "%s", f.log);
	CHECK(vfu_dma_generation(f.vfu) != generation, "same generation");
	generation = vfu_dma_generation(f.vfu);
	CHECK(!vfu_dma_read(f.vfu, 0x100010, buf, sizeof(buf)), "read");
	CHECK(!memcmp(buf, guest + 0x2010, sizeof(buf)), "differs");
	memset(buf, 0xa5, sizeof(buf));
	CHECK(!vfu_dma_write(f.vfu, 0x102f00, buf, sizeof(buf)), "write");
	CHECK(!memcmp(buf, guest + 0x4f00, sizeof(buf)), "differs");
	CHECK(guest[0x4eff] != 0xa5 && guest[0x5000] != 0xa5, "written behind");

	CHECK(vfu_dma_ptr(f.vfu, 0x100000, 0x3000), "all");
	CHECK(*(uint8_t *)vfu_dma_ptr(f.vfu, 0x102fff, 1) == 0xa5, "last");
	CHECK(!vfu_dma_ptr(f.vfu, 0x100000, 0), "0 bytes");
	CHECK(!vfu_dma_ptr(f.vfu, 0x100000, 0x3001), "too long");
	CHECK(!vfu_dma_ptr(f.vfu, 0x100001, 0x3000), "too long");
	CHECK(!vfu_dma_ptr(f.vfu, 0x100001, SIZE_MAX), "wraps");
	CHECK(!vfu_dma_ptr(f.vfu, 0xfffff, 2), "before");
	CHECK(!vfu_dma_ptr(f.vfu, 0x103000, 1), "behind");
	CHECK(vfu_dma_read(f.vfu, 0x102fff, buf, 2) == -EFAULT, "behind");
	CHECK(vfu_dma_read(f.vfu, UINT64_MAX, buf, 2) == -EFAULT, "wraps");
	CHECK(vfu_dma_write(f.vfu, 0x100000, buf, SIZE_MAX) == -EFAULT,
	      "wraps");

	/* only what was mapped can be unmapped */
	CHECK(dma_unmap(&f, 0x100000, 0x2000) == ENOENT, "%s", f.log);
	CHECK(dma_unmap(&f, 0x101000, 0x2000) == ENOENT, "%s", f.log);
	CHECK(dma_unmap(&f, 0x100000, 0) == ENOENT, "%s", f.log);
	CHECK(dma_unmap(&f, 0, UINT64_MAX) == ENOENT, "%s", f.log);
	CHECK(vfu_dma_generation(f.vfu) == generation, "changed");
	CHECK(!dma_unmap(&f, 0x100000, 0x3000), "%s", f.log);
	CHECK(vfu_dma_generation(f.vfu) != generation, "same generation");
	CHECK(!vfu_dma_ptr(f.vfu, 0x100000, 1), "still there");
	CHECK(dma_unmap(&f, 0x100000, 0x3000) == ENOENT, "%s", f.log);
	CHECK(count_mappings() == 1, "%u", count_mappings());
	stop();
}

static void test_across(void)
{
	uint8_t buf[0x3000];

	start();
	/* not in their order; the top of the address space as well */
	CHECK(!dma_map(&f, mem, 0x4000, 0x3000, 0x1000, RW), "%s", f.log);
	CHECK(!dma_map(&f, mem, 0, 0x1000, 0x1000, RW), "%s", f.log);
	CHECK(!dma_map(&f, mem, 0x8000, 0x2000, 0x1000, RW), "%s", f.log);
	CHECK(!dma_map(&f, mem, 0, -0x1000ULL, 0x1000, RW), "%s", f.log);
	CHECK(!vfu_dma_ptr(f.vfu, 0x1fff, 2), "contiguous");
	CHECK(!vfu_dma_read(f.vfu, 0x1800, buf, 0x2000), "read");
	CHECK(!memcmp(buf, guest + 0x800, 0x800), "first");
	CHECK(!memcmp(buf + 0x800, guest + 0x8000, 0x1000), "second");
	CHECK(!memcmp(buf + 0x1800, guest + 0x4000, 0x800), "third");
	memset(buf, 1, sizeof(buf));
	CHECK(!vfu_dma_write(f.vfu, 0x1800, buf, 0x2000), "write");
	CHECK(guest[0x7ff] != 1 && guest[0x800] == 1 && guest[0xfff] == 1 &&
		      guest[0x8000] == 1 && guest[0x8fff] == 1 &&
		      guest[0x4000] == 1 && guest[0x47ff] == 1 &&
		      guest[0x4800] != 1,
	      "not where it belongs");
	CHECK(vfu_dma_read(f.vfu, 0x3800, buf, 0x801) == -EFAULT, "hole");
	CHECK(!vfu_dma_read(f.vfu, -0x1000ULL, buf, 0x1000), "top");
	CHECK(vfu_dma_read(f.vfu, -0x1000ULL, buf, 0x1001) == -EFAULT, "wraps");
	CHECK(vfu_dma_ptr(f.vfu, UINT64_MAX, 1), "last byte");
	CHECK(!vfu_dma_ptr(f.vfu, UINT64_MAX, 2), "wraps");
	stop();
}

static void test_access(void)
{
	uint8_t buf[8];

	start();
	CHECK(!dma_map(&f, mem, 0, 0x1000, 0x1000, VFU_DMA_READ), "%s", f.log);
	CHECK(!dma_map(&f, mem, 0, 0x2000, 0x1000, VFU_DMA_WRITE), "%s", f.log);
	CHECK(!vfu_dma_ptr(f.vfu, 0x1000, 8), "is read-only");
	CHECK(vfu_dma_ptr_ro(f.vfu, 0x1000, 8), "is readable");
	CHECK(!vfu_dma_read(f.vfu, 0x1000, buf, 8), "is readable");
	CHECK(vfu_dma_write(f.vfu, 0x1000, buf, 8) == -EACCES, "read-only");
	CHECK(!vfu_dma_ptr(f.vfu, 0x2000, 8), "is write-only");
	CHECK(!vfu_dma_ptr_ro(f.vfu, 0x2000, 8), "is write-only");
	CHECK(vfu_dma_read(f.vfu, 0x2000, buf, 8) == -EACCES, "write-only");
	CHECK(!vfu_dma_write(f.vfu, 0x2000, buf, 8), "is writable");
	/* known, but out of reach */
	CHECK(!dma_map(&f, -1, 0, 0x3000, 0x1000, RW), "%s", f.log);
	CHECK(!vfu_dma_ptr_ro(f.vfu, 0x3000, 8), "has no memory");
	CHECK(vfu_dma_read(f.vfu, 0x3000, buf, 8) == -EFAULT, "no memory");
	CHECK(dma_map(&f, mem, 0, 0x3000, 0x1000, RW) == EEXIST, "%s", f.log);
	CHECK(!dma_unmap(&f, 0x3000, 0x1000), "%s", f.log);
	stop();
}

/* argsz, flags, offset, iova, size with a map of 0x4000..0x7fff */
static const struct {
	struct vfu_msg_map m;
	int err;
	const char *why;
} refusals[] = {
	{ { 31, RW, 0, 0, 0x1000 }, EINVAL, "argsz 31" },
	{ { 33, RW, 0, 0, 0x1000 }, EINVAL, "argsz 33" },
	{ { 32, 0, 0, 0, 0x1000 }, EINVAL, "flags 0" },
	{ { 32, RW | VFU_DMA_FILE, 0, 0, 0x1000 }, EINVAL, "flags 0xb" },
	{ { 32, RW | 0x80000000, 0, 0, 0x1000 }, EINVAL, "flags" },
	{ { 32, RW, 0, 0, 0 }, EINVAL, "no range" },
	{ { 32, RW, 0, 0x1000, -0x1000ULL + 1 }, EINVAL, "no range" },
	{ { 32, RW, 0, -0x1000ULL, 0x2000 }, EINVAL, "no range" },
	{ { 32, RW, 0, 0x800, 0x1000 }, EINVAL, "whole pages" },
	{ { 32, RW, 0, 0, 0x1001 }, EINVAL, "whole pages" },
	{ { 32, RW, 1, 0, 0x1000 }, EINVAL, "whole pages" },
	{ { 32, RW, 0, 0x4000, 0x4000 }, EEXIST, "meets 0x4000..0x7fff" },
	{ { 32, RW, 0, 0x3000, 0x2000 }, EEXIST, "meets" },
	{ { 32, RW, 0, 0x7000, 0x2000 }, EEXIST, "meets" },
	{ { 32, RW, 0, 0x5000, 0x1000 }, EEXIST, "meets" },
	{ { 32, RW, 0, 0, 0x9000 }, EEXIST, "meets" },
	{ { 32, RW, SIZE - 0x1000, 0x10000, 0x2000 }, EINVAL, "file of" },
	{ { 32, RW, SIZE + 0x1000, 0x10000, 0x1000 }, EINVAL, "file of" },
	{ { 32, RW, 0, 0x10000, SIZE + 0x1000 }, EINVAL, "file of" },
	{ { 32, RW, 0, 0x10000, 1ULL << 63 }, EINVAL, "file of" },
	{ { 32, RW, -0x1000ULL, 0x10000, 0x1000 }, EINVAL, "file of" },
	{ { 32, RW, -0x1000ULL, 0x10000, 0x2000 }, EINVAL, "file of" },
};

static void test_refusals(void)
{
	struct vfu_msg_unmap u = { 23, 0, 0x4000, 0x4000 };
	unsigned int open;
	int two[2], err;

	start();
	CHECK(!dma_map(&f, mem, 0, 0x4000, 0x4000, RW), "%s", f.log);
	open = count_fds();
	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
		err = call_fds(&f, VFU_CMD_DMA_MAP, &refusals[i].m, 32, &mem,
			       1);
		CHECK(err == refusals[i].err, "case %zu: %d, %s", i, err,
		      f.log);
		CHECK(strstr(f.log, refusals[i].why), "case %zu: %s", i, f.log);
		CHECK(count_fds() == open, "case %zu", i);
	}
	CHECK(count_mappings() == 2, "%u", count_mappings());
	two[0] = two[1] = mem;
	err = call_fds(&f, VFU_CMD_DMA_MAP, &refusals[0].m, 32, two, 2);
	CHECK(err == EINVAL && count_fds() == open, "%d", err);
	CHECK(dma_map(&f, -1, 0, 0, 0x1000, RW | VFU_DMA_MMAP) == EINVAL, "%s",
	      f.log);

	CHECK(call(&f, VFU_CMD_DMA_UNMAP, &u, 24) == EINVAL, "%s", f.log);
	u.argsz = 24;
	u.flags = 1;
	CHECK(call(&f, VFU_CMD_DMA_UNMAP, &u, 24) == EINVAL, "%s", f.log);
	CHECK(vfu_dma_ptr(f.vfu, 0x4000, 0x4000), "gone");
	u = (struct vfu_msg_unmap){ 24, VFU_UNMAP_ALL, 0, 0 };
	CHECK(!call(&f, VFU_CMD_DMA_UNMAP, &u, 24), "%s", f.log);
	CHECK(!vfu_dma_ptr(f.vfu, 0x4000, 1), "still there");
	stop();
}

static void test_many(void)
{
	start();
	for (uint64_t i = 0; i < VFU_MAX_MAPS; i++)
		CHECK(!dma_map(&f, mem, 0, i * 0x2000, 0x1000, RW), "%s",
		      f.log);
	CHECK(dma_map(&f, mem, 0, 0x1000, 0x1000, RW) == ENOSPC, "%s", f.log);
	CHECK(count_mappings() == VFU_MAX_MAPS + 1, "%u", count_mappings());
	for (uint64_t i = 0; i < VFU_MAX_MAPS; i++) {
		CHECK(vfu_dma_ptr(f.vfu, i * 0x2000, 0x1000), "%d", (int)i);
		CHECK(!vfu_dma_ptr(f.vfu, i * 0x2000 + 0x1000, 1), "%d",
		      (int)i);
	}
	close(f.fd);
	f.fd = -1;
	run(&f);
	CHECK(count_mappings() == 1, "%u", count_mappings());
	CHECK(!vfu_dma_ptr_ro(f.vfu, 0, 1), "still there");
	CHECK(f.resets[VFU_RESET_DISCONNECT] == 1, "%u", f.resets[2]);
	stop();
}

/* Maps come and go at random; a plain table of pages says what is right. */
static void test_random(void)
{
	enum {
		PAGES = 64
	};
	int page[PAGES];		     /* of the file, or -1 */
	uint64_t first[PAGES], count[PAGES]; /* of the map a page is in */
	unsigned int hits = 0;

	start();
	srandom(1);
	memset(page, 0xff, sizeof(page));
	for (int round = 0; round < 3000; round++) {
		uint64_t at = random() % PAGES, n = 1 + random() % 4, i;
		int off = random() % 12, want = 0;

		if (at + n > PAGES)
			continue;
		for (i = at; i < at + n; i++)
			want |= page[i] >= 0;
		if (page[at] >= 0 && random() % 2) {
			uint64_t a = first[at], c = count[at];

			CHECK(!dma_unmap(&f, a << 12, c << 12), "%s", f.log);
			for (i = a; i < a + c; i++)
				page[i] = -1;
		} else {
			CHECK(dma_map(&f, mem, off << 12, at << 12, n << 12,
				      RW) == (want ? EEXIST : 0),
			      "%s", f.log);
			for (i = at; !want && i < at + n; i++) {
				page[i] = off + (i - at);
				first[i] = at;
				count[i] = n;
			}
		}
		for (i = 0; i < 20; i++) {
			uint64_t p = random() % PAGES, o = random() % 4096;
			uint8_t *ptr = vfu_dma_ptr(f.vfu, p << 12 | o, 1);

			CHECK(!ptr == (page[p] < 0), "page %d", (int)p);
			if (ptr)
				CHECK(*ptr == guest[page[p] << 12 | o],
				      "page %d", (int)p);
			hits += !!ptr;
		}
	}
	CHECK(hits > 10000, "%u hits", hits);
	stop();
}

/* SIGBUS is not for us: what can shrink is made not to, or refused */
static void test_shrink(void)
{
	char path[] = "/dev/shm/vfu-test-XXXXXX";
	struct vfu_config cfg = fixture_config;
	int fd, ro, p[2];

	start();
	fd = memory(SIZE, MFD_ALLOW_SEALING);
	CHECK(!dma_map(&f, fd, 0, 0, SIZE, RW), "%s", f.log);
	CHECK(fcntl(fd, F_GET_SEALS) & F_SEAL_SHRINK, "not sealed");
	CHECK(ftruncate(fd, 0) && errno == EPERM, "shrinks");
	close(fd);

	fd = memory(SIZE, MFD_ALLOW_SEALING);
	fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	CHECK(!dma_map(&f, fd, 0, SIZE, SIZE, RW), "%s", f.log);
	close(fd);
	/* sealed while it is too short */
	fd = memory(SIZE, MFD_ALLOW_SEALING);
	CHECK(!ftruncate(fd, 0), "no");
	CHECK(dma_map(&f, fd, 0, 2 * SIZE, SIZE, RW) == EINVAL, "%s", f.log);
	close(fd);
	/* nobody may write */
	fd = memory(SIZE, MFD_ALLOW_SEALING);
	fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_WRITE);
	CHECK(dma_map(&f, fd, 0, 2 * SIZE, SIZE, RW) == EPERM, "%s", f.log);
	close(fd);

	fd = memory(SIZE, 0);
	CHECK(dma_map(&f, fd, 0, 2 * SIZE, SIZE, RW) == EPERM, "%s", f.log);
	CHECK(strstr(f.log, "sealed"), "%s", f.log);
	close(fd);
	CHECK(!pipe2(p, O_CLOEXEC), "pipe");
	CHECK(dma_map(&f, p[0], 0, 2 * SIZE, SIZE, RW) == EINVAL, "%s", f.log);
	close(p[0]);
	close(p[1]);
	fd = open("/dev/zero", O_RDWR | O_CLOEXEC);
	CHECK(dma_map(&f, fd, 0, 2 * SIZE, SIZE, RW) == EINVAL, "%s", f.log);
	close(fd);
	stop();

	/* who trusts its client gets files as well */
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0)
		return; /* no /dev/shm here */
	CHECK(!ftruncate(fd, SIZE), "no");
	ro = open(path, O_RDONLY | O_CLOEXEC);
	unlink(path);
	cfg.trust_memory = true;
	fixture_init(&f, &cfg);
	fixture_connect(&f);
	CHECK(!handshake(&f), "%s", f.log);
	CHECK(!dma_map(&f, fd, 0, 0, SIZE, RW), "%s", f.log);
	CHECK(!dma_map(&f, ro, 0, SIZE, SIZE, VFU_DMA_READ), "%s", f.log);
	CHECK(dma_map(&f, ro, 0, 2 * SIZE, SIZE, RW) == EACCES, "%s", f.log);
	close(fd);
	close(ro);
	fixture_stop(&f);
}

int main(void)
{
	TEST(test_map);
	TEST(test_across);
	TEST(test_access);
	TEST(test_refusals);
	TEST(test_many);
	TEST(test_random);
	TEST(test_shrink);
	return check_result();
}
