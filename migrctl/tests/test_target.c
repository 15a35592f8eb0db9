// SPDX-License-Identifier: GPL-2.0
/*
 * The end of a move where the container comes to, by the layer: what the runtime, which is a
 * script, is told, and in which order, when all is well, and when the move is given up, or loses
 * its connection or its process, at each step.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "at_mover.h"
#include "check.h"

/* Each says in the file "log" what it is told. */
static const char runtime[] =
	"#!/bin/sh\n"
	"says() { echo \"$@\" >>${0%/*}/log; }\n"
	/* until nobody is left who decides, as CRIU does */
	"hears() {\n"
	"	until read -r w <&3; do\n"
	"		grep -q granted $images/../state || exit\n"
	"		sleep 0.1\n"
	"	done\n"
	"	says $verb $w\n"
	"}\n"
	"verb=$3 images=$4\n"
	"case $verb in\n"
	"restore | ahead) exec 3<$MIGR_CTR_DOOR/go ;;\n"
	"*) says $verb ;;\n"
	"esac\n"
	"case $verb in\n"
	"vacant) cat >/dev/null; [ ! -e ${0%/*}/taken ] || { echo its name is taken >&2; exit 1; } ;;\n"
	"make) cat >/dev/null; echo '{\"at\": \"/tmp\", \"names\": [\"none\"]}' ;;\n"
	"restore) echo ready; hears; [ \"$w\" = restore ] || exit 1\n"
	"	echo restored; hears; [ \"$w\" = resume ] || exit 1\n"
	"	echo 0 >$MIGR_CTR_DOOR/runc ;;\n"
	"ahead) [ ! -e ${0%/*}/ahead_fails ] || exit 1\n"
	"	cp $images/ahead/records $images/ahead/made; echo made\n"
	"	while hears && [ $w = connect ]; do :; done\n"
	"	echo 0 >$MIGR_CTR_DOOR/runc ;;\n"
	"runs) echo '{\"runs\": true}' ;;\n"
	"esac\n";

static void start(const char *stops_at)
{
	put_file("log", "", 0600);
	mover_start(stops_at);
}

/* A move that is still to write down how it has ended would try that for ever. */
static bool all_is_over(void)
{
	char command[64];

	snprintf(command, sizeof(command), "pkill -0 -P %d", daemon_pid);
	for (int i = 0; i < 1000; i++) {
		if (system(command))
			return true;
		usleep(10000);
	}
	return false;
}

static void end(void)
{
	char command[256];

	talk_free(&t);
	CHECK(all_is_over());
	mover_stop();
	snprintf(command, sizeof(command),
		 "umount %s/*/images 2>&-; rm -rf %s/*", moves, moves);
	if (system(command))
		return;
}

/* ---- what the source says ------------------------------------------------------- */

static bool answered(void)
{
	json_t *said = talk_answered(&t, 20000);

	json_decref(said);
	return said;
}

static bool asks(json_t *o)
{
	return talk_say(&t, o) && answered();
}

static bool word(const char *what)
{
	return asks(json_pack("{ss}", "do", what));
}

static bool asks_of_c1(const char *what)
{
	struct utsname u;
	json_t *hello;

	uname(&u);
	MUST(mover_dial());
	hello = talk_answered(&t, 10000);
	json_decref(hello);
	talk_say(&t, json_pack("{sssb}", "peer", "n9", "operator", 0));
	return hello &&
	       asks(json_pack("{sssssssss{ss}s{sssssssss{}sisb}}", "do", what,
			      "id", ID, "name", "c1", "boot", "b", "spec",
			      "rdma", "", "needs", "kernel", u.release,
			      "machine", u.machine, "cpu", "", "module", "",
			      "devices", "bytes", 0, "layer", 1));
}

static bool reserve(void)
{
	return asks_of_c1("reserve");
}

static bool give(void)
{
	uint64_t bytes = 0;
	char command[128];
	bool given;
	FILE *f;

	snprintf(command, sizeof(command), "tar -C %s -cf - ahead", dir);
	if (!talk_say(&t, json_pack("{ssss}", "do", "take", "what", "image")))
		return false;
	f = popen(command, "r");
	MUST(f);
	given = talk_give(&t, fileno(f), &bytes);
	pclose(f);
	return given && answered();
}

static bool ahead(void)
{
	uint64_t bytes = 0;
	bool taken;
	int fd;

	if (!word("ahead"))
		return false;
	fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	taken = talk_take(&t, fd, &bytes);
	close(fd);
	return taken && bytes == strlen("records");
}

/* so far: 1 is reserved, 2 has what is to be made, 3 has made it, 4 is restored */
static bool comes_to(int step)
{
	return reserve() && (step < 2 || give()) && (step < 3 || ahead()) &&
	       (step < 4 || word("restore"));
}

/* ---- what is made of it ----------------------------------------------------------- */

#define MADE "vacant\nmake\n"
#define GONE "unmake\n"

/* the lines " stop" are not told here */
static void leave_out_stops(char *log)
{
	char *end, *to = log;

	for (char *line = log; (end = strchr(line, '\n')); line = end + 1) {
		if (end - line >= 5 && !strncmp(end - 5, " stop", 5))
			continue;
		memmove(to, line, end + 1 - line);
		to += end + 1 - line;
	}
	*to = 0;
}

