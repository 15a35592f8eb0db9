// SPDX-License-Identifier: GPL-2.0
/*
 * Trains: what is sent together is cut into the same frames again, what does
 * not belong together is not, and nothing gets lost. The other end of the wire
 * is another struct wire here; the kernel cuts in the cluster tests.
 */
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "packets.h"
#include "wire.h"
#include "../../../tests/check.h"

#define FIRST_ID 0xfffe /* it wraps soon */
#define FRAMES 80

static struct wire tx, rx;

/* @room: of the sender, bytes; 0: plenty */
static void connect_wires(bool vnet, int room)
{
	int fd[2];

	MUST(!socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, fd));
	MUST(!room ||
	     !setsockopt(fd[0], SOL_SOCKET, SO_SNDBUF, &room, sizeof(room)));
	tx = (struct wire){ .fd = fd[0], .vnet = vnet, .trains = vnet };
	rx = (struct wire){ .fd = fd[1], .vnet = vnet };
}

static void disconnect_wires(void)
{
	close(tx.fd);
	close(rx.fd);
}

/* Packet `i` of a stream. UDP has no checksum, as RoCEv2's has none. */
static uint32_t make(uint8_t *f, uint8_t version, uint32_t payload, uint32_t i)
{
	struct recipe r = { .version = version,
			    .proto = PROTOCOL_UDP,
			    .payload = payload };
	uint32_t len = packet_make(f, &r);
	struct frame h;

	frame_parse(f, len, false, &h);
	memset(f + len - payload, 'a' + i % 26, payload);
	if (version == 4)
		put_be16(f + h.l3 + 4, FIRST_ID + i);
	frame_fill_l3(f, &h);
	return len;
}

static bool came(const uint8_t *want, uint32_t len)
{
	struct frame h;
	uint32_t got;
	uint8_t *f = wire_get(&rx, &got);

	if (!f || got != len || memcmp(f, want, len))
		return false;
	wire_sum(&rx, f, got);
	frame_parse(f, got, false, &h);
	return frame_l3_ok(f, &h) && (!rx.rx_unsummed || frame_l4_ok(f, &h));
}

/* how many frames, as the kernel has them, wait at the other end */
static uint32_t units(void)
{
	uint8_t copies[FRAMES][sizeof(struct virtio_net_hdr) + 2000];
	ssize_t len[FRAMES];
	uint32_t n = 0, i;
	int fd[2];

	/* Take them all out, and put them back. */
	while ((len[n] = recv(rx.fd, copies[n], sizeof(copies[n]), 0)) > 0)
		n++;
	MUST(n < FRAMES &&
	     !socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, fd));
	for (i = 0; i < n; i++)
		MUST(send(fd[0], copies[i], len[i], 0) == len[i]);
	close(fd[0]);
	MUST(dup2(fd[1], rx.fd) >= 0);
	close(fd[1]);
	return n;
}

/* One stream: payloads of packets, and how many frames they are to be. */
static void stream(const char *name, uint8_t version, const uint32_t *payload,
		   uint32_t expected)
{
	uint8_t f[2000];
	uint32_t i, n;

	connect_wires(true, 0);
	for (i = 0; payload[i]; i++)
		CHECK(wire_put(&tx, f, make(f, version, payload[i], i)), "%s",
		      name);
	CHECK(wire_flush(&tx));
	n = units();
	CHECK(n == expected, "%s, IPv%u: %u frames", name, version, n);
	for (i = 0; payload[i]; i++)
		CHECK(came(f, make(f, version, payload[i], i)),
		      "%s, IPv%u: packet %u", name, version, i);
	CHECK(!wire_get(&rx, &n) && !tx.errors, "%s: more", name);
	disconnect_wires();
}

