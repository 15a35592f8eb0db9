// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A process that comes to another host gets a shadow process' files, and makes its objects
 * by them. The fake provider says commands to the kernel that are all the same.
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>

#include "arena.h"
#include "fake/mlx5.h"
#include "presetup.h"
#include "replace_rig.h"
#include "tape_inner.h"

#define QUEUES 8192 /* bytes */

enum {
	TOO_MANY = 3 + MOST_TAPE_FILES + 1 /* files in a message */
};

/* --- what is told --- */

/* Return: what is told, to be freed */
static char *record(int *err)
{
	char *text = calloc(1, 65536);
	int fd[2];

	MUST(text && !socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd));
	*err = presetup_record(fd[0], &swapped);
	MUST(*err || recv(fd[1], text, 65535, MSG_DONTWAIT) > 0);
	close(fd[0]);
	close(fd[1]);
	return text;
}

static void told(const char *what)
{
	int err;
	char *text = record(&err);

	CHECK(!err && strstr(text, what), "%s: %s", swapped.reason, text);
	free(text);
}

static void test_record(void)
{
	struct ibv_ah_attr attr = { .is_global = 1, .port_num = 1 };
	char at[64];
	char *text;
	int err;
	struct ibv_ah *ah;
	struct ibv_mw *mw;

	puts("what there is to be made");
	world_make();
	fake_mlx5 = false;
	text = record(&err);
	CHECK(err == EOPNOTSUPP && !*text);
	CHECK(strstr(swapped.reason, "no pre-setup with the provider of"));
	free(text);
	fake_mlx5 = true;
	snprintf(at, sizeof(at), "{\"ok\": true, \"at\": %ju, ",
		 (uintmax_t)arena_next());
	told(at);
	told("\"pds\": 1, \"channels\": 1, \"cqs\": [{");
	told("\"channel\": 0, \"extended\": 0}]");
	told("\"send_cq\": 0, \"recv_cq\": 0, \"srq\": -1");
	told("\"send_cq\": 0, \"recv_cq\": 0, \"srq\": 0");
	told("\"access\": 6, \"qkey\": 0, \"mtu\": 3, \"rq_psn\": 222, "
	     "\"sq_psn\": 111, ");
	told("\"ah_port\": 1, \"gid\": \"fe00::3\", \"gid_type\": 2}, "
	     "\"steps\": [[57, 1], [");
	fake_fail("_ibv_query_gid_table", EOPNOTSUPP);
	text = record(&err);
	CHECK(err == EOPNOTSUPP && strstr(swapped.reason, "GIDs of fake0"));
	free(text);
	suspend();
	told("\"pds\": 1");
	resume();

	MUST(ah = ibv_create_ah(w.qp->pd, &attr));
	text = record(&err);
	CHECK(err == EOPNOTSUPP && strstr(swapped.reason, "address handles"));
	free(text);
	CHECK(!ibv_destroy_ah(ah));
	MUST(mw = ibv_alloc_mw(w.qp->pd, IBV_MW_TYPE_2));
	text = record(&err);
	CHECK(err == EOPNOTSUPP && strstr(swapped.reason, "memory windows"));
	free(text);
	CHECK(!ibv_dealloc_mw(mw));
	world_destroy();
}

/* --- what is taken --- */

static int memory(size_t bytes, int seals)
{
	int fd = memfd_create("test", MFD_ALLOW_SEALING);

	MUST(fd >= 0 && !ftruncate(fd, (off_t)bytes));
	MUST(!seals || !fcntl(fd, F_ADD_SEALS, seals));
	return fd;
}

/* Return: what comes of it; the files are closed */
static int take(int *fds, unsigned int n)
{
	char control[CMSG_SPACE(sizeof(int) * TOO_MANY)] = {};
	struct iovec iov = { "", 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	int pair[2], err;
	struct cmsghdr *c;

	MUST(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	if (n) {
		msg.msg_control = control;
		msg.msg_controllen = CMSG_SPACE(sizeof(int) * n);
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int) * n);
		memcpy(CMSG_DATA(c), fds, sizeof(int) * n);
	}
	MUST(sendmsg(pair[0], &msg, 0) == 1);
	err = presetup_take(pair[1], &swapped);
	while (n)
		close(fds[--n]);
	close(pair[0]);
	close(pair[1]);
	return err;
}

/* how many it says for objects, and to connect QPs */
static unsigned int n_build, n_connect;

/* a memfd with a tape of so many */
static int tape(unsigned int commands)
{
	const struct tape_entry e = {
		.bytes = sizeof(e),
		.hdr.length = sizeof(e.hdr),
	};
	int fd = memory(0, 0);

	while (commands--)
		MUST(write(fd, &e, sizeof(e)) == sizeof(e));
	return fd;
}

/* "of the same device" as a dead one */
static int file(void)
{
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);

	MUST(fd >= 0);
	return fd;
}

/* tapes of so many, for objects and for connections */
static int take_tape(unsigned int commands, unsigned int more)
{
	int fds[] = { tape(commands), memory(QUEUES, F_SEAL_SHRINK), tape(more),
		      file() };

	return take(fds, 4);
}

