// SPDX-License-Identifier: GPL-2.0
/* Configuration space */
#include <errno.h>
#include <linux/pci_regs.h>
#include <string.h>

#include "vfu_priv.h"

#define CAPS_END 256	 /* PCI's part of the space */
#define LINK_8GT_X8 0x83 /* as in the link status */

static bool inside(unsigned int off, size_t len)
{
	return off <= VFU_CONFIG_SIZE && len <= VFU_CONFIG_SIZE - off;
}

uint32_t vfu_pci_read(const struct vfu *vfu, unsigned int off, size_t len)
{
	uint32_t value = 0;

	if (inside(off, len) && len <= sizeof(value))
		memcpy(&value, vfu->pci + off, len);
	return value;
}

int vfu_pci_write(struct vfu *vfu, unsigned int off, uint32_t value, size_t len)
{
	if (!inside(off, len) || len > sizeof(value))
		return -EINVAL;
	memcpy(vfu->pci + off, &value, len);
	return 0;
}

int vfu_pci_set(struct vfu *vfu, unsigned int off, const void *value,
		const void *wmask, size_t len)
{
	if (!inside(off, len))
		return -EINVAL;
	memcpy(vfu->pci + off, value, len);
	memcpy(vfu->pci_reset + off, value, len);
	if (wmask)
		memcpy(vfu->pci_wmask + off, wmask, len);
	else
		memset(vfu->pci_wmask + off, 0, len);
	return 0;
}

int vfu_pci_add_cap(struct vfu *vfu, uint8_t id, const void *cap,
		    const void *wmask, size_t len)
{
	uint8_t head[2] = { id, 0 }, at = vfu->cap_end;

	if (len < sizeof(head))
		return -EINVAL;
	if (len > CAPS_END - vfu->cap_end)
		return -ENOSPC;
	vfu_pci_set(vfu, at, cap, wmask, len);
	vfu_pci_set(vfu, at, head, NULL, sizeof(head));
	vfu_pci_set(vfu, vfu->cap_link, &at, NULL, 1);
	vfu->cap_link = at + 1;
	vfu->cap_end = (at + len + 3) & ~3UL;
	return at;
}

bool vfu_bus_master(const struct vfu *vfu)
{
	return vfu_pci_read(vfu, PCI_COMMAND, 2) & PCI_COMMAND_MASTER;
}

void vfu_pci_reset(struct vfu *vfu)
{
	memcpy(vfu->pci, vfu->pci_reset, sizeof(vfu->pci));
}

void vfu_pci_client_write(struct vfu *vfu, unsigned int off, const uint8_t *buf,
			  size_t len)
{
	/* in the upper byte */
	unsigned int flr = vfu->devctl + 1 - off;
	uint8_t *p = vfu->pci + off, *w = vfu->pci_wmask + off;

	for (size_t i = 0; i < len; i++)
		p[i] = (p[i] & ~w[i]) | (buf[i] & w[i]);
	if (flr < len && buf[flr] & PCI_EXP_DEVCTL_BCR_FLR >> 8)
		vfu_do_reset(vfu, VFU_RESET_FLR);
	else if (vfu->cfg.ops->config_written)
		vfu->cfg.ops->config_written(vfu->cfg.priv, off, len);
}

/* ---- what every device has ---- */

static void set16(uint8_t *at, unsigned int off, uint16_t value)
{
	memcpy(at + off, &value, sizeof(value));
}

static void set32(uint8_t *at, unsigned int off, uint32_t value)
{
	memcpy(at + off, &value, sizeof(value));
}

static void init_header(struct vfu *vfu)
{
	const struct vfu_config *cfg = &vfu->cfg;
	uint8_t head[64] = { 0 }, mask[64] = { 0 };

	set16(head, PCI_VENDOR_ID, cfg->vendor);
	set16(head, PCI_DEVICE_ID, cfg->device);
	set16(head, PCI_STATUS, PCI_STATUS_CAP_LIST);
	set32(head, PCI_CLASS_REVISION, cfg->class_code << 8 | cfg->revision);
	set16(head, PCI_SUBSYSTEM_VENDOR_ID, cfg->subsys_vendor);
	set16(head, PCI_SUBSYSTEM_ID, cfg->subsys);
	set16(mask, PCI_COMMAND,
	      PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER | PCI_COMMAND_PARITY |
		      PCI_COMMAND_SERR | PCI_COMMAND_INTX_DISABLE);
	mask[PCI_CACHE_LINE_SIZE] = 0xff;
	mask[PCI_INTERRUPT_LINE] = 0xff;
	vfu_pci_set(vfu, 0, head, mask, sizeof(head));
}

