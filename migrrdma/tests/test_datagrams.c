// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * QPs of datagrams: they are suspended and replaced, and those who send to them follow.
 */
#include <string.h>
#include <sys/socket.h>

#include "elsewhere.h"
#include "replace_rig.h"
#include "slots.h"
#include "tell.h"

enum {
	QKEY = 0x1234,
	NOBODY = 0xfffffe,
};

static struct ibv_cq *cq;
static struct ibv_qp *qp, *behind; /* the real one */

static struct ibv_qp *datagram_qp(void)
{
	struct ibv_qp_init_attr_ex init = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { 6, 1, 2, 1, 14 },
		.qp_type = IBV_QPT_UD,
		.comp_mask =
			IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = pd,
		.send_ops_flags = IBV_QP_EX_WITH_SEND,
	};
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT,
				    .port_num = 1,
				    .qkey = QKEY };
	struct ibv_qp *made = ibv_create_qp_ex(ctx, &init);

	MUST(made);
	MUST(!ibv_modify_qp(made, &attr,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				    IBV_QP_QKEY));
	attr.qp_state = IBV_QPS_RTR;
	MUST(!ibv_modify_qp(made, &attr, IBV_QP_STATE));
	attr = (struct ibv_qp_attr){ .qp_state = IBV_QPS_RTS,
				     .sq_psn = OWN_PSN };
	MUST(!ibv_modify_qp(made, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN));
	return made;
}

static void begin(void)
{
	struct ibv_cq *real_cq;

	cq = new_cq(64, &real_cq);
	qp = datagram_qp();
	behind = fake_newest(FAKE_QP);
}

static void end(void)
{
	CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_cq(cq));
	CHECK(!fake_alive(FAKE_AH), "%u", fake_alive(FAKE_AH));
}

static union ibv_gid gid_of(int n)
{
	return (union ibv_gid){ .raw = { 0xfe, [15] = (uint8_t)n } };
}

/* a handle of a host, with the GID that has this number */
static struct ibv_ah *handle_from(struct ibv_pd *of, int n, uint8_t index)
{
	struct ibv_ah_attr attr = {
		.is_global = 1,
		.port_num = 1,
		.dlid = (uint16_t)n,
		.grh = { .dgid = gid_of(n), .sgid_index = index },
	};
	struct ibv_ah *ah = ibv_create_ah(of, &attr);

	MUST(ah);
	return ah;
}

static struct ibv_ah *handle_of(int n)
{
	return handle_from(pd, n, SGID_INDEX);
}

static int send_to(struct ibv_ah *ah, uint32_t qpn, uint64_t wr_id)
{
	struct ibv_sge sge = { .addr = 0x1000, .length = 8, .lkey = 9 };
	struct ibv_send_wr *bad, wr = {
		.wr_id = wr_id,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.ud = { ah, qpn, QKEY },
	};

	return ibv_post_send(qp, &wr, &bad);
}

/* Where does such a request go? By both kinds of calls. */
static void check_way(struct ibv_ah *ah, uint32_t qpn, int gid,
		      uint32_t real_qpn)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp);
	const struct fake_sent *sent;
	int to;

	CHECK(!send_to(ah, qpn, 7));
	sent = fake_sent(behind, fake_sends(behind) - 1);
	to = fake_dgid(sent->wr.wr.ud.ah)->raw[15];
	CHECK(to == gid && sent->wr.wr.ud.remote_qpn == real_qpn,
	      "to 0x%x at %d, not 0x%x at %d", sent->wr.wr.ud.remote_qpn, to,
	      real_qpn, gid);
	CHECK(sent->wr.wr.ud.remote_qkey == QKEY);
	fake_finish(behind, 1, IBV_WC_SUCCESS);
	POLLED(cq, 4, 7);
	ibv_wr_start(ex);
	ibv_wr_send(ex);
	ibv_wr_set_ud_addr(ex, ah, qpn, QKEY);
	ibv_wr_abort(ex);
	SAW("wr_set_ud_addr", behind, sent->wr.wr.ud.ah, real_qpn, QKEY);
}

