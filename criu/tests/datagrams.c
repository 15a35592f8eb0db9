// SPDX-License-Identifier: GPL-2.0
/*
 * datagrams: QPs that promise little, in all states, and what datagrams need:
 * address handles and multicast groups.
 *
 *	datagrams [-d DEVICE] [-g GID_INDEX] [-t ADDRESS]
 *
 * ADDRESS is that of the host to which it will move, if it moves. "ready" goes to
 * stdout; on SIGUSR1 every QP must be what it was, and every address handle lead
 * where it led, from where the process is now. Then "PASS", else "FAIL: reason".
 */
#include <arpa/inet.h>
#include <unistd.h>

#include "loop.h"

#define GRH 40
#define BYTES 64
#define SLOT 256
#define QKEY 0x12345678
#define DEPTH 8
#define TO_GROUP 0xffffff /* QPN */
/* of the link; its members are those who have joined it */
#define GROUP { .raw = { 0xff, 0x12, [12] = 0x6d, 0x69, 0x67, 0x72 } }
/* who has an address is in this one, of the host: it comes back to the sender */
#define NEAR_GROUP { .raw = { 0xff, 0x01, [15] = 1 } }

enum {
	SENDER,
	MEMBER,	  /* of both groups */
	WITH_SRQ, /* of one */
	DRAINED,  /* in SQD, with sends that wait */
	IN_RTR,
	IN_INIT,
	IN_RESET,
	IN_ERR,
	UC_A, /* two that are each other's peers */
	UC_B,
	UC_DRAINED, /* in SQD, with a send that waits */
	UC_RTR,	    /* its peer */
	UC_INIT,
	UC_RESET,
	UC_ERR,
	QPS
};

#define UD_QPS UC_A

static struct ibv_pd *pd;
static struct ibv_cq *cq[QPS];
static struct ibv_srq *srq;
static struct ibv_qp *qp[QPS];
static struct ibv_mr *mr;
static struct ibv_ah *home, *there, *group, *near;
static union ibv_gid mgid = GROUP, near_mgid = NEAR_GROUP;
static union ibv_gid home_gid; /* to which `home` leads */
static int gid_index = 1;
/* receives of each QP, then what UD sends, and what UC does */
static char memory[QPS + 2][DEPTH][SLOT] __attribute__((aligned(4096)));

/* ---- work ---- */

static void change(int q, enum ibv_qp_state state)
{
	static const int masks[] = {
		[IBV_QPS_RESET] = 0,
		[IBV_QPS_INIT] = IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY,
		[IBV_QPS_RTR] = 0,
		[IBV_QPS_RTS] = IBV_QP_SQ_PSN,
		[IBV_QPS_SQD] = 0,
		[IBV_QPS_SQE] = 0,
		[IBV_QPS_ERR] = 0,
	};
	struct ibv_qp_attr attr = { .qp_state = state,
				    .qkey = QKEY,
				    .port_num = 1,
				    .sq_psn = 0xfffffe };

	NEED(!ibv_modify_qp(qp[q], &attr, masks[state] | IBV_QP_STATE));
}

/* not before the queue is drained */
static void leave_sqd(int q)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RTS };

	for (int t = 0; ibv_modify_qp(qp[q], &attr, IBV_QP_STATE); t++) {
		NEED(t < 10000);
		usleep(1000);
	}
}

static void need_state(int q, enum ibv_qp_state state)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	NEED(!ibv_query_qp(qp[q], &attr, IBV_QP_STATE | IBV_QP_QKEY, &init));
	NEED(attr.qp_state == state && init.qp_type == qp[q]->qp_type);
	NEED(state == IBV_QPS_RESET || q >= UD_QPS || attr.qkey == QKEY);
}

static void post_recv(int q, uint64_t slot)
{
	struct ibv_sge sge = { (uintptr_t)memory[q][slot], SLOT, mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = slot,
				  .sg_list = &sge,
				  .num_sge = 1 };
	struct ibv_recv_wr *bad;

	memset(memory[q][slot], 0, SLOT);
	if (qp[q]->srq)
		NEED(!ibv_post_srq_recv(srq, &wr, &bad));
	else
		NEED(!ibv_post_recv(qp[q], &wr, &bad));
}

