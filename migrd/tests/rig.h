/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A daemon on loopback, its clients, and processes that look as if they were under the
 * layer. Its log is in the file LOG of the folder.
 */
#ifndef RIG_H
#define RIG_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <openssl/ssl.h>

#include "check.h"

extern char dir[];    /* of everything */
extern char answer[]; /* the last one, without its end */

enum {
	ANSWER_ROOM = 17 << 20
};

/* MIGRD and the folder; certificates "n1", "n2", ... and "admin" (of
 * who moves containers) are made, with their CA "ca"
 */
void rig_begin(void);
void rig_end(void);

/* patterns of folders; with DIR/ before each. Meetings are at DIR/n2.meet, DIR/n1.meet; migr-mover
 * is at DIR/n2.mover.
 */
void daemon_start(const char *first, const char *second);
/* another one at another address, and it cannot: its exit code */
int daemon_fails(const char *first);
/* one of another host, n1, which is where fake_hosts.c has that and 10.10.9.0/24 */
void other_daemon_start(const char *first);
void other_daemon_end(void);
void daemon_signal(int signal);
int daemon_end(void);		      /* its exit code */
bool daemon_logged(const char *text); /* some time */
bool daemon_logged_now(const char *text);
void daemon_forget_log(void);
int daemon_children(void);
char daemon_child_state(void); /* of the only one, as in /proc/PID/stat */
const char *daemon_port(void);

struct client {
	SSL *ssl;
	int fd;
};

/* a TCP connection to the daemon, also from another address: 127.0.0.N */
int dial(void);
int dial_from(int n);
/* who accepts connections to the port at 127.0.0.N, and says nothing; to be closed */
int silent_host(int n);

/* one that is greeted; false, and the reason is in the answer */
bool client_try(struct client *c, const char *cert, const char *ca,
		int version);
void client_open(struct client *c);
void client_close(struct client *c); /* in good order */
void client_die(struct client *c);   /* with a RST */

void put(struct client *c, const char *text, size_t bytes);
bool hear(struct client *c); /* false at the end */
/* the answer begins so */
bool said(struct client *c, const char *line, const char *begin);

/* until it is so, for some seconds */
#define SOME_TIME(cond)                                             \
	({                                                          \
		bool is_so = false;                                 \
		for (int i = 0; !(is_so = (cond)) && i < 2000; i++) \
			usleep(10000);                              \
		is_so;                                              \
	})

/* --- processes --- */

enum manner {
	GOOD, /* as the library: one at a time, an answer to each line */
	NEVER_ACCEPTS,
	NEVER_ANSWERS, /* but to the first line */
	NO_END,	       /* of its second answer, and then it goes away */
	HUGE,	       /* its second answer has 20 MiB */
	TALKS,	       /* two lines for one */
	CHATTY,	       /* a line for none */
	URGENT, /* a byte out of band for none; then there is PID.urgent */
	NO_JSON,
	/* Words are appended to the file PID.said of the folder, and answered with what
	 * is in PID.WORD (PID.gone: of "peer" with a 0), if that is there: "hang up" is no answer, but the end; "stop",
	 * that it is done, and then it is stopped; "long N", N MiB. The connection ends
	 * after "hold", too.
	 */
	LAYER,
};

struct fake {
	pid_t pid;
	char id[64];
	int told; /* a byte for each connection that has ended, "s" in suspended state */
};

/* its socket is in a folder DIR/WHERE, which is made */
void fake_start(struct fake *f, enum manner manner, const char *where);
void fake_kill(struct fake *f);
/* connections that have ended since, and how */
char fake_ended(struct fake *f);

/* "open ID" */
bool opened(struct client *c, const struct fake *f);

#endif
