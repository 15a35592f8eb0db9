// SPDX-License-Identifier: GPL-2.0
/* Ethernet queues: turns of senders, their own frames, frames without a buffer */
#include <poll.h>
#include <unistd.h>

#include "cq.h"
#include "nic.h"
#include "probe.h"
#include "rdma/rdma.h"
#include "rdma/wqe.h"

#define FRAME 64U

static struct rig *r;
static struct probe p;
static uint64_t db, buf;

static void to_state(uint16_t op, uint32_t id, uint8_t from, uint8_t to)
{
	rig_begin(r, op, BYTES(modify_rq_in), 16);
	SET(modify_rq_in, r->in, rqn, id);
	SET(modify_rq_in, r->in, rq_state, from);
	SET(rqc, AT(modify_rq_in, r->in, ctx), state, to);
	CHECK(!rig_run(r), "%s", r->log);
}

/* a send queue of this transport domain */
static uint32_t new_sq(uint32_t td)
{
	uint32_t tis, sq;

	rig_begin(r, MLX5_CMD_OP_CREATE_TIS, BYTES(create_tis_in), 16);
	SET(tisc, AT(create_tis_in, r->in, ctx), transport_domain, td);
	tis = rig_id(r);
	rig_sq_in(r, p.tx_cq.id);
	SET(sqc, AT(create_sq_in, r->in, ctx), tis_lst_sz, 1);
	SET(sqc, AT(create_sq_in, r->in, ctx), tis_num_0, tis);
	db = r->db;
	buf = r->buf;
	sq = rig_id(r);
	to_state(MLX5_CMD_OP_MODIFY_SQ, sq, WQ_RST, WQ_RDY);
	return sq;
}

/* ...sends its first frame: is it received, is it on the wire? */
static void send(uint32_t sq, const uint8_t dst[6], bool back, bool out,
		 const char *what)
{
	uint8_t *wqe = rig_mem(r, buf), frame[2 * FRAME], cqe[64];
	uint64_t data = rig_pages(r, 1);

	memset(rig_mem(r, data), 0x5a, FRAME);
	memcpy(rig_mem(r, data), dst, 6);
	put_be32(wqe, 0x0a); /* send */
	put_be32(wqe + 4, sq << 8 | 3);
	put_be32(wqe + 32, FRAME);
	put_be32(wqe + 36, p.mkey);
	put_be64(wqe + 40, data);
	put_be32(rig_mem(r, db) + 4, 1);
	rig_send_db(r, r->uar, sq);
	CHECK(rig_cqe(r, &p.rx_cq, cqe) == back, "%s: received", what);
	CHECK((read(r->wire, frame, sizeof(frame)) == FRAME) == out, "%s: sent",
	      what);
}

#define HEADERS 54U
#define PAYLOAD 65000U

/* A large send of one byte in each frame, as two basic blocks at `at` */
static void put_large_send(uint8_t *at, uint32_t sq)
{
	uint8_t *frame = at + 30;

	put_be32(at, 0x0e); /* large send */
	put_be32(at + 4, sq << 8 | 7);
	at[11] = 8; /* signaled */
	put_be16(at + 22, 1);
	put_be16(at + 28, HEADERS);
	memset(frame, 2, 12);
	put_be16(frame + 12, 0x0800);
	frame[14] = 0x45;
	frame[14 + 9] = 6; /* TCP */
	frame[34 + 12] = 0x50;
	put_be32(at + 96, PAYLOAD);
	put_be32(at + 100, p.mkey);
	put_be64(at + 104, rig_pages(r, 16));
}

/*
 * Nothing is sent within the doorbell. What a guest posts costs a turn of the
 * loop no more than others can wait for, and other queues have their turn, too.
 */
