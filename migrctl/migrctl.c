// SPDX-License-Identifier: GPL-2.0
/*
 * Moves containers: asks the agent of a host, and tells what it says.
 */
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent.h"
#include "drain.h"
#include "peer.h"
#include "show.h"

static int question(const struct options *o, json_t *asked,
		    void (*show)(const json_t *said))
{
	struct talk t;
	json_t *said = agent_ask(&t, o, asked);

	if (!said)
		complain(agent_host(o), t.reason);
	else if (o->json)
		print_json(said);
	else
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

static int do_migrate(const struct options *o, const char *name)
{
	struct outcome r;

	talk_hold_signals();
	agent_move(o, name, o->to, &r);
	return r.code;
}

/* ---- the command line --------------------------------------------------------- */

static int usage(FILE *f, int code)
{
	fprintf(f,
		"usage: migrctl [OPTION]... migrate NAME --to HOST [--from HOST]\n"
		"                          [--pre-copy[=ROUNDS|auto]] [--budget MS] [--timing[=SVG]]\n"
		"       migrctl [OPTION]... drain [NODE] --to HOST[,HOST]... [--from NODE]\n"
		"                          [--pre-copy[=ROUNDS|auto]] [--budget MS] [--timing]\n"
		"       migrctl [OPTION]... check NAME --to HOST [--from HOST]\n"
		"       migrctl [OPTION]... abort NAME | recover NAME --fenced HOST\n"
		"       migrctl [OPTION]... list | status | log\n"
		"options: --on HOST, --json, -k KEY -c CERT -a CA, -p PORT, -s SOCKET, -h, --help\n");
	return code;
}

/* A picture is of one move. */
static int do_drain(const struct options *o, const char *node)
{
	struct options its = *o;

	if ((node && o->on) || o->svg)
		return usage(stderr, USAGE);
	if (node)
		its.on = node;
	return drain(&its);
}

static const struct command {
	const char *name;
	int (*f)(const struct options *o, const char *name);
	int least, most; /* words behind it */
	bool to, fenced;
} commands[] = {
	{ "list", do_list, 0, 0, false, false },
	{ "status", do_status, 0, 0, false, false },
	{ "log", do_log, 0, 0, false, false },
	{ "abort", do_abort, 1, 1, false, false },
	{ "check", do_check, 1, 1, true, false },
	{ "recover", do_recover, 1, 1, false, true },
	{ "migrate", do_migrate, 1, 1, true, false },
	{ "drain", do_drain, 0, 1, true, false },
};

static int run(const struct options *o, char **words, int n)
{
	const struct command *c;

	for (size_t i = 0; n && i < sizeof(commands) / sizeof(commands[0]);
	     i++) {
		c = &commands[i];
		if (strcmp(c->name, words[0]) != 0)
			continue;
		if (n <= c->least || n > 1 + c->most || !c->to != !o->to ||
		    !c->fenced != !o->fenced)
			break;
		return c->f(o, n > 1 ? words[1] : NULL);
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
		{ "budget", required_argument, NULL, 'B' },
		{ "timing", optional_argument, NULL, 'T' },
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	struct options o = { .socket = "/run/migrctl/sock" };
	int option;

	while ((option = getopt_long(argc, argv, "hk:c:a:p:s:", all, NULL)) !=
	       -1)
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
		case 's':
			o.socket = optarg;
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
		case 'B':
			o.budget = optarg;
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
	if (o.budget && !o.pre_copy)
		o.pre_copy = "auto";
	signal(SIGPIPE, SIG_IGN);
	find_files();
	return run(&o, argv + optind, argc - optind);
}
