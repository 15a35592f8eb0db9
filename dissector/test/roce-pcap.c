// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * roce-pcap [-m] [-p PORT] < TRACE > PCAP
 *
 * Makes a capture from a text that a person can read: one packet a line,
 *
 *   SECONDS SOURCE DESTINATION PACKET [KEY=VALUE]...
 *
 * PACKET is a name and KEY one of the fields from the tables below; what is
 * not given has a value that makes a correct packet. Addresses are IPv4 or
 * IPv6. ICRC and MAC are right; the key is 00 01 02 .. 1f, and the MAC that of a
 * sender which was at was=ADDRESS, if that is given.
 *
 * -m  instead of each packet, write broken ones: every byte from the BTH on
 *     changed in two ways, every shorter capture of it, every shorter packet.
 * -p  UDP port, 4791 if not given.
 */
#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <glib.h>

#include "rxe_migr_wire.h"

#define BTH_BYTES 12
#define AETH_BYTES 4
#define MAX_BYTES 2048
#define FIRST_SECOND 1700000000

struct packet {
	uint32_t opcode;
	bool aeth, meth;
	uint32_t payload; /* bytes */
	uint32_t kind;
	uint32_t syndrome;
	uint32_t qp, psn, cap, ackreq, msn;
	uint32_t version, key, resv1, resv2, epoch, old, new, port, nonce;
	uint32_t extra; /* bytes after everything, before the ICRC */
	uint32_t chop;	/* bytes missing before the ICRC */
	uint32_t forge; /* 1: a MAC by another key */
	uint8_t gid[16], from[16], to[16];
};

static const struct {
	const char *name;
	struct packet packet;
} names[] = {
	{ "send", { .opcode = 0x04, .payload = 16, .ackreq = 1 } },
	{ "ack", { .opcode = 0x11, .aeth = true, .syndrome = 0x1f } },
	{ "ud", { .opcode = 0x64, .payload = 24 } },
	{ "nak_stopped",
	  { .opcode = 0x11, .aeth = true, .syndrome = MIGR_AETH_NAK_STOPPED } },
	{ "resume",
	  { .opcode = MIGR_OPCODE_RESUME,
	    .aeth = true,
	    .meth = true,
	    .ackreq = 1,
	    .kind = MIGR_METH_KIND_RESUME } },
	{ "moved",
	  { .opcode = MIGR_OPCODE_RESUME,
	    .aeth = true,
	    .meth = true,
	    .ackreq = 1,
	    .kind = MIGR_METH_KIND_MOVED } },
	{ "question",
	  { .opcode = MIGR_OPCODE_ASK,
	    .aeth = true,
	    .meth = true,
	    .ackreq = 1,
	    .kind = MIGR_METH_KIND_ASK } },
	{ "answer",
	  { .opcode = MIGR_OPCODE_RESUME_ACK,
	    .aeth = true,
	    .meth = true,
	    .kind = MIGR_METH_KIND_ASK } },
	{ "nobody",
	  { .opcode = MIGR_OPCODE_RESUME_ACK,
	    .aeth = true,
	    .meth = true,
	    .kind = MIGR_METH_KIND_NOBODY } },
	{ "resume_ack",
	  { .opcode = MIGR_OPCODE_RESUME_ACK,
	    .aeth = true,
	    .meth = true,
	    .kind = MIGR_METH_KIND_RESUME } },
};

#define KEY(field) { #field, offsetof(struct packet, field) }
static const struct {
	const char *name;
	size_t offset;
} keys[] = {
	KEY(opcode), KEY(payload), KEY(kind),  KEY(syndrome), KEY(qp),
	KEY(psn),    KEY(cap),	   KEY(msn),   KEY(version),  KEY(key),
	KEY(resv1),  KEY(resv2),   KEY(epoch), KEY(old),      KEY(new),
	KEY(port),   KEY(extra),   KEY(chop),  KEY(forge),    KEY(nonce),
};

static unsigned udp_port = 4791;
static bool mutate;

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

/* ---- the text ---- */

/* An IPv4 address becomes the GID ::ffff:a.b.c.d, as RoCEv2 does it. */
static void parse_gid(const char *text, uint8_t gid[16])
{
	memset(gid, 0, 16);
	if (inet_pton(AF_INET6, text, gid) == 1)
		return;
	memset(gid + 10, 0xff, 2);
	if (inet_pton(AF_INET, text, gid + 12) != 1)
		errx(1, "not an address: %s", text);
}

static void set_key(struct packet *p, char *text)
{
	char *value = strchr(text, '=');

	if (!value)
		errx(1, "not KEY=VALUE: %s", text);
	*value++ = 0;
	if (!strcmp(text, "gid") || !strcmp(text, "was")) {
		parse_gid(value, *text == 'g' ? p->gid : p->from);
		return;
	}
	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
		if (!strcmp(text, keys[i].name)) {
			uint32_t v = strtoul(value, NULL, 0);

			memcpy((char *)p + keys[i].offset, &v, sizeof(v));
			return;
		}
	errx(1, "unknown key: %s", text);
}