static void test_turns(void)
{
	uint8_t cqe[64];
	uint64_t before;
	uint32_t large, other, turns;

	r = rig_start();
	probe_run(r, &p);
	r->nic->wire.fd = -1; /* frames are counted, and gone */
	large = new_sq(p.td);
	put_large_send(rig_mem(r, buf), large);
	put_large_send(rig_mem(r, buf) + 128, large);
	put_be32(rig_mem(r, db) + 4, 4);
	host_write64(r->host, r->uar * RIG_PAGE + 0x800, (uint64_t)large << 8);
	CHECK(!r->nic->port.tx_discards, "%lu frames within the doorbell",
	      r->nic->port.tx_discards);
	CHECK(!nic_due(r->nic), "due");
	other = new_sq(p.td);
	put_be32(rig_mem(r, buf) + 4, other << 8 | 1); /* NOP */
	rig_mem(r, buf)[11] = 8;
	put_be32(rig_mem(r, db) + 4, 1);
	host_write64(r->host, r->uar * RIG_PAGE + 0x800, (uint64_t)other << 8);
	CHECK(nic_tick(r->nic), "more to do");
	CHECK(rig_cqe(r, &p.tx_cq, cqe) && get_be32(cqe + 56) == other,
	      "another queue waits");
	for (turns = 1;; turns++) {
		before = r->nic->port.tx_discards;
		if (!nic_tick(r->nic))
			break;
		CHECK(r->nic->port.tx_discards - before <= 1000,
		      "%lu frames in a turn",
		      r->nic->port.tx_discards - before);
	}
	CHECK(turns > 2 * PAYLOAD / 1000, "%u turns", turns);
	CHECK(r->nic->port.tx_discards == 2 * PAYLOAD, "%lu frames",
	      r->nic->port.tx_discards);
	CHECK(rig_cqe(r, &p.tx_cq, cqe) && rig_cqe(r, &p.tx_cq, cqe) &&
		      get_be32(cqe + 56) == (0x0e << 24 | large),
	      "both completed");
	/* one that goes away in the middle */
	put_be32(rig_mem(r, db) + 4, 1);
	large = new_sq(p.td);
	put_large_send(rig_mem(r, buf), large);
	put_be32(rig_mem(r, db) + 4, 2);
	rig_send_db(r, r->uar, large);
	CHECK(nic_tick(r->nic), "more to do");
	CHECK(!rig_run_id(r, MLX5_CMD_OP_DESTROY_SQ, large), "%s", r->log);
	CHECK(!nic_tick(r->nic), "nothing left");
	rig_stop(r);
}

/* In the error state WQEs are flushed, by turns as well. */
static void test_sq_flush(void)
{
	uint8_t cqe[64];
	uint32_t sq;

	r = rig_start();
	probe_run(r, &p);
	sq = new_sq(p.td);
	SET(sqc, ((struct wq *)obj_find(r->nic, OBJ_SQ, sq))->ctx,
	    flush_in_error_en, 1);
	for (uint32_t i = 0; i < 16; i++)
		put_be32(rig_mem(r, buf) + 64 * i + 4, sq << 8 | 1);
	put_be32(rig_mem(r, db) + 4, 3);
	to_state(MLX5_CMD_OP_MODIFY_SQ, sq, WQ_RDY, WQ_ERR);
	CHECK(!nic_due(r->nic), "due");
	nic_tick(r->nic);
	put_be32(rig_mem(r, db) + 4, 16);
	rig_send_db(r, r->uar, sq);
	for (uint32_t i = 0; i < 16; i++)
		CHECK(rig_cqe(r, &p.tx_cq, cqe) && cqe[55] == 5 &&
			      cqe[63] >> 4 == CQE_REQ_ERR &&
			      get_be16(cqe + 60) == i,
		      "%u", i);
	CHECK(!rig_cqe(r, &p.tx_cq, cqe) && nic_due(r->nic), "all");
	rig_stop(r);
}

