// SPDX-License-Identifier: GPL-2.0
/*
 * Multicast groups: the two commands, and a datagram from the wire that comes
 * to each member.
 */
#include <sys/socket.h>

#include "commands/cmd.h"
#include "cq.h"
#include "nic.h"
#include "packet.h"
#include "rig.h"

#define QKEY 0x11111111U
#define ST_RC 0
#define ST_UD 2
#define ST_REG_UMR 0xc

static const uint8_t group[16] = { [10] = 255, 255, 239, 0x81, 2, 3 };
static const uint8_t mac[6] = { 0x01, 0x00, 0x5e, 0x01, 2, 3 };

static struct rig *r;
static struct rig_ring eq, cq;

static void setup(void)
{
	r = rig_up();
	eq = rig_eq(r, 2, 0, 0);
	cq = rig_cq(r, 4, eq.id);
}

static uint32_t new_qp(uint8_t type)
{
	rig_qp_in(r, type, cq.id);
	return rig_id(r);
}

static int mcg(uint16_t op, uint32_t qpn, const uint8_t gid[16])
{
	rig_begin(r, op, BYTES(attach_to_mcg_in), 16);
	SET(attach_to_mcg_in, r->in, qpn, qpn);
	memcpy(AT(attach_to_mcg_in, r->in, multicast_gid), gid, 16);
	return rig_run(r);
}

static int attach(uint32_t qpn, const uint8_t gid[16])
{
	return mcg(MLX5_CMD_OP_ATTACH_TO_MCG, qpn, gid);
}

static int detach(uint32_t qpn, const uint8_t gid[16])
{
	return mcg(MLX5_CMD_OP_DETACH_FROM_MCG, qpn, gid);
}

static void test_commands(void)
{
	static const uint8_t unicast[16] = { [10] = 255, 255, 10, 0, 0, 1 };
	uint32_t ud, rc, umr;

	setup();
	ud = new_qp(ST_UD);
	rc = new_qp(ST_RC);
	umr = new_qp(ST_REG_UMR);
	CHECK(attach(ud, unicast) == CMD_BAD_PARAM, "unicast");
	CHECK(attach(rc, group) == CMD_BAD_PARAM, "RC");
	CHECK(attach(umr, group) == CMD_BAD_PARAM, "UMR");
	CHECK(attach(umr + 1, group) == CMD_BAD_RES, "no QP");
	CHECK(detach(ud, group) == CMD_BAD_RES_STATE, "not attached");
	CHECK(!attach(ud, group) && !attach(ud, group), "%s", r->log);
	/* what the kernel has attached it must be able to detach */
	CHECK(!rig_run_id(r, MLX5_CMD_OP_2RST_QP, ud), "%s", r->log);
	CHECK(!detach(ud, group), "%s", r->log);
	CHECK(detach(ud, group) == CMD_BAD_RES_STATE, "twice");
	rig_stop(r);
}

/* Exactly what the capabilities say */
static void test_limits(void)
{
	uint8_t gid[16] = { 0xff, 2 };
	uint32_t groups, qps, qpn = 0, first;

	setup();
	rig_begin(r, MLX5_CMD_OP_QUERY_HCA_CAP, 16, 4112);
	CHECK(!rig_run(r), "%s", r->log);
	groups = 1U << GET(cmd_hca_cap, r->out + 16, log_max_mcg);
	qps = GET(cmd_hca_cap, r->out + 16, max_qp_mcg);
	first = new_qp(ST_UD);
	for (uint32_t i = 0; i < groups; i++) {
		gid[15] = i;
		CHECK(!attach(first, gid), "group %u: %s", i, r->log);
	}
	CHECK(attach(first, group) == CMD_LIMIT, "one group too many");
	for (uint32_t i = 1; i < qps; i++) {
		qpn = new_qp(ST_UD);
		CHECK(!attach(qpn, gid), "QP %u: %s", i, r->log);
	}
	qpn = new_qp(ST_UD);
	CHECK(attach(qpn, gid) == CMD_LIMIT, "one QP too many");
	/* a QP that goes away makes room */
	CHECK(!rig_run_id(r, MLX5_CMD_OP_DESTROY_QP, first), "%s", r->log);
	CHECK(!attach(qpn, gid) && !attach(qpn, group), "%s", r->log);
	/* and all do with a reset */
	CHECK(!rig_run_id(r, MLX5_CMD_OP_TEARDOWN_HCA, 0), "%s", r->log);
	rig_stop(r);
}

