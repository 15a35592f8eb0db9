// SPDX-License-Identifier: GPL-2.0
/* Configuration space, and what makes a device */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/pci_regs.h>
#include <linux/vfio.h>
#include <string.h>
#include <unistd.h>

#include "client.h"

#define CONFIG VFIO_PCI_CONFIG_REGION_INDEX

static struct fixture f;

static uint32_t get(unsigned int off, uint32_t len)
{
	uint32_t value = 0;

	CHECK(!region_read(&f, CONFIG, off, &value, len), "%s", f.log);
	CHECK(vfu_pci_read(f.vfu, off, len) == value, "%#x", off);
	return value;
}

static void put(unsigned int off, uint32_t value, uint32_t len)
{
	CHECK(!region_write(&f, CONFIG, off, &value, len), "%s", f.log);
}

static unsigned int find_cap(uint8_t id)
{
	unsigned int at = get(PCI_CAPABILITY_LIST, 1);

	for (int i = 0; at && i < 48; i++) {
		if (get(at, 1) == id)
			return at;
		at = get(at + 1, 1);
	}
	return 0;
}

static void test_header(void)
{
	uint8_t all[VFU_CONFIG_SIZE], again[VFU_CONFIG_SIZE];

	fixture_start(&f);
	CHECK(get(PCI_VENDOR_ID, 4) == 0x101e15b3, "%#x", get(0, 4));
	CHECK(get(PCI_CLASS_REVISION, 4) == 0x02000007, "%#x", get(8, 4));
	CHECK(get(PCI_SUBSYSTEM_VENDOR_ID, 4) == 0x56781234, "%#x",
	      get(0x2c, 4));
	CHECK(get(PCI_STATUS, 2) & PCI_STATUS_CAP_LIST, "no capabilities");
	CHECK(!get(PCI_HEADER_TYPE, 1) && !get(PCI_INTERRUPT_PIN, 1), "type");
	/* ones everywhere change only what may change */
	CHECK(!region_read(&f, CONFIG, 0, all, sizeof(all)), "%s", f.log);
	memset(again, 0xff, sizeof(again));
	again[find_cap(PCI_CAP_ID_EXP) + PCI_EXP_DEVCTL + 1] = 0x7f;
	CHECK(!region_write(&f, CONFIG, 0, again, sizeof(again)), "%s", f.log);
	CHECK(f.config == 1 && !f.off && f.len == 4096, "%u", f.config);
	CHECK(get(PCI_VENDOR_ID, 4) == 0x101e15b3, "%#x", get(0, 4));
	CHECK(get(PCI_COMMAND, 2) == 0x546, "%#x", get(PCI_COMMAND, 2));
	CHECK(get(PCI_CACHE_LINE_SIZE, 1) == 0xff, "cache line");
	CHECK(get(PCI_INTERRUPT_LINE, 1) == 0xff, "line");
	CHECK(get(PCI_CAPABILITY_LIST, 1) == 0x40, "capabilities");
	CHECK(!get(0x100, 4) && !get(4092, 4), "extended");
	CHECK(vfu_bus_master(f.vfu), "bus master");
	/* as before */
	CHECK(!call(&f, VFU_CMD_RESET, NULL, 0), "%s", f.log);
	CHECK(!region_read(&f, CONFIG, 0, again, sizeof(again)), "%s", f.log);
	CHECK(!memcmp(all, again, sizeof(all)), "differs");
	CHECK(!vfu_bus_master(f.vfu), "bus master");
	fixture_stop(&f);
}

static void test_bars(void)
{
	uint64_t value;
	/* address bits, then what says what kind it is */
	static const uint64_t want[6] = { ~(BAR0_SIZE - 1) | 0xc,     0,
					  ~(BAR2_SIZE - 1) | 0x4,     0,
					  (uint32_t)~(BAR4_SIZE - 1), 0 };

	fixture_start(&f);
	for (unsigned int i = 0; i < 6; i += 2) {
		unsigned int at = PCI_BASE_ADDRESS_0 + 4 * i;

		put(at, UINT32_MAX, 4);
		put(at + 4, UINT32_MAX, 4);
		value = get(at, 4) | (uint64_t)get(at + 4, 4) << 32;
		CHECK(value == want[i], "%u: %#llx", i,
		      (unsigned long long)value);
		put(at, 0xfe123450, 4);
		put(at + 4, 0x12, 4);
		value = get(at, 4) | (uint64_t)get(at + 4, 4) << 32;
		CHECK(value == ((0x12fe123450 & want[i]) | (want[i] & 0xc)),
		      "%u: %#llx", i, (unsigned long long)value);
	}
	/* byte by byte */
	put(PCI_BASE_ADDRESS_0 + 3, 0xab, 1);
	CHECK(get(PCI_BASE_ADDRESS_0, 4) == 0xab10000c, "%#x", get(0x10, 4));
	put(PCI_ROM_ADDRESS, UINT32_MAX, 4);
	CHECK(!get(PCI_ROM_ADDRESS, 4), "a ROM");
	fixture_stop(&f);
}

