// SPDX-License-Identifier: GPL-2.0
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "folders.h"
#include "listen.h"
#include "note.h"
#include "process.h"
#include "server.h"
#include "shared.h"

/* They are read from a descriptor, so that nothing else goes before them. */
static bool hold_signals(struct server *s)
{
	const int all[] = { SIGCHLD, SIGHUP, SIGINT, SIGTERM };
	sigset_t held;

	sigemptyset(&held);
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		sigaddset(&held, all[i]);
		signal(all[i], SIG_DFL);
	}
	sigprocmask(SIG_BLOCK, &held, &s->signals);
	/* whoever has started us */
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		sigdelset(&s->signals, all[i]);
	signal(SIGPIPE, SIG_IGN);
	s->signalled = signalfd(-1, &held, SFD_CLOEXEC | SFD_NONBLOCK);
	return s->signalled >= 0;
}

static void load(struct server *s, const struct tls_files *files)
{
	char reason[256];
	SSL_CTX *ctx = tls_context(true, files, reason, sizeof(reason)),
		*client =
			ctx ? tls_context(false, files, reason, sizeof(reason))
			    : NULL;

	if (!client) {
		note("%s", reason);
		SSL_CTX_free(ctx);
		return;
	}
	SSL_CTX_free(s->session.ctx); /* children have theirs */
	SSL_CTX_free(s->session.client);
	s->session.ctx = ctx;
	s->session.client = client;
}

/* false if it is over */
static bool obey(struct server *s, const struct tls_files *files)
{
	struct signalfd_siginfo info;

	while (read(s->signalled, &info, sizeof(info)) == sizeof(info))
		switch (info.ssi_signo) {
		case SIGCHLD:
			server_bury(s);
			break;
		case SIGHUP:
			note("certificates are read again");
			load(s, files);
			break;
		default:
			return false;
		}
	return true;
}

static void serve(struct server *s, const struct tls_files *files)
{
	struct pollfd p[] = {
		{ .fd = s->listener, .events = POLLIN },
		{ .fd = s->signalled, .events = POLLIN },
		{ .fd = s->session.woken, .events = POLLIN },
		{ .fd = s->meetings, .events = POLLIN },
	};
	eventfd_t n;

	while (obey(s, files)) {
		eventfd_read(s->session.woken, &n);
		server_admit(s);
		if (poll(p, 4, server_patience(s)) <= 0)
			continue;
		if (p[0].revents)
			server_accept(s);
		if (p[3].revents)
			server_meet(s);
	}
	note("ends");
	server_end(s);
}

static int usage(FILE *f, int code)
{
	fprintf(f, "usage: migrd -k KEY -c CERT -a CA [-l ADDRESS] [-p PORT] "
		   "[-s SOCKET] [-m SOCKET] FOLDER...\n");
	return code;
}

int main(int argc, char **argv)
{
	const char *address = NULL, *port = "18620", *meetings_at = NULL;
	struct tls_files files = { NULL, NULL, NULL };
	static struct server s;
	static char host[256];
	int option;

	while ((option = getopt(argc, argv, "hk:c:a:l:p:s:m:")) != -1) {
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
		case 's':
			meetings_at = optarg;
			break;
		case 'm':
			s.session.mover = optarg;
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
	    !server_init(&s) || !hold_signals(&s)) {
		note("%s", strerror(errno));
		return 1;
	}
	host[strcspn(host, ".")] = 0;
	note_clean(host);
	process_set_host(host);
	s.session.host = host;
	s.session.port = port;
	s.session.patterns = argv + optind;
	load(&s, &files);
	if (!s.session.ctx)
		return 1;
	s.listener = listen_on_port(address, port);
	if (s.listener < 0)
		return 1; /* and another daemon has its socket */
	s.meetings = meetings_at ? listen_at_path(meetings_at, 0666) : -1;
	if (meetings_at && s.meetings < 0)
		return 1;
	note("listens on port %s", port);
	serve(&s, &files);
	SSL_CTX_free(s.session.ctx);
	SSL_CTX_free(s.session.client);
	return 0;
}
