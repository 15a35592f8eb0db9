// SPDX-License-Identifier: GPL-2.0
/* Image files: round trip, and refusal of everything that is not whole */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../tests/check.h"
#include "rdma_plugin.h"

static int dir;

static const struct rp_vma vmas[] = {
	{ .start = 0x7000, .end = 0x9000, .offset = 0x1000, .prot = 3 },
	{ .start = 0x9000, .end = 0xa000, .offset = 0x4000, .prot = 1 },
};
static const uint32_t fds[] = { 3, 4, 9 };

static struct rp_task_image *make_task(size_t *size)
{
	struct rp_task_image *img;

	*size = rp_task_image_size(2, 3);
	img = calloc(1, *size);
	MUST(img);
	img->context = 1;
	img->vpid = 17;
	img->fd = 3;
	img->max_fd = 9;
	img->contexts = 1;
	img->nr_vmas = 2;
	img->nr_fds = 3;
	memcpy((void *)rp_image_vmas(img), vmas, sizeof(vmas));
	memcpy((void *)rp_image_fds(img), fds, sizeof(fds));
	rp_image_seal(img, RP_IMAGE_TASK, *size);
	return img;
}

static void round_trip(void)
{
	struct rp_file_image file = { .context = 2,
				      .type = RXE_MIGR_ASYNC_FD,
				      .flags = O_RDWR | O_NONBLOCK,
				      .channel = RXE_MIGR_NO_HANDLE };
	struct stat st;
	size_t length;
	void *back;

	rp_image_seal(&file, RP_IMAGE_FILE, sizeof(file));
	CHECK(!rp_write_file(dir, "rdma-file-2a.img", &file, sizeof(file)));
	CHECK(!fstatat(dir, "rdma-file-2a.img", &st, 0));
	CHECK((st.st_mode & 0777) == 0600);
	/* whatever is there already */
	MUST(!fchmodat(dir, "rdma-file-2a.img", 0666, 0));
	CHECK(!rp_write_file(dir, "rdma-file-2a.img", &file, sizeof(file)));
	CHECK(!fstatat(dir, "rdma-file-2a.img", &st, 0));
	CHECK((st.st_mode & 0777) == 0600);
	MUST(!rp_read_file(dir, "rdma-file-2a.img", &back, &length));
	CHECK(length == sizeof(file) && !memcmp(back, &file, length));
	CHECK(!rp_image_check(back, length, RP_IMAGE_FILE));
	CHECK(rp_image_check(back, length, RP_IMAGE_TASK));
	free(back);
	CHECK(rp_read_file(dir, "absent", &back, &length) == -ENOENT);
	CHECK(!symlinkat("rdma-file-2a.img", dir, "link"));
	CHECK(rp_read_file(dir, "link", &back, &length) == -ELOOP);
	/* it is the link that makes room */
	CHECK(!rp_write_file(dir, "link", &file, 1));
	CHECK(!fstatat(dir, "rdma-file-2a.img", &st, 0));
	CHECK(st.st_size == sizeof(file));
}

static bool file_is_good(uint32_t type, uint32_t context, uint32_t channel)
{
	struct rp_file_image file = { .context = context,
				      .type = type,
				      .channel = channel };

	rp_image_seal(&file, RP_IMAGE_FILE, sizeof(file));
	return !rp_image_check(&file, sizeof(file), RP_IMAGE_FILE);
}

/* these are of no context, everything else of one */
static void files_of_none(void)
{
	const uint32_t none = RXE_MIGR_NO_HANDLE;

	CHECK(file_is_good(RXE_MIGR_CONTEXT, 0, none));
	CHECK(!file_is_good(RXE_MIGR_CONTEXT, none, none));
	CHECK(file_is_good(RXE_MIGR_COMP_CHANNEL, 0, 0));
	for (uint32_t type = RP_FILE_CM; type <= RP_FILE_DEAD; type++) {
		CHECK(file_is_good(type, none, none));
		CHECK(!file_is_good(type, 0, none));
		CHECK(!file_is_good(type, none, 0));
	}
	CHECK(!file_is_good(RP_FILE_DEAD + 1, none, none));
	CHECK(!file_is_good(RP_FILE_DEAD + 1, 0, none));
}

