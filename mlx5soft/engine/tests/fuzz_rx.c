// SPDX-License-Identifier: GPL-2.0
/*
 * Received frames of all kinds against QPs of each service with work under
 * way. An input is a list of records; most become packets with a right ICRC
 * near the PSNs that the QP expects, so that they get far.
 */
#include <stdlib.h>
#include <string.h>
#include <libdeflate.h>

#include "impl.h"
#include "sim.h"

#define MEMORY 65536
#define MAX_RAW 200

struct input {
	const uint8_t *at;
	size_t left;
};

static const uint8_t group[16] = { [10] = 255, 255, 239, 129, 2, 3 };
static const uint8_t group_mac[6] = { 0x01, 0x00, 0x5e, 1, 2, 3 };

static struct sim *sim;
static struct sim_qp *rc, *uc, *ud, *srq, *rc_srq, *peer;
static struct sim_qp *initiator, *target, *xrc_srq;

static uint8_t next(struct input *in)
{
	if (!in->left)
		return 0;
	in->left--;
	return *in->at++;
}

static void post_work(struct sim_qp *q)
{
	static const enum roce_wr_opcode rc_ops[] = {
		ROCE_WR_RDMA_READ,  ROCE_WR_SEND,
		ROCE_WR_RDMA_WRITE, ROCE_WR_ATOMIC_FETCH_AND_ADD,
		ROCE_WR_RDMA_READ,  ROCE_WR_SEND_WITH_IMM,
		ROCE_WR_LOCAL,	    ROCE_WR_RDMA_WRITE,
	};

	for (int i = 0; i < 8; i++) {
		struct roce_send_wqe wqe =
			sim_wqe(q,
				q->type == ROCE_QPT_RC ||
						q->type == ROCE_QPT_XRC_SEND
					? rc_ops[i]
					: ROCE_WR_SEND,
				0, i % 3 ? 3000 : 8, 4096);

		sim_address(sim, 1, &wqe.av);
		wqe.remote_qpn = peer->qpn;
		sim_post_send(q, &wqe);
	}
	for (int i = 0; i < 8; i++)
		sim_post_recv(q->shared, q->shared->num_recvs, 8192,
			      i & 1 ? 4096 : 100, i == 6 ? 7 : 1000);
}

static struct sim_qp *connect_qp(enum roce_qp_type type, struct sim_qp *shared)
{
	struct sim_qp *q = sim_qp(&sim->nodes[0], type, shared);
	struct roce_qp_attr attr;

	sim_attributes(sim, &attr, 1, peer->qpn);
	attr.path_mtu = ROCE_MTU_256;
	for (int s = ROCE_QPS_INIT; s <= ROCE_QPS_RTS; s++)
		if (sim_modify(q, &attr, s))
			abort();
	post_work(q);
	return q;
}

static void receive(const uint8_t *data, size_t len)
{
	uint8_t *exact = malloc(len + !len);

	memcpy(exact, data, len);
	roce_rx(sim->nodes[0].engine, sim->now, exact, len);
	free(exact);
}

