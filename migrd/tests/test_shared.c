// SPDX-License-Identifier: GPL-2.0
/*
 * What is remembered of sockets
 */
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "conn.h"
#include "proc.h"
#include "shared.h"

/* nobody has such a number */
#define PID_MAX (1 << 22)

/* 16 of them in a folder */
static struct shared_key key(uint64_t n)
{
	return (struct shared_key){ .dev = 1,
				    .ino = n,
				    .folder_ino = n / 1024 / 16 };
}

static void remember(uint64_t n, pid_t pid, unsigned long long start)
{
	const struct shared_key k = key(n);
	const struct shared_owner o = { pid, start };

	shared_remember(&k, &o);
}

static pid_t owner(uint64_t n)
{
	const struct shared_key k = key(n);
	struct shared_owner o;

	return shared_find(&k, &o) ? o.pid : 0;
}

/* a folder with more than are remembered of one, which takes no places of others */
static void test_folder(void)
{
	enum {
		MANY = 70,
		MOST = 64,
	};
	struct shared_key k = { .dev = 2, .folder_ino = 1000000 };
	struct shared_owner o, lost = { 0 };
	pid_t all[MANY];
	int known = 0;

	for (int i = 0; i < MANY; i++) {
		all[i] = fork();
		MUST(all[i] >= 0);
		if (!all[i])
			for (;;)
				pause();
		o = (struct shared_owner){ all[i], proc_start(all[i]) };
		k.ino = (uint64_t)i;
		shared_remember(&k, &o);
	}
	for (int i = 0; i < MANY; i++) {
		k.ino = (uint64_t)i;
		if (shared_find(&k, &o))
			known++;
		else
			lost.pid = all[i];
	}
	CHECK(known == MOST, "%d", known);
	CHECK(o.pid == all[MANY - 1]);
	CHECK(owner(2000) == getpid());
	/* who would have the place of the last one does not make it one to be lent */
	shared_keep(&o, now_ms() + 100000);
	k.ino = MANY;
	shared_remember(&k, &(struct shared_owner){ o.pid + PID_MAX, 1 });
	CHECK(!shared_hold(&o, true));
	/* nor does it who has had to make room before */
	lost.start = proc_start(lost.pid);
	shared_keep(&lost, now_ms() + 100000);
	CHECK(!shared_hold(&lost, true));
	for (int i = 0; i < MANY; i++) {
		kill(all[i], SIGKILL);
		waitpid(all[i], NULL, 0);
	}
}

/* the file that all share, as a child finds it */
static int shared_file(void)
{
	char path[32], name[32];
	ssize_t n;

	for (int fd = 3; fd < 100; fd++) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		n = readlink(path, name, sizeof(name) - 1);
		if (n > 0 && !strncmp(name, "/memfd:migrd", 12))
			return fd;
	}
	MUST(0);
	return -1;
}

/* Whoever has the table for longer does not keep a process from being kept. */
static void test_locked(void)
{
	struct shared_owner me = { getpid(), proc_start(getpid()) };
	struct flock l = { .l_type = F_WRLCK, .l_len = 1 };
	int locked[2];
	char byte = 0;
	pid_t pid;

	MUST(!pipe(locked));
	pid = fork();
	if (!pid) {
		MUST(!fcntl(shared_file(), F_SETLK, &l) &&
		     write(locked[1], &byte, 1) == 1);
		usleep(300000);
		_exit(0);
	}
	close(locked[1]);
	MUST(pid > 0 && read(locked[0], &byte, 1) == 1);
	shared_keep(&me, now_ms() + 100000);
	MUST(waitpid(pid, NULL, 0) == pid);
	CHECK(!shared_hold(&me, true));
	shared_keep(&me, 0);
	close(locked[0]);
}

/* who is not to be lent for a while */
static void test_kept(void)
{
	struct shared_owner me = { getpid(), proc_start(getpid()) };

	CHECK(shared_hold(&me, true));
	shared_let_go(me.pid);
	shared_keep(&me, now_ms() + 100000);
	CHECK(!shared_hold(&me, true));
	CHECK(shared_hold(&me, false));
	shared_let_go(me.pid);
	/* its socket is another one, it is the same */
	remember(2001, me.pid, me.start);
	CHECK(!shared_hold(&me, true));
	shared_keep(&me, now_ms() - 1);
	CHECK(shared_hold(&me, true));
	shared_let_go(me.pid);
	/* another one of that number */
	shared_keep(&me, now_ms() + 100000);
	me.start++;
	remember(2000, me.pid, me.start);
	CHECK(shared_hold(&me, true));
	shared_let_go(me.pid);
}

