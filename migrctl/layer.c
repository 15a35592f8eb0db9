// SPDX-License-Identifier: GPL-2.0
#include "layer.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "note.h"

static void path_of(const struct move *m, const char *file, char *path,
		    size_t bytes)
{
	snprintf(path, bytes, "%s/%s", m->images, file);
}

static bool fails(struct move *m, const char *what)
{
	static const char failed[] = "failed "; /* as migr-layer says it */
	const size_t n = sizeof(failed) - 1;
	char why[256];

	doors_reason(&m->layer, why, sizeof(why));
	return move_fails(m, "%s%s", what,
			  strncmp(why, failed, n) ? why : why + n);
}

bool layer_open(struct move *m, const char *verb, const char *arg,
		const char *done)
{
	path_of(m, "layer", m->layer_at, sizeof(m->layer_at));
	mkdir(m->layer_at, 0700);
	return move_open_doors(m, &m->layer, m->layer_at, verb, arg) &&
	       layer_does(m, NULL, done);
}

void layer_reopen(struct move *m)
{
	path_of(m, "layer", m->layer_at, sizeof(m->layer_at));
	doors_reopen(&m->layer, m->layer_at);
}

/* Who has ended has undone what it had done, and is told nothing more. */
static bool has_ended(struct move *m, const char *what)
{
	if (!doors_end(&m->layer, 0))
		return move_fails(
			m, "the layer says something else, or nothing in time");
	doors_close(&m->layer);
	return fails(m, what);
}

bool layer_waits(struct move *m)
{
	return !doors_broken(&m->layer) ||
	       has_ended(m, "who speaks to the layer has ended: ");
}

void layer_tell(struct move *m, const char *word)
{
	doors_tell(&m->layer, word);
}

bool layer_does(struct move *m, const char *word, const char *done)
{
	if (word)
		doors_tell(&m->layer, word);
	if (doors_said(&m->layer, done, WORK_MS))
		return true;
	if (talk_is_ended())
		return move_fails(m, "it was to end");
	return has_ended(m, "");
}

/* It is for the log: most of it has done no harm. */
static void note_complaints(const struct move *m)
{
	char path[sizeof(m->layer_at) + 16], line[512];
	FILE *f;

	snprintf(path, sizeof(path), "%s/complaints", m->layer_at);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = 0;
		note_clean(line);
		note("%s: %s", m->name, line);
	}
	if (f)
		fclose(f);
}

bool layer_leave(struct move *m, const char *word)
{
	bool good;

	if (m->layer.says < 0)
		return true;
	doors_tell(&m->layer, word);
	while (!doors_end(&m->layer, WORK_MS))
		note("%s: the layer does not come to its end", m->name);
	note_complaints(m);
	good = doors_succeeded(&m->layer);
	doors_close(&m->layer);
	return good || fails(m, "connections are lost: ");
}

json_t *layer_timing(const struct move *m)
{
	char path[sizeof(m->layer_at) + 16];
	json_error_t error;

	snprintf(path, sizeof(path), "%s/timing", m->layer_at);
	return json_load_file(path, JSON_REJECT_DUPLICATES, &error);
}

bool layer_has(const struct move *m, const char *file)
{
	char path[sizeof(m->images) + 32];

	path_of(m, file, path, sizeof(path));
	return !access(path, F_OK);
}

bool layer_give(struct move *m, const char *file)
{
	char path[sizeof(m->images) + 32];
	char *const argv[] = { "cat", path, NULL };

	path_of(m, file, path, sizeof(path));
	return move_give(m, argv);
}

/* no archive: the other end says what is in it, and not where that goes */
bool layer_take(struct move *m, const char *file)
{
	char path[sizeof(m->images) + 32];
	char *const argv[] = { "dd", "status=none", path, NULL };

	snprintf(path, sizeof(path), "of=%s/%s", m->images, file);
	return move_take(m, argv);
}
