/* SPDX-License-Identifier: GPL-2.0 */
/* Ethernet, IP and UDP headers, for the transport and the device */
#ifndef MLX5SOFT_HEADERS_H
#define MLX5SOFT_HEADERS_H

#define ETH_BYTES 14U
#define VLAN_BYTES 4U
#define IPV4_BYTES 20U /* without options */
#define IPV6_BYTES 40U
#define UDP_BYTES 8U

#define ETHERTYPE_IPV4 0x0800
#define ETHERTYPE_IPV6 0x86dd
#define ETHERTYPE_CVLAN 0x8100
#define ETHERTYPE_SVLAN 0x88a8

#define PROTOCOL_TCP 6
#define PROTOCOL_UDP 17

#endif /* MLX5SOFT_HEADERS_H */
