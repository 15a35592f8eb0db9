// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Where the peer of a QP is, and whether there is a way to it.
 */
#include <linux/etherdevice.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <net/addrconf.h>
#include <net/ipv6.h>
#include <net/route.h>

#include "rxe.h"

/**
 * rxe_migr_sgid - the GID from which an address vector sends
 * @av: the address vector, of a QP that has a peer
 * @gid: receives 16 bytes
 */
void rxe_migr_sgid(const struct rxe_av *av, u8 *gid)
{
	if (av->network_type == RXE_NETWORK_TYPE_IPV4)
		ipv6_addr_set_v4mapped(av->sgid_addr._sockaddr_in.sin_addr.s_addr,
				       (struct in6_addr *)gid);
	else
		memcpy(gid, &av->sgid_addr._sockaddr_in6.sin6_addr, 16);
}

/**
 * rxe_migr_gid_fits - can a peer be there, and can an address vector lead there?
 * @av: the address vector, of a QP that has a peer
 * @gid: 16 bytes
 */
bool rxe_migr_gid_fits(const struct rxe_av *av, const u8 *gid)
{
	const struct in6_addr *addr = (const struct in6_addr *)gid;
	__be32 ipv4 = addr->s6_addr32[3];

	if (ipv6_addr_v4mapped(addr))
		return av->network_type == RXE_NETWORK_TYPE_IPV4 &&
		       !ipv4_is_zeronet(ipv4) && !ipv4_is_loopback(ipv4) &&
		       !ipv4_is_multicast(ipv4) && !ipv4_is_lbcast(ipv4);

	return av->network_type == RXE_NETWORK_TYPE_IPV6 &&
	       !ipv6_addr_any(addr) && !ipv6_addr_loopback(addr) &&
	       !ipv6_addr_is_multicast(addr);
}

/**
 * rxe_migr_has_route - is there a way to a GID, as rxe_prepare() will look for it?
 * @qp: QP that has a peer
 * @gid: 16 bytes, which fit
 *
 * Context: process
 */
bool rxe_migr_has_route(struct rxe_qp *qp, const u8 *gid)
{
	struct rxe_dev *rxe = to_rdev(qp->ibqp.device);
	struct net_device *ndev = rxe_ib_device_get_netdev(&rxe->ib_dev);
	const struct rxe_av *av = &qp->pri_av;
	struct dst_entry *dst = ERR_PTR(-EAFNOSUPPORT);
	bool has;

	if (!ndev)
		return false;

	if (av->network_type == RXE_NETWORK_TYPE_IPV4) {
		struct flowi4 fl = {
			.flowi4_oif = ndev->ifindex,
			.flowi4_proto = IPPROTO_UDP,
			.saddr = av->sgid_addr._sockaddr_in.sin_addr.s_addr,
			.daddr = get_unaligned((__be32 *)(gid + 12)),
		};
		struct rtable *rt = ip_route_output_key(&init_net, &fl);

		dst = IS_ERR(rt) ? ERR_CAST(rt) : &rt->dst;
	} else if (IS_ENABLED(CONFIG_IPV6)) {
		struct flowi6 fl = {
			.flowi6_oif = ndev->ifindex,
			.flowi6_proto = IPPROTO_UDP,
			.saddr = av->sgid_addr._sockaddr_in6.sin6_addr,
			.daddr = *(const struct in6_addr *)gid,
		};

		dst = ipv6_stub->ipv6_dst_lookup_flow(&init_net, NULL, &fl,
						      NULL);
	}
	dev_put(ndev);
	if (IS_ERR(dst))
		return false;
	has = !dst->error;
	dst_release(dst);

	return has;
}

/*
 * The MAC address of who has sent a packet, or of a place. It only says whether that
 * is on this host, maybe with another address of the same device. That of the frame is
 * not asked, as nobody has signed it.
 */
static void set_dmac(struct rxe_dev *rxe, struct rxe_av *av,
		     struct sk_buff *skb)
{
	struct net_device *ndev = rxe_ib_device_get_netdev(&rxe->ib_dev);
	bool here;
	u8 own[16];

