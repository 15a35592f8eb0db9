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

void agent_start(void);
void agent_end(void);

/* what migrctl has said, stdout and stderr */
extern char agent_heard[65536];

/* migrctl with these words, of an agent with these rules, of which the last one has no word: its
 * exit code
 */
int runs(const struct rule *rules, const char *words);

/* Has migrctl said that? */
bool says(const char *text);

#endif
