// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Other threads while a process is suspended, and again and again
 */
#include <sched.h>
#include <sys/syscall.h>

#include "suspend_rig.h"

/* --- verbs that wait --- */

static struct {
	struct ibv_qp *modified, *destroyed, *made;
	struct ibv_cq *cq_destroyed, *cq_made;
	struct ibv_mw *mw, *mw_made;
	struct ibv_context *opened;
} waits;
static atomic_bool resumed;

static void do_modify_qp(void)
{
	set_state(waits.modified, IBV_QPS_ERR);
}

static void do_destroy_qp(void)
{
	CHECK(!ibv_destroy_qp(waits.destroyed));
}

static void do_create_qp(void)
{
	struct ibv_qp_init_attr attr = { .qp_type = IBV_QPT_RC };

	waits.made = ibv_create_qp(pd, &attr);
}

static void do_destroy_cq(void)
{
	CHECK(!ibv_destroy_cq(waits.cq_destroyed));
}

static void do_create_cq(void)
{
	waits.cq_made = ibv_create_cq(ctx, 1, NULL, NULL, 0);
}

static void do_bind_mw(void)
{
	struct ibv_mw_bind bind = { 0 };

	CHECK(!ibv_bind_mw(waits.modified, waits.mw, &bind));
}

static void do_alloc_mw(void)
{
	waits.mw_made = ibv_alloc_mw(pd, IBV_MW_TYPE_1);
}

static void do_open(void)
{
	waits.opened = app_open(1);
}

struct verb {
	void (*call)(void);
	pthread_t thread;
	atomic_int tid;
	atomic_bool done;
	bool late;
};

static void *call_verb(void *arg)
{
	struct verb *v = arg;

	v->tid = (int)syscall(SYS_gettid);
	v->call();
	v->late = resumed;
	v->done = true;
	return NULL;
}

static bool sleeps(int tid)
{
	char path[64], state = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	f = fopen(path, "r");
	if (!f)
		return false;
	if (fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
		state = 0;
	fclose(f);
	return state == 'S';
}

/* that all is settled is known when something else is asked for */
static void suspend_and_settle(void)
{
	suspend();
	CHECK(suspend_hold());
	suspend_release();
}

static void test_waiting(void)
{
	void (*const calls[])(void) = { do_modify_qp, do_destroy_qp,
					do_create_qp, do_destroy_cq,
					do_create_cq, do_bind_mw,
					do_alloc_mw,  do_open };
	struct verb v[8] = { { 0 } };
	struct ibv_qp *real, *real_gone;
	struct ibv_cq *cq, *real_cq;

	puts("verbs that wait");
	cq = new_cq(8, &real_cq);
	waits.modified = new_qp(IBV_QPT_RC, cq, &real);
	waits.destroyed = new_qp(IBV_QPT_RC, cq, &real_gone);
	waits.cq_destroyed = new_cq(1, &real_cq);
	waits.mw = ibv_alloc_mw(pd, IBV_MW_TYPE_1);
	MUST(waits.mw);
	suspend_and_settle();
	for (int i = 0; i < 8; i++) {
		v[i].call = calls[i];
		MUST(!pthread_create(&v[i].thread, NULL, call_verb, &v[i]));
	}
	for (int i = 0; i < 8; i++)
		WAIT(v[i].done || (v[i].tid && sleeps(v[i].tid)));
	/* and who only posts and polls does not */
	CHECK(!send_one(waits.modified, 1, 0));
	check_nothing(cq);
	CHECK(real->state == IBV_QPS_RTS);
	resumed = true;
	resume();
	for (int i = 0; i < 8; i++) {
		MUST(!pthread_join(v[i].thread, NULL));
		CHECK(v[i].late, "%d", i);
	}
	CHECK(real->state == IBV_QPS_ERR);
	SENT(real, 1);
	MUST(waits.made && waits.cq_made && waits.mw_made && waits.opened);
	CHECK(!ibv_destroy_qp(waits.made) && !ibv_destroy_qp(waits.modified));
	CHECK(!ibv_destroy_cq(waits.cq_made) && !ibv_destroy_cq(cq));
	CHECK(!ibv_dealloc_mw(waits.mw) && !ibv_dealloc_mw(waits.mw_made));
	CHECK(!ibv_close_device(waits.opened));
}

/* The peer may wait for a RECV, for which a verb is needed. */
static void test_until_settled(void)
{
	struct ibv_srq_init_attr init = { .attr = { 8, 1, 0 } };
	struct ibv_srq_attr limit = { .srq_limit = 1 };
	struct ibv_cq *cq, *real_cq, *new, *real_new;
	struct verb v = { .call = do_modify_qp };
	struct ibv_qp *qp, *real, *new_real;
	struct ibv_srq *srq;

	puts("verbs that do not wait until all is settled");
	cq = new_cq(8, &real_cq);
	qp = new_qp(IBV_QPT_RC, cq, &real);
	srq = ibv_create_srq(pd, &init);
	MUST(srq);
	prompt = resumed = false;
	begin_suspend(LONG);
	WAIT(markers_of(real));
	CHECK(!ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT));
	new = new_cq(8, &real_new);
	waits.modified =
		ibv_create_qp(pd,
			      &(struct ibv_qp_init_attr){ .qp_type = IBV_QPT_RC,
							  .send_cq = new,
							  .recv_cq = new });
	MUST(waits.modified);
	new_real = fake_newest(FAKE_QP);
	MUST(!pthread_create(&v.thread, NULL, call_verb, &v));
	WAIT(v.tid && sleeps(v.tid));
	fake_complete(real_new, &(struct ibv_wc){ .wr_id = 1 });
	WAIT(!fake_completions(real_new));
	fake_finish(real, 1, IBV_WC_SUCCESS);
	CHECK(!end_suspend());
	CHECK(!ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT));
	CHECK(!v.done && new_real->state == IBV_QPS_RESET);
	resumed = true;
	resume();
	MUST(!pthread_join(v.thread, NULL));
	CHECK(v.late && new_real->state == IBV_QPS_ERR);
	POLLED(new, 1, 1);
	check_direct(new, real_new);
	CHECK(!ibv_destroy_qp(waits.modified) && !ibv_destroy_cq(new));
	CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_cq(cq));
	CHECK(!ibv_destroy_srq(srq));
	prompt = true;
}

