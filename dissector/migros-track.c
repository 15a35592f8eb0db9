// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Which packets belong together.
 *
 * RC packets do not carry the QPN of their sender. What identifies both ends of
 * a connection is where a packet goes: NAK_STOPPED from the old host and RESUME
 * from the new one have the same destination address and QPN, those of the
 * partner. So there is one flow per partner, and it holds the episode that is
 * going on: stopped, then resumed, then the first ordinary packet.
 *
 * RESUME_ACK goes the other way, to the new host and the new QPN, which RESUME
 * carries: the exchange of these two has its own table.
 *
 * Everything here happens when a packet is seen for the first time, in the
 * order of the capture. The results stay with the packets (proto_data), so that
 * a later look at any of them in any order finds the same.
 */
#include <wireshark.h>

#include <epan/address.h>
#include <epan/packet.h>
#include <epan/proto_data.h>
#include <wsutil/wmem/wmem.h>

#include "migros.h"
#include "rxe_migr_wire.h"

/* Flows use only `to` and `qpn`, exchanges all of it. */
struct key {
	address to;   /* partner */
	address from; /* who moved */
	uint32_t qpn;
	uint32_t epoch;
	uint32_t nonce;
	uint8_t kind;
};

enum flow_state {
	RUNNING,
	STOPPED,
	RESUMED
};

struct flow {
	enum flow_state state;
	struct migros_episode *episode;
	address peer;	/* where the other end is, or was when it stopped */
	address before; /* and where it was before that */
	bool resumed;	/* ever */
	bool ran_on;	/* the last RESUME was from where it had stopped */
	uint32_t epoch; /* of the last RESUME, if so */
};

static int proto_migros;
static wmem_map_t *flows;     /* struct key -> struct flow */
static wmem_map_t *exchanges; /* struct key -> latest struct migros_event */

static unsigned key_hash(const void *p)
{
	const struct key *k = p;
	unsigned h = k->qpn * 31 + k->epoch * 17 + k->nonce + k->kind;

	return add_address_to_hash(add_address_to_hash(h, &k->to), &k->from);
}

static gboolean key_equal(const void *p, const void *q)
{
	const struct key *a = p;
	const struct key *b = q;

	return a->qpn == b->qpn && a->epoch == b->epoch &&
	       a->nonce == b->nonce && a->kind == b->kind &&
	       addresses_equal(&a->to, &b->to) &&
	       addresses_equal(&a->from, &b->from);
}

static void insert(wmem_map_t *map, const struct key *key, void *value)
{
	struct key *k = wmem_memdup(wmem_file_scope(), key, sizeof(*k));

	copy_address_wmem(wmem_file_scope(), &k->to, &key->to);
	copy_address_wmem(wmem_file_scope(), &k->from, &key->from);
	wmem_map_insert(map, k, value);
}

static struct flow *find_flow(const address *partner, uint32_t qpn)
{
	struct key key = { .to = *partner, .qpn = qpn };

	return wmem_map_lookup(flows, &key);
}

static struct flow *get_flow(const address *partner, uint32_t qpn)
{
	struct key key = { .to = *partner, .qpn = qpn };
	struct flow *flow = wmem_map_lookup(flows, &key);

	if (!flow) {
		flow = wmem_new0(wmem_file_scope(), struct flow);
		insert(flows, &key, flow);
	}
	return flow;
}

/*
 * An endpoint moved: whoever sends to its new place continues what was begun
 * at the old one. This is what joins the two halves when both ends move.
 */
static void follow(const address *old, uint32_t old_qpn, const address *new,
		   uint32_t new_qpn)
{
	struct key key = { .to = *new, .qpn = new_qpn };
	struct flow *flow = find_flow(old, old_qpn);

	if (flow && !wmem_map_contains(flows, &key))
		insert(flows, &key, flow);
}

static void gid_address(address *addr, const struct migros_wire *wire)
{
	if (migros_gid_is_ipv4(wire->gid))
		set_address(addr, AT_IPv4, 4, wire->gid + 12);
	else
		set_address(addr, AT_IPv6, 16, wire->gid);
}

static void address_gid(const address *addr, uint8_t gid[16])
{
	memset(gid, 0, 16);
	if (addr->type == AT_IPv6) {
		memcpy(gid, addr->data, 16);
	} else if (addr->type == AT_IPv4) {
		memset(gid + 10, 0xff, 2);
		memcpy(gid + 12, addr->data, 4);
	}
}

static void set_peer(struct flow *flow, const address *peer)
{
	if (!addresses_equal(&flow->peer, peer))
		flow->before = flow->peer;
	copy_address_wmem(wmem_file_scope(), &flow->peer, peer);
}

/* Is this epoch over? Epochs wrap, and NAKs carry only 24 bits of them. */
static bool is_over(const struct flow *flow, uint32_t epoch, uint32_t mask)
{
	return flow->resumed && ((epoch - flow->epoch) & mask) > mask / 2;
}

