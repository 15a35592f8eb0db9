/* SPDX-License-Identifier: GPL-2.0 */
/* What the command line says. */
#ifndef MIX_OPTIONS_H
#define MIX_OPTIONS_H

#include <stdbool.h>

#include "memory.h"
#include "stream.h"
#include "verbs.h"

struct options {
	struct verbs_options verbs;
	struct shape shape; /* the client's counts */
	const char *host;   /* NULL: server */
	const char *port;
	const char *progress, *result;
	enum page_kind pages;
	unsigned int threads, seconds, stuck_seconds;
	bool violate;
};

/* Exits with 2 if the command line is wrong. */
void options_parse(struct options *o, int argc, char **argv);

#endif