/* some at once; ends with 0 */
static int tell_all(const int (*all)[4])
{
	for (; (*all)[0]; all++) {
		const struct elsewhere e = { gid_of((*all)[0]),
					     gid_of((*all)[1]),
					     (uint32_t)(*all)[2],
					     (uint32_t)(*all)[3] };

		CHECK(!elsewhere_add(&e, 1));
	}
	return layer_elsewhere(&swapped);
}

static int tell(int gid, int at, uint32_t was, uint32_t is)
{
	return tell_all(
		(const int[][4]){ { gid, at, (int)was, (int)is }, { 0 } });
}

static void test_suspended(void)
{
	const struct fake_sent *sent;
	struct ibv_ah *ah;

	puts("a marker goes to nobody, at an address of the port");
	begin();
	ah = handle_of(20);
	prompt = false;
	CHECK(!send_to(ah, 5, 1));
	begin_suspend(LONG);
	WAIT(fake_sends(behind) == 2);
	sent = fake_sent(behind, 1);
	CHECK(is_marker(sent) && sent->wr.opcode == IBV_WR_SEND);
	CHECK(sent->wr.wr.ud.remote_qpn == NOBODY);
	CHECK(sent->wr.wr.ud.ah == fake_newest(FAKE_AH));
	CHECK(!memcmp(&fake_last.ah.grh.dgid, &fake_gids[0].gid, 16));
	CHECK(fake_last.ah.grh.sgid_index == 0 && fake_last.ah.port_num == 1);
	CHECK(!send_to(ah, 5, 2)); /* waits */
	CHECK(fake_sends(behind) == 2);
	fake_finish(behind, 2, IBV_WC_SUCCESS);
	CHECK(!end_suspend() && found.qps == 1 && found.markers == 1);
	POLLED(cq, 4, 1);
	resume();
	CHECK(fake_sends(behind) == 3);
	fake_finish(behind, 1, IBV_WC_SUCCESS);
	POLLED(cq, 4, 2);
	prompt = true;

	puts("the second time it has that address");
	fake_last.ah.dlid = 77;
	suspend();
	resume();
	CHECK(fake_last.ah.dlid == 77);
	CHECK(!ibv_destroy_ah(ah));
	end();

	puts("another one, if there is no way to that; there is none");
	begin();
	fake_fail("ibv_create_ah", ENETUNREACH);
	suspend();
	resume();
	CHECK(fake_last.ah.grh.sgid_index == 1);
	end();
	begin();
	for (int i = 0; i < FAKE_GIDS; i++)
		fake_gids[i].port_num = 2;
	CHECK(layer_suspend(LONG, &found) == EADDRNOTAVAIL);
	CHECK(strstr(found.reason, "markers go to no address"), "%s",
	      found.reason);
	fake_fail("_ibv_query_gid_table", EIO);
	CHECK(layer_suspend(LONG, &found) == EIO);
	for (int i = 0; i < FAKE_GIDS; i++)
		fake_gids[i].port_num = 1;
	fake_fail_times("ibv_create_ah", EHOSTUNREACH, FAKE_GIDS);
	CHECK(layer_suspend(LONG, &found) == EHOSTUNREACH);
	suspend();
	resume();
	end();
}

static void replaced(void)
{
	CHECK(!layer_replace(NULL, 0, LONG, &swapped), "%s", swapped.reason);
	real_ctx = fake_newest(FAKE_CONTEXT);
	behind = fake_newest(FAKE_QP);
	CHECK(!layer_connect(&swapped), "%s", swapped.reason);
	resume();
}

/* That is for the provider to refuse, and names no address handle. */
static void test_others(void)
{
	struct ibv_send_wr *bad, wr = { .opcode = IBV_WR_LOCAL_INV,
					.wr.ud.ah = (struct ibv_ah *)8 };

	puts("what is none of a datagram is handed on");
	begin();
	CHECK(!ibv_post_send(qp, &wr, &bad));
	CHECK(fake_sends(behind) == 1);
	fake_finish(behind, 1, IBV_WC_SUCCESS);
	end();
}

