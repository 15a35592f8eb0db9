// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/vfio.h>

#include "client.h"

/* ---- device ---- */

static void note(struct fixture *f, unsigned int bar, uint64_t off, size_t len)
{
	f->bar = bar;
	f->off = off;
	f->len = len;
}

static int bar_read(void *priv, unsigned int bar, uint64_t off, void *buf,
		    size_t len)
{
	struct fixture *f = priv;

	f->reads++;
	note(f, bar, off, len);
	if (!bar)
		memcpy(buf, f->bar0 + off, len);
	return f->result;
}

static int bar_write(void *priv, unsigned int bar, uint64_t off,
		     const void *buf, size_t len)
{
	struct fixture *f = priv;

	f->writes++;
	note(f, bar, off, len);
	if (!bar)
		memcpy(f->bar0 + off, buf, len);
	return f->result;
}

static void reset(void *priv, enum vfu_reset why)
{
	struct fixture *f = priv;

	f->resets[why]++;
	CHECK(!vfu_bus_master(f->vfu), "reset %d", why);
	if (why == VFU_RESET_DISCONNECT)
		CHECK(!vfu_connected(f->vfu), "reset %d", why);
}

static void config_written(void *priv, unsigned int off, size_t len)
{
	struct fixture *f = priv;

	f->config++;
	note(f, VFIO_PCI_CONFIG_REGION_INDEX, off, len);
}

static void log_line(void *priv, const char *line)
{
	struct fixture *f = priv;

	f->lines++;
	snprintf(f->log, sizeof(f->log), "%s", line);
}

static const struct vfu_ops ops = {
	.bar_read = bar_read,
	.bar_write = bar_write,
	.reset = reset,
	.config_written = config_written,
	.log = log_line,
};

const struct vfu_config fixture_config = {
	.name = "test",
	.vendor = 0x15b3,
	.device = 0x101e,
	.subsys_vendor = 0x1234,
	.subsys = 0x5678,
	.class_code = 0x020000,
	.revision = 7,
	.bar = { [0] = { BAR0_SIZE, VFU_BAR_64 | VFU_BAR_PREFETCH },
		 [2] = { BAR2_SIZE, VFU_BAR_64 },
		 [4] = { BAR4_SIZE, 0 } },
	.vectors = VECTORS,
	.msix_bar = 0,
	.msix_table = MSIX_TABLE,
	.msix_pba = MSIX_PBA,
	.ops = &ops,
};

void fixture_init(struct fixture *f, const struct vfu_config *cfg)
{
	struct vfu_config copy = cfg ? *cfg : fixture_config;

	memset(f, 0, sizeof(*f));
	f->fd = -1;
	copy.priv = f;
	if (vfu_create(&copy, &f->vfu)) {
		fprintf(stderr, "vfu_create: %s\n", f->log);
		abort();
	}
}

void fixture_connect(struct fixture *f)
{
	int sv[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv) ||
	    vfu_attach(f->vfu, sv[1]))
		abort();
	f->fd = sv[0];
}

void fixture_start(struct fixture *f)
{
	fixture_init(f, NULL);
	fixture_connect(f);
	CHECK(!handshake(f), "%s", f->log);
}

void fixture_stop(struct fixture *f)
{
	if (f->fd >= 0)
		close(f->fd);
	vfu_destroy(f->vfu);
}

void run(struct fixture *f)
{
	while (vfu_process(f->vfu))
		;
}

/* ---- client ---- */

static void send_all(struct fixture *f, struct msghdr *m)
{
	struct iovec *iov = m->msg_iov;
	ssize_t n;

	while (m->msg_iovlen) {
		n = sendmsg(f->fd, m, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && errno == EAGAIN) {
			vfu_process(f->vfu);
			continue;
		}
		if (n < 0)
			return; /* get_reply() will see it */
		m->msg_control = NULL;
		m->msg_controllen = 0;
		for (; m->msg_iovlen && (size_t)n >= iov->iov_len; iov++) {
			n -= iov->iov_len;
			m->msg_iovlen--;
		}
		m->msg_iov = iov;
		if (m->msg_iovlen) {
			iov->iov_base = (char *)iov->iov_base + n;
			iov->iov_len -= n;
		}
	}
}

void send_raw(struct fixture *f, uint16_t cmd, uint32_t flags, uint32_t size,
	      const void *body, size_t len, const int *fds, unsigned int nfds)
{
	struct vfu_hdr hdr = { ++f->id, cmd, size, flags, 0 };
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(64 * sizeof(int))];
	struct iovec iov[2] = { { &hdr, sizeof(hdr) }, { (void *)body, len } };
	struct msghdr m = { .msg_iov = iov, .msg_iovlen = len ? 2 : 1 };
	struct cmsghdr *c;

	if (nfds) {
		m.msg_control = control;
		m.msg_controllen = CMSG_SPACE(nfds * sizeof(int));
		c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(nfds * sizeof(int));
		memcpy(CMSG_DATA(c), fds, nfds * sizeof(int));
	}
	send_all(f, &m);
}