static bool told_in(const char *all, bool stops)
{
	char path[64], log[1024] = "";
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%s/log", dir);
	for (int i = 0; i < 1000 && strcmp(log, all); i++) {
		usleep(10000);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		n = read(fd, log, sizeof(log) - 1);
		close(fd);
		log[n > 0 ? n : 0] = 0;
		if (!stops)
			leave_out_stops(log);
	}
	if (strcmp(log, all))
		printf("it was told:\n%s", log);
	return !strcmp(log, all);
}

/* Within ten seconds the runtime has been told just that. */
static bool told(const char *all)
{
	return told_in(all, true);
}

/* Who has heard the end of its pipe is told no "stop"; who is not so far, is. */
static bool told_late(const char *all)
{
	return told_in(all, false);
}

/* Only asked, it makes nothing. */
static void test_would(void)
{
	char path[64];

	start(NULL);
	CHECK(asks_of_c1("would"), "%s", t.reason);
	CHECK(told("vacant\n"));
	talk_free(&t);
	put_file("taken", "", 0600);
	CHECK(!asks_of_c1("would"));
	CHECK(!strcmp(t.reason, "its name is taken"), "%s", t.reason);
	CHECK(told("vacant\nvacant\n"));
	end();
	snprintf(path, sizeof(path), "%s/taken", dir);
	unlink(path);
}

static void test_moves(void)
{
	json_t *o;

	start(NULL);
	CHECK(comes_to(3), "%s", t.reason);
	CHECK(word("connect"));
	CHECK(told(MADE "ahead connect\n"));
	CHECK(word("restore"));
	CHECK(talk_say(&t, json_pack("{ss}", "do", "grant")));
	/* the source need not wait for the rest */
	o = talk_answered(&t, 20000);
	CHECK(!strcmp(talk_text(o, "state"), "resumed"));
	json_decref(o);
	o = talk_answered(&t, 20000);
	CHECK(json_is_array(json_object_get(o, "steps")));
	json_decref(o);
	CHECK(told(
		MADE
		"ahead connect\nrestore restore\nrestore resume\nahead hand\nattach\n"));
	end();
}

/* It is no part of what is needed: without it a move goes on. */
static void test_is_gone(void)
{
	char command[128];

	start(NULL);
	CHECK(comes_to(3));
	snprintf(command, sizeof(command),
		 "pkill -KILL -f 'migr-ctr [d]river c1 ahead %s'", dir);
	CHECK(!system(command));
	CHECK(word("restore"));
	CHECK(talk_say(&t, json_pack("{ss}", "do", "grant")));
	CHECK(answered() && answered());
	CHECK(told(MADE "restore restore\nrestore resume\nattach\n"));
	end();
}

static void test_refused(void)
{
	char path[64];

	start(NULL);
	CHECK(comes_to(1));
	CHECK(!word("ahead"));
	CHECK(strstr(t.reason, "in the state preparing"), "%s", t.reason);
	CHECK(told(MADE "restore stop\n" GONE));
	end();

	put_file("ahead_fails", "", 0600);
	start(NULL);
	CHECK(comes_to(2));
	CHECK(!word("ahead"));
	CHECK(told(MADE "restore stop\n" GONE));
	end();
	snprintf(path, sizeof(path), "%s/ahead_fails", dir);
	unlink(path);
}

static const char *const given_up[] = {
	[1] = MADE "restore stop\n" GONE,
	[2] = MADE "restore stop\n" GONE,
	[3] = MADE "restore stop\nahead stop\n" GONE,
	[4] = MADE "restore restore\nrestore stop\nahead stop\n" GONE,
};
static const char *const killed[] = {
	[1] = MADE GONE,
	[2] = MADE GONE,
	[3] = MADE GONE,
	[4] = MADE "restore restore\n" GONE,
};

/* of that daemon there is one child, which is the move */
static void kill_move(void)
{
	char command[64];

	snprintf(command, sizeof(command), "pkill -KILL -P %d", daemon_pid);
	CHECK(!system(command));
}

static void test_given_up(void)
{
	for (int step = 1; step <= 4; step++) {
		start(NULL);
		CHECK(comes_to(step));
		CHECK(!word("drop") && strstr(t.reason, "has given it up"));
		CHECK(told(given_up[step]), "step %d", step);
		end();

		start(NULL);
		CHECK(comes_to(step));
		kill_move();
		CHECK(told_late(killed[step]), "killed, step %d", step);
		end();
	}
	/* when it is ready only the source knows what a lost connection means */
	for (int step = 1; step <= 3; step++) {
		start(NULL);
		CHECK(comes_to(step));
		talk_free(&t);
		CHECK(told(given_up[step]), "lost, step %d", step);
		end();
	}
}

static void test_granted(void)
{
	start("granted");
	CHECK(comes_to(4));
	CHECK(talk_say(&t, json_pack("{ss}", "do", "grant")));
	CHECK(told(MADE "restore restore\n"));
	kill_move();
	CHECK(told(MADE
		   "restore restore\nrestore resume\nahead hand\nattach\n"));
	end();
}

int main(void)
{
	char command[64];

	mover_house(runtime);
	/* not the host's rcu_expedited */
	MUST(!mount("tmpfs", "/sys/kernel", "tmpfs", 0, NULL));
	snprintf(command, sizeof(command), "mkdir %s/ahead", dir);
	MUST(!system(command));
	put_file("ahead/records", "records", 0600);
	signal(SIGPIPE, SIG_IGN);
	test_would();
	test_moves();
	test_is_gone();
	test_refused();
	test_given_up();
	test_granted();
	mover_leaves_house();
	return check_result();
}