static void test_replaced(void)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_recv_wr *bad;
	struct ibv_ah *ah;

	puts("what a QP of datagrams had, another one has");
	begin();
	ah = handle_of(20);
	CHECK(!ibv_post_recv(qp, &(struct ibv_recv_wr){ .wr_id = 5 }, &bad));
	CHECK(!send_to(ah, 5, 1));
	fake_finish(behind, 1, IBV_WC_SUCCESS);
	suspend();
	CHECK(!send_to(ah, 6, 2));
	replaced();
	CHECK(!ibv_query_qp(behind, &attr, IBV_QP_STATE, &init));
	CHECK(behind->state == IBV_QPS_RTS && attr.qkey == QKEY &&
	      attr.sq_psn == OWN_PSN);
	POLLED(cq, 4, 1);
	CHECK(fake_sends(behind) == 1 &&
	      fake_sent(behind, 0)->wr.wr.ud.remote_qpn == 6);
	fake_finish(behind, 1, IBV_WC_SUCCESS);
	POLLED(cq, 4, 2);
	check_way(ah, 5, 20, 5);

	puts("once more before it goes on, and in ERR");
	suspend();
	CHECK(!layer_replace(NULL, 0, LONG, &swapped), "%s", swapped.reason);
	CHECK(!layer_connect(&swapped), "%s", swapped.reason);
	replaced();
	set_state(qp, IBV_QPS_ERR);
	fake_needs_rts = true;
	suspend();
	replaced();
	fake_needs_rts = false;
	CHECK(behind->state == IBV_QPS_ERR);
	POLLED(cq, 4, 5);
	CHECK(!ibv_destroy_ah(ah));
	end();
}

