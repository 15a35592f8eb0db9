// SPDX-License-Identifier: GPL-2.0
/* Messages: which there are, the small ones, access to regions */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/vfio.h>
#include <stdio.h>
#include <string.h>

#include "vfu_priv.h"

#define NUM_REGIONS VFIO_PCI_NUM_REGIONS

static ssize_t do_version(struct vfu *vfu, size_t len)
{
	struct vfu_msg_version *m = (void *)vfu->msg.body;
	size_t caps = len - sizeof(*m);

	if (vfu->ready)
		return vfu_refuse(vfu, EINVAL, "there is a version already");
	if (caps && m->caps[caps - 1])
		return vfu_refuse(vfu, EINVAL, "capabilities without a NUL");
	if (m->major) {
		vfu->drop = true;
		return vfu_refuse(vfu, EPROTONOSUPPORT, "version %u.%u",
				  m->major, m->minor);
	}
	/*
	 * 0.0 is what any client of major 0 understands. Its capabilities
	 * limit what a server sends unasked, and we send nothing.
	 */
	vfu->ready = true;
	m->minor = 0;
	return sizeof(*m) + 1 +
	       sprintf(m->caps,
		       "{\"capabilities\":{\"max_msg_fds\":%d,"
		       "\"max_data_xfer_size\":%d,\"max_dma_maps\":%d,"
		       "\"pgsizes\":%u}}",
		       VFU_MAX_FDS, VFU_MAX_XFER, VFU_MAX_MAPS, VFU_PAGE);
}

static ssize_t do_info(struct vfu *vfu, size_t len)
{
	struct vfio_device_info *m = (void *)vfu->msg.body;
	const size_t size = 16; /* the struct has grown since */

	(void)len;
	if (m->argsz < size)
		return vfu_refuse(vfu, EINVAL, "argsz %u", m->argsz);
	m->argsz = size;
	m->flags = VFIO_DEVICE_FLAGS_PCI | VFIO_DEVICE_FLAGS_RESET;
	m->num_regions = NUM_REGIONS;
	m->num_irqs = VFU_NUM_IRQS;
	return size;
}

static uint64_t region_size(const struct vfu *vfu, uint32_t index)
{
	if (index < VFU_NUM_BARS)
		return vfu->cfg.bar[index].size;
	return index == VFIO_PCI_CONFIG_REGION_INDEX ? VFU_CONFIG_SIZE : 0;
}

static ssize_t do_region_info(struct vfu *vfu, size_t len)
{
	struct vfio_region_info *m = (void *)vfu->msg.body;
	uint32_t index = m->index;

	(void)len;
	if (m->argsz < sizeof(*m))
		return vfu_refuse(vfu, EINVAL, "argsz %u", m->argsz);
	if (index >= NUM_REGIONS)
		return vfu_refuse(vfu, EINVAL, "region %u", index);
	memset(m, 0, sizeof(*m));
	m->argsz = sizeof(*m);
	m->index = index;
	m->size = region_size(vfu, index);
	if (m->size)
		m->flags = VFIO_REGION_INFO_FLAG_READ |
			   VFIO_REGION_INFO_FLAG_WRITE;
	return sizeof(*m);
}

static int check_rw(struct vfu *vfu, const struct vfu_msg_rw *m)
{
	uint64_t size = region_size(vfu, m->region);

	if (!size)
		return vfu_refuse(vfu, EINVAL, "region %u", m->region);
	if (!m->count || m->count > VFU_MAX_XFER)
		return vfu_refuse(vfu, EINVAL, "%u bytes", m->count);
	if (m->offset > size || m->count > size - m->offset)
		return vfu_refuse(vfu, EINVAL,
				  "%u bytes at %#llx of region %u, size %#llx",
				  m->count, (unsigned long long)m->offset,
				  m->region, (unsigned long long)size);
	return 0;
}

static ssize_t do_read(struct vfu *vfu, size_t len)
{
	struct vfu_msg_rw *m = (void *)vfu->msg.body;
	int ret = check_rw(vfu, m);

	(void)len;
	if (ret)
		return ret;
	if (m->region == VFIO_PCI_CONFIG_REGION_INDEX) {
		memcpy(m->data, vfu->pci + m->offset, m->count);
	} else {
		memset(m->data, 0, m->count);
		ret = vfu->cfg.ops->bar_read(vfu->cfg.priv, m->region,
					     m->offset, m->data, m->count);
	}
	return ret < 0 ? ret : (ssize_t)(sizeof(*m) + m->count);
}

