// SPDX-License-Identifier: GPL-2.0
/* Messages: handshake, information, and what is refused */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/vfio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client.h"

static struct fixture f;

static void test_handshake(void)
{
	const struct vfu_msg_version *v = (void *)f.body;
	uint16_t version[2] = { 0, 9 };

	fixture_init(&f, NULL);
	fixture_connect(&f);
	/* nothing goes before */
	CHECK(call(&f, VFU_CMD_RESET, NULL, 0) == EINVAL, "%s", f.log);
	CHECK(strstr(f.log, "test: RESET refused: no version yet (EINVAL)"),
	      "%s", f.log);
	CHECK(!f.resets[VFU_RESET_DEVICE], "was reset");
	CHECK(call(&f, VFU_CMD_VERSION, "\0\0\0\0{}", 6) == EINVAL, "%s",
	      f.log);
	CHECK(call(&f, VFU_CMD_VERSION, version, 3) == EINVAL, "%s", f.log);
	/* without capabilities, a minor we have never heard of */
	CHECK(!call(&f, VFU_CMD_VERSION, version, 4), "%s", f.log);
	CHECK(!v->major && !v->minor, "%u.%u", v->major, v->minor);
	CHECK(strlen(v->caps) + 1 + 4 + sizeof(f.hdr) == f.hdr.size, "%u",
	      f.hdr.size);
	CHECK(strstr(v->caps, "\"max_data_xfer_size\":65536"), "%s", v->caps);
	CHECK(call(&f, VFU_CMD_VERSION, version, 4) == EINVAL, "%s", f.log);
	fixture_stop(&f);
}

static void test_major(void)
{
	uint16_t version[2] = { 1, 0 };

	fixture_init(&f, NULL);
	fixture_connect(&f);
	CHECK(call(&f, VFU_CMD_VERSION, version, 4) == GONE, "%s", f.log);
	CHECK(!vfu_connected(f.vfu), "still there");
	close(f.fd);
	/* the next one is welcome */
	fixture_connect(&f);
	CHECK(!handshake(&f), "%s", f.log);
	fixture_stop(&f);
}

static void test_info(void)
{
	const struct vfio_region_info *region = (void *)f.body;
	const struct vfio_irq_info *irq = (void *)f.body;
	static const uint64_t sizes[VFIO_PCI_NUM_REGIONS] = {
		BAR0_SIZE, 0, BAR2_SIZE, 0, BAR4_SIZE, 0, 0, VFU_CONFIG_SIZE
	};
	uint32_t info[4] = { 16 }, *got = (void *)f.body;

	fixture_start(&f);
	CHECK(!call(&f, VFU_CMD_GET_INFO, info, 16), "%s", f.log);
	CHECK(f.hdr.size == 32 && got[0] == 16, "%u", f.hdr.size);
	CHECK(got[1] == (VFIO_DEVICE_FLAGS_PCI | VFIO_DEVICE_FLAGS_RESET),
	      "%#x", got[1]);
	CHECK(got[2] == 9 && got[3] == 5, "%u %u", got[2], got[3]);
	for (uint32_t i = 0; i < VFIO_PCI_NUM_REGIONS; i++) {
		struct vfio_region_info m = { .argsz = 4096, .index = i };

		CHECK(!call(&f, VFU_CMD_GET_REGION_INFO, &m, sizeof(m)), "%s",
		      f.log);
		CHECK(region->argsz == 32 && region->index == i, "%u", i);
		CHECK(region->size == sizes[i], "region %u", i);
		CHECK(region->flags == (sizes[i] ? 3 : 0), "region %u", i);
		CHECK(!region->offset && !region->cap_offset, "region %u", i);
	}
	for (uint32_t i = 0; i < 5; i++) {
		struct vfio_irq_info m = { .argsz = 16, .index = i };

		CHECK(!call(&f, VFU_CMD_GET_IRQ_INFO, &m, sizeof(m)), "%s",
		      f.log);
		CHECK(irq->index == i && irq->flags == VFIO_IRQ_INFO_EVENTFD,
		      "type %u", i);
		CHECK(irq->count == (i == VFIO_PCI_MSIX_IRQ_INDEX) * VECTORS,
		      "type %u: %u", i, irq->count);
	}
	fixture_stop(&f);
}

