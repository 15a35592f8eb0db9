// SPDX-License-Identifier: GPL-2.0
/* The client's memory */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "vfu_priv.h"

typedef unsigned long long ull;

/* ---- look-up ---- */

/* The first map which ends at or behind iova, or nmaps */
static unsigned int find_index(const struct vfu *vfu, uint64_t iova)
{
	unsigned int low = 0, high = vfu->nmaps, mid;

	while (low < high) {
		mid = (low + high) / 2;
		if (vfu->map[mid].last < iova)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static bool contains(const struct vfu_map *map, uint64_t iova)
{
	return iova >= map->iova && iova <= map->last;
}

/* One access of the data path is like the one before: try its map first. */
static const struct vfu_map *find(struct vfu *vfu, uint64_t iova)
{
	unsigned int i = vfu->hit;

	if (i >= vfu->nmaps || !contains(&vfu->map[i], iova)) {
		i = find_index(vfu, iova);
		if (i == vfu->nmaps || !contains(&vfu->map[i], iova))
			return NULL;
		vfu->hit = i;
	}
	return &vfu->map[i];
}

static void *dma_ptr(struct vfu *vfu, uint64_t iova, size_t len, int prot)
{
	const struct vfu_map *map = find(vfu, iova);

	if (!map || !map->ptr || (map->prot & prot) != prot || !len ||
	    len - 1 > map->last - iova)
		return NULL;
	return map->ptr + (iova - map->iova);
}

void *vfu_dma_ptr(struct vfu *vfu, uint64_t iova, size_t len)
{
	return dma_ptr(vfu, iova, len, PROT_READ | PROT_WRITE);
}

const void *vfu_dma_ptr_ro(struct vfu *vfu, uint64_t iova, size_t len)
{
	return dma_ptr(vfu, iova, len, PROT_READ);
}

static int dma_copy(struct vfu *vfu, uint64_t iova, uint8_t *to,
		    const uint8_t *from, size_t len)
{
	int prot = to ? PROT_READ : PROT_WRITE;
	const struct vfu_map *map;
	uint8_t *guest;
	size_t n;

	if (len && iova + (len - 1) < iova)
		return -EFAULT;
	while (len) {
		map = find(vfu, iova);
		if (!map || !map->ptr)
			return -EFAULT;
		if (!(map->prot & prot))
			return -EACCES;
		guest = map->ptr + (iova - map->iova);
		n = len - 1 <= map->last - iova ? len : map->last - iova + 1;
		if (to) {
			memcpy(to, guest, n);
			to += n;
		} else {
			memcpy(guest, from, n);
			from += n;
		}
		iova += n;
		len -= n;
	}
	return 0;
}

int vfu_dma_read(struct vfu *vfu, uint64_t iova, void *buf, size_t len)
{
	return dma_copy(vfu, iova, buf, NULL, len);
}

int vfu_dma_write(struct vfu *vfu, uint64_t iova, const void *buf, size_t len)
{
	return dma_copy(vfu, iova, NULL, buf, len);
}

uint64_t vfu_dma_generation(const struct vfu *vfu)
{
	return vfu->generation;
}

/* ---- DMA_MAP ---- */

/*
 * Touching a page which is no longer in its file is SIGBUS. A memfd that cannot
 * shrink never gets there; one of huge pages can, when the host has none left
 * for a hole.
 */
static bool cannot_shrink(int fd)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct statfs fs;

	if (seals < 0 || fstatfs(fd, &fs) || fs.f_type != TMPFS_MAGIC)
		return false;
	return seals & F_SEAL_SHRINK || !fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK);
}

static int map_fd(struct vfu *vfu, const struct vfu_msg_map *m, int fd,
		  struct vfu_map *map)
{
	struct stat st;
	void *ptr;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode))
		return vfu_refuse(vfu, EINVAL, "not a file in memory");
	if (!vfu->cfg.trust_memory && !cannot_shrink(fd))
		return vfu_refuse(
			vfu, EPERM,
			"memory is not a memfd sealed against shrinking");
	/* once more: it may have shrunk before it was sealed */
	if (fstat(fd, &st) || m->offset > (uint64_t)st.st_size ||
	    m->size > (uint64_t)st.st_size - m->offset)
		return vfu_refuse(vfu, EINVAL,
				  "%#llx bytes at %#llx of a file of %#llx",
				  (ull)m->size, (ull)m->offset,
				  (ull)st.st_size);
	ptr = mmap(NULL, m->size, map->prot, MAP_SHARED, fd, m->offset);
	if (ptr == MAP_FAILED)
		return vfu_refuse(vfu, errno, "mmap of %#llx bytes",
				  (ull)m->size);
	map->ptr = ptr;
	return 0;
}

