// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * On a node with the migratable rdma_rxe: a context with many QPs is stopped,
 * dumped, destroyed and made again on the same host, while the other ends of
 * its connections stay.
 *
 *	live_restore [-n QPS] [-i GID_INDEX] [-p GID_INDEX] [-t TIMEOUT]
 *		[-r] [-s | -j] [-F] [DEVICE]
 *
 * -i is the moved side's, -p the other one's if it is not the same. -t is the
 * exponent of the QPs' time-out, 14 if not said. With -r the QPs of a side receive
 * from one SRQ, instead of each from its own queue. -s makes the objects one by one
 * with ibv_restore_object(). -j prints how long each step took and how large the
 * image is as a line of JSON, and leaves out what would disturb the clock. -F lets
 * each allocation fail once before a step may succeed, on a kernel with fault
 * injection.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <infiniband/verbs_ext.h>

#include "../../tests/check.h"
#include "live_restore.h"

static bool failing;
struct live_times took;

static struct ibv_device *find_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	for (; list && *list; list++)
		if (!name || !strcmp(name, ibv_get_device_name(*list)))
			return *list;
	return NULL;
}

/* stop, dump, commit, destroy */
static void take(struct side *s, struct side *peer, void **image,
		 size_t *length)
{
	struct rxe_migr_status st, committed;
	struct rxe_migr_resolve_resp what;
	struct migr_error err;
	double start;
	char text[256];
	int ret, count = 0, i;
	char small[64];

	ret = ibv_migr_check_peers(s->ctx, 0, &st);
	CHECK(!ret, "%s", ibv_migr_status_str(&st, ret, text, sizeof(text)));
	ret = ibv_dump_context(s->ctx, &count, small, sizeof(small));
	CHECK(ret == EINVAL, "dump of a running context: %d", ret);
	if (failing)
		stop_failing(s, peer);
	start = now();
	ret = ibv_migr_stop(s->ctx, 0, &st);
	CHECK(!ret, "%s", ibv_migr_status_str(&st, ret, text, sizeof(text)));
	if (ret)
		exit(1);
	took.stop = now() - start;
	say("stopped %u objects in %.1f ms\n", st.objects, took.stop);

	ret = ibv_migr_resolve(s->ctx, s->ctx->async_fd, &what);
	CHECK(!ret && what.type == RXE_MIGR_ASYNC_FD, "%d, %u", ret, what.type);
	ret = ibv_migr_resolve(s->ctx, s->ctx->cmd_fd, &what);
	CHECK(!ret && what.type == RXE_MIGR_CONTEXT, "%d, %u", ret, what.type);
	ret = ibv_migr_resolve(s->ctx, 0, &what);
	CHECK(ret == ENOENT, "%d", ret);

	ret = ibv_dump_context(s->ctx, &count, small, sizeof(small));
	CHECK(ret == ENOSPC && count == n_qps + 4 + with_srq, "%d, count %d",
	      ret, count);
	if (failing)
		dump_failing(s);
	start = now();
	ret = migr_cmd_dump(s->ctx->cmd_fd, image, length, &err);
	CHECK(!ret, "%s", err.text);
	if (ret)
		exit(1);
	took.dump = now() - start;
	say("dumped %zu bytes in %.1f ms\n", *length, took.dump);
	CHECK(!ibv_migr_commit(s->ctx, 0, 5000, &committed), "commit");

	/* peers that hear from a stopped QP are patient from then on */
	memset(peer->mem, 0x77, LIVE_MSG);
	for (i = 0; i < n_qps; i++)
		post_send(peer, i, 6);
	usleep(300000);
	close(st.guard_fd);
	close_side(s);
}

static int make(const char *path, const struct migr_image *img, bool single,
		struct rxe_queue_buf **ring)
{
	struct rxe_migr_status st;
	struct migr_error err = {};
	struct migr_files files;
	int fd, ret;
	double start;

