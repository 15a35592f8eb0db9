// SPDX-License-Identifier: GPL-2.0
/*
 * What migrctl drain does with what an agent says: the agent is a thread here, and no host
 */
#include <ctype.h>

#include "check.h"
#include "fake_agent.h"
#include "talk.h"

#define CHECK_ASKED(text) CHECK(!strcmp(agent_asked, text), "%s", agent_asked)

static void test_nothing(void)
{
	const struct rule none[] = { { "list", .says = LIST("") }, { 0 } };
	const struct rule ended[] = {
		{ "list", .says = LIST("{\"name\": \"c1\", \"pid\": null}") },
		{ 0 },
	};

	CHECK(runs(none, "drain --to n2") == 0);
	CHECK(says("nothing runs there\n"));
	CHECK(runs(ended, "drain --to n2") == 0);
	CHECK_ASKED("list  ");
}

#define THREE { "list", .says = LIST(ONE("c1") "," ONE("c2") "," ONE("c3")) }

/* Hosts have turns, and one container does not keep the others. */
static void test_one_is_refused(void)
{
	const struct rule r[] = {
		THREE,
		{ "check", "c2", .says = NO("process 7 (sleep) is in c2") },
		{ 0 },
	};

	CHECK(runs(r, "drain --to n2,n3 --pre-copy=3") == 3);
	CHECK_ASKED("list  ; check c1 n2; migrate c1 n2 in rounds; "
		    "check c2 n3; check c2 n2; "
		    "check c3 n3; migrate c3 n3 in rounds");
	CHECK(says("1 of 3: c1 to n2\nprepare\nc runs on there\n"));
	CHECK(says("2 of 3: c2 not to n3: process 7 (sleep) is in c2\n"));
	CHECK(says("2 of 3 have moved\n"));
	/* all hosts have the same reason */
	CHECK(says("migrctl: c2 is left: process 7 (sleep) is in c2\n"));
	CHECK(!says("c1 is left") && !says("c3 is left"));
}

static void test_one_host_refuses(void)
{
	const struct rule checks[] = {
		THREE,
		{ "check", .to = "n2", .says = NO("n2: no room") },
		{ 0 },
	};
	const struct rule moves[] = {
		THREE,
		{ "migrate", .to = "n2", .says = PHASE NO("n2: no room") },
		{ 0 },
	};

	CHECK(runs(checks, "drain --to n2,n3 --pre-copy") == 0);
	CHECK_ASKED("list  ; "
		    "check c1 n2; check c1 n3; migrate c1 n3 by itself; "
		    "check c2 n2; check c2 n3; migrate c2 n3 by itself; "
		    "check c3 n2; check c3 n3; migrate c3 n3 by itself");
	CHECK(says("3 of 3 have moved\n") && !says("left"));
	CHECK(runs(moves, "drain --to n2,n3") == 0);
	CHECK(strstr(agent_asked, "; check c1 n2; migrate c1 n2; "
				  "check c1 n3; migrate c1 n3; "));
}

static void test_all_hosts_refuse(void)
{
	const struct rule r[] = {
		THREE,
		{ "check", .to = "n2", .says = NO("n2: no room") },
		{ "check", .to = "n3", .says = NO("n3: no module") },
		{ 0 },
	};

	CHECK(runs(r, "drain --to n2,n3") == 3);
	CHECK(!strstr(agent_asked, "migrate"));
	CHECK(says("0 of 3 have moved\n"));
	CHECK(says("migrctl: c3 is left: n2: no room; n3: no module\n"));
}

/* ---- what a move can come to --------------------------------------------------- */

#define STOPS_1 { "migrate", "c1", .says = PHASE STOPPED("CRIU has refused") }
#define LACKS_2            \
	{ "migrate", "c2", \
	  .says = "{\"ok\": true, \"warning\": \"no link\"}\n" }
#define LOSES_3 { "migrate", "c3", .says = PHASE }

static void test_outcomes(void)
{
	const struct rule stopped[] = { THREE, STOPS_1, LACKS_2, { 0 } };
	const struct rule lacking[] = { THREE, LACKS_2, { 0 } };
	const struct rule refused[] = {
		THREE,
		LACKS_2,
		{ "check", "c1", .says = NO("it has a layer") },
		{ 0 },
	};
	const struct rule all[] = { THREE, STOPS_1, LACKS_2, LOSES_3, { 0 } };

	/* it is not stopped again for n3 */
	CHECK(runs(stopped, "drain --to n2,n3") == 1);
	CHECK_ASKED("list  ; check c1 n2; migrate c1 n2; "
		    "check c2 n3; migrate c2 n3; check c3 n2; migrate c3 n2");
	CHECK(says("migrctl: c1 was stopped, and is left: CRIU has refused\n"));
	CHECK(runs(lacking, "drain --to n2") == 4);
	CHECK(says("3 of 3 have moved\n"));
	CHECK(says("migrctl: c2 has moved, but not all is as it should be: "
		   "no link\n"));
	CHECK(runs(refused, "drain --to n2") == 3);
	CHECK(runs(all, "drain --to n2") == 5);
	CHECK(says("1 of 3 have moved\n"));
}