/* a thread in the midst of a batch is waited for */
static void test_batch_is_waited_for(void)
{
	struct ibv_qp *qp, *real;
	struct ibv_cq *cq, *real_cq;
	struct ibv_qp_ex *ex;

	puts("a thread within a batch");
	cq = new_cq(8, &real_cq);
	qp = new_qp_ex(IBV_QPT_RC, cq, EX_OPS, &real);
	ex = ibv_qp_to_qp_ex(qp);
	ibv_wr_start(ex);
	CHECK(layer_suspend(2, &found) == ETIMEDOUT);
	CHECK(strstr(found.reason, "within a batch") && !markers_of(real));
	ex->wr_id = 1;
	ex->wr_flags = 0;
	ibv_wr_send(ex);
	begin_suspend(LONG);
	CHECK(!ibv_wr_complete(ex));
	CHECK(!end_suspend());
	SENT(real, 1);
	CHECK(is_marker(fake_sent(real, 1)) && fake_sends(real) == 2);
	resume();
	ibv_wr_start(ex);
	ibv_wr_abort(ex);
	CHECK(layer_suspend(2, &found) == 0);
	resume();
	CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_cq(cq));
}

/* --- traffic --- */

enum {
	ROUNDS = 300,
	A_ROUND = 64 /* requests of a thread */
};

static struct {
	struct ibv_qp *qp[2], *real[2];
	struct ibv_cq *cq, *real_cq;
	struct ibv_cq_ex *ex;
	struct ibv_cq *real_ex;
	atomic_uint round, posted[2], batched;
	atomic_bool posted_all, done;
	uint64_t *seen[2];
	unsigned int n_seen[2];
} traffic;

#define ID(thread, n) ((uint64_t)(thread) << 32 | (n))
#define ENOUGH ((traffic.round + 1) * A_ROUND)

static unsigned int flags_of(unsigned int n)
{
	return n % 3 ? IBV_SEND_SIGNALED : 0;
}

