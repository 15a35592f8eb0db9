// SPDX-License-Identifier: GPL-2.0
/*
 * Each host is this one, and its name is n2; but for those that begin with "no", or are in
 * the file GONE, and n1 and those of 10.10.8.0/24 and 10.10.9.0/24, which are others
 */
#include <dlfcn.h>
#include <netdb.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bool is_gone(const char *node)
{
	FILE *f = getenv("GONE") ? fopen(getenv("GONE"), "r") : NULL;
	char name[256];
	bool found = false;

	while (f && !found && fscanf(f, "%255s", name) == 1)
		found = !strcmp(name, node);
	if (f)
		fclose(f);
	return found;
}

int getaddrinfo(const char *node, const char *service,
		const struct addrinfo *hints, struct addrinfo **all)
{
	int (*real)(const char *, const char *, const struct addrinfo *,
		    struct addrinfo **) = dlsym(RTLD_NEXT, "getaddrinfo");

	if (hints->ai_flags & AI_PASSIVE) /* a daemon's own */
		return real(node, service, hints, all);
	if (!strncmp(node, "no", 2) || is_gone(node))
		return EAI_NONAME;
	if (!strncmp(node, "10.10.8.", 8))
		return real("127.0.0.8", service, hints, all);
	return real(strncmp(node, "10.10.9.", 8) && strcmp(node, "n1")
			    ? "127.0.0.1"
			    : "127.0.0.9",
		    service, hints, all);
}

int gethostname(char *name, size_t bytes)
{
	strncpy(name, "n2", bytes);
	return 0;
}
