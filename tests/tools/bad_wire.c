// SPDX-License-Identifier: GPL-2.0
/*
 * A bad line between two network devices, for hosts without netem. Frames come
 * and go through packet sockets, with what the kernel still has to do for them
 * (checksums, segments).
 */

#define _GNU_SOURCE /* ppoll */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "impair.h"
#include "link.h"

#define FRAME_MAX (sizeof(struct virtio_net_hdr) + 65536 + 128)
#define WAITING_MAX 65536 /* delayed frames */
#define SOCKET_BUFFER (32 << 20)
#define BURST 64

static const char help[] =
	"Usage: bad_wire DEVICE DEVICE [--one-way] SPEC...\n"
	"Forwards frames between two network devices, both ways, as a bad line\n"
	"would. SPEC is what tc-netem(8) calls so, namely\n"
	"\n"
	"  loss P%             that many are lost\n"
	"  duplicate P%        that many come twice\n"
	"  delay TIME [TIME]   later, and how much more or less (us, ms, s)\n"
	"  reorder P%          that many are not delayed and overtake others\n"
	"  rate RATE           no more than so many bits a second (20M, 2.5Gbit),\n"
	"                      each way; FCS, preamble and gap count\n"
	"  seed N              of the random numbers (default: another each time)\n"
	"\n"
	"With --one-way only frames from the first one; the others just pass.\n"
	"\n"
	"Says \"ready\" when it forwards, and with SIGTERM or SIGINT what it did,\n"
	"as JSON, where DEVICE is where the frames came from: forwarded (all that\n"
	"left, copies too), lost, duplicated, reordered (left behind one that had\n"
	"come later), and what ought to be none: missed (not got from the kernel)\n"
	"and refused (not taken by the other device, or too many wait).\n";

struct side {
	const char *name;
	const struct impair_spec *spec; /* of frames that came in here */
	struct link link;
	int fd;
	uint64_t seq, last_out; /* numbers of frames that came in here */
	uint64_t rng;
	uint64_t forwarded, lost, duplicated, reordered, missed, refused;
};

struct waiting {
	uint64_t due, order; /* order: first come, first served */
	uint64_t seq;
	struct side *from;
	size_t len;
	uint8_t frame[];
};

static const struct impair_spec as_it_is;
static struct impair_spec spec;
static struct side sides[2];
static struct waiting *heap[WAITING_MAX];
static size_t waiting;
static volatile sig_atomic_t stop;

static void on_signal(int sig)
{
	(void)sig;
	stop = 1;
}

