// SPDX-License-Identifier: GPL-2.0
/*
 * The limiter, with a clock of its own: at no time has more arrived than the
 * link can carry, and after a million frames no bit of time is lost; in order,
 * also when the link changes; who waits for room waits until there is some.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "packets.h"
#include "wire.h"
#include "../../../tests/check.h"

#define FRAMES 1000000U
#define SECOND 1000000000ULL
#define MAX_FRAME 4200U

static struct wire w;
static uint64_t now;
static int far;

static void open_wire(bool vnet)
{
	int fd[2], room = 1 << 20;

	MUST(!socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, fd));
	MUST(!setsockopt(fd[0], SOL_SOCKET, SO_SNDBUF, &room, sizeof(room)));
	w = (struct wire){ .fd = fd[0], .vnet = vnet, .trains = vnet };
	now = SECOND;
	far = fd[1];
}

static void close_wire(void)
{
	free(w.limit);
	close(w.fd);
	close(far);
}

/* ---- words ---- */

static void words(void)
{
	static const struct {
		const char *text;
		uint64_t value;
	} rates[] = {
		{ "1000", 1000 },	 { "200M", 200000000 },
		{ "2.5Gbit", 2500000000 }, { "20kbit", 20000 },
		{ "25g", 25000000000 },	 { "1000G", LINK_MAX_RATE },
		{ "999", 0 },		 { "0", 0 },
		{ "1001G", 0 },		 { "", 0 },
		{ "M", 0 },		 { "-5M", 0 },
		{ " 5M", 0 },		 { "5 M", 0 },
		{ "5MM", 0 },		 { "5T", 0 },
		{ "1e6", 0 },		 { "0x10M", 0 },
		{ "nan", 0 },		 { "inf", 0 },
		{ "1.2.3M", 0 },	 { "5Mbits", 0 },
		{ "9999999999999999999999G", 0 },
	}, times[] = {
		{ "50us", 50000 },	 { "1.5ms", 1500000 },
		{ "1s", SECOND },	 { "7ns", 7 },
		{ "60s", LINK_MAX_DELAY }, { "61s", 0 },
		{ "50", 0 },		 { "-1us", 0 },
		{ "5m", 0 },		 { "us", 0 },
		{ "", 0 },		 { "1e3us", 0 },
	};
	uint64_t n;

	for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
		n = 0;
		CHECK(link_parse_rate(rates[i].text, &n) == !!rates[i].value &&
			      n == rates[i].value,
		      "rate %s: %lu", rates[i].text, n);
	}
	for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
		n = 0;
		CHECK(link_parse_time(times[i].text, &n) == !!times[i].value &&
			      n == times[i].value,
		      "time %s: %lu", times[i].text, n);
	}
	CHECK(link_parse_time("0us", &n) && !n, "no time");
}

/* ---- the rate ---- */

/* Whatever the rate, the last of many frames leaves when all bits have. */
static void no_drift(uint64_t rate)
{
	struct link link = { .rate = rate, .delay = 7 };
	uint64_t start = 12345, bytes = 0, at = 0, len;

	for (uint32_t i = 0; i < FRAMES; i++) {
		len = link_bytes(rand() % MAX_FRAME, 0, 0);
		at = link_send(&link, start, len);
		bytes += len;
	}
	CHECK(at == start + 7 +
			      (uint64_t)(((unsigned __int128)bytes * 8 * SECOND +
					  rate - 1) /
					 rate),
	      "%lu bits/s: %lu bytes arrive after %lu ns", rate, bytes, at);
}

/*
 * A sender that always has something, and a scheduler that lets it work when
 * it likes, up to `gap` ns late.
 */
static void always_busy(uint64_t rate, uint64_t gap)
{
	static const uint8_t frame[MAX_FRAME];
	uint64_t start, sent = 0, arrived, allowed;
	uint32_t frames = 0, refused = 0, len = 1 + rand() % MAX_FRAME;

	open_wire(false);
	MUST(!dup2(open("/dev/null", O_WRONLY | O_CLOEXEC), w.fd) == !w.fd);
	MUST(!wire_limit(&w, now, rate, 0));
	start = now;
	while (frames < FRAMES) {
		while (wire_write(&w, frame, len)) {
			sent += link_bytes(len, 0, 0);
			frames++;
			len = 1 + rand() % MAX_FRAME;
		}
		refused++;
		now = wire_due(&w, true);
		MUST(now != LIMIT_NEVER);
		now += rand() % (gap + 1);
		wire_run(&w, now, true);
		arrived = sent - w.limit->bytes;
		allowed = (now - start) * (rate / 1e9) / 8 + 1;
		if (arrived > allowed) {
			CHECK(false, "%lu bits/s: %lu bytes instead of %lu",
			      rate, arrived, allowed);
			break;
		}
	}
	while (w.limit->units) {
		now = wire_due(&w, false);
		wire_run(&w, now, true);
	}
	allowed = (now - start) * (rate / 1e9) / 8;
	CHECK(allowed - sent <= MAX_FRAME && refused > 100,
	      "%lu bits/s: %lu bytes instead of %lu", rate, sent, allowed);
	close_wire();
}

