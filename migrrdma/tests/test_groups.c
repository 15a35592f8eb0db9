// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * One thread attaches QPs to multicast groups, and another one makes QPs.
 */
#include "replace_rig.h"

enum {
	OTHERS = 50, /* with whose numbers that of a new one is compared */
	ROUNDS = 300
};

static atomic_bool enough;

static void *come_and_go(void *arg)
{
	const union ibv_gid group = { .raw = { 0xff, [15] = 1 } };

	(void)arg;
	while (!enough) {
		CHECK(!ibv_attach_mcast(w.qp, &group, 0));
		CHECK(!ibv_detach_mcast(w.qp, &group, 0));
	}
	return NULL;
}

static struct ibv_qp *make_one(void)
{
	struct ibv_qp_init_attr attr = { .send_cq = w.cq,
					 .recv_cq = w.cq,
					 .qp_type = IBV_QPT_RC };
	struct ibv_qp *qp = ibv_create_qp(pd, &attr);

	MUST(qp);
	return qp;
}

int main(void)
{
	struct ibv_qp *others[OTHERS];
	pthread_t thread;

	rig_open();
	world_make();
	for (int i = 0; i < OTHERS; i++)
		others[i] = make_one();
	world_replace();
	alarm(60); /* they wait for each other */
	MUST(!pthread_create(&thread, NULL, come_and_go, NULL));
	for (int i = 0; i < ROUNDS; i++)
		CHECK(!ibv_destroy_qp(make_one()));
	enough = true;
	MUST(!pthread_join(thread, NULL));
	alarm(0);
	for (int i = 0; i < OTHERS; i++)
		CHECK(!ibv_destroy_qp(others[i]));
	world_destroy();
	return rig_close();
}
