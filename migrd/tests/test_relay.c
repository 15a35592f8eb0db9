// SPDX-License-Identifier: GPL-2.0
/*
 * A connection that is bound to a process
 */
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <linux/filter.h>

#include "rig.h"

static void test_good(void)
{
	static char line[65537];
	struct client c;
	struct fake f;

	puts("a good one");
	fake_start(&f, GOOD, "run");
	client_open(&c);
	CHECK(opened(&c, &f));
	CHECK(said(&c, "suspend 10",
		   "{\"ok\": true, \"n\": 1, \"bytes\": 11}"));
	/* our words are none any more */
	CHECK(said(&c, "processes", "{\"ok\": true, \"n\": 2, \"bytes\": 10}"));
	CHECK(said(&c, "", "{\"ok\": false, \"n\": 3, \"bytes\": 1}"));
	memset(line, 'x', sizeof(line));
	line[65535] = 0;
	CHECK(said(&c, line, "{\"ok\": true, \"n\": 4, \"bytes\": 65536}"));
	/* many at once are answered in their order */
	put(&c, "a\nbb\nccc\n", 9);
	CHECK(hear(&c) && strstr(answer, "\"bytes\": 2"));
	CHECK(hear(&c) && strstr(answer, "\"bytes\": 3"));
	CHECK(hear(&c) && strstr(answer, "\"bytes\": 4"));
	client_close(&c);
	CHECK(fake_ended(&f) == 'r');
	/* no line */
	client_open(&c);
	CHECK(opened(&c, &f));
	put(&c, "a\0b\nx\n", 6);
	CHECK(hear(&c) && strstr(answer, "\"errno\":74"));
	CHECK(!hear(&c));
	client_close(&c);
	CHECK(fake_ended(&f) == 'r');
	client_open(&c);
	CHECK(opened(&c, &f));
	line[65535] = 'x';
	put(&c, line, 65536);
	CHECK(hear(&c) && strstr(answer, "\"errno\":90"));
	client_close(&c);
	CHECK(fake_ended(&f) == 'r');
	fake_kill(&f);
}

/* Whoever goes, the process goes on: its connection ends. */
static void test_ends(void)
{
	struct client c, d;
	struct fake f;
	char byte;

	puts("the end of a client");
	fake_start(&f, GOOD, "run");
	client_open(&c);
	CHECK(opened(&c, &f));
	CHECK(said(&c, "suspend", "{\"ok\": true,"));
	client_die(&c);
	CHECK(fake_ended(&f) == 's');
	client_open(&c);
	CHECK(opened(&c, &f) && said(&c, "suspend", "{\"ok\": true,"));
	client_close(&c);
	CHECK(fake_ended(&f) == 's');

	puts("two clients");
	client_open(&c);
	client_open(&d);
	CHECK(opened(&c, &f));
	CHECK(!opened(&d, &f));
	CHECK(!strncmp(answer, "{\"ok\":false,\"errno\":16,", 23), "%s",
	      answer);
	CHECK(said(&d, "processes", "{\"ok\":true,"));
	CHECK(strstr(answer, f.id));
	client_close(&c);
	CHECK(fake_ended(&f) == 'r');
	CHECK(SOME_TIME(opened(&d, &f)));

	puts("the end of a process");
	kill(f.pid, SIGKILL);
	CHECK(!hear(&d) && !*answer);
	client_close(&d);
	waitpid(f.pid, NULL, 0);
	close(f.told);
	CHECK(daemon_logged("is closed: it has ended"));
	fake_start(&f, GOOD, "run");
	client_open(&c);
	CHECK(opened(&c, &f));
	put(&c, "die\n", 4);
	CHECK(hear(&c) && strstr(answer, "\"errno\":104"), "%s", answer);
	CHECK(!hear(&c));
	client_close(&c);
	fake_kill(&f);
	/* a child of it has its connections still */
	fake_start(&f, GOOD, "run");
	client_open(&c);
	CHECK(opened(&c, &f) && said(&c, "fork", "{\"ok\": true,"));
	fake_kill(&f);
	CHECK(!hear(&c) && !*answer);
	client_close(&c);

	puts("the end of the daemon");
	fake_start(&f, GOOD, "run");
	client_open(&c);
	CHECK(opened(&c, &f) && said(&c, "suspend", "{\"ok\": true,"));
	CHECK(!daemon_end());
	CHECK(fake_ended(&f) == 's');
	CHECK(!hear(&c));
	client_close(&c);
	daemon_start("run", "none");
	client_open(&c);
	CHECK(opened(&c, &f) && said(&c, "suspend", "{\"ok\": true,"));
	/* a new daemon has asked who this is */
	CHECK(read(f.told, &byte, 1) == 1 && byte == 'r');
	daemon_signal(SIGKILL);
	CHECK(fake_ended(&f) == 's');
	CHECK(daemon_end() == -SIGKILL);
	client_close(&c);
	daemon_start("run", "none");
	fake_kill(&f);
}

