// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "tell.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "bury.h"
#include "clock.h"
#include "control.h"
#include "gate.h"
#include "gid.h"
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

/* where datagrams come to it: what each GID of its port was, and is */
static void tell_gids(FILE *f, const struct shadow_qp *qp,
		      const struct gids *were, const struct gids *now)
{
	const struct ibv_gid_entry *was, *is;
	char text[2][INET6_ADDRSTRLEN];
	const char *comma = "";

	fprintf(f, ", \"gids\": [");
	for (size_t i = 0; i < were->n; i++) {
		was = &were->all[i];
		is = gids_successor(now, was, was->gid_index);
		if (was->port_num != qp->attr.port_num || !is)
			continue;
		fprintf(f, "%s[\"%s\", \"%s\"]", comma,
			gid_text(&was->gid, text[0]),
			gid_text(&is->gid, text[1]));
		comma = ", ";
	}
	fprintf(f, "]");
}

/*
 * It may be in ERR, and the application not know yet, nor the layer: so the device is
 * asked, but not while somebody is suspended, and waits. Of one that the layer has moved there, or has not yet connected, it is the
 * application's.
 */
static enum ibv_qp_state state_of(const struct shadow_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	if (qp->swap.moved || qp->swap.apart)
		return qp->qp.state;
	if (!to_context(qp->qp.context)->suspended)
		real()->ibv_query_qp(qp->real, &attr, IBV_QP_STATE, &init);
	return qp->real->state == IBV_QPS_ERR ? IBV_QPS_ERR : qp->qp.state;
}

/* @gids: of its device, if they are known */
static void tell_qp(FILE *f, const struct shadow_qp *qp,
		    const struct gids *gids)
{
	const struct shadow_context *c = to_context(qp->qp.context);
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
	if (gids && qp->qp.qp_type == IBV_QPT_UD)
		tell_gids(f, qp, c->gids_were && c->gids ? c->gids_were : gids,
			  gids);
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

/* GIDs that address handles lead to: each once, and not of too many */
static void tell_destinations(FILE *f)
{
	union ibv_gid told[MOST_DESTINATIONS];
	char text[INET6_ADDRSTRLEN];
	struct shadow_context *c;
	struct shadow_ah *ah;
	size_t i, n = 0;

	EACH (c, ah, ahs) {
		if (!ah->attr.is_global || n == MOST_DESTINATIONS)
			continue;
		for (i = 0; i < n; i++)
			if (!memcmp(&told[i], &ah->attr.grh.dgid,
				    sizeof(told[i])))
				break;
		if (i < n)
			continue;
		told[n++] = ah->attr.grh.dgid;
		fprintf(f, "%s\"%s\"", n > 1 ? ", " : "",
			gid_text(&ah->attr.grh.dgid, text));
	}
}

/* of which others have the key */
static bool is_remote(const struct shadow_mr *mr)
{
	return mr->mr.rkey &&
	       mr->access & (IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
			     IBV_ACCESS_REMOTE_ATOMIC);
}

static int tell(FILE *f, void *arg)
{
	struct shadow_context *c;
	const char *comma = "";
	struct shadow_mr *mr;

	(void)arg;
	fprintf(f, "{\"ok\": true, \"qps\": [");
	tell_qps(f);
	fprintf(f, "], \"keys\": [");
	EACH (c, mr, mrs)
		if (is_remote(mr)) {
			fprintf(f, "%s{\"virtual\": %u, \"real\": %u}", comma,
				mr->mr.rkey, mr->real->rkey);
			comma = ", ";
		}
	fprintf(f, "], \"destinations\": [");
	tell_destinations(f);
	fprintf(f, "]}\n");
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

	while (bytes) {
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