/* A WQE that is not all there is the error of its queue, which is told once. */
static void test_sq_broken(bool flush)
{
	static const struct {
		const char *name;
		uint32_t ds, pi;
		bool unmapped, no_record;
		int behind; /* what is flushed, if it is */
	} cases[] = {
		{ "longer than what is posted", 5, 1, false, false, 0 },
		{ "longer than what is posted", 63, 15, false, false, 0 },
		{ "not in memory", 1, 3, true, false, 2 },
		{ "more than the ring has", 1, 17, false, false, 0 },
		{ "much more", 1, 0xffff, false, false, 0 },
		{ "doorbell record not in memory", 1, 1, false, true, 0 },
	};
	struct wq *wq;
	uint8_t cqe[64];
	uint32_t sq;
	int n;

	r = rig_start();
	probe_run(r, &p);
	for (size_t i = 0; i < N_ELEM(cases); i++) {
		sq = new_sq(p.td);
		wq = (struct wq *)obj_find(r->nic, OBJ_SQ, sq);
		SET(sqc, wq->ctx, flush_in_error_en, flush);
		if (cases[i].unmapped)
			wq->pas.page[0] = RIG_NOWHERE;
		if (cases[i].no_record)
			wq->db = RIG_NOWHERE;
		put_be32(rig_mem(r, buf) + 4, sq << 8 | cases[i].ds); /* NOP */
		put_be32(rig_mem(r, db) + 4, cases[i].pi);
		rig_send_db(r, r->uar, sq);
		CHECK(rig_cqe(r, &p.tx_cq, cqe) && cqe[55] == 2 &&
			      cqe[63] >> 4 == CQE_REQ_ERR,
		      "%s: syndrome %u", cases[i].name, cqe[55]);
		CHECK(wq->state == WQ_ERR, "%s: state %u", cases[i].name,
		      wq->state);
		rig_send_db(r, r->uar, sq);
		for (n = 0; rig_cqe(r, &p.tx_cq, cqe); n++)
			CHECK(cqe[55] == 5, "%s: flush", cases[i].name);
		CHECK(n == (flush ? cases[i].behind : 0) && nic_due(r->nic),
		      "%s: %d flushed", cases[i].name, n);
	}
	/* in the error state each ends with an error, and nothing behind them */
	sq = new_sq(p.td);
	wq = (struct wq *)obj_find(r->nic, OBJ_SQ, sq);
	SET(sqc, wq->ctx, flush_in_error_en, 1);
	put_be32(rig_mem(r, buf) + 4, sq << 8 | 1);
	put_be32(rig_mem(r, buf) + 64 + 4, sq << 8 | 63);
	put_be32(rig_mem(r, db) + 4, 2);
	to_state(MLX5_CMD_OP_MODIFY_SQ, sq, WQ_RDY, WQ_ERR);
	for (int i = 0; i < 3; i++)
		nic_tick(r->nic);
	for (int i = 0; i < 2; i++)
		CHECK(rig_cqe(r, &p.tx_cq, cqe) && cqe[55] == 5, "flush");
	CHECK(!rig_cqe(r, &p.tx_cq, cqe) && nic_due(r->nic), "two of them");
	CHECK(wq->ci == 2, "at %u", wq->ci);
	rig_stop(r);
}

/* receive WQEs; posting them is for the tests */
static void fill_rq(void)
{
	uint8_t *wqe = rig_mem(r, p.rq_buf);

	for (uint32_t i = 0; i < 16; i++, wqe += 32) {
		put_be32(wqe, 2 * FRAME);
		put_be32(wqe + 4, p.mkey);
		put_be64(wqe + 8, rig_pages(r, 1));
		put_be32(wqe + 20, END_LKEY);
	}
}

static void test_loopback(void)
{
	static const uint8_t group[6] = { 0x01, 0x50, 0x56, 1, 2, 3 };
	static const uint8_t others[6] = { 0x02, 0x50, 0x56, 1, 2, 3 };
	uint8_t own[6];
	uint32_t td;

	r = rig_start();
	probe_run(r, &p);
	memcpy(own,
	       (uint8_t *)AT(nic_vport_context, r->nic->nic_vport,
			     permanent_address) +
		       2,
	       6);
	fill_rq();
	put_be32(rig_mem(r, p.rq_db), 8);
	/* its own domain is not told what it said itself */
	send(new_sq(p.td), own, false, true, "own address, same domain");
	send(new_sq(p.td), group, false, true, "group, same domain");
	rig_begin(r, MLX5_CMD_OP_ALLOC_TRANSPORT_DOMAIN, 16, 16);
	td = rig_id(r);
	send(new_sq(td), own, true, false, "own address");
	send(new_sq(td), group, true, true, "group");
	send(new_sq(td), others, false, true, "other address");
	rig_stop(r);
}

/* Posts to a receive queue in the error state are flushed, late ones too. */
static void test_flush(void)
{
	uint8_t cqe[64];

	r = rig_start();
	probe_run(r, &p);
	rig_rq_in(r, p.rx_cq.id);
	SET(rqc, AT(create_rq_in, r->in, ctx), flush_in_error_en, 1);
	SET(rqc, AT(create_rq_in, r->in, ctx), user_index, 0x654321);
	db = r->db;
	p.rq = rig_id(r);
	put_be32(rig_mem(r, db), 1);
	to_state(MLX5_CMD_OP_MODIFY_RQ, p.rq, WQ_RST, WQ_ERR);
	CHECK(!nic_due(r->nic), "due");
	nic_tick(r->nic);
	for (uint32_t i = 1; i < 4; i++) {
		CHECK(rig_cqe(r, &p.rx_cq, cqe), "flushed");
		CHECK(cqe[55] == 5 && cqe[63] >> 4 == CQE_RESP_ERR, "how");
		CHECK(get_be32(cqe + 32) == 0x654321, "whose");
		CHECK(!rig_cqe(r, &p.rx_cq, cqe), "one");
		put_be32(rig_mem(r, db), i + 1);
		usleep(IDLE_RECV_NS / 1000 + 1000);
		CHECK(!nic_due(r->nic), "due");
		nic_tick(r->nic);
	}
	CHECK(rig_cqe(r, &p.rx_cq, cqe), "flushed");
	CHECK(!rig_run_id(r, MLX5_CMD_OP_DESTROY_RQ, p.rq), "%s", r->log);
	nic_tick(r->nic);
	usleep(IDLE_RECV_NS / 1000 + 1000);
	nic_tick(r->nic);
	CHECK(nic_due(r->nic), "nothing left");
	rig_stop(r);
}

