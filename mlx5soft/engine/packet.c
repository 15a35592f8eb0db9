// SPDX-License-Identifier: GPL-2.0
/*
 * RoCEv2 packets to and from bytes.
 */
#include <libdeflate.h>

#include "packet.h"
#include "roce.h"

#define DEFAULT_HOP_LIMIT 64
/* CRC of the 8 bytes of ones that stand for the missing LRH, A17.3.3 */
#define ICRC_SEED 0x2144df1cU

#define SEND_PAYLOAD (PKT_VALID | PKT_SEND | PKT_PAYLOAD)
#define WRITE_PAYLOAD (PKT_VALID | PKT_WRITE | PKT_PAYLOAD)
#define READ_RESPONSE (PKT_VALID | PKT_RESPONSE | PKT_READ | PKT_PAYLOAD)
#define ATOMIC_REQUEST \
	(PKT_VALID | PKT_ATOMIC | PKT_START | PKT_END | PKT_ATOMICETH)

static const uint32_t operations[32] = {
	[OP_SEND_FIRST] = SEND_PAYLOAD | PKT_START,
	[OP_SEND_MIDDLE] = SEND_PAYLOAD,
	[OP_SEND_LAST] = SEND_PAYLOAD | PKT_END,
	[OP_SEND_LAST_IMM] = SEND_PAYLOAD | PKT_END | PKT_IMM,
	[OP_SEND_ONLY] = SEND_PAYLOAD | PKT_START | PKT_END,
	[OP_SEND_ONLY_IMM] = SEND_PAYLOAD | PKT_START | PKT_END | PKT_IMM,
	[OP_SEND_LAST_INV] = SEND_PAYLOAD | PKT_END | PKT_INV,
	[OP_SEND_ONLY_INV] = SEND_PAYLOAD | PKT_START | PKT_END | PKT_INV,
	[OP_WRITE_FIRST] = WRITE_PAYLOAD | PKT_START | PKT_RETH,
	[OP_WRITE_MIDDLE] = WRITE_PAYLOAD,
	[OP_WRITE_LAST] = WRITE_PAYLOAD | PKT_END,
	[OP_WRITE_LAST_IMM] = WRITE_PAYLOAD | PKT_END | PKT_IMM,
	[OP_WRITE_ONLY] = WRITE_PAYLOAD | PKT_START | PKT_END | PKT_RETH,
	[OP_WRITE_ONLY_IMM] =
		WRITE_PAYLOAD | PKT_START | PKT_END | PKT_RETH | PKT_IMM,
	[OP_READ_REQUEST] =
		PKT_VALID | PKT_READ | PKT_START | PKT_END | PKT_RETH,
	[OP_READ_RESPONSE_FIRST] = READ_RESPONSE | PKT_START | PKT_AETH,
	[OP_READ_RESPONSE_MIDDLE] = READ_RESPONSE,
	[OP_READ_RESPONSE_LAST] = READ_RESPONSE | PKT_END | PKT_AETH,
	[OP_READ_RESPONSE_ONLY] =
		READ_RESPONSE | PKT_START | PKT_END | PKT_AETH,
	[OP_ACKNOWLEDGE] = PKT_VALID | PKT_RESPONSE | PKT_AETH,
	[OP_ATOMIC_ACKNOWLEDGE] = PKT_VALID | PKT_RESPONSE | PKT_ATOMIC |
				  PKT_AETH | PKT_ATOMICACKETH,
	[OP_COMPARE_SWAP] = ATOMIC_REQUEST,
	[OP_FETCH_ADD] = ATOMIC_REQUEST,
};

uint32_t packet_flags(uint8_t opcode)
{
	uint8_t op = opcode & 0x1f;

	switch (opcode & 0xe0) {
	case SERVICE_RC:
		return operations[op];
	case SERVICE_XRC:
		if (!operations[op] || operations[op] & PKT_RESPONSE)
			return operations[op];
		return operations[op] | PKT_XRCETH;
	case SERVICE_UC:
		return op <= OP_WRITE_ONLY_IMM ? operations[op] : 0;
	case SERVICE_UD:
		if (op == OP_SEND_ONLY || op == OP_SEND_ONLY_IMM)
			return operations[op] | PKT_DETH;
		return 0;
	}
	return 0;
}

