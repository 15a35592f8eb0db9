// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * live_restore -F: each allocation of a step fails once.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <infiniband/verbs_ext.h>

#include "../../tests/check.h"
#include "live_restore.h"

/*
 * The kernel's Nth allocation, or copy from or to this process, fails for this
 * thread from now on; 0 for none. Returns what is left of the N before, 0 if that
 * one has failed.
 */
static long fail_nth(long n)
{
	static int fd = -1; /* opening it allocates */
	char left[24] = "", next[24];

	if (fd < 0)
		MUST((fd = open("/proc/thread-self/fail-nth", O_RDWR)) >= 0);
	/* these are such copies themselves, and may be the Nth */
	if (pread(fd, left, sizeof(left) - 1, 0) < 0) {
		MUST(errno == EFAULT);
		strcpy(left, "1");
	}
	snprintf(next, sizeof(next), "%ld", n);
	while (pwrite(fd, next, strlen(next), 0) < 0)
		MUST(errno == EFAULT);
	return atol(left);
}

/* With each allocation failing: refused, or not, but the context runs on. */
void stop_failing(struct side *s, struct side *peer)
{
	struct rxe_migr_status st;
	long n = 0, left;
	int ret, refused = 0;

	do {
		fail_nth(++n);
		ret = ibv_migr_stop(s->ctx, 0, &st);
		left = fail_nth(0);
		if (ret)
			refused++;
		else
			close(st.guard_fd);
	} while (!left);
	CHECK(!ret, "STOP is still refused: %d", ret);
	CHECK(refused, "no allocation of STOP has failed");
	say("STOP refused %d times in %ld\n", refused, n);

	/* UNSTOP cannot say that it failed */
	ret = ibv_migr_stop(s->ctx, 0, &st);
	CHECK(!ret, "STOP: %d", ret);
	fail_nth(1);
	close(st.guard_fd);
	fail_nth(0);
	post_recv(peer, 0, 7);
	post_send(s, 0, 8);
	wait_for(peer, 1);
	wait_in_ring(s, 2 * (uint32_t)n_qps + 1);
}

void dump_failing(struct side *s)
{
	struct migr_error err;
	long n = 0, left;
	int ret, refused = 0;
	size_t length;
	void *image;

	do {
		fail_nth(++n);
		ret = migr_cmd_dump(s->ctx->cmd_fd, &image, &length, &err);
		left = fail_nth(0);
		if (ret)
			refused++;
		else
			free(image);
	} while (!left);
	CHECK(!ret, "DUMP is still refused: %s", err.text);
	CHECK(refused, "no allocation of DUMP has failed");
	say("DUMP refused %d times in %ld\n", refused, n);
}

/* Nothing may be left of a restore that failed, or the next one fails, too. */
void restore_failing(const char *path, const struct migr_image *img)
{
	struct migr_error err = {};
	int fd, ret, refused = 0;
	struct migr_files files;
	long n = 0, left;

	do {
		MUST((fd = open(path, O_RDWR | O_CLOEXEC)) >= 0);
		fail_nth(++n);
		ret = migr_restore_context(fd, img, &files, &err);
		left = fail_nth(0);
		if (ret)
			refused++;
		else
			migr_files_close(&files);
		close(fd);
	} while (!left);
	CHECK(!ret, "the restore is still refused: %s", err.text);
	CHECK(refused, "no allocation of the restore has failed");
	say("restore refused %d times in %ld\n", refused, n);
}
