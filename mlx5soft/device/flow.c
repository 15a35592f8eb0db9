// SPDX-License-Identifier: GPL-2.0
/*
 * Receive steering: tables of entries, lowest index first, that match on the
 * outer headers and lead to another table or to a TIR.
 */

#include <stdlib.h>

#include "nic.h"
#include "queue.h"

#define MATCH BYTES(fte_match_param)
#define MAX_LEVELS 64
#define ACTION_DROP 2
#define ACTION_FORWARD 4
#define MISS_TO_TABLE 1

struct group {
	struct group *next;
	u32 id, first, last;
	u8 mask[MATCH];
};

struct entry {
	struct entry *next; /* by index */
	u32 index, group, action;
	u8 dest_type;
	u32 dest;
	u8 value[MATCH];
};

struct ft {
	struct obj obj;
	u8 type, level, log_size, miss_action;
	u32 miss, next_group;
	struct group *groups;
	struct entry *entries;
};

static void ft_free(struct nic *nic, struct obj *obj)
{
	struct ft *ft = (struct ft *)obj;
	struct group *g;
	struct entry *e;

	(void)nic;
	while ((g = ft->groups)) {
		ft->groups = g->next;
		free(g);
	}
	while ((e = ft->entries)) {
		ft->entries = e->next;
		free(e);
	}
	free(ft);
}

int create_flow_table(struct nic *nic, struct cmd *cmd)
{
	const u8 *c = AT_RO(create_flow_table_in, cmd->in, flow_table_context);
	struct ft *ft;

	if (GET(create_flow_table_in, cmd->in, table_type))
		return FAIL(BAD_PARAM, "only NIC receive tables");
	if (GET(flow_table_context, c, log_size) > 16)
		return FAIL(BAD_PARAM, "size");
	ft = calloc(1, sizeof(*ft));
	if (!ft)
		return FAIL(INTERNAL, "no memory");
	ft->obj.free = ft_free;
	ft->level = GET(flow_table_context, c, level);
	ft->log_size = GET(flow_table_context, c, log_size);
	ft->miss_action = GET(flow_table_context, c, table_miss_action);
	ft->miss = GET(flow_table_context, c, table_miss_id);
	return cmd_created(nic, cmd, &ft->obj, OBJ_FT);
}

/* All commands below have the table at the same place. */
static struct ft *table(struct nic *nic, const struct cmd *cmd)
{
	return (struct ft *)obj_find(nic, OBJ_FT,
				     GET(destroy_flow_table_in, cmd->in,
					 table_id));
}

int destroy_flow_table(struct nic *nic, struct cmd *cmd)
{
	struct ft *ft = table(nic, cmd);

	if (!ft)
		return FAIL(BAD_RES, "no such table");
	if (ft->groups || ft->entries)
		return FAIL(RES_BUSY, "it has groups");
	if (nic->root_ft == ft->obj.id)
		nic->root_ft = 0;
	obj_destroy(nic, &ft->obj);
	return CMD_OK;
}

int modify_flow_table(struct nic *nic, struct cmd *cmd)
{
	const u8 *c = AT_RO(modify_flow_table_in, cmd->in, flow_table_context);
	struct ft *ft = (struct ft *)obj_find(nic, OBJ_FT,
					      GET(modify_flow_table_in, cmd->in,
						  table_id));

	if (!ft)
		return FAIL(BAD_RES, "no such table");
	ft->miss_action = GET(flow_table_context, c, table_miss_action);
	ft->miss = GET(flow_table_context, c, table_miss_id);
	return CMD_OK;
}

int set_flow_table_root(struct nic *nic, struct cmd *cmd)
{
	struct ft *ft = (struct ft *)obj_find(nic, OBJ_FT,
					      GET(set_flow_table_root_in,
						  cmd->in, table_id));

	if (!ft)
		return FAIL(BAD_RES, "no such table");
	nic->root_ft = cmd->op_mod ? 0 : ft->obj.id;
	return CMD_OK;
}