static void test_caps(void)
{
	unsigned int exp, msix;

	fixture_start(&f);
	exp = find_cap(PCI_CAP_ID_EXP);
	CHECK(exp && get(exp + PCI_EXP_FLAGS, 2) == 2, "no endpoint");
	CHECK(get(exp + PCI_EXP_DEVCAP, 4) & PCI_EXP_DEVCAP_FLR, "no FLR");
	CHECK((get(exp + PCI_EXP_LNKSTA, 2) & 0x3ff) == 0x83, "link");
	msix = find_cap(PCI_CAP_ID_MSIX);
	CHECK(get(msix + PCI_MSIX_FLAGS, 2) == VECTORS - 1, "%#x",
	      get(msix + PCI_MSIX_FLAGS, 2));
	CHECK(get(msix + PCI_MSIX_TABLE, 4) == MSIX_TABLE, "table");
	CHECK(get(msix + PCI_MSIX_PBA, 4) == MSIX_PBA, "PBA");
	put(msix + PCI_MSIX_FLAGS, 0xffff, 2);
	CHECK(get(msix + PCI_MSIX_FLAGS, 2) == (0xc000 | (VECTORS - 1)), "%#x",
	      get(msix + PCI_MSIX_FLAGS, 2));
	CHECK(f.bar == CONFIG && f.off == msix + 2 && f.len == 2, "callback");
	fixture_stop(&f);
}

/* The guest sets the bit, which always reads 0; nothing else resets. */
static void test_flr(void)
{
	unsigned int ctl;
	uint64_t wide = 1ULL << 47;

	fixture_start(&f);
	ctl = find_cap(PCI_CAP_ID_EXP) + PCI_EXP_DEVCTL;
	put(PCI_COMMAND, PCI_COMMAND_MASTER | PCI_COMMAND_MEMORY, 2);
	put(ctl, 0x7fff, 2);
	put(ctl, 0xff, 1);
	put(ctl + 2, 0xffff, 2);
	CHECK(!f.resets[VFU_RESET_FLR] && vfu_bus_master(f.vfu), "reset");
	put(ctl, get(ctl, 2) | PCI_EXP_DEVCTL_BCR_FLR, 2);
	CHECK(f.resets[VFU_RESET_FLR] == 1, "%u", f.resets[1]);
	CHECK(!get(PCI_COMMAND, 2), "%#x", get(PCI_COMMAND, 2));
	CHECK(get(ctl, 2) == 0x2810, "%#x", get(ctl, 2));
	put(ctl + 1, 0x80, 1);
	CHECK(f.resets[VFU_RESET_FLR] == 2, "%u", f.resets[1]);
	/* one access over the control register and what is before it */
	CHECK(!region_write(&f, CONFIG, ctl - 4, &wide, 8), "%s", f.log);
	CHECK(f.resets[VFU_RESET_FLR] == 3, "%u", f.resets[1]);
	CHECK(!f.resets[VFU_RESET_DEVICE], "%u", f.resets[0]);
	fixture_stop(&f);
}