static void every_byte_counts(void *img, size_t size, enum rp_image_kind kind)
{
	CHECK(!rp_image_check(img, size, kind));
	for (size_t n = 0; n < size; n++)
		CHECK(rp_image_check(img, n, kind));
	for (size_t n = 0; n < size; n++) {
		((uint8_t *)img)[n] ^= 0x10;
		CHECK(rp_image_check(img, size, kind));
		((uint8_t *)img)[n] ^= 0x10;
	}
	CHECK(!rp_image_check(img, size, kind));
	for (int other = RP_IMAGE_FILE; other <= RP_IMAGE_DEAD; other++)
		CHECK(other == (int)kind || rp_image_check(img, size, other));
	free(img);
}

/* a valid checksum does not make a sane image */
static void insane(void)
{
	struct rp_task_image *img;
	size_t size;

#define REFUSED(change)                                          \
	do {                                                     \
		img = make_task(&size);                          \
		change;                                          \
		rp_image_seal(img, RP_IMAGE_TASK, size);         \
		CHECK(rp_image_check(img, size, RP_IMAGE_TASK)); \
		free(img);                                       \
	} while (0)

	REFUSED(img->vpid = 0);
	REFUSED(img->fd = 5);
	REFUSED(img->max_fd = 8);
	REFUSED(img->contexts = 0);
	REFUSED(img->nr_vmas = 1);
	REFUSED(img->nr_vmas = 0xffffffff);
	REFUSED(img->nr_fds = 0xfffffffd);
	REFUSED(((struct rp_vma *)rp_image_vmas(img))[1].start = 0x8000);
	REFUSED(((struct rp_vma *)rp_image_vmas(img))[0].end = 0x6000);
	REFUSED(((struct rp_vma *)rp_image_vmas(img))[1].end = 1ULL << 63);
	REFUSED(((struct rp_vma *)rp_image_vmas(img))[0].offset = 0x10);
	REFUSED(((struct rp_vma *)rp_image_vmas(img))[0].prot = PROT_EXEC);
}

static struct rp_dead_image *make_dead(size_t *size)
{
	struct rp_dead_image *img;

	*size = rp_dead_image_size(2);
	img = calloc(1, *size);
	MUST(img);
	img->vpid = 17;
	img->max_fd = 9;
	img->nr_files = 3;
	img->nr_vmas = 2;
	memcpy((void *)rp_dead_vmas(img), vmas, sizeof(vmas));
	rp_image_seal(img, RP_IMAGE_DEAD, *size);
	return img;
}

static void insane_dead(void)
{
	struct rp_dead_image *img;
	size_t size;

#define REFUSED_DEAD(change)                                     \
	do {                                                     \
		img = make_dead(&size);                          \
		change;                                          \
		rp_image_seal(img, RP_IMAGE_DEAD, size);         \
		CHECK(rp_image_check(img, size, RP_IMAGE_DEAD)); \
		free(img);                                       \
	} while (0)

	REFUSED_DEAD(img->vpid = 0);
	REFUSED_DEAD(img->vpid = 0x80000000);
	REFUSED_DEAD(img->max_fd = RP_MAX_FD + 1);
	REFUSED_DEAD(img->nr_files = 0);
	REFUSED_DEAD(img->nr_vmas = 1);
	REFUSED_DEAD(img->nr_vmas = 3);
	REFUSED_DEAD(img->nr_vmas = 0xffffffff);
	REFUSED_DEAD(((struct rp_vma *)rp_dead_vmas(img))[1].start = 0x8000);
	REFUSED_DEAD(((struct rp_vma *)rp_dead_vmas(img))[1].end = ~0xfffULL);
	REFUSED_DEAD(((struct rp_vma *)rp_dead_vmas(img))[0].reserved = 1);
}

/* a restore has room for its files above those of the task */
static void largest_fd(void)
{
	struct rp_task_image *img;
	size_t size;

	img = make_task(&size);
	img->max_fd = RP_MAX_FD;
	rp_image_seal(img, RP_IMAGE_TASK, size);
	CHECK(!rp_image_check(img, size, RP_IMAGE_TASK));
	CHECK(RP_HIGH_FD((uint64_t)img->max_fd) + 65530 < 1048576);
	free(img);
	REFUSED(img->max_fd = RP_MAX_FD + 1);
	REFUSED(img->max_fd = 0x3fffffff);
	REFUSED(img->max_fd = UINT32_MAX);
}

