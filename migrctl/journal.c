// SPDX-License-Identifier: GPL-2.0
#include "journal.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

const char *journal_moves = "/run/migrctl/moves";

const char *journal_boot(void)
{
	static char boot[64];
	FILE *f;

	if (*boot)
		return boot;
	f = fopen("/proc/sys/kernel/random/boot_id", "re");
	if (f && fgets(boot, sizeof(boot), f))
		boot[strcspn(boot, "\n")] = 0;
	if (f)
		fclose(f);
	return boot;
}

bool journal_is_id(const char *id)
{
	return id && strlen(id) == JOURNAL_ID &&
	       strspn(id, "0123456789abcdef") == JOURNAL_ID;
}

void journal_make_id(char *id)
{
	unsigned char bytes[JOURNAL_ID / 2];

	if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
		abort();
	for (size_t i = 0; i < sizeof(bytes); i++)
		sprintf(id + i * 2, "%02x", bytes[i]);
}

static void path_of(const struct journal *j, const char *file, char *path)
{
	snprintf(path, JOURNAL_PATH + 32, "%s/%s", j->folder, file);
}

/* POSIX locks end with their process, and tell whose they are. */
static bool lock(struct journal *j)
{
	struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	char path[JOURNAL_PATH + 32];

	path_of(j, "lock", path);
	j->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (j->lock >= 0 && !fcntl(j->lock, F_SETLK, &whole))
		return true;
	if (j->lock >= 0)
		close(j->lock);
	j->lock = -1;
	return false;
}

pid_t journal_holder(const struct journal *j)
{
	struct flock whole = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	char path[JOURNAL_PATH + 32];
	pid_t pid = 0;
	int fd;

	if (j->lock >= 0)
		return getpid();
	path_of(j, "lock", path);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return 0;
	if (!fcntl(fd, F_GETLK, &whole) && whole.l_type != F_UNLCK)
		pid = whole.l_pid;
	close(fd);
	return pid;
}

/* @text: or NULL, and it is the record */
static bool replace(struct journal *j, const char *file, const char *text)
{
	char path[JOURNAL_PATH + 32], new[JOURNAL_PATH + 32];
	FILE *f;
	bool done;

	path_of(j, file, path);
	path_of(j, "new", new);
	f = fopen(new, "we");
	if (!f)
		return false;
	done = text ? fprintf(f, "%s\n", text) > 0
		    : !json_dumpf(j->record, f, JSON_COMPACT);
	return !fclose(f) && done && !rename(new, path);
}

bool journal_write(struct journal *j)
{
	return replace(j, "record", NULL);
}

/* The record was written when it was over, at the latest; and a clock that was set may say anything. */
bool journal_is_due(const struct journal *j, long first, long most)
{
	char path[JOURNAL_PATH + 32];
	struct stat record, state;
	long since, wait;

	path_of(j, "record", path);
	if (stat(path, &record))
		return false;
	path_of(j, "state", path);
	if (stat(path, &state))
		return false;
	wait = state.st_mtime - record.st_mtime;
	wait = wait < first ? first : wait > most ? most : wait;
	since = time(NULL) - state.st_mtime;
	return since < 0 || since >= wait;
}

void journal_renew(const struct journal *j)
{
	char path[JOURNAL_PATH + 32];

	path_of(j, "state", path);
	utimensat(AT_FDCWD, path, NULL, 0);
}

bool journal_set(struct journal *j, enum move_state state, const char *reason)
{
	if (!state_may_follow(j->role, j->state, state)) {
		errno = EPROTO;
		return false;
	}
	if (reason &&
	    (json_object_set_new(j->record, "reason", json_string(reason)) ||
	     !journal_write(j)))
		return false;
	if (!replace(j, "state", state_name(state)))
		return false;
	j->state = state;
	return true;
}

static void folder_of(struct journal *j, const char *id)
{
	snprintf(j->folder, sizeof(j->folder), "%s/%s", journal_moves, id);
}

