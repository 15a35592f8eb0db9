// SPDX-License-Identifier: GPL-2.0
/*
 * A move by the layer in which somebody dies, or does not do what he is told: it is undone,
 * or the others go on. The container has two processes, of which one has the QP 17, which
 * leads to 27 of the first partner, and 18, to 28 of the second; and the other one 19, to
 * 29 of the second.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "layer_rig.h"

#define MOVER                                                             \
	NAMES(QP("17", "117", "27", AT("127")) ", " QP("18", "118", "28", \
						       AT("128")),        \
	      "")
#define OTHER NAMES(QP("19", "119", "29", AT("129")), "")
#define FIRST NAMES(QP("27", "127", "17", AT("117")), "")
#define SECOND                                                            \
	NAMES(QP("28", "128", "18", AT("118")) ", " QP("29", "129", "19", \
						       AT("119")),        \
	      "")

static struct fake mover, other, first, second;

static void whose(void)
{
	char text[256];

	snprintf(text, sizeof(text),
		 "127 %d\n128 %d\n129 %d\n228 %d\n229 %d\n"
		 "117 %d\n118 %d\n119 %d\n",
		 first.pid, second.pid, second.pid, second.pid, second.pid,
		 mover.pid, mover.pid, other.pid);
	qps(text);
}

static void start_all(void)
{
	fake_start(&mover, LAYER, "ctr/box/run/migrrdma");
	fake_start(&other, LAYER, "ctr/box/run/migrrdma");
	fake_start(&first, LAYER, "ctr/a/run/migrrdma");
	fake_start(&second, LAYER, "ctr/b/run/migrrdma");
	whose();
	answers(&mover, "names", MOVER);
	answers(&other, "names", OTHER);
	answers(&first, "names", FIRST);
	answers(&second, "names", SECOND);
}

static void forget(void)
{
	was_told(&mover);
	was_told(&other);
	was_told(&first);
	was_told(&second);
}

static void begin(const char *what)
{
	puts(what);
	forget();
	layer_begin(NULL);
	CHECK(layer_says("checked"), "%s", heard);
	layer_tell("stop\n");
}

static void stop(const char *what)
{
	begin(what);
	CHECK(layer_says("stopped"), "%s", heard);
	CHECK(fake_ended(&mover) == 'r' && fake_ended(&other) == 'r');
}

/* this is all that it was told since it was suspended, and a mover had been checked */
static void told(const struct fake *f, const char *text)
{
	const char *last = f == &mover || f == &other ? "check\n" : "names\n";
	const char *all = was_told(f);
	const char *suspended = strstr(all, "suspend 1000");
	const char *since = suspended ? strstr(suspended, last) : NULL;

	CHECK(since && !strcmp(since + strlen(last), text),
	      "%s\nin the place of\n%s", all, text);
}

static void told_some(const struct fake *f, const char *text)
{
	const char *all = was_told(f);

	CHECK(strstr(all, text), "%s\nhas no\n%s", all, text);
}

static void ended(const struct fake *f)
{
	CHECK(fake_ended((struct fake *)f) == 'r');
}

static void all_ended(void)
{
	ended(&mover);
	ended(&other);
	ended(&first);
	ended(&second);
}

/* The daemon there has to be one that can be asked. */
static void test_target(void)
{
	puts("the host where it is to go");
	forget();
	layer_begin("nowhere");
	CHECK(layer_says("failed nowhere: "), "%s", heard);
	CHECK(layer_ends() == 1);
	CHECK(!*was_told(&mover));
	layer_begin("n2");
	CHECK(layer_says("checked"), "%s", heard);
	CHECK(!layer_ends());
	all_ended();
}

