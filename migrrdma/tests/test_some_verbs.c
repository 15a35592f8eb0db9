// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Verbs while some QPs are suspended: those of others do not wait
 */
#include <sys/syscall.h>

#include "suspend_rig.h"
#include "swap.h"

static _Thread_local bool
	is_late; /* whatever this thread waits for has taken long */

int clock_gettime(clockid_t which, struct timespec *t)
{
	long err = syscall(SYS_clock_gettime, which, t);

	if (is_late)
		t->tv_sec -= 60;
	return (int)err;
}

/* a thread with a verb */
struct verb {
	pthread_t thread;
	int (*call)(void);
	int err;
	atomic_bool begun, done;
};

static void *call_verb(void *arg)
{
	struct verb *v = arg;

	v->begun = true;
	v->err = v->call();
	v->done = true;
	return NULL;
}

static void verb_begin(struct verb *v, int (*call)(void))
{
	*v = (struct verb){ .call = call };
	MUST(!pthread_create(&v->thread, NULL, call_verb, v));
}

static void verb_end(struct verb *v)
{
	MUST(!pthread_join(v->thread, NULL));
	CHECK(!v->err);
}

static int modify_a(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	return ibv_modify_qp(two.a, &attr, IBV_QP_STATE);
}

static int query_a(void)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	return ibv_query_qp(two.a, &attr, IBV_QP_STATE, &init);
}

static int destroy_a(void)
{
	return ibv_destroy_qp(two.a);
}

/* It is in RTS, if one asks the application. */
static int set_timer_of_a(void)
{
	struct ibv_qp_attr attr = { .min_rnr_timer = 12 };
	struct ibv_qp_init_attr init;

	return ibv_modify_qp(two.a, &attr, IBV_QP_MIN_RNR_TIMER) ||
	       ibv_query_qp(two.a, &attr, IBV_QP_STATE, &init) ||
	       attr.qp_state != IBV_QPS_RTS;
}

static struct ibv_mw *window;

static int free_window(void)
{
	return ibv_dealloc_mw(window);
}

static struct ibv_context *other_ctx;

static int open_other(void)
{
	other_ctx = app_open(1);
	return 0;
}

static int close_other(void)
{
	return ibv_close_device(other_ctx);
}

static void test_verbs(void)
{
	int (*const calls[])(void) = { modify_a, query_a, free_window };
	struct ibv_qp *qp, *real;
	struct ibv_cq *cq, *real_cq;
	struct ibv_mr *mr;
	struct verb v[3];
	char memory[8];

	puts("verbs");
	two_make();
	qp = new_qp(IBV_QPT_RC, two.cq, &real);
	window = ibv_alloc_mw(pd, IBV_MW_TYPE_1);
	MUST(window);
	suspend_a();
	for (int i = 0; i < 3; i++)
		verb_begin(&v[i], calls[i]);
	set_state(two.b, IBV_QPS_ERR);
	set_state(two.b, IBV_QPS_RTS);
	CHECK(!ibv_destroy_qp(qp));
	cq = new_cq(8, &real_cq);
	qp = new_qp(IBV_QPT_RC, two.cq, &real);
	mr = ibv_reg_mr(pd, memory, sizeof(memory), 0);
	MUST(mr);
	CHECK(!send_one(qp, 1, 0) && !send_one(two.b, 2, 0));
	SENT(real, 1);
	SENT(two.real_b, 2);
	CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_cq(cq) && !ibv_dereg_mr(mr));
	open_other();
	CHECK(!close_other());
	for (int i = 0; i < 3; i++) {
		WAIT(v[i].begun);
		CHECK(!v[i].done);
	}
	CHECK(two.real_a->state == IBV_QPS_RTS && fake_alive(FAKE_MW) == 1);
	resume();
	for (int i = 0; i < 3; i++)
		verb_end(&v[i]);
	CHECK(two.real_a->state == IBV_QPS_ERR && !fake_alive(FAKE_MW));
	two_destroy();
}

/* The layer takes its lock while the application has it. */
static void test_batches(void)
{
	struct ibv_poll_cq_attr attr = { 0 };
	struct ibv_qp *a, *b, *real_a, *real_b;
	struct ibv_cq *real_cq;
	struct ibv_cq_ex *ex;

	puts("verbs within a batch of polls");
	ex = new_cq_ex(IBV_WC_EX_WITH_QP_NUM, &real_cq);
	a = new_qp(IBV_QPT_RC, ibv_cq_ex_to_cq(ex), &real_a);
	b = new_qp(IBV_QPT_RC, ibv_cq_ex_to_cq(ex), &real_b);
	CHECK(!send_one(b, 1, IBV_SEND_SIGNALED));
	fake_finish(real_b, 1, IBV_WC_SUCCESS);
	prompt = false;
	two.a = a;
	MUST(!ibv_start_poll(ex, &attr)); /* of the provider: a section */
	CHECK(suspend_one(a, 2) == ETIMEDOUT);
	CHECK(strstr(found.reason, "within a batch"));
	set_state(b, IBV_QPS_RTS);
	CHECK(ex->wr_id == 1);
	ibv_end_poll(ex);
	CHECK(ibv_start_poll(ex, &attr) == ENOENT);
	CHECK(!ibv_destroy_qp(a) && !ibv_destroy_qp(b));
	CHECK(!ibv_destroy_cq(ibv_cq_ex_to_cq(ex)));
	prompt = true;
}

/* One that is within waits for a thread in a batch, and that one for a suspended QP. */
static struct {
	struct ibv_cq_ex *ex;
	int (*call)(void);
	atomic_bool has, go, is_waited_for, done;
} holder;

