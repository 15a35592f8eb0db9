/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What has become of moves that began at this host: a file, an object of JSON in each line
 */
#ifndef MIGRCTL_HISTORY_H
#define MIGRCTL_HISTORY_H

#include <jansson.h>

#include "talk.h"

/* @o with the time: it stays the caller's */
void history_add(json_t *o);

/* the last @n of them: { "ok": true, "moves": [...] } */
void history_tell(struct talk *t, int n);

#endif
