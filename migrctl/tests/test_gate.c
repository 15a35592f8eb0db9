// SPDX-License-Identifier: GPL-2.0
/*
 * The gate, between this program, which gives the word, and a child that waits for it
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "gate.h"

static char dir[] = "/tmp/gate.XXXXXX";
static int go, says, other = -1, other_end = -1;

static int open_in(const char *name, int flags)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return open(path, flags | O_CLOEXEC, 0600);
}

static void state_is(const char *word)
{
	int fd = open_in("state", O_WRONLY | O_CREAT | O_TRUNC);

	MUST(fd >= 0 && write(fd, word, strlen(word)) >= 0);
	close(fd);
}

static pid_t waits(bool granted)
{
	pid_t pid = fork();

	if (!pid) {
		close(go);
		close(other_end);
		_exit(!gate_wait(dir, "held", "leave", granted, other));
	}
	MUST(pid > 0);
	return pid;
}

static bool said(void)
{
	struct pollfd p = { .fd = says, .events = POLLIN };
	char word[32];

	return poll(&p, 1, 10000) == 1 && read(says, word, sizeof(word)) == 5 &&
	       !memcmp(word, "held\n", 5);
}

static int code(pid_t pid)
{
	int status;

	MUST(waitpid(pid, &status, 0) == pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void word(const char *text)
{
	MUST(write(go, text, strlen(text)) == (ssize_t)strlen(text));
}

static int answer(const char *text)
{
	pid_t pid = waits(false);

	CHECK(said());
	word(text);
	return code(pid);
}

static int orphaned(const char *state, bool granted)
{
	pid_t pid;
	int c;

	state_is(state);
	pid = waits(granted);
	CHECK(said());
	close(go);
	c = code(pid);
	go = open_in("go", O_RDWR);
	return c;
}

/* Somebody comes and goes on with it. */
static void test_waits_for_another(void)
{
	int status;
	pid_t pid;

	state_is("granted\n");
	pid = waits(false);
	CHECK(said());
	close(go);
	usleep(300000); /* it could have gone on */
	CHECK(!waitpid(pid, &status, WNOHANG));
	go = open_in("go", O_WRONLY);
	word("leave\n");
	CHECK(code(pid) == 0);
	close(go);
	go = open_in("go", O_RDWR);
}

/* Who is held is gone: whatever was decided, there is nothing to go on with. */
static void test_other(void)
{
	int ends[2];
	pid_t pid;

	state_is("granted\n");
	MUST(!socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends));
	other = ends[0];
	other_end = ends[1];
	pid = waits(true);
	CHECK(said());
	close(other_end);
	CHECK(code(pid) == 1);
	close(other);
	other = other_end = -1;
}

int main(void)
{
	char path[64];

	signal(SIGPIPE, SIG_IGN);
	MUST(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/go", dir);
	MUST(!mkfifo(path, 0600));
	snprintf(path, sizeof(path), "%s/says", dir);
	MUST(!mkfifo(path, 0600));
	go = open_in("go", O_RDWR);
	says = open_in("says", O_RDWR | O_NONBLOCK);
	MUST(go >= 0 && says >= 0);
	CHECK(answer("leave\n") == 0);
	CHECK(answer("stop\n") == 1);
	CHECK(answer("leaves\n") == 1);
	CHECK(orphaned("held\n", false) == 1);
	CHECK(orphaned("held\n", true) == 1);
	CHECK(orphaned("", true) == 1);
	CHECK(orphaned("granted and more\n", true) == 1);
	CHECK(orphaned("granted\n", true) == 0);
	test_waits_for_another();
	test_other();
	snprintf(path, sizeof(path), "rm -r %s", dir);
	CHECK(!system(path));
	return check_result();
}
