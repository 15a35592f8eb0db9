/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* What there is of mlx5dv.h, with all devices or none */
#ifndef FAKE_MLX5_H
#define FAKE_MLX5_H

#include <infiniband/mlx5dv.h>

/* are devices so? At first, if FAKE_MLX5 is in the environment */
extern bool fake_mlx5;
extern struct mlx5dv_ctx_allocators fake_allocators; /* of the last context */

#endif
