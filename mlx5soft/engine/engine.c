// SPDX-License-Identifier: GPL-2.0
/*
 * The engine: addresses, who gets a received packet, whose turn it is.
 */
#include <stdlib.h>

#include "impl.h"

#define LOOPBACK_BYTES (MAX_MTU + ROCE_MAX_OVERHEAD)
#define MAX_LOOPBACK 65536

static uint32_t default_to(uint32_t value, uint32_t otherwise)
{
	return value ? value : otherwise;
}

int roce_engine_create(const struct roce_config *config,
		       struct roce_engine **engine)
{
	struct roce_engine *e;

	if (!config->ops || config->port_mtu > ROCE_MTU_4096 ||
	    config->max_unacked > MAX_PSNS / 2 ||
	    config->loopback_frames > MAX_LOOPBACK)
		return -EINVAL;
	e = calloc(1, sizeof(*e));
	if (!e)
		return -ENOMEM;
	e->config = *config;
	e->config.max_unacked = default_to(config->max_unacked, 128);
	e->config.burst = default_to(config->burst, 16);
	e->config.budget = default_to(config->budget, 256);
	e->config.port_mtu = default_to(config->port_mtu, ROCE_MTU_4096);
	e->port_mtu = 128U << e->config.port_mtu;
	e->run.tail = &e->run.head;
	e->waiting.tail = &e->waiting.head;
	TAILQ_INIT(&e->acks);
	e->loopback.size = default_to(config->loopback_frames, 256);
	e->loopback.lengths = calloc(e->loopback.size, sizeof(uint32_t));
	e->loopback.frames = malloc((size_t)e->loopback.size * LOOPBACK_BYTES);
	if (!e->loopback.lengths || !e->loopback.frames) {
		roce_engine_destroy(e);
		return -ENOMEM;
	}
	*engine = e;
	return 0;
}

void roce_engine_destroy(struct roce_engine *e)
{
	while (e->all)
		roce_qp_destroy(e->all);
	free(e->heap);
	free(e->buckets);
	free(e->loopback.frames);
	free(e->loopback.lengths);
	free(e);
}

int roce_set_gid(struct roce_engine *e, unsigned int index,
		 const uint8_t gid[16], const uint8_t mac[6])
{
	if (index >= ROCE_MAX_GIDS)
		return -EINVAL;
	e->gids[index].valid = gid;
	if (gid) {
		memcpy(e->gids[index].gid, gid, 16);
		memcpy(e->gids[index].mac, mac, 6);
	}
	e->gid_end = 0;
	for (unsigned int i = 0; i < ROCE_MAX_GIDS; i++)
		if (e->gids[i].valid)
			e->gid_end = i + 1;
	return 0;
}

const struct roce_counters *roce_counters(const struct roce_engine *e)
{
	return &e->counters;
}

struct roce_qp *engine_find_qp(struct roce_engine *e, uint32_t qpn)
{
	struct roce_qp *qp;

	if (!e->buckets)
		return NULL;
	qp = e->buckets[qpn & e->bucket_mask];
	while (qp && qp->wire_qpn != qpn)
		qp = qp->hash_next;
	return qp;
}

/* ---- sending ---- */

static int loopback_put(struct roce_engine *e, const void *frame, uint32_t len)
{
	struct loopback *l = &e->loopback;
	uint32_t at = (l->head + l->count) % l->size;

	if (l->count == l->size)
		return -EAGAIN;
	memcpy(l->frames + (size_t)at * LOOPBACK_BYTES, frame, len);
	l->lengths[at] = len;
	l->count++;
	e->counters.loopback_frames++;
	return 0;
}

/* Spreads QPs over paths, and keeps each on one: A17.5.2 */
static uint16_t udp_sport(const struct roce_qp *qp, const struct tx *tx)
{
	uint32_t v = qp->wire_qpn * tx->dest_qpn;

	return 0xc000 | ((v ^ v >> 14) & 0x3fff);
}

static uint8_t service_of(const struct roce_qp *qp)
{
	if (is_datagram(qp))
		return SERVICE_UD;
	if (is_xrc(qp))
		return SERVICE_XRC;
	return qp->init.type == ROCE_QPT_UC ? SERVICE_UC : SERVICE_RC;
}

static int transmit(struct roce_engine *e, const void *frame, uint32_t len)
{
	return e->config.ops->transmit(e->config.ctx, frame, len);
}

/* To the wire, and back to members on this engine: both, or neither yet. */
static int transmit_multicast(struct roce_engine *e, const uint8_t gid[16],
			      const void *frame, uint32_t len)
{
	bool back = group_find(e, gid);
	int ret;

	if (back && e->loopback.count == e->loopback.size)
		return -EAGAIN;
	ret = transmit(e, frame, len);
	if (back && ret != -EAGAIN)
		loopback_put(e, frame, len);
	return ret;
}

