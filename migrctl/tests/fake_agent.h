/* SPDX-License-Identifier: GPL-2.0 */
/*
 * An agent that is a thread of a test, and says what that wants
 */
#ifndef FAKE_AGENT_H
#define FAKE_AGENT_H

#include <stdbool.h>

/* What it says if it is asked for that; without a rule, that all goes well. */
struct rule {
	const char *word, *name, *to; /* NULL: any */
	const char *says; /* lines; NULL: it never says anything again */
	bool interrupts;  /* who has asked, by SIGINT, when that is said */
	const char *then; /* when another question was answered; or NULL */
};

#define OK "{\"ok\": true}\n"
#define MOVED "{\"ok\": true, \"name\": \"c\", \"runs_on\": \"there\"}\n"
#define NO(why) "{\"ok\": false, \"error\": \"" why "\"}\n"
#define STOPPED(why) \
	"{\"ok\": false, \"stopped\": true, \"error\": \"" why "\"}\n"
#define PHASE "{\"phase\": \"prepare\"}\n"
#define ONE(name) "{\"name\": \"" name "\", \"pid\": 7}"
#define LIST(...) "{\"ok\": true, \"containers\": [" __VA_ARGS__ "]}\n"

/* "check c1 n2; migrate c1 n2; ...": what it was asked for since agent_obeys() */
extern char agent_asked[4096];

/* It listens there. */
void agent_start(const char *path);

/* from now on; the last one has no word */
void agent_obeys(const struct rule *rules);

#endif
