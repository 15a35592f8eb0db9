// SPDX-License-Identifier: GPL-2.0
/*
 * foreign: a device that cannot migrate, in a process that the layer has suspended.
 *
 *	foreign [-d DEVICE] [-m DEVICE] [-g GID_INDEX] [-e EXTRA]
 *
 * The process has contexts of DEVICE with what goes with them: channels in epoll
 * sets, level- and edge-triggered, duplicated, not blocking, with an event unread,
 * with a thread that waits for one. It shows the sign of the layer. On SIGUSR1 all
 * files of the device must be dead and all its mappings memory, with the numbers,
 * flags, addresses and places in epoll sets that they had, and whatever the
 * provider is asked to do with its objects does no harm. With -m there is a context
 * of a migratable device, too, which must work. "ready" and "PASS" or "FAIL:
 * reason" go to stdout.
 *
 * EXTRA is what cannot be moved: "silent" (it does not show the sign), "child"
 * (which has its files, too, and a sign of its own), "heir" (a child that has its
 * files and its sign), "orphan" (a child that has the mappings, and a sign);
 * "none" (it could be moved). On SIGUSR1 everything must be alive then.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <rdma/rdma_user_ioctl.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loop.h"

#define CONTEXTS 2
#define FILES 6 /* of a context */
#define DEPTH 16
#define SIZE 4096
#define MAPS 64
#define TARGETS 16 /* of an epoll set */

enum {
	CMD,
	ASYNC,
	LEVEL,
	EDGE,
	DUP_CMD,
	DUP_LEVEL
};

static struct ctx {
	struct ibv_context *verbs;
	struct ibv_pd *pd;
	struct ibv_mr *mr;
	struct ibv_comp_channel *level, *edge;
	struct ibv_cq *cq[2];
	struct ibv_qp *qp;
	int fd[FILES], flags[FILES], fd_flags[FILES];
} ctx[CONTEXTS];

static struct map {
	uint64_t start, end;
	char perms[5];
} maps[MAPS];
static int nr_maps;

static struct set {
	int fd, nr;
	struct target {
		int fd;
		unsigned int events;
		unsigned long long data;
	} target[TARGETS];
} level, edge;

static char mem[SIZE];
static pid_t child, waiter;

/* ---- the device that cannot migrate ---- */

static void make_objects(struct ctx *c, const char *device)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = { DEPTH, DEPTH, 1, 1, 0 },
	};

	c->verbs = loop_open(device);
	NEED(c->pd = ibv_alloc_pd(c->verbs));
	NEED(c->mr = ibv_reg_mr(c->pd, mem, SIZE, IBV_ACCESS_LOCAL_WRITE));
	NEED(c->level = ibv_create_comp_channel(c->verbs));
	NEED(c->edge = ibv_create_comp_channel(c->verbs));
	NEED(c->cq[0] = ibv_create_cq(c->verbs, DEPTH, c, c->level, 0));
	NEED(c->cq[1] = ibv_create_cq(c->verbs, DEPTH, c, c->edge, 0));
	init.send_cq = c->cq[1];
	init.recv_cq = c->cq[0];
	NEED(c->qp = ibv_create_qp(c->pd, &init));
}

static int post_recv(struct ctx *c)
{
	struct ibv_sge sge = { (uintptr_t)mem, SIZE, c->mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;

	return ibv_post_recv(c->qp, &wr, &bad);
}

/* which nobody reads: that of a receive that was flushed */
static void get_event(struct ctx *c)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct pollfd p = { .fd = c->level->fd, .events = POLLIN };

	NEED(!ibv_modify_qp(c->qp, &attr,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				    IBV_QP_ACCESS_FLAGS));
	NEED(!ibv_req_notify_cq(c->cq[0], 0) && !post_recv(c));
	attr.qp_state = IBV_QPS_ERR;
	NEED(!ibv_modify_qp(c->qp, &attr, IBV_QP_STATE));
	NEED(poll(&p, 1, 20000) == 1);
}

static void watch(struct set *set, int fd, uint32_t events)
{
	struct epoll_event e = { .events = events,
				 .data.u64 = 0x123456789ULL * fd };

	NEED(!epoll_ctl(set->fd, EPOLL_CTL_ADD, fd, &e));
}

