// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A process lets go of its device, comes to another host, and gets other objects there.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl_cmds.h>

#include "bury.h"
#include "replace_rig.h"

static void begin(void)
{
	world_make();
	for (uint64_t i = 1; i <= 3; i++)
		CHECK(!recv_one(w.qp, i) && !recv_srq(10 + i));
	CHECK(!ibv_req_notify_cq(w.cq, 0));
}

static void test_bury(void)
{
	int fd, other = dup(1);

	puts("commands to a device that has stayed behind");
	world_make();
	fd = real_ctx->cmd_fd;
	CHECK(!bury_is_dead(real_ctx));
	bury_begin(real_ctx);
	errno = 0;
	CHECK(ioctl(fd, 0, NULL) == -1 &&
	      errno == EBADF); /* the fake has none */
	bury_end();
	world_leaves_host();
	CHECK(ioctl(fd, 0xc0181b01, NULL) == -1 && errno == ENOTTY);
	bury_begin(real_ctx);
	CHECK(ioctl(fd, 0xc0181b01, NULL) == -1 && errno == EIO);
	CHECK(ioctl(other, 0xc0181b01, NULL) == -1 && errno == ENOTTY);
	bury_end();
	CHECK(ioctl(fd, 0xc0181b01, NULL) == -1 && errno == ENOTTY);
	close(fd);
	close(other);
	world_destroy();
}

/* The kernel, and how often it was told to ring by ioctl() */
static unsigned int rung;

