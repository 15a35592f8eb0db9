/* SPDX-License-Identifier: GPL-2.0 */
#ifndef CHECK_H
#define CHECK_H

#include <stdarg.h>
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

/* CRIU's, in the real thing */
void print_on_level(unsigned int level, const char *format, ...)
{
	va_list args;

	(void)level;
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
}

#endif /* CHECK_H */
