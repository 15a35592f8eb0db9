// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Packets of the migration protocol: how they are made, sent, signed and checked.
 * What they mean is in rxe_migr_handle.c, rxe_migr_tomb.c and rxe_migr_absent.c.
 */
#include <net/ipv6.h>

#include "rxe.h"

/* what follows the BTH in a signed packet */
#define BODY_BYTES	(RXE_AETH_BYTES + MIGR_METH_BYTES)

/**
 * rxe_migr_send - send a packet that is not a request or response to the driver
 * @to: to whom, and by whom
 * @opcode: of the BTH
 * @psn: of the BTH
 * @ack_req: of the BTH
 * @body: what follows it
 * @len: bytes
 *
 * Context: any; the address vector must not change
 * Return: 0 or an error
 */
int rxe_migr_send(const struct rxe_migr_to *to, u8 opcode, u32 psn,
		  bool ack_req, const u8 *body, size_t len)
{
	struct rxe_qp *qp = to->qp;
	struct rxe_pkt_info pkt = {};
	struct sk_buff *skb;
	int err;

	pkt.qp = qp;
	pkt.opcode = opcode;
	pkt.psn = psn;
	pkt.paylen = RXE_BTH_BYTES + len + RXE_ICRC_SIZE;

	skb = rxe_init_packet(to_rdev(qp->ibqp.device), to->av, pkt.paylen,
			      &pkt);
	if (!skb)
		return -ENOMEM;

	bth_init(&pkt, opcode, 0, 0, 0, IB_DEFAULT_PKEY_FULL, to->qpn, ack_req,
		 psn);
	memcpy(pkt.hdr + RXE_BTH_BYTES, body, len);

	err = rxe_prepare(to->av, &pkt, skb);
	if (err) {
		kfree_skb(skb);
		return err;
	}

	return rxe_xmit_packet(qp, &pkt, skb);
}

/*
 * What the MAC covers, see rxe_migr_wire.h; @body's own MAC counts as zero, and @life
 * is the receiver's
 */
static void mac_input(u8 *in, u8 opcode, u32 qpn, u32 psn, const u8 *body,
		      u64 life)
{
	in[0] = opcode;
	put_unaligned_be24(qpn, in + 1);
	put_unaligned_be24(psn, in + 4);
	memcpy(in + 7, body, BODY_BYTES);
	memset(in + MIGR_MAC_METH + MIGR_METH_MAC, 0, MIGR_MAC_BYTES);
	put_unaligned_be64(life, in + MIGR_MAC_LIFE);
}

/**
 * rxe_migr_send_signed - send a packet with a METH
 * @to: to whom, and by whom
 * @say: what it says
 *
 * Context: process; sleeps. The address vector must not change.
 * Return: 0 or an error
 */
int rxe_migr_send_signed(const struct rxe_migr_to *to,
			 const struct rxe_migr_say *say)
{
	u8 in[MIGR_MAC_INPUT_BYTES];
	u8 body[BODY_BYTES] = {};
	u8 *meth = body + RXE_AETH_BYTES;
	int err;

	put_unaligned_be32((u32)AETH_ACK_UNLIMITED << 24 |
			   (say->msn & 0xffffff), body);
	meth[MIGR_METH_VER_KIND] = MIGR_METH_VERSION << 4 | say->kind;
	meth[MIGR_METH_FLAGS] = say->flags;
	if (!say->to_life)
		meth[MIGR_METH_FLAGS] |= MIGR_METH_FLAG_UNHEARD;
	put_unaligned_be32(say->epoch, meth + MIGR_METH_EPOCH);
	put_unaligned_be32(say->old_qpn, meth + MIGR_METH_OLD_QPN);
	put_unaligned_be32(say->new_qpn, meth + MIGR_METH_NEW_QPN);
	if (say->gid)
		memcpy(meth + MIGR_METH_GID, say->gid, 16);
	else
		rxe_migr_sgid(to->av, meth + MIGR_METH_GID);
	put_unaligned_be16(to->qp->src_port, meth + MIGR_METH_UDP_PORT);
	put_unaligned_be32(say->nonce, meth + MIGR_METH_NONCE);
	put_unaligned_be64(say->life, meth + MIGR_METH_LIFE);

	mac_input(in, say->opcode, to->qpn, say->psn, body, say->to_life);
	err = rxe_migr_key_sign(&in[MIGR_MAC_METH + MIGR_METH_KEY_ID], in,
				sizeof(in), meth + MIGR_METH_MAC,
				MIGR_MAC_BYTES);
	if (err) {
		rxe_err_qp(to->qp, "cannot sign, err = %d\n", err);
		return err;
	}
	meth[MIGR_METH_KEY_ID] = in[MIGR_MAC_METH + MIGR_METH_KEY_ID];

	return rxe_migr_send(to, say->opcode, say->psn,
			     say->opcode != MIGR_OPCODE_RESUME_ACK, body,
			     sizeof(body));
}

