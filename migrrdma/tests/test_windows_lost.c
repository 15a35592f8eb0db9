// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Memory windows, when QPs or time are lost, or nobody knows what a device has
 */
#include <sys/wait.h>
#include <unistd.h>

#include "suspend.h"
#include "windows_rig.h"

static const union ibv_gid gid = { .raw = { 0xfe, [15] = 77 } };

/* one of type 2, with the first QP */
static struct ibv_mw *begin(void)
{
	struct ibv_mw *mw;

	windows_make();
	mw = new_window(IBV_MW_TYPE_2);
	CHECK(!bind_2(w.qp, mw));
	return mw;
}

static void end(struct ibv_mw *mw)
{
	CHECK(!ibv_dealloc_mw(mw));
	world_destroy();
}

/* Its QPs are in ERR, which nobody has seen before there is no way back. */
static void test_dead_qps(bool held)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	struct ibv_mw *mw;

	printf("QPs have died, and it is %s\n", held ? "held" : "replaced");
	windows_make();
	mw = new_window(IBV_MW_TYPE_1);
	CHECK(!bind_1(w.qp, mw, BYTES));
	MUST(!ibv_modify_qp(w.real, &attr, IBV_QP_STATE));
	MUST(!ibv_modify_qp(w.real_srq, &attr, IBV_QP_STATE));
	suspend();
	if (held) {
		CHECK(!layer_hold(LONG, 100, &swapped), "%s", swapped.reason);
	} else {
		fake_fail("ibv_query_srq", EAGAIN);
		CHECK(layer_replace(NULL, 0, LONG, &swapped) == EAGAIN);
	}
	CHECK(!layer_replace(NULL, 0, LONG, &swapped), "%s", swapped.reason);
	tell_peers();
	connect_all();
	resume();
	IS_FREE(mw);
	end(mw);
}

/* Its next key is as was told, when names were asked for. */
static void test_told(void)
{
	struct ibv_mw *mw;
	uint32_t key, real;

	puts("a peer is lost after keys were told");
	mw = begin();
	suspend();
	replace_all();
	tell_peers();
	/* what is left to a kernel goes before the QP: rdma_rxe waits for that */
	CHECK(to_mw(mw)->real->handle > to_qp(w.qp)->real->handle);
	key = mw->rkey;
	real = real_key_of(mw);
	CHECK(!layer_set_peer(w.qp->qp_num, 0, &gid, "lost", &swapped));
	CHECK(!layer_connect(&swapped), "%s", swapped.reason);
	resume();
	IS_FREE(mw);
	/* refused, as a whole batch, and then not */
	fake_refuse(to_qp(w.of_srq)->real, 0, ENOMEM);
	CHECK(bind_2(w.of_srq, mw) == ENOMEM);
	CHECK(!bind_2(w.of_srq, mw));
	IS_BOUND(mw, w.of_srq);
	CHECK(fake_window(to_mw(mw)->real).rkey ==
	      ((real & ~0xffU) | ((real + mw->rkey - key) & 0xff)));
	end(mw);
}

static void test_child(void)
{
	struct ibv_mw *mw;
	int status;

	puts("freed by a child, with what it is bound to");
	fflush(stdout);
	mw = begin();
	if (!fork()) {
		CHECK(!ibv_dealloc_mw(mw) && !ibv_dereg_mr(w.mr));
		_exit(check_result());
	}
	MUST(wait(&status) > 0);
	CHECK(!status, "%#x", status);
	end(mw);
}

static int check_all(void)
{
	int err;

	suspend();
	err = layer_check(&swapped);
	resume();
	return err;
}

static void test_doubt(void)
{
	struct ibv_mw *mw;
	struct ibv_wc wc;

	puts("flushes of a bind's id say nothing of it");
	windows_make();
	mw = new_window(IBV_MW_TYPE_1);
	CHECK(!bind_1(w.qp, mw, BYTES));
	fake_complete(w.real_cq,
		      &(struct ibv_wc){ .wr_id = 77,
					.status = IBV_WC_WR_FLUSH_ERR,
					.qp_num = w.real->qp_num });
	while (ibv_poll_cq(w.cq, 1, &wc) == 1)
		;
	CHECK(!check_all(), "%s", swapped.reason);
	CHECK(!ibv_dealloc_mw(mw));

	puts("but a region that is registered again does; for partners, too");
	mw = new_window(IBV_MW_TYPE_2);
	CHECK(!bind_2(w.qp, mw));
	CHECK(!ibv_rereg_mr(w.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
			    IBV_ACCESS_MW_BIND));
	CHECK(check_all() == EOPNOTSUPP);
	CHECK(strstr(swapped.reason, "may be bound or not"), "%s",
	      swapped.reason);
	CHECK(!suspend_one(w.qp, LONG));
	CHECK(layer_replace(&w.qp->qp_num, 1, LONG, &swapped) == EOPNOTSUPP);
	resume();
	CHECK(!invalidate(w.qp, mw));
	CHECK(!check_all(), "%s", swapped.reason);
	end(mw);
}