/* first 3 words of the body, its length, the answer, a word of the log */
static const struct {
	uint16_t cmd;
	uint32_t body[3];
	size_t len;
	int err;
	const char *why;
} refusals[] = {
	{ VFU_CMD_GET_INFO, { 15 }, 16, EINVAL, "argsz 15" },
	{ VFU_CMD_GET_INFO, { 16 }, 15, EINVAL, "15 bytes" },
	{ VFU_CMD_GET_INFO, { 16 }, 17, EINVAL, "17 bytes" },
	{ VFU_CMD_GET_INFO, { 16 }, 0, EINVAL, "0 bytes" },
	{ VFU_CMD_GET_REGION_INFO, { 31 }, 32, EINVAL, "argsz 31" },
	{ VFU_CMD_GET_REGION_INFO, { 32 }, 31, EINVAL, "31 bytes" },
	{ VFU_CMD_GET_REGION_INFO, { 32, 0, 9 }, 32, EINVAL, "region 9" },
	{ VFU_CMD_GET_REGION_INFO, { 32, 0, -1 }, 32, EINVAL, "region" },
	{ VFU_CMD_GET_IRQ_INFO, { 0 }, 16, EINVAL, "argsz 0" },
	{ VFU_CMD_GET_IRQ_INFO, { 16, 0, 5 }, 16, EINVAL, "type 5" },
	{ VFU_CMD_GET_IRQ_INFO, { 16 }, 20, EINVAL, "20 bytes" },
	{ VFU_CMD_RESET, { 0 }, 4, EINVAL, "4 bytes" },
	{ VFU_CMD_DMA_MAP, { 32 }, 24, EINVAL, "24 bytes" },
	{ VFU_CMD_DMA_UNMAP, { 24 }, 32, EINVAL, "32 bytes" },
	{ VFU_CMD_SET_IRQS, { 20 }, 16, EINVAL, "16 bytes" },
	{ VFU_CMD_REGION_READ, { 0 }, 12, EINVAL, "12 bytes" },
	{ VFU_CMD_REGION_WRITE, { 0 }, 12, EINVAL, "12 bytes" },
	{ 0, { 0 }, 0, ENOTSUP, "command 0" },
	{ 6, { 16 }, 16, ENOTSUP, "command 6" },
	{ 11, { 0 }, 16, ENOTSUP, "command 11" },
	{ 15, { 0 }, 16, ENOTSUP, "command 15" },
	{ 16, { 0 }, 16, ENOTSUP, "command 16" },
	{ 0xffff, { 0 }, 16, ENOTSUP, "command 65535" },
};

static void test_refusals(void)
{
	uint32_t body[16];

	fixture_start(&f);
	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
		memset(body, 0, sizeof(body));
		memcpy(body, refusals[i].body, sizeof(refusals[i].body));
		f.log[0] = '\0';
		CHECK(call(&f, refusals[i].cmd, body, refusals[i].len) ==
			      refusals[i].err,
		      "case %zu: %u", i, f.hdr.error);
		CHECK(strstr(f.log, refusals[i].why), "case %zu: %s", i, f.log);
	}
	fixture_stop(&f);
}

static const struct {
	uint32_t region;
	uint64_t off;
	uint32_t count;
} outside[] = {
	{ 0, BAR0_SIZE, 1 },
	{ 0, BAR0_SIZE - 3, 4 },
	{ 0, UINT64_MAX, 4 },
	{ 0, UINT64_MAX - 3, 8 },
	{ 0, 0, 0 },
	{ 0, 0, VFU_MAX_XFER + 1 },
	{ 0, 0, UINT32_MAX },
	{ 1, 0, 4 },
	{ 4, BAR4_SIZE - 1, 2 },
	{ 6, 0, 4 },
	{ 7, VFU_CONFIG_SIZE, 1 },
	{ 7, VFU_CONFIG_SIZE - 1, 2 },
	{ 7, 1ULL << 32, 4 },
	{ 8, 0, 1 },
	{ 9, 0, 4 },
	{ UINT32_MAX, 0, 4 },
};