/* The guest finds the size by writing ones: only address bits stay. */
static void init_bar(struct vfu *vfu, unsigned int i)
{
	const struct vfu_bar *bar = &vfu->cfg.bar[i];
	unsigned int off = PCI_BASE_ADDRESS_0 + 4 * i;
	uint64_t type = 0, mask = ~(bar->size - 1);
	size_t len = 4;

	if (!bar->size)
		return;
	if (bar->flags & VFU_BAR_64) {
		type |= PCI_BASE_ADDRESS_MEM_TYPE_64;
		len = 8;
	}
	if (bar->flags & VFU_BAR_PREFETCH)
		type |= PCI_BASE_ADDRESS_MEM_PREFETCH;
	vfu_pci_set(vfu, off, &type, &mask, len);
}

static void init_pcie(struct vfu *vfu)
{
	uint8_t cap[PCI_EXP_LNKCTL2 + 8] = { 0 }, mask[sizeof(cap)] = { 0 };

	set16(cap, PCI_EXP_FLAGS, 2);
	set32(cap, PCI_EXP_DEVCAP,
	      PCI_EXP_DEVCAP_FLR | PCI_EXP_DEVCAP_RBER |
		      PCI_EXP_DEVCAP_EXT_TAG | 1 /* 256 bytes of payload */);
	set16(cap, PCI_EXP_DEVCTL,
	      PCI_EXP_DEVCTL_RELAX_EN | PCI_EXP_DEVCTL_NOSNOOP_EN |
		      PCI_EXP_DEVCTL_READRQ_512B);
	set16(mask, PCI_EXP_DEVCTL, 0xffff & ~PCI_EXP_DEVCTL_BCR_FLR);
	set32(cap, PCI_EXP_LNKCAP, LINK_8GT_X8);
	set16(cap, PCI_EXP_LNKSTA, LINK_8GT_X8);
	set16(mask, PCI_EXP_LNKCTL,
	      PCI_EXP_LNKCTL_ASPMC | PCI_EXP_LNKCTL_RCB | PCI_EXP_LNKCTL_CCC |
		      PCI_EXP_LNKCTL_ES);
	set32(cap, PCI_EXP_DEVCAP2, PCI_EXP_DEVCAP2_COMP_TMOUT_DIS);
	set16(mask, PCI_EXP_DEVCTL2, PCI_EXP_DEVCTL2_COMP_TMOUT_DIS);
	set32(cap, PCI_EXP_LNKCAP2,
	      PCI_EXP_LNKCAP2_SLS_2_5GB | PCI_EXP_LNKCAP2_SLS_5_0GB |
		      PCI_EXP_LNKCAP2_SLS_8_0GB);
	set16(cap, PCI_EXP_LNKCTL2, PCI_EXP_LNKCTL2_TLS_8_0GT);
	set16(mask, PCI_EXP_LNKCTL2, PCI_EXP_LNKCTL2_TLS);
	vfu->devctl = PCI_EXP_DEVCTL + vfu_pci_add_cap(vfu, PCI_CAP_ID_EXP, cap,
						       mask, sizeof(cap));
}

static void init_msix(struct vfu *vfu)
{
	const struct vfu_config *cfg = &vfu->cfg;
	uint8_t cap[PCI_CAP_MSIX_SIZEOF] = { 0 }, mask[sizeof(cap)] = { 0 };

	if (!cfg->vectors)
		return;
	set16(cap, PCI_MSIX_FLAGS, cfg->vectors - 1);
	set16(mask, PCI_MSIX_FLAGS,
	      PCI_MSIX_FLAGS_ENABLE | PCI_MSIX_FLAGS_MASKALL);
	set32(cap, PCI_MSIX_TABLE, cfg->msix_table | cfg->msix_bar);
	set32(cap, PCI_MSIX_PBA, cfg->msix_pba | cfg->msix_bar);
	vfu_pci_add_cap(vfu, PCI_CAP_ID_MSIX, cap, mask, sizeof(cap));
}

void vfu_pci_init(struct vfu *vfu)
{
	init_header(vfu);
	for (unsigned int i = 0; i < VFU_NUM_BARS; i++)
		init_bar(vfu, i);
	vfu->cap_link = PCI_CAPABILITY_LIST;
	vfu->cap_end = PCI_STD_HEADER_SIZEOF;
	init_pcie(vfu);
	init_msix(vfu);
}
