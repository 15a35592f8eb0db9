// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Threads that share a context, and threads that list devices. The thread
 * sanitizer sees more in this than the checks do.
 */
#include "app.h"

#include <stdatomic.h>
#include <sys/ioctl.h>
#include <sys/wait.h>

#include <rdma/rdma_user_ioctl_cmds.h>

enum {
	ROUNDS = 300,
	KEPT = 8
};

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_qp *posting, *datagrams;
static struct ibv_ah *ah;
static atomic_bool done;
static pthread_barrier_t start;

static struct ibv_qp *new_qp(enum ibv_qp_type type)
{
	struct ibv_qp_init_attr attr = { .send_cq = cq,
					 .recv_cq = cq,
					 .qp_type = type };
	struct ibv_qp *qp = ibv_create_qp(pd, &attr);

	MUST(qp);
	return qp;
}

static void *make_objects(void *arg)
{
	struct ibv_qp *qp[KEPT];
	struct ibv_mw *mw;

	(void)arg;
	pthread_barrier_wait(&start);
	for (int i = 0; i < ROUNDS; i++) {
		for (int q = 0; q < KEPT; q++)
			qp[q] = new_qp(IBV_QPT_RC);
		mw = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
		MUST(mw);
		/* not in the order they came */
		for (int q = 0; q < KEPT; q += 2)
			MUST(!ibv_destroy_qp(qp[q]));
		MUST(!ibv_dealloc_mw(mw));
		for (int q = 1; q < KEPT; q += 2)
			MUST(!ibv_destroy_qp(qp[q]));
	}
	return NULL;
}

static void *post(void *arg)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND }, *bad;

	(void)arg;
	pthread_barrier_wait(&start);
	while (!done) {
		MUST(!ibv_post_send(posting, &wr, &bad));
		wr.wr.ud.ah = ah;
		MUST(!ibv_post_send(datagrams, &wr, &bad));
		wr.wr.ud.ah = NULL;
	}
	return NULL;
}

static void test_context(void)
{
	struct ibv_ah_attr ah_attr = { .dlid = 1 };
	struct ibv_send_wr wr[9] = { 0 }, *bad;
	pthread_t makers[2], poster;

	puts("QPs and windows come and go while others post");
	ctx = app_open(0);
	pd = ibv_alloc_pd(ctx);
	cq = ibv_create_cq(ctx, 8, NULL, NULL, 0);
	MUST(pd && cq);
	posting = new_qp(IBV_QPT_RC);
	datagrams = new_qp(IBV_QPT_UD);
	ah = ibv_create_ah(pd, &ah_attr);
	MUST(ah);

	MUST(!pthread_barrier_init(&start, NULL, 3));
	MUST(!pthread_create(&poster, NULL, post, NULL));
	for (int i = 0; i < 2; i++)
		MUST(!pthread_create(&makers[i], NULL, make_objects, NULL));
	for (int i = 0; i < 2; i++)
		pthread_join(makers[i], NULL);
	done = true;
	pthread_join(poster, NULL);
	pthread_barrier_destroy(&start);
	CHECK(fake_alive(FAKE_QP) == 2 && fake_alive(FAKE_MW) == 0);

	/* no window is left over: a chain goes as it is */
	for (int i = 0; i < 8; i++)
		wr[i].next = &wr[i + 1];
	fake_forget(-1, true);
	CHECK(!ibv_post_send(posting, wr, &bad));
	CHECK(fake_posts == 1);

	CHECK(!ibv_destroy_ah(ah));
	CHECK(!ibv_destroy_qp(posting) && !ibv_destroy_qp(datagrams));
	CHECK(!ibv_destroy_cq(cq) && !ibv_dealloc_pd(pd));
	app_close(ctx);
}

static void *list_devices(void *arg)
{
	int n = *(int *)arg;
	struct ibv_device **list;
	struct ibv_context *c;

	pthread_barrier_wait(&start);
	for (int i = 0; i < ROUNDS; i++) {
		list = ibv_get_device_list(NULL);
		MUST(list);
		MUST(ibv_get_device_index(list[n]) == 10 + n);
		c = ibv_open_device(list[n]);
		MUST(c);
		ibv_free_device_list(list);
		MUST(ibv_get_device_index(c->device) == 10 + n);
		MUST(!ibv_close_device(c));
	}
	return NULL;
}

/* a thread that imports must get real devices, others meanwhile shadows */
static void *import_devices(void *arg)
{
	struct ibv_context *c;

	(void)arg;
	pthread_barrier_wait(&start);
	for (int i = 0; i < ROUNDS; i++) {
		c = ibv_import_device(3);
		MUST(c && fake_dv_is_supported(c->device));
		MUST(!ibv_close_device(c));
	}
	return NULL;
}

static void test_devices(void)
{
	static int n[3] = { 1, 1, 2 };
	pthread_t threads[4];

	puts("device lists in parallel");
	MUST(!pthread_barrier_init(&start, NULL, 4));
	for (int i = 0; i < 3; i++)
		MUST(!pthread_create(&threads[i], NULL, list_devices, &n[i]));
	MUST(!pthread_create(&threads[3], NULL, import_devices, NULL));
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	pthread_barrier_destroy(&start);
	CHECK(fake_alive(FAKE_DEVICE) == 0 && fake_alive(FAKE_LIST) == 0);
}

static void *command(void *arg)
{
	(void)arg;
	while (!done)
		ioctl(9999, RDMA_VERBS_IOCTL, NULL);
	return NULL;
}

/* Children do not wait for what a thread of the parent was at. */
static void test_children(void)
{
	pthread_t threads[4];
	int status;
	pid_t child;

	puts("children while there are commands");
	done = false;
	for (int i = 0; i < 4; i++)
		MUST(!pthread_create(&threads[i], NULL, command, NULL));
	for (int i = 0; i < ROUNDS / 2; i++) {
		child = fork();
		if (!child) {
			alarm(10);
			ioctl(9999, RDMA_VERBS_IOCTL, NULL);
			_exit(0);
		}
		MUST(waitpid(child, &status, 0) == child && !status);
	}
	done = true;
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
}

int main(void)
{
	test_context();
	test_devices();
	test_children();
	return app_end();
}
