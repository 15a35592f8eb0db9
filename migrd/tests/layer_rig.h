/* SPDX-License-Identifier: GPL-2.0 */
/*
 * migr-layer, of which the test is migr-ctr, and what processes say to it. The container
 * is "box".
 */
#ifndef LAYER_RIG_H
#define LAYER_RIG_H

#include "rig.h"

#define GID "::ffff:10.10.0.2"
#define QP_AT(gid, qpn, real, peer, more)                                     \
	"{\"qpn\": " qpn ", \"real\": " real ", \"type\": \"RC\", "           \
	"\"state\": \"RTS\", \"gid\": \"" gid "\", \"peer\": {\"qpn\": " peer \
	", \"gid\": \"" GID "\"" more "}}"
#define QP(qpn, real, peer, more) QP_AT(GID, qpn, real, peer, more)
#define AT(real) ", \"real\": " real ", \"real_gid\": \"" GID "\""
#define NAMES(qps, keys) \
	"{\"ok\": true, \"qps\": [" qps "], \"keys\": [" keys "]}\n"
#define KEY(v, r) "{\"virtual\": " v ", \"real\": " r "}"
#define REFUSAL(why) "{\"ok\": false, \"errno\": 95, \"reason\": \"" why "\"}\n"

extern char heard[]; /* the last line of migr-layer */

/*
 * What a process answers to a word, see LAYER; NULL: that it is done. To "gone": when it hears
 * that a peer is. To "WORD.names": to
 * "names", from that word on
 */
void answers(const struct fake *f, const char *word, const char *text);
/* "QPN PID" lines: whose queue pairs they are */
void qps(const char *text);
/* hosts that are not there from now on, in a line; NULL: all are */
void gone(const char *hosts);

/* what it was told, since the last time that somebody has asked; valid for two calls */
const char *was_told(const struct fake *f);

/* which queue pairs daemons were asked of whether they are a process', each "QPN ", since
 * the last time; valid until the next one
 */
const char *was_asked(void);

/* migr-layer ... box [TARGET] */
void layer_begin(const char *target);
void layer_tell(const char *line);
void layer_hang_up(void);
/* the next line begins so */
bool layer_says(const char *line);
/* one of the next lines has that in it */
bool layer_says_some(const char *text);
/* its exit code */
int layer_ends(void);

#endif
