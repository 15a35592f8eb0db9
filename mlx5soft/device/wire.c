// SPDX-License-Identifier: GPL-2.0
/* Frames to and from the wire, one by one and in trains. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "wire.h"

#define MAX_SEGMENTS 64U /* Linux's UDP_MAX_SEGMENTS until it became 128 */

/* ---- sending ---- */

/* False: no room. What fails otherwise is lost. */
static bool write_out(struct wire *w, const struct iovec *iov, int count,
		      uint32_t frames)
{
	ssize_t n;

	do
		n = writev(w->fd, iov, count);
	while (n < 0 && errno == EINTR);
	if (n < 0 && (errno == EAGAIN || errno == ENOBUFS))
		return false;
	w->errors += n < 0 ? frames : 0;
	return true;
}

/* A frame, or one that has `frames` with equal headers; false: no room */
static bool put_out(struct wire *w, struct virtio_net_hdr *v, const void *frame,
		    uint32_t len, uint32_t frames)
{
	struct iovec iov[2] = {
		{ v, sizeof(*v) },
		{ (void *)frame, len },
	};
	uint64_t bytes;

	if (!w->limit)
		return write_out(w, iov + !w->vnet, 1 + w->vnet, frames);
	bytes = link_bytes(len, w->headers, frames > 1 ? w->segment : 0);
	return !w->full &&
	       limit_put(w->limit, iov + !w->vnet, 1 + w->vnet, frames, bytes);
}

bool wire_write(struct wire *w, const void *frame, uint32_t len)
{
	struct virtio_net_hdr none = { 0 };

	return put_out(w, &none, frame, len, 1);
}

/* The length of a train in its headers, and what the kernel is to do with it */
static void seal(struct wire *w)
{
	uint8_t *frame = w->tx.frame, *ip = frame + ETH_BYTES;
	uint8_t *udp = frame + w->headers - UDP_BYTES;
	uint32_t udp_len = w->len - w->headers + UDP_BYTES;
	bool v4 = w->headers == ETH_BYTES + IPV4_BYTES + UDP_BYTES;
	struct frame h;

	if (v4)
		put_be16(ip + 2, IPV4_BYTES + udp_len);
	else
		put_be16(ip + 4, udp_len);
	frame_parse(frame, w->len, false, &h);
	frame_fill_l3(frame, &h);
	put_be16(udp + 4, udp_len);
	/* of the pseudo header, the kernel adds the rest of each segment */
	put_be16(udp + 6,
		 csum_fold(csum_add(PROTOCOL_UDP + udp_len,
				    v4 ? ip + 12 : ip + 8, v4 ? 8 : 32)));
	w->tx.v = (struct virtio_net_hdr){
		.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
		.gso_type = VIRTIO_NET_HDR_GSO_UDP_L4,
		.hdr_len = w->headers,
		.gso_size = w->segment,
		.csum_start = w->headers - UDP_BYTES,
		.csum_offset = 6,
	};
}

bool wire_flush(struct wire *w)
{
	if (!w->count)
		return true;
	memset(&w->tx.v, 0, sizeof(w->tx.v));
	if (w->count > 1)
		seal(w);
	if (!put_out(w, &w->tx.v, w->tx.frame, w->len, w->count))
		return false;
	w->count = 0;
	return true;
}

/*
 * Would the kernel, cutting, make these headers from those of the first? The
 * lengths and checksums it makes, and it counts the IPv4 identification up.
 */
static bool follows(const struct wire *w, const uint8_t *head)
{
	const uint8_t *first = w->tx.frame;
	uint32_t ip = ETH_BYTES, n = w->headers;
	uint8_t same[ETH_BYTES + IPV6_BYTES + UDP_BYTES];

	memcpy(same, head, n);
	if (n == ip + IPV4_BYTES + UDP_BYTES) {
		if (get_be16(head + ip + 4) !=
		    (uint16_t)(get_be16(first + ip + 4) + w->count))
			return false;
		memcpy(same + ip + 2, first + ip + 2, 4);
		memcpy(same + ip + 10, first + ip + 10, 2);
	} else {
		memcpy(same + ip + 4, first + ip + 4, 2);
	}
	memcpy(same + n - 4, first + n - 4, 2);
	return !memcmp(same, first, n);
}

/* A train takes a time of the link in which nobody else has it. */
static uint32_t longest(const struct wire *w)
{
	return w->limit && w->limit->train < WIRE_MAX ? w->limit->train
						      : WIRE_MAX;
}

static uint32_t headers_of(const uint8_t *head)
{
	bool v4 = get_be16(head + ETH_BYTES - 2) == ETHERTYPE_IPV4;

	return ETH_BYTES + (v4 ? IPV4_BYTES : IPV6_BYTES) + UDP_BYTES;
}

bool wire_put(struct wire *w, const uint8_t *frame, uint32_t len)
{
	uint32_t headers = headers_of(frame), skip = 0;

	if (w->count && w->trains && !w->complete && w->count < MAX_SEGMENTS &&
	    headers == w->headers && len - headers <= w->segment &&
	    w->len + len - headers <= longest(w) && follows(w, frame)) {
		skip = headers;
	} else {
		if (!wire_flush(w))
			return false;
		w->headers = headers;
		w->segment = len - headers;
		w->len = 0;
	}
	w->complete = len - headers < w->segment;
	w->count++;
	memcpy(w->tx.frame + w->len, frame + skip, len - skip);
	w->len += len - skip;
	return true;
}

/* ---- over a limited link ---- */

