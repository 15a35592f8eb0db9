// SPDX-License-Identifier: GPL-2.0
/* Interrupts */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/vfio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "client.h"

#define MSIX VFIO_PCI_MSIX_IRQ_INDEX
#define NONE VFIO_IRQ_SET_DATA_NONE
#define BOOL VFIO_IRQ_SET_DATA_BOOL
#define EVENT VFIO_IRQ_SET_DATA_EVENTFD
#define TRIGGER VFIO_IRQ_SET_ACTION_TRIGGER

static struct fixture f;
static int ev[4];

/* how often it was raised since the last time */
static uint64_t raised(int fd)
{
	uint64_t n = 0;

	return read(fd, &n, sizeof(n)) == sizeof(n) ? n : 0;
}

static void start(void)
{
	fixture_start(&f);
	for (int i = 0; i < 4; i++)
		ev[i] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
}

static void stop(void)
{
	for (int i = 0; i < 4; i++)
		close(ev[i]);
	fixture_stop(&f);
}

static void test_deliver(void)
{
	static const uint8_t some[3] = { 1, 0, 1 };
	unsigned int open;

	start();
	open = count_fds();
	CHECK(vfu_irq(f.vfu, 0) == -ENOENT, "unset");
	CHECK(vfu_irq(f.vfu, VECTORS) == -EINVAL, "too high");
	CHECK(!set_irqs(&f, EVENT | TRIGGER, MSIX, 5, 3, NULL, 0, ev, 3), "%s",
	      f.log);
	CHECK(count_fds() == open + 3, "%u", count_fds() - open);
	CHECK(!vfu_irq(f.vfu, 6) && !vfu_irq(f.vfu, 6) && !vfu_irq(f.vfu, 7),
	      "irq");
	CHECK(vfu_irq(f.vfu, 4) == -ENOENT && vfu_irq(f.vfu, 8) == -ENOENT,
	      "unset");
	CHECK(raised(ev[0]) == 0 && raised(ev[1]) == 2 && raised(ev[2]) == 1,
	      "counts");
	/* the client tries them */
	CHECK(!set_irqs(&f, NONE | TRIGGER, MSIX, 4, 3, NULL, 0, NULL, 0), "%s",
	      f.log);
	CHECK(raised(ev[0]) == 1 && raised(ev[1]) == 1 && raised(ev[2]) == 0,
	      "none");
	CHECK(!set_irqs(&f, BOOL | TRIGGER, MSIX, 5, 3, some, 3, NULL, 0), "%s",
	      f.log);
	CHECK(raised(ev[0]) == 1 && raised(ev[1]) == 0 && raised(ev[2]) == 1,
	      "bool");
	/* one is replaced, one goes */
	CHECK(!set_irqs(&f, EVENT | TRIGGER, MSIX, 5, 1, NULL, 0, ev + 3, 1),
	      "%s", f.log);
	CHECK(!set_irqs(&f, EVENT | TRIGGER, MSIX, 6, 1, NULL, 0, NULL, 0),
	      "%s", f.log);
	CHECK(count_fds() == open + 2, "%u", count_fds() - open);
	CHECK(!vfu_irq(f.vfu, 5) && vfu_irq(f.vfu, 6) == -ENOENT, "irq");
	CHECK(!raised(ev[0]) && raised(ev[3]) == 1, "counts");
	/* a reset is the device's, the descriptors are the client's */
	CHECK(!call(&f, VFU_CMD_RESET, NULL, 0), "%s", f.log);
	CHECK(!vfu_irq(f.vfu, 5), "gone");
	CHECK(!set_irqs(&f, NONE | TRIGGER, MSIX, 0, 0, NULL, 0, NULL, 0), "%s",
	      f.log);
	CHECK(vfu_irq(f.vfu, 5) == -ENOENT, "still there");
	CHECK(count_fds() == open, "%u", count_fds() - open);
	stop();
}

static void test_all(void)
{
	int fds[VFU_MAX_FDS];

	start();
	for (int i = 0; i < VFU_MAX_FDS; i++)
		fds[i] = ev[0];
	for (int at = 0; at + VFU_MAX_FDS <= VECTORS; at += VFU_MAX_FDS)
		CHECK(!set_irqs(&f, EVENT | TRIGGER, MSIX, at, VFU_MAX_FDS,
				NULL, 0, fds, VFU_MAX_FDS),
		      "%s", f.log);
	CHECK(!set_irqs(&f, EVENT | TRIGGER, MSIX, VECTORS - 1, 1, NULL, 0, fds,
			1),
	      "%s", f.log);
	CHECK(!vfu_irq(f.vfu, 0) && !vfu_irq(f.vfu, VECTORS - 1), "irq");
	/* QEMU takes them back without descriptors, all at once */
	CHECK(!set_irqs(&f, EVENT | TRIGGER, MSIX, 0, VECTORS, NULL, 0, NULL,
			0),
	      "%s", f.log);
	CHECK(vfu_irq(f.vfu, 0) == -ENOENT, "still there");
	/* there is nothing to disable, which is fine */
	for (int type = 0; type < 5; type++)
		CHECK(!set_irqs(&f, NONE | TRIGGER, type, 0, 0, NULL, 0, NULL,
				0),
		      "%s", f.log);
	stop();
}

