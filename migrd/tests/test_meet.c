// SPDX-License-Identifier: GPL-2.0
/*
 * Meetings: this process is one under the layer, of the container "box", and says of its
 * QP 17 that it is to be connected
 */
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "layer_rig.h"

#define AT_GID "::ffff:10.10.0.2"
#define MEET "meet 17 " AT_GID " 27 " AT_GID " 3\n"

static struct fake peer;
static char id[64]; /* of our keys */
static char said_to[8192];

static int own; /* our socket */

/* Nobody has to accept what is connected: the kernel says whose it is. */
static void come_under_the_layer(const char *container)
{
	static const char *const folders[] = { "", "/run", "/run/migrrdma" };
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char path[PATH_MAX];

	for (int i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "%s/%s%s", dir, container,
			 folders[i]);
		MUST(!mkdir(path, 0755));
	}
	snprintf(addr.sun_path, sizeof(addr.sun_path),
		 "%s/%s/run/migrrdma/%d.sock", dir, container, getpid());
	MUST(sock >= 0 && !bind(sock, (struct sockaddr *)&addr, sizeof(addr)) &&
	     !listen(sock, 64));
	own = sock;
}

static int call(void)
{
	const struct timeval most = { .tv_sec = 30 };
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/n2.meet", dir);
	MUST(fd >= 0 && !connect(fd, (struct sockaddr *)&addr, sizeof(addr)));
	MUST(!setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most)));
	return fd;
}

/* what it says until its end */
static const char *answer_of(int fd)
{
	static char text[1024];
	size_t n = 0;
	ssize_t got;

	while (n < sizeof(text) - 1 &&
	       (got = read(fd, text + n, sizeof(text) - 1 - n)) > 0)
		n += (size_t)got;
	text[n] = 0;
	close(fd);
	return text;
}

/* as the library does: again, if there is no place */
static const char *meets(const char *text)
{
	const char *answer = "";
	int fd;

	for (int i = 0; i < 200 && !*answer; i++) {
		usleep(i ? 50000 : 0);
		fd = call();
		send(fd, text, strlen(text), MSG_NOSIGNAL);
		answer = answer_of(fd);
	}
	return answer;
}

#define SAYS(text, begin)                                                    \
	do {                                                                 \
		const char *a_ = meets(text);                                \
		CHECK(!strncmp(a_, begin, strlen(begin)), "%.80s: %s", text, \
		      a_);                                                   \
	} while (0)

/* @words: of the words that follow, which have our id in the place of % */
static void check_told(const char *words)
{
	char expected[sizeof(said_to)], *to = expected;

	for (; *words; words++)
		to += *words == '%' ? sprintf(to, "%s", id)
				    : sprintf(to, "%c", *words);
	snprintf(said_to, sizeof(said_to), "%s", was_told(&peer));
	CHECK(!strcmp(said_to, expected), "%s%s", said_to, expected);
}

static void test_told(void)
{
	const char *at;

	puts("the peer's process is told");
	SAYS(MEET "end\n", "met\n");
	snprintf(said_to, sizeof(said_to), "%s", was_told(&peer));
	at = strchr(said_to, '@');
	MUST(at && sscanf(at, "%63s", id) == 1);
	CHECK(strstr(id, ":3") && strlen(id) < 64);
	CHECK(fake_ended(&peer) == 'r');
	SAYS(MEET "key 1 2\nkey 4294967295 4294967295\nend\n", "met\n");
	check_told("keys %\nkey % 1 2 4294967295 4294967295\n"
		   "met 27 17 " AT_GID " %\n");
	CHECK(fake_ended(&peer) == 'r');

	puts("who knows the keys is told no more of them");
	answers(&peer, "keys",
		"{\"ok\": false, \"errno\": 16, \"reason\": \"a QP leads there\"}\n");
	SAYS(MEET "key 1 2\nend\n", "met\n");
	check_told("keys %\nmet 27 17 " AT_GID " %\n");
	CHECK(fake_ended(&peer) == 'r');
	answers(&peer, "keys", NULL);
}

/* All are told, and no more in a line than the library takes. */
static void test_many(void)
{
	enum {
		KEYS = 3500
	};
	char *text = malloc(KEYS * 32), *to = text;
	const char *at;
	unsigned int n = 0;

	MUST(text);
	puts("many keys");
	to += sprintf(to, MEET);
	for (unsigned int i = 0; i < KEYS; i++)
		to += sprintf(to, "key %u %u\n", i, i + 1);
	sprintf(to, "end\n");
	SAYS(text, "met\n");
	at = was_told(&peer);
	for (at = strstr(at, "\nkey "); at; at = strstr(at + 1, "\nkey "))
		n++;
	CHECK(n == 4, "%u", n);
	CHECK(fake_ended(&peer) == 'r');
	free(text);
}

