// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The one function of mlx5dv that is interposed: perftest gives up if it does not get an
 * answer, even though it would go on with plain verbs.
 */
#include <dlfcn.h>
#include <infiniband/mlx5dv.h>

#include "gate.h"

typedef int query(struct ibv_context *, struct mlx5dv_context *);

/* Of what may be asked for nothing is there: all of it is for other functions of mlx5dv. */
int mlx5dv_query_device(struct ibv_context *ctx, struct mlx5dv_context *attrs)
{
	query *real = (query *)dlsym(RTLD_NEXT, "mlx5dv_query_device");

	if (!real)
		return EOPNOTSUPP;
	if (!is_shadow(ctx))
		return real(ctx, attrs);
	attrs->comp_mask = 0;
	return GATED(real(real_context(ctx), attrs));
}
