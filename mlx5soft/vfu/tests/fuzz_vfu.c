// SPDX-License-Identifier: GPL-2.0
/*
 * libFuzzer target: a client which sends anything, with any descriptors, and a
 * device that uses what it is given. See fuzz_ops.h for the input.
 *
 *	vfu_seeds CORPUS_FOLDER && fuzz_vfu CORPUS_FOLDER
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fuzz_ops.h"
#include "vfu_priv.h"

#define CHECK(cond)              \
	do {                     \
		if (!(cond))     \
			abort(); \
	} while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

static int kinds[4];
static struct vfu *vfu;
static int client = -1, server = -1;
static struct vfu_hdr reply;
static size_t reply_got, reply_left;

/* ---- device ---- */

static void use(uint64_t at)
{
	uint8_t buf[300];
	uint8_t *ptr;

	ptr = vfu_dma_ptr(vfu, at, 8);
	if (ptr)
		ptr[7]++;
	if (!vfu_dma_read(vfu, at, buf, sizeof(buf)))
		vfu_dma_write(vfu, at + 0x1000, buf, sizeof(buf));
	vfu_irq(vfu, at % (FUZZ_VECTORS + 1));
}

static void check_access(const struct vfu_bar *bar, uint64_t off, size_t len)
{
	CHECK(len && len <= VFU_MAX_XFER && len <= bar->size);
	CHECK(off <= bar->size - len);
}

static int bar_read(void *priv, unsigned int bar, uint64_t off, void *buf,
		    size_t len)
{
	const struct vfu_config *cfg = priv;

	check_access(&cfg->bar[bar], off, len);
	memset(buf, 0x55, len);
	use(off);
	return off == 8 ? -EIO : 0;
}

static int bar_write(void *priv, unsigned int bar, uint64_t off,
		     const void *buf, size_t len)
{
	const struct vfu_config *cfg = priv;
	uint64_t at = 0;

	check_access(&cfg->bar[bar], off, len);
	memcpy(&at, buf, len < 8 ? len : 8);
	use(at);
	return 0;
}

static void reset(void *priv, enum vfu_reset why)
{
	(void)priv;
	CHECK(!vfu_bus_master(vfu));
	CHECK(why != VFU_RESET_DISCONNECT || !vfu->nmaps);
}

static void quiet(void *priv, const char *line)
{
	(void)priv;
	(void)line;
}

static const struct vfu_ops ops = {
	.bar_read = bar_read,
	.bar_write = bar_write,
	.reset = reset,
	.log = quiet,
};

static struct vfu_config config = {
	.bar = { [0] = { 1 << 20, VFU_BAR_64 }, [4] = { 4096, 0 } },
	.vectors = FUZZ_VECTORS,
	.msix_table = 0x1000,
	.msix_pba = 0x2000,
	.ops = &ops,
	.priv = &config,
};

/* ---- client ---- */

static void send_fds(struct iovec *iov, size_t iovlen, uint8_t op)
{
	unsigned int nfds = FUZZ_NFDS(op) == 7 ? 20 : FUZZ_NFDS(op);
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(20 * sizeof(int))];
	struct msghdr m = { .msg_iov = iov, .msg_iovlen = iovlen };
	struct cmsghdr *c;

	if (nfds) {
		m.msg_control = control;
		m.msg_controllen = CMSG_SPACE(nfds * sizeof(int));
		c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(nfds * sizeof(int));
		for (unsigned int i = 0; i < nfds; i++)
			memcpy(CMSG_DATA(c) + i * sizeof(int),
			       &kinds[FUZZ_KIND(op)], sizeof(int));
	}
	sendmsg(client, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void send_message(uint8_t op, uint16_t cmd, uint32_t size,
			 const void *body, size_t len)
{
	struct vfu_hdr hdr = { 1, cmd, size, 0, 0 };
	struct iovec iov[2] = { { &hdr, sizeof(hdr) }, { (void *)body, len } };

	send_fds(iov, 2, op);
}

static void hang_up(void)
{
	if (client >= 0)
		close(client);
	client = -1;
	vfu_process(vfu);
	CHECK(!vfu_connected(vfu));
	reply_got = reply_left = 0;
}

static void dial(bool handshake)
{
	int sv[2];

	CHECK(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv));
	client = sv[0];
	server = sv[1];
	CHECK(!vfu_attach(vfu, server));
	if (handshake)
		send_message(0, VFU_CMD_VERSION, 20, "\0\0\0\0", 4);
}

