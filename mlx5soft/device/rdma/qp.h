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
	uint32_t pd, xrcd;
	struct pas pas;
	bool rlky, no_sq, no_rq;
	uint8_t log_sq, log_rq, rq_shift;
	uint32_t sq_at; /* the SQ is behind the RQ */
	uint64_t db;
	uint16_t sq_ci, rq_ci;
	struct roce_qp_counters counted; /* up to here in a Q counter */
	uint8_t qpc[BYTES(qpc)];
};

enum qp_state {
	QP_RST,
	QP_INIT,
	QP_RTR,
	QP_RTS,
	QP_SQER,
	QP_ERR = 6, /* no command leads to SQD, 5 */
};

#endif /* MLX5SOFT_QP_H */
