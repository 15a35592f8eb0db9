// SPDX-License-Identifier: GPL-2.0
/*
 * mlx5soft_seeds DIR: inputs for fuzz_cmd that get far: the commands of a
 * probe, and what a driver does after it.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "cmd_ops.h"
#include "cq.h"
#include "mkey.h"
#include "nic.h"
#include "probe.h"

static FILE *out;

static void put(const void *bytes, size_t n)
{
	fwrite(bytes, n, 1, out);
}

static void put_int(uint64_t value, size_t n)
{
	put(&value, n);
}

static void put_cmd(const struct rig *r, uint8_t how)
{
	op_cmd(out, how, r->in, r->in_len, r->out_len);
}

static void record(struct rig *r)
{
	put_cmd(r, 0);
}

static void put_bar(uint32_t off, uint64_t value, uint8_t bytes)
{
	value = bytes == 8 ? htobe64(value) : htobe32(value);
	op_bar(out, off, &value, bytes);
}

static void put_state(uint8_t what)
{
	put_int(OP_STATE, 1);
	put_int(what, 1);
}

static void put_key(uint32_t pd, uint32_t key, uint64_t addr, uint32_t n,
		    uint8_t access)
{
	put_int(OP_KEY, 1);
	put_int(pd, 4);
	put_int(key, 4);
	put_int(addr, 8);
	put_int(n, 4);
	put_int(access, 1);
}

static void put_cqe(uint16_t cqn, uint8_t op)
{
	put_int(OP_CQE, 1);
	put_int(cqn, 2);
	put_int(op, 1);
}

static void put_word(uint64_t at, uint32_t value)
{
	value = htobe32(value);
	put_int(OP_MEM, 1);
	put_int(at, 4);
	put_int(4, 1);
	put(&value, 4);
}

/* ---- seeds ---- */

static struct rig *r;
static struct probe p;

static void make_probe(void)
{
	probe_remove(r, &p);
}

static void make_queues(void)
{
	uint32_t uar = r->uar * RIG_PAGE;

	for (int i = 0; i < 3; i++) {
		put_bar(uar + 0x20, p.rx_cq.id, 8);
		put_cqe(p.rx_cq.id, CQE_RESP_SEND);
		put_word(p.rx_cq.db, i + 1);
		put_bar(uar + 0x40, p.comp_eq.id << 24 | (i + 1), 4);
	}
	for (int i = 0; i < 40; i++)
		put_cqe(p.tx_cq.id, CQE_REQ_ERR);
	rig_begin_id(r, MLX5_CMD_OP_QUERY_CQ, p.tx_cq.id);
	r->out_len = 272;
	rig_run(r);
	rig_begin_id(r, MLX5_CMD_OP_QUERY_EQ, p.async_eq.id);
	r->out_len = 272;
	rig_run(r);
}

static void make_keys(void)
{
	uint32_t key;

	put_key(r->pd, p.mkey, RIG_FREE, 5000, MKEY_LOCAL_READ);
	put_key(r->pd, RESD_LKEY, RIG_FREE, 5000, 0x81);
	rig_mkey_in(r, RIG_FREE, 0x1800, 0x2800);
	key = rig_id(r) << 8 | 0x5a;
	put_key(r->pd, key, 0x1800, 0x2800, 0xf);
	put_state(STATE_UNMAP);
	put_key(r->pd, key, 0x1800, 0x2800, 0xf);
	put_state(STATE_MAP_LESS);
	put_key(r->pd, key, 0x3fff, 1, 0xf);
	put_key(r->pd, key, 0x3fff, 2, 0xf);
}

/* Ethernet, IPv4, TCP: headers of a packet with 1000 bytes of data */
static const uint8_t tcp[54] = {
	255,  255, 255, 255, 255,  255,	 2,  0, 0,  1, 0, 2, 8,	 0,
	0x45, 0,   4,	16,  0,	   1,	 64, 0, 64, 6, 0, 0, 10, 0,
	0,    1,   10,	0,   0,	   2,	 1,  2, 3,  4, 0, 0, 0,	 1,
	0,    0,   0,	1,   0x50, 0x18, 1,  0, 0,  0, 0, 0,
};

static void put_frame(const uint8_t *bytes, uint8_t n)
{
	op_frame(out, bytes, n);
}

static void put_mem(uint64_t at, const uint8_t *bytes, uint8_t n)
{
	put_int(OP_MEM, 1);
	put_int(at, 4);
	put_int(n, 1);
	put(bytes, n);
}

static void data_segment(uint8_t *to, uint32_t bytes, uint32_t key,
			 uint64_t addr)
{
	put_be32(to, bytes);
	put_be32(to + 4, key);
	put_be64(to + 8, addr);
}