	rxe_migr_sgid(av, own);
	here = (skb && SKB_TO_PKT(skb)->mask & RXE_LOOPBACK_MASK) ||
	       !memcmp(own, av->grh.dgid.raw, 16);
	eth_zero_addr(av->dmac);
	if (here && ndev)
		ether_addr_copy(av->dmac, ndev->dev_addr);
	dev_put(ndev);
}

/**
 * rxe_migr_own_gid - a GID of the device
 * @rxe: the device
 * @gid: 16 bytes
 *
 * Return: its attributes, to be given back, or an error
 */
const struct ib_gid_attr *rxe_migr_own_gid(struct rxe_dev *rxe, const u8 *gid)
{
	union ib_gid own;

	memcpy(&own, gid, sizeof(own));
	return rdma_find_gid_by_port(&rxe->ib_dev, &own,
				     IB_GID_TYPE_ROCE_UDP_ENCAP, 1, NULL);
}

/**
 * rxe_migr_lead - the way from a GID of the device to another place
 * @rxe: the device
 * @own: its GID, 16 bytes
 * @gid: where to, 16 bytes
 * @skb: a packet from there, or NULL
 * @av: receives it
 *
 * Return: false if there is none
 */
bool rxe_migr_lead(struct rxe_dev *rxe, const u8 *own, const u8 *gid,
		   struct sk_buff *skb, struct rxe_av *av)
{
	struct rdma_ah_attr ah = { .type = RDMA_AH_ATTR_TYPE_ROCE };
	const struct ib_gid_attr *attr = rxe_migr_own_gid(rxe, own);
	union ib_gid dgid;

	if (IS_ERR(attr))
		return false;

	memcpy(&dgid, gid, sizeof(dgid));
	rdma_ah_set_port_num(&ah, 1);
	rdma_ah_set_grh(&ah, &dgid, 0, attr->index, IPV6_DEFAULT_HOPLIMIT, 0);
	ah.grh.sgid_attr = attr;
	rxe_init_av(&ah, av);
	set_dmac(rxe, av, skb);
	rdma_put_gid_attr(attr);

	return rxe_migr_gid_fits(av, dgid.raw);
}

/**
 * rxe_migr_is_here - was the peer on this host when its address was learnt?
 * @rxe: the device
 * @av: leads to the peer
 */
bool rxe_migr_is_here(struct rxe_dev *rxe, const struct rxe_av *av)
{
	struct net_device *ndev = rxe_ib_device_get_netdev(&rxe->ib_dev);
	bool here = ndev && ether_addr_equal(av->dmac, ndev->dev_addr);

	dev_put(ndev);
	return here;
}

/**
 * rxe_migr_set_peer - take over the peer's new address
 * @qp: the QP, Held
 * @gid: where the peer is, 16 bytes
 * @qpn: its number
 * @skb: the packet that says so
 *
 * Nobody may read the address vector meanwhile, so both tasks wait.
 *
 * Context: m->lock held
 */
void rxe_migr_set_peer(struct rxe_qp *qp, const u8 *gid, u32 qpn,
		       struct sk_buff *skb)
{
	struct rxe_av *av = &qp->pri_av;

	rxe_disable_task(&qp->send_task);
	rxe_disable_task(&qp->recv_task);

	memcpy(av->grh.dgid.raw, gid, 16);
	if (av->network_type == RXE_NETWORK_TYPE_IPV4)
		memcpy(&av->dgid_addr._sockaddr_in.sin_addr, gid + 12, 4);
	else
		memcpy(&av->dgid_addr._sockaddr_in6.sin6_addr, gid, 16);
	set_dmac(to_rdev(qp->ibqp.device), av, skb);
	qp->attr.dest_qp_num = qpn;
	sk_dst_reset(qp->sk->sk);

	rxe_enable_task(&qp->recv_task);
	rxe_enable_task(&qp->send_task);
}
