/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What unit tests check with, of all parts. main() ends with check_result().
 *
 *	CHECK(ret == -EINVAL)	a failure is told and counted
 *	CHECK(ret == -EINVAL, "QP %u: %d", qpn, ret)	with a literal format
 *	MUST(p)		the rest makes no sense without: ends the program
 */
#ifndef CHECK_H
#define CHECK_H

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* weak: the files of a test share one */
__attribute__((weak)) int check_failures;

#define CHECK(cond, ...)                                        \
	do {                                                    \
		if (!(cond))                                    \
			check_failed(__FILE__, __LINE__, #cond, \
				     " " __VA_ARGS__);          \
	} while (0)

#define MUST(cond)                                                     \
	do {                                                           \
		if (!(cond)) {                                         \
			check_failed(__FILE__, __LINE__, #cond,        \
				     " (errno: %s)", strerror(errno)); \
			exit(1);                                       \
		}                                                      \
	} while (0)

__attribute__((format(printf, 4, 5))) static inline void
check_failed(const char *file, int line, const char *cond, const char *fmt, ...)
{
	va_list args;

	fprintf(stderr, "%s:%d: %s:", file, line, cond);
	va_start(args, fmt);
	vfprintf(stderr, fmt, args);
	va_end(args);
	fputc('\n', stderr);
	check_failures++;
}

static inline int check_result(void)
{
	if (check_failures)
		fprintf(stderr, "%d checks failed\n", check_failures);
	return check_failures != 0;
}

#endif /* CHECK_H */
