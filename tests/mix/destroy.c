// SPDX-License-Identifier: GPL-2.0
/*
 * What was made is destroyed, and each object lets itself be: of one that something else
 * is thought to need, which it does not, the kernel or the library says so here.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "traffic.h"
#include "verbs.h"

static void destroyed(struct verbs *v, const char *how, unsigned int i, int rc)
{
	if (rc)
		violation(v->verdict, "%s %u: %s", how, i,
			  strerror(rc < 0 ? errno : rc));
}

static void destroy_qps(struct verbs *v)
{
	while (v->qps) {
		v->qps--;
		destroyed(v, "ibv_destroy_qp", v->qps,
			  ibv_destroy_qp(v->qp[v->qps]));
	}
	free(v->qp);
	free(v->psn);
}

static void *destroy_cqs(void *arg)
{
	struct verbs *v = arg;
	unsigned int i, n = v->cq[0] == v->cq[1] ? 1 : 2;

	for (i = 0; i < n; i++)
		destroyed(v, "ibv_destroy_cq", i, ibv_destroy_cq(v->cq[i]));
	v->cq[0] = NULL;
	v->cq[1] = NULL;
	return NULL;
}

/*
 * Nobody may be kept in ibv_destroy_cq(), which waits until all events are
 * acknowledged.
 */
static bool cqs_return(struct verbs *v, unsigned int seconds)
{
	struct timespec until;
	pthread_t thread;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += seconds;
	return !pthread_create(&thread, NULL, destroy_cqs, v) &&
	       !pthread_timedjoin_np(thread, NULL, &until);
}

bool verbs_destroy(struct verbs *v, struct traffic *t, unsigned int seconds)
{
	unsigned int i;

	v->verdict = &t->verdict;
	mw_free(t);
	/* first the QPs: the peer may still be retransmitting */
	destroy_qps(v);
	memory_deregister(&t->memory, &t->verdict);
	if (v->srq)
		destroyed(v, "ibv_destroy_srq", 0, ibv_destroy_srq(v->srq));
	if (!cqs_return(v, seconds)) {
		violation_fatal(&t->verdict, "ibv_destroy_cq does not return");
		return false;
	}
	for (i = 0; i < 2; i++)
		if (v->channel[i])
			destroyed(v, "ibv_destroy_comp_channel", i,
				  ibv_destroy_comp_channel(v->channel[i]));
	destroyed(v, "ibv_dealloc_pd", 0, ibv_dealloc_pd(v->pd));
	destroyed(v, "ibv_close_device", 0, ibv_close_device(v->context));
	memset(v, 0, sizeof(*v));
	return true;
}