static void open_files(struct ctx *c)
{
	c->fd[CMD] = c->verbs->cmd_fd;
	c->fd[ASYNC] = c->verbs->async_fd;
	c->fd[LEVEL] = c->level->fd;
	c->fd[EDGE] = c->edge->fd;
	NEED((c->fd[DUP_CMD] = dup(c->fd[CMD])) >= 0);
	NEED((c->fd[DUP_LEVEL] = dup(c->fd[LEVEL])) >= 0);
	NEED(!fcntl(c->fd[ASYNC], F_SETFL, O_NONBLOCK));
	NEED(!fcntl(c->fd[LEVEL], F_SETFL, O_NONBLOCK));
	watch(&level, c->fd[LEVEL], EPOLLIN);
	watch(&level, c->fd[DUP_LEVEL], EPOLLIN | EPOLLPRI);
	watch(&level, c->fd[ASYNC], EPOLLIN);
	watch(&edge, c->fd[LEVEL], EPOLLIN | EPOLLET);
	watch(&edge, c->fd[EDGE], EPOLLIN | EPOLLET);
	watch(&edge, c->fd[ASYNC], EPOLLIN | EPOLLET | EPOLLONESHOT);
	NEED(!fcntl(c->fd[LEVEL], F_SETFD, FD_CLOEXEC));
	NEED(!fcntl(c->fd[EDGE], F_SETFD, 0));
	for (int i = 0; i < FILES; i++) {
		c->flags[i] = fcntl(c->fd[i], F_GETFL);
		c->fd_flags[i] = fcntl(c->fd[i], F_GETFD);
	}
}

static void *wait_for_event(void *fd)
{
	char buf[64];
	ssize_t n;

	__atomic_store_n(&waiter, gettid(), __ATOMIC_RELEASE);
	n = read(*(int *)fd, buf, sizeof(buf));
	printf("FAIL: a wait has ended: %zd: %s\n", n, strerror(errno));
	exit(1);
}

/* the thread does wait, and nothing has woken it up for good */
static void need_waiting(int fd)
{
	char path[64], line[128];
	long nr = 0;
	int at = -1;
	FILE *f;

	for (int t = 0; t < 2000 && (nr != SYS_read || at != fd); t++) {
		usleep(10000);
		snprintf(path, sizeof(path), "/proc/self/task/%d/syscall",
			 __atomic_load_n(&waiter, __ATOMIC_ACQUIRE));
		f = fopen(path, "r");
		if (!f)
			continue;
		if (!fgets(line, sizeof(line), f) ||
		    sscanf(line, "%ld 0x%x", &nr, (unsigned int *)&at) != 2)
			nr = 0; /* it runs */
		fclose(f);
	}
	NEED(nr == SYS_read && at == fd);
}

/* ---- what /proc says ---- */

/* Call `fn` for each mapping */
static void for_each_map(void (*fn)(const struct map *m, const char *path))
{
	char line[512], path[256];
	struct map m;
	FILE *f;

	NEED(f = fopen("/proc/self/maps", "r"));
	while (fgets(line, sizeof(line), f)) {
		path[0] = '\0';
		NEED(sscanf(line, "%lx-%lx %4s %*s %*s %*s %255[^\n]", &m.start,
			    &m.end, m.perms, path) >= 3);
		fn(&m, path);
	}
	fclose(f);
}

static void note_map(const struct map *m, const char *path)
{
	if (strncmp(path, "/dev/infiniband/", 16))
		return;
	NEED(nr_maps < MAPS);
	maps[nr_maps++] = *m;
}

static int by_fd(const void *a, const void *b)
{
	return ((const struct target *)a)->fd - ((const struct target *)b)->fd;
}

static void look_at(struct set *set)
{
	struct target *t = set->target;
	char path[64], line[256];
	FILE *f;

	set->nr = 0;
	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", set->fd);
	NEED(f = fopen(path, "r"));
	while (fgets(line, sizeof(line), f)) {
		NEED(set->nr < TARGETS);
		if (sscanf(line, "tfd: %d events: %x data: %llx", &t->fd,
			   &t->events, &t->data) == 3) {
			set->nr++;
			t++;
		}
	}
	fclose(f);
	qsort(set->target, set->nr, sizeof(*t), by_fd);
}

/* ---- what it has become ---- */

static void need_dead(int fd, int flags)
{
	struct pollfd p = { .fd = fd, .events = POLLIN | POLLPRI };
	uint64_t buf[8] = { 0 };

	NEED(!poll(&p, 1, 0));
	NEED((fcntl(fd, F_GETFL) & O_NONBLOCK) == (flags & O_NONBLOCK));
	NEED(write(fd, buf, sizeof(buf)) < 0);
	NEED(ioctl(fd, RDMA_VERBS_IOCTL, buf) < 0);
	if (flags & O_NONBLOCK)
		NEED(read(fd, buf, sizeof(buf)) < 0 && errno == EAGAIN);
	NEED(!poll(&p, 1, 0));
}

