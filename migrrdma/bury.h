/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Objects of a device that has stayed on another host. Their files have come along as
 * dead ones (the CRIU plug-in's timerfds, ../criu), so the kernel knows nothing of them;
 * but what the provider has in memory is given back by its own functions. Contexts that are
 * unplugged (unplug.h) end in the same way.
 */
#ifndef MIGRRDMA_BURY_H
#define MIGRRDMA_BURY_H

#include <stdbool.h>

#include <infiniband/verbs.h>

/** bury_is_dead - has this real context stayed behind? */
bool bury_is_dead(const struct ibv_context *real);

/**
 * bury_begin - from now on this thread's commands to it fail as those to a device that
 * was unplugged, which libibverbs takes for a success when something is destroyed
 *
 * A context that is not dead is left as it is.
 */
void bury_begin(const struct ibv_context *real);
void bury_end(void);

#endif