/* The device has a file, of which something is mapped; the first QP is in that state. */
static void begin_in(enum ibv_qp_state state)
{
	bool used = arena_is_used();
	int fd = memory(4096, 0);
	char *doorbell;

	world_make();
	CHECK(!recv_one(w.qp, 1) && !recv_srq(11));
	set_state(w.qp, state);
	MUST(write(fd, "x", 1) == 1 && dup2(fd, real_ctx->cmd_fd) >= 0);
	doorbell = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	MUST(doorbell != MAP_FAILED && !close(fd));
	hold(100);
	CHECK(*doorbell == (used ? 0 : 'x')); /* not of one's own files */
	munmap(doorbell, 4096);
}

static void begin(void)
{
	begin_in(IBV_QPS_RTS);
}

static void go_on(void)
{
	world_is_back();
	connect_all();
	resume();
	RECVS(w.real, 1);
	world_destroy();
}

static void refused(const char *why, int *fds, unsigned int n)
{
	CHECK(take(fds, n) == EPROTO && strstr(swapped.reason, why), "%s: %s",
	      why, swapped.reason);
}
#define REFUSED(why, ...)                    \
	refused(why, (int[]){ __VA_ARGS__ }, \
		sizeof((int[]){ __VA_ARGS__ }) / sizeof(int))

static unsigned int looked; /* at files, whether they are dead */

int timerfd_gettime(int fd, struct itimerspec *t)
{
	looked++;
	return (int)syscall(SYS_timerfd_gettime, fd, t);
}

/* Lists may change meanwhile: nobody looks at them. */
static void test_out_of_turn(void)
{
	puts("who is not held");
	looked = 0;
	CHECK(take_tape(0, 0) == EINVAL &&
	      strstr(swapped.reason, "another host"));
	suspend();
	CHECK(take_tape(0, 0) == EINVAL);
	CHECK(!looked);
	resume();
}

static void test_refused(void)
{
	const int sealed = F_SEAL_SHRINK;
	int pair[2], many[TOO_MANY];

	puts("what is not taken");
	begin();
	CHECK(take_tape(0, 0) == EINVAL &&
	      strstr(swapped.reason, "another host"));
	world_leaves_host();
	refused("no memory", NULL, 0);
	REFUSED("no memory", tape(0), memory(QUEUES, 0), tape(0), file());
	REFUSED("no memory", tape(0), memory(0, sealed), tape(0), file());
	REFUSED("no memory", tape(0), memory(ARENA_BYTES + 4096, sealed),
		tape(0), file());
	REFUSED("no memory", tape(0), memory(QUEUES, sealed), tape(0));
	REFUSED("no tape", memory(64, 0), memory(QUEUES, sealed), tape(0),
		file());
	for (int i = 0; i < TOO_MANY; i++)
		many[i] = file();
	refused("no memory", many, TOO_MANY);
	MUST(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair) && !close(pair[0]));
	CHECK(presetup_take(pair[1], &swapped) == EPROTO); /* it has died */
	close(pair[1]);
	replace_all();
	CHECK(!swapped.taped && !swapped.presetup[0]);
	go_on();
}

/* What does not fit is not used, and all is made as without. */
static void test_longer(void)
{
	const char *first;

	puts("there is more on the tapes than is asked for");
	begin();
	world_leaves_host();
	CHECK(!take_tape(1000, 0), "%s", swapped.reason);
	replace_all();
	CHECK(strstr(swapped.presetup, "more on the tape"), "%s",
	      swapped.presetup);
	MUST(first = strstr(swapped.presetup, "first "));
	n_build = (unsigned int)atoi(first + 6);
	CHECK(n_build && !swapped.taped);
	go_on();

	begin();
	world_leaves_host();
	CHECK(!take_tape(n_build, 1000), "%s", swapped.reason);
	replace_all();
	CHECK(swapped.taped == n_build && !swapped.presetup[0]);
	world_is_back();
	CHECK(layer_connect(&swapped) == EINVAL); /* it has no peer */
	tell_peers();
	CHECK(layer_connect(&swapped) == EIO);
	MUST(first = strstr(swapped.reason, "first "));
	n_connect = (unsigned int)atoi(first + 6);
	CHECK(n_connect);
	replace_all();
	connect_all();
	resume();
	RECVS(w.real, 1);
	world_destroy();
}

/* as a shadow process may find it, of which the addresses are another's */
static void test_no_place(void)
{
	static char page[4096] __attribute__((aligned(4096)));
	int fd = memory(4096, 0);

	puts("where something is, there are no queues");
	strcpy(page, "something");
	CHECK(arena_map((uintptr_t)page, sizeof(page), fd) == EEXIST);
	CHECK(!strcmp(page, "something"));
	CHECK(arena_map(arena_next(), ARENA_BYTES + 4096, fd) == EINVAL);
	close(fd);
}

