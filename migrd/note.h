/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a daemon has to say: one line per event, on standard error.
 */
#ifndef MIGRD_NOTE_H
#define MIGRD_NOTE_H

#include <stddef.h>

/* which daemon it is, if not migrd */
void note_as(const char *program);

/* of whom all that follows is: an address, a name; "" for the daemon itself */
void note_of(const char *who);

/* one write, so that the lines of several processes do not mix */
__attribute__((format(printf, 1, 2))) void note(const char *fmt, ...);

/* in place: what does not belong into a line becomes a question mark */
void note_clean(char *text);

#endif
