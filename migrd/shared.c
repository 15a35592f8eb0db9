// SPDX-License-Identifier: GPL-2.0
#include "shared.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "conn.h"
#include "note.h"
#include "proc.h"

enum {
	SLOTS = 1024,
	SLOTS_OF_FOLDER = 64, /* which may be a container's */
	TRIES = 20,	      /* to lock it, in so many ms ... */
	KEEP_TRIES = 100,     /* ... each, as nobody is asked a second time */
	LENT = 1 << 30,	      /* where the locks of those are that are lent */
	GIVE_BACK_MS = 1000,
	NOT_LENT_MS = 30, /* in which nobody is seen who has it lent */
	CALLERS = 4,	  /* of a container */
};

/* where the locks of callers are, of containers that may be any number */
static const off_t callers = 1LL << 60;

struct slot {
	struct shared_key key;
	struct shared_owner owner;
	long long kept; /* not lent before that */
};

/*
 * Locks are of bytes of the file: the first is that of the table, the others are those
 * of process numbers, and of callers. They belong to processes, so the file must never be closed.
 */
static int file = -1;
static struct slot *table;

bool shared_init(void)
{
	const size_t bytes = SLOTS * sizeof(*table);
	void *at;

	file = memfd_create("migrd", MFD_CLOEXEC);
	if (file < 0 || ftruncate(file, (off_t)bytes))
		return false;
	at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (at == MAP_FAILED)
		return false;
	table = at;
	return true;
}

static bool lock(off_t byte, short how)
{
	struct flock l = {
		.l_type = how, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1
	};

	return !fcntl(file, F_SETLK, &l);
}

/* Nobody has it for long, unless he was stopped; then there is no table. */
static bool lock_table(void)
{
	const struct timespec pause = { .tv_nsec = 1000000 };

	for (int i = 0; i < TRIES; i++) {
		if (lock(0, F_WRLCK))
			return true;
		nanosleep(&pause, NULL);
	}
	return false;
}

bool shared_find(const struct shared_key *key, struct shared_owner *owner)
{
	bool found = false;

	if (!lock_table())
		return false;
	for (int i = 0; !found && i < SLOTS; i++) {
		found = table[i].owner.pid &&
			!memcmp(&table[i].key, key, sizeof(*key));
		if (found)
			*owner = table[i].owner;
	}
	lock(0, F_UNLCK);
	return found;
}

static bool is_of_folder(const struct slot *s, const struct shared_key *key)
{
	return s->key.folder_dev == key->folder_dev &&
	       s->key.folder_ino == key->folder_ino;
}

/* of which whoever has it is gone: of the same folder, or of any */
static struct slot *left_behind(const struct shared_key *key, bool of_folder)
{
	for (int i = 0; i < SLOTS; i++)
		if ((!of_folder || is_of_folder(&table[i], key)) &&
		    proc_start(table[i].owner.pid) != table[i].owner.start)
			return &table[i];
	return NULL;
}

/* from this one on, if there is one */
static struct slot *not_kept(unsigned int from)
{
	const long long now = now_ms();

	for (unsigned int i = from; i < from + SLOTS; i++)
		if (now >= table[i % SLOTS].kept)
			return &table[i % SLOTS];
	return &table[from];
}

/*
 * A process has one, so that it cannot take those of others: its last one; or one that
 * nobody has, or whoever has it is gone. A folder has so many, so that those who are in
 * it cannot take those of others either: then it is one of theirs, but of one that is kept.
 */
static struct slot *slot_for(const struct shared_key *key,
			     const struct shared_owner *owner)
{
	struct slot *unused = NULL, *of_folder[SLOTS_OF_FOLDER];
	const long long now = now_ms();
	int n = 0;

	for (int i = 0; i < SLOTS; i++) {
		if (table[i].owner.pid == owner->pid)
			return &table[i];
		if (!table[i].owner.pid && !unused)
			unused = &table[i];
		else if (table[i].owner.pid && n < SLOTS_OF_FOLDER &&
			 is_of_folder(&table[i], key) && now >= table[i].kept)
			of_folder[n++] = &table[i];
	}
	if (n == SLOTS_OF_FOLDER) {
		unused = left_behind(key, true);
		return unused ? unused : of_folder[owner->pid % n];
	}
	if (!unused)
		unused = left_behind(key, false);
	return unused ? unused : not_kept(owner->pid % SLOTS);
}

