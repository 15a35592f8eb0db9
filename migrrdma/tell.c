// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "tell.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "bury.h"
#include "clock.h"
#include "control.h"
#include "elsewhere.h"
#include "gate.h"
#include "gid.h"
#include "post.h"
#include "suspend.h"

#define PATIENCE 10000000000 /* ns */

enum {
	MOST_DESTINATIONS = 64
};

static const char *gid_text(const union ibv_gid *gid, char *text)
{
	return inet_ntop(AF_INET6, gid->raw, text, INET6_ADDRSTRLEN);
}

static const char *type_text(enum ibv_qp_type type)
{
	switch (type) {
	case IBV_QPT_RC:
		return "RC";
	case IBV_QPT_UC:
		return "UC";
	case IBV_QPT_UD:
		return "UD";
	default:
		return "other";
	}
}

static const char *state_text(enum ibv_qp_state state)
{
	static const char *const text[] = { "RESET", "INIT", "RTR", "RTS",
					    "SQD",   "SQE",  "ERR" };

	return state < sizeof(text) / sizeof(text[0]) ? text[state] : "other";
}

/* as the program knows it, and where it has gone since, if that was told */
static void tell_peer(FILE *f, const struct shadow_qp *qp)
{
	const struct ibv_qp_attr *a = &qp->attr;
	char text[INET6_ADDRSTRLEN];

	fprintf(f, ", \"peer\": {\"qpn\": %u, \"gid\": \"%s\"", a->dest_qp_num,
		gid_text(&a->ah_attr.grh.dgid, text));
	if (qp->swap.told)
		fprintf(f, ", \"real\": %u, \"real_gid\": \"%s\"",
			qp->swap.peer_num, gid_text(&qp->swap.peer_gid, text));
	fprintf(f, "}");
}

/*
 * It may be in ERR, and the application not know yet, nor the layer: so the device is
 * asked, but not while somebody is suspended, and waits, nor of who was drained a moment
 * ago. Of one that the layer has moved there, or has not yet connected, it is the
 * application's.
 */
static enum ibv_qp_state state_of(const struct shadow_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	if (qp->swap.moved || qp->swap.apart)
		return qp->qp.state;
	if (!to_context(qp->qp.context)->suspended && !qp->suspended)
		real()->ibv_query_qp(qp->real, &attr, IBV_QP_STATE, &init);
	return qp->real->state == IBV_QPS_ERR ? IBV_QPS_ERR : qp->qp.state;
}

/* @gids: of its device, if they are known */
static void tell_qp(FILE *f, const struct shadow_qp *qp,
		    const struct gids *gids)
{
	const struct ibv_gid_entry *own;
	const struct ibv_qp_attr *a = &qp->attr;
	char text[INET6_ADDRSTRLEN];
	union ibv_gid gid;

	fprintf(f,
		"{\"qpn\": %u, \"real\": %u, \"type\": \"%s\", \"state\": \"%s\"",
		qp->qp.qp_num, qp->real_num, type_text(qp->qp.qp_type),
		state_text(state_of(qp)));
	if (qp->attr_mask & IBV_QP_AV &&
	    !real()->ibv_query_gid(real_context(qp->qp.context),
				   a->ah_attr.port_num, qp->source.index, &gid))
		fprintf(f, ", \"gid\": \"%s\"", gid_text(&gid, text));
	if (qp->attr_mask & IBV_QP_AV)
		tell_peer(f, qp);
	if (qp->other && !qp->swap.spent)
		fprintf(f, ", \"next\": %u", qp->other->qp_num);
	own = gids && qp->qp.qp_type == IBV_QPT_UD
		      ? gids_any(gids, qp->attr.port_num)
		      : NULL;
	if (own) /* datagrams come to it */
		fprintf(f, ", \"gid\": \"%s\"", gid_text(&own->gid, text));
	fprintf(f, "}");
}

static bool has_datagrams(const struct shadow_context *c)
{
	const struct shadow_qp *qp;

	TAILQ_FOREACH (qp, &c->qps, entry)
		if (qp->qp.qp_type == IBV_QPT_UD)
			return true;
	return false;
}

static void tell_qps(FILE *f)
{
	struct shadow_context *c;
	const char *comma = "";
	struct shadow_qp *qp;
	struct gids *gids;

	TAILQ_FOREACH (c, &contexts, entry) {
		gids = has_datagrams(c) && !bury_is_dead(c->real)
			       ? gids_get(c->real)
			       : NULL;
		TAILQ_FOREACH (qp, &c->qps, entry) {
			fprintf(f, "%s", comma);
			tell_qp(f, qp, gids);
			comma = ", ";
		}
		free(gids);
	}
}

/* GIDs that address handles lead to, and their ways: each once, and not of too many */
struct destinations {
	union ibv_gid told[MOST_DESTINATIONS];
	size_t n;
	bool more;
};

