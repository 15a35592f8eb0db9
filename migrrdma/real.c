// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "real.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static struct real functions;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/*
 * In the library itself and what it depends on, so nothing that is preloaded is
 * found. The application may have loaded it without showing it to others.
 */
static void load(void)
{
	void *lib = dlopen("libibverbs.so.1", RTLD_NOW);

	if (!lib) {
		fprintf(stderr, "libmigrrdma: %s\n", dlerror());
		abort();
	}
#define LOAD(type, name, parameters) functions.name = dlsym(lib, #name);
	REAL_FUNCTIONS(LOAD)
#undef LOAD
}

const struct real *real(void)
{
	pthread_once(&once, load);
	return &functions;
}
