// SPDX-License-Identifier: GPL-2.0
/*
 * How many queue pairs may lead from one process to another, as their numbers are said in one
 * line, how long that may take, and how many keys one may have
 */
#include <stdlib.h>

#include "check.h"
#include "layer.h"

enum {
	MOST = 4096,
};

static void connect_to(struct layer_proc *p, struct layer_proc *peer, size_t n)
{
	p->names.n_qps = n;
	for (size_t i = 0; i < n; i++) {
		struct layer_qp *qp = &p->names.qps[i];

		*qp = (struct layer_qp){ .connected = true, .to = peer };
		qp->qpn = qp->real = (uint32_t)(0xffffff - n + i);
		qp->peer_qpn = qp->at_qpn = qp->qpn;
	}
}

static bool match(size_t n)
{
	static struct layer_proc mover = { .host = "a", .id = "a:1:1" },
				 partner = { .host = "b", .id = "b:1:1" };
	static struct layer l = { .procs = { &mover, &partner },
				  .n = 2,
				  .movers = 1 };
	bool good;

	mover.names.qps = calloc(n, sizeof(*mover.names.qps));
	partner.names.qps = calloc(n, sizeof(*partner.names.qps));
	MUST(mover.names.qps && partner.names.qps);
	connect_to(&mover, &partner, n);
	connect_to(&partner, &mover, n);
	*l.reason = 0;
	good = layer_match(&l);
	CHECK(layer_replaced(&partner) == n);
	CHECK(good == !*l.reason);
	CHECK(good || !strcmp(l.reason, "a: process a:1:1: "
					"too many QPs lead there"),
	      "%s", l.reason);
	layer_names_free(&mover.names);
	layer_names_free(&partner.names);
	return good;
}

/* of which each is told to the other one */
static bool few_keys(size_t n)
{
	static struct layer_proc p = { .host = "a", .id = "a:1:1" };
	struct layer l = { .procs = { &p }, .n = 2, .movers = 1 };

	p.failed = false;
	p.names.n_keys = n;
	return layer_names_few_keys(&l, &p) && !*l.reason;
}

/* of a word that does something to each of so many */
static unsigned int limit(unsigned int budget, size_t qps)
{
	struct layer_proc p = { .is_mover = true, .names = { .n_qps = qps } };
	struct layer l = { .budget = budget };

	return layer_limit(&l, &p);
}

/* a list of so many */
static char *list(const char *what, size_t n, size_t *length)
{
	const char *head = "{\"ok\": true, \"x\": [";
	size_t bytes = strlen(what);
	char *text = malloc(strlen(head) + n * bytes + 3), *at = text;

	MUST(text);
	at = stpcpy(at, head);
	while (n--)
		at = stpcpy(at, what);
	strcpy(at - 2, "]}");
	*length = strlen(text);
	return text;
}

/* what it counts for, in the place of its length */
static size_t weight(const char *what, size_t n)
{
	char reason[128] = "";
	size_t length, is;
	char *text = list(what, n, &length);
	json_t *all;

	is = layer_weight(text, length);
	if (is > ANSWER_BYTES) {
		all = layer_parse(text, length, reason, sizeof(reason));
		CHECK(!all && !strcmp(reason, "an answer of too many parts"),
		      "%s", reason);
		json_decref(all);
	}
	free(text);
	return is == length ? 0 : is;
}

static void test_weight(void)
{
	puts("what an answer counts for");
	/* what the layer says */
	CHECK(!weight("{\"virtual\": 0, \"real\": 0}, ", 1000));
	CHECK(!weight("{\"qpn\": 1, \"real\": 2, \"type\": \"RC\", \"state\": "
		      "\"RTS\", \"gid\": \"::1\", \"peer\": {\"qpn\": 3, "
		      "\"gid\": \"::\"}}, ",
		      1000));
	CHECK(!weight("\",,,,[[[[\\\"{{{{\\\\\", ", 1000));
	/* and what takes a hundred times as much when it is read */
	CHECK(weight("{}, ", 1000) == 1002 * 24);
	CHECK(weight("0, ", 1000) == 1003 * 8);
	CHECK(weight("{}, ", 800000) && weight("[], ", 800000));
	CHECK(weight("0, ", 3000000));
}

int main(void)
{
	test_weight();
	CHECK(limit(1000, 0) == 1000 && limit(1000, 1) == 1000);
	CHECK(limit(20000, 1024) == 60000);
	CHECK(limit(600000, 1024) == 600000 && limit(1, 1 << 16) == 600000);
	CHECK(few_keys(1 << 19));
	CHECK(!few_keys((1 << 19) + 1));
	CHECK(match(1));
	CHECK(match(MOST));
	CHECK(!match(MOST + 1));
	return check_result();
}
