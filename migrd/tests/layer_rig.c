// SPDX-License-Identifier: GPL-2.0
#include "layer_rig.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

char heard[4096];
static int to, from;
static pid_t layer;

static void write_file(const char *name, const char *text)
{
	char path[PATH_MAX];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	if (!text) {
		unlink(path);
		return;
	}
	f = fopen(path, "w");
	MUST(f && fputs(text, f) >= 0 && !fclose(f));
}

void answers(const struct fake *f, const char *word, const char *text)
{
	char name[64];

	snprintf(name, sizeof(name), "%d.%s", f->pid, word);
	write_file(name, text);
}

void qps(const char *text)
{
	write_file("qps", text);
}

void gone(const char *hosts)
{
	write_file("gone", hosts);
}

/* what is in a file, which is none then */
static void take_file(const char *path, char *text, size_t bytes)
{
	FILE *f = fopen(path, "r");
	size_t n = 0;

	if (f) {
		n = fread(text, 1, bytes - 1, f);
		fclose(f);
		unlink(path);
	}
	text[n] = 0;
}

const char *was_told(const struct fake *f)
{
	static char text[2][65536];
	static int which;
	char path[PATH_MAX];

	which = !which;
	snprintf(path, sizeof(path), "%s/%d.said", dir, f->pid);
	take_file(path, text[which], sizeof(text[which]));
	return text[which];
}

const char *was_asked(void)
{
	static char text[4096];
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/asked", dir);
	take_file(path, text, sizeof(text));
	return text;
}

void layer_begin(const char *target)
{
	char key[PATH_MAX], cert[PATH_MAX], ca[PATH_MAX], missing[PATH_MAX];
	int in[2], out[2];

	snprintf(key, sizeof(key), "%s/n1.key", dir);
	snprintf(cert, sizeof(cert), "%s/n1.crt", dir);
	snprintf(ca, sizeof(ca), "%s/ca.crt", dir);
	snprintf(missing, sizeof(missing), "%s/gone", dir);
	MUST(!pipe2(in, O_CLOEXEC) && !pipe2(out, O_CLOEXEC));
	layer = fork();
	if (!layer) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		dup2(out[1], 2);
		setenv("GONE", missing, 1);
		execl(MIGR_LAYER, "migr-layer", "-k", key, "-c", cert, "-a", ca,
		      "-p", daemon_port(), "-b", "1000", "-t", "box", target,
		      NULL);
		_exit(127);
	}
	MUST(layer > 0 && !close(in[0]) && !close(out[1]));
	to = in[1];
	from = out[0];
}

static bool next_line(void)
{
	size_t n = 0;

	while (n < sizeof(heard) - 1 && read(from, heard + n, 1) == 1 &&
	       heard[n] != '\n')
		n++;
	heard[n] = 0;
	return n;
}

bool layer_says(const char *line)
{
	next_line();
	return !strncmp(heard, line, strlen(line));
}

bool layer_says_some(const char *text)
{
	while (next_line()) {
		if (strstr(heard, text))
			return true;
		puts(heard);
	}
	return false;
}

void layer_tell(const char *line)
{
	MUST(write(to, line, strlen(line)) > 0 || errno == EPIPE);
}

void layer_hang_up(void)
{
	close(to);
	to = -1;
}

int layer_ends(void)
{
	int status;

	if (to >= 0)
		layer_hang_up();
	MUST(waitpid(layer, &status, 0) == layer);
	close(from);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
