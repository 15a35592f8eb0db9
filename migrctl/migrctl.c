// SPDX-License-Identifier: GPL-2.0
/*
 * Moves containers: asks the agent of a host, and tells what it says.
 */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "flame.h"
#include "listen.h"
#include "peer.h"
#include "show.h"
#include "talk.h"

#define SOCKET "/run/migrctl/sock"

/* exit codes */
enum {
	DONE = 0,
	FAILED = 1, /* it was stopped, and runs on where it was */
	USAGE = 2,
	REFUSED = 3, /* it was not stopped */
	NOT_WHOLE =
		4, /* it runs there, but something is missing, or left here */
	DOUBT = 5, /* nobody here knows where it runs */
};

struct options {
	const char *on; /* the host whose agent is asked; NULL: this one's */
	const char *to, *fenced, *pre_copy;
	const char *svg; /* a file for a picture of the timing, or NULL */
	bool json, timing;
};

static int complain(const char *what, const char *why)
{
	fprintf(stderr, "migrctl: %s: %s\n", what, why);
	return REFUSED;
}

/* Over a Unix socket the first words are the mover's; over TLS they have been heard. */
static bool reach(struct talk *t, const struct options *o)
{
	int fd;

	if (o->on)
		return peer_dial(t, o->on, NULL);
	fd = dial_path(SOCKET);
	if (fd >= 0)
		return talk_init(t, fd) && peer_greeted(t, NULL);
	*t = (struct talk){ .fd = -1 };
	snprintf(t->reason, sizeof(t->reason), SOCKET ": %s", strerror(errno));
	return false;
}

static void print(const json_t *o)
{
	json_dumpf(o, stdout, JSON_COMPACT);
	putchar('\n');
	fflush(stdout);
}

/* what the answer to a question of one line is; asked is given back */
static json_t *ask(struct talk *t, const struct options *o, json_t *asked)
{
	const char *where = o->on ? o->on : peer_self();
	json_t *said = NULL;

	if (!reach(t, o))
		json_decref(asked);
	else if (talk_say(t, asked))
		said = talk_answered(t, -1);
	if (!said)
		complain(where, t->reason);
	return said;
}

static int question(const struct options *o, json_t *asked,
		    void (*show)(const json_t *said))
{
	struct talk t;
	json_t *said = ask(&t, o, asked);

	if (said && (o->json || !show))
		print(said);
	else if (said)
		show(said);
	json_decref(said);
	talk_free(&t);
	return said ? DONE : REFUSED;
}

/* ---- commands ---------------------------------------------------------------- */

static int do_list(const struct options *o, const char *name)
{
	(void)name;
	return question(o, json_pack("{ss}", "do", "list"), show_list);
}

static int do_status(const struct options *o, const char *name)
{
	(void)name;
	return question(o, json_pack("{ss}", "do", "status"), show_status);
}

static int do_log(const struct options *o, const char *name)
{
	(void)name;
	return question(o, json_pack("{ss}", "do", "log"), show_log);
}

static int do_abort(const struct options *o, const char *name)
{
	return question(o, json_pack("{ssss}", "do", "abort", "name", name),
			show_nothing);
}

static int do_check(const struct options *o, const char *name)
{
	return question(o,
			json_pack("{ssssss}", "do", "check", "name", name, "to",
				  o->to),
			show_nothing);
}

static int do_recover(const struct options *o, const char *name)
{
	return question(o,
			json_pack("{ssssss}", "do", "recover", "name", name,
				  "fenced", o->fenced),
			show_nothing);
}

static int outcome(const struct options *o, const json_t *said)
{
	const char *why = json_string_value(json_object_get(said, "error"));

	if (o->json)
		print(said);
	else if (json_is_true(json_object_get(said, "ok")))
		show_moved(said, o->timing);
	if (o->svg && json_object_get(said, "steps") &&
	    !flame_draw(o->svg, said))
		complain(o->svg, strerror(errno));
	if (json_is_true(json_object_get(said, "ok"))) {
		why = json_string_value(json_object_get(said, "warning"));
		if (why && !o->json)
			complain("not all is as it should be", why);
		return why ? NOT_WHOLE : DONE;
	}
	if (!o->json)
		complain("not moved", why ? why : "nobody says why");
	return json_is_true(json_object_get(said, "stopped")) ? FAILED
							      : REFUSED;
}

/* until it is over; ^C aborts it, if that can be done still */
static int follow(struct talk *t, const struct options *o, const char *name)
{
	bool asked = false;
	json_t *said;
	int code;

	for (;;) {
		said = talk_hear(t, -1);
		if (said && json_object_get(said, "ok")) {
			code = outcome(o, said);
			json_decref(said);
			return code;
		}
		if (said) {
			if (o->json)
				print(said);
			else
				show_phase(said);
			json_decref(said);
		} else if (talk_is_ended() && !asked) {
			talk_hold_signals(); /* once more, and it is left alone */
			asked = true;
			do_abort(o, name);
		} else {
			complain("the agent", t->reason);
			fprintf(stderr,
				"migrctl: whether %s has moved is told "
				"by migrctl status, and log\n",
				name);
			return DOUBT;
		}
	}
}

