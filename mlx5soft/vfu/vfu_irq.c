// SPDX-License-Identifier: GPL-2.0
/* Interrupts: MSI-X by eventfd; the other types exist, with 0 of each */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/vfio.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "vfu_priv.h"

#define DATA_MASK VFIO_IRQ_SET_DATA_TYPE_MASK
#define ACTION_MASK VFIO_IRQ_SET_ACTION_TYPE_MASK

/*
 * The client owns the other end: poll() keeps a full counter from blocking the
 * device.
 */
int vfu_irq(struct vfu *vfu, unsigned int vector)
{
	struct pollfd p = { .events = POLLOUT };
	const uint64_t one = 1;

	if (vector >= vfu->cfg.vectors)
		return -EINVAL;
	p.fd = vfu->eventfd[vector];
	if (p.fd < 0)
		return -ENOENT;
	if (poll(&p, 1, 0) != 1 || !(p.revents & POLLOUT) ||
	    write(p.fd, &one, sizeof(one)) != sizeof(one))
		return -EAGAIN;
	return 0;
}

void vfu_irq_close(struct vfu *vfu, unsigned int first, unsigned int count)
{
	for (unsigned int i = first; i < first + count; i++) {
		if (vfu->eventfd[i] >= 0)
			close(vfu->eventfd[i]);
		vfu->eventfd[i] = -1;
	}
}

ssize_t vfu_do_irq_info(struct vfu *vfu, size_t len)
{
	struct vfio_irq_info *m = (void *)vfu->msg.body;
	uint32_t index = m->index;

	(void)len;
	if (m->argsz < sizeof(*m))
		return vfu_refuse(vfu, EINVAL, "argsz %u", m->argsz);
	if (index >= VFU_NUM_IRQS)
		return vfu_refuse(vfu, EINVAL, "type %u", index);
	memset(m, 0, sizeof(*m));
	m->argsz = sizeof(*m);
	m->flags = VFIO_IRQ_INFO_EVENTFD;
	m->index = index;
	if (index == VFIO_PCI_MSIX_IRQ_INDEX)
		m->count = vfu->cfg.vectors;
	return sizeof(*m);
}

/* Writing to anything else could wait for as long as the client likes. */
static bool is_eventfd(int fd)
{
	char link[32], target[32] = "";

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	return readlink(link, target, sizeof(target) - 1) > 0 &&
	       !strcmp(target, "anon_inode:[eventfd]");
}

/* No descriptors at all: the range is no longer used. */
static int set_eventfds(struct vfu *vfu, const struct vfio_irq_set *m)
{
	if (vfu->nfds && vfu->nfds != m->count)
		return vfu_refuse(vfu, EINVAL, "%u descriptors for %u vectors",
				  vfu->nfds, m->count);
	for (unsigned int i = 0; i < vfu->nfds; i++)
		if (!is_eventfd(vfu->fds[i]))
			return vfu_refuse(vfu, EINVAL,
					  "descriptor %u is not an eventfd", i);
	vfu_irq_close(vfu, m->start, m->count);
	for (unsigned int i = 0; i < vfu->nfds; i++) {
		vfu->eventfd[m->start + i] = vfu->fds[i];
		vfu->fds[i] = -1;
	}
	return 0;
}

static int check_set(struct vfu *vfu, const struct vfio_irq_set *m, size_t len)
{
	uint32_t data = m->flags & DATA_MASK, action = m->flags & ACTION_MASK;
	uint32_t vectors = 0;
	size_t size = sizeof(*m);

	if (data == VFIO_IRQ_SET_DATA_BOOL)
		size += m->count;
	if (m->argsz != len || len != size)
		return vfu_refuse(vfu, EINVAL,
				  "argsz %u, %zu bytes, flags %#x, count %u",
				  m->argsz, len, m->flags, m->count);
	if (m->flags & ~(DATA_MASK | ACTION_MASK) || !data || !action ||
	    data & (data - 1) || action & (action - 1))
		return vfu_refuse(vfu, EINVAL, "flags %#x", m->flags);
	if (vfu->nfds && data != VFIO_IRQ_SET_DATA_EVENTFD)
		return vfu_refuse(vfu, EINVAL, "%u descriptors", vfu->nfds);
	if (m->index >= VFU_NUM_IRQS)
		return vfu_refuse(vfu, EINVAL, "type %u", m->index);
	if (m->index == VFIO_PCI_MSIX_IRQ_INDEX)
		vectors = vfu->cfg.vectors;
	if (m->start > vectors || m->count > vectors - m->start)
		return vfu_refuse(vfu, EINVAL, "%u vectors at %u of %u",
				  m->count, m->start, vectors);
	/* a count of 0 means all, and only to disable them */
	if (!m->count && (m->start || data != VFIO_IRQ_SET_DATA_NONE))
		return vfu_refuse(vfu, EINVAL, "0 vectors at %u", m->start);
	if (action != VFIO_IRQ_SET_ACTION_TRIGGER)
		return vfu_refuse(vfu, ENOTSUP, "flags %#x", m->flags);
	return 0;
}

ssize_t vfu_do_set_irqs(struct vfu *vfu, size_t len)
{
	const struct vfio_irq_set *m = (void *)vfu->msg.body;
	int ret = check_set(vfu, m, len);

	if (ret)
		return ret;
	if (m->flags & VFIO_IRQ_SET_DATA_EVENTFD)
		return set_eventfds(vfu, m);
	if (m->count) {
		for (unsigned int i = 0; i < m->count; i++)
			if (m->flags & VFIO_IRQ_SET_DATA_NONE || m->data[i])
				vfu_irq(vfu, m->start + i);
	} else if (m->index == VFIO_PCI_MSIX_IRQ_INDEX) {
		vfu_irq_close(vfu, 0, vfu->cfg.vectors);
	}
	return 0;
}
