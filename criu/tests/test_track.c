// SPDX-License-Identifier: GPL-2.0
/*
 * What a dump that is a difference to older images demands of what the driver says, and of
 * what the round before has left.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/stat.h>

#include "../../tests/check.h"
#include "../track.c"

static int images = -1; /* the folder */
static char root[] = "/tmp/track.XXXXXX";

int criu_get_image_dir(void)
{
	return images;
}

static struct {
	int err, ended;
	struct rxe_migr_track_resp resp;
} driver;

int migr_cmd_track(int fd, uint32_t flags, pid_t pid,
		   struct rxe_migr_track_resp *resp)
{
	CHECK(fd == 77);
	driver.ended += flags == RXE_MIGR_TRACK_END;
	CHECK(flags ? flags == RXE_MIGR_TRACK_END : pid == 10);
	*resp = driver.resp;
	return driver.err;
}

int migr_cmd_resolve(int fd, int other_fd, struct rxe_migr_resolve_resp *resp)
{
	(void)fd;
	(void)other_fd;
	(void)resp;
	return 0;
}

static int at_once(uint32_t flags)
{
	driver.resp.flags = flags;
	driver.resp.context = 5000000003;
	return rp_track_last(10, 3, 77);
}

static void set_lost(const char *text)
{
	static char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "%s/migr_lost", root);
	lost_path = path;
	f = fopen(path, "we");
	MUST(f && fputs(text, f) >= 0 && !fclose(f));
}

/* a folder of images, with another one as its parent, or without */
static void use(const char *name, const char *parent)
{
	char path[64], link[80];

	snprintf(path, sizeof(path), "%s/%s", root, name);
	MUST(!mkdir(path, 0700));
	snprintf(link, sizeof(link), "../%s", parent ? parent : "");
	if (images >= 0)
		close(images);
	images = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	MUST(images >= 0);
	if (parent)
		MUST(!symlinkat(link, images, "parent"));
	rp_track_begin();
}

int main(void)
{
	char command[64];

	MUST(mkdtemp(root));
	puts("a round that is whole");
	use("whole", NULL);
	for (uint32_t flags = 0; flags < 4; flags++)
		CHECK(!at_once(flags));
	driver.err = -EINVAL; /* no context */
	CHECK(at_once(0) == RP_NOT_OURS);
	driver.err = -EINTR;
	CHECK(at_once(0) == -EINTR);
	driver.err = 0;

	puts("a difference to what has left nothing");
	use("difference", "whole");
	CHECK(!at_once(0));
	CHECK(!driver.ended);
	CHECK(at_once(RXE_MIGR_TRACK_LOST) == -EOPNOTSUPP && driver.ended == 1);
	CHECK(at_once(RXE_MIGR_TRACK_BEGUN) == -EOPNOTSUPP &&
	      driver.ended == 2);

	puts("to a round without contexts");
	use("none", NULL);
	CHECK(rp_track_note(getpid()) == RP_NOT_OURS);
	use("after none", "none");
	CHECK(!at_once(RXE_MIGR_TRACK_BEGUN));
	CHECK(at_once(RXE_MIGR_TRACK_LOST) == -EOPNOTSUPP);

	puts("of memory that is written without being seen");
	driver.resp.unseen = 0x7000;
	CHECK(at_once(RXE_MIGR_TRACK_LOST) == -EOPNOTSUPP);
	driver.resp.unseen = 0;
	CHECK(!at_once(0));

	puts("to one that has tracked it, and others");
	use("one", NULL);
	CHECK(!add(7) && !add(5000000003) && !write_list());
	use("after one", "one");
	CHECK(!at_once(0));
	CHECK(at_once(RXE_MIGR_TRACK_BEGUN) == -EOPNOTSUPP);
	use("others", NULL);
	CHECK(!add(7) && !add(705032707) && !write_list());
	use("after others", "others");
	CHECK(!at_once(RXE_MIGR_TRACK_BEGUN));

	puts("to one that has left something else");
	use("bad", NULL);
	CHECK(!rp_write_file(images, RP_TRACKED_NAME, "none", 4));
	use("after bad", "bad");
	CHECK(at_once(RXE_MIGR_TRACK_BEGUN) == -EOPNOTSUPP);
	CHECK(!at_once(0));

	puts("to one since which a context has ended that had lost track");
	use("some", NULL);
	set_lost("4294967295\n");
	CHECK(!rp_track_check_ended(10));
	set_lost("1\n");
	CHECK(!write_list());
	use("after some", "some");
	set_lost("4294967295\n");
	CHECK(!rp_track_check_ended(10));
	set_lost("0\n");
	use("later", "some");
	CHECK(rp_track_check_ended(10) == -EOPNOTSUPP);
	CHECK(rp_track_note(getpid()) == -EOPNOTSUPP);

	puts("it goes with the images of a dump");
	use("removed", NULL);
	CHECK(!write_list() && !rp_remove_images(images));
	CHECK(faccessat(images, RP_TRACKED_NAME, F_OK, 0) && errno == ENOENT);
	CHECK(!rp_remove_images(images));

	rp_track_begin();
	snprintf(command, sizeof(command), "rm -r %s", root);
	MUST(!system(command));
	return check_result();
}