static void test_taken(void)
{
	uintptr_t at = arena_next();
	char *queue;

	puts("what is taken is used");
	begin();
	world_leaves_host();
	CHECK(!take_tape(n_build, n_connect), "%s", swapped.reason);
	CHECK(!take_tape(n_build, n_connect)); /* replaces the one before */
	replace_all();
	CHECK(swapped.taped == n_build && !swapped.presetup[0], "%s",
	      swapped.presetup);
	CHECK(arena_next() && arena_next() != at);
	*(volatile char *)at = 1; /* it is there */
	queue = fake_allocators.alloc(5000, fake_allocators.data);
	MUST(queue);
	CHECK((uintptr_t)queue % 4096 == 0 &&
	      (uintptr_t)queue - at >= ARENA_BYTES);
	fake_allocators.free(queue, fake_allocators.data);
	fake_allocators.free((void *)at, fake_allocators.data);
	go_on();
	CHECK(swapped.taped == n_connect);

	puts("and the next is elsewhere; it was not connected before");
	begin();
	world_leaves_host();
	CHECK(!take_tape(n_build, 0));
	replace_all();
	CHECK(arena_next() == at);
	go_on();
	CHECK(!swapped.taped);

	puts("what is in ERR is no business of the tape");
	begin_in(IBV_QPS_ERR);
	world_leaves_host();
	CHECK(!take_tape(n_build, n_connect / 2), "%s", swapped.reason);
	replace_all();
	world_is_back();
	tell_peers();
	CHECK(!layer_connect(&swapped), "%s", swapped.reason);
	CHECK(swapped.taped == n_connect / 2);
	CHECK(w.real->state == IBV_QPS_ERR);
	CHECK(w.real_srq->state == IBV_QPS_RTS);
	resume();
	world_destroy();
}

static void test_let_go(void)
{
	int fd = memory(4096, 0), other_fd;
	struct ibv_context *other;
	char *doorbell;

	puts("mappings of all devices are let go of, or none");
	MUST(arena_is_used());
	world_make();
	CHECK(!recv_one(w.qp, 1));
	MUST(write(fd, "x", 1) == 1 && dup2(fd, real_ctx->cmd_fd) >= 0);
	doorbell = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	MUST(doorbell != MAP_FAILED);
	other = app_open(1);
	other_fd = ((struct ibv_context *)fake_newest(FAKE_CONTEXT))->cmd_fd;
	suspend();
	CHECK(layer_hold(LONG, 100, &swapped) == EBADF); /* it has no file */
	CHECK(strstr(swapped.reason, "mappings"), "%s", swapped.reason);
	CHECK(*doorbell == 'x' && !layer_is_held());
	MUST(dup2(fd, other_fd) == other_fd && !close(fd));
	CHECK(!layer_hold(LONG, 100, &swapped), "%s", swapped.reason);
	CHECK(*doorbell == 0);
	munmap(doorbell, 4096);
	replace_all();
	connect_all();
	resume();
	RECVS(w.real, 1);
	world_destroy();
	CHECK(!ibv_close_device(other) && !close(other_fd));
}

static void test_shorter(void)
{
	uintptr_t at = arena_next();

	puts("there is less on the tapes than is asked for");
	for (unsigned int n = 0; n < n_build; n++) {
		begin();
		world_leaves_host();
		CHECK(!take_tape(n, 0), "%s", swapped.reason);
		replace_all();
		CHECK(strstr(swapped.presetup, "no command"), "%s",
		      swapped.presetup);
		CHECK(!swapped.taped && arena_next() == at);
		go_on();
	}

	begin();
	world_leaves_host();
	CHECK(!take_tape(n_build, 1), "%s", swapped.reason);
	replace_all();
	world_is_back();
	tell_peers();
	CHECK(layer_connect(&swapped) == EIO);
	CHECK(strstr(swapped.reason, "no command 1"), "%s", swapped.reason);
	replace_all();
	connect_all();
	resume();
	RECVS(w.real, 1);
	world_destroy();
}

static void test_fails(void)
{
	uintptr_t at = arena_next();

	puts("a provider that takes no memory");
	begin();
	world_leaves_host();
	CHECK(!take_tape(n_build, 0));
	fake_mlx5 = false;
	replace_all();
	fake_mlx5 = true;
	CHECK(strstr(swapped.presetup, "queues") && arena_next() == at, "%s",
	      swapped.presetup);
	go_on();

	puts("a region cannot be registered");
	begin();
	world_leaves_host();
	CHECK(!take_tape(n_build, 0));
	fake_fail("ibv_reg_mr_iova2", ENOMEM);
	CHECK(layer_replace(NULL, 0, LONG, &swapped) == ENOMEM);
	CHECK(strstr(swapped.reason, "MR") && arena_next() == at, "%s",
	      swapped.reason);
	replace_all();
	go_on();
}

int main(void)
{
	arena_reserve();
	rig_open();
	fake_work();
	test_record();
	test_out_of_turn();
	test_refused();
	test_no_place();
	test_longer();
	test_taken();
	test_let_go();
	test_shorter();
	test_fails();
	return rig_close();
}
