// SPDX-License-Identifier: GPL-2.0
/*
 * migr_forge - send packets of the migration protocol that nobody asked for
 *
 *   migr_forge -d DST -q QPN [-k KEYFILE] [OPTION=VALUE]... [KIND] [next ...]
 *
 * KIND is resume (default), moved, resume_ack, ask (a question), announce (STOPPED),
 * notice, nak_stopped or ack, an ordinary acknowledgement; "answer", "stopped" and "nobody" make a RESUME_ACK of
 * what a QP, a Stopped one or, in the place of none, the driver answers to a question,
 * "challenge" one to a RESUME. The ICRC is always right. The MAC is right under the key
 * in KEYFILE ("ID:64 hex digits"), and wrong without one. After "next" comes what is
 * different in one more packet. OPTIONs:
 *
 *   src=IP      source address (the kernel's choice); may be somebody else's
 *   psn= epoch= old= new= nonce= version= kind= keyid= port=  fields of the packet
 *   gid=IP      GID from now on, IPv4 or IPv6 (the destination's own)
 *   life=N      of the sender
 *   to=N        life of the receiver, which the MAC covers, too (0: not known)
 *   flags=N     of the packet (UNHEARD if to=0)
 *   syndrome=N  of the AETH (0x1f: ACK)
 *   length=N    bytes from the BTH on, without the ICRC (80)
 *   count=N     how many times (1)
 */
#include <arpa/inet.h>
#include <err.h>
#include <netinet/ip.h>
#include <netinet/udp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sys/socket.h>

#include "cluster_key.h"
#include "rxe_migr_wire.h"

#define BTH_BYTES 12
#define AETH_BYTES 4
#define FULL_BYTES (BTH_BYTES + AETH_BYTES + MIGR_METH_BYTES)
#define MAX_BYTES 1024
#define ROCE_PORT 4791
#define HDR_BYTES (sizeof(struct iphdr) + sizeof(struct udphdr))

static struct {
	uint32_t psn, epoch, old, new, nonce, version, keyid, port, length,
		count;
	uint32_t qpn, opcode, kind, syndrome, flags;
	uint64_t life, to;
	uint8_t gid[16];
	bool sign, flags_given;
	struct in_addr src, dst;
} o = {
	.version = MIGR_METH_VERSION,
	.keyid = 1,
	.port = 49153,
	.length = FULL_BYTES,
	.count = 1,
	.opcode = MIGR_OPCODE_RESUME,
	.kind = MIGR_METH_KIND_RESUME,
	.syndrome = 0x1f,
};

static const struct {
	const char *name;
	uint32_t *value;
} numbers[] = {
	{ "psn", &o.psn },     { "epoch", &o.epoch },
	{ "old", &o.old },     { "new", &o.new },
	{ "keyid", &o.keyid }, { "version", &o.version },
	{ "port", &o.port },   { "length", &o.length },
	{ "count", &o.count }, { "syndrome", &o.syndrome },
	{ "nonce", &o.nonce }, { "kind", &o.kind },
};

static void put16(uint8_t *p, uint32_t v)
{
	p[0] = v >> 8;
	p[1] = v;
}

static void put32(uint8_t *p, uint32_t v)
{
	put16(p, v >> 16);
	put16(p + 2, v);
}

static void put64(uint8_t *p, uint64_t v)
{
	put32(p, v >> 32);
	put32(p + 4, v);
}

static void parse_gid(const char *text, uint8_t *gid)
{
	if (inet_pton(AF_INET6, text, gid) == 1)
		return;
	memset(gid, 0, 10);
	memset(gid + 10, 0xff, 2);
	if (inet_pton(AF_INET, text, gid + 12) != 1)
		errx(2, "not an address: %s", text);
}

static uint32_t kind_of_answer(const char *word)
{
	if (!strcmp(word, "answer"))
		return MIGR_METH_KIND_ASK;
	if (!strcmp(word, "stopped"))
		return MIGR_METH_KIND_STOPPED;
	if (!strcmp(word, "nobody"))
		return MIGR_METH_KIND_NOBODY;
	return strcmp(word, "challenge") ? 0 : MIGR_METH_KIND_CHALLENGE;
}

