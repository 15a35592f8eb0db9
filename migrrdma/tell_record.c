// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What a shadow process has to make, in the order and with all that build.c will ask the
 * provider for. Objects that others are made of are called by their places in the lists.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "arena.h"
#include "build.h"
#include "gid.h"
#include "presetup.h"
#include "record.h"
#include "tell.h"

/* the place of an object that is in the list; -1 of none */
#define PLACE(c, type, list, object)                    \
	({                                              \
		struct shadow_##type *o_;               \
		int place_ = 0;                         \
                                                        \
		TAILQ_FOREACH (o_, &(c)->list, entry) { \
			if (&o_->type == (object))      \
				break;                  \
			place_++;                       \
		}                                       \
		o_ ? place_ : -1;                       \
	})

/* --- what cannot be told --- */

static int check_context(struct shadow_context *c, struct swap *s)
{
	const char *name = c->verbs.context.device->name, *at = name;
	const struct shadow_pd *pd;
	const struct shadow_qp *qp;
	const char *why;

	while (isalnum((unsigned char)*at) || (*at && strchr("_-.:", *at)))
		at++;
	if (*at)
		return swap_refuse(s, EOPNOTSUPP,
				   "a device has a strange name");
	if (!arena_is_taken(c->real))
		return swap_refuse(s, EOPNOTSUPP,
				   "no pre-setup with the provider of %s",
				   name);
	if (!TAILQ_EMPTY(&c->ahs))
		return swap_refuse(s, EOPNOTSUPP, "%s has address handles",
				   name);
	if (!TAILQ_EMPTY(&c->mws))
		return swap_refuse(s, EOPNOTSUPP, "%s has memory windows",
				   name);
	TAILQ_FOREACH (pd, &c->pds, entry)
		if (pd->parent.pd || pd->imported)
			return swap_refuse(s, EOPNOTSUPP,
					   "PD %u is no plain one",
					   pd->pd.handle);
	TAILQ_FOREACH (qp, &c->qps, entry) {
		why = record_unmakeable(qp);
		if (!why && qp->qp.qp_type == IBV_QPT_UD &&
		    (qp->qp.state >= IBV_QPS_RTR || !SLIST_EMPTY(&qp->groups)))
			why = "is one of datagrams";
		if (why)
			return swap_refuse(s, EOPNOTSUPP, "QP 0x%06x %s",
					   qp->qp.qp_num, why);
	}
	return gids_note(c, s);
}

static int check(struct swap *s)
{
	struct shadow_context *c;
	int err = 0;

	if (TAILQ_EMPTY(&contexts))
		return swap_refuse(s, EOPNOTSUPP, "it has no device open");
	if (!arena_next())
		return swap_refuse(s, EOPNOTSUPP,
				   "there are no addresses for queues");
	TAILQ_FOREACH (c, &contexts, entry)
		err = err ? err : check_context(c, s);
	return err;
}

/* --- objects --- */

static void tell_cq(FILE *f, struct shadow_context *c, struct shadow_cq *cq)
{
	const struct ibv_cq_init_attr_ex *a = &cq->attr;
	int channel = -1;

	if (a->channel)
		channel = PLACE(c, channel, channels, a->channel);
	fprintf(f,
		"{\"cqe\": %u, \"vector\": %u, \"channel\": %d, \"extended\": %d",
		a->cqe + (unsigned int)cq->spare, a->comp_vector, channel,
		cq->extended);
	if (cq->extended)
		fprintf(f,
			", \"wc_flags\": %" PRIu64
			", \"mask\": %u, \"flags\": %u",
			a->wc_flags | CQ_NEEDS, a->comp_mask, a->flags);
	if (cq->moderated)
		fprintf(f, ", \"count\": %u, \"period\": %u",
			cq->moderation.cq_count, cq->moderation.cq_period);
	fprintf(f, "}");
}

static void tell_srq(FILE *f, struct shadow_context *c, struct shadow_srq *srq)
{
	const struct ibv_srq_init_attr_ex *a = &srq->attr;

	fprintf(f,
		"{\"pd\": %d, \"max_wr\": %u, \"max_sge\": %u, "
		"\"extended\": %d, \"mask\": %u}",
		PLACE(c, pd, pds, a->pd), a->attr.max_wr, a->attr.max_sge,
		srq->extended, a->comp_mask);
}

/* @gid: its own one, if it has one */
static void tell_attr(FILE *f, const struct ibv_qp_attr *a,
		      const struct ibv_gid_entry *gid)
{
	const struct ibv_global_route *grh = &a->ah_attr.grh;
	char text[INET6_ADDRSTRLEN];

	inet_ntop(AF_INET6, gid->gid.raw, text, sizeof(text));
	fprintf(f,
		", \"attr\": {\"pkey_index\": %u, \"port\": %u, \"access\": %u, "
		"\"qkey\": %u, \"mtu\": %d, \"rq_psn\": %u, \"sq_psn\": %u, "
		"\"dest_rd_atomic\": %u, \"rd_atomic\": %u, "
		"\"min_rnr_timer\": %u, \"timeout\": %u, \"retry_cnt\": %u, "
		"\"rnr_retry\": %u, \"sgid_index\": %u, \"hop_limit\": %u, "
		"\"traffic_class\": %u, \"flow_label\": %u, \"dlid\": %u, "
		"\"sl\": %u, \"path_bits\": %u, \"static_rate\": %u, "
		"\"ah_port\": %u, \"gid\": \"%s\", \"gid_type\": %u}",
		a->pkey_index, a->port_num, a->qp_access_flags, a->qkey,
		a->path_mtu, a->rq_psn, a->sq_psn, a->max_dest_rd_atomic,
		a->max_rd_atomic, a->min_rnr_timer, a->timeout, a->retry_cnt,
		a->rnr_retry, grh->sgid_index, grh->hop_limit,
		grh->traffic_class, grh->flow_label, a->ah_attr.dlid,
		a->ah_attr.sl, a->ah_attr.src_path_bits, a->ah_attr.static_rate,
		a->ah_attr.port_num, text, gid->gid_type);
}