static struct packet parse_packet(char *words, const char *src, const char *dst)
{
	const char *name = strtok(words, " \t\n");
	struct packet p = { 0 };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (name && !strcmp(name, names[i].name))
			p = names[i].packet;
	if (!p.opcode)
		errx(1, "unknown packet: %s", name ? name : "(none)");
	p.cap = 1;
	p.version = MIGR_METH_VERSION;
	p.key = 7;
	p.port = 49153;
	parse_gid(src, p.gid); /* who sends RESUME is where to go from now on */
	parse_gid(src, p.from);
	parse_gid(dst, p.to);
	for (char *w; (w = strtok(NULL, " \t\n"));)
		set_key(&p, w);
	return p;
}

/* ---- the packet ---- */

static size_t put_meth(uint8_t *m, const struct packet *p)
{
	m[MIGR_METH_VER_KIND] = p->version << 4 | p->kind;
	m[MIGR_METH_KEY_ID] = p->key;
	put16(m + MIGR_METH_RESV1, p->resv1);
	put32(m + MIGR_METH_EPOCH, p->epoch);
	put32(m + MIGR_METH_OLD_QPN, p->old);
	put32(m + MIGR_METH_NEW_QPN, p->new);
	memcpy(m + MIGR_METH_GID, p->gid, sizeof(p->gid));
	put16(m + MIGR_METH_UDP_PORT, p->port);
	put16(m + MIGR_METH_RESV2, p->resv2);
	put32(m + MIGR_METH_NONCE, p->nonce);
	return MIGR_METH_BYTES;
}

/* The MAC of a packet whose METH is at @m and has none yet. */
static void put_mac(uint8_t *m, const struct packet *p)
{
	uint8_t key[MIGR_KEY_BYTES];
	uint8_t in[MIGR_MAC_INPUT_BYTES];
	uint8_t digest[32];
	gsize size = sizeof(digest);
	GHmac *hmac;

	for (int i = 0; i < MIGR_KEY_BYTES; i++)
		key[i] = i + p->forge;
	put32(in + 3, p->psn); /* 24 bits: the first byte is overwritten */
	put32(in, p->opcode << 24 | p->qp);
	put32(in + 7, p->syndrome << 24 | p->msn);
	memcpy(in + MIGR_MAC_METH, m, MIGR_METH_BYTES);
	memcpy(in + MIGR_MAC_FROM, p->from, 16);
	memcpy(in + MIGR_MAC_TO, p->to, 16);
	hmac = g_hmac_new(G_CHECKSUM_SHA256, key, sizeof(key));
	g_hmac_update(hmac, in, sizeof(in));
	g_hmac_get_digest(hmac, digest, &size);
	g_hmac_unref(hmac);
	memcpy(m + MIGR_METH_MAC, digest, MIGR_MAC_BYTES);
}

static size_t put_transport(uint8_t *b, const struct packet *p)
{
	size_t n = BTH_BYTES;

	b[0] = p->opcode;
	put16(b + 2, 0xffff); /* default partition */
	put32(b + 4, p->qp & 0xffffff);
	b[MIGR_BTH_CAP_BYTE] =
		p->cap && !(p->opcode >> 5) ? MIGR_BTH_CAP_BIT : 0;
	put32(b + 8, p->psn | (p->ackreq ? 1u << 31 : 0));
	if (p->aeth) {
		put32(b + n, p->syndrome << 24 | p->msn);
		n += AETH_BYTES;
	}
	if (p->meth) {
		size_t bytes = put_meth(b + n, p);

		put_mac(b + n, p);
		n += bytes;
	}
	for (uint32_t i = 0; i < p->payload + p->extra; i++)
		b[n++] = i;
	return n - p->chop;
}

/* CRC-32 as in Ethernet, continued over @n bytes. */
static uint32_t crc32(uint32_t crc, const uint8_t *p, size_t n)
{
	while (n--) {
		crc ^= *p++;
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
	}
	return crc;
}

struct frame {
	uint8_t bytes[MAX_BYTES];
	size_t ip, udp, bth, end; /* offsets */
};

static bool is_ipv4(const struct frame *f)
{
	return f->udp - f->ip == 20;
}

/*
 * The invariant CRC: what routers may change counts as ones, and eight bytes
 * of ones stand for the missing local route header.
 */
static uint32_t icrc(const struct frame *f)
{
	static const uint8_t ones[8] = { 0xff, 0xff, 0xff, 0xff,
					 0xff, 0xff, 0xff, 0xff };
	struct frame m = *f;
	uint8_t *ip = m.bytes + m.ip;

	if (is_ipv4(f)) {
		ip[1] = 0xff;		  /* type of service */
		ip[8] = 0xff;		  /* time to live */
		memset(ip + 10, 0xff, 2); /* checksum */
	} else {
		ip[0] |= 0x0f; /* traffic class, flow label */
		memset(ip + 1, 0xff, 3);
		ip[7] = 0xff; /* hop limit */
	}
	memset(m.bytes + m.udp + 6, 0xff, 2); /* checksum */
	m.bytes[m.bth + 4] = 0xff;	      /* FECN, BECN, resv6a */
	return ~crc32(crc32(~0u, ones, sizeof(ones)), ip, m.end - m.ip);
}

