// SPDX-License-Identifier: GPL-2.0
/* Counters of the port, the vport and of queues. */

#include <stdlib.h>

#include "commands/cmd.h"
#include "commands/counter.h"
#include "ethernet/frame.h"
#include "nic.h"
#include "rdma/qp.h"

#define FCS 4

/* groups of PPCNT */
enum {
	GRP_802_3 = 0x00,
	GRP_RFC_2863 = 0x01,
	GRP_RFC_2819 = 0x02,
	GRP_PRIO = 0x10,
	GRP_PHYSICAL = 0x12
};

/* ---- counting ---- */

static enum cast cast_of(const uint8_t *mac)
{
	static const uint8_t broadcast[6] = { 255, 255, 255, 255, 255, 255 };

	if (!memcmp(mac, broadcast, 6))
		return BROADCAST;
	return mac[0] & 1 ? MULTICAST : UNICAST;
}

void count_traffic(struct traffic *t, const uint8_t *frame, uint32_t len)
{
	enum cast cast = cast_of(frame);

	t->frames[cast]++;
	t->bytes[cast] += len;
}

static unsigned int prio_of(const uint8_t *frame, uint32_t len)
{
	if (len < ETH_BYTES + VLAN_BYTES ||
	    get_be16(frame + 12) != ETHERTYPE_CVLAN)
		return 0;
	return frame[14] >> 5;
}

void count_rx(struct nic *nic, const uint8_t *frame, uint32_t len)
{
	static const uint32_t last[SIZE_RANGES - 1] = { 64,   127,  255,
							511,  1023, 1518,
							2047, 4095, 8191 };
	unsigned int prio = prio_of(frame, len), i = 0;

	count_traffic(&nic->port.rx, frame, len);
	nic->port.prio_rx_frames[prio]++;
	nic->port.prio_rx_bytes[prio] += len;
	while (i < SIZE_RANGES - 1 && len + FCS > last[i])
		i++;
	nic->port.rx_size[i]++;
}

void count_tx(struct nic *nic, const uint8_t *frame, uint32_t len)
{
	unsigned int prio = prio_of(frame, len);

	count_traffic(&nic->port.tx, frame, len);
	nic->port.prio_tx_frames[prio]++;
	nic->port.prio_tx_bytes[prio] += len;
}

/* ---- PPCNT ---- */

static uint64_t total(const uint64_t by_cast[CASTS])
{
	return by_cast[UNICAST] + by_cast[MULTICAST] + by_cast[BROADCAST];
}

/* Octets at the port have no FCS in them: a tap has none. */
#define CNT(type, field, value) put_be64(AT(type, set, field##_high), value)
#define CNT_802_3(field, value) \
	CNT(eth_802_3_cntrs_grp_data_layout, field, value)
#define CNT_2863(field, value) CNT(eth_2863_cntrs_grp_data_layout, field, value)
#define CNT_2819(field, value) CNT(eth_2819_cntrs_grp_data_layout, field, value)
#define CNT_PRIO(field, value) CNT(eth_per_prio_grp_data_layout, field, value)

static void group_802_3(const struct port *p, uint8_t *set)
{
	CNT_802_3(a_frames_transmitted_ok, total(p->tx.frames));
	CNT_802_3(a_frames_received_ok, total(p->rx.frames));
	CNT_802_3(a_octets_transmitted_ok, total(p->tx.bytes));
	CNT_802_3(a_octets_received_ok, total(p->rx.bytes));
	CNT_802_3(a_multicast_frames_xmitted_ok, p->tx.frames[MULTICAST]);
	CNT_802_3(a_broadcast_frames_xmitted_ok, p->tx.frames[BROADCAST]);
	CNT_802_3(a_multicast_frames_received_ok, p->rx.frames[MULTICAST]);
	CNT_802_3(a_broadcast_frames_received_ok, p->rx.frames[BROADCAST]);
	CNT_802_3(a_frame_too_long_errors, p->rx_oversize);
}

static void group_2863(const struct nic *nic, uint8_t *set)
{
	const struct port *p = &nic->port;

	CNT_2863(if_in_octets, total(p->rx.bytes));
	CNT_2863(if_in_ucast_pkts, p->rx.frames[UNICAST]);
	CNT_2863(if_in_multicast_pkts, p->rx.frames[MULTICAST]);
	CNT_2863(if_in_broadcast_pkts, p->rx.frames[BROADCAST]);
	CNT_2863(if_in_errors, p->rx_oversize);
	CNT_2863(if_out_octets, total(p->tx.bytes));
	CNT_2863(if_out_ucast_pkts, p->tx.frames[UNICAST]);
	CNT_2863(if_out_multicast_pkts, p->tx.frames[MULTICAST]);
	CNT_2863(if_out_broadcast_pkts, p->tx.frames[BROADCAST]);
	CNT_2863(if_out_discards, p->tx_discards);
	CNT_2863(if_out_errors, nic->wire.errors);
}

