// SPDX-License-Identifier: GPL-2.0
/* Ethernet send queues: turns, errors, inline data, the wire's share */
#include <poll.h>
#include <unistd.h>

#include "cq.h"
#include "eq.h"
#include "nic.h"
#include "probe.h"
#include "rdma/rdma.h"
#include "rdma/wqe.h"

#define FRAME 64U

static struct rig *r;
static struct probe p;
static uint64_t db, buf;

/* a send queue */
static uint32_t new_sq(void)
{
	uint32_t sq = rig_sq(r, p.td, p.tx_cq.id);

	db = r->db;
	buf = r->buf;
	return sq;
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
	large = new_sq();
	put_large_send(rig_mem(r, buf), large);
	put_large_send(rig_mem(r, buf) + 128, large);
	put_be32(rig_mem(r, db) + 4, 4);
	host_write64(r->host, r->uar * RIG_PAGE + 0x800, (uint64_t)large << 8);
	CHECK(!r->nic->port.tx_discards, "%lu frames within the doorbell",
	      r->nic->port.tx_discards);
	CHECK(!nic_due(r->nic), "due");
	other = new_sq();
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
	large = new_sq();
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
	sq = new_sq();
	SET(sqc, ((struct wq *)obj_find(r->nic, OBJ_SQ, sq))->ctx,
	    flush_in_error_en, 1);
	for (uint32_t i = 0; i < 16; i++)
		put_be32(rig_mem(r, buf) + 64 * i + 4, sq << 8 | 1);
	put_be32(rig_mem(r, db) + 4, 3);
	rig_wq_state(r, MLX5_CMD_OP_MODIFY_SQ, sq, WQ_RDY, WQ_ERR);
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
		bool unmapped;
		int behind; /* what is flushed, if it is */
	} cases[] = {
		{ "longer than what is posted", 5, 1, false, 0 },
		{ "longer than what is posted", 63, 15, false, 0 },
		{ "not in memory", 1, 3, true, 2 },
	};
	struct wq *wq;
	uint8_t cqe[64];
	uint32_t sq;
	int n;

	r = rig_start();
	probe_run(r, &p);
	for (size_t i = 0; i < N_ELEM(cases); i++) {
		sq = new_sq();
		wq = (struct wq *)obj_find(r->nic, OBJ_SQ, sq);
		SET(sqc, wq->ctx, flush_in_error_en, flush);
		if (cases[i].unmapped)
			wq->pas.page[0] = RIG_NOWHERE;
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
	sq = new_sq();
	wq = (struct wq *)obj_find(r->nic, OBJ_SQ, sq);
	SET(sqc, wq->ctx, flush_in_error_en, 1);
	put_be32(rig_mem(r, buf) + 4, sq << 8 | 1);
	put_be32(rig_mem(r, buf) + 64 + 4, sq << 8 | 63);
	put_be32(rig_mem(r, db) + 4, 2);
	rig_wq_state(r, MLX5_CMD_OP_MODIFY_SQ, sq, WQ_RDY, WQ_ERR);
	for (int i = 0; i < 3; i++)
		nic_tick(r->nic);
	for (int i = 0; i < 2; i++)
		CHECK(rig_cqe(r, &p.tx_cq, cqe) && cqe[55] == 5, "flush");
	CHECK(!rig_cqe(r, &p.tx_cq, cqe) && nic_due(r->nic), "two of them");
	CHECK(wq->ci == 2, "at %u", wq->ci);
	rig_stop(r);
}

/*
 * A doorbell record that cannot be read, or says what cannot be: nobody knows
 * what is posted. An event tells; what is posted is flushed when it is right.
 */
