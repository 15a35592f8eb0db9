/* SPDX-License-Identifier: GPL-2.0 */
/* What programs that have something to move, and are their own peer, share */
#ifndef LOOP_H
#define LOOP_H

#include <errno.h>
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* it must be, or the program says that it has failed, and ends */
#define NEED(what)                                                         \
	do {                                                               \
		if (!(what)) {                                             \
			printf("FAIL: line %d: %s: %s\n", __LINE__, #what, \
			       strerror(errno));                           \
			exit(1);                                           \
		}                                                          \
	} while (0)

/* a file that does not block, a duplicate, and an epoll set that it is in */
struct watched {
	int fd, dup, epoll;
};

/* NULL: the first device. From here on SIGUSR1 is blocked, in new threads, too */
struct ibv_context *loop_open(const char *device);
/* RESET to RTS, with a QP of this device; `access` is enum ibv_access_flags */
void loop_connect(struct ibv_qp *qp, uint32_t peer, int gid_index, int access);
/*
 * ibv_rereg_mr(), which rdma-core lacks for rdma_rxe, of an MR at its own address.
 * Return: 0, or what the kernel says
 */
int loop_rereg(struct ibv_mr *mr, int flags, struct ibv_pd *pd, int access);
/* "ready", and SIGUSR1 is waited for */
void loop_wait(void);

struct watched loop_watch(int fd);
/* within so many ms, as the epoll set tells it */
int loop_is_ready(const struct watched *w, int ms);
/* neither blocks, and both are one file */
void loop_need_watched(const struct watched *w);

#endif /* LOOP_H */