static void group_2819(const struct port *p, uint8_t *set)
{
	uint8_t *sizes = AT(eth_2819_cntrs_grp_data_layout, set,
			    ether_stats_pkts64octets_high);
	int i;

	CNT_2819(ether_stats_octets, total(p->rx.bytes));
	CNT_2819(ether_stats_pkts, total(p->rx.frames));
	CNT_2819(ether_stats_broadcast_pkts, p->rx.frames[BROADCAST]);
	CNT_2819(ether_stats_multicast_pkts, p->rx.frames[MULTICAST]);
	CNT_2819(ether_stats_oversize_pkts, p->rx_oversize);
	for (i = 0; i < SIZE_RANGES; i++)
		put_be64(sizes + 8 * i, p->rx_size[i]);
}

static void group_prio(const struct port *p, uint8_t *set, unsigned int prio)
{
	if (prio >= N_ELEM(p->prio_rx_bytes))
		return;
	CNT_PRIO(rx_octets, p->prio_rx_bytes[prio]);
	CNT_PRIO(rx_frames, p->prio_rx_frames[prio]);
	CNT_PRIO(tx_octets, p->prio_tx_bytes[prio]);
	CNT_PRIO(tx_frames, p->prio_tx_frames[prio]);
}

void ppcnt_fill(struct nic *nic, uint8_t *reg)
{
	uint8_t *set = AT(ppcnt_reg, reg, counter_set);

	memset(set, 0, BYTES(ppcnt_reg) - BYTE_OF(ppcnt_reg, counter_set));
	switch (GET(ppcnt_reg, reg, grp)) {
	case GRP_802_3:
		group_802_3(&nic->port, set);
		break;
	case GRP_RFC_2863:
		group_2863(nic, set);
		break;
	case GRP_RFC_2819:
		group_2819(&nic->port, set);
		break;
	case GRP_PRIO:
		group_prio(&nic->port, set, GET(ppcnt_reg, reg, prio_tc));
		break;
	case GRP_PHYSICAL:
		SET(phys_layer_cntrs, set, link_down_events,
		    nic->port.link_down);
		break;
	}
}

/* ---- commands ---- */

#define VPORT(field, traffic, cast)                              \
	do {                                                     \
		SET(query_vport_counter_out, out, field.packets, \
		    (traffic).frames[cast]);                     \
		SET(query_vport_counter_out, out, field.octets,  \
		    (traffic).bytes[cast]);                      \
	} while (0)

static int query_vport_counter(struct nic *nic, struct cmd *cmd)
{
	struct port *p = &nic->port;
	uint8_t *out = cmd->out;

	VPORT(received_eth_unicast, p->vport_rx, UNICAST);
	VPORT(received_eth_multicast, p->vport_rx, MULTICAST);
	VPORT(received_eth_broadcast, p->vport_rx, BROADCAST);
	VPORT(transmitted_eth_unicast, p->vport_tx, UNICAST);
	VPORT(transmitted_eth_multicast, p->vport_tx, MULTICAST);
	VPORT(transmitted_eth_broadcast, p->vport_tx, BROADCAST);
	VPORT(received_ib_unicast, p->rdma_rx, UNICAST);
	VPORT(received_ib_multicast, p->rdma_rx, MULTICAST);
	VPORT(transmitted_ib_unicast, p->rdma_tx, UNICAST);
	VPORT(transmitted_ib_multicast, p->rdma_tx, MULTICAST);
	if (GET(query_vport_counter_in, cmd->in, clear)) {
		memset(&p->rdma_rx, 0, sizeof(p->rdma_rx));
		memset(&p->rdma_tx, 0, sizeof(p->rdma_tx));
		memset(&p->vport_rx, 0, sizeof(p->vport_rx));
		memset(&p->vport_tx, 0, sizeof(p->vport_tx));
	}
	return CMD_OK;
}

static int query_vnic_env(struct nic *nic, struct cmd *cmd)
{
	uint8_t *env = AT(query_vnic_env_out, cmd->out, vport_env);

	SET(vnic_diagnostic_statistics, env, nic_receive_steering_discard,
	    nic->port.steer_missed);
	SET(vnic_diagnostic_statistics, env, receive_discard_vport_down,
	    nic->port.rx_down);
	SET(vnic_diagnostic_statistics, env, transmit_discard_vport_down,
	    nic->port.tx_down);
	return CMD_OK;
}