/* One partner cannot be replaced: what leads to that one stays as it is. */
static void test_refusal(void)
{
	char line[1024];

	answers(&first, "replace", REFUSAL("MRs of dma-bufs"));
	begin("a partner that cannot be replaced");
	CHECK(layer_says("failed 10.10.0.2: process "), "%s", heard);
	CHECK(strstr(heard, "dma-bufs"), "%s", heard);
	CHECK(layer_ends() == 1);
	answers(&first, "replace", NULL);
	all_ended();
	snprintf(line, sizeof(line),
		 "replace 1000 18\nnames\nkeys %s\npeer 18 128 " GID
		 " %s\nconnect\nresume\n",
		 second.id, second.id);
	told(&mover, line);
	snprintf(line, sizeof(line),
		 "replace 1000 19\nnames\nkeys %s\npeer 19 129 " GID
		 " %s\nconnect\nresume\n",
		 second.id, second.id);
	told(&other, line);
	told(&first,
	     "replace 1000 27\nreplace 1000 27\nnames\nconnect\nresume\n");
	snprintf(line, sizeof(line),
		 "replace 1000 28 29\nnames\nkeys %s\nkeys %s\n"
		 "peer 28 118 " GID " %s\npeer 29 119 " GID
		 " %s\nconnect\nresume\n",
		 mover.id, other.id, mover.id, other.id);
	told(&second, line);
}

/* It may have new QPs, which nobody has connected: what leads there is lost. */
static void test_hang_up(void)
{
	char line[1024];

	answers(&second, "replace", "hang up\n");
	begin("a partner whose connection ends while it is replaced");
	CHECK(layer_says("migr-layer: 10.10.0.2: process ") &&
		      strstr(heard, second.id) &&
		      strstr(heard, "its connections are lost"),
	      "%s", heard);
	CHECK(layer_says("failed 10.10.0.2: process "), "%s", heard);
	CHECK(layer_ends() == 1);
	answers(&second, "replace", NULL);
	all_ended();
	told(&second, "replace 1000 28 29\n");
	snprintf(line, sizeof(line),
		 "replace 1000 19\nnames\nkeys %s\npeer 19 0 " GID
		 " %s\nconnect\nresume\n",
		 second.id, second.id);
	told(&other, line);
	told_some(&mover, "\nreplace 1000 17 18\nnames\n");
}

/* Both are named, and their peers hear that they are gone. */
static void test_liars(void)
{
	char line[1024];

	stop("partners that say something else than before");
	answers(&first, "names", NAMES("", ""));
	answers(&second, "names",
		NAMES(QP("28", "228", "18", "") ", " QP_AT("::ffff:10.10.0.9",
							   "29", "229", "19",
							   ""),
		      ""));
	layer_tell("restored n2\n");
	CHECK(layer_says("migr-layer: 10.10.0.2: process ") &&
		      strstr(heard, "QP 27 is gone, or elsewhere"),
	      "%s", heard);
	CHECK(layer_says("migr-layer: 10.10.0.2: process ") &&
		      strstr(heard, "QP 29 is gone, or elsewhere"),
	      "%s", heard);
	CHECK(layer_says("{\"check_ms\""), "%s", heard);
	CHECK(layer_says("done"), "%s", heard);
	CHECK(!layer_ends());
	answers(&first, "names", FIRST);
	answers(&second, "names", SECOND);
	all_ended();
	snprintf(line, sizeof(line), "\npeer 17 0 " GID " %s\n", first.id);
	told_some(&mover, line);
	snprintf(line, sizeof(line),
		 "\npeer 19 0 " GID " %s\nconnect\nresume\n", second.id);
	told_some(&other, line);
}

/* Nobody is led to a queue pair of somebody else, of whomever that is. */
static void test_thieves(void)
{
	char line[1024];

	stop("a partner, and a mover, that say that others' QPs are theirs");
	answers(&first, "names", NAMES(QP("27", "128", "17", AT("117")), ""));
	answers(&other, "names", NAMES(QP("19", "117", "29", AT("129")), ""));
	layer_tell("restored n2\n");
	CHECK(layer_says("migr-layer: n2: process ") &&
		      strstr(heard, other.id) &&
		      strstr(heard, "QP 117 is another process'"),
	      "%s", heard);
	CHECK(layer_says("migr-layer: 10.10.0.2: process ") &&
		      strstr(heard, first.id) &&
		      strstr(heard, "QP 128 is another process'"),
	      "%s", heard);
	CHECK(layer_says("failed n2: process "), "%s", heard);
	CHECK(layer_ends() == 1);
	answers(&first, "names", FIRST);
	answers(&other, "names", OTHER);
	all_ended();
	snprintf(line, sizeof(line), "\npeer 17 0 " GID " %s\n", first.id);
	told_some(&mover, line);
	snprintf(line, sizeof(line), "\npeer 29 0 " GID " %s\n", other.id);
	told_some(&second, line);
}

