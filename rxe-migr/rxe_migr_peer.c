// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Where the peer of a QP is, and whether there is a way to it.
 */
#include <linux/etherdevice.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <net/addrconf.h>
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

/**
 * rxe_migr_set_dmac - the MAC address of who has sent a packet
 * @rxe: the device
 * @av: leads to its sender, but for the MAC address
 * @skb: the packet
 *
 * The MAC address only says whether that is on this host, maybe with another address
 * of the same device. That of the frame is not asked, as nobody has signed it.
 */
void rxe_migr_set_dmac(struct rxe_dev *rxe, struct rxe_av *av,
		       struct sk_buff *skb)
{
	struct net_device *ndev = rxe_ib_device_get_netdev(&rxe->ib_dev);
	bool here;
	u8 own[16];

	rxe_migr_sgid(av, own);
	here = (SKB_TO_PKT(skb)->mask & RXE_LOOPBACK_MASK) ||
	       !memcmp(own, av->grh.dgid.raw, 16);
	eth_zero_addr(av->dmac);
	if (here && ndev)
		ether_addr_copy(av->dmac, ndev->dev_addr);
	dev_put(ndev);
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
	rxe_migr_set_dmac(to_rdev(qp->ibqp.device), av, skb);
	qp->attr.dest_qp_num = qpn;
	sk_dst_reset(qp->sk->sk);

	rxe_enable_task(&qp->recv_task);
	rxe_enable_task(&qp->send_task);
}