static bool has_room(const struct roce_engine *e)
{
	return e->config.ops->has_room(e->config.ctx);
}

static bool to_itself(struct roce_qp *qp, const struct roce_av *av)
{
	return !memcmp(av->dmac, qp->engine->gids[av->sgid_index].mac, 6);
}

bool engine_has_room(struct roce_qp *qp, const struct roce_av *av)
{
	struct roce_engine *e = qp->engine;

	if (to_itself(qp, av) || has_room(e))
		return true;
	e->counters.tx_blocked++;
	return false;
}

int engine_send(struct roce_qp *qp, const struct roce_av *av,
		const struct tx *tx)
{
	struct roce_engine *e = qp->engine;
	const struct gid_entry *gid = &e->gids[av->sgid_index];
	uint8_t mac[6], *frame;
	bool multicast = is_datagram(qp) && gid_multicast_mac(av->dgid, mac);
	uint32_t len;
	struct header h = {
		.smac = gid->mac,
		.dmac = multicast ? mac : av->dmac,
		.sgid = gid->gid,
		.dgid = av->dgid,
		.tclass = av->tclass,
		.hop_limit = av->hop_limit,
		.flow_label = av->flow_label,
		.ip_id = e->ip_id,
		.udp_sport = av->udp_sport ? av->udp_sport : udp_sport(qp, tx),
		.opcode = service_of(qp) | tx->op,
		.solicited = tx->solicited,
		.ack_req = tx->ack_req,
		.dest_qpn = tx->dest_qpn,
		.psn = tx->psn,
		.ext = tx->ext,
		.ext_len = tx->ext_len,
	};
	int ret;

	if (!gid->valid || gid_is_ipv4(gid->gid) != gid_is_ipv4(av->dgid)) {
		e->counters.tx_no_address++;
		return 0;
	}
	frame = packet_build(&h, e->out + OUT_PAYLOAD, tx->payload_len, &len);
	if (multicast)
		ret = transmit_multicast(e, av->dgid, frame, len);
	else if (to_itself(qp, av))
		ret = loopback_put(e, frame, len);
	else
		ret = transmit(e, frame, len);
	if (ret == -EAGAIN) {
		e->counters.tx_blocked++;
		e->full = has_room(e) || e->loopback.count == e->loopback.size;
		return ret;
	}
	e->ip_id++; /* as segmentation counts it */
	e->counters.tx_frames++;
	qp->counters.tx_packets++;
	qp->counters.tx_bytes += tx->payload_len;
	return 0;
}

/* ---- receiving ---- */

static bool is_own_gid(const struct roce_engine *e, const uint8_t gid[16])
{
	for (unsigned int i = 0; i < e->gid_end; i++)
		if (e->gids[i].valid && !memcmp(e->gids[i].gid, gid, 16))
			return true;
	return false;
}

static bool service_fits(const struct roce_qp *qp, const struct packet *pkt)
{
	bool response = pkt->flags & PKT_RESPONSE;

	/* An XRC QP is one half of RC. */
	return pkt->service == service_of(qp) &&
	       !(response ? qp->init.type == ROCE_QPT_XRC_RECV
			  : qp->init.type == ROCE_QPT_XRC_SEND);
}

/* IBA table 91: what is received in which state */
static bool state_fits(const struct roce_qp *qp, const struct packet *pkt)
{
	switch (qp->attr.state) {
	case ROCE_QPS_RTR:
		return !(pkt->flags & PKT_RESPONSE);
	case ROCE_QPS_RTS:
	case ROCE_QPS_SQD:
	case ROCE_QPS_SQE:
		return true;
	default:
		return false;
	}
}

/* IBA 9.6.1.4, 10.9.3: both full, or one limited and one full */
static bool pkey_fits(uint16_t pkey)
{
	return !((pkey ^ DEFAULT_PKEY) & 0x7fff);
}

static bool address_fits(const struct roce_qp *qp, const struct packet *pkt)
{
	const struct gid_entry *own = &qp->engine->gids[qp->attr.av.sgid_index];

	return is_datagram(qp) ||
	       (own->valid && !memcmp(pkt->dgid, own->gid, 16) &&
		!memcmp(pkt->sgid, qp->attr.av.dgid, 16));
}