/*
 * A link that has stood idle owes nothing; one that nobody looked at, though there
 * was work all the time, as much as LIMIT_DEBT.
 */
static void idle(bool waited)
{
	static const uint8_t frame[1000];
	uint64_t free;

	open_wire(false);
	MUST(!wire_limit(&w, now, 81920000, 300)); /* a frame takes 100 us */
	now += 5 * SECOND;
	wire_run(&w, now, waited);
	free = waited ? now - LIMIT_DEBT : now;
	for (int i = 1; i <= 2; i++) {
		CHECK(wire_write(&w, frame, 1000));
		free += 100000;
		CHECK(w.limit->link.free == free, "it leaves at %lu, not %lu",
		      w.limit->link.free, free);
	}
	CHECK(waited || !wire_write(&w, frame, 1000), "room");
	/* late as it is, it needs all of the delay */
	free = (waited ? now : now + 100000) + 300;
	CHECK(wire_due(&w, false) == free, "due at %lu", wire_due(&w, false));
	close_wire();
}

/* ---- order ---- */

/* The number of the next frame at the far end, or UINT32_MAX: there is none. */
static uint32_t take(void)
{
	uint32_t n;

	return recv(far, &n, sizeof(n), 0) == sizeof(n) ? n : UINT32_MAX;
}

/* Links of all kinds in turn, with frames on their way */
static void change(uint32_t i)
{
	static const uint64_t rates[] = { 0, 1000000, 100000000, 25000000000 };
	static const uint64_t delays[] = { 0, 1000, 3000000 };

	MUST(!wire_limit(&w, now, rates[i % 4], delays[i % 3]));
}

/* Each frame comes once, and nobody overtakes. */
static void order(void)
{
	uint8_t frame[MAX_FRAME] = { 0 };
	uint32_t sent = 0, got = 0, n, waited = 0;

	open_wire(false);
	for (uint32_t turn = 0; got < 20000; turn++) {
		if (turn % 37 == 36)
			change(turn / 37);
		for (n = rand() % 20; n; n--) {
			memcpy(frame, &sent, sizeof(sent));
			if (!wire_write(&w, frame, 60 + rand() % 4000)) {
				waited++;
				break;
			}
			sent++;
		}
		now += rand() % 300000;
		if (w.limit)
			wire_run(&w, now, false);
		/* a wire that is full now and then */
		while (turn % 5 && (n = take()) != UINT32_MAX)
			if (n != got++) {
				CHECK(false, "%u instead of %u", n, got - 1);
				close_wire();
				return;
			}
	}
	CHECK(waited && !w.errors, "%u, %lu", waited, w.errors);
	close_wire();
}

/* ---- room ---- */

/* So much of the link is taken and no more; then it is time that tells. */
static void back_pressure(void)
{
	static const uint8_t frame[1000];
	uint64_t room, frames = 0;

	open_wire(false);
	MUST(!wire_limit(&w, now, 409600000, 0)); /* a frame takes 20 us */
	while (wire_write(&w, frame, 1000))
		frames++;
	CHECK(frames == LIMIT_BACKLOG / 20000 + 1, "%lu frames", frames);
	CHECK(!wire_room(&w) && !wire_polls(&w, true), "waits for the wire");
	CHECK(wire_due(&w, false) == now + 20000, "arrives");
	room = wire_due(&w, true);
	CHECK(room == now + 20000, "room at %lu", room);
	wire_run(&w, room - 1, true);
	CHECK(!wire_room(&w) && w.limit->units == frames, "too early");
	wire_run(&w, room, true);
	CHECK(wire_room(&w) && w.limit->units == frames - 1, "no room");
	/* one that takes longer has the link for itself */
	now = room;
	MUST(!wire_limit(&w, now, 0, 0));
	wire_run(&w, now, true);
	MUST(!wire_limit(&w, now, 8192000, SECOND));
	CHECK(wire_write(&w, frame, 1000) && !wire_write(&w, frame, 1000),
	      "room for two");
	CHECK(wire_due(&w, false) == now + 1000000 + SECOND, "arrives");
	/* there is room long before it arrives */
	CHECK(wire_due(&w, true) == now + 1000000 - LIMIT_BACKLOG,
	      "room at %lu", wire_due(&w, true));
	close_wire();
}

/* Send one of any length with the next number. */
static bool send_next(uint32_t *number)
{
	static uint8_t frame[65536];

	memcpy(frame, number, sizeof(*number));
	if (!wire_write(&w, frame, 60 + rand() % (sizeof(frame) - 60)))
		return false;
	++*number;
	return true;
}

/* Nobody takes what has arrived: then it is poll() that tells. */
static void check_full(void)
{
	CHECK(wire_polls(&w, false) && wire_due(&w, true) == LIMIT_NEVER,
	      "a timer for a full wire");
	CHECK(!wire_room(&w) && !wire_write(&w, &w, 60), "no back pressure");
}

