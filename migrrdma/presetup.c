// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "presetup.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "arena.h"
#include "build.h"
#include "bury.h"
#include "gate.h"
#include "maps.h"
#include "suspend.h"
#include "tape.h"

#define PATIENCE_MS 5000

/* before those that the tape names */
enum {
	TAPE,
	QUEUES,
	MORE,
	FILES
};

static struct {
	struct tape *tape; /* NULL: nothing */
	int queues;
	size_t bytes;
	char *more; /* for when QPs are connected */
	size_t more_bytes;
	bool is_made;
} taken;

void presetup_forget(void)
{
	if (!taken.tape)
		return;
	tape_free(taken.tape);
	free(taken.more);
	if (!taken.is_made)
		close(taken.queues);
	memset(&taken, 0, sizeof(taken));
}

/* --- take --- */

static void close_all(const int *fds, unsigned int n)
{
	while (n)
		close(fds[--n]);
}

/* Return: how many; nobody is waited for for long, as the lease goes on */
static unsigned int receive(int sock, int fds[FILES + MOST_TAPE_FILES])
{
	union {
		char bytes[CMSG_SPACE(sizeof(int) * (FILES + MOST_TAPE_FILES))];
		struct cmsghdr align;
	} control;
	char byte;
	struct iovec iov = { &byte, 1 };
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		/* behind that there would be room for one more */
		.msg_controllen =
			CMSG_LEN(sizeof(int) * (FILES + MOST_TAPE_FILES)),
	};
	struct pollfd p = { .fd = sock, .events = POLLIN };
	const struct cmsghdr *c;
	size_t n;

	if (poll(&p, 1, PATIENCE_MS) != 1 ||
	    recvmsg(sock, &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT) != 1)
		return 0;
	c = CMSG_FIRSTHDR(&msg);
	if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
		return 0;
	n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	memcpy(fds, CMSG_DATA(c), n * sizeof(int));
	return (unsigned int)n;
}

/* Return: what is in a file, or NULL */
static char *read_all(int fd, size_t *bytes)
{
	struct stat st;
	char *all;

	if (fstat(fd, &st) || st.st_size < 0 || st.st_size > MOST_TAPE_BYTES)
		return NULL;
	*bytes = (size_t)st.st_size;
	all = malloc(*bytes + 1);
	if (all && pread(fd, all, *bytes, 0) == st.st_size)
		return all;
	free(all);
	return NULL;
}

/* the tape names the files behind FILES */
static struct tape *read_tape(const int *fds, unsigned int n, const char **why)
{
	struct tape *t = NULL;
	size_t bytes;
	char *all = read_all(fds[TAPE], &bytes);

	*why = "it cannot be read";
	if (all)
		t = tape_load(all, bytes, fds + FILES, n - FILES, why);
	else
		close_all(fds + FILES, n - FILES);
	free(all);
	return t;
}

/* It must not become shorter while it is mapped. */
static bool is_memory(int fd, size_t *bytes)
{
	struct stat st;
	int seals = fcntl(fd, F_GET_SEALS);

	if (seals < 0 || !(seals & F_SEAL_SHRINK) || fstat(fd, &st))
		return false;
	*bytes = (size_t)st.st_size;
	return st.st_size > 0 && *bytes <= ARENA_BYTES;
}

static int take(const int *fds, unsigned int n, struct swap *s)
{
	const char *why;
	size_t bytes;

	if (n <= FILES || !is_memory(fds[QUEUES], &bytes)) {
		close_all(fds, n);
		return swap_refuse(s, EPROTO, "it is no memory for queues");
	}
	taken.queues = fds[QUEUES];
	taken.bytes = bytes;
	taken.tape = read_tape(fds, n, &why);
	taken.more = read_all(fds[MORE], &taken.more_bytes);
	close(fds[TAPE]);
	close(fds[MORE]);
	if (taken.tape && taken.more)
		return 0;
	if (!taken.tape) {
		free(taken.more);
		close(fds[QUEUES]);
	}
	presetup_forget();
	return swap_refuse(s, EPROTO, "the tape: %s", why);
}

static bool is_elsewhere(void)
{
	struct shadow_context *c;

	if (!layer_is_held()) /* nor is the gate closed, then */
		return false;
	TAILQ_FOREACH (c, &contexts, entry)
		if (!bury_is_dead(c->real))
			return false;
	return !TAILQ_EMPTY(&contexts);
}

int presetup_take(int sock, struct swap *s)
{
	int fds[FILES + MOST_TAPE_FILES];
	unsigned int n = receive(sock, fds);

	*s = (struct swap){};
	if (!is_elsewhere()) {
		close_all(fds, n);
		return swap_refuse(s, EINVAL,
				   "it has not come to another host");
	}
	presetup_forget();
	return take(fds, n, s);
}

/* --- make --- */

static int make_by_tape(struct swap *s)
{
	int err = arena_map(arena_next(), taken.bytes, taken.queues);

	if (err) {
		snprintf(s->presetup, sizeof(s->presetup),
			 "memory for queues: %s", strerror(err));
		return err;
	}
	tape_use(taken.tape);
	err = build_make(true, s);
	if (!err && !tape_end(taken.tape)) {
		build_unmake();
		err = EIO;
	}
	tape_use(NULL);
	if (err)
		snprintf(s->presetup, sizeof(s->presetup), "%s",
			 tape_trouble(taken.tape) ? tape_trouble(taken.tape)
						  : s->reason);
	else
		s->taped = tape_commands(taken.tape);
	return err;
}

int presetup_make(struct swap *s)
{
	const char *why;
	int err = ENOENT;

	if (taken.tape && !taken.is_made) {
		err = make_by_tape(s);
		close(taken.queues);
		taken.is_made = true;
		arena_close();
		if (err || !taken.more_bytes ||
		    !tape_more(taken.tape, taken.more, taken.more_bytes, &why))
			presetup_forget();
	} else {
		presetup_forget(); /* of objects that are replaced */
	}
	if (!err)
		return 0;
	arena_drop();
	s->objects = 0;
	s->reason[0] = 0;
	return build_make(true, s);
}

void presetup_end(bool swapped)
{
	if (swapped)
		arena_keep();
	else
		arena_drop();
}

/* All or nothing: QPs whose doorbells only some memory has would never send. */
int presetup_let_go(struct swap *s)
{
	struct cover *all = NULL;
	struct shadow_context *c;
	int err = 0;

	if (!arena_is_used())
		return 0;
	TAILQ_FOREACH (c, &contexts, entry)
		err = err ? err : maps_prepare(c->real->cmd_fd, &all);
	if (!err)
		err = maps_cover(&all);
	maps_drop(&all);
	return err ? swap_refuse(s, err, "mappings of a device: %s",
				 strerror(err))
		   : 0;
}

/* --- connect --- */

int presetup_connect(int (*connect)(struct swap *s), struct swap *s)
{
	int err;

	if (!taken.tape || !taken.is_made)
		return connect(s);
	tape_use(taken.tape);
	err = connect(s);
	tape_use(NULL);
	if (!err)
		tape_end(taken.tape);
	if (tape_trouble(taken.tape))
		err = swap_refuse(s, EIO, "it was prepared otherwise: %s",
				  tape_trouble(taken.tape));
	s->taped = tape_commands(taken.tape);
	/* nothing has been said to the device yet if there is something missing */
	if (err != EINVAL)
		presetup_forget();
	return err;
}
