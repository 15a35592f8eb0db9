// SPDX-License-Identifier: GPL-2.0
/*
 * The daemon that moves containers: what migrctl and the movers of other hosts ask for, each
 * in a process of its own. It has the rights that migrd, through which others come, has not.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "history.h"
#include "hurry.h"
#include "listen.h"
#include "move.h"
#include "moves.h"
#include "note.h"
#include "peer.h"
#include "runtime.h"

enum {
	FIRST_MS = 10000, /* in which somebody says what he wants */
	LOOK_MS =
		1000, /* so often moves are looked for whose process has died */
	MOST_TOLD = 1000,
	/* then a target asks whether its source will say so, again and again */
	FORGOTTEN_S = 30,
	SELDOM_S = 3600,
};

/* ---- questions -------------------------------------------------------------- */

static void do_list(struct caller *c, const json_t *asked)
{
	char reason[256];
	json_t *all = runtime_list(reason, sizeof(reason));

	(void)asked;
	if (!all) {
		talk_refuse(&c->talk, "%s", reason);
		return;
	}
	json_object_set_new(all, "ok", json_true());
	talk_say(&c->talk, all);
}

static void add_status(struct journal *j, void *arg)
{
	json_t *o = json_copy(j->record);

	json_object_set_new(o, "state", json_string(state_name(j->state)));
	json_object_set_new(o, "works", json_boolean(journal_holder(j) != 0));
	json_array_append_new(arg, o);
}

static void do_status(struct caller *c, const json_t *asked)
{
	json_t *all = json_array();

	(void)asked;
	journal_each(add_status, all);
	talk_say(&c->talk, json_pack("{sbso}", "ok", 1, "moves", all));
}

static void do_log(struct caller *c, const json_t *asked)
{
	json_int_t n = json_integer_value(json_object_get(asked, "most"));

	history_tell(&c->talk, n > 0 && n < MOST_TOLD ? (int)n : MOST_TOLD);
}

/* ---- moves ------------------------------------------------------------------ */

static void do_migrate(struct caller *c, const json_t *asked)
{
	source_run(&c->talk, asked);
}

static void do_check(struct caller *c, const json_t *asked)
{
	source_check(&c->talk, asked);
}

static void do_reserve(struct caller *c, const json_t *asked)
{
	target_run(&c->talk, asked, c->from);
}

static void do_would(struct caller *c, const json_t *asked)
{
	target_would(&c->talk, asked);
}

static const struct word {
	const char *word;
	void (*f)(struct caller *c, const json_t *asked);
	bool of_hosts; /* and of nobody else */
} words[] = {
	{ "list", do_list, false },
	{ "status", do_status, false },
	{ "log", do_log, false },
	{ "abort", moves_abort, false },
	{ "recover", moves_recover, false },
	{ "migrate", do_migrate, false },
	{ "check", do_check, false },
	{ "outcome", moves_outcome, true },
	{ "forget", moves_forget, true },
	{ "reserve", do_reserve, true },
	{ "would", do_would, true },
};

static void obey(struct caller *c, const json_t *asked)
{
	const char *word = talk_text(asked, "do");

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strcmp(words[i].word, word)) {
			if (words[i].of_hosts && !c->is_host)
				break;
			words[i].f(c, asked);
			return;
		}
	talk_refuse(&c->talk, "'%.32s' is no word, or not for %s", word,
		    c->from);
}

/* ---- connections ------------------------------------------------------------ */

/* Who comes through migrd is announced by it; who does not is root here. */
static void serve(int fd)
{
	struct caller c = { .from = peer_self(), .is_host = true };
	json_t *asked = NULL, *who = NULL;

	if (talk_init(&c.talk, fd) &&
	    talk_say(&c.talk, json_pack("{sbsissss}", "ok", 1, "migr-mover",
					MOVER_VERSION, "host", peer_self(),
					"boot", journal_boot())))
		asked = talk_hear(&c.talk, FIRST_MS);
	if (asked && json_object_get(asked, "peer")) {
		who = asked;
		c.from = talk_text(who, "peer");
		c.is_host = json_is_false(json_object_get(who, "operator"));
		asked = talk_hear(&c.talk, FIRST_MS);
	}
	note_of(c.from);
	if (asked)
		obey(&c, asked);
	json_decref(asked);
	json_decref(who);
	talk_free(&c.talk);
}

