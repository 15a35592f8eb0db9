// SPDX-License-Identifier: GPL-2.0
/*
 * The plug-in's image files. What is read is checked whole, because an image
 * may come from anywhere; what is written lies where only root can read it,
 * for a context's image contains the application's data.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "rdma_plugin.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
	       "the images are little-endian");

#define PAGE_MASK_BITS 0xfffU

static uint32_t image_crc(const void *img, size_t length)
{
	static const uint32_t zero;
	size_t at = offsetof(struct rp_image_hdr, crc32);
	size_t after = at + sizeof(zero);
	uLong crc;

	crc = crc32_z(0, img, at);
	crc = crc32_z(crc, (const Bytef *)&zero, sizeof(zero));
	return crc32_z(crc, (const Bytef *)img + after, length - after);
}

bool rp_file_has_context(uint32_t type)
{
	return type != RP_FILE_CM && type != RP_FILE_DEAD;
}

const struct rp_vma *rp_dead_vmas(const struct rp_dead_image *img)
{
	return (const struct rp_vma *)(img + 1);
}

size_t rp_dead_image_size(size_t nr_vmas)
{
	return sizeof(struct rp_dead_image) + nr_vmas * sizeof(struct rp_vma);
}

const struct rp_vma *rp_image_vmas(const struct rp_task_image *img)
{
	return (const struct rp_vma *)(img + 1);
}

const uint32_t *rp_image_fds(const struct rp_task_image *img)
{
	return (const uint32_t *)(rp_image_vmas(img) + img->nr_vmas);
}

size_t rp_task_image_size(size_t nr_vmas, size_t nr_fds)
{
	return sizeof(struct rp_task_image) + nr_vmas * sizeof(struct rp_vma) +
	       nr_fds * sizeof(uint32_t);
}

static uint64_t dump; /* that is written */

static struct {
	bool known;
	uint64_t dump;
} wanted; /* that is read */

uint64_t rp_image_dump(void)
{
	return dump;
}

int rp_image_new_dump(void)
{
	if (getrandom(&dump, sizeof(dump), 0) == sizeof(dump)) {
		dump |= !dump;
		return 0;
	}
	rp_err("cannot have a random number: %s", strerror(errno));
	return -EIO;
}

void rp_image_any_dump(void)
{
	wanted.known = false;
}

/* Whole and sane, but left over from another dump, or copied to this one? */
static const char *check_dump(const struct rp_image_hdr *hdr)
{
	if (!wanted.known)
		wanted.dump = hdr->dump;
	wanted.known = true;
	return hdr->dump == wanted.dump ? NULL
					: "of another dump than the others";
}

void rp_image_seal(void *img, enum rp_image_kind kind, size_t length)
{
	struct rp_image_hdr *hdr = img;

	memcpy(hdr->magic, RP_IMAGE_MAGIC, sizeof(hdr->magic));
	hdr->version = RP_IMAGE_VERSION;
	hdr->kind = kind;
	hdr->length = length;
	hdr->dump = dump;
	hdr->crc32 = image_crc(img, length);
}

static const char *check_file(const struct rp_file_image *img, size_t length)
{
	if (length != sizeof(*img))
		return "wrong length";
	if (img->type != RXE_MIGR_CONTEXT && img->type != RXE_MIGR_ASYNC_FD &&
	    img->type != RXE_MIGR_COMP_CHANNEL &&
	    rp_file_has_context(img->type))
		return "unknown type of file";
	if (rp_file_has_context(img->type) ==
	    (img->context == RXE_MIGR_NO_HANDLE))
		return "a context's number in a file of none";
	if (img->type != RXE_MIGR_COMP_CHANNEL &&
	    img->channel != RXE_MIGR_NO_HANDLE)
		return "a channel's name in a file that is none";
	return NULL;
}

/* in order, as rp_find_vma() wants them; a file's size is signed */
static const char *check_vmas(const struct rp_vma *vma, uint32_t nr)
{
	uint64_t last = 0;

	for (; nr; nr--, vma++) {
		if (vma->start < last || vma->start >= vma->end ||
		    vma->end > INT64_MAX ||
		    (vma->start | vma->end | vma->offset) & PAGE_MASK_BITS)
			return "bad mapping";
		if (vma->prot & ~(PROT_READ | PROT_WRITE) || vma->reserved)
			return "bad protection of a mapping";
		last = vma->end;
	}
	return NULL;
}

static const char *check_owner(uint32_t vpid, uint32_t max_fd)
{
	if (!vpid || vpid > INT_MAX)
		return "bad pid";
	if (max_fd > RP_MAX_FD)
		return "the task uses too large a file descriptor";
	return NULL;
}

