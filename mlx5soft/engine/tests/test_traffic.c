// SPDX-License-Identifier: GPL-2.0
/*
 * All operations between many QPs in both directions, with and without loss:
 * every byte arrives, every WQE completes once and in order.
 */
#include <stdlib.h>
#include <string.h>

#include "sim.h"

#define MEMORY (24U << 20)
#define SMALL (4U << 20) /* where little is moved */
#define MAX_OPS 64

struct op {
	enum roce_wr_opcode opcode;
	uint32_t len;
	uint64_t local, remote; /* remote: for SEND the receive buffer */
	uint64_t add;
	bool consumes; /* a receive WQE */
};

struct flow {
	struct sim_qp *from, *to;
	struct op ops[MAX_OPS];
	int num_ops;
};

struct run {
	struct sim *sim;
	uint64_t used[2]; /* memory; the first 4 KiB are for atomics */
	struct flow flows[SIM_QPS];
	int num_flows;
	uint64_t sums[2];
};

static uint64_t take(struct run *r, int node, uint32_t len)
{
	uint64_t at = r->used[node];

	r->used[node] += (len + 7) & ~7ULL;
	CHECK(r->used[node] <= MEMORY, "out of memory");
	/* not all buffers begin at the same place of a page */
	return at;
}

static void fill(struct run *r, uint8_t *p, uint32_t len)
{
	uint64_t x = sim_random(r->sim);

	for (uint32_t i = 0; i < len; i++) {
		x = x * 6364136223846793005ULL + 1442695040888963407ULL;
		p[i] = x >> 56;
	}
}

static uint32_t pick_size(struct run *r, uint32_t mtu)
{
	const uint32_t sizes[] = { 0,	    1,	     3,	      mtu - 1,
				   mtu,	    mtu + 1, 3 * mtu, 5 * mtu + 7,
				   1 << 16, 1 << 20 };
	uint32_t n = sizeof(sizes) / sizeof(*sizes);
	uint32_t i = sim_random(r->sim) % (12 * n);

	/* few of the large ones */
	return sizes[i < n ? i : i % (n - 1)];
}

static void add_op(struct run *r, struct flow *f, enum roce_wr_opcode opcode,
		   uint32_t len)
{
	int from = f->from->node->index, to = f->to->node->index;
	struct op *op = &f->ops[f->num_ops];
	struct roce_sge sge[8];
	struct roce_send_wqe wqe;
	bool atomic = opcode == ROCE_WR_ATOMIC_FETCH_AND_ADD ||
		      opcode == ROCE_WR_ATOMIC_CMP_AND_SWP;
	uint32_t parts = 1 + sim_random(r->sim) % 4, done = 0;

	if (atomic)
		len = 8;
	*op = (struct op){ .opcode = opcode, .len = len };
	op->local = take(r, from, len);
	op->remote = take(r, to, len);
	op->add = sim_random(r->sim) >> 8;
	op->consumes = opcode == ROCE_WR_SEND ||
		       opcode == ROCE_WR_SEND_WITH_IMM ||
		       opcode == ROCE_WR_RDMA_WRITE_WITH_IMM;
	if (opcode == ROCE_WR_RDMA_READ)
		fill(r, f->to->node->mem + op->remote, len);
	else if (!atomic)
		fill(r, f->from->node->mem + op->local, len);
	if (op->consumes)
		sim_post_recv(f->to, f->num_ops, op->remote, len, 1000);

	wqe = sim_wqe(f->from, opcode, op->local, len, op->remote);
	wqe.cookie = f->num_ops;
	wqe.imm_data = op->add;
	wqe.compare_add = op->add;
	if (atomic) {
		bool swap = opcode == ROCE_WR_ATOMIC_CMP_AND_SWP;

		/* The swap compares with what never is there. */
		wqe.remote_addr = 8;
		wqe.compare_add = swap ? ~0ULL : op->add;
		wqe.swap = 1;
		r->sums[to] += swap ? 0 : op->add;
	}
	wqe.sge = sge;
	wqe.num_sge = parts;
	if (len <= 64 && !atomic && opcode != ROCE_WR_RDMA_READ &&
	    sim_random(r->sim) % 2)
		wqe.flags |= ROCE_SEND_INLINE;
	if (sim_random(r->sim) % 4 == 0)
		wqe.flags |= ROCE_SEND_FENCE;
	for (uint32_t i = 0; i < parts; i++) {
		uint32_t n = i == parts - 1 ? len - done : len / parts;

		sge[i] = (struct roce_sge){ op->local + done, n, 1000 };
		if (wqe.flags & ROCE_SEND_INLINE)
			sge[i].addr += (uintptr_t)f->from->node->mem;
		done += n;
	}
	sim_post_send(f->from, &wqe);
	f->num_ops++;
}

