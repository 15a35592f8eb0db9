// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Connections that are made after a move: who is told of his peer
 */
#include "meet_rig.h"

#define ID "@n1:7:8:1"

static int f;

/* the key of the last request that a QP has been given */
static uint32_t posted(struct ibv_qp *qp, struct ibv_qp *real, uint32_t rkey)
{
	uint32_t key;

	CHECK(!write_one(qp, 1, rkey));
	key = fake_sent(real, fake_sends(real) - 1)->wr.wr.rdma.rkey;
	fake_finish(real, 1, IBV_WC_SUCCESS);
	check_polled(w.cq, 1, (uint64_t[]){ 1 }, 1);
	return key;
}

static void meet(const struct ibv_qp *qp, unsigned int peer)
{
	char line[128];

	snprintf(line, sizeof(line), "met %u %u " PEER_GID " " ID "\n",
		 qp->qp_num, peer);
	CHECK(does(f, line), "%s", answer);
}

static void keys(void)
{
	CHECK(does(f, "keys " ID "\n"), "%s", answer);
	CHECK(does(f, "key " ID " 0x7701 0x8802\n"), "%s", answer);
}

static bool keys_are_known(void)
{
	return said(f, "keys " ID "\n", "{\"ok\": false, \"errno\": 16");
}

static void test_met(void)
{
	struct ibv_qp *qp, *real;

	puts("before it is connected");
	qp = make(&real);
	keys();
	meet(qp, PEER_QPN);
	to_rts(qp);
	CHECK(posted(qp, real, 0x7701) == 0x8802);
	CHECK(posted(qp, real, 0x9901) == 0x9901);
	CHECK(keys_are_known());
	puts("and again, to the same one");
	reset(qp);
	CHECK(keys_are_known());
	to_rts(qp);
	CHECK(posted(qp, real, 0x7701) == 0x8802);
	CHECK(!ibv_destroy_qp(qp));
	puts("when it is connected already");
	qp = make(&real);
	to_rts(qp);
	CHECK(posted(qp, real, 0x7701) == 0x7701);
	keys();
	meet(qp, PEER_QPN);
	CHECK(posted(qp, real, 0x7701) == 0x8802);
	CHECK(!ibv_destroy_qp(qp));
	puts("by others, before and after");
	qp = make(&real);
	keys();
	meet(qp, PEER_QPN);
	for (unsigned int i = 1; i < 16; i++)
		meet(qp, PEER_QPN + i);
	meet(qp, PEER_QPN + 15);
	to_rts(qp);
	meet(qp, PEER_QPN + 1);
	CHECK(posted(qp, real, 0x7701) == 0x8802);
	CHECK(!ibv_destroy_qp(qp));
	puts("to another one");
	qp = make(&real);
	keys();
	meet(qp, PEER_QPN + 1);
	CHECK(keys_are_known());
	to_rts(qp);
	CHECK(posted(qp, real, 0x7701) == 0x7701);
	keys(); /* nobody leads there */
	CHECK(!ibv_destroy_qp(qp));
}

static void test_refused(void)
{
	static const char *const wrong[] = {
		"met 1 2 " PEER_GID "\n",
		"met 1 2 " PEER_GID " " ID " 4\n",
		"met 16777216 2 " PEER_GID " " ID "\n",
		"met 1 16777216 " PEER_GID " " ID "\n",
		"met 1 2 10.0.0.1 " ID "\n",
		"met 1 2 " PEER_GID " a/b\n",
		"met 1 2 " PEER_GID " nobody\n",      /* has told no keys */
		"met 999999 2 " PEER_GID " " ID "\n", /* no QP is that */
	};
	char line[128];

	puts("what is refused");
	keys();
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		CHECK(said(f, wrong[i], "{\"ok\": false, \"errno\": 22"),
		      "%s%s", wrong[i], answer);
	snprintf(line, sizeof(line), "met %u 2 " PEER_GID " " ID "\n",
		 w.qp->qp_num);
	CHECK(does(f, "suspend 20000\n"));
	CHECK(said(f, line, "{\"ok\": false, \"errno\": 16"), "%s", answer);
	CHECK(does(f, "resume\n"));
	puts("keys all over the table");
	keys();
	for (unsigned int i = 0; i < 100; i++) {
		snprintf(line, sizeof(line), "key " ID " %u 0x8802\n", i << 20);
		if (!does(f, line))
			break;
		CHECK(i < 70);
	}
	CHECK(strstr(answer, "\"errno\": 12"), "%s", answer);
}

int main(void)
{
	char none[64];

	rig_open();
	snprintf(none, sizeof(none), "%s/migrd", dir);
	MUST(!setenv("MIGRD_SOCKET", none, 1));
	world_make();
	f = dial(); /* whoever hangs up resumes, at some time */
	test_met();
	test_refused();
	puts("and has moved");
	world_replace();
	test_met();
	MUST(!close(f));
	world_destroy();
	return rig_close();
}