/* 1: all of it, 0: nothing, -1: gone */
static int get_bytes(struct fixture *f, void *buf, size_t len)
{
	size_t got = 0;
	ssize_t n;

	for (int idle = 0; got < len && idle < 3;) {
		vfu_process(f->vfu);
		n = recv(f->fd, (char *)buf + got, len - got, MSG_DONTWAIT);
		if (!n || (n < 0 && errno != EAGAIN))
			return -1;
		idle = n < 0 ? idle + 1 : 0;
		got += n > 0 ? n : 0;
	}
	return got == len;
}

bool get_reply(struct fixture *f)
{
	size_t len;

	if (get_bytes(f, &f->hdr, sizeof(f->hdr)) != 1)
		return false;
	CHECK((f->hdr.flags & VFU_HDR_TYPE) == VFU_HDR_REPLY, "flags %#x",
	      f->hdr.flags);
	CHECK(f->hdr.size >= sizeof(f->hdr), "size %u", f->hdr.size);
	CHECK(!f->hdr.error == !(f->hdr.flags & VFU_HDR_ERROR), "error %u",
	      f->hdr.error);
	len = f->hdr.size - sizeof(f->hdr);
	if (f->hdr.error)
		CHECK(!len, "error with %zu bytes", len);
	if (len > sizeof(f->body))
		abort();
	return !len || get_bytes(f, f->body, len) == 1;
}

int call_fds(struct fixture *f, uint16_t cmd, const void *body, size_t len,
	     const int *fds, unsigned int nfds)
{
	send_raw(f, cmd, 0, sizeof(f->hdr) + len, body, len, fds, nfds);
	if (!get_reply(f))
		return GONE;
	CHECK(f->hdr.id == f->id && f->hdr.cmd == cmd, "reply %u to %u",
	      f->hdr.id, f->id);
	return f->hdr.error;
}

int call(struct fixture *f, uint16_t cmd, const void *body, size_t len)
{
	return call_fds(f, cmd, body, len, NULL, 0);
}

int handshake(struct fixture *f)
{
	static const char hello[] = "\0\0\0\0{\"capabilities\":{}}";

	return call(f, VFU_CMD_VERSION, hello, sizeof(hello));
}

int dma_map(struct fixture *f, int fd, uint64_t offset, uint64_t iova,
	    uint64_t size, uint32_t flags)
{
	struct vfu_msg_map m = { sizeof(m), flags, offset, iova, size };

	return call_fds(f, VFU_CMD_DMA_MAP, &m, sizeof(m), &fd, fd >= 0);
}

int dma_unmap(struct fixture *f, uint64_t iova, uint64_t size)
{
	struct vfu_msg_unmap m = { sizeof(m), 0, iova, size };
	int ret = call(f, VFU_CMD_DMA_UNMAP, &m, sizeof(m));

	if (!ret)
		CHECK(!memcmp(f->body, &m, sizeof(m)), "another reply");
	return ret;
}

int region_read(struct fixture *f, uint32_t region, uint64_t off, void *buf,
		uint32_t len)
{
	struct vfu_msg_rw m = { off, region, len };
	int ret = call(f, VFU_CMD_REGION_READ, &m, sizeof(m));

	if (ret)
		return ret;
	CHECK(f->hdr.size == sizeof(f->hdr) + sizeof(m) + len, "%u",
	      f->hdr.size);
	CHECK(!memcmp(f->body, &m, sizeof(m)), "another reply");
	memcpy(buf, f->body + sizeof(m), len);
	return 0;
}

int region_write(struct fixture *f, uint32_t region, uint64_t off,
		 const void *buf, uint32_t len)
{
	static uint8_t body[VFU_MAX_BODY];
	struct vfu_msg_rw m = { off, region, len };

	memcpy(body, &m, sizeof(m));
	memcpy(body + sizeof(m), buf, len);
	return call(f, VFU_CMD_REGION_WRITE, body, sizeof(m) + len);
}

int set_irqs(struct fixture *f, uint32_t flags, uint32_t index, uint32_t start,
	     uint32_t count, const void *data, size_t len, const int *fds,
	     unsigned int nfds)
{
	uint32_t body[5 + VFU_MAX_VECTORS / 4] = { 20 + len, flags, index,
						   start, count };

	if (len)
		memcpy(body + 5, data, len);
	return call_fds(f, VFU_CMD_SET_IRQS, body, 20 + len, fds, nfds);
}

/* ---- helpers ---- */

int memory(size_t size, unsigned int flags)
{
	int fd = memfd_create("test", MFD_CLOEXEC | flags);

	if (fd < 0 || ftruncate(fd, size))
		abort();
	return fd;
}

unsigned int count_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned int n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n;
}
