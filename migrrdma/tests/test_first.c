// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The first device is opened, and others are at something that has begun before that
 */
#include "suspend_rig.h"

static _Thread_local bool is_slow;
static atomic_bool listing, go;

static void wait_in_list(void)
{
	if (!is_slow)
		return;
	listing = true;
	WAIT(go);
}

static void *list_devices(void *arg)
{
	struct ibv_device **list;

	(void)arg;
	is_slow = true;
	list = ibv_get_device_list(NULL);
	MUST(list);
	ibv_free_device_list(list);
	return NULL;
}

/* It is not within the gate, as there was none when it came. */
static void test_list(void)
{
	pthread_t thread;

	puts("a thread lists devices while another one opens the first");
	fake_listing = wait_in_list;
	MUST(!pthread_create(&thread, NULL, list_devices, NULL));
	WAIT(listing);
	rig_open();
	go = true;
	MUST(!pthread_join(thread, NULL));
	suspend();
	resume();
	/* and the other way round: who comes now is waited for */
	listing = go = false;
	MUST(!pthread_create(&thread, NULL, list_devices, NULL));
	WAIT(listing);
	CHECK(layer_suspend(1, &found) == ETIMEDOUT);
	CHECK(strstr(found.reason, "a verb"), "%s", found.reason);
	go = true;
	MUST(!pthread_join(thread, NULL));
	suspend();
	resume();
}

int main(void)
{
	test_list();
	return rig_close();
}
