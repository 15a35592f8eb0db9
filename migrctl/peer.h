/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A connection to the mover of another host, through the migrd there
 */
#ifndef MIGRCTL_PEER_H
#define MIGRCTL_PEER_H

#include "talk.h"
#include "tls.h"

enum {
	MOVER_VERSION = 1,
	DIAL_MS = 10000,
};

extern struct tls_files peer_files;
extern const char *peer_port;

/**
 * peer_dial - connect to that mover
 * @hello: what it says of itself, to be given back; or NULL
 *
 * A process of its own passes on what is said. False, and the talk's reason says why.
 */
bool peer_dial(struct talk *t, const char *host, json_t **hello);

/* the mover's first words: does it speak our language? */
bool peer_greeted(struct talk *t, json_t **hello);

/* this host's name, as certificates have it */
const char *peer_self(void);

#endif
