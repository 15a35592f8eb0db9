// SPDX-License-Identifier: GPL-2.0
/*
 * Each host is this one, and its name is n2; but for those that begin with "no"
 */
#include <dlfcn.h>
#include <netdb.h>
#include <string.h>
#include <unistd.h>

int getaddrinfo(const char *node, const char *service,
		const struct addrinfo *hints, struct addrinfo **all)
{
	int (*real)(const char *, const char *, const struct addrinfo *,
		    struct addrinfo **) = dlsym(RTLD_NEXT, "getaddrinfo");

	if (!strncmp(node, "no", 2))
		return EAI_NONAME;
	return real("127.0.0.1", service, hints, all);
}

int gethostname(char *name, size_t bytes)
{
	strncpy(name, "n2", bytes);
	return 0;
}
