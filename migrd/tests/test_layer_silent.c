// SPDX-License-Identifier: GPL-2.0
/*
 * Daemons that answer nothing while all are suspended: each has its time once, and not for
 * each process, name or question. Who does answer is asked each time.
 */
#include "check.h"
#include "layer_ports.h"

enum {
	HOSTS = 2,
	PROCS = 4,
};

/* its names begin with the letter */
static struct daemon {
	char letter;
	bool silent;	  /* from now on */
	int not_yet;	  /* so many connections end at once */
	int ms;		  /* for an answer */
	const char *says; /* or that it is so */
	int asked;
} daemons[HOSTS];

static struct layer_proc procs[PROCS], mover = { .host = "m", .id = "m:1:1" };
static struct layer_qp qps[PROCS];
static struct layer l;
static long long now;

long long now_ms(void)
{
	return now;
}

static struct daemon *daemon_of(const struct conn *c)
{
	return (struct daemon *)c->ssl;
}

bool client_open(struct conn *c, SSL_CTX *ctx, const char *host,
		 const char *port, const char *name, long long deadline,
		 char *reason, size_t bytes)
{
	(void)ctx, (void)port, (void)name;
	for (size_t i = 0; i < HOSTS; i++) {
		struct daemon *d = &daemons[i];

		if (*host != d->letter)
			continue;
		*c = (struct conn){ .ssl = (SSL *)d };
		if (!d->silent && !d->not_yet)
			return true;
		if (d->silent)
			now = deadline;
		else
			d->not_yet--;
		snprintf(reason, bytes, "no connection");
		return false;
	}
	abort();
}

bool conn_send(struct conn *c, const char *text, size_t bytes,
	       long long deadline)
{
	(void)bytes, (void)deadline;
	daemon_of(c)->asked += *text != '\n';
	return true;
}

char *client_hear(struct conn *c, size_t *bytes, long long deadline)
{
	static char yes[] = "{\"ok\": true, \"gids\": []}", text[128];
	struct daemon *d = daemon_of(c);

	if (d->silent) {
		now = deadline;
		strcpy(c->reason, "late");
		return NULL;
	}
	now += d->ms;
	snprintf(text, sizeof(text), "%s", d->says ? d->says : yes);
	*bytes = strlen(text);
	return text;
}

enum conn_read conn_read(struct conn *c)
{
	(void)c;
	return CONN_NOTHING;
}

void conn_free(struct conn *c)
{
	(void)c;
}

bool tls_same_peer(SSL *a, SSL *b)
{
	return a == b;
}

struct layer_qp *layer_names_qp(const struct layer_names *n, uint32_t qpn)
{
	(void)n, (void)qpn;
	return NULL;
}

/* partners: @names of their hosts, each a letter and more */
static void begin(const char *what, const char *const names[PROCS])
{
	puts(what);
	layer_hosts_end(&l);
	layer_free_ports(&l);
	l = (struct layer){ .n = PROCS };
	for (size_t i = 0; i < HOSTS; i++)
		daemons[i] = (struct daemon){ .letter = (char)('a' + i) };
	for (size_t i = 0; i < PROCS; i++) {
		struct layer_proc *p = &procs[i];

		qps[i] = (struct layer_qp){ .qpn = 1, .real = 1, .to = &mover };
		*p = (struct layer_proc){ .open = true, .by_gid = true };
		strcpy(p->host, names[i]);
		sprintf(p->id, "%c:%zu:1", *names[i], i);
		p->conn.ssl = (SSL *)&daemons[*names[i] - 'a'];
		p->names = (struct layer_names){ .qps = &qps[i], .n_qps = 1 };
		l.procs[i] = p;
	}
	now = 0;
}

/* what is lost, a digit for each */
static void owners(int lost, long long ms)
{
	long long begun = now;
	int n = 0;

	layer_check_owners(&l, true);
	for (size_t i = 0; i < PROCS; i++)
		n = n * 10 + procs[i].failed;
	CHECK(n == lost, "%04d and not %04d", n, lost);
	CHECK(now - begun == ms, "%lld ms and not %lld", now - begun, ms);
}

static void test_owners(void)
{
	static const char *const same[] = { "a", "a", "b", "a" };
	static const char *const several[] = { "a1", "a2", "b", "a3" };

	begin("a daemon that is silent, of three processes", same);
	owners(0, 0);
	CHECK(daemons[0].asked == 3 && daemons[1].asked == 1);
	daemons[0].silent = true;
	owners(1101, PATIENCE_MS);
	CHECK(!strcmp(procs[3].reason,
		      "its QPs: its host has not answered before"),
	      "%s", procs[3].reason);

	begin("which cannot be reached", same);
	daemons[0].silent = true;
	owners(1101, PATIENCE_MS);

	begin("under a name for each", several);
	owners(0, 0);
	daemons[0].silent = true;
	owners(1101, PATIENCE_MS);

	begin("one of whom there is nothing to be asked is not lost", same);
	procs[1].names.n_qps = 0;
	daemons[0].silent = true;
	owners(1001, PATIENCE_MS);

	begin("and which answers the next time", same);
	daemons[0].silent = true;
	owners(1101, PATIENCE_MS);
	daemons[0].silent = false;
	for (size_t i = 0; i < PROCS; i++)
		procs[i].failed = false;
	owners(0, 0);

	begin("one that refuses, slowly", same);
	daemons[0].says = "{\"ok\": false, \"reason\": \"another process'\"}";
	daemons[0].ms = 5000;
	owners(1101, 15000);
	CHECK(daemons[0].asked == 3);

	begin("one that has no place for a moment", same);
	daemons[0].not_yet = 1;
	owners(1000, 0);
}

static void test_ports(void)
{
	static const char *const names[] = { "a", "a", "a", "a" };
	struct in6_addr gid = { .s6_addr = { 1 } };
	char reason[128];

	begin("the port of a daemon that is silent", names);
	daemons[1].silent = true;
	for (int i = 0; i < 3; i++) {
		gid.s6_addr[15] = (uint8_t)(i / 2);
		CHECK(!layer_port(&l, "b", &gid, reason, sizeof(reason)));
	}
	CHECK(now == PATIENCE_MS, "%lld ms", now);
	CHECK(layer_port(&l, "a", &gid, reason, sizeof(reason)), "%s", reason);
}

int main(void)
{
	test_owners();
	test_ports();
	layer_hosts_end(&l);
	layer_free_ports(&l);
	return check_result();
}