/* Frames wait for buffers and come in their order; others pass them by. */
static void test_held(void)
{
	uint8_t frame[FRAME] = { 255, 255, 255, 255, 255, 255 }, cqe[64];

	r = rig_start();
	probe_run(r, &p);
	r->nic->mtu = 1522; /* the probe writes 0 */
	fill_rq();
	for (uint32_t i = 0; i < 4; i++) {
		CHECK(write(r->wire, frame, FRAME - i) > 0, "frame");
		nic_wire(r->nic);
	}
	CHECK(nic_wire_events(r->nic) & 1, "it goes on reading");
	CHECK(!rig_cqe(r, &p.rx_cq, cqe), "no buffer");
	nic_tick(r->nic);
	CHECK(nic_due(r->nic) > 0, "looks again");
	put_be32(rig_mem(r, p.rq_db), 2);
	nic_tick(r->nic);
	for (uint32_t i = 0; i < 2; i++)
		CHECK(rig_cqe(r, &p.rx_cq, cqe) &&
			      get_be32(cqe + 44) == FRAME - i,
		      "frame %u", i);
	CHECK(!rig_cqe(r, &p.rx_cq, cqe), "two buffers");
	put_be32(rig_mem(r, p.rq_db), 3);
	nic_tick(r->nic);
	CHECK(rig_cqe(r, &p.rx_cq, cqe) && get_be32(cqe + 44) == FRAME - 2,
	      "the next");
	rig_stop(r); /* with one that waits: nothing leaks */
}

static void expect_frame(uint32_t len, const char *what)
{
	uint8_t cqe[64];

	CHECK(rig_cqe(r, &p.rx_cq, cqe), "%s: nothing", what);
	CHECK(get_be32(cqe + 44) == len, "%s: %u bytes", what,
	      get_be32(cqe + 44));
}

/*
 * A queue without buffers holds up nobody else: the others have their frames at
 * once. Its own come in order when there are buffers, with those of the guest.
 */
static void test_held_apart(void)
{
	uint8_t frame[FRAME] = { 255, 255, 255, 255, 255, 255 }, cqe[64], *tirc;
	struct q_counter *counter;
	uint64_t starved_db;
	uint32_t starved;

	r = rig_start();
	probe_run(r, &p);
	r->nic->mtu = 1522;
	starved = p.rq;
	starved_db = p.rq_db;
	fill_rq();
	rig_begin(r, MLX5_CMD_OP_ALLOC_Q_COUNTER, 16, 16);
	counter =
		(struct q_counter *)obj_find(r->nic, OBJ_Q_COUNTER, rig_id(r));
	rig_rq_in(r, p.rx_cq.id);
	p.rq_buf = r->buf;
	p.rq_db = r->db;
	p.rq = rig_id(r);
	to_state(MLX5_CMD_OP_MODIFY_RQ, p.rq, WQ_RST, WQ_RDY);
	fill_rq();
	put_be32(rig_mem(r, p.rq_db), 8);
	SET(rqc, ((struct wq *)obj_find(r->nic, OBJ_RQ, starved))->ctx,
	    counter_set_id, counter->obj.id);
	tirc = ((struct tir *)obj_find(r->nic, OBJ_TIR, p.tir))->ctx;
	for (uint32_t i = 0; i < 6; i++) {
		/* by turns to the one without buffers and to the other one */
		SET(tirc, tirc, disp_type, 0);
		SET(tirc, tirc, inline_rqn, i & 1 ? p.rq : starved);
		CHECK(write(r->wire, frame, FRAME - i) > 0, "frame");
		nic_wire(r->nic);
		if (i & 1)
			expect_frame(FRAME - i, "another queue");
		CHECK(!rig_cqe(r, &p.rx_cq, cqe), "no buffer");
	}
	put_be32(rig_mem(r, starved_db), 1);
	nic_tick(r->nic);
	expect_frame(FRAME, "the first that waited");
	/* one that comes when there are buffers is behind those that wait */
	put_be32(rig_mem(r, starved_db), 16);
	SET(tirc, tirc, inline_rqn, starved);
	CHECK(write(r->wire, frame, FRAME - 10) > 0, "frame");
	nic_wire(r->nic);
	expect_frame(FRAME - 2, "the second");
	expect_frame(FRAME - 4, "the third");
	expect_frame(FRAME - 10, "the last");
	CHECK(nic_due(r->nic), "nothing waits");
	CHECK(!counter->out_of_buffer, "nothing was lost");
	/* a queue that is reset forgets its frames */
	put_be32(rig_mem(r, starved_db), 4);
	CHECK(write(r->wire, frame, FRAME) > 0, "frame");
	nic_wire(r->nic);
	to_state(MLX5_CMD_OP_MODIFY_RQ, starved, WQ_RDY, WQ_RST);
	to_state(MLX5_CMD_OP_MODIFY_RQ, starved, WQ_RST, WQ_RDY);
	nic_tick(r->nic);
	CHECK(!rig_cqe(r, &p.rx_cq, cqe) && !r->nic->held_bytes, "forgotten");
	rig_stop(r);
}

