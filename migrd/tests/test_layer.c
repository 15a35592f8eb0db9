// SPDX-License-Identifier: GPL-2.0
/*
 * The move of a container by the layer. Its process has the QPs 17, of which the peer is
 * 27, and 18 and 19, which lead to each other.
 */
#include <stdio.h>
#include <unistd.h>

#include "layer_rig.h"

#define MOVER                                                                  \
	NAMES(QP("17", "117", "27", AT("127")) ", " QP("18", "18", "19",       \
						       "") ", " QP("19", "19", \
								   "18", ""),  \
	      KEY("4660", "9029") ", " KEY("4920", "9030"))
#define PARTNER                                                                                 \
	NAMES(QP("27", "127", "17", AT("117")) ", " QP(                                         \
		      "28", "28", "99",                                                         \
		      "") ", {\"qpn\": 5, \"real\": 5, \"type\": \"UD\", \"state\": \"INIT\"}", \
	      "")

#define FAR "::ffff:10.10.9.2"

enum {
	ADDRESSES = 48,
	KEYS = 1001, /* one more than are told in a line */
	MORE = 11,   /* processes */
};

static struct fake mover, partner;

static void begin(void)
{
	was_told(&mover);
	was_told(&partner);
	layer_begin(NULL);
}

static void whose(char *text, size_t bytes)
{
	snprintf(text, bytes, "126 %d\n127 %d\n116 %d\n117 %d\n18 %d\n19 %d\n",
		 partner.pid, partner.pid, mover.pid, mover.pid, mover.pid,
		 mover.pid);
}

static void start_both(void)
{
	char text[128];

	fake_start(&mover, LAYER, "ctr/box/run/migrrdma");
	fake_start(&partner, LAYER, "ctr/other/run/migrrdma");
	whose(text, sizeof(text));
	qps(text);
	answers(&mover, "names", MOVER);
	answers(&partner, "names", PARTNER);
}

/* what both are told when the container is there again */
static void check_start(void)
{
	char line[1024];
	const char *told = was_told(&mover);

	snprintf(line, sizeof(line),
		 "replace 1000\nnames\n"
		 "keys %s\nkey %s 4660 9029 4920 9030\nkeys %s\n"
		 "peer 17 127 " GID " %s\n"
		 "peer 18 19 " GID " %s 19 18\n"
		 "connect\nresume\n",
		 mover.id, mover.id, partner.id, partner.id, mover.id);
	CHECK(strstr(told, line), "%s", told);
	told = was_told(&partner);
	snprintf(line, sizeof(line),
		 "keys %s\nkey %s 4660 9029 4920 9030\npeer 27 117 " GID " %s\n"
		 "connect\nresume\n",
		 mover.id, mover.id, mover.id);
	CHECK(strstr(told, line), "%s", told);
}

static void check_ended(void)
{
	CHECK(fake_ended(&partner) == 'r');
	CHECK(fake_ended(&mover) == 'r');
}

static void test_move(const char *line)
{
	const char *told;

	printf("%s", *line ? line : "the end\n");
	begin();
	CHECK(layer_says("checked"), "%s", heard);
	CHECK(!strcmp(was_told(&mover), "names\n"));
	CHECK(!strcmp(was_told(&partner), "names\n"));
	layer_tell("stop\n");
	CHECK(layer_says("stopped"), "%s", heard);
	CHECK(fake_ended(&mover) == 'r');
	told = was_told(&mover);
	CHECK(!strcmp(told, "suspend 1000\nnames\ncheck\nhold 1000 120\n"),
	      "%s", told);
	/* of its QPs only that */
	told = was_told(&partner);
	CHECK(!strcmp(told, "suspend 1000 27\nnames\nreplace 1000 27\n"), "%s",
	      told);
	if (*line)
		layer_tell(line);
	else
		layer_hang_up();
	CHECK(*line || layer_says("at n2"), "%s", heard);
	CHECK(layer_says("{\"check_ms\": "), "%s", heard);
	CHECK(layer_says("done"), "%s", heard);
	CHECK(!layer_ends());
	check_ended();
	check_start();
}

enum {
	CROWD = 66, /* more than are told of a folder */
};

/* Another container has as many processes as it likes. */
static void test_crowd(void)
{
	static struct fake crowd[CROWD];

	puts("another container with many processes");
	begin();
	CHECK(layer_says("checked"), "%s", heard);
	layer_tell("stop\n");
	CHECK(layer_says("stopped"), "%s", heard);
	CHECK(fake_ended(&mover) == 'r');
	for (int i = 0; i < CROWD; i++)
		fake_start(&crowd[i], LAYER, "ctr/other/run/migrrdma");
	layer_tell("restored n2\n");
	CHECK(layer_says("{\"check_ms\": "), "%s", heard);
	CHECK(layer_says("done"), "%s", heard);
	CHECK(!layer_ends());
	for (int i = 0; i < CROWD; i++)
		fake_kill(&crowd[i]);
	check_ended();
	check_start();
}