/* Elements for received frames, and frames of several kinds */
static void make_receive(void)
{
	uint8_t wqe[32], frame[200] = { 0 };

	for (int i = 0; i < 8; i++) {
		data_segment(wqe, 64, p.mkey, RIG_FREE + i * 2048);
		data_segment(wqe + 16, i == 7 ? 10 : 1500, p.mkey,
			     RIG_FREE + i * 2048 + 64);
		put_mem(p.rq_buf + i * 32, wqe, sizeof(wqe));
	}
	put_word(p.rq_db, 8);
	memcpy(frame, tcp, sizeof(tcp));
	put_be16(frame + 16, 100);
	put_frame(frame, 114);
	put_frame(frame, 14);
	put_frame(frame, 40);
	put_be16(frame + 12, 0x8100);
	put_be16(frame + 16, 0x0800);
	put_frame(frame, 60);
	put_be16(frame + 12, 0x86dd);
	frame[14] = 0x60;
	frame[20] = 17;
	put_frame(frame, 100);
	put_be16(frame + 12, 0x0806);
	put_frame(frame, 42);
	put_frame(frame, 200);
	put_frame(frame, 200);
	put_frame(frame, 200);
	put_bar(r->uar * RIG_PAGE + 0x20, p.rx_cq.id, 8);
}

/* A WQE at 64-byte block `block`; returns how many it takes */
static uint16_t send_wqe(uint16_t block, uint8_t opcode, uint16_t inl,
			 uint32_t bytes, uint16_t mss)
{
	uint32_t data = 32 + (inl > 2 ? (inl - 2 + 15) / 16 * 16 : 0);
	uint8_t wqe[256] = { 0 };

	put_be32(wqe, block << 8 | opcode);
	put_be32(wqe + 4, p.sq << 8 | (data + 16) / 16);
	wqe[11] = 8;	/* signaled */
	wqe[20] = 0xc0; /* checksums */
	put_be16(wqe + 22, mss);
	put_be16(wqe + 28, inl);
	memcpy(wqe + 30, tcp, inl);
	data_segment(wqe + data, bytes, p.mkey, RIG_FREE);
	put_mem(p.sq_buf + block % 16 * 64, wqe, data + 16);
	return (data + 16 + 63) / 64;
}

static void ring_sq(uint16_t pi)
{
	put_word(p.sq_db + 4, pi);
	put_bar(r->uar * RIG_PAGE + 0x800, (uint64_t)p.sq << 8, 8);
}

static void make_send(void)
{
	uint16_t pi = 0;

	pi += send_wqe(pi, 0x0a, 18, 1000, 0); /* SEND */
	ring_sq(pi);
	pi += send_wqe(pi, 0x0e, 54, 1000, 300); /* LSO */
	ring_sq(pi);
	pi += send_wqe(pi, 0x00, 0, 0, 0); /* NOP */
	pi += send_wqe(pi, 0x0a, 0, 60, 0);
	ring_sq(pi);
	pi += send_wqe(pi, 0x0a, 18, 0x80000000, 0); /* too long */
	ring_sq(pi);
}

/* More frames than the wire takes, one that comes meanwhile, and their end */
static void make_full(void)
{
	ring_sq(send_wqe(0, 0x0e, 54, 1000, 1));
	put_frame(tcp, sizeof(tcp));
	CHECK(!rig_run_id(r, MLX5_CMD_OP_DESTROY_SQ, p.sq), "%s", r->log);
	for (int i = 0; i < 10; i++)
		put_frame(NULL, 0);
}

/* One receive and three sends in the buffer of a QP */
static void put_work(uint64_t buf, uint32_t qpn)
{
	static const uint8_t ops[] = { 0x0a, 0x08,
				       0x10 }; /* SEND, WRITE, READ */
	uint8_t wqe[64] = { 0 };

	data_segment(wqe, 100, p.mkey, RIG_FREE);
	put_mem(buf, wqe, 16);
	for (uint32_t i = 0; i < N_ELEM(ops); i++) {
		uint32_t data = ops[i] == 0x0a ? 16 : 32;

		put_be32(wqe, i << 8 | ops[i]);
		put_be32(wqe + 4, qpn << 8 | (data + 16) / 16);
		wqe[11] = 8;
		put_be64(wqe + 16, RIG_FREE + 2048);
		put_be32(wqe + 24, p.mkey);
		data_segment(wqe + data, 100, p.mkey, RIG_FREE);
		put_mem(buf + 512 + 64 * i, wqe, data + 16);
	}
}

