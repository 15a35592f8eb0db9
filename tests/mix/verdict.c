// SPDX-License-Identifier: GPL-2.0
#include <stdarg.h>
#include <stdio.h>

#include "verdict.h"

static void add(struct verdict *v, const char *fmt, va_list ap)
{
	pthread_mutex_lock(&v->lock);
	if (v->count < VERDICT_KEPT)
		vsnprintf(v->text[v->count], VERDICT_TEXT, fmt, ap);
	v->count++;
	pthread_mutex_unlock(&v->lock);
}

void violation(struct verdict *v, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	add(v, fmt, ap);
	va_end(ap);
}

void violation_fatal(struct verdict *v, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	add(v, fmt, ap);
	va_end(ap);
	__atomic_store_n(&v->fatal, true, __ATOMIC_RELAXED);
}
