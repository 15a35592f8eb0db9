/* SPDX-License-Identifier: GPL-2.0 */
#ifndef PCAPNG_H
#define PCAPNG_H

#include <stdint.h>
#include <stdio.h>

/**
 * struct frame - a captured Ethernet frame
 * @ns: when, since 1970
 * @wire: its length on the wire
 * @len: how much of it was captured
 * @data: valid until the next frame is read
 */
struct frame {
	uint64_t ns;
	uint32_t wire;
	uint32_t len;
	const uint8_t *data;
};

/* Returns 1, 0 at the end (also of a capture that was cut off), -1: what is
 * read is no pcapng of this machine's byte order.
 */
int pcapng_next(FILE *file, struct frame *frame);

/* How many packets passed that the capture does not have, as it says itself at
 * its end; -1: it does not say, for it was cut off.
 */
int64_t pcapng_lost(void);

#endif /* PCAPNG_H */