static void track_nak(packet_info *pinfo, const struct migros_wire *wire,
		      struct migros_event *ev)
{
	struct flow *flow = get_flow(&pinfo->dst, wire->dest_qpn);

	ev->stale = is_over(flow, wire->epoch, MIGR_NAK_EPOCH_MASK);
	if (ev->stale)
		return;
	/* who runs on says it until it is followed */
	if (flow->state != STOPPED &&
	    !(flow->state == RESUMED && flow->ran_on &&
	      addresses_equal(&flow->peer, &pinfo->src))) {
		flow->state = STOPPED;
		flow->episode =
			wmem_new0(wmem_file_scope(), struct migros_episode);
		flow->episode->nak_frame = pinfo->num;
		flow->episode->nak_time = pinfo->abs_ts;
	}
	set_peer(flow, &pinfo->src);
	ev->episode = flow->episode;
}

/* RESUME, MOVED and questions are sent again until they are acknowledged. */
static void track_sent(packet_info *pinfo, const struct migros_wire *wire,
		       struct migros_event *ev, uint32_t ack_qpn)
{
	const struct key key = {
		.to = pinfo->dst,
		.from = pinfo->src,
		.qpn = ack_qpn,
		.epoch = wire->epoch,
		.nonce = wire->nonce,
		.kind = wire->kind,
	};

	ev->resend_of = wmem_map_lookup(exchanges, &key);
	insert(exchanges, &key, ev);
}

static void track_resume(packet_info *pinfo, const struct migros_wire *wire,
			 struct migros_event *ev)
{
	struct flow *flow = get_flow(&pinfo->dst, wire->dest_qpn);

	ev->stale = is_over(flow, wire->epoch, UINT32_MAX);
	if (ev->stale)
		return;
	track_sent(pinfo, wire, ev, wire->new_qpn);
	if (flow->state == STOPPED) {
		flow->state = RESUMED;
		flow->ran_on = addresses_equal(&flow->peer, &pinfo->src);
		flow->episode->resume_frame = pinfo->num;
		follow(&flow->peer, wire->old_qpn, &pinfo->src, wire->new_qpn);
	} else if (!flow->resumed || flow->epoch != wire->epoch) {
		/* no NAK: what it continues is not the last episode */
		flow->state = RESUMED;
		flow->ran_on = false;
		flow->episode = NULL;
	}
	flow->resumed = true;
	flow->epoch = wire->epoch;
	set_peer(flow, &pinfo->src);
	ev->episode = flow->episode;
}

static void track_moved(packet_info *pinfo, const struct migros_wire *wire,
			struct migros_event *ev)
{
	address now;

	gid_address(&now, wire);
	follow(&pinfo->src, wire->old_qpn, &now, wire->new_qpn);
	track_sent(pinfo, wire, ev, wire->old_qpn);
	ev->episode = get_flow(&pinfo->dst, wire->dest_qpn)->episode;
}

/* of this kind */
static void track_ack_of(packet_info *pinfo, const struct migros_wire *wire,
			 struct migros_event *ev, uint8_t kind)
{
	const struct key key = {
		.to = pinfo->src,
		.from = pinfo->dst,
		.qpn = wire->dest_qpn,
		.epoch = wire->epoch,
		.nonce = wire->nonce,
		.kind = kind,
	};
	struct migros_event *sent = wmem_map_lookup(exchanges, &key);

	ev->ack_of = sent;
	for (; sent && !sent->acked_in; sent = sent->resend_of)
		sent->acked_in = pinfo->num;
}

static void track_ack(packet_info *pinfo, const struct migros_wire *wire,
		      struct migros_event *ev)
{
	track_ack_of(pinfo, wire, ev, wire->kind);
}

/* of the QP that was asked, or in its place */
static void track_answer(packet_info *pinfo, const struct migros_wire *wire,
			 struct migros_event *ev)
{
	track_ack_of(pinfo, wire, ev, MIGR_METH_KIND_ASK);
}

/* An ordinary packet is news only where a partner waits for one. */
static void track_ordinary(packet_info *pinfo, const struct migros_wire *wire,
			   struct migros_event *ev)
{
	struct flow *flow = find_flow(&pinfo->dst, wire->dest_qpn);

	if (!flow || flow->state == RUNNING)
		return;
	if (flow->state == STOPPED && addresses_equal(&flow->peer, &pinfo->src))
		ev->type = MIGROS_ABORTED; /* the one that had stopped */
	else
		ev->type = MIGROS_FIRST_PACKET;
	flow->state = RUNNING;
	if (flow->episode)
		flow->episode->end_frame = pinfo->num;
	ev->episode = flow->episode;
}

