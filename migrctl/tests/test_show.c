// SPDX-License-Identifier: GPL-2.0
/*
 * What migrctl makes of what an agent says, for who reads it
 */
#include "check.h"
#include "fake_agent.h"

#define AGAIN \
	"{\"phase\": \"in doubt\", \"error\": \"n3 does not say\\u001b[2J\"}\n"
#define NOT_WHOLE(ok)                                                       \
	"{\"ok\": " ok ", \"name\": \"c\", \"stopped\": true, "             \
	"\"runs_on\": \"n\", \"error\": \"n3: the connection has ended\", " \
	"\"warning\": \"GID 2 is in use\"}\n"
#define AT(time)                                                    \
	"{\"time\": " time ", \"name\": \"c1\", \"from\": \"n1\", " \
	"\"to\": \"n3\", \"runs_on\": \"n3\"}"

/* It may last for hours, and what is to be done about it is the reason. */
static void test_in_doubt(void)
{
	const struct rule r[] = {
		{ "migrate", .says = PHASE AGAIN MOVED },
		{ 0 },
	};

	CHECK(runs(r, "migrate c --to n3") == 0);
	CHECK(says("prepare\nin doubt: n3 does not say?[2J\n"));
}

/* It runs where it was, and has lost something. */
static void test_back_not_whole(void)
{
	const struct rule back[] = {
		{ "migrate", .says = NOT_WHOLE("false") },
		{ "list", .says = LIST(ONE("c")) },
		{ 0 },
	};
	const struct rule there[] = {
		{ "migrate", .says = NOT_WHOLE("true") },
		{ 0 },
	};

	CHECK(runs(back, "migrate c --to n3") == 1);
	CHECK(says(
		"not moved: n3: the connection has ended; and not all is as it was: GID 2 is in use\n"));
	CHECK(runs(back, "drain --to n3") == 1);
	CHECK(says(
		"c was stopped, and is left: n3: the connection has ended; and not all is as it was: GID 2"));
	CHECK(runs(there, "migrate c --to n3") == 4);
	CHECK(says("not all is as it should be: GID 2 is in use\n"));
	CHECK(!says("as it was"));
}

/* A time that no calendar has */
static void test_log(void)
{
	const struct rule r[] = {
		{ "log",
		  .says = "{\"ok\": true, \"moves\": [" AT("9000000000000000000") ", " AT(
			  "86400") ", " AT("\"x\"") "]}\n" },
		{ 0 },
	};

	CHECK(runs(r, "log") == 0);
	CHECK(says("? c1 n1 to n3: runs on n3\n1970-01-0"));
}

/* What is no text is refused by the agent, as other words are, and not left out. */
static void test_no_text(void)
{
	const struct rule none[] = { { 0 } };

	CHECK(runs(none,
		   "migrate c --to n3 --pre-copy=\"$(printf '\\377')\"") == 0);
	CHECK(!strcmp(agent_asked, "migrate c n3 by itself"), "%s",
	      agent_asked);
}

int main(void)
{
	agent_start();
	test_in_doubt();
	test_back_not_whole();
	test_log();
	test_no_text();
	agent_end();
	return check_result();
}
