// SPDX-License-Identifier: GPL-2.0
/*
 * System calls in a stopped task, through compel: a few things can only be
 * done by the task itself, such as pinning its memory under its own limits.
 */
#define _GNU_SOURCE
#include <compel/infect.h>
#include <errno.h>
#include <rdma/rdma_user_ioctl_cmds.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "rdma_plugin.h"

#define SCRATCH 4096

struct rp_inject {
	struct parasite_ctl *ctl;
	pid_t pid;
	uint64_t scratch; /* a page of the task */
};

/* The result as the kernel gives it: negative errno */
static long call(struct rp_inject *inj, int nr, unsigned long a1,
		 unsigned long a2, unsigned long a3, unsigned long a4,
		 unsigned long a5, unsigned long a6)
{
	long ret = -EIO;

	if (compel_syscall(inj->ctl, nr, &ret, a1, a2, a3, a4, a5, a6)) {
		rp_err("pid %d: cannot inject system call %d", inj->pid, nr);
		return -EIO;
	}
	return ret;
}

/* compel has no call for a control block that never got a parasite */
static void free_ctl(struct parasite_ctl *ctl)
{
	close(compel_infect_ctx(ctl)->sock);
	free(compel_infect_ctx(ctl)->regs_arg);
	if (compel_cure_local(ctl))
		rp_warn("cannot free a control block");
}

struct rp_inject *rp_inject_begin(pid_t pid)
{
	struct rp_inject *inj = calloc(1, sizeof(*inj));
	long ret;

	if (!inj)
		return NULL;
	inj->pid = pid;
	inj->ctl = compel_prepare(pid);
	if (!inj->ctl) {
		rp_err("pid %d: cannot prepare for injection", pid);
		free(inj);
		return NULL;
	}
	ret = call(inj, SYS_mmap, 0, SCRATCH, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (ret < 0 && ret > -4096) {
		rp_err("pid %d: no memory for injection: %s", pid,
		       strerror(-ret));
		free_ctl(inj->ctl);
		free(inj);
		return NULL;
	}
	inj->scratch = ret;
	return inj;
}

void rp_inject_end(struct rp_inject *inj)
{
	if (call(inj, SYS_munmap, inj->scratch, SCRATCH, 0, 0, 0, 0))
		rp_warn("pid %d: a page is left behind", inj->pid);
	free_ctl(inj->ctl);
	free(inj);
}

int rp_inject_close(struct rp_inject *inj, int fd)
{
	long ret = call(inj, SYS_close, fd, 0, 0, 0, 0, 0);

	if (ret)
		rp_err("pid %d: cannot close fd %d: %s", inj->pid, fd,
		       strerror(-ret));
	return ret;
}

int rp_inject_mmap(struct rp_inject *inj, const struct rp_vma *vma, int fd)
{
	long ret;

	ret = call(inj, SYS_mmap, vma->start, vma->end - vma->start, vma->prot,
		   MAP_SHARED | MAP_FIXED, fd, vma->offset);
	if ((uint64_t)ret == vma->start)
		return 0;
	rp_err("pid %d: cannot map the ring at %#llx: %s", inj->pid,
	       (unsigned long long)vma->start, strerror(-ret));
	return ret < 0 ? ret : -EFAULT;
}

int rp_inject_attach(struct rp_inject *inj, int fd, struct rxe_migr_status *st)
{
	uint64_t buf[SCRATCH / sizeof(uint64_t)];
	struct iovec local = { .iov_base = buf };
	struct iovec remote = { .iov_base = (void *)inj->scratch };
	size_t at;
	long ret;

	memset(st, 0, sizeof(*st));
	local.iov_len =
		migr_cmd_attach_blob(buf, sizeof(buf), inj->scratch, fd, &at);
	if (!local.iov_len)
		return -ENOSPC;
	remote.iov_len = local.iov_len;
	if (process_vm_writev(inj->pid, &local, 1, &remote, 1, 0) !=
	    (ssize_t)local.iov_len)
		return -errno;
	ret = call(inj, SYS_ioctl, fd, RDMA_VERBS_IOCTL, inj->scratch, 0, 0, 0);
	if (process_vm_readv(inj->pid, &local, 1, &remote, 1, 0) !=
	    (ssize_t)local.iov_len)
		return ret ?: -errno;
	memcpy(st, (char *)buf + at, sizeof(*st));
	return ret;
}
