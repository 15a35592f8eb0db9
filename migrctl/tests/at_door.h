/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The door, between this program, which is runc and who gives the word, and a CRIU that is
 * none. The container's veth is a link of a network namespace of the test's own.
 */
#ifndef MIGRCTL_AT_DOOR_H
#define MIGRCTL_AT_DOOR_H

#include <stdbool.h>
#include <sys/types.h>

#include "rpc.h"

#define LINK "c-test"

enum {
	PATIENCE_MS = 30000,
};

extern char dir[];
extern int runc, go, says; /* this end of what the door has */
extern int images;	   /* a folder with a file of this name */
extern pid_t door;	   /* what CRIU has become, which is started by it */

void door_is_made(void);
void door_is_gone(void);

/* a file in its folder: @path has PATH_MAX bytes */
void path_of(char *path, const char *name);

/* until @fd has something, or has ended, or that time is over */
bool comes(int fd, int ms);

/* whoever gives the word */
void word(const char *text);
bool said(const char *expected); /* the next line is that; "": the end */

/* runc */
bool ask(CriuReqType type, char *text);
bool ack(void);

/* what CRIU says next: "dump" and "restore" if it has succeeded, "end" if it has ended */
bool heard(const char *expected);

void start(const char *fake);
void begin(const char *fake,
	   CriuReqType type); /* CRIU is asked for that, and it waits */
void end(int code);	      /* of CRIU; -1: by SIGKILL */

bool is_plugged(void);
bool noted(const char *text);	   /* by CRIU */
bool complained(const char *text); /* by the door */

#endif
