// SPDX-License-Identifier: GPL-2.0
/* Ethernet receive queues: the guest's own frames, frames without a buffer */
#include <unistd.h>

#include "cq.h"
#include "eq.h"
#include "nic.h"
#include "probe.h"
#include "rdma/wqe.h"

#define FRAME 64U

static struct rig *r;
static struct probe p;

/*
 * A new send queue of this transport domain sends a frame: is it received, is
 * it on the wire?
 */
static void send(uint32_t td, const uint8_t dst[6], bool back, bool out,
		 const char *what)
{
	uint32_t sq = rig_sq(r, td, p.tx_cq.id);
	uint8_t *wqe = rig_mem(r, r->buf), frame[2 * FRAME], cqe[64];
	uint64_t data = rig_pages(r, 1);

	memset(rig_mem(r, data), 0x5a, FRAME);
	memcpy(rig_mem(r, data), dst, 6);
	put_be32(wqe, 0x0a); /* send */
	put_be32(wqe + 4, sq << 8 | 3);
	put_be32(wqe + 32, FRAME);
	put_be32(wqe + 36, p.mkey);
	put_be64(wqe + 40, data);
	put_be32(rig_mem(r, r->db) + 4, 1);
	rig_send_db(r, r->uar, sq);
	CHECK(rig_cqe(r, &p.rx_cq, cqe) == back, "%s: received", what);
	CHECK((read(r->wire, frame, sizeof(frame)) == FRAME) == out, "%s: sent",
	      what);
}

/* a page of receive WQEs; posting them is for the tests */
static void fill_rq(void)
{
	uint8_t *wqe = rig_mem(r, p.rq_buf);
	uint64_t data = rig_pages(r, 1);

	for (uint32_t i = 0; i < RIG_PAGE / 32; i++, wqe += 32) {
		put_be32(wqe, 2 * FRAME);
		put_be32(wqe + 4, p.mkey);
		put_be64(wqe + 8, data);
		put_be32(wqe + 20, END_LKEY);
	}
}

/* Frames go to a new queue with room for 1024, whose pages are all the same. */
static void large_rq(void)
{
	uint8_t *tirc = ((struct tir *)obj_find(r->nic, OBJ_TIR, p.tir))->ctx;

	rig_cq_in(r, 12, p.comp_eq.id);
	p.rx_cq = (struct rig_ring){ .log_size = 12, .buf = r->buf };
	rig_rq_in(r, rig_id(r));
	SET(wq, AT(rqc, AT(create_rq_in, r->in, ctx), wq), log_wq_sz, 10);
	for (int i = 1; i < 8; i++, r->in_len += 8)
		put_be64(r->in + r->in_len, r->buf);
	p.rq_buf = r->buf;
	p.rq_db = r->db;
	p.rq = rig_id(r);
	rig_wq_state(r, MLX5_CMD_OP_MODIFY_RQ, p.rq, WQ_RST, WQ_RDY);
	fill_rq();
	SET(tirc, tirc, disp_type, 0);
	SET(tirc, tirc, inline_rqn, p.rq);
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
	send(p.td, own, false, true, "own address, same domain");
	send(p.td, group, false, true, "group, same domain");
	rig_begin(r, MLX5_CMD_OP_ALLOC_TRANSPORT_DOMAIN, 16, 16);
	td = rig_id(r);
	send(td, own, true, false, "own address");
	send(td, group, true, true, "group");
	send(td, others, false, true, "other address");
	rig_stop(r);
}