static ssize_t do_write(struct vfu *vfu, size_t len)
{
	struct vfu_msg_rw *m = (void *)vfu->msg.body;
	int ret = check_rw(vfu, m);

	if (ret)
		return ret;
	if (len != sizeof(*m) + m->count)
		return vfu_refuse(vfu, EINVAL, "%u bytes, but %zu are here",
				  m->count, len - sizeof(*m));
	if (m->region == VFIO_PCI_CONFIG_REGION_INDEX)
		vfu_pci_client_write(vfu, m->offset, m->data, m->count);
	else
		ret = vfu->cfg.ops->bar_write(vfu->cfg.priv, m->region,
					      m->offset, m->data, m->count);
	return ret < 0 ? ret : (ssize_t)sizeof(*m);
}

static ssize_t do_reset(struct vfu *vfu, size_t len)
{
	(void)len;
	vfu_do_reset(vfu, VFU_RESET_DEVICE);
	return 0;
}

static const struct command {
	const char *name;
	ssize_t (*run)(struct vfu *vfu, size_t len);
	size_t min, max; /* bytes of the body */
	bool takes_fds;
} commands[] = {
	[VFU_CMD_VERSION] = { "VERSION", do_version, 4, 4096, false },
	[VFU_CMD_DMA_MAP] = { "DMA_MAP", vfu_do_map, 32, 32, true },
	[VFU_CMD_DMA_UNMAP] = { "DMA_UNMAP", vfu_do_unmap, 24, 24, false },
	[VFU_CMD_GET_INFO] = { "GET_INFO", do_info, 16, 16, false },
	[VFU_CMD_GET_REGION_INFO] = { "GET_REGION_INFO", do_region_info, 32, 32,
				      false },
	[VFU_CMD_GET_IRQ_INFO] = { "GET_IRQ_INFO", vfu_do_irq_info, 16, 16,
				   false },
	[VFU_CMD_SET_IRQS] = { "SET_IRQS", vfu_do_set_irqs, 20,
			       20 + VFU_MAX_VECTORS, true },
	[VFU_CMD_REGION_READ] = { "REGION_READ", do_read, 16, 16, false },
	[VFU_CMD_REGION_WRITE] = { "REGION_WRITE", do_write, 16, VFU_MAX_BODY,
				   false },
	[VFU_CMD_RESET] = { "RESET", do_reset, 0, 0, false },
};

static const struct command *find_command(uint16_t cmd)
{
	if (cmd >= sizeof(commands) / sizeof(commands[0]) || !commands[cmd].run)
		return NULL;
	return &commands[cmd];
}

const char *vfu_cmd_name(uint16_t cmd)
{
	const struct command *c = find_command(cmd);

	return c ? c->name : "message";
}

ssize_t vfu_do_message(struct vfu *vfu)
{
	const struct vfu_hdr *hdr = &vfu->msg.hdr;
	const struct command *cmd = find_command(hdr->cmd);
	size_t len = hdr->size - sizeof(*hdr);

	vfu_record(vfu, hdr->cmd, vfu->msg.body, len);
	if (hdr->flags & VFU_HDR_TYPE)
		return vfu_refuse(vfu, EINVAL, "not a request: flags %#x",
				  hdr->flags);
	if (!cmd)
		return vfu_refuse(vfu, ENOTSUP, "command %u", hdr->cmd);
	if (!vfu->ready && hdr->cmd != VFU_CMD_VERSION)
		return vfu_refuse(vfu, EINVAL, "no version yet");
	if (vfu->fds_lost)
		return vfu_refuse(vfu, EMFILE, "descriptors lost");
	if (vfu->nfds && !cmd->takes_fds)
		return vfu_refuse(vfu, EINVAL, "%u descriptors", vfu->nfds);
	if (len < cmd->min || len > cmd->max)
		return vfu_refuse(vfu, EINVAL, "%zu bytes", len);
	return cmd->run(vfu, len);
}
