// SPDX-License-Identifier: GPL-2.0
/*
 * phase_mix - RC QPs that go through all their states, again and again
 *
 *   phase_mix -s [options]		server
 *   phase_mix [options] HOST		client
 *
 *   -q N     lanes, each a QP with a CQ, an MR and a window of type 1 (12); the
 *            client's word
 *   -d DEVICE, -g GID_INDEX  (the first; the RoCEv2 GID of an IPv4 address)
 *   -l PORT  of the control connection, which is used all the time (18800)
 *   -P FILE  progress, each round, and the result
 *
 * The two ends go from round to round together; in each a lane goes to its next
 * phase: RESET, INIT, RTR, RTS, SQD, RTS again, ERR with what was flushed in the CQ,
 * and without (phases.h). The first eight lanes are all in another one. So whenever an
 * end is stopped there is a QP in each state, with all that belongs to it: receives that
 * wait, sends that wait, unread events, unpolled flushes, a bound window. Each
 * completion must come once, in order, in its phase, and say what it should; each byte is
 * looked at, and each attribute. A third of the CQs are extended, and a third have room
 * for one of the flushed requests alone: the other one is an event. All are resized in
 * each life. The memory is private, shared, a memfd, POSIX or SysV shared memory, or private pages
 * of a file.
 *
 * Each end needs an address for RDMA that it keeps when it moves: connections are made
 * all the time. It knows nothing of migration.
 *
 * On SIGTERM or SIGINT of one end both print `PASS {...}` or `FAIL {...}` and exit with
 * 0 or 1; 1 without these words if there was no way to go on, 2 for a wrong command line.
 */
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "conn.h"
#include "phases.h"

#define HELLO_SECONDS 60
#define LANES 12
#define STOP (UINT64_C(1) << 63)

static volatile sig_atomic_t stopped;
static const char *progress_file;

double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void on_signal(int sig)
{
	(void)sig;
	stopped = 1;
}

static int say_hello(struct phases *p, const char *host, const char *port)
{
	uint64_t w[2] = { p->lanes, p->seed };
	int fd = p->server ? conn_listen(port) : conn_connect(host, port);

	MUST(fd >= 0);
	if (!p->server) {
		MUST(!conn_send(fd, w, 2));
		return fd;
	}
	MUST(!conn_recv(fd, w, 2, HELLO_SECONDS));
	MUST(w[0] && w[0] <= MOST_LANES);
	p->lanes = (uint32_t)w[0];
	p->seed = w[1];
	return fd;
}

static void print_totals(FILE *f, const struct phases *p)
{
	fprintf(f,
		"{\"result\":\"%s\",\"lanes\":%u,\"seed\":%" PRIu64
		",\"violations\":%" PRIu64 ",\"rounds\":%" PRIu64
		",\"lives\":%" PRIu64 ",\"overruns\":%" PRIu64 "}\n",
		p->verdict.count ? "FAIL" : "PASS", p->lanes, p->seed,
		p->verdict.count, p->rounds, p->lives, p->overruns);
}

static void write_progress(const struct phases *p)
{
	char tmp[512];
	FILE *f;

	if (!progress_file)
		return;
	snprintf(tmp, sizeof(tmp), "%s.tmp", progress_file);
	MUST(f = fopen(tmp, "we"));
	print_totals(f, p);
	MUST(!fclose(f) && !rename(tmp, progress_file));
}

/*
 * Both are as far; each learns the keys of the other's windows. False if one of them
 * wants to end. However long the other is away, it comes back.
 */
static bool meet(struct phases *p, int fd)
{
	uint64_t mine[1 + MOST_LANES] = { p->rounds | (stopped ? STOP : 0) };
	uint64_t other[1 + MOST_LANES];

	for (uint32_t i = 0; i < p->lanes; i++)
		mine[1 + i] = p->lane[i].mw->rkey;
	MUST(!conn_send(fd, mine, 1 + p->lanes) &&
	     !conn_recv(fd, other, 1 + p->lanes, 0));
	MUST((other[0] & ~STOP) == p->rounds);
	for (uint32_t i = 0; i < p->lanes; i++)
		p->lane[i].peer_rkey = (uint32_t)other[1 + i];
	return !((mine[0] | other[0]) & STOP);
}

static void run(struct phases *p, int fd)
{
	while (meet(p, fd)) {
		for (uint32_t i = 0; i < p->lanes; i++)
			/* one after the other they begin with RESET */
			if (p->lane[i].life || (p->rounds + i) % PHASES == 0)
				lane_next(p, &p->lane[i]);
		if (verdict_fatal(&p->verdict))
			return;
		p->rounds++;
		write_progress(p);
	}
}

static int print_result(const struct phases *p)
{
	const struct verdict *v = &p->verdict;

	for (uint64_t i = 0; i < v->count && i < VERDICT_KEPT; i++)
		fprintf(stderr, "%s\n", v->text[i]);
	printf("%s ", v->count ? "FAIL" : "PASS");
	print_totals(stdout, p);
	write_progress(p);
	return v->count ? 1 : 0;
}

static int number(const char *s, int min, int max)
{
	char *end;
	long n = strtol(s, &end, 0);

	if (end == s || *end || n < min || n > max) {
		fprintf(stderr, "%s: expected %d to %d\n", s, min, max);
		exit(2);
	}
	return (int)n;
}

static const char *parse(struct phases *p, int argc, char **argv,
			 const char **host)
{
	const char *port = "18800";
	int c;

	while ((c = getopt(argc, argv, "sq:d:g:l:P:")) != -1) {
		if (c == 's')
			p->server = true;
		else if (c == 'q')
			p->lanes = (uint32_t)number(optarg, 1, MOST_LANES);
		else if (c == 'd')
			p->vo.device = optarg;
		else if (c == 'g')
			p->vo.gid_index = number(optarg, 0, 255);
		else if (c == 'l')
			port = optarg;
		else if (c == 'P')
			progress_file = optarg;
		else
			exit(2);
	}
	*host = argv[optind];
	if (p->server == !!*host || argc - optind > 1) {
		fputs("usage: phase_mix -s [options] | [options] HOST\n",
		      stderr);
		exit(2);
	}
	return port;
}

int main(int argc, char **argv)
{
	static struct phases p = { .verdict = VERDICT_INIT,
				   .lanes = LANES,
				   .vo = { .gid_index = -1 } };
	const struct sigaction action = { .sa_handler = on_signal };
	const char *host, *port = parse(&p, argc, argv, &host);
	int fd;

	MUST(getrandom(&p.seed, sizeof(p.seed), 0) == sizeof(p.seed));
	p.seed &= INT_MAX;
	for (int i = 0; i < MOST_LANES; i++)
		p.lane[i].phase = POLLED;
	MUST(!verbs_open(&p.v, &p.vo));
	fd = say_hello(&p, host, port);
	lanes_open(&p);
	lanes_hello(&p, fd);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	run(&p, fd);
	close(fd);
	lanes_close(&p);
	return print_result(&p);
}