static void deliver(struct roce_qp *qp, const struct packet *pkt)
{
	qp->counters.rx_packets++;
	qp->counters.rx_bytes += pkt->payload_len;
	if (qp->attr.state == ROCE_QPS_RTR && !qp->comm_est) {
		qp->comm_est = true;
		qp_event(qp, ROCE_EVENT_COMM_EST);
	}
	if (is_datagram(qp))
		ud_receive(qp, pkt);
	else if (pkt->flags & PKT_RESPONSE)
		comp_receive(qp, pkt);
	else
		resp_receive(qp, pkt);
}

/* A multicast packet says so in each of its headers. */
static bool multicast_fits(const struct packet *pkt)
{
	uint8_t mac[6];

	return pkt->dest_qpn == ROCE_MULTICAST_QPN &&
	       pkt->service == SERVICE_UD &&
	       pkt->v6 != gid_is_ipv4(pkt->dgid) &&
	       gid_multicast_mac(pkt->dgid, mac) && !memcmp(pkt->eth, mac, 6);
}

/* A copy to each member that can receive */
static void receive_multicast(struct roce_engine *e, const struct group *group,
			      const struct packet *pkt)
{
	struct roce_counters *c = &e->counters;
	uint32_t fit = 0;

	if (!multicast_fits(pkt)) {
		c->rx_bad_address++;
		return;
	}
	if (!pkey_fits(pkt->pkey)) {
		c->rx_bad_pkey++;
		return;
	}
	for (uint32_t i = 0; i < group->count; i++)
		if (state_fits(group->qp[i], pkt)) {
			deliver(group->qp[i], pkt);
			fit++;
		}
	c->rx_no_qp += !fit;
}

/* IBA 9.6: the checks that come before a QP's own; @group or NULL */
static void receive(struct roce_engine *e, const struct group *group,
		    struct packet *pkt)
{
	struct roce_counters *c = &e->counters;
	struct roce_qp *qp;

	c->rx_frames++;
	switch (packet_parse_transport(pkt)) {
	case PARSE_OK:
		break;
	case PARSE_BAD_ICRC:
		c->rx_bad_icrc++;
		return;
	default:
		c->rx_malformed++;
		return;
	}
	if ((pkt->tclass & 3) == 3)
		c->rx_ecn_marked++;
	if (group) {
		receive_multicast(e, group, pkt);
		return;
	}
	qp = engine_find_qp(e, pkt->dest_qpn);
	if (!qp || !service_fits(qp, pkt) || !state_fits(qp, pkt))
		c->rx_no_qp++;
	else if (!address_fits(qp, pkt))
		c->rx_bad_address++;
	else if (!pkey_fits(pkt->pkey))
		c->rx_bad_pkey++;
	else
		deliver(qp, pkt);
}

static bool receive_frame(struct roce_engine *e, const void *frame, size_t len)
{
	const struct group *group;
	struct packet pkt;

	if (packet_parse_network(&pkt, frame, len) != PARSE_OK)
		return false;
	group = group_find(e, pkt.dgid);
	if (!group && !is_own_gid(e, pkt.dgid))
		return false;
	receive(e, group, &pkt);
	return true;
}

bool roce_rx(struct roce_engine *e, uint64_t now, const void *frame, size_t len)
{
	e->now = now;
	return receive_frame(e, frame, len);
}

/* ---- the loop ---- */

static void put(struct run_list *list, struct roce_qp **at, struct roce_qp *qp)
{
	qp->run_list = list;
	qp->run_next = *at;
	qp->run_prev = at;
	*at = qp;
	if (qp->run_next)
		qp->run_next->run_prev = &qp->run_next;
	else
		list->tail = &qp->run_next;
}

/*
 * Who waits for room keeps its place, unless it needs no room any more. To SQE a
 * QP comes in a turn of its own, when it does not wait.
 */
void engine_make_runnable(struct roce_qp *qp)
{
	struct roce_engine *e = qp->engine;

	if (qp->run_prev &&
	    (qp->run_list == &e->run || qp->attr.state != ROCE_QPS_ERR))
		return;
	engine_remove_runnable(qp);
	put(&e->run, e->run.tail, qp);
}

void engine_remove_runnable(struct roce_qp *qp)
{
	if (!qp->run_prev)
		return;
	*qp->run_prev = qp->run_next;
	if (qp->run_next)
		qp->run_next->run_prev = qp->run_prev;
	else
		qp->run_list->tail = qp->run_prev;
	qp->run_prev = NULL;
}

/* One to the engine itself needs no room at the wire: it has the QP's turn. */
void engine_queue_ack(struct roce_qp *qp)
{
	if (to_itself(qp, &qp->attr.av)) {
		engine_make_runnable(qp);
	} else if (!qp->ack_waits) {
		qp->ack_waits = true;
		TAILQ_INSERT_TAIL(&qp->engine->acks, qp, ack_next);
	}
}