/* to both QPs, which other threads use as well */
static void *post_some(void *arg)
{
	unsigned int thread = arg != NULL, n = 0;

	while (!traffic.posted_all) {
		if (n >= ENOUGH ||
		    send_one(traffic.qp[0], ID(thread, n), flags_of(n)))
			sched_yield();
		else
			n++;
	}
	traffic.posted[thread] = n;
	return NULL;
}

static void *post_batches(void *arg)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(traffic.qp[1]);
	unsigned int n = 0, batch = 0;

	(void)arg;
	while (!traffic.posted_all) {
		if (n >= ENOUGH) {
			sched_yield();
			continue;
		}
		ibv_wr_start(ex);
		for (unsigned int i = 0; i < 3; i++) {
			ex->wr_id = ID(2, n + i);
			ex->wr_flags = flags_of(n + i);
			if (i & 1)
				ibv_wr_rdma_write(ex, 1, 2);
			else
				ibv_wr_send(ex);
			ibv_wr_set_sge(ex, 3, 4, 5);
		}
		if (++batch % 7 == 0) {
			ibv_wr_abort(ex);
			continue;
		}
		if (ibv_wr_complete(ex))
			sched_yield();
		else
			n += 3;
	}
	traffic.batched = n;
	return NULL;
}

/* the network: it finishes what CQs have room for */
static void *finish_some(void *arg)
{
	struct ibv_cq *cq[2] = { traffic.real_cq, traffic.real_ex };
	bool any;

	(void)arg;
	do {
		any = false;
		for (int i = 0; i < 2; i++)
			if (fake_completions(cq[i]) < (unsigned int)cq[i]->cqe)
				any |= fake_finish(traffic.real[i], 1,
						   IBV_WC_SUCCESS);
		if (!any)
			sched_yield();
	} while (!traffic.done);
	return NULL;
}

static void see(unsigned int i, uint64_t wr_id)
{
	MUST(traffic.n_seen[i] < 4 * (ROUNDS + 2) * A_ROUND);
	traffic.seen[i][traffic.n_seen[i]++] = wr_id;
}

static void *poll_some(void *arg)
{
	struct ibv_poll_cq_attr attr = { 0 };
	struct ibv_wc wc[5];
	bool any = true, done = false;
	int n, err;

	(void)arg;
	/* when all is done, what the layer still has is polled to the end */
	for (int at_once = 1; !done || any; at_once = at_once % 5 + 1) {
		done = traffic.done; /* and then comes nothing that is not seen */
		n = ibv_poll_cq(traffic.cq, at_once, wc);
		MUST(n >= 0);
		any = n;
		for (int i = 0; i < n; i++)
			see(0, wc[i].wr_id);
		err = ibv_start_poll(traffic.ex, &attr);
		MUST(!err || err == ENOENT);
		if (err)
			continue;
		any = true;
		n = 0;
		do {
			see(1, traffic.ex->wr_id);
		} while (++n < at_once && !ibv_next_poll(traffic.ex));
		ibv_end_poll(traffic.ex);
	}
	return NULL;
}

/* all that was posted, in the order of each thread, and its completions in its order */
static void check_traffic(unsigned int i)
{
	unsigned int next[3] = { 0 }, done = 0, thread;
	const struct fake_sent *s;

	for (unsigned int n = 0; n < fake_sends(traffic.real[i]); n++) {
		s = fake_sent(traffic.real[i], n);
		if (is_marker(s))
			continue;
		thread = (unsigned int)(s->wr.wr_id >> 32);
		MUST(thread < 3);
		CHECK((uint32_t)s->wr.wr_id == next[thread]);
		next[thread] = (uint32_t)s->wr.wr_id + 1;
		if (s->signaled) {
			CHECK(done < traffic.n_seen[i] &&
			      traffic.seen[i][done] == s->wr.wr_id);
			done++;
		}
	}
	CHECK(done == traffic.n_seen[i]);
	CHECK(next[0] == (i ? 0 : traffic.posted[0]));
	CHECK(next[1] == (i ? 0 : traffic.posted[1]));
	CHECK(next[2] == (i ? traffic.batched : 0));
	CHECK(done > ROUNDS);
}

