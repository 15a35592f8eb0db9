// SPDX-License-Identifier: GPL-2.0
#include "talk.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "note.h"

enum {
	SAY_MS = 30000,
	FIRST_ROOM = 65536,
};

static volatile sig_atomic_t ended;
static sigset_t waiting; /* as it is while something waits */
static bool is_deaf;

static void on_signal(int signal)
{
	(void)signal;
	ended = 1;
}

void talk_hold_signals(void)
{
	const int all[] = { SIGHUP, SIGINT, SIGTERM };
	struct sigaction act = { .sa_handler = on_signal };
	sigset_t held;

	sigemptyset(&held);
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		sigaction(all[i], &act, NULL);
		sigaddset(&held, all[i]);
	}
	sigprocmask(SIG_BLOCK, &held, &waiting);
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		sigdelset(&waiting, all[i]);
	signal(SIGPIPE, SIG_IGN);
	ended = 0;
}

bool talk_is_ended(void)
{
	return ended;
}

void talk_end(void)
{
	ended = 1;
}

void talk_never_ends(void)
{
	signal(SIGHUP, SIG_IGN);
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	ended = 0;
}

void talk_is_deaf(bool deaf)
{
	is_deaf = deaf;
}

bool talk_wait(int fd, short events, int ms)
{
	const struct timespec left = { ms / 1000, ms % 1000 * 1000000L };
	struct pollfd p = { .fd = fd, .events = events };
	int n = -1;

	errno = EINTR;
	if (!ended || is_deaf)
		n = ppoll(&p, 1, ms < 0 ? NULL : &left,
			  is_deaf ? NULL : &waiting);
	if (!n)
		errno = ETIMEDOUT;
	return n > 0;
}

bool talk_init(struct talk *t, int fd)
{
	*t = (struct talk){ .fd = fd, .room = FIRST_ROOM };
	t->buf = malloc(t->room);
	return t->buf;
}

void talk_free(struct talk *t)
{
	if (t->fd >= 0)
		close(t->fd);
	free(t->buf);
	*t = (struct talk){ .fd = -1 };
}

static bool fails(struct talk *t, const char *why)
{
	snprintf(t->reason, sizeof(t->reason), "%s", why);
	note_clean(t->reason);
	return false;
}

/* with errno */
static bool breaks(struct talk *t)
{
	return fails(t, errno == EINTR	     ? "it was to end"
			: errno == ETIMEDOUT ? "nothing was heard in time"
					     : strerror(errno));
}

static bool put(struct talk *t, const void *data, size_t bytes, int flags)
{
	const char *at = data;
	ssize_t n;

	while (bytes) {
		n = send(t->fd, at, bytes, MSG_DONTWAIT | MSG_NOSIGNAL | flags);
		if (n >= 0) {
			at += n;
			bytes -= (size_t)n;
		} else if (errno != EAGAIN ||
			   !talk_wait(t->fd, POLLOUT, SAY_MS)) {
			return breaks(t);
		}
	}
	return true;
}

bool talk_say(struct talk *t, json_t *o)
{
	char *text = o ? json_dumps(o, JSON_COMPACT) : NULL;
	bool sent = text ? put(t, text, strlen(text), MSG_MORE) &&
				    put(t, "\n", 1, 0)
			 : fails(t, "no memory");

	free(text);
	json_decref(o);
	return sent;
}

const char *talk_text(const json_t *o, const char *key)
{
	const char *t = json_string_value(json_object_get(o, key));

	return t ? t : "";
}

bool talk_refuse(struct talk *t, const char *fmt, ...)
{
	char why[512];
	va_list args;

	va_start(args, fmt);
	vsnprintf(why, sizeof(why), fmt, args);
	va_end(args);
	note_clean(why); /* or it is no string of JSON */
	return talk_say(t, json_pack("{sbss}", "ok", 0, "error", why));
}

