/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What the application waits at for events: a descriptor of the layer's own, which can
 * be read when the real one can, or when the layer itself has an event. The real one may
 * be replaced meanwhile. Without control it is the real one itself.
 */
#ifndef MIGRRDMA_RELAY_H
#define MIGRRDMA_RELAY_H

#include <stdbool.h>

struct relay {
	int fd;	  /* the application's: an epoll descriptor, with */
	int bell; /* the layer's, and real ones */
};

/**
 * relay_open - wait at a real descriptor, of which reads do not block from now on
 *
 * Return: 0 or an errno
 */
int relay_open(struct relay *r, int real);

void relay_close(struct relay *r);

/**
 * relay_add - wait at another real one, too
 *
 * Return: 0 or an errno
 */
int relay_add(struct relay *r, int real);

/** relay_remove - and not at this one any more */
void relay_remove(struct relay *r, int real);

/** relay_mute - what can be read at this one is the layer's, or not any more */
void relay_mute(struct relay *r, int real, bool on);

/** relay_ring - the layer has an event, or none any more */
void relay_ring(struct relay *r, bool on);

/** relay_waits - does relay_wait() wait? */
bool relay_waits(const struct relay *r);

/**
 * relay_wait - there was no event; wait for one, if the application does not mind
 *
 * Return: 0, or an errno as read(2) of the application's descriptor has it
 */
int relay_wait(const struct relay *r);

#endif