static json_t *migration(const struct options *o, const char *name)
{
	json_t *asked = json_pack("{ssssss}", "do", "migrate", "name", name,
				  "to", o->to);
	char *end;
	long n;

	if (!o->pre_copy)
		return asked;
	n = strtol(o->pre_copy, &end, 10);
	json_object_set_new(asked, "pre_copy",
			    *end || !*o->pre_copy ? json_string(o->pre_copy)
						  : json_integer(n));
	return asked;
}

static int do_migrate(const struct options *o, const char *name)
{
	json_t *asked = migration(o, name);
	struct talk t;
	int code;

	talk_hold_signals();
	if (!reach(&t, o)) {
		json_decref(asked);
		code = complain(o->on ? o->on : peer_self(), t.reason);
	} else if (talk_say(&t, asked))
		code = follow(&t, o, name);
	else
		code = complain(o->on ? o->on : peer_self(), t.reason);
	talk_free(&t);
	return code;
}

/* ---- the command line --------------------------------------------------------- */

static int usage(FILE *f, int code)
{
	fprintf(f,
		"usage: migrctl [OPTION]... migrate NAME --to HOST [--from HOST]\n"
		"                          [--pre-copy[=ROUNDS|auto]] [--timing[=SVG]]\n"
		"       migrctl [OPTION]... check NAME --to HOST [--from HOST]\n"
		"       migrctl [OPTION]... abort NAME | recover NAME --fenced HOST\n"
		"       migrctl [OPTION]... list | status | log\n"
		"options: --on HOST, --json, -k KEY -c CERT -a CA, -p PORT\n");
	return code;
}

static const struct command {
	const char *name;
	int (*f)(const struct options *o, const char *name);
	bool of_one, to, fenced;
} commands[] = {
	{ "list", do_list, false, false, false },
	{ "status", do_status, false, false, false },
	{ "log", do_log, false, false, false },
	{ "abort", do_abort, true, false, false },
	{ "check", do_check, true, true, false },
	{ "recover", do_recover, true, false, true },
	{ "migrate", do_migrate, true, true, false },
};

static int run(const struct options *o, char **words, int n)
{
	const struct command *c;

	for (size_t i = 0; n && i < sizeof(commands) / sizeof(commands[0]);
	     i++) {
		c = &commands[i];
		if (strcmp(c->name, words[0]) != 0)
			continue;
		if (n != 1 + c->of_one || !c->to != !o->to ||
		    !c->fenced != !o->fenced)
			break;
		return c->f(o, c->of_one ? words[1] : NULL);
	}
	return usage(stderr, USAGE);
}

/* Who this is, if nobody says: who moves containers, or else this host */
static void find_files(void)
{
	static char files[3][300];
	const char *who = "/etc/migrd/operator";

	if (peer_files.key || peer_files.cert || peer_files.ca)
		return;
	snprintf(files[0], sizeof(files[0]), "%s.key", who);
	if (access(files[0], R_OK)) {
		who = "/etc/migrd/host";
		snprintf(files[0], sizeof(files[0]), "%s.key", who);
	}
	snprintf(files[1], sizeof(files[1]), "%s.crt", who);
	snprintf(files[2], sizeof(files[2]), "/etc/migrd/ca.crt");
	peer_files = (struct tls_files){ files[0], files[1], files[2] };
}

int main(int argc, char **argv)
{
	static const struct option all[] = {
		{ "from", required_argument, NULL, 'f' },
		{ "on", required_argument, NULL, 'f' },
		{ "to", required_argument, NULL, 't' },
		{ "fenced", required_argument, NULL, 'F' },
		{ "pre-copy", optional_argument, NULL, 'P' },
		{ "timing", optional_argument, NULL, 'T' },
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	struct options o = { 0 };
	int option;

	while ((option = getopt_long(argc, argv, "hk:c:a:p:", all, NULL)) != -1)
		switch (option) {
		case 'h':
			return usage(stdout, DONE);
		case 'k':
		case 'c':
		case 'a':
			tls_file(&peer_files, option, optarg);
			break;
		case 'p':
			peer_port = optarg;
			break;
		case 'f':
			o.on = optarg;
			break;
		case 't':
			o.to = optarg;
			break;
		case 'F':
			o.fenced = optarg;
			break;
		case 'P':
			o.pre_copy = optarg ? optarg : "auto";
			break;
		case 'T':
			o.timing = true;
			o.svg = optarg;
			break;
		case 'j':
			o.json = true;
			break;
		default:
			return usage(stderr, USAGE);
		}
	signal(SIGPIPE, SIG_IGN);
	find_files();
	return run(&o, argv + optind, argc - optind);
}
