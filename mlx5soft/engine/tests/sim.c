// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

#define PAGE 4096
#define DELAY 5000 /* ns, one way */
#define SIM_SGES 8

uint64_t sim_random(struct sim *sim)
{
	uint64_t x = sim->seed;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return sim->seed = x;
}

static bool chance(struct sim *sim, double p)
{
	return sim_random(sim) % 1000000 < p * 1000000;
}

/* ---- the wire ---- */

static bool earlier(const struct sim_frame *a, const struct sim_frame *b)
{
	return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void wire_put(struct sim *sim, struct sim_frame f)
{
	uint32_t i = sim->on_wire++;

	if (sim->on_wire > sim->wire_size) {
		sim->wire_size = sim->wire_size ? 2 * sim->wire_size : 1024;
		sim->wire =
			realloc(sim->wire, sim->wire_size * sizeof(*sim->wire));
	}
	while (i && earlier(&f, &sim->wire[(i - 1) / 2])) {
		sim->wire[i] = sim->wire[(i - 1) / 2];
		i = (i - 1) / 2;
	}
	sim->wire[i] = f;
}

static struct sim_frame wire_get(struct sim *sim)
{
	struct sim_frame first = sim->wire[0];
	struct sim_frame f = sim->wire[--sim->on_wire];
	uint32_t i = 0, child;

	while ((child = 2 * i + 1) < sim->on_wire) {
		if (child + 1 < sim->on_wire &&
		    earlier(&sim->wire[child + 1], &sim->wire[child]))
			child++;
		if (!earlier(&sim->wire[child], &f))
			break;
		sim->wire[i] = sim->wire[child];
		i = child;
	}
	sim->wire[i] = f;
	return first;
}

static void send_copy(struct sim *sim, int to, const uint8_t *data, size_t len)
{
	struct sim_frame f = {
		.at = sim->now + DELAY,
		.order = sim->order++,
		.to = to,
		.len = len,
		.data = malloc(len),
	};

	if (chance(sim, sim->reorder))
		f.at += sim_random(sim) % (4 * DELAY);
	memcpy(f.data, data, len);
	wire_put(sim, f);
}

static bool sim_has_room(void *ctx)
{
	return ((struct sim_node *)ctx)->room;
}

static int sim_transmit(void *ctx, const void *frame, size_t len)
{
	struct sim_node *node = ctx;
	struct sim *sim = node->sim;
	uint8_t data[8192];

	if (!node->room)
		return -EAGAIN;
	node->room--;
	for (size_t i = 0; node->restless && i < node->mem_size; i++)
		node->mem[i] ^= 0xff;
	CHECK(len <= sizeof(data), "frame too long");
	memcpy(data, frame, len);
	sim->frames++;
	if (sim->unplugged || chance(sim, sim->loss) ||
	    (sim->filter && sim->filter(sim, node->index, data, len))) {
		sim->lost++;
		return 0;
	}
	send_copy(sim, !node->index, data, len);
	if (chance(sim, sim->duplicates))
		send_copy(sim, !node->index, data, len);
	return 0;
}

/* ---- queues ---- */

static int sim_fetch_send(void *ctx, void *qp_ctx, struct roce_send_wqe *wqe)
{
	struct sim_qp *q = qp_ctx;
	struct roce_sge *sge = wqe->sge;

	(void)ctx;
	if (q->broken_send)
		return -EIO;
	if (q->next_send == q->num_sends)
		return 0;
	*wqe = q->sends[q->next_send++];
	memcpy(sge, wqe->sge,
	       (wqe->num_sge < SIM_SGES ? wqe->num_sge : SIM_SGES) *
		       sizeof(*sge));
	wqe->sge = sge;
	if (q->bad_send) {
		q->bad_send = false;
		return -EINVAL;
	}
	return 1;
}

/* Any QP can be an SRQ: one of the same XRC domain. */
static struct sim_qp *xrc_srq(const struct sim_qp *q, uint32_t srqn)
{
	struct sim_node *node = q->node;

	for (int i = 0; i < node->num_qps; i++)
		if (node->qps[i].qpn == srqn && q->xrcd &&
		    node->qps[i].xrcd == q->xrcd)
			return &node->qps[i];
	return NULL;
}

static int sim_find_srq(void *ctx, void *qp_ctx, uint32_t srqn, uint32_t *pd)
{
	const struct sim_qp *srq = xrc_srq(qp_ctx, srqn);

	(void)ctx;
	if (!srq)
		return -ENOENT;
	*pd = srq->pd;
	return 0;
}

static int sim_fetch_recv(void *ctx, void *qp_ctx, struct roce_recv_wqe *wqe)
{
	struct sim_qp *q = ((struct sim_qp *)qp_ctx)->shared;
	struct roce_sge *sge = wqe->sge;
	uint32_t pd = wqe->pd;

	(void)ctx;
	q->recv_looks++;
	if (q->type == ROCE_QPT_XRC_RECV)
		q = xrc_srq(q, wqe->srqn);
	if (q->broken_recv)
		return -EIO;
	if (q->next_recv == q->num_recvs)
		return 0;
	*wqe = q->recvs[q->next_recv++];
	memcpy(sge, wqe->sge,
	       (wqe->num_sge < SIM_SGES ? wqe->num_sge : SIM_SGES) *
		       sizeof(*sge));
	wqe->sge = sge;
	wqe->pd = pd;
	if (q->bad_recv) {
		q->bad_recv = false;
		return -EINVAL;
	}
	return 1;
}

#define APPEND(array, count, value)                                            \
	do {                                                                   \
		if (!((count) & ((count) - 1)))                                \
			(array) =                                              \
				realloc((array), ((count) ? 2 * (count) : 1) * \
							 sizeof(*(array)));    \
		(array)[(count)++] = (value);                                  \
	} while (0)

static int sim_complete_send(void *ctx, void *qp_ctx,
			     const struct roce_send_wc *wc)
{
	struct sim_qp *q = qp_ctx;

	(void)ctx;
	if (q->lose_send_wc) {
		q->lose_send_wc = false;
		return -ENOSPC;
	}
	APPEND(q->send_wcs, q->num_send_wcs, *wc);
	return 0;
}

static int sim_complete_recv(void *ctx, void *qp_ctx,
			     const struct roce_recv_wc *wc)
{
	struct sim_qp *q = qp_ctx;

	(void)ctx;
	if (q->type == ROCE_QPT_XRC_RECV)
		q = xrc_srq(q, wc->srqn);
	if (!q)
		return 0;
	if (q->lose_recv_wc) {
		q->lose_recv_wc = false;
		return -ENOSPC;
	}
	APPEND(q->recv_wcs, q->num_recv_wcs, *wc);
	return 0;
}

static void sim_event(void *ctx, void *qp_ctx, enum roce_event event)
{
	struct sim_qp *q = qp_ctx;

	(void)ctx;
	if (q->num_events < 16)
		q->events[q->num_events++] = event;
}

/* ---- memory ---- */

void sim_key(struct sim_node *node, int index, uint32_t pd, uint64_t base,
	     uint64_t len, unsigned int access)
{
	node->keys[index] =
		(struct sim_key){ 1000 + index, pd, base, len, access };
}

static int sim_translate(void *ctx, void *qp_ctx, uint32_t pd, uint32_t key,
			 uint64_t addr, uint32_t len, unsigned int access,
			 bool remote, struct iovec *iov, int max)
{
	struct sim_node *node = ctx;
	const struct sim_key *k;
	int n = 0;

	(void)qp_ctx;
	(void)remote;
	node->sim->translated++;
	CHECK(len, "translation of nothing");
	if (key < 1000 || key >= 1000 + SIM_KEYS)
		return -ENOENT;
	k = &node->keys[key - 1000];
	if (k->key != key || k->pd != pd || (access & ~k->access) ||
	    addr < k->base || addr - k->base > k->len ||
	    len > k->len - (addr - k->base))
		return -EACCES;
	if (!iov)
		return 0;
	while (len) {
		uint32_t part = PAGE - addr % PAGE;

		if (part > len)
			part = len;
		CHECK(n < max, "no room for %d elements", max);
		if (n == max)
			return -E2BIG;
		iov[n++] = (struct iovec){ node->mem + addr, part };
		addr += part;
		len -= part;
	}
	return n;
}

static int sim_invalidate(void *ctx, void *qp_ctx, uint32_t pd, uint32_t key,
			  bool remote)
{
	struct sim_node *node = ctx;

	(void)qp_ctx;
	(void)remote;
	for (int i = 0; i < SIM_KEYS; i++)
		if (node->keys[i].key == key && node->keys[i].pd == pd) {
			node->keys[i].key = 0;
			return 0;
		}
	return -ENOENT;
}

static enum roce_wc_status sim_local_op(void *ctx, void *qp_ctx,
					const struct roce_send_wqe *wqe)
{
	struct sim_node *node = ctx;

	(void)qp_ctx;
	node->local_ops++;
	return wqe->swap ? ROCE_WC_MW_BIND_ERR : ROCE_WC_SUCCESS;
}

static const struct roce_ops sim_ops = {
	.has_room = sim_has_room,
	.transmit = sim_transmit,
	.fetch_send = sim_fetch_send,
	.fetch_recv = sim_fetch_recv,
	.find_srq = sim_find_srq,
	.complete_send = sim_complete_send,
	.complete_recv = sim_complete_recv,
	.translate = sim_translate,
	.invalidate = sim_invalidate,
	.local_op = sim_local_op,
	.event = sim_event,
};

/* ---- two nodes ---- */

void sim_address(const struct sim *sim, int node, struct roce_av *av)
{
	static const uint8_t v4[16] = { [10] = 0xff, 0xff, 10, 0, 0, 1 };
	static const uint8_t v6[16] = { 0xfd, 0, [15] = 1 };
	static const uint8_t mac[6] = { 0x52, 0x54, 0, 0, 0, 1 };

	memset(av, 0, sizeof(*av));
	memcpy(av->dgid, sim->ipv6 ? v6 : v4, 16);
	memcpy(av->dmac, mac, 6);
	av->dgid[15] += node;
	av->dmac[5] += node;
	av->sgid_index = sim->ipv6;
}

struct sim *sim_create(size_t mem_size, const struct roce_config *config)
{
	struct sim *sim = calloc(1, sizeof(*sim));
	struct roce_config c = { 0 };

	if (config)
		c = *config;
	sim->seed = 88172645463325252ULL;
	sim->now = 1000;
	for (int i = 0; i < 2; i++) {
		struct sim_node *node = &sim->nodes[i];
		struct roce_av av;

		node->sim = sim;
		node->index = i;
		node->mem_size = mem_size;
		node->mem = aligned_alloc(PAGE, mem_size);
		memset(node->mem, 0, mem_size);
		node->room = -1;
		c.ops = &sim_ops;
		c.ctx = node;
		CHECK(!roce_engine_create(&c, &node->engine), "create");
		for (sim->ipv6 = false;; sim->ipv6 = true) {
			sim_address(sim, i, &av);
			roce_set_gid(node->engine, av.sgid_index, av.dgid,
				     av.dmac);
			if (sim->ipv6)
				break;
		}
		sim->ipv6 = false;
		sim_key(node, 0, 1, 0, mem_size, SIM_ALL_ACCESS);
	}
	return sim;
}

void sim_destroy(struct sim *sim)
{
	for (int i = 0; i < 2; i++) {
		struct sim_node *node = &sim->nodes[i];

		roce_engine_destroy(node->engine);
		for (int j = 0; j < node->num_qps; j++) {
			struct sim_qp *q = &node->qps[j];

			for (uint32_t k = 0; k < q->num_sends; k++)
				free(q->sends[k].sge);
			for (uint32_t k = 0; k < q->num_recvs; k++)
				free(q->recvs[k].sge);
			free(q->sends);
			free(q->recvs);
			free(q->send_wcs);
			free(q->recv_wcs);
		}
		free(node->mem);
	}
	while (sim->on_wire)
		free(wire_get(sim).data);
	free(sim->wire);
	free(sim);
}

static uint64_t next_time(const struct sim *sim)
{
	uint64_t next = sim->on_wire ? sim->wire[0].at : UINT64_MAX;

	for (int i = 0; i < 2; i++) {
		uint64_t t = roce_next_deadline(sim->nodes[i].engine);

		if (t < next)
			next = t;
	}
	return next;
}

void sim_run(struct sim *sim, uint64_t ns)
{
	uint64_t end = sim->now + ns;

	for (;;) {
		uint64_t next;

		while (sim->on_wire && sim->wire[0].at <= sim->now) {
			struct sim_frame f = wire_get(sim);

			roce_rx(sim->nodes[f.to].engine, sim->now, f.data,
				f.len);
			free(f.data);
		}
		for (int i = 0; i < 2; i++)
			roce_tick(sim->nodes[i].engine, sim->now);
		next = next_time(sim);
		if (next > end)
			break;
		if (next > sim->now)
			sim->now = next;
	}
	if (ns != SIM_LONG)
		sim->now = end;
}

/* ---- queue pairs ---- */

struct sim_qp *sim_qp(struct sim_node *node, enum roce_qp_type type,
		      struct sim_qp *shared)
{
	struct sim_qp *q = &node->qps[node->num_qps++];
	struct roce_qp_init init = {
		.type = type,
		.ctx = q,
		.qpn = 16 + 3 * node->num_qps + 100 * node->index,
		.pd = 1,
		.srq = shared,
		.poll_recv = node->sim->poll_recv,
		.max_send_wr = 64,
		.max_send_sge = SIM_SGES,
		.max_recv_sge = SIM_SGES,
	};

	q->node = node;
	q->type = type;
	q->shared = shared ? shared : q;
	q->qpn = type == ROCE_QPT_GSI ? ROCE_GSI_QPN : init.qpn;
	CHECK(!roce_qp_create(node->engine, &init, &q->qp), "create");
	return q;
}

void sim_attributes(const struct sim *sim, struct roce_qp_attr *attr, int peer,
		    uint32_t peer_qpn)
{
	*attr = (struct roce_qp_attr){
		.access = SIM_ALL_ACCESS,
		.port = 1,
		.qkey = 0x11111111,
		.path_mtu = ROCE_MTU_1024,
		.timeout = 8, /* 1 ms */
		.retry_cnt = 7,
		.rnr_retry = 7,
		.min_rnr_timer = 1,
		.max_rd_atomic = 4,
		.max_dest_rd_atomic = 4,
		.rq_psn = 0xfffff0, /* wraps soon */
		.sq_psn = 0xfffff0,
		.dest_qpn = peer_qpn,
	};
	sim_address(sim, peer, &attr->av);
}

int sim_modify(struct sim_qp *q, const struct roce_qp_attr *attr,
	       enum roce_qp_state to)
{
	struct roce_qp_attr a = *attr;
	uint32_t mask = ROCE_QP_STATE;
	bool rc = q->type == ROCE_QPT_RC || q->type == ROCE_QPT_XRC_SEND ||
		  q->type == ROCE_QPT_XRC_RECV;
	bool ud = q->type == ROCE_QPT_UD || q->type == ROCE_QPT_GSI;

	a.state = to;
	if (to == ROCE_QPS_INIT)
		mask |= ROCE_QP_PKEY_INDEX | ROCE_QP_PORT |
			(ud ? ROCE_QP_QKEY : ROCE_QP_ACCESS_FLAGS);
	if (to == ROCE_QPS_RTR && !ud)
		mask |= ROCE_QP_AV | ROCE_QP_PATH_MTU | ROCE_QP_DEST_QPN |
			ROCE_QP_RQ_PSN;
	if (to == ROCE_QPS_RTR && rc)
		mask |= ROCE_QP_MAX_DEST_RD_ATOMIC | ROCE_QP_MIN_RNR_TIMER;
	if (to == ROCE_QPS_RTS)
		mask |= ROCE_QP_SQ_PSN;
	if (to == ROCE_QPS_RTS && rc)
		mask |= ROCE_QP_TIMEOUT | ROCE_QP_RETRY_CNT |
			ROCE_QP_RNR_RETRY | ROCE_QP_MAX_QP_RD_ATOMIC;
	return roce_qp_modify(q->qp, &a, mask);
}

void sim_connect(struct sim_qp *a, struct sim_qp *b, struct roce_qp_attr *attr)
{
	struct sim_qp *ends[2] = { a, b };

	for (int i = 0; i < 2; i++) {
		struct sim_qp *q = ends[i], *peer = ends[!i];

		attr->dest_qpn = peer->qpn;
		sim_address(q->node->sim, peer->node->index, &attr->av);
		for (int s = ROCE_QPS_INIT; s <= ROCE_QPS_RTS; s++)
			CHECK(!sim_modify(q, attr, s), "state %d", s);
	}
}

static struct roce_sge *copy_list(const struct roce_sge *sge, uint32_t n)
{
	struct roce_sge *copy = calloc(n + 1, sizeof(*copy));

	memcpy(copy, sge, n * sizeof(*copy));
	return copy;
}

void sim_post_send(struct sim_qp *q, const struct roce_send_wqe *wqe)
{
	struct roce_send_wqe copy = *wqe;

	copy.sge = copy_list(wqe->sge, wqe->num_sge);
	APPEND(q->sends, q->num_sends, copy);
	roce_kick(q->qp);
}

void sim_post_recv(struct sim_qp *q, uint64_t cookie, uint64_t addr,
		   uint32_t len, uint32_t key)
{
	struct roce_sge sge = { addr, len, key };
	struct roce_recv_wqe wqe = { .cookie = cookie,
				     .num_sge = 1,
				     .sge = copy_list(&sge, 1) };

	APPEND(q->recvs, q->num_recvs, wqe);
	if (!q->node->sim->poll_recv)
		roce_kick_recv(q->qp);
}

struct roce_send_wqe sim_wqe(struct sim_qp *q, enum roce_wr_opcode opcode,
			     uint64_t local, uint32_t len, uint64_t remote)
{
	static struct roce_sge sge;

	sge = (struct roce_sge){ local, len, 1000 };
	return (struct roce_send_wqe){
		.cookie = q->num_sends,
		.opcode = opcode,
		.flags = ROCE_SEND_SIGNALED,
		.remote_addr = remote,
		.rkey = 1000,
		.num_sge = 1,
		.sge = &sge,
	};
}