/* a packet with headers as they should be */
static void packet_record(struct input *in, struct sim_qp *q, bool v6)
{
	uint8_t buf[8192] = { 0 }, ext[64], *frame;
	struct roce_av src, dst;
	struct header h = { .ext = ext, .ack_req = true };
	uint32_t flags, len, want, payload = 0;
	int8_t delta;

	h.opcode = next(in);
	if (q->type == ROCE_QPT_UC)
		h.opcode |= SERVICE_UC;
	else if (q->type == ROCE_QPT_UD)
		h.opcode |= SERVICE_UD;
	else if (q == initiator || q == target)
		h.opcode = SERVICE_XRC | (h.opcode & 0x1f);
	delta = next(in);
	len = next(in);
	flags = packet_flags(h.opcode);
	want = flags & PKT_ATOMICETH ? ATOMICETH_BYTES : 20;
	for (uint32_t i = 0; i < want; i++)
		ext[i] = next(in);
	if (flags & PKT_RETH) {
		/* mostly a region that exists */
		memset(ext, 0, 6);
		put_be32(ext + 8, 1000 + (ext[11] & 1));
		memset(ext + 12, 0, 2);
	}
	h.ext_len = flags & PKT_ATOMICETH ? ATOMICETH_BYTES : len % 21;
	if (flags & PKT_RETH)
		h.ext_len = RETH_BYTES + (flags & PKT_IMM ? IMM_BYTES : 0);
	else if (flags & PKT_DETH)
		h.ext_len = DETH_BYTES + (flags & PKT_IMM ? IMM_BYTES : 0);
	else if (flags & PKT_AETH)
		h.ext_len = AETH_BYTES +
			    (flags & PKT_ATOMICACKETH ? ATOMICACKETH_BYTES : 0);
	if (flags & PKT_DETH)
		put_be32(ext, 0x11111111);
	if (flags & PKT_XRCETH) {
		memmove(ext + XRCETH_BYTES, ext, h.ext_len);
		put_be32(ext, delta % 32 == 31 ? 5 : xrc_srq->qpn);
		h.ext_len += XRCETH_BYTES;
	}
	if (flags & PKT_PAYLOAD)
		payload = len & 0x80 ? 256 : len & 0x40 ? len * 19 : len;
	sim->ipv6 = v6;
	sim_address(sim, 1, &src);
	sim_address(sim, 0, &dst);
	sim->ipv6 = false;
	h.smac = src.dmac;
	h.sgid = src.dgid;
	h.dmac = dst.dmac;
	h.dgid = dst.dgid;
	h.dest_qpn = q->qpn;
	if (q == ud && !v6 && len & 1) {
		h.dmac = group_mac;
		h.dgid = group;
		h.dest_qpn = ROCE_MULTICAST_QPN;
	}
	h.psn = flags & PKT_RESPONSE ? q->qp->req.una : q->qp->resp.psn;
	h.psn = psn_add(h.psn, delta % 8 ? delta / 8 : 0);
	frame = packet_build(&h, buf + MAX_HEADER_BYTES, payload, &len);
	receive(frame, len);
}

/* the bytes as they are, behind headers as far as UDP; or without those */
static void raw_record(struct input *in, bool v6, bool all)
{
	uint8_t frame[MAX_RAW + 80] = { 0 };
	size_t n = 0, len = next(in) % MAX_RAW, head = v6 ? 62 : 42;
	uint8_t *ip = frame + 14;
	struct packet pkt;

	if (all)
		head = 0;
	for (; n < len; n++)
		frame[head + n] = next(in);
	if (!all) {
		struct roce_av src, dst;
		uint32_t sum = 0;

		sim->ipv6 = v6;
		sim_address(sim, 1, &src);
		sim_address(sim, 0, &dst);
		sim->ipv6 = false;
		put_be16(frame + 12, v6 ? 0x86dd : 0x0800);
		put_be16(frame + head - 6, ROCE_UDP_PORT);
		put_be16(frame + head - 4, 8 + len);
		ip[0] = v6 ? 0x60 : 0x45;
		ip[v6 ? 6 : 9] = 17;
		if (v6) {
			put_be16(ip + 4, 8 + len);
			memcpy(ip + 8, src.dgid, 16);
			memcpy(ip + 24, dst.dgid, 16);
		} else {
			put_be16(ip + 2, 28 + len);
			memcpy(ip + 12, src.dgid + 12, 4);
			memcpy(ip + 16, dst.dgid + 12, 4);
			for (int i = 0; i < 20; i += 2)
				sum += get_be16(ip + i);
			sum = (sum & 0xffff) + (sum >> 16);
			put_be16(ip + 10, ~sum);
		}
	}
	/* an ICRC that fits what there is */
	if (!all && len >= 16 &&
	    packet_parse_network(&pkt, frame, head + len) == PARSE_OK) {
		uint8_t m[MAX_RAW + 80];
		uint32_t crc;

		memcpy(m, frame, head + len);
		ip = m + 14;
		if (v6) {
			ip[0] |= 0xf;
			memset(ip + 1, 0xff, 3);
			ip[7] = 0xff;
		} else {
			ip[1] = ip[8] = ip[10] = ip[11] = 0xff;
		}
		m[head - 2] = m[head - 1] = m[head + 4] = 0xff;
		crc = libdeflate_crc32(0x2144df1c, ip, head + len - 4 - 14);
		for (int i = 0; i < 4; i++)
			frame[head + len - 4 + i] = crc >> 8 * i;
	}
	receive(frame, head + len);
}