static void test_regions(void)
{
	static uint8_t big[VFU_MAX_XFER], back[VFU_MAX_XFER];
	struct vfu_msg_rw m = { 0, 0, 8 };
	uint32_t word = 0x12345678;
	int err;

	fixture_start(&f);
	for (size_t i = 0; i < sizeof(outside) / sizeof(outside[0]); i++) {
		m = (struct vfu_msg_rw){ outside[i].off, outside[i].region,
					 outside[i].count };
		err = call(&f, VFU_CMD_REGION_READ, &m, sizeof(m));
		CHECK(err == EINVAL, "case %zu: %d", i, err);
		err = call(&f, VFU_CMD_REGION_WRITE, &m, sizeof(m));
		CHECK(err == EINVAL, "case %zu: %d", i, err);
	}
	/* more, or less, than announced */
	m = (struct vfu_msg_rw){ 0, 0, 8 };
	CHECK(call(&f, VFU_CMD_REGION_WRITE, &m, sizeof(m)) == EINVAL, "%s",
	      f.log);
	m.count = 1;
	CHECK(call(&f, VFU_CMD_REGION_WRITE, (char[24]){ [12] = 1 }, 24) ==
		      EINVAL,
	      "%s", f.log);
	CHECK(!f.reads && !f.writes, "the device has seen it");

	CHECK(!region_write(&f, 2, BAR2_SIZE - 4, &word, 4), "%s", f.log);
	CHECK(f.bar == 2 && f.off == BAR2_SIZE - 4 && f.len == 4, "%u", f.bar);
	for (size_t i = 0; i < sizeof(big); i++)
		big[i] = i * 7 + i / 256;
	CHECK(!region_write(&f, 0, 0x10000, big, sizeof(big)), "%s", f.log);
	CHECK(!region_read(&f, 0, 0x10000, back, sizeof(back)), "%s", f.log);
	CHECK(!memcmp(big, back, sizeof(big)), "differs");
	/* nothing of what was in the buffer before */
	CHECK(!region_read(&f, 2, 0, back, 4096), "%s", f.log);
	for (int i = 0; i < 4096; i++)
		CHECK(!back[i], "%d", i);
	f.result = -EIO;
	CHECK(region_read(&f, 0, 0, back, 4) == EIO, "%u", f.hdr.error);
	CHECK(region_write(&f, 0, 0, back, 4) == EIO, "%u", f.hdr.error);
	fixture_stop(&f);
}

static void test_reset(void)
{
	fixture_start(&f);
	CHECK(!call(&f, VFU_CMD_RESET, NULL, 0), "%s", f.log);
	CHECK(f.resets[VFU_RESET_DEVICE] == 1, "%u", f.resets[0]);
	fixture_stop(&f);
}

/* Every command but two takes none; none stays open */
static void test_descriptors(void)
{
	static const uint16_t cmds[] = { 0, 1, 3, 4, 5, 7, 9, 10, 13, 99 };
	uint32_t body[8] = { 32 };
	int fds[40];
	unsigned int open;

	fixture_start(&f);
	for (int i = 0; i < 40; i++)
		fds[i] = 0;
	open = count_fds();
	for (size_t i = 0; i < sizeof(cmds) / sizeof(cmds[0]); i++) {
		CHECK(call_fds(&f, cmds[i], body, 16, fds, 2), "%u", cmds[i]);
		CHECK(count_fds() == open, "command %u", cmds[i]);
	}
	CHECK(!f.resets[VFU_RESET_DEVICE], "was reset");
	CHECK(call_fds(&f, VFU_CMD_RESET, NULL, 0, fds, 1) == EINVAL, "%s",
	      f.log);
	CHECK(strstr(f.log, "1 descriptors"), "%s", f.log);
	/* more than fit: MSG_CTRUNC */
	for (unsigned int n = 17; n <= 40; n += 23) {
		CHECK(call_fds(&f, VFU_CMD_SET_IRQS, body, 20, fds, n) ==
			      EMFILE,
		      "%u: %s", n, f.log);
		CHECK(count_fds() == open, "%u", n);
	}
	CHECK(!call(&f, VFU_CMD_RESET, NULL, 0), "%s", f.log);
	fixture_stop(&f);
}