/* Nothing of what is sent to it arrives any more, as if its host were dead. */
static void test_dead_host(void)
{
	struct sock_filter drop = BPF_STMT(BPF_RET | BPF_K, 0);
	const struct sock_fprog all = { .len = 1, .filter = &drop };
	struct client c;
	struct fake f;
	time_t began;

	puts("a host that dies");
	fake_start(&f, GOOD, "run");
	client_open(&c);
	CHECK(opened(&c, &f) && said(&c, "suspend", "{\"ok\": true,"));
	MUST(!setsockopt(c.fd, SOL_SOCKET, SO_ATTACH_FILTER, &all,
			 sizeof(all)));
	began = time(NULL);
	CHECK(fake_ended(&f) == 's');
	CHECK(time(NULL) - began < 20, "%ld s", (long)(time(NULL) - began));
	CHECK(daemon_logged("is closed: the peer's host does not answer"));
	client_die(&c);
	fake_kill(&f);
}

static void test_silent(void)
{
	struct client c, d;
	struct fake f;

	puts("one that never accepts");
	fake_start(&f, NEVER_ACCEPTS, "run");
	client_open(&c);
	for (int i = 0; i < 2; i++) {
		CHECK(!opened(&c, &f));
		CHECK(strstr(answer, "\"errno\":16"), "%s", answer);
	}
	/* while it is waited for, the client goes */
	client_open(&d);
	put(&d, "open ", 5);
	put(&d, f.id, strlen(f.id));
	put(&d, "\n", 1);
	usleep(100000);
	client_die(&d);
	CHECK(SOME_TIME(daemon_children() == 1));
	/* its queue is full, and it is known still */
	for (int i = 0; i < 6; i++) {
		client_open(&d);
		put(&d, "open ", 5);
		put(&d, f.id, strlen(f.id));
		put(&d, "\n", 1);
		usleep(50000);
		client_die(&d);
		CHECK(SOME_TIME(daemon_children() == 1));
	}
	CHECK(!opened(&c, &f) && strstr(answer, "\"errno\":16"));
	CHECK(said(&c, "processes", "{\"ok\":true,") && strstr(answer, f.id));
	client_close(&c);
	fake_kill(&f);

	puts("one that never answers");
	fake_start(&f, NEVER_ANSWERS, "run");
	client_open(&c);
	CHECK(opened(&c, &f));
	put(&c, "suspend\n", 8);
	usleep(100000);
	client_die(&c);
	CHECK(fake_ended(&f) == 's');
	/* also if it has said more than there is room for */
	client_open(&c);
	CHECK(opened(&c, &f));
	for (int i = 0; i < 30000; i++)
		put(&c, "xxxxx\n", 6);
	client_die(&c);
	CHECK(fake_ended(&f) == 'r');
	fake_kill(&f);
	CHECK(SOME_TIME(!daemon_children()));
}

static void test_bad(enum manner manner, const char *name, const char *says)
{
	struct client c;
	struct fake f;

	puts(name);
	fake_start(&f, manner, "run");
	client_open(&c);
	CHECK(opened(&c, &f));
	put(&c, "x\n", 2);
	if (manner == CHATTY)
		CHECK(hear(&c) && strstr(answer, "\"ok\": true"));
	else
		CHECK(hear(&c) && strstr(answer, says), "%.100s", answer);
	CHECK(!hear(&c));
	client_close(&c);
	CHECK(fake_ended(&f) == 'r');
	fake_kill(&f);
	CHECK(daemon_logged(says));
}

/* Whoever is busy is so whenever one looks. */
static bool rests(void)
{
	for (int i = 0; i < 50; i++) {
		if (daemon_child_state() != 'S')
			return false;
		usleep(1000);
	}
	return true;
}

static void test_urgent(void)
{
	char path[128];
	struct client c;
	struct fake f;

	puts("a byte out of band");
	fake_start(&f, URGENT, "run");
	MUST(SOME_TIME(!daemon_children()));
	client_open(&c);
	CHECK(opened(&c, &f));
	for (int n = 1; n < 3; n++) {
		CHECK(said(&c, "x", "{\"ok\": true,"));
		snprintf(path, sizeof(path), "%s/%d.urgent", dir, f.pid);
		CHECK(SOME_TIME(!access(path, F_OK)) && !unlink(path));
		CHECK(SOME_TIME(rests()), "it is busy");
	}
	client_close(&c);
	CHECK(fake_ended(&f) == 'r');
	fake_kill(&f);
}

int main(void)
{
	rig_begin();
	daemon_start("run", "none");
	test_good();
	test_ends();
	test_dead_host();
	test_silent();
	test_bad(NO_END, "an answer without an end", "it has ended");
	test_bad(HUGE, "a huge answer", "its answer is too long");
	test_bad(TALKS, "two answers", "it says what nobody has asked");
	test_bad(CHATTY, "an answer to nothing",
		 "it says what nobody has asked");
	test_urgent();
	CHECK(!daemon_end());
	CHECK(!daemon_logged_now("child"));
	rig_end();
	return check_result();
}
