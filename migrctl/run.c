// SPDX-License-Identifier: GPL-2.0
#include "run.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "note.h"
#include "talk.h"

enum {
	MOST_OUTPUT = 4 << 20,
	LONG_MS = 600000,
	PIPE_BYTES = 1 << 20,
};

static void end_with(int fd)
{
	if (fd >= 0)
		close(fd);
}

static _Noreturn void become(char *const argv[], char *const env[], int in,
			     int out, int errors, int how)
{
	sigset_t none;

	if (how & RUN_DETACHED)
		setsid();
	for (int s = 1; s < NSIG; s++)
		signal(s, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0 ||
	    dup2(errors, STDERR_FILENO) < 0)
		_exit(127);
	for (; env && *env; env++)
		putenv(*env);
	execvp(argv[0], argv);
	dprintf(STDERR_FILENO, "%s: %s\n", argv[0], strerror(errno));
	_exit(127);
}

/* @mine and @its: both ends of a pipe, or of nothing */
static bool join(bool piped, bool writes, int *mine, int *its)
{
	int p[2];

	*mine = -1;
	if (!piped) {
		*its = open("/dev/null", O_RDWR | O_CLOEXEC);
		return *its >= 0;
	}
	if (pipe2(p, O_CLOEXEC))
		return false;
	/* more than usual, or what it has: to wake somebody up takes longer than many bytes */
	fcntl(p[0], F_SETPIPE_SZ, PIPE_BYTES);
	*mine = p[writes ? 1 : 0];
	*its = p[writes ? 0 : 1];
	if (writes)
		fcntl(*mine, F_SETFL, O_NONBLOCK);
	return true;
}

bool run_start(struct run *r, char *const argv[], char *const env[],
	       const char *errors, int how)
{
	int log = open(errors, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	int in = -1, out = -1, err;

	/*
	 * Not close-on-exec: whatever that program starts has it, too, and the pipe ends with the
	 * last of them, also if the one that waits for the others is killed.
	 */
	if (how & RUN_TO)
		out = dup(r->out);
	*r = (struct run){ .in = -1, .out = -1 };
	if (log >= 0 && join(how & RUN_IN, true, &r->in, &in) &&
	    (how & RUN_TO ? out >= 0
			  : join(how & RUN_OUT, false, &r->out, &out)))
		r->pid = fork();
	else
		r->pid = -1;
	if (!r->pid)
		become(argv, env, in, out, log, how);
	err = errno;
	end_with(log);
	end_with(in);
	end_with(out);
	if (r->pid > 0)
		return true;
	end_with(r->in);
	end_with(r->out);
	*r = (struct run){ .in = -1, .out = -1 };
	errno = err;
	return false;
}

bool run_wait(struct run *r, int ms, int *status)
{
	int fd = (int)syscall(SYS_pidfd_open, r->pid, 0);
	bool ended = fd >= 0 && talk_wait(fd, POLLIN, ms);

	end_with(fd);
	if (!ended)
		kill(r->pid, SIGKILL);
	while (waitpid(r->pid, status, 0) < 0 && errno == EINTR)
		;
	end_with(r->in);
	end_with(r->out);
	*r = (struct run){ .in = -1, .out = -1 };
	return ended;
}

void run_errors(char *path, size_t bytes)
{
	snprintf(path, bytes, "/run/migrctl/errors.%d", getpid());
}

void run_reason(const char *errors, int status, char *reason, size_t bytes)
{
	FILE *f = fopen(errors, "re");
	bool is_ours = false;
	char line[512];

	if (WIFSIGNALED(status))
		snprintf(reason, bytes, "signal %d", WTERMSIG(status));
	else
		snprintf(reason, bytes, "exit code %d", WEXITSTATUS(status));
	while (f && !is_ours && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = 0;
		is_ours = strstr(line, "rdma:");
		if (*line)
			snprintf(reason, bytes, "%s", line);
	}
	if (f)
		fclose(f);
	note_clean(reason);
}

/* Neither is so long that it fills a pipe, or the other one is not there yet. */
static bool give(int fd, const char *text)
{
	size_t bytes = strlen(text);
	ssize_t n;

	for (; bytes; text += n, bytes -= (size_t)n) {
		if (!talk_wait(fd, POLLOUT, LONG_MS))
			return false;
		n = write(fd, text, bytes);
		if (n < 0)
			return false;
	}
	return true;
}

static char *take(int fd)
{
	size_t len = 0, room = 65536;
	char *text = malloc(room), *more;
	ssize_t n;

	while (text && talk_wait(fd, POLLIN, LONG_MS)) {
		n = read(fd, text + len, room - len - 1);
		if (n <= 0) {
			text[len] = 0;
			return text;
		}
		len += (size_t)n;
		if (len < room - 1)
			continue;
		more = room < MOST_OUTPUT ? realloc(text, room *= 2) : NULL;
		if (!more)
			break;
		text = more;
	}
	free(text);
	return NULL;
}

static json_t *parse(char *text)
{
	json_error_t error;
	json_t *o =
		text ? json_loads(text, JSON_REJECT_DUPLICATES, &error) : NULL;

	free(text);
	if (json_is_object(o))
		return o;
	json_decref(o);
	return NULL;
}

bool run_json(char *const argv[], const char *errors, json_t *input,
	      json_t **output, char *reason, size_t bytes)
{
	char *text = input ? json_dumps(input, JSON_COMPACT) : NULL;
	struct run r;
	int status = 0;
	bool done;

	json_decref(input);
	if (output)
		*output = NULL;
	if (!run_start(&r, argv, NULL, errors,
		       (text ? RUN_IN : 0) | (output ? RUN_OUT : 0))) {
		snprintf(reason, bytes, "%s: %s", argv[0], strerror(errno));
		free(text);
		return false;
	}
	talk_is_deaf(true);
	done = !text || (give(r.in, text) && give(r.in, "\n"));
	free(text);
	end_with(r.in);
	r.in = -1;
	if (done && output)
		*output = parse(take(r.out));
	done = run_wait(&r, LONG_MS, &status) && !status &&
	       (!output || *output);
	talk_is_deaf(false);
	if (!done) {
		run_reason(errors, status, reason, bytes);
		if (output) {
			json_decref(*output);
			*output = NULL;
		}
	}
	return done;
}
