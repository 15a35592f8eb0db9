// SPDX-License-Identifier: GPL-2.0
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conn.h"
#include "events.h"
#include "pattern.h"
#include "verbs.h"

#define PORT 1
#define INLINE_WANTED 64
#define MOST_GIDS 256
#define MOST_RD_ATOMIC 8
#define HELLO_SECONDS 60

static int fail(const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(errno));
	return -1;
}

static int open_device(struct verbs *v, const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	int i;

	if (!list)
		return fail("ibv_get_device_list");
	for (i = 0; list[i]; i++)
		if (!name || !strcmp(name, ibv_get_device_name(list[i])))
			break;
	if (list[i])
		v->context = ibv_open_device(list[i]);
	else
		errno = ENODEV;
	ibv_free_device_list(list);
	return v->context ? 0 : fail(name ? name : "RDMA device");
}

static int is_ipv4(const union ibv_gid *gid)
{
	static const uint8_t prefix[12] = { [10] = 0xff, 0xff };

	return !memcmp(gid->raw, prefix, sizeof(prefix));
}

static int find_gid(struct verbs *v, int wanted)
{
	struct ibv_gid_entry e[MOST_GIDS];
	ssize_t n = ibv_query_gid_table(v->context, e, MOST_GIDS, 0), i;

	for (i = 0; i < n; i++) {
		if (e[i].port_num != PORT)
			continue;
		if (wanted >= 0 ? e[i].gid_index == (uint32_t)wanted
				: e[i].gid_type == IBV_GID_TYPE_ROCE_V2 &&
					  is_ipv4(&e[i].gid)) {
			v->gid = e[i].gid;
			v->gid_index = e[i].gid_index;
			return 0;
		}
	}
	errno = n < 0 ? -n : ENOENT;
	return fail("GID");
}

int verbs_open(struct verbs *v, const struct verbs_options *o)
{
	struct ibv_device_attr dev;
	struct ibv_port_attr port;

	memset(v, 0, sizeof(*v));
	if (open_device(v, o->device))
		return -1;
	errno = ibv_query_device(v->context, &dev);
	if (errno)
		return fail("ibv_query_device");
	errno = ibv_query_port(v->context, PORT, &port);
	if (errno)
		return fail("ibv_query_port");
	v->mtu = 128u << port.active_mtu;
	v->rd_atomic = MOST_RD_ATOMIC;
	if (dev.max_qp_rd_atom < v->rd_atomic)
		v->rd_atomic = dev.max_qp_rd_atom;
	return find_gid(v, o->gid_index);
}

static int create_channels(struct verbs *v, const struct verbs_options *o)
{
	unsigned int i, n = o->events & EVENTS_SHARED ? 1 : o->cqs;

	for (i = 0; o->events && i < n; i++) {
		v->channel[i] = ibv_create_comp_channel(v->context);
		if (!v->channel[i])
			return fail("ibv_create_comp_channel");
	}
	return 0;
}

/* Where the pointer to a CQ lies is its context: an event must tell both. */
static int create_cqs(struct verbs *v, const struct verbs_options *o,
		      uint32_t entries)
{
	bool events = o->events, shared = o->events & EVENTS_SHARED;
	unsigned int i;

	if (o->cqs == 1)
		entries *= 2;
	for (i = 0; i < o->cqs; i++) {
		v->cq[i] = ibv_create_cq(v->context, entries,
					 events ? &v->cq[i] : NULL,
					 v->channel[shared ? 0 : i], 0);
		if (!v->cq[i])
			return fail("ibv_create_cq");
	}
	if (o->cqs == 1)
		v->cq[1] = v->cq[0];
	return 0;
}

/* Never more than the QPs would have: it takes the place of their buffers. */
static int create_srq(struct verbs *v, const struct verbs_options *o,
		      const struct shape *s)
{
	struct ibv_srq_init_attr init = { .attr.max_sge = 2 };

	if (!o->srq)
		return 0;
	v->srq_size = (o->srq < s->qps ? o->srq : s->qps) * s->window;
	init.attr.max_wr = v->srq_size;
	v->srq = ibv_create_srq(v->pd, &init);
	return v->srq ? 0 : fail("ibv_create_srq");
}

static int init_qps(struct verbs *v)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = PORT,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE |
				   IBV_ACCESS_REMOTE_READ |
				   IBV_ACCESS_REMOTE_ATOMIC,
	};
	uint32_t i;

	for (i = 0; i < v->qps; i++) {
		errno = ibv_modify_qp(v->qp[i], &attr,
				      IBV_QP_STATE | IBV_QP_PKEY_INDEX |
					      IBV_QP_PORT |
					      IBV_QP_ACCESS_FLAGS);
		if (errno)
			return fail("QP to INIT");
	}
	return 0;
}