/* Others were told where it is, and are not connected to it. */
static void test_refuses_peer(void)
{
	char line[1024];

	answers(&first, "peer", REFUSAL("no way"));
	stop("a partner that does not want to hear of its peers");
	layer_tell("restored n2\n");
	CHECK(layer_says("migr-layer: 10.10.0.2: process ") &&
		      strstr(heard, first.id) && strstr(heard, "no way"),
	      "%s", heard);
	CHECK(layer_says("{\"check_ms\""), "%s", heard);
	CHECK(layer_says("done"), "%s", heard);
	CHECK(!layer_ends());
	answers(&first, "peer", NULL);
	all_ended();
	snprintf(line, sizeof(line),
		 "\npeer 17 127 " GID " %s\npeer 18 128 " GID
		 " %s\npeer 17 0 " GID " %s\nconnect\nresume\n",
		 first.id, second.id, first.id);
	told_some(&mover, line);
}

static void test_refuses_connect(void)
{
	char line[1024];

	answers(&other, "connect", REFUSAL("no way"));
	stop("a process of the container that cannot be connected");
	layer_tell("restored n2\n");
	CHECK(layer_says("migr-layer: n2: process ") &&
		      strstr(heard, other.id) && strstr(heard, "no way"),
	      "%s", heard);
	CHECK(layer_says("failed n2: process ") && strstr(heard, other.id),
	      "%s", heard);
	CHECK(layer_ends() == 1);
	answers(&other, "connect", NULL);
	all_ended();
	snprintf(line, sizeof(line),
		 "\npeer 29 119 " GID " %s\npeer 29 0 " GID
		 " %s\nconnect\nresume\n",
		 other.id, other.id);
	told_some(&second, line);
	snprintf(line, sizeof(line),
		 "\npeer 27 117 " GID " %s\nconnect\nresume\n", mover.id);
	told_some(&first, line);
}

static void test_lost_by_that(void)
{
	char line[1024];

	answers(&first, "peer", REFUSAL("no way"));
	answers(&mover, "gone", "hang up\n");
	stop("a process that ends when it hears of one that is lost");
	layer_tell("restored n2\n");
	CHECK(layer_says_some("no way"));
	CHECK(layer_says_some("failed n2: process ") && strstr(heard, mover.id),
	      "%s", heard);
	CHECK(layer_ends() == 1);
	answers(&first, "peer", NULL);
	answers(&mover, "gone", NULL);
	all_ended();
	snprintf(line, sizeof(line),
		 "\npeer 28 0 " GID " %s\nconnect\nresume\n", mover.id);
	told_some(&second, line);
}

/* It moves, and another one has come: nobody waits for the one, or asks the other. */
static void test_processes(void)
{
	struct fake more;

	stop("a process of the container that ends");
	fake_kill(&other);
	fake_start(&more, LAYER, "ctr/box/run/migrrdma");
	layer_tell("restored n2\n");
	CHECK(layer_says("migr-layer: n2: process ") &&
		      strstr(heard, "it has ended"),
	      "%s", heard);
	CHECK(layer_says("failed n2: process ") &&
		      strstr(heard, "it has ended"),
	      "%s", heard);
	CHECK(layer_ends() == 1);
	ended(&mover);
	ended(&first);
	ended(&second);
	told_some(&mover, "\nconnect\nresume\n");
	told_some(&first, "\nconnect\nresume\n");
	told_some(&second, "\nconnect\nresume\n");
	CHECK(!*was_told(&more));
	fake_kill(&more);
	fake_start(&other, LAYER, "ctr/box/run/migrrdma");
	answers(&other, "names", OTHER);
	whose();
}

/* Nobody has said where it is: here, or where it was to go. */
static void test_nobody_says(void)
{
	puts("the end of the input, and it is elsewhere");
	forget();
	layer_begin("10.20.0.2");
	CHECK(layer_says("checked"), "%s", heard);
	layer_tell("stop\n");
	CHECK(layer_says("stopped"), "%s", heard);
	ended(&mover);
	ended(&other);
	gone("n2\n");
	layer_hang_up();
	CHECK(layer_says("at 10.20.0.2"), "%s", heard);
	CHECK(layer_says("{\"check_ms\""), "%s", heard);
	CHECK(layer_says("done"), "%s", heard);
	CHECK(!layer_ends());
	gone(NULL);
	all_ended();
}