/* Many frames that waited and can be received are no more than a turn each. */
static void test_held_turns(void)
{
	uint8_t frame[FRAME] = { 255, 255, 255, 255, 255, 255 }, cqe[64];
	uint32_t count = 600, n, all = 0, turns = 0;
	bool more;

	r = rig_start();
	probe_run(r, &p);
	r->nic->mtu = 1522;
	fill_rq();
	rig_cq_in(r, 12, p.comp_eq.id);
	p.rx_cq = (struct rig_ring){ .log_size = 12, .buf = r->buf };
	((struct wq *)obj_find(r->nic, OBJ_RQ, p.rq))->cq =
		(struct cq *)obj_find(r->nic, OBJ_CQ, rig_id(r));
	for (n = 0; n < count; n++) {
		CHECK(write(r->wire, frame, FRAME) > 0, "frame");
		nic_wire(r->nic);
	}
	CHECK(r->nic->held_bytes > count * (FRAME + sizeof(void *)),
	      "%u bytes: the frames are not all that it takes",
	      r->nic->held_bytes);
	put_be32(rig_mem(r, p.rq_db), count); /* around and around */
	do {
		/* one that comes is behind those that wait */
		if (!turns && write(r->wire, frame, FRAME - 1) > 0)
			nic_wire(r->nic);
		more = nic_tick(r->nic);
		for (n = 0; rig_cqe(r, &p.rx_cq, cqe); n++)
			CHECK(get_be32(cqe + 44) == FRAME, "too early");
		CHECK(n <= 512, "%u frames in a turn", n);
		all += n;
		CHECK(more || all == count, "no more of %u", all);
	} while (more && ++turns < 10);
	CHECK(all == count && turns, "%u frames, %u turns", all, turns);
	put_be32(rig_mem(r, p.rq_db), count + 1);
	nic_tick(r->nic);
	expect_frame(FRAME - 1, "the last");
	CHECK(!r->nic->held_bytes, "%u bytes", r->nic->held_bytes);
	rig_stop(r);
}

/* What the RQ of the probe counts, from now on */
static struct q_counter *count_rq(void)
{
	struct q_counter *counter;

	rig_begin(r, MLX5_CMD_OP_ALLOC_Q_COUNTER, 16, 16);
	counter =
		(struct q_counter *)obj_find(r->nic, OBJ_Q_COUNTER, rig_id(r));
	SET(rqc, ((struct wq *)obj_find(r->nic, OBJ_RQ, p.rq))->ctx,
	    counter_set_id, counter->obj.id);
	return counter;
}