static void test_elsewhere(void)
{
	/* of two contexts, or processes, too */
	static const int up[][4] = { { 70, 71, 0x21, 0x22 },
				     { 70, 71, 0x22, 0x23 },
				     { 70, 71, 0x23, 0x24 },
				     { 0 } },
			 down[][4] = { { 71, 70, 0x22, 0x20 },
				       { 71, 70, 0x23, 0x21 },
				       { 71, 70, 0x24, 0x22 },
				       { 0 } },
			 round[][4] = { { 70, 70, 0x20, 0x22 },
					{ 70, 70, 0x21, 0x23 },
					{ 70, 70, 0x22, 0x21 },
					{ 0 } };
	struct ibv_ah *ah, *other, *late, *next, *far;
	struct ibv_context *ctx2;
	struct ibv_pd *pd2;
	unsigned int n;

	puts("datagrams follow those who are elsewhere, and no others");
	begin();
	ah = handle_of(20);
	other = handle_of(21);
	CHECK(!tell(20, 30, 0x11, 0x51), "%s", swapped.reason);
	CHECK(fake_last.ah.grh.dgid.raw[15] == 30 &&
	      fake_last.ah.grh.sgid_index == SGID_INDEX);
	check_way(ah, 0x11, 30, 0x51);
	check_way(ah, 0x12, 20, 0x12);
	check_way(other, 0x11, 21, 0x11);
	late = handle_of(20);
	check_way(late, 0x11, 30, 0x51);
	check_way(late, 0x12, 20, 0x12);
	CHECK(!ibv_destroy_ah(late));

	puts("further on; by all names, also back to where it was");
	CHECK(!tell(30, 40, 0x51, 0x61), "%s", swapped.reason);
	check_way(ah, 0x11, 40, 0x61);
	late = handle_of(30);
	check_way(late, 0x51, 30, 0x51);
	check_way(late, 0x11, 30, 0x11);
	CHECK(!ibv_destroy_ah(late));
	CHECK(!tell(40, 20, 0x61, 0x71), "%s", swapped.reason);
	check_way(ah, 0x11, 20, 0x71);
	check_way(ah, 0x71, 20, 0x71);
	CHECK(!tell(20, 20, 0x71, 0x72), "%s", swapped.reason);
	check_way(ah, 0x11, 20, 0x72);

	puts("numbers of before are those of others now");
	CHECK(!tell_all(up) && !tell_all(down) && !tell_all(round));
	late = handle_of(70);
	check_way(late, 0x21, 70, 0x22);
	check_way(late, 0x22, 70, 0x23);
	check_way(late, 0x23, 70, 0x21);
	CHECK(!ibv_destroy_ah(late));
	/* numbers at a GID that they came to are others' there */
	late = handle_of(71);
	check_way(late, 0x21, 71, 0x21);
	CHECK(!ibv_destroy_ah(late));

	puts("who is replaced knows it still");
	suspend();
	replaced();
	check_way(other, 0x11, 21, 0x11);
	CHECK(!send_to(ah, 0x11, 3));
	n = fake_sends(behind);
	CHECK(fake_sent(behind, n - 1)->wr.wr.ud.remote_qpn == 0x72);
	fake_finish(behind, 1, IBV_WC_SUCCESS);
	POLLED(cq, 4, 3);

	puts("while it is suspended; and when there is no way, or no memory");
	suspend();
	CHECK(!tell(21, 31, 0x11, 0x81));
	resume();
	check_way(other, 0x11, 31, 0x81);
	fake_fail("ibv_create_ah", EHOSTUNREACH);
	CHECK(tell(21, 32, 0x12, 0x82) == EHOSTUNREACH);
	CHECK(strstr(swapped.reason, "address handle"), "%s", swapped.reason);
	check_way(other, 0x12, 21, NOBODY);
	CHECK(!tell(21, 32, 0x12, 0x82), "%s", swapped.reason);
	check_way(other, 0x12, 32, 0x82);

	puts("who is not found from one GID, or device, may be from another");
	late = handle_from(pd, 22, SGID_INDEX);
	next = handle_from(pd, 22, SGID_INDEX + 1);
	MUST(ctx2 = app_open(1));
	MUST(pd2 = ibv_alloc_pd(ctx2));
	far = handle_from(pd2, 22, SGID_INDEX);
	fake_fail("ibv_create_ah", EHOSTUNREACH);
	CHECK(tell(22, 33, 0x14, 0x84) == EHOSTUNREACH);
	CHECK(fake_dgid(fake_newest(FAKE_AH))->raw[15] == 33 &&
	      ((struct ibv_ah *)fake_newest(FAKE_AH))->context != real_ctx);
	check_way(late, 0x14, 22, NOBODY);
	check_way(next, 0x14, 33, 0x84);
	CHECK(!ibv_destroy_ah(late) && !ibv_destroy_ah(next));
	CHECK(!ibv_destroy_ah(far) && !ibv_dealloc_pd(pd2));
	CHECK(!ibv_close_device(ctx2));

	puts("where they were is nobody any more");
	fake_fail("ibv_create_ah", ETIMEDOUT);
	late = handle_of(21);
	check_way(late, 0x12, 32, 0x82);
	check_way(late, 0x13, fake_gids[SGID_INDEX].gid.raw[15], NOBODY);
	CHECK(!ibv_destroy_ah(late));
	fake_fail("ibv_create_ah", ETIMEDOUT);
	FAILS_WITH(ETIMEDOUT,
		   ibv_create_ah(pd, &(struct ibv_ah_attr){
					     .is_global = 1,
					     .port_num = 1,
					     .grh.dgid = { .raw = { 1 } } }));
	CHECK(!ibv_destroy_ah(ah) && !ibv_destroy_ah(other));
	end();
}

