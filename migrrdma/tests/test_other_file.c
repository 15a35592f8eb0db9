// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The program has closed the layer's socket, and has one of its own in its place: that is
 * left alone.
 */
#include <fcntl.h>
#include <sys/wait.h>

#include "client.h"

static struct sockaddr_un name = { .sun_family = AF_UNIX };

static int listen_at_own(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(name.sun_path, sizeof(name.sun_path), "%s/own", dir);
	MUST(fd >= 0 && !bind(fd, (struct sockaddr *)&name, sizeof(name)));
	MUST(!listen(fd, 4));
	return fd;
}

static void check_child(int fd, bool has)
{
	int status = -1;
	pid_t child = fork();

	if (!child)
		_exit((fcntl(fd, F_GETFD) >= 0) != has);
	MUST(child > 0 && waitpid(child, &status, 0) == child);
	CHECK(status == 0, "%#x", (unsigned int)status);
}

static void test_other_file(void)
{
	int f, own, caller, number = listening();

	puts("a child has not the layer's socket");
	MUST(number >= 0);
	check_child(number, false);

	puts("who calls the program's is not answered by the layer");
	world_make();
	f = dial();
	CHECK(does(f, "suspend 20000\n"));
	hold_and_hang_up(f, "hold 20000 1\n");
	own = listen_at_own();
	MUST(dup2(own, number) == number && !close(own));
	caller = socket(AF_UNIX, SOCK_STREAM, 0);
	MUST(caller >= 0);
	MUST(!connect(caller, (struct sockaddr *)&name, sizeof(name)));
	check_lease_ends(); /* of which the thread looks after the file */
	CHECK(readable(number));

	puts("and a child has that");
	check_child(number, true);
	MUST(!close(caller) && !close(number) && !unlink(name.sun_path));
}

int main(void)
{
	rig_open();
	test_other_file();
	return rig_close();
}
