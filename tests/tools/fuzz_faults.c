// SPDX-License-Identifier: GPL-2.0
/*
 * Memory whose pages do not come before the test says so.
 */
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "migr_fuzz.h"

int faults_hold(void *mem, size_t length)
{
	struct uffdio_register reg = {
		.range = { (uintptr_t)mem, length },
		.mode = UFFDIO_REGISTER_MODE_MISSING,
	};
	struct uffdio_api api = { .api = UFFD_API };
	/* of a blocking one poll() tells nothing */
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);

	MUST(fd >= 0 && !ioctl(fd, UFFDIO_API, &api));
	MUST(!madvise(mem, length, MADV_DONTNEED));
	MUST(!ioctl(fd, UFFDIO_REGISTER, &reg));
	return fd;
}

void faults_wait(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	MUST(poll(&p, 1, 60000) == 1 && p.revents == POLLIN);
}

void faults_serve(int fd, void *mem, size_t length)
{
	struct uffdio_zeropage zero = { .range = { (uintptr_t)mem, length } };

	MUST(!ioctl(fd, UFFDIO_ZEROPAGE, &zero));
	close(fd);
}
