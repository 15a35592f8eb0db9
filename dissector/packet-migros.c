// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The packets of the migration protocol, as Wireshark shows them.
 *
 * Wireshark's own InfiniBand dissector knows nothing of them and offers no
 * place to add an opcode. So we stand in front of it at the RoCEv2 port: it
 * dissects every packet as always, and we add what it does not know.
 */
#include <wireshark.h>

#include <epan/exceptions.h>
#include <epan/expert.h>
#include <epan/packet.h>
#include <epan/prefs.h>
#include <epan/show_exception.h>
#include <epan/tap.h>

#include "migros.h"
#include "rxe_migr_wire.h"

#define BTH_BYTES 12
#define BTH_OPCODE 0
#define BTH_DEST_QPN 5
#define AETH BTH_BYTES
#define AETH_BYTES 4
#define AETH_MSN (AETH + 1)
#define METH (AETH + AETH_BYTES)
#define ICRC_BYTES 4

#define OPCODE_RC_ACKNOWLEDGE 0x11

const char *const migros_names[MIGROS_TYPES] = {
	[MIGROS_NAK_STOPPED] = "NAK_STOPPED",
	[MIGROS_RESUME] = "RESUME",
	[MIGROS_RESUME_ACK] = "RESUME_ACK",
	[MIGROS_MOVED] = "MOVED",
	[MIGROS_QUESTION] = "QUESTION",
	[MIGROS_ANSWER] = "ANSWER",
	[MIGROS_NOBODY] = "NOBODY",
	[MIGROS_FIRST_PACKET] = "first packet",
	[MIGROS_ABORTED] = "aborted",
};

static const value_string kinds[] = {
	{ MIGR_METH_KIND_RESUME, "RESUME" },
	{ MIGR_METH_KIND_MOVED, "MOVED" },
	{ MIGR_METH_KIND_ASK, "question" },
	{ MIGR_METH_KIND_NOBODY, "nobody" },
	{ 0, NULL },
};

static int proto_migros;
static int proto_infiniband;
static protocol_t *protocol;
static int tap_migros;
static dissector_handle_t wrapper;
static dissector_handle_t infiniband;

static int ett_migros;
static int ett_meth;

static int hf_type;
static int hf_cap;
static int hf_qpn;
static int hf_syndrome;
static int hf_msn;
static int hf_meth;
static int hf_version;
static int hf_kind;
static int hf_key_id;
static int hf_epoch;
static int hf_old_qpn;
static int hf_new_qpn;
static int hf_gid;
static int hf_ipv4;
static int hf_udp_port;
static int hf_nonce;
static int hf_reserved;
static int hf_mac;
static int hf_mac_ok;
static int hf_stopped_in;
static int hf_resumed_in;
static int hf_resend_of;
static int hf_acked_in;
static int hf_ack_of;
static int hf_round_trip;
static int hf_blackout;
static int hf_blackout_total;

