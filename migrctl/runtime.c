// SPDX-License-Identifier: GPL-2.0
#include "runtime.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "move.h"
#include "run.h"

enum {
	RUNTIMES = 2,
};

static const char *const runtimes[RUNTIMES] = { "migr-ctr", "migr-podman" };

const char *runtime_named(const char *name)
{
	if (!*name)
		return runtimes[0];
	for (int i = 0; i < RUNTIMES; i++)
		if (!strcmp(runtimes[i], name))
			return runtimes[i];
	return NULL;
}

/* What the first one has it has in a folder: nobody needs to be asked, which takes time. */
static bool is_first_ones(const char *container)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), MOVE_CONTAINERS "/%s/run", container);
	return !access(path, F_OK);
}

static bool owns(const char *runtime, const char *container)
{
	char *const argv[] = { (char *)runtime, "driver", (char *)container,
			       "owns", NULL };
	char errors[64], reason[256];
	bool does;

	run_errors(errors, sizeof(errors));
	does = run_json(argv, errors, NULL, NULL, reason, sizeof(reason));
	unlink(errors);
	return does;
}

const char *runtime_of(const char *container)
{
	if (is_first_ones(container))
		return runtimes[0];
	for (int i = 1; i < RUNTIMES; i++)
		if (owns(runtimes[i], container))
			return runtimes[i];
	return runtimes[0];
}

static bool add_list(const char *runtime, json_t *all, char *reason,
		     size_t bytes)
{
	char *const argv[] = { (char *)runtime, "list", NULL };
	char errors[64];
	json_t *its;
	bool done;

	run_errors(errors, sizeof(errors));
	done = run_json(argv, errors, NULL, &its, reason, bytes);
	unlink(errors);
	if (done)
		json_array_extend(all, json_object_get(its, "containers"));
	json_decref(its);
	return done;
}

json_t *runtime_list(char *reason, size_t bytes)
{
	json_t *all = json_array();

	for (int i = 0; i < RUNTIMES; i++)
		if (!add_list(runtimes[i], all, reason, bytes)) {
			json_decref(all);
			return NULL;
		}
	return json_pack("{so}", "containers", all);
}
