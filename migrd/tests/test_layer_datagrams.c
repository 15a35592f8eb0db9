// SPDX-License-Identifier: GPL-2.0
/*
 * Those who send datagrams to a container are told where its queue pairs are then: who moves
 * himself, a partner, and who is connected to nothing.
 */
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "layer_rig.h"

#define GID_THERE "::ffff:10.10.0.3"
#define UD(qpn, real, more)                                 \
	"{\"qpn\": " qpn ", \"real\": " real ", \"type\": " \
	"\"UD\", \"state\": \"RTS\"" more "}"
#define HERE ", \"gid\": \"" GID "\""
#define THERE ", \"gid\": \"" GID_THERE "\""
#define DESTINATIONS(gids) "], \"destinations\": [" gids
#define UD_HERE UD("30", "30", HERE) ", " UD("31", "31", HERE)
#define UD_THERE               \
	UD("30", "130", THERE) \
	", " UD("31", "31", THERE) ", " UD("33", "33", THERE)

/* GIDs of n2, of nobody, of a group; and one that no host has */
#define DESTINATIONS_HERE                                  \
	DESTINATIONS("\"" GID "\", \"::ffff:10.10.0.9\", " \
		     "\"fe80::1\", \"::ffff:239.1.2.3\", \"ff0e::1\"")
#define MOVER                                                           \
	NAMES(QP("17", "117", "27", AT("127")) ", " UD_HERE             \
					       ", " UD("32", "32", ""), \
	      DESTINATIONS_HERE)
#define MOVED                                                 \
	NAMES(QP("17", "117", "27", AT("127")) ", " UD_THERE, \
	      DESTINATIONS("\"" GID "\", \"::ffff:10.10.0.9\""))
#define PARTNER \
	NAMES(QP("27", "127", "17", AT("117")) ", " UD("40", "40", HERE), "")
#define LINE(from, to) "elsewhere " from " " to " 30 130 31 31\n"
#define TOLD                           \
	LINE("fe80::1:2", "fe80::1:3") \
	LINE(GID, GID_THERE) "elsewhere\n"

enum {
	DEAD = 20, /* hosts, of which each takes 5 s */
};

static struct fake mover, partner, other;

/* of all ports, an address of each type; that of IPv4 has moved to another index */
static void gids(bool there)
{
	char path[PATH_MAX];
	FILE *f;

	snprintf(path, sizeof(path), "%s/gids", dir);
	MUST(f = fopen(path, "w"));
	if (there)
		fputs("fe80::1:3 0 IB/RoCE v1\nfe80::1:3 1 RoCE v2\n"
		      "2001::3 2 RoCE v2\n" GID_THERE " 5 RoCE v2\n",
		      f);
	else
		fputs("fe80::1:2 0 IB/RoCE v1\nfe80::1:2 1 RoCE v2\n" GID
		      " 2 IB/RoCE v1\n" GID " 3 RoCE v2\n",
		      f);
	MUST(!fclose(f));
}

static void begin(void)
{
	was_told(&mover);
	was_told(&partner);
	was_told(&other);
	answers(&mover, "names", MOVER);
	gids(false);
	layer_begin("n2");
}

static void whose(int of_moved)
{
	char text[256];

	snprintf(text, sizeof(text),
		 "127 %d\n117 %d\n30 %d\n31 %d\n33 %d\n130 %d\n", partner.pid,
		 mover.pid, mover.pid, mover.pid, mover.pid, of_moved);
	qps(text);
}

static void go_on(void)
{
	CHECK(layer_says("checked"), "%s", heard);
	layer_tell("stop\n");
	CHECK(layer_says("stopped"), "%s", heard);
	CHECK(fake_ended(&mover) == 'r');
	answers(&mover, "names", MOVED);
	gids(true);
}

static void stop(void)
{
	begin();
	go_on();
}

static void ended(struct fake *f)
{
	CHECK(fake_ended(f) == 'r');
}

static void test_told(void)
{
	puts("who moves, a partner, and another one");
	stop();
	layer_tell("restored n2\n");
	CHECK(layer_says_some("datagrams to QP 33 do not follow"));
	CHECK(layer_says("{\"check_ms\": "), "%s", heard);
	CHECK(layer_says("done"), "%s", heard);
	CHECK(!layer_ends());
	CHECK(strstr(was_told(&mover), "connect\n" TOLD "resume\n"));
	CHECK(strstr(was_told(&partner), TOLD "connect\nresume\n"));
	CHECK(!strcmp(was_told(&other), TOLD));
	ended(&mover);
	ended(&partner);
	ended(&other);
}