static void die(const char *what)
{
	fprintf(stderr, "bad_wire: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

/* ---- frames that wait ---- */

static bool before(const struct waiting *a, const struct waiting *b)
{
	return a->due < b->due || (a->due == b->due && a->order < b->order);
}

static void push(struct waiting *w)
{
	size_t i = waiting++;

	for (; i && before(w, heap[(i - 1) / 2]); i = (i - 1) / 2)
		heap[i] = heap[(i - 1) / 2];
	heap[i] = w;
}

static struct waiting *pop(void)
{
	struct waiting *first = heap[0], *last = heap[--waiting];
	size_t i = 0, k;

	while ((k = 2 * i + 1) < waiting) {
		if (k + 1 < waiting && before(heap[k + 1], heap[k]))
			k++;
		if (!before(heap[k], last))
			break;
		heap[i] = heap[k];
		i = k;
	}
	heap[i] = last;
	return first;
}

/* ---- from one side to the other ---- */

static void forward(struct side *from, uint64_t seq, const void *frame,
		    size_t len)
{
	const struct side *to = from == sides ? sides + 1 : sides;

	if (send(to->fd, frame, len, MSG_DONTWAIT) != (ssize_t)len) {
		from->refused++;
		return;
	}
	from->forwarded++;
	if (seq < from->last_out)
		from->reordered++;
	else
		from->last_out = seq;
}

static void postpone(struct side *from, uint64_t due, const void *frame,
		     size_t len)
{
	static uint64_t order;
	struct waiting *w = NULL;

	if (waiting < WAITING_MAX)
		w = malloc(sizeof(*w) + len);
	if (!w) {
		from->refused++;
		return;
	}
	*w = (struct waiting){ .due = due,
			       .order = order++,
			       .seq = from->seq,
			       .from = from,
			       .len = len };
	memcpy(w->frame, frame, len);
	push(w);
}

/* ...the link there, behind those that came before */
static uint64_t leaves(struct side *from, const uint8_t *packet, size_t len)
{
	struct virtio_net_hdr v;

	memcpy(&v, packet, sizeof(v));
	return link_send(&from->link, now(),
			 impair_bytes(&v, packet + sizeof(v), len - sizeof(v)));
}

static void receive(struct side *from)
{
	static uint8_t frame[FRAME_MAX];
	struct impair_fate fate;
	uint64_t due;
	ssize_t len;
	int n, i;

	for (n = 0; n < BURST; n++) {
		len = recv(from->fd, frame, sizeof(frame),
			   MSG_DONTWAIT | MSG_TRUNC);
		if (len < 0)
			break; /* nothing, or the device is down for now */
		if ((size_t)len > sizeof(frame)) {
			from->missed++;
			continue;
		}
		from->seq++;
		fate = impair_next(from->spec, &from->rng);
		from->lost += !fate.count;
		from->duplicated += fate.count == 2;
		for (i = 0; i < fate.count; i++) {
			due = fate.delay[i];
			if (from->link.rate)
				due += leaves(from, frame, len);
			else if (due)
				due += now();
			if (due)
				postpone(from, due, frame, len);
			else
				forward(from, from->seq, frame, len);
		}
	}
}

static void deliver_due(void)
{
	uint64_t t = now();

	while (waiting && heap[0]->due <= t) {
		struct waiting *w = pop();

		forward(w->from, w->seq, w->frame, w->len);
		free(w);
	}
}

static void run(void)
{
	struct pollfd fds[2] = {
		{ .fd = sides[0].fd, .events = POLLIN },
		{ .fd = sides[1].fd, .events = POLLIN },
	};
	struct timespec wait;
	sigset_t none;
	uint64_t t, due;
	int i;

	sigemptyset(&none);
	while (!stop) {
		t = now();
		due = waiting ? heap[0]->due : t + 1000000000;
		due = due > t ? due - t : 0;
		wait = (struct timespec){ due / 1000000000, due % 1000000000 };
		if (ppoll(fds, 2, &wait, &none) < 0 && errno != EINTR)
			die("poll");
		for (i = 0; i < 2; i++)
			receive(&sides[i]);
		deliver_due();
	}
}

/* ---- the ends ---- */

static void set(const struct side *s, int level, int name, const void *value,
		socklen_t len)
{
	if (setsockopt(s->fd, level, name, value, len))
		die(s->name);
}

static void open_side(struct side *s, const char *name,
		      const struct impair_spec *line, uint64_t seed)
{
	struct sockaddr_ll addr = { .sll_family = AF_PACKET,
				    .sll_protocol = htons(ETH_P_ALL) };
	struct packet_mreq promisc = { .mr_type = PACKET_MR_PROMISC };
	int one = 1, buffer = SOCKET_BUFFER;

	s->name = name;
	s->spec = line;
	s->link.rate = line->rate;
	s->rng = seed;
	addr.sll_ifindex = promisc.mr_ifindex = if_nametoindex(name);
	if (!addr.sll_ifindex)
		die(name);
	s->fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (s->fd < 0)
		die("packet socket");
	set(s, SOL_PACKET, PACKET_VNET_HDR, &one, sizeof(one));
	set(s, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof(one));
	set(s, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &promisc, sizeof(promisc));
	set(s, SOL_SOCKET, SO_RCVBUFFORCE, &buffer, sizeof(buffer));
	set(s, SOL_SOCKET, SO_SNDBUFFORCE, &buffer, sizeof(buffer));
	if (bind(s->fd, (struct sockaddr *)&addr, sizeof(addr)))
		die(name);
}

static void print_side(struct side *s)
{
	struct tpacket_stats stats = { 0 };
	socklen_t len = sizeof(stats);

	if (getsockopt(s->fd, SOL_PACKET, PACKET_STATISTICS, &stats, &len))
		die(s->name);
	printf(", \"%s\": {\"forwarded\": %" PRIu64 ", \"lost\": %" PRIu64
	       ", \"duplicated\": %" PRIu64 ", \"reordered\": %" PRIu64
	       ", \"missed\": %" PRIu64 ", \"refused\": %" PRIu64 "}",
	       s->name, s->forwarded, s->lost, s->duplicated, s->reordered,
	       s->missed + stats.tp_drops, s->refused);
}

int main(int argc, char **argv)
{
	struct sigaction sa = { .sa_handler = on_signal };
	bool one_way = argc > 3 && !strcmp(argv[3], "--one-way");
	const char *wrong;
	sigset_t ends;

	if (argc == 2 &&
	    (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))) {
		fputs(help, stdout);
		return 0;
	}
	if (argc < 4 + one_way) {
		fputs(help, stderr);
		return 2;
	}
	if (getrandom(&spec.seed, sizeof(spec.seed), 0) != sizeof(spec.seed))
		die("seed");
	wrong = impair_parse(&spec, argv + 3 + one_way);
	if (wrong) {
		fprintf(stderr, "bad_wire: not understood: %s\n", wrong);
		return 2;
	}
	/* Noticed while it waits, and only then. */
	sigemptyset(&ends);
	sigaddset(&ends, SIGTERM);
	sigaddset(&ends, SIGINT);
	sigprocmask(SIG_BLOCK, &ends, NULL);
	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGINT, &sa, NULL);
	open_side(&sides[0], argv[1], &spec, spec.seed);
	open_side(&sides[1], argv[2], one_way ? &as_it_is : &spec, ~spec.seed);
	/* A frame in its time, and not up to 50 us later */
	prctl(PR_SET_TIMERSLACK, 1UL);
	fputs("ready\n", stderr);
	run();
	printf("{\"seed\": %" PRIu64, spec.seed);
	print_side(&sides[0]);
	print_side(&sides[1]);
	puts("}");
	return 0;
}