/* the content, and what comes with it, is `what` */
static void post_send(int q, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey,
		      char what)
{
	char *data = memory[QPS][what % DEPTH];
	struct ibv_sge sge = { (uintptr_t)data, BYTES, mr->lkey };
	struct ibv_send_wr wr = { .wr_id = (uint64_t)what,
				  .opcode = IBV_WR_SEND_WITH_IMM,
				  .imm_data = htonl((uint32_t)what),
				  .sg_list = &sge,
				  .num_sge = 1 };
	struct ibv_send_wr *bad;

	memset(data, what, BYTES);
	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = qpn;
	wr.wr.ud.remote_qkey = qkey;
	NEED(!ibv_post_send(qp[q], &wr, &bad));
}

static struct ibv_wc wait_for(int q)
{
	struct ibv_wc wc;
	int n;

	for (int t = 0; !(n = ibv_poll_cq(cq[q], 1, &wc)); t++) {
		NEED(t < 60000);
		usleep(1000);
	}
	NEED(n == 1 && wc.qp_num == qp[q]->qp_num);
	return wc;
}

static void sent(int q, char what)
{
	struct ibv_wc wc = wait_for(q);

	NEED(!wc.status && wc.opcode == IBV_WC_SEND);
	NEED(wc.wr_id == (uint64_t)what);
}

static union ibv_gid gids[16]; /* of this device; where there is none: all 0 */

static void note_gids(void)
{
	memset(gids, 0, sizeof(gids));
	for (int i = 0; i < 16; i++)
		if (ibv_query_gid(pd->context, 1, i, &gids[i]))
			memset(&gids[i], 0, sizeof(gids[i]));
}

static int is_mine(const void *address, size_t bytes)
{
	for (int i = 0; i < 16; i++)
		if (!memcmp(gids[i].raw + 16 - bytes, address, bytes))
			return 1;
	return 0;
}

static void received(int q, int from, uint64_t slot, char what)
{
	const char *data = memory[q][slot];
	struct ibv_wc wc = wait_for(q);

	NEED(!wc.status && wc.opcode == IBV_WC_RECV);
	NEED(wc.wr_id == slot && wc.byte_len == GRH + BYTES);
	NEED(wc.src_qp == qp[from]->qp_num);
	NEED(wc.wc_flags & IBV_WC_GRH && wc.wc_flags & IBV_WC_WITH_IMM);
	NEED(ntohl(wc.imm_data) == (uint32_t)what);
	for (int i = 0; i < BYTES; i++)
		NEED(data[GRH + i] == what);
	/* IPv4 has half of the room, and its source behind 12 bytes */
	if (data[20] >> 4 == 4)
		NEED(is_mine(data + 20 + 12, 4));
	else
		NEED(is_mine(data + 8, 16));
}

static void nothing(int q)
{
	struct ibv_wc wc;

	NEED(!ibv_poll_cq(cq[q], 1, &wc));
}

/* ---- UC ---- */

static void to_init(int q)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT,
				    .port_num = 1,
				    .qp_access_flags =
					    IBV_ACCESS_REMOTE_WRITE };

	NEED(!ibv_modify_qp(qp[q], &attr,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				    IBV_QP_ACCESS_FLAGS));
}

/* the peer is of this process, at the address that is its own now */
static void to_rtr(int q, int peer)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_256,
		.dest_qp_num = qp[peer]->qp_num,
		.rq_psn = 0xfffffe,
		.ah_attr = { .is_global = 1,
			     .port_num = 1,
			     .grh = { .sgid_index = (uint8_t)gid_index,
				      .hop_limit = 64 } },
	};

	NEED(!ibv_query_gid(pd->context, 1, gid_index, &attr.ah_attr.grh.dgid));
	NEED(!ibv_modify_qp(qp[q], &attr,
			    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				    IBV_QP_DEST_QPN | IBV_QP_RQ_PSN));
}

