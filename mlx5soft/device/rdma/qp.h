/* SPDX-License-Identifier: GPL-2.0 */
/* Queue pairs */
#ifndef MLX5SOFT_QP_H
#define MLX5SOFT_QP_H

#include "dma.h"
#include "object.h"
#include "roce.h"

struct cq;
struct srq;

struct qp {
	struct obj obj;
	enum roce_qp_type roce_type;
	bool umr; /* the driver's own, may change memory keys */
	struct roce_qp *roce;
	struct cq *send_cq, *recv_cq;
	struct srq *srq; /* NULL for XRC: any of its XRCD */
	u32 pd, xrcd;
	struct pas pas;
	bool rlky, no_sq, no_rq;
	u8 log_sq, log_rq, rq_shift;
	u32 sq_at; /* the SQ is behind the RQ */
	u64 db;
	u16 sq_ci, rq_ci;
	struct roce_qp_counters counted; /* up to here in a Q counter */
	u8 qpc[BYTES(qpc)];
};

enum qp_state {
	QP_RST,
	QP_INIT,
	QP_RTR,
	QP_RTS,
	QP_SQER,
	QP_SQD,
	QP_ERR,
};

#endif /* MLX5SOFT_QP_H */
