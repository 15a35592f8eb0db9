// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The socket by which a process is suspended
 */
#include <limits.h>
#include <sys/ioctl.h>

#include "client.h"
#include "gate.h"

/* --- the socket --- */

static void test_socket(void)
{
	static const char *const wrong[] = {
		"\n",
		"resume \n",
		"Resume\n",
		"suspend\n",
		"suspend x\n",
		"suspend 10 \n",
		"suspend 10x\n",
		"suspend -1\n",
		"suspend 600001\n",
		"suspend 4000000000\n",
		"suspend 100 16777216\n",
		"suspend 100 1,2\n",
		"suspend 100 1 \n",
		"resume 1\n",
	};
	struct ibv_qp *qp, *real;
	struct ibv_cq *cq, *real_cq;
	struct ibv_wc wc;
	int f, second;
	char line[128];
	int qps;

	puts("the socket");
	cq = new_cq(8, &real_cq);
	qp = new_qp(IBV_QPT_RC, cq, &real);
	f = dial();
	put(f,
	    "resume\nsuspend 4294967296\n"); /* two at once; one that wraps */
	hear(f);
	hear(f);
	CHECK(strstr(answer, "\"errno\": 22"), "%s", answer);
	for (unsigned int i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		CHECK(said(f, wrong[i], "{\"ok\": false, \"errno\": 22, "),
		      "%s%s", wrong[i], answer);
	/* a line of too much is no word, nor is the end of it */
	memset(line, 'x', 63);
	strcpy(line + 63, "suspend 20000\n");
	put(f, line);
	MUST(!shutdown(f, SHUT_WR));
	while (read(f, line, sizeof(line)) > 0)
		;
	MUST(!close(f));
	f = dial();
	CHECK(said(f, "resume\n", "{\"ok\": false, \"errno\": 22, "));
	CHECK(!fake_sends(real));

	CHECK(!send_one(qp, 1, IBV_SEND_SIGNALED));
	say(f, "suspend 20000\n");
	CHECK(sscanf(answer,
		     "{\"ok\": true, \"qps\": %d, \"markers\": 1, "
		     "\"taken\": 1, \"wait_us\": %*u, \"drain_us\": %*u}\n",
		     &qps) == 1 &&
		      qps == 1,
	      "%s", answer);
	CHECK(said(f, "suspend 20000\n", "{\"ok\": false, \"errno\": 16, "));
	CHECK(!send_one(qp, 2, 0));
	SENT(real, 1);
	CHECK(said(f, "resume\n", "{\"ok\": true}"));
	SENT(real, 1, 2);
	CHECK(said(f, "resume\n", "{\"ok\": false, \"errno\": 22, "));
	prompt = false;
	say(f, "suspend 1\n");
	CHECK(strstr(answer, "\"errno\": 110") && strstr(answer, "drained"));
	prompt = true;
	fake_finish(real, UINT_MAX, IBV_WC_SUCCESS);
	CHECK(ibv_poll_cq(cq, 1, &wc) == 1 && wc.wr_id == 1);
	check_nothing(cq);

	puts("who goes away leaves nothing suspended; the next one is served");
	CHECK(said(f, "suspend 20000\n", "{\"ok\": true, "));
	CHECK(!send_one(qp, 3, 0));
	second = dial();
	put(second, "suspend 20000\n");
	SENT(real, 1, 2);
	MUST(!close(f));
	hear(second);
	CHECK(!strncmp(answer, "{\"ok\": true, \"qps\": 1, ", 22), "%s",
	      answer);
	SENT(real, 1, 2, 3);
	CHECK(!send_one(qp, 4, 0));
	SENT(real, 1, 2, 3);
	/* half a word is none */
	put(second, "resume");
	MUST(!close(second));
	WAIT(fake_waiting(real));
	SENT(real, 1, 2, 3, 4);
	CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_cq(cq));
}

/* The next one is served when it has been given up; without that, in ten minutes. */
static void leave(void)
{
	int f = dial();

	put(f, "suspend 600000\n");
	MUST(!close(f));
	f = dial();
	CHECK(said(f, "resume\n", "{\"ok\": false, \"errno\": 22, "));
	MUST(!close(f));
}

