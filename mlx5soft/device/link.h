/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A serial link: frames follow each other at a rate, and arrive a delay later.
 * Arithmetic only; the time is the caller's, in ns. The device has its link
 * from here, and so has tests/tools/bad_wire: nodes of both kinds shall have
 * the same.
 */
#ifndef MLX5SOFT_LINK_H
#define MLX5SOFT_LINK_H

#include <stdbool.h>
#include <stdint.h>

#define LINK_MIN_RATE 1000ULL /* bits per second */
#define LINK_MAX_RATE 1000000000000ULL
#define LINK_MAX_DELAY 60000000000ULL

struct link {
	uint64_t rate;	/* bits per second; 0: a frame takes no time */
	uint64_t delay; /* ns */
	uint64_t free;	/* all that was sent has left by then... */
	uint64_t rest;	/* ...and this part of a ns, in 1/rate */
};

/*
 * What a frame of `len` bytes, without FCS, takes of an Ethernet link: FCS,
 * preamble and gap as well, and at least what the shortest one takes. With a
 * `segment` it is one that will be cut behind its headers into as many.
 */
uint64_t link_bytes(uint32_t len, uint32_t headers, uint32_t segment);

/* Send them when what was sent before has left. Returns when they arrive. */
uint64_t link_send(struct link *link, uint64_t now, uint64_t bytes);

/*
 * "200M", "2.5Gbit"; k, M and G are decimal, in either case. False: it is no
 * rate from LINK_MIN_RATE to LINK_MAX_RATE.
 */
bool link_parse_rate(const char *text, uint64_t *rate);

/* "50us", "1.5ms", "0s"; also ns. False: it is no time up to LINK_MAX_DELAY. */
bool link_parse_time(const char *text, uint64_t *ns);

#endif /* MLX5SOFT_LINK_H */
