// SPDX-License-Identifier: GPL-2.0
/*
 * lossy_mix - traffic in both directions on QPs that may lose messages
 *
 *   lossy_mix -s [options]		server
 *   lossy_mix [options] HOST		client
 *
 *   -u       UD instead of UC
 *   -m       with UD: to every second QP go the messages to a group that it has joined,
 *            239.77.SIDE.QP (the server is side 1), whose packets the host must take
 *   -q N     QPs, 1 to 64 (1); as the client wants it, as are -u and -m
 *   -R       receive from an SRQ: each side's own affair
 *   -d DEVICE, -g GID_INDEX  (the first; the RoCEv2 GID of an IPv4 address)
 *   -l PORT  of the control connection, which is closed before the traffic (18700)
 *   -S SEED  of what is sent, as the result of another run names it; the client's
 *   -P FILE  progress, ten times a second, and the result
 *
 * Messages are SENDs, SENDs with immediate data and, with UC, RDMA WRITEs with
 * immediate data, of all lengths up to four packets (UD: one). What comes must be
 * what was sent, whole, once, and in order; but any message may be missing: "lost"
 * says how many did, "cut" of how many with UC the beginning was seen, and "least" how
 * many have come to the QP to which fewest have. No completion may be missing. A
 * window of 16 messages for each QP is answered by those that go the other way; a
 * tenth of a second without an answer, and one more is sent, after two tenths another,
 * and so on. With UD, over IPv4 only, the answer goes to where the last message came
 * from.
 *
 * On SIGTERM or SIGINT it prints `PASS {...}` or `FAIL {...}` and exits with 0 or
 * 1; 1 without these words if there was no way to go on, 2 for a wrong command line.
 * It knows nothing of migration.
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
#include "lossy.h"

#define HELLO_SECONDS 60
#define SHORT 0.0005 /* s that nothing is looked at if nothing has come */

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

/* ---- the start ---- */

/* The client says what it is like. */
static int say_hello(struct lossy *l, const char *host, const char *port)
{
	uint64_t w[4] = { l->ud, l->lanes, l->seed, l->groups };
	int fd = l->server ? conn_listen(port) : conn_connect(host, port);

	MUST(fd >= 0);
	if (!l->server) {
		MUST(!conn_send(fd, w, 4));
		return fd;
	}
	MUST(!conn_recv(fd, w, 4, HELLO_SECONDS));
	MUST(w[0] <= 1 && w[1] && w[1] <= MOST_LANES && w[3] <= w[0]);
	l->ud = w[0];
	l->lanes = (uint32_t)w[1];
	l->seed = w[2];
	l->groups = w[3];
	return fd;
}

static bool is_ipv4(const union ibv_gid *gid)
{
	static const uint8_t mapped[12] = { [10] = 0xff, 0xff };

	return !memcmp(gid->raw, mapped, sizeof(mapped));
}

/* ---- the end ---- */

static void print_totals(FILE *f, const struct lossy *l)
{
	uint64_t sent = 0, received = 0, lost = 0, cut = 0, followed = 0;
	uint64_t least = UINT64_MAX;

	for (uint32_t i = 0; i < l->lanes; i++) {
		sent += l->lane[i].done;
		received += l->lane[i].received;
		lost += l->lane[i].lost;
		cut += l->lane[i].cut;
		followed += l->lane[i].followed;
		if (l->lane[i].received < least)
			least = l->lane[i].received;
	}
	fprintf(f,
		"{\"result\":\"%s\",\"type\":\"%s\",\"qps\":%u,\"seed\":%" PRIu64
		",\"violations\":%" PRIu64 ",\"sent\":%" PRIu64
		",\"received\":%" PRIu64 ",\"lost\":%" PRIu64
		",\"cut\":%" PRIu64 ",\"followed\":%" PRIu64
		",\"least\":%" PRIu64 "}\n",
		l->verdict.count ? "FAIL" : "PASS", l->ud ? "UD" : "UC",
		l->lanes, l->seed, l->verdict.count, sent, received, lost, cut,
		followed, least);
}

static void write_file(const char *path, const struct lossy *l)
{
	char tmp[512];
	FILE *f;

	snprintf(tmp, sizeof(tmp), "%s.tmp", path);
	MUST(f = fopen(tmp, "we"));
	print_totals(f, l);
	MUST(!fclose(f) && !rename(tmp, path));
}

static int print_result(const struct lossy *l)
{
	const struct verdict *v = &l->verdict;

	for (uint64_t i = 0; i < v->count && i < VERDICT_KEPT; i++)
		fprintf(stderr, "%s\n", v->text[i]);
	printf("%s ", v->count ? "FAIL" : "PASS");
	print_totals(stdout, l);
	if (progress_file)
		write_file(progress_file, l);
	return v->count ? 1 : 0;
}

static void run(struct lossy *l)
{
	const struct timespec pause = { .tv_nsec = (long)(SHORT * 1e9) };
	double told = 0;

	while (!stopped && !verdict_fatal(&l->verdict)) {
		unsigned int n = messages_poll(l);

		for (uint32_t i = 0; i < l->lanes; i++)
			messages_send(l, &l->lane[i]);
		if (progress_file && now() - told > 0.1) {
			write_file(progress_file, l);
			told = now();
		}
		if (!n)
			nanosleep(&pause, NULL);
	}
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

static const char *parse(struct lossy *l, int argc, char **argv,
			 const char **host)
{
	const char *port = "18700";
	int c;

	while ((c = getopt(argc, argv, "sumq:Rd:g:l:P:S:")) != -1) {
		if (c == 's')
			l->server = true;
		else if (c == 'u')
			l->ud = true;
		else if (c == 'm')
			l->groups = true;
		else if (c == 'q')
			l->lanes = (uint32_t)number(optarg, 1, MOST_LANES);
		else if (c == 'R')
			l->srq_wanted = true;
		else if (c == 'd')
			l->vo.device = optarg;
		else if (c == 'g')
			l->vo.gid_index = number(optarg, 0, 255);
		else if (c == 'l')
			port = optarg;
		else if (c == 'S')
			l->seed = (uint32_t)number(optarg, 1, INT_MAX);
		else if (c == 'P')
			progress_file = optarg;
		else
			exit(2);
	}
	*host = argv[optind];
	if (l->server == !!*host || argc - optind > 1 ||
	    (l->groups && !l->ud)) {
		fputs("usage: lossy_mix -s [options] | [options] HOST\n",
		      stderr);
		exit(2);
	}
	return port;
}

int main(int argc, char **argv)
{
	struct lossy l = { .verdict = VERDICT_INIT,
			   .lanes = 1,
			   .vo = { .gid_index = -1 } };
	const struct sigaction action = { .sa_handler = on_signal };
	const char *host, *port = parse(&l, argc, argv, &host);
	int fd, code;

	while (!l.seed) {
		MUST(getrandom(&l.seed, sizeof(l.seed), 0) == sizeof(l.seed));
		l.seed &= INT_MAX; /* as -S has it */
	}
	MUST(!verbs_open(&l.v, &l.vo));
	fd = say_hello(&l, host, port);
	MUST(!l.ud || is_ipv4(&l.v.gid));
	lanes_open(&l);
	lanes_connect(&l, fd);
	close(fd);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	run(&l);
	lossy_end(&l);
	lanes_close(&l);
	code = print_result(&l);
	lanes_free(&l);
	return code;
}
