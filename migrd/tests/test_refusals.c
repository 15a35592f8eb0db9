// SPDX-License-Identifier: GPL-2.0
/*
 * Whoever is refused again and again does not fill the log, by however many children.
 */
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "refusals.h"

static long now;

int clock_gettime(clockid_t which, struct timespec *t)
{
	(void)which;
	*t = (struct timespec){ now, 0 };
	return 0;
}

static int told_of(int tries)
{
	int n = 0;

	while (tries--)
		n += refusals_tell();
	return n;
}

static int child_told_of(int tries)
{
	int status;
	pid_t pid = fork();

	MUST(pid >= 0);
	if (!pid)
		_exit(told_of(tries));
	MUST(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* what is written meanwhile */
static const char *written(int (*call)(int), int with, int expected)
{
	static char text[256];
	int fds[2], err = dup(2);
	ssize_t n;

	MUST(err >= 0 && !pipe(fds) && dup2(fds[1], 2) == 2 && !close(fds[1]));
	with = call(with);
	MUST(dup2(err, 2) == 2 && !close(err));
	n = read(fds[0], text, sizeof(text) - 1);
	MUST(n >= 0 && !close(fds[0]));
	text[n] = 0;
	CHECK(with == expected, "%d told, not %d", with, expected);
	return text;
}

int main(void)
{
	MUST(refusals_init());
	CHECK(child_told_of(80) == 80);
	CHECK(child_told_of(40) == 20);
	CHECK(!strcmp(written(told_of, 100, 0), ""));
	now += 59;
	CHECK(!told_of(10));
	now += 1;
	CHECK(!strcmp(written(told_of, 1, 1),
		      "migrd: 130 more were refused before\n"));
	now += 60;
	CHECK(!strcmp(written(child_told_of, 1, 1), ""));
	return check_result();
}