/* Whatever was asked, the answers are messages. */
static void read_replies(void)
{
	static uint8_t buf[VFU_MAX_BODY];
	ssize_t n;

	for (;;) {
		if (reply_left)
			n = recv(client, buf, reply_left, MSG_DONTWAIT);
		else
			n = recv(client, (char *)&reply + reply_got,
				 sizeof(reply) - reply_got, MSG_DONTWAIT);
		if (n <= 0)
			return;
		if (reply_left) {
			reply_left -= n;
			continue;
		}
		reply_got += n;
		if (reply_got < sizeof(reply))
			continue;
		reply_got = 0;
		CHECK(reply.size >= sizeof(reply));
		CHECK(reply.size <= sizeof(reply) + VFU_MAX_BODY);
		CHECK(!(reply.flags & ~(VFU_HDR_REPLY | VFU_HDR_ERROR)));
		CHECK(reply.flags & VFU_HDR_REPLY);
		CHECK(!(reply.flags & VFU_HDR_ERROR) == !reply.error);
		CHECK(!reply.error || reply.size == sizeof(reply));
		reply_left = reply.size - sizeof(reply);
	}
}

/* ---- input ---- */

static const uint8_t *in, *end;

static uint64_t take(size_t len)
{
	uint64_t value = 0;

	if (len > (size_t)(end - in))
		len = end - in;
	memcpy(&value, in, len);
	in += len;
	return value;
}

static const uint8_t *take_bytes(size_t *len)
{
	const uint8_t *at = in;

	if (*len > (size_t)(end - in))
		*len = end - in;
	in += *len;
	return at;
}

static void send_some(uint8_t op)
{
	static const uint8_t zeros[UINT16_MAX];
	const uint8_t *bytes = zeros;
	struct iovec iov;
	uint32_t lie = 0;
	uint8_t cmd = 0;
	size_t len;

	if (FUZZ_WHAT(op) == FUZZ_MESSAGE || FUZZ_WHAT(op) == FUZZ_LIE)
		cmd = take(1);
	len = take(FUZZ_WHAT(op) == FUZZ_ZEROS ? 2 : 1);
	if (FUZZ_WHAT(op) == FUZZ_LIE)
		lie = take(4);
	if (FUZZ_WHAT(op) != FUZZ_ZEROS)
		bytes = take_bytes(&len);
	iov = (struct iovec){ (void *)bytes, len };
	if (FUZZ_WHAT(op) == FUZZ_MESSAGE)
		send_message(op, cmd, sizeof(struct vfu_hdr) + len, bytes, len);
	else if (FUZZ_WHAT(op) == FUZZ_LIE)
		send_message(op, cmd, lie, bytes, len);
	else
		send_fds(&iov, 1, op);
}

static void step(uint8_t op)
{
	static uint8_t buf[UINT16_MAX];
	uint64_t iova;
	size_t len;

	switch (FUZZ_WHAT(op)) {
	case FUZZ_HANGUP:
		hang_up();
		dial(FUZZ_NFDS(op));
		break;
	case FUZZ_REPLIES:
		read_replies();
		break;
	case FUZZ_DMA:
		iova = take(8);
		len = take(2);
		if (!vfu_dma_read(vfu, iova, buf, len))
			vfu_dma_write(vfu, iova, buf, len);
		use(iova);
		break;
	case FUZZ_IRQ:
		vfu_irq(vfu, take(1));
		break;
	default:
		send_some(op);
	}
	for (int i = 0; i < 100 && vfu_process(vfu); i++)
		;
	for (unsigned int i = 1; i < vfu->nmaps; i++)
		CHECK(vfu->map[i - 1].last < vfu->map[i].iova);
	if (!vfu_connected(vfu)) {
		hang_up();
		dial(true);
	}
}

static unsigned int count_fds(void)
{
	unsigned int n = 0;

	for (int fd = 0; fd < 100; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	kinds[FUZZ_SEALED] = memfd_create("a", MFD_ALLOW_SEALING | MFD_CLOEXEC);
	kinds[FUZZ_UNSEALED] = memfd_create("b", MFD_CLOEXEC);
	kinds[FUZZ_EVENTFD] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	kinds[FUZZ_SOCKET] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK(!ftruncate(kinds[FUZZ_SEALED], FUZZ_MEMORY));
	CHECK(!ftruncate(kinds[FUZZ_UNSEALED], FUZZ_MEMORY));
	CHECK(!fcntl(kinds[FUZZ_SEALED], F_ADD_SEALS, F_SEAL_SHRINK));
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	unsigned int before = count_fds();
	uint64_t count;

	in = data;
	end = data + size;
	CHECK(!vfu_create(&config, &vfu));
	dial(true);
	while (in < end)
		step(take(1));
	hang_up();
	vfu_destroy(vfu);
	CHECK(count_fds() == before);
	while (read(kinds[FUZZ_EVENTFD], &count, sizeof(count)) > 0)
		;
	return 0;
}