static hf_register_info fields[] = {
	{ &hf_type,
	  { "Type", "migros.type", FT_STRING, BASE_NONE, NULL, 0,
	    "Capitals: a packet of the protocol; else what an ordinary packet "
	    "means",
	    HFILL } },
	{ &hf_cap,
	  { "Migratable sender", "migros.cap", FT_BOOLEAN, 8, NULL,
	    MIGR_BTH_CAP_BIT, "Capability bit of the BTH (resv6a)", HFILL } },
	{ &hf_qpn,
	  { "Destination QPN", "migros.qpn", FT_UINT24, BASE_HEX, NULL, 0, NULL,
	    HFILL } },
	{ &hf_syndrome,
	  { "AETH syndrome", "migros.syndrome", FT_UINT8, BASE_HEX, NULL, 0,
	    NULL, HFILL } },
	{ &hf_msn,
	  { "AETH MSN", "migros.msn", FT_UINT24, BASE_DEC, NULL, 0, NULL,
	    HFILL } },
	{ &hf_meth,
	  { "Migration header (METH)", "migros.meth", FT_NONE, BASE_NONE, NULL,
	    0, NULL, HFILL } },
	{ &hf_version,
	  { "Version", "migros.version", FT_UINT8, BASE_DEC, NULL, 0xf0, NULL,
	    HFILL } },
	{ &hf_kind,
	  { "Kind", "migros.kind", FT_UINT8, BASE_DEC, VALS(kinds), 0x0f, NULL,
	    HFILL } },
	{ &hf_key_id,
	  { "Key id", "migros.key_id", FT_UINT8, BASE_DEC, NULL, 0,
	    "Which cluster key made the MAC", HFILL } },
	{ &hf_epoch,
	  { "Epoch", "migros.epoch", FT_UINT32, BASE_DEC, NULL, 0,
	    "How often the QP has been restored; NAK_STOPPED carries the low "
	    "24 bits",
	    HFILL } },
	{ &hf_old_qpn,
	  { "Old QPN", "migros.old_qpn", FT_UINT24, BASE_HEX, NULL, 0,
	    "QPN that the partner knows", HFILL } },
	{ &hf_new_qpn,
	  { "New QPN", "migros.new_qpn", FT_UINT24, BASE_HEX, NULL, 0,
	    "QPN from now on", HFILL } },
	{ &hf_gid,
	  { "New GID", "migros.gid", FT_IPv6, BASE_NONE, NULL, 0,
	    "GID from now on", HFILL } },
	{ &hf_ipv4,
	  { "New IPv4 address", "migros.ipv4", FT_IPv4, BASE_NONE, NULL, 0,
	    "The GID is an IPv4 address", HFILL } },
	{ &hf_udp_port,
	  { "New UDP source port", "migros.udp_port", FT_UINT16, BASE_DEC, NULL,
	    0, "UDP source port from now on", HFILL } },
	{ &hf_nonce,
	  { "Nonce", "migros.nonce", FT_UINT32, BASE_HEX, NULL, 0,
	    "Of one restore, or of one question; of what answers it, too",
	    HFILL } },
	{ &hf_reserved,
	  { "Reserved", "migros.reserved", FT_BYTES, BASE_NONE, NULL, 0, NULL,
	    HFILL } },
	{ &hf_mac,
	  { "MAC", "migros.mac", FT_BYTES, BASE_NONE, NULL, 0,
	    "Truncated HMAC-SHA-256", HFILL } },
	{ &hf_mac_ok,
	  { "MAC is right", "migros.mac_ok", FT_BOOLEAN, BASE_NONE, NULL, 0,
	    "Only if the key is in the preferences", HFILL } },
	{ &hf_stopped_in,
	  { "Stopped in", "migros.stopped_in", FT_FRAMENUM, BASE_NONE,
	    FRAMENUM_TYPE(FT_FRAMENUM_REQUEST), 0,
	    "First NAK_STOPPED of this migration", HFILL } },
	{ &hf_resumed_in,
	  { "Resumed in", "migros.resumed_in", FT_FRAMENUM, BASE_NONE,
	    FRAMENUM_TYPE(FT_FRAMENUM_RESPONSE), 0,
	    "First RESUME of this migration", HFILL } },
	{ &hf_resend_of,
	  { "Sent before in", "migros.resend_of", FT_FRAMENUM, BASE_NONE,
	    FRAMENUM_TYPE(FT_FRAMENUM_RETRANS_PREV), 0, NULL, HFILL } },
	{ &hf_acked_in,
	  { "Acknowledged in", "migros.acked_in", FT_FRAMENUM, BASE_NONE,
	    FRAMENUM_TYPE(FT_FRAMENUM_RESPONSE), 0, NULL, HFILL } },
	{ &hf_ack_of,
	  { "Acknowledges", "migros.ack_of", FT_FRAMENUM, BASE_NONE,
	    FRAMENUM_TYPE(FT_FRAMENUM_REQUEST), 0,
	    "The latest RESUME that this can mean", HFILL } },
	{ &hf_round_trip,
	  { "Round trip", "migros.round_trip", FT_RELATIVE_TIME, BASE_NONE,
	    NULL, 0, "From the latest RESUME to its acknowledgement", HFILL } },
	{ &hf_blackout,
	  { "Blackout until RESUME", "migros.blackout", FT_RELATIVE_TIME,
	    BASE_NONE, NULL, 0,
	    "From the first NAK_STOPPED to the first RESUME", HFILL } },
	{ &hf_blackout_total,
	  { "Blackout in total", "migros.blackout_total", FT_RELATIVE_TIME,
	    BASE_NONE, NULL, 0,
	    "From the first NAK_STOPPED to the first ordinary packet that the "
	    "partner gets again",
	    HFILL } },
};

