// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Connections that are made after a move: a daemon that does not answer as it should
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "clock.h"
#include "meet_rig.h"

/* --- what stderr says --- */

static int heard, before;

static void listen_to_stderr(void)
{
	heard = memfd_create("stderr", MFD_CLOEXEC);
	before = dup(STDERR_FILENO);
	MUST(heard >= 0 && before >= 0);
	MUST(dup2(heard, STDERR_FILENO) == STDERR_FILENO);
}

/* once, since then */
static void check_complaint(const char *reason)
{
	char text[2048] = "", *line;

	MUST(dup2(before, STDERR_FILENO) == STDERR_FILENO);
	MUST(pread(heard, text, sizeof(text) - 1, 0) >= 0);
	close(heard);
	close(before);
	line = strstr(text, "its peer does not know what keys are");
	CHECK(line && strstr(line, reason), "%s", text);
	CHECK(line && strchr(line, '\n') && !strchr(line, '\n')[1], "%s", text);
}

static void test_complaint(void)
{
	static char refused[600];

	puts("the longest answer");
	snprintf(refused, sizeof(refused), "failed %0511d\n", 7);
	migrd.says = refused;
	world_replace();
	listen_to_stderr();
	check_connects(1);
	check_connects(1);
	check_complaint(refused);

	puts("no memory");
	world_replace();
	listen_to_stderr();
	teller.fails = true;
	check_connects(0);
	check_connects(0);
	check_complaint("Cannot allocate memory");
	teller.fails = false;
}

/* --- who is not there --- */

static void test_restart(void)
{
	puts("a daemon that is started again, of one who was told to wait");
	world_replace();
	teller.stays = true;
	begin_to_connect();
	migrd.says = "busy\n";
	WAIT(teller.pauses);
	migrd_stop();
	teller.clock += 8;
	teller.stays = false;
	WAIT(teller.pauses > 3);
	CHECK(!connected);
	migrd.says = "met\n";
	migrd_start();
	end_to_connect(2);
}

static void test_stopped(void)
{
	puts("one that is not");
	migrd_stop();
	listen_to_stderr();
	start_to_connect();
	WAIT(teller.pauses > 2);
	CHECK(!connected);
	teller.clock += 8;
	end_to_connect(0);
	check_complaint("Connection refused");
	puts("for which nobody else waits");
	start_to_connect();
	end_to_connect(0);
	CHECK(!teller.pauses);
	puts("but in another turn");
	world_replace();
	start_to_connect();
	WAIT(teller.pauses > 2);
	migrd.says = "met\n";
	migrd_start();
	end_to_connect(1);
}

/* a caller that says nothing; -1: there is no room for it */
static int silent_caller(void)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/migrd", dir);
	MUST(fd >= 0);
	if (!connect(fd, (struct sockaddr *)&addr, sizeof(addr)))
		return fd;
	MUST(errno == EAGAIN);
	MUST(!close(fd));
	return -1;
}

static void test_full(void)
{
	int fd[16];
	unsigned int n = 0;

	puts("one that many have called");
	world_replace();
	migrd.says = "met\n";
	migrd.accepted = 0;
	while ((fd[n] = silent_caller()) >= 0) {
		WAIT(migrd.accepted); /* which makes room for another one */
		MUST(++n < 16);
	}
	teller.naps = 0;
	start_to_connect();
	WAIT(teller.naps > 5);
	CHECK(!connected && !teller.pauses);
	for (unsigned int i = 0; i < n; i++)
		MUST(!close(fd[i]));
	end_to_connect(n + 1);
	CHECK(!teller.pauses);
}

/* Within a batch nobody waits, and so has not found out anything. */
static void test_hurry(void)
{
	struct ibv_qp *of_batch, *qp, *real;

	puts("one that is not there when somebody does not wait");
	world_replace();
	migrd_stop();
	of_batch = new_qp_ex(IBV_QPT_RC, w.cq, EX_OPS, &real);
	qp = make(&real);
	ibv_wr_start(ibv_qp_to_qp_ex(of_batch));
	to_rtr(qp);
	ibv_wr_abort(ibv_qp_to_qp_ex(of_batch));
	start_to_connect();
	WAIT(teller.pauses > 2);
	CHECK(!connected);
	migrd.says = "met\n";
	migrd_start();
	end_to_connect(1);
	CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_qp(of_batch));
}

