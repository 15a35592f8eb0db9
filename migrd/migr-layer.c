// SPDX-License-Identifier: GPL-2.0
/*
 * Standard input says what becomes of the container, and standard output how far it is.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "layer.h"

enum {
	BUDGET_MS = 20000,
	ARRIVE_MS = 30000, /* in which a process listens that was restored */
	BUSY_MS = 120000,  /* in which another move may have what we need */
};

static void say(const char *word)
{
	puts(word);
	fflush(stdout); /* its end is seen by the next read */
}

/* a line without its end; NULL at the end */
static const char *hear(char *line, size_t bytes)
{
	if (!fgets(line, (int)bytes, stdin))
		return NULL;
	line[strcspn(line, "\n")] = 0;
	return line;
}

static void tell_timing(const struct layer *l)
{
	printf("{\"check_ms\": %.1f, \"suspend_ms\": %.1f, "
	       "\"replace_partners_ms\": %.1f, \"hold_ms\": %.1f, "
	       "\"restore_replace_ms\": %.1f, \"exchange_ms\": %.1f, "
	       "\"connect_ms\": %.1f, \"resume_ms\": %.1f, \"taped\": %lld, "
	       "\"late\": %lld}\n",
	       l->check, l->suspend, l->replace_partners, l->hold, l->restore,
	       l->exchange, l->connect, l->resume, l->taped, l->late);
}

/* One of its processes has done there what it was told. */
static void tell_where(const struct layer *l)
{
	for (size_t i = 0; i < l->movers; i++)
		if (l->procs[i]->open) {
			printf("at %s\n", l->procs[i]->host);
			return;
		}
}

static bool start(struct layer *l, bool timing)
{
	char text[MOST_HOST + 16];
	const char *line = hear(text, sizeof(text)), *host = l->local;
	const char *other = NULL;
	bool good;

	if (!line)
		other = l->target;
	else if (!strncmp(line, "restored ", 9) && line[9])
		host = line + 9;
	else if (strcmp(line, "aborted"))
		fprintf(stderr, "migr-layer: '%s' is taken for aborted\n",
			line);
	good = layer_start(l, host, other, ARRIVE_MS);
	if (!line)
		tell_where(l);
	if (!good)
		return false;
	if (timing)
		tell_timing(l);
	say("done");
	return true;
}

static void end(struct layer *l)
{
	for (size_t i = 0; i < l->n; i++) {
		struct layer_proc *p = l->procs[i];

		layer_close(p);
		layer_names_free(&p->names);
		json_decref(p->answer);
		free(p->reached);
		free(p->text);
		free(p);
	}
	layer_free_others(l);
	layer_hosts_end(l);
}

/* false if nobody waits for us any more */
static bool wait_some_time(void)
{
	return layer_is_waited_for(
		200 + (int)((long long)(layer_clock() * 1000) % 800));
}

/*
 * Another move may have one of them, even both ends at once of each other: who lets go, and
 * comes again after some time of its own, gets them in the end.
 */
static bool check(struct layer *l)
{
	const struct layer empty = *l;
	long long until = now_ms() + BUSY_MS;
	bool waits = false;

	while (!layer_check(l)) {
		if (!l->is_busy || now_ms() >= until)
			return false;
		if (!waits)
			fprintf(stderr, "migr-layer: waits: %s\n", l->reason);
		waits = true;
		end(l);
		*l = empty;
		if (!wait_some_time())
			return layer_fail(l, "nobody waits for it");
	}
	return true;
}

/* Nothing has been stopped if the first line does not come. */
static bool run(struct layer *l, bool timing)
{
	const char *line;
	char text[64];

	if (!check(l))
		return false;
	say("checked");
	line = hear(text, sizeof(text));
	if (line && !strcmp(line, "record")) {
		if (!layer_record(l, stdout) || !layer_prepare(l))
			return false;
		layer_tell_ahead(l, false, stdout);
		say("recorded");
		line = hear(text, sizeof(text));
	}
	if (line && l->told_ahead && !strncmp(line, "made ", 5)) {
		if (!layer_lead(l, line + 5, stdin))
			return false;
		say("led");
		line = hear(text, sizeof(text));
	}
	if (!line)
		return true;
	if (strcmp(line, "stop"))
		return layer_fail(l, "nobody knows what that is: %s", line);
	if (!layer_stop(l))
		return false;
	if (l->ahead)
		layer_tell_ahead(l, true, stdout);
	say("stopped");
	return start(l, timing);
}

static int usage(FILE *f, int code)
{
	fprintf(f, "usage: migr-layer -k KEY -c CERT -a CA [-p PORT] "
		   "[-b BUDGET_MS] [-t] CONTAINER [HOST]\n");
	return code;
}

static bool budget(const char *word, unsigned int *ms)
{
	unsigned long n;
	char *rest;

	errno = 0;
	n = strtoul(word, &rest, 10);
	*ms = (unsigned int)n;
	return !errno && !*rest && rest != word && n && n <= MOST_BUDGET_MS;
}

int main(int argc, char **argv)
{
	static struct layer l = { .port = "18620", .budget = BUDGET_MS };
	struct tls_files files = { NULL, NULL, NULL };
	bool timing = false, good;
	char reason[256];
	int option;

	while ((option = getopt(argc, argv, "hk:c:a:p:b:t")) != -1) {
		switch (option) {
		case 'h':
			return usage(stdout, 0);
		case 'k':
		case 'c':
		case 'a':
			tls_file(&files, option, optarg);
			break;
		case 'p':
			l.port = optarg;
			break;
		case 'b':
			if (!budget(optarg, &l.budget))
				return usage(stderr, 2);
			break;
		case 't':
			timing = true;
			break;
		default:
			return usage(stderr, 2);
		}
	}
	if (!tls_has_all(&files) || argc - optind < 1 || argc - optind > 2 ||
	    !*argv[optind] || strlen(argv[optind]) > MOST_CONTAINER)
		return usage(stderr, 2);
	l.container = argv[optind];
	l.target = argv[optind + 1];
	signal(SIGPIPE, SIG_IGN);
	l.ctx = tls_context(false, &files, reason, sizeof(reason));
	if (!l.ctx || gethostname(l.local, sizeof(l.local) - 1)) {
		fprintf(stderr, "migr-layer: %s\n",
			l.ctx ? strerror(errno) : reason);
		return 1;
	}
	good = run(&l, timing);
	if (!good)
		fprintf(stderr, "failed %s\n", l.reason);
	end(&l);
	SSL_CTX_free(l.ctx);
	return !good;
}