int create_flow_group(struct nic *nic, struct cmd *cmd)
{
	const u8 *mask = AT_RO(create_flow_group_in, cmd->in, match_criteria);
	struct ft *ft = (struct ft *)obj_find(nic, OBJ_FT,
					      GET(create_flow_group_in, cmd->in,
						  table_id));
	u32 first = GET(create_flow_group_in, cmd->in, start_flow_index);
	u32 last = GET(create_flow_group_in, cmd->in, end_flow_index);
	struct group *g;

	if (!ft)
		return FAIL(BAD_RES, "no such table");
	if (first > last || last >> ft->log_size)
		return FAIL(BAD_PARAM, "range of indices");
	for (g = ft->groups; g; g = g->next)
		if (first <= g->last && g->first <= last)
			return FAIL(BAD_PARAM, "groups overlap");
	g = calloc(1, sizeof(*g));
	if (!g)
		return FAIL(INTERNAL, "no memory");
	g->id = ft->next_group++ & 0xffffff;
	g->first = first;
	g->last = last;
	memcpy(g->mask, mask, MATCH);
	g->next = ft->groups;
	ft->groups = g;
	cmd_set_id(cmd, g->id);
	return CMD_OK;
}

int destroy_flow_group(struct nic *nic, struct cmd *cmd)
{
	u32 id = GET(destroy_flow_group_in, cmd->in, group_id);
	struct ft *ft = table(nic, cmd);
	struct group **at, *g;
	struct entry *e;

	if (!ft)
		return FAIL(BAD_RES, "no such table");
	for (at = &ft->groups; (g = *at); at = &g->next)
		if (g->id == id)
			break;
	if (!g)
		return FAIL(BAD_RES, "no such group");
	for (e = ft->entries; e; e = e->next)
		if (e->group == id)
			return FAIL(RES_BUSY, "it has entries");
	*at = g->next;
	free(g);
	return CMD_OK;
}

static const struct group *group_of(const struct ft *ft, u32 id, u32 index)
{
	const struct group *g;

	for (g = ft->groups; g; g = g->next)
		if (g->id == id && index >= g->first && index <= g->last)
			return g;
	return NULL;
}

int set_fte(struct nic *nic, struct cmd *cmd)
{
	const u8 *ctx = AT_RO(set_fte_in, cmd->in, flow_context);
	const u8 *dest = cmd->in + BYTES(set_fte_in);
	u32 count = GET(flow_context, ctx, destination_list_size);
	u32 index = GET(set_fte_in, cmd->in, flow_index);
	u32 group = GET(flow_context, ctx, group_id);
	struct ft *ft = table(nic, cmd);
	struct entry **at, *e;

	if (!ft)
		return FAIL(BAD_RES, "no such table");
	if (count > 1 || dest + 8 * count > cmd->in + cmd->in_len)
		return FAIL(BAD_PARAM, "number of destinations");
	for (at = &ft->entries; (e = *at); at = &e->next)
		if (e->index >= index)
			break;
	if (e && e->index == index)
		group = e->group; /* the entry is changed */
	if (!group_of(ft, group, index))
		return FAIL(BAD_PARAM, "index is not in the group");
	if (!e || e->index != index) {
		e = calloc(1, sizeof(*e));
		if (!e)
			return FAIL(INTERNAL, "no memory");
		e->next = *at;
		*at = e;
		e->index = index;
		e->group = group;
		memcpy(e->value, AT_RO(flow_context, ctx, match_value), MATCH);
	}
	e->action = GET(flow_context, ctx, action);
	if (!count)
		e->action &= ~ACTION_FORWARD;
	else
		e->dest = GET(dest_format_struct, dest, destination_id);
	e->dest_type =
		count ? GET(dest_format_struct, dest, destination_type) : 0;
	return CMD_OK;
}

int delete_fte(struct nic *nic, struct cmd *cmd)
{
	u32 index = GET(delete_fte_in, cmd->in, flow_index);
	struct ft *ft = table(nic, cmd);
	struct entry **at, *e;

	if (!ft)
		return FAIL(BAD_RES, "no such table");
	for (at = &ft->entries; (e = *at); at = &e->next)
		if (e->index == index)
			break;
	if (!e)
		return FAIL(BAD_RES, "no such entry");
	*at = e->next;
	free(e);
	return CMD_OK;
}

/* ---- packets ---- */

#define HDR(field, value) SET(fte_match_set_lyr_2_4, h, field, value)

