// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Statistics > MigrOS, and `tshark -z migros,tree`: how many packets of each
 * type, and how long migrations took.
 */
#include <wireshark.h>

#include <epan/stats_tree.h>

#include "migros.h"

static const char packets[] = "Packets";
static const char repeated[] = "repeated";
static const char ignored[] = "ignored: version, kind, length or epoch";
static const char migrations[] = "Migrations";
static const char blackout[] = "blackout until RESUME, us";
static const char blackout_total[] = "blackout in total, us";
static const char round_trip[] = "RESUME round trip, us";

static int packets_id;
static int type_id[MIGROS_TYPES];
static int migrations_id;

static void stats_init(stats_tree *st)
{
	packets_id = stats_tree_create_node(st, packets, 0, STAT_DT_INT, true);
	migrations_id =
		stats_tree_create_node(st, migrations, 0, STAT_DT_INT, true);
	/* All types from the start: a zero is a result too. */
	for (int i = MIGROS_NAK_STOPPED; i < MIGROS_FIRST_PACKET; i++)
		type_id[i] =
			stats_tree_create_node(st, migros_names[i], packets_id,
					       STAT_DT_INT, true);
}

static void count_packet(stats_tree *st, const struct migros_event *ev)
{
	tick_stat_node(st, packets, 0, true);
	tick_stat_node(st, migros_names[ev->type], packets_id, true);
	if (migros_repeated(ev))
		tick_stat_node(st, repeated, type_id[ev->type], false);
	if (!ev->valid || ev->stale)
		tick_stat_node(st, ignored, type_id[ev->type], false);
}

/* The packet that ends one, for better or worse. */
static void count_migration(stats_tree *st, const struct migros_event *ev)
{
	tick_stat_node(st, migrations, 0, true);
	if (ev->type == MIGROS_ABORTED)
		tick_stat_node(st, migros_names[ev->type], migrations_id,
			       false);
}

static void count_time(stats_tree *st, const char *name, const nstime_t *t)
{
	double us = nstime_to_sec(t) * 1e6;

	/* The tree holds ints: half an hour is the longest it can tell. */
	avg_stat_node_add_value_int(st, name, migrations_id, false,
				    (int)CLAMP(us, 0, INT_MAX));
}

static tap_packet_status stats_packet(stats_tree *st, packet_info *pinfo _U_,
				      epan_dissect_t *edt _U_, const void *data,
				      tap_flags_t flags _U_)
{
	const struct migros_event *ev = data;
	bool last = ev->type >= MIGROS_FIRST_PACKET;
	nstime_t t;

	if (last)
		count_migration(st, ev);
	else
		count_packet(st, ev);
	if (migros_blackout(ev, &t))
		count_time(st, last ? blackout_total : blackout, &t);
	if (ev->type == MIGROS_RESUME_ACK && migros_round_trip(ev, &t))
		count_time(st, round_trip, &t);
	return TAP_PACKET_REDRAW;
}

void migros_stats_init(void)
{
	stats_tree_register_plugin("migros", "migros", "MigrOS", 0,
				   stats_packet, stats_init, NULL);
}
