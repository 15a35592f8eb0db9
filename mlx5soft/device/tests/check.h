/* SPDX-License-Identifier: GPL-2.0 */
#ifndef MLX5SOFT_CHECK_H
#define MLX5SOFT_CHECK_H

#include <stdio.h>
#include <stdlib.h>

#define CHECK(cond)                                                        \
	do {                                                               \
		if (!(cond)) {                                             \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, \
				#cond);                                    \
			exit(1);                                           \
		}                                                          \
	} while (0)

#endif /* MLX5SOFT_CHECK_H */
