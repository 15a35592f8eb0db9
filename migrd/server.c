// SPDX-License-Identifier: GPL-2.0
#include "server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "meet.h"
#include "note.h"
#include "proc.h"

enum {
	END_MS = 2000, /* in which children end that are asked to */
	WAIT_MS =
		25000, /* in which others have said who they are, or have not */

	/* in the place of a number: not yet, as so many are there ... */
	FULL = -1,
	UNKNOWN = -2,	 /* ... that have not said who they are */
	UNKNOWN_OF = -3, /* ... of this address */
};

bool server_init(struct server *s)
{
	void *at =
		mmap(NULL, sizeof(*s->known) * MOST_CHILDREN,
		     PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		return false;
	s->known = at;
	s->session.woken = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return s->session.woken >= 0;
}

/* Who has a network of IPv6 has as many addresses as he likes. */
static bool same_peer(const struct in6_addr *a, const struct in6_addr *b)
{
	return !memcmp(a, b, IN6_IS_ADDR_V4MAPPED(a) ? 16 : 8);
}

/* of a child, or why there is none */
static int place_for(const struct server *s, const struct in6_addr *addr)
{
	int unknown = 0, of = 0, place = FULL;

	for (int i = 0; i < MOST_CHILDREN; i++) {
		if (!s->children[i].pid) {
			place = i;
		} else if (!atomic_load(&s->known[i])) {
			unknown++;
			of += same_peer(addr, &s->children[i].addr);
		}
	}
	if (place == FULL)
		return FULL;
	if (of >= MOST_UNKNOWN_OF)
		return UNKNOWN_OF;
	return unknown < MOST_UNKNOWN ? place : UNKNOWN;
}

static void address_of(const struct sockaddr_storage *from,
		       struct in6_addr *addr, char *text)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)from;

	memset(addr, 0, sizeof(*addr));
	if (from->ss_family == AF_INET) {
		memset(addr->s6_addr + 10, 0xff, 2);
		memcpy(addr->s6_addr + 12, &in->sin_addr, 4);
	} else {
		*addr = ((const struct sockaddr_in6 *)from)->sin6_addr;
	}
	if (IN6_IS_ADDR_V4MAPPED(addr))
		inet_ntop(AF_INET, addr->s6_addr + 12, text, INET6_ADDRSTRLEN);
	else
		inet_ntop(AF_INET6, addr, text, INET6_ADDRSTRLEN);
}

/*
 * However the daemon ends, so does the child: then processes go on. It has what belongs
 * to others, who must see their ends.
 */
static void in_child(struct server *s, pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	signal(SIGTERM, SIG_DFL);
	signal(SIGINT, SIG_DFL);
	signal(SIGHUP, SIG_IGN);
	sigprocmask(SIG_SETMASK, &s->signals, NULL);
	close(s->listener);
	close(s->signalled);
	for (size_t i = 0; i < s->n_waiting; i++)
		close(s->waiting[i].fd);
	if (s->meetings >= 0)
		close(s->meetings);
}

static void begin(struct server *s, const struct waiting *w, int place)
{
	pid_t parent = getpid();

	atomic_store(&s->known[place], false);
	s->children[place].pid = fork();
	if (!s->children[place].pid) {
		note_of(w->text);
		in_child(s, parent);
		s->session.known = &s->known[place];
		session_run(&s->session, w->fd);
		exit(0); /* so that a sanitizer looks for leaks */
	}
	if (s->children[place].pid < 0) {
		note("%s: refused: fork: %s", w->text, strerror(errno));
		s->children[place].pid = 0;
	}
	s->children[place].addr = w->addr;
	close(w->fd);
}

static void refuse(const struct waiting *w, const char *reason)
{
	note("%s: refused: %s", w->text, reason);
	close(w->fd);
}

static struct waiting take(struct server *s, size_t i)
{
	struct waiting w = s->waiting[i];

	s->n_waiting--;
	memmove(s->waiting + i, s->waiting + i + 1,
		(s->n_waiting - i) * sizeof(w));
	return w;
}

static const char *told(int no_place)
{
	switch (no_place) {
	case FULL:
		return "there are too many connections";
	case UNKNOWN:
		return "too many have not said who they are";
	default:
		return "too many of this address have not said who they are";
	}
}

void server_admit(struct server *s)
{
	struct waiting w;
	int place;

	for (size_t i = 0; i < s->n_waiting;) {
		place = place_for(s, &s->waiting[i].addr);
		if (place < 0 && now_ms() < s->waiting[i].until) {
			i++;
			continue;
		}
		w = take(s, i);
		if (place >= 0)
			begin(s, &w, place);
		else
			refuse(&w, told(place));
	}
}

int server_patience(const struct server *s)
{
	long long left = -1;

	if (s->n_waiting) {
		left = s->waiting[0].until - now_ms();
		if (left < 0)
			left = 0;
	}
	return (int)left;
}

static int waiting_of(const struct server *s, const struct in6_addr *addr)
{
	int n = 0;

	for (size_t i = 0; i < s->n_waiting; i++)
		n += same_peer(addr, &s->waiting[i].addr);
	return n;
}

/*
 * The newest of the address of which most wait, if without it still no fewer do than then
 * of this one; or -1.
 */