/* the same for one that moves alone */
static void test_migrate(void)
{
	const struct rule r[] = {
		STOPS_1, LACKS_2,
		LOSES_3, { "migrate", "c4", .says = NO("no room") },
		{ 0 },
	};

	CHECK(runs(r, "migrate c0 --to n2") == 0 && says("prepare\n"));
	CHECK(runs(r, "migrate c1 --to n2") == 1);
	CHECK(says("migrctl: not moved: CRIU has refused\n"));
	CHECK(runs(r, "migrate c2 --to n2") == 4);
	CHECK(says("migrctl: not all is as it should be: no link\n"));
	CHECK(runs(r, "migrate c3 --to n2") == 5);
	CHECK(says("migrctl: the agent: the connection has ended\n"));
	CHECK(runs(r, "migrate c4 --to n2") == 3);
}

static void test_lost(void)
{
	const struct rule once[] = {
		THREE,
		{ "migrate", "c2", .says = PHASE },
		{ 0 },
	};
	const struct rule gone[] = {
		THREE,
		{ "migrate", "c2", .says = NULL },
		{ 0 },
	};

	CHECK(runs(once, "drain --to n2") == 5);
	CHECK(says("migrctl: c2 may have moved, or not: "
		   "the connection has ended\n"));
	CHECK(strstr(agent_asked, "migrate c3 n2"));
	/* who cannot be reached is not agent_asked about each container, and host */
	CHECK(runs(gone, "drain --to n2,n3") == 5);
	CHECK(!strstr(agent_asked, "c3"));
	CHECK(says("3 of 3: c3 not to n2: ") && !says("c3 not to n3"));
	CHECK(says("1 of 3 have moved\n") && says("migrctl: c3 is left: "));
	CHECK(runs((struct rule[]){ { "list", .says = NULL }, { 0 } },
		   "drain --to n2") == 3);
}

static void test_interrupt(void)
{
	const struct rule during[] = {
		THREE,
		{ "migrate", "c2", .says = PHASE, .interrupts = true,
		  .then = STOPPED("it was to end") },
		{ 0 },
	};
	const struct rule too_late[] = {
		THREE,
		{ "migrate", "c1", .says = PHASE, .interrupts = true,
		  .then = MOVED },
		{ "abort", .says = NO("it was too late") },
		{ 0 },
	};
	const struct rule between[] = {
		THREE,
		{ "check", "c2", .says = "", .interrupts = true },
		{ 0 },
	};
	const struct rule twice[] = {
		THREE,
		{ "migrate", "c1", .says = PHASE, .interrupts = true,
		  .then = "" },
		{ "abort", .says = "", .interrupts = true },
		{ 0 },
	};

	CHECK(runs(during, "drain --to n2,n3") == 1);
	CHECK_ASKED("list  ; check c1 n2; migrate c1 n2; "
		    "check c2 n3; migrate c2 n3; abort c2 ");
	CHECK(says("migrctl: c2 was stopped, and is left: it was to end\n"));
	CHECK(says("migrctl: c3 is left: it was to end\n"));
	CHECK(runs(too_late, "drain --to n2") == 3);
	CHECK_ASKED("list  ; check c1 n2; migrate c1 n2; abort c1 ");
	CHECK(says("it was too late\n") && says("1 of 3 have moved\n"));
	CHECK(runs(between, "drain --to n2,n3") == 3);
	CHECK_ASKED("list  ; check c1 n2; migrate c1 n2; check c2 n3");
	CHECK(says("c2 not to n3: it was to end") && !says("c2 not to n2"));
	CHECK(runs(twice, "drain --to n2") == 5);
	CHECK_ASKED("list  ; check c1 n2; migrate c1 n2; abort c1 ");
}

/* ---- what is not to be trusted -------------------------------------------------- */

static bool is_clean(void)
{
	for (const char *c = agent_heard; *c; c++)
		if (*c != '\n' && !isprint((unsigned char)*c))
			return false;
	return true;
}

#define X10 "xxxxxxxxxx"
#define X100 X10 X10 X10 X10 X10 X10 X10 X10 X10 X10
#define ESCAPES "\\u001b[2J\\u009b31m\\r\\n\\u007f"

static const struct rule hostile[] = {
	{ "list",
	  .says = LIST(ONE("c1") "," ONE(ESCAPES) "," ONE(X100 X100) "," ONE(
		  "") ",{\"name\": 7, \"pid\": 7},{\"pid\": 7},7,null,"
		      "{\"name\": [], \"pid\": {}}," ONE("c2\\n") "," ONE(
			      "c3")) },
	{ "check", "c3", .says = NO(ESCAPES X100 X100 X100 X100 X100 X100) },
	{ 0 },
};