/* Posts to a receive queue in the error state are flushed, late ones too. */
static void test_flush(void)
{
	uint8_t cqe[64];
	uint64_t db;

	r = rig_start();
	probe_run(r, &p);
	rig_rq_in(r, p.rx_cq.id);
	SET(rqc, AT(create_rq_in, r->in, ctx), flush_in_error_en, 1);
	SET(rqc, AT(create_rq_in, r->in, ctx), user_index, 0x654321);
	db = r->db;
	p.rq = rig_id(r);
	put_be32(rig_mem(r, db), 1);
	rig_wq_state(r, MLX5_CMD_OP_MODIFY_RQ, p.rq, WQ_RST, WQ_ERR);
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
		rig_wire(r);
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
	rig_wq_state(r, MLX5_CMD_OP_MODIFY_RQ, p.rq, WQ_RST, WQ_RDY);
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
		rig_wire(r);
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
	rig_wire(r);
	expect_frame(FRAME - 2, "the second");
	expect_frame(FRAME - 4, "the third");
	expect_frame(FRAME - 10, "the last");
	CHECK(nic_due(r->nic), "nothing waits");
	CHECK(!counter->out_of_buffer, "nothing was lost");
	/* a queue that is reset forgets its frames */
	put_be32(rig_mem(r, starved_db), 4);
	CHECK(write(r->wire, frame, FRAME) > 0, "frame");
	rig_wire(r);
	rig_wq_state(r, MLX5_CMD_OP_MODIFY_RQ, starved, WQ_RDY, WQ_RST);
	rig_wq_state(r, MLX5_CMD_OP_MODIFY_RQ, starved, WQ_RST, WQ_RDY);
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
	large_rq();
	for (n = 0; n < count; n++) {
		CHECK(write(r->wire, frame, FRAME) > 0, "frame");
		rig_wire(r);
	}
	CHECK(r->nic->held_bytes > count * (FRAME + sizeof(void *)),
	      "%u bytes: the frames are not all that it takes",
	      r->nic->held_bytes);
	put_be32(rig_mem(r, p.rq_db), count);
	do {
		/* one that comes is behind those that wait */
		if (!turns && write(r->wire, frame, FRAME - 1) > 0)
			rig_wire(r);
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
		rig_wire(r);
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
	rig_wire(r);
	CHECK(counter->out_of_buffer == 4 && !r->nic->held_bytes, "%u",
	      counter->out_of_buffer);
	put_be32(rig_mem(r, p.rq_db), 1);
	for (uint32_t i = 0; i < 2; i++) {
		CHECK(write(r->wire, frame, FRAME) > 0, "frame");
		rig_wire(r);
	}
	CHECK(rig_cqe(r, &p.rx_cq, cqe), "a buffer");
	CHECK(counter->out_of_buffer == 4 && r->nic->held_bytes == one,
	      "the next waits again");
	rig_stop(r);
}

/* Many of them are dropped by turns as well. */
static void test_starved_turns(void)
{
	uint8_t frame[FRAME] = { 255, 255, 255, 255, 255, 255 };
	const uint32_t count = 1000;
	struct q_counter *counter;
	uint64_t before = 0;
	uint32_t turns = 0;

	r = rig_start();
	probe_run(r, &p);
	r->nic->mtu = 1522;
	counter = count_rq();
	for (uint32_t n = 0; n < count; n++) {
		CHECK(write(r->wire, frame, FRAME) > 0, "frame");
		rig_wire(r);
	}
	usleep(500000);
	for (; counter->out_of_buffer < count && turns < 100; turns++) {
		before = counter->out_of_buffer;
		CHECK(nic_tick(r->nic) || counter->out_of_buffer == count,
		      "no more");
		CHECK(counter->out_of_buffer - before <= 256,
		      "%lu frames in a turn", counter->out_of_buffer - before);
	}
	CHECK(counter->out_of_buffer == count && !r->nic->held_bytes,
	      "%u, and %u bytes wait", counter->out_of_buffer,
	      r->nic->held_bytes);
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
	send(td, group, false, true, "group, no buffer");
	CHECK(counter->out_of_buffer == 1 && !r->nic->held_bytes, "%u",
	      counter->out_of_buffer);
	CHECK(write(r->wire, frame, FRAME) > 0, "frame");
	rig_wire(r);
	CHECK(counter->out_of_buffer == 1 && r->nic->held_bytes, "%u",
	      counter->out_of_buffer);
	put_be32(rig_mem(r, p.rq_db), 1);
	nic_tick(r->nic);
	expect_frame(FRAME, "it has waited");
	rig_stop(r);
}

/* `count` frames from the wire */
static void receive(int count)
{
	uint8_t frame[FRAME] = { 255, 255, 255, 255, 255, 255 };

	for (int i = 0; i < count; i++) {
		CHECK(write(r->wire, frame, FRAME) > 0, "frame");
		rig_wire(r);
	}
}

/*
 * A receive WQE that is not in memory is the error of its queue. Frames that
 * wait behind the one that it was for are lost, and counted.
 */
static void test_rq_unreadable(bool waits)
{
	struct q_counter *counter;
	uint8_t cqe[64];
	struct wq *wq;

	r = rig_start();
	probe_run(r, &p);
	r->nic->mtu = 1522;
	counter = count_rq();
	wq = (struct wq *)obj_find(r->nic, OBJ_RQ, p.rq);
	wq->pas.page[0] = RIG_NOWHERE;
	SET(rqc, wq->ctx, flush_in_error_en, 1);
	if (waits)
		receive(3);
	put_be32(rig_mem(r, p.rq_db), 2);
	if (!waits)
		receive(1);
	nic_tick(r->nic);
	nic_tick(r->nic);
	for (uint32_t i = 0; i < 2; i++)
		CHECK(rig_cqe(r, &p.rx_cq, cqe) &&
			      cqe[63] >> 4 == CQE_RESP_ERR &&
			      cqe[55] == (i ? 5 : 4) && get_be16(cqe + 60) == i,
		      "%u: syndrome %u", i, cqe[55]);
	CHECK(!rig_cqe(r, &p.rx_cq, cqe) && wq->state == WQ_ERR, "state %u",
	      wq->state);
	CHECK(counter->out_of_buffer == (waits ? 2 : 0), "%u lost",
	      counter->out_of_buffer);
	rig_stop(r);
}

/* The probe's queue, whose record spoils while frames wait or when one comes */
static struct wq *spoil_rq(bool flush, uint16_t record, bool unmapped,
			   bool waits)
{
	uint8_t eqe[64];
	struct wq *wq;

	r = rig_start();
	probe_run(r, &p);
	while (rig_eqe(r, &p.async_eq, eqe))
		;
	r->nic->mtu = 1522;
	fill_rq();
	wq = (struct wq *)obj_find(r->nic, OBJ_RQ, p.rq);
	SET(rqc, wq->ctx, flush_in_error_en, flush);
	if (waits) {
		receive(2);
		CHECK(r->nic->held_bytes, "they do not wait");
	}
	put_be32(rig_mem(r, p.rq_db), record);
	if (unmapped)
		wq->db = RIG_NOWHERE;
	return wq;
}

/*
 * A doorbell record that cannot be read, or says what cannot be: an event tells,
 * and no CQE, and the frames are lost. What is posted is flushed when the record
 * is right.
 */
static void test_rq_lost(const char *what, uint16_t record, bool unmapped,
			 bool waits)
{
	struct wq *wq = spoil_rq(true, record, unmapped, waits);
	struct q_counter *counter = count_rq();
	uint8_t cqe[64], eqe[64];
	uint64_t start;

	if (!waits)
		receive(1);
	for (int i = 0; i < 3; i++)
		nic_tick(r->nic);
	CHECK(wq->state == WQ_ERR && !wq->ci && !r->nic->held_bytes,
	      "%s: state %u, at %u", what, wq->state, wq->ci);
	CHECK(counter->out_of_buffer == (waits ? 2 : 1), "%s: %u lost", what,
	      counter->out_of_buffer);
	CHECK(!rig_cqe(r, &p.rx_cq, cqe), "%s: opcode %u", what, cqe[63] >> 4);
	CHECK(rig_eqe(r, &p.async_eq, eqe) && eqe[1] == EVENT_QP_FATAL &&
		      eqe[32 + 20] == QUEUE_RQ && get_be32(eqe + 56) == p.rq,
	      "%s: no event", what);
	wq->db = p.rq_db;
	put_be32(rig_mem(r, p.rq_db), 2);
	start = nic_now();
	while (wq->ci != 2 && nic_now() - start < 2000000000)
		nic_tick(r->nic);
	for (int i = 0; i < 2; i++)
		CHECK(rig_cqe(r, &p.rx_cq, cqe) && cqe[55] == 5 &&
			      get_be16(cqe + 60) == i,
		      "%s: syndrome %u", what, cqe[55]);
	CHECK(!rig_cqe(r, &p.rx_cq, cqe) && !rig_eqe(r, &p.async_eq, eqe),
	      "%s: once", what);
	rig_stop(r);
}

/*
 * The same of a queue that is not flushed, as those of mlx5e: it has no buffer.
 * Frames wait, are lost in the end and counted; it goes on when the record is
 * right, before that and after it.
 */
static void test_rq_unknown(const char *what, uint16_t record, bool unmapped,
			    bool waits)
{
	struct wq *wq = spoil_rq(false, record, unmapped, waits);
	struct q_counter *counter = count_rq();
	uint32_t count = waits ? 2 : 1;
	uint8_t cqe[64], eqe[64];
	uint64_t start;

	for (int turn = 0; turn < 2; turn++) {
		*r->log = 0;
		if (turn || !waits)
			receive(count);
		nic_tick(r->nic);
		CHECK(wq->state == WQ_RDY && wq->held_count == count,
		      "%s: state %u, %u wait", what, wq->state, wq->held_count);
		CHECK(strstr(r->log, "doorbell record"), "%s: '%s'", what,
		      r->log);
		*r->log = 0;
		start = nic_now();
		while (turn && r->nic->held_bytes &&
		       nic_now() - start < 2000000000)
			nic_tick(r->nic);
		CHECK(counter->out_of_buffer == (turn ? count : 0),
		      "%s: %u lost", what, counter->out_of_buffer);
		CHECK(!rig_cqe(r, &p.rx_cq, cqe) &&
			      !rig_eqe(r, &p.async_eq, eqe),
		      "%s: it ends", what);
		CHECK(!*r->log, "%s: again: '%s'", what, r->log);
		wq->db = p.rq_db;
		put_be32(rig_mem(r, p.rq_db), wq->ci + count);
		if (turn)
			receive(count);
		nic_tick(r->nic);
		for (uint32_t i = 0; i < count; i++)
			expect_frame(FRAME, what);
		put_be32(rig_mem(r, p.rq_db), wq->ci + record);
		if (unmapped)
			wq->db = RIG_NOWHERE;
	}
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
		rig_wq_state(r, MLX5_CMD_OP_MODIFY_RQ, rq[n], WQ_RST, WQ_ERR);
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
		SET(rqc, AT(create_rq_in, r->in, ctx), flush_in_error_en, 1);
		p.rq = rig_id(r);
		/* as if its ring were of 2048 entries */
		((struct wq *)obj_find(r->nic, OBJ_RQ, p.rq))->log_size = 11;
		put_be32(rig_mem(r, r->db), 1500 + i);
		rig_wq_state(r, MLX5_CMD_OP_MODIFY_RQ, p.rq, WQ_RST, WQ_ERR);
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

int main(void)
{
	test_loopback();
	test_held();
	test_held_apart();
	test_held_turns();
	test_starved();
	test_starved_turns();
	test_own_starved();
	test_rq_unreadable(false);
	test_rq_unreadable(true);
	for (int i = 0; i < 2; i++) {
		test_rq_lost("more than the ring has", 17, false, i);
		test_rq_lost("back", -1, false, i);
		test_rq_lost("not in memory", 1, true, i);
		test_rq_unknown("more than the ring has", 17, false, i);
		test_rq_unknown("back", -1, false, i);
		test_rq_unknown("not in memory", 1, true, i);
	}
	test_flush();
	test_flush_turns();
	test_flush_idle();
	return check_result();
}
