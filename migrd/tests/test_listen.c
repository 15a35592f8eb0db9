// SPDX-License-Identifier: GPL-2.0
/*
 * Sockets at a path, of several daemons that are started at the same time
 */
#include "../listen.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

enum {
	ROUNDS = 300
};

static char dir[] = "/tmp/listenXXXXXX";
static char path[sizeof(((struct sockaddr_un *)0)->sun_path) + 1];

/* at a path of so many bytes in that folder */
static void choose(size_t bytes)
{
	memset(path, 'x', sizeof(path));
	memcpy(path, dir, strlen(dir));
	path[strlen(dir)] = '/';
	path[bytes] = 0;
}

static unsigned int files(void)
{
	DIR *d = opendir(dir);
	unsigned int n = 0;

	MUST(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n - 2;
}

static bool is_answered(void)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool is;

	strcpy(addr.sun_path, path);
	MUST(fd >= 0);
	is = !connect(fd, (struct sockaddr *)&addr, sizeof(addr));
	close(fd);
	return is;
}

static void test_paths(void)
{
	struct stat st;
	int fd, other;

	puts("the longest path, and one that is longer");
	choose(sizeof(path) - 2);
	fd = listen_at_path(path, 0666);
	CHECK(fd >= 0 && is_answered() && files() == 1);
	CHECK(!stat(path, &st) && (st.st_mode & 0777) == 0666);
	puts("who is there stays");
	other = listen_at_path(path, 0666);
	CHECK(other < 0 && errno == EADDRINUSE && is_answered());
	puts("who is not makes room");
	close(fd);
	CHECK(!is_answered());
	fd = listen_at_path(path, 0666);
	CHECK(fd >= 0 && is_answered() && files() == 1);
	close(fd);
	MUST(!unlink(path));
	choose(sizeof(path) - 1);
	CHECK(listen_at_path(path, 0666) < 0 && errno == ENAMETOOLONG &&
	      !files());
	puts("no folder, and a file that is no socket");
	choose(40);
	path[strlen(dir) + 2] = '/';
	CHECK(listen_at_path(path, 0666) < 0 && errno == ENOENT);
	choose(40);
	fd = open(path, O_WRONLY | O_CREAT, 0600);
	MUST(fd >= 0 && !close(fd));
	CHECK(listen_at_path(path, 0666) < 0 && errno == EADDRINUSE);
	CHECK(files() == 1 && !stat(path, &st) && S_ISREG(st.st_mode));
	MUST(!unlink(path));
}

/* When @go has an end it is there, or another one is, until @end has one. */
static pid_t daemon_at(const int go[2], const int end[2], int done)
{
	pid_t pid = fork();
	char byte, is;

	MUST(pid >= 0);
	if (pid)
		return pid;
	close(go[1]);
	close(end[1]);
	MUST(!read(go[0], &byte, 1));
	is = listen_at_path(path, 0666) >= 0 ? 'y' : 'n';
	MUST(write(done, &is, 1) == 1 && !read(end[0], &byte, 1));
	_exit(0);
}

static void race(void)
{
	int go[2], end[2], done[2], yes = 0;
	pid_t pid[2];
	char is;

	MUST(!pipe2(go, O_CLOEXEC) && !pipe2(end, O_CLOEXEC) &&
	     !pipe2(done, O_CLOEXEC));
	for (int i = 0; i < 2; i++)
		pid[i] = daemon_at(go, end, done[1]);
	close(go[1]);
	for (int i = 0; i < 2; i++) {
		MUST(read(done[0], &is, 1) == 1);
		yes += is == 'y';
	}
	CHECK(yes == 1, "%d", yes);
	CHECK(is_answered() && files() == 1, "%u", files());
	close(end[1]);
	for (int i = 0; i < 2; i++)
		MUST(waitpid(pid[i], NULL, 0) == pid[i]);
	close(go[0]);
	close(end[0]);
	close(done[0]);
	close(done[1]);
}

/* Of the round before there is a socket, of which nobody is there any more; or there is none. */
static void test_races(void)
{
	puts("two at the same time");
	choose(40);
	for (int i = 0; i < ROUNDS; i++) {
		race();
		if (i % 3 == 2)
			MUST(!unlink(path));
	}
	unlink(path);
}

int main(void)
{
	MUST(mkdtemp(dir));
	test_paths();
	test_races();
	MUST(!rmdir(dir));
	return check_result();
}