	if (failing)
		restore_failing(path, img);
	start = now();
	MUST((fd = open(path, O_RDWR | O_CLOEXEC)) >= 0);
	if (single) {
		ret = get_context(fd, img, &err);
		if (!ret)
			restore_single(fd, img);
	} else {
		ret = migr_restore_context(fd, img, &files, &err);
	}
	CHECK(!ret, "%s", err.text);
	if (ret)
		exit(1);
	took.restore = now() - start;
	say("restored %u objects in %.1f ms\n", img->count, took.restore);
	start = now();
	*ring = map_rings(fd, img);
	took.map = now() - start;

	ret = migr_cmd_resume(fd, &st);
	CHECK(ret == -EINVAL, "RESUME before ATTACH: %d", ret);
	start = now();
	ret = migr_cmd_attach(fd, &st);
	took.attach = now() - start;
	migr_status_text(&st, ret, &err);
	CHECK(!ret, "%s", err.text);
	start = now();
	ret = migr_cmd_resume(fd, &st);
	migr_status_text(&st, ret, &err);
	CHECK(!ret, "%s", err.text);
	took.resume = now() - start;
	say("resumed %u QPs in %.1f ms\n", st.objects, took.resume);
	return fd;
}

static void taken(const char *path, const struct migr_image *img)
{
	struct migr_error err = {};
	struct migr_files files;
	int fd, ret;

	MUST((fd = open(path, O_RDWR | O_CLOEXEC)) >= 0);
	ret = migr_restore_context(fd, img, &files, &err);
	CHECK(ret == -EBUSY && strstr(err.text, "is taken on this host"),
	      "%d: %s", ret, err.text);
	printf("a second time: %s\n", err.text);
	close(fd);
}

int main(int argc, char **argv)
{
	struct side moved = { .gid_index = 1 }, peer = {};
	struct rxe_queue_buf *ring;
	struct migr_image img;
	struct migr_error err;
	struct ibv_device *dev;
	bool single = false;
	int peer_gid = -1;
	char path[128], *mem;
	double start;
	size_t length;
	void *image;
	int i, c, fd;
	uint32_t n;

	while ((c = getopt(argc, argv, "n:i:p:t:rsjF")) != -1) {
		if (c == 'n')
			n_qps = atoi(optarg);
		else if (c == 'i')
			moved.gid_index = atoi(optarg);
		else if (c == 'p')
			peer_gid = atoi(optarg);
		else if (c == 't')
			qp_timeout = (uint8_t)atoi(optarg);
		else if (c == 'r')
			with_srq = true;
		else if (c == 's')
			single = true;
		else if (c == 'j')
			measure = true;
		else if (c == 'F')
			failing = true;
		else
			return 2;
	}
	peer.gid_index = peer_gid < 0 ? moved.gid_index : peer_gid;
	MUST(dev = find_device(argv[optind]));
	open_side(&moved, dev);
	open_side(&peer, dev);
	for (i = 0; i < n_qps; i++) {
		connect_qp(&moved, &peer, i);
		connect_qp(&peer, &moved, i);
		post_recv(&peer, i, 1);
		post_recv(&moved, i, 2);
		post_recv(&moved, i, 3);
		post_send(&moved, i, 4);
		post_send(&peer, i, 5);
	}
	wait_for(&peer, 2 * n_qps);
	wait_in_ring(&moved, 2 * (uint32_t)n_qps);
	mem = moved.mem;
	take(&moved, &peer, &image, &length);
	if (migr_image_parse(image, length, &img, &err)) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}

	snprintf(path, sizeof(path), "/dev/infiniband/%s", dev->dev_name);
	fd = make(path, &img, single, &ring);
	start = now();
	if (!measure)
		taken(path, &img);
	wait_for(&peer, n_qps);
	took.flow = now() - start;
	n = completions(ring, &img);
	CHECK(n == (uint32_t)n_qps, "%u completions for %d messages", n, n_qps);
	CHECK(mem[LIVE_MSG] == 0x77 && mem[2 * LIVE_MSG - 1] == 0x77,
	      "content");
	if (measure)
		report(&img, length);
	else
		dump_again(fd, &img);
	close(fd);
	close_side(&peer);
	migr_image_free(&img);
	free(image);
	if (!check_failures)
		say("ok\n");
	return check_result();
}