static void connect_uc(int a, int b)
{
	to_rtr(a, b);
	to_rtr(b, a);
}

static void fill_uc(char what)
{
	memset(memory[QPS + 1], what, sizeof(memory[QPS + 1]));
}

/* several packets, to all of the memory of another QP, if it is a WRITE */
static void post_uc(int q, int into, enum ibv_wr_opcode opcode, char what)
{
	struct ibv_sge sge = { (uintptr_t)memory[QPS + 1],
			       sizeof(memory[QPS + 1]), mr->lkey };
	struct ibv_send_wr wr = { .wr_id = (uint64_t)what,
				  .opcode = opcode,
				  .imm_data = htonl((uint32_t)what),
				  .sg_list = &sge,
				  .num_sge = 1 };
	struct ibv_send_wr *bad;

	if (opcode == IBV_WR_RDMA_WRITE_WITH_IMM) {
		wr.wr.rdma.remote_addr = (uintptr_t)memory[into];
		wr.wr.rdma.rkey = mr->rkey;
	}
	NEED(!ibv_post_send(qp[q], &wr, &bad));
}

static void sent_uc(int q, enum ibv_wc_opcode opcode, char what)
{
	struct ibv_wc wc = wait_for(q);

	NEED(!wc.status && wc.opcode == opcode);
	NEED(wc.wr_id == (uint64_t)what);
}

static void post_uc_recv(int q, uint64_t id)
{
	struct ibv_sge sge = { (uintptr_t)memory[q], sizeof(memory[q]),
			       mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = id, .sg_list = &sge, .num_sge = 1 };
	struct ibv_recv_wr *bad;

	memset(memory[q], 0, sizeof(memory[q]));
	NEED(!ibv_post_recv(qp[q], &wr, &bad));
}

static void received_uc(int q, uint64_t id, enum ibv_wc_opcode opcode,
			char what)
{
	const char *data = (const char *)memory[q];
	struct ibv_wc wc = wait_for(q);

	NEED(!wc.status && wc.opcode == opcode && wc.wr_id == id);
	NEED(wc.byte_len == sizeof(memory[q]));
	NEED(ntohl(wc.imm_data) == (uint32_t)what);
	for (size_t i = 0; i < sizeof(memory[q]); i++)
		NEED(data[i] == what);
}

/* a message, and a WRITE */
static void use_uc(int from, int to, char what)
{
	fill_uc(what);
	post_uc_recv(to, 20);
	post_uc(from, to, IBV_WR_SEND_WITH_IMM, what);
	sent_uc(from, IBV_WC_SEND, what);
	received_uc(to, 20, IBV_WC_RECV, what);
	post_uc_recv(to, 21);
	post_uc(from, to, IBV_WR_RDMA_WRITE_WITH_IMM, what);
	sent_uc(from, IBV_WC_RDMA_WRITE, what);
	received_uc(to, 21, IBV_WC_RECV_RDMA_WITH_IMM, what);
}

static void prepare_uc(void)
{
	for (int i = UD_QPS; i < QPS; i++)
		if (i != UC_RESET)
			to_init(i);
	connect_uc(UC_A, UC_B);
	connect_uc(UC_DRAINED, UC_RTR);
	change(UC_A, IBV_QPS_RTS);
	change(UC_B, IBV_QPS_RTS);
	change(UC_DRAINED, IBV_QPS_RTS);
	use_uc(UC_A, UC_B, 'l');
	use_uc(UC_B, UC_A, 'm');
	/* once around the ring: what lies behind the last request is an old one */
	for (int i = 0; i < DEPTH; i++)
		use_uc(UC_DRAINED, UC_RTR, (char)('A' + i));
	/* an idle queue is drained, too */
	change(UC_DRAINED, IBV_QPS_SQD);
	leave_sqd(UC_DRAINED);
	post_uc_recv(UC_A, 22);
	post_uc_recv(UC_ERR, 23);
	change(UC_ERR, IBV_QPS_ERR);
	change(UC_DRAINED, IBV_QPS_SQD);
	usleep(10000);
	post_uc_recv(UC_RTR, 24);
	post_uc(UC_DRAINED, UC_RTR, IBV_WR_SEND_WITH_IMM, 'n');
}

