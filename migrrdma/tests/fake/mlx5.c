// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "mlx5.h"

#include <stdlib.h>

bool fake_mlx5;
struct mlx5dv_ctx_allocators fake_allocators;

__attribute__((constructor)) static void begin(void)
{
	fake_mlx5 = getenv("FAKE_MLX5");
}

bool mlx5dv_is_supported(struct ibv_device *device)
{
	(void)device;
	return fake_mlx5;
}

int mlx5dv_set_context_attr(struct ibv_context *ctx,
			    enum mlx5dv_set_ctx_attr_type type, void *attr)
{
	(void)ctx;
	if (type != MLX5DV_CTX_ATTR_BUF_ALLOCATORS)
		return EINVAL;
	fake_allocators = *(struct mlx5dv_ctx_allocators *)attr;
	return 0;
}
