// SPDX-License-Identifier: GPL-2.0
/*
 * What a dump that is a difference to older images demands of what the driver says, and of
 * what the round before has left.
 */
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/stat.h>

#include "../../tests/check.h"

/* that of a process which is not there */
#define rp_task_has_memory fake_has_memory
#include "../track.c"

static bool has_memory;

bool fake_has_memory(pid_t pid)
{
	CHECK(pid == 10);
	return has_memory;
}

static int images = -1; /* the folder */
static char root[] = "/tmp/track.XXXXXX";

int criu_get_image_dir(void)
{
	return images;
}

static struct {
	int err;
	struct rxe_migr_track_resp resp;
} driver;

int migr_cmd_track_round(int fd, pid_t pid, uint64_t round,
			 struct rxe_migr_track_resp *resp)
{
	CHECK(fd == 77 && pid == 10);
	CHECK(round && round == rp_image_dump());
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

#define CONTEXT 5000000003

/* of the round before it, for the driver */
static int after(uint64_t since, uint32_t flags)
{
	driver.resp.flags = flags | (since ? 0 : RXE_MIGR_TRACK_BEGUN);
	driver.resp.since = since;
	driver.resp.context = CONTEXT;
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

/* whether somebody has ended that matters, if that is what the module says */
static int ends_with(const char *text)
{
	set_lost(text);
	return rp_track_check_ended(10);
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
	MUST(!rp_image_new_dump());
}

/* a first round, of these contexts too; its number */
static uint64_t round_with(const char *name, uint64_t a, uint64_t b)
{
	use(name, NULL);
	CHECK(!rp_track_check_ended(10));
	CHECK(!add(a) && !add(b) && !write_list());
	return rp_image_dump();
}

int main(void)
{
	char command[64];
	uint64_t n;

	MUST(mkdtemp(root));
	set_lost("0\n");
	puts("a round that is whole");
	use("whole", NULL);
	for (uint64_t since = 0; since < 2; since++)
		CHECK(!after(since, 0) && !after(since, RXE_MIGR_TRACK_LOST));
	/* no context: of one that was stopped that is no answer */
	driver.err = -EINVAL;
	CHECK(after(1, 0) == -EOPNOTSUPP);
	CHECK(!track(&(struct rp_task){ .pid = 10 }, &(struct rp_fd){ .fd = 3 },
		     77));
	driver.err = -EPROTO; /* of another version */
	CHECK(after(1, 0) == -EPROTO);
	CHECK(track(&(struct rp_task){ .pid = 10 }, &(struct rp_fd){ .fd = 3 },
		    77) == -EPROTO);
	CHECK(!list);

	puts("of a process that ends, or whose first thread has");
	driver.err = -ESRCH;
	for (int i = 0; i < 2; i++) {
		has_memory = i;
		CHECK(track(&(struct rp_task){ .pid = 10 },
			    &(struct rp_fd){ .fd = 3 },
			    77) == (i ? -ESRCH : 0));
	}
	CHECK(!list);
	driver.err = -EINTR;
	CHECK(after(1, 0) == -EINTR);
	driver.err = 0;

	puts("a difference to what has left nothing");
	use("difference", "whole");
	CHECK(after(0, 0) == -EOPNOTSUPP);
	CHECK(after(1, 0) == -EOPNOTSUPP);

	puts("to a round without contexts");
	use("none", NULL);
	CHECK(rp_track_note(getpid()) == RP_NOT_OURS);
	n = rp_image_dump();
	use("after none", "none");
	CHECK(rp_image_dump() != n);
	CHECK(!after(0, 0));
	CHECK(after(0, RXE_MIGR_TRACK_LOST) == -EOPNOTSUPP);
	/* somebody has tracked it, or a round in between came to nothing */
	CHECK(after(n, 0) == -EOPNOTSUPP);

	puts("of memory that is written without being seen");
	driver.resp.unseen = 0x7000;
	CHECK(after(0, RXE_MIGR_TRACK_LOST) == -EOPNOTSUPP);
	driver.resp.unseen = 0;
	CHECK(!after(0, 0));

	puts("to one that has tracked it, and others");
	n = round_with("one", 7, CONTEXT);
	use("after one", "one");
	CHECK(!after(n, 0));
	CHECK(after(n, RXE_MIGR_TRACK_LOST) == -EOPNOTSUPP);
	CHECK(after(0, 0) == -EOPNOTSUPP);
	CHECK(after(n + 1, 0) == -EOPNOTSUPP);
	CHECK(after(rp_image_dump(), 0) == -EOPNOTSUPP);
	round_with("others", 7, 705032707);
	use("after others", "others");
	CHECK(!after(0, 0));
	CHECK(after(n, 0) == -EOPNOTSUPP);

	puts("to one that has left something else");
	round_with("bad", 7, 9);
	CHECK(!rp_write_file(images, RP_TRACKED_NAME, "none", 4));
	use("after bad", "bad");
	CHECK(rp_track_check_ended(10) == -EOPNOTSUPP);
	CHECK(rp_track_note(getpid()) == -EOPNOTSUPP);
	CHECK(after(0, 0) == -EOPNOTSUPP);
	CHECK(after(n, 0) == -EOPNOTSUPP);

	puts("or has no list, though there was a context");
	for (int i = 0; i < 2; i++) {
		use(i ? "task" : "ctx", NULL);
		CHECK(!rp_write_file(images,
				     i ? "rdma-task-0.img" : "rdma-ctx-0.img",
				     "", 0));
		use(i ? "after task" : "after ctx", i ? "task" : "ctx");
		CHECK(rp_track_check_ended(10) == -EOPNOTSUPP);
	}
	use("loop", "loop/parent");
	CHECK(rp_track_check_ended(10) == -EOPNOTSUPP);
	use("orphan", "nowhere"); /* which is none */
	CHECK(!rp_track_check_ended(10));
	CHECK(after(0, 0) == -EOPNOTSUPP);
	use("after no context", "whole");
	CHECK(!rp_track_check_ended(10));

	puts("by two descriptors");
	use("twice", NULL);
	driver.resp.context = 9;
	for (int i = 0; i < 2; i++)
		CHECK(!track(&(struct rp_task){ .pid = 10 },
			     &(struct rp_fd){ .fd = 3 + i }, 77));
	CHECK(list->nr == 1 && list->contexts[0] == 9);

	puts("to one since which a context has ended that had lost track");
	set_lost("4294967294\n9\n");
	round_with("some", 7, 9);
	use("after some", "some");
	CHECK(!ends_with("4294967294\n9\n"));
	CHECK(ends_with("4294967295\n9\n9\n") == -EOPNOTSUPP);
	CHECK(rp_track_note(getpid()) == -EOPNOTSUPP);
	CHECK(ends_with("1\n5\n5\n7\n9\n") == -EOPNOTSUPP);

	puts("or that was being closed when the round after looked for it");
	set_lost("5\n");
	round_with("with it", 7, 9);
	use("while it closes", "with it");
	CHECK(!rp_track_check_ended(10) && !add(7) && !write_list());
	use("after that", "while it closes");
	CHECK(ends_with("6\n9\n") == -EOPNOTSUPP);
	CHECK(!ends_with("6\n8\n"));

	puts("or others, or nobody can tell");
	set_lost("4294967294\n9\n");
	use("after some again", "some");
	CHECK(!ends_with("0\n5\n6\n9\n"));
	CHECK(!ends_with("0\n5\n6\n7\n"));
	CHECK(ends_with("0\n5\n") == -EOPNOTSUPP);
	CHECK(ends_with("4294967293\n9\n") == -EOPNOTSUPP);
	CHECK(ends_with("") == -EOPNOTSUPP);
	lost_path = "/nowhere";
	CHECK(rp_track_check_ended(10) == -EOPNOTSUPP);
	use("no module", "none");
	CHECK(!rp_track_check_ended(10));
	CHECK(!write_list());
	CHECK(!add(7) && write_list() == -EIO);
	CHECK(!ends_with("77\n7\n") && !write_list());

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