static void test_type(void)
{
	puts("a QP that is of another type now, with somebody else's number");
	stop();
	answers(&mover, "names",
		NAMES(QP("17", "117", "27",
			 AT("127")) ", " UD("30", "130",
					    THERE) ", " QP_AT(GID_THERE, "31",
							      "99", "5", ""),
		      ""));
	layer_tell("restored n2\n");
	CHECK(layer_says_some("done"));
	CHECK(!layer_ends());
	CHECK(strstr(was_told(&other), " 30 130\nelsewhere\n"));
	ended(&mover);
	ended(&partner);
	ended(&other);
}

static void test_not_moved(void)
{
	puts("nobody, when it is where it was");
	stop();
	answers(&mover, "names", MOVER);
	gids(false);
	layer_tell("aborted\n");
	CHECK(layer_says("{\"check_ms\": "), "%s", heard);
	CHECK(layer_says("done"), "%s", heard);
	CHECK(!layer_ends());
	CHECK(!strstr(was_told(&mover), "elsewhere") &&
	      !strstr(was_told(&partner), "elsewhere") && !*was_told(&other));
	ended(&mover);
	ended(&partner);
}

static void test_refuses(void)
{
	puts("one that cannot follow, and a host that is gone, are named");
	answers(&other, "elsewhere", REFUSAL("no memory"));
	answers(&partner, "elsewhere", REFUSAL("no way"));
	gone("10.10.0.9");
	begin();
	CHECK(layer_says_some(
		"10.10.0.9: datagrams from there may not follow box"));
	go_on();
	layer_tell("restored n2\n");
	CHECK(layer_says_some("its datagrams do not follow box: elsewhere"));
	CHECK(strstr(heard, partner.id) && strstr(heard, "no way"), "%s",
	      heard);
	CHECK(layer_says_some("its datagrams do not follow box: elsewhere"));
	CHECK(strstr(heard, other.id) && strstr(heard, "no memory"), "%s",
	      heard);
	CHECK(layer_says_some("done"));
	CHECK(!layer_ends());
	CHECK(strstr(was_told(&partner), TOLD "connect\nresume\n"));
	gone(NULL);
	answers(&other, "elsewhere", NULL);
	answers(&partner, "elsewhere", NULL);
	ended(&mover);
	ended(&partner);
	ended(&other);
}

static void test_ends(void)
{
	char line[256];

	puts("one that ends when it is told so is not connected to");
	answers(&mover, "elsewhere", "hang up\n");
	stop();
	layer_tell("restored n2\n");
	CHECK(layer_says_some("its connections are lost"));
	CHECK(strstr(heard, mover.id), "%s", heard);
	CHECK(layer_says_some("failed n2: process "));
	CHECK(layer_ends() == 1);
	answers(&mover, "elsewhere", NULL);
	snprintf(line, sizeof(line),
		 "\npeer 27 0 " GID " %s\nconnect\nresume\n", mover.id);
	CHECK(strstr(was_told(&partner), line));
	ended(&mover);
	ended(&partner);
	ended(&other);
}

/* Who is not suspended himself may take as long as he likes: that is known. */
static void test_slow(void)
{
	const char *ms;

	puts("nobody waits for long for one that does not answer");
	stop();
	kill(other.pid, SIGSTOP);
	layer_tell("restored n2\n");
	CHECK(layer_says_some("its datagrams do not follow box: open"));
	CHECK(layer_says("{\"check_ms\": "), "%s", heard);
	ms = strstr(heard, "\"connect_ms\": ");
	CHECK(ms && atoi(ms + 14) < 20000, "%s", heard);
	CHECK(layer_says("done"), "%s", heard);
	CHECK(!layer_ends());
	kill(other.pid, SIGCONT);
	ended(&mover);
	ended(&partner);
	ended(&other);
}

static void test_not_its_own(void)
{
	puts("queue pairs that are not its own: before, and afterwards");
	begin();
	answers(&mover, "names",
		NAMES(UD("127", "127", HERE), DESTINATIONS("")));
	CHECK(layer_says("failed ") && strstr(heard, "another process'"), "%s",
	      heard);
	CHECK(layer_ends() == 1);
	ended(&mover);

	whose(partner.pid);
	stop();
	layer_tell("restored n2\n");
	CHECK(layer_says_some("its QPs: QP 130 is another process'"));
	CHECK(layer_ends() == 1);
	CHECK(!strstr(was_told(&partner), "elsewhere") && !*was_told(&other));
	whose(mover.pid);
	ended(&mover);
	ended(&partner);
}