static void test_refused(void)
{
	static const char *const wrong[] = {
		"x\nend\n",
		"\nend\n",
		"meet 17 " AT_GID " 27 " AT_GID "\nend\n",
		"meet 17 " AT_GID " 27 " AT_GID " 3 4\nend\n",
		"meet 16777216 " AT_GID " 27 " AT_GID " 3\nend\n",
		"meet 17 " AT_GID " 16777216 " AT_GID " 3\nend\n",
		"meet 17 10.10.0.2 27 " AT_GID " 3\nend\n",
		"meet 17 " AT_GID " 27 10.10.0.2 3\nend\n",
		"meet 17 " AT_GID " 27 " AT_GID " 4294967296\nend\n",
		"meet  17 " AT_GID " 27 " AT_GID " 3\nend\n",
		"suspend 17 " AT_GID " 27 " AT_GID " 3\nend\n",
		MEET "key 1\nend\n",
		MEET "key 1 2 3\nend\n",
		MEET "key 1 4294967296\nend\n",
		MEET "key -1 2\nend\n",
		MEET "resume\nend\n",
		MEET "\nend\n",
		MEET "end\nend\n",
	};

	puts("what is none");
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		SAYS(wrong[i], "failed ");
	puts("a QP of another process, and one of none");
	SAYS("meet 37 " AT_GID " 27 " AT_GID " 3\nend\n",
	     "failed QP 37 is another process'");
	SAYS("meet 18 " AT_GID " 27 " AT_GID " 3\nend\n",
	     "failed there is no QP 18");
	puts("a peer that is not under the layer, and a host that is none");
	SAYS("meet 17 " AT_GID " 99 " AT_GID " 3\nend\n", "failed there");
	SAYS("meet 17 " AT_GID " 27 ::ffff:10.11.0.1 3\nend\n", "failed ");
	check_told("");
	CHECK(daemon_logged(": QP 17 does not meet QP 99 at " AT_GID
			    ": there is no QP 99"));
	puts("a peer that refuses");
	answers(&peer, "met", REFUSAL("nobody is called \\\\u001b[2J that"));
	SAYS(MEET "end\n", "failed ");
	CHECK(fake_ended(&peer) == 'r');
	answers(&peer, "met", "{\"ok\": false, \"errno\": 16}\n");
	SAYS(MEET "end\n", "busy\n");
	CHECK(fake_ended(&peer) == 'r');
	answers(&peer, "met", NULL);
	was_told(&peer);
}

static void test_busy(void)
{
	struct client c;

	puts("a peer that somebody has open");
	client_open(&c);
	CHECK(opened(&c, &peer));
	SAYS(MEET "end\n", "busy\n");
	client_close(&c);
	CHECK(fake_ended(&peer) == 'r');
	SAYS(MEET "end\n", "met\n");
	CHECK(fake_ended(&peer) == 'r');
	was_told(&peer);
}

/* Whoever moves it does not wait for such. */
static void test_lent(void)
{
	struct client c, other;
	char line[128];

	puts("one that is lent is had by who opens it");
	client_open(&c);
	snprintf(line, sizeof(line), "borrow %s", peer.id);
	CHECK(said(&c, line, "{\"ok\":true"));
	client_open(&other);
	CHECK(said(&other, line, "{\"ok\":false,\"errno\":16"));
	CHECK(opened(&other, &peer));
	CHECK(fake_ended(&peer) == 'r');
	CHECK(!hear(&c));
	CHECK(said(&other, "names", "{\"ok\": true"));
	client_die(&c);
	client_close(&other);
	CHECK(fake_ended(&peer) == 'r');
	was_told(&peer);
}

static void test_frozen(void)
{
	puts("one that does not answer");
	kill(peer.pid, SIGSTOP);
	SAYS(MEET "end\n", "busy\n");
	kill(peer.pid, SIGCONT);
	CHECK(fake_ended(&peer) == 'r');
	was_told(&peer);
}

/* Somebody has it opened, who has had its first line; of who only asked who we are nothing comes. */
static int opener(void)
{
	struct pollfd p = { .fd = own, .events = POLLIN };
	char byte;
	int fd;

	for (;;) {
		MUST(poll(&p, 1, 20000) == 1);
		fd = accept4(own, NULL, NULL, SOCK_CLOEXEC);
		MUST(fd >= 0);
		if (read(fd, &byte, 1) == 1)
			return fd;
		close(fd);
	}
}