/* When the time of one is up, none is kept any more until there are buffers. */
static void test_starved(void)
{
	uint8_t frame[FRAME] = { 255, 255, 255, 255, 255, 255 }, cqe[64];
	struct q_counter *counter;
	uint32_t one;

	r = rig_start();
	probe_run(r, &p);
	r->nic->mtu = 1522;
	fill_rq();
	counter = count_rq();
	for (uint32_t i = 0; i < 3; i++) {
		CHECK(write(r->wire, frame, FRAME) > 0, "frame");
		nic_wire(r->nic);
	}
	one = r->nic->held_bytes / 3;
	CHECK(!counter->out_of_buffer && one >= FRAME, "%u bytes wait", one);
	while (!counter->out_of_buffer) {
		usleep(1000);
		nic_tick(r->nic);
	}
	CHECK(counter->out_of_buffer == 3 && !r->nic->held_bytes, "%u",
	      counter->out_of_buffer);
	CHECK(write(r->wire, frame, FRAME) > 0, "frame");
	nic_wire(r->nic);
	CHECK(counter->out_of_buffer == 4 && !r->nic->held_bytes, "%u",
	      counter->out_of_buffer);
	put_be32(rig_mem(r, p.rq_db), 1);
	for (uint32_t i = 0; i < 2; i++) {
		CHECK(write(r->wire, frame, FRAME) > 0, "frame");
		nic_wire(r->nic);
	}
	CHECK(rig_cqe(r, &p.rx_cq, cqe), "a buffer");
	CHECK(counter->out_of_buffer == 4 && r->nic->held_bytes == one,
	      "the next waits again");
	rig_stop(r);
}

/*
 * The guest's own frame that finds no buffer is lost and counted, and frames
 * from the wire wait as before.
 */
static void test_own_starved(void)
{
	static const uint8_t group[6] = { 0x01, 0x50, 0x56, 1, 2, 3 };
	uint8_t frame[FRAME] = { 255, 255, 255, 255, 255, 255 };
	struct q_counter *counter;
	uint32_t td;

	r = rig_start();
	probe_run(r, &p);
	r->nic->mtu = 1522;
	fill_rq();
	counter = count_rq();
	rig_begin(r, MLX5_CMD_OP_ALLOC_TRANSPORT_DOMAIN, 16, 16);
	td = rig_id(r);
	send(new_sq(td), group, false, true, "group, no buffer");
	CHECK(counter->out_of_buffer == 1 && !r->nic->held_bytes, "%u",
	      counter->out_of_buffer);
	CHECK(write(r->wire, frame, FRAME) > 0, "frame");
	nic_wire(r->nic);
	CHECK(counter->out_of_buffer == 1 && r->nic->held_bytes, "%u",
	      counter->out_of_buffer);
	put_be32(rig_mem(r, p.rq_db), 1);
	nic_tick(r->nic);
	expect_frame(FRAME, "it has waited");
	rig_stop(r);
}

/* A receive WQE that is not in memory is the error of its queue. */
static void test_rq_unreadable(void)
{
	uint8_t frame[FRAME] = { 255, 255, 255, 255, 255, 255 }, cqe[64];
	struct wq *wq;

	r = rig_start();
	probe_run(r, &p);
	r->nic->mtu = 1522;
	wq = (struct wq *)obj_find(r->nic, OBJ_RQ, p.rq);
	wq->pas.page[0] = RIG_NOWHERE;
	SET(rqc, wq->ctx, flush_in_error_en, 1);
	put_be32(rig_mem(r, p.rq_db), 2);
	CHECK(write(r->wire, frame, FRAME) > 0, "frame");
	nic_wire(r->nic);
	nic_tick(r->nic);
	for (uint32_t i = 0; i < 2; i++)
		CHECK(rig_cqe(r, &p.rx_cq, cqe) &&
			      cqe[63] >> 4 == CQE_RESP_ERR &&
			      cqe[55] == (i ? 5 : 4) && get_be16(cqe + 60) == i,
		      "%u: syndrome %u", i, cqe[55]);
	CHECK(!rig_cqe(r, &p.rx_cq, cqe) && wq->state == WQ_ERR, "state %u",
	      wq->state);
	rig_stop(r);
}

#define IDLE_RQS 1500

/*
 * Queues in the error state that get nothing are looked at ever more rarely,
 * and not all of many in one turn.
 */
