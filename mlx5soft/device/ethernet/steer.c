// SPDX-License-Identifier: GPL-2.0
/* Groups and entries of flow tables, and what matches. */

#include <errno.h>
#include <stdlib.h>

#include "ethernet/steer.h"

int group_add(struct group **groups, uint32_t id, uint32_t first, uint32_t last,
	      const uint8_t mask[MATCH])
{
	struct group **at, *g;

	for (at = groups; (g = *at) && g->last < first; at = &g->next)
		;
	if (g && g->first <= last)
		return -EINVAL;
	g = calloc(1, sizeof(*g));
	if (!g)
		return -ENOMEM;
	g->id = id;
	g->first = first;
	g->last = last;
	memcpy(g->mask, mask, MATCH);
	for (g->to = MATCH; g->to && !mask[g->to - 1];)
		g->to--;
	while (g->from < g->to && !mask[g->from])
		g->from++;
	g->next = *at;
	*at = g;
	return 0;
}

void group_free(struct group *g)
{
	struct entry *e;
	uint32_t i;

	for (i = 0; i < GROUP_BUCKETS; i++)
		while ((e = g->bucket[i])) {
			g->bucket[i] = e->next;
			free(e);
		}
	free(g);
}

static uint32_t bucket_of(const struct group *g, const uint8_t *value)
{
	uint32_t hash = 2166136261U, i;

	for (i = g->from; i < g->to; i++)
		hash = (hash ^ (value[i] & g->mask[i])) * 16777619U;
	return (hash ^ hash >> 16) % GROUP_BUCKETS;
}

struct entry *entry_find(struct group *groups, uint32_t index,
			 struct group **of)
{
	struct group *g;
	struct entry *e;
	uint32_t i;

	for (g = groups; g && g->last < index;)
		g = g->next;
	*of = g;
	if (!g || index < g->first)
		return NULL;
	for (i = 0; i < GROUP_BUCKETS; i++)
		for (e = g->bucket[i]; e; e = e->next)
			if (e->index == index)
				return e;
	return NULL;
}

struct entry *entry_add(struct group *g, uint32_t index,
			const uint8_t value[MATCH])
{
	struct entry *e = calloc(1, sizeof(*e)), **at;
	uint32_t i;

	if (!e)
		return NULL;
	e->index = index;
	for (i = 0; i < MATCH; i++)
		e->value[i] = value[i] & g->mask[i];
	at = &g->bucket[bucket_of(g, value)];
	while (*at && (*at)->index < index)
		at = &(*at)->next;
	e->next = *at;
	*at = e;
	g->entries++;
	return e;
}

void entry_del(struct group *g, struct entry *e)
{
	struct entry **at = &g->bucket[bucket_of(g, e->value)];

	while (*at != e)
		at = &(*at)->next;
	*at = e->next;
	g->entries--;
	free(e);
}

static bool matches(const struct group *g, const struct entry *e,
		    const uint8_t *pkt)
{
	uint32_t i;

	for (i = g->from; i < g->to; i++)
		if ((pkt[i] & g->mask[i]) != e->value[i])
			return false;
	return true;
}

const struct entry *steer_match(const struct group *groups,
				const uint8_t pkt[MATCH])
{
	const struct group *g;
	const struct entry *e;

	for (g = groups; g; g = g->next) {
		if (!g->entries)
			continue;
		for (e = g->bucket[bucket_of(g, pkt)]; e; e = e->next)
			if (matches(g, e, pkt))
				return e;
	}
	return NULL;
}

#define HDR(field, value) SET(fte_match_set_lyr_2_4, pkt, field, value)
#define HDR_AT(field) ((uint8_t *)AT(fte_match_set_lyr_2_4, pkt, field))

/* The outer headers come first in fte_match_param. */
void steer_describe(uint8_t pkt[MATCH], const uint8_t *f, uint32_t len,
		    const struct frame *h)
{
	uint16_t tag;

	if (len < ETH_BYTES)
		return;
	HDR(dmac_47_16, get_be32(f));
	HDR(dmac_15_0, get_be16(f + 4));
	HDR(smac_47_16, get_be32(f + 6));
	HDR(smac_15_0, get_be16(f + 10));
	HDR(ethertype, h->type);
	if (h->l3 > ETH_BYTES) {
		tag = get_be16(f + 14);
		if (get_be16(f + 12) == ETHERTYPE_CVLAN)
			HDR(cvlan_tag, 1);
		else
			HDR(svlan_tag, 1);
		HDR(first_prio, tag >> 13);
		HDR(first_cfi, tag >> 12 & 1);
		HDR(first_vid, tag & 0xfff);
	}
	if (!h->version)
		return;
	HDR(ip_version, h->version);
	HDR(ip_protocol, h->proto);
	HDR(frag, h->fragment);
	if (h->version == 4) {
		memcpy(HDR_AT(src_ipv4_src_ipv6) + 12, f + h->l3 + 12, 4);
		memcpy(HDR_AT(dst_ipv4_dst_ipv6) + 12, f + h->l3 + 16, 4);
	} else {
		memcpy(HDR_AT(src_ipv4_src_ipv6), f + h->l3 + 8, 16);
		memcpy(HDR_AT(dst_ipv4_dst_ipv6), f + h->l3 + 24, 16);
	}
	if (h->l4_type == PROTOCOL_TCP) {
		HDR(tcp_sport, get_be16(f + h->l4));
		HDR(tcp_dport, get_be16(f + h->l4 + 2));
	} else if (h->l4_type == PROTOCOL_UDP) {
		HDR(udp_sport, get_be16(f + h->l4));
		HDR(udp_dport, get_be16(f + h->l4 + 2));
	}
}

/* ...and all that it can tell, each as a field of ones */
bool steer_known(const uint8_t mask[MATCH])
{
	uint8_t pkt[MATCH] = { 0 };
	size_t i;

	HDR(dmac_47_16, -1);
	HDR(dmac_15_0, -1);
	HDR(smac_47_16, -1);
	HDR(smac_15_0, -1);
	HDR(ethertype, -1);
	HDR(cvlan_tag, -1);
	HDR(svlan_tag, -1);
	HDR(first_prio, -1);
	HDR(first_cfi, -1);
	HDR(first_vid, -1);
	HDR(ip_version, -1);
	HDR(ip_protocol, -1);
	HDR(frag, -1);
	memset(HDR_AT(src_ipv4_src_ipv6), 0xff, 16);
	memset(HDR_AT(dst_ipv4_dst_ipv6), 0xff, 16);
	HDR(tcp_sport, -1);
	HDR(tcp_dport, -1);
	HDR(udp_sport, -1);
	HDR(udp_dport, -1);
	for (i = 0; i < MATCH; i++)
		if (mask[i] & ~pkt[i])
			return false;
	return true;
}