static void check_uc(void)
{
	struct ibv_wc wc;

	need_state(UC_A, IBV_QPS_RTS);
	need_state(UC_DRAINED, IBV_QPS_SQD);
	need_state(UC_RTR, IBV_QPS_RTR);
	need_state(UC_INIT, IBV_QPS_INIT);
	need_state(UC_RESET, IBV_QPS_RESET);
	need_state(UC_ERR, IBV_QPS_ERR);

	/* what has waited */
	fill_uc('n');
	leave_sqd(UC_DRAINED);
	sent_uc(UC_DRAINED, IBV_WC_SEND, 'n');
	received_uc(UC_RTR, 24, IBV_WC_RECV, 'n');
	fill_uc('o');
	post_uc(UC_B, UC_A, IBV_WR_SEND_WITH_IMM, 'o');
	sent_uc(UC_B, IBV_WC_SEND, 'o');
	received_uc(UC_A, 22, IBV_WC_RECV, 'o');
	wc = wait_for(UC_ERR);
	NEED(wc.status == IBV_WC_WR_FLUSH_ERR && wc.wr_id == 23);

	use_uc(UC_A, UC_B, 'p');
	use_uc(UC_B, UC_A, 'q');
	change(UC_RTR, IBV_QPS_RTS);
	use_uc(UC_RTR, UC_DRAINED, 'r');
	to_init(UC_RESET);
	connect_uc(UC_RESET, UC_INIT);
	change(UC_RESET, IBV_QPS_RTS);
	use_uc(UC_RESET, UC_INIT, 's');
}

/* ---- address handles ---- */

static struct ibv_ah *handle(union ibv_gid gid, int index)
{
	struct ibv_ah_attr attr = { .is_global = 1,
				    .port_num = 1,
				    .grh = { .dgid = gid,
					     .sgid_index = (uint8_t)index,
					     .hop_limit = 64 } };
	struct ibv_ah *ah;

	NEED(ah = ibv_create_ah(pd, &attr));
	return ah;
}

static union ibv_gid own_gid(void)
{
	union ibv_gid gid;

	NEED(!ibv_query_gid(pd->context, 1, gid_index, &gid));
	return gid;
}

/* its group is one of IPv6, and reaches as far as a link */
static struct ibv_gid_entry link_local(void)
{
	struct ibv_gid_entry entry = {};

	for (int i = 0; i < 16; i++)
		if (!ibv_query_gid_ex(pd->context, 1, i, &entry, 0) &&
		    entry.gid_type == IBV_GID_TYPE_ROCE_V2 &&
		    entry.gid.raw[0] == 0xfe)
			return entry;
	NEED(!"a link-local address");
	return entry;
}

/* That the host takes what is sent to the group, rdma_rxe leaves to others. */
static int join(void)
{
	struct ipv6_mreq req = { .ipv6mr_interface =
					 link_local().ndev_ifindex };
	int fd = socket(AF_INET6, SOCK_DGRAM, 0);

	memcpy(&req.ipv6mr_multiaddr, mgid.raw, sizeof(mgid.raw));
	NEED(fd >= 0);
	NEED(!setsockopt(fd, IPPROTO_IPV6, IPV6_JOIN_GROUP, &req, sizeof(req)));
	return fd;
}

/* ---- life ---- */