/* Another move has one of them, or both ends move at once: who comes first is waited for. */
static void test_busy(void)
{
	const struct fake *const all[] = { &mover, &partner };
	struct client c;
	char line[128];

	for (int i = 0; i < 2; i++) {
		puts(i ? "somebody has the partner" : "somebody has it");
		client_open(&c);
		snprintf(line, sizeof(line), "open %s", all[i]->id);
		CHECK(said(&c, line, "{\"ok\":true"));
		begin();
		CHECK(layer_says("migr-layer: waits: ") &&
			      strstr(heard, "somebody has it open"),
		      "%s", heard);
		client_close(&c);
		CHECK(layer_says("checked"), "%s", heard);
		layer_hang_up();
		CHECK(!layer_ends());
	}
	puts("nobody waits any more");
	client_open(&c);
	snprintf(line, sizeof(line), "open %s", mover.id);
	CHECK(said(&c, line, "{\"ok\":true"));
	begin();
	CHECK(layer_says("migr-layer: waits: "), "%s", heard);
	layer_hang_up();
	CHECK(layer_says("failed nobody waits for it"), "%s", heard);
	CHECK(layer_ends() == 1);
	client_close(&c);
	/* nobody knows how often it has looked */
	fake_kill(&mover);
	fake_kill(&partner);
	start_both();
}

/* It could be none of the container's. */
static void test_places(void)
{
	static struct fake more[MORE];

	puts("as many connections as processes before anybody stops");
	for (int i = 0; i < MORE; i++) {
		fake_start(&more[i], LAYER, "ctr/box/run/migrrdma");
		answers(&more[i], "names", NAMES("", ""));
	}
	layer_begin("n2");
	CHECK(layer_says("checked"), "%s", heard);
	CHECK(daemon_children() > 2 * (MORE + 1), "%d", daemon_children());
	layer_hang_up();
	CHECK(!layer_ends());
	for (int i = 0; i < MORE; i++)
		fake_kill(&more[i]);
	check_ended();
}

/* A partner's other QPs give it no time: how many it has nobody knows but itself. */
static void test_claims(void)
{
	static char text[8192];
	size_t n = 0;
	const char *told;

	puts("a partner that says to have many");
	n = (size_t)sprintf(text, "{\"ok\": true, \"keys\": [], \"qps\": [" QP(
					  "27", "127", "17", AT("117")));
	for (int i = 0; i < 100; i++)
		n += (size_t)sprintf(
			text + n,
			", {\"qpn\": %d, \"real\": 1, \"state\": \"RESET\"}",
			1000 + i);
	strcpy(text + n, "]}\n");
	answers(&partner, "names", text);
	begin();
	CHECK(layer_says("checked"), "%s", heard);
	layer_tell("stop\n");
	CHECK(layer_says("stopped"), "%s", heard);
	CHECK(fake_ended(&mover) == 'r');
	told = was_told(&partner);
	CHECK(strstr(told, "\nreplace 1000 27\n"), "%s", told);
	layer_tell("aborted\n");
	CHECK(layer_says("{\"check_ms\": ") && layer_says("done"), "%s", heard);
	CHECK(!layer_ends());
	check_ended();
	answers(&partner, "names", PARTNER);
}

static void test_many_keys(void)
{
	static char text[65536];
	const char *told;
	char line[256];
	size_t n = 0;

	puts("a line for many keys, and one more");
	n = (size_t)sprintf(text, "{\"ok\": true, \"qps\": [" QP(
					  "17", "117", "27",
					  AT("127")) "], \"keys\": [");
	for (unsigned int i = 0; i < KEYS; i++)
		n += (size_t)sprintf(text + n, "%s" KEY("%u", "%u"),
				     i ? ", " : "", i << 8, (i + 7) << 8);
	strcpy(text + n, "]}\n");
	answers(&mover, "names", text);
	begin();
	CHECK(layer_says("checked"), "%s", heard);
	layer_tell("stop\n");
	CHECK(layer_says("stopped"), "%s", heard);
	CHECK(fake_ended(&mover) == 'r');
	layer_tell("aborted\n");
	CHECK(layer_says("{\"check_ms\": ") && layer_says("done"), "%s", heard);
	CHECK(!layer_ends());
	check_ended();
	told = was_told(&partner);
	snprintf(line, sizeof(line), "keys %s\nkey %s 0 1792 256 2048 ",
		 mover.id, mover.id);
	CHECK(strstr(told, line));
	snprintf(line, sizeof(line),
		 " 255744 257536\nkey %s 256000 257792\npeer 27 ", mover.id);
	CHECK(strstr(told, line));
	answers(&mover, "names", MOVER);
}