static void test_left(void)
{
	struct ibv_qp *qp, *real;
	struct ibv_qp_ex *ex;
	struct ibv_cq *cq, *real_cq;

	puts("who goes away while threads are waited for that are in a verb");
	cq = new_cq(8, &real_cq);
	qp = new_qp_ex(IBV_QPT_RC, cq, EX_OPS, &real);
	ex = ibv_qp_to_qp_ex(qp);
	gate_enter();
	leave();
	gate_leave();

	puts("in a batch of requests");
	ibv_wr_start(ex);
	leave();
	ibv_wr_abort(ex);

	puts("or for send queues");
	prompt = false;
	leave();
	CHECK(markers_of(real) == 1 && !send_one(qp, 1, IBV_SEND_SIGNALED));
	SENT(real, 1);
	prompt = true;
	fake_finish(real, UINT_MAX, IBV_WC_SUCCESS);
	POLLED(cq, 4, 1);
	CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_cq(cq));
}

/* --- some QPs --- */

static void test_full(void)
{
	struct ibv_qp *qp, *real, *other_qp, *real_other;
	struct ibv_cq *cq, *real_cq;
	struct ibv_wc wc[32];
	int f = dial();

	puts("nobody waits for a send queue that stays full");
	cq = new_cq(64, &real_cq);
	qp = new_qp(IBV_QPT_RC, cq, &real);
	other_qp = new_qp(IBV_QPT_RC, cq, &real_other);
	prompt = false;
	for (unsigned int i = 0; i <= cap.max_send_wr; i++)
		CHECK(!send_one(qp, i, IBV_SEND_SIGNALED));
	put(f, "suspend 500\n");
	WAIT(markers_of(real_other) == 1);
	CHECK(!send_one(qp, 50, 0) && !send_one(other_qp, 51, 0));
	hear(f);
	CHECK(strstr(answer, "\"errno\": 110"), "%s", answer);
	CHECK(fake_sends(real) == cap.max_send_wr + 1);
	SENT(real_other, 51);
	CHECK(said(f, "suspend 10\n", "{\"ok\": false, \"errno\": 110, "));
	CHECK(strstr(answer, "not posted yet"), "%s", answer);
	CHECK(!send_one(qp, 52, 0) && !send_one(other_qp, 53, 0));
	SENT(real_other, 51, 53);
	fake_finish(real, 2, IBV_WC_SUCCESS);
	WAIT(fake_sends(real) == cap.max_send_wr + 3);
	prompt = true;
	fake_finish(real, UINT_MAX, IBV_WC_SUCCESS);
	fake_finish(real_other, UINT_MAX, IBV_WC_SUCCESS);
	CHECK(does(f, "suspend 20000\n") && does(f, "resume\n"));
	CHECK(ibv_poll_cq(cq, 32, wc) == (int)cap.max_send_wr + 1);
	check_direct(cq, real_cq);
	CHECK(!close(f));
	CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_qp(other_qp));
	CHECK(!ibv_destroy_cq(cq));
}

static void test_some(void)
{
	struct ibv_qp *qp, *real, *other, *real_other;
	struct ibv_cq *cq, *real_cq;
	static char many[13 + 4096 * 9 + 2];
	char line[64];
	int f, second;

	puts("some QPs, and two clients");
	cq = new_cq(8, &real_cq);
	qp = new_qp(IBV_QPT_RC, cq, &real);
	other = new_qp(IBV_QPT_RC, cq, &real_other);
	f = dial();
	second = dial();
	snprintf(line, sizeof(line), "suspend 20000 %u 5\n", qp->qp_num);
	CHECK(said(f, line, "{\"ok\": false, \"errno\": 22, "));
	CHECK(strstr(answer, "no QP is 0x000005"), "%s", answer);
	/* as many as migr-layer may name, of eight digits each */
	strcpy(many, "suspend 20000");
	for (size_t n = strlen(many); n < 13 + 4096 * 9; n += 9)
		strcpy(many + n, " 16777214");
	strcat(many, "\n");
	CHECK(said(f, many, "{\"ok\": false, \"errno\": 22, "));
	CHECK(strstr(answer, "no QP is 0xfffffe"), "%s", answer);
	snprintf(line, sizeof(line), "suspend 20000 0x%x\n", qp->qp_num);
	CHECK(said(f, line, "{\"ok\": true, \"qps\": 1, \"markers\": 1, "));
	CHECK(said(f, "hold 100 100\n", "{\"ok\": false, \"errno\": 22, "));
	CHECK(strstr(answer, "only some QPs"), "%s", answer);
	CHECK(said(f, "names\n", "{\"ok\": true"));
	put(second, "suspend 20000\n");
	CHECK(!send_one(qp, 1, 0) && !send_one(other, 2, 0));
	CHECK(!markers_of(real_other));
	SENT(real_other, 2);
	check_sent(real, NULL, 0);
	MUST(!close(f));
	hear(second);
	CHECK(!strncmp(answer, "{\"ok\": true, \"qps\": 2, ", 22), "%s",
	      answer);
	SENT(real, 1);
	MUST(!close(second));
	CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_qp(other));
	CHECK(!ibv_destroy_cq(cq));
}

