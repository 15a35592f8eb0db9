/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The functions of libibverbs behind those that this library interposes.
 */
#ifndef MIGRRDMA_REAL_H
#define MIGRRDMA_REAL_H

#include <infiniband/verbs.h>

/* Macros of verbs.h; here it is the functions that are meant. */
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

/* F(RETURN TYPE, NAME, (PARAMETERS)), in the order of libibverbs.map.in */
#define REAL_FUNCTIONS(F)                                                      \
	F(struct ibv_comp_channel *, ibv_create_comp_channel,                  \
	  (struct ibv_context *))                                              \
	F(int, ibv_destroy_comp_channel, (struct ibv_comp_channel *))          \
	F(void, ibv_ack_async_event, (struct ibv_async_event *))               \
	F(void, ibv_ack_cq_events, (struct ibv_cq *, unsigned int))            \
	F(struct ibv_pd *, ibv_alloc_pd, (struct ibv_context *))               \
	F(int, ibv_attach_mcast,                                               \
	  (struct ibv_qp *, const union ibv_gid *, uint16_t))                  \
	F(int, ibv_close_device, (struct ibv_context *))                       \
	F(struct ibv_ah *, ibv_create_ah,                                      \
	  (struct ibv_pd *, struct ibv_ah_attr *))                             \
	F(struct ibv_ah *, ibv_create_ah_from_wc,                              \
	  (struct ibv_pd *, struct ibv_wc *, struct ibv_grh *, uint8_t))       \
	F(struct ibv_cq *, ibv_create_cq,                                      \
	  (struct ibv_context *, int, void *, struct ibv_comp_channel *, int)) \
	F(struct ibv_qp *, ibv_create_qp,                                      \
	  (struct ibv_pd *, struct ibv_qp_init_attr *))                        \
	F(struct ibv_srq *, ibv_create_srq,                                    \
	  (struct ibv_pd *, struct ibv_srq_init_attr *))                       \
	F(int, ibv_dealloc_pd, (struct ibv_pd *))                              \
	F(int, ibv_dereg_mr, (struct ibv_mr *))                                \
	F(int, ibv_destroy_ah, (struct ibv_ah *))                              \
	F(int, ibv_destroy_cq, (struct ibv_cq *))                              \
	F(int, ibv_destroy_qp, (struct ibv_qp *))                              \
	F(int, ibv_destroy_srq, (struct ibv_srq *))                            \
	F(int, ibv_detach_mcast,                                               \
	  (struct ibv_qp *, const union ibv_gid *, uint16_t))                  \
	F(void, ibv_free_device_list, (struct ibv_device **))                  \
	F(int, ibv_get_async_event,                                            \
	  (struct ibv_context *, struct ibv_async_event *))                    \
	F(int, ibv_get_cq_event,                                               \
	  (struct ibv_comp_channel *, struct ibv_cq **, void **))              \
	F(__be64, ibv_get_device_guid, (struct ibv_device *))                  \
	F(struct ibv_device **, ibv_get_device_list, (int *))                  \
	F(int, ibv_init_ah_from_wc,                                            \
	  (struct ibv_context *, uint8_t, struct ibv_wc *, struct ibv_grh *,   \
	   struct ibv_ah_attr *))                                              \
	F(int, ibv_modify_qp, (struct ibv_qp *, struct ibv_qp_attr *, int))    \
	F(int, ibv_modify_srq, (struct ibv_srq *, struct ibv_srq_attr *, int)) \
	F(struct ibv_context *, ibv_open_device, (struct ibv_device *))        \
	F(int, ibv_query_device,                                               \
	  (struct ibv_context *, struct ibv_device_attr *))                    \
	F(int, ibv_query_gid,                                                  \
	  (struct ibv_context *, uint8_t, int, union ibv_gid *))               \
	F(int, ibv_query_pkey, (struct ibv_context *, uint8_t, int, __be16 *)) \
	F(int, ibv_query_port,                                                 \
	  (struct ibv_context *, uint8_t, struct _compat_ibv_port_attr *))     \
	F(int, ibv_query_qp,                                                   \
	  (struct ibv_qp *, struct ibv_qp_attr *, int,                         \
	   struct ibv_qp_init_attr *))                                         \
	F(int, ibv_query_srq, (struct ibv_srq *, struct ibv_srq_attr *))       \
	F(struct ibv_mr *, ibv_reg_mr, (struct ibv_pd *, void *, size_t, int)) \
	F(int, ibv_rereg_mr,                                                   \
	  (struct ibv_mr *, int, struct ibv_pd *, void *, size_t, int))        \
	F(int, ibv_resize_cq, (struct ibv_cq *, int))                          \
	F(int, ibv_resolve_eth_l2_from_gid,                                    \
	  (struct ibv_context *, struct ibv_ah_attr *,                         \
	   uint8_t[ETHERNET_LL_SIZE], uint16_t *))                             \
	F(int, ibv_get_pkey_index, (struct ibv_context *, uint8_t, __be16))    \
	F(struct ibv_qp_ex *, ibv_qp_to_qp_ex, (struct ibv_qp *))              \
	F(struct ibv_mr *, ibv_reg_mr_iova,                                    \
	  (struct ibv_pd *, void *, size_t, uint64_t, int))                    \
	F(struct ibv_mr *, ibv_reg_mr_iova2,                                   \
	  (struct ibv_pd *, void *, size_t, uint64_t, unsigned int))           \
	F(int, ibv_get_device_index, (struct ibv_device *))                    \
	F(struct ibv_context *, ibv_import_device, (int))                      \
	F(struct ibv_mr *, ibv_import_mr, (struct ibv_pd *, uint32_t))         \
	F(struct ibv_pd *, ibv_import_pd, (struct ibv_context *, uint32_t))    \
	F(int, ibv_query_ece, (struct ibv_qp *, struct ibv_ece *))             \
	F(int, ibv_set_ece, (struct ibv_qp *, struct ibv_ece *))               \
	F(void, ibv_unimport_mr, (struct ibv_mr *))                            \
	F(void, ibv_unimport_pd, (struct ibv_pd *))                            \
	F(int, _ibv_query_gid_ex,                                              \
	  (struct ibv_context *, uint32_t, uint32_t, struct ibv_gid_entry *,   \
	   uint32_t, size_t))                                                  \
	F(ssize_t, _ibv_query_gid_table,                                       \
	  (struct ibv_context *, struct ibv_gid_entry *, size_t, uint32_t,     \
	   size_t))                                                            \
	F(struct ibv_mr *, ibv_reg_dmabuf_mr,                                  \
	  (struct ibv_pd *, uint64_t, size_t, uint64_t, int, int))             \
	F(struct ibv_dm *, ibv_import_dm, (struct ibv_context *, uint32_t))    \
	F(int, ibv_query_qp_data_in_order,                                     \
	  (struct ibv_qp *, enum ibv_wr_opcode, uint32_t))

struct real {
#define MEMBER(type, name, parameters) type(*name) parameters;
	REAL_FUNCTIONS(MEMBER)
#undef MEMBER
};

/**
 * real - the functions of libibverbs
 *
 * Loads the library when it is called first: a program that uses no verbs need not
 * have it. Ends the program if there is none, or one without functions that
 * Debian 12's has.
 *
 * Return: all of them; of those that an older libibverbs lacks, NULL
 */
const struct real *real(void);

#endif