static const char *check_dead(const struct rp_dead_image *img, size_t length)
{
	if (length < sizeof(*img) || img->nr_vmas > length ||
	    length != rp_dead_image_size(img->nr_vmas))
		return "wrong length";
	if (!img->nr_files)
		return "a task without files";
	return check_owner(img->vpid, img->max_fd)
		       ?: check_vmas(rp_dead_vmas(img), img->nr_vmas);
}

static const char *check_tracked(const struct rp_tracked_image *img,
				 size_t length)
{
	if (length < sizeof(*img) || img->nr > length ||
	    length != sizeof(*img) + img->nr * sizeof(*img->contexts))
		return "wrong length";
	return NULL;
}

static const char *check_task(const struct rp_task_image *img, size_t length)
{
	const char *why;
	bool found = false;

	if (length < sizeof(*img) || img->nr_vmas > length ||
	    img->nr_fds > length ||
	    length != rp_task_image_size(img->nr_vmas, img->nr_fds))
		return "wrong length";
	why = check_owner(img->vpid, img->max_fd);
	if (why)
		return why;
	if (!img->contexts)
		return "bad number of contexts";
	for (uint32_t i = 0; i < img->nr_fds; i++) {
		if (rp_image_fds(img)[i] > img->max_fd)
			return "bad file descriptor";
		found |= rp_image_fds(img)[i] == img->fd;
	}
	if (!found)
		return "the context's file is not among its files";
	return check_vmas(rp_image_vmas(img), img->nr_vmas);
}

const char *rp_image_check(const void *img, size_t length,
			   enum rp_image_kind kind)
{
	const struct rp_image_hdr *hdr = img;

	if (length < sizeof(*hdr))
		return "truncated";
	if (memcmp(hdr->magic, RP_IMAGE_MAGIC, sizeof(hdr->magic)))
		return "not an image of this plug-in";
	if (hdr->version != RP_IMAGE_VERSION)
		return "unknown version";
	if (hdr->length != length)
		return "wrong length";
	if (hdr->crc32 != image_crc(img, length))
		return "wrong checksum";
	if (hdr->kind != kind)
		return "wrong kind of image";
	switch (kind) {
	case RP_IMAGE_FILE:
		return check_file(img, length);
	case RP_IMAGE_TASK:
		return check_task(img, length);
	case RP_IMAGE_DEAD:
		return check_dead(img, length);
	case RP_IMAGE_TRACKED:
		return check_tracked(img, length);
	}
	return "unknown kind";
}

