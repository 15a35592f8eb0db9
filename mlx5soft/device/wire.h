/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Frames to and from the wire, that is a descriptor which carries one with each
 * read() and write(). A tap can do more: packets of the transport that follow
 * each other, equal in headers and in length, go through the kernel as one
 * frame, a train, which is cut where it has to (UDP segmentation offload, Linux
 * 6.2 and later). Each has a struct virtio_net_hdr in front of it then.
 */
#ifndef MLX5SOFT_WIRE_H
#define MLX5SOFT_WIRE_H

#include <linux/virtio_net.h>
#include <stdbool.h>

#include "ethernet/frame.h"
#include "limit.h"

#define WIRE_MAX (ETH_BYTES + 65535U) /* bytes of a train */
#define WIRE_TAGS 8U		      /* of VLANs, in one that comes */
#define WIRE_MAX_HEADERS 256U	      /* in front of a UDP payload */

/* A frame, or a train, as it is read and written */
struct wire_unit {
	struct virtio_net_hdr v;
	uint8_t frame[WIRE_MAX + WIRE_TAGS];
};

struct wire {
	int fd;	     /* -1: none */
	bool vnet;   /* there are struct virtio_net_hdr */
	bool trains; /* may be sent; those of others are always understood */
	uint64_t errors; /* frames that the descriptor did not take */

	struct limit *limit; /* NULL: none, and nothing of one is on its way */
	bool full; /* ...and the descriptor does not take what has arrived */

	/* what waits to be sent */
	uint32_t len, headers, segment, count;
	bool complete; /* a shorter one ended it */
	struct wire_unit tx;

	/* what is left of a received train */
	struct frame rx_h; /* of its headers */
	uint32_t rx_headers, rx_segment, rx_at, rx_len;
	uint16_t rx_index;
	bool rx_unsummed;
	uint8_t rx_head[WIRE_MAX_HEADERS];
	struct wire_unit rx;
};

/*
 * Send a UDP packet of the transport, of `len` bytes, perhaps later:
 * wire_flush(). False: there is no room at the wire.
 */
bool wire_put(struct wire *w, const uint8_t *frame, uint32_t len);

/* Send what waits. False: no room, try again when there is. */
bool wire_flush(struct wire *w);

/* Send any frame, at once. False: no room. */
bool wire_write(struct wire *w, const void *frame, uint32_t len);

/*
 * The next frame that has come, of `*len` bytes, or NULL. It may be written to
 * until the next call. Its checksum may be missing: wire_sum().
 */
uint8_t *wire_get(struct wire *w, uint32_t *len);

/*
 * From `now` on all leaves at `rate` bits per second and `delay` ns late; 0 and 0:
 * as it comes. See limit_set(). Returns 0, -ERANGE or -ENOMEM: as it was.
 */
int wire_limit(struct wire *w, uint64_t now, uint64_t rate, uint64_t delay);

/* With a limit, in each turn: see limit_turn(), and what has arrived leaves. */
void wire_run(struct wire *w, uint64_t now, bool waited);

/* What is sent finds room: with a limit; without, only trying tells. */
bool wire_room(const struct wire *w);

/*
 * When wire_run() has something to do, LIMIT_NEVER: nobody knows. `waits`: for room,
 * too.
 */
uint64_t wire_due(const struct wire *w, bool waits);

/* poll() has to tell when the descriptor takes something again. */
bool wire_polls(const struct wire *w, bool waits);

/* wire_get() has more without reading, which poll() does not tell. */
bool wire_more(const struct wire *w);

/* Fill in the checksum that wire_get() has left out, if it has. */
void wire_sum(const struct wire *w, uint8_t *frame, uint32_t len);

#endif /* MLX5SOFT_WIRE_H */