static void streams(void)
{
	uint32_t many[FRAMES + 1] = { 0 };
	uint8_t version;

	for (version = 4; version <= 6; version += 2) {
		stream("one", version, (uint32_t[]){ 100, 0 }, 1);
		stream("equal ones", version, (uint32_t[]){ 100, 100, 100, 0 },
		       1);
		stream("a shorter end", version,
		       (uint32_t[]){ 100, 100, 30, 30, 0 }, 2);
		stream("longer ones", version,
		       (uint32_t[]){ 100, 104, 104, 108, 0 }, 3);
		memset(many, 0, sizeof(many));
		for (uint32_t i = 0; i < 70; i++)
			many[i] = 24;
		stream("more than 64", version, many, 2);
	}
}

/* A train ends at 65535 bytes of IP. */
static void longest(void)
{
	static uint8_t f[WIRE_MAX];
	uint32_t i, n, len;

	connect_wires(true, 1 << 20);
	for (i = 0; i < 16; i++)
		CHECK(wire_put(&tx, f, make(f, 4, 4112, i)));
	CHECK(tx.count == 1, "15 fit, not %u", tx.count);
	CHECK(wire_flush(&tx));
	for (i = 0; i < 16; i++)
		CHECK(came(f, make(f, 4, 4112, i)), "packet %u", i);
	CHECK(!wire_get(&rx, &n));

	/* one that is as long as any */
	len = make(f, 6, 65535 - 48, 0);
	CHECK(len == WIRE_MAX && wire_put(&tx, f, len) && wire_flush(&tx));
	CHECK(came(f, len));
	disconnect_wires();
}

/* A byte of the second one's headers is another. */
static void strangers(void)
{
	uint8_t f[2000];
	uint32_t at, n, len, version;

	for (version = 4; version <= 6; version += 2)
		for (at = 0; at < (version == 4 ? 42U : 62U); at++) {
			/* The kernel makes lengths and checksums anew. */
			bool made = version == 4 ? at == 16 || at == 17 ||
							   at == 24 || at == 25
						 : at == 18 || at == 19;

			made |= at == (version == 4 ? 38U : 58U) ||
				at == (version == 4 ? 39U : 59U);
			if (made || at == 12 || at == 13)
				continue;
			connect_wires(true, 0);
			wire_put(&tx, f, make(f, version, 100, 0));
			len = make(f, version, 100, 1);
			f[at] ^= 1;
			CHECK(wire_put(&tx, f, len) && tx.count == 1,
			      "IPv%u: byte %u joins", version, at);
			CHECK(wire_flush(&tx));
			CHECK(wire_get(&rx, &n) && wire_get(&rx, &n) &&
			      !wire_get(&rx, &n));
			disconnect_wires();
		}
}

/* Each by itself: those who look at the wire want it, or it is no tap. */
static void single(void)
{
	uint8_t f[2000];
	uint32_t i, vnet;

	for (vnet = 0; vnet < 2; vnet++) {
		connect_wires(vnet, 0);
		tx.trains = false;
		for (i = 0; i < 3; i++)
			CHECK(wire_put(&tx, f, make(f, 4, 100, i)));
		CHECK(wire_flush(&tx));
		i = units();
		CHECK(i == 3, "%u frames", i);
		for (i = 0; i < 3; i++)
			CHECK(came(f, make(f, 4, 100, i)), "packet %u", i);
		disconnect_wires();
	}
}

/* A wire without room: the sender waits, and all comes in its order. */
static void full(void)
{
	uint8_t f[2000], want[2000];
	uint32_t sent = 0, got = 0, refused = 0, version = 4;

	connect_wires(true, 4096);
	while (got < 5000) {
		uint32_t len = make(f, version, sent % 7 ? 1000 : 900, sent);

		if (sent < 5000 && wire_put(&tx, f, len)) {
			sent++;
			continue;
		}
		refused += sent < 5000;
		wire_flush(&tx);
		len = make(want, version, got % 7 ? 1000 : 900, got);
		if (!came(want, len)) {
			CHECK(false, "packet %u", got);
			break;
		}
		got++;
	}
	CHECK(refused && !tx.errors, "%u", refused);
	disconnect_wires();

	/* nobody there: that is no lack of room, but loss */
	connect_wires(true, 0);
	close(rx.fd);
	wire_put(&tx, f, make(f, 4, 100, 0));
	wire_put(&tx, f, make(f, 4, 100, 1));
	CHECK(wire_flush(&tx) && tx.errors == 2 && !tx.count);
	CHECK(wire_write(&tx, f, 100) && tx.errors == 3);
	close(tx.fd);
}