/* Descriptors with each piece of one message */
static void test_pieces(void)
{
	struct vfu_msg_map m = { 32, 3, 0, 0, 4096 };
	int fds[12] = { 0 };
	unsigned int open;

	fixture_start(&f);
	open = count_fds();
	send_raw(&f, VFU_CMD_DMA_MAP, 0, 48, &m, 8, fds, 12);
	run(&f);
	CHECK(count_fds() == open + 12, "%u", count_fds() - open);
	/* what send_raw() takes for a header is the rest of the body */
	send_raw(&f, 0, 0, 0, &m, 8, fds, 12);
	CHECK(get_reply(&f) && f.hdr.error == EMFILE, "%s", f.log);
	CHECK(count_fds() == open, "%u", count_fds() - open);
	fixture_stop(&f);
}

static void test_oversized(void)
{
	static uint8_t junk[VFU_MAX_BODY + 100000];
	int fd = 0;
	unsigned int open;

	fixture_start(&f);
	open = count_fds();
	CHECK(call_fds(&f, VFU_CMD_REGION_WRITE, junk, VFU_MAX_BODY + 1, &fd,
		       1) == EMSGSIZE,
	      "%s", f.log);
	CHECK(call(&f, 99, junk, sizeof(junk)) == EMSGSIZE, "%s", f.log);
	CHECK(count_fds() == open, "%u", count_fds() - open);
	CHECK(!call(&f, VFU_CMD_RESET, NULL, 0), "%s", f.log);
	/* no way to go on after this */
	send_raw(&f, VFU_CMD_RESET, 0, 15, NULL, 0, NULL, 0);
	CHECK(!get_reply(&f) && !vfu_connected(f.vfu), "%s", f.log);
	CHECK(f.resets[VFU_RESET_DISCONNECT] == 1, "%s", f.log);
	fixture_stop(&f);
}

static void test_flags(void)
{
	fixture_start(&f);
	send_raw(&f, VFU_CMD_RESET, VFU_HDR_NO_REPLY, 16, NULL, 0, NULL, 0);
	send_raw(&f, 99, VFU_HDR_NO_REPLY, 16, NULL, 0, NULL, 0);
	/* replies to what we have never asked */
	send_raw(&f, VFU_CMD_RESET, VFU_HDR_REPLY, 16, NULL, 0, NULL, 0);
	send_raw(&f, 11, VFU_HDR_REPLY, 20, "abcd", 4, NULL, 0);
	CHECK(!get_reply(&f), "%u", f.hdr.cmd);
	CHECK(f.resets[VFU_RESET_DEVICE] == 1, "%u", f.resets[0]);
	CHECK(!call(&f, VFU_CMD_RESET, NULL, 0), "%s", f.log);
	fixture_stop(&f);
}

/* A client cannot fill the disk with refusals */
static void test_log(void)
{
	fixture_start(&f);
	for (int i = 0; i < 1000; i++)
		CHECK(call(&f, 99, NULL, 0) == ENOTSUP, "%u", f.hdr.error);
	CHECK(f.lines > 10 && f.lines < 500, "%u lines", f.lines);
	fixture_stop(&f);
}

int main(void)
{
	TEST(test_handshake);
	TEST(test_major);
	TEST(test_info);
	TEST(test_refusals);
	TEST(test_regions);
	TEST(test_reset);
	TEST(test_descriptors);
	TEST(test_pieces);
	TEST(test_oversized);
	TEST(test_flags);
	TEST(test_log);
	return check_result();
}