int verbs_create(struct verbs *v, const struct verbs_options *o,
		 const struct shape *s)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = {
			.max_send_wr = 2 * s->window,
			.max_recv_wr = s->window,
			.max_send_sge = OP_PIECES,
			.max_recv_sge = 2,
			.max_inline_data = INLINE_WANTED,
		},
	};
	uint32_t i;

	v->pd = ibv_alloc_pd(v->context);
	if (!v->pd)
		return fail("ibv_alloc_pd");
	if (create_channels(v, o) || create_cqs(v, o, 2 * s->window * s->qps) ||
	    create_srq(v, o, s))
		return -1;
	v->qp = calloc(s->qps, sizeof(*v->qp));
	v->psn = calloc(s->qps, sizeof(*v->psn));
	if (!v->qp || !v->psn)
		return fail("memory");
	v->max_inline = INLINE_WANTED;
	init.send_cq = v->cq[0];
	init.recv_cq = v->cq[1];
	init.srq = v->srq;
	if (v->srq)
		init.cap.max_recv_wr = init.cap.max_recv_sge = 0;
	for (i = 0; i < s->qps; i++) {
		v->qp[i] = ibv_create_qp(v->pd, &init);
		if (!v->qp[i])
			return fail("ibv_create_qp");
		v->qps++;
		/* anywhere, so that some PSNs wrap early */
		v->psn[i] = key_of(s->seed, v->qp[i]->qp_num) & 0xffffff;
	}
	return init_qps(v);
}

/* The address of a side, in the words in which it crosses. */
enum {
	W_GID_HIGH,
	W_GID_LOW,
	W_RD_ATOMIC,
	W_REGIONS,
	W_QPS = W_REGIONS + 2 * REGIONS, /* QPN and PSN of each QP */
};

static void write_words(const struct verbs *v, const struct memory *m,
			uint64_t *w)
{
	unsigned int i;

	w[W_GID_HIGH] = be64toh(v->gid.global.subnet_prefix);
	w[W_GID_LOW] = be64toh(v->gid.global.interface_id);
	w[W_RD_ATOMIC] = v->rd_atomic;
	for (i = 0; i < REGIONS; i++) {
		w[W_REGIONS + 2 * i] = (uintptr_t)m->region[i].base;
		w[W_REGIONS + 2 * i + 1] = m->region[i].mr->rkey;
	}
	for (i = 0; i < v->qps; i++)
		w[W_QPS + i] = (uint64_t)v->psn[i] << 32 | v->qp[i]->qp_num;
}

static int to_rtr(struct verbs *v, unsigned int i, uint32_t mtu,
		  const uint64_t *w)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.dest_qp_num = (uint32_t)w[W_QPS + i],
		.rq_psn = w[W_QPS + i] >> 32,
		.max_dest_rd_atomic = v->rd_atomic,
		.min_rnr_timer = 12,
		.ah_attr = {
			.is_global = 1,
			.port_num = PORT,
			.grh = {
				.dgid.global = {
					htobe64(w[W_GID_HIGH]),
					htobe64(w[W_GID_LOW]),
				},
				.sgid_index = v->gid_index,
				.hop_limit = 64,
			},
		},
	};

	for (attr.path_mtu = IBV_MTU_256; 128u << attr.path_mtu < mtu;)
		attr.path_mtu++;
	return ibv_modify_qp(v->qp[i], &attr,
			     IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				     IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				     IBV_QP_MAX_DEST_RD_ATOMIC |
				     IBV_QP_MIN_RNR_TIMER);
}

static int to_rts(struct verbs *v, unsigned int i,
		  const struct verbs_options *o, uint8_t peer_rd_atomic)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.timeout = o->timeout,
		.retry_cnt = o->retry_cnt,
		.rnr_retry = 7,
		.sq_psn = v->psn[i],
		.max_rd_atomic = peer_rd_atomic,
	};

	return ibv_modify_qp(v->qp[i], &attr,
			     IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				     IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				     IBV_QP_MAX_QP_RD_ATOMIC);
}

int verbs_connect(struct verbs *v, const struct verbs_options *o,
		  const struct shape *s, const struct memory *m,
		  struct remote *remote, int fd)
{
	uint64_t ready = W_QPS + v->qps;
	unsigned int i;
	int rc = -1;
	uint64_t *w;

	w = calloc(W_QPS + v->qps, sizeof(*w));
	if (!w)
		return fail("memory");
	write_words(v, m, w);
	if (conn_send(fd, w, W_QPS + v->qps) ||
	    conn_recv(fd, w, W_QPS + v->qps, HELLO_SECONDS))
		goto out;
	for (i = 0; i < REGIONS; i++) {
		remote->addr[i] = w[W_REGIONS + 2 * i];
		remote->rkey[i] = w[W_REGIONS + 2 * i + 1];
	}
	for (i = 0; i < v->qps; i++) {
		errno = to_rtr(v, i, s->mtu, w);
		if (!errno)
			errno = to_rts(v, i, o, w[W_RD_ATOMIC]);
		if (errno) {
			fail("QP to RTR and RTS");
			goto out;
		}
	}
	/* nobody sends before the other can receive */
	if (!conn_send(fd, &ready, 1) &&
	    !conn_recv(fd, &ready, 1, HELLO_SECONDS))
		rc = 0;
out:
	free(w);
	return rc;
}