static void test_groups(void)
{
	const union ibv_gid a = { .raw = { 0xff, [15] = 1 } },
			    b = { .raw = { 0xff, [15] = 2 } };
	struct ibv_qp *before;

	puts("another one is in the same groups, the one before is in none");
	begin();
	CHECK(!ibv_attach_mcast(qp, &a, 0) && !ibv_attach_mcast(qp, &a, 0));
	CHECK(!ibv_attach_mcast(qp, &a, 9) && !ibv_attach_mcast(qp, &b, 0));
	CHECK(!ibv_detach_mcast(qp, &a, 9));
	suspend();
	replaced();
	CHECK(fake_alive(FAKE_QP) == 1);
	CHECK(fake_in_group(behind, &a, 0) && fake_in_group(behind, &b, 0) &&
	      !fake_in_group(behind, &a, 9));

	puts("so it is if it alone is replaced");
	CHECK(!suspend_one(qp, LONG));
	CHECK(!layer_replace(&qp->qp_num, 1, LONG, &swapped), "%s",
	      swapped.reason);
	behind = fake_newest(FAKE_QP);
	CHECK(fake_alive(FAKE_QP) == 1 && fake_in_group(behind, &a, 0));
	CHECK(!layer_connect(&swapped));
	resume();

	puts("one that cannot be joined is named, and nothing has changed");
	before = behind;
	suspend();
	fake_fail_later("ibv_attach_mcast", ENOMEM, 1);
	CHECK(layer_replace(NULL, 0, LONG, &swapped) == ENOMEM);
	CHECK(strstr(swapped.reason, "a multicast group of QP"), "%s",
	      swapped.reason);
	resume();
	CHECK(fake_alive(FAKE_QP) == 1 && fake_in_group(before, &a, 0) &&
	      fake_in_group(before, &b, 0));
	CHECK(ibv_destroy_qp(qp) == EBUSY);
	CHECK(!ibv_detach_mcast(qp, &a, 0) && !ibv_detach_mcast(qp, &b, 0));
	end();
}

/* --- what arrives --- */

static char arrived[64]; /* with what comes before a datagram */

static void post_recv(uint64_t wr_id, uint32_t length)
{
	struct ibv_sge sge = { (uintptr_t)arrived, length, 9 };
	struct ibv_recv_wr *bad,
		wr = { .wr_id = wr_id, .sg_list = &sge, .num_sge = 1 };

	CHECK(!ibv_post_recv(qp, &wr, &bad));
}

static void header_6(int gid)
{
	const union ibv_gid from = gid_of(gid);

	memset(arrived, 0, sizeof(arrived));
	arrived[0] = 0x60;
	memcpy(arrived + 8, &from, sizeof(from));
}

/* that of IPv4 is in its end, and before that there is anything */
static void header_4(int last)
{
	uint32_t sum = 0x4500 + 0x0a0a + (uint32_t)last;

	memset(arrived, 0x66, sizeof(arrived));
	memset(arrived + 20, 0, 20);
	arrived[20] = 0x45;
	memcpy(arrived + 32, (char[]){ 10, 10, 0, (char)last }, 4);
	arrived[30] = (char)(~sum >> 8);
	arrived[31] = (char)~sum;
}

/* Is it right, and from there? */
static bool is_header_4(int last)
{
	uint32_t sum = 0;

	for (int i = 20; i < 40; i += 2)
		sum += (uint32_t)((uint8_t)arrived[i] << 8 |
				  (uint8_t)arrived[i + 1]);
	return (sum & 0xffff) + (sum >> 16) == 0xffff && arrived[35] == last;
}

static bool is_header_6(int gid)
{
	const union ibv_gid from = gid_of(gid);

	return !memcmp(arrived + 8, &from, sizeof(from));
}

/* It is of so many bytes with its header: whom is it from, for the application? */
static uint32_t source_of(uint32_t real_qpn, uint32_t length)
{
	static uint64_t wr_id = 100;
	struct ibv_wc wc;

	fake_source = real_qpn;
	post_recv(++wr_id, length);
	fake_receive(behind, length);
	MUST(ibv_poll_cq(cq, 1, &wc) == 1);
	CHECK(wc.wr_id == wr_id && wc.qp_num == qp->qp_num);
	fake_source = 0;
	return wc.src_qp;
}