/* A packet as the mask and value of an entry describe it. */
static void describe(u8 *h, const u8 *frame, u32 len)
{
	u32 at = 14, l4;
	u16 type = get_be16(frame + 12);
	u8 proto;

	HDR(dmac_47_16, get_be32(frame));
	HDR(dmac_15_0, get_be16(frame + 4));
	HDR(smac_47_16, get_be32(frame + 6));
	HDR(smac_15_0, get_be16(frame + 10));
	if (type == 0x8100 && len >= 18) {
		HDR(cvlan_tag, 1);
		HDR(first_vid, get_be16(frame + 14) & 0xfff);
		type = get_be16(frame + 16);
		at = 18;
	}
	HDR(ethertype, type);
	if (type == 0x0800 && len >= at + 20) {
		proto = frame[at + 9];
		l4 = at + (frame[at] & 15) * 4;
		HDR(ip_version, 4);
		memcpy(AT(fte_match_set_lyr_2_4, h, src_ipv4_src_ipv6) + 12,
		       frame + at + 12, 4);
		memcpy(AT(fte_match_set_lyr_2_4, h, dst_ipv4_dst_ipv6) + 12,
		       frame + at + 16, 4);
		if (get_be16(frame + at + 6) & 0x3fff) {
			HDR(frag, 1);
			l4 = len; /* a fragment has no ports */
		}
	} else if (type == 0x86dd && len >= at + 40) {
		proto = frame[at + 6];
		l4 = at + 40;
		HDR(ip_version, 6);
		memcpy(AT(fte_match_set_lyr_2_4, h, src_ipv4_src_ipv6),
		       frame + at + 8, 16);
		memcpy(AT(fte_match_set_lyr_2_4, h, dst_ipv4_dst_ipv6),
		       frame + at + 24, 16);
	} else {
		return;
	}
	HDR(ip_protocol, proto);
	if (len < l4 + 8)
		return;
	if (proto == 6) {
		HDR(tcp_sport, get_be16(frame + l4));
		HDR(tcp_dport, get_be16(frame + l4 + 2));
	} else if (proto == 17) {
		HDR(udp_sport, get_be16(frame + l4));
		HDR(udp_dport, get_be16(frame + l4 + 2));
	}
}

static bool matches(const struct ft *ft, const struct entry *e, const u8 *pkt)
{
	const struct group *g = group_of(ft, e->group, e->index);
	size_t i;

	for (i = 0; g && i < MATCH; i++)
		if ((pkt[i] ^ e->value[i]) & g->mask[i])
			return false;
	return g;
}

static u32 hash_of(const u8 *h)
{
	u32 hash = 2166136261U;
	size_t i;

	/* addresses and ports; any function will do for spreading */
	for (i = 16; i < BYTES(fte_match_set_lyr_2_4); i++)
		hash = (hash ^ h[i]) * 16777619U;
	return hash ^ hash >> 16;
}

static bool tir_to_rq(struct nic *nic, u32 id, u32 hash, u32 *rqn)
{
	struct tir *tir = (struct tir *)obj_find(nic, OBJ_TIR, id);
	struct rqt *rqt;

	if (!tir)
		return false;
	if (!GET(tirc, tir->ctx, disp_type)) {
		*rqn = GET(tirc, tir->ctx, inline_rqn);
		return true;
	}
	rqt = (struct rqt *)obj_find(nic, OBJ_RQT,
				     GET(tirc, tir->ctx, indirect_table));
	if (!rqt || !rqt->count)
		return false;
	*rqn = rqt->rqn[hash % rqt->count];
	return true;
}

bool flow_lookup(struct nic *nic, const u8 *frame, u32 len, u32 *rqn, u32 *hash)
{
	u8 pkt[MATCH] = { 0 };
	const struct entry *e;
	u32 id = nic->root_ft;
	struct ft *ft;
	int level;

	describe(pkt, frame, len);
	*hash = hash_of(pkt);
	for (level = 0; level < MAX_LEVELS; level++) {
		ft = (struct ft *)obj_find(nic, OBJ_FT, id);
		if (!ft)
			return false;
		for (e = ft->entries; e && !matches(ft, e, pkt);)
			e = e->next;
		if (!e) {
			if (ft->miss_action != MISS_TO_TABLE)
				return false;
			id = ft->miss;
			continue;
		}
		if (!(e->action & ACTION_FORWARD) || e->action & ACTION_DROP)
			return false;
		if (e->dest_type == MLX5_IFC_FLOW_DESTINATION_TYPE_TIR)
			return tir_to_rq(nic, e->dest, *hash, rqn);
		if (e->dest_type != MLX5_IFC_FLOW_DESTINATION_TYPE_FLOW_TABLE)
			return false;
		id = e->dest;
	}
	return false;
}