bool journal_new(struct journal *j, enum move_role role, json_t *record)
{
	const char *id = json_string_value(json_object_get(record, "id"));

	*j = (struct journal){ .role = role,
			       .state = MOVE_PREPARING,
			       .record = record,
			       .lock = -1 };
	errno = EINVAL;
	if (!journal_is_id(id))
		goto fails;
	folder_of(j, id);
	if (mkdir(j->folder, 0700))
		goto fails;
	json_object_set_new(record, "role",
			    json_string(role == MOVE_SOURCE ? "source"
							    : "target"));
	if (lock(j) && journal_write(j) &&
	    replace(j, "state", state_name(MOVE_PREPARING)))
		return true;
	journal_remove(j);
	return false;
fails:
	journal_close(j);
	return false;
}

const char *journal_text(const struct journal *j, const char *key)
{
	const char *text = json_string_value(json_object_get(j->record, key));

	return text ? text : "";
}

static bool read_state(struct journal *j)
{
	char path[JOURNAL_PATH + 32], word[32] = "";
	FILE *f;

	path_of(j, "state", path);
	f = fopen(path, "re");
	if (!f)
		return false;
	if (fgets(word, sizeof(word), f))
		word[strcspn(word, "\n")] = 0;
	fclose(f);
	return state_of(word, &j->state);
}

static bool read_all(struct journal *j)
{
	char path[JOURNAL_PATH + 32];
	json_error_t error;

	json_decref(j->record);
	path_of(j, "record", path);
	j->record = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
	if (!j->record || !read_state(j))
		return false;
	j->role = !strcmp(journal_text(j, "role"), "source") ? MOVE_SOURCE
							     : MOVE_TARGET;
	return true;
}

bool journal_open(struct journal *j, const char *id)
{
	*j = (struct journal){ .lock = -1 };
	if (!journal_is_id(id))
		return false;
	folder_of(j, id);
	if (read_all(j))
		return true;
	journal_close(j);
	return false;
}

bool journal_is_none(const char *id)
{
	struct journal j;

	if (!journal_is_id(id))
		return true;
	folder_of(&j, id);
	return access(j.folder, F_OK) && errno == ENOENT;
}

bool journal_take(struct journal *j)
{
	return lock(j) && read_all(j);
}

void journal_close(struct journal *j)
{
	int err = errno;

	if (j->lock >= 0)
		close(j->lock);
	json_decref(j->record);
	*j = (struct journal){ .lock = -1 };
	errno = err;
}

void journal_remove(struct journal *j)
{
	static const char *const files[] = { "new",    "lock",	 "go",
					     "says",   "errors", "complaints",
					     "fenced", "runc",	 "record",
					     "state" };
	char path[JOURNAL_PATH + 32];
	int err = errno;

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		path_of(j, files[i], path);
		unlink(path);
	}
	rmdir(j->folder);
	errno = err;
	journal_close(j);
}

static bool has(const struct journal *j, const char *file)
{
	char path[JOURNAL_PATH + 32];

	path_of(j, file, path);
	return !access(path, F_OK);
}

/*
 * What has no state is what is left of one that was being made, or removed. One that only cannot
 * be read now is somebody's.
 */
void journal_sweep(void)
{
	DIR *d = opendir(journal_moves);
	struct dirent *de;
	struct journal j;

	while (d && (de = readdir(d))) {
		if (!journal_is_id(de->d_name))
			continue;
		j = (struct journal){ .lock = -1 };
		folder_of(&j, de->d_name);
		if (!has(&j, "record") || !has(&j, "state"))
			journal_remove(&j);
	}
	if (d)
		closedir(d);
}

void journal_each(void (*f)(struct journal *j, void *arg), void *arg)
{
	DIR *d = opendir(journal_moves);
	struct dirent *de;
	struct journal j;

	while (d && (de = readdir(d)))
		if (journal_open(&j, de->d_name)) {
			f(&j, arg);
			journal_close(&j);
		}
	if (d)
		closedir(d);
}
