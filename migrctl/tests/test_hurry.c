// SPDX-License-Identifier: GPL-2.0
/*
 * Who hurries, and who ends it: KNOB is a file in place of the kernel's
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "hurry.h"
#include "journal.h"

static char dir[] = "/tmp/hurry.XXXXXX";

static void set(char to)
{
	int fd = open(KNOB, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	MUST(fd >= 0 && write(fd, &to, 1) == 1);
	close(fd);
}

static char knob(void)
{
	int fd = open(KNOB, O_RDONLY | O_CLOEXEC);
	char is = 0;

	MUST(fd >= 0 && read(fd, &is, 1) == 1);
	close(fd);
	return is;
}

/* a move of another process: it hurries until there is a byte, or it is killed */
static pid_t other(int *go)
{
	int up[2], down[2];
	pid_t pid;
	char c;

	MUST(!pipe2(up, O_CLOEXEC) && !pipe2(down, O_CLOEXEC));
	pid = fork();
	MUST(pid >= 0);
	if (!pid) {
		close(down[1]);
		hurry(true);
		if (write(up[1], "", 1) != 1 || read(down[0], &c, 1) < 0)
			_exit(1);
		hurry(false);
		_exit(0);
	}
	close(up[1]);
	close(down[0]);
	MUST(read(up[0], &c, 1) == 1);
	close(up[0]);
	*go = down[1];
	return pid;
}

static void ends(pid_t pid, int go, bool killed)
{
	int status;

	if (killed)
		kill(pid, SIGKILL);
	close(go);
	MUST(waitpid(pid, &status, 0) == pid);
	CHECK(WIFSIGNALED(status) == killed);
}

static void test_alone(void)
{
	set('0');
	hurry(true);
	CHECK(knob() == '1');
	hurry(true);
	hurry_mend(); /* that is the daemon's, and somebody lives */
	CHECK(knob() == '1');
	hurry(false);
	CHECK(knob() == '0');
	/* once more, and by who never has */
	set('1');
	hurry(false);
	CHECK(knob() == '1');
}

/* Whoever looks after the host wants it so. */
static void test_always(void)
{
	set('1');
	hurry(true);
	hurry(false);
	hurry_mend();
	CHECK(knob() == '1');
}

static void test_overlap(void)
{
	int go;
	pid_t pid;

	set('0');
	pid = other(&go);
	CHECK(knob() == '1');
	hurry(true);
	hurry(false);
	CHECK(knob() == '1'); /* it stands still, too */
	hurry(true);
	ends(pid, go, false);
	CHECK(knob() == '1');
	hurry(false);
	CHECK(knob() == '0');
}

/* Both the process and the daemon have died. */
static void test_killed(void)
{
	int go;
	pid_t pid;

	set('0');
	pid = other(&go);
	hurry_mend();
	CHECK(knob() == '1');
	ends(pid, go, true);
	CHECK(knob() == '1');
	hurry_mend();
	CHECK(knob() == '0');
	/* or another move comes before */
	pid = other(&go);
	ends(pid, go, true);
	hurry(true);
	hurry(false);
	CHECK(knob() == '0');
	/* and what is set by hand is nobody's */
	set('1');
	hurry_mend();
	CHECK(knob() == '1');
}

int main(void)
{
	char path[64];

	MUST(mkdtemp(dir));
	journal_moves = dir;
	test_alone();
	test_always();
	test_overlap();
	test_killed();
	snprintf(path, sizeof(path), "rm -r %s", dir);
	CHECK(!system(path));
	unlink(KNOB);
	return check_result();
}