static int *subtrees[] = { &ett_migros, &ett_meth };

static expert_field ei_stopped;
static expert_field ei_resume;
static expert_field ei_moved;
static expert_field ei_first_packet;
static expert_field ei_aborted;
static expert_field ei_no_nak;
static expert_field ei_resend;
static expert_field ei_unacked;
static expert_field ei_ack_alone;
static expert_field ei_stale;
static expert_field ei_no_cap;
static expert_field ei_reserved;
static expert_field ei_version;
static expert_field ei_kind;
static expert_field ei_length;
static expert_field ei_mac;

static ei_register_info experts[] = {
	{ &ei_stopped,
	  { "migros.stopped", PI_SEQUENCE, PI_NOTE, "The sender is stopped",
	    EXPFILL } },
	{ &ei_resume,
	  { "migros.resume", PI_SEQUENCE, PI_CHAT, "The sender has a new home",
	    EXPFILL } },
	{ &ei_moved,
	  { "migros.moved", PI_SEQUENCE, PI_CHAT,
	    "The old host names the new one", EXPFILL } },
	{ &ei_first_packet,
	  { "migros.first_packet", PI_SEQUENCE, PI_CHAT,
	    "First ordinary packet after the migration", EXPFILL } },
	{ &ei_aborted,
	  { "migros.aborted", PI_SEQUENCE, PI_NOTE,
	    "The stopped sender speaks again: the migration was aborted",
	    EXPFILL } },
	{ &ei_no_nak,
	  { "migros.no_nak", PI_SEQUENCE, PI_CHAT,
	    "RESUME without a NAK_STOPPED before it: the partner was silent, or "
	    "the capture began later",
	    EXPFILL } },
	{ &ei_resend,
	  { "migros.resend", PI_SEQUENCE, PI_NOTE, "Sent again", EXPFILL } },
	{ &ei_unacked,
	  { "migros.unacked", PI_SEQUENCE, PI_WARN,
	    "Never acknowledged in this capture", EXPFILL } },
	{ &ei_ack_alone,
	  { "migros.ack_alone", PI_SEQUENCE, PI_NOTE,
	    "RESUME_ACK of a RESUME that is not in this capture", EXPFILL } },
	{ &ei_stale,
	  { "migros.stale", PI_SEQUENCE, PI_NOTE,
	    "Epoch older than the last RESUME: receivers ignore it",
	    EXPFILL } },
	{ &ei_no_cap,
	  { "migros.no_cap", PI_PROTOCOL, PI_NOTE,
	    "Migration packet without the capability bit", EXPFILL } },
	{ &ei_reserved,
	  { "migros.reserved_set", PI_PROTOCOL, PI_NOTE,
	    "Reserved field is not zero", EXPFILL } },
	{ &ei_version,
	  { "migros.bad_version", PI_PROTOCOL, PI_WARN, "Unknown METH version",
	    EXPFILL } },
	{ &ei_kind,
	  { "migros.bad_kind", PI_PROTOCOL, PI_WARN, "Unknown METH kind",
	    EXPFILL } },
	{ &ei_mac,
	  { "migros.bad_mac", PI_SECURITY, PI_WARN,
	    "Wrong MAC: receivers drop the packet", EXPFILL } },
	{ &ei_length,
	  { "migros.bad_length", PI_MALFORMED, PI_ERROR,
	    "The packet has not the length of BTH, AETH, METH and ICRC",
	    EXPFILL } },
};

