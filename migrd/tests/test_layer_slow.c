// SPDX-License-Identifier: GPL-2.0
/*
 * How long processes have for their lines: who answers none holds nobody up for longer than
 * for one, and who answers has time for many. And what one says counts for what it takes.
 */
#include <poll.h>

#include "check.h"
#include "layer.h"

enum {
	BUDGET_MS = 1000,
	ONE_MS = BUDGET_MS + 30000, /* for an answer */
	NEVER = -1,
	PARTS = 800000,
};

/*
 * a process answers a line so much later, or when it has answered the one before; if it is
 * deaf it does not even take the next ones, and it takes at most so much at once
 */
static struct side {
	struct layer_proc proc;
	size_t sent, answered, most;
	long long at,
		free; /* when the last lines were sent, and one was answered */
	int ms;
	bool deaf;
	char *says; /* or that it has done so */
} sides[3];

static long long now;
static unsigned int hurry;

long long now_ms(void)
{
	return now;
}

static struct side *side_of(const struct conn *c)
{
	for (size_t i = 0; i < 3; i++)
		if (&sides[i].proc.conn == c)
			return &sides[i];
	abort();
}

ssize_t conn_put(struct conn *c, const char *text, size_t bytes)
{
	struct side *s = side_of(c);

	if (s->deaf)
		return 0;
	if (s->most && bytes > s->most)
		bytes = s->most;
	for (size_t i = 0; i < bytes; i++)
		s->sent += text[i] == '\n';
	s->at = now;
	return (ssize_t)bytes;
}

/* when it answers the next line; -1: nobody knows */
static long long answers_at(const struct side *s)
{
	if (s->ms == NEVER || s->sent == s->answered)
		return -1;
	return (s->free > s->at ? s->free : s->at) + s->ms;
}

enum conn_read client_try(struct conn *c, char **line, size_t *bytes)
{
	static char yes[] = "{\"ok\": true}";
	struct side *s = side_of(c);
	long long at = answers_at(s);

	if (at < 0 || at > now)
		return CONN_NOTHING;
	s->free = at;
	s->answered++;
	*line = s->says ? s->says : yes;
	*bytes = strlen(*line);
	return CONN_MORE;
}

void conn_late(struct conn *c)
{
	strcpy(c->reason, "late");
}

/* time passes up to what comes first; descriptors are numbers of sides */
int poll(struct pollfd *fds, nfds_t n, int timeout)
{
	long long until = now + timeout, at;

	for (nfds_t i = 0; i < n; i++) {
		if ((fds[i].events & POLLOUT) && !sides[fds[i].fd].deaf)
			return 1;
		at = answers_at(&sides[fds[i].fd]);
		if (at >= 0 && at < until)
			until = at;
	}
	if (now < until)
		now = until;
	return 0;
}

bool conn_send(struct conn *c, const char *text, size_t bytes,
	       long long deadline)
{
	(void)c, (void)text, (void)bytes, (void)deadline;
	abort();
}

char *client_hear(struct conn *c, size_t *bytes, long long deadline)
{
	(void)c, (void)bytes, (void)deadline;
	abort();
}

bool client_open(struct conn *c, SSL_CTX *ctx, const char *host,
		 const char *port, const char *name, long long deadline,
		 char *reason, size_t bytes)
{
	(void)c, (void)ctx, (void)host, (void)port, (void)name;
	(void)deadline, (void)reason, (void)bytes;
	abort();
}

void conn_free(struct conn *c)
{
	(void)c;
}

static void side_has(struct side *s, size_t lines, int ms)
{
	*s = (struct side){ .proc.open = true, .ms = ms };
	s->proc.conn.fd = (int)(s - sides);
	while (lines--)
		layer_tell(&s->proc, "key");
}