static void check_once(const struct sim_qp *q)
{
	if (q->num_send_wcs != q->next_send)
		abort();
	for (uint32_t i = 0; i < q->num_send_wcs; i++)
		if (q->send_wcs[i].cookie != i)
			abort();
	if (q->shared == q && q != srq && q != xrc_srq && q != target) {
		if (q->num_recv_wcs != q->next_recv)
			abort();
		for (uint32_t i = 0; i < q->num_recv_wcs; i++)
			if (q->recv_wcs[i].cookie != i)
				abort();
	}
}

static void run_records(struct input *in)
{
	struct sim_qp *const qps[] = { rc, uc,	   ud, rc_srq,
				       rc, target, ud, initiator };

	while (in->left) {
		uint8_t what = next(in);
		struct sim_qp *q = qps[what & 7];
		/* RC and UC look at the address: mostly IPv4 */
		bool v6 = (what & 0x1c) == 0x1c;

		if ((what & 0x60) == 0x60)
			raw_record(in, v6, what & 0x80);
		else
			packet_record(in, q, v6);
		if (what & 0x20)
			sim->now += 300000;
		if ((what & 0x50) == 0x50)
			sim->nodes[0].room = what & 0x80 ? 2 : -1;
		if (!(what & 0x80))
			roce_tick(sim->nodes[0].engine, sim->now);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = { data, size };
	struct roce_qp_attr err = { .state = ROCE_QPS_ERR };
	struct sim_node *node;

	sim = sim_create(MEMORY, NULL);
	sim->unplugged = true;
	node = &sim->nodes[0];
	sim_key(node, 1, 1, 0, MEMORY, ROCE_ACCESS_REMOTE_READ);
	peer = sim_qp(&sim->nodes[1], ROCE_QPT_RC, NULL);
	rc = connect_qp(ROCE_QPT_RC, NULL);
	uc = connect_qp(ROCE_QPT_UC, NULL);
	ud = connect_qp(ROCE_QPT_UD, NULL);
	if (roce_attach(ud->qp, group))
		abort();
	srq = sim_qp(&sim->nodes[0], ROCE_QPT_RC, NULL);
	rc_srq = connect_qp(ROCE_QPT_RC, srq);
	initiator = connect_qp(ROCE_QPT_XRC_SEND, NULL);
	xrc_srq = sim_qp(&sim->nodes[0], ROCE_QPT_RC, NULL);
	target = connect_qp(ROCE_QPT_XRC_RECV, xrc_srq);
	target->shared = target;
	target->xrcd = xrc_srq->xrcd = 1;
	xrc_srq->pd = 1;
	roce_tick(node->engine, sim->now);
	run_records(&in);

	node->room = -1;
	for (int i = 0; i < node->num_qps; i++)
		roce_qp_modify(node->qps[i].qp, &err, ROCE_QP_STATE);
	for (int i = 0; roce_tick(node->engine, sim->now); i++)
		if (i > 1000)
			abort(); /* it does not come to rest */
	for (int i = 0; i < node->num_qps; i++)
		check_once(&node->qps[i]);
	if (check_failures)
		abort();
	sim_destroy(sim);
	return 0;
}
