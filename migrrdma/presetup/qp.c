// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Queue pairs, and the states that they go through
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inner.h"

/* of a QP: the first one is made with it, others when it is connected */
#define MOST_STEPS 3

struct shadow {
	struct ibv_qp *qp;
	uint32_t qpn; /* that the process knows */
	struct ibv_qp_attr attr;
	struct ibv_gid_entry was; /* its GID, on the host where the process is */
	int steps, mask[MOST_STEPS];
	enum ibv_qp_state state[MOST_STEPS];
};

/* in the order of the record */
static struct shadow *shadows;
static size_t n_shadows;

bool make_qps_room(struct made *m, size_t n)
{
	struct shadow *room =
		reallocarray(shadows, n_shadows + n + 1, sizeof(*shadows));

	if (!room)
		return make_fail(m, "no memory");
	shadows = room;
	memset(shadows + n_shadows, 0, (n + 1) * sizeof(*shadows));
	return true;
}

static bool step_qp(struct shadow *s, int i, int *err)
{
	struct ibv_qp_attr a = s->attr;

	a.qp_state = s->state[i];
	*err = ibv_modify_qp(s->qp, &a, s->mask[i]);
	return !*err;
}

static bool read_attr(struct shadow *s, json_t *json)
{
	struct ibv_qp_attr *a = &s->attr;
	const char *gid;
	int type, pkey, port, qkey, mtu, dest_rd, rd, timer, timeout, retry,
		rnr;
	int sgid, hops, class, dlid, sl, bits, rate, ah_port;

	if (json_unpack(
		    json,
		    "{s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, "
		    "s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, "
		    "s:s, s:i !}",
		    "pkey_index", &pkey, "port", &port, "access",
		    &a->qp_access_flags, "qkey", &qkey, "mtu", &mtu, "rq_psn",
		    &a->rq_psn, "sq_psn", &a->sq_psn, "dest_rd_atomic",
		    &dest_rd, "rd_atomic", &rd, "min_rnr_timer", &timer,
		    "timeout", &timeout, "retry_cnt", &retry, "rnr_retry", &rnr,
		    "sgid_index", &sgid, "hop_limit", &hops, "traffic_class",
		    &class, "flow_label", &a->ah_attr.grh.flow_label, "dlid",
		    &dlid, "sl", &sl, "path_bits", &bits, "static_rate", &rate,
		    "ah_port", &ah_port, "gid", &gid, "gid_type", &type) ||
	    inet_pton(AF_INET6, gid, s->was.gid.raw) != 1)
		return false;
	s->was.gid_type = (uint32_t)type;
	s->was.port_num = (uint32_t)ah_port;
	a->pkey_index = (uint16_t)pkey;
	a->port_num = (uint8_t)port;
	a->qkey = (uint32_t)qkey;
	a->path_mtu = (enum ibv_mtu)mtu;
	a->max_dest_rd_atomic = (uint8_t)dest_rd;
	a->max_rd_atomic = (uint8_t)rd;
	a->min_rnr_timer = (uint8_t)timer;
	a->timeout = (uint8_t)timeout;
	a->retry_cnt = (uint8_t)retry;
	a->rnr_retry = (uint8_t)rnr;
	a->ah_attr.is_global = 1;
	a->ah_attr.grh.sgid_index = (uint8_t)sgid;
	a->ah_attr.grh.hop_limit = (uint8_t)hops;
	a->ah_attr.grh.traffic_class = (uint8_t)class;
	a->ah_attr.dlid = (uint16_t)dlid;
	a->ah_attr.sl = (uint8_t)sl;
	a->ah_attr.src_path_bits = (uint8_t)bits;
	a->ah_attr.static_rate = (uint8_t)rate;
	a->ah_attr.port_num = (uint8_t)ah_port;
	return true;
}

static bool read_steps(struct shadow *s, json_t *attr, json_t *steps)
{
	json_t *step;
	size_t i;
	int state;

	if (!steps)
		return true;
	if (!read_attr(s, attr) || json_array_size(steps) > MOST_STEPS)
		return false;
	json_array_foreach (steps, i, step) {
		if (json_unpack(step, "[i, i !]", &s->mask[i], &state))
			return false;
		s->state[i] = (enum ibv_qp_state)state;
		s->steps++;
	}
	return true;
}

/* as the process will, in gid.c */
static bool find_gid(struct made *m, struct shadow *s)
{
	struct ibv_global_route *grh = &s->attr.ah_attr.grh;
	const struct ibv_gid_entry *best;
	bool needs_one = false;

	for (int i = 0; i < s->steps; i++)
		needs_one |= s->mask[i] & IBV_QP_AV;
	if (!needs_one)
		return true;
	if (!m->n_gids)
		m->n_gids = ibv_query_gid_table(m->ctx, m->gids, MOST_GIDS, 0);
	if (m->n_gids < 0)
		return make_failed(m, "GIDs", (int)-m->n_gids);
	best = successor_of(m->gids, (size_t)m->n_gids, &s->was,
			    grh->sgid_index);
	if (!best)
		return make_fail(m, "no GID for QP %u", s->qpn);
	grh->sgid_index = (uint8_t)best->gid_index;
	return true;
}

