/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Processes at the other end: the keys of their regions, as applications know them, and
 * the real ones. Before anything is told of one, its keys are the real ones.
 */
#ifndef MIGRRDMA_PEER_H
#define MIGRRDMA_PEER_H

#include <stdbool.h>
#include <stdint.h>

struct names;
struct peer;

enum {
	PEER_ID_BYTES = 64 /* of an id, with the 0 behind it */
};

/** peer_get - the process of this id; NULL if it is new and there is no memory */
struct peer *peer_get(const char *id);

/** peer_find - the same; NULL if it is new */
struct peer *peer_find(const char *id);

/** peer_is_of - is it that process, in whichever turn? That is what is behind the last colon. */
bool peer_is_of(const struct peer *peer, const char *id);

const char *peer_id(const struct peer *peer);

/**
 * peer_lead - a QP leads there from now on, no more to where it did; either may be NULL
 *
 * Context: nobody else does that of this QP
 */
void peer_lead(struct peer *_Atomic *from, struct peer *to);

/** peer_say - the same, of one that has only been said to lead there */
void peer_say(struct peer *_Atomic *from, struct peer *to);

/**
 * peers_drop_unused - forget those to whom no QP leads
 *
 * Context: all sections have ended that had begun when this was called the last time.
 * What is freed is what was found then, which a post may have had in hand.
 */
void peers_drop_unused(void);

/** peer_is_used - does a QP lead there, or has one been told that it will? */
bool peer_is_used(const struct peer *peer);

/*
 * Who is not suspended hears of peers without being asked, so there are not too many, nor have
 * they too much, in tables of which a part has 16 KiB. Of a process there may be some, as QPs
 * that lead to it from before are told anew when it is moved.
 */
enum {
	PEER_MOST = 256,
	PEER_MOST_TURNS = 4, /* of these */
	PEER_MOST_PARTS = 64,
};

/**
 * peer_makes_room - who is to be forgotten, as there are too many, before there is this one, too
 *
 * So that nobody keeps others out who says what is not so, that is the eldest of the host of which
 * most are, of those to whom no QP leads yet.
 *
 * Return: an ID, or NULL if there is room, or nobody makes any
 */
const char *peer_makes_room(const char *id);

/** peer_lacks_place - why may there not be this one, too? NULL if it may */
const char *peer_lacks_place(const char *id);

/** peer_is_full - has it as many keys as it may be told of? */
bool peer_is_full(const struct peer *peer);

/** peer_keys - its keys, or NULL if they are the real ones */
const struct names *peer_keys(const struct peer *peer);

/**
 * peer_forget_keys - it has no keys but those that it is told to have from now on
 *
 * Return: 0 or ENOMEM
 */
int peer_forget_keys(struct peer *peer);

/** peer_set_key - it has this key; 0 is none. Return: 0 or ENOMEM */
int peer_set_key(struct peer *peer, uint32_t key, uint32_t real);

#endif