/**
 * rxe_migr_send_by_driver - send a packet with a METH, from no QP that has a peer
 * @rxe: the device
 * @own: its GID, 16 bytes
 * @place: to whom
 * @skb: a packet from there, or NULL
 * @say: what it says
 *
 * Context: process; sleeps.
 * Return: 0, -EHOSTUNREACH or another error
 */
int rxe_migr_send_by_driver(struct rxe_dev *rxe, const u8 *own,
			    const struct rxe_migr_place *place,
			    struct sk_buff *skb, const struct rxe_migr_say *say)
{
	struct rxe_pool_elem *elem;
	struct rxe_migr_to to;
	struct rxe_av av;
	int err = -EINVAL;

	if (!rxe_migr_lead(rxe, own, place->gid, skb, &av))
		return -EHOSTUNREACH;

	/* somebody must send it, and there is one on every device */
	elem = rxe_migr_get(&rxe->qp_pool, rxe->port.qp_gsi_index);
	if (!elem)
		return -ENODEV;

	to.qp = elem->obj;
	to.av = &av;
	to.qpn = place->qpn;
	if (qp_type(to.qp) == IB_QPT_GSI)
		err = rxe_migr_send_signed(&to, say);
	__rxe_put(elem);

	return err;
}

/* where a packet was sent to */
static void get_dgid(struct sk_buff *skb, union ib_gid *gid)
{
	if (skb->protocol == htons(ETH_P_IP))
		ipv6_addr_set_v4mapped(ip_hdr(skb)->daddr,
				       (struct in6_addr *)gid);
	else
		memcpy(gid, &ipv6_hdr(skb)->daddr, sizeof(*gid));
}

/**
 * rxe_migr_send_back - answer a signed packet as the driver, not as the QP it came for
 * @rxe: the device
 * @skb: the packet, which says where its sender is
 * @say: what to say
 *
 * Context: process; sleeps.
 */
void rxe_migr_send_back(struct rxe_dev *rxe, struct sk_buff *skb,
			const struct rxe_migr_say *say)
{
	const u8 *meth = rxe_migr_meth(SKB_TO_PKT(skb));
	struct rxe_migr_place place;
	union ib_gid own;
	int err;

	get_dgid(skb, &own);
	rxe_migr_get_place(meth, &place);
	err = rxe_migr_send_by_driver(rxe, own.raw, &place, skb, say);
	if (!err)
		rxe_counter_inc(rxe, RXE_CNT_MIGR_RESUME_ACK_SENT);
	else if (err == -EHOSTUNREACH)
		rxe_counter_inc(rxe, RXE_CNT_MIGR_UNEXPECTED);
}

/**
 * rxe_migr_get_place - the place of which a packet tells
 * @meth: its METH
 * @place: receives it
 */
void rxe_migr_get_place(const u8 *meth, struct rxe_migr_place *place)
{
	memcpy(place->gid, meth + MIGR_METH_GID, sizeof(place->gid));
	place->qpn = get_unaligned_be32(meth + MIGR_METH_NEW_QPN);
}

/**
 * rxe_migr_meth - the METH of a packet
 * @pkt: a packet, of which rxe_migr_chk_form() has approved
 */
const u8 *rxe_migr_meth(struct rxe_pkt_info *pkt)
{
	return payload_addr(pkt) + RXE_AETH_BYTES;
}

