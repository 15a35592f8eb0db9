/* SPDX-License-Identifier: GPL-2.0 */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>

extern int check_failures;

#define CHECK(cond, ...)                                                   \
	do {                                                               \
		if (!(cond)) {                                             \
			fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, \
				#cond);                                    \
			fprintf(stderr, __VA_ARGS__);                      \
			fprintf(stderr, "\n");                             \
			check_failures++;                                  \
		}                                                          \
	} while (0)

static inline int check_result(void)
{
	if (check_failures)
		fprintf(stderr, "%d checks failed\n", check_failures);
	return check_failures != 0;
}

#endif /* CHECK_H */