/* ---- parsing ---- */

static bool is_rc(tvbuff_t *tvb)
{
	return tvb_get_uint8(tvb, BTH_OPCODE) >> 5 == 0;
}

/* RC, or a question, whose class is another one */
static bool is_ours(tvbuff_t *tvb)
{
	return tvb_captured_length(tvb) >= BTH_BYTES &&
	       (is_rc(tvb) ||
		tvb_get_uint8(tvb, BTH_OPCODE) == MIGR_OPCODE_ASK);
}

static enum migros_type type_of(tvbuff_t *tvb)
{
	switch (tvb_get_uint8(tvb, BTH_OPCODE)) {
	case MIGR_OPCODE_RESUME:
		return MIGROS_RESUME;
	case MIGR_OPCODE_RESUME_ACK:
		return MIGROS_RESUME_ACK;
	case MIGR_OPCODE_ASK:
		return MIGROS_QUESTION;
	case OPCODE_RC_ACKNOWLEDGE:
		if (tvb_captured_length(tvb) >= METH &&
		    tvb_get_uint8(tvb, AETH) == MIGR_AETH_NAK_STOPPED)
			return MIGROS_NAK_STOPPED;
		break;
	}
	return MIGROS_ORDINARY;
}

static unsigned length_of(enum migros_type type)
{
	unsigned meth = type == MIGROS_NAK_STOPPED ? 0 : MIGR_METH_BYTES;

	return METH + meth + ICRC_BYTES;
}

/* what a packet of this opcode is by its kind, or MIGROS_ORDINARY */
static enum migros_type type_of_kind(enum migros_type opcode, uint8_t kind)
{
	static const struct {
		enum migros_type opcode;
		uint8_t kind;
		enum migros_type type;
	} types[] = {
		{ MIGROS_RESUME, MIGR_METH_KIND_RESUME, MIGROS_RESUME },
		{ MIGROS_RESUME, MIGR_METH_KIND_MOVED, MIGROS_MOVED },
		{ MIGROS_QUESTION, MIGR_METH_KIND_ASK, MIGROS_QUESTION },
		{ MIGROS_RESUME_ACK, MIGR_METH_KIND_RESUME, MIGROS_RESUME_ACK },
		{ MIGROS_RESUME_ACK, MIGR_METH_KIND_MOVED, MIGROS_RESUME_ACK },
		{ MIGROS_RESUME_ACK, MIGR_METH_KIND_ASK, MIGROS_ANSWER },
		{ MIGROS_RESUME_ACK, MIGR_METH_KIND_NOBODY, MIGROS_NOBODY },
	};

	for (size_t i = 0; i < array_length(types); i++)
		if (types[i].opcode == opcode && types[i].kind == kind)
			return types[i].type;
	return MIGROS_ORDINARY;
}

static void parse_meth(tvbuff_t *tvb, struct migros_wire *wire)
{
	enum migros_type type;
	uint8_t ver_kind;

	if (tvb_captured_length(tvb) < METH + MIGR_METH_BYTES)
		return;
	ver_kind = tvb_get_uint8(tvb, METH + MIGR_METH_VER_KIND);
	wire->kind = ver_kind & 0xf;
	wire->epoch = tvb_get_ntohl(tvb, METH + MIGR_METH_EPOCH);
	wire->old_qpn = tvb_get_ntoh24(tvb, METH + MIGR_METH_OLD_QPN + 1);
	wire->new_qpn = tvb_get_ntoh24(tvb, METH + MIGR_METH_NEW_QPN + 1);
	wire->nonce = tvb_get_ntohl(tvb, METH + MIGR_METH_NONCE);
	tvb_memcpy(tvb, wire->gid, METH + MIGR_METH_GID, sizeof(wire->gid));
	type = type_of_kind(wire->type, wire->kind);
	wire->valid = ver_kind >> 4 == MIGR_METH_VERSION &&
		      type != MIGROS_ORDINARY &&
		      tvb_reported_length(tvb) == length_of(wire->type);
	if (type != MIGROS_ORDINARY)
		wire->type = type;
}