static void make(const char *device, const char *address)
{
	struct ibv_srq_init_attr srq_init = { .attr = { DEPTH, 1, 0 } };
	struct ibv_qp_init_attr init = { .qp_type = IBV_QPT_UD,
					 .sq_sig_all = 1,
					 .cap = { DEPTH, DEPTH, 1, 1, 0 } };
	struct ibv_context *verbs = loop_open(device);
	union ibv_gid gid;

	NEED(pd = ibv_alloc_pd(verbs));
	NEED(mr = ibv_reg_mr(pd, memory, sizeof(memory),
			     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE));
	gid = own_gid();
	if (address) {
		memcpy(gid.raw, (char[12]){ [10] = -1, -1 }, 12);
		NEED(inet_pton(AF_INET, address, gid.raw + 12) == 1);
	}
	home_gid = own_gid();
	home = handle(home_gid, gid_index);
	there = handle(gid, gid_index);
	ibv_destroy_ah(handle(own_gid(), gid_index)); /* a number is free */
	group = handle(mgid, (int)link_local().gid_index);
	near = handle(near_mgid, (int)link_local().gid_index);
	NEED(srq = ibv_create_srq(pd, &srq_init));
	for (int i = 0; i < QPS; i++) {
		NEED(cq[i] = ibv_create_cq(verbs, 4 * DEPTH, NULL, NULL, 0));
		init.send_cq = init.recv_cq = cq[i];
		init.srq = i == WITH_SRQ ? srq : NULL;
		init.qp_type = i < UD_QPS ? IBV_QPT_UD : IBV_QPT_UC;
		NEED(qp[i] = ibv_create_qp(pd, &init));
	}
}

static void prepare(void)
{
	int joined = join();

	for (int i = 0; i < UD_QPS; i++)
		if (i != IN_RESET)
			change(i, IBV_QPS_INIT);
	for (int i = 0; i < IN_INIT; i++) {
		change(i, IBV_QPS_RTR);
		for (uint64_t k = 0; k < DEPTH; k++)
			post_recv(i, k);
	}
	for (int i = 0; i < IN_RTR; i++)
		change(i, IBV_QPS_RTS);
	NEED(!ibv_attach_mcast(qp[MEMBER], &mgid, 0));
	NEED(!ibv_attach_mcast(qp[MEMBER], &near_mgid, 0));
	NEED(!ibv_attach_mcast(qp[WITH_SRQ], &mgid, 0));

	/* it works, and something is left of it */
	note_gids();
	post_send(SENDER, home, qp[MEMBER]->qp_num, QKEY, 'a');
	sent(SENDER, 'a');
	received(MEMBER, SENDER, 0, 'a');
	post_send(SENDER, home, qp[IN_RTR]->qp_num, QKEY, 'b');
	sent(SENDER, 'b');
	received(IN_RTR, SENDER, 0, 'b');
	post_send(SENDER, group, TO_GROUP, QKEY, 'c');
	received(WITH_SRQ, SENDER, 0, 'c');
	usleep(100000); /* nobody polls what MEMBER has got, nor that it was sent */
	NEED(!close(joined)); /* CRIU does not know what it was for */

	change(DRAINED, IBV_QPS_SQD);
	usleep(10000);
	post_send(DRAINED, there, qp[MEMBER]->qp_num, QKEY, 'd');
	post_send(DRAINED, group, TO_GROUP, QKEY, 'e');
	post_recv(IN_ERR, 0);
	change(IN_ERR, IBV_QPS_ERR);
	prepare_uc();
}

static void use_new(void)
{
	struct ibv_ah *self = handle(own_gid(), gid_index);
	struct ibv_wc wc;

	NEED(self != there);
	post_send(SENDER, self, qp[MEMBER]->qp_num, QKEY + 1, 'h');
	post_send(SENDER, self, qp[MEMBER]->qp_num, QKEY, 'i');
	sent(SENDER, 'h');
	sent(SENDER, 'i');
	received(MEMBER, SENDER, 6, 'i');

	need_state(IN_RTR, IBV_QPS_RTR);
	post_send(SENDER, self, qp[IN_RTR]->qp_num, QKEY, 'j');
	sent(SENDER, 'j');
	received(IN_RTR, SENDER, 1, 'j');

	need_state(IN_INIT, IBV_QPS_INIT);
	need_state(IN_RESET, IBV_QPS_RESET);
	change(IN_RESET, IBV_QPS_INIT);
	for (int i = IN_RTR; i <= IN_RESET; i++) {
		if (i != IN_RTR)
			change(i, IBV_QPS_RTR);
		change(i, IBV_QPS_RTS);
		post_recv(i, 7);
		post_send(i, self, qp[SENDER]->qp_num, QKEY, 'k');
		sent(i, 'k');
		received(SENDER, i, (uint64_t)(i - IN_RTR), 'k');
	}

	need_state(IN_ERR, IBV_QPS_ERR);
	wc = wait_for(IN_ERR);
	NEED(wc.status == IBV_WC_WR_FLUSH_ERR && wc.wr_id == 0);
	NEED(!ibv_destroy_ah(self));
}

