// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "bury.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <rdma/rdma_user_ioctl_cmds.h>

#include "gate.h"
#include "tape.h"

static _Thread_local int dead = -1;

bool bury_is_dead(const struct ibv_context *real)
{
	struct itimerspec t;

	return !timerfd_gettime(real->cmd_fd, &t);
}

void bury_begin(const struct ibv_context *real)
{
	if (bury_is_dead(real))
		dead = real->cmd_fd;
}

void bury_end(void)
{
	dead = -1;
}

/* libibverbs, in verbs_is_destroy_err(), believes it only if it is told so at its start */
__attribute__((constructor)) static void allow(void)
{
	if (secure_getenv("MIGRRDMA_DIR"))
		setenv("RDMAV_ALLOW_DISASSOC_DESTROY", "1", 0);
}

/* All commands of libibverbs and its providers come by here, and everybody else's. */
int ioctl(int fd, unsigned long request, ...)
{
	va_list args;
	void *arg;

	va_start(args, request);
	arg = va_arg(args, void *);
	va_end(args);
	if (fd >= 0 && (fd == dead || (request == RDMA_VERBS_IOCTL &&
				       gate_is_unplugged(fd)))) {
		errno = EIO;
		return -1;
	}
	if (request == RDMA_VERBS_IOCTL && tape_is_used())
		return tape_command(fd, arg);
	return (int)syscall(SYS_ioctl, fd, request, arg);
}