/* Never throws: looks only at what was captured. The caller checked the BTH. */
static void parse(tvbuff_t *tvb, struct migros_wire *wire)
{
	wire->type = type_of(tvb);
	wire->dest_qpn = tvb_get_ntoh24(tvb, BTH_DEST_QPN);
	if (wire->type == MIGROS_NAK_STOPPED) {
		wire->epoch = tvb_get_ntoh24(tvb, AETH_MSN);
		wire->valid = tvb_reported_length(tvb) == length_of(wire->type);
	} else if (wire->type != MIGROS_ORDINARY) {
		parse_meth(tvb, wire);
	}
}

/* ---- the protocol tree ---- */

static const struct meth_field {
	int *hf;
	int offset;
	int bytes;
} meth_fields[] = {
	{ &hf_version, MIGR_METH_VER_KIND, 1 },
	{ &hf_kind, MIGR_METH_VER_KIND, 1 },
	{ &hf_key_id, MIGR_METH_KEY_ID, 1 },
	{ &hf_reserved, MIGR_METH_RESV1, 2 },
	{ &hf_epoch, MIGR_METH_EPOCH, 4 },
	{ &hf_reserved, MIGR_METH_OLD_QPN, 1 },
	{ &hf_old_qpn, MIGR_METH_OLD_QPN + 1, 3 },
	{ &hf_reserved, MIGR_METH_NEW_QPN, 1 },
	{ &hf_new_qpn, MIGR_METH_NEW_QPN + 1, 3 },
	{ &hf_gid, MIGR_METH_GID, 16 },
	{ &hf_udp_port, MIGR_METH_UDP_PORT, 2 },
	{ &hf_reserved, MIGR_METH_RESV2, 2 },
	{ &hf_nonce, MIGR_METH_NONCE, 4 },
	{ &hf_mac, MIGR_METH_MAC, MIGR_MAC_BYTES },
};

static bool all_zero(tvbuff_t *tvb, int offset, int bytes)
{
	while (bytes--)
		if (tvb_get_uint8(tvb, offset++))
			return false;
	return true;
}

static void check_meth_field(const struct meth_field *f, proto_item *item,
			     tvbuff_t *tvb, packet_info *pinfo)
{
	int at = METH + f->offset;
	uint8_t first = tvb_get_uint8(tvb, at);

	if (f->hf == &hf_version && first >> 4 != MIGR_METH_VERSION)
		expert_add_info(pinfo, item, &ei_version);
	if (f->hf == &hf_kind && !try_val_to_str(first & 0xf, kinds))
		expert_add_info(pinfo, item, &ei_kind);
	if (f->hf == &hf_reserved && !all_zero(tvb, at, f->bytes))
		expert_add_info(pinfo, item, &ei_reserved);
}

static void add_ipv4(proto_tree *tree, tvbuff_t *tvb)
{
	int at = METH + MIGR_METH_GID;

	if (!migros_gid_is_ipv4(tvb_get_ptr(tvb, at, 16)))
		return;
	proto_item_set_generated(
		proto_tree_add_item(tree, hf_ipv4, tvb, at + 12, 4, ENC_NA));
}

static void add_mac_ok(proto_tree *tree, tvbuff_t *tvb, packet_info *pinfo,
		       enum migros_mac mac)
{
	proto_item *item;

	if (mac == MIGROS_MAC_UNCHECKED)
		return;
	item = proto_tree_add_boolean(tree, hf_mac_ok, tvb,
				      METH + MIGR_METH_MAC, MIGR_MAC_BYTES,
				      mac == MIGROS_MAC_GOOD);
	proto_item_set_generated(item);
	if (mac == MIGROS_MAC_BAD)
		expert_add_info(pinfo, item, &ei_mac);
}

static void add_meth(proto_tree *tree, tvbuff_t *tvb, packet_info *pinfo,
		     enum migros_mac mac)
{
	proto_item *item = proto_tree_add_item(tree, hf_meth, tvb, METH,
					       MIGR_METH_BYTES, ENC_NA);
	proto_tree *meth = proto_item_add_subtree(item, ett_meth);