bool make_qp(struct made *m, json_t *json)
{
	struct ibv_qp_init_attr_ex a = {};
	int type, pd, send, recv, srq, extended, err = 0;
	struct shadow *s = shadows + n_shadows;
	json_t *attr = NULL, *steps = NULL;
	json_int_t send_ops = 0;

	if (json_unpack(json,
			"{s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, "
			"s:i, s:i, s:i, s?i, s?i, s?i, s?i, s?I, s?o, s?o !}",
			"qpn", &s->qpn, "type", &type, "pd", &pd, "send_cq",
			&send, "recv_cq", &recv, "srq", &srq, "signal_all",
			&a.sq_sig_all, "send_wr", &a.cap.max_send_wr, "recv_wr",
			&a.cap.max_recv_wr, "send_sge", &a.cap.max_send_sge,
			"recv_sge", &a.cap.max_recv_sge, "inline",
			&a.cap.max_inline_data, "extended", &extended, "mask",
			&a.comp_mask, "create_flags", &a.create_flags, "tso",
			&a.max_tso_header, "source_qpn", &a.source_qpn,
			"send_ops", &send_ops, "attr", &attr, "steps",
			&steps) ||
	    pd < 0 || !IS_PLACE(m, pds, pd) || !IS_PLACE(m, cqs, send) ||
	    !IS_PLACE(m, cqs, recv) || !IS_PLACE(m, srqs, srq) ||
	    !read_steps(s, attr, steps))
		return make_fail(m, "a QP in the record is none");
	if (!find_gid(m, s))
		return false;
	a.qp_type = (enum ibv_qp_type)type;
	a.send_cq = AT(m, cqs, send);
	a.recv_cq = AT(m, cqs, recv);
	a.srq = AT(m, srqs, srq);
	a.pd = m->pds[pd];
	a.send_ops_flags = (uint64_t)send_ops;
	/* the plain structure is the beginning of the other */
	s->qp = extended ? ibv_create_qp_ex(m->ctx, &a)
			 : ibv_create_qp(a.pd, (struct ibv_qp_init_attr *)&a);
	if (!s->qp)
		return make_failed(m, "QP", errno);
	n_shadows++;
	return !s->steps || step_qp(s, 0, &err) ||
	       make_failed(m, "first step of a QP", err);
}

/* --- connect --- */

static bool set_peer(json_t *json)
{
	json_int_t qpn, real;
	const char *gid;

	if (json_unpack(json, "[I, I, s !]", &qpn, &real, &gid))
		return false;
	for (size_t i = 0; i < n_shadows; i++)
		if (shadows[i].qpn == (uint32_t)qpn) {
			shadows[i].attr.dest_qp_num = (uint32_t)real;
			return inet_pton(AF_INET6, gid,
					 &shadows[i].attr.ah_attr.grh.dgid) ==
			       1;
		}
	return false;
}

static bool wants_peer(const struct shadow *s)
{
	for (int i = 1; i < s->steps; i++)
		if (s->mask[i] & IBV_QP_DEST_QPN)
			return true;
	return false;
}

bool make_connected(json_t *peers, char *reason, size_t bytes)
{
	json_t *json;
	size_t i;
	int err;

	snprintf(reason, bytes, "a QP has no peer");
	json_array_foreach (peers, i, json)
		if (!set_peer(json))
			return false;
	for (i = 0; i < n_shadows; i++)
		if (wants_peer(shadows + i) && !shadows[i].attr.dest_qp_num)
			return false;
	for (i = 0; i < n_shadows; i++)
		for (int j = 1; j < shadows[i].steps; j++)
			if (!step_qp(shadows + i, j, &err)) {
				snprintf(reason, bytes, "QP %u to state %d: %s",
					 shadows[i].qpn, shadows[i].state[j],
					 strerror(err));
				return false;
			}
	return true;
}

static json_t *number_of(const struct shadow *s)
{
	const struct ibv_ah_attr *way = &s->attr.ah_attr;
	char text[INET6_ADDRSTRLEN];
	union ibv_gid gid;

	if (ibv_query_gid(s->qp->context, way->port_num, way->grh.sgid_index,
			  &gid) ||
	    !inet_ntop(AF_INET6, gid.raw, text, sizeof(text)))
		return NULL;
	return json_pack("[I, I, s]", (json_int_t)s->qpn,
			 (json_int_t)s->qp->qp_num, text);
}

json_t *make_numbers(void)
{
	json_t *all = json_array();

	for (size_t i = 0; all && i < n_shadows; i++)
		if (wants_peer(shadows + i) &&
		    json_array_append_new(all, number_of(shadows + i))) {
			json_decref(all);
			return NULL;
		}
	return all;
}