static void check(void)
{
	int joined = join();
	union ibv_gid gid;

	/* as it was, from where it was */
	sent(SENDER, 'c');
	received(MEMBER, SENDER, 1, 'c');
	note_gids();
	nothing(MEMBER);
	need_state(SENDER, IBV_QPS_RTS);
	need_state(DRAINED, IBV_QPS_SQD);

	/* what has waited */
	leave_sqd(DRAINED);
	sent(DRAINED, 'd');
	received(MEMBER, DRAINED, 2, 'd');
	sent(DRAINED, 'e');
	received(MEMBER, DRAINED, 3, 'e');
	received(WITH_SRQ, DRAINED, 1, 'e');

	/* not to here any more; without a move it would be the next one */
	gid = own_gid();
	if (memcmp(&home_gid, &gid, sizeof(gid))) {
		post_send(SENDER, home, qp[MEMBER]->qp_num, QKEY, 'u');
		sent(SENDER, 'u');
	}
	/* old handles and groups, which can be left */
	NEED(!ibv_detach_mcast(qp[WITH_SRQ], &mgid, 0));
	NEED(ibv_detach_mcast(qp[SENDER], &mgid, 0));
	post_send(SENDER, group, TO_GROUP, QKEY, 'f');
	sent(SENDER, 'f');
	received(MEMBER, SENDER, 4, 'f');
	post_send(SENDER, near, TO_GROUP, QKEY, 't');
	sent(SENDER, 't');
	received(MEMBER, SENDER, 5, 't');
	/* and who has left got nothing before this */
	post_send(SENDER, there, qp[WITH_SRQ]->qp_num, QKEY, 'g');
	sent(SENDER, 'g');
	received(WITH_SRQ, SENDER, 2, 'g');
	NEED(!close(joined));
	use_new();
	check_uc();
}

static void destroy(void)
{
	struct ibv_context *verbs = pd->context;

	NEED(ibv_destroy_qp(qp[MEMBER])); /* it is still in the group */
	NEED(!ibv_detach_mcast(qp[MEMBER], &mgid, 0));
	NEED(ibv_destroy_qp(qp[MEMBER])); /* and in the other one */
	NEED(!ibv_detach_mcast(qp[MEMBER], &near_mgid, 0));
	for (int i = 0; i < QPS; i++)
		NEED(!ibv_destroy_qp(qp[i]) && !ibv_destroy_cq(cq[i]));
	NEED(!ibv_destroy_ah(there) && !ibv_destroy_ah(group));
	NEED(!ibv_destroy_ah(home) && !ibv_destroy_ah(near));
	NEED(!ibv_destroy_srq(srq) && !ibv_dereg_mr(mr));
	NEED(!ibv_dealloc_pd(pd) && !ibv_close_device(verbs));
}

int main(int argc, char **argv)
{
	const char *device = NULL, *address = NULL;
	int opt;

	while ((opt = getopt(argc, argv, "d:g:t:")) != -1) {
		if (opt == 'd')
			device = optarg;
		else if (opt == 'g')
			gid_index = atoi(optarg);
		else if (opt == 't')
			address = optarg;
		else
			return 2;
	}
	make(device, address);
	prepare();
	loop_wait();
	check();
	destroy();
	puts("PASS");
	return 0;
}