static void tell_destination(FILE *f, struct destinations *d,
			     const union ibv_gid *gid)
{
	char text[INET6_ADDRSTRLEN];

	for (size_t i = 0; i < d->n; i++)
		if (!memcmp(&d->told[i], gid, sizeof(*gid)))
			return;
	d->more |= d->n == MOST_DESTINATIONS;
	if (d->more)
		return;
	d->told[d->n++] = *gid;
	fprintf(f, "%s\"%s\"", d->n > 1 ? ", " : "", gid_text(gid, text));
}

static void tell_destinations(FILE *f)
{
	struct destinations d = {};
	struct shadow_context *c;
	struct shadow_ah *ah;
	const struct way *way;

	fprintf(f, ", \"destinations\": [");
	EACH (c, ah, ahs) {
		if (ah->attr.is_global)
			tell_destination(f, &d, &ah->attr.grh.dgid);
		for (way = ah->ways; way; way = way->next)
			tell_destination(f, &d, &way->to->at);
	}
	fprintf(f, "]");
	if (d.more)
		fprintf(f, ", \"more_destinations\": true");
}

/* of which others have the key */
static bool is_remote(const struct shadow_mr *mr)
{
	return mr->mr.rkey &&
	       mr->access & (IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
			     IBV_ACCESS_REMOTE_ATOMIC);
}

static void tell_key(FILE *f, uint32_t key, uint32_t real, const char **comma)
{
	fprintf(f, "%s{\"virtual\": %u, \"real\": %u}", *comma, key, real);
	*comma = ", ";
}

/* Of windows, too, that are not bound: keys that they will have differ as these do. */
static void tell_keys(FILE *f)
{
	struct shadow_context *c;
	const char *comma = "";
	struct shadow_mr *mr;
	struct shadow_mw *mw;

	EACH (c, mr, mrs)
		if (is_remote(mr))
			tell_key(f, mr->mr.rkey, mr->real->rkey, &comma);
	TAILQ_FOREACH (c, &contexts, entry) {
		pthread_mutex_lock(&c->lock);
		TAILQ_FOREACH (mw, &c->mws, entry)
			tell_key(f, mw->key, post_lkey(mw->mw.context, mw->key),
				 &comma);
		pthread_mutex_unlock(&c->lock);
	}
}

static bool tell_other(FILE *f, uint32_t key, uint32_t real)
{
	bool is_other = key != real && real != NO_KEY;

	if (is_other)
		fprintf(f, "key %u %u\n", key, real);
	return is_other;
}

bool tell_other_keys(FILE *f)
{
	struct shadow_context *c;
	struct shadow_mr *mr;
	struct shadow_mw *mw;
	bool any = false;

	gate_lock_contexts();
	TAILQ_FOREACH (c, &contexts, entry) {
		pthread_mutex_lock(&c->lock);
		TAILQ_FOREACH (mr, &c->mrs, entry)
			if (is_remote(mr))
				any |= tell_other(f, mr->mr.rkey,
						  post_lkey(mr->mr.context,
							    mr->mr.rkey));
		TAILQ_FOREACH (mw, &c->mws, entry)
			any |= tell_other(f, mw->key,
					  post_lkey(mw->mw.context, mw->key));
		pthread_mutex_unlock(&c->lock);
	}
	gate_unlock_contexts();
	return any;
}

static int tell(FILE *f, void *arg)
{
	(void)arg;
	fprintf(f, "{\"ok\": true, \"qps\": [");
	tell_qps(f);
	fprintf(f, "], \"keys\": [");
	tell_keys(f);
	fprintf(f, "]");
	tell_destinations(f);
	fprintf(f, "}\n");
	return 0;
}

/* what there is to be told; *@err if it is nothing */
static char *text_of(int (*tell)(FILE *f, void *arg), void *arg, size_t *bytes,
		     int *err)
{
	char *text = NULL;
	FILE *f = open_memstream(&text, bytes);

	*err = f ? tell(f, arg) : ENOMEM;
	if (f && fclose(f))
		*err = ENOMEM;
	if (!*err)
		return text;
	free(text);
	return NULL;
}

static void write_all(int fd, const char *text, size_t bytes)
{
	ssize_t n;

	while (bytes && control_may_answer(fd)) {
		n = send(fd, text, bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0 && errno == EAGAIN)
			control_wait_for_reader(fd);
		else if (n < 0 && errno != EINTR)
			return;
		if (n > 0) {
			text += n;
			bytes -= (size_t)n;
		}
	}
}

/* No verb waits for who reads it. */
int tell_closed(int fd, int (*tell)(FILE *f, void *arg), void *arg)
{
	bool suspended = suspend_hold();
	size_t bytes;
	char *text;
	int err;

	if (!suspended && !gate_close(clock_ns() + PATIENCE))
		return ETIMEDOUT;
	text = text_of(tell, arg, &bytes, &err);
	if (suspended)
		suspend_release();
	else
		gate_open();
	if (!text)
		return err;
	write_all(fd, text, bytes);
	free(text);
	return 0;
}

int tell_names(int fd)
{
	return tell_closed(fd, tell, NULL);
}
