// SPDX-License-Identifier: GPL-2.0
/*
 * blackout_load -s [-m MIB] [-n] [-d DEVICE] [-x GID_INDEX] [-l PORT]
 * blackout_load [-q QPS] [-w] [-d DEVICE] [-x GID_INDEX] [-l PORT] -O FILE HOST
 *
 * The server has so many MiB of memory, registered and in huge pages, and does nothing. With
 * -n it has destroyed all objects again, and closed the device: the floor, which has the same
 * memory and libraries. Its partner writes to it by RDMA, 8 bytes each 5 ms, by
 * one queue pair after the other, and by all that are idle when nothing has come to an end for
 * 100 ms; with -w all of that memory, over and over, as fast as it goes. It writes to the file
 * what it has counted, as JSON, when it begins and by each SIGUSR2: the largest gap between
 * completions, how long from its begin until all queue pairs had gone on, messages. By SIGUSR1 it
 * counts anew. SIGTERM ends it, and with it the server.
 */
#include <arpa/inet.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#include "check.h"
#include "conn.h"
#include "connect.h"
#include "gaps.h"

enum {
	MOST_QPS = 1024,
	SMALL = 8,
	LARGE = 65536,
	PACE_NS =
		5000000, /* its timer, too, takes time from what is measured */
	STILL_NS = 100000000,
	ANSWER_S = 300,
	HUGE_PAGE = 2 << 20,
};

static struct {
	bool server, bare, writes;
	unsigned int qps;
	size_t bytes;
	const char *device, *port, *file, *host;
	int gid_index;
} o = { .qps = 1,
	.bytes = 64 << 20,
	.device = "rxe0",
	.port = "18700",
	.gid_index = 1 };

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_comp_channel *channel;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static struct ibv_qp *qp[MOST_QPS];
static union ibv_gid gid;
static char *memory;

/* the other end: GID, address, key, size, QPNs */
enum {
	W_GID_HIGH,
	W_GID_LOW,
	W_ADDR,
	W_RKEY,
	W_BYTES,
	W_QPS,
	W_QPN
};
static uint64_t mine[W_QPN + MOST_QPS], theirs[W_QPN + MOST_QPS];

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* ---- verbs ------------------------------------------------------------------- */

/* all of it is there, and no two pages are alike */
static void make_memory(void)
{
	MUST(!posix_memalign((void **)&memory, HUGE_PAGE, o.bytes));
	madvise(memory, o.bytes, MADV_HUGEPAGE);
	for (size_t i = 0; i < o.bytes; i += sizeof(uint64_t))
		*(uint64_t *)(memory + i) = i * 0x9e3779b97f4a7c15;
}

static void open_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	MUST(list);
	for (int i = 0; list[i] && !ctx; i++)
		if (!strcmp(o.device, ibv_get_device_name(list[i])))
			MUST(ctx = ibv_open_device(list[i]));
	MUST(ctx);
	ibv_free_device_list(list);
	MUST(!ibv_query_gid(ctx, 1, o.gid_index, &gid));
	MUST(pd = ibv_alloc_pd(ctx));
	MUST(channel = ibv_create_comp_channel(ctx));
	MUST(cq = ibv_create_cq(ctx, 2 * MOST_QPS, NULL, channel, 0));
	MUST(mr = ibv_reg_mr(pd, memory, o.bytes,
			     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE));
}

static void make_qps(unsigned int n)
{
	struct ibv_qp_init_attr a = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { 2, 1, 1, 1, 0 },
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};

	for (unsigned int i = 0; i < n; i++)
		MUST(qp[i] = ibv_create_qp(pd, &a));
}

static void destroy_all(unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		MUST(!ibv_destroy_qp(qp[i]));
	MUST(!ibv_dereg_mr(mr));
	MUST(!ibv_destroy_cq(cq));
	MUST(!ibv_destroy_comp_channel(channel));
	MUST(!ibv_dealloc_pd(pd));
	MUST(!ibv_close_device(ctx));
}

static void connect_qps(unsigned int n)
{
	union ibv_gid peer;
	struct ibv_qp_attr a;

	memcpy(peer.raw, theirs + W_GID_HIGH, sizeof(peer.raw));
	for (unsigned int i = 0; i < n; i++) {
		a = rc_attr(&peer, o.gid_index, (uint32_t)theirs[W_QPN + i]);
		a.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
		a.timeout = 18;
		a.retry_cnt = 7;
		MUST(!rc_to_rtr(qp[i], &a) && !rc_to_rts(qp[i], &a));
	}
}

