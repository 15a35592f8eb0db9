/* SPDX-License-Identifier: GPL-2.0 */
/* Command handlers, for the tables of rows. */
#ifndef MLX5SOFT_QUEUE_H
#define MLX5SOFT_QUEUE_H

struct nic;
struct cmd;

#define HANDLER(name) int name(struct nic *nic, struct cmd *cmd)

HANDLER(create_eq);
HANDLER(query_eq);
HANDLER(create_cq);
HANDLER(modify_cq);
HANDLER(query_cq);
HANDLER(create_mkey);
HANDLER(query_mkey);
HANDLER(create_srq);
HANDLER(create_xrc_srq);
HANDLER(create_rmp);
HANDLER(modify_rmp);
HANDLER(arm_srq);
HANDLER(query_srq);

HANDLER(modify_qp);
HANDLER(query_qp);
HANDLER(query_hca_cap);
HANDLER(set_hca_cap);

HANDLER(create_flow_table);
HANDLER(destroy_flow_table);
HANDLER(modify_flow_table);
HANDLER(set_flow_table_root);
HANDLER(create_flow_group);
HANDLER(destroy_flow_group);
HANDLER(set_fte);
HANDLER(delete_fte);

#endif /* MLX5SOFT_QUEUE_H */