	for (size_t i = 0; i < array_length(meth_fields); i++) {
		const struct meth_field *f = &meth_fields[i];

		item = proto_tree_add_item(meth, *f->hf, tvb, METH + f->offset,
					   f->bytes, ENC_BIG_ENDIAN);
		check_meth_field(f, item, tvb, pinfo);
		if (f->hf == &hf_gid)
			add_ipv4(meth, tvb);
	}
	add_mac_ok(meth, tvb, pinfo, mac);
}

static void add_frame(proto_tree *tree, int hf, tvbuff_t *tvb, uint32_t frame)
{
	if (frame)
		proto_item_set_generated(
			proto_tree_add_uint(tree, hf, tvb, 0, 0, frame));
}

static void add_time(proto_tree *tree, int hf, tvbuff_t *tvb, nstime_t *t)
{
	proto_item_set_generated(proto_tree_add_time(tree, hf, tvb, 0, 0, t));
}

static uint32_t frame_of(const struct migros_event *ev)
{
	return ev ? ev->frame : 0;
}

static void add_episode(proto_tree *tree, tvbuff_t *tvb,
			const struct migros_event *ev)
{
	const struct migros_episode *ep = ev->episode;
	nstime_t t;

	if (!ep)
		return;
	if (ev->frame != ep->nak_frame)
		add_frame(tree, hf_stopped_in, tvb, ep->nak_frame);
	if (ev->type == MIGROS_NAK_STOPPED)
		add_frame(tree, hf_resumed_in, tvb, ep->resume_frame);
	if (migros_blackout(ev, &t))
		add_time(tree,
			 ev->frame == ep->end_frame ? hf_blackout_total
						    : hf_blackout,
			 tvb, &t);
}

static void add_exchange(proto_tree *tree, tvbuff_t *tvb,
			 const struct migros_event *ev)
{
	nstime_t t;

	add_frame(tree, hf_resend_of, tvb, frame_of(ev->resend_of));
	add_frame(tree, hf_acked_in, tvb, ev->acked_in);
	add_frame(tree, hf_ack_of, tvb, frame_of(ev->ack_of));
	if (migros_round_trip(ev, &t))
		add_time(tree, hf_round_trip, tvb, &t);
}

/* What a packet of each type always says. */
static expert_field *const type_expert[MIGROS_TYPES] = {
	[MIGROS_NAK_STOPPED] = &ei_stopped,
	[MIGROS_RESUME] = &ei_resume,
	[MIGROS_MOVED] = &ei_moved,
	[MIGROS_FIRST_PACKET] = &ei_first_packet,
	[MIGROS_ABORTED] = &ei_aborted,
};

/* Only a later look can know that nothing came: the first one passes. */
static bool unacked(packet_info *pinfo, const struct migros_event *ev)
{
	return pinfo->fd->visited && ev->type == MIGROS_RESUME && ev->valid &&
	       !ev->stale && !ev->acked_in;
}

static void add_experts(proto_item *item, packet_info *pinfo,
			const struct migros_event *ev)
{
	const struct {
		bool applies;
		expert_field *ei;
	} list[] = {
		{ type_expert[ev->type], type_expert[ev->type] },
		{ ev->stale, &ei_stale },
		{ ev->resend_of, &ei_resend },
		{ unacked(pinfo, ev), &ei_unacked },
		{ ev->type == MIGROS_RESUME && ev->valid && !ev->stale &&
			  !ev->episode,
		  &ei_no_nak },
		{ ev->type == MIGROS_RESUME_ACK && ev->valid && !ev->ack_of,
		  &ei_ack_alone },
	};

	for (size_t i = 0; i < array_length(list); i++)
		if (list[i].applies)
			expert_add_info(pinfo, item, list[i].ei);
}

