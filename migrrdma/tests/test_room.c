// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Connections that are made after a move: too many who say that they are a peer
 */
#include "met_rig.h"
#include "peer.h"
#include "suspend.h"

/* others, to whom QPs lead */
static struct peer *_Atomic others[PEER_MOST];

static void fill(unsigned int n)
{
	char id[32];

	CHECK(!suspend_take_turn()); /* nobody is told meanwhile */
	for (unsigned int i = 0; i < n; i++) {
		snprintf(id, sizeof(id), "m:%u:8", i);
		peer_lead(&others[i], peer_get(id));
	}
	suspend_release();
}

static void empty(void)
{
	for (unsigned int i = 0; i < PEER_MOST; i++)
		peer_lead(&others[i], NULL);
}

/* a process of a host that says to be the peer of a QP */
struct one {
	const char *host;
	unsigned int process;
	struct ibv_qp *qp, *real;
};

static bool is_heard(struct one *o)
{
	char id[32];

	snprintf(id, sizeof(id), "@%s:%u:8:1", o->host, o->process);
	if (!o->qp)
		o->qp = make(&o->real);
	return tells_keys(id, 0x8802) && is_met(o->qp, PEER_QPN, id);
}

static void check_refused(struct one *o, const char *reason)
{
	CHECK(!is_heard(o));
	CHECK(strstr(answer, "\"errno\": 28") && strstr(answer, reason), "%s",
	      answer);
}

/* Is that known when it is connected? */
static bool is_known(struct one *o)
{
	to_rts(o->qp);
	return posted(o->qp, o->real, 0x7701) == 0x8802;
}

static void end(struct one *o)
{
	if (o->qp)
		CHECK(!ibv_destroy_qp(o->qp));
	o->qp = NULL;
}

#define SAYS(at, number, is) \
	{ .one = { .host = at, .process = number }, .stays = is }

/* Of those to whom no QP leads yet the eldest makes room, of the host of which most are. */
static void test_shares(void)
{
	/* in their order, five before there are too many; and do they keep their places? */
	struct {
		struct one one;
		bool stays;
	} all[] = { SAYS("n2", 1, true),  SAYS("n1", 1, true),
		    SAYS("n1", 2, false), SAYS("n1", 3, false),
		    SAYS("n1", 4, false), SAYS("n1", 5, false),
		    SAYS("n2", 2, true),  SAYS("n1", 6, true),
		    SAYS("n1", 7, true) };
	const unsigned int n = sizeof(all) / sizeof(all[0]);
	struct one again = { .host = "n1" },
		   late = { .host = "n2", .process = 3 };

	puts("the places of all");
	fill(PEER_MOST - 5);
	CHECK(is_heard(&all[0].one), "%s", answer);
	CHECK(is_heard(&all[1].one), "%s", answer);
	again.qp = make(&again.real);
	CHECK(is_met(again.qp, PEER_QPN, id_of(1, 1)), "%s", answer);
	CHECK(is_known(&all[1].one));
	for (unsigned int i = 2; i < n; i++)
		CHECK(is_heard(&all[i].one), "%u: %s", i, answer);
	puts("one that has a place says so of another QP");
	CHECK(!tells_keys(id_of(7, 1), 0x8802));
	CHECK(strstr(answer, "\"errno\": 16"), "%s", answer);
	for (unsigned int i = 0; i < n; i++)
		if (i != 1)
			CHECK(is_known(&all[i].one) == all[i].stays, "%u", i);
	CHECK(is_known(&again));
	puts("all are connected");
	check_refused(&late, "processes");
	end(&again);
	for (unsigned int i = 0; i < n; i++)
		end(&all[i].one);
	CHECK(is_heard(&late), "%s", answer);
	CHECK(is_known(&late));
	end(&late);
	empty();
}

/* Nobody makes room for who gets no place for all that. */
static void test_in_vain(void)
{
	struct one victim = { .host = "n2" }, late = { .host = "n1" },
		   turns[PEER_MOST_TURNS] = { { .host = NULL } };
	struct ibv_qp *of_batch, *real;

	puts("more than there may be, as those who are suspended are told");
	CHECK(is_heard(&victim), "%s", answer);
	fill(PEER_MOST);
	check_refused(&late, "processes");
	CHECK(is_known(&victim));
	end(&victim);
	empty();

	puts("too many turns of one process");
	for (unsigned int i = 0; i < PEER_MOST_TURNS; i++) {
		turns[i].qp = make(&turns[i].real);
		CHECK(tells_keys(id_of(7, i), 0x8802), "%s", answer);
		CHECK(is_met(turns[i].qp, PEER_QPN, id_of(7, i)));
		CHECK(is_known(&turns[i]));
	}
	CHECK(is_heard(&victim), "%s", answer);
	fill(PEER_MOST - PEER_MOST_TURNS - 1);
	CHECK(!tells_keys(id_of(7, PEER_MOST_TURNS), 0x8802));
	CHECK(strstr(answer, "turns"), "%s", answer);
	CHECK(is_known(&victim));
	end(&victim);
	for (unsigned int i = 0; i < PEER_MOST_TURNS; i++)
		end(&turns[i]);
	empty();

	puts("somebody is in a batch");
	CHECK(is_heard(&victim), "%s", answer);
	fill(PEER_MOST - 1);
	of_batch = new_qp_ex(IBV_QPT_RC, w.cq, EX_OPS, &real);
	ibv_wr_start(ibv_qp_to_qp_ex(of_batch));
	check_refused(&late, "processes");
	ibv_wr_abort(ibv_qp_to_qp_ex(of_batch));
	CHECK(is_known(&victim));
	end(&victim);
	CHECK(!ibv_destroy_qp(of_batch));
	CHECK(is_heard(&late), "%s", answer);
	end(&late);
	empty();
}

static struct peer *_Atomic says;

static void *forgets(void *arg)
{
	usleep(1000);
	peer_say(&says, NULL);
	return arg;
}

/* A thread that destroys a QP is not waited for: it has no peer in hand that may be freed. */
static void test_freed(void)
{
	pthread_t thread;
	struct peer *p;

	puts("one that is forgotten while a QP is destroyed");
	CHECK(!suspend_take_turn());
	for (unsigned int i = 0; i < 20; i++) {
		p = peer_get("@n1:7:8:1");
		MUST(p);
		peer_say(&says, p);
		MUST(!pthread_create(&thread, NULL, forgets, NULL));
		while (peer_is_used(p))
			;
		peers_drop_unused();
		peers_drop_unused();
		MUST(!pthread_join(thread, NULL));
	}
	suspend_release();
}

int main(void)
{
	rig_open();
	world_make();
	told = dial();
	test_shares();
	test_in_vain();
	MUST(!close(told));
	test_freed();
	world_destroy();
	return rig_close();
}
