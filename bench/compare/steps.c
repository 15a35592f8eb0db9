// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE /* dladdr() */
#include "steps.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

/* did it stop at a mark, and not after a step? */
static bool at_mark(pid_t child)
{
	siginfo_t info;

	MUST(!ptrace(PTRACE_GETSIGINFO, child, NULL, &info));
	return info.si_code == SI_KERNEL;
}

/* Until its next stop by a trap; other signals are the child's. False: it has ended. */
static bool next_stop(pid_t child, int how, int *status)
{
	int sig = 0;

	do {
		MUST(!ptrace(how, child, NULL, (void *)(intptr_t)sig));
		MUST(waitpid(child, status, 0) == child);
		if (!WIFSTOPPED(*status))
			return false;
		sig = WSTOPSIG(*status);
	} while (sig != SIGTRAP);
	return true;
}

FILE *steps_list;

/* What comes next: the child has the libraries where we have them. */
static void list(pid_t child, unsigned int number)
{
	struct user_regs_struct regs;
	Dl_info info;

	MUST(!ptrace(PTRACE_GETREGS, child, NULL, &regs));
	if (dladdr((void *)(uintptr_t)regs.rip, &info) && info.dli_fname)
		fprintf(steps_list, "%u %#jx %s\n", number,
			(uintmax_t)(regs.rip - (uintptr_t)info.dli_fbase),
			info.dli_fname);
}

int steps_of(int (*run)(void *arg), void *arg,
	     void (*told)(unsigned int number, unsigned int instructions))
{
	unsigned int n, number = 0;
	int status;
	pid_t child = fork();

	MUST(child >= 0);
	if (!child) {
		MUST(!ptrace(PTRACE_TRACEME, 0, NULL, NULL) && !raise(SIGSTOP));
		exit(run(arg));
	}
	MUST(waitpid(child, &status, 0) == child && WIFSTOPPED(status));
	while (next_stop(child, PTRACE_CONT, &status)) {
		MUST(at_mark(child));
		for (n = 0;; n++) {
			if (steps_list)
				list(child, number);
			if (!next_stop(child, PTRACE_SINGLESTEP, &status) ||
			    at_mark(child))
				break;
		}
		MUST(WIFSTOPPED(status));
		told(number++, n);
	}
	return WIFEXITED(status) && !WEXITSTATUS(status) ? (int)number : -1;
}

/* --- the control socket --- */

static int control = -1;

static void dial(const char *dir)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };

	control = socket(AF_UNIX, SOCK_STREAM, 0);
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/%d.sock", dir,
		 getpid());
	MUST(control >= 0 &&
	     !connect(control, (struct sockaddr *)&addr, sizeof(addr)));
}

const char *word(const char *dir, const char *format, ...)
{
	static char answer[4096];
	char line[128];
	va_list args;
	size_t n;

	if (control < 0)
		dial(dir);
	va_start(args, format);
	n = (size_t)vsnprintf(line, sizeof(line) - 1, format, args);
	va_end(args);
	MUST(n < sizeof(line) - 1);
	line[n++] = '\n';
	MUST(write(control, line, n) == (ssize_t)n);
	n = 0;
	do {
		MUST(n < sizeof(answer) - 1 &&
		     read(control, answer + n, 1) == 1);
	} while (answer[n++] != '\n');
	answer[n] = 0;
	if (strncmp(answer, "{\"ok\": true", 11)) {
		fprintf(stderr, "%.*s: %s", (int)strcspn(line, "\n"), line,
			answer);
		exit(1);
	}
	return answer;
}

void word_end(void)
{
	MUST(!close(control));
	control = -1;
}