/* until somebody else wants it, again and again */
static void borrow(const struct shared_owner *owner)
{
	for (;; usleep(3000))
		if (shared_hold(owner, true)) {
			usleep(1200000);
			shared_let_go(owner->pid);
		}
}

/* Another one has it, lent or not. */
static bool is_had(const struct shared_owner *owner)
{
	if (!shared_hold(owner, true))
		return true;
	shared_let_go(owner->pid);
	return false;
}

static void kill_all(const pid_t *all, int n)
{
	for (int i = 0; i < n; i++)
		kill(all[i], SIGKILL);
	for (int i = 0; i < n; i++)
		waitpid(all[i], NULL, 0);
}

static void test_taken(void)
{
	enum {
		BORROWERS = 16
	};
	const struct shared_owner owner = { 3 * PID_MAX, 1 };
	pid_t all[BORROWERS];

	for (int round = 0; round < 5; round++) {
		for (int i = 0; i < BORROWERS; i++) {
			all[i] = fork();
			MUST(all[i] >= 0);
			if (!all[i])
				borrow(&owner);
		}
		while (!is_had(&owner))
			usleep(1000);
		CHECK(shared_hold(&owner, false), "%d", round);
		shared_let_go(owner.pid);
		kill_all(all, BORROWERS);
	}
}

/* It is not lent, and others want to have it so. */
static void test_not_lent(void)
{
	const struct shared_owner owner = { 3 * PID_MAX, 1 };
	long long begun;
	pid_t all[2];
	int held[2];
	char byte = 0;

	MUST(!pipe(held));
	all[0] = fork();
	MUST(all[0] >= 0);
	if (!all[0]) {
		MUST(shared_hold(&owner, false) &&
		     write(held[1], &byte, 1) == 1);
		for (;;)
			pause();
	}
	close(held[1]);
	/* who looked by having it lent would have it taken from him, or be in the way */
	MUST(read(held[0], &byte, 1) == 1);
	close(held[0]);
	all[1] = fork();
	MUST(all[1] >= 0);
	if (!all[1])
		for (;;)
			shared_hold(&owner, true);
	begun = now_ms();
	CHECK(!shared_hold(&owner, false));
	CHECK(now_ms() < begun + 700, "%lld ms", now_ms() - begun);
	CHECK(!waitpid(all[1], NULL, WNOHANG), "it was taken for who has it");
	kill_all(all, 2);
}

static void test_callers(void)
{
	const uint64_t one = 0x123456789abcdef0, other = one ^ 1ULL << 63;
	pid_t all[5];

	for (int i = 0; i < 5; i++) {
		int both[2];
		char in;

		MUST(!pipe(both));
		all[i] = fork();
		MUST(all[i] >= 0);
		if (!all[i]) {
			in = shared_enter(one);
			MUST(write(both[1], &in, 1) == 1);
			for (;;)
				pause();
		}
		MUST(read(both[0], &in, 1) == 1);
		CHECK(in == (i < 4), "%d", i);
		close(both[0]);
		close(both[1]);
	}
	CHECK(!shared_enter(one) && shared_enter(other));
	shared_leave(one);
	CHECK(!shared_enter(one));
	kill(all[2], SIGKILL);
	waitpid(all[2], NULL, 0);
	CHECK(shared_enter(one));
	shared_leave(one);
	CHECK(shared_enter(one));
	kill_all(all, 5);
}

int main(void)
{
	const unsigned long long start = proc_start(getpid());

	MUST(shared_init() && start);
	CHECK(!owner(1));
	/* many, of which none takes the place of another one */
	for (int i = 1; i < 1024; i++)
		remember((uint64_t)i * 1024, PID_MAX + i, 1);
	for (int i = 1; i < 1024; i++)
		CHECK(owner((uint64_t)i * 1024) == PID_MAX + i, "%d", i);
	/* one process has one, whatever it does */
	for (uint64_t n = 1; n <= 2000; n++)
		remember(n, getpid(), start);
	CHECK(!owner(1999) && owner(2000) == getpid());
	/* those that are gone make room, and only they */
	for (int i = 0; i < 3000; i++)
		remember(5000000 + (uint64_t)i, 2 * PID_MAX + i, 1);
	CHECK(owner(5002999) == 2 * PID_MAX + 2999);
	CHECK(owner(2000) == getpid());
	test_folder();
	test_locked();
	test_kept();
	test_taken();
	test_not_lent();
	test_callers();
	return check_result();
}
