/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Whose containers can be moved: programs that have the verbs of migr-mover(8), RUNTIMES
 */
#ifndef MIGRCTL_RUNTIME_H
#define MIGRCTL_RUNTIME_H

#include <stddef.h>

#include <jansson.h>

/*
 * One by its name, as an end of a move tells the other; NULL if it is none. Who tells none knows the
 * first one only.
 */
const char *runtime_named(const char *name);

/* whose that container is, or the first one's */
const char *runtime_of(const char *container);

/* an object of all containers, or NULL and the reason */
json_t *runtime_list(char *reason, size_t bytes);

#endif
