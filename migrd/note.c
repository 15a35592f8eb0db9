// SPDX-License-Identifier: GPL-2.0
#include "note.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *as = "migrd";
static char of[128];

void note_as(const char *program)
{
	as = program;
}

void note_of(const char *who)
{
	snprintf(of, sizeof(of), "%s%s", who, *who ? ": " : "");
	note_clean(of);
}

void note_clean(char *text)
{
	for (; *text; text++)
		if (*text < ' ' || *text > '~')
			*text = '?';
}

void note(const char *fmt, ...)
{
	char line[1024];
	va_list args;
	size_t n;

	n = (size_t)snprintf(line, sizeof(line) - 1, "%s: %s", as, of);
	va_start(args, fmt);
	vsnprintf(line + n, sizeof(line) - 1 - n, fmt, args);
	va_end(args);
	note_clean(line);
	strcat(line, "\n");
	/* there is nobody to tell that it cannot be told */
	if (write(STDERR_FILENO, line, strlen(line)) < 0)
		return;
}
