// SPDX-License-Identifier: GPL-2.0
/*
 * The door, for a mover: it is told when a container stands still, and decides when all is dumped
 */
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <unistd.h>

#include "at_door.h"
#include "check.h"

static void state_is(const char *word)
{
	char path[PATH_MAX];
	int fd;

	path_of(path, "state");
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	MUST(fd >= 0 && write(fd, word, strlen(word)) == (ssize_t)strlen(word));
	close(fd);
}

/* All is dumped, and it stands still. */
static void is_held(void)
{
	begin("good", CRIU_REQ_TYPE__DUMP);
	word("dump\n");
	CHECK(heard("network-lock") && said("frozen") && !is_plugged() &&
	      ack());
	CHECK(said("held"));
}

static void test_leaves(void)
{
	is_held();
	word("leave\n");
	CHECK(heard("post-dump") && ack());
	CHECK(said("criu 0") && heard("success"));
	CHECK(!is_plugged());
	end(0);
}

static void test_stays(void)
{
	is_held();
	word("stop\n");
	CHECK(said("criu 1") && is_plugged() && heard("failure"));
	end(1);
}

/* CRIU is killed, and whoever was stopped by it is not any more: it runs on here, or elsewhere. */
static void test_killed(void)
{
	state_is("held\n");
	is_held();
	kill(door, SIGKILL);
	CHECK(said("criu 1") && is_plugged());
	end(-1);

	is_held();
	state_is("granted\n");
	kill(door, SIGKILL);
	CHECK(said("criu 1") && said("") && !is_plugged());
	end(-1);
}

/* Whoever takes it back when it was granted has to plug it in. */
static void test_comes_back(void)
{
	is_held();
	state_is("granted\n");
	word("stop\n");
	CHECK(said("criu 1") && !is_plugged() && heard("failure"));
	end(1);
}

/* That file is a mover's, and means nothing where there is none. */
static void test_not_held(void)
{
	MUST(!unsetenv("MIGR_CTR_HOLD"));
	begin("dies", CRIU_REQ_TYPE__DUMP);
	word("dump\n");
	CHECK(heard("network-lock") && !is_plugged() && ack());
	CHECK(said("criu 1") && said("") && is_plugged());
	end(-1);
}

int main(void)
{
	door_is_made();
	MUST(!setenv("MIGR_CTR_HOLD", "1", 1));
	test_leaves();
	test_stays();
	test_killed();
	test_comes_back();
	test_not_held();
	door_is_gone();
	return check_result();
}