static void parse_word(char *word)
{
	char *value = strchr(word, '=');

	if (value) {
		*value++ = 0;
		for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
			if (!strcmp(word, numbers[i].name)) {
				*numbers[i].value = strtoul(value, NULL, 0);
				return;
			}
		if (!strcmp(word, "gid")) {
			parse_gid(value, o.gid);
		} else if (!strcmp(word, "life")) {
			o.life = strtoull(value, NULL, 0);
		} else if (!strcmp(word, "to")) {
			o.to = strtoull(value, NULL, 0);
		} else if (!strcmp(word, "flags")) {
			o.flags = strtoul(value, NULL, 0);
			o.flags_given = true;
		} else if (strcmp(word, "src") ||
			   inet_pton(AF_INET, value, &o.src) != 1) {
			errx(2, "unknown: %s=%s", word, value);
		}
	} else if (!strcmp(word, "moved")) {
		o.kind = MIGR_METH_KIND_MOVED;
	} else if (!strcmp(word, "ask")) {
		o.opcode = MIGR_OPCODE_ASK;
		o.kind = MIGR_METH_KIND_ASK;
	} else if (!strcmp(word, "announce") || !strcmp(word, "notice")) {
		o.opcode = MIGR_OPCODE_ASK;
		o.kind = *word == 'a' ? MIGR_METH_KIND_STOPPED
				      : MIGR_METH_KIND_NOTICE;
	} else if (kind_of_answer(word)) {
		o.opcode = MIGR_OPCODE_RESUME_ACK;
		o.kind = kind_of_answer(word);
	} else if (!strcmp(word, "resume_ack")) {
		o.opcode = MIGR_OPCODE_RESUME_ACK;
	} else if (!strcmp(word, "nak_stopped") || !strcmp(word, "ack")) {
		o.opcode = 0x11;
		if (*word == 'n')
			o.syndrome = MIGR_AETH_NAK_STOPPED;
		o.length = BTH_BYTES + AETH_BYTES;
	} else if (strcmp(word, "resume")) {
		errx(2, "unknown: %s", word);
	}
}

static void put_mac(uint8_t *aeth)
{
	uint8_t *meth = aeth + AETH_BYTES;
	uint8_t in[MIGR_MAC_INPUT_BYTES], digest[CLUSTER_KEY_MAC];

	put32(in + 3, o.psn); /* 24 bits: the first byte is overwritten */
	put32(in, o.opcode << 24 | o.qpn);
	memcpy(in + 7, aeth, AETH_BYTES + MIGR_METH_BYTES);
	put64(in + MIGR_MAC_LIFE, o.to);
	cluster_key_mac(in, sizeof(in), digest);
	memcpy(meth + MIGR_METH_MAC, digest, MIGR_MAC_BYTES);
	if (!o.sign)
		meth[MIGR_METH_MAC] ^= 1;
}

static void put_transport(uint8_t *b)
{
	uint8_t *m = b + BTH_BYTES + AETH_BYTES;
	bool ack = o.opcode == 0x11;

	b[0] = o.opcode;
	put16(b + 2, 0xffff);
	put32(b + 4, o.qpn & 0xffffff);
	if (!(o.opcode >> 5))
		b[MIGR_BTH_CAP_BYTE] = MIGR_BTH_CAP_BIT;
	put32(b + 8, o.psn & 0xffffff);
	/* NAK_STOPPED carries its epoch here, others an MSN */
	put32(b + BTH_BYTES, o.syndrome << 24 | (ack ? o.epoch & 0xffffff : 0));
	if (ack)
		return;
	m[MIGR_METH_VER_KIND] = o.version << 4 | o.kind;
	m[MIGR_METH_KEY_ID] = o.keyid;
	m[MIGR_METH_FLAGS] = o.flags_given ? o.flags
			     : o.to	   ? 0
					   : MIGR_METH_FLAG_UNHEARD;
	put32(m + MIGR_METH_EPOCH, o.epoch);
	put32(m + MIGR_METH_OLD_QPN, o.old);
	put32(m + MIGR_METH_NEW_QPN, o.new);
	memcpy(m + MIGR_METH_GID, o.gid, sizeof(o.gid));
	put16(m + MIGR_METH_UDP_PORT, o.port);
	put32(m + MIGR_METH_NONCE, o.nonce);
	put64(m + MIGR_METH_LIFE, o.life);
	put_mac(b + BTH_BYTES);
}

