// SPDX-License-Identifier: GPL-2.0
/*
 * libhold_words.so - preloaded into migrd, holds a word for a process back
 *
 * Where the folder HOLD_WORDS has a file with the name of a word, such as "replace", the
 * next line for a process that begins with it is not sent yet: the file becomes WORD.held,
 * and the line goes on when that is removed. So a test may have somebody die then and there.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static bool is_for_process(int fd)
{
	struct sockaddr addr;
	socklen_t bytes = sizeof(addr);

	return !getsockname(fd, &addr, &bytes) && addr.sa_family == AF_UNIX;
}

static void hold(const char *text, size_t bytes)
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
	if (rename(at, held))
		return;
	while (!access(held, F_OK))
		usleep(50000);
}

ssize_t send(int fd, const void *text, size_t bytes, int flags)
{
	static ssize_t (*real)(int, const void *, size_t, int);

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "send");
	if (is_for_process(fd))
		hold(text, bytes);
	return real(fd, text, bytes, flags);
}