long syscall(long number, ...)
{
	long (*real)(long, ...) =
		(long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
	const struct ib_uverbs_ioctl_hdr *hdr;
	va_list args;
	long a[6];

	va_start(args, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(args, long);
	va_end(args);
	hdr = (const struct ib_uverbs_ioctl_hdr *)a[2];
	if (number == SYS_ioctl && a[1] == (long)RDMA_VERBS_IOCTL && hdr &&
	    hdr->method_id == UVERBS_METHOD_INVOKE_WRITE && rung < UINT_MAX) {
		rung++;
		return 0;
	}
	return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

/* how often by write(), since the last question */
static unsigned int written(int pipe)
{
	char sink[FAKE_BELL];
	unsigned int n = 0;

	while (read(pipe, sink, sizeof(sink)) == FAKE_BELL)
		n++;
	return n;
}

static void check_rung(int pipe, unsigned int times, bool by_ioctl)
{
	unsigned int n = written(pipe);

	CHECK(rung == (by_ioctl ? times : 0), "%u", rung);
	CHECK(n == (by_ioctl ? 0 : times), "%u", n);
	rung = 0;
}

static int bind_window(struct ibv_mw *mw)
{
	struct ibv_mw_bind bind = { .bind_info.mr = w.mr };

	return ibv_bind_mw(w.qp, mw, &bind);
}

/* rxe's: in a post, a write() of the command and nothing else */
static void check_doorbell(int pipe, bool by_ioctl)
{
	char other[FAKE_BELL] = "";
	struct ibv_mw *mw;

	rung = 0;
	CHECK(!write_one(w.qp, 1, 1));
	check_rung(pipe, 1, by_ioctl);
	CHECK(write(real_ctx->cmd_fd, other, FAKE_BELL) == FAKE_BELL);
	check_rung(pipe, 1, false);

	/* those of the layer: each is there once, and is signaled */
	suspend();
	check_rung(pipe, 2, by_ioctl);
	CHECK(markers_of(w.real) == 1 && markers_of(w.real_srq) == 1);
	CHECK(!write_one(w.qp, 2, 1));
	check_rung(pipe, 0, by_ioctl);
	resume();
	check_rung(pipe, 1, by_ioctl);
	SENT(w.real, 1, 2);
	MUST(mw = ibv_alloc_mw(pd, IBV_MW_TYPE_1));
	CHECK(!bind_window(mw));
	check_rung(pipe, 1, by_ioctl);
	CHECK(!ibv_dealloc_mw(mw));
	fake_finish(w.real, 1, IBV_WC_SUCCESS);
	POLLED(w.cq, 1, 1, 2);
}

static void test_doorbell(void)
{
	int pipes[2];

	puts("a doorbell that is a write()");
	MUST(!pipe2(pipes, O_NONBLOCK));
	fake_bells = true;
	world_make();
	MUST(dup2(pipes[1], real_ctx->cmd_fd) >= 0);
	check_doorbell(pipes[0], false);
	suspend();
	replace_all();
	connect_all();
	resume();
	MUST(written(pipes[0])); /* while it had not moved */
	check_doorbell(pipes[0], true);
	/* and where that is no command */
	rung = UINT_MAX;
	CHECK(!write_one(w.qp, 1, 1));
	fake_finish(w.real, 1, IBV_WC_SUCCESS);
	POLLED(w.cq, 1, 1);
	close(real_ctx->cmd_fd);
	fake_bells = false;
	close(pipes[0]);
	close(pipes[1]);
	world_destroy();
}

static void test_moved(void)
{
	puts("to another host");
	begin();
	CHECK(layer_hold(LONG, 1, &swapped) == EINVAL); /* not suspended */
	hold(100);
	CHECK(layer_hold(LONG, 1, &swapped) == EBUSY);
	CHECK(layer_resume(&found) == EBUSY && strstr(found.reason, "held"));
	CHECK(layer_replace(&w.qp->qp_num, 1, LONG, &swapped) == EINVAL);

	/* the application goes on, and nothing of it reaches the provider */
	CHECK(!recv_one(w.qp, 4) && !recv_srq(14));
	CHECK(!write_one(w.qp, 5, 1) && !fake_waiting(w.real));
	fake_fail("req_notify_cq",
		  EINVAL); /* for who is armed when it is replaced */
	CHECK(!ibv_req_notify_cq(w.cq, 0));
	check_nothing(w.cq);
	layer_tick();

	world_leaves_host();
	CHECK(layer_replace(NULL, 0, LONG, &swapped) == EINVAL);
	CHECK(strstr(swapped.reason, "not armed"), "%s", swapped.reason);
	CHECK(layer_is_held() && !shows_sign()); /* it cannot move on so */
	CHECK(layer_connect(&swapped) == EINVAL);
	CHECK(strstr(swapped.reason, "held"), "%s", swapped.reason);
	fake_last.forgotten = 0;
	replace_all();
	CHECK(!shows_sign() && !layer_is_held());
	CHECK(fake_last.forgotten == 1, "%u", fake_last.forgotten);
	CHECK(fake_alive(FAKE_CONTEXT) == 1);
	world_is_back();
	connect_all();
	resume();
	RECVS(w.real, 1, 2, 3, 4);
	CHECK(fake_waiting(w.real) == 1);
	fake_finish(w.real, 1, IBV_WC_SUCCESS);
	POLLED(w.cq, 1, 5);
	world_destroy();
}

/* Whoever has made a PD, if this thread has registered a region of it, it is ours. */
static void test_whose(void)
{
	enum {
		PDS = 6
	};
	struct ibv_pd *pds[PDS];
	struct ibv_mr *mrs[PDS];

	puts("each PD has a region of the thread that stays");
	world_make();
	for (int i = 0; i < PDS; i++) {
		MUST(pds[i] = ibv_alloc_pd(ctx));
		MUST(mrs[i] = ibv_reg_mr(pds[i], w.memory, sizeof(w.memory),
					 IBV_ACCESS_LOCAL_WRITE));
	}
	hold(100);
	world_leaves_host();
	fake_last.regions = 0;
	fake_slow = true;
	replace_all();
	fake_slow = false;
	CHECK(fake_last.regions > PDS, "%u", fake_last.regions);
	world_is_back();
	connect_all();
	resume();
	for (int i = 0; i < PDS; i++)
		CHECK(!ibv_dereg_mr(mrs[i]) && !ibv_dealloc_pd(pds[i]));
	world_destroy();
}

/* Who only answers WRITEs and READs need not take it further than RTR. */
static void test_rtr(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };

	puts("a QP that cannot send");
	fake_needs_rts = true;
	world_make();
	CHECK(!ibv_modify_qp(w.qp, &attr, IBV_QP_STATE));
	to_rtr(w.qp);
	CHECK(!recv_one(w.qp, 1));
	hold(100);
	world_leaves_host();
	replace_all();
	world_is_back();
	connect_all();
	resume();
	CHECK(w.real->state == IBV_QPS_RTR);
	RECVS(w.real, 1);
	fake_needs_rts = false;
	world_destroy();
}

static void check_number(struct ibv_qp *qp, struct ibv_qp *real)
{
	struct ibv_wc wc;

	CHECK(!write_one(qp, 7, 1));
	fake_finish(real, 1, IBV_WC_SUCCESS);
	CHECK(ibv_poll_cq(w.cq, 1, &wc) == 1 && wc.qp_num == qp->qp_num);
}

/* Other hosts give out the same numbers. */
static void test_same_numbers(void)
{
	uint32_t taken;

	puts("to a host where other ones have the numbers of the old");
	begin();
	hold(100);
	world_leaves_host();
	taken = w.real_srq->qp_num;
	fake_next_handle((taken & 0xffff) - 3); /* a PD's, CQ's, SRQ's */
	replace_all();
	world_is_back();
	MUST(w.real->qp_num == taken);
	connect_all();
	resume();
	check_number(w.qp, w.real);
	check_number(w.of_srq, w.real_srq);
	world_destroy();
}

static void test_no_device(void)
{
	puts("to a host that has no such device");
	begin();
	hold(100);
	world_leaves_host();
	fake_prefix = "other";
	CHECK(layer_replace(NULL, 0, LONG, &swapped) == ENODEV);
	CHECK(strstr(swapped.reason, "context"), "%s", swapped.reason);
	CHECK(layer_is_held() && shows_sign());
	fake_prefix = "fake";
	replace_all();
	world_is_back();
	connect_all();
	resume();
	RECVS(w.real, 1, 2, 3);
	world_destroy();
}

/* There libibverbs takes another one for it, as its file has the same number. */
static void test_other_device(void)
{
	struct ibv_context *other;
	struct ibv_device **list;

	puts("to a host where the device's file is another one's");
	begin();
	hold(100);
	world_leaves_host();
	say_of_device("ibdev", "other0\n");
	CHECK(layer_replace(NULL, 0, LONG, &swapped) == ENODEV);
	CHECK(!strcmp(swapped.reason, "uverbs0 is not fake0 here, for which "
				      "libibverbs takes it, but other0"),
	      "%s", swapped.reason);
	say_of_device("ibdev", "fake0\n");
	say_of_device("dev", "231:5\n");
	CHECK(layer_replace(NULL, 0, LONG, &swapped) == ENODEV);
	CHECK(!strcmp(swapped.reason, "what was opened as uverbs0 is device "
				      "0:0, not 231:5"),
	      "%s", swapped.reason);
	CHECK(fake_alive(FAKE_CONTEXT) == 1);
	say_of_device("dev", "0:0\n"); /* what there was then is none's */
	CHECK(layer_is_held() && shows_sign());
	replace_all();
	world_is_back();
	connect_all();
	resume();
	RECVS(w.real, 1, 2, 3);

	puts("one that was listed on the host before is looked for, too");
	list = ibv_get_device_list(NULL);
	MUST(list && (other = ibv_open_device(list[1])));
	CHECK(!ibv_close_device(other));
	hold(100);
	world_leaves_host();
	replace_all();
	world_is_back();
	connect_all();
	resume();
	errno = 0;
	CHECK(!ibv_open_device(list[1]) && errno == ENODEV);
	MUST(other = ibv_open_device(list[0]));
	CHECK(!ibv_close_device(other));
	ibv_free_device_list(list);
	world_destroy();
}

/* --- GIDs --- */

/* another host's index of a GID */
static void move_gid(int from, int to)
{
	fake_gids[to] = fake_gids[from];
	fake_gids[to].gid_index = (uint32_t)to;
	fake_gids[from].gid.raw[15] ^= 0x80;
}

static int gid_index(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	CHECK(!ibv_query_qp(qp, &attr, IBV_QP_AV, &init));
	return attr.ah_attr.grh.sgid_index;
}

/* The application knows the index of before, whatever it is here. */
static void comes_to(int index)
{
	world_leaves_host();
	replace_all();
	world_is_back();
	connect_all();
	CHECK(gid_index(w.real) == index && gid_index(w.real_srq) == index,
	      "%d, not %d", gid_index(w.real), index);
	resume();
	CHECK(gid_index(w.qp) == SGID_INDEX);
}

static void test_gids(void)
{
	struct ibv_gid_entry before[FAKE_GIDS];

	memcpy(before, fake_gids, sizeof(before));
	begin();
	puts("a GID that has come along is at another index");
	hold(100);
	move_gid(SGID_INDEX, 7);
	comes_to(7);
	puts("from there on");
	hold(100);
	move_gid(7, 1);
	comes_to(1);
	puts("one that has not: the index is taken over");
	hold(100);
	fake_gids[1].gid.raw[15] = 99;
	comes_to(1);
	puts("unless it is one of another type, or family");
	hold(100);
	fake_gids[0].gid_type = IBV_GID_TYPE_ROCE_V1;
	fake_gids[1].gid_type = IBV_GID_TYPE_ROCE_V1;
	fake_gids[2].gid = (union ibv_gid){ .raw = { [10] = 0xff, 0xff, 10 } };
	fake_gids[3].port_num = 2;
	comes_to(4);

	puts("there is none");
	hold(100);
	for (int i = 0; i < FAKE_GIDS; i++)
		fake_gids[i].gid_type = IBV_GID_TYPE_ROCE_V1;
	world_leaves_host();
	CHECK(layer_replace(NULL, 0, LONG, &swapped) == EADDRNOTAVAIL);
	CHECK(strstr(swapped.reason,
		     ": port 1 has no GID of type RoCE v2, IPv6"),
	      "%s", swapped.reason);
	CHECK(layer_is_held() && shows_sign());
	fake_fail("_ibv_query_gid_table", EIO);
	CHECK(layer_replace(NULL, 0, LONG, &swapped) == EIO);
	memcpy(fake_gids, before, sizeof(before));
	comes_to(4);

	puts("nobody knows what it was");
	suspend();
	fake_fail("_ibv_query_gid_table", EOPNOTSUPP);
	CHECK(layer_check(&swapped) == EOPNOTSUPP);
	CHECK(strstr(swapped.reason, "GIDs of fake0: "), "%s", swapped.reason);
	fake_gids[4].gid_index = 100;
	CHECK(layer_check(&swapped) == EADDRNOTAVAIL);
	CHECK(strstr(swapped.reason, ": port 1 has no GID 4 any more"), "%s",
	      swapped.reason);
	CHECK(layer_hold(LONG, 100, &swapped) == EADDRNOTAVAIL);
	CHECK(!layer_is_held() && w.real->state == IBV_QPS_RTS);
	memcpy(fake_gids, before, sizeof(before));
	CHECK(!layer_check(&swapped), "%s", swapped.reason);
	resume();

	puts("where it was it is not looked for");
	hold(100);
	fake_gids[4] = before[3];
	fake_gids[5] = before[4];
	replace_all();
	connect_all();
	CHECK(gid_index(w.real) == 4);
	resume();
	puts("nor has who is in ERR anything of it");
	set_state(w.qp, IBV_QPS_ERR);
	set_state(w.of_srq, IBV_QPS_ERR);
	fake_gids[4].gid_index = 100;
	suspend();
	CHECK(!layer_check(&swapped), "%s", swapped.reason);
	resume();
	memcpy(fake_gids, before, sizeof(before));
	world_destroy();
}

static void test_abandoned(void)
{
	struct ibv_wc wc;
	int n = 0;

	puts("nobody goes on");
	begin();
	hold(2);
	CHECK(!write_one(w.qp, 5, 1));
	layer_tick();
	CHECK(layer_is_held());
	layer_tick();
	CHECK(!layer_is_held() && !shows_sign());
	world_look();
	CHECK(w.real->state == IBV_QPS_ERR);
	while (ibv_poll_cq(w.cq, 1, &wc) == 1) {
		CHECK(wc.status == IBV_WC_WR_FLUSH_ERR && wc.wr_id <= 5);
		n++;
	}
	CHECK(n == 3, "%d flushed", n); /* those of the SRQ stay there */
	fake_finish(w.real, 1, IBV_WC_WR_FLUSH_ERR);
	CHECK(ibv_poll_cq(w.cq, 1, &wc) == 1 && wc.wr_id == 5);
	suspend(); /* which is over, too */
	resume();
	world_destroy();
}

static void test_fails(void)
{
	struct ibv_cq *cq;
	void *context;

	puts("what cannot be held, and is replaced");
	begin();
	suspend();
	fake_fail_later("ibv_query_qp", EAGAIN, 1); /* of the second QP */
	CHECK(layer_hold(LONG, 100, &swapped) == EAGAIN);
	CHECK(!layer_is_held() && !shows_sign());
	replace_all();
	connect_all();
	resume();
	CHECK(!readable(w.channel->fd)); /* markers are not its own */
	fake_receive(w.real, 8);
	CHECK(readable(w.channel->fd));
	CHECK(!ibv_get_cq_event(w.channel, &cq, &context));
	ibv_ack_cq_events(cq, 1);
	world_destroy();
}

static void test_here(void)
{
	puts("where it was");
	begin();
	hold(100);
	fake_last.forgotten = 0;
	replace_all();
	CHECK(!fake_last.forgotten);
	connect_all();
	resume();
	RECVS(w.real, 1, 2, 3);
	world_destroy();
}

int main(void)
{
	rig_open();
	fake_work();
	test_doorbell();
	test_bury();
	test_moved();
	test_whose();
	test_rtr();
	test_same_numbers();
	test_no_device();
	test_other_device();
	test_gids();
	test_abandoned();
	test_fails();
	test_here();
	return rig_close();
}