/* The one host answers nothing, and the container runs on the other one a little later. */
static void test_silent_target(void)
{
	int fd;

	puts("the end of the input, and where it was to go is silent");
	forget();
	other_daemon_start("none");
	layer_begin("n1");
	CHECK(layer_says("checked"), "%s", heard);
	layer_tell("stop\n");
	CHECK(layer_says("stopped"), "%s", heard);
	ended(&mover);
	ended(&other);
	other_daemon_end();
	fd = silent_host(9);
	gone("n2\n");
	layer_hang_up();
	sleep(2);
	gone(NULL);
	MUST(layer_says("at n2"));
	CHECK(layer_says("{\"check_ms\""), "%s", heard);
	CHECK(layer_says("done"), "%s", heard);
	CHECK(!layer_ends());
	close(fd);
	all_ended();
}

/* Until the container is dumped it can go on where it is, and no later. */
static void test_target_ends(void)
{
	char path[PATH_MAX];
	int fd;

	puts("the daemon where it is to go ends before they are stopped");
	forget();
	other_daemon_start("none");
	layer_begin("n1");
	CHECK(layer_says("checked"), "%s", heard);
	other_daemon_end();
	layer_tell("stop\n");
	CHECK(layer_says("failed n1: "), "%s", heard);
	CHECK(layer_ends() == 1);
	all_ended();
	told(&mover, "");
	told(&first, "");

	puts("and when they let go");
	forget();
	snprintf(path, sizeof(path), "%s/%d.hold", dir, mover.pid);
	MUST(!mkfifo(path, 0600));
	other_daemon_start("none");
	layer_begin("n1");
	CHECK(layer_says("checked"), "%s", heard);
	layer_tell("stop\n");
	fd = open(path, O_WRONLY);
	other_daemon_end();
	MUST(fd >= 0 && write(fd, "{\"ok\": true}\n", 13) == 13);
	close(fd);
	MUST(!unlink(path));
	CHECK(layer_says("failed n1: "), "%s", heard);
	CHECK(layer_ends() == 1);
	all_ended();
	told_some(&mover, "\nhold 1000 120\nreplace 1000\nnames\n");
	told_some(&first, "\nconnect\nresume\n");
}

/*
 * They take no time from others. The container has two more processes, without queue pairs:
 * the last one does not let go, so all are connected again where they are, in ten seconds. Of
 * these a daemon waits five for each that does not answer.
 */
static void test_stopped(void)
{
	struct fake healthy, refuses;

	fake_start(&healthy, LAYER, "ctr/box/run/migrrdma");
	fake_start(&refuses, LAYER, "ctr/box/run/migrrdma");
	answers(&healthy, "names", NAMES("", ""));
	answers(&refuses, "names", NAMES("", ""));
	answers(&mover, "hold", "stop\n");
	answers(&other, "hold", "stop\n");
	answers(&refuses, "hold", REFUSAL("it will not"));
	begin("two processes of the container that have let go, and are stopped");
	CHECK(layer_says_some("its connections are lost") &&
		      strstr(heard, mover.id),
	      "%s", heard);
	CHECK(layer_says("migr-layer: n2: process ") && strstr(heard, other.id),
	      "%s", heard);
	CHECK(layer_says("migr-layer: box does not go on either: "), "%s",
	      heard);
	CHECK(layer_says("failed n2: process ") && strstr(heard, refuses.id),
	      "%s", heard);
	CHECK(layer_ends() == 1);
	told_some(&healthy,
		  "\nhold 1000 120\nreplace 1000\nnames\nconnect\nresume\n");
	ended(&first);
	ended(&second);
	fake_kill(&healthy);
	fake_kill(&refuses);
}

int main(void)
{
	rig_begin();
	daemon_start("ctr/*/run/migrrdma", "none");
	start_all();
	test_target();
	test_refusal();
	test_hang_up();
	test_liars();
	test_thieves();
	test_refuses_peer();
	test_refuses_connect();
	test_lost_by_that();
	test_processes();
	test_nobody_says();
	test_silent_target();
	test_target_ends();
	test_stopped();
	fake_kill(&mover);
	fake_kill(&other);
	fake_kill(&first);
	fake_kill(&second);
	CHECK(!daemon_end());
	rig_end();
	return check_result();
}