/* masks and states: the first one is made with the QP, others when it is connected */
static void tell_steps(FILE *f, const struct shadow_qp *qp)
{
	enum ibv_qp_state state = qp->qp.state;
	struct ibv_qp_attr a;
	int mask = build_first_step(qp, &a);

	if (!mask)
		return;
	tell_attr(f, &a, &qp->source.was);
	fprintf(f, ", \"steps\": [[%d, %d]", mask, a.qp_state);
	if (state == IBV_QPS_RTR || state == IBV_QPS_RTS)
		fprintf(f, ", [%d, %d]", record_step(qp, IBV_QPS_RTR, &a),
			IBV_QPS_RTR);
	if (state == IBV_QPS_RTS)
		fprintf(f, ", [%d, %d]", record_step(qp, state, &a), state);
	fprintf(f, "]");
}

static void tell_qp(FILE *f, struct shadow_context *c, struct shadow_qp *qp)
{
	const struct ibv_qp_init_attr_ex *a = &qp->init;

	fprintf(f,
		"{\"qpn\": %u, \"type\": %d, \"pd\": %d, \"send_cq\": %d, \"recv_cq\": %d, "
		"\"srq\": %d, \"signal_all\": %d, \"send_wr\": %u, "
		"\"recv_wr\": %u, \"send_sge\": %u, \"recv_sge\": %u, "
		"\"inline\": %u, \"extended\": %d",
		qp->qp.qp_num, a->qp_type, PLACE(c, pd, pds, a->pd),
		PLACE(c, cq, cqs, a->send_cq), PLACE(c, cq, cqs, a->recv_cq),
		PLACE(c, srq, srqs, a->srq), a->sq_sig_all,
		a->cap.max_send_wr + qp->spare, a->cap.max_recv_wr,
		a->cap.max_send_sge, a->cap.max_recv_sge,
		a->cap.max_inline_data, qp->extended);
	if (qp->extended)
		fprintf(f,
			", \"mask\": %u, \"create_flags\": %u, \"tso\": %u, "
			"\"source_qpn\": %u, \"send_ops\": %" PRIu64,
			a->comp_mask, a->create_flags, a->max_tso_header,
			a->source_qpn, a->send_ops_flags);
	tell_steps(f, qp);
	fprintf(f, "}");
}

/* --- all --- */

static unsigned int count(struct shadow_context *c, bool pds)
{
	struct shadow_channel *ch;
	struct shadow_pd *pd;
	unsigned int n = 0;

	if (pds)
		TAILQ_FOREACH (pd, &c->pds, entry)
			n++;
	else
		TAILQ_FOREACH (ch, &c->channels, entry)
			n++;
	return n;
}

#define TELL_EACH(f, c, obj, list, tell)                    \
	do {                                                \
		fprintf(f, ", \"%s\": [", #list);           \
		TAILQ_FOREACH (obj, &(c)->list, entry) {    \
			if (obj != TAILQ_FIRST(&(c)->list)) \
				fprintf(f, ", ");           \
			tell(f, c, obj);                    \
		}                                           \
		fprintf(f, "]");                            \
	} while (0)

static void tell_context(FILE *f, struct shadow_context *c)
{
	struct shadow_srq *srq;
	struct shadow_cq *cq;
	struct shadow_qp *qp;

	fprintf(f, "{\"device\": \"%s\", \"pds\": %u, \"channels\": %u",
		c->verbs.context.device->name, count(c, true), count(c, false));
	TELL_EACH(f, c, cq, cqs, tell_cq);
	TELL_EACH(f, c, srq, srqs, tell_srq);
	TELL_EACH(f, c, qp, qps, tell_qp);
	fprintf(f, "}");
}

static int tell(FILE *f, void *arg)
{
	struct shadow_context *c;
	int err = check(arg);

	if (err)
		return err;
	fprintf(f, "{\"ok\": true, \"at\": %" PRIuPTR ", \"contexts\": [",
		arena_next());
	TAILQ_FOREACH (c, &contexts, entry) {
		if (c != TAILQ_FIRST(&contexts))
			fprintf(f, ", ");
		tell_context(f, c);
	}
	fprintf(f, "]}\n");
	return 0;
}

int presetup_record(int fd, struct swap *s)
{
	int err;

	*s = (struct swap){};
	err = tell_closed(fd, tell, s);
	if (err == ETIMEDOUT)
		swap_refuse(s, err, "a verb does not return");
	return err;
}
