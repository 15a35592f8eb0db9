// SPDX-License-Identifier: GPL-2.0
#include "fake_agent.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "listen.h"
#include "talk.h"

#define HELLO "{\"ok\": true, \"migr-mover\": 1, \"host\": \"n1\"}\n"

char agent_asked[4096], agent_heard[65536];

static char dir[] = "/tmp/agent.XXXXXX", at[64];
static int listener;
static const struct rule *rules;
static bool dead;

static void put(int fd, const char *text)
{
	if (send(fd, text, strlen(text), MSG_NOSIGNAL) < 0)
		CHECK(errno == EPIPE || errno == ECONNRESET);
}

static void note_asked(const json_t *o)
{
	size_t n = strlen(agent_asked);
	json_t *rounds = json_object_get(o, "pre_copy");

	snprintf(agent_asked + n, sizeof(agent_asked) - n, "%s%s %s %s%s",
		 n ? "; " : "", talk_text(o, "do"), talk_text(o, "name"),
		 talk_text(o, "to"),
		 json_is_integer(rounds)  ? " in rounds"
		 : json_is_string(rounds) ? " by itself"
					  : "");
}

static bool is_that(const char *wanted, const json_t *o, const char *key)
{
	return !wanted || !strcmp(wanted, talk_text(o, key));
}

static const struct rule *rule_for(const json_t *o)
{
	static const struct rule check = { .says = OK },
				 migrate = { .says = PHASE MOVED };

	for (const struct rule *r = rules; r->word; r++)
		if (is_that(r->word, o, "do") && is_that(r->name, o, "name") &&
		    is_that(r->to, o, "to"))
			return r;
	return strcmp(talk_text(o, "do"), "migrate") ? &check : &migrate;
}

static void interrupt(int fd)
{
	struct ucred who;
	socklen_t n = sizeof(who);

	MUST(!getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n));
	kill(who.pid, SIGINT);
}

static void serve(void);

static void answer(struct talk *t, const struct rule *r)
{
	if (!r->says) {
		dead = true;
		return;
	}
	put(t->fd, r->says);
	if (r->interrupts)
		interrupt(t->fd);
	if (r->then) {
		serve();
		put(t->fd, r->then);
	} else if (r->interrupts) {
		json_decref(talk_hear(t, -1)); /* until it hangs up */
	}
}

static void serve(void)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	struct talk t;
	json_t *o = NULL;

	MUST(fd >= 0 && talk_init(&t, fd));
	if (!dead) {
		put(fd, HELLO);
		o = talk_hear(&t, -1);
	}
	if (o) {
		note_asked(o);
		answer(&t, rule_for(o));
	}
	json_decref(o);
	talk_free(&t);
}

static void *serves(void *arg)
{
	(void)arg;
	for (;;)
		serve();
	return NULL;
}

void agent_start(void)
{
	pthread_t thread;

	MUST(mkdtemp(dir));
	snprintf(at, sizeof(at), "%s/sock", dir);
	listener = listen_at_path(at, 0600);
	MUST(listener >= 0 && !fcntl(listener, F_SETFL, 0));
	MUST(!pthread_create(&thread, NULL, serves, NULL));
	pthread_detach(thread);
}

void agent_end(void)
{
	unlink(at);
	CHECK(!rmdir(dir));
}

int runs(const struct rule *r, const char *words)
{
	char command[4096];
	size_t n;
	FILE *f;
	int status;

	rules = r;
	dead = false;
	*agent_asked = 0;
	snprintf(command, sizeof(command), "exec %s -s %s %s 2>&1", MIGRCTL, at,
		 words);
	f = popen(command, "re");
	MUST(f);
	n = fread(agent_heard, 1, sizeof(agent_heard) - 1, f);
	agent_heard[n] = 0;
	status = pclose(f);
	printf("# %s\n%s(%s)\n", words, agent_heard, agent_asked);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool says(const char *text)
{
	return strstr(agent_heard, text);
}