static int who_makes_room(const struct server *s, const struct in6_addr *addr)
{
	int most = waiting_of(s, addr) + 1, who = -1;

	for (int i = (int)s->n_waiting - 1; i >= 0; i--) {
		int n = waiting_of(s, &s->waiting[i].addr);

		if (n > most) {
			most = n;
			who = i;
		}
	}
	return who;
}

/* Nobody keeps all the room from others. False if there is none. */
static bool make_room(struct server *s, const struct in6_addr *addr)
{
	struct waiting w;
	int who;

	if (waiting_of(s, addr) >= MOST_WAITING_OF)
		return false;
	if (s->n_waiting < MOST_WAITING)
		return true;
	who = who_makes_room(s, addr);
	if (who < 0)
		return false;
	w = take(s, (size_t)who);
	refuse(&w, "fewer of another address wait");
	return true;
}

static void cannot_accept(void)
{
	if (errno == EMFILE || errno == ENFILE || errno == ENOMEM ||
	    errno == ENOBUFS) {
		note("cannot accept: %s", strerror(errno));
		usleep(100000);
	}
}

void server_accept(struct server *s)
{
	struct sockaddr_storage from;
	socklen_t bytes = sizeof(from);
	struct waiting w;
	int place;

	/* Who is there already comes first, and has nothing of the next one. */
	server_admit(s);
	w.fd = accept4(s->listener, (struct sockaddr *)&from, &bytes,
		       SOCK_CLOEXEC);
	if (w.fd < 0) {
		cannot_accept();
		return;
	}
	address_of(&from, &w.addr, w.text);
	w.until = now_ms() + WAIT_MS;
	place = place_for(s, &w.addr);
	if (place >= 0)
		begin(s, &w, place);
	else if (make_room(s, &w.addr))
		s->waiting[s->n_waiting++] = w;
	else
		refuse(&w, "too many of this address, or in all, wait");
}

/* --- meetings --- */

/* of that process, or NULL; whose it is the child finds out, and of a container it lets few in */
static struct caller *place_of_caller(struct server *s, pid_t of)
{
	struct caller *place = NULL;
	int n = 0;

	for (int i = 0; i < MOST_CALLERS; i++) {
		if (!s->callers[i].pid)
			place = &s->callers[i];
		else
			n += s->callers[i].of == of;
	}
	return n < MOST_CALLERS_OF ? place : NULL;
}

static void begin_meeting(struct server *s, int fd)
{
	struct ucred who = { 0 };
	socklen_t bytes = sizeof(who);
	pid_t parent = getpid(), pid;
	struct caller *place;

	getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &bytes);
	server_bury(s); /* who was answered may call again at once */
	place = place_of_caller(s, who.pid);
	if (!place)
		return;
	pid = fork();
	if (!pid) {
		in_child(s, parent);
		meet_run(&s->session, fd);
		exit(0);
	}
	if (pid < 0)
		note("no meeting: fork: %s", strerror(errno));
	else
		*place = (struct caller){ pid, who.pid };
}

void server_meet(struct server *s)
{
	int fd = accept4(s->meetings, NULL, NULL, SOCK_CLOEXEC);

	if (fd < 0) {
		cannot_accept();
		return;
	}
	begin_meeting(s, fd);
	close(fd);
}

/* --- their ends --- */

/*
 * A sanitizer ends it with an exit code; @told: we have told it to end. Whoever has a process
 * lent is ended by who wants it, too.
 */
static void look_at(pid_t pid, int status, bool told)
{
	int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;

	if (WIFEXITED(status) && WEXITSTATUS(status))
		note("child %d: exit code %d", pid, WEXITSTATUS(status));
	else if (signal && signal != SIGTERM && !(told && signal == SIGKILL))
		note("child %d: signal %d", pid, signal);
}

/* Return: what waitpid() says at last, of who is left */
static pid_t bury(struct server *s, bool told)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		look_at(pid, status, told);
		for (int i = 0; i < MOST_CHILDREN; i++)
			if (s->children[i].pid == pid)
				s->children[i].pid = 0;
		for (int i = 0; i < MOST_CALLERS; i++)
			if (s->callers[i].pid == pid)
				s->callers[i].pid = 0;
	}
	return pid;
}

void server_bury(struct server *s)
{
	bury(s, false);
}

static bool tell_all(const struct server *s, int signal)
{
	bool any = false;

	for (int i = 0; i < MOST_CHILDREN; i++)
		if (s->children[i].pid > 0) {
			kill(s->children[i].pid, signal);
			any = true;
		}
	for (int i = 0; i < MOST_CALLERS; i++)
		if (s->callers[i].pid > 0) {
			kill(s->callers[i].pid, signal);
			any = true;
		}
	return any;
}

void server_end(struct server *s)
{
	const struct timespec pause = { .tv_nsec = 10000000 };
	long long deadline = now_ms() + END_MS;

	while (s->n_waiting)
		refuse(&s->waiting[--s->n_waiting], "this is the end");
	while (tell_all(s, now_ms() < deadline ? SIGTERM : SIGKILL)) {
		if (bury(s, true) < 0 && errno == ECHILD)
			break;
		nanosleep(&pause, NULL);
	}
}