/* more of what was said */
static bool fill(struct talk *t, int ms)
{
	ssize_t n;
	char *buf;

	if (t->at) {
		memmove(t->buf, t->buf + t->at, t->len);
		t->at = 0;
	}
	if (t->len == t->room) {
		if (t->room >= TALK_LINE)
			return fails(t, "a line is too long");
		buf = realloc(t->buf, t->room * 2);
		if (!buf)
			return fails(t, "no memory");
		t->buf = buf;
		t->room *= 2;
	}
	if (!talk_wait(t->fd, POLLIN, ms))
		return breaks(t);
	n = recv(t->fd, t->buf + t->len, t->room - t->len, MSG_DONTWAIT);
	if (n < 0 && errno != EAGAIN)
		return breaks(t);
	if (!n)
		return fails(t, "the connection has ended");
	if (n > 0)
		t->len += (size_t)n;
	return true;
}

json_t *talk_hear(struct talk *t, int ms)
{
	size_t seen = 0, bytes;
	json_error_t error;
	json_t *o;
	char *end;

	while (!(end = memchr(t->buf + t->at + seen, '\n', t->len - seen))) {
		seen = t->len;
		if (!fill(t, ms))
			return NULL;
	}
	bytes = (size_t)(end - (t->buf + t->at));
	o = json_loadb(t->buf + t->at, bytes, JSON_REJECT_DUPLICATES, &error);
	t->at += bytes + 1;
	t->len -= bytes + 1;
	if (json_is_object(o))
		return o;
	json_decref(o);
	fails(t, "what was heard is no object of JSON");
	return NULL;
}

json_t *talk_answered(struct talk *t, int ms)
{
	json_t *o = talk_hear(t, ms);
	const char *why;

	if (!o || json_is_true(json_object_get(o, "ok")))
		return o;
	why = json_string_value(json_object_get(o, "error"));
	fails(t, why ? why : "it has failed, and does not say why");
	json_decref(o);
	return NULL;
}

/* a frame of a stream: its length, and so many bytes; 0 at the end */
static bool put_frame(struct talk *t, const char *data, size_t bytes)
{
	uint32_t length = htonl((uint32_t)bytes);

	return put(t, &length, sizeof(length), bytes ? MSG_MORE : 0) &&
	       put(t, data, bytes, 0);
}

bool talk_give(struct talk *t, int from, uint64_t *bytes)
{
	char data[TALK_FRAME];
	ssize_t n;

	for (;;) {
		if (!talk_wait(from, POLLIN, -1))
			return breaks(t);
		n = read(from, data, sizeof(data));
		if (n < 0)
			return breaks(t);
		if (!put_frame(t, data, (size_t)n))
			return false;
		if (!n)
			return true;
		*bytes += (uint64_t)n;
	}
}

static bool get(struct talk *t, void *data, size_t bytes)
{
	while (t->len < bytes)
		if (!fill(t, SAY_MS))
			return false;
	memcpy(data, t->buf + t->at, bytes);
	t->at += bytes;
	t->len -= bytes;
	return true;
}

/* with errno */
static bool put_file(int to, const char *data, size_t bytes)
{
	ssize_t n;

	while (bytes) {
		if (!talk_wait(to, POLLOUT, SAY_MS))
			return false;
		n = write(to, data, bytes);
		if (n < 0 && errno != EAGAIN)
			return false;
		if (n > 0) {
			data += n;
			bytes -= (size_t)n;
		}
	}
	return true;
}

bool talk_take(struct talk *t, int to, uint64_t *bytes)
{
	char data[TALK_FRAME];
	uint32_t length;
	int err = 0;

	for (;;) {
		if (!get(t, &length, sizeof(length)))
			return false;
		length = ntohl(length);
		if (!length)
			break;
		if (length > sizeof(data))
			return fails(t, "a frame is too long");
		if (!get(t, data, length))
			return false;
		*bytes += length;
		if (!err && !put_file(to, data, length))
			err = errno;
	}
	errno = err;
	return !err || breaks(t);
}
