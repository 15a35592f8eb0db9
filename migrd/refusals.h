/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Anybody can bring it about that he is refused, and again: the log does not tell each time.
 */
#ifndef MIGRD_REFUSALS_H
#define MIGRD_REFUSALS_H

#include <stdbool.h>

/* what all processes share that come of this one; false if there is no memory */
bool refusals_init(void);

/* count one. Is it to be told? Before that, how many were not. */
bool refusals_tell(void);

#endif