static void add_cap(proto_tree *tree, tvbuff_t *tvb, packet_info *pinfo,
		    bool wanted)
{
	proto_item *item =
		proto_tree_add_item(tree, hf_cap, tvb, MIGR_BTH_CAP_BYTE, 1,
				    ENC_BIG_ENDIAN);

	if (wanted &&
	    !(tvb_get_uint8(tvb, MIGR_BTH_CAP_BYTE) & MIGR_BTH_CAP_BIT))
		expert_add_info(pinfo, item, &ei_no_cap);
}

static void add_qpn(proto_tree *tree, tvbuff_t *tvb)
{
	proto_tree_add_item(tree, hf_qpn, tvb, BTH_DEST_QPN, 3, ENC_BIG_ENDIAN);
}

static void add_headers(proto_tree *tree, proto_item *top, tvbuff_t *tvb,
			packet_info *pinfo, const struct migros_wire *wire,
			enum migros_mac mac)
{
	unsigned bytes = length_of(wire->type);

	if (tvb_reported_length(tvb) != bytes)
		expert_add_info(pinfo, top, &ei_length);
	if (is_rc(tvb))
		add_cap(tree, tvb, pinfo, true);
	add_qpn(tree, tvb);
	proto_tree_add_item(tree, hf_syndrome, tvb, AETH, 1, ENC_BIG_ENDIAN);
	proto_tree_add_item(tree, hf_msn, tvb, AETH_MSN, 3, ENC_BIG_ENDIAN);
	if (wire->type == MIGROS_NAK_STOPPED)
		proto_tree_add_item(tree, hf_epoch, tvb, AETH_MSN, 3,
				    ENC_BIG_ENDIAN);
	else if (tvb_reported_length(tvb) >= bytes - ICRC_BYTES)
		add_meth(tree, tvb, pinfo, mac);
}

static proto_tree *add_migros(proto_tree *tree, tvbuff_t *tvb,
			      packet_info *pinfo, const struct migros_event *ev)
{
	proto_item *top =
		proto_tree_add_item(tree, proto_migros, tvb, 0, 0, ENC_NA);
	proto_item *item;

	proto_item_append_text(top, ", %s", migros_names[ev->type]);
	tree = proto_item_add_subtree(top, ett_migros);
	item = proto_tree_add_string(tree, hf_type, tvb, 0, 0,
				     migros_names[ev->type]);
	proto_item_set_generated(item);
	add_experts(item, pinfo, ev);
	add_episode(tree, tvb, ev);
	add_exchange(tree, tvb, ev);
	return tree;
}

/* The subtree that the InfiniBand dissector has just added, or its parent. */
static proto_tree *infiniband_tree(proto_tree *tree)
{
	proto_node *node;

	for (node = tree ? tree->first_child : NULL; node; node = node->next)
		if (PNODE_FINFO(node) &&
		    PNODE_FINFO(node)->hfinfo->id == proto_infiniband)
			return node;
	return tree;
}

/* ---- columns ---- */

static void set_columns(packet_info *pinfo, const struct migros_wire *wire,
			const struct migros_event *ev)
{
	nstime_t t;

	if (wire->type == MIGROS_ORDINARY) {
		col_append_fstr(pinfo->cinfo, COL_INFO, " [%s]",
				migros_names[ev->type]);
	} else {
		col_set_str(pinfo->cinfo, COL_PROTOCOL, "MigrOS");
		col_add_fstr(pinfo->cinfo, COL_INFO, "%s QP=0x%06x epoch=%u",
			     migros_names[ev->type], wire->dest_qpn,
			     wire->epoch);
	}
	if (wire->old_qpn != wire->new_qpn)
		col_append_fstr(pinfo->cinfo, COL_INFO, " 0x%06x->0x%06x",
				wire->old_qpn, wire->new_qpn);
	if (migros_repeated(ev))
		col_append_str(pinfo->cinfo, COL_INFO, " [again]");
	if (migros_blackout(ev, &t))
		col_append_fstr(pinfo->cinfo, COL_INFO, " [blackout %.6f s]",
				nstime_to_sec(&t));
}

/* ---- the dissector ---- */

