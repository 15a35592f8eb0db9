// SPDX-License-Identifier: GPL-2.0
/*
 * What may be said, and what else is
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "rig.h"

#define EINVAL_ANSWER "{\"ok\":false,\"errno\":22,"

static void test_wrong(void)
{
	static const char *const wrong[] = {
		"",
		" ",
		"Processes",
		"processes ",
		" processes",
		"processes 1 2",
		"processes\r",
		"open",
		"open ",
		"open  x",
		"open x y",
		"borrow",
		"close",
		"resume",
		"find",
		"find 1",
		"find 1 ",
		"find x ::1",
		"find -1 ::1",
		"find +1 ::1",
		"find  1 ::1",
		"find 0x ::1",
		"find 0x1g ::1",
		"find 1.5 ::1",
		"find 16777216 ::1",
		"find 0x1000000 ::1",
		"find 18446744073709551617 ::1",
		"find 99999999999999999999999999999 ::1",
		"find 17 10.10.0.2",
		"find 17 ::g",
		"find 17 ::1%lo",
		"find 17 ::1/64",
		"find 17 ::1 ",
		"find 17 ::1 x",
		"owns",
		"owns n2:1:1",
		"owns n2:1:1 ::1",
		"owns n2:1:1 x 17",
		"owns n2:1:1 ::1 17 x",
		"owns n2:1:1 ::1 17  18",
		"owns n2:1:1 ::1 17 ",
	};
	struct client c;

	puts("wrong words");
	client_open(&c);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		CHECK(said(&c, wrong[i], EINVAL_ANSWER), "'%s'", wrong[i]);
	CHECK(said(&c, "open x", "{\"ok\":false,\"errno\":3,"));
	CHECK(said(&c, "open n2:1:1", "{\"ok\":false,\"errno\":3,"));
	CHECK(said(&c, "owns n2:1:1 ::1 17", "{\"ok\":false,\"errno\":3,"));
	CHECK(said(&c, "open \x1b[1m\xff\"\\", "{\"ok\":false,\"errno\":3,"));
	CHECK(strstr(answer, "process ?[1m?\\\"\\\\"), "%s", answer);
	CHECK(said(&c, "processes", "{\"ok\":true,\"processes\":[]}"));
	CHECK(said(&c, "processes x", "{\"ok\":true,\"processes\":[]}"));
	client_close(&c);
}

static void test_lines(void)
{
	static char line[70000];
	struct client c;

	puts("lines");
	memset(line, 'x', sizeof(line));
	client_open(&c);
	/* in pieces, and several at once */
	put(&c, "proc", 4);
	usleep(100000);
	put(&c, "esses\nprocesses\nx\npro", 21);
	CHECK(hear(&c) && strstr(answer, "[]"));
	CHECK(hear(&c) && strstr(answer, "[]"));
	CHECK(hear(&c) && strstr(answer, "22"));
	put(&c, "cesses\n", 7);
	CHECK(hear(&c) && strstr(answer, "[]"));
	/* the longest that is one */
	line[65535] = '\n';
	put(&c, line, 65536);
	CHECK(hear(&c) && strstr(answer, "\"errno\":22"));
	line[65535] = 'x';
	put(&c, line, 65536);
	CHECK(hear(&c) && strstr(answer, "\"errno\":90"));
	CHECK(!hear(&c));
	client_close(&c);
	client_open(&c);
	put(&c, "proc\0esses\nprocesses\n", 21);
	CHECK(hear(&c) && strstr(answer, "\"errno\":74"));
	CHECK(!hear(&c));
	client_close(&c);
	/* Who goes away in the midst of a line, or of an answer */
	client_open(&c);
	put(&c, "proc", 4);
	client_die(&c);
	client_open(&c);
	for (int i = 0; i < 1000; i++)
		put(&c, "processes\n", 10);
	client_die(&c);
	CHECK(SOME_TIME(!daemon_children()));
}

static void knows(unsigned int qpn, pid_t pid)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/qps", dir);
	f = fopen(path, "a");
	MUST(f);
	fprintf(f, "%u %d\n", qpn, pid);
	MUST(!fclose(f));
}

