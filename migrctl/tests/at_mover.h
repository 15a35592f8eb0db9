/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The daemon, and who asks it: its runtime is a script
 */
#ifndef MIGRCTL_AT_MOVER_H
#define MIGRCTL_AT_MOVER_H

#include <stdbool.h>
#include <sys/types.h>

#include "talk.h"

/* as migrd says who that is */
#define HOST "{\"peer\": \"n9\", \"operator\": false}\n"
#define PERSON "{\"peer\": \"admin\", \"operator\": true}\n"

#define ID "0123456789abcdef"

extern char dir[], moves[64]; /* all that there is, and the journal in it */
extern struct talk t;	      /* who was asked last, if that is not over */

/*
 * The folder, and what a mover needs of its host, are this test's own. @runtime: a script in the
 * place of all, or NULL: one that knows no container, and can unmake one
 */
void mover_house(const char *runtime);
void mover_leaves_house(void);

/* @stops_at: MIGR_MOVER_STOPS_AT, or NULL */
void mover_start(const char *stops_at);
void mover_stop(void);
extern pid_t daemon_pid;

/* a connection, as "t", on which nothing has been said */
bool mover_dial(void);

/* the house with that runtime, and a daemon in it, for as long as the test takes */
void mover_begins(void);
void mover_again(void); /* another one, which finds what there is */
void mover_ends(void);

/* below dir */
void put_file(const char *name, const char *text, mode_t mode);

/* the answer to that; why it was refused is in t.reason, "" if it was not */
json_t *asked(const char *who, const char *line);

/* Is it refused, and is that a part of the reason? */
bool refused(const char *who, const char *line, const char *why);

/* Is it done, and has the answer, unless that is NULL, this member? */
bool done(const char *who, const char *line, const char *key);

#endif
