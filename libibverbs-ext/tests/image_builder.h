/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Images for tests. The sample has every record type, QPs in three states,
 * one with an SRQ, one of UC, one of UD in two multicast groups, address handles to a
 * host and to a group, memory windows in all states, two CQs on one channel, events
 * that nobody has read, rings that wrap, a gap in the handles, references to later
 * handles and a record of an unknown type.
 */
#ifndef IMAGE_BUILDER_H
#define IMAGE_BUILDER_H

#include "migr_cmd.h"

struct builder {
	char *data;
	size_t length;
	size_t room;
};

/* handles of the sample */
enum sample_handle {
	S_PD = 0,
	S_CQ = 1,
	S_MR = 2,
	S_MR_EARLY = 3, /* refers to S_PD2 */
	S_QP_RTS = 4,
	S_PD2 = 5,
	S_CQ_WRAPPED = 6,
	S_MR2 = 7,
	/* 8 is a gap */
	S_QP_INIT = 9,
	S_QP_SQD = 10,
	S_QP_SRQ = 11, /* has the SRQ that comes behind it */
	S_SRQ = 12,
	S_MW_BOUND = 13,   /* type 1 */
	S_MW_UNBOUND = 14, /* type 1 */
	S_MW_OF_QP = 15,   /* type 2, valid */
	S_MW_FREE = 16,	   /* type 2 */
	S_QP_UD = 17,
	S_AH = 18,
	S_AH_GROUP = 19, /* IPv6 */
	S_QP_UC = 20,
	S_MAX_HANDLE = 20,
};

#define S_CQE 15
#define S_WR 15
#define S_SGE 2
#define S_INLINE 64
#define S_RD_ATOMIC 4
#define S_SQ_SLOTS 4 /* in the image */
#define S_RQ_SLOTS 6
#define S_SRQ_NUM 0x20005
#define S_AH_NUM 9	   /* of the first one, which the UD QP's sends use */
#define S_MW_KEY 0x8000100 /* of the first one */

/* bytes of a ring as mmap() gives it */
uint32_t builder_mmap_size(uint32_t entries, uint32_t log2_elem);
uint32_t builder_log2_elem(size_t size);
size_t builder_send_size(uint32_t sge, uint32_t inline_data);
size_t builder_recv_size(uint32_t sge);

void builder_start(struct builder *b, uint32_t max_handle);
void *builder_add(struct builder *b, uint32_t type, uint32_t handle,
		  size_t length);
void builder_pd(struct builder *b, uint32_t handle);
void builder_cq(struct builder *b, uint32_t handle, uint32_t consumer,
		uint32_t producer);
void builder_mr(struct builder *b, uint32_t handle, uint32_t pd, uint32_t key);
void builder_srq(struct builder *b, uint32_t handle, uint32_t pd, uint32_t num);

/* a UD QP, its groups, and AHs of the same PD: those of the sample */
void builder_datagrams(struct builder *b);

/* the windows of the sample, on its objects */
void builder_mws(struct builder *b);

struct builder_qp {
	uint32_t handle, pd, send_cq, recv_cq, qpn, state;
	int ipv6;
	int has_srq;   /* that of the sample */
	uint32_t type; /* 0: RC */
};

void builder_qp(struct builder *b, const struct builder_qp *q);

/* length, count and checksum */
void builder_finish(struct builder *b);
void builder_sample(struct builder *b);
void builder_free(struct builder *b);
/* the sample without its channel */
void builder_no_channel(struct builder *b);

/* correct the checksum of a changed image */
void builder_seal(void *data, size_t length);

/* the object with this handle; NULL if there is none */
struct rxe_migr_rec *builder_find(void *data, size_t length, uint32_t handle);
/* the first record of this type, that of something without a handle */
struct rxe_migr_rec *builder_find_type(void *data, size_t length,
				       uint32_t type);

#endif /* IMAGE_BUILDER_H */
