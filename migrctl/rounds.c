// SPDX-License-Identifier: GPL-2.0
#include "rounds.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	SMALL = 1 << 20, /* bytes that are not worth a round */
};

static int number_in(const json_t *o, int least, int most)
{
	json_int_t n = json_integer_value(o);

	return json_is_integer(o) && n >= least && n <= most ? (int)n : -1;
}

bool rounds_wanted(struct rounds *r, const json_t *asked)
{
	const json_t *copies = json_object_get(asked, "pre_copy"),
		     *budget = json_object_get(asked, "budget");
	const char *word = json_string_value(copies);

	*r = (struct rounds){ 0 };
	if (word && !strcmp(word, "auto"))
		r->most = ROUNDS_AUTO;
	else if (copies)
		r->most = number_in(copies, 0, ROUNDS_MOST);
	if (budget)
		r->budget = number_in(budget, 1, BUDGET_MOST);
	return r->most >= 0 && r->budget >= 0 &&
	       (!budget || r->most == ROUNDS_AUTO);
}

double rounds_estimate(const struct rounds *r)
{
	return r->rate > 0 ? 1000 * (double)r->bytes / r->rate : 0;
}

/* Who writes as fast as it is sent has as much in each. */
bool rounds_go_on(const struct rounds *r)
{
	if (r->most != ROUNDS_AUTO || !r->n)
		return r->n < r->most;
	if (r->n == ROUNDS_MOST || r->bytes < SMALL ||
	    (r->budget && rounds_estimate(r) <= r->budget))
		return false;
	return r->n == 1 || r->bytes < r->before / 5 * 4;
}

bool rounds_make(struct rounds *r, struct move *m, char *folder, size_t bytes)
{
	char path[JOURNAL_PATH + 64];

	r->n++;
	snprintf(folder, bytes, "rounds/%d", r->n);
	snprintf(path, sizeof(path), "%s/%s", m->images, folder);
	return move_drive(m, "round", path, NULL, NULL);
}

/* how many bytes they have, which are kept no longer */
static bool drop_pages(DIR *d, uint64_t *bytes)
{
	struct dirent *de;
	struct stat st;
	int fd;

	while ((de = readdir(d))) {
		if (strncmp(de->d_name, "pages-", 6) != 0)
			continue;
		fd = openat(dirfd(d), de->d_name,
			    O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0)
			return false;
		if (fstat(fd, &st) || ftruncate(fd, 0)) {
			close(fd);
			return false;
		}
		close(fd);
		*bytes += (uint64_t)st.st_size;
	}
	return true;
}

bool rounds_sent(struct rounds *r, struct move *m, double s)
{
	char path[JOURNAL_PATH + 64];
	uint64_t bytes = 0;
	bool done;
	DIR *d;

	snprintf(path, sizeof(path), "%s/rounds/%d", m->images, r->n);
	d = opendir(path);
	done = d && drop_pages(d, &bytes);
	if (!done)
		move_fails(m, "%s: %s", path, strerror(errno));
	if (d)
		closedir(d);
	r->before = r->bytes;
	r->bytes = bytes;
	if (s > 0 && (double)bytes / s > r->rate)
		r->rate = (double)bytes / s;
	return done;
}
