/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Real objects whose keys the process cannot have (names.h). They are held while others are
 * made, as a device may give out first what it has got back last.
 */
#ifndef MIGRRDMA_SPARES_H
#define MIGRRDMA_SPARES_H

#include <stdbool.h>
#include <stddef.h>

struct spares {
	void **of;
	size_t n, room, tries;
};

/** spares_have_room - is there room for one more? */
bool spares_have_room(struct spares *s);

/** spares_drop - destroy all, and what they were held in; errno is as before */
void spares_drop(struct spares *s, int (*destroy)(void *));

#endif
