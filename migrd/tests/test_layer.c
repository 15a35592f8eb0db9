// SPDX-License-Identifier: GPL-2.0
/*
 * The move of a container by the layer. Its process has the QPs 17, of which the peer is
 * 27, and 18 and 19, which lead to each other.
 */
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rig.h"

#define GID "::ffff:10.10.0.2"
#define QP(qpn, real, peer, more)                                             \
	"{\"qpn\": " qpn ", \"real\": " real ", \"type\": \"RC\", "           \
	"\"state\": \"RTS\", \"gid\": \"" GID "\", \"peer\": {\"qpn\": " peer \
	", \"gid\": \"" GID "\"" more "}}"
#define AT(real) ", \"real\": " real ", \"real_gid\": \"" GID "\""
#define NAMES(qps, keys) \
	"{\"ok\": true, \"qps\": [" qps "], \"keys\": [" keys "]}\n"
#define KEY(v, r) "{\"virtual\": " v ", \"real\": " r "}"

#define MOVER                                                                  \
	NAMES(QP("17", "117", "27", AT("127")) ", " QP("18", "18", "19",       \
						       "") ", " QP("19", "19", \
								   "18", ""),  \
	      KEY("4660", "9029"))
#define PARTNER                                                                                 \
	NAMES(QP("27", "127", "17", AT("117")) ", " QP(                                         \
		      "28", "28", "99",                                                         \
		      "") ", {\"qpn\": 5, \"real\": 5, \"type\": \"UD\", \"state\": \"INIT\"}", \
	      "")

static struct fake mover, partner;
static int to, from;
static pid_t layer;
static char heard[4096];

static void file(pid_t pid, const char *word, const char *text)
{
	char path[PATH_MAX];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%d.%s", dir, pid, word);
	if (!text) {
		unlink(path);
		return;
	}
	f = fopen(path, "w");
	MUST(f && fputs(text, f) >= 0 && !fclose(f));
}

static void qps(const char *text)
{
	char path[PATH_MAX];
	FILE *f;

	snprintf(path, sizeof(path), "%s/qps", dir);
	f = fopen(path, "w");
	MUST(f && fputs(text, f) >= 0 && !fclose(f));
}

/* what it was told, since the last time that somebody has asked */
static const char *was_told(const struct fake *f)
{
	static char text[2][4096];
	static int which;
	char path[PATH_MAX];
	size_t n = 0;
	FILE *file;

	which = !which;
	snprintf(path, sizeof(path), "%s/%d.said", dir, f->pid);
	file = fopen(path, "r");
	if (file) {
		n = fread(text[which], 1, sizeof(text[which]) - 1, file);
		fclose(file);
		unlink(path);
	}
	text[which][n] = 0;
	return text[which];
}

static void begin(void)
{
	char key[PATH_MAX], cert[PATH_MAX], ca[PATH_MAX];
	int in[2], out[2];

	snprintf(key, sizeof(key), "%s/n1.key", dir);
	snprintf(cert, sizeof(cert), "%s/n1.crt", dir);
	snprintf(ca, sizeof(ca), "%s/ca.crt", dir);
	was_told(&mover);
	was_told(&partner);
	MUST(!pipe2(in, O_CLOEXEC) && !pipe2(out, O_CLOEXEC));
	layer = fork();
	if (!layer) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		dup2(out[1], 2);
		execl(MIGR_LAYER, "migr-layer", "-k", key, "-c", cert, "-a", ca,
		      "-p", daemon_port(), "-b", "1000", "-t", "box", NULL);
		_exit(127);
	}
	MUST(layer > 0 && !close(in[0]) && !close(out[1]));
	to = in[1];
	from = out[0];
}

/* the next line is this */
static bool hears(const char *line)
{
	size_t n = 0;

	while (n < sizeof(heard) - 1 && read(from, heard + n, 1) == 1 &&
	       heard[n] != '\n')
		n++;
	heard[n] = 0;
	return !strncmp(heard, line, strlen(line));
}

static void tell(const char *line)
{
	MUST(write(to, line, strlen(line)) > 0 || errno == EPIPE);
}