static uint32_t crc32(uint32_t crc, const uint8_t *p, size_t n)
{
	while (n--) {
		crc ^= *p++;
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
	}
	return crc;
}

/* over the packet with what routers may change as ones */
static void put_icrc(const uint8_t *packet, size_t bytes, uint8_t *to)
{
	static const uint8_t ones[8] = { 0xff, 0xff, 0xff, 0xff,
					 0xff, 0xff, 0xff, 0xff };
	uint8_t m[MAX_BYTES];
	uint32_t crc;

	memcpy(m, packet, bytes);
	m[1] = 0xff;		 /* type of service */
	m[8] = 0xff;		 /* time to live */
	memset(m + 10, 0xff, 2); /* checksum */
	memset(m + 26, 0xff, 2); /* UDP checksum */
	m[HDR_BYTES + 4] = 0xff; /* FECN, BECN, resv6a */
	crc = ~crc32(crc32(~0u, ones, sizeof(ones)), m, bytes);
	for (int i = 0; i < 4; i++)
		to[i] = crc >> 8 * i;
}

static size_t make_packet(uint8_t *p)
{
	size_t end = HDR_BYTES + o.length;
	struct iphdr ip = {
		.version = 4,
		.ihl = 5,
		.ttl = 64,
		.protocol = IPPROTO_UDP,
		.id = htons(1), /* the kernel would choose one for 0 */
		.frag_off = htons(IP_DF),
		.tot_len = htons(end + 4),
		.saddr = o.src.s_addr,
		.daddr = o.dst.s_addr,
	};
	struct udphdr udp = {
		.source = htons(o.port),
		.dest = htons(ROCE_PORT),
		.len = htons(end + 4 - sizeof(ip)),
	};

	memcpy(p, &ip, sizeof(ip));
	memcpy(p + sizeof(ip), &udp, sizeof(udp));
	put_transport(p + HDR_BYTES);
	put_icrc(p, end, p + end);
	return end + 4;
}

/* the address from which the kernel would send; the ICRC covers it */
static void choose_source(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = 1 };
	socklen_t length = sizeof(a);
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	a.sin_addr = o.dst;
	if (connect(fd, (void *)&a, sizeof(a)) ||
	    getsockname(fd, (void *)&a, &length))
		err(2, "no route");
	o.src = a.sin_addr;
	close(fd);
}

static void send_packets(int fd)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_addr = o.dst };
	uint8_t packet[MAX_BYTES] = { 0 };
	size_t bytes;

	if (o.length > MAX_BYTES - HDR_BYTES - 4)
		errx(2, "too long: length=%u", o.length);
	bytes = make_packet(packet);
	for (uint32_t i = 0; i < o.count; i++)
		if (sendto(fd, packet, bytes, 0, (void *)&to, sizeof(to)) < 0)
			err(2, "send");
}

int main(int argc, char **argv)
{
	int fd;

	for (int c; (c = getopt(argc, argv, "d:q:k:")) != -1;) {
		if (c == 'd' && inet_pton(AF_INET, optarg, &o.dst) == 1) {
			parse_gid(optarg, o.gid);
		} else if (c == 'q') {
			o.qpn = strtoul(optarg, NULL, 0);
		} else if (c == 'k') {
			cluster_key_read(optarg, &o.keyid);
			o.sign = true;
		} else {
			return 2;
		}
	}
	if (!o.dst.s_addr)
		errx(2, "usage: migr_forge -d DST -q QPN [-k KEYFILE] "
			"[OPTION=VALUE]... [KIND] [next ...]");
	choose_source();
	fd = socket(AF_INET, SOCK_RAW, IPPROTO_RAW);
	if (fd < 0)
		err(2, "raw socket");

	for (; optind < argc; optind++)
		if (strcmp(argv[optind], "next"))
			parse_word(argv[optind]);
		else
			send_packets(fd);
	send_packets(fd);
	return 0;
}