/* what is set through one number is seen through the other, or not */
static void need_one_file(int a, int b, bool one)
{
	const int flags = fcntl(a, F_GETFL), other = fcntl(b, F_GETFL);

	NEED(flags >= 0 && other >= 0);
	NEED(!fcntl(a, F_SETFL, flags ^ O_NONBLOCK));
	NEED(fcntl(b, F_GETFL) == (one ? other ^ O_NONBLOCK : other));
	NEED(!fcntl(a, F_SETFL, flags));
}

static void need_same_files(const struct ctx *c)
{
	for (int i = 0; i < FILES; i++) {
		need_dead(c->fd[i], c->flags[i]);
		NEED(fcntl(c->fd[i], F_GETFD) == c->fd_flags[i]);
	}
	need_one_file(c->fd[DUP_CMD], c->fd[CMD], true);
	need_one_file(c->fd[DUP_LEVEL], c->fd[LEVEL], true);
	need_one_file(c->fd[ASYNC], c->fd[LEVEL], false);
	need_one_file(c->fd[CMD], c->fd[LEVEL], false);
}

static void need_same_set(struct set *set)
{
	struct epoll_event e = { .events = EPOLLIN };
	struct set now = { .fd = set->fd };
	int fd;

	look_at(&now);
	NEED(now.nr == set->nr);
	NEED(!memcmp(now.target, set->target, sizeof(now.target)));
	NEED(!epoll_wait(set->fd, &e, 1, 0));
	for (int i = 0; i < set->nr; i++) {
		fd = set->target[i].fd;
		NEED(epoll_ctl(set->fd, EPOLL_CTL_ADD, fd, &e) < 0);
		NEED(errno == EEXIST);
		NEED(!epoll_ctl(set->fd, EPOLL_CTL_MOD, fd, &e));
		NEED(!epoll_ctl(set->fd, EPOLL_CTL_DEL, fd, NULL));
	}
}

static volatile char *first(int i)
{
	return (char *)maps[i].start;
}

static volatile char *last(int i)
{
	return (char *)maps[i].end - 1;
}

static bool is_readable(int i)
{
	return maps[i].perms[0] == 'r';
}

static bool is_writable(int i)
{
	return maps[i].perms[1] == 'w';
}

static int found;

/* neighbours of one protection have become one mapping */
static void find_maps(const struct map *m, const char *path)
{
	if (strncmp(path, "/memfd:rdma_plugin_memory", 25))
		return;
	for (int i = 0; i < nr_maps; i++)
		found += m->start <= maps[i].start && maps[i].end <= m->end &&
			 !strcmp(m->perms, maps[i].perms);
}

/* each is memory of its own: zero, and what is written in one stays there */
static void need_memory(void)
{
	for_each_map(find_maps);
	NEED(found == nr_maps);
	for (int i = 0; i < nr_maps; i++)
		for (volatile char *p = first(i);
		     p <= last(i) && is_readable(i); p++)
			NEED(!*p);
	for (int i = 0; i < nr_maps; i++)
		if (is_writable(i))
			*first(i) = *last(i) = (char)(i + 1);
	for (int i = 0; i < nr_maps; i++)
		if (is_writable(i) && is_readable(i))
			NEED(*first(i) == i + 1 && *last(i) == i + 1);
	for (int i = 0; i < nr_maps; i++)
		if (is_writable(i))
			*first(i) = *last(i) = 0;
}

/* It knows nothing of all this: commands fail, doorbells are rung in memory */
static void ask_provider(struct ctx *c)
{
	struct ibv_sge sge = { (uintptr_t)mem, SIZE, c->mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;
	struct ibv_device_attr attr;
	struct ibv_wc wc;

	ibv_post_send(c->qp, &wr, &bad);
	post_recv(c);
	ibv_poll_cq(c->cq[0], 1, &wc);
	ibv_req_notify_cq(c->cq[1], 0);
	NEED(ibv_query_device(c->verbs, &attr));
	NEED(!ibv_alloc_pd(c->verbs));
	NEED(!ibv_reg_mr(c->pd, mem, SIZE, IBV_ACCESS_LOCAL_WRITE));
	NEED(ibv_destroy_qp(c->qp));
	NEED(ibv_dereg_mr(c->mr));
}

static void need_alive(struct ctx *c)
{
	struct ibv_device_attr attr;

	NEED(!ibv_query_device(c->verbs, &attr));
	NEED(!ibv_destroy_qp(c->qp));
	NEED(!ibv_dereg_mr(c->mr));
}

/* ---- the one that can ---- */

static struct ibv_qp *moved[2];
static struct ibv_mr *moved_mr;

static void make_moved(const char *device, int gid_index)
{
	struct ibv_context *verbs = loop_open(device);
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_RC,
					 .sq_sig_all = 1,
					 .cap = { DEPTH, DEPTH, 1, 1, 0 } };
	struct ibv_pd *pd;

	NEED(pd = ibv_alloc_pd(verbs));
	NEED(moved_mr = ibv_reg_mr(pd, mem, SIZE, IBV_ACCESS_LOCAL_WRITE));
	NEED(init.send_cq = ibv_create_cq(verbs, DEPTH, NULL, NULL, 0));
	init.recv_cq = init.send_cq;
	for (int i = 0; i < 2; i++)
		NEED(moved[i] = ibv_create_qp(pd, &init));
	for (int i = 0; i < 2; i++)
		loop_connect(moved[i], moved[!i]->qp_num, gid_index, 0);
}