/* one that the layer has taken meanwhile, too */
static void test_extended(uint64_t flags)
{
	struct ibv_poll_cq_attr attr = {};
	struct ibv_cq *real_cq;
	struct ibv_cq_ex *ex;

	printf("the same of an extended CQ, %#llx\n",
	       (unsigned long long)flags);
	ex = new_cq_ex(flags, &real_cq);
	cq = ibv_cq_ex_to_cq(ex);
	qp = datagram_qp();
	behind = fake_newest(FAKE_QP);
	CHECK(!tell(80, 81, 0x11, 0x91));
	for (uint64_t i = 1; i <= 4; i++) {
		header_6(81);
		fake_source = i == 2 ? 0x92 : 0x91;
		post_recv(i, 64);
		if (i == 3)
			suspend();
		fake_receive(behind, 64);
		if (i == 3)
			resume();
		CHECK(!ibv_start_poll(ex, &attr) && ex->wr_id == i);
		CHECK(ibv_wc_read_src_qp(ex) == (i == 2 ? 0x92 : 0x11), "0x%x",
		      ibv_wc_read_src_qp(ex));
		CHECK(is_header_6(i == 2 ? 81 : 80));
		ibv_end_poll(ex);
	}
	fake_source = 0;
	end();
}

static void test_sources(void)
{
	const struct elsewhere e = {
		{ .raw = { [10] = 0xff, 0xff, 10, 10, 0, 2 } },
		{ .raw = { [10] = 0xff, 0xff, 10, 10, 0, 3 } },
		0x11,
		0x21
	};
	struct ibv_recv_wr *bad;
	struct ibv_mr *mr;

	puts("whom a datagram is from, as the application knows him");
	begin();
	header_6(60);
	CHECK(source_of(0x51, 64) == 0x51);
	CHECK(!tell(59, 60, 0x11, 0x51));
	CHECK(source_of(0x51, 64) == 0x11 && is_header_6(59));
	header_6(60);
	CHECK(source_of(0x52, 64) == 0x52 && is_header_6(60));
	CHECK(source_of(0x51, 39) == 0x51); /* its header is cut */
	CHECK(!tell(60, 61, 0x51, 0x61));
	header_6(61);
	CHECK(source_of(0x61, 64) == 0x11 && is_header_6(59));
	header_6(62);
	CHECK(source_of(0x61, 64) == 0x61 && is_header_6(62));
	header_6(60);
	CHECK(source_of(0x51, 64) == 0x51); /* another one's by now */
	CHECK(!elsewhere_add(&e, 1) && !layer_elsewhere(&swapped));
	header_4(3);
	CHECK(is_header_4(3));
	CHECK(source_of(0x21, 64) == 0x11 && is_header_4(2));
	header_4(2);
	CHECK(source_of(0x21, 64) == 0x21 && is_header_4(2));

	puts("no more RECVs are known than there are");
	for (int i = 0; i < 4200; i++) {
		CHECK(!ibv_post_recv(qp, &(struct ibv_recv_wr){ .wr_id = 5 },
				     &bad));
		set_state(qp, IBV_QPS_RESET);
		set_state(qp, IBV_QPS_RTS);
	}
	CHECK(slots_retired(to_context(ctx)) == 4096);
	puts("addresses that are none of the process are not looked at");
	mr = ibv_reg_mr_iova(pd, arrived, sizeof(arrived), 0, 0);
	MUST(mr);
	header_4(3);
	CHECK(source_of(0x21, 64) == 0x21);
	CHECK(!ibv_dereg_mr(mr));
	end();
}