/* A partner does what it must not. What was suspended goes on by the end. */
static void refused(const char *what, const char *reason, bool early)
{
	printf("refused: %s\n", what);
	begin();
	if (!early) {
		CHECK(layer_says("checked"), "%s", heard);
		layer_tell("stop\n");
	}
	CHECK(layer_says("failed ") && strstr(heard, reason), "%s", heard);
	CHECK(layer_ends() == 1);
	if (early)
		CHECK(!strstr(was_told(&mover), "suspend"));
}

static void test_refused(void)
{
	char text[128];

	qps("");
	refused("no such QP", "the peer of QP 17, QP 127 at " GID ": there is",
		true);
	snprintf(text, sizeof(text), "127 %d\n", getpid());
	qps(text);
	refused("not under the layer", "is not under the layer", true);
	CHECK(fake_ended(&mover) == 'r' && fake_ended(&mover) == 'r');
	whose(text, sizeof(text));
	qps(text);

	answers(&partner, "names", NAMES(QP("27", "127", "17", AT("118")), ""));
	refused("another peer", "it is not connected to that", true);
	check_ended();
	answers(&partner, "names", NAMES("", ""));
	refused("no QP", "it is not connected to that", true);
	check_ended();
	answers(&partner, "names", PARTNER);
	answers(&mover, "suspend",
		"{\"ok\": false, \"errno\": 110, \"reason\": \"\\u001bno\"}\n");
	refused("suspend", "suspend 1000: ?no", false);
	check_ended();
	answers(&mover, "suspend", NULL);
	answers(&partner, "suspend",
		"{\"ok\": false, \"errno\": 22, \"reason\": \"no QP is 27\"}\n");
	refused("suspend of a QP", "suspend 1000 27: no QP is 27", false);
	check_ended();
	answers(&partner, "suspend", NULL);
}

/* which of a partner's QPs are meant may have changed: the peer of one is gone */
static void test_one_less(void)
{
	static const char two[] =
		NAMES(QP("16", "116", "26", AT("126")) ", " QP("17", "117",
							       "27", AT("127")),
		      "");
	char text[128];

	puts("a QP whose peer goes away before it is suspended");
	answers(&mover, "names", two);
	answers(&partner, "names",
		NAMES(QP("26", "126", "16", AT("116")) ", " QP("27", "127",
							       "17", AT("117")),
		      ""));
	begin();
	CHECK(layer_says("checked"), "%s", heard);
	answers(&mover, "names", NAMES(QP("17", "117", "27", AT("127")), ""));
	layer_tell("stop\n");
	CHECK(layer_says("stopped"), "%s", heard);
	CHECK(fake_ended(&mover) == 'r');
	layer_tell("aborted\n");
	CHECK(layer_says("{\"check_ms\": ") && layer_says("done"), "%s", heard);
	CHECK(!layer_ends());
	check_ended();
	CHECK(strstr(was_told(&partner),
		     "suspend 1000 26 27\nnames\nreplace 1000 27\nnames\n"));

	puts("a partner that was found by one QP, and names another one that is not its own");
	snprintf(text, sizeof(text), "126 %d\n127 %d\n116 %d\n117 %d\n",
		 partner.pid, mover.pid, mover.pid, mover.pid);
	qps(text);
	answers(&mover, "names", two);
	begin();
	CHECK(layer_says("failed ") &&
		      strstr(heard, "its QPs: QP 127 is another process'"),
	      "%s", heard);
	CHECK(layer_ends() == 1);
	check_ended();
	whose(text, sizeof(text));
	qps(text);
	answers(&mover, "names", MOVER);
	answers(&partner, "names", PARTNER);
}

/* "names" of QPs from @qpn on, each at an address of its own with a peer at another one */
static const char *names_at(int net, int qpn, int peer_net, int peer)
{
	static char text[16384];
	size_t n = 0;

	for (int i = 0; i < ADDRESSES; i++)
		n += (size_t)snprintf(
			text + n, sizeof(text) - n,
			"%s{\"qpn\": %d, \"real\": %d, \"type\": \"RC\", "
			"\"state\": \"RTS\", \"gid\": \"::ffff:10.10.%d.%d\", "
			"\"peer\": {\"qpn\": %d, \"gid\": \"::ffff:10.10.%d.%d\"}}",
			i ? ", " : "{\"ok\": true, \"qps\": [", qpn + i,
			qpn + i, net, i + 1, peer + i, peer_net, i + 1);
	snprintf(text + n, sizeof(text) - n, "], \"keys\": []}\n");
	return text;
}

