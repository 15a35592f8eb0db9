// SPDX-License-Identifier: GPL-2.0
/*
 * What tells neighbours, and switches on the way, where an address lives: RFC 5227 and 4861
 */
#include "frame.h"

#include <string.h>

static void ethernet(uint8_t *frame, const uint8_t *to, const uint8_t *mac,
		     uint16_t type)
{
	memcpy(frame, to, 6);
	memcpy(frame + 6, mac, 6);
	frame[12] = (uint8_t)(type >> 8);
	frame[13] = (uint8_t)type;
}

void frame_arp(uint8_t frame[FRAME_ARP], const uint8_t mac[6],
	       const uint8_t ip[4], int is_reply)
{
	static const uint8_t all[6] = { 255, 255, 255, 255, 255, 255 };
	/* Ethernet, IPv4, and the lengths of their addresses */
	static const uint8_t kind[6] = { 0, 1, 8, 0, 6, 4 };
	uint8_t *arp = frame + 14;

	memset(frame, 0, FRAME_ARP);
	ethernet(frame, all, mac, 0x0806);
	memcpy(arp, kind, sizeof(kind));
	arp[7] = is_reply ? 2 : 1;
	memcpy(arp + 8, mac, 6);
	memcpy(arp + 14, ip, 4);
	if (is_reply)
		memcpy(arp + 18, mac, 6);
	memcpy(arp + 24, ip, 4);
}

static uint32_t sum(uint32_t so_far, const uint8_t *bytes, size_t n)
{
	for (; n > 1; bytes += 2, n -= 2)
		so_far += (uint32_t)bytes[0] << 8 | bytes[1];
	return so_far;
}

void frame_na(uint8_t frame[FRAME_NA], const uint8_t mac[6],
	      const uint8_t ip[16])
{
	static const uint8_t group[6] = { 0x33, 0x33, 0, 0, 0, 1 };
	uint8_t *ipv6 = frame + 14, *na = ipv6 + 40;
	const size_t bytes = FRAME_NA - 14 - 40;
	uint32_t check;

	memset(frame, 0, FRAME_NA);
	ethernet(frame, group, mac, 0x86dd);
	ipv6[0] = 6 << 4;
	ipv6[5] = (uint8_t)bytes;
	ipv6[6] = 58;  /* ICMPv6 */
	ipv6[7] = 255; /* or it is not heeded: it has come from another link */
	memcpy(ipv6 + 8, ip, 16);
	ipv6[24] = 0xff; /* ff02::1 */
	ipv6[25] = 2;
	ipv6[39] = 1;
	na[0] = 136;
	na[4] = 0x20; /* override */
	memcpy(na + 8, ip, 16);
	na[24] = 2; /* the target's link-layer address, of 8 bytes with this */
	na[25] = 1;
	memcpy(na + 26, mac, 6);
	check = sum((uint32_t)bytes + 58, ipv6 + 8, 32 + bytes);
	check = (check & 0xffff) + (check >> 16);
	check = ~((check & 0xffff) + (check >> 16)) & 0xffff;
	na[2] = (uint8_t)(check >> 8);
	na[3] = (uint8_t)check;
}