static void test_slow(void)
{
	struct ibv_mw *mw;

	puts("one takes long to be bound: it is not bound twice");
	mw = begin();
	suspend();
	replace_all();
	tell_peers();
	at_once = false;
	CHECK(layer_connect(&swapped) == ETIMEDOUT);
	CHECK(strstr(swapped.reason, "is not bound"), "%s", swapped.reason);
	at_once = true;
	fake_finish(to_qp(w.qp)->real, UINT_MAX, IBV_WC_SUCCESS);
	CHECK(!layer_connect(&swapped), "%s", swapped.reason);
	resume();
	IS_BOUND(mw, w.qp);
	end(mw);
}

/* It may be free from then on, or not: it is not invalidated twice. */
static void test_late(void)
{
	struct ibv_mw *mw = begin();

	puts("of a partner, when time is up");
	CHECK(!suspend_one(w.qp, LONG));
	at_once = false;
	CHECK(layer_replace(&w.qp->qp_num, 1, 500, &swapped) == ETIMEDOUT);
	CHECK(strstr(swapped.reason, "is not unbound"), "%s", swapped.reason);
	at_once = true;
	fake_finish(w.real, UINT_MAX, IBV_WC_SUCCESS);
	CHECK(layer_replace(&w.qp->qp_num, 1, LONG, &swapped) == EOPNOTSUPP);
	CHECK(strstr(swapped.reason, "may be bound or not"), "%s",
	      swapped.reason);
	resume();
	CHECK(!bind_2(w.qp, mw));
	CHECK(!suspend_one(w.qp, LONG));
	CHECK(!layer_replace(&w.qp->qp_num, 1, LONG, &swapped), "%s",
	      swapped.reason);
	CHECK(!layer_set_peer(w.qp->qp_num, 0x5001, &gid, "mover", &swapped));
	CHECK(!layer_connect(&swapped), "%s", swapped.reason);
	resume();
	IS_BOUND(mw, w.qp);
	end(mw);
}

/* rdma_rxe has no LOCAL_INV for them */
static void test_uc(void)
{
	struct ibv_mw *mw = begin();
	struct ibv_qp *qp, *real;

	puts("of a partner, with a QP of UC");
	qp = new_qp(IBV_QPT_UC, w.cq, &real);
	set_state(qp, IBV_QPS_RESET);
	to_rts(qp);
	CHECK(!invalidate(w.qp, mw) && !bind_2(qp, mw));
	CHECK(!suspend_one(qp, LONG), "%s", found.reason);
	CHECK(layer_replace(&qp->qp_num, 1, LONG, &swapped) == EOPNOTSUPP);
	CHECK(strstr(swapped.reason, "is not of RC"), "%s", swapped.reason);
	resume();
	IS_BOUND(mw, qp);
	CHECK(!ibv_dealloc_mw(mw) && !ibv_destroy_qp(qp));
	world_destroy();
}

/* Half of it was done when all is replaced once more. */
static void test_halfway(void)
{
	struct ibv_mw *mw;

	puts("of a partner that is replaced as a whole in between");
	mw = begin();
	suspend();
	CHECK(!layer_replace(&w.qp->qp_num, 1, LONG, &swapped));
	CHECK(!layer_set_peer(w.qp->qp_num, 0x5001, &gid, "mover", &swapped));
	fake_refuse(to_qp(w.qp)->real, 1, EAGAIN);
	CHECK(layer_connect(&swapped) == EAGAIN);
	CHECK(!layer_replace(NULL, 0, LONG, &swapped), "%s", swapped.reason);
	tell_peers();
	connect_all();
	resume();
	IS_BOUND(mw, w.qp);
	end(mw);
}

int main(void)
{
	rig_open();
	test_dead_qps(true);
	test_dead_qps(false);
	test_told();
	test_child();
	test_doubt();
	test_slow();
	test_late();
	test_uc();
	test_halfway();
	return rig_close();
}
