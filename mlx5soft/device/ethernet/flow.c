// SPDX-License-Identifier: GPL-2.0
/*
 * Receive steering: tables of entries, lowest index first, that match on the
 * outer headers and lead to another table or to a TIR.
 */

#include <stdlib.h>

#include "commands/cmd.h"
#include "ethernet/flow.h"
#include "ethernet/steer.h"
#include "nic.h"

#define MAX_LEVELS 64
#define ACTION_DROP 2
#define ACTION_FORWARD 4
#define MISS_TO_TABLE 1
#define TO_TABLE MLX5_IFC_FLOW_DESTINATION_TYPE_FLOW_TABLE
#define TO_TIR MLX5_IFC_FLOW_DESTINATION_TYPE_TIR

struct ft {
	struct obj obj;
	uint8_t type, level, log_size, miss_action;
	uint32_t miss, next_group;
	struct group *groups;
};

static struct obj *dest_of(struct nic *nic, uint8_t type, uint32_t id)
{
	if (type == TO_TABLE)
		return obj_find(nic, OBJ_FT, id);
	return type == TO_TIR ? obj_find(nic, OBJ_TIR, id) : NULL;
}

/* When all goes, the destination may have gone before. */
static void drop_dest(struct nic *nic, struct entry *e)
{
	struct obj *dest = e->action & ACTION_FORWARD
				   ? dest_of(nic, e->dest_type, e->dest)
				   : NULL;

	if (dest && dest->users)
		dest->users--;
}

static void ft_free(struct nic *nic, struct obj *obj)
{
	struct ft *ft = (struct ft *)obj;
	struct group *g;

	(void)nic;
	while ((g = ft->groups)) {
		ft->groups = g->next;
		group_free(g);
	}
	free(ft);
}