/* A link without a rate is bounded by memory alone, over and over again. */
static void memory(void)
{
	uint32_t sent = 0, got = 0, full = 0, refused = 0, n;

	open_wire(false);
	CHECK(wire_limit(&w, now, 25000000000, 6000000) == -ERANGE && !w.limit);
	CHECK(!wire_limit(&w, now, 0, 0) && !w.limit, "a link for nothing");
	MUST(!wire_limit(&w, now, 0, SECOND));
	CHECK(wire_limit(&w, now, 25000000000, 6000000) == -ERANGE &&
		      w.limit->link.delay == SECOND,
	      "it has changed");
	while (send_next(&sent))
		;
	CHECK(sent > 900 && w.limit->bytes > LIMIT_MEMORY - (1 << 20),
	      "%u frames", sent);
	CHECK(wire_due(&w, true) == 2 * SECOND && !wire_polls(&w, true),
	      "room without memory");
	while (got < 20000) {
		now += SECOND / 500;
		wire_run(&w, now, false);
		if (w.full) {
			full++;
			check_full();
		}
		while ((n = take()) != UINT32_MAX)
			CHECK(n == got++, "%u instead of %u", n, got - 1);
		for (n = rand() % 8; n && sent < 20000; n--)
			if (!send_next(&sent)) {
				refused++;
				break;
			}
	}
	CHECK(full > 10 && refused > 100 && got == sent && !w.limit->units,
	      "%u times full, %u refused, %u of %u", full, refused, got, sent);
	close_wire();
}

/* Off: what is on its way comes at once, and then there is no link any more. */
static void switched_off(void)
{
	uint8_t frame[1000] = { 0 };
	uint32_t i, n;

	open_wire(false);
	MUST(!wire_limit(&w, now, 1000000, SECOND));
	for (i = 0; i < 3; i++) {
		memcpy(frame, &i, sizeof(i));
		wire_write(&w, frame, sizeof(frame));
	}
	n = w.limit->units;
	CHECK(n && take() == UINT32_MAX, "it came");
	MUST(!wire_limit(&w, now, 0, 0));
	CHECK(w.limit && wire_due(&w, false) == now, "it still waits");
	memcpy(frame, &n, sizeof(n));
	CHECK(wire_write(&w, frame, sizeof(frame)), "room");
	wire_run(&w, now, false);
	for (i = 0; i <= n; i++)
		CHECK(take() == i, "%u", i);
	CHECK(!w.limit, "the link is still there");
	memcpy(frame, &i, sizeof(i));
	CHECK(wire_write(&w, frame, sizeof(frame)) && take() == i, "direct");
	close_wire();
}

/* ---- trains ---- */

static uint32_t make(uint8_t *f, uint32_t payload, uint16_t i)
{
	struct recipe r = { .version = 4,
			    .proto = PROTOCOL_UDP,
			    .payload = payload };
	uint32_t len = packet_make(f, &r);
	struct frame h;

	frame_parse(f, len, false, &h);
	put_be16(f + h.l3 + 4, i);
	frame_fill_l3(f, &h);
	return len;
}

/* They take the time of their packets, and are as long as the link permits. */
static void trains(uint64_t rate, uint32_t payload, uint32_t longest)
{
	uint64_t bytes = 0, units = 0, packets = 0;
	uint64_t start;
	uint8_t f[MAX_FRAME];
	uint32_t i, len;

	open_wire(true);
	MUST(!wire_limit(&w, now, rate, 0));
	start = now;
	for (i = 0; i < 64; i++) {
		len = make(f, i == 63 ? 20 : payload, i);
		while (!wire_put(&w, f, len)) {
			now = wire_due(&w, true);
			wire_run(&w, now, true);
		}
		bytes += link_bytes(len, 0, 0);
	}
	while (!wire_flush(&w)) {
		now = wire_due(&w, true);
		wire_run(&w, now, true);
	}
	CHECK(w.limit->link.free == start + bytes * 8 * SECOND / rate,
	      "they take %lu ns", w.limit->link.free - start);
	now += SECOND;
	packets = w.limit->packets;
	wire_run(&w, now, true);
	CHECK(packets && !w.limit->packets && !w.limit->bytes, "%lu of %lu",
	      w.limit->packets, packets);
	for (; recv(far, f, sizeof(f), MSG_TRUNC) > 0; units++)
		;
	CHECK(units == (64 + longest - 1) / longest, "%lu frames", units);
	close_wire();
}

int main(void)
{
	srand(1);
	words();
	no_drift(1000);
	no_drift(333333333);
	no_drift(LINK_MAX_RATE);
	always_busy(20000000, 0);
	always_busy(333333333, LIMIT_DEBT - SECOND / 1000);
	always_busy(25000000000, 1000000);
	idle(false);
	idle(true);
	order();
	back_pressure();
	memory();
	switched_off();
	trains(200000000, 1000, 1);
	trains(2000000000, 1000, 4);
	trains(25000000000, 1000, 60);
	return check_result();
}