static uint32_t ext_bytes(uint32_t flags)
{
	uint32_t n = 0;

	if (flags & PKT_DETH)
		n += DETH_BYTES;
	if (flags & PKT_XRCETH)
		n += XRCETH_BYTES;
	if (flags & PKT_RETH)
		n += RETH_BYTES;
	if (flags & PKT_ATOMICETH)
		n += ATOMICETH_BYTES;
	if (flags & PKT_AETH)
		n += AETH_BYTES;
	if (flags & PKT_ATOMICACKETH)
		n += ATOMICACKETH_BYTES;
	if (flags & (PKT_IMM | PKT_INV))
		n += IMM_BYTES;
	return n;
}

bool gid_is_ipv4(const uint8_t gid[16])
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	return !memcmp(gid, mapped, sizeof(mapped));
}

/* RFC 1112 and 2464 */
bool gid_multicast_mac(const uint8_t gid[16], uint8_t mac[6])
{
	if (gid_is_ipv4(gid) && gid[12] >> 4 == 0xe) {
		memcpy(mac, (const uint8_t[]){ 0x01, 0x00, 0x5e }, 3);
		mac[3] = gid[13] & 0x7f;
		memcpy(mac + 4, gid + 14, 2);
		return true;
	}
	memset(mac, 0x33, 2);
	memcpy(mac + 2, gid + 12, 4);
	return gid[0] == 0xff;
}

static void gid_from_ipv4(uint8_t gid[16], const uint8_t *addr)
{
	memset(gid, 0, 10);
	memset(gid + 10, 0xff, 2);
	memcpy(gid + 12, addr, 4);
}

static uint16_t ipv4_checksum(const uint8_t *ip)
{
	uint32_t sum = 0;

	for (unsigned int i = 0; i < IPV4_BYTES; i += 2)
		sum += get_be16(ip + i);
	sum = (sum & 0xffff) + (sum >> 16);
	sum += sum >> 16;
	return ~sum;
}

/*
 * The CRC over all up to the end of the BTH: what routers may change, and the
 * byte with FECN and BECN, counts as ones.
 */
static uint32_t icrc_headers(const uint8_t *ip, bool v6)
{
	uint8_t m[IPV6_BYTES + UDP_BYTES + BTH_BYTES];
	uint32_t ip_len = v6 ? IPV6_BYTES : IPV4_BYTES;
	uint32_t len = ip_len + UDP_BYTES + BTH_BYTES;

	memcpy(m, ip, len);
	if (v6) {
		m[0] |= 0x0f; /* traffic class, flow label */
		memset(m + 1, 0xff, 3);
		m[7] = 0xff; /* hop limit */
	} else {
		m[1] = 0xff;		 /* type of service */
		m[8] = 0xff;		 /* time to live */
		memset(m + 10, 0xff, 2); /* checksum */
	}
	memset(m + ip_len + 6, 0xff, 2); /* UDP checksum */
	m[ip_len + UDP_BYTES + 4] = 0xff;
	return libdeflate_crc32(ICRC_SEED, m, len);
}

static enum parse_result parse_ipv4(struct packet *pkt, size_t len,
				    size_t *udp_len)
{
	const uint8_t *ip = pkt->ip;
	size_t total;

	if (len < IPV4_BYTES + UDP_BYTES || ip[9] != PROTOCOL_UDP)
		return PARSE_NOT_ROCE;
	/* Fragments and options belong to the host's IP stack. */
	if (ip[0] != 0x45 || (get_be16(ip + 6) & 0x3fff))
		return PARSE_NOT_ROCE;
	if (get_be16(ip + IPV4_BYTES + 2) != ROCE_UDP_PORT)
		return PARSE_NOT_ROCE;
	gid_from_ipv4(pkt->sgid, ip + 12);
	gid_from_ipv4(pkt->dgid, ip + 16);
	pkt->tclass = ip[1];
	total = get_be16(ip + 2);
	*udp_len = total - IPV4_BYTES;
	return total > len || total < IPV4_BYTES || ipv4_checksum(ip)
		       ? PARSE_MALFORMED
		       : PARSE_OK;
}