/* What the device itself does to the space */
static void test_device(void)
{
	static const uint8_t cap[8] = { 0, 0, 8, 0, 0xaa, 0, 0, 0x11 };
	static const uint8_t mask[8] = { 0xff, 0xff, 0, 0, 0xf0, 0, 0, 0xff };
	uint32_t serial[3] = { 0x00010003, 0xcafe, 0xf00d };
	uint8_t big[200] = { 0 };
	int at;

	fixture_start(&f);
	at = vfu_pci_add_cap(f.vfu, PCI_CAP_ID_VNDR, cap, mask, sizeof(cap));
	CHECK(at > 0 && (unsigned int)at == find_cap(PCI_CAP_ID_VNDR), "%d",
	      at);
	put(at, UINT32_MAX, 4);
	put(at + 4, 0x2255, 4);
	CHECK(get(at, 4) == 0x00080009, "%#x", get(at, 4));
	CHECK(get(at + 4, 4) == 0x0000005a, "%#x", get(at + 4, 4));
	CHECK(vfu_pci_add_cap(f.vfu, 9, big, NULL, 1) == -EINVAL, "1 byte");
	CHECK(vfu_pci_add_cap(f.vfu, 9, big, NULL, 200) == -ENOSPC, "200");

	CHECK(!vfu_pci_set(f.vfu, 0x100, serial, NULL, 12), "serial number");
	CHECK(vfu_pci_set(f.vfu, 4090, serial, NULL, 12) == -EINVAL, "outside");
	CHECK(vfu_pci_set(f.vfu, 5000, serial, NULL, 0) == -EINVAL, "outside");
	CHECK(get(0x104, 4) == 0xcafe, "%#x", get(0x104, 4));
	CHECK(!vfu_pci_write(f.vfu, 0x104, 1, 4), "write");
	CHECK(vfu_pci_write(f.vfu, 4093, 1, 4) == -EINVAL, "outside");
	CHECK(get(0x104, 4) == 1, "%#x", get(0x104, 4));
	CHECK(!vfu_pci_read(f.vfu, 4094, 4), "outside");
	CHECK(!vfu_pci_read(f.vfu, -1U, 4), "outside");
	CHECK(!call(&f, VFU_CMD_RESET, NULL, 0), "%s", f.log);
	CHECK(get(0x104, 4) == 0xcafe, "%#x", get(0x104, 4));
	fixture_stop(&f);
}

static int create(struct vfu_config cfg)
{
	struct vfu *vfu;
	int ret;

	cfg.priv = &f;
	ret = vfu_create(&cfg, &vfu);
	CHECK(!ret == !!vfu, "%d", ret);
	vfu_destroy(vfu);
	return ret;
}

static void test_create(void)
{
	const struct vfu_config good = fixture_config;
	struct vfu_config cfg = good;

	CHECK(!create(good), "%s", f.log);
	cfg.ops = NULL;
	CHECK(create(cfg) == -EINVAL, "no callbacks");
#define BAD(field, value, why)                                      \
	do {                                                        \
		cfg = good;                                         \
		cfg.field = value;                                  \
		CHECK(create(cfg) == -EINVAL, #field);              \
		CHECK(strstr(f.log, why), "%s: %s", #field, f.log); \
	} while (0)
	BAD(bar[0].size, 12345, "power of two");
	BAD(bar[0].size, 8, "power of two");
	BAD(bar[0].flags, 4, "flags");
	BAD(bar[2].flags, 0, "VFU_BAR_64");
	BAD(bar[1].size, 4096, "upper half");
	BAD(bar[5], ((struct vfu_bar){ 4096, VFU_BAR_64 }), "upper half");
	BAD(vectors, VFU_MAX_VECTORS + 1, "too many");
	BAD(vectors, UINT32_MAX, "too many");
	BAD(msix_bar, 6, "no such BAR");
	BAD(msix_bar, 3, "outside");
	BAD(msix_table, 4, "aligned");
	BAD(msix_pba, 0xffffc, "aligned");
	BAD(msix_table, 0xfffff8, "outside");
	BAD(msix_pba, 0xfffffff8, "outside");
	BAD(msix_pba, MSIX_TABLE + 16 * VECTORS - 8, "overlap");
	cfg = good;
	cfg.vectors = 0;
	cfg.msix_bar = 77;
	CHECK(!create(cfg), "%s", f.log);
	cfg.path = "/nonexistent/socket";
	CHECK(create(cfg) == -ENOENT, "%s", f.log);
	cfg.path = "/tmp/a-path-which-is-longer-than-the-108-bytes-that-the-"
		   "address-of-a-unix-domain-socket-can-hold-on-this-system";
	CHECK(create(cfg) == -ENAMETOOLONG, "%s", f.log);
	vfu_destroy(NULL);
}

int main(void)
{
	TEST(test_header);
	TEST(test_bars);
	TEST(test_caps);
	TEST(test_flr);
	TEST(test_device);
	TEST(test_create);
	return check_result();
}