static void lookup(void)
{
	struct rxe_migr_rec_cq cq = { .rec.type = RXE_MIGR_CQ };
	struct rxe_migr_rec_qp qp = { .rec.type = RXE_MIGR_QP };
	struct rxe_migr_rec_pd pd = { .rec.type = RXE_MIGR_PD };
	const struct rxe_migr_rec *records[] = { &pd.rec, &cq.rec, &qp.rec };
	struct migr_image img = { .records = records, .count = 3 };
	struct rp_rings rings = {};

	CHECK(rp_find_vma(vmas, 2, 0x7000, 0x1000) == vmas);
	CHECK(rp_find_vma(vmas, 2, vmas[1].start, vmas[1].offset) == vmas + 1);
	CHECK(!rp_find_vma(vmas, 2, 0x7000, 0x4000));
	CHECK(!rp_find_vma(vmas, 2, 0x8000, 0x1000));

	cq.ring.mmap_size = 0x1000; /* at offset 0 */
	qp.sq = (struct rxe_migr_ring){ .mmap_offset = 0x1000,
					.mmap_size = 0x3000 };
	qp.rq.mmap_offset = 0x9000; /* none: no size */
	rp_rings_free(&rings);
	CHECK(!rp_rings_find(&rings, 0));
	MUST(!rp_rings_init(&rings, &img));
	CHECK(rp_rings_find(&rings, 0) == &cq.ring);
	CHECK(rp_rings_find(&rings, 0x1000) == &qp.sq);
	CHECK(!rp_rings_find(&rings, 0x2000));
	CHECK(!rp_rings_find(&rings, 0x9000));
	rp_rings_free(&rings);
}

static uint32_t seen[4];
static int nr_seen;

static int see(int d, const char *name, uint32_t number)
{
	(void)d;
	(void)name;
	MUST(nr_seen < 4);
	seen[nr_seen++] = number;
	return 0;
}

static void names(void)
{
	static const char *const file[] = {
		"rdma-task-1.img", "rdma-task-.img", "rdma-task-1.img.x",
		"rdma-task--1.img", "rdma-task-99999999999.img",
		"rdma-ctx-0.img", "rdma-dead-1.img", "pages-1.img",
		/* printf() writes none of these */
		"rdma-task-01.img", "rdma-task-\t1.img", "rdma-task-0x1.img",
		"rdma-file-2A.img", "rdma-file-0x2a.img", "rdma-file-02a.img"
	};

	for (size_t i = 0; i < sizeof(file) / sizeof(*file); i++)
		CHECK(!rp_write_file(dir, file[i], "", 0));
	CHECK(!rp_for_each_image(dir, "rdma-task-", 10, see));
	CHECK(nr_seen == 1 && seen[0] == 1);
	CHECK(!rp_for_each_image(dir, "rdma-file-", 16, see));
	CHECK(nr_seen == 2 && seen[1] == 0x2a);
	CHECK(!rp_remove_images(dir));
	CHECK(faccessat(dir, "rdma-ctx-0.img", F_OK, 0));
	CHECK(faccessat(dir, "rdma-task-1.img", F_OK, 0));
	CHECK(faccessat(dir, "rdma-dead-1.img", F_OK, 0));
	CHECK(faccessat(dir, "rdma-file-2a.img", F_OK, 0));
	CHECK(!faccessat(dir, "pages-1.img", F_OK, 0));
	CHECK(!rp_is_incremental(dir));
	MUST(!symlinkat("../1", dir, "parent")); /* to nowhere */
	CHECK(rp_is_incremental(dir));
}

/* more than memory is refused by the sanitizer's allocator, not killed */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "allocator_may_return_null=1";
}

/* what a dump could write a restore can read: only memory is a limit */
static void large(void)
{
	size_t length;
	void *data;
	int fd;

	fd = openat(dir, "rdma-ctx-9.img", O_WRONLY | O_CREAT, 0600);
	MUST(fd >= 0 && !ftruncate(fd, 2LL << 40));
	close(fd);
	CHECK(rp_read_file(dir, "rdma-ctx-9.img", &data, &length) == -ENOMEM);
	CHECK(!data);
}

int main(void)
{
	char path[] = "/tmp/criu-test-XXXXXX", cmd[64];
	size_t size;
	void *img;

	MUST(mkdtemp(path));
	dir = open(path, O_RDONLY | O_DIRECTORY);
	MUST(dir >= 0);
	round_trip();
	files_of_none();
	img = make_task(&size);
	every_byte_counts(img, size, RP_IMAGE_TASK);
	img = make_dead(&size);
	every_byte_counts(img, size, RP_IMAGE_DEAD);
	insane();
	insane_dead();
	largest_fd();
	lookup();
	names();
	large();
	snprintf(cmd, sizeof(cmd), "rm -rf %s", path);
	CHECK(!system(cmd));
	return check_result();
}
