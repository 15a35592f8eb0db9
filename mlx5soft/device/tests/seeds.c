// SPDX-License-Identifier: GPL-2.0
/*
 * mlx5soft_seeds DIR: inputs for fuzz_cmd that get far: the commands of a
 * probe, and what a driver does after it.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "cmd_ops.h"
#include "nic.h"
#include "probe.h"

static u8 seed[1 << 20];
static size_t len;

static void put(const void *bytes, size_t n)
{
	if (len + n > sizeof(seed))
		abort();
	memcpy(seed + len, bytes, n);
	len += n;
}

static void put_int(u64 value, size_t n)
{
	put(&value, n);
}

/* Zeros at the end need not be in the input. */
static void put_cmd(const struct rig *r, u8 how)
{
	u32 n = r->in_len;

	while (n > 16 && !r->in[n - 1])
		n--;
	put_int(OP_CMD, 1);
	put_int(how, 1);
	put_int(r->in_len, 2);
	put_int(r->out_len, 2);
	put_int(n, 2);
	put(r->in, n);
}

static void record(struct rig *r)
{
	put_cmd(r, 0);
}

static void put_bar(u32 off, u64 value, u8 bytes)
{
	value = bytes == 8 ? htobe64(value) : htobe32(value);
	put_int(OP_BAR, 1);
	put_int(off, 4);
	put_int(bytes - 1, 1);
	put_int(value, 8);
}

static void put_state(u8 what)
{
	put_int(OP_STATE, 1);
	put_int(what, 1);
}

static void put_key(u32 pd, u32 key, u64 addr, u32 n, u8 access)
{
	put_int(OP_KEY, 1);
	put_int(pd, 4);
	put_int(key, 4);
	put_int(addr, 8);
	put_int(n, 4);
	put_int(access, 1);
}

static void put_cqe(u16 cqn, u8 op)
{
	put_int(OP_CQE, 1);
	put_int(cqn, 2);
	put_int(op, 1);
}

static void put_word(u64 at, u32 value)
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
	u32 uar = r->uar * RIG_PAGE;

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
	u32 key;

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

static void make_frames(void)
{
	static const u8 arp[42] = { 255, 255, 255, 255, 255, 255, 2, 0, 0,
				    0,	 0,   1,   8,	6,   0,	  1, 8, 0 };
	u64 rq_page = r->free, db;

	/* an RQ of its own, whose WQEs the host fills, and an SQ with a frame
	 * inline
	 */
	rig_rq_in(r, p.rx_cq.id);
	db = GET(wq, AT(rqc, AT(create_rq_in, r->in, ctx), wq), dbr_addr);
	rig_id(r);
	put_word(rq_page + RIG_PAGE, 1500);
	put_word(rq_page + RIG_PAGE + 4, p.mkey);
	put_word(db, 1);
	put_int(OP_FRAME, 1);
	put_int(sizeof(arp), 1);
	put(arp, sizeof(arp));
	rig_sq_in(r, p.tx_cq.id);
	rig_id(r);
	put_word(r->free - RIG_PAGE + 4, 3);
	put_word(r->free - 2 * RIG_PAGE + 4, 1);
	put_bar(r->uar * RIG_PAGE + 0x800, (u64)p.sq << 8, 8);
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
	{ "probe", make_probe },   { "queues", make_queues },
	{ "keys", make_keys },	   { "frames", make_frames },
	{ "broken", make_broken },
};

int main(int argc, char **argv)
{
	char path[4096];
	FILE *out;

	if (argc != 2 || (mkdir(argv[1], 0755) && errno != EEXIST)) {
		fprintf(stderr, "usage: mlx5soft_seeds DIR\n");
		return 1;
	}
	for (size_t i = 0; i < N_ELEM(seeds); i++) {
		len = 0;
		r = rig_start();
		r->record = record;
		probe_run(r, &p);
		seeds[i].make();
		rig_stop(r);
		snprintf(path, sizeof(path), "%s/%s", argv[1], seeds[i].name);
		out = fopen(path, "we");
		if (!out || fwrite(seed, len, 1, out) != 1 || fclose(out)) {
			perror(path);
			return 1;
		}
	}
	return check_result();
}
