// SPDX-License-Identifier: GPL-2.0
/*
 * libhold_words.so - preloaded into migrd, holds a word for a process back
 *
 * Where the folder HOLD_WORDS has a file with the name of a word, such as "replace", the
 * next line for a process that begins with it is not sent yet: the file becomes WORD.held,
 * and the line goes on when that is removed. So a test may have somebody die then and there.
 * If there is something in the file, that is in the command line of the process.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Return: how many bytes, with a 0 behind them */
static size_t read_file(const char *path, char *text, size_t room)
{
	FILE *f = fopen(path, "re");
	size_t n = f ? fread(text, 1, room - 1, f) : 0;

	if (f)
		fclose(f);
	text[n] = 0;
	return n;
}

static bool is_meant(pid_t pid, const char *file)
{
	char path[64], what[256], line[4096];
	size_t n;

	n = read_file(file, what, sizeof(what));
	snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
	return memmem(line, read_file(path, line, sizeof(line)), what, n);
}

static void hold(pid_t pid, const char *text, size_t bytes)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz";
	const char *folder = getenv("HOLD_WORDS");
	char word[32], at[256], held[sizeof(at) + 8];
	size_t n = bytes < sizeof(word) ? bytes : sizeof(word) - 1;

	memcpy(word, text, n);
	word[n] = 0;
	n = strspn(word, letters);
	if (!folder || !n)
		return;
	snprintf(at, sizeof(at), "%s/%.*s", folder, (int)n, word);
	snprintf(held, sizeof(held), "%s.held", at);
	if (access(at, F_OK) || !is_meant(pid, at) || rename(at, held))
		return;
	while (!access(held, F_OK))
		usleep(50000);
}

ssize_t send(int fd, const void *text, size_t bytes, int flags)
{
	static ssize_t (*real)(int, const void *, size_t, int);
	struct ucred peer;
	socklen_t length = sizeof(peer);

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "send");
	/* TLS has another one */
	if (!getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) &&
	    peer.pid > 0)
		hold(peer.pid, text, bytes);
	return real(fd, text, bytes, flags);
}