static void add_flows(struct run *r, enum roce_mtu mtu, uint32_t rd_atomic)
{
	static const enum roce_wr_opcode opcodes[] = {
		ROCE_WR_SEND,
		ROCE_WR_SEND_WITH_IMM,
		ROCE_WR_RDMA_WRITE,
		ROCE_WR_RDMA_WRITE_WITH_IMM,
		ROCE_WR_RDMA_READ,
		ROCE_WR_ATOMIC_FETCH_AND_ADD,
		ROCE_WR_ATOMIC_CMP_AND_SWP,
	};
	struct sim_qp *ends[2];
	struct roce_qp_attr attr;

	for (int i = 0; i < 2; i++)
		ends[i] = sim_qp(&r->sim->nodes[i], ROCE_QPT_RC, NULL);
	sim_attributes(r->sim, &attr, 0, 0);
	attr.path_mtu = mtu;
	attr.max_rd_atomic = attr.max_dest_rd_atomic = rd_atomic;
	sim_connect(ends[0], ends[1], &attr);
	for (int i = 0; i < 2; i++) {
		struct flow *f = &r->flows[r->num_flows++];

		f->from = ends[i];
		f->to = ends[!i];
		for (int j = 0; j < MAX_OPS; j++)
			add_op(r, f, opcodes[sim_random(r->sim) % 7],
			       pick_size(r, 128 << mtu));
	}
}

static void check_op(const struct flow *f, int i, uint32_t *recvs)
{
	const struct op *op = &f->ops[i];
	const struct roce_send_wc *wc = &f->from->send_wcs[i];
	const uint8_t *local = f->from->node->mem + op->local;
	const uint8_t *remote = f->to->node->mem + op->remote;
	const struct roce_recv_wc *recv;

	CHECK(wc->cookie == (uint64_t)i && wc->status == ROCE_WC_SUCCESS &&
		      wc->byte_len == op->len && wc->opcode == op->opcode,
	      "op %d: cookie %d status %d", i, (int)wc->cookie, wc->status);
	if (op->opcode != ROCE_WR_ATOMIC_FETCH_AND_ADD &&
	    op->opcode != ROCE_WR_ATOMIC_CMP_AND_SWP &&
	    !(op->opcode == ROCE_WR_RDMA_WRITE_WITH_IMM && !op->len))
		CHECK(!memcmp(local, remote, op->len), "op %d opcode %d: data",
		      i, op->opcode);
	if (!op->consumes)
		return;
	recv = &f->to->recv_wcs[(*recvs)++];
	CHECK(recv->cookie == (uint64_t)i && recv->byte_len == op->len &&
		      recv->status == ROCE_WC_SUCCESS &&
		      recv->src_qpn == f->from->qpn,
	      "op %d: receive %d", i, (int)recv->cookie);
	CHECK(!!(recv->flags & ROCE_WC_WITH_IMM) ==
		      (op->opcode != ROCE_WR_SEND),
	      "op %d: flags %x", i, recv->flags);
	CHECK(op->opcode == ROCE_WR_SEND || recv->imm_data == (uint32_t)op->add,
	      "op %d: immediate", i);
}