#define BURST 256 /* frames that leave at once, before others have their turn */

int wire_limit(struct wire *w, uint64_t now, uint64_t rate, uint64_t delay)
{
	struct limit *l = w->limit;

	if (!l && !rate && !delay)
		return 0;
	if (!l)
		l = limit_create();
	if (!l)
		return -ENOMEM;
	limit_turn(l, now, false);
	if (!limit_set(l, rate, delay)) {
		if (!w->limit)
			free(l);
		return -ERANGE;
	}
	w->limit = l;
	return 0;
}

void wire_run(struct wire *w, uint64_t now, bool waited)
{
	struct limit *l = w->limit;
	struct limit_unit *u;
	struct iovec iov;
	int n;

	limit_turn(l, now, waited);
	w->full = false;
	for (n = 0; n < BURST && (u = limit_arrived(l)); n++) {
		iov = (struct iovec){ u->data, u->len };
		if (!write_out(w, &iov, 1, u->packets)) {
			w->full = true;
			return;
		}
		limit_pop(l);
	}
	/* Who comes from now on overtakes nobody. */
	if (!l->units && !l->link.rate && !l->link.delay) {
		w->limit = NULL;
		free(l);
	}
}

bool wire_room(const struct wire *w)
{
	return !w->limit || (!w->full && limit_room(w->limit));
}

uint64_t wire_due(const struct wire *w, bool waits)
{
	return w->limit && !w->full ? limit_due(w->limit, waits) : LIMIT_NEVER;
}

bool wire_polls(const struct wire *w, bool waits)
{
	return w->limit ? w->full : waits;
}

/* ---- receiving ---- */

/* One that is not what was agreed on with the kernel ends here. */
static void start_train(struct wire *w)
{
	const struct virtio_net_hdr *v = &w->rx.v;
	struct frame *h = &w->rx_h;

	frame_parse(w->rx.frame, w->rx_len, false, h);
	if (v->gso_type != VIRTIO_NET_HDR_GSO_UDP_L4 || !v->gso_size ||
	    h->l4_type != PROTOCOL_UDP ||
	    h->l4 + UDP_BYTES > WIRE_MAX_HEADERS || h->cut)
		return;
	w->rx_headers = h->l4 + UDP_BYTES;
	w->rx_segment = v->gso_size;
	w->rx_at = w->rx_headers;
	w->rx_len = h->l4_end; /* without padding */
	w->rx_index = 0;
	memcpy(w->rx_head, w->rx.frame, w->rx_headers);
}

bool wire_more(const struct wire *w)
{
	return w->rx_at < w->rx_len;
}

/*
 * Headers go right in front of the next segment: what was there is consumed.
 * Unlike lso_segment() it copies no payload and sums none up, which the
 * transport does not need.
 */
static uint8_t *cut(struct wire *w, uint32_t *len)
{
	uint32_t rest = w->rx_len - w->rx_at;
	uint32_t n = rest < w->rx_segment ? rest : w->rx_segment;
	uint8_t *frame = w->rx.frame + w->rx_at - w->rx_headers;
	uint8_t *udp = frame + w->rx_headers - UDP_BYTES;
	const struct frame *h = &w->rx_h;
	uint8_t *ip = frame + h->l3;

	memcpy(frame, w->rx_head, w->rx_headers);
	*len = w->rx_headers + n;
	if (h->version == 4) {
		put_be16(ip + 2, *len - h->l3);
		put_be16(ip + 4, get_be16(ip + 4) + w->rx_index++);
		frame_fill_l3(frame, h);
	} else {
		put_be16(ip + 4, *len - h->l3 - IPV6_BYTES);
	}
	put_be16(udp + 4, UDP_BYTES + n);
	put_be16(udp + 6, 0);
	w->rx_at += n;
	w->rx_unsummed = true;
	return frame;
}

uint8_t *wire_get(struct wire *w, uint32_t *len)
{
	struct iovec iov[2] = {
		{ &w->rx.v, sizeof(w->rx.v) },
		{ w->rx.frame, sizeof(w->rx.frame) },
	};
	uint32_t extra = w->vnet ? sizeof(w->rx.v) : 0;
	ssize_t n;

	while (!wire_more(w)) {
		n = readv(w->fd, iov + !w->vnet, 1 + w->vnet);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return NULL;
		if (n <= (ssize_t)extra)
			continue;
		w->rx_len = n - extra;
		w->rx_at = w->rx_len;
		if (!w->vnet || w->rx.v.gso_type == VIRTIO_NET_HDR_GSO_NONE) {
			w->rx_unsummed =
				w->vnet &&
				w->rx.v.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM;
			*len = w->rx_len;
			return w->rx.frame;
		}
		start_train(w);
	}
	return cut(w, len);
}

void wire_sum(const struct wire *w, uint8_t *frame, uint32_t len)
{
	const struct virtio_net_hdr *v = &w->rx.v;
	struct frame h;
	uint32_t at;
	uint16_t sum;

	if (!w->rx_unsummed)
		return;
	if (v->gso_type != VIRTIO_NET_HDR_GSO_NONE) {
		frame_parse(frame, len, false, &h);
		frame_fill_l4(frame, &h);
		return;
	}
	/* The pseudo header's is there; it may be that of an inner packet. */
	at = v->csum_start + v->csum_offset;
	if (at + 2 > len)
		return;
	sum = ~csum_fold(
		csum_add(0, frame + v->csum_start, len - v->csum_start));
	put_be16(frame + at, sum ? sum : 0xffff);
}