/* --- replacement --- */

/* the number behind a name, from the nth one on */
static uint32_t told(const char *name, unsigned int n)
{
	const char *at = answer;
	uint32_t value = 0;

	do {
		at = strstr(at, name);
		MUST(at);
		at += strlen(name);
	} while (n--);
	MUST(sscanf(at, "\": %u", &value) == 1);
	return value;
}

static void test_words(void)
{
	static const char *const wrong[] = {
		"names 1\n",
		"names  \n",
		" names\n",
		"replace\n",
		"replace x\n",
		"replace 600001\n",
		"replace 100 16777216\n",
		"replace 100 1,2\n",
		"replace 100  1\n",
		"peer 1 2 fe80::1\n",
		"peer 1 2 fe80::1 id more\n",
		"peer 1 2 fe80::1 id 3\n",
		"peer 1 2 fe80::1 id 3 4 5\n",
		"peer 1 2 fe80::1 id 3 0x1000000\n",
		"peer 1 2 10.0.0.1 id\n",
		"peer 1 2 fe80::1 \"id\n",
		"peer -1 2 fe80::1 id\n",
		"peer 1 0x fe80::1 id\n",
		"keys\n",
		"keys a b\n",
		"keys "
		"0123456789012345678901234567890123456789012345678901234567890123"
		"\n",
		"key id 1\n",
		"key id 1 4294967296\n",
		"key id 1 2 3\n",
		"key id 1 2 3 4294967296\n",
		"connect now\n",
		"hold 100\n",
		"hold 100 0\n",
		"hold 100 86401\n",
		"hold 600001 1\n",
		"elsewhere fe80::1 fe80::2\n",
		"elsewhere fe80::1 fe80::2 1\n",
		"elsewhere fe80::1 fe80::2 1 2 3\n",
		"elsewhere fe80::1 2 1 2\n",
		"elsewhere 10.0.0.1 fe80::2 1 2\n",
		"elsewhere fe80::1 fe80::2 1 0x1000000\n",
	};
	char line[128];
	uint32_t real;
	int f;

	puts("words of replacement");
	world_make();
	f = dial();
	for (unsigned int i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		CHECK(said(f, wrong[i], "{\"ok\": false, \"errno\": 22, "),
		      "%s%s", wrong[i], answer);
	CHECK(said(f, "replace 100\n", "{\"ok\": false, \"errno\": 22, "));
	CHECK(strstr(answer, "it is not suspended"), "%s", answer);
	CHECK(said(f, "connect\n", "{\"ok\": false, \"errno\": 22, "));
	CHECK(said(f, "peer 1 2 fe80::1 id\n", "{\"ok\": false, "));
	CHECK(said(f, "key id 1 2\n", "{\"ok\": false, \"errno\": 22, "));
	CHECK(strstr(answer, "it is not suspended"), "%s", answer);
	CHECK(does(f, "keys id\n") && does(f, "key id 1 2\n"));
	CHECK(does(f, "names\n"));
	CHECK(told("qpn", 0) == w.qp->qp_num &&
	      told("real", 0) == w.qp->qp_num);
	CHECK(told("\"peer\": {\"qpn", 0) == PEER_QPN);
	CHECK(strstr(answer, "\"type\": \"RC\", \"state\": \"RTS\", "
			     "\"gid\": \"fe00::3\", "));
	CHECK(strstr(answer, "\"gid\": \"fe00::9\"}}"), "%s", answer);
	CHECK(told("virtual", 0) == w.mr->rkey);
	CHECK(strstr(answer, "\"destinations\": []}"), "%s", answer);
	/* of datagrams, at any time */
	CHECK(does(f, "elsewhere fe80::1 fe80::2 1 2 3 0x4\n"));
	CHECK(does(f, "elsewhere\n"));

	CHECK(does(f, "suspend 20000\n"));
	CHECK(said(f, "replace 20000 5\n", "{\"ok\": false, \"errno\": 22, "));
	CHECK(strstr(answer, "no QP is 0x000005"));
	CHECK(does(f, "replace 20000\n"));
	world_look();
	CHECK(told("qps", 0) == 2 && told("objects", 0) == 8);
	CHECK(does(f, "names\n"));
	CHECK(told("qpn", 0) == w.qp->qp_num);
	CHECK(told("real", 0) == w.real->qp_num);
	CHECK(told("virtual", 0) == w.mr->rkey);
	real = ((struct ibv_mr *)fake_newest(FAKE_MR))->rkey;
	CHECK(real != w.mr->rkey && told("virtual", 0) != real);
	CHECK(said(f, "resume\n", "{\"ok\": false, \"errno\": 16, "));
	CHECK(strstr(answer, "is not connected"));
	CHECK(said(f, "connect\n", "{\"ok\": false, \"errno\": 22, "));
	snprintf(line, sizeof(line), "peer %u 0x5001 fe00::77 host-2:1234\n",
		 w.qp->qp_num);
	CHECK(does(f, line));
	snprintf(line, sizeof(line), "peer 0x%x 20482 fe00::77 host-2:1234\n",
		 w.of_srq->qp_num);
	CHECK(does(f, line));
	CHECK(does(f, "keys host-2:1234\n"));
	CHECK(does(f, "key host-2:1234 0x7701 0x8802 0x7901 0x8804\n"));
	CHECK(does(f, "connect\n") && told("qps", 0) == 2);
	CHECK(does(f, "names\n"));
	CHECK(strstr(answer, "\"gid\": \"fe00::9\", \"real\": 20481, "
			     "\"real_gid\": \"fe00::77\"}}"),
	      "%s", answer);
	CHECK(does(f, "resume\n"));
	CHECK(!write_one(w.qp, 1, 0x7701) && !write_one(w.qp, 1, 0x7901));
	CHECK(fake_sent(w.real, 0)->wr.wr.rdma.rkey == 0x8802);
	CHECK(fake_sent(w.real, 1)->wr.wr.rdma.rkey == 0x8804);
	fake_finish(w.real, 2, IBV_WC_SUCCESS);
	/* who is held hangs up, and is not heard of any more */
	CHECK(does(f, "suspend 20000\n") && does(f, "hold 20000 100\n"));
	CHECK(!read(f, line, 1) && !close(f));
	f = dial();
	CHECK(said(f, "resume\n", "{\"ok\": false, \"errno\": 16, "));
	MUST(!close(f));
	f = dial();
	CHECK(does(f, "replace 20000\n"));
	world_look();
	snprintf(line, sizeof(line),
		 "peer %u 0x5001 fe00::77 host-2:1234 0x%x 20482\n",
		 w.qp->qp_num, w.of_srq->qp_num);
	CHECK(does(f, line));
	CHECK(does(f, "connect\n") && does(f, "resume\n"));
	/* another one is told at any time, but not that there are no others */
	CHECK(does(f, "key host-2:1234 0x9901 0x8803\n"));
	CHECK(said(f, "keys host-2:1234\n", "{\"ok\": false, "));
	CHECK(!write_one(w.qp, 2, 0x9901) && !write_one(w.qp, 3, 0x7701));
	CHECK(fake_sent(w.real, 0)->wr.wr.rdma.rkey == 0x8803);
	CHECK(fake_sent(w.real, 1)->wr.wr.rdma.rkey == 0x8802);
	fake_finish(w.real, 2, IBV_WC_SUCCESS);

	puts("who goes away meanwhile leaves QPs in ERR");
	CHECK(does(f, "suspend 20000\n") && does(f, "replace 20000\n"));
	world_look();
	MUST(!close(f));
	WAIT(fake_state(w.real) == IBV_QPS_ERR);
	f = dial();
	CHECK(does(f, "names\n")); /* behind that */
	MUST(!close(f));
	world_destroy();
}

/* It is replaced, and held again, in one connection; and then nobody goes on. */
static void test_lease(void)
{
	int f;

	puts("who is held for too long");
	world_make();
	f = dial();
	CHECK(does(f, "suspend 20000\n"));
	hold_and_hang_up(f, "hold 20000 100\n");
	f = dial();
	CHECK(does(f, "replace 20000\n"));
	world_look();
	hold_and_hang_up(f, "hold 20000 1\n");
	check_lease_ends();

	puts("while somebody says nothing");
	world_make();
	f = dial();
	CHECK(does(f, "suspend 20000\n"));
	hold_and_hang_up(f, "hold 20000 1\n");
	f = dial();
	put(f, "res");
	check_lease_ends();
	/* the connection is as any other */
	CHECK(said(f, "ume\n", "{\"ok\": false, \"errno\": 22, "));
	CHECK(does(f, "suspend 20000\n"));
	hold_and_hang_up(f, "hold 20000 100\n");
	f = dial();
	CHECK(does(f, "replace 20000\n") && does(f, "resume\n"));
	MUST(!close(f));
}

/* and asks for more answers than there is room for */
static void test_deaf(void)
{
	char lines[2000 * 6 + 1] = "";
	int f;

	puts("and none of many");
	world_make();
	f = dial();
	CHECK(does(f, "suspend 20000\n"));
	hold_and_hang_up(f, "hold 20000 1\n");
	f = dial();
	for (int i = 0; i < 2000; i++)
		strcpy(lines + 6 * i, "names\n");
	put(f, lines); /* at once: there is little room for them, too */
	check_lease_ends();
	MUST(!close(f));
}

static void test_deaf_to_much(void)
{
	enum {
		REGIONS = 8000
	}; /* more than there is room for */
	struct ibv_mr **mr = calloc(REGIONS, sizeof(*mr));
	int f;

	puts("and while somebody does not read a long answer");
	MUST(mr);
	world_make();
	for (int i = 0; i < REGIONS; i++)
		MUST(mr[i] = ibv_reg_mr(pd, w.memory, 8,
					IBV_ACCESS_LOCAL_WRITE |
						IBV_ACCESS_REMOTE_WRITE));
	f = dial();
	CHECK(does(f, "suspend 20000\n"));
	hold_and_hang_up(f, "hold 20000 1\n");
	f = dial();
	put(f, "names\n");
	check_lease_ends();
	MUST(!close(f));
	for (int i = 0; i < REGIONS; i++)
		CHECK(!ibv_dereg_mr(mr[i]));
	free(mr);
}

static void test_closed(void)
{
	int f;

	puts("and when the program has closed the socket");
	world_make();
	f = dial();
	CHECK(does(f, "suspend 20000\n"));
	hold_and_hang_up(f, "hold 20000 1\n");
	MUST(!close(listening()));
	check_lease_ends();
}

/* the layer's end of a connection: the only socket without a client's name */
static int served(int f)
{
	struct sockaddr_un own;
	socklen_t length;

	for (int fd = 3; fd < 1000; fd++) {
		length = sizeof(own);
		if (fd != f && fd != listening() &&
		    !getsockname(fd, (struct sockaddr *)&own, &length) &&
		    own.sun_family == AF_UNIX && strstr(own.sun_path, ".sock"))
			return fd;
	}
	return -1;
}

static void test_other_file_of_a_connection(void)
{
	int f, fd, unread, other[2];
	char byte;

	puts("the program has closed a connection, and has another file of its number");
	f = dial();
	CHECK(said(f, "resume\n", "{\"ok\": false"));
	fd = served(f);
	MUST(fd > 0 && !socketpair(AF_UNIX, SOCK_STREAM, 0, other));
	MUST(dup2(other[0], fd) == fd);
	put(other[1], "resume\n"); /* for the program */
	MUST(!close(f));
	f = dial(); /* the next one is heard when the layer has let go of that */
	CHECK(said(f, "resume\n", "{\"ok\": false"));
	CHECK(recv(fd, &byte, 1, MSG_DONTWAIT) == 1 && byte == 'r');
	CHECK(!close(f) && !close(fd) && !close(other[0]) && !close(other[1]));

	puts("so it has while a word is obeyed");
	gate_enter();
	f = dial();
	put(f, "suspend 600000\n");
	WAIT((fd = served(f)) > 0 && !ioctl(fd, FIONREAD, &unread) && !unread);
	MUST(!socketpair(AF_UNIX, SOCK_STREAM, 0, other));
	MUST(dup2(other[0], fd) == fd);
	gate_leave();
	MUST(!close(f));
	f = dial();
	CHECK(said(f, "resume\n", "{\"ok\": false"));
	CHECK(recv(other[1], &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN);
	CHECK(!close(f) && !close(fd) && !close(other[0]) && !close(other[1]));
}

int main(void)
{
	rig_open();
	test_socket();
	test_left();
	test_full();
	test_some();
	test_words();
	test_lease();
	test_deaf_to_much();
	test_deaf();
	test_other_file_of_a_connection();
	test_closed();
	return rig_close();
}
