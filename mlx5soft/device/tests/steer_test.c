// SPDX-License-Identifier: GPL-2.0
/* Flow tables: which entry matches, against a plain search */

#include <time.h>

#include "ethernet/steer.h"
#include "packets.h"
#include "../../../tests/check.h"

#define ROUNDS 10
#define MAX_RULES 600

struct rule {
	uint32_t index;
	const struct group *group;
	uint8_t value[MATCH];
};

static uint32_t plain(const struct rule *rules, uint32_t count,
		      const uint8_t *pkt)
{
	uint32_t best = ~0U, i, b;

	for (i = 0; i < count; i++) {
		for (b = 0; b < MATCH; b++)
			if ((pkt[b] ^ rules[i].value[b]) &
			    rules[i].group->mask[b])
				break;
		if (b == MATCH && rules[i].index < best)
			best = rules[i].index;
	}
	return best;
}

/* small alphabets, so that much matches */
static void random_bytes(uint8_t *p)
{
	int i;

	memset(p, 0, MATCH);
	for (i = 0; i < 6; i++)
		p[rand() % 8] = rand() % 3;
}

static void against_plain(void)
{
	struct group *groups = NULL, *g;
	struct rule rules[MAX_RULES];
	uint8_t mask[MATCH], pkt[MATCH];
	const struct entry *e;
	uint32_t i, count = 0, first;

	for (i = 0; i < 8; i++) {
		random_bytes(mask);
		if (i == 7)
			memset(mask, 0, MATCH); /* takes all */
		first = (i * 5 % 8) * 100;
		MUST(!group_add(&groups, i, first, first + 99, mask));
		MUST(group_add(&groups, 99, first + 50, first + 150, mask));
	}
	for (i = 0; i < 800 && count < MAX_RULES; i++) {
		if (rand() % 4 == 0 || (i / 100 == 5 * 7 % 8 && rand() % 50))
			continue;
		MUST(!entry_find(groups, i, &g) && g);
		rules[count].index = i;
		rules[count].group = g;
		random_bytes(rules[count].value);
		MUST(entry_add(g, i, rules[count].value));
		MUST(entry_find(groups, i, &g)->index == i);
		count++;
	}
	for (i = 0; i < 500; i++) {
		random_bytes(pkt);
		e = steer_match(groups, pkt);
		MUST((e ? e->index : ~0U) == plain(rules, count, pkt));
		if (count && i % 3 == 0) { /* and with fewer each time */
			uint32_t gone = rand() % count;
			struct entry *x =
				entry_find(groups, rules[gone].index, &g);

			MUST(x);
			entry_del(g, x);
			rules[gone] = rules[--count];
		}
	}
	while ((g = groups)) {
		groups = g->next;
		group_free(g);
	}
}

#define FIELD(field) GET(fte_match_set_lyr_2_4, pkt, field)

static void description(void)
{
	struct recipe r = { .version = 4, .proto = PROTOCOL_TCP, .tags = 1 };
	uint8_t f[200], pkt[MATCH] = { 0 };
	struct frame h;
	uint32_t len = packet_make(f, &r);

	frame_parse(f, len, false, &h);
	steer_describe(pkt, f, len, &h);
	MUST(FIELD(cvlan_tag) == 1 && !FIELD(svlan_tag));
	MUST(FIELD(first_vid) == 100 && FIELD(first_prio) == 3);
	MUST(FIELD(ethertype) == ETHERTYPE_IPV4 && FIELD(ip_version) == 4);
	MUST(FIELD(tcp_sport) == 1000 && FIELD(tcp_dport) == 2000);
	MUST(!FIELD(udp_dport) && FIELD(ip_protocol) == PROTOCOL_TCP);
	MUST(FIELD(dmac_47_16) == get_be32(f));
	MUST(FIELD(smac_15_0) == get_be16(f + 10));

	r = (struct recipe){ .version = 6, .proto = PROTOCOL_UDP, .tags = 2 };
	memset(pkt, 0, sizeof(pkt));
	len = packet_make(f, &r);
	frame_parse(f, len, false, &h);
	steer_describe(pkt, f, len, &h);
	MUST(FIELD(svlan_tag) == 1 && !FIELD(cvlan_tag));
	MUST(FIELD(ethertype) == ETHERTYPE_IPV6 && FIELD(ip_version) == 6);
	MUST(FIELD(udp_sport) == 1000 && !FIELD(tcp_sport));

	memset(pkt, 0, sizeof(pkt));
	frame_parse(f, 5, false, &h);
	steer_describe(pkt, f, 5, &h); /* of nothing, nothing */
	MUST(!FIELD(dmac_47_16));
}

/* With 4096 VLANs, as with a few: a figure for whoever asks */
static void speed(void)
{
	struct group *groups = NULL, *g;
	uint8_t mask[MATCH] = { 0 }, pkt[MATCH] = { 0 };
	struct timespec a, b;
	uint32_t i, n = 20000;

	SET(fte_match_set_lyr_2_4, mask, first_vid, 0xfff);
	SET(fte_match_set_lyr_2_4, mask, cvlan_tag, 1);
	SET(fte_match_set_lyr_2_4, pkt, cvlan_tag, 1);
	MUST(!group_add(&groups, 0, 0, 4095, mask));
	g = groups;
	for (i = 0; i < 4096; i++) {
		SET(fte_match_set_lyr_2_4, pkt, first_vid, i);
		MUST(entry_add(g, i, pkt));
	}
	clock_gettime(CLOCK_MONOTONIC, &a);
	for (i = 0; i < n; i++) {
		SET(fte_match_set_lyr_2_4, pkt, first_vid, i % 4096);
		MUST(steer_match(groups, pkt)->index == i % 4096);
	}
	clock_gettime(CLOCK_MONOTONIC, &b);
	printf("%.0f ns to find one of 4096\n",
	       ((b.tv_sec - a.tv_sec) * 1e9 + (b.tv_nsec - a.tv_nsec)) / n);
	group_free(g);
}

int main(void)
{
	int i;

	for (i = 0; i < ROUNDS; i++)
		against_plain();
	description();
	speed();
	return check_result();
}