static int create_flow_table(struct nic *nic, struct cmd *cmd)
{
	const uint8_t *c =
		AT_RO(create_flow_table_in, cmd->in, flow_table_context);
	struct ft *ft;

	if (GET(create_flow_table_in, cmd->in, table_type))
		return FAIL(BAD_PARAM, "only NIC receive tables");
	if (GET(flow_table_context, c, log_size) > 16)
		return FAIL(BAD_PARAM, "size");
	ft = calloc(1, sizeof(*ft));
	if (!ft)
		return FAIL(LIMIT, "no memory");
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

static int destroy_flow_table(struct nic *nic, struct cmd *cmd)
{
	struct ft *ft = table(nic, cmd);

	if (!ft)
		return FAIL(BAD_RES, "no such table");
	if (ft->groups || ft->obj.users)
		return FAIL(RES_BUSY, "it has groups, or entries lead to it");
	if (nic->root_ft == ft->obj.id)
		nic->root_ft = 0;
	obj_destroy(nic, &ft->obj);
	return CMD_OK;
}

static int modify_flow_table(struct nic *nic, struct cmd *cmd)
{
	const uint8_t *c =
		AT_RO(modify_flow_table_in, cmd->in, flow_table_context);
	struct ft *ft = (struct ft *)obj_find(nic, OBJ_FT,
					      GET(modify_flow_table_in, cmd->in,
						  table_id));

	if (!ft)
		return FAIL(BAD_RES, "no such table");
	ft->miss_action = GET(flow_table_context, c, table_miss_action);
	ft->miss = GET(flow_table_context, c, table_miss_id);
	return CMD_OK;
}

static int set_flow_table_root(struct nic *nic, struct cmd *cmd)
{
	struct ft *ft = (struct ft *)obj_find(nic, OBJ_FT,
					      GET(set_flow_table_root_in,
						  cmd->in, table_id));

	if (!ft)
		return FAIL(BAD_RES, "no such table");
	nic->root_ft = cmd->op_mod ? 0 : ft->obj.id;
	return CMD_OK;
}

static int create_flow_group(struct nic *nic, struct cmd *cmd)
{
	const uint8_t *mask =
		AT_RO(create_flow_group_in, cmd->in, match_criteria);
	struct ft *ft = (struct ft *)obj_find(nic, OBJ_FT,
					      GET(create_flow_group_in, cmd->in,
						  table_id));
	uint32_t first = GET(create_flow_group_in, cmd->in, start_flow_index);
	uint32_t last = GET(create_flow_group_in, cmd->in, end_flow_index);
	uint32_t id;
	int ret;

	if (!ft)
		return FAIL(BAD_RES, "no such table");
	if (first > last || last >> ft->log_size)
		return FAIL(BAD_PARAM, "range of indices");
	if (!steer_known(mask))
		return FAIL(BAD_PARAM, "a field that is not looked at");
	id = ft->next_group & 0xffffff;
	ret = group_add(&ft->groups, id, first, last, mask);
	if (ret)
		return FAIL_WITH(ret, "groups overlap");
	ft->next_group++;
	SET(create_flow_group_out, cmd->out, group_id, id);
	return CMD_OK;
}

static int destroy_flow_group(struct nic *nic, struct cmd *cmd)
{
	uint32_t id = GET(destroy_flow_group_in, cmd->in, group_id);
	struct ft *ft = table(nic, cmd);
	struct group **at, *g;

	if (!ft)
		return FAIL(BAD_RES, "no such table");
	for (at = &ft->groups; (g = *at); at = &g->next)
		if (g->id == id)
			break;
	if (!g)
		return FAIL(BAD_RES, "no such group");
	if (g->entries)
		return FAIL(RES_BUSY, "it has entries");
	*at = g->next;
	group_free(g);
	return CMD_OK;
}

static int set_fte(struct nic *nic, struct cmd *cmd)
{
	const uint8_t *ctx = AT_RO(set_fte_in, cmd->in, flow_context);
	const uint8_t *list = cmd->in + BYTES(set_fte_in);
	uint32_t count = GET(flow_context, ctx, destination_list_size);
	uint32_t index = GET(set_fte_in, cmd->in, flow_index), to = 0;
	uint32_t action = GET(flow_context, ctx, action);
	struct ft *ft = table(nic, cmd);
	struct obj *dest = NULL;
	struct group *g;
	struct entry *e;
	uint8_t type = 0;

	if (!ft)
		return FAIL(BAD_RES, "no such table");
	if (count > 1 || list + 8 * count > cmd->in + cmd->in_len)
		return FAIL(BAD_PARAM, "number of destinations");
	if (!count)
		action &= ~ACTION_FORWARD;
	if (action & ACTION_FORWARD) {
		type = GET(dest_format_struct, list, destination_type);
		to = GET(dest_format_struct, list, destination_id);
		dest = dest_of(nic, type, to);
		if (!dest)
			return FAIL(BAD_RES, "no such table or TIR");
	}
	e = entry_find(ft->groups, index, &g);
	/* An entry that is there is changed. */
	if (!g || index < g->first ||
	    (!e && GET(flow_context, ctx, group_id) != g->id))
		return FAIL(BAD_PARAM, "index is not in the group");
	if (e)
		drop_dest(nic, e);
	else
		e = entry_add(g, index, AT_RO(flow_context, ctx, match_value));
	if (!e)
		return FAIL(LIMIT, "no memory");
	e->action = action;
	e->dest = to;
	e->dest_type = type;
	if (dest)
		dest->users++;
	return CMD_OK;
}

static int delete_fte(struct nic *nic, struct cmd *cmd)
{
	uint32_t index = GET(delete_fte_in, cmd->in, flow_index);
	struct ft *ft = table(nic, cmd);
	struct group *g;
	struct entry *e;

	if (!ft)
		return FAIL(BAD_RES, "no such table");
	e = entry_find(ft->groups, index, &g);
	if (!e)
		return FAIL(BAD_RES, "no such entry");
	drop_dest(nic, e);
	entry_del(g, e);
	return CMD_OK;
}

/* ---- packets ---- */

struct tir *flow_lookup(struct nic *nic, const uint8_t *f, uint32_t len,
			const struct frame *h)
{
	uint8_t pkt[MATCH] = { 0 };
	const struct entry *e;
	uint32_t id = nic->root_ft;
	struct ft *ft;
	int level;

	steer_describe(pkt, f, len, h);
	for (level = 0; level < MAX_LEVELS; level++) {
		ft = (struct ft *)obj_find(nic, OBJ_FT, id);
		if (!ft)
			return NULL;
		e = steer_match(ft->groups, pkt);
		if (!e && ft->miss_action != MISS_TO_TABLE)
			return NULL;
		if (!e) {
			id = ft->miss;
			continue;
		}
		if (!(e->action & ACTION_FORWARD) || e->action & ACTION_DROP)
			return NULL;
		if (e->dest_type == TO_TIR)
			return (struct tir *)obj_find(nic, OBJ_TIR, e->dest);
		id = e->dest;
	}
	return NULL;
}

/* The RQ of a packet with this hash; NULL: there is none */
struct wq *tir_to_rq(struct nic *nic, const struct tir *tir, uint32_t hash)
{
	struct rqt *rqt;

	if (!GET(tirc, tir->ctx, disp_type))
		return (struct wq *)obj_find(nic, OBJ_RQ,
					     GET(tirc, tir->ctx, inline_rqn));
	rqt = (struct rqt *)obj_find(nic, OBJ_RQT,
				     GET(tirc, tir->ctx, indirect_table));
	if (!rqt || !rqt->count)
		return NULL;
	return (struct wq *)obj_find(nic, OBJ_RQ, rqt->rqn[hash % rqt->count]);
}

static const struct cmd_desc rows[] = {
	ROW(CREATE_FLOW_TABLE, create_flow_table, BYTES(create_flow_table_in),
	    16, 0),
	ROW(DESTROY_FLOW_TABLE, destroy_flow_table,
	    BYTES(destroy_flow_table_in), 16, 0),
	ROW(MODIFY_FLOW_TABLE, modify_flow_table, BYTES(modify_flow_table_in),
	    16, 0),
	ROW(SET_FLOW_TABLE_ROOT, set_flow_table_root, 32, 16, 0),
	ROW(CREATE_FLOW_GROUP, create_flow_group, BYTES(create_flow_group_in),
	    16, 0),
	ROW(DESTROY_FLOW_GROUP, destroy_flow_group,
	    BYTES(destroy_flow_group_in), 16, 0),
	{ MLX5_CMD_OP_SET_FLOW_TABLE_ENTRY, "SET_FTE", set_fte,
	  BYTES(set_fte_in), 16, 0 },
	{ MLX5_CMD_OP_DELETE_FLOW_TABLE_ENTRY, "DELETE_FTE", delete_fte,
	  BYTES(delete_fte_in), 16, 0 },
};

const struct cmd_rows rows_flow = { rows, N_ELEM(rows) };