static void test_find(void)
{
	struct fake a, b;
	char begin[160];
	struct client c;

	puts("find");
	fake_start(&a, GOOD, "run");
	fake_start(&b, GOOD, "run");
	knows(17, a.pid);
	knows(16777215, b.pid);
	knows(18, getpid());
	knows(19, 4000000);
	client_open(&c);
	snprintf(begin, sizeof(begin),
		 "{\"ok\":true,\"process\":{\"id\":\"%s\",\"pid\":%d,", a.id,
		 a.pid);
	CHECK(said(&c, "find 17 ::ffff:10.10.0.2", begin));
	CHECK(said(&c, "find 0x11 0:0:0:0:0:ffff:a0a:2", begin));
	snprintf(begin, sizeof(begin),
		 "{\"ok\":true,\"process\":{\"id\":\"%s\",", b.id);
	CHECK(said(&c, "find 16777215 ::ffff:10.10.0.2", begin));
	CHECK(said(&c, "find 20 ::ffff:10.10.0.2",
		   "{\"ok\":false,\"errno\":2,\"reason\":\"there is no QP 20"));
	CHECK(said(&c, "find 17 ::1", "{\"ok\":false,\"errno\":2,"));
	snprintf(begin, sizeof(begin),
		 "{\"ok\":false,\"errno\":3,\"reason\":\"the process %d "
		 "(test_words) is not under the layer\"}",
		 getpid());
	CHECK(said(&c, "find 18 ::ffff:10.10.0.2", begin));
	CHECK(said(&c, "find 19 ::ffff:10.10.0.2",
		   "{\"ok\":false,\"errno\":3,\"reason\":\"the process 4000000 "
		   "(gone)"));
	/* It is asked for every QP, while somebody has it open. */
	client_close(&c);
	client_open(&c);
	CHECK(opened(&c, &a));
	for (int i = 0; i < 20; i++) {
		struct client d;

		client_open(&d);
		CHECK(said(&d, "find 17 ::ffff:10.10.0.2", "{\"ok\":true,"));
		client_close(&d);
	}
	client_close(&c);
	CHECK(fake_ended(&a) == 'r');
	fake_kill(&a);
	client_open(&c);
	CHECK(said(&c, "find 17 ::ffff:10.10.0.2",
		   "{\"ok\":false,\"errno\":3,"));
	client_close(&c);
	fake_kill(&b);
}

/* Pieces of what is right, in any order: each line has one answer. */
static void test_fuzz(void)
{
	static const char *const pieces[] = {
		"find",	 "processes", "open",
		" ",	 "  ",	      "17",
		"0x11",	 "::1",	      "-",
		"\t",	 "\r",	      "\x80",
		"{",	 "\"",	      "::ffff:10.10.0.2",
		"n2:",	 ":1:2",      "%n",
		"xxxxx", "suspend 1", "99999999999999999999",
	};
	const size_t n = sizeof(pieces) / sizeof(pieces[0]);
	char line[512];
	struct client c;

	puts("any words");
	srand(1);
	client_open(&c);
	for (int i = 0; i < 3000; i++) {
		line[0] = 0;
		for (int k = rand() % 8; k >= 0; k--)
			strcat(line, pieces[(size_t)rand() % n]);
		if (!said(&c, line, "{\"ok\":")) {
			CHECK(false, "'%s': %s", line, answer);
			break;
		}
	}
	client_close(&c);
	/* and bytes: it may end, but in good order */
	for (int i = 0; i < 100; i++) {
		client_open(&c);
		for (size_t k = 0; k < sizeof(line); k++)
			line[k] = (char)rand();
		put(&c, line, sizeof(line));
		client_close(&c);
	}
	CHECK(SOME_TIME(!daemon_children()));
}

/* One that a sanitizer ends */
static void test_child(void)
{
	char path[PATH_MAX];
	struct client c;
	FILE *f;

	puts("the exit code of a child");
	snprintf(path, sizeof(path), "%s/qps", dir);
	f = fopen(path, "w");
	MUST(f && fputs("17 -1\n", f) >= 0 && !fclose(f));
	client_open(&c);
	CHECK(!said(&c, "find 17 ::ffff:10.10.0.2", "{"));
	client_close(&c);
	CHECK(daemon_logged(": exit code 23"));
}

int main(void)
{
	rig_begin();
	daemon_start("run", "c/*/run");
	test_wrong();
	test_lines();
	test_find();
	test_fuzz();
	CHECK(!daemon_logged_now("child"));
	test_child();
	CHECK(!daemon_end());
	rig_end();
	return check_result();
}