static void describe(unsigned int n)
{
	memcpy(mine + W_GID_HIGH, gid.raw, sizeof(gid.raw));
	mine[W_ADDR] = (uintptr_t)memory;
	mine[W_RKEY] = mr ? mr->rkey : 0;
	mine[W_BYTES] = o.bytes;
	mine[W_QPS] = n;
	for (unsigned int i = 0; i < n; i++)
		mine[W_QPN + i] = qp[i]->qp_num;
}

/* ---- the server ---------------------------------------------------------------- */

static int serve(void)
{
	uint64_t n = 0;
	int fd;

	make_memory();
	fd = conn_listen(o.port);
	if (fd < 0 || conn_recv(fd, &n, 1, 0) || n > MOST_QPS)
		return 1;
	open_device();
	make_qps((unsigned int)n);
	describe((unsigned int)n);
	if (o.bare) {
		destroy_all((unsigned int)n);
		mine[W_QPS] = 0;
	}
	if (conn_send(fd, mine, W_QPN + n))
		return 1;
	if (!o.bare) {
		if (conn_recv(fd, theirs, W_QPN + n, ANSWER_S))
			return 1;
		connect_qps((unsigned int)n);
		if (conn_send(fd, &n, 1))
			return 1;
	}
	/* the end of it is that of the partner */
	while (read(fd, &n, sizeof(n)) > 0)
		;
	return 0;
}

/* ---- the partner ---------------------------------------------------------------- */

static volatile sig_atomic_t begins, tells, ends;
static sigset_t none;

static void on_signal(int sig)
{
	if (sig == SIGUSR1)
		begins = 1;
	else if (sig == SIGUSR2)
		tells = 1;
	else
		ends = 1;
}

static uint64_t written; /* where the next large one goes */

static void post(unsigned int i)
{
	size_t bytes = o.writes ? LARGE : SMALL;
	struct ibv_sge sge = { (uintptr_t)memory, (uint32_t)bytes, mr->lkey };
	struct ibv_send_wr wr = {
		.wr_id = i,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
	}, *bad;

	wr.wr.rdma.rkey = (uint32_t)theirs[W_RKEY];
	wr.wr.rdma.remote_addr =
		theirs[W_ADDR] + (o.writes ? written : i * SMALL);
	MUST(!ibv_post_send(qp[i], &wr, &bad));
	written += LARGE;
	if (written + LARGE > theirs[W_BYTES])
		written = 0;
}

static void tell(const struct gaps *g)
{
	uint64_t now = now_ns();
	char new[256];
	FILE *f;

	snprintf(new, sizeof(new), "%s.new", o.file);
	MUST(f = fopen(new, "w"));
	fprintf(f,
		"{\"messages\":%llu,\"bytes\":%llu,\"gap_ms\":%.1f,\"all_ms\":%.1f}\n",
		(unsigned long long)g->messages,
		(unsigned long long)g->messages * (o.writes ? LARGE : SMALL),
		gaps_ms(g, now), gaps_all_ms(g));
	MUST(!fclose(f) && !rename(new, o.file));
}

static void reap(struct gaps *g, bool *busy)
{
	struct ibv_wc wc;
	struct ibv_cq *of;
	void *user;
	int n;

	MUST(!ibv_get_cq_event(channel, &of, &user));
	ibv_ack_cq_events(cq, 1);
	MUST(!ibv_req_notify_cq(cq, 0));
	while ((n = ibv_poll_cq(cq, 1, &wc)) == 1) {
		if (wc.status != IBV_WC_SUCCESS)
			fprintf(stderr, "%s\n", ibv_wc_status_str(wc.status));
		MUST(wc.status == IBV_WC_SUCCESS);
		gaps_completed(g, (unsigned int)wc.wr_id, now_ns());
		busy[wc.wr_id] = false;
		if (o.writes) {
			post((unsigned int)wc.wr_id);
			busy[wc.wr_id] = true;
		}
	}
	MUST(!n);
}

static void use(unsigned int i, bool *busy)
{
	if (busy[i])
		return;
	post(i);
	busy[i] = true;
}