static void test_flush_idle(void)
{
	uint32_t rq[IDLE_RQS], n;
	uint64_t start;
	uint8_t cqe[64];
	int64_t due;

	r = rig_start();
	probe_run(r, &p);
	for (n = 0; n < IDLE_RQS; n++) {
		rig_rq_in(r, p.rx_cq.id);
		r->free -= 2 * RIG_PAGE; /* all have the same memory */
		SET(rqc, AT(create_rq_in, r->in, ctx), flush_in_error_en, 1);
		rq[n] = rig_id(r);
		to_state(MLX5_CMD_OP_MODIFY_RQ, rq[n], WQ_RST, WQ_ERR);
	}
	nic_tick(r->nic);
	CHECK(!nic_due(r->nic), "not all in one turn");
	start = nic_now();
	while (!(due = nic_due(r->nic)) && nic_now() - start < 2000000000)
		nic_tick(r->nic);
	CHECK(due > 0, "no pause");
	while (--n)
		CHECK(!rig_run_id(r, MLX5_CMD_OP_DESTROY_RQ, rq[n]), "%s",
		      r->log);
	start = nic_now();
	while ((due = nic_due(r->nic)) < 50000000 &&
	       nic_now() - start < 2000000000)
		nic_tick(r->nic);
	CHECK(due >= 50000000, "still after %ld us", due / 1000);
	/* what is posted then is found, and what follows soon */
	put_be32(rig_mem(r, r->db), 1);
	for (n = 0; n < 2; n++) {
		while (!rig_cqe(r, &p.rx_cq, cqe) &&
		       nic_now() - start < 4000000000)
			nic_tick(r->nic);
		CHECK(cqe[55] == 5 && get_be16(cqe + 60) == n, "%u", n);
		CHECK(nic_due(r->nic) <= IDLE_RECV_NS, "again in %ld us",
		      nic_due(r->nic) / 1000);
		put_be32(rig_mem(r, r->db), 2);
	}
	rig_stop(r);
}

/* A full ring in the error state does not hold up the loop. */
static void test_flush_turns(void)
{
	uint8_t cqe[64];
	uint32_t cqn, n;

	r = rig_start();
	probe_run(r, &p);
	rig_cq_in(r, 12, p.comp_eq.id);
	p.rx_cq = (struct rig_ring){ .log_size = 12, .buf = r->buf };
	cqn = rig_id(r);
	for (int i = 0; i < 2; i++) {
		rig_rq_in(r, cqn);
		db = r->db;
		SET(rqc, AT(create_rq_in, r->in, ctx), flush_in_error_en, 1);
		p.rq = rig_id(r);
		/* as if its ring were of 2048 entries */
		((struct wq *)obj_find(r->nic, OBJ_RQ, p.rq))->log_size = 11;
		put_be32(rig_mem(r, db), 1500 + i);
		to_state(MLX5_CMD_OP_MODIFY_RQ, p.rq, WQ_RST, WQ_ERR);
	}
	CHECK(!rig_cqe(r, &p.rx_cq, cqe), "nothing within the command");
	for (int i = 0; i < 3; i++) {
		nic_tick(r->nic);
		for (n = 0; rig_cqe(r, &p.rx_cq, cqe);)
			n++;
		CHECK(n == (i < 2 ? 1024 : 3001 - 2048), "turn %d: %u", i, n);
	}
	rig_stop(r);
}

/* The same bytes, by their address and in the WQE itself, also in two parts */
static void test_inline(void)
{
	uint8_t *wqe, frame[2 * FRAME], want[FRAME], cqe[64];
	uint64_t data;
	uint32_t sq, first;

	r = rig_start();
	probe_run(r, &p);
	sq = new_sq(p.td);
	data = rig_pages(r, 1);
	for (uint32_t i = 0; i < FRAME; i++)
		want[i] = 2 + i;
	memcpy(rig_mem(r, data), want, FRAME);
	for (uint32_t i = 0; i < 4; i++) {
		/* all, the first 10 and the rest, 20 and the rest by address */
		first = (const uint32_t[]){ 0, FRAME, 10, 20 }[i];
		wqe = rig_mem(r, buf) + 256 * i;
		put_be32(wqe, 0x0a); /* send */
		put_be32(wqe + 4, sq << 8 | 13);
		wqe[11] = 8; /* signaled */
		wqe += 32;
		if (first) {
			put_be32(wqe, 0x80000000U | first);
			memcpy(wqe + 4, want, first);
			wqe += (4 + first + 15) & ~15U;
		}
		if (i == 2) {
			put_be32(wqe, 0x80000000U | (FRAME - first));
			memcpy(wqe + 4, want + first, FRAME - first);
		} else if (first < FRAME) {
			put_be32(wqe, FRAME - first);
			put_be32(wqe + 4, p.mkey);
			put_be64(wqe + 8, data + first);
		}
		put_be32(rig_mem(r, db) + 4, 4 * (i + 1));
		rig_send_db(r, r->uar, sq);
		CHECK(rig_cqe(r, &p.tx_cq, cqe) && cqe[63] >> 4 == CQE_REQ,
		      "%u: opcode %u", i, cqe[63] >> 4);
		CHECK(read(r->wire, frame, sizeof(frame)) == FRAME &&
			      !memcmp(frame, want, FRAME),
		      "%u: another frame", i);
	}
	rig_stop(r);
	/* more than is in the WQE */
	r = rig_start();
	probe_run(r, &p);
	sq = new_sq(p.td);
	wqe = rig_mem(r, buf);
	put_be32(wqe, 0x0a);
	put_be32(wqe + 4, sq << 8 | 6);
	put_be32(wqe + 32, 0x80000000U | 61);
	put_be32(rig_mem(r, db) + 4, 2);
	rig_send_db(r, r->uar, sq);
	CHECK(rig_cqe(r, &p.tx_cq, cqe) && cqe[63] >> 4 == CQE_REQ_ERR &&
		      cqe[55] == 2,
	      "syndrome %u", cqe[55]);
	CHECK(read(r->wire, frame, sizeof(frame)) < 0, "sent");
	rig_stop(r);
}