static void put_ip_checksum(uint8_t *ip)
{
	uint32_t sum = 0;

	put16(ip + 10, 0);
	for (int i = 0; i < 20; i += 2)
		sum += ip[i] << 8 | ip[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	put16(ip + 10, ~sum);
}

/* All lengths and check sums for a frame that ends at @f->end. */
static void put_lengths(struct frame *f)
{
	uint8_t *ip = f->bytes + f->ip;

	put16(f->bytes + f->udp + 4, f->end - f->udp);
	if (!is_ipv4(f)) {
		put16(ip + 4, f->end - f->udp);
		return;
	}
	put16(ip + 2, f->end - f->ip);
	put_ip_checksum(ip);
}

static void put_network(struct frame *f, const char *src, const char *dst)
{
	static const uint8_t macs[12] = { 0x52, 0x54, 0, 0, 0, 2,
					  0x52, 0x54, 0, 0, 0, 1 };
	bool v6 = strchr(src, ':');
	int family = v6 ? AF_INET6 : AF_INET;
	uint8_t *ip = f->bytes + 14;

	memset(f, 0, sizeof(*f));
	memcpy(f->bytes, macs, sizeof(macs));
	put16(f->bytes + 12, v6 ? 0x86dd : 0x0800);
	f->ip = 14;
	f->udp = f->ip + (v6 ? 40 : 20);
	f->bth = f->udp + 8;
	ip[0] = v6 ? 0x60 : 0x45;
	ip[v6 ? 6 : 9] = 17;
	ip[v6 ? 7 : 8] = 64;
	if (!v6)
		put16(ip + 6, 0x4000); /* do not fragment */
	if (inet_pton(family, src, ip + (v6 ? 8 : 12)) != 1 ||
	    inet_pton(family, dst, ip + (v6 ? 24 : 16)) != 1)
		errx(1, "not addresses: %s, %s", src, dst);
	put16(f->bytes + f->udp, 49153);
	put16(f->bytes + f->udp + 2, udp_port);
}

static void finish(struct frame *f)
{
	uint32_t crc;

	f->end += 4;
	put_lengths(f);
	f->end -= 4;
	crc = icrc(f);
	for (int i = 0; i < 4; i++)
		f->bytes[f->end++] = crc >> 8 * i;
}

/* ---- the capture ---- */

static void write_all(const void *p, size_t n)
{
	if (fwrite(p, n, 1, stdout) != 1)
		err(1, "write");
}

static void write_frame(const struct frame *f, double when, size_t captured)
{
	uint64_t us = when * 1e6 + 0.5;
	const uint32_t record[4] = { FIRST_SECOND + us / 1000000, us % 1000000,
				     captured, f->end };

	write_all(record, sizeof(record));
	write_all(f->bytes, captured);
}

static void write_mutants(const struct frame *good, double when)
{
	for (size_t at = good->bth; at < good->end; at++) {
		struct frame f = *good;

		f.bytes[at] ^= 0xff;
		write_frame(&f, when, f.end);
		f.bytes[at] ^= 0xfe; /* leaves the lowest bit changed */
		write_frame(&f, when, f.end);
		write_frame(good, when, at);
		f = *good;
		f.end = at;
		put_lengths(&f);
		write_frame(&f, when, at);
	}
}

static void convert_line(char *line)
{
	char src[64], dst[64];
	struct packet p;
	struct frame f;
	double when;
	int at = 0;

	if (line[0] == '#' || line[0] == '\n')
		return;
	if (sscanf(line, "%lf %63s %63s %n", &when, src, dst, &at) != 3 || !at)
		errx(1, "cannot read: %s", line);
	p = parse_packet(line + at, src, dst);
	put_network(&f, src, dst);
	f.end = f.bth + put_transport(f.bytes + f.bth, &p);
	finish(&f);
	if (mutate)
		write_mutants(&f, when);
	else
		write_frame(&f, when, f.end);
}

int main(int argc, char **argv)
{
	static const struct {
		uint32_t magic;
		uint16_t major, minor;
		uint32_t zone, accuracy, snap, link;
	} header = { 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1 };
	char line[512];

	for (int c; (c = getopt(argc, argv, "mp:")) != -1;) {
		if (c == 'm')
			mutate = true;
		else if (c == 'p')
			udp_port = atoi(optarg);
		else
			return 1;
	}
	write_all(&header, sizeof(header));
	while (fgets(line, sizeof(line), stdin))
		convert_line(line);
	return fflush(stdout) ? 1 : 0;
}