static void test_hostile(void)
{
	const struct rule wrong[] = {
		{ "list", .says = "{\"ok\": true, \"containers\": {}}\n" },
		{ 0 },
	};
	const struct rule escapes[] = {
		{ "list", .says = LIST(ONE("c1")) },
		{ "migrate",
		  .says = "{\"phase\": \"" ESCAPES "\"}\n" STOPPED(ESCAPES) },
		{ 0 },
	};

	CHECK(runs(hostile, "drain --to n2") == 3);
	CHECK_ASKED("list  ; check c1 n2; migrate c1 n2; check c3 n2");
	CHECK(is_clean());
	CHECK(says("1 of 11 have moved\n"));
	CHECK(says("migrctl: ?: that is no name") ||
	      says("migrctl: ? is left"));
	CHECK(runs(wrong, "drain --to n2") == 3);
	CHECK(says("does not tell its containers"));
	CHECK(runs(escapes, "drain --to n2") == 1 && is_clean());
	CHECK(says("[2J?") && says("migrctl: c1 was stopped"));
}

/* ---- JSON ---------------------------------------------------------------------- */

/* the last of the objects; all that is said are such */
static json_t *last_object(void)
{
	json_t *last = NULL;
	char *save = NULL;

	for (char *line = strtok_r(agent_heard, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		json_decref(last);
		last = json_loads(line, JSON_REJECT_DUPLICATES, NULL);
		CHECK(json_is_object(last), "%s", line);
	}
	return last;
}

static bool is_told(const json_t *all, size_t i, const char *name, int code,
		    const char *to, const char *error)
{
	json_t *o = json_array_get(all, i);

	return !strcmp(talk_text(o, "name"), name) &&
	       json_integer_value(json_object_get(o, "code")) == code &&
	       !strcmp(talk_text(o, "to"), to) &&
	       !strcmp(talk_text(o, "error"), error);
}

static void test_json(void)
{
	const struct rule r[] = {
		THREE,
		{ "check", "c1", .to = "n2", .says = NO("no room") },
		{ "check", "c3", .says = NO("a layer") },
		LACKS_2,
		{ 0 },
	};
	json_t *o, *all;

	CHECK(runs(r, "--json drain --to n2,n3") == 3);
	CHECK(says("{\"n\":1,\"of\":3,\"name\":\"c1\",\"to\":\"n2\","
		   "\"error\":\"no room\"}\n"
		   "{\"n\":1,\"of\":3,\"name\":\"c1\",\"to\":\"n3\"}\n"
		   "{\"phase\":\"prepare\"}\n{\"ok\":true,"));
	o = last_object();
	all = json_object_get(o, "containers");
	CHECK(json_is_false(json_object_get(o, "ok")));
	CHECK(json_array_size(all) == 3);
	CHECK(is_told(all, 0, "c1", 0, "n3", ""));
	CHECK(is_told(all, 1, "c2", 4, "n2", ""));
	CHECK(!strcmp(talk_text(json_array_get(all, 1), "warning"), "no link"));
	CHECK(is_told(all, 2, "c3", 3, "", "a layer"));
	json_decref(o);

	CHECK(runs(hostile, "--json drain --to n2") == 3);
	o = last_object();
	all = json_object_get(o, "containers");
	CHECK(json_array_size(all) == 11);
	CHECK(is_told(all, 4, "?", 3, "", "that is no name of a container"));
	json_decref(o);
}

/* ---- the command line ----------------------------------------------------------- */

static void test_words(void)
{
	const struct rule none[] = { { 0 } };
	const char *const bad[] = {
		"drain --to ''",
		"drain --to ,",
		"drain --to n2,,n3",
		"drain --to n2,",
		"drain --to n2,-n3",
		"drain --to 'n2 n3'",
		"drain",
		"drain n1",
		"drain n1 n2 --to n3",
		"drain --fenced n2 --to n3",
		"drain --timing=x --to n3",
		"drain n1 --from n1 --to n3",
		"drain --to \"$(printf 'n\\033[2J')\"",
		"drain --to \"$(printf %0254d 1)\"",
		"drain --to \"1$(printf ',%.0s1' $(seq 64))\"",
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		CHECK(runs(none, bad[i]) == 2, "%s", bad[i]);
		CHECK(!*agent_asked && is_clean());
	}
	CHECK(runs(none, "drain --to n2") == 3 && says("its containers"));
	CHECK(runs(none, "drain --to \"1$(printf ',%.0s1' $(seq 63))\"") == 3);
}

int main(void)
{
	agent_start();
	test_nothing();
	test_one_is_refused();
	test_one_host_refuses();
	test_all_hosts_refuse();
	test_outcomes();
	test_migrate();
	test_lost();
	test_interrupt();
	test_hostile();
	test_json();
	test_words();
	agent_end();
	return check_result();
}
