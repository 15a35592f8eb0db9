// SPDX-License-Identifier: GPL-2.0
/*
 * verbs_errors - work that is wrong, and what comes of it at both ends
 *
 *   verbs_errors -s [-d DEVICE] [-p PORT] [-f FACTOR]
 *   verbs_errors [-d DEVICE] [-p PORT] [-f FACTOR] [-v] HOST [CASE...]
 *
 *   -s  be the responder, for one client
 *   -f  multiplies time-outs, for a slow machine; of both ends
 *   -v  also show what was seen
 *
 * Each case takes new QPs. The client posts something wrong and two good sends
 * behind it; the completions at both ends, the states of the QPs and the
 * events have to be those of the table. PASS: as the specification wants it;
 * DIFF: as the device is known to differ, with the reason; FAIL. A CASE is a
 * part of a name. Exit code: 0, 1 if a case failed, 2 for other errors.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../mix/conn.h"
#include "errors_text.h"

#define MATCH_SECONDS 10
#define QUIET_US 30000 /* for what should not come */
#define ALL_WORDS (TEXT / sizeof(uint64_t))
#define PEER_SECONDS 120
#define NO_MORE UINT64_MAX

const struct test *const all_tests[] = { local_tests,	  remote_tests,
					 transport_tests, queue_tests,
					 datagram_tests,  NULL };

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* one of the texts in @wanted */
static bool right(const char *text, const char *wanted)
{
	size_t n = strlen(text);
	const char *p = wanted;

	while (p) {
		if (!strncmp(p, text, n) &&
		    (!p[n] || !strncmp(p + n, OR, strlen(OR))))
			return true;
		p = strstr(p, OR);
		p = p ? p + strlen(OR) : NULL;
	}
	return false;
}

/* what these devices make of a case */
struct expected {
	const char *client, *server;
	const char *why[2]; /* not as the specification; or NULL */
};

static bool applies(const struct difference *d, const struct test *t,
		    const char *requester, const char *responder)
{
	return !strcmp(d->device, d->responder ? responder : requester) &&
	       (!d->name || !strncmp(d->name, t->name, strlen(d->name))) &&
	       (!d->client_is || !strcmp(d->client_is, t->client)) &&
	       (!d->server_is || !strcmp(d->server_is, t->server));
}

static struct expected expect(const struct test *t, const char *requester,
			      const char *responder)
{
	struct expected x = {};
	const struct difference *d;

	for (d = differences; d->device; d++) {
		if (!applies(d, t, requester, responder))
			continue;
		if (!x.client && d->client) {
			x.client = d->client;
			x.why[0] = d->why;
		}
		if (!x.server && d->server) {
			x.server = d->server;
			x.why[1] = d->why;
		}
	}
	if (x.why[0] == x.why[1])
		x.why[1] = NULL;
	if (!x.client)
		x.client = t->client;
	if (!x.server)
		x.server = t->server;
	return x;
}

/* Strings and words cross as words. */
static void send_text(struct rig *rig, const char *text)
{
	uint64_t w[ALL_WORDS] = {};

	memcpy(w, text, strnlen(text, TEXT - 1));
	if (conn_send(rig->fd, w, ALL_WORDS))
		exit(2);
}

static void recv_text(struct rig *rig, char text[TEXT])
{
	uint64_t w[ALL_WORDS];

	if (conn_recv(rig->fd, w, ALL_WORDS, PEER_SECONDS * errors_factor))
		exit(2);
	memcpy(text, w, TEXT);
	text[TEXT - 1] = 0;
}

/* ---- a case ---- */

static void start(struct end *e)
{
	const struct test *t = e->test;
	struct ibv_srq_attr limit = { .srq_limit = t->srq_limit };

	if (!e->rig->server)
		post_recvs(e, 10, 2);
	else if (!t->no_receives && t->dest != TO_RESET)
		post_recvs(e, 10, 3);
	if (e->srq && t->srq_limit &&
	    ibv_modify_srq(e->srq, &limit, IBV_SRQ_LIMIT))
		errors_die("ibv_modify_srq");
	end_connect(e);
	rig_meet(e->rig);
}

static void run(struct end *e)
{
	const struct test *t = e->test;

	if (e->rig->server) {
		if (t->run_server)
			t->run_server(e);
		return;
	}
	if (t->run_client) {
		t->run_client(e);
		return;
	}
	post_send(e, &t->wr, 0);
	post_good(e, 1, 2);
}

/* until the text is right, and then a bit longer */
static void watch(struct end *e, const char *wanted, char text[TEXT])
{
	double end = now() + MATCH_SECONDS * errors_factor;

	for (;;) {
		end_collect(e);
		end_text(e, text);
		if (right(text, wanted) || now() > end)
			break;
		usleep(3000);
	}
	rig_meet(e->rig);
	usleep(QUIET_US);
	end_collect(e);
	end_text(e, text);
}