static int alloc_q_counter(struct nic *nic, struct cmd *cmd)
{
	struct q_counter *counter = calloc(1, sizeof(*counter));

	if (!counter)
		return FAIL(LIMIT, "no memory");
	return cmd_created(nic, cmd, &counter->obj, OBJ_Q_COUNTER);
}

/* ---- Q counters ---- */

#define COUNTERS (sizeof(struct roce_qp_counters) / sizeof(uint64_t))

static struct q_counter *set_of(struct nic *nic, const struct qp *qp)
{
	return (struct q_counter *)obj_find(nic, OBJ_Q_COUNTER,
					    GET(qpc, qp->qpc, counter_set_id));
}

void q_failed(struct nic *nic, const struct qp *qp, enum roce_wc_status why)
{
	struct q_counter *set = set_of(nic, qp);

	if (set && why == ROCE_WC_RETRY_EXC_ERR)
		set->retries_exceeded++;
	else if (set && why == ROCE_WC_RNR_RETRY_EXC_ERR)
		set->rnr_retries_exceeded++;
}

void q_account(struct nic *nic, struct qp *qp)
{
	struct q_counter *set = set_of(nic, qp);
	const uint64_t *now = (const uint64_t *)roce_qp_counters(qp->roce);
	const uint64_t *counted = (const uint64_t *)&qp->counted;
	uint64_t *sum;
	size_t i;

	if (!set)
		return;
	sum = (uint64_t *)&set->rdma;
	for (i = 0; i < COUNTERS; i++)
		sum[i] += now[i] - counted[i];
	qp->counted = *roce_qp_counters(qp->roce);
}

#define OUT(to, from) SET(query_q_counter_out, out, to, sum->from)
#define SAME(field) OUT(field, field)

static void fill_q_counter(uint8_t *out, const struct roce_qp_counters *sum)
{
	SAME(rx_write_requests);
	SAME(rx_read_requests);
	SAME(rx_atomic_requests);
	SAME(out_of_sequence);
	SAME(duplicate_request);
	SAME(rnr_nak_retry_err);
	SAME(packet_seq_err);
	SAME(implied_nak_seq_err);
	SAME(local_ack_timeout_err);
	SAME(resp_local_length_error);
	SAME(resp_cqe_error);
	SAME(resp_cqe_flush_error);
	SAME(resp_remote_access_errors);
	SAME(req_cqe_error);
	SAME(req_cqe_flush_error);
	SAME(req_remote_invalid_request);
	SAME(req_remote_access_errors);
}

static int query_q_counter(struct nic *nic, struct cmd *cmd)
{
	struct q_counter *counter =
		(struct q_counter *)obj_find(nic, OBJ_Q_COUNTER,
					     GET(query_q_counter_in, cmd->in,
						 counter_set_id));
	const struct id_table *qps = obj_table(nic, OBJ_QP);
	struct qp *qp;
	uint32_t i;

	if (!counter)
		return FAIL(BAD_RES, "no such counter set");
	for (i = 0; i < qps->size; i++) {
		qp = (struct qp *)qps->slot[i];
		if (qp && qp->obj.kind == OBJ_QP &&
		    GET(qpc, qp->qpc, counter_set_id) == counter->obj.id)
			q_account(nic, qp);
	}
	fill_q_counter(cmd->out, &counter->rdma);
	SET(query_q_counter_out, cmd->out, req_transport_retries_exceeded,
	    counter->retries_exceeded);
	SET(query_q_counter_out, cmd->out, req_rnr_retries_exceeded,
	    counter->rnr_retries_exceeded);
	SET(query_q_counter_out, cmd->out, out_of_buffer,
	    counter->out_of_buffer + counter->rdma.out_of_buffer);
	if (GET(query_q_counter_in, cmd->in, clear)) {
		counter->out_of_buffer = 0;
		counter->retries_exceeded = counter->rnr_retries_exceeded = 0;
		memset(&counter->rdma, 0, sizeof(counter->rdma));
	}
	return CMD_OK;
}

static const struct cmd_desc rows[] = {
	ROW(QUERY_VPORT_COUNTER, query_vport_counter,
	    BYTES(query_vport_counter_in), BYTES(query_vport_counter_out), 0),
	ROW(QUERY_VNIC_ENV, query_vnic_env, 16, BYTES(query_vnic_env_out), 0),
	ROW(ALLOC_Q_COUNTER, alloc_q_counter, 8, 16, 0),
	ROW(DEALLOC_Q_COUNTER, cmd_destroy, 16, 8, OBJ_Q_COUNTER),
	ROW(QUERY_Q_COUNTER, query_q_counter, BYTES(query_q_counter_in),
	    BYTES(query_q_counter_out), 0),
};

const struct cmd_rows rows_counter = { rows, N_ELEM(rows) };
