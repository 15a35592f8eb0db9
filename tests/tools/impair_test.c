// SPDX-License-Identifier: GPL-2.0
#include "../check.h"
#include "impair.h"

#define FRAMES 100000

static const char *parse(struct impair_spec *spec, char *words)
{
	char *list[16], *save;
	int n = 0;

	*spec = (struct impair_spec){ 0 };
	for (list[n] = strtok_r(words, " ", &save); list[n];)
		list[++n] = strtok_r(NULL, " ", &save);
	return impair_parse(spec, list);
}

static void check_words(void)
{
	static char good[][80] = {
		"loss 0% duplicate 100% reorder 75% delay 2ms seed 0x10",
		"delay 10ms 3ms loss 0.5%",
		"delay 1.5s",
		"rate 20Mbit delay 50us",
		"seed 18446744073709551615",
	};
	static char bad[][40] = {
		"loss",
		"loss 2",
		"loss 101%",
		"loss -1%",
		"loss x%",
		"loss nan%",
		"loss 2%x",
		"lose 2%",
		"2%",
		"delay 2",
		"delay 2m",
		"delay 61s",
		"delay 1ms 2",
		"delay",
		"reorder 5%",
		"seed",
		"seed x",
		"rate",
		"rate 20",
		"rate 5Mb",
		"seed -1",
		"delay 1ms 2s 3",
		"loss 2% duplicate",
		"seed 0x1ffffffffffffffff",
	};
	struct impair_spec spec;
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK(parse(&spec, bad[i]), "%s: taken", bad[i]);
	for (i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		CHECK(!parse(&spec, good[i]), "%s: refused", good[i]);
	CHECK(parse(&spec, strcpy(bad[0], "delay 2ms 1us loss 25%")) == NULL);
	CHECK(spec.delay == 2000000 && spec.jitter == 1000);
	CHECK(spec.loss == 0.25 && !spec.duplicate && !spec.reorder);
}

static bool near(int n, double share)
{
	return n > FRAMES * share * 0.9 && n < FRAMES * share * 1.1;
}

static void check_shares(void)
{
	struct impair_spec spec = { .loss = 0.02,
				    .duplicate = 0.05,
				    .reorder = 0.75,
				    .delay = 1000,
				    .jitter = 200 };
	int i, k, lost = 0, twice = 0, late = 0;
	uint64_t state = 1, again = 1, d;
	struct impair_fate fate;

	for (i = 0; i < FRAMES; i++) {
		fate = impair_next(&spec, &state);
		lost += !fate.count;
		twice += fate.count == 2;
		for (k = 0; k < fate.count; k++) {
			d = fate.delay[k];
			late += d != 0;
			CHECK(!d || (d >= 800 && d <= 1200));
		}
		CHECK(impair_next(&spec, &again).count == fate.count);
	}
	CHECK(state == again);
	CHECK(near(lost, 0.02 * 0.95), "%d lost", lost);
	CHECK(near(twice, 0.05 * 0.98), "%d twice", twice);
	CHECK(near(late, 0.25 * 1.03), "%d late", late);
}

static void check_extremes(void)
{
	struct impair_spec none = { 0 }, all = { .loss = 1 };
	uint64_t state = 7;
	int i;

	for (i = 0; i < 1000; i++) {
		struct impair_fate fate = impair_next(&none, &state);

		CHECK(fate.count == 1 && !fate.delay[0]);
		CHECK(!impair_next(&all, &state).count);
	}
}

/* A frame of `len` bytes that the kernel would cut behind its headers */
static uint64_t cut(uint8_t type, uint16_t start, uint32_t segment, size_t len)
{
	struct virtio_net_hdr v = { .gso_type = type,
				    .gso_size = segment,
				    .csum_start = start };
	static uint8_t frame[65536];

	memset(frame, 0x8f, sizeof(frame)); /* TCP's with 12 bytes of options */
	return impair_bytes(&v, frame, len);
}

static void check_bytes(void)
{
	const uint64_t around = 24;

	CHECK(cut(VIRTIO_NET_HDR_GSO_NONE, 0, 0, 1000) == 1000 + around);
	CHECK(cut(VIRTIO_NET_HDR_GSO_NONE, 0, 0, 42) == 60 + around, "short");
	CHECK(cut(VIRTIO_NET_HDR_GSO_UDP_L4, 34, 1000, 42 + 2500) ==
		      2 * (42 + 1000 + around) + 42 + 500 + around,
	      "UDP");
	CHECK(cut(VIRTIO_NET_HDR_GSO_TCPV4, 34, 1448, 66 + 2 * 1448) ==
		      2 * (66 + 1448 + around),
	      "TCP");
	/* what no kernel says */
	CHECK(cut(VIRTIO_NET_HDR_GSO_TCPV4, 65535, 9, 100) == 100 + around);
	CHECK(cut(VIRTIO_NET_HDR_GSO_UDP_L4, 95, 9, 100) == 100 + around);
	CHECK(cut(VIRTIO_NET_HDR_GSO_UDP_L4, 34, 0, 100) == 100 + around);
}

int main(void)
{
	check_words();
	check_bytes();
	check_shares();
	check_extremes();
	return check_result();
}