/* as containers have them */
static void test_addresses(void)
{
	const char *told;
	char text[2048];
	size_t n = 0;

	puts("a host with many addresses");
	for (int i = 0; i < ADDRESSES; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n,
				      "%d %d\n%d %d\n", 2000 + i, partner.pid,
				      1000 + i, mover.pid);
	qps(text);
	answers(&mover, "names", names_at(1, 1000, 2, 2000));
	answers(&partner, "names", names_at(2, 2000, 1, 1000));
	begin();
	CHECK(layer_says("checked"), "%s", heard);

	puts("and with so many QPs what is done to each of them has more time");
	layer_tell("stop\n");
	CHECK(layer_says("stopped"), "%s", heard);
	CHECK(fake_ended(&mover) == 'r');
	told = was_told(&mover);
	CHECK(strstr(told, "suspend 1000\n") &&
		      strstr(told, "\nhold 2000 120\n"),
	      "%s", told);
	CHECK(strstr(was_told(&partner), "\nreplace 2000 2000 2001 "));
	layer_tell("aborted\n");
	CHECK(layer_says("{\"check_ms\": ") && layer_says("done"), "%s", heard);
	CHECK(strstr(was_told(&mover), "replace 2000\n"));
	CHECK(!layer_ends());
	check_ended();
}

/* The daemon of the partner's host says that the partner has it all. */
static void test_vouches(void)
{
	answers(&mover, "names",
		NAMES(QP("16", "116", "26", AT("126")) ", " QP(
			      "17", "117", "27",
			      ", \"real\": 127, \"real_gid\": \"" FAR "\""),
		      ""));
	answers(&partner, "names",
		NAMES(QP("26", "126", "16", AT("116")) ", " QP_AT(FAR, "27",
								  "127", "17",
								  AT("117")),
		      ""));
	gone("10.10.9.2");
	refused("a QP at a GID where nobody answers",
		"the peer of QP 17, QP 127 at " FAR ": ", true);
	check_ended();
	gone(NULL);
	other_daemon_start("ctr/*/run/migrrdma");
	refused("a QP at another host's GID",
		"is not on the host with that GID", true);
	check_ended();
	other_daemon_end();
	answers(&mover, "names", MOVER);
	answers(&partner, "names", PARTNER);
}

/* New QPs at both ends, and nobody is left in ERR. */
static void test_undone(void)
{
	answers(&mover, "check", "{\"ok\": false, \"reason\": \"a window\"}\n");
	refused("check", "check: a window", false);
	check_ended();
	CHECK(!strcmp(was_told(&partner), "names\nsuspend 1000 27\nnames\n"));
	answers(&mover, "check", NULL);

	answers(&mover, "hold", "{\"ok\": false, \"reason\": \"verbs\"}\n");
	refused("hold", "hold 1000 120: verbs", false);
	check_ended();
	check_start();
	answers(&mover, "hold", NULL);
}

static void test_garbage(void)
{
	static const char *const all[] = {
		"nothing\n",
		"{}\n",
		"{\"ok\": 1}\n",
		"{\"ok\": true}\n",
		"{\"ok\": true, \"qps\": 1, \"keys\": []}\n",
		"{\"ok\": true, \"qps\": [1], \"keys\": []}\n",
		NAMES("", "1"),
		NAMES("", KEY("-1", "1")),
		NAMES("", KEY("1", "4294967296")),
		NAMES("",
		      KEY("4660", "9029") ", " KEY("1", "1") ", " KEY("4661",
								      "5000")),
		NAMES(QP("16777216", "1", "1", ""), ""),
		NAMES(QP("1", "-1", "1", ""), ""),
		NAMES(QP("1", "1", "\"1\"", ""), ""),
		NAMES(QP("1", "1", "1", AT("16777216")), ""),
		NAMES(QP("1", "1", "1", ", \"real\": 1"), ""),
		NAMES(QP("17", "1", "1", "") ", " QP("17", "2", "1", ""), ""),
		"{\"ok\": true, \"qps\": [{\"qpn\": 1, \"real\": 1, "
		"\"state\": \"RTS\", \"gid\": \"x\"}], \"keys\": []}\n",
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		answers(&partner, "names", all[i]);
		refused(all[i], partner.id, true);
		check_ended();
	}
	answers(&partner, "names", PARTNER);
}

int main(void)
{
	rig_begin();
	daemon_start("ctr/*/run/migrrdma", "none");
	start_both();
	test_move("restored n2\n");
	test_move("aborted\n");
	test_move("");
	test_refused();
	test_undone();
	test_one_less();
	test_vouches();
	test_garbage();
	test_move("restored n2\n");
	test_crowd();
	test_busy();
	test_places();
	test_claims();
	test_many_keys();
	test_addresses();
	fake_kill(&mover);
	fake_kill(&partner);
	CHECK(!daemon_end());
	rig_end();
	return check_result();
}
