// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * On a node with the migratable rdma_rxe: a context with many QPs is stopped,
 * dumped, destroyed and made again on the same host, while the other ends of
 * its connections stay.
 *
 *	live_restore [-n QPS] [-i GID_INDEX] [-p GID_INDEX] [-t TIMEOUT]
 *		[-s | -j] [-F] [DEVICE]
 *
 * -i is the moved side's, -p the other one's if it is not the same.
 * -t is the exponent of the QPs' time-out, 14 if not said. -s makes the objects
 * one by one with ibv_restore_object(). -j prints how long each step took and
 * how large the image is as a line of JSON, and leaves out what would disturb
 * the clock. -F lets each allocation fail once before a step may succeed, on a
 * kernel with fault injection.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <infiniband/verbs_ext.h>
#include <rdma/rdma_user_rxe.h>

#include "../../tests/check.h"
#include "../../tests/connect.h"
#include "migr_cmd.h"

#define MSG 4096
#define DEPTH 4

struct side {
	struct ibv_context *ctx;
	struct ibv_pd *gap, *pd;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_qp **qp;
	struct rxe_queue_buf *ring; /* of cq */
	char *mem;
	int gid_index;
	union ibv_gid gid;
};

static int n_qps = 2;
static uint8_t timeout = 14;
static bool measure, failing;

/* milliseconds */
static struct {
	double stop, dump, restore, attach, resume, flow;
} took;

#define say(...) ((void)(measure || printf(__VA_ARGS__)))

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

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

static struct ibv_device *find_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	for (; list && *list; list++)
		if (!name || !strcmp(name, ibv_get_device_name(*list)))
			return *list;
	return NULL;
}

/*
 * What was mapped last of an rxe device: rdma-core does not say where its rings
 * are. Their offsets only grow.
 */
static void *last_ring(void)
{
	unsigned long at, offset, last = 0;
	void *ring = NULL;
	char line[512];
	FILE *maps;

	MUST(maps = fopen("/proc/self/maps", "r"));
	while (fgets(line, sizeof(line), maps))
		if (strstr(line, "/dev/infiniband/uverbs") &&
		    sscanf(line, "%lx-%*x %*s %lx", &at, &offset) == 2 &&
		    offset > last) {
			ring = (void *)at;
			last = offset;
		}
	fclose(maps);
	return ring;
}

