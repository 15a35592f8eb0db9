/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the files of the dissector share.
 *
 *   packet-migros.c   the packets: fields, columns, expert information
 *   migros-track.c    the trace: which packets belong together, and how long
 *                     they took
 *   migros-mac.c      whether a MAC is right, for who knows the key
 *   migros-stats.c    the statistics tree
 */
#ifndef MIGROS_H
#define MIGROS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include <epan/packet_info.h>
#include <epan/tvbuff.h>
#include <wsutil/nstime.h>

enum migros_type {
	MIGROS_ORDINARY, /* an RC packet that is not ours */
	MIGROS_NAK_STOPPED,
	MIGROS_RESUME,
	MIGROS_RESUME_ACK,
	MIGROS_MOVED,
	MIGROS_QUESTION,
	MIGROS_ANSWER, /* RESUME_ACK of another kind, of the QP that was asked */
	MIGROS_NOBODY, /* ... or of the driver, in the place of none */
	/* not packets of their own, but what an ordinary one may mean */
	MIGROS_FIRST_PACKET,
	MIGROS_ABORTED,
	MIGROS_TYPES
};

extern const char *const migros_names[MIGROS_TYPES];

enum migros_mac {
	MIGROS_MAC_UNCHECKED,
	MIGROS_MAC_GOOD,
	MIGROS_MAC_BAD
};

/* One packet as it is on the wire. */
struct migros_wire {
	enum migros_type type;
	bool valid; /* complete, of a version and kind we know */
	uint8_t kind;
	uint32_t dest_qpn;
	uint32_t epoch;
	uint32_t old_qpn;
	uint32_t new_qpn;
	uint32_t nonce;
	uint8_t gid[16];
};

/* One time that a partner had to wait: from the first NAK_STOPPED on. */
struct migros_episode {
	uint32_t nak_frame;
	nstime_t nak_time;
	uint32_t resume_frame; /* first RESUME, 0: none seen */
	uint32_t end_frame;    /* first ordinary packet after it, 0: none */
};

/*
 * What the trace says about one packet. Filled when the packet is seen for the
 * first time; later packets add acked_in and, through the episode, the rest.
 */
struct migros_event {
	enum migros_type type;
	bool valid; /* as of migros_wire, and the MAC is not bad */
	enum migros_mac mac;
	bool stale; /* an epoch that is over: receivers ignore the packet */
	uint32_t frame;
	nstime_t time;
	struct migros_episode *episode; /* or NULL */
	/* RESUME, MOVED */
	struct migros_event *resend_of; /* the one sent before, or NULL */
	uint32_t acked_in;		/* 0: not acknowledged (yet) */
	/* RESUME_ACK */
	struct migros_event *ack_of; /* the latest one sent, or NULL */
};

static inline bool migros_gid_is_ipv4(const uint8_t gid[16])
{
	static const uint8_t v4_mapped[12] = { [10] = 0xff, [11] = 0xff };

	return !memcmp(gid, v4_mapped, sizeof(v4_mapped));
}

struct migros_event *migros_track(tvbuff_t *tvb, packet_info *pinfo,
				  const struct migros_wire *wire);
bool migros_blackout(const struct migros_event *ev, nstime_t *out);
bool migros_round_trip(const struct migros_event *ev, nstime_t *out);
bool migros_repeated(const struct migros_event *ev);

enum migros_mac migros_check_mac(tvbuff_t *tvb, const uint8_t from[16],
				 const uint8_t to[16]);

void migros_mac_init(int proto);
void migros_track_init(int proto);
void migros_stats_init(void);
void migros_register(void);
void migros_handoff(void);

#endif /* MIGROS_H */