/* how long it takes; the first @good of them have answered all */
static long long round_of(size_t n, size_t good)
{
	struct layer l = { .budget = BUDGET_MS, .hurry = hurry, .n = n };
	size_t lines[3];

	now = 0;
	for (size_t i = 0; i < n; i++) {
		l.procs[i] = &sides[i].proc;
		lines[i] = sides[i].proc.lines;
	}
	CHECK(layer_round(&l) == (n == good));
	for (size_t i = 0; i < n; i++) {
		CHECK(sides[i].proc.open == (i < good));
		CHECK((sides[i].answered == lines[i]) == (i < good),
		      "%zu of %zu", sides[i].answered, lines[i]);
		json_decref(sides[i].proc.answer);
		free(sides[i].proc.text);
	}
	return now;
}

static void check_round(size_t n, size_t good, long long ms)
{
	long long took = round_of(n, good);

	CHECK(took == ms, "%lld ms, not %lld", took, ms);
}

/* One has a long answer on its way, and another one says that. Is it too much? */
static bool too_much(char *text)
{
	struct layer l = { .budget = BUDGET_MS,
			   .procs = { &sides[0].proc, &sides[1].proc },
			   .n = 2 };
	bool is;

	now = 0;
	side_has(&sides[0], 0, 0);
	side_has(&sides[1], 1, 0);
	sides[0].proc.conn.room = 15 << 20;
	sides[1].proc.conn.room = 13 << 20;
	sides[1].says = text;
	is = !layer_round(&l);
	if (is)
		CHECK(!strcmp(l.reason,
			      ": process : key: all together say too much"),
		      "%s", l.reason);
	CHECK(sides[1].proc.open == !is);
	for (size_t i = 0; i < 2; i++) {
		json_decref(sides[i].proc.answer);
		free(sides[i].proc.text);
	}
	return is;
}

static void test_weight(void)
{
	const char *head = "{\"ok\": true, \"x\": [";
	const size_t at = strlen(head), n = 2 * PARTS;
	char *text = malloc(at + n + 8);

	MUST(text);
	puts("many small parts count for more than their length");
	strcpy(text, head);
	for (size_t i = 0; i < n; i++)
		text[at + i] = i % 2 ? ',' : '0';
	strcpy(text + at + n, "0]}");
	CHECK(too_much(text));
	/* as long, and one part */
	memset(text + at, 'x', n);
	text[at] = '"';
	strcpy(text + at + n, "\"]}");
	CHECK(!too_much(text));
	free(text);
}

int main(void)
{
	test_weight();
	puts("one answers slowly, but it does");
	side_has(&sides[0], 100000, 1);
	check_round(1, 1, 100000);

	puts("others answer nothing");
	side_has(&sides[0], 100000, 0);
	side_has(&sides[1], 1, NEVER);
	side_has(&sides[2], 100000, NEVER);
	check_round(3, 1, ONE_MS);

	puts("one is much too slow");
	side_has(&sides[0], 10, 20000);
	side_has(&sides[1], 10, NEVER);
	check_round(2, 0, ONE_MS + 10);

	puts("one answers slowly, and another one nothing");
	side_has(&sides[0], 100000, 1);
	side_has(&sides[1], 1, NEVER);
	check_round(2, 1, 100000);

	puts("one answers slowly, and another one much too slowly");
	side_has(&sides[0], 100000, 1);
	side_has(&sides[1], 10, 20000);
	check_round(2, 1, 100000);

	puts("one takes little at once, and all of it in the end");
	side_has(&sides[0], 100, 1);
	sides[0].most = 3;
	check_round(1, 1, 100);

	puts("another one does not even take what it is told");
	side_has(&sides[0], 100000, 1);
	side_has(&sides[1], 100, 1);
	sides[1].deaf = true;
	check_round(2, 1, 100000);

	puts("there is a hurry, however much one has");
	hurry = 2000;
	side_has(&sides[0], 1, 0);
	side_has(&sides[1], 1, NEVER);
	sides[1].proc.is_mover = true;
	sides[1].proc.names.n_qps = 4096;
	check_round(2, 1, hurry);
	return check_result();
}