static void test_sq_lost(const char *what, uint32_t record, bool unmapped)
{
	uint8_t cqe[64], eqe[64];
	struct wq *wq;
	uint32_t sq;

	r = rig_start();
	probe_run(r, &p);
	while (rig_eqe(r, &p.async_eq, eqe))
		;
	sq = new_sq();
	wq = (struct wq *)obj_find(r->nic, OBJ_SQ, sq);
	SET(sqc, wq->ctx, flush_in_error_en, 1);
	for (uint32_t i = 0; i < 16; i++)
		put_be32(rig_mem(r, buf) + 64 * i + 4, sq << 8 | 1); /* NOP */
	put_be32(rig_mem(r, db) + 4, 4);
	rig_send_db(r, r->uar, sq);
	put_be32(rig_mem(r, db) + 4, record);
	if (unmapped)
		wq->db = RIG_NOWHERE;
	for (int i = 0; i < 3; i++)
		rig_send_db(r, r->uar, sq);
	CHECK(!rig_cqe(r, &p.tx_cq, cqe) && wq->state == WQ_ERR && wq->ci == 4,
	      "%s: state %u, at %u", what, wq->state, wq->ci);
	CHECK(rig_eqe(r, &p.async_eq, eqe) && eqe[1] == EVENT_QP_FATAL &&
		      eqe[32 + 20] == QUEUE_SQ && get_be32(eqe + 56) == sq,
	      "%s: no event", what);
	wq->db = db;
	put_be32(rig_mem(r, db) + 4, 4 + 3);
	rig_send_db(r, r->uar, sq);
	for (int i = 0; i < 3; i++)
		CHECK(rig_cqe(r, &p.tx_cq, cqe) && cqe[55] == 5 &&
			      get_be16(cqe + 60) == 4 + i,
		      "%s: syndrome %u", what, cqe[55]);
	CHECK(!rig_cqe(r, &p.tx_cq, cqe) && !rig_eqe(r, &p.async_eq, eqe),
	      "%s: once", what);
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
	sq = new_sq();
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
	sq = new_sq();
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

/*
 * A frame that comes makes no room for those that wait. The wire tells when there
 * is room, or by an error that it takes nothing any more.
 */
static void test_full(short error)
{
	uint8_t frame[2048] = { 255, 255, 255, 255, 255, 255 };
	uint32_t sq;

	r = rig_start();
	probe_run(r, &p);
	sq = new_sq();
	put_large_send(rig_mem(r, buf), sq);
	put_be32(rig_mem(r, db) + 4, 2);
	rig_send_db(r, r->uar, sq);
	CHECK(nic_wire_events(r->nic) & POLLOUT, "the wire is not full");
	CHECK(write(r->wire, frame, FRAME) > 0, "frame");
	CHECK(rig_wire(r), "it did not come");
	CHECK(nic_wire_events(r->nic) & POLLOUT && nic_due(r->nic),
	      "it made room");
	while (read(r->wire, frame, sizeof(frame)) > 0)
		;
	if (error)
		nic_wire(r->nic, error);
	else
		rig_wire(r);
	CHECK(!(nic_wire_events(r->nic) & POLLOUT) && !nic_due(r->nic),
	      "no room");
	rig_stop(r);
}

/* Let the device work, with a far end that takes all, until the queue is empty. */
static uint32_t send_all(void)
{
	uint8_t frame[2048], cqe[64];
	uint32_t frames = 0;

	for (;;) {
		while (read(r->wire, frame, sizeof(frame)) > 0)
			frames++;
		if (!nic_due(r->nic))
			nic_tick(r->nic);
		else if (rig_cqe(r, &p.tx_cq, cqe) && nic_due(r->nic) < 0)
			return frames;
		rig_wire(r);
	}
}

/*
 * Behind a slow link it is time that makes room, and nothing else: no frame that
 * comes, and not the wire, which has room all the time. Switched off, it makes all
 * of it at once.
 */
static void test_limited(void)
{
	uint8_t frame[2048] = { 255, 255, 255, 255, 255, 255 };
	uint32_t sq;

	r = rig_start();
	probe_run(r, &p);
	CHECK(!nic_limit(r->nic, 1000, LINK_MAX_DELAY), "limit");
	sq = new_sq();
	put_large_send(rig_mem(r, buf), sq);
	put_be32(rig_mem(r, db) + 4, 2);
	rig_send_db(r, r->uar, sq);
	CHECK(r->nic->wire.limit->units == 1, "%lu frames have room",
	      r->nic->wire.limit->units);
	CHECK(write(r->wire, frame, FRAME) > 0, "frame");
	CHECK(rig_wire(r), "it did not come");
	nic_tick(r->nic);
	CHECK(!(nic_wire_events(r->nic) & POLLOUT) && nic_due(r->nic) >= 0,
	      "waits for the wire");
	CHECK(read(r->wire, frame, sizeof(frame)) < 0, "a frame, already");
	CHECK(!nic_limit(r->nic, 0, 0) && !nic_due(r->nic), "is still limited");
	CHECK(send_all() == PAYLOAD && !r->nic->wire.limit, "not all came");
	rig_stop(r);
}

#define FRAME_TIME 80000U /* ns, of the shortest frame at this rate */
#define FRAME_RATE 8400000U

/* While there is work, the link is busy, also when the device had no processor. */
static void test_busy(void)
{
	uint64_t frames = 0, idle, last, gap = 0;
	const struct limit *l;
	uint8_t frame[2048];
	uint32_t sq;

	r = rig_start();
	probe_run(r, &p);
	CHECK(!nic_limit(r->nic, FRAME_RATE, 0), "limit");
	l = r->nic->wire.limit;
	sq = new_sq();
	put_large_send(rig_mem(r, buf), sq);
	put_be32(rig_mem(r, db) + 4, 2);
	rig_send_db(r, r->uar, sq);
	idle = l->link.free - r->nic->port.tx.frames[UNICAST] * FRAME_TIME;
	for (int i = 0; i < 30; i++) {
		last = l->now;
		usleep(1000 * (i % 4));
		nic_tick(r->nic);
		gap = l->now - last > gap ? l->now - last : gap;
		while (read(r->wire, frame, sizeof(frame)) > 0)
			frames++;
	}
	/* else this machine was too slow to tell */
	if (gap < LIMIT_DEBT / 2)
		CHECK(l->link.free == idle + r->nic->port.tx.frames[UNICAST] *
						      FRAME_TIME,
		      "idle for %lu ns",
		      l->link.free - idle -
			      r->nic->port.tx.frames[UNICAST] * FRAME_TIME);
	CHECK(frames + l->units == r->nic->port.tx.frames[UNICAST] &&
		      l->link.free > l->now &&
		      frames * FRAME_TIME <= l->now - idle,
	      "%lu frames", frames);
	rig_stop(r);
}

/* What is on the link is no business of the device, which may be off meanwhile. */
static void test_under_way(void)
{
	uint8_t frame[FRAME];
	uint32_t sq;

	r = rig_start();
	probe_run(r, &p);
	CHECK(!nic_limit(r->nic, 0, 2000000), "limit");
	sq = new_sq();
	memset(rig_mem(r, rig_pages(r, 1)), 2, FRAME);
	put_be32(rig_mem(r, buf), 0x0a); /* send */
	put_be32(rig_mem(r, buf) + 4, sq << 8 | 3);
	put_be32(rig_mem(r, buf) + 32, FRAME);
	put_be32(rig_mem(r, buf) + 36, p.mkey);
	put_be64(rig_mem(r, buf) + 40, r->free - RIG_PAGE);
	put_be32(rig_mem(r, db) + 4, 1);
	rig_send_db(r, r->uar, sq);
	CHECK(r->nic->wire.limit->units == 1, "not on its way");
	host_flr(r->host);
	while (nic_due(r->nic) >= 0) {
		CHECK(read(r->wire, frame, FRAME) < 0, "too early");
		while (nic_due(r->nic) > 0)
			;
		nic_tick(r->nic);
	}
	CHECK(read(r->wire, frame, FRAME) == FRAME, "it never came");
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

/*
 * Frames on a wire that takes `each` at a time: of RDMA, of the first send queue
 * or of the second?
 */
static void drain(uint32_t count[3], uint32_t frames, uint32_t each)
{
	uint8_t frame[2048];

	for (uint32_t i = 0; i < frames; i++) {
		if (read(r->wire, frame, sizeof(frame)) < 0)
			return;
		count[frame[0] == 2 ? 1 + frame[11] : 0]++;
		if (i % each == each - 1) {
			nic_wire(r->nic, POLLOUT);
			nic_tick(r->nic);
		}
	}
}

/* When the wire is full, RDMA and both send queues have their share. */
static void test_share(uint32_t each)
{
	uint32_t sq[2], before[3] = { 0 }, count[3] = { 0 };

	r = rig_start();
	probe_run(r, &p);
	for (int i = 0; i < 2; i++) {
		sq[i] = new_sq();
		put_large_send(rig_mem(r, buf), sq[i]);
		rig_mem(r, buf)[30 + 11] = i;
		put_be32(rig_mem(r, db) + 4, 2);
	}
	endless_rdma();
	nic_tick(r->nic);
	for (int i = 0; i < 2; i++)
		rig_send_db(r, r->uar, sq[i]);
	CHECK(nic_wire_events(r->nic) & POLLOUT, "the wire is not full");
	drain(before, 1200, each); /* what is under way */
	drain(count, 400, each);
	CHECK(count[0] + count[1] + count[2] == 400 && count[0] >= 100 &&
		      count[1] >= 50 && count[2] >= 50,
	      "%u at a time: %u RDMA, %u and %u Ethernet", each, count[0],
	      count[1], count[2]);
	rig_stop(r);
}

int main(void)
{
	test_turns();
	test_sq_flush();
	test_sq_broken(false);
	test_sq_broken(true);
	test_sq_lost("more than the ring has", 4 + 17, false);
	test_sq_lost("back", 4 - 1, false);
	test_sq_lost("not in memory", 4, true);
	test_sq_lost("not in memory", 4 + 1, true);
	test_inline();
	test_full(0);
	test_full(POLLERR);
	test_full(POLLHUP);
	test_limited();
	test_busy();
	test_under_way();
	test_share(1);
	test_share(2);
	test_share(4);
	return check_result();
}