/* The table is locked. */
static struct slot *remember(const struct shared_key *key,
			     const struct shared_owner *owner)
{
	struct slot *s = slot_for(key, owner);

	if (s->owner.pid != owner->pid || s->owner.start != owner->start)
		s->kept = 0;
	s->owner.pid = 0; /* if this is our end */
	s->key = *key;
	s->owner.start = owner->start;
	s->owner.pid = owner->pid;
	return s;
}

void shared_remember(const struct shared_key *key,
		     const struct shared_owner *owner)
{
	if (!lock_table())
		return;
	remember(key, owner);
	lock(0, F_UNLCK);
}

static struct slot *slot_of(const struct shared_owner *owner)
{
	for (int i = 0; i < SLOTS; i++)
		if (table[i].owner.pid == owner->pid &&
		    table[i].owner.start == owner->start)
			return &table[i];
	return NULL;
}

/* Whoever means it has found it there; but it may have had to make room since. */
void shared_keep(const struct shared_owner *owner, long long until)
{
	const struct shared_key none = { 0 };
	bool locked = false;
	struct slot *s;

	for (int i = 0; !locked && i < KEEP_TRIES; i++)
		locked = lock_table();
	if (!locked) {
		if (until)
			note("process %d may be lent while it is held: the table is locked",
			     owner->pid);
		return;
	}
	s = slot_of(owner);
	if (!s && until)
		s = remember(&none, owner);
	if (s)
		s->kept = until;
	lock(0, F_UNLCK);
}

static bool is_kept(const struct shared_owner *owner)
{
	const struct slot *s;
	bool is;

	if (!lock_table())
		return true;
	s = slot_of(owner);
	is = s && now_ms() < s->kept;
	lock(0, F_UNLCK);
	return is;
}

/* who has that byte locked, or 0 */
static pid_t holder(off_t byte)
{
	struct flock l = { .l_type = F_WRLCK,
			   .l_whence = SEEK_SET,
			   .l_start = byte,
			   .l_len = 1 };

	return fcntl(file, F_GETLK, &l) || l.l_type == F_UNLCK ? 0 : l.l_pid;
}

/* Whoever has it only lent ends. False if nobody has, or not just now. */
static bool take_back(pid_t pid)
{
	pid_t who = holder(LENT + pid);

	return who && who == holder(pid) && !kill(who, SIGTERM);
}

/* Whoever has it has the other lock before, and after. */
static bool borrow(const struct shared_owner *owner)
{
	if (!lock(LENT + owner->pid, F_WRLCK))
		return false;
	if (lock(owner->pid, F_WRLCK) && !is_kept(owner))
		return true;
	shared_let_go(owner->pid);
	return false;
}

/* Who comes next may be another one who has it lent. */
static bool take(pid_t pid)
{
	const struct timespec pause = { .tv_nsec = 1000000 };

	for (int i = 0, since = 0; i < GIVE_BACK_MS; i++) {
		if (lock(pid, F_WRLCK))
			return true;
		if (take_back(pid))
			since = i;
		else if (i - since == NOT_LENT_MS)
			break;
		nanosleep(&pause, NULL);
	}
	return false;
}

bool shared_hold(const struct shared_owner *owner, bool lent)
{
	return lent ? borrow(owner) : take(owner->pid);
}

void shared_let_go(pid_t pid)
{
	lock(pid, F_UNLCK);
	lock(LENT + pid, F_UNLCK);
}

static off_t callers_of(uint64_t container)
{
	return callers + (off_t)(container >> 8) * CALLERS;
}

bool shared_enter(uint64_t container)
{
	for (int i = 0; i < CALLERS; i++)
		if (lock(callers_of(container) + i, F_WRLCK))
			return true;
	return false;
}

void shared_leave(uint64_t container)
{
	for (int i = 0; i < CALLERS; i++)
		lock(callers_of(container) + i, F_UNLCK);
}