/**
 * rxe_migr_chk_form - has a signed packet the form that goes with its opcode?
 * @pkt: RESUME, RESUME_ACK, STOPPED or a question
 *
 * A question is signed for no life: it may be to nobody. An answer has that of who
 * has asked.
 *
 * Return: 0, -EMSGSIZE for its length, -EPROTO for version, kind or flags
 */
int rxe_migr_chk_form(struct rxe_pkt_info *pkt)
{
	static const u8 requests[] = {
		[MIGR_METH_KIND_RESUME] = MIGR_OPCODE_RESUME,
		[MIGR_METH_KIND_ASK] = MIGR_OPCODE_ASK,
		[MIGR_METH_KIND_STOPPED] = MIGR_OPCODE_ASK,
		[MIGR_METH_KIND_NOTICE] = MIGR_OPCODE_ASK,
	};
	static const u32 answers = BIT(MIGR_METH_KIND_RESUME) |
				   BIT(MIGR_METH_KIND_ASK) |
				   BIT(MIGR_METH_KIND_NOBODY) |
				   BIT(MIGR_METH_KIND_CHALLENGE) |
				   BIT(MIGR_METH_KIND_STOPPED) |
				   BIT(MIGR_METH_KIND_PAUSED) |
				   BIT(MIGR_METH_KIND_MOVED) |
				   BIT(MIGR_METH_KIND_NOTICE);
	const u8 *meth;
	bool unheard;
	bool good;
	u8 kind;

	if (bth_pad(pkt) || payload_size(pkt) != BODY_BYTES)
		return -EMSGSIZE;

	meth = rxe_migr_meth(pkt);
	kind = meth[MIGR_METH_VER_KIND] & 0xf;
	unheard = meth[MIGR_METH_FLAGS] & MIGR_METH_FLAG_UNHEARD;
	if (pkt->opcode == MIGR_OPCODE_RESUME_ACK)
		good = answers >> kind & 1 && !unheard;
	else
		good = kind < ARRAY_SIZE(requests) &&
		       requests[kind] == pkt->opcode &&
		       (unheard ? kind != MIGR_METH_KIND_NOTICE :
				  kind != MIGR_METH_KIND_ASK);
	if (meth[MIGR_METH_VER_KIND] >> 4 != MIGR_METH_VERSION || !good)
		return -EPROTO;

	return 0;
}

/**
 * rxe_migr_chk_mac - is the MAC right?
 * @pkt: a packet, of which rxe_migr_chk_form() has approved
 * @life: of the receiving QP; does not count if the packet is signed for none
 *
 * Context: process; sleeps.
 * Return: 0, -ENOKEY or -EBADMSG
 */
int rxe_migr_chk_mac(struct rxe_pkt_info *pkt, u64 life)
{
	const u8 *meth = rxe_migr_meth(pkt);
	u8 in[MIGR_MAC_INPUT_BYTES];

	if (meth[MIGR_METH_FLAGS] & MIGR_METH_FLAG_UNHEARD)
		life = 0;
	mac_input(in, pkt->opcode, bth_qpn(pkt), pkt->psn, payload_addr(pkt),
		  life);

	return rxe_migr_key_check(meth[MIGR_METH_KEY_ID], in, sizeof(in),
				  meth + MIGR_METH_MAC, MIGR_MAC_BYTES);
}

/**
 * rxe_migr_count_bad - count a packet that was not approved of
 * @rxe: the device
 * @err: what rxe_migr_chk_form() or rxe_migr_chk_mac() have returned
 */
void rxe_migr_count_bad(struct rxe_dev *rxe, int err)
{
	switch (err) {
	case -EMSGSIZE:
		rxe_counter_inc(rxe, RXE_CNT_MIGR_BAD_LENGTH);
		break;
	case -EPROTO:
		rxe_counter_inc(rxe, RXE_CNT_MIGR_BAD_VERSION);
		break;
	case -ENOKEY:
		rxe_counter_inc(rxe, RXE_CNT_MIGR_BAD_KEY);
		break;
	default:
		rxe_counter_inc(rxe, RXE_CNT_MIGR_BAD_MAC);
		break;
	}
}