/*
 * Checksums that the kernel has left to us, of frames that are no trains: of a
 * TCP segment, and of something further inside.
 */
static void unsummed(void)
{
	struct recipe r = { .version = 4,
			    .proto = PROTOCOL_TCP,
			    .payload = 333 };
	struct wire_unit u = { .v.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM };
	uint32_t len, n, inner;
	struct frame h;
	uint8_t *f;

	connect_wires(true, 0);
	len = packet_make(u.frame, &r);
	frame_parse(u.frame, len, false, &h);
	frame_fill_l3(u.frame, &h);
	u.v.csum_start = h.l4;
	u.v.csum_offset = 16;
	put_be16(u.frame + h.l4 + 16,
		 csum_fold(csum_add(PROTOCOL_TCP + len - h.l4,
				    u.frame + h.l3 + 12, 8)));
	MUST(send(tx.fd, &u, sizeof(u.v) + len, 0) > 0);
	f = wire_get(&rx, &n);
	MUST(f && n == len);
	wire_sum(&rx, f, n);
	CHECK(frame_l4_ok(f, &h));

	inner = h.l4 + 101;
	u.v.csum_start = inner;
	u.v.csum_offset = 50;
	put_be16(u.frame + inner + 50, 0);
	MUST(send(tx.fd, &u, sizeof(u.v) + len, 0) > 0);
	f = wire_get(&rx, &n);
	MUST(f && n == len);
	wire_sum(&rx, f, n);
	CHECK(csum_fold(csum_add(0, f + inner, len - inner)) == 0xffff);
	CHECK(!memcmp(f, u.frame, inner + 50) &&
	      !memcmp(f + inner + 52, u.frame + inner + 52, len - inner - 52));
	disconnect_wires();
}

/* A kernel says nothing of the kind; if one did, we would stay in bounds. */
static void nonsense(void)
{
	static struct wire_unit u;
	struct recipe r = { 0 };
	uint32_t i, k, len, n, taken = 0;
	uint8_t *f;

	srand(1);
	connect_wires(true, 0);
	for (i = 0; i < 100000; i++) {
		r.version = rand() & 1 ? 6 : 4;
		r.proto = rand() & 3 ? PROTOCOL_UDP : PROTOCOL_TCP;
		r.tags = rand() % 3;
		r.options = r.version == 4 ? rand() % 11 * 4 : rand() % 3 * 8;
		r.payload = rand() % 300;
		len = packet_make(u.frame, &r);
		for (k = rand() % 4; k; k--)
			u.frame[rand() % len] = rand();
		u.v.gso_type = rand() % 4 ? VIRTIO_NET_HDR_GSO_UDP_L4
					  : rand() % 2 * rand();
		u.v.csum_start = rand() % 500;
		u.v.csum_offset = rand() % 8 ? 6 : rand();
		u.v.gso_size = rand() % 8 ? rand() % 400 : rand();
		u.v.flags = rand();
		len = rand() % 8 ? sizeof(u.v) + len : rand() % len;
		MUST(send(tx.fd, &u, len, 0) >= 0);
		while ((f = wire_get(&rx, &n))) {
			CHECK(f >= rx.rx.frame &&
			      f + n <= rx.rx.frame + sizeof(rx.rx.frame));
			wire_sum(&rx, f, n);
			memset(f, 0xee, n); /* a reader may do that */
			taken++;
		}
	}
	CHECK(taken > i, "only %u", taken);
	disconnect_wires();
}

int main(void)
{
	streams();
	longest();
	strangers();
	single();
	full();
	unsummed();
	nonsense();
	return check_result();
}