static void open_side(struct side *s, struct ibv_device *dev)
{
	struct ibv_qp_init_attr init = {
		.cap = { DEPTH, DEPTH, 2, 2, 0 },
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};
	int i;

	MUST(s->ctx = ibv_open_device(dev));
	MUST(!ibv_query_gid(s->ctx, 1, s->gid_index, &s->gid));
	MUST(s->gap = ibv_alloc_pd(s->ctx));
	MUST(s->pd = ibv_alloc_pd(s->ctx));
	MUST(s->cq = ibv_create_cq(s->ctx, 2 * DEPTH * n_qps, s, NULL, 0));
	MUST(s->ring = last_ring());
	s->mem = mmap(NULL, 2 * MSG, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	MUST(s->mem != MAP_FAILED);
	MUST(s->mr = ibv_reg_mr(s->pd, s->mem, 2 * MSG,
				IBV_ACCESS_LOCAL_WRITE |
					IBV_ACCESS_REMOTE_WRITE));
	MUST(!ibv_dealloc_pd(s->gap));
	init.send_cq = init.recv_cq = s->cq;
	MUST(s->qp = calloc((size_t)n_qps, sizeof(*s->qp)));
	for (i = 0; i < n_qps; i++)
		MUST(s->qp[i] = ibv_create_qp(s->pd, &init));
}

static void connect_qp(struct side *s, const struct side *peer, int i)
{
	struct ibv_qp_attr a =
		rc_attr(&peer->gid, s->gid_index, peer->qp[i]->qp_num);

	a.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
	a.rq_psn = a.sq_psn = 0xfffff0;
	a.timeout = timeout;
	a.retry_cnt = a.rnr_retry = 6;
	MUST(!rc_to_rtr(s->qp[i], &a) && !rc_to_rts(s->qp[i], &a));
}

static void post_recv(struct side *s, int i, uint64_t wr_id)
{
	struct ibv_sge sge = { (uintptr_t)s->mem + MSG, MSG, s->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = wr_id,
				  .sg_list = &sge,
				  .num_sge = 1 };
	struct ibv_recv_wr *bad;

	MUST(!ibv_post_recv(s->qp[i], &wr, &bad));
}

static void post_send(struct side *s, int i, uint64_t wr_id)
{
	struct ibv_sge sge = { (uintptr_t)s->mem, MSG, s->mr->lkey };
	struct ibv_send_wr wr = { .wr_id = wr_id,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND };
	struct ibv_send_wr *bad;

	MUST(!ibv_post_send(s->qp[i], &wr, &bad));
}

/* n good completions of one side within a minute */
static void wait_for(struct side *s, int n)
{
	double end = now() + 60000;
	struct ibv_wc wc;
	int got;

	while (n && now() < end) {
		MUST((got = ibv_poll_cq(s->cq, 1, &wc)) >= 0);
		if (!got)
			continue;
		CHECK(wc.status == IBV_WC_SUCCESS, "%s",
		      ibv_wc_status_str(wc.status));
		n--;
	}
	CHECK(!n, "%d completions are missing", n);
}

/* n completions, within a minute, that nobody takes away */
static void wait_in_ring(const struct side *s, uint32_t n)
{
	double end = now() + 60000;
	uint32_t got;

	while ((got = (__atomic_load_n(&s->ring->producer_index,
				       __ATOMIC_ACQUIRE) -
		       s->ring->consumer_index) &
		      s->ring->index_mask) < n &&
	       now() < end)
		usleep(1000);
	CHECK(got == n, "%u completions in the ring, not %u", got, n);
}

static void close_side(struct side *s)
{
	int i;

	for (i = 0; i < n_qps; i++)
		MUST(!ibv_destroy_qp(s->qp[i]));
	MUST(!ibv_destroy_cq(s->cq));
	MUST(!ibv_dereg_mr(s->mr));
	MUST(!ibv_dealloc_pd(s->pd));
	MUST(!ibv_close_device(s->ctx));
	free(s->qp);
}

/* With each allocation failing: refused, or not, but the context runs on. */
static void stop_failing(struct side *s, struct side *peer)
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

static void dump_failing(struct side *s)
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

/* stop, dump, commit, destroy */
static void take(struct side *s, struct side *peer, void **image,
		 size_t *length)
{
	struct rxe_migr_status st;
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
	CHECK(ret == ENOSPC && count == n_qps + 4, "%d, count %d", ret, count);
	if (failing)
		dump_failing(s);
	start = now();
	ret = migr_cmd_dump(s->ctx->cmd_fd, image, length, &err);
	CHECK(!ret, "%s", err.text);
	if (ret)
		exit(1);
	took.dump = now() - start;
	say("dumped %zu bytes in %.1f ms\n", *length, took.dump);
	CHECK(!ibv_migr_commit(s->ctx), "commit");

	/* peers that hear from a stopped QP are patient from then on */
	memset(peer->mem, 0x77, MSG);
	for (i = 0; i < n_qps; i++)
		post_send(peer, i, 6);
	usleep(300000);
	close(st.guard_fd);
	close_side(s);
}

static void restore_single(int fd, const struct migr_image *img)
{
	static const int types[] = { RXE_MIGR_PD, RXE_MIGR_CQ, RXE_MIGR_MR,
				     RXE_MIGR_QP };
	struct ibv_context ctx = { .cmd_fd = fd, .num_comp_vectors = 1 };
	const struct rxe_migr_rec *rec;
	unsigned int i, k, cmd;
	void *object;
	int ret;

	for (k = 0; k < 8; k++) {
		cmd = k < 4 ? IBV_RESTORE_CREATE : IBV_RESTORE_REFILL;
		for (i = 0; i < img->count; i++) {
			rec = img->records[i];
			if ((int)rec->type != types[k % 4])
				continue;
			ret = ibv_restore_object(&ctx, &object, types[k % 4],
						 (int)cmd, (void *)rec,
						 rec->length);
			CHECK(!ret, "%s", ibv_migr_error_str());
			CHECK((uintptr_t)object == rec->user_handle, "%p",
			      object);
		}
	}
}

/* only GET_CONTEXT: the rest is made by hand */
static int get_context(int fd, const struct migr_image *img,
		       struct migr_error *err)
{
	struct migr_image none = *img;
	struct migr_files files;

	none.count = 0;
	return migr_restore_context(fd, &none, &files, err);
}

/* what must not change, whatever has been sent and received since */
static void same_object(const struct rxe_migr_rec *a,
			const struct rxe_migr_rec *b)
{
	const struct rxe_migr_rec_cq *c = (void *)a, *d = (void *)b;
	const struct rxe_migr_rec_qp *q = (void *)a, *r = (void *)b;
	const size_t creation = offsetof(struct rxe_migr_rec_qp, pd);
	const size_t sgid = offsetof(struct rxe_migr_rec_qp, sgid);
	const char *type = migr_type_text(a->type);

	CHECK(a->type == b->type && a->handle == b->handle &&
		      a->user_handle == b->user_handle,
	      "%s %u, %s %u", type, a->handle, migr_type_text(b->type),
	      b->handle);
	switch (a->type) {
	case RXE_MIGR_CQ:
		CHECK(c->cqe == d->cqe &&
			      c->ring.mmap_offset == d->ring.mmap_offset,
		      "%s %u", type, a->handle);
		break;
	case RXE_MIGR_QP:
		CHECK(!memcmp((char *)q + creation, (char *)r + creation,
			      sgid - creation),
		      "%s %u", type, a->handle);
		CHECK(q->sq.mmap_offset == r->sq.mmap_offset &&
			      q->rq.mmap_offset == r->rq.mmap_offset,
		      "%s %u", type, a->handle);
		CHECK(r->epoch == q->epoch + 1, "epoch %u", r->epoch);
		break;
	default:
		CHECK(a->length == b->length && !memcmp(a, b, a->length),
		      "%s %u", type, a->handle);
	}
}

/* an image of the copy shows the same objects */
static void dump_again(int fd, const struct migr_image *img)
{
	struct rxe_migr_status st;
	struct migr_image again;
	struct migr_error err;
	unsigned int i;
	size_t length;
	void *image;
	int ret;

	ret = migr_cmd_stop(fd, 0, 0, &st);
	migr_status_text(&st, ret, &err);
	CHECK(!ret, "%s", err.text);
	if (ret)
		return;
	ret = migr_cmd_dump(fd, &image, &length, &err);
	close(st.guard_fd);
	CHECK(!ret, "%s", err.text);
	if (ret)
		return;
	ret = migr_image_parse(image, length, &again, &err);
	CHECK(!ret, "%s", err.text);
	CHECK(ret || again.count == img->count, "%u", again.count);
	for (i = 0; !ret && i < img->count && i < again.count; i++)
		same_object(img->records[i], again.records[i]);
	migr_image_free(&again);
	free(image);
}

/* Nothing may be left of a restore that failed, or the next one fails, too. */
static void restore_failing(const char *path, const struct migr_image *img)
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

static int make(const char *path, const struct migr_image *img, bool single)
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

/* what came in since: completions in the restored ring */
static uint32_t completions(int fd, const struct migr_image *img)
{
	const struct rxe_migr_rec_cq *cq = NULL;
	struct rxe_queue_buf *ring;
	unsigned int i;
	uint32_t n;

	for (i = 0; i < img->count; i++)
		if (img->records[i]->type == RXE_MIGR_CQ)
			cq = (void *)img->records[i];
	MUST(cq);
	ring = mmap(NULL, cq->ring.mmap_size, PROT_READ | PROT_WRITE,
		    MAP_SHARED, fd, (off_t)cq->ring.mmap_offset);
	MUST(ring != MAP_FAILED);
	n = (ring->producer_index - cq->ring.producer) & ring->index_mask;
	munmap(ring, cq->ring.mmap_size);
	return n;
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

/* a line that bench/scale-plot reads */
static void report(const struct migr_image *img, size_t length)
{
	static const struct {
		uint32_t type;
		size_t fixed;
	} types[] = {
		{ RXE_MIGR_PD, sizeof(struct rxe_migr_rec_pd) },
		{ RXE_MIGR_MR, sizeof(struct rxe_migr_rec_mr) },
		{ RXE_MIGR_CQ, sizeof(struct rxe_migr_rec_cq) },
		{ RXE_MIGR_QP, sizeof(struct rxe_migr_rec_qp) },
	};
	unsigned int i, k, n;
	size_t all;

	printf("{\"qps\":%d,\"stop_ms\":%.3f,\"dump_ms\":%.3f,"
	       "\"restore_ms\":%.3f,\"attach_ms\":%.3f,\"resume_ms\":%.3f,"
	       "\"flow_ms\":%.3f,\"image_bytes\":%zu",
	       n_qps, took.stop, took.dump, took.restore, took.attach,
	       took.resume, took.flow, length);
	for (k = 0; k < sizeof(types) / sizeof(types[0]); k++) {
		for (i = n = 0, all = 0; i < img->count; i++) {
			if (img->records[i]->type != types[k].type)
				continue;
			all += img->records[i]->length;
			n++;
		}
		printf(",\"%s_count\":%u,\"%s_fixed\":%zu,\"%s_contents\":%zu",
		       migr_type_text(types[k].type), n,
		       migr_type_text(types[k].type), types[k].fixed,
		       migr_type_text(types[k].type),
		       n ? all / n - types[k].fixed : 0);
	}
	printf("}\n");
}

int main(int argc, char **argv)
{
	struct side moved = { .gid_index = 1 }, peer = {};
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

	while ((c = getopt(argc, argv, "n:i:p:t:sjF")) != -1) {
		if (c == 'n')
			n_qps = atoi(optarg);
		else if (c == 'i')
			moved.gid_index = atoi(optarg);
		else if (c == 'p')
			peer_gid = atoi(optarg);
		else if (c == 't')
			timeout = (uint8_t)atoi(optarg);
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
	fd = make(path, &img, single);
	start = now();
	if (!measure)
		taken(path, &img);
	wait_for(&peer, n_qps);
	took.flow = now() - start;
	n = completions(fd, &img);
	CHECK(n == (uint32_t)n_qps, "%u completions for %d messages", n, n_qps);
	CHECK(mem[MSG] == 0x77 && mem[2 * MSG - 1] == 0x77, "content");
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
