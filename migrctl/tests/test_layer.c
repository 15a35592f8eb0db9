// SPDX-License-Identifier: GPL-2.0
/*
 * The mover's side of who speaks to the layer: what it says, that it dies, and that somebody else
 * goes on with it. The runtime is a script.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "layer.h"

static char dir[] = "/tmp/layer.XXXXXX";
static struct move m;

/* It obeys to the file "script" of the test. */
static const char runtime[] =
	"#!/bin/sh\n"
	"[ \"$1 $2 $3\" = 'driver c1 connections' ] || exit 9\n"
	"cd \"$4/..\" && . ./script\n";

static void put_file(const char *name, const char *text, mode_t mode)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
	MUST(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
}

static bool opened(const char *script)
{
	char command[64];

	snprintf(command, sizeof(command), "rm -rf %s/images", dir);
	MUST(!system(command));
	m = (struct move){ .name = "c1", .runtime = "migr-ctr" };
	move_init(&m);
	snprintf(m.images, sizeof(m.images), "%s/images", dir);
	MUST(!mkdir(m.images, 0700));
	put_file("script", script, 0600);
	return layer_open(&m, "connections", "n3", "recorded");
}

static void test_words(void)
{
	json_t *timing;

	CHECK(opened("[ $5 = n3 ]; echo recorded; exec <$MIGR_CTR_DOOR/go\n"
		     "read w; [ $w = lead ] && echo led\n"
		     "read w; [ $w = arrived ] && echo 0 >$MIGR_CTR_DOOR/runc\n"
		     "echo '{\"hold_ms\": 7}' >$MIGR_CTR_DOOR/timing"));
	CHECK(layer_waits(&m));
	CHECK(layer_does(&m, "lead", "led"));
	CHECK(layer_leave(&m, "arrived"), "%s", m.reason);
	timing = layer_timing(&m);
	CHECK(json_integer_value(json_object_get(timing, "hold_ms")) == 7);
	json_decref(timing);
	/* it is over */
	CHECK(layer_leave(&m, "arrived"));
	CHECK(!layer_waits(&m));
}

static void test_refusals(void)
{
	CHECK(!opened("echo waits >&2; echo 'failed n2: it is not there' >&2"));
	CHECK(!strcmp(m.reason, "n2: it is not there"), "%s", m.reason);
	CHECK(layer_leave(&m, "back"));

	/* what is said too early is heard */
	CHECK(opened("echo recorded; sleep 0.2; exec <$MIGR_CTR_DOOR/go\n"
		     "read w; echo 0 >$MIGR_CTR_DOOR/runc"));
	CHECK(layer_leave(&m, "back"), "%s", m.reason);

	CHECK(!opened("echo something; exec sleep 1000 >/dev/null"));
	CHECK(strstr(m.reason, "something else"), "%s", m.reason);
	doors_close(&m.layer);

	CHECK(opened("echo recorded; exec <$MIGR_CTR_DOOR/go; read w\n"
		     "echo failed it cannot >&2; exit 1"));
	CHECK(!layer_does(&m, "suspend", "suspended"));
	CHECK(!strcmp(m.reason, "it cannot"), "%s", m.reason);
	CHECK(layer_leave(&m, "back"));
}

static void test_lost(void)
{
	CHECK(opened("echo recorded; exec <$MIGR_CTR_DOOR/go; read w\n"
		     "echo n2: process 7: its connections are lost >&2"));
	CHECK(!layer_leave(&m, "arrived"));
	CHECK(!strncmp(m.reason, "connections are lost: n2: process 7", 35),
	      "%s", m.reason);

	/* it dies while nothing is asked of it */
	CHECK(opened("echo recorded; echo why >&2; kill -KILL $$"));
	for (int i = 0; i < 1000 && layer_waits(&m); i++)
		usleep(10000);
	CHECK(strstr(m.reason, "has ended: why"), "%s", m.reason);
	CHECK(layer_leave(&m, "back"));
}

/* The process of a move has died: its ends of the pipes are gone. */
static void test_reopened(void)
{
	struct move other;

	CHECK(opened("echo recorded; exec 1<>$MIGR_CTR_DOOR/says\n"
		     "exec 3<>$MIGR_CTR_DOOR/go; read w <&3\n"
		     "[ $w = back ] && echo 0 >$MIGR_CTR_DOOR/runc"));
	doors_close(&m.layer);
	other = m;
	layer_reopen(&other);
	CHECK(layer_waits(&other));
	CHECK(layer_leave(&other, "back"), "%s", other.reason);

	/* there was none */
	snprintf(other.images, sizeof(other.images), "%s/none", dir);
	layer_reopen(&other);
	CHECK(other.layer.says < 0 && layer_leave(&other, "back"));
}

static void test_files(void)
{
	CHECK(opened("echo recorded; mkdir $4/ahead; echo x >$4/ahead/late"));
	layer_leave(&m, "back");
	CHECK(layer_has(&m, LAYER_LATE) && !layer_has(&m, LAYER_MADE));
}

int main(void)
{
	char path[4096], command[64];

	MUST(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s:%s", dir, getenv("PATH"));
	setenv("PATH", path, 1);
	put_file("migr-ctr", runtime, 0755);
	signal(SIGPIPE, SIG_IGN);
	test_words();
	test_refusals();
	test_lost();
	test_reopened();
	test_files();
	snprintf(command, sizeof(command), "rm -r %s", dir);
	CHECK(!system(command));
	return check_result();
}
