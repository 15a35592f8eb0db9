/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Whose a queue pair is, as the kernel knows it
 */
#ifndef MIGRD_RDMA_H
#define MIGRD_RDMA_H

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/**
 * rdma_owner - the process that has made a QP
 * @gid: of a device which has the QP
 * @pid: of the process, in our namespace
 * @reason: why it is not known
 *
 * Return: 0 or an errno
 */
int rdma_owner(uint32_t qpn, const struct in6_addr *gid, pid_t *pid,
	       char *reason, size_t bytes);

/**
 * rdma_owns - has the process made all these QPs?
 * @gid: as above, of one device that has them all
 * @reason: why not, or why that is not known
 *
 * Return: 0 or an errno
 */
int rdma_owns(pid_t pid, const uint32_t *qpns, size_t n,
	      const struct in6_addr *gid, char *reason, size_t bytes);

#endif