/* its exit code */
static int ends(void)
{
	int status;

	if (to >= 0)
		close(to);
	MUST(waitpid(layer, &status, 0) == layer);
	close(from);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void start_both(void)
{
	char text[128];

	fake_start(&mover, LAYER, "ctr/box/run/migrrdma");
	fake_start(&partner, LAYER, "ctr/other/run/migrrdma");
	snprintf(text, sizeof(text), "127 %d\n18 %d\n19 %d\n", partner.pid,
		 mover.pid, mover.pid);
	qps(text);
	file(mover.pid, "names", MOVER);
	file(partner.pid, "names", PARTNER);
}

/* what both are told when the container is there again */
static void check_start(void)
{
	char line[1024];
	const char *told = was_told(&mover);

	snprintf(line, sizeof(line),
		 "replace 1000\nnames\n"
		 "keys %s\nkey %s 4660 9029\nkeys %s\n"
		 "peer 17 127 " GID " %s\n"
		 "peer 18 19 " GID " %s\npeer 19 18 " GID " %s\n"
		 "connect\nresume\n",
		 mover.id, mover.id, partner.id, partner.id, mover.id,
		 mover.id);
	CHECK(strstr(told, line), "%s", told);
	told = was_told(&partner);
	snprintf(line, sizeof(line),
		 "keys %s\nkey %s 4660 9029\npeer 27 117 " GID " %s\n"
		 "connect\nresume\n",
		 mover.id, mover.id, mover.id);
	CHECK(strstr(told, line), "%s", told);
}

static void check_ended(void)
{
	CHECK(fake_ended(&partner) == 'r');
	CHECK(fake_ended(&mover) == 'r');
}

static void test_move(const char *line)
{
	const char *told;

	printf("%s", *line ? line : "the end\n");
	begin();
	CHECK(hears("checked"), "%s", heard);
	CHECK(!strcmp(was_told(&mover), "names\n"));
	CHECK(!strcmp(was_told(&partner), "names\n"));
	tell("stop\n");
	CHECK(hears("stopped"), "%s", heard);
	CHECK(fake_ended(&mover) == 'r');
	told = was_told(&mover);
	CHECK(!strcmp(told, "suspend 1000\nnames\nhold 1000 600\n"), "%s",
	      told);
	/* of its QPs only that */
	told = was_told(&partner);
	CHECK(!strcmp(told, "suspend 1000\nnames\nreplace 1000 27\n"), "%s",
	      told);
	if (*line)
		tell(line);
	else
		close(to), to = -1;
	CHECK(hears("{\"check_ms\": "), "%s", heard);
	CHECK(hears("done"), "%s", heard);
	CHECK(!ends());
	check_ended();
	check_start();
}

/* A partner does what it must not. What was suspended goes on by the end. */
static void refused(const char *what, const char *reason, bool early)
{
	printf("refused: %s\n", what);
	begin();
	if (!early) {
		CHECK(hears("checked"), "%s", heard);
		tell("stop\n");
	}
	CHECK(hears("failed ") && strstr(heard, reason), "%s", heard);
	CHECK(ends() == 1);
	if (early)
		CHECK(!strstr(was_told(&mover), "suspend"));
}

static void test_refused(void)
{
	char text[128];

	qps("");
	refused("no such QP", "the peer of QP 17, QP 127 at " GID ": there is",
		true);
	snprintf(text, sizeof(text), "127 %d\n", getpid());
	qps(text);
	refused("not under the layer", "is not under the layer", true);
	CHECK(fake_ended(&mover) == 'r' && fake_ended(&mover) == 'r');
	snprintf(text, sizeof(text), "127 %d\n18 %d\n19 %d\n", partner.pid,
		 mover.pid, mover.pid);
	qps(text);

	file(partner.pid, "names", NAMES(QP("27", "127", "17", AT("118")), ""));
	refused("another peer", "it is not connected to that", true);
	check_ended();
	file(partner.pid, "names", NAMES("", ""));
	refused("no QP", "it is not connected to that", true);
	check_ended();
	file(partner.pid, "names", PARTNER);
	file(mover.pid, "suspend",
	     "{\"ok\": false, \"errno\": 110, \"reason\": \"\\u001bno\"}\n");
	refused("suspend", "suspend 1000: ?no", false);
	check_ended();
	file(mover.pid, "suspend", NULL);
}

/* New QPs at both ends, and nobody is left in ERR. */
static void test_undone(void)
{
	file(mover.pid, "hold", "{\"ok\": false, \"reason\": \"verbs\"}\n");
	refused("hold", "hold 1000 600: verbs", false);
	check_ended();
	check_start();
	file(mover.pid, "hold", NULL);
	file(partner.pid, "replace",
	     "{\"ok\": false, \"reason\": \"MRs of dma-bufs\"}\n");
	puts("replace");
	begin();
	CHECK(hears("checked"));
	tell("stop\n");
	/* It is said twice: then the partner counts as one that is gone. */
	CHECK(hears("migr-layer: 10.10.0.2: process "), "%s", heard);
	CHECK(hears("failed ") && strstr(heard, "dma-bufs"), "%s", heard);
	CHECK(ends() == 1);
	check_ended();
	CHECK(strstr(was_told(&mover), "connect\nresume\n"));
	file(partner.pid, "replace", NULL);
}

static void test_garbage(void)
{
	static const char *const all[] = {
		"nothing\n",
		"{}\n",
		"{\"ok\": 1}\n",
		"{\"ok\": true}\n",
		"{\"ok\": true, \"qps\": 1, \"keys\": []}\n",
		"{\"ok\": true, \"qps\": [1], \"keys\": []}\n",
		NAMES("", "1"),
		NAMES("", KEY("-1", "1")),
		NAMES("", KEY("1", "4294967296")),
		NAMES(QP("16777216", "1", "1", ""), ""),
		NAMES(QP("1", "-1", "1", ""), ""),
		NAMES(QP("1", "1", "\"1\"", ""), ""),
		NAMES(QP("1", "1", "1", AT("16777216")), ""),
		NAMES(QP("1", "1", "1", ", \"real\": 1"), ""),
		NAMES(QP("17", "1", "1", "") ", " QP("17", "2", "1", ""), ""),
		"{\"ok\": true, \"qps\": [{\"qpn\": 1, \"real\": 1, "
		"\"state\": \"RTS\", \"gid\": \"x\"}], \"keys\": []}\n",
	};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		file(partner.pid, "names", all[i]);
		refused(all[i], partner.id, true);
		check_ended();
	}
	file(partner.pid, "names", PARTNER);
}

int main(void)
{
	rig_begin();
	daemon_start("ctr/*/run/migrrdma", "none");
	start_both();
	test_move("restored n2\n");
	test_move("aborted\n");
	test_move("");
	test_refused();
	test_undone();
	test_garbage();
	test_move("restored n2\n");
	fake_kill(&mover);
	fake_kill(&partner);
	CHECK(!daemon_end());
	rig_end();
	return check_result();
}