/* It makes others, and somebody else gets its number: datagrams to that stay there. */
static void test_number_of_another(void)
{
	puts("a number that somebody else has when all are suspended");
	begin();
	CHECK(layer_says_some("checked"));
	whose(partner.pid);
	answers(&mover, "names",
		NAMES(QP("17", "117", "27", AT("127")) ", " UD("30", "130",
							       HERE),
		      DESTINATIONS_HERE));
	layer_tell("stop\n");
	CHECK(layer_says_some("failed ") && strstr(heard, "another process'"),
	      "%s", heard);
	CHECK(layer_ends() == 1);
	CHECK(!strstr(was_told(&mover), "hold"));
	whose(mover.pid);
	ended(&mover);
	ended(&partner);
}

/* Its own, but where nothing was proven before: nobody's datagrams follow that. */
static void test_another_gid(void)
{
	const char *told;

	puts("another one at another GID when all are suspended");
	begin();
	CHECK(layer_says_some("checked"));
	answers(&mover, "names",
		NAMES(QP("17", "117", "27",
			 AT("127")) ", " UD("30", "33",
					    THERE) ", " UD("31", "31", HERE),
		      DESTINATIONS_HERE));
	layer_tell("stop\n");
	CHECK(layer_says_some("stopped"), "%s", heard);
	ended(&mover);
	answers(&mover, "names", MOVED);
	gids(true);
	layer_tell("restored n2\n");
	CHECK(layer_says_some("done"));
	CHECK(!layer_ends());
	told = was_told(&partner);
	CHECK(strstr(told, " 31 31\n") && !strstr(told, " 130"), "%s", told);
	was_told(&mover);
	was_told(&other);
	ended(&mover);
	ended(&partner);
	ended(&other);
}

/* Each of many hosts accepts a connection, and says nothing. */
static void test_dead(void)
{
	int sock = silent_host(8), fd;
	static char text[8192];
	time_t begun;
	size_t n;

	puts("many who are nowhere, and nobody who waits");
	n = (size_t)sprintf(text,
			    "{\"ok\": true, \"keys\": [], \"qps\": [" UD_HERE
			    "], \"destinations\": [");
	for (int i = 0; i < DEAD; i++)
		n += (size_t)sprintf(text + n, "%s\"::ffff:10.10.8.%d\"",
				     i ? ", " : "", i + 1);
	strcpy(text + n, "]}\n");
	answers(&mover, "names", text);
	gids(false);
	layer_begin("n2");
	fd = accept(sock, NULL, NULL);
	MUST(fd >= 0);
	begun = time(NULL);
	layer_hang_up();
	CHECK(!layer_ends());
	CHECK(time(NULL) - begun < DEAD, "%ld s", (long)(time(NULL) - begun));
	close(fd);
	close(sock);
	ended(&mover);
}

static void test_garbage(void)
{
	static const char *const all[] = {
		NAMES(UD("1", "1", ", \"gid\": 1"), ""),
		NAMES(UD("1", "1", ", \"gid\": \"10.10.0.2\""), ""),
		NAMES("", DESTINATIONS("1")),
		NAMES("", DESTINATIONS("\"10.10.0.2\"")),
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		printf("%s", all[i]);
		begin();
		answers(&mover, "names", all[i]);
		CHECK(layer_says("failed ") && strstr(heard, mover.id), "%s",
		      heard);
		CHECK(layer_ends() == 1);
		ended(&mover);
	}
}

int main(void)
{
	rig_begin();
	daemon_start("ctr/*/run/migrrdma", "none");
	fake_start(&mover, LAYER, "ctr/box/run/migrrdma");
	fake_start(&partner, LAYER, "ctr/there/run/migrrdma");
	fake_start(&other, LAYER, "ctr/other/run/migrrdma");
	answers(&partner, "names", PARTNER);
	whose(mover.pid);
	test_told();
	test_type();
	test_not_moved();
	test_refuses();
	test_ends();
	test_slow();
	test_not_its_own();
	test_number_of_another();
	test_another_gid();
	test_dead();
	test_garbage();
	fake_kill(&mover);
	fake_kill(&partner);
	fake_kill(&other);
	CHECK(!daemon_end());
	rig_end();
	return check_result();
}
