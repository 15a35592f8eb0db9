// SPDX-License-Identifier: GPL-2.0
/*
 * What the daemon makes of moves that there are, whose process lives, or has died
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "at_mover.h"
#include "check.h"

static void record(const char *role, const char *more)
{
	char text[512];

	snprintf(text, sizeof(text),
		 "{\"id\": \"" ID "\", \"name\": \"c1\", \"peer\": \"n9\", "
		 "\"role\": \"%s\"%s}",
		 role, more);
	put_file("moves/" ID "/record", text, 0600);
}

static void state_is(const char *state)
{
	char line[32];

	snprintf(line, sizeof(line), "%s\n", state);
	put_file("moves/" ID "/state", line, 0600);
}

static void make_folder(void)
{
	char folder[128];

	snprintf(folder, sizeof(folder), "%s/" ID, moves);
	MUST(!mkdir(folder, 0700));
}

static bool is_there(const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/" ID "/%s", moves, name);
	return !access(path, F_OK);
}

/* whose move it is: a process that does nothing */
static pid_t holder(void)
{
	struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	int ready[2], fd;
	char path[128], c;
	pid_t pid;

	MUST(!pipe2(ready, O_CLOEXEC));
	pid = fork();
	MUST(pid >= 0);
	if (!pid) {
		snprintf(path, sizeof(path), "%s/" ID "/lock", moves);
		fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
		if (fd < 0 || fcntl(fd, F_SETLK, &whole) ||
		    write(ready[1], "", 1) != 1)
			_exit(1);
		_exit(pause());
	}
	close(ready[1]);
	MUST(read(ready[0], &c, 1) == 1);
	close(ready[0]);
	return pid;
}

/* 0: it has not ended, and is ended here */
static int ended_by(pid_t pid)
{
	pid_t ended = 0;
	int status;

	for (int i = 0; i < 1000 && !ended; i++) {
		ended = waitpid(pid, &status, WNOHANG);
		if (!ended)
			usleep(10000);
	}
	if (!ended) {
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
		return 0;
	}
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

#define FORGET "{\"do\": \"forget\", \"id\": \"" ID "\"}\n"
#define OUTCOME "{\"do\": \"outcome\", \"id\": \"" ID "\"}\n"
#define RECOVER "{\"do\": \"recover\", \"name\": \"c1\", \"fenced\": \"n9\"}\n"
#define MIGRATE "{\"do\": \"migrate\", \"name\": \"c1\", \"to\": \"n3\"}\n"

static const char stranger[] = "{\"peer\": \"n8\", \"operator\": false}\n";

/* of a move that was there before the daemon: it is over, at the target */
static void test_forget(void)
{
	make_folder();
	record("target", "");
	state_is("running");
	CHECK(refused(stranger, FORGET, "not yours"));
	CHECK(refused(NULL, FORGET, "not yours"));
	CHECK(done(HOST, FORGET, NULL));
	CHECK(!is_there(""));
}

/* The source is back, and who waits for its word does not reach it. */
static void test_forget_ready(void)
{
	pid_t pid;

	make_folder();
	record("target", "");
	pid = holder();
	state_is("ready");
	CHECK(refused(stranger, FORGET, "not over"));
	CHECK(!waitpid(pid, NULL, WNOHANG));
	CHECK(refused(HOST, FORGET, "not over"));
	CHECK(ended_by(pid) == SIGTERM);
	/* nobody goes on with it, and it is dropped */
	for (int i = 0; i < 1000 && !done(HOST, FORGET, NULL); i++)
		usleep(10000);
	CHECK(!is_there(""));
}

static bool outcome_is(const char *answer)
{
	json_t *o = asked(HOST, OUTCOME);
	bool is = !strcmp(talk_text(o, "answer"), answer);

	json_decref(o);
	talk_free(&t);
	return is;
}

/* what a process that has died could not tell its source */
static void test_outcome(void)
{
	json_t *o;

	CHECK(outcome_is("unknown"));
	make_folder();
	/* there is one, of which only nobody can tell now */
	CHECK(outcome_is("wait"));
	record("target", ", \"warning\": \"no hook\"");
	state_is("running");
	o = asked(HOST, OUTCOME);
	CHECK(!strcmp(talk_text(o, "answer"), "runs"));
	CHECK(!strcmp(talk_text(o, "warning"), "no hook"));
	json_decref(o);
	talk_free(&t);
	CHECK(done(HOST, FORGET, NULL));
}

/* the reason that the only move has, or "" */
static bool has_reason(const char *text)
{
	json_t *o = asked(NULL, "{\"do\": \"status\"}\n");
	const char *why =
		talk_text(json_array_get(json_object_get(o, "moves"), 0),
			  "reason");
	bool has = strstr(why, text);

	json_decref(o);
	talk_free(&t);
	return has;
}

/* Nobody has to vouch for a host that may answer. */
static void test_recover(void)
{
	pid_t pid;

	make_folder();
	record("source", "");
	pid = holder();
	state_is("held");
	CHECK(refused(PERSON, RECOVER, "not in doubt, in the state held"));
	/* another move of it does not begin, though nobody has the lock */
	CHECK(refused(PERSON, MIGRATE, "a move of c1 is not over here"));
	state_is("granted");
	CHECK(refused(PERSON, RECOVER, "not in doubt, in the state granted"));
	kill(pid, SIGKILL);
	ended_by(pid);
	for (int i = 0; i < 1000 && !has_reason("n9 does not say"); i++)
		usleep(10000);
	/* who goes on with it has the lock */
	CHECK(refused(PERSON, MIGRATE, "another command is at work"));
	CHECK(done(PERSON, RECOVER, NULL));
	for (int i = 0; i < 1000 && is_there(""); i++)
		usleep(10000);
	CHECK(!is_there(""));
}

/* so often was what was to come removed */
static int unmade(void)
{
	char path[64], verb[64];
	int n = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/verbs", dir);
	f = fopen(path, "re");
	MUST(f);
	while (fscanf(f, "%63s", verb) == 1)
		n += !strcmp(verb, "unmake");
	fclose(f);
	return n;
}

/* What cannot be written down is tried again, and what was done is not done once more. */
static void test_full(void)
{
	char path[128];

	make_folder();
	snprintf(path, sizeof(path), "%s/" ID "/new", moves);
	MUST(!mkdir(path, 0700));
	put_file("verbs", "", 0600);
	record("target", ", \"claimed\": true");
	state_is("copying");
	for (int i = 0; i < 1000 && !unmade(); i++)
		usleep(10000);
	usleep(2500000); /* it could be done twice more */
	CHECK(refused(HOST, FORGET, "not over"));
	MUST(!rmdir(path));
	for (int i = 0; i < 1000 && !done(HOST, FORGET, NULL); i++)
		usleep(10000);
	CHECK(!is_there(""));
	CHECK(unmade() == 1, "%d", unmade());
}

/* What is none is removed, and what only cannot be read is not. */
static void test_sweep(void)
{
	char path[128];

	make_folder();
	put_file("moves/" ID "/record", "{", 0600);
	mover_again();
	CHECK(!is_there(""));
	make_folder();
	put_file("moves/" ID "/record", "{", 0600);
	state_is("held");
	mover_again();
	CHECK(is_there("record") && is_there("state"));
	snprintf(path, sizeof(path), "rm -r %s/" ID, moves);
	CHECK(!system(path));
}

int main(void)
{
	mover_begins();
	test_forget();
	test_forget_ready();
	test_outcome();
	test_recover();
	test_full();
	test_sweep();
	mover_ends();
	return check_result();
}
