// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Connections that are made after a move: who is told of his peer
 */
#include "met_rig.h"

#define ID "@n1:7:8:1"

static void meet(const struct ibv_qp *qp, unsigned int peer)
{
	CHECK(is_met(qp, peer, ID), "%s", answer);
}

static void keys(void)
{
	CHECK(tells_keys(ID, 0x8802), "%s", answer);
}

static bool keys_are_known(void)
{
	return said(told, "keys " ID "\n", "{\"ok\": false, \"errno\": 16");
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

/* None of them keeps another one from being heard. */
static void test_several(void)
{
	enum {
		SEVERAL = 100
	};
	struct ibv_qp *qp, *real;

	puts("several say so before it is connected");
	qp = make(&real);
	for (unsigned int i = 0; i < SEVERAL; i++) {
		CHECK(tells_keys(id_of(i, 1), 0x8802 + (i << 8)));
		CHECK(is_met(qp, PEER_QPN + i, id_of(i, 1)), "%s", answer);
	}
	puts("and one of them again, in other turns");
	for (unsigned int turn = 2; turn < 20; turn++) {
		CHECK(tells_keys(id_of(5, turn), 0x4402));
		CHECK(is_met(qp, PEER_QPN + 200 + turn, id_of(5, turn)));
	}
	CHECK(tells_keys(id_of(SEVERAL, 1), 0x5502));
	CHECK(is_met(qp, PEER_QPN + 1, id_of(SEVERAL, 1)), "%s", answer);
	to_rts(qp);
	CHECK(posted(qp, real, 0x7701) == 0x8802);
	puts("and another one after that");
	CHECK(is_met(qp, PEER_QPN + 2, id_of(SEVERAL, 1)), "%s", answer);
	CHECK(posted(qp, real, 0x7701) == 0x8802);
	CHECK(is_met(qp, PEER_QPN, id_of(SEVERAL, 1)), "%s", answer);
	CHECK(posted(qp, real, 0x7701) == 0x5502);
	CHECK(!ibv_destroy_qp(qp));
}

enum {
	PENDING = 16, /* QPs that are not connected */
};

/* One process has few places for itself, and cannot take those of others. */
static void test_places(void)
{
	struct ibv_qp *qp[PENDING], *real[PENDING];

	puts("the places of one process");
	for (unsigned int i = 0; i < PENDING; i++)
		qp[i] = make(&real[i]);
	for (unsigned int turn = 0; turn < PEER_MOST + 10; turn++) {
		CHECK(tells_keys(id_of(5, turn), 0x4402), "%s", answer);
		CHECK(is_met(qp[turn % PENDING], PEER_QPN, id_of(5, turn)));
	}
	for (unsigned int i = 0; i < PEER_MOST_TURNS; i++) {
		CHECK(tells_keys(id_of(7, i), 0x4402 + (i << 8)));
		CHECK(is_met(qp[i], PEER_QPN, id_of(7, i)), "%s", answer);
		to_rts(qp[i]);
	}
	CHECK(!tells_keys(id_of(7, PEER_MOST_TURNS), 0x4402));
	CHECK(strstr(answer, "\"errno\": 28") && strstr(answer, "turns"), "%s",
	      answer);
	for (unsigned int i = 0; i < PEER_MOST_TURNS; i++) {
		CHECK(posted(qp[i], real[i], 0x7701) == 0x4402 + (i << 8));
		reset(qp[i]);
	}
	for (unsigned int i = 0; i < PENDING; i++)
		CHECK(!ibv_destroy_qp(qp[i]));
}
/* @num: of the peer, which is elsewhere, or where it was */
static void move_peer(const struct ibv_qp *qp, unsigned int num,
		      const char *gid)
{
	char line[128];

	snprintf(line, sizeof(line), "suspend 20000 %u\n", qp->qp_num);
	CHECK(does(told, line), "%s", answer);
	snprintf(line, sizeof(line), "replace 20000 %u\n", qp->qp_num);
	CHECK(does(told, line), "%s", answer);
	CHECK(tells_keys("n1:7:8", 0x9902));
	snprintf(line, sizeof(line), "peer %u %u %s n1:7:8\n", qp->qp_num, num,
		 gid);
	CHECK(does(told, line), "%s", answer);
	CHECK(does(told, "connect\n") && does(told, "resume\n"), "%s", answer);
}

/* @key: that @qp uses after that */
static void check_moved(unsigned int num, const char *gid, uint32_t key)
{
	struct ibv_qp *qp, *real;

	qp = make(&real);
	to_rts(qp);
	move_peer(qp, num, gid);
	real = fake_newest(FAKE_QP);
	CHECK(posted(qp, real, 0x7701) == 0x9902);
	CHECK(tells_keys(id_of(9, 1), 0x6602));
	CHECK(is_met(qp, PEER_QPN, id_of(9, 1)), "%s", answer);
	CHECK(posted(qp, real, 0x7701) == key);
	reset(qp);
	to_rts(qp);
	CHECK(posted(qp, real, 0x7701) == (key == 0x9902 ? 0x7701 : key));
	CHECK(!ibv_destroy_qp(qp));
}

static void test_moved(void)
{
	puts("whoever has the address of a peer that has moved");
	check_moved(PEER_QPN + 1, PEER_GID, 0x9902);
	check_moved(PEER_QPN, "fe00::8", 0x9902);
	puts("and one that has come back to it");
	check_moved(PEER_QPN, PEER_GID, 0x6602);
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
		CHECK(said(told, wrong[i], "{\"ok\": false, \"errno\": 22"),
		      "%s%s", wrong[i], answer);
	snprintf(line, sizeof(line), "met %u 2 " PEER_GID " " ID "\n",
		 w.qp->qp_num);
	CHECK(does(told, "suspend 20000\n"));
	CHECK(said(told, line, "{\"ok\": false, \"errno\": 16"), "%s", answer);
	CHECK(does(told, "resume\n"));
	puts("keys all over the table");
	keys();
	for (unsigned int i = 0; i < 100; i++) {
		snprintf(line, sizeof(line), "key " ID " %u 0x8802\n", i << 20);
		if (!does(told, line))
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
	told = dial(); /* whoever hangs up resumes, at some time */
	test_met();
	test_several();
	test_places();
	test_moved();
	test_refused();
	puts("and has moved");
	world_replace();
	test_met();
	MUST(!close(told));
	world_destroy();
	return rig_close();
}