void engine_remove_ack(struct roce_qp *qp)
{
	if (qp->ack_waits)
		TAILQ_REMOVE(&qp->engine->acks, qp, ack_next);
	qp->ack_waits = false;
}

/*
 * ACKs and NAKs go before the turns of QPs: when the wire is full, they would
 * wait for what all others send. A burst of them at most: then somebody who
 * wants one has a turn. If its response to a READ is due first, the ACK of a QP
 * has its turn behind that. Returns how many it sent.
 */
static uint32_t send_acks(struct roce_engine *e, uint32_t max)
{
	struct roce_qp *qp;
	uint32_t n = 0;

	while (n < max && (qp = TAILQ_FIRST(&e->acks)) && has_room(e) &&
	       (e->acks_ahead < e->config.burst ||
		!(e->run.head || e->waiting.head))) {
		enum step step = reply_ack(qp);

		if (step == STEP_BLOCKED)
			break;
		engine_remove_ack(qp);
		n += step == STEP_SENT;
		e->acks_ahead += step == STEP_SENT;
	}
	return n;
}

/* Those who have waited for room come first. */
static struct roce_qp *next_runnable(struct roce_engine *e)
{
	struct roce_qp *qp = e->run.head;

	if (e->waiting.head && has_room(e))
		qp = e->waiting.head;
	if (qp)
		engine_remove_runnable(qp);
	return qp;
}

/* Only what is there now: answers to it come in the next round. */
static void loopback_run(struct roce_engine *e)
{
	struct loopback *l = &e->loopback;

	for (uint32_t n = l->count; n; n--) {
		receive_frame(e, l->frames + (size_t)l->head * LOOPBACK_BYTES,
			      l->lengths[l->head]);
		l->head = (l->head + 1) % l->size;
		l->count--;
	}
}

/* A turn of a QP, of up to @max packets. Returns how many it took. */
static uint32_t run(struct roce_qp *qp, uint32_t max)
{
	struct run_list *waiting = &qp->engine->waiting;
	bool has_waited = qp->run_list == waiting;
	bool more = true, blocked = false;
	uint32_t n = 0;

	if (qp->attr.state == ROCE_QPS_ERR || qp->attr.state == ROCE_QPS_SQE)
		n = qp_flush(qp, max);
	if (qp->attr.state == ROCE_QPS_ERR) {
		timer_update(qp);
		return n;
	}
	while (n < max && more) {
		enum step reply = reply_step(qp), req = STEP_IDLE;

		if (reply != STEP_BLOCKED)
			req = req_step(qp);
		n += (reply == STEP_SENT) + (req == STEP_SENT);
		more = reply == STEP_SENT || req == STEP_SENT;
		blocked = reply == STEP_BLOCKED || req == STEP_BLOCKED;
		if (blocked) {
			more = true;
			break;
		}
	}
	if (blocked && !qp->engine->full && qp->attr.state != ROCE_QPS_ERR) {
		engine_remove_runnable(qp);
		/* who has waited, and sent nothing, is still the next */
		put(waiting, has_waited && !n ? &waiting->head : waiting->tail,
		    qp);
	} else if (more || qp->attr.state == ROCE_QPS_ERR) {
		engine_make_runnable(qp);
	}
	timer_update(qp);
	return n;
}

bool roce_tick(struct roce_engine *e, uint64_t now)
{
	uint32_t budget = e->config.budget;
	struct roce_qp *qp;

	e->now = now;
	e->full = false;
	loopback_run(e);
	for (uint32_t n = 0; n < budget && (qp = timer_expired(e)); n++)
		comp_timeout(qp);
	while (budget && !e->full) {
		uint32_t burst = e->config.burst, used;

		budget -= send_acks(e, budget);
		qp = budget ? next_runnable(e) : NULL;
		if (!qp)
			break;
		used = run(qp, burst < budget ? burst : budget);
		if (used)
			e->acks_ahead = 0;
		used += !used; /* idle ones cost as well */
		budget -= used < budget ? used : budget;
	}
	return !roce_next_deadline(e);
}

uint64_t roce_next_deadline(const struct roce_engine *e)
{
	bool acks = !TAILQ_EMPTY(&e->acks) && !e->full;

	if (e->loopback.count || (e->run.head && !e->full) ||
	    ((e->waiting.head || acks) && has_room(e)))
		return 0;
	return e->heap_count ? e->heap[0]->deadline : NEVER;
}

void roce_kick(struct roce_qp *qp)
{
	engine_make_runnable(qp);
}

void roce_kick_recv(struct roce_qp *qp)
{
	if (qp->attr.state != ROCE_QPS_ERR)
		return;
	qp->flush_recv = true;
	engine_make_runnable(qp);
}