/* One at a time, or all: each of them is to be seen to go on. */
static void write_small(bool all, bool *busy)
{
	static unsigned int next;

	for (unsigned int i = 0; all && i < o.qps; i++)
		use(i, busy);
	use(next, busy);
	next = (next + 1) % o.qps;
}

static void flow(struct gaps *g, bool *busy)
{
	struct pollfd p = { .fd = channel->fd, .events = POLLIN };
	struct timespec pace = { .tv_nsec = PACE_NS };
	uint64_t now, next = 0;

	MUST(!ibv_req_notify_cq(cq, 0));
	for (unsigned int i = 0; o.writes && i < o.qps; i++)
		use(i, busy);
	tell(g);
	while (!ends) {
		now = now_ns();
		if (!o.writes && now >= next) {
			write_small(now - g->last > STILL_NS, busy);
			next = now + PACE_NS;
		}
		if (ppoll(&p, 1, o.writes ? NULL : &pace, &none) > 0)
			reap(g, busy);
		if (begins) {
			begins = 0;
			gaps_begin(g, now_ns());
		}
		if (tells) {
			tells = 0;
			tell(g);
		}
	}
}

static int write_to(void)
{
	static const struct timespec pace = { .tv_nsec = PACE_NS };
	static bool busy[MOST_QPS];
	uint64_t n = o.qps;
	struct gaps g;
	sigset_t held;
	int fd;

	sigemptyset(&none);
	sigfillset(&held);
	sigprocmask(SIG_SETMASK, &held, NULL);
	signal(SIGUSR1, on_signal);
	signal(SIGUSR2, on_signal);
	signal(SIGTERM, on_signal);
	make_memory();
	MUST(gaps_init(&g, o.qps));
	gaps_begin(&g, now_ns());
	fd = conn_connect(o.host, o.port);
	if (fd < 0 || conn_send(fd, &n, 1) ||
	    conn_recv(fd, theirs, W_QPN + n, ANSWER_S))
		return 1;
	if (!theirs[W_QPS]) { /* there is nothing to write to, but time passes alike */
		tell(&g);
		while (!ends)
			ppoll(NULL, 0, &pace, &none);
		return 0;
	}
	open_device();
	make_qps(o.qps);
	describe(o.qps);
	connect_qps(o.qps);
	if (conn_send(fd, mine, W_QPN + n) || conn_recv(fd, &n, 1, ANSWER_S))
		return 1;
	gaps_begin(&g, now_ns());
	flow(&g, busy);
	gaps_free(&g);
	return 0;
}

/* ---- the command line -------------------------------------------------------------- */

static int usage(void)
{
	fputs("usage: blackout_load -s [-m MIB] [-n] [-d DEVICE] [-x GID_INDEX] [-l PORT]\n"
	      "       blackout_load [-q QPS] [-w] [-d DEVICE] [-x GID_INDEX] [-l PORT]\n"
	      "                     -O FILE HOST\n",
	      stderr);
	return 2;
}

static bool number(const char *s, unsigned long min, unsigned long max,
		   unsigned long *n)
{
	char *end;

	*n = strtoul(s, &end, 10);
	return *s && !*end && *n >= min && *n <= max;
}

int main(int argc, char **argv)
{
	unsigned long n;
	bool ok = true;
	int c;

	while ((c = getopt(argc, argv, "snwm:q:d:x:l:O:")) != -1)
		switch (c) {
		case 's':
			o.server = true;
			break;
		case 'n':
			o.bare = true;
			break;
		case 'w':
			o.writes = true;
			break;
		case 'm':
			ok &= number(optarg, 1, 65536, &n);
			o.bytes = n << 20;
			break;
		case 'q':
			ok &= number(optarg, 1, MOST_QPS, &n);
			o.qps = (unsigned int)n;
			break;
		case 'd':
			o.device = optarg;
			break;
		case 'x':
			ok &= number(optarg, 0, 255, &n);
			o.gid_index = (int)n;
			break;
		case 'l':
			o.port = optarg;
			break;
		case 'O':
			o.file = optarg;
			break;
		default:
			return usage();
		}
	o.host = argv[optind];
	if (!ok || o.server == !!o.host || argc - optind > 1 ||
	    (!o.server && !o.file))
		return usage();
	if (o.server)
		return serve();
	o.bytes = LARGE;
	return write_to();
}