static void check_run(struct run *r)
{
	for (int i = 0; i < r->num_flows; i++) {
		struct flow *f = &r->flows[i];
		uint32_t recvs = 0;

		CHECK(f->from->num_send_wcs == (uint32_t)f->num_ops,
		      "flow %d: %u of %d", i, f->from->num_send_wcs,
		      f->num_ops);
		if (f->from->num_send_wcs != (uint32_t)f->num_ops)
			continue;
		for (int j = 0; j < f->num_ops; j++)
			check_op(f, j, &recvs);
		CHECK(f->to->num_recv_wcs == recvs, "flow %d: receives", i);
	}
	for (int i = 0; i < 2; i++) {
		uint64_t sum;

		memcpy(&sum, r->sim->nodes[i].mem + 8, sizeof(sum));
		CHECK(sum == r->sums[i], "sum %llx, not %llx", (long long)sum,
		      (long long)r->sums[i]);
	}
}

static void run(double loss, int pairs, uint64_t seed, bool ipv6,
		uint32_t rd_atomic)
{
	struct roce_config config = { 0 };
	struct run *r = calloc(1, sizeof(*r));
	uint64_t start;

	r->sim = sim_create(MEMORY, &config);
	r->sim->seed = seed;
	r->sim->loss = loss;
	r->sim->duplicates = loss / 2;
	r->sim->reorder = loss / 2;
	r->sim->ipv6 = ipv6;
	r->used[0] = r->used[1] = 4096 + seed % 64;
	for (int i = 0; i < pairs; i++)
		add_flows(r, ROCE_MTU_256 + i % 5, rd_atomic);
	start = r->sim->now;
	sim_run(r->sim, SIM_LONG);
	check_run(r);
	printf("loss %.0f %%, %d QPs: %llu frames, %llu lost, %.1f ms\n",
	       100 * loss, 2 * pairs, (long long)r->sim->frames,
	       (long long)r->sim->lost, (r->sim->now - start) / 1e6);
	sim_destroy(r->sim);
	free(r);
}

/* What the counters of both sides say must be what the wire did. */
static void run_clean(void)
{
	struct sim *sim = sim_create(1 << 20, NULL);
	struct sim_qp *a = sim_qp(&sim->nodes[0], ROCE_QPT_RC, NULL);
	struct sim_qp *b = sim_qp(&sim->nodes[1], ROCE_QPT_RC, NULL);
	const struct roce_qp_counters *ca = roce_qp_counters(a->qp);
	const struct roce_qp_counters *cb = roce_qp_counters(b->qp);
	struct roce_qp_attr attr;
	struct roce_send_wqe wqe;

	sim_attributes(sim, &attr, 0, 0);
	sim_connect(a, b, &attr);
	wqe = sim_wqe(a, ROCE_WR_RDMA_WRITE, 0, 10240, 4096);
	sim_post_send(a, &wqe);
	wqe = sim_wqe(a, ROCE_WR_RDMA_READ, 0, 10240, 4096);
	sim_post_send(a, &wqe);
	sim_run(sim, SIM_LONG);
	CHECK(a->num_send_wcs == 2, "completions");
	/* One ACK, or none: the READ response acknowledges the WRITE. */
	CHECK(ca->tx_packets == 11 && cb->tx_packets >= 10 &&
		      cb->tx_packets <= 11 && cb->rx_packets == 11,
	      "%d %d", (int)ca->tx_packets, (int)cb->tx_packets);
	CHECK(cb->rx_write_requests == 1 && cb->rx_read_requests == 1 &&
		      ca->tx_bytes == 10240 && ca->rx_bytes == 10240,
	      "requests");
	CHECK(!ca->retransmits && !ca->packet_seq_err && !cb->out_of_sequence &&
		      !cb->duplicate_request && !ca->implied_nak_seq_err &&
		      !ca->local_ack_timeout_err,
	      "errors without a reason");
	sim_destroy(sim);
}

