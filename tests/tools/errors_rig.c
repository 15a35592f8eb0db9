// SPDX-License-Identifier: GPL-2.0
/* What all cases have in common: device, protection domains, memory. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../mix/conn.h"
#include "verbs_errors.h"

#define PEER_SECONDS 120

int errors_factor = 1;

void errors_die(const char *what)
{
	fprintf(stderr, "verbs_errors: %s: %s\n", what, strerror(errno));
	exit(2);
}

static void add_mr(struct rig *rig, enum key key, struct ibv_pd *pd, int access)
{
	rig->mr[key] = ibv_reg_mr(pd, rig->buffer + REGION_AT, REGION, access);
	if (!rig->mr[key])
		errors_die("ibv_reg_mr");
	rig->lkey[key] = rig->mr[key]->lkey;
	rig->rkey[key] = rig->mr[key]->rkey;
}

static void add_keys(struct rig *rig)
{
	const int write = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_LOCAL_WRITE;
	const int read = IBV_ACCESS_REMOTE_READ;
	const int atomic = IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_LOCAL_WRITE;

	add_mr(rig, K_GOOD, rig->pd, write | read | atomic);
	add_mr(rig, K_OTHER_PD, rig->other_pd, write | read | atomic);
	add_mr(rig, K_LOCAL_READ, rig->pd, 0);
	add_mr(rig, K_NO_WRITE, rig->pd, read | atomic);
	add_mr(rig, K_NO_READ, rig->pd, write | atomic);
	add_mr(rig, K_NO_ATOMIC, rig->pd, write | read);
	/* the last one: nothing may get its key again */
	add_mr(rig, K_GONE, rig->pd, write | read | atomic);
	if (ibv_dereg_mr(rig->mr[K_GONE]))
		errors_die("ibv_dereg_mr");
	rig->mr[K_GONE] = NULL;
	rig->lkey[K_UNKNOWN] = rig->lkey[K_GOOD] ^ 0x00f0f000;
	rig->rkey[K_UNKNOWN] = rig->rkey[K_GOOD] ^ 0x00f0f000;
	rig->lkey[K_STALE] = rig->lkey[K_GOOD] ^ 0x5a;
	rig->rkey[K_STALE] = rig->rkey[K_GOOD] ^ 0x5a;
}

void rig_open(struct rig *rig, const struct verbs_options *o)
{
	if (verbs_open(&rig->v, o))
		exit(2);
	rig->device =
		strncmp(ibv_get_device_name(rig->v.context->device), "rxe", 3)
			? "mlx5"
			: "rxe";
	rig->pd = ibv_alloc_pd(rig->v.context);
	rig->other_pd = ibv_alloc_pd(rig->v.context);
	if (!rig->pd || !rig->other_pd)
		errors_die("ibv_alloc_pd");
	rig->buffer = aligned_alloc(4096, BUFFER);
	if (!rig->buffer)
		errors_die("memory");
	memset(rig->buffer, 0, BUFFER);
	add_keys(rig);
}

void rig_close(struct rig *rig)
{
	for (int i = 0; i < KEYS; i++)
		if (rig->mr[i] && ibv_dereg_mr(rig->mr[i]))
			errors_die("ibv_dereg_mr");
	if (ibv_dealloc_pd(rig->pd) || ibv_dealloc_pd(rig->other_pd))
		errors_die("ibv_dealloc_pd");
	if (ibv_close_device(rig->v.context))
		errors_die("ibv_close_device");
	free(rig->buffer);
}

void rig_meet(struct rig *rig)
{
	uint64_t word = 0;

	if (conn_send(rig->fd, &word, 1) ||
	    conn_recv(rig->fd, &word, 1, PEER_SECONDS * errors_factor))
		exit(2);
}
