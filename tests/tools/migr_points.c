// SPDX-License-Identifier: GPL-2.0
/*
 * migr_points - a QP moves at any packet, and nobody notices
 *
 *   migr_points [-q] [-m MOVES] [-c CASE] [-t SECONDS] [-d DEVICE]
 *
 *   -q  a shorter walk: one size, and of with and without SRQ only one
 *   -m  how often, up to 8: after the first move N packets are counted anew, and so
 *       on (1)
 *   -c  these cases only: OPCODE[:SIZE[:ROLE[:SRQ[:AT[:N]]]]], as they are named
 *       when they fail; a part that is empty or missing stands for all
 *   -t  how long to wait for what must come (30)
 *
 * Needs the module with fault points: `make points`, and rxe-migr/points, say more.
 *
 * Of each case a QP sends MESSAGES messages of the opcode, and a SEND behind them,
 * to a QP of another context. One of the two is held at its N-th packet, which it
 * has sent, or sent in vain, or taken and not looked at yet, or handled; then its
 * context is stopped, dumped, destroyed, and made again at another address of the
 * device, which must have two of IPv4. The peer has to follow it, in the midst of
 * that packet: QPs here have no time-out that would mend what it has sent to the old
 * one. Those with an SRQ go from the second address to the first one, the others
 * there; if they move again, back. The way out of the device is the same for both:
 * that a peer takes another route is for tests that move from host to host.
 *
 * N goes from 1 to what the exchange does not reach; but no packet that it must have
 * may be missing. In the end both ends' memory, and every field of every completion, must be what they are
 * without a move, and both ends must send and receive again; nothing may come after
 * that. POINTS lanes are on their way at once to as many Ns, and move together.
 *
 * Exit code: 0, 1 if a case failed, 2 if there was no way to go on.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "points.h"

#define PARAMETER "/sys/module/rdma_rxe/parameters/migr_point"
#define MAX_BAD 10 /* rounds; then there is no more to learn */
#define LATE 0.05  /* s */
#define MAX_MOVES 8

enum part {
	OP,
	SIZE,
	ROLE,
	SRQ,
	AT,
	N,
	PARTS
};

const char *const role_names[2] = { "requester", "responder" };
const char *const srq_names[2] = { "rq", "srq" };
const char *const at_names[ATS] = {
	[SENT] = "sent",
	[LOST] = "lost",
	[TAKEN] = "taken",
	[HANDLED] = "handled",
};

static const uint32_t sizes[] = { 0, 1, MTU - 1, MTU, MTU + 1, 5 * MTU };

static struct rig rig;
static char *only[PARTS]; /* NULL or "": all */
static double patience = 30, slowest;
static unsigned int held, failed, bad;
/* lanes that were held once, twice, ...: of all opcodes, and of this one */
static unsigned int depth[MAX_MOVES], op_depth[MAX_MOVES];
static unsigned int shallow; /* opcodes of which none was held so often */
static int moves = 1;
static int points_fd;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* ---- failures ---- */

static void print_case(const struct points_case *c)
{
	printf("%s:%u:%s:%s", c->op->name, c->size, role_names[c->moved],
	       srq_names[c->srq]);
}

/* the first of a lane, since others follow from it */
void lane_failed(struct lane *l, const char *fmt, ...)
{
	va_list args;

	if (l->failed)
		return;
	l->failed = true;
	failed++;
	printf("FAILED ");
	print_case(l->c);
	printf(":%s:%u: ", l->at, l->n);
	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
	putchar('\n');
}

void need_failed(const char *file, int line, const char *what)
{
	const char *why = strerror(errno);

	printf("FAILED ");
	if (rig.c.op)
		print_case(&rig.c);
	printf(": %s:%d: %s (errno: %s)\n", file, line, what, why);
	exit(2);
}

/* ---- points ---- */

static bool has_all(const struct lane *l)
{
	for (int role = 0; role < 2; role++)
		for (int cq = 0; cq < 2; cq++)
			if (l->half[role].got[cq] < l->half[role].wcs[cq])
				return false;
	return true;
}

static void points_write(const char *text)
{
	NEED(write(points_fd, text, strlen(text)) == (ssize_t)strlen(text));
}

static void points_arm(struct rig *rig, struct lane *l)
{
	char text[64];

	l->held = false;
	if (has_all(l))
		return;
	snprintf(text, sizeof(text), "%u %s %u",
		 l->half[rig->c.moved].qp->qp_num, l->at, l->n);
	points_write(text);
}

/* who is held? or, after the move, was everybody who is stopped there? */
static void points_read(bool moved)
{
	char text[4096 + 1], state[16], *line, *rest = text;
	unsigned int qpn;
	ssize_t n;

	NEED((n = pread(points_fd, text, sizeof(text) - 1, 0)) >= 0);
	text[n] = 0;
	while ((line = strsep(&rest, "\n")) && *line) {
		struct lane *l = rig.lane;

		NEED(sscanf(line, "%u %*s %*u %15s", &qpn, state) == 2);
		while (l->half[rig.c.moved].qp->qp_num != qpn)
			NEED(++l < rig.lane + rig.lanes);
		if (strcmp(state, "armed"))
			l->held = true;
		if (l->held && strcmp(state, moved ? "stopped" : "held"))
			lane_failed(l, "the point is %s", state);
	}
}

