// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Devices that were listed before the process has come to another host
 */
#include <sys/stat.h>
#include <sys/wait.h>

#include "replace_rig.h"

static char sysfs[64]; /* of the second device */

static void say_of_second(const char *file, const char *text)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", sysfs, file);
	if (!text) {
		CHECK(!remove(path));
		return;
	}
	MUST(f = fopen(path, "w"));
	MUST(fputs(text, f) >= 0 && !fclose(f));
}

static void replace_here(void)
{
	suspend();
	CHECK(!layer_replace(NULL, 0, LONG, &swapped), "%s", swapped.reason);
	CHECK(!layer_connect(&swapped), "%s", swapped.reason);
	resume();
}

/* with the first device open, and the second one in this list */
static struct ibv_device **list_and_move(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	MUST(list);
	hold(100);
	world_leaves_host();
	CHECK(!layer_replace(NULL, 0, LONG, &swapped), "%s", swapped.reason);
	real_ctx = fake_newest(FAKE_CONTEXT);
	world_is_back();
	CHECK(!layer_connect(&swapped));
	resume();
	return list;
}

/* --- two that open it --- */

static atomic_uint lists;

static void count_list(void)
{
	lists++;
}

/* The other one could look for it now. */
static void open_slowly(void)
{
	for (int i = 0; i < 2000 && lists < 2; i++)
		usleep(100);
}

static pthread_barrier_t start;

static void *open_device(void *device)
{
	pthread_barrier_wait(&start);
	return ibv_open_device(device);
}

static void test_two_open(void)
{
	struct ibv_device **list;
	pthread_t threads[2];
	void *opened[2];

	puts("two threads open one at once, which is looked for once");
	list = list_and_move();
	lists = 0;
	fake_listing = count_list;
	fake_opening = open_slowly;
	MUST(!pthread_barrier_init(&start, NULL, 2));
	for (int i = 0; i < 2; i++)
		MUST(!pthread_create(&threads[i], NULL, open_device, list[1]));
	for (int i = 0; i < 2; i++)
		MUST(!pthread_join(threads[i], &opened[i]) && opened[i]);
	pthread_barrier_destroy(&start);
	fake_opening = fake_listing = NULL;
	CHECK(lists == 1, "%u", lists);
	for (int i = 0; i < 2; i++)
		CHECK(!ibv_close_device(opened[i]));
	ibv_free_device_list(list);
}

/* --- a child --- */

static _Thread_local bool is_slow;
static atomic_bool freeing, go;

static void free_slowly(void)
{
	if (!is_slow)
		return;
	freeing = true;
	WAIT(go);
}

static void *close_device(void *ctx)
{
	is_slow = true;
	CHECK(!ibv_close_device(ctx));
	return NULL;
}

/* The layer's lock of devices is held by a thread that the child has not. */
static void test_child(void)
{
	struct ibv_device **list;
	struct ibv_context *c;
	pthread_t thread;
	int status = -1;
	pid_t child;

	puts("a child lists devices while a thread frees one");
	list = list_and_move();
	MUST(c = ibv_open_device(list[1]));
	ibv_free_device_list(list);
	fake_unlisting = free_slowly;
	MUST(!pthread_create(&thread, NULL, close_device, c));
	WAIT(freeing);
	child = fork();
	if (!child) {
		alarm(10);
		list = ibv_get_device_list(NULL);
		_exit(!list || ibv_get_device_index(list[1]) != 11);
	}
	MUST(child > 0 && waitpid(child, &status, 0) == child);
	CHECK(status == 0, "%#x", (unsigned int)status);
	go = true;
	MUST(!pthread_join(thread, NULL));
	fake_unlisting = NULL;
}

/* --- two shadows --- */

/* a context with one of each that a QP needs */
struct user {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
};

static struct ibv_qp *create_qp(const struct user *u)
{
	struct ibv_qp_init_attr attr = { .send_cq = u->cq,
					 .recv_cq = u->cq,
					 .cap = { 6, 1, 2, 1, 14 },
					 .qp_type = IBV_QPT_RC };
	struct ibv_qp *qp = ibv_create_qp(u->pd, &attr);

	MUST(qp);
	return qp;
}

static void user_open(struct user *u, struct ibv_device *device)
{
	MUST(u->ctx = ibv_open_device(device));
	MUST(u->pd = ibv_alloc_pd(u->ctx));
	MUST(u->cq = ibv_create_cq(u->ctx, 64, NULL, NULL, 0));
	u->qp = create_qp(u);
}

static void user_close(struct user *u)
{
	CHECK(!ibv_destroy_qp(u->qp) && !ibv_destroy_cq(u->cq));
	CHECK(!ibv_dealloc_pd(u->pd) && !ibv_close_device(u->ctx));
}

static void test_two_shadows(void)
{
	struct ibv_device **before, **now;
	struct user old, new;
	struct ibv_qp *qp;

	puts("one that is listed here, too, has the same numbers of QPs");
	before = list_and_move();
	MUST(now = ibv_get_device_list(NULL));
	MUST(now[1] != before[1]);
	user_open(&old, before[1]);
	user_open(&new, now[1]);
	replace_here();
	fake_next_handle(old.qp->qp_num & 0xffff);
	qp = create_qp(&new);
	MUST(((struct ibv_qp *)fake_newest(FAKE_QP))->qp_num == old.qp->qp_num);
	CHECK(qp->qp_num != old.qp->qp_num);
	CHECK(!ibv_destroy_qp(qp));
	user_close(&old);
	user_close(&new);
	ibv_free_device_list(before);
	ibv_free_device_list(now);
	real_ctx = fake_newest(FAKE_CONTEXT);
}

int main(void)
{
	rig_open();
	snprintf(sysfs, sizeof(sysfs), "%s/dev1", dir);
	MUST(!mkdir(sysfs, 0755));
	say_of_second("ibdev", "fake1\n");
	say_of_second("dev", "0:0\n");
	test_two_open();
	test_child();
	test_two_shadows();
	say_of_second("ibdev", NULL);
	say_of_second("dev", NULL);
	CHECK(!rmdir(sysfs));
	return rig_close();
}