static sigset_t signals; /* as they were */
static int listener = -1, signalled = -1;

static bool becomes_child(void)
{
	pid_t pid = fork();

	if (pid < 0)
		note("fork: %s", strerror(errno));
	if (pid)
		return false;
	close(listener);
	close(signalled);
	sigprocmask(SIG_SETMASK, &signals, NULL);
	return true;
}

static void let_in(void)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

	if (fd < 0)
		return;
	if (becomes_child()) {
		serve(fd);
		exit(0);
	}
	close(fd);
}

/* ---- moves without a process -------------------------------------------------- */

static void go_on(const char *id)
{
	struct move m = { 0 };

	move_init(&m);
	talk_hold_signals();
	if (!journal_open(&m.journal, id) || !move_go_on(&m))
		return;
	if (state_is_last(m.journal.state)) {
		if (m.journal.role == MOVE_SOURCE)
			source_forget(&m);
		else
			target_forget(&m);
		return;
	}
	note("%s: its process has died in the state %s", m.name,
	     state_name(m.journal.state));
	if (m.journal.role == MOVE_SOURCE)
		source_recover(&m);
	else
		target_recover(&m);
}

static void look_at(struct journal *j, void *arg)
{
	(void)arg;
	/* the source of one that is over tells the target so, in its time */
	if ((state_is_last(j->state) && j->role == MOVE_TARGET &&
	     !journal_is_due(j, FORGOTTEN_S, SELDOM_S)) ||
	    journal_holder(j) || !becomes_child())
		return;
	go_on(journal_text(j, "id"));
	exit(0);
}

static void bury(void)
{
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
}

static bool hold_signals(void)
{
	const int all[] = { SIGCHLD, SIGINT, SIGTERM };
	sigset_t held;

	sigemptyset(&held);
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		signal(all[i], SIG_DFL);
		sigaddset(&held, all[i]);
	}
	sigprocmask(SIG_BLOCK, &held, &signals);
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		sigdelset(&signals, all[i]);
	signal(SIGPIPE, SIG_IGN);
	signalled = signalfd(-1, &held, SFD_CLOEXEC | SFD_NONBLOCK);
	return signalled >= 0;
}

/* Moves go on when it ends: another one finds them. */
static void run(void)
{
	struct pollfd p[] = { { .fd = listener, .events = POLLIN },
			      { .fd = signalled, .events = POLLIN } };
	struct signalfd_siginfo info;

	journal_sweep();
	for (;;) {
		/* of a daemon before this one there may be some, too, that are no children */
		journal_each(look_at, NULL);
		hurry_mend();
		if (poll(p, 2, LOOK_MS) < 0)
			continue;
		while (read(signalled, &info, sizeof(info)) == sizeof(info)) {
			if (info.ssi_signo != SIGCHLD)
				return;
			bury();
		}
		if (p[0].revents)
			let_in();
	}
}

static int usage(FILE *f, int code)
{
	fprintf(f, "usage: migr-mover -k KEY -c CERT -a CA [-p PORT] "
		   "[-s SOCKET] [-d FOLDER]\n");
	return code;
}

int main(int argc, char **argv)
{
	const char *at = "/run/migrctl/sock";
	int option;

	while ((option = getopt(argc, argv, "hk:c:a:p:s:d:")) != -1) {
		switch (option) {
		case 'h':
			return usage(stdout, 0);
		case 'k':
		case 'c':
		case 'a':
			tls_file(&peer_files, option, optarg);
			break;
		case 'p':
			peer_port = optarg;
			break;
		case 's':
			at = optarg;
			break;
		case 'd':
			journal_moves = optarg;
			break;
		default:
			return usage(stderr, 2);
		}
	}
	if (!tls_has_all(&peer_files) || optind != argc ||
	    strlen(journal_moves) > 80)
		return usage(stderr, 2);
	note_as("migr-mover");
	umask(077);
	mkdir("/run/migrctl", 0700);
	mkdir(journal_moves, 0700);
	listener = listen_at_path(at, 0600);
	if (listener < 0 || !hold_signals())
		return 1;
	note("listens at %s", at);
	run();
	note("ends");
	return 0;
}