static char *names(void)
{
	static char text[4096];
	int pair[2];
	ssize_t n;

	MUST(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	MUST(!tell_names(pair[0]) && !close(pair[0]));
	n = recv(pair[1], text, sizeof(text) - 1, MSG_WAITALL);
	MUST(n > 0 && !close(pair[1]));
	text[n] = 0;
	return text;
}

/* Return: a handle of whom a datagram is from that had come to this GID, or NULL */
static struct ibv_ah *answer_to(const union ibv_gid *gid)
{
	struct ibv_wc wc = { .wc_flags = IBV_WC_GRH };
	struct ibv_ah_attr attr;
	struct ibv_ah *ah;

	memcpy(arrived + 24, gid, sizeof(*gid));
	ah = ibv_create_ah_from_wc(pd, &wc, (struct ibv_grh *)arrived, 1);
	CHECK(!memcmp(arrived + 24, gid, sizeof(*gid)));
	CHECK(!ibv_init_ah_from_wc(ctx, 1, &wc, (struct ibv_grh *)arrived,
				   &attr) == !!ah);
	return ah;
}

static void test_answers(void)
{
	static const union ibv_gid group = { .raw = { 0xff, [15] = 1 } };
	const union ibv_gid was = gid_of(99);
	struct ibv_wc wc = { .wc_flags = IBV_WC_GRH };
	struct ibv_ah *ah;

	puts("answers to what had come before, by its completion");
	header_6(50);
	MUST(ah = answer_to(&was));
	CHECK(fake_last.ah.grh.sgid_index == 1, "%u",
	      fake_last.ah.grh.sgid_index);
	check_way(ah, 0x11, 50, 0x11);
	CHECK(!ibv_destroy_ah(ah));
	FAILS_WITH(ENOENT, answer_to(&group));

	header_4(3);
	arrived[0] = 0;
	arrived[39] = 9;
	MUST(ah = ibv_create_ah_from_wc(pd, &wc, (struct ibv_grh *)arrived, 1));
	CHECK(fake_last.ah.grh.sgid_index == 5, "%u",
	      fake_last.ah.grh.sgid_index);
	CHECK(arrived[39] == 9);
	CHECK(!ibv_destroy_ah(ah));
	arrived[36] = (char)0xe1;
	FAILS_WITH(ENOENT, ibv_create_ah_from_wc(pd, &wc,
						 (struct ibv_grh *)arrived, 1));
}

static void test_other_host(void)
{
	struct ibv_gid_entry before[FAKE_GIDS];
	struct ibv_ah *ah, *gone, *too;

	puts("on another host handles have GIDs of that");
	memcpy(before, fake_gids, sizeof(before));
	begin();
	ah = handle_of(50);
	gone = handle_of(51);
	too = handle_of(51); /* is not looked for again */
	CHECK(strstr(names(), "\"RTS\", \"gid\": \"fe00::\"}"), "%s", names());
	CHECK(strstr(names(),
		     "\"destinations\": [\"fe00::32\", \"fe00::33\"]}"));
	hold(100);
	fake_gids[7] = fake_gids[SGID_INDEX];
	fake_gids[7].gid_index = 7;
	fake_gids[SGID_INDEX].gid.raw[15] = 0x80;
	fake_gids[0].port_num = 2;
	fake_gids[5].gid =
		(union ibv_gid){ .raw = { [10] = 0xff, 0xff, 10, 10, 0, 7 } };
	world_leaves_host();
	fake_fail_later("ibv_create_ah", ETIMEDOUT, 1);
	CHECK(!layer_replace(NULL, 0, LONG, &swapped), "%s", swapped.reason);
	real_ctx = fake_newest(FAKE_CONTEXT);
	behind = fake_newest(FAKE_QP);
	world_is_back();
	CHECK(!layer_connect(&swapped), "%s", swapped.reason);
	resume();
	CHECK(fake_last.ah.grh.sgid_index == 7);
	CHECK(!memcmp(&fake_last.ah.grh.dgid, &fake_gids[7].gid, 16));

	test_answers();

	puts("and what goes to who is nowhere goes to nobody, here");
	check_way(gone, 0x11, fake_gids[7].gid.raw[15], NOBODY);
	check_way(too, 0x11, fake_gids[7].gid.raw[15], NOBODY);
	check_way(ah, 0x11, 50, 0x11);
	memcpy(fake_gids, before, sizeof(before));
	CHECK(!ibv_destroy_ah(ah) && !ibv_destroy_ah(gone));
	CHECK(!ibv_destroy_ah(too));
	end();
}

int main(void)
{
	rig_open();
	test_suspended();
	test_replaced();
	test_elsewhere();
	test_groups();
	test_others();
	test_other_host();
	test_extended(IBV_WC_EX_WITH_SRC_QP);
	test_extended(IBV_WC_EX_WITH_SRC_QP |
		      IBV_WC_EX_WITH_COMPLETION_TIMESTAMP);
	test_sources();
	return rig_close();
}
