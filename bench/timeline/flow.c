// SPDX-License-Identifier: GPL-2.0
/*
 * From frames to what a migration looked like from its partner.
 */
#include "rxe_migr_wire.h"
#include "timeline.h"

#include <stdlib.h>
#include <string.h>

#define SLOT_NS 10000000u /* unless somebody says otherwise */
#define MAX_SLOTS (24 * 3600 * 100u)

#define ETH_BYTES 14
#define UDP_BYTES 8
#define BTH_BYTES 12
#define AETH_BYTES 4
#define ROCE_PORT 4791
#define RC_ACKNOWLEDGE 0x11

static uint64_t be(const uint8_t *p, int bytes)
{
	uint64_t v = 0;

	while (bytes--)
		v = v << 8 | *p++;
	return v;
}

/* the BTH of a RoCE packet over IPv4, or NULL; from whom to whom it is */
static const uint8_t *bth(const struct frame *fr, bool mac, uint64_t *src,
			  uint64_t *dst)
{
	const uint8_t *ip = fr->data + ETH_BYTES;
	uint32_t ip_bytes;

	if (fr->len < ETH_BYTES + 20 || be(fr->data + 12, 2) != 0x0800)
		return NULL;
	ip_bytes = (ip[0] & 15) * 4;
	if (ip[9] != 17 || ip_bytes < 20 ||
	    fr->len <
		    ETH_BYTES + ip_bytes + UDP_BYTES + BTH_BYTES + AETH_BYTES ||
	    be(ip + ip_bytes + 2, 2) != ROCE_PORT)
		return NULL;
	*src = mac ? be(fr->data + 6, 6) : be(ip + 12, 4);
	*dst = mac ? be(fr->data, 6) : be(ip + 16, 4);
	return ip + ip_bytes + UDP_BYTES;
}

static struct qp *find_qp(struct flow *f, uint32_t qpn)
{
	for (unsigned int i = 0; i < f->qps; i++)
		if (f->qp[i].qpn == qpn)
			return &f->qp[i];
	if (f->qps == MAX_QPS)
		return NULL;
	f->qp[f->qps].qpn = qpn;
	return &f->qp[f->qps++];
}

static void once(uint64_t *when, uint64_t ns)
{
	if (!*when)
		*when = ns;
}

/* what a packet of the protocol is by its METH, or 0 */
static uint8_t kind_of(const struct frame *fr, const uint8_t *p)
{
	const uint8_t *meth = p + BTH_BYTES + AETH_BYTES;

	return meth < fr->data + fr->len ? meth[MIGR_METH_VER_KIND] & 15 : 0;
}

/* Answers to questions have its opcode, too. */
static bool is_resume_ack(const struct frame *fr, const uint8_t *p)
{
	return p[0] == MIGR_OPCODE_RESUME_ACK &&
	       kind_of(fr, p) == MIGR_METH_KIND_RESUME;
}

/* a packet that the partner receives */
static void received(struct flow *f, enum side from, const struct frame *fr,
		     const uint8_t *p)
{
	uint64_t ns = fr->ns;
	struct qp *qp = find_qp(f, be(p + 5, 3));
	uint8_t syndrome = p[0] == RC_ACKNOWLEDGE ? p[BTH_BYTES] : 0;

	if (!qp)
		return;
	if (syndrome == MIGR_AETH_NAK_STOPPED) {
		f->nak_stopped++;
		once(&f->first_nak, ns);
	} else if (p[0] == MIGR_OPCODE_RESUME) {
		f->resume++;
		once(&f->first_resume, ns);
	} else if (is_resume_ack(fr, p)) {
		f->resume_ack++;
	} else if (p[0] == MIGR_OPCODE_ASK || p[0] == MIGR_OPCODE_RESUME_ACK) {
		/* no ordinary packet: questions of STOP and their answers */
	} else if (from == OLD) {
		qp->last_old = ns;
	} else {
		once(&qp->first_new, ns);
	}
}