/* Elements that do not lie one behind the other, some of them empty. */
static void run_scattered(void)
{
	const uint32_t lens[] = { 1000, 0, 3, 2045, 1, 4000 };
	struct sim *sim = sim_create(1 << 20, NULL);
	struct sim_qp *a = sim_qp(&sim->nodes[0], ROCE_QPT_RC, NULL);
	struct sim_qp *b = sim_qp(&sim->nodes[1], ROCE_QPT_RC, NULL);
	uint8_t *mem = sim->nodes[0].mem, *at = sim->nodes[1].mem;
	struct roce_sge list[6];
	struct roce_qp_attr attr;
	struct roce_send_wqe wqe;

	for (int i = 0; i < 65536; i++)
		mem[i] = i % 251;
	for (int i = 0; i < 6; i++)
		list[i] = (struct roce_sge){ 50000 - 9000 * i, lens[i], 1000 };
	sim_attributes(sim, &attr, 0, 0);
	sim_connect(a, b, &attr);
	for (int read = 0; read < 2; read++) {
		wqe = sim_wqe(a, read ? ROCE_WR_RDMA_READ : ROCE_WR_RDMA_WRITE,
			      0, 0, 0);
		for (int i = 0; read && i < 6; i++)
			list[i].addr += 100000;
		wqe.sge = list;
		wqe.num_sge = 6;
		sim_post_send(a, &wqe);
		sim_run(sim, SIM_LONG);
	}
	CHECK(a->num_send_wcs == 2 && a->send_wcs[1].byte_len == 7049, "sizes");
	for (int i = 0; i < 6; at += lens[i++]) {
		CHECK(!memcmp(at, mem + list[i].addr - 100000, lens[i]),
		      "written, element %d", i);
		CHECK(!memcmp(at, mem + list[i].addr, lens[i]) &&
			      !mem[list[i].addr + lens[i]] &&
			      !mem[list[i].addr - 1],
		      "read, element %d", i);
	}
	sim_destroy(sim);
}

/* What sends no packet costs a turn as well: others have theirs meanwhile. */
static void run_local(void)
{
	enum {
		OPERATIONS = 100000,
		BUDGET = 256
	};
	struct roce_send_wqe wqe;
	struct sim *sim = sim_create(SMALL, NULL);
	struct sim_qp *q[2], *peer[2];
	struct roce_qp_attr attr;

	sim_attributes(sim, &attr, 0, 0);
	for (int i = 0; i < 2; i++) {
		q[i] = sim_qp(&sim->nodes[0], ROCE_QPT_RC, NULL);
		peer[i] = sim_qp(&sim->nodes[1], ROCE_QPT_RC, NULL);
		sim_connect(q[i], peer[i], &attr);
	}
	wqe = sim_wqe(q[0], ROCE_WR_LOCAL, 0, 8, 0);
	for (int i = 0; i < OPERATIONS; i++)
		sim_post_send(q[0], &wqe);
	wqe = sim_wqe(q[1], ROCE_WR_SEND, 0, 8, 0);
	sim_post_recv(peer[1], 0, 0, 8, 1000);
	sim_post_send(q[1], &wqe);
	CHECK(roce_tick(sim->nodes[0].engine, sim->now), "more to do");
	CHECK(q[0]->next_send <= BUDGET + 1, "%u in a turn", q[0]->next_send);
	CHECK(sim->frames == 1, "another QP waits");
	sim_run(sim, SIM_LONG);
	CHECK(sim->nodes[0].local_ops == OPERATIONS &&
		      q[0]->num_send_wcs == OPERATIONS &&
		      q[1]->num_send_wcs == 1,
	      "%u operations", sim->nodes[0].local_ops);
	sim_destroy(sim);
}

/*
 * Who waits for room at the wire holds up nobody who needs none: local
 * operations, packets to itself, flushes. Nothing is made that cannot be sent,
 * and when there is room again all have their turn.
 */
