/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Would it move? What can be known before anything is stopped. Who refuses says what to do.
 */
#ifndef MIGRCTL_CHECKS_H
#define MIGRCTL_CHECKS_H

#include "move.h"

/* at the source: @about is what the runtime says of the container */
bool checks_here(struct move *m, const json_t *about);

/*
 * Are all its processes such as CRIU dumps? A part of checks_here(), which is done again when they
 * stand still: somebody may have come meanwhile.
 */
bool checks_processes(struct move *m, const json_t *about);

/*
 * Who traces them is CRIU, in the middle of something that does not come to its end. It is killed,
 * and they go on.
 */
void checks_kill_tracers(const json_t *about);

/* what the container needs at the target: "kernel", "machine", "cpu", "module", "devices", "bytes" */
json_t *checks_needs(const json_t *about);

/* at the target: is that there? */
bool checks_there(struct move *m, const json_t *needs);

#endif