static int add(struct flow *f, const struct frame *fr)
{
	uint64_t src, dst, peer;
	const uint8_t *p = bth(fr, f->mac, &src, &dst);
	enum side side;
	uint64_t slot;

	if (!p || (src != f->partner && dst != f->partner))
		return 0;
	peer = src == f->partner ? dst : src;
	for (side = OLD; side < SIDES && f->host[side] != peer; side++)
		;
	if (side == SIDES)
		return 0;

	once(&f->begin, fr->ns);
	if (fr->ns < f->begin)
		return 0;
	f->end = fr->ns;
	slot = (fr->ns - f->begin) / f->slot_ns;
	if (slot >= MAX_SLOTS)
		return -1;
	f->slot[side][slot] += fr->wire;
	f->slots = slot + 1 > f->slots ? slot + 1 : f->slots;

	/* 1 to 4: invalid request, access, operation, RD request */
	if (p[0] == RC_ACKNOWLEDGE && p[BTH_BYTES] > 0x60 &&
	    p[BTH_BYTES] <= 0x64)
		f->fatal++;
	if (dst == f->partner)
		received(f, side, fr, p);
	else if (is_resume_ack(fr, p))
		f->resume_ack++;
	return 0;
}

/* f: zero but for the addresses, and slot_ns, which may be. Returns 0 or -1. */
int flow_read(struct flow *f, FILE *file)
{
	struct frame fr;
	int more;

	if (!f->slot_ns)
		f->slot_ns = SLOT_NS;
	for (int side = 0; side < SIDES; side++) {
		f->slot[side] = calloc(MAX_SLOTS, sizeof(*f->slot[side]));
		if (!f->slot[side])
			return -1;
	}
	while ((more = pcapng_next(file, &fr)) > 0)
		if (add(f, &fr))
			return -1;
	f->lost = pcapng_lost();
	return more;
}

/* join slots until there are few enough */
void flow_resample(struct flow *f, unsigned int max_slots)
{
	static const unsigned int steps[] = { 1,   2,	5,   10,   20,	 50,
					      100, 200, 500, 1000, 2000, 5000 };
	unsigned int n = 0, by;

	while (n < 11 && f->slots / steps[n] > max_slots)
		n++;
	by = steps[n];
	for (int side = 0; side < SIDES; side++) {
		uint64_t *s = f->slot[side];

		for (unsigned int i = 0; i < f->slots; i++) {
			uint64_t bytes = s[i];

			s[i] = 0;
			s[i / by] += bytes;
		}
	}
	f->slots = (f->slots + by - 1) / by;
	f->slot_ns *= by;
}

/* The partner waits from the last packet that any of its QPs got from the old host
 * to the first one from the new host that the last of them got. Returns how many
 * QPs have moved: they hear from both hosts, or if they were replaced, as many from
 * the one as from the other.
 */
unsigned int flow_blackout(const struct flow *f, uint64_t *stop, uint64_t *go)
{
	unsigned int old = 0, new = 0;

	*stop = *go = 0;
	for (unsigned int i = 0; i < f->qps; i++) {
		const struct qp *qp = &f->qp[i];
		bool is_old = qp->last_old, is_new = qp->first_new;

		if (f->replaced ? is_old == is_new : !is_old || !is_new)
			continue;
		old += is_old;
		new += is_new;
		if (qp->last_old > *stop)
			*stop = qp->last_old;
		if (qp->first_new > *go)
			*go = qp->first_new;
	}
	return old < new ? old : new;
}

/* bytes per second in the slots that lie in a time as a whole */
double flow_rate(const struct flow *f, enum side side, uint64_t from,
		 uint64_t to)
{
	uint64_t bytes = 0;
	unsigned int n = 0;

	for (unsigned int i = 0; i < f->slots; i++) {
		uint64_t t = f->begin + i * f->slot_ns;

		if (t < from || t + f->slot_ns > to)
			continue;
		bytes += f->slot[side][i];
		n++;
	}
	return n ? (double)bytes * 1e9 / ((double)f->slot_ns * n) : 0;
}
