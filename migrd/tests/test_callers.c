// SPDX-License-Identifier: GPL-2.0
/*
 * Callers that are none, or too many, or say too much
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "meet_rig.h"

static void has_place(int fd)
{
	char wait[5];

	CHECK(recv(fd, wait, sizeof(wait), MSG_WAITALL) == sizeof(wait) &&
	      !memcmp(wait, "wait\n", sizeof(wait)));
}

/* another one, of a container of its own; it says nothing so many times */
static pid_t silent_one(const char *container, int times)
{
	pid_t pid = fork();

	MUST(pid >= 0);
	if (pid)
		return pid;
	close(own);
	come_under_the_layer(container);
	while (times--)
		call();
	for (;;)
		pause();
}

static void test_silent(void)
{
	char answer_to_other[64];
	int fd[4], status, all = 0;
	pid_t other;

	puts("who says nothing keeps places of his container's, and not for long");
	CHECK(SOME_TIME(!daemon_children()));
	for (int i = 0; i < 4; i++) {
		fd[i] = call();
		has_place(fd[i]);
	}
	SAYS("", "busy\n");
	other = fork();
	if (!other) {
		close(own);
		come_under_the_layer("box2");
		snprintf(answer_to_other, sizeof(answer_to_other), "%s",
			 meets(MEET "end\n"));
		_exit(strncmp(answer_to_other, "failed QP 17 is another", 23) !=
		      0);
	}
	MUST(other > 0 && waitpid(other, &status, 0) == other);
	CHECK(!status);
	CHECK(SOME_TIME(daemon_children() == 4));
	for (int i = 0; i < 4; i++)
		all += !strcmp(answer_of(fd[i]),
			       "failed that takes too long\n");
	CHECK(all == 4, "%d", all);
	SAYS(MEET "end\n", "met\n");
	CHECK(fake_ended(&peer) == 'r');
	was_told(&peer);
}

/* It ends at once, and is called again. */
static void test_full(void)
{
	enum {
		CONTAINERS = 8
	};
	pid_t all[CONTAINERS];
	char name[16];

	puts("all places are taken");
	CHECK(SOME_TIME(!daemon_children()));
	for (int i = 0; i < CONTAINERS; i++) {
		snprintf(name, sizeof(name), "many%d", i);
		all[i] = silent_one(name, 4);
	}
	CHECK(SOME_TIME(daemon_children() == 4 * CONTAINERS));
	CHECK(!*answer_of(call()));
	CHECK(daemon_children() == 4 * CONTAINERS);
	for (int i = 0; i < CONTAINERS; i++) {
		kill(all[i], SIGKILL);
		waitpid(all[i], NULL, 0);
	}
	SAYS(MEET "end\n", "met\n");
	CHECK(fake_ended(&peer) == 'r');
	was_told(&peer);
}

/* Who calls in a loop, whosever he is, has few of all places at any time: others have some. */
static void test_loop(void)
{
	int too_many = 0;
	pid_t pid;

	puts("one who calls all the time");
	CHECK(SOME_TIME(!daemon_children()));
	pid = fork();
	if (!pid)
		for (;;)
			close(call());
	MUST(pid > 0);
	CHECK(SOME_TIME(daemon_children() >= 4));
	/* some may be gone when others that are read of are there: not time and again */
	for (int i = 0; i < 5000 && too_many < 5; i++)
		too_many = daemon_children() > 8 ? too_many + 1 : 0;
	CHECK(too_many < 5);
	for (int i = 0; i < 5; i++) {
		int fd = call();

		send(fd, "who?\n", 5, MSG_NOSIGNAL);
		CHECK(!strcmp(answer_of(fd),
			      "failed nobody knows whom it means\n"),
		      "%d", i);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void test_others(void)
{
	int status;
	pid_t pid;

	puts("who is not under the layer");
	pid = fork();
	if (!pid)
		_exit(strncmp(meets(MEET "end\n"),
			      "failed it is not under the layer", 32) != 0);
	MUST(pid > 0 && waitpid(pid, &status, 0) == pid);
	CHECK(!status);
	CHECK(!*was_told(&peer));
}

/* as many keys as a peer takes, and one more; and what is no line */
static void test_endless(void)
{
	enum {
		MOST = 65 * 4096
	};
	static const char other[] = "meet 37 " AT_GID " 27 " AT_GID " 3\n",
			  key[] = "key 4294967295 4294967295\n";
	char *text = malloc(sizeof(other) + (MOST + 2) * sizeof(key)),
	     *to = text;

	MUST(text);
	puts("too much");
	to += sprintf(to, "%s", other);
	for (int i = 0; i < MOST; i++)
		to += sprintf(to, "%s", key);
	strcpy(to, "end\n");
	SAYS(text, "failed QP 37 is another process'");
	sprintf(to, "%send\n", key);
	SAYS(text, "failed it has more keys than a peer takes\n");
	memset(text, '1', 5000);
	strcpy(text + 5000, "\nend\n");
	SAYS(text, "failed that is no line\n");
	free(text);
}

/* in pieces of so many bytes at most, and, if it @ends, no more */
static const char *answer_to(const char *text, size_t bytes, size_t most,
			     bool ends)
{
	const char *answer = "";
	size_t n;
	int fd;

	for (int i = 0; i < 200 && !*answer; i++) {
		usleep(i ? 50000 : 0);
		fd = call();
		for (size_t at = 0; at < bytes; at += n) {
			n = (size_t)rand() % most + 1;
			if (n > bytes - at)
				n = bytes - at;
			send(fd, text + at, n, MSG_NOSIGNAL);
			usleep(rand() % 2 ? 0 : 300);
		}
		if (ends)
			shutdown(fd, SHUT_WR);
		answer = answer_of(fd);
	}
	return answer;
}

static void test_fuzz(void)
{
	static const char good[] = MEET "key 1 2\nkey 3 4\nend\n";
	const size_t most = sizeof(good) - 1;
	char text[sizeof(good)];
	size_t bytes;

	puts("what is nearly right");
	srand(1);
	for (int i = 0; i < 100; i++) {
		strcpy(text, good);
		bytes = i % 2 ? most : (size_t)rand() % most;
		for (int n = rand() % 4; n > 0; n--)
			text[(size_t)rand() % most] = (char)(rand() % 256);
		CHECK(*answer_to(text, bytes, most, true), "%d: %s", i, text);
	}
	for (size_t n = 1; n < most; n += 10)
		CHECK(!strcmp(answer_to(good, most, n, false), "met\n"));
	CHECK(!strcmp(answer_to(good, most - 1, most, true),
		      "failed it has gone away\n"));
	CHECK(!daemon_logged_now("exit code"));
	/* nor of who says what is none */
	CHECK(!daemon_logged_now("it is not under the layer"));
	CHECK(!daemon_logged_now("whom it means"));
}

int main(void)
{
	meet_begin();
	test_silent();
	test_full();
	test_loop();
	test_others();
	test_endless();
	test_fuzz();
	CHECK(!daemon_end());
	fake_kill(&peer);
	rig_end();
	return check_result();
}