static int by_start(const void *a, const void *b)
{
	const struct rp_vma *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

const struct rp_vma *rp_find_vma(const struct rp_vma *vmas, uint32_t nr,
				 uint64_t start, uint64_t offset)
{
	const struct rp_vma key = { .start = start }, *vma;

	/* rp_image_check() wants them in this order */
	vma = bsearch(&key, vmas, nr, sizeof(key), by_start);
	return vma && vma->offset == offset ? vma : NULL;
}

static int by_offset(const void *a, const void *b)
{
	const struct rxe_migr_ring *x = *(const struct rxe_migr_ring *const *)a;
	const struct rxe_migr_ring *y = *(const struct rxe_migr_ring *const *)b;

	return (x->mmap_offset > y->mmap_offset) -
	       (x->mmap_offset < y->mmap_offset);
}

static void add_ring(struct rp_rings *rings, const struct rxe_migr_ring *ring)
{
	if (ring->mmap_size)
		rings->ring[rings->nr++] = ring;
}

int rp_rings_init(struct rp_rings *rings, const struct migr_image *img)
{
	const struct rxe_migr_rec *rec;
	const struct rxe_migr_rec_qp *qp;

	rings->nr = 0;
	rings->ring = calloc(2 * (size_t)img->count + 1, sizeof(*rings->ring));
	if (!rings->ring)
		return -ENOMEM;
	for (unsigned int i = 0; i < img->count; i++) {
		rec = img->records[i];
		if (rec->type == RXE_MIGR_CQ) {
			add_ring(rings, &((struct rxe_migr_rec_cq *)rec)->ring);
		} else if (rec->type == RXE_MIGR_SRQ) {
			add_ring(rings,
				 &((struct rxe_migr_rec_srq *)rec)->ring);
		} else if (rec->type == RXE_MIGR_QP) {
			qp = (const void *)rec;
			add_ring(rings, &qp->sq);
			add_ring(rings, &qp->rq);
		}
	}
	qsort(rings->ring, rings->nr, sizeof(*rings->ring), by_offset);
	return 0;
}

void rp_rings_free(struct rp_rings *rings)
{
	free(rings->ring);
	*rings = (struct rp_rings){};
}

const struct rxe_migr_ring *rp_rings_find(const struct rp_rings *rings,
					  uint64_t offset)
{
	const struct rxe_migr_ring ring = { .mmap_offset = offset };
	const struct rxe_migr_ring *key = &ring, **found;

	if (!rings->nr)
		return NULL;
	found = bsearch(&key, rings->ring, rings->nr, sizeof(key), by_offset);
	return found ? *found : NULL;
}

int rp_write_file(int dir, const char *name, const void *data, size_t length)
{
	const char *p = data;
	int err = 0;
	ssize_t n;
	int fd;

	/* mode and owner of what is there are not to be those of this one */
	if (unlinkat(dir, name, 0) && errno != ENOENT)
		return -errno;
	fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	while (length && !err) {
		n = write(fd, p, length);
		if (n > 0) {
			p += n;
			length -= n;
		} else if (n == 0 || errno != EINTR) {
			err = n ? -errno : -EIO;
		}
	}
	if (close(fd) && !err)
		err = -errno;
	if (err)
		unlinkat(dir, name, 0);
	return err;
}

static int read_all(int fd, char *p, size_t length)
{
	ssize_t n;

	while (length) {
		n = read(fd, p, length);
		if (n > 0) {
			p += n;
			length -= n;
		} else if (n == 0 || errno != EINTR) {
			return n ? -errno : -EIO;
		}
	}
	return 0;
}

int rp_read_file(int dir, const char *name, void **data, size_t *length)
{
	struct stat st;
	int err = 0;
	int fd;

	*data = NULL;
	fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st))
		err = -errno;
	else if (!S_ISREG(st.st_mode))
		err = -EINVAL;
	/* a context can be as large as memory: so much it has taken before */
	if (!err) {
		*length = st.st_size;
		*data = malloc(*length + 1); /* never NULL when empty */
		err = *data ? read_all(fd, *data, *length) : -ENOMEM;
	}
	close(fd);
	if (err) {
		free(*data);
		*data = NULL;
	}
	return err;
}

int rp_read_image(int dir, const char *name, enum rp_image_kind kind,
		  void **img)
{
	const char *why;
	size_t length;
	int err;

	err = rp_read_file(dir, name, img, &length);
	if (err) {
		rp_err("%s: %s", name, strerror(-err));
		return err;
	}
	why = rp_image_check(*img, length, kind) ?: check_dump(*img);
	if (!why)
		return 0;
	rp_err("%s: %s", name, why);
	free(*img);
	*img = NULL;
	return -EINVAL;
}

/* <prefix><number>.img, the number as printf() writes it */
static bool parse_name(const char *name, const char *prefix, int base,
		       uint32_t *number)
{
	size_t n = strlen(prefix);
	char as_written[32];

	if (strncmp(name, prefix, n))
		return false;
	*number = (uint32_t)strtoul(name + n, NULL, base);
	snprintf(as_written, sizeof(as_written),
		 base == 16 ? "%" PRIx32 ".img" : "%" PRIu32 ".img", *number);
	return !strcmp(name + n, as_written);
}

int rp_for_each_image(int dir, const char *prefix, int base,
		      int (*fn)(int dir, const char *name, uint32_t number))
{
	struct dirent *de;
	uint32_t number;
	int ret = 0;
	DIR *d;
	int fd;

	/* a file of its own: the read position must not be shared */
	fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	d = fdopendir(fd);
	if (!d) {
		ret = -errno;
		close(fd);
		return ret;
	}
	while (!ret && (de = readdir(d)))
		if (parse_name(de->d_name, prefix, base, &number))
			ret = fn(dir, de->d_name, number);
	closedir(d);
	return ret;
}

static int remove_one(int dir, const char *name, uint32_t number)
{
	(void)number;
	return unlinkat(dir, name, 0) ? -errno : 0;
}

/* CRIU makes the link, and goes by it */
bool rp_is_incremental(int dir)
{
	return !faccessat(dir, "parent", F_OK, AT_SYMLINK_NOFOLLOW);
}

int rp_remove_images(int dir)
{
	static const char *const prefix[] = { "rdma-ctx-", "rdma-task-",
					      "rdma-file-", "rdma-dead-" };
	int err = 0;

	for (size_t i = 0; i < sizeof(prefix) / sizeof(*prefix); i++)
		err = rp_for_each_image(dir, prefix[i], 16, remove_one) ?: err;
	if (unlinkat(dir, RP_TRACKED_NAME, 0) && errno != ENOENT)
		err = -errno;
	return err;
}