/* A client whose counter is full does not stop the device. */
static void test_full(void)
{
	const uint64_t full = UINT64_MAX - 1;
	int flags;

	start();
	flags = fcntl(ev[0], F_GETFL);
	fcntl(ev[0], F_SETFL, flags & ~O_NONBLOCK);
	CHECK(!set_irqs(&f, EVENT | TRIGGER, MSIX, 0, 1, NULL, 0, ev, 1), "%s",
	      f.log);
	CHECK(write(ev[0], &full, sizeof(full)) == sizeof(full), "write");
	CHECK(vfu_irq(f.vfu, 0) == -EAGAIN, "not full");
	CHECK(raised(ev[0]) == full, "counter");
	CHECK(!vfu_irq(f.vfu, 0), "irq");
	stop();
}

static const struct {
	uint32_t argsz, flags, index, start, count;
	size_t len;
	unsigned int nfds;
	int err;
} refusals[] = {
	{ 19, NONE | TRIGGER, MSIX, 0, 1, 20, 0, EINVAL },
	{ 21, NONE | TRIGGER, MSIX, 0, 1, 20, 0, EINVAL },
	{ 21, NONE | TRIGGER, MSIX, 0, 1, 21, 0, EINVAL },
	{ 21, BOOL | TRIGGER, MSIX, 0, 2, 21, 0, EINVAL },
	{ 23, BOOL | TRIGGER, MSIX, 0, 2, 23, 0, EINVAL },
	{ 20, BOOL | TRIGGER, MSIX, 0, UINT32_MAX, 20, 0, EINVAL },
	{ 20, TRIGGER, MSIX, 0, 1, 20, 0, EINVAL },
	{ 20, NONE, MSIX, 0, 1, 20, 0, EINVAL },
	{ 20, NONE | EVENT | TRIGGER, MSIX, 0, 1, 20, 0, EINVAL },
	{ 20, NONE | TRIGGER | 1 << 6, MSIX, 0, 1, 20, 0, EINVAL },
	{ 20, NONE | TRIGGER | VFIO_IRQ_SET_ACTION_MASK, MSIX, 0, 1, 20, 0,
	  EINVAL },
	{ 20, NONE | VFIO_IRQ_SET_ACTION_MASK, MSIX, 0, 1, 20, 0, ENOTSUP },
	{ 20, EVENT | VFIO_IRQ_SET_ACTION_UNMASK, MSIX, 0, 1, 20, 1, ENOTSUP },
	{ 20, NONE | TRIGGER, 5, 0, 0, 20, 0, EINVAL },
	{ 20, NONE | TRIGGER, UINT32_MAX, 0, 0, 20, 0, EINVAL },
	{ 20, NONE | TRIGGER, VFIO_PCI_MSI_IRQ_INDEX, 0, 1, 20, 0, EINVAL },
	{ 20, EVENT | TRIGGER, VFIO_PCI_INTX_IRQ_INDEX, 0, 1, 20, 1, EINVAL },
	{ 20, NONE | TRIGGER, MSIX, VECTORS, 1, 20, 0, EINVAL },
	{ 20, NONE | TRIGGER, MSIX, 1, VECTORS, 20, 0, EINVAL },
	{ 20, EVENT | TRIGGER, MSIX, VECTORS - 1, 2, 20, 2, EINVAL },
	{ 20, EVENT | TRIGGER, MSIX, UINT32_MAX, 2, 20, 2, EINVAL },
	{ 20, NONE | TRIGGER, MSIX, 2, UINT32_MAX, 20, 0, EINVAL },
	{ 20, NONE | TRIGGER, MSIX, 1, 0, 20, 0, EINVAL },
	{ 20, EVENT | TRIGGER, MSIX, 0, 0, 20, 0, EINVAL },
	{ 20, EVENT | TRIGGER, MSIX, 0, 2, 20, 1, EINVAL },
	{ 20, EVENT | TRIGGER, MSIX, 0, 1, 20, 2, EINVAL },
	{ 20, NONE | TRIGGER, MSIX, 0, 1, 20, 1, EINVAL },
};

static void test_refusals(void)
{
	uint32_t m[6] = { 0 };
	unsigned int open;
	int err, p[2];

	start();
	CHECK(!set_irqs(&f, EVENT | TRIGGER, MSIX, 0, 2, NULL, 0, ev, 2), "%s",
	      f.log);
	open = count_fds();
	for (size_t i = 0; i < sizeof(refusals) / sizeof(refusals[0]); i++) {
		memcpy(m, &refusals[i], 20);
		err = call_fds(&f, VFU_CMD_SET_IRQS, m, refusals[i].len, ev + 2,
			       refusals[i].nfds);
		CHECK(err == refusals[i].err, "case %zu: %d, %s", i, err,
		      f.log);
		CHECK(count_fds() == open, "case %zu", i);
	}
	/* all or nothing */
	CHECK(!pipe2(p, O_CLOEXEC), "pipe");
	close(p[0]);
	p[0] = ev[2];
	err = set_irqs(&f, EVENT | TRIGGER, MSIX, 0, 2, NULL, 0, p, 2);
	CHECK(err == EINVAL && strstr(f.log, "not an eventfd"), "%s", f.log);
	CHECK(!vfu_irq(f.vfu, 0) && !vfu_irq(f.vfu, 1), "gone");
	CHECK(raised(ev[0]) == 1 && raised(ev[1]) == 1, "counts");
	CHECK(!raised(ev[2]), "one was set");
	close(p[1]);
	stop();
}

int main(void)
{
	TEST(test_deliver);
	TEST(test_all);
	TEST(test_full);
	TEST(test_refusals);
	return check_result();
}
