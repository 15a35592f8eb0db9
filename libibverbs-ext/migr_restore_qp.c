// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Taking a QP through the verbs states (IBA 11.2.5.3).
 */

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <infiniband/verbs.h>

#include "migr_check.h"
#include "migr_qp.h"
#include "migr_restore.h"

#define TO_INIT (IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT)
#define TO_RTR                                                          \
	(IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | \
	 IBV_QP_RQ_PSN)
#define TO_RTS (IBV_QP_STATE | IBV_QP_SQ_PSN)

/* one command serves all steps: the kernel reads what the mask says */
static const struct {
	const char *doing;
	uint8_t state;
	uint32_t mask[IBV_QPT_UD + 1]; /* by type */
} steps[] = {
	{ "to INIT",
	  IBV_QPS_INIT,
	  { [IBV_QPT_RC] = TO_INIT | IBV_QP_ACCESS_FLAGS,
	    [IBV_QPT_UC] = TO_INIT | IBV_QP_ACCESS_FLAGS,
	    [IBV_QPT_UD] = TO_INIT | IBV_QP_QKEY } },
	{ "to RTR",
	  IBV_QPS_RTR,
	  { [IBV_QPT_RC] =
		    TO_RTR | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
	    [IBV_QPT_UC] = TO_RTR,
	    [IBV_QPT_UD] = IBV_QP_STATE } },
	{ "to RTS",
	  IBV_QPS_RTS,
	  { [IBV_QPT_RC] = TO_RTS | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
			   IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC,
	    [IBV_QPT_UC] = TO_RTS,
	    [IBV_QPT_UD] = TO_RTS } },
};

/* how many of the steps; the driver's REFILL does the rest for SQD and ERR */
static size_t steps_to(const struct rxe_migr_rec_qp *qp)
{
	switch (qp->state) {
	case IBV_QPS_INIT:
		return 1;
	case IBV_QPS_RTR:
		return 2;
	case IBV_QPS_RTS:
	case IBV_QPS_SQD:
		return 3;
	case IBV_QPS_ERR:
		return qp->port_num ? 1 : 0; /* 0: it has never seen INIT */
	default:
		return 0;
	}
}

static void fill_modify(struct ib_uverbs_modify_qp *in,
			const struct rxe_migr_rec_qp *qp, const uint8_t *dgid,
			uint8_t sgid_index)
{
	*in = (struct ib_uverbs_modify_qp){
		.qp_handle = qp->rec.handle,
		.qp_access_flags = qp->access_flags,
		.pkey_index = (uint16_t)qp->pkey_index,
		.port_num = (uint8_t)qp->port_num,
		.path_mtu = (uint8_t)qp->path_mtu,
		.dest_qp_num = qp->dest_qpn,
		.qkey = qp->qkey,
		.rq_psn = qp->rq_psn,
		.sq_psn = qp->sq_psn,
		.max_rd_atomic = (uint8_t)qp->max_rd_atomic,
		.max_dest_rd_atomic = (uint8_t)qp->max_dest_rd_atomic,
		.min_rnr_timer = (uint8_t)qp->min_rnr_timer,
		.timeout = (uint8_t)qp->timeout,
		.retry_cnt = (uint8_t)qp->retry_cnt,
		.rnr_retry = (uint8_t)qp->rnr_retry,
		.dest = {
			.flow_label = qp->flow_label,
			.sgid_index = sgid_index,
			.hop_limit = qp->hop_limit,
			.traffic_class = qp->traffic_class,
			.is_global = 1,
			.port_num = (uint8_t)qp->port_num,
		},
	};
	memcpy(in->dest.dgid, dgid, sizeof(in->dest.dgid));
}

/* what relocation has chosen, or else what fits best */
int migr_find_way(struct migr_restore *r, const struct rxe_migr_rec *rec,
		  const uint8_t **dgid, const struct ib_uverbs_gid_entry **own)
{
	const struct migr_address *address =
		r->address ? r->address[rec->handle] : NULL;
	struct migr_path path;
	int ret;

	if (!migr_path_of(rec, &path))
		return 0;
	ret = migr_gids_query(r->fd, &r->gids);
	if (ret)
		return migr_restore_error(r, rec, "GID table", ret);
	ret = migr_check_qp_mtu(rec, &r->gids, r->err);
	if (ret)
		return ret;
	if (address) {
		*own = migr_find_gid(&r->gids, address->sgid,
				     address->sgid_index);
		ret = *own ? 0 : -EADDRNOTAVAIL;
	} else {
		ret = migr_pick_gid(&r->gids, &path, false, own);
	}
	if (ret)
		return migr_gid_error(&path, ret, r->err);
	*dgid = address ? address->dgid : path.dgid;
	return 0;
}

static int modify_error(struct migr_restore *r,
			const struct rxe_migr_rec_qp *qp, const char *doing,
			const uint8_t *dgid, uint8_t sgid_index, int ret)
{
	char text[160], gid[INET6_ADDRSTRLEN];

	if (migr_qp_connected(qp))
		snprintf(
			text, sizeof(text),
			"QPN %#x %s (peer %s QPN %#x, GID index %u, path_mtu %u)",
			qp->qpn, doing,
			inet_ntop(AF_INET6, dgid, gid, sizeof(gid)),
			qp->dest_qpn, sgid_index, qp->path_mtu);
	else
		snprintf(text, sizeof(text), "QPN %#x %s", qp->qpn, doing);
	return migr_restore_error(r, &qp->rec, text, ret);
}

/*
 * The core resolves the peer's address, which fails if its host is dead, or cannot be
 * asked now. So this asks for our own, and the driver takes the one of the record that
 * was loaded. But a peer that has moved along is here, as the address says, or a record
 * that ibv_migr_relocate() has changed.
 */
int migr_connect_qp(struct migr_restore *r, const struct rxe_migr_rec *rec)
{
	const struct rxe_migr_rec_qp *qp = (const void *)rec;
	const struct rxe_migr_restore restore = { .handle = rec->handle };
	const uint8_t *dgid = qp->dgid;
	struct ib_uverbs_modify_qp in;
	struct migr_write cmd = {
		.command = IB_USER_VERBS_CMD_MODIFY_QP,
		.in = &in,
		.in_length = sizeof(in),
	};
	const struct ib_uverbs_gid_entry *own = NULL;
	bool led;
	size_t i;
	int ret;

	ret = migr_find_way(r, rec, &dgid, &own);
	if (ret)
		return ret;
	led = own && !memcmp(dgid, qp->dgid, sizeof(qp->dgid)) &&
	      !migr_find_gid(&r->gids, dgid, 0);
	fill_modify(&in, qp, led ? (const void *)own->gid : dgid,
		    own ? (uint8_t)own->gid_index : 0);
	for (i = 0; i < steps_to(qp); i++) {
		in.qp_state = steps[i].state;
		in.attr_mask = steps[i].mask[qp->qp_type];
		cmd.restore = led && in.attr_mask & IBV_QP_AV ? &restore : NULL;
		ret = migr_write_run(r->fd, &cmd);
		if (ret)
			return modify_error(r, qp, steps[i].doing, dgid,
					    in.dest.sgid_index, ret);
	}
	return 0;
}
