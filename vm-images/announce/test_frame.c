// SPDX-License-Identifier: GPL-2.0
#include <arpa/inet.h>
#include <netinet/icmp6.h>
#include <netinet/ip6.h>

#include "check.h"
#include "frame.h"

static const uint8_t mac[6] = { 2, 0, 10, 20, 0, 120 };

static void arp(int is_reply)
{
	static const uint8_t ip[4] = { 10, 20, 0, 120 };
	static const uint8_t both[] = {
		255, 255, 255, 255, 255, 255, 2, 0, 10, 20, 0,	120, 8, 6,
		0,   1,	  8,   0,   6,	 4,   0, 0, 2,	0,  10, 20,  0, 120,
		10,  20,  0,   120, 0,	 0,   0, 0, 0,	0,  10, 20,  0, 120,
	};
	uint8_t frame[FRAME_ARP], wanted[FRAME_ARP];

	MUST(sizeof(both) == sizeof(wanted));
	memcpy(wanted, both, sizeof(both));
	wanted[21] = is_reply ? 2 : 1;
	if (is_reply)
		memcpy(wanted + 32, mac, 6);
	memset(frame, 0xaa, sizeof(frame));
	frame_arp(frame, mac, ip, is_reply);
	CHECK(!memcmp(frame, wanted, sizeof(frame)), "reply: %d", is_reply);
}

/* over the pseudo header, as a receiver does it; 0xffff is right */
static uint32_t checksum(const uint8_t *ipv6)
{
	uint32_t sum = 58;

	sum += (uint32_t)ipv6[4] << 8 | ipv6[5];
	for (int i = 8; i < 40 + ipv6[5]; i += 2)
		sum += (uint32_t)ipv6[i] << 8 | ipv6[i + 1];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return sum;
}

static void na(const char *text)
{
	struct nd_neighbor_advert *nd;
	struct in6_addr ip, all;
	struct nd_opt_hdr *opt;
	_Alignas(8) uint8_t packet[FRAME_NA - 14];
	uint8_t frame[FRAME_NA];
	struct ip6_hdr *h;

	MUST(inet_pton(AF_INET6, text, &ip) == 1);
	MUST(inet_pton(AF_INET6, "ff02::1", &all) == 1);
	memset(frame, 0xaa, sizeof(frame));
	frame_na(frame, mac, ip.s6_addr);
	CHECK(!memcmp(frame, "\x33\x33\0\0\0\1\2\0\x0a\x14\0\x78\x86\xdd", 14));
	memcpy(packet, frame + 14, sizeof(packet));
	h = (void *)packet;
	CHECK(ntohl(h->ip6_flow) == 6U << 28 && h->ip6_nxt == IPPROTO_ICMPV6 &&
	      h->ip6_hlim == 255 &&
	      ntohs(h->ip6_plen) == sizeof(*nd) + sizeof(*opt) + 6);
	CHECK(!memcmp(&h->ip6_src, &ip, 16) && !memcmp(&h->ip6_dst, &all, 16));
	nd = (void *)(h + 1);
	CHECK(nd->nd_na_type == ND_NEIGHBOR_ADVERT && !nd->nd_na_code &&
	      nd->nd_na_flags_reserved == ND_NA_FLAG_OVERRIDE);
	CHECK(!memcmp(&nd->nd_na_target, &ip, 16));
	opt = (void *)(nd + 1);
	CHECK(opt->nd_opt_type == ND_OPT_TARGET_LINKADDR &&
	      opt->nd_opt_len == 1 && !memcmp(opt + 1, mac, 6));
	CHECK(checksum(packet) == 0xffff, "%s: %#x", text, checksum(packet));
}

int main(void)
{
	arp(0);
	arp(1);
	na("fd20::120");
	na("2001:db8:ffff:ffff:ffff:ffff:ffff:ffff");
	return check_result();
}