/* A packet that breaks the old dissector must not cost us ours. */
static int call_infiniband(tvbuff_t *tvb, packet_info *pinfo, proto_tree *tree)
{
	volatile int done = tvb_captured_length(tvb);

	TRY
	{
		done = call_dissector_only(infiniband, tvb, pinfo, tree, NULL);
	}
	CATCH_NONFATAL_ERRORS
	{
		show_exception(tvb, pinfo, tree, EXCEPT_CODE, GET_MESSAGE);
	}
	ENDTRY;
	return done;
}

static void dissect_ours(tvbuff_t *tvb, packet_info *pinfo, proto_tree *tree,
			 const struct migros_wire *wire,
			 struct migros_event *ev)
{
	bool ordinary = wire->type == MIGROS_ORDINARY;
	proto_tree *sub;

	if (ordinary)
		add_cap(infiniband_tree(tree), tvb, pinfo, false);
	if (!ev)
		return;
	pinfo->current_proto = "MigrOS"; /* whom expert information names */
	tap_queue_packet(tap_migros, pinfo, ev);
	set_columns(pinfo, wire, ev);
	sub = add_migros(tree, tvb, pinfo, ev);
	if (ordinary)
		add_qpn(sub, tvb);
	else
		add_headers(sub, proto_tree_get_parent(sub), tvb, pinfo, wire,
			    ev->mac);
}

static int dissect(tvbuff_t *tvb, packet_info *pinfo, proto_tree *tree,
		   void *data _U_)
{
	struct migros_wire wire = { 0 };
	struct migros_event *ev = NULL;
	/* A packet quoted in an ICMP error was not sent a second time. */
	bool ours = proto_is_protocol_enabled(protocol) && is_ours(tvb) &&
		    !pinfo->flags.in_error_pkt;
	int done;

	/* Before the old dissector, which may change the addresses. */
	if (ours) {
		parse(tvb, &wire);
		ev = migros_track(tvb, pinfo, &wire);
	}
	done = call_infiniband(tvb, pinfo, tree);
	if (ours)
		dissect_ours(tvb, pinfo, tree, &wire, ev);
	return done;
}

/* ---- registration ---- */

/*
 * Take the place of whatever stands at the RoCEv2 port. A change of any
 * InfiniBand preference puts the old dissector back there, perhaps at another
 * port, so this runs again before every capture is read.
 */
static void wrap(void)
{
	dissector_table_t udp = find_dissector_table("udp.port");
	unsigned port = prefs_get_uint_value("infiniband", "rroce.port");
	dissector_handle_t there = dissector_get_uint_handle(udp, port);

	if (!there || there == wrapper)
		return;
	infiniband = there;
	dissector_add_uint("udp.port", port, wrapper);
}

/*
 * The wrapper belongs to a protocol in name only, a part of InfiniBand: it does
 * not show up as a layer of its own, and who disables MigrOS does not disable
 * RoCE with it.
 */
static void register_wrapper(void)
{
	int proto;

	proto_infiniband = proto_get_id_by_filter_name("infiniband");
	proto = proto_register_protocol_in_name_only("RoCEv2 that may migrate",
						     "RRoCE (MigrOS)",
						     "migros.rroce",
						     proto_infiniband,
						     FT_PROTOCOL);
	wrapper = create_dissector_handle(dissect, proto);
}

void migros_register(void)
{
	proto_migros = proto_register_protocol("RDMA live migration (MigrOS)",
					       "MigrOS", "migros");
	proto_register_field_array(proto_migros, fields, array_length(fields));
	proto_register_subtree_array(subtrees, array_length(subtrees));
	expert_register_field_array(expert_register_protocol(proto_migros),
				    experts, array_length(experts));
	protocol = find_protocol_by_id(proto_migros);
	register_wrapper();
	tap_migros = register_tap("migros");
	migros_mac_init(proto_migros);
	migros_track_init(proto_migros);
}

void migros_handoff(void)
{
	migros_stats_init();
	register_init_routine(wrap);
	wrap();
}