static void run_full(void)
{
	enum {
		QPS = 12, /* the last three need no room */
		SENDS = 10
	};
	struct sim *sim = sim_create(SMALL, NULL);
	struct sim_node *node = &sim->nodes[0];
	struct roce_send_wqe wqe;
	struct sim_qp *q[QPS];
	struct roce_qp_attr attr;
	uint64_t gathered;

	sim_attributes(sim, &attr, 0, 0);
	attr.timeout = 0;
	for (int i = 0; i < QPS; i++) {
		struct sim_qp *peer;

		q[i] = sim_qp(node, ROCE_QPT_RC, NULL);
		peer = sim_qp(&sim->nodes[i != QPS - 1], ROCE_QPT_RC, NULL);
		sim_connect(q[i], peer, &attr);
	}
	node->room = 0;
	for (int i = 0; i < QPS; i++) {
		wqe = sim_wqe(q[i],
			      i == QPS - 2 ? ROCE_WR_LOCAL : ROCE_WR_RDMA_WRITE,
			      0, 8, 0);
		for (int j = 0; j < SENDS; j++)
			sim_post_send(q[i], &wqe);
	}
	sim_run(sim, 1000);
	CHECK(!sim_modify(q[QPS - 3], &attr, ROCE_QPS_ERR), "ERR");
	gathered = sim->translated;
	sim_run(sim, 1000);
	for (int i = 0; i < 10; i++)
		roce_tick(node->engine, sim->now);
	CHECK(sim->translated == gathered, "%lu in vain",
	      sim->translated - gathered);
	CHECK(roce_next_deadline(node->engine), "it waits for room");
	for (int i = 0; i < QPS; i++)
		CHECK(q[i]->num_send_wcs == (i < QPS - 3 ? 0 : SENDS),
		      "QP %d: %u completions", i, q[i]->num_send_wcs);
	/* one at a time */
	for (int i = 0; i < (QPS - 3) * SENDS; i++) {
		node->room = 1;
		sim_run(sim, 100000000);
		for (int j = 0; j < QPS - 3; j++)
			CHECK(q[j]->num_send_wcs <= i / (QPS - 3) + 1U,
			      "frame %d: QP %d has %u", i, j,
			      q[j]->num_send_wcs);
	}
	for (int i = 0; i < QPS - 3; i++)
		CHECK(q[i]->num_send_wcs == SENDS, "QP %d: %u of %d", i,
		      q[i]->num_send_wcs, SENDS);
	sim_destroy(sim);
}

/*
 * A QP that waits for room is reset, and has work that needs none: that goes on.
 * Its old place is nobody's.
 */
static void run_full_reset(void)
{
	struct sim *sim = sim_create(SMALL, NULL);
	struct sim_node *node = &sim->nodes[0];
	struct sim_qp *a = sim_qp(node, ROCE_QPT_RC, NULL);
	struct sim_qp *b = sim_qp(&sim->nodes[1], ROCE_QPT_RC, NULL);
	struct roce_send_wqe wqe;
	struct roce_qp_attr attr;

	sim_attributes(sim, &attr, 0, 0);
	sim_connect(a, b, &attr);
	node->room = 0;
	wqe = sim_wqe(a, ROCE_WR_RDMA_WRITE, 0, 8, 0);
	sim_post_send(a, &wqe);
	sim_run(sim, 1000);
	CHECK(!sim_modify(a, &attr, ROCE_QPS_RESET) &&
		      !sim_modify(b, &attr, ROCE_QPS_RESET),
	      "RESET");
	sim_connect(a, b, &attr);
	wqe = sim_wqe(a, ROCE_WR_LOCAL, 0, 8, 0);
	sim_post_send(a, &wqe);
	sim_run(sim, 1000);
	CHECK(a->num_send_wcs == 1 && !a->send_wcs[0].status, "%u completions",
	      a->num_send_wcs);
	node->room = 1;
	CHECK(roce_next_deadline(node->engine), "somebody waits");
	sim_destroy(sim);
}

/* One that has waited fails, UC and in SQE: what is flushed needs no room. */
static void run_full_sqe(void)
{
	const enum roce_wc_status status[] = { ROCE_WC_SUCCESS,
					       ROCE_WC_LOC_PROT_ERR,
					       ROCE_WC_WR_FLUSH_ERR };
	struct sim *sim = sim_create(SMALL, NULL);
	struct sim_node *node = &sim->nodes[0];
	struct sim_qp *a = sim_qp(node, ROCE_QPT_UC, NULL);
	struct sim_qp *b = sim_qp(&sim->nodes[1], ROCE_QPT_UC, NULL);
	struct roce_send_wqe wqe;
	struct roce_qp_attr attr;

	sim_attributes(sim, &attr, 0, 0);
	sim_connect(a, b, &attr);
	node->room = 0;
	for (int i = 0; i < 3; i++) {
		wqe = sim_wqe(a, ROCE_WR_RDMA_WRITE, 0, 8, 0);
		wqe.sge[0].key += i == 1; /* is none */
		sim_post_send(a, &wqe);
	}
	sim_run(sim, 1000);
	CHECK(!a->num_send_wcs, "%u completions", a->num_send_wcs);
	node->room = 1;
	sim_run(sim, 1000);
	CHECK(a->num_send_wcs == 3 && roce_qp_state(a->qp) == ROCE_QPS_SQE,
	      "%u completions", a->num_send_wcs);
	for (uint32_t i = 0; i < 3 && i < a->num_send_wcs; i++)
		CHECK(a->send_wcs[i].status == status[i], "%u: status %d", i,
		      a->send_wcs[i].status);
	sim_destroy(sim);
}