static void test_traffic(void)
{
	pthread_t posters[3], network, poller;
	unsigned int before;

	puts("traffic");
	for (int i = 0; i < 2; i++) {
		traffic.seen[i] =
			calloc(4 * (ROUNDS + 2) * A_ROUND, sizeof(uint64_t));
		MUST(traffic.seen[i]);
	}
	traffic.cq = new_cq(32, &traffic.real_cq);
	traffic.ex = new_cq_ex(IBV_WC_STANDARD_FLAGS, &traffic.real_ex);
	traffic.qp[0] = new_qp(IBV_QPT_RC, traffic.cq, &traffic.real[0]);
	traffic.qp[1] = new_qp_ex(IBV_QPT_RC, ibv_cq_ex_to_cq(traffic.ex),
				  EX_OPS, &traffic.real[1]);
	prompt = false;
	MUST(!pthread_create(&posters[0], NULL, post_some, NULL));
	MUST(!pthread_create(&posters[1], NULL, post_some, &traffic));
	MUST(!pthread_create(&posters[2], NULL, post_batches, NULL));
	MUST(!pthread_create(&network, NULL, finish_some, NULL));
	MUST(!pthread_create(&poller, NULL, poll_some, NULL));
	for (; traffic.round < ROUNDS; traffic.round++) {
		before = fake_sends(traffic.real[0]);
		suspend();
		CHECK(!fake_waiting(traffic.real[0]));
		CHECK(!fake_waiting(traffic.real[1]));
		resume();
		if (traffic.round % 4 == 0)
			WAIT(fake_sends(traffic.real[0]) > before + 1);
	}
	traffic.posted_all = true;
	for (int i = 0; i < 3; i++)
		pthread_join(posters[i], NULL);
	WAIT(!fake_waiting(traffic.real[0]) && !fake_waiting(traffic.real[1]) &&
	     !fake_completions(traffic.real_cq) &&
	     !fake_completions(traffic.real_ex));
	traffic.done = true;
	pthread_join(network, NULL);
	pthread_join(poller, NULL);
	prompt = true;
	for (unsigned int i = 0; i < 2; i++) {
		check_traffic(i);
		CHECK(markers_of(traffic.real[i]) >= ROUNDS);
		CHECK(!ibv_destroy_qp(traffic.qp[i]));
		free(traffic.seen[i]);
	}
	CHECK(!ibv_destroy_cq(traffic.cq));
	CHECK(!ibv_destroy_cq(ibv_cq_ex_to_cq(traffic.ex)));
}

/* --- verbs of many --- */

enum {
	ASKING = 4 /* threads */
};

static atomic_bool asks;

static void *ask(void *arg)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	while (asks)
		CHECK(!ibv_query_qp(arg, &attr, IBV_QP_STATE, &init));
	return NULL;
}

/* There may be no moment in which no thread has a verb. */
static void test_many(void)
{
	struct ibv_qp *qp, *other, *real;
	pthread_t threads[ASKING];
	struct ibv_cq *cq, *real_cq;

	puts("threads that never leave off");
	cq = new_cq(16, &real_cq);
	qp = new_qp(IBV_QPT_RC, cq, &real);
	other = new_qp(IBV_QPT_RC, cq, &real);
	asks = fake_slow = true;
	for (int i = 0; i < ASKING; i++)
		MUST(!pthread_create(&threads[i], NULL, ask, qp));
	for (int i = 0; i < 20; i++) {
		suspend();
		resume();
		CHECK(!layer_suspend_some(&other->qp_num, 1, LONG, &found));
		fake_last.queries = 0;
		WAIT(fake_last.queries > 2 * ASKING); /* they go on */
		resume();
	}
	asks = false;
	for (int i = 0; i < ASKING; i++)
		MUST(!pthread_join(threads[i], NULL));
	fake_slow = false;
	CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_qp(other));
	CHECK(!ibv_destroy_cq(cq));
}

int main(void)
{
	rig_open();
	test_waiting();
	test_until_settled();
	test_batch_is_waited_for();
	test_traffic();
	test_many();
	return rig_close();
}
