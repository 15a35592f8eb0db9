// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "folders.h"
#include "note.h"
#include "process.h"
#include "server.h"
#include "shared.h"

static volatile sig_atomic_t is_over, new_files, child_ended;

static void on_signal(int signal)
{
	switch (signal) {
	case SIGCHLD:
		child_ended = 1;
		break;
	case SIGHUP:
		new_files = 1;
		break;
	default:
		is_over = 1;
	}
}

/* They come only while it waits. */
static void hold_signals(sigset_t *before)
{
	const int all[] = { SIGCHLD, SIGHUP, SIGINT, SIGTERM };
	struct sigaction act = { .sa_handler = on_signal };
	sigset_t held;

	sigemptyset(&held);
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		sigaddset(&held, all[i]);
		sigaction(all[i], &act, NULL);
	}
	sigprocmask(SIG_BLOCK, &held, before);
	/* whoever has started us */
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		sigdelset(before, all[i]);
	signal(SIGPIPE, SIG_IGN);
}

static void load(struct server *s, const struct tls_files *files)
{
	char reason[256];
	SSL_CTX *ctx = tls_context(true, files, reason, sizeof(reason));

	if (!ctx) {
		note("%s", reason);
		return;
	}
	SSL_CTX_free(s->session.ctx); /* children have theirs */
	s->session.ctx = ctx;
}

static void serve(struct server *s, const struct tls_files *files)
{
	struct pollfd p = { .fd = s->listener, .events = POLLIN };

	while (!is_over) {
		if (ppoll(&p, 1, NULL, &s->signals) > 0)
			server_accept(s);
		if (child_ended) {
			child_ended = 0;
			server_bury(s);
		}
		if (new_files) {
			new_files = 0;
			note("certificates are read again");
			load(s, files);
		}
	}
	note("ends");
	server_end(s);
}

static int usage(FILE *f, int code)
{
	fprintf(f,
		"usage: migrd -k KEY -c CERT -a CA [-l ADDRESS] [-p PORT] FOLDER...\n");
	return code;
}

int main(int argc, char **argv)
{
	const char *address = NULL, *port = "18620";
	struct tls_files files = { NULL, NULL, NULL };
	static struct server s;
	static char host[256];
	int option;

	while ((option = getopt(argc, argv, "hk:c:a:l:p:")) != -1) {
		switch (option) {
		case 'h':
			return usage(stdout, 0);
		case 'k':
		case 'c':
		case 'a':
			tls_file(&files, option, optarg);
			break;
		case 'l':
			address = optarg;
			break;
		case 'p':
			port = optarg;
			break;
		default:
			return usage(stderr, 2);
		}
	}
	if (!tls_has_all(&files) || optind == argc)
		return usage(stderr, 2);
	for (int i = optind; i < argc; i++)
		if (!folders_is_pattern(argv[i])) {
			note("%s: no absolute path of a folder, without . and ..",
			     argv[i]);
			return 2;
		}
	if (gethostname(host, sizeof(host) - 1) || !shared_init() ||
	    !server_init(&s)) {
		note("%s", strerror(errno));
		return 1;
	}
	host[strcspn(host, ".")] = 0;
	note_clean(host);
	process_set_host(host);
	s.session.host = host;
	s.session.patterns = argv + optind;
	hold_signals(&s.signals);
	load(&s, &files);
	if (!s.session.ctx)
		return 1;
	s.listener = server_listen(address, port);
	if (s.listener < 0)
		return 1;
	note("listens on port %s", port);
	serve(&s, &files);
	SSL_CTX_free(s.session.ctx);
	return 0;
}