/* to a daemon that says nothing, for so many seconds */
static void check_silent(time_t seconds)
{
	uint64_t begun;

	begin_to_connect();
	teller.clock += seconds;
	begun = clock_ns();
	WAIT(migrd.ended);
	CHECK(clock_ns() < begun + 10000000000);
	end_to_connect(1);
}

static void test_silent(void)
{
	puts("one that says nothing");
	world_replace();
	listen_to_stderr();
	check_silent(30);
	puts("for which others do not wait for long");
	check_silent(2);
	check_complaint("Connection timed out");
	puts("until it says something");
	teller.stays = true;
	begin_to_connect();
	migrd.says = "busy\n";
	WAIT(teller.pauses);
	migrd.says = "met\n";
	teller.stays = false;
	end_to_connect(2);
}

/* It has more than a second. */
static void check_patient(void)
{
	unsigned int polls;

	begin_to_connect();
	teller.clock += 2;
	polls = teller.polls;
	WAIT(teller.polls > polls + 3);
	CHECK(!migrd.ended);
	migrd.says = "met\n";
	end_to_connect(1);
}

static void test_slow(void)
{
	puts("one that said nothing, and now that it looks for the peer");
	world_replace();
	listen_to_stderr();
	check_silent(30);
	migrd.looks = true;
	check_patient();
	puts("who does not answer");
	check_silent(30);
	migrd.looks = false;
	check_patient();
	puts("and some time later");
	check_silent(30);
	teller.clock += 12;
	check_silent(2); /* which says nothing new */
	teller.clock += 12;
	check_patient();
	check_complaint("Connection timed out");
}

/* --- whatever else --- */

/* The program closes what it does not know, and has something else of that number. */
static void test_closed(void)
{
	int status, pair[2], fd;
	char byte = 0;
	pid_t pid;

	puts("a program that closes all");
	world_replace();
	MUST(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	teller.late = true;
	begin_to_connect();
	WAIT(teller.polls);
	fd = stream();
	MUST(fd >= 0 && dup2(pair[0], fd) == fd);
	pid = fork();
	if (!pid)
		_exit(fcntl(fd, F_GETFD) < 0);
	MUST(pid > 0 && waitpid(pid, &status, 0) == pid);
	CHECK(!status);
	suspend();
	teller.late = false;
	CHECK(!layer_hold(LONG, 100, &swapped), "%s", swapped.reason);
	CHECK(send(fd, &byte, 1, MSG_NOSIGNAL) == 1 &&
	      read(pair[1], &byte, 1) == 1);
	called();
	replace_all();
	connect_all();
	resume();
	end_to_connect(0);
	MUST(!close(fd) && !close(pair[0]) && !close(pair[1]));
}

enum {
	MANY = 400
};

static void test_many_keys(void)
{
	struct ibv_mr *mr[MANY];
	unsigned int lines = 0;
	const char *at;

	puts("more than a socket has room for");
	for (unsigned int i = 0; i < MANY; i++)
		MUST(mr[i] = ibv_reg_mr(pd, w.memory, 8,
					IBV_ACCESS_REMOTE_READ));
	world_replace();
	teller.narrow = migrd.waits = true;
	teller.full = 0;
	begin_to_connect();
	for (at = migrd.heard; (at = strstr(at, "\nkey ")); at++)
		lines++;
	CHECK(lines == MANY + 1, "%u", lines);
	CHECK(strstr(migrd.heard, "\nend\n"));
	migrd.says = "met\n";
	called();
	end_to_connect(0);
	teller.narrow = migrd.waits = false;
	for (unsigned int i = 0; i < MANY; i++)
		CHECK(!ibv_dereg_mr(mr[i]));
}

int main(void)
{
	rig_open();
	migrd_start();
	world_make();
	test_complaint();
	test_restart();
	test_stopped();
	test_full();
	test_hurry();
	test_silent();
	test_slow();
	test_closed();
	test_many_keys();
	migrd_end();
	world_destroy();
	return rig_close();
}