/* a message, which has a completion at either end */
static void use_moved(void)
{
	struct ibv_sge from = { (uintptr_t)mem, 64, moved_mr->lkey };
	struct ibv_sge to = { (uintptr_t)mem + 64, 64, moved_mr->lkey };
	struct ibv_recv_wr recv = { .sg_list = &to, .num_sge = 1 }, *bad_recv;
	struct ibv_send_wr send = { .sg_list = &from,
				    .num_sge = 1,
				    .opcode = IBV_WR_SEND },
			   *bad_send;
	struct ibv_wc wc[2];
	int got = 0, n;

	memset(mem, 'a', 64);
	memset(mem + 64, 0, 64);
	NEED(!ibv_post_recv(moved[1], &recv, &bad_recv));
	NEED(!ibv_post_send(moved[0], &send, &bad_send));
	for (int t = 0; t < 20000 && got < 2; t++) {
		NEED((n = ibv_poll_cq(moved[0]->send_cq, 2 - got, wc + got)) >=
		     0);
		got += n;
		if (!n)
			usleep(1000);
	}
	NEED(got == 2 && !wc[0].status && !wc[1].status);
	NEED(!memcmp(mem, mem + 64, 64));
}

/* ---- before and after ---- */

static void show_sign(void)
{
	int fd = memfd_create("libmigrrdma:suspended", MFD_CLOEXEC);

	NEED(fd >= 0 && dprintf(fd, "%d\n", getpid()) > 0);
}

static void fork_child(bool orphan, bool heir)
{
	NEED((child = fork()) >= 0);
	if (child)
		return;
	if (!heir)
		show_sign();
	for (int i = 0; i < CONTEXTS && orphan; i++)
		for (int k = 0; k < FILES; k++)
			NEED(!close(ctx[i].fd[k]));
	for (;;)
		pause();
}

static void before(const char *device, const char *extra)
{
	pthread_t thread;

	NEED((level.fd = epoll_create1(EPOLL_CLOEXEC)) >= 0);
	NEED((edge.fd = epoll_create1(0)) >= 0);
	for (int i = 0; i < CONTEXTS; i++) {
		make_objects(ctx + i, device);
		get_event(ctx + i);
		open_files(ctx + i);
	}
	look_at(&level);
	look_at(&edge);
	for_each_map(note_map);
	NEED(nr_maps);
	if (strcmp(extra, "silent"))
		show_sign();
	if (!strcmp(extra, "child") || !strcmp(extra, "heir") ||
	    !strcmp(extra, "orphan"))
		fork_child(!strcmp(extra, "orphan"), !strcmp(extra, "heir"));
	NEED(!pthread_create(&thread, NULL, wait_for_event, ctx[0].fd + EDGE));
	need_waiting(ctx[0].fd[EDGE]);
}

static void after(void)
{
	struct ctx *c;

	for (c = ctx; c < ctx + CONTEXTS; c++)
		need_same_files(c);
	need_waiting(ctx[0].fd[EDGE]);
	need_memory();
	for (c = ctx; c < ctx + CONTEXTS; c++)
		ask_provider(c);
	need_same_set(&level);
	need_same_set(&edge);
}

int main(int argc, char **argv)
{
	const char *device = NULL, *migratable = NULL, *extra = "";
	int opt, gid_index = 1;

	while ((opt = getopt(argc, argv, "d:m:g:e:")) != -1) {
		if (opt == 'd')
			device = optarg;
		else if (opt == 'm')
			migratable = optarg;
		else if (opt == 'g')
			gid_index = atoi(optarg);
		else if (opt == 'e')
			extra = optarg;
		else
			return 2;
	}
	before(device, extra);
	if (migratable)
		make_moved(migratable, gid_index);
	loop_wait();
	if (migratable)
		use_moved();
	if (*extra)
		for (int i = 0; i < CONTEXTS; i++)
			need_alive(ctx + i);
	else
		after();
	if (child)
		NEED(!kill(child, SIGKILL) && waitpid(child, NULL, 0) == child);
	puts("PASS");
	return 0;
}