/* ---- completions ---- */

static struct lane *find_lane(enum role role, uint32_t qpn)
{
	for (int i = 0; i < rig.lanes; i++)
		if (rig.lane[i].half[role].qp->qp_num == qpn)
			return &rig.lane[i];
	return NULL;
}

static void poll_all(void)
{
	struct ibv_wc wc[16];
	struct lane *l;
	int n;

	for (int role = 0; role < 2; role++)
		for (int cq = 0; cq < 2; cq++) {
			n = ibv_poll_cq(rig.end[role].cq[cq], 16, wc);
			NEED(n >= 0);
			while (n--) {
				/* in the order in which they came */
				struct ibv_wc *w = &wc[0];

				l = find_lane(role, w->qp_num);
				NEED(l);
				wc_check(l, role, cq, w);
				memmove(wc, wc + 1, (size_t)n * sizeof(*wc));
			}
		}
}

/* a packet that an exchange without a move must have, however soon all is there */
static bool must_be_held(const struct lane *l)
{
	return !l->moves && l->n <= work_packets(l);
}

static bool is_done(const struct lane *l, bool or_held)
{
	if (l->failed || (or_held && l->held))
		return true;
	return has_all(l) && !(or_held && must_be_held(l));
}

static bool all_done(bool or_held)
{
	for (int i = 0; i < rig.lanes; i++)
		if (!is_done(&rig.lane[i], or_held))
			return false;
	return true;
}

/* what would come after all is there */
static void poll_late(void)
{
	double end = now() + LATE;

	while (now() < end)
		poll_all();
}

/* all that is wanted, or, of lanes that are held, what came before */
static void wait_all(bool or_held)
{
	double end = now() + patience;

	do {
		poll_all();
		if (or_held)
			points_read(false);
	} while (!all_done(or_held) && now() < end);
	for (int i = 0; i < rig.lanes; i++) {
		struct lane *l = &rig.lane[i];

		if (is_done(l, or_held))
			continue;
		if (has_all(l))
			lane_failed(l, "there is no such packet");
		else
			lane_failed(l,
				    "completions: requester %d of %d, %d of %d;"
				    " responder %d of %d, %d of %d",
				    l->half[0].got[0], l->half[0].wcs[0],
				    l->half[0].got[1], l->half[0].wcs[1],
				    l->half[1].got[0], l->half[1].wcs[0],
				    l->half[1].got[1], l->half[1].wcs[1]);
	}
}

static void wait_binds(int n)
{
	double end = now() + patience;
	struct ibv_wc wc;

	while (n && now() < end)
		if (ibv_poll_cq(rig.end[RESPONDER].cq[SEND], 1, &wc) > 0) {
			NEED(wc.status == IBV_WC_SUCCESS);
			n--;
		}
	NEED(!n);
}

/* ---- a round: all lanes of the rig ---- */

static void for_lanes(void (*what)(struct rig *rig, struct lane *l))
{
	for (int i = 0; i < rig.lanes; i++)
		what(&rig, &rig.lane[i]);
}

/* it is at rest, and the points are forgotten */
static bool move_held(void)
{
	unsigned int n = 0;

	for (int i = 0; i < rig.lanes; i++)
		n += rig.lane[i].held;
	if (n) {
		end_move(&rig, rig.c.moved);
		points_read(true);
	}
	points_write("off");
	for (int i = 0; i < rig.lanes; i++)
		if (rig.lane[i].held) {
			depth[rig.lane[i].moves]++;
			op_depth[rig.lane[i].moves++]++;
			held++;
		}
	return n;
}

static void run_exchange(void)
{
	double start = now();

	for_lanes(points_arm);
	for_lanes(work_post);
	wait_all(true);
	for (int left = moves; left && move_held(); left--) {
		if (left > 1)
			for_lanes(points_arm);
		start = now();
		end_resume(&rig, rig.c.moved);
		wait_all(left > 1);
	}
	wait_all(false);
	if (now() - start > slowest)
		slowest = now() - start;
}

static void run_round(void)
{
	unsigned int before = failed;
	int binds = 0;

	rig_open(&rig);
	for (int i = 0; i < rig.lanes; i++)
		binds += work_bind(&rig, &rig.lane[i]);
	wait_binds(binds);
	for_lanes(work_prepare);
	run_exchange();
	for_lanes(work_prepare_last);
	for_lanes(work_post_last);
	wait_all(false);
	for_lanes(lane_check_peer);
	poll_late();
	for_lanes(lane_reset);
	poll_all();
	for_lanes(memory_check);
	rig_close(&rig);
	bad += failed != before;
}

/* ---- the walk ---- */