static enum parse_result parse_ipv6(struct packet *pkt, size_t len,
				    size_t *udp_len)
{
	const uint8_t *ip = pkt->ip;

	if (len < IPV6_BYTES + UDP_BYTES || ip[6] != PROTOCOL_UDP ||
	    ip[0] >> 4 != 6)
		return PARSE_NOT_ROCE;
	if (get_be16(ip + IPV6_BYTES + 2) != ROCE_UDP_PORT)
		return PARSE_NOT_ROCE;
	memcpy(pkt->sgid, ip + 8, 16);
	memcpy(pkt->dgid, ip + 24, 16);
	pkt->tclass = get_be16(ip) >> 4;
	*udp_len = get_be16(ip + 4);
	return *udp_len > len - IPV6_BYTES ? PARSE_MALFORMED : PARSE_OK;
}

enum parse_result packet_parse_network(struct packet *pkt, const void *frame,
				       size_t len)
{
	const uint8_t *udp;
	enum parse_result res;
	size_t udp_len;
	uint16_t type;

	if (len < ETH_BYTES)
		return PARSE_NOT_ROCE;
	pkt->eth = frame;
	pkt->ip = pkt->eth + ETH_BYTES;
	len -= ETH_BYTES;
	type = get_be16(pkt->eth + 12);
	if (type == ETHERTYPE_IPV4) {
		pkt->v6 = false;
		res = parse_ipv4(pkt, len, &udp_len);
		udp = pkt->ip + IPV4_BYTES;
	} else if (type == ETHERTYPE_IPV6) {
		pkt->v6 = true;
		res = parse_ipv6(pkt, len, &udp_len);
		udp = pkt->ip + IPV6_BYTES;
	} else {
		return PARSE_NOT_ROCE;
	}
	if (res == PARSE_NOT_ROCE)
		return res;
	pkt->ext = udp + UDP_BYTES + BTH_BYTES;
	pkt->payload = udp; /* as long as the rest is not read */
	pkt->payload_len = res == PARSE_OK ? udp_len : 0;
	return PARSE_OK;
}

enum parse_result packet_parse_transport(struct packet *pkt)
{
	const uint8_t *udp = pkt->payload, *bth = udp + UDP_BYTES;
	uint32_t udp_len = pkt->payload_len;
	uint32_t len, head, pad, crc;
	uint8_t icrc[ICRC_BYTES];

	if (udp_len < UDP_BYTES + BTH_BYTES + ICRC_BYTES ||
	    get_be16(udp + 4) != udp_len)
		return PARSE_MALFORMED;
	pkt->flags = packet_flags(bth[0]);
	pkt->service = bth[0] & 0xe0;
	pkt->op = bth[0] & 0x1f;
	pad = bth[1] >> 4 & 3;
	head = ext_bytes(pkt->flags);
	len = udp_len - UDP_BYTES - BTH_BYTES - ICRC_BYTES;
	/* header version 0 is the only one */
	if (!(pkt->flags & PKT_VALID) || bth[1] & 0x0f || len < head + pad ||
	    len & 3)
		return PARSE_MALFORMED;
	if (!(pkt->flags & PKT_PAYLOAD) && len != head)
		return PARSE_MALFORMED;

	crc = libdeflate_crc32(icrc_headers(pkt->ip, pkt->v6), pkt->ext, len);
	for (int i = 0; i < ICRC_BYTES; i++)
		icrc[i] = crc >> 8 * i;
	if (memcmp(icrc, pkt->ext + len, ICRC_BYTES))
		return PARSE_BAD_ICRC;

