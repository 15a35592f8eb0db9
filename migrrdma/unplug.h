/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The end of contexts that cannot be made again, as if their devices had been unplugged
 */
#ifndef MIGRRDMA_UNPLUG_H
#define MIGRRDMA_UNPLUG_H

/**
 * unplug_all - let all QPs of the process end in ERR
 *
 * What they had is flushed, and the application is told by events. From now on verbs of
 * these contexts fail with EIO, but for those that destroy something. The layer knows
 * them no more: the process is suspended with nothing in it.
 *
 * Context: all is suspended, nothing is posted to a provider or read from it, and RECVs
 * are counted. The gate is closed, and opened from time to time.
 */
void unplug_all(void);

#endif
