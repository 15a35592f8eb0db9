/* SPDX-License-Identifier: GPL-2.0 */
/* What a bad line does to a frame, in the words of tc-netem(8) */
#ifndef IMPAIR_H
#define IMPAIR_H

#include <linux/virtio_net.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct impair_spec {
	double loss, duplicate, reorder; /* probabilities */
	uint64_t delay, jitter;		 /* ns */
	uint64_t rate; /* bits per second, 0: any; a link (link.h) has it */
	uint64_t seed;
};

/* One frame becomes `count` (0 to 2), each at its time. */
struct impair_fate {
	int count;
	uint64_t delay[2]; /* ns */
};

/* The words after the devices; NULL, or what is wrong with them. */
const char *impair_parse(struct impair_spec *spec, char **words);

/*
 * What a frame takes of a link: as link_bytes(), and one that the kernel has still to
 * cut counts as many.
 */
uint64_t impair_bytes(const struct virtio_net_hdr *v, const uint8_t *frame,
		      size_t len);

/* State is a number of any value; same spec, same state, same fates. */
struct impair_fate impair_next(const struct impair_spec *spec, uint64_t *state);

#endif /* IMPAIR_H */