static void wait_for_holder(void)
{
	holder.is_waited_for = true;
	WAIT(holder.done);
}

static int open_waits(void)
{
	fake_opening = wait_for_holder;
	open_other();
	fake_opening = NULL;
	return 0;
}

static int call_within_batch(void)
{
	struct ibv_poll_cq_attr attr = { 0 };
	int err;

	MUST(!ibv_start_poll(holder.ex, &attr));
	CHECK(holder.ex->wr_id == 1);
	holder.has = true;
	WAIT(holder.go);
	err = holder.call();
	holder.done = true;
	ibv_end_poll(holder.ex);
	return err;
}

static struct ibv_cq *holder_make(int (*call)(void))
{
	struct ibv_cq *real_cq;

	holder.call = call;
	holder.ex = new_cq_ex(IBV_WC_EX_WITH_QP_NUM, &real_cq);
	holder.has = holder.go = holder.is_waited_for = holder.done = false;
	two.cq = new_cq(200, &two.real_cq);
	two.a = new_qp(IBV_QPT_RC, two.cq, &two.real_a);
	fake_complete(real_cq, &(struct ibv_wc){ .wr_id = 1 });
	suspend_a();
	return ibv_cq_ex_to_cq(holder.ex);
}

/* @replaced: it is, and has yet to be connected */
static void test_yields(bool replaced)
{
	const union ibv_gid gid = { .raw = { 0xfe, [15] = 77 } };
	struct verb has_cq, within, waits;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct swap swapped;
	struct ibv_cq *cq;
	uint32_t qpn;

	puts(replaced
		     ? "and when that has been replaced"
		     : "a verb waits for a batch, in which a thread waits for a suspended QP");
	cq = holder_make(replaced ? set_timer_of_a : query_a);
	qpn = two.a->qp_num;
	if (replaced) {
		CHECK(!layer_replace(&qpn, 1, LONG, &swapped));
		two.real_a = fake_newest(FAKE_QP);
	}
	verb_begin(&has_cq, call_within_batch);
	WAIT(holder.has);
	if (replaced) {
		verb_begin(&waits, modify_a);
		WAIT(waits.begun);
	}
	verb_begin(&within, open_waits);
	WAIT(holder.is_waited_for);
	holder.go = true;
	if (replaced) {
		CHECK(!layer_set_peer(qpn, 1, &gid, "peer", &swapped));
		WAIT(has_cq.done);
		CHECK(!waits.done && two.real_a->state == IBV_QPS_INIT);
		CHECK(!send_one(two.a, 2, 0));
		CHECK(!layer_connect(&swapped));
		CHECK(two.real_a->state == IBV_QPS_RTS);
		CHECK(!ibv_query_qp(two.real_a, &attr, 0, &init) &&
		      attr.min_rnr_timer == 12);
	}
	resume();
	if (replaced)
		SENT(two.real_a, 2);
	verb_end(&has_cq);
	verb_end(&within);
	if (replaced)
		verb_end(&waits);
	CHECK(!ibv_destroy_qp(two.a) && !ibv_destroy_cq(two.cq) &&
	      !ibv_destroy_cq(cq) && !close_other());
}

/* Nothing of the context is suspended any more, though none of its QPs could be asked. */
static void test_all_destroyed(void)
{
	struct verb has_cq, within, frees;
	struct ibv_cq *cq;

	puts("and when all QPs are destroyed meanwhile");
	cq = holder_make(destroy_a);
	verb_begin(&has_cq, call_within_batch);
	WAIT(holder.has);
	verb_begin(&within, open_waits);
	WAIT(holder.is_waited_for);
	holder.go = true;
	resume();
	verb_end(&has_cq);
	verb_end(&within);
	CHECK(!fake_alive(FAKE_QP) && !close_other());
	window = ibv_alloc_mw(pd, IBV_MW_TYPE_1);
	MUST(window);
	verb_begin(&frees, free_window);
	WAIT(frees.done);
	verb_end(&frees);
	CHECK(!ibv_destroy_cq(two.cq) && !ibv_destroy_cq(cq));
}

/* of the application's */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool locked;

static int query_with_lock(void)
{
	int err;

	MUST(!pthread_mutex_lock(&lock));
	locked = true;
	err = query_a();
	pthread_mutex_unlock(&lock);
	return err;
}

static int lock_it(void)
{
	MUST(!pthread_mutex_lock(&lock));
	pthread_mutex_unlock(&lock);
	return 0;
}

/* The layer knows nothing of what the owner of the CQ waits for. */
static void test_yields_to_all(void)
{
	struct verb has_lock, has_cq, within;
	struct ibv_cq *cq;

	puts("and when that waits for a lock, of which the owner does");
	cq = holder_make(lock_it);
	locked = false;
	verb_begin(&has_lock, query_with_lock);
	WAIT(locked);
	verb_begin(&has_cq, call_within_batch);
	WAIT(holder.has);
	verb_begin(&within, open_waits);
	WAIT(holder.is_waited_for);
	holder.go = true;
	is_late = true;
	resume();
	is_late = false;
	verb_end(&has_lock);
	verb_end(&has_cq);
	verb_end(&within);
	CHECK(!ibv_destroy_qp(two.a) && !ibv_destroy_cq(two.cq) &&
	      !ibv_destroy_cq(cq) && !close_other());
}

int main(void)
{
	rig_open();
	test_verbs();
	test_batches();
	test_yields(false);
	test_yields(true);
	test_all_destroyed();
	test_yields_to_all();
	return rig_close();
}