	pkt->solicited = bth[1] & 0x80;
	pkt->pkey = get_be16(bth + 2);
	pkt->dest_qpn = get_be24(bth + 5);
	pkt->ack_req = bth[8] & 0x80;
	pkt->psn = get_be24(bth + 9);
	pkt->payload = pkt->ext + head;
	pkt->srqn = 0;
	if (pkt->flags & PKT_XRCETH) {
		pkt->srqn = get_be24(pkt->ext + 1);
		pkt->ext += XRCETH_BYTES;
	}
	pkt->payload_len = len - head - pad;
	return PARSE_OK;
}

static void build_ipv4(const struct header *h, uint8_t *ip, uint32_t udp_len)
{
	ip[0] = 0x45;
	ip[1] = h->tclass;
	put_be16(ip + 2, IPV4_BYTES + udp_len);
	put_be16(ip + 4, h->ip_id);
	put_be16(ip + 6, 0x4000); /* do not fragment */
	ip[8] = h->hop_limit ? h->hop_limit : DEFAULT_HOP_LIMIT;
	ip[9] = PROTOCOL_UDP;
	put_be16(ip + 10, 0);
	memcpy(ip + 12, h->sgid + 12, 4);
	memcpy(ip + 16, h->dgid + 12, 4);
	put_be16(ip + 10, ipv4_checksum(ip));
}

static void build_ipv6(const struct header *h, uint8_t *ip, uint32_t udp_len)
{
	put_be32(ip, 6U << 28 | h->tclass << 20 | (h->flow_label & 0xfffff));
	put_be16(ip + 4, udp_len);
	ip[6] = PROTOCOL_UDP;
	ip[7] = h->hop_limit ? h->hop_limit : DEFAULT_HOP_LIMIT;
	memcpy(ip + 8, h->sgid, 16);
	memcpy(ip + 24, h->dgid, 16);
}

uint8_t *packet_build(const struct header *h, uint8_t *payload,
		      uint32_t payload_len, uint32_t *len)
{
	bool v6 = !gid_is_ipv4(h->dgid);
	uint8_t *ext = payload - h->ext_len, *bth = ext - BTH_BYTES;
	uint8_t *udp = bth - UDP_BYTES;
	uint8_t *ip = udp - (v6 ? IPV6_BYTES : IPV4_BYTES);
	uint8_t *eth = ip - ETH_BYTES, *tail = payload + payload_len;
	uint32_t pad = -payload_len & 3, crc;
	uint32_t udp_len = tail + pad + ICRC_BYTES - udp;

	memcpy(eth, h->dmac, 6);
	memcpy(eth + 6, h->smac, 6);
	put_be16(eth + 12, v6 ? ETHERTYPE_IPV6 : ETHERTYPE_IPV4);
	if (v6)
		build_ipv6(h, ip, udp_len);
	else
		build_ipv4(h, ip, udp_len);
	put_be16(udp, h->udp_sport);
	put_be16(udp + 2, ROCE_UDP_PORT);
	put_be16(udp + 4, udp_len);
	/* no checksum, also with IPv6: the ICRC is better */
	put_be16(udp + 6, 0);
	bth[0] = h->opcode;
	bth[1] = h->solicited << 7 | 1 << 6 /* MigReq */ | pad << 4;
	put_be16(bth + 2, DEFAULT_PKEY);
	put_be32(bth + 4, h->dest_qpn);
	put_be32(bth + 8, (uint32_t)h->ack_req << 31 | h->psn);
	memcpy(ext, h->ext, h->ext_len);
	memset(tail, 0, pad);
	tail += pad;

	crc = libdeflate_crc32(icrc_headers(ip, v6), ext, tail - ext);
	for (int i = 0; i < ICRC_BYTES; i++)
		tail[i] = crc >> 8 * i;
	*len = tail + ICRC_BYTES - eth;
	return eth;
}