/* A UD QP that can receive, with one buffer */
static uint32_t receiver(uint32_t mkey, uint64_t buf)
{
	uint8_t *wqe, *qpc;
	uint64_t ring, db;
	uint32_t qpn;

	qpn = new_qp(ST_UD);
	ring = r->buf;
	db = r->db;
	for (uint16_t op = MLX5_CMD_OP_RST2INIT_QP;
	     op <= MLX5_CMD_OP_INIT2RTR_QP; op++) {
		rig_begin(r, op, 272, 16);
		SET(rst2init_qp_in, r->in, qpn, qpn);
		qpc = AT(rst2init_qp_in, r->in, qpc);
		SET(qpc, qpc, q_key, QKEY);
		SET(ads, AT(qpc, qpc, primary_address_path), vhca_port_num, 1);
		CHECK(!rig_run(r), "0x%x: %s", op, r->log);
	}
	wqe = rig_mem(r, ring);
	put_be32(wqe, 256);
	put_be32(wqe + 4, mkey);
	put_be64(wqe + 8, buf);
	put_be32(rig_mem(r, db), 1);
	return qpn;
}

static void from_wire(void)
{
	static const uint8_t sgid[16] = { [10] = 255, 255, 10, 0, 0, 9 };
	static const uint8_t smac[6] = { 2, 0, 0, 0, 0, 9 };
	uint8_t buf[256] = { 0 }, *payload = buf + MAX_HEADER_BYTES, *frame;
	uint8_t ext[DETH_BYTES];
	struct header h = {
		.smac = smac,
		.dmac = mac,
		.sgid = sgid,
		.dgid = group,
		.opcode = SERVICE_UD | OP_SEND_ONLY,
		.dest_qpn = ROCE_MULTICAST_QPN,
		.ext = ext,
		.ext_len = sizeof(ext),
	};
	uint32_t len;

	put_be32(ext, QKEY);
	put_be32(ext + 4, 77);
	strcpy((char *)payload, "to all");
	frame = packet_build(&h, payload, 32, &len);
	CHECK(send(r->wire, frame, len, 0) == len, "send");
	rig_wire(r);
}

static void test_delivery(void)
{
	uint32_t key, qpn[2], seen[2] = { 0, 0 };
	uint8_t cqe[64];
	uint64_t buf;

	setup();
	buf = rig_pages(r, 1);
	rig_mkey_in(r, buf, buf, RIG_PAGE);
	key = rig_id(r) << 8 | 0x5a;
	for (int i = 0; i < 2; i++) {
		qpn[i] = receiver(key, buf + 256 * i);
		CHECK(!attach(qpn[i], group), "%s", r->log);
	}
	receiver(key, buf + 512); /* no member */
	from_wire();
	for (int i = 0; i < 2; i++) {
		CHECK(rig_cqe(r, &cq, cqe), "CQE %d", i);
		CHECK(cqe[63] >> 4 == CQE_RESP_SEND &&
			      get_be32(cqe + 44) == 40 + 32 &&
			      (get_be32(cqe + 24) & 0xffffff) == 77,
		      "CQE %d", i);
		for (int k = 0; k < 2; k++)
			seen[k] += (get_be32(cqe + 56) & 0xffffff) == qpn[k];
		CHECK(!memcmp(rig_mem(r, buf + 256 * i + 40), "to all", 7),
		      "data %d", i);
	}
	CHECK(seen[0] == 1 && seen[1] == 1, "each one copy");
	CHECK(!rig_cqe(r, &cq, cqe), "no more");
	/* nobody is left: not the transport's any more */
	CHECK(!detach(qpn[0], group) && !detach(qpn[1], group), "%s", r->log);
	CHECK(roce_counters(r->nic->roce)->rx_frames == 1, "frames");
	from_wire();
	CHECK(roce_counters(r->nic->roce)->rx_frames == 1, "frames");
	rig_stop(r);
}

int main(void)
{
	test_commands();
	test_limits();
	test_delivery();
	return check_result();
}