static int check_map(struct vfu *vfu, const struct vfu_msg_map *m)
{
	const struct vfu_map *next;
	unsigned int i;

	if (m->argsz != sizeof(*m))
		return vfu_refuse(vfu, EINVAL, "argsz %u", m->argsz);
	if (m->flags & ~(VFU_DMA_READ | VFU_DMA_WRITE | VFU_DMA_MMAP) ||
	    !(m->flags & (VFU_DMA_READ | VFU_DMA_WRITE)))
		return vfu_refuse(vfu, EINVAL, "flags %#x", m->flags);
	if (vfu->nfds > 1 || (!vfu->nfds && m->flags & VFU_DMA_MMAP))
		return vfu_refuse(vfu, EINVAL, "%u descriptors", vfu->nfds);
	if (!m->size || m->iova + (m->size - 1) < m->iova)
		return vfu_refuse(vfu, EINVAL, "%#llx+%#llx is no range",
				  (ull)m->iova, (ull)m->size);
	if ((m->iova | m->size | m->offset) % VFU_PAGE)
		return vfu_refuse(vfu, EINVAL,
				  "%#llx+%#llx at %#llx: not whole pages",
				  (ull)m->iova, (ull)m->size, (ull)m->offset);
	i = find_index(vfu, m->iova);
	next = &vfu->map[i];
	if (i < vfu->nmaps && next->iova <= m->iova + (m->size - 1))
		return vfu_refuse(vfu, EEXIST, "%#llx+%#llx meets %#llx..%#llx",
				  (ull)m->iova, (ull)m->size, (ull)next->iova,
				  (ull)next->last);
	if (vfu->nmaps == VFU_MAX_MAPS)
		return vfu_refuse(vfu, ENOSPC, "%u maps", vfu->nmaps);
	return 0;
}

ssize_t vfu_do_map(struct vfu *vfu, size_t len)
{
	const struct vfu_msg_map *m = (void *)vfu->msg.body;
	struct vfu_map map = { 0 };
	unsigned int i;
	int ret;

	(void)len;
	ret = check_map(vfu, m);
	if (ret)
		return ret;
	map.iova = m->iova;
	map.last = m->iova + (m->size - 1);
	if (m->flags & VFU_DMA_READ)
		map.prot |= PROT_READ;
	if (m->flags & VFU_DMA_WRITE)
		map.prot |= PROT_WRITE;
	/* without a descriptor: known, so that it can be unmapped */
	if (vfu->nfds) {
		ret = map_fd(vfu, m, vfu->fds[0], &map);
		if (ret)
			return ret;
	}
	i = find_index(vfu, map.iova);
	memmove(&vfu->map[i + 1], &vfu->map[i], (vfu->nmaps - i) * sizeof(map));
	vfu->map[i] = map;
	vfu->nmaps++;
	vfu->generation++;
	return 0;
}

/* ---- DMA_UNMAP ---- */

static void drop_ptr(struct vfu_map *map)
{
	if (map->ptr)
		munmap(map->ptr, map->last - map->iova + 1);
}

void vfu_unmap_all(struct vfu *vfu)
{
	for (unsigned int i = 0; i < vfu->nmaps; i++)
		drop_ptr(&vfu->map[i]);
	vfu->nmaps = 0;
	vfu->generation++;
}

/* The reply is the request. */
ssize_t vfu_do_unmap(struct vfu *vfu, size_t len)
{
	const struct vfu_msg_unmap *m = (void *)vfu->msg.body;
	unsigned int i;

	if (m->argsz < sizeof(*m))
		return vfu_refuse(vfu, EINVAL, "argsz %u", m->argsz);
	if (m->flags & ~VFU_UNMAP_ALL)
		return vfu_refuse(vfu, EINVAL, "flags %#x", m->flags);
	if (m->flags & VFU_UNMAP_ALL) {
		vfu_unmap_all(vfu);
		return len;
	}
	i = find_index(vfu, m->iova);
	if (i == vfu->nmaps || vfu->map[i].iova != m->iova || !m->size ||
	    vfu->map[i].last - vfu->map[i].iova != m->size - 1)
		return vfu_refuse(vfu, ENOENT, "%#llx+%#llx is not a map",
				  (ull)m->iova, (ull)m->size);
	drop_ptr(&vfu->map[i]);
	vfu->nmaps--;
	memmove(&vfu->map[i], &vfu->map[i + 1],
		(vfu->nmaps - i) * sizeof(vfu->map[i]));
	vfu->generation++;
	return len;
}