/* It is no part of a migration, nor is its answer */
static void track_question(packet_info *pinfo, const struct migros_wire *wire,
			   struct migros_event *ev)
{
	track_sent(pinfo, wire, ev, wire->new_qpn);
}

typedef void track_fn(packet_info *pinfo, const struct migros_wire *wire,
		      struct migros_event *ev);

static track_fn *const track[MIGROS_TYPES] = {
	[MIGROS_NAK_STOPPED] = track_nak,   [MIGROS_RESUME] = track_resume,
	[MIGROS_RESUME_ACK] = track_ack,    [MIGROS_MOVED] = track_moved,
	[MIGROS_QUESTION] = track_question, [MIGROS_ANSWER] = track_answer,
	[MIGROS_NOBODY] = track_answer,
};

/* Has it been seen where a sender was before the last RESUME that it sends? */
static bool knows_before(const struct flow *flow)
{
	return flow &&
	       (flow->resumed ? &flow->before : &flow->peer)->type != AT_NONE;
}

/*
 * RESUME is signed for where its sender was before, so who has not seen that does
 * not know.
 */
static enum migros_mac check_mac(tvbuff_t *tvb, packet_info *pinfo,
				 const struct migros_wire *wire)
{
	const struct flow *flow = find_flow(&pinfo->dst, wire->dest_qpn);
	const address *from[] = {
		&pinfo->src,
		flow ? &flow->peer : NULL,
		flow ? &flow->before : NULL,
	};
	size_t n = wire->type == MIGROS_RESUME ? array_length(from) : 1;
	enum migros_mac mac = MIGROS_MAC_BAD;
	uint8_t from_gid[16], to_gid[16];

	address_gid(&pinfo->dst, to_gid);
	for (size_t i = 0; i < n && mac == MIGROS_MAC_BAD; i++) {
		if (!from[i] || from[i]->type == AT_NONE)
			continue;
		address_gid(from[i], from_gid);
		mac = migros_check_mac(tvb, from_gid, to_gid);
	}
	if (mac == MIGROS_MAC_BAD && wire->type == MIGROS_RESUME &&
	    !knows_before(flow))
		mac = MIGROS_MAC_UNCHECKED;
	return mac;
}

static struct migros_event *first_look(tvbuff_t *tvb, packet_info *pinfo,
				       const struct migros_wire *wire)
{
	struct migros_event now = {
		.type = wire->type,
		.valid = wire->valid,
		.frame = pinfo->num,
		.time = pinfo->abs_ts,
	};
	struct migros_event *ev;

	if (wire->type == MIGROS_ORDINARY) {
		track_ordinary(pinfo, wire, &now);
		if (now.type == MIGROS_ORDINARY)
			return NULL; /* nothing to remember of most packets */
	}
	if (wire->valid && wire->type > MIGROS_NAK_STOPPED)
		now.mac = check_mac(tvb, pinfo, wire);
	if (now.mac == MIGROS_MAC_BAD)
		now.valid = false;
	ev = wmem_memdup(wmem_file_scope(), &now, sizeof(now));
	if (now.valid && wire->type != MIGROS_ORDINARY)
		track[wire->type](pinfo, wire, ev);
	p_add_proto_data(wmem_file_scope(), pinfo, proto_migros,
			 pinfo->curr_layer_num, ev);
	return ev;
}

/*
 * What the trace says about this packet; NULL for an ordinary packet that
 * neither ends a migration nor aborts one.
 */
struct migros_event *migros_track(tvbuff_t *tvb, packet_info *pinfo,
				  const struct migros_wire *wire)
{
	if (!pinfo->fd->visited)
		return first_look(tvb, pinfo, wire);
	return p_get_proto_data(wmem_file_scope(), pinfo, proto_migros,
				pinfo->curr_layer_num);
}

/* How long the partner had waited when this packet ended (part of) it. */
bool migros_blackout(const struct migros_event *ev, nstime_t *out)
{
	const struct migros_episode *ep = ev->episode;

	if (!ep ||
	    (ev->frame != ep->resume_frame && ev->frame != ep->end_frame))
		return false;
	nstime_delta(out, &ev->time, &ep->nak_time);
	return true;
}

bool migros_round_trip(const struct migros_event *ev, nstime_t *out)
{
	if (!ev->ack_of)
		return false;
	nstime_delta(out, &ev->time, &ev->ack_of->time);
	return true;
}

bool migros_repeated(const struct migros_event *ev)
{
	if (ev->type == MIGROS_NAK_STOPPED)
		return ev->episode && ev->frame != ev->episode->nak_frame;
	return ev->resend_of != NULL;
}

void migros_track_init(int proto)
{
	proto_migros = proto;
	flows = wmem_map_new_autoreset(wmem_epan_scope(), wmem_file_scope(),
				       key_hash, key_equal);
	exchanges = wmem_map_new_autoreset(wmem_epan_scope(), wmem_file_scope(),
					   key_hash, key_equal);
}
