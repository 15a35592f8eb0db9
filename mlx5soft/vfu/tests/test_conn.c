// SPDX-License-Identifier: GPL-2.0
/* Clients that come and go, stop halfway, or do not listen */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/vfio.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "client.h"

static struct fixture f;
static char path[64];

static int dial(void)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	strcpy(addr.sun_path, path);
	if (connect(fd, (void *)&addr, sizeof(addr))) {
		close(fd);
		return -1;
	}
	return fd;
}

static bool readable(void)
{
	struct pollfd p = { .fd = vfu_fd(f.vfu), .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

static void listen_at_path(void)
{
	struct vfu_config cfg = fixture_config;

	cfg.path = path;
	fixture_init(&f, &cfg);
}

static void hang_up(void)
{
	close(f.fd);
	f.fd = -1;
	run(&f);
}

static void test_path(void)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct vfu_config cfg = fixture_config;
	struct fixture *other = calloc(1, sizeof(*other));
	struct stat st;
	struct vfu *vfu;
	int fd;

	/* somebody died here */
	strcpy(addr.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK(!bind(fd, (void *)&addr, sizeof(addr)), "bind");
	close(fd);
	listen_at_path();
	CHECK(!stat(path, &st) && (st.st_mode & 0777) == 0600, "%o",
	      st.st_mode);
	CHECK(!readable(), "nobody is there");
	cfg.path = path;
	cfg.priv = other;
	CHECK(vfu_create(&cfg, &vfu) == -EADDRINUSE, "%s", other->log);
	CHECK(strstr(other->log, "cannot listen"), "%s", other->log);
	/* the question was a short connection */
	CHECK(readable(), "no connection");
	run(&f);
	CHECK(!vfu_connected(f.vfu), "still there");
	fixture_stop(&f);
	CHECK(stat(path, &st), "the socket is left");

	fd = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
	CHECK(vfu_create(&cfg, &vfu) == -EADDRINUSE, "%s", other->log);
	CHECK(!stat(path, &st), "a file was removed");
	close(fd);
	unlink(path);
	free(other);
}

static void test_poll(void)
{
	struct vfu_hdr hdr = { 1, VFU_CMD_RESET, 16, 0, 0 };

	listen_at_path();
	CHECK(!vfu_process(f.vfu) && !vfu_connected(f.vfu), "connected");
	f.fd = dial();
	CHECK(readable(), "connection");
	CHECK(!vfu_process(f.vfu) && vfu_connected(f.vfu), "not connected");
	CHECK(!readable(), "nothing to do");
	CHECK(!handshake(&f), "%s", f.log);
	/* bytes one by one: each is taken, none is waited for */
	for (size_t i = 0; i < sizeof(hdr); i++) {
		CHECK(!f.resets[VFU_RESET_DEVICE], "early");
		CHECK(send(f.fd, (char *)&hdr + i, 1, 0) == 1, "send");
		CHECK(readable(), "byte %zu", i);
		CHECK(vfu_process(f.vfu) == (i == 15), "byte %zu", i);
		CHECK(!readable(), "byte %zu", i);
	}
	CHECK(f.resets[VFU_RESET_DEVICE] == 1 && get_reply(&f), "no reset");
	CHECK(vfu_attach(f.vfu, dup(0)) == -EBUSY, "two clients");
	fixture_stop(&f);
}

/* A second client waits until the first has gone. */
static void test_queue(void)
{
	int second;

	listen_at_path();
	f.fd = dial();
	CHECK(!handshake(&f), "%s", f.log);
	second = dial();
	CHECK(second >= 0 && !readable(), "second");
	CHECK(!vfu_process(f.vfu), "second");
	CHECK(!call(&f, VFU_CMD_RESET, NULL, 0), "%s", f.log);
	close(f.fd);
	f.fd = second;
	CHECK(!handshake(&f), "%s", f.log);
	CHECK(f.resets[VFU_RESET_DISCONNECT] == 1, "%u", f.resets[2]);
	fixture_stop(&f);
}

/* Whatever the client had, and wherever it stops: all is released */
static void test_reconnect(void)
{
	uint8_t bytes[16 + 32] = { 0 };
	struct vfu_hdr hdr = { 1, VFU_CMD_DMA_MAP, sizeof(bytes), 0, 0 };
	int mem = memory(0x1000, MFD_ALLOW_SEALING);
	int ev = eventfd(0, EFD_CLOEXEC);
	unsigned int open;

	listen_at_path();
	open = count_fds();
	memcpy(bytes, &hdr, sizeof(hdr));
	for (size_t cut = 0; cut < sizeof(bytes); cut++) {
		CHECK(!readable(), "%zu: nobody is there", cut);
		f.fd = dial();
		CHECK(readable(), "%zu: no connection", cut);
		CHECK(!handshake(&f), "%zu: %s", cut, f.log);
		CHECK(!vfu_dma_ptr_ro(f.vfu, 0x1000, 1), "%zu: mapped", cut);
		CHECK(vfu_irq(f.vfu, 3) == -ENOENT, "%zu: eventfd", cut);
		CHECK(!vfu_bus_master(f.vfu), "%zu: config space", cut);
		CHECK(!dma_map(&f, mem, 0, 0x1000, 0x1000, 3), "%s", f.log);
		CHECK(!set_irqs(&f,
				VFIO_IRQ_SET_DATA_EVENTFD |
					VFIO_IRQ_SET_ACTION_TRIGGER,
				VFIO_PCI_MSIX_IRQ_INDEX, 3, 1, NULL, 0, &ev, 1),
		      "%s", f.log);
		CHECK(!region_write(&f, VFIO_PCI_CONFIG_REGION_INDEX, 4, "\6",
				    1),
		      "%s", f.log);
		CHECK(vfu_dma_ptr(f.vfu, 0x1000, 0x1000), "not mapped");
		CHECK(!vfu_irq(f.vfu, 3), "no eventfd");
		CHECK(vfu_bus_master(f.vfu), "no bus master");
		if (cut >= sizeof(hdr))
			send_raw(&f, hdr.cmd, 0, hdr.size, bytes + sizeof(hdr),
				 cut - sizeof(hdr), &mem, 1);
		else if (cut)
			CHECK(send(f.fd, bytes, cut, 0) == (ssize_t)cut,
			      "send");
		if (cut % 2)
			run(&f);
		hang_up();
		CHECK(f.resets[VFU_RESET_DISCONNECT] == cut + 1, "%zu", cut);
		CHECK(count_fds() == open, "%zu: %u", cut, count_fds() - open);
		CHECK(!cut || strstr(f.log, "in mid-message"), "%s", f.log);
	}
	close(mem);
	close(ev);
	fixture_stop(&f);
}

/* Questions without end, and no answer is read: neither lost nor waited for */
static void test_deaf(void)
{
	struct vfu_msg_rw m = { 0, 0, 60000 };
	unsigned int sent = 0, got = 0, reads;
	char buf[sizeof(struct vfu_hdr) + sizeof(m)];
	struct vfu_hdr hdr = { 1, VFU_CMD_REGION_READ, sizeof(buf), 0, 0 };

	listen_at_path();
	f.fd = dial();
	CHECK(!handshake(&f), "%s", f.log);
	memcpy(buf, &hdr, sizeof(hdr));
	memcpy(buf + sizeof(hdr), &m, sizeof(m));
	while (send(f.fd, buf, sizeof(buf), MSG_DONTWAIT) == sizeof(buf)) {
		sent++;
		vfu_process(f.vfu);
	}
	reads = f.reads;
	CHECK(sent > reads && reads < 100, "%u of %u", reads, sent);
	CHECK(!readable() && !vfu_process(f.vfu), "something to do");
	CHECK(f.reads == reads, "%u", f.reads);
	while (got < sent && get_reply(&f))
		got++;
	CHECK(got == sent && f.reads == sent, "%u of %u", got, sent);
	CHECK(!call(&f, VFU_CMD_RESET, NULL, 0), "%s", f.log);
	/* and who goes away like that is let go */
	for (int i = 0; i < 20; i++) {
		CHECK(send(f.fd, buf, sizeof(buf), 0) == sizeof(buf), "send");
		vfu_process(f.vfu);
	}
	close(f.fd);
	f.fd = -1;
	CHECK(readable(), "nothing to do");
	run(&f);
	CHECK(!vfu_connected(f.vfu), "still there");
	fixture_stop(&f);
}

/* Many messages at once are answered in order, a limited number at a time. */
static void test_pipeline(void)
{
	unsigned int got = 0;

	listen_at_path();
	f.fd = dial();
	CHECK(!handshake(&f), "%s", f.log);
	for (int i = 0; i < 200; i++)
		send_raw(&f, VFU_CMD_RESET, 0, 16, NULL, 0, NULL, 0);
	CHECK(vfu_process(f.vfu) < 100, "all of them");
	CHECK(readable(), "nothing to do");
	while (get_reply(&f)) {
		got++;
		CHECK(f.hdr.id == got + 1, "%u: %u", got, f.hdr.id);
	}
	CHECK(got == 200 && f.resets[VFU_RESET_DEVICE] == 200, "%u", got);
	fixture_stop(&f);
}

static void test_disconnect(void)
{
	listen_at_path();
	vfu_disconnect(f.vfu);
	CHECK(!f.resets[VFU_RESET_DISCONNECT], "nobody was there");
	f.fd = dial();
	CHECK(!handshake(&f), "%s", f.log);
	vfu_disconnect(f.vfu);
	CHECK(f.resets[VFU_RESET_DISCONNECT] == 1, "%u", f.resets[2]);
	CHECK(call(&f, VFU_CMD_RESET, NULL, 0) == GONE, "answers");
	close(f.fd);
	f.fd = dial();
	CHECK(!handshake(&f), "%s", f.log);
	/* destroyed under a client: no callback */
	fixture_stop(&f);
	CHECK(f.resets[VFU_RESET_DISCONNECT] == 1, "%u", f.resets[2]);
}

/* Several devices know nothing of each other. */
static void test_two(void)
{
	struct fixture *g = calloc(1, sizeof(*g));
	int mem = memory(0x2000, MFD_ALLOW_SEALING);
	uint32_t word = 1;

	listen_at_path();
	f.fd = dial();
	CHECK(!handshake(&f), "%s", f.log);
	fixture_start(g);
	CHECK(!dma_map(&f, mem, 0, 0, 0x1000, 3), "%s", f.log);
	CHECK(!dma_map(g, mem, 0x1000, 0, 0x1000, 3), "%s", g->log);
	CHECK(!vfu_dma_write(f.vfu, 0, &word, 4), "write");
	CHECK(!vfu_dma_read(g->vfu, 0, &word, 4) && !word, "%u", word);
	hang_up();
	CHECK(vfu_dma_ptr(g->vfu, 0, 0x1000) && !vfu_dma_ptr(f.vfu, 0, 1),
	      "the wrong one");
	CHECK(!call(g, VFU_CMD_RESET, NULL, 0), "%s", g->log);
	fixture_stop(g);
	fixture_stop(&f);
	close(mem);
	free(g);
}

int main(void)
{
	char dir[] = "/tmp/vfu-test-XXXXXX";

	if (!mkdtemp(dir))
		return 1;
	snprintf(path, sizeof(path), "%s/s", dir);
	TEST(test_path);
	TEST(test_poll);
	TEST(test_queue);
	TEST(test_reconnect);
	TEST(test_deaf);
	TEST(test_pipeline);
	TEST(test_disconnect);
	TEST(test_two);
	rmdir(dir);
	return check_result();
}
