// SPDX-License-Identifier: GPL-2.0
/*
 * timeline: what a migration looked like from its partner.
 *
 *	timeline [OPTION]... PARTNER OLD NEW <CAPTURE
 *
 * CAPTURE is a pcapng of the fabric, PARTNER, OLD and NEW are the IPv4
 * addresses of the host that stays and of those between which the other end
 * moves; or, where that takes its IPv4 address along, their MAC addresses.
 * NAME=VALUE lines go to stdout; packets_lost_by_capture is missing if the
 * capture does not say so.
 *
 *	-s FILE			draw the throughput over time into an SVG file
 *	-t TITLE		its title
 *	-n OLD,NEW		names of the two hosts
 *	-p NAME,FROM,TO		mark a time, in seconds since 1970 (repeat)
 *	-r			the QPs were replaced: those that the partner has with
 *				the new host are others, and there is no protocol
 */
#include "timeline.h"

#include <arpa/inet.h>
#include <netinet/ether.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_SLOTS 500

static void die(const char *what, const char *which)
{
	fprintf(stderr, "timeline: %s%s%s\n", what, *which ? ": " : "", which);
	exit(1);
}

static uint64_t addr(const char *s, bool mac)
{
	struct ether_addr eth;
	struct in_addr in;
	uint64_t v = 0;

	if (mac) {
		if (!ether_aton_r(s, &eth))
			die("no MAC address", s);
		for (int i = 0; i < ETH_ALEN; i++)
			v = v << 8 | eth.ether_addr_octet[i];
		return v;
	}
	if (inet_pton(AF_INET, s, &in) != 1)
		die("no IPv4 address", s);
	return ntohl(in.s_addr);
}

static struct phase phase_of(const char *s)
{
	struct phase p;
	double from, to;

	if (sscanf(s, "%31[^,],%lf,%lf", p.name, &from, &to) != 3)
		die("not NAME,FROM,TO", s);
	p.from = (uint64_t)(from * 1e9);
	p.to = (uint64_t)(to * 1e9);
	return p;
}

static double ms(uint64_t from, uint64_t to)
{
	return from && to > from ? (double)(to - from) / 1e6 : 0;
}

static void report(const struct flow *f)
{
	uint64_t stop, go;
	unsigned int moved = flow_blackout(f, &stop, &go);

	printf("qps_moved=%u\nfatal_naks=%u\n", moved, f->fatal);
	if (!f->replaced) {
		printf("nak_stopped=%u\nresume=%u\nresume_ack=%u\n",
		       f->nak_stopped, f->resume, f->resume_ack);
		printf("nak_to_resume_ms=%.1f\n",
		       ms(f->first_nak, f->first_resume));
		printf("resume_to_traffic_ms=%.1f\n", ms(f->first_resume, go));
	}
	if (f->lost >= 0)
		printf("packets_lost_by_capture=%lld\n", (long long)f->lost);
	printf("blackout_ms=%.1f\n", ms(stop, go));
	printf("before_bytes_per_s=%.0f\n",
	       flow_rate(f, OLD, f->begin, moved ? stop : f->end));
	printf("after_bytes_per_s=%.0f\n",
	       moved ? flow_rate(f, NEW, go, f->end) : 0);
}

int main(int argc, char **argv)
{
	static struct flow f;
	const char *names[SIDES] = { "old host", "new host" };
	const char *svg = NULL, *title = "Migration";
	struct phase phase[MAX_PHASES];
	unsigned int phases = 0;
	FILE *out;
	int c;

	while ((c = getopt(argc, argv, "s:t:n:p:r")) != -1) {
		switch (c) {
		case 's':
			svg = optarg;
			break;
		case 't':
			title = optarg;
			break;
		case 'n':
			names[OLD] = optarg;
			names[NEW] = strchr(optarg, ',');
			if (!names[NEW])
				die("not OLD,NEW", optarg);
			*(char *)names[NEW]++ = 0;
			break;
		case 'p':
			if (phases < MAX_PHASES)
				phase[phases++] = phase_of(optarg);
			break;
		case 'r':
			f.replaced = true;
			break;
		default:
			return 2;
		}
	}
	if (argc - optind != 3)
		die("PARTNER OLD NEW are missing", "");
	f.mac = strchr(argv[optind], ':');
	f.partner = addr(argv[optind], f.mac);
	f.host[OLD] = addr(argv[optind + 1], f.mac);
	f.host[NEW] = addr(argv[optind + 2], f.mac);

	if (flow_read(&f, stdin))
		die("cannot read this capture", "");
	if (!f.slots)
		die("there is no traffic of these hosts in the capture", "");
	flow_resample(&f, MAX_SLOTS);
	report(&f);
	if (f.lost > 0)
		fprintf(stderr,
			"timeline: the capture has lost %lld packets, so times may be longer than they were\n",
			(long long)f.lost);
	if (svg) {
		out = fopen(svg, "w");
		if (!out)
			die("cannot write", svg);
		plot(out, &f, title, names, phase, phases);
		if (fclose(out))
			die("cannot write", svg);
	}
	return 0;
}
