/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The limiter: frames that the device has sent, on their way over a link of a
 * certain rate and delay. When LIMIT_BACKLOG of the link is taken, there is no
 * room, and send queues wait. Nothing is lost here, and nobody overtakes.
 *
 * Turns of the device come when the scheduler likes, the link goes on meanwhile:
 * who waited for it at the end of one turn, and sends in the next, finds it as if
 * that had been sent when there was room. The delay counts from now, all the same.
 */
#ifndef MLX5SOFT_LIMIT_H
#define MLX5SOFT_LIMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "link.h"

#define LIMIT_BACKLOG 100000ULL	 /* ns until the last one has left */
#define LIMIT_DEBT 100000000ULL	 /* ns: after more, what was not sent is gone */
#define LIMIT_TRAIN 20000ULL	 /* ns: who leaves within may go as a train */
#define LIMIT_MEMORY (32U << 20) /* bytes of frames, and a bit around each */
#define LIMIT_TRAVEL (16ULL << 20) /* bytes: rate times delay, at most */
#define LIMIT_NEVER UINT64_MAX

/* A frame, or a train: as it is written to the wire */
struct limit_unit {
	uint64_t due;	/* ns: it arrives */
	uint64_t bytes; /* of the link */
	uint32_t packets;
	uint32_t len;
	uint8_t data[];
};

struct limit {
	struct link link;
	uint64_t now;
	uint64_t since; /* there is somebody who waits for it, from then on */
	uint32_t train; /* the longest that makes sense, bytes */
	uint64_t units, packets, bytes; /* that are on their way */

	/* A ring: what does not fit at the end begins at 0, `end` is behind
	 * the last one before it.
	 */
	uint32_t head, tail, end;
	uint8_t ring[LIMIT_MEMORY] __attribute__((aligned(8)));
};

/* NULL: no memory. To be freed with free(). */
struct limit *limit_create(void);

/*
 * 0 and 0: none. What is on its way begins anew, on the new link; its order
 * stays. False: so much does not fit into LIMIT_TRAVEL, and nothing has changed.
 */
bool limit_set(struct limit *l, uint64_t rate, uint64_t delay);

/* It is `now`. All the time since the last turn somebody has waited for the link? */
void limit_turn(struct limit *l, uint64_t now, bool waited);

/* A unit of any length fits. */
bool limit_room(const struct limit *l);

/* False: no room. */
bool limit_put(struct limit *l, const struct iovec *iov, int n,
	       uint32_t packets, uint64_t bytes);

/* The next one that has arrived; NULL: there is none now. */
struct limit_unit *limit_arrived(struct limit *l);
void limit_pop(struct limit *l);

/* When the next one arrives, and if somebody waits for room, when there is some */
uint64_t limit_due(const struct limit *l, bool waits);

#endif /* MLX5SOFT_LIMIT_H */
