/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What is known of moves, on this host: a folder each. Its file "state" is one word; "record"
 * is an object of JSON, what else there is to be known; "lock" is locked by the process that
 * carries the move out. (A process that has a lock must not ask for its holder: POSIX locks
 * are gone when their process closes the file, by whichever descriptor.) All is in memory, as
 * everything is that it tells of.
 */
#ifndef MIGRCTL_JOURNAL_H
#define MIGRCTL_JOURNAL_H

#include <stdbool.h>
#include <sys/types.h>

#include <jansson.h>

#include "states.h"

enum {
	JOURNAL_ID = 16, /* hexadecimal digits */
	JOURNAL_PATH = 128,
};

/* where they are: a path of at most 80 characters */
extern const char *journal_moves;

struct journal {
	char folder[JOURNAL_PATH];
	enum move_role role;
	enum move_state state;
	json_t *record; /* "id", "role", "name", "peer", ... */
	int lock;	/* -1: it is somebody else's */
};

/* of this start of this host */
const char *journal_boot(void);

bool journal_is_id(const char *id);
void journal_make_id(char *id);

/**
 * journal_new - a move begins; it is this process'
 * @record: what is to be known of it, beside its role and state; given back
 *
 * Return: false with errno, EEXIST if there is one with that id
 */
bool journal_new(struct journal *j, enum move_role role, json_t *record);

/* one that there is; false if there is none, or it cannot be read */
bool journal_open(struct journal *j, const char *id);

/* There is none for sure: not one that only cannot be read now. */
bool journal_is_none(const char *id);

/*
 * Make it this process', as it is by then. False if it is another one's, or there is none any more.
 */
bool journal_take(struct journal *j);

/* whose it is; 0: nobody's */
pid_t journal_holder(const struct journal *j);

/**
 * journal_set - the move is so far
 * @reason: or NULL
 *
 * Return: false with errno, and then it is where it was; EPROTO: that does not follow
 */
bool journal_set(struct journal *j, enum move_state state, const char *reason);

/* write what was changed in the record */
bool journal_write(struct journal *j);

/*
 * Is it time to ask about one that is over? @first: in s, and twice as long each time that it was
 * renewed instead, up to @most.
 */
bool journal_is_due(const struct journal *j, long first, long most);
void journal_renew(const struct journal *j);

const char *journal_text(const struct journal *j, const char *key);

void journal_close(struct journal *j);
void journal_remove(struct journal *j); /* and close it */

/* Remove what is none, when nobody makes one: what somebody who died has left. */
void journal_sweep(void);

/* for all of them, in no order */
void journal_each(void (*f)(struct journal *j, void *arg), void *arg);

#endif