static void check_shares(struct sim_qp **q, int count, const char *what)
{
	uint64_t least = -1, most = 0;

	for (int i = 0; i < count; i++) {
		uint64_t n = roce_qp_counters(q[i]->qp)->tx_packets;

		least = n < least ? n : least;
		most = n > most ? n : most;
	}
	CHECK(least && most <= 2 * least, "%s: from %lu to %lu packets", what,
	      least, most);
}

/* However much room there is at a time, all who wait for it have their share. */
static void run_shares(int count, uint32_t room)
{
	struct sim *sim = sim_create(SMALL, NULL);
	struct sim_node *node = &sim->nodes[0];
	struct roce_send_wqe wqe;
	struct sim_qp *q[9];
	struct roce_qp_attr attr;
	char what[64];

	sim_attributes(sim, &attr, 0, 0);
	node->room = 0;
	for (int i = 0; i < count; i++) {
		struct sim_qp *peer;

		q[i] = sim_qp(node, ROCE_QPT_UC, NULL);
		peer = sim_qp(&sim->nodes[1], ROCE_QPT_UC, NULL);
		sim_connect(q[i], peer, &attr);
		wqe = sim_wqe(q[i], ROCE_WR_RDMA_WRITE, 0, SMALL, 0);
		sim_post_send(q[i], &wqe);
	}
	for (int i = 0; i < 20 * count; i++) {
		node->room = room;
		sim_run(sim, 100000);
	}
	snprintf(what, sizeof(what), "%d QPs, room for %u", count, room);
	check_shares(q, count, what);
	sim_destroy(sim);
}

/* Nor does who posts again when a send has completed overtake them. */
static void run_shares_ud(void)
{
	enum {
		QPS = 5
	};
	struct sim *sim = sim_create(SMALL, NULL);
	struct sim_node *node = &sim->nodes[0];
	struct roce_send_wqe wqe;
	struct sim_qp *q[QPS];
	struct roce_qp_attr attr;

	sim_attributes(sim, &attr, 0, 0);
	for (int i = 0; i < QPS; i++) {
		q[i] = sim_qp(node, ROCE_QPT_UD, NULL);
		for (int s = ROCE_QPS_INIT; s <= ROCE_QPS_RTS; s++)
			CHECK(!sim_modify(q[i], &attr, s), "state %d", s);
	}
	node->room = 0;
	for (int i = 0; i < 20 * QPS; i++) {
		for (int j = 0; j < QPS; j++) {
			if (q[j]->num_send_wcs < q[j]->num_sends)
				continue;
			wqe = sim_wqe(q[j], ROCE_WR_SEND, 0, 8, 0);
			sim_address(sim, 1, &wqe.av);
			sim_post_send(q[j], &wqe);
		}
		sim_run(sim, 100000);
		node->room = 1;
		sim_run(sim, 100000);
	}
	check_shares(q, QPS, "UD, one at a time");
	sim_destroy(sim);
}

/*
 * At a full wire an ACK does not wait behind what other QPs have to send; it does
 * behind its own QP's response to a READ.
 */