/* We are the peer, too. */
static void test_taken(void)
{
	char line[128] = "open ";
	struct client c;
	int fd, has;

	puts("one that is taken while it is opened");
	client_open(&c);
	CHECK(said(&c, "find 17 " AT_GID, "{\"ok\":true,"));
	MUST(sscanf(answer, "{\"ok\":true,\"process\":{\"id\":\"%63[^\"]",
		    line + 5) == 1);
	fd = call();
	dprintf(fd, "meet 17 " AT_GID " 17 " AT_GID " 3\nend\n");
	has = opener();
	strcat(line, "\n");
	put(&c, line, strlen(line));
	CHECK(!strcmp(answer_of(fd), "busy\n"));
	close(has);
	client_die(&c);
	close(opener());
}

/* It is about to be dumped, which an open connection would make fail. */
static void test_held(void)
{
	char line[128];
	struct client c;

	puts("one that is held is not lent before it is opened again");
	snprintf(line, sizeof(line), "borrow %s", peer.id);
	client_open(&c);
	CHECK(opened(&c, &peer) && said(&c, "hold 1 1", "{\"ok\": true"));
	CHECK(!hear(&c));
	client_close(&c);
	CHECK(fake_ended(&peer) == 'r');
	client_open(&c);
	CHECK(said(&c, line, "{\"ok\":false,\"errno\":16"));
	SAYS(MEET "end\n", "busy\n");
	CHECK(opened(&c, &peer));
	client_close(&c);
	CHECK(fake_ended(&peer) == 'r');
	client_open(&c);
	CHECK(said(&c, line, "{\"ok\":true"));
	client_close(&c);
	CHECK(fake_ended(&peer) == 'r');
	was_told(&peer);
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
	for (int i = 0; i < 4; i++)
		fd[i] = call();
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
	check_told("");
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
	/* nor of who says what is none, or has a process taken */
	CHECK(!daemon_logged_now("it is not under the layer"));
	CHECK(!daemon_logged_now("whom it means"));
	CHECK(!daemon_logged_now("signal"));
}

/* who is not root, and calls again and again; exits with the first errno but a refusal */
static pid_t caller_at_any_time(const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	pid_t pid = fork();
	int fd;

	MUST(pid >= 0);
	if (pid)
		return pid;
	strcpy(addr.sun_path, path);
	MUST(!chmod(dir, 0755) && (getuid() || !setuid(65534)));
	for (;;) {
		fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
		if (connect(fd, (struct sockaddr *)&addr, sizeof(addr)) &&
		    errno != ECONNREFUSED && errno != EAGAIN)
			_exit(errno);
		close(fd);
	}
}

/* What is left of a daemon makes room for the next one; another file, or who lives, does not. */
static void check_started_again(const char *path)
{
	pid_t caller = caller_at_any_time(path);
	struct stat st;
	int fd, status;

	puts("other daemons");
	for (int i = 0; i < 2; i++) {
		daemon_start("*/run/migrrdma", "none");
		if (!i)
			CHECK(!daemon_end());
	}
	kill(caller, SIGKILL);
	MUST(waitpid(caller, &status, 0) == caller);
	CHECK(WIFSIGNALED(status), "%s", strerror(WEXITSTATUS(status)));
	CHECK(daemon_fails("*/run/migrrdma") == 1);
	SAYS(MEET "end\n", "met\n");
	CHECK(!daemon_end());
	MUST(!unlink(path));
	fd = open(path, O_WRONLY | O_CREAT, 0600);
	MUST(fd >= 0 && !close(fd));
	CHECK(daemon_fails("*/run/migrrdma") == 1);
	CHECK(!stat(path, &st) && S_ISREG(st.st_mode));
}

int main(void)
{
	char text[128], path[PATH_MAX];
	struct stat st;

	rig_begin();
	daemon_start("*/run/migrrdma", "none");
	fake_start(&peer, LAYER, "other/run/migrrdma");
	come_under_the_layer("box");
	snprintf(text, sizeof(text), "17 %d\n37 %d\n27 %d\n", getpid(),
		 peer.pid, peer.pid);
	qps(text);
	snprintf(path, sizeof(path), "%s/n2.meet", dir);
	MUST(!stat(path, &st));
	CHECK((st.st_mode & 0777) == 0666);
	test_told();
	test_many();
	test_refused();
	test_busy();
	test_lent();
	test_held();
	test_frozen();
	test_taken();
	test_silent();
	test_full();
	test_others();
	test_endless();
	test_fuzz();
	CHECK(!daemon_end());
	check_started_again(path);
	fake_kill(&peer);
	rig_end();
	return check_result();
}
