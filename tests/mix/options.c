// SPDX-License-Identifier: GPL-2.0
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "events.h"
#include "options.h"

static const struct options defaults = {
	.verbs = {
		.gid_index = -1,
		.cqs = 1,
		.timeout = 14,
		.retry_cnt = 3,
	},
	.shape = {
		.qps = 1,
		.window = 16,
		.max = 16384,
	},
	.port = "18600",
	.threads = 1,
	.stuck_seconds = 120,
};

static const char usage[] =
	"usage: rc_mix -s [options]		server\n"
	"       rc_mix [options] HOST		client\n"
	"       ... -- [options] [HOST]		and more traffic, with another one\n"
	"traffic, as the client wants it:\n"
	"  -q N		QPs (1)\n"
	"  -m BYTES	longest message (16384)\n"
	"  -w N		window: operations in flight per QP, a power of two (16)\n"
	"  -S N		seed, to repeat a run (a new one each time, see the result)\n"
	"  -x LIST	leave out these, to see what it takes to fail: send, send_imm,\n"
	"		write, write_imm, read, fetch_add, cmp_swap, fence, empty\n"
	"each side:\n"
	"  -d DEVICE	RDMA device (the first)\n"
	"  -g N		GID index (the first IPv4 address's RoCEv2 one)\n"
	"  -c 1|2	one CQ, or one to send and one to receive (1)\n"
	"  -R N		receive from a shared queue with receives for N QPs, at\n"
	"		most -q, and see to its limit events (each QP has its own)\n"
	"  -M		offer memory windows of type 2, bound anew time and again\n"
	"  -e LIST	sleep until completion events come (poll). Of these:\n"
	"		any | solicited	events the receive CQ asks for (any)\n"
	"		epoll | block	with epoll, or in ibv_get_cq_event() (epoll)\n"
	"		shared		both CQs on one channel (each on its own)\n"
	"		solicited and shared need -c 2\n"
	"  -T 1|2	threads that post (1)\n"
	"  -p 4k|thp	pages of the buffers (as the system likes)\n"
	"  -r N		retry_cnt (3)\n"
	"  -o N		timeout, 4.096 us * 2^N (14)\n"
	"  -t SECONDS	stop after so long (0: on SIGTERM or SIGINT)\n"
	"  -D SECONDS	fail when nothing completes for so long (120)\n"
	"  -l PORT	TCP port (18600)\n"
	"  -V		find a violation where there is none: is this side heard?\n"
	"  -P FILE	progress, ten times a second\n"
	"  -O FILE	result\n";

static unsigned int number(const char *s, unsigned int min, unsigned int max)
{
	char *end;
	unsigned long n = strtoul(s, &end, 0);

	if (*end || end == s || n < min || n > max) {
		fprintf(stderr, "%s: expected %u to %u\n", s, min, max);
		exit(2);
	}
	return n;
}

static uint32_t without(char *list)
{
	uint32_t all = 0, bit;
	char *name;

	for (name = strtok(list, ","); name; name = strtok(NULL, ",")) {
		bit = without_bit(name);
		if (!bit) {
			fprintf(stderr, "%s: not to be left out\n", name);
			exit(2);
		}
		all |= bit;
	}
	if ((all & RECV_KINDS) == RECV_KINDS) {
		fprintf(stderr, "something has to consume receives\n");
		exit(2);
	}
	return all;
}

static unsigned int events(char *list)
{
	static const struct {
		const char *name;
		unsigned int bit;
	} words[] = {
		{ "any", 0 },
		{ "solicited", EVENTS_SOLICITED },
		{ "epoll", 0 },
		{ "block", EVENTS_BLOCK },
		{ "shared", EVENTS_SHARED },
	};
	unsigned int how = EVENTS_ON, i;
	char *name;

	for (name = strtok(list, ","); name; name = strtok(NULL, ",")) {
		for (i = 0; i < 5 && strcmp(name, words[i].name); i++)
			;
		if (i == 5) {
			fprintf(stderr, "%s: no word of -e\n", name);
			exit(2);
		}
		how |= words[i].bit;
	}
	return how;
}

static enum page_kind page_kind(const char *s)
{
	if (!strcmp(s, "4k"))
		return PAGES_4K;
	if (!strcmp(s, "thp"))
		return PAGES_THP;
	fprintf(stderr, "%s: expected 4k or thp\n", s);
	exit(2);
}

/* Few digits, as somebody may have to type them. */
static uint64_t draw_seed(void)
{
	uint32_t seed;

	if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed)) {
		perror("getrandom");
		exit(1);
	}
	return seed;
}

void options_parse(struct options *o, int argc, char **argv)
{
	bool server = false, seeded = false;
	int c;

	optind = 0; /* from the beginning, once more */
	*o = defaults;
	while ((c = getopt(argc, argv,
			   "sq:m:w:S:x:d:g:c:R:Me:T:p:r:o:t:D:l:VP:O:h")) !=
	       -1) {
		switch (c) {
		case 's':
			server = true;
			break;
		case 'q':
			o->shape.qps = number(optarg, 1, 1024);
			break;
		case 'm':
			o->shape.max = number(optarg, 64, 1 << 24);
			break;
		case 'w':
			o->shape.window = number(optarg, OP_MIN_WINDOW, 4096);
			break;
		case 'S':
			o->shape.seed = strtoull(optarg, NULL, 0);
			seeded = true;
			break;
		case 'x':
			o->shape.without = without(optarg);
			break;
		case 'd':
			o->verbs.device = optarg;
			break;
		case 'g':
			o->verbs.gid_index = number(optarg, 0, 255);
			break;
		case 'c':
			o->verbs.cqs = number(optarg, 1, 2);
			break;
		case 'R':
			o->verbs.srq = number(optarg, 1, 1024);
			break;
		case 'M':
			o->verbs.windows = true;
			break;
		case 'e':
			o->verbs.events = events(optarg);
			break;
		case 'T':
			o->threads = number(optarg, 1, 2);
			break;
		case 'p':
			o->pages = page_kind(optarg);
			break;
		case 'r':
			o->verbs.retry_cnt = number(optarg, 0, 7);
			break;
		case 'o':
			o->verbs.timeout = number(optarg, 0, 31);
			break;
		case 't':
			o->seconds = number(optarg, 0, 1 << 20);
			break;
		case 'D':
			o->stuck_seconds = number(optarg, 1, 1 << 20);
			break;
		case 'l':
			o->port = optarg;
			break;
		case 'V':
			o->violate = true;
			break;
		case 'P':
			o->progress = optarg;
			break;
		case 'O':
			o->result = optarg;
			break;
		case 'h':
			fputs(usage, stdout);
			exit(0);
		default:
			fputs(usage, stderr);
			exit(2);
		}
	}
	if (!seeded)
		o->shape.seed = draw_seed();
	o->host = argv[optind];
	if (server == !!o->host || argc - optind > 1 ||
	    o->shape.window & (o->shape.window - 1) ||
	    (o->verbs.events & (EVENTS_SOLICITED | EVENTS_SHARED) &&
	     o->verbs.cqs == 1)) {
		fputs(usage, stderr);
		exit(2);
	}
}