static void run_acks(void)
{
	enum {
		QPS = 9
	};
	struct sim *sim = sim_create(SMALL, NULL);
	struct sim_node *node = &sim->nodes[0];
	const struct roce_qp_counters *c;
	struct sim_qp *q[QPS], *peer[QPS];
	struct roce_send_wqe wqe;
	struct roce_qp_attr attr;

	sim_attributes(sim, &attr, 0, 0);
	attr.timeout = 0;
	node->room = 0;
	for (int i = 0; i < QPS; i++) {
		q[i] = sim_qp(node, ROCE_QPT_RC, NULL);
		peer[i] = sim_qp(&sim->nodes[1], ROCE_QPT_RC, NULL);
		sim_connect(q[i], peer[i], &attr);
		wqe = sim_wqe(q[i], ROCE_WR_RDMA_WRITE, 0, SMALL, 0);
		sim_post_send(q[i], &wqe);
	}
	sim_run(sim, 1000);
	wqe = sim_wqe(peer[QPS - 1], ROCE_WR_RDMA_WRITE, 0, 8, 0);
	sim_post_send(peer[QPS - 1], &wqe);
	sim_run(sim, 100000);
	node->room = 1;
	sim_run(sim, 100000);
	CHECK(peer[QPS - 1]->num_send_wcs == 1, "the ACK waits");
	wqe.opcode = ROCE_WR_RDMA_READ;
	sim_post_send(peer[QPS - 1], &wqe);
	wqe.opcode = ROCE_WR_RDMA_WRITE;
	sim_post_send(peer[QPS - 1], &wqe);
	for (int i = 0; i < 2 * QPS; i++) {
		sim_run(sim, 100000);
		node->room = 1;
	}
	sim_run(sim, 100000);
	c = roce_qp_counters(peer[QPS - 1]->qp);
	CHECK(peer[QPS - 1]->num_send_wcs == 3 && !c->implied_nak_seq_err,
	      "%u completions", peer[QPS - 1]->num_send_wcs);
	sim_destroy(sim);
}

/* However many ACKs there are, there is a share for others. */
static void run_acks_shares(void)
{
	enum {
		QPS = 5,
		FRAMES = 60
	};
	struct roce_config config = { .burst = QPS - 1 };
	struct sim *sim = sim_create(SMALL, &config);
	struct sim_node *node = &sim->nodes[0];
	struct sim_qp *q[QPS], *peer[QPS];
	struct roce_send_wqe wqe;
	struct roce_qp_attr attr;
	uint64_t sent;

	sim_attributes(sim, &attr, 0, 0);
	attr.timeout = 0;
	node->room = 0;
	for (int i = 0; i < QPS; i++) {
		q[i] = sim_qp(node, ROCE_QPT_RC, NULL);
		peer[i] = sim_qp(&sim->nodes[1], ROCE_QPT_RC, NULL);
		sim_connect(q[i], peer[i], &attr);
	}
	wqe = sim_wqe(q[0], ROCE_WR_RDMA_WRITE, 0, SMALL, 0);
	sim_post_send(q[0], &wqe);
	for (int i = 0; i < FRAMES; i++) {
		for (int j = 1; j < QPS; j++) {
			wqe = sim_wqe(peer[j], ROCE_WR_RDMA_WRITE, 0, 8, 0);
			sim_post_send(peer[j], &wqe);
		}
		sim_run(sim, 100000);
		node->room = 1;
		sim_run(sim, 100000);
	}
	sent = roce_qp_counters(q[0]->qp)->tx_bytes / 1024;
	CHECK(sent >= FRAMES / QPS, "%lu of %d packets", sent, FRAMES);
	sim_destroy(sim);
}

int main(void)
{
	run_local();
	run_full();
	run_full_reset();
	run_full_sqe();
	run_shares(2, 16);
	run_shares(2, 5);
	run_shares(9, 1);
	run_shares(9, 70);
	run_shares_ud();
	run_acks();
	run_acks_shares();
	run_clean();
	run_scattered();
	run(0, 10, 88172645463325252ULL, false, 4);
	for (uint64_t seed = 1; seed <= 3; seed++) {
		run(0.05, 5, seed * 7919, seed & 1, seed);
		run(0.01, 5, seed * 104729, false, 16);
	}
	run(0.05, 10, 42, false, 128);
	return check_result();
}
