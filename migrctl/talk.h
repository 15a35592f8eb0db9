/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A connection between programs that move containers: objects of JSON, a line each, and
 * streams of bytes of which one of them has told. All waiting ends when somebody wants the
 * program to end (SIGTERM, SIGINT, SIGHUP).
 */
#ifndef MIGRCTL_TALK_H
#define MIGRCTL_TALK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <jansson.h>

enum {
	TALK_LINE = 1 << 20, /* bytes that a line may have */
	TALK_FRAME = 65536,  /* bytes of a stream that are sent at once */
};

struct talk {
	int fd; /* -1: there is nobody */
	char *buf;
	size_t at, len, room;
	char reason[256]; /* why it was not possible */
};

/* What waits is to be interrupted by them. They are held back otherwise. */
void talk_hold_signals(void);
bool talk_is_ended(void);
void talk_end(void);	    /* as if one had come */
void talk_never_ends(void); /* from now on they mean nothing */
void talk_is_deaf(
	bool deaf); /* what must not be interrupted waits: they come later */

/* for what poll(2) says: false and ETIMEDOUT, or EINTR if all is to end. -1 is for ever */
bool talk_wait(int fd, short events, int ms);

bool talk_init(struct talk *t, int fd);
void talk_free(struct talk *t);

/* @o is given back. False if it cannot be sent within half a minute. */
bool talk_say(struct talk *t, json_t *o);

/* an object, or NULL, if nothing has come in that time, or something else */
json_t *talk_hear(struct talk *t, int ms);

/* what somebody has said as @key; "" if that is no text */
const char *talk_text(const json_t *o, const char *key);

/* { "ok": false, "error": ... } */
__attribute__((format(printf, 2, 3))) bool talk_refuse(struct talk *t,
						       const char *fmt, ...);

/**
 * talk_answered - the next object, if it says that all is well
 *
 * Return: NULL if it does not; the reason is the other's, then
 */
json_t *talk_answered(struct talk *t, int ms);

/**
 * talk_give - send all that can be read
 * @bytes: counts them, also while it goes on
 */
bool talk_give(struct talk *t, int from, uint64_t *bytes);

/* The other end of it: all that comes is written. What comes is taken, even if it cannot be. */
bool talk_take(struct talk *t, int to, uint64_t *bytes);

#endif
