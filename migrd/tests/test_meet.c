// SPDX-License-Identifier: GPL-2.0
/*
 * Meetings: this process says of its QP 17 that it is to be connected
 */
#include <arpa/inet.h>
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
#include "meet_rig.h"

static char id[64]; /* of our keys */
static char said_to[8192];

/* @words: of the words that follow, which have our id in the place of % */
static void check_told(const char *words)
{
	char expected[sizeof(said_to)] = "", *to = expected;

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
	CHECK(fake_ended(&peer) == 'r' && SOME_TIME(!daemon_children()));
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

/* when this connection has ended */
static void is_lent_after(struct client *c)
{
	char line[128];

	client_close(c);
	CHECK(fake_ended(&peer) == 'r' && SOME_TIME(!daemon_children()));
	client_open(c);
	snprintf(line, sizeof(line), "borrow %s", peer.id);
	CHECK(said(c, line, "{\"ok\":true"));
	client_close(c);
	CHECK(fake_ended(&peer) == 'r');
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
	is_lent_after(&c);

	puts("one that hangs up for another reason is");
	answers(&peer, "names", "hang up\n");
	client_open(&c);
	CHECK(opened(&c, &peer) && said(&c, "names", "{\"ok\":false"));
	is_lent_after(&c);
	answers(&peer, "names", NULL);
	was_told(&peer);
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

/* Who does not get the port is not the daemon of this host, and leaves its socket as it is. */
static void check_no_port(const char *path)
{
	struct sockaddr_in addr = { .sin_family = AF_INET,
				    .sin_port = htons(
					    (uint16_t)atoi(daemon_port())) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct stat before, after;

	puts("a daemon whose port is taken");
	MUST(inet_pton(AF_INET, "127.0.0.7", &addr.sin_addr) == 1);
	MUST(fd >= 0 && !bind(fd, (struct sockaddr *)&addr, sizeof(addr)) &&
	     !listen(fd, 1));
	MUST(!stat(path, &before));
	CHECK(daemon_fails("*/run/migrrdma") == 1);
	CHECK(!stat(path, &after) && after.st_ino == before.st_ino);
	close(fd);
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
	char path[PATH_MAX];
	struct stat st;

	meet_begin();
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
	CHECK(!daemon_logged_now("signal")); /* of who has it taken */
	CHECK(!daemon_end());
	check_no_port(path);
	check_started_again(path);
	fake_kill(&peer);
	rig_end();
	return check_result();
}