/* Work for a QP of each service, and doorbells in halves */
static void make_transport(void)
{
	static const uint8_t group[16] = { [10] = 255, 255, 239, 1, 2, 3 };

	rig_address(r);
	for (uint32_t type = 0; type < 3; type++) {
		rig_qp_in(r, type, p.rx_cq.id);
		p.qp = rig_id(r);
		rig_connect(r, p.qp, p.qp);
		rig_begin_id(r, MLX5_CMD_OP_ATTACH_TO_MCG, p.qp);
		memcpy(AT(attach_to_mcg_in, r->in, multicast_gid), group,
		       sizeof(group));
		r->in_len = BYTES(attach_to_mcg_in);
		rig_run(r); /* only UD can */
		put_work(r->buf, p.qp);
		put_word(r->db, 1);
		put_word(r->db + 4, 3);
		put_bar(r->uar * RIG_PAGE + 0x900, 0, 4);
		put_bar(r->uar * RIG_PAGE + 0x904, p.qp << 8, 4);
		put_frame(NULL, 0);
	}
	put_bar(r->uar * RIG_PAGE + 0x20, 0, 4);
	put_bar(r->uar * RIG_PAGE + 0x24, p.rx_cq.id, 4);
	rig_run_id(r, MLX5_CMD_OP_2ERR_QP, p.qp);
}

/* What drivers ask only now and then */
static void make_queries(void)
{
	static const uint16_t ops[] = {
		MLX5_CMD_OP_QUERY_MKEY,	   MLX5_CMD_OP_QUERY_CQ,
		MLX5_CMD_OP_MODIFY_CQ,	   MLX5_CMD_OP_QUERY_EQ,
		MLX5_CMD_OP_QUERY_QP,	   MLX5_CMD_OP_QUERY_RMP,
		MLX5_CMD_OP_QUERY_XRC_SRQ, MLX5_CMD_OP_QUERY_SQ,
		MLX5_CMD_OP_QUERY_RQ,	   MLX5_CMD_OP_MODIFY_RMP,
		MLX5_CMD_OP_ARM_RQ,	   MLX5_CMD_OP_ARM_XRC_SRQ,
	};
	const uint32_t ids[] = {
		p.mkey >> 8, p.rx_cq.id, p.rx_cq.id, p.cmd_eq.id,
		p.qp,	     p.rmp,	 p.xrc_srq,  p.sq,
		p.rq,	     p.rmp,	 p.rmp,	     p.xrc_srq,
	};

	for (size_t i = 0; i < N_ELEM(ops); i++) {
		rig_begin_id(r, ops[i], ids[i]);
		r->in_len = r->out_len = 512;
		CHECK(!rig_run(r), "0x%x: %s", ops[i], r->log);
	}
	rig_srq_in(r);
	rig_run_id(r, MLX5_CMD_OP_DESTROY_SRQ, rig_id(r));
}

static void make_broken(void)
{
	put_state(STATE_FLR);
	put_state(STATE_BUS_MASTER);
	for (int defect = 0; defect < 8; defect++) {
		rig_begin(r, MLX5_CMD_OP_ENABLE_HCA, 16, 16);
		put_cmd(r, OP_HOW(defect, defect));
		rig_begin(r, MLX5_CMD_OP_SET_HCA_CAP, 4112, 4112);
		put_cmd(r, OP_HOW(defect + 8, defect));
	}
	put_bar(0x18, 0xffffffff, 4);
	put_bar(0x14, RIG_NOWHERE, 4);
	put_bar(0x18, 0xffffffff, 4);
	put_state(STATE_UNMAP);
	put_bar(0x14, RIG_CMDQ, 4);
	put_bar(0x18, 1, 4);
	put_state(STATE_NO_BUS_MASTER);
}

static const struct {
	const char *name;
	void (*make)(void);
} seeds[] = {
	{ "probe", make_probe },	 { "queues", make_queues },
	{ "keys", make_keys },		 { "receive", make_receive },
	{ "send", make_send },		 { "full", make_full },
	{ "transport", make_transport }, { "queries", make_queries },
	{ "broken", make_broken },
};

int main(int argc, char **argv)
{
	char path[4096];

	if (argc != 2 || (mkdir(argv[1], 0755) && errno != EEXIST)) {
		fprintf(stderr, "usage: mlx5soft_seeds DIR\n");
		return 1;
	}
	for (size_t i = 0; i < N_ELEM(seeds); i++) {
		snprintf(path, sizeof(path), "%s/%s", argv[1], seeds[i].name);
		out = fopen(path, "we");
		MUST(out);
		r = rig_start();
		r->record = record;
		probe_run(r, &p);
		seeds[i].make();
		rig_stop(r);
		MUST(!ferror(out) && !fclose(out));
	}
	return check_result();
}