static void run_case(struct rig *rig, const struct test *t,
		     const struct expected *x, char text[TEXT])
{
	struct end e;

	end_create(&e, rig, t);
	start(&e);
	run(&e);
	watch(&e, rig->server ? x->server : x->client, text);
	rig_meet(rig);
	end_destroy(&e);
}

/* ---- the client ---- */

struct totals {
	unsigned int pass, diff, fail;
};

static void show(const char *who, const char *text, const char *wanted)
{
	printf("    %s: %s\n", who, text);
	if (!right(text, wanted))
		printf("      should be: %s\n", wanted);
}

static void judge(const struct test *t, const struct expected *x,
		  const char *client, const char *server, bool verbose,
		  struct totals *totals)
{
	bool fits = right(client, x->client) && right(server, x->server);
	bool differs = x->why[0] || x->why[1];

	if (!fits) {
		totals->fail++;
		printf("FAIL  %s [%s]\n", t->name, t->clause);
		show("requester", client, x->client);
		show("responder", server, x->server);
	} else if (differs) {
		totals->diff++;
		printf("DIFF  %s [%s]\n", t->name, t->clause);
		for (int i = 0; i < 2; i++)
			if (x->why[i])
				printf("    %s\n", x->why[i]);
		show("requester", client, t->client);
		show("responder", server, t->server);
	} else {
		totals->pass++;
		printf("PASS  %s [%s]\n", t->name, t->clause);
		if (verbose) {
			show("requester", client, x->client);
			show("responder", server, x->server);
		}
	}
	fflush(stdout);
}

static bool wanted(char **names, const struct test *t)
{
	if (!*names)
		return true;
	for (; *names; names++)
		if (strstr(t->name, *names))
			return true;
	return false;
}

static void client(struct rig *rig, char **names, bool verbose,
		   struct totals *totals)
{
	char device[TEXT], mine[TEXT], others[TEXT];
	const struct test *t;
	struct expected x;
	uint64_t at[2];

	send_text(rig, rig->device);
	recv_text(rig, device);
	printf("# requester %s, responder %s\n", rig->device, device);
	for (at[0] = 0; all_tests[at[0]]; at[0]++)
		for (at[1] = 0; all_tests[at[0]][at[1]].name; at[1]++) {
			t = &all_tests[at[0]][at[1]];
			if (!wanted(names, t))
				continue;
			printf("# %s\n", t->name);
			fflush(stdout);
			if (conn_send(rig->fd, at, 2))
				exit(2);
			x = expect(t, rig->device, device);
			run_case(rig, t, &x, mine);
			recv_text(rig, others);
			judge(t, &x, mine, others, verbose, totals);
		}
	at[0] = NO_MORE;
	conn_send(rig->fd, at, 2);
	printf("# requester %s, responder %s: %u PASS, %u DIFF, %u FAIL\n",
	       rig->device, device, totals->pass, totals->diff, totals->fail);
}

static void server(struct rig *rig)
{
	char device[TEXT], text[TEXT];
	const struct test *t;
	struct expected x;
	uint64_t at[2];

	send_text(rig, rig->device);
	recv_text(rig, device);
	while (!conn_recv(rig->fd, at, 2, PEER_SECONDS * errors_factor) &&
	       at[0] != NO_MORE) {
		t = &all_tests[at[0]][at[1]];
		x = expect(t, device, rig->device);
		run_case(rig, t, &x, text);
		send_text(rig, text);
	}
}

int main(int argc, char **argv)
{
	struct verbs_options o = { .gid_index = -1 };
	struct totals totals = {};
	const char *port = "18700";
	bool verbose = false;
	struct rig rig = {};
	int c;

	while ((c = getopt(argc, argv, "sd:p:f:v")) != -1) {
		if (c == 's')
			rig.server = true;
		else if (c == 'd')
			o.device = optarg;
		else if (c == 'p')
			port = optarg;
		else if (c == 'f')
			errors_factor = atoi(optarg);
		else if (c == 'v')
			verbose = true;
		else
			return 2;
	}
	if (errors_factor < 1 || (!rig.server && optind == argc))
		return 2;
	rig_open(&rig, &o);
	rig.fd = rig.server ? conn_listen(port)
			    : conn_connect(argv[optind], port);
	if (rig.fd < 0)
		return 2;
	if (rig.server)
		server(&rig);
	else
		client(&rig, argv + optind + 1, verbose, &totals);
	rig_close(&rig);
	close(rig.fd);
	return totals.fail != 0;
}
