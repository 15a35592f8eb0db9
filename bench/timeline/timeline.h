/* SPDX-License-Identifier: GPL-2.0 */
#ifndef TIMELINE_H
#define TIMELINE_H

#include "pcapng.h"

#include <stdbool.h>

#define MAX_QPS 4096
#define MAX_PHASES 8

enum side {
	OLD,
	NEW,
	SIDES
};

/* One of the partner's QPs. Times in ns since 1970, 0: never. */
struct qp {
	uint32_t qpn;
	uint64_t last_old;  /* last ordinary packet from the old host */
	uint64_t first_new; /* first one from the new host */
};

/* What the fabric saw between the partner and the two hosts. */
struct flow {
	bool mac;	  /* they are MAC addresses, not IPv4 ones */
	bool replaced;	  /* the partner has other QPs afterwards */
	uint64_t partner; /* as numbers */
	uint64_t host[SIDES];
	uint64_t begin, end;   /* first and last frame */
	uint64_t slot_ns;      /* the traffic is summed up in slots */
	uint64_t *slot[SIDES]; /* bytes on the wire, both directions */
	unsigned int slots;
	unsigned int nak_stopped, resume, resume_ack;
	unsigned int fatal; /* NAKs that end a connection */
	int64_t lost;	    /* by the capture; -1: unknown */
	uint64_t first_nak, first_resume;
	struct qp qp[MAX_QPS];
	unsigned int qps;
};

/* What else was going on, for the plot. */
struct phase {
	char name[32];
	uint64_t from, to;
};

/* flow.c */
int flow_read(struct flow *f, FILE *file);
void flow_resample(struct flow *f, unsigned int max_slots);
unsigned int flow_blackout(const struct flow *f, uint64_t *stop, uint64_t *go);
double flow_rate(const struct flow *f, enum side side, uint64_t from,
		 uint64_t to);

/* plot.c */
void plot(FILE *out, const struct flow *f, const char *title,
	  const char *names[SIDES], const struct phase *phase,
	  unsigned int phases);

#endif /* TIMELINE_H */
