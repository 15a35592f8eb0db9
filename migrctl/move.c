// SPDX-License-Identifier: GPL-2.0
#include "move.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hurry.h"
#include "note.h"
#include "run.h"
#include "runtime.h"

bool move_fails(struct move *m, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(m->reason, sizeof(m->reason), fmt, args);
	va_end(args);
	note_clean(m->reason); /* or it is no string of JSON */
	m->by_doors = false;
	return false;
}

void move_init(struct move *m)
{
	m->peer.fd = m->journal.lock = -1;
	m->doors.go = m->doors.says = m->layer.go = m->layer.says = -1;
}

bool move_fails_by_doors(struct move *m, const char *what)
{
	move_fails(m, "%s", what);
	m->by_doors = true;
	return false;
}

void move_warns(struct move *m)
{
	size_t n = strlen(m->warning);

	note("%s: %s", m->name, m->reason);
	snprintf(m->warning + n, sizeof(m->warning) - n, "%s%s", n ? "; " : "",
		 m->reason);
}

/* as podman has them, at most; they are parts of paths, and of commands */
bool move_is_name(const char *name)
{
	size_t n = name ? strspn(name, "abcdefghijklmnopqrstuvwxyz"
				       "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				       "0123456789_.-")
			: 0;

	return n && n <= NAME_MOST && !name[n] && !strchr("_.-", name[0]);
}

/* not close-on-exec: what is started here works on it, too, and may outlive this process */
bool move_lock(struct move *m)
{
	char path[128], number[16];
	int fd;

	mkdir(MOVE_CONTAINERS, 0700);
	snprintf(path, sizeof(path), MOVE_CONTAINERS "/.%s.lock", m->name);
	fd = open(path, O_RDWR | O_CREAT, 0600);
	if (fd < 0)
		return move_fails(m, "%s: %s", path, strerror(errno));
	if (flock(fd, LOCK_EX | LOCK_NB)) {
		close(fd);
		return move_fails(m, "%s: another command is at work", m->name);
	}
	m->lock = fd;
	snprintf(number, sizeof(number), "%d", fd);
	setenv("MIGR_CTR_LOCK", number, 1);
	return true;
}

/* In memory, for root, and no more of it than half of all that there is. */
static bool mount_images(struct move *m)
{
	static const char *const options[] = {
		"mode=0700,size=50%,noswap",
		"mode=0700,size=50%", /* before Linux 6.4 */
	};
	int ret = -1;

	snprintf(m->images, sizeof(m->images), "%s/images", m->journal.folder);
	if (!mkdir(m->images, 0700))
		for (int i = 0; ret && i < 2; i++)
			ret = mount("tmpfs", m->images, "tmpfs",
				    MS_NOSUID | MS_NODEV | MS_NOEXEC,
				    options[i]);
	return !ret || move_fails(m, "%s: %s", m->images, strerror(errno));
}

struct other {
	const char *name;
	bool is;
};

static void is_other(struct journal *j, void *arg)
{
	struct other *o = arg;

	o->is |= !state_is_last(j->state) &&
		 !strcmp(journal_text(j, "name"), o->name);
}

/* One that has lost its process, and all that this has started, has no lock for a moment. */
bool move_begin(struct move *m, enum move_role role, json_t *record)
{
	struct other other = { .name = m->name };

	journal_each(is_other, &other);
	if (other.is) {
		json_decref(record);
		return move_fails(m, "a move of %s is not over here", m->name);
	}
	json_object_set_new(record, "runtime", json_string(m->runtime));
	if (!journal_new(&m->journal, role, record))
		return move_fails(m, "the journal of this move: %s",
				  strerror(errno));
	return mount_images(m);
}

bool move_has_address(const json_t *spec)
{
	return *talk_text(spec, "rdma");
}

bool move_go_on(struct move *m)
{
	if (!journal_take(&m->journal))
		return false;
	m->name = journal_text(&m->journal, "name");
	m->other = journal_text(&m->journal, "peer");
	m->runtime = runtime_named(journal_text(&m->journal, "runtime"));
	snprintf(m->images, sizeof(m->images), "%s/images", m->journal.folder);
	return m->runtime;
}

void move_drop_images(struct move *m)
{
	if (!m->images[0])
		return;
	umount2(m->images, MNT_DETACH);
	rmdir(m->images);
}

void move_end(struct move *m)
{
	hurry(false);
	move_drop_images(m);
	doors_close(&m->doors);
	doors_close(&m->layer);
	talk_free(&m->peer);
	if (m->lock > 0)
		close(m->lock);
	m->lock = 0;
}

void move_leave_doors(struct move *m, const char *word)
{
	char more[256];
	size_t n = strlen(m->reason);

	if (m->doors.says < 0)
		return;
	doors_tell(&m->doors, word);
	while (!doors_end(&m->doors, WORK_MS))
		note("%s: CRIU does not come to its end", m->name);
	if (!m->by_doors)
		return;
	doors_reason(&m->doors, more, sizeof(more));
	snprintf(m->reason + n, sizeof(m->reason) - n, ": %s", more);
	m->by_doors = false;
}

/* A test that has something die in this state wants it to last. */
static void stop_for_test(enum move_state state)
{
	const char *at = getenv("MIGR_MOVER_STOPS_AT");

	if (at && !strcmp(at, state_name(state)))
		raise(SIGSTOP);
}

bool move_set(struct move *m, enum move_state state)
{
	if (m->journal.state == state)
		return true;
	if (!journal_set(&m->journal, state, *m->reason ? m->reason : NULL))
		return move_fails(m, "the journal of this move: %s",
				  strerror(errno));
	note("%s: %s%s%s", m->name, state_name(state), *m->reason ? ": " : "",
	     m->reason);
	stop_for_test(state);
	return true;
}

void move_is_over(struct move *m, enum move_state state)
{
	json_t *record = m->journal.record;
	char why[sizeof(m->reason)];

	memcpy(why, m->reason, sizeof(why));
	if (*m->warning)
		json_object_set_new(record, "warning", json_string(m->warning));
	while (!journal_write(&m->journal) || !move_set(m, state)) {
		note("%s is %s: the journal: %s", m->name, state_name(state),
		     strerror(errno));
		talk_wait(-1, 0, AGAIN_MS);
		memcpy(m->reason, why, sizeof(why));
	}
}

/* Who only asks has no folder, and others may ask at the same time. */
static void errors_of(const struct move *m, char *path, size_t bytes)
{
	if (m->journal.record)
		snprintf(path, bytes, "%s/errors", m->journal.folder);
	else
		run_errors(path, bytes);
}

/* What a process has started that died may have the lock still, for as long as it works. */
static bool wait_for_lock(struct move *m)
{
	if (!m->journal.record)
		return true; /* the runtime has it for a moment */
	for (int i = 0; !m->lock && !move_lock(m); i++) {
		if (i == WORK_MS / AGAIN_MS)
			return false;
		talk_wait(-1, 0, AGAIN_MS);
	}
	return true;
}

bool move_drive(struct move *m, const char *verb, const char *arg,
		json_t *input, json_t **output)
{
	char *const argv[] = { (char *)m->runtime, "driver",	(char *)m->name,
			       (char *)verb,	   (char *)arg, NULL };
	char errors[JOURNAL_PATH + 32];
	bool done;

	errors_of(m, errors, sizeof(errors));
	unlink(errors);
	if (!wait_for_lock(m)) {
		json_decref(input);
		return false;
	}
	done = run_json(argv, errors, input, output, m->reason,
			sizeof(m->reason));
	if (!m->journal.record)
		unlink(errors);
	return done;
}

bool move_open_doors(struct move *m, struct doors *d, const char *folder,
		     const char *verb, const char *arg)
{
	char *const argv[] = { (char *)m->runtime,
			       "driver",
			       (char *)m->name,
			       (char *)verb,
			       m->images,
			       (char *)arg,
			       NULL };

	return doors_open(d, folder, argv) ||
	       move_fails(m, "%s: %s", m->runtime, strerror(errno));
}

/* what has become of a program at one end of a stream, and of the stream */
static bool is_whole(struct move *m, struct run *r, const char *errors,
		     bool sent)
{
	int status = 0;
	bool ended = run_wait(r, CLEAN_MS, &status);

	if (!sent)
		return move_fails(m, "%s: %s", m->other, m->peer.reason);
	if (!ended || status) {
		run_reason(errors, status, m->reason, sizeof(m->reason));
		return false;
	}
	return true;
}

bool move_give(struct move *m, char *const argv[])
{
	char errors[JOURNAL_PATH + 32];
	struct run r;
	bool sent;

	errors_of(m, errors, sizeof(errors));
	unlink(errors);
	if (!run_start(&r, argv, NULL, errors, RUN_OUT))
		return move_fails(m, "%s: %s", argv[0], strerror(errno));
	sent = talk_give(&m->peer, r.out, &m->bytes);
	if (!sent) {
		/* who writes must not wait for a reader */
		close(r.out);
		r.out = -1;
	}
	return is_whole(m, &r, errors, sent);
}

bool move_take(struct move *m, char *const argv[])
{
	char errors[JOURNAL_PATH + 32];
	struct run r;
	bool sent;

	errors_of(m, errors, sizeof(errors));
	unlink(errors);
	if (!run_start(&r, argv, NULL, errors, RUN_IN))
		return move_fails(m, "%s: %s", argv[0], strerror(errno));
	sent = talk_take(&m->peer, r.in, &m->bytes);
	close(r.in);
	r.in = -1;
	return is_whole(m, &r, errors, sent);
}

/* By tar itself: a runtime that is started for that has its time while the container stands still. */
static bool tar(struct move *m, const json_t *files, char *how,
		bool (*stream)(struct move *m, char *const argv[]))
{
	const json_t *names = json_object_get(files, "names"), *name;
	char *argv[7 + FILES_MOST + 1] = {
		"tar", TAR_BLOCKS, "-C", (char *)talk_text(files, "at"),
		how,   "-",	   "--",
	};
	size_t i, n = 7;

	json_array_foreach (names, i, name)
		if (i < FILES_MOST && json_is_string(name))
			argv[n++] = (char *)json_string_value(name);
	if (!*argv[3] || n == 7 || n != 7 + json_array_size(names))
		return move_fails(m, "%s does not say what files %s has",
				  m->runtime, m->name);
	return stream(m, argv);
}

bool move_give_files(struct move *m, const json_t *files)
{
	return tar(m, files, "-Scf", move_give);
}

bool move_take_files(struct move *m, const json_t *files)
{
	return tar(m, files, "-xf", move_take);
}