#define MESSAGE (4U << 20)

/* A WRITE that goes on and on, of a service that waits for no answer */
static void endless_rdma(void)
{
	uint64_t page = rig_pages(r, 1), sq;
	uint32_t key, qp;
	uint8_t *wqe;

	rig_mkey_in(r, page, 0, RIG_PAGE);
	SET(mkc, AT(create_mkey_in, r->in, memory_key_mkey_entry), len,
	    MESSAGE);
	SET(create_mkey_in, r->in, translations_octword_actual_size,
	    MESSAGE / RIG_PAGE / 2);
	r->in_len = BYTES(create_mkey_in);
	for (uint32_t i = 0; i < MESSAGE / RIG_PAGE; i++, r->in_len += 8)
		put_be64(r->in + r->in_len, page);
	key = rig_id(r) << 8 | 0x5a;
	rig_address(r);
	/* the peer is somebody else */
	((uint8_t *)AT(roce_addr_layout,
		       AT(set_roce_address_in, r->in, roce_address),
		       source_mac_47_32))[5] ^= 1;
	CHECK(!rig_run(r), "%s", r->log);
	rig_qp_in(r, 1, p.rx_cq.id);
	sq = r->buf + (32 << 4);
	qp = rig_id(r);
	rig_connect(r, qp, qp);
	wqe = rig_mem(r, sq);
	put_be32(wqe, WQE_WRITE);
	put_be32(wqe + 4, qp << 8 | 3);
	put_be32(wqe + 32, MESSAGE);
	put_be32(wqe + 36, key);
	put_be32(rig_mem(r, r->db) + 4, 1);
	host_write64(r->host, r->uar * RIG_PAGE + 0x800, (uint64_t)qp << 8);
}

/* Frames on a wire that takes `each` at a time: of which kind are they? */
static void drain(uint32_t count[2], uint32_t frames, uint32_t each)
{
	uint8_t frame[2048];

	for (uint32_t i = 0; i < frames; i++) {
		if (read(r->wire, frame, sizeof(frame)) < 0)
			return;
		count[frame[0] == 2]++;
		if (i % each == each - 1) {
			nic_wire(r->nic);
			nic_tick(r->nic);
		}
	}
}

/* When the wire is full, RDMA and Ethernet both have their share. */
static void test_share(uint32_t each)
{
	uint32_t sq, before[2] = { 0 }, count[2] = { 0 };

	r = rig_start();
	probe_run(r, &p);
	sq = new_sq(p.td);
	put_large_send(rig_mem(r, buf), sq);
	endless_rdma();
	nic_tick(r->nic);
	put_be32(rig_mem(r, db) + 4, 2);
	rig_send_db(r, r->uar, sq);
	CHECK(nic_wire_events(r->nic) & POLLOUT, "the wire is not full");
	drain(before, 1200, each); /* what is under way */
	drain(count, 400, each);
	CHECK(count[0] + count[1] == 400, "%u at a time: %u RDMA, %u Ethernet",
	      each, count[0], count[1]);
	CHECK(count[0] >= 100 && count[1] >= 100,
	      "%u at a time: %u RDMA, %u Ethernet", each, count[0], count[1]);
	rig_stop(r);
}

int main(void)
{
	test_share(1);
	test_share(2);
	test_share(4);
	test_inline();
	test_turns();
	test_sq_flush();
	test_sq_broken(false);
	test_sq_broken(true);
	test_loopback();
	test_held();
	test_held_apart();
	test_held_turns();
	test_starved();
	test_own_starved();
	test_rq_unreadable();
	test_flush();
	test_flush_turns();
	test_flush_idle();
	return check_result();
}
