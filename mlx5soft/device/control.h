/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a running device is told and asked from outside, in words, and its socket.
 * A word on a socket gets an answer, that it was understood or what was wrong; a
 * signal does not, nor a file that is read on one.
 */
#ifndef MLX5SOFT_CONTROL_H
#define MLX5SOFT_CONTROL_H

#include <stddef.h>

#define CONTROL_REQUEST 128 /* bytes, at most */
#define CONTROL_ANSWER 16384

struct nic;

/*
 * Do as the `len` bytes of a request say, and write a line of JSON with a NUL
 * behind it. One that is refused has changed nothing:
 *
 *	limit				{"rate": 0, "delay_ns": 0, ...}
 *	limit [rate RATE] [delay TIME]	...as it is then; what is not said is none
 *	limit off
 *	commands [TIME] | commands off	{"command_ns": 0}, what each takes
 *	counters [reset]		since the start, or the last reset
 *	anything else			{"error": "what is wrong"}
 */
void control_request(struct nic *nic, const char *request, size_t len,
		     char answer[CONTROL_ANSWER]);

/* ---- the socket: sequenced packets, each a request, and an answer for each ---- */

/* One client is served at a time; others wait until it is gone. */
struct control {
	int listener, client; /* -1: none */
};

/* What is there under this name, if it is a socket, goes. -1: errno */
int control_open(struct control *c, const char *path);
/* to be polled for POLLIN */
int control_fd(const struct control *c);
void control_serve(struct control *c, struct nic *nic);
void control_close(struct control *c, const char *path);

#endif /* MLX5SOFT_CONTROL_H */
