// SPDX-License-Identifier: GPL-2.0
/*
 * at-partner PARTNER OLD NEW SLOTS < CAPTURE
 *
 * What a move looked like from the partner, by protocol or by layer: after the latter
 * its QPs have other numbers. CAPTURE is a pcapng of the fabric, the others are the
 * IPv4 addresses of its host and of those between which the other end has moved.
 * NAME=VALUE lines go to standard output, in ms from the last packet that it got of the
 * old host: until the first one of the new host, and until each QP has had one; and for
 * the protocol when the first RESUME came. And how many bits a second there were in the
 * second before that packet, and in the one after all have gone on. To the file SLOTS goes a line of numbers:
 * how many ms a slot has, how many slots lie before that last packet, and the bytes on
 * the wire of each, from a second before to a second after all go on.
 */
#include "timeline.h"

#include <arpa/inet.h>
#include <stdlib.h>

#define SLOT_MS 5
#define AROUND_NS 1000000000ull

static void die(const char *what, const char *which)
{
	fprintf(stderr, "at-partner: %s%s\n", what, which);
	exit(1);
}

static uint64_t addr(const char *s)
{
	struct in_addr in;

	if (inet_pton(AF_INET, s, &in) != 1)
		die("no IPv4 address: ", s);
	return ntohl(in.s_addr);
}

struct move {
	uint64_t stop, first, all;
	unsigned int qps;
};

static struct move move_of(const struct flow *f)
{
	struct move m = { .first = UINT64_MAX };

	for (unsigned int i = 0; i < f->qps; i++) {
		const struct qp *qp = &f->qp[i];

		if (qp->last_old > m.stop)
			m.stop = qp->last_old;
		if (!qp->first_new)
			continue;
		m.qps++;
		if (qp->first_new < m.first)
			m.first = qp->first_new;
		if (qp->first_new > m.all)
			m.all = qp->first_new;
	}
	if (!m.stop)
		die("the partner had no packet of the old host", "");
	if (!m.qps)
		die("the partner had no packet of the new host", "");
	if (m.first < m.stop)
		die("the old host still sent when the new one did", "");
	return m;
}

static double ms(uint64_t from, uint64_t to)
{
	return ((double)to - (double)from) / 1e6;
}

static void write_slots(const struct flow *f, const struct move *m,
			const char *name)
{
	unsigned int stop = (unsigned int)((m->stop - f->begin) / f->slot_ns);
	unsigned int all = (unsigned int)((m->all - f->begin) / f->slot_ns);
	unsigned int around = (unsigned int)(AROUND_NS / f->slot_ns);
	unsigned int from = stop > around ? stop - around : 0;
	FILE *out = fopen(name, "w");

	if (!out)
		die("cannot write ", name);
	fprintf(out, "%d %u", SLOT_MS, stop - from);
	for (unsigned int i = from; i < f->slots && i <= all + around; i++)
		fprintf(out, " %llu",
			(unsigned long long)(f->slot[OLD][i] +
					     f->slot[NEW][i]));
	fputc('\n', out);
	if (fclose(out))
		die("cannot write ", name);
}

int main(int argc, char **argv)
{
	static struct flow f = { .slot_ns = SLOT_MS * 1000000 };
	struct move m;

	if (argc != 5) {
		fputs("usage: at-partner PARTNER OLD NEW SLOTS < CAPTURE\n",
		      stderr);
		return 2;
	}
	f.partner = addr(argv[1]);
	f.host[OLD] = addr(argv[2]);
	f.host[NEW] = addr(argv[3]);
	if (flow_read(&f, stdin))
		die("cannot read this capture", "");
	if (f.lost)
		die("the capture is not whole", "");
	m = move_of(&f);
	printf("qps=%u\nfirst_ms=%.1f\nall_ms=%.1f\n", m.qps,
	       ms(m.stop, m.first), ms(m.stop, m.all));
	if (f.first_resume)
		printf("resume_ms=%.1f\n", ms(m.stop, f.first_resume));
	printf("before_bits_per_s=%.0f\nafter_bits_per_s=%.0f\n",
	       8 * flow_rate(&f, OLD, m.stop - AROUND_NS, m.stop),
	       8 * flow_rate(&f, NEW, m.all, m.all + AROUND_NS));
	write_slots(&f, &m, argv[4]);
	return 0;
}
