// SPDX-License-Identifier: GPL-2.0
#include "rounds.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum {
	SMALL = 1 << 20, /* bytes that are not worth a round */
};

int rounds_wanted(const json_t *asked)
{
	const json_t *o = json_object_get(asked, "pre_copy");

	if (!o)
		return 0;
	if (json_is_string(o) && !strcmp(json_string_value(o), "auto"))
		return ROUNDS_AUTO;
	if (json_is_integer(o) && json_integer_value(o) >= 0 &&
	    json_integer_value(o) <= ROUNDS_MOST)
		return (int)json_integer_value(o);
	return -1;
}

/* Who writes as fast as it is sent has as much in each. */
bool rounds_go_on(const struct rounds *r)
{
	if (!r->n)
		return true;
	if (r->most != ROUNDS_AUTO)
		return r->n < r->most;
	if (r->n == ROUNDS_MOST || r->bytes < SMALL)
		return false;
	return r->n == 1 || r->bytes < r->before / 5 * 4;
}

bool rounds_make(struct move *m, const char *number)
{
	char spec[JOURNAL_PATH + 64];

	snprintf(spec, sizeof(spec), "%s/rounds/%s", m->images, number);
	return move_drive(m, "round", spec, NULL, NULL);
}

bool rounds_measure(struct rounds *r, struct move *m)
{
	char path[JOURNAL_PATH + 64];
	struct dirent *de;
	struct stat st;
	DIR *d;

	r->n++;
	r->before = r->bytes;
	r->bytes = 0;
	snprintf(path, sizeof(path), "%s/rounds/%d", m->images, r->n);
	d = opendir(path);
	if (!d)
		return move_fails(m, "%s: %s", path, strerror(errno));
	while ((de = readdir(d)))
		if (!strncmp(de->d_name, "pages-", 6) &&
		    !fstatat(dirfd(d), de->d_name, &st, 0))
			r->bytes += (uint64_t)st.st_size;
	closedir(d);
	return true;
}