static bool wanted(enum part part, const char *name)
{
	return !only[part] || !*only[part] || !strcmp(only[part], name);
}

static void add_lanes(const char *at, unsigned int first)
{
	for (unsigned int n = first; n < first + POINTS; n++) {
		char name[16];

		snprintf(name, sizeof(name), "%u", n);
		if (!wanted(N, name))
			continue;
		rig.lane[rig.lanes] = (struct lane){
			.c = &rig.c, .at = at, .n = n, .index = rig.lanes
		};
		rig.lanes++;
	}
}

/* was this the way to N, and is there more of it? */
static bool goes_on(const char *at, unsigned int first)
{
	const bool one = only[N] && *only[N];

	if (one && !rig.lanes)
		return strtoul(only[N], NULL, 10) >= first + POINTS;
	for (int i = 0; i < rig.lanes; i++) {
		struct lane *l = &rig.lane[i];

		if (l->at != at)
			continue;
		if (one && !l->moves)
			lane_failed(l, "there is no such packet");
		if (l->n == first + POINTS - 1)
			return l->moves && !one;
	}
	return false;
}

static void walk_case(void)
{
	unsigned int first = 1;
	bool open[ATS], any;

	for (int at = 0; at < ATS; at++)
		open[at] = wanted(AT, at_names[at]);
	do {
		any = false;
		rig.lanes = 0;
		for (int at = 0; at < ATS; at++)
			if (open[at])
				add_lanes(at_names[at], first);
		if (rig.lanes)
			run_round();
		for (int at = 0; at < ATS; at++) {
			open[at] = open[at] && goes_on(at_names[at], first);
			any |= open[at];
		}
		first += POINTS;
	} while (any && bad < MAX_BAD);
}

/* is there such a case? */
static bool walk_size(const struct op *op, uint32_t size, bool quick)
{
	unsigned int before = held;
	double start = now();
	bool any = false;

	for (int moved = 0; moved < 2; moved++)
		for (int srq = 0; srq < 2; srq++) {
			if (!wanted(ROLE, role_names[moved]) ||
			    !wanted(SRQ, srq_names[srq]) ||
			    (quick && ((op - ops) + moved + srq) % 2) ||
			    bad >= MAX_BAD)
				continue;
			rig.c = (struct points_case){ op, size, moved, srq };
			walk_case();
			any = true;
		}
	printf("%-14s %4u bytes: %3u points in %.1f s\n", op->name, size,
	       held - before, now() - start);
	fflush(stdout);
	return any;
}

static void walk_op(const struct op *op, bool quick)
{
	static const uint32_t eight[] = { 8 }, one[] = { MTU + 1 };
	const uint32_t *size = !op->sized ? eight : quick ? one : sizes;
	size_t n = size == sizes ? sizeof(sizes) / sizeof(*sizes) : 1;
	bool any = false;
	char name[16];

	memset(op_depth, 0, sizeof(op_depth));
	for (size_t i = 0; i < n && bad < MAX_BAD; i++) {
		snprintf(name, sizeof(name), "%u", size[i]);
		if (wanted(SIZE, name))
			any |= walk_size(op, size[i], quick);
	}
	if (any && !op_depth[moves - 1] && bad < MAX_BAD) {
		printf("FAILED %s: none moved %d times\n", op->name, moves);
		shallow++;
	}
}

static struct ibv_device *find_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	for (; list && *list; list++)
		if (!strcmp(name, ibv_get_device_name(*list)))
			return *list;
	fprintf(stderr, "no device %s\n", name);
	exit(2);
}

int main(int argc, char **argv)
{
	const char *device = "rxe0";
	double start = now();
	bool quick = false;
	int c;

	while ((c = getopt(argc, argv, "qm:c:t:d:")) != -1) {
		if (c == 'q')
			quick = true;
		else if (c == 'm')
			NEED((moves = atoi(optarg)) > 0 && moves <= MAX_MOVES);
		else if (c == 'c')
			for (int i = 0; i < PARTS; i++)
				only[i] = strsep(&optarg, ":");
		else if (c == 't')
			patience = atof(optarg);
		else if (c == 'd')
			device = optarg;
		else
			return 2;
	}
	points_fd = open(PARAMETER, O_RDWR | O_CLOEXEC);
	if (points_fd < 0) {
		fprintf(stderr, "no module with fault points: %s: %s\n",
			PARAMETER, strerror(errno));
		return 2;
	}
	points_write("off");
	rig.dev = find_device(device);
	rig_find_addresses(&rig);
	for (int i = 0; i < n_ops && bad < MAX_BAD; i++)
		if (wanted(OP, ops[i].name))
			walk_op(&ops[i], quick);
	printf("%u points in %.0f s, %u failed; at most %.3f s after a move\n",
	       held, now() - start, failed, slowest);
	for (int i = 1; i < moves; i++)
		printf("%u of them moved %d times\n", depth[i], i + 1);
	if (!depth[moves - 1])
		printf("FAILED: no such case, or none moved so often\n");
	return failed || shallow || !depth[moves - 1];
}
