// SPDX-License-Identifier: GPL-2.0
/*
 * What may be in a folder that belongs to somebody else
 */
#include <limits.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "rig.h"

static bool listed(const char *id)
{
	struct client c;
	char text[128];
	bool is;

	snprintf(text, sizeof(text), "{\"id\":\"%s\",", id);
	client_open(&c);
	MUST(said(&c, "processes", "{\"ok\":true,"));
	is = strstr(answer, text);
	client_close(&c);
	return is;
}

static int count(void)
{
	struct client c;
	int n = 0;

	client_open(&c);
	MUST(said(&c, "processes", "{\"ok\":true,"));
	for (const char *at = answer; (at = strstr(at, "{\"id\"")); at++)
		n++;
	client_close(&c);
	return n;
}

static void path_to(char *path, const char *name)
{
	snprintf(path, PATH_MAX, "%s/%s", dir, name);
}

/* a socket that nobody should believe */
static int listens(const char *name, int type)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, type, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/%s", dir, name);
	MUST(fd >= 0 && !bind(fd, (struct sockaddr *)&addr, sizeof(addr)));
	if (type != SOCK_DGRAM)
		MUST(!listen(fd, 4));
	return fd;
}

static void test_places(void)
{
	struct fake a, b, c;
	struct stat st;
	char path[PATH_MAX];

	puts("places");
	CHECK(!count());
	fake_start(&a, GOOD, "run");
	CHECK(*a.id && !strstr(a.id, "::") && listed(a.id));
	/* of a container that came later; its name is in the ID */
	fake_start(&b, GOOD, "c/one/run");
	CHECK(strstr(b.id, ":one:") && listed(b.id));
	fake_start(&c, GOOD, "c/t w,o/run");
	CHECK(strstr(c.id, ":t_w_o:") && listed(c.id));
	CHECK(count() == 3);
	/* its socket is moved about */
	snprintf(path, sizeof(path), "%s/c/one/run/%d.sock", dir, b.pid);
	MUST(!stat(path, &st) && !unlink(path));
	CHECK(!listed(b.id) && count() == 2);
	fake_kill(&a);
	fake_kill(&b);
	fake_kill(&c);
	CHECK(!count());
}

static void test_links(void)
{
	char from[PATH_MAX], to[PATH_MAX];
	struct fake f;

	puts("links");
	fake_start(&f, GOOD, "elsewhere/run");
	CHECK(!*f.id);
	snprintf(to, sizeof(to), "%s/elsewhere/run/%d.sock", dir, f.pid);
	/* to its socket */
	snprintf(from, sizeof(from), "%s/c/one/run/%d.sock", dir, f.pid);
	MUST(!symlink(to, from));
	CHECK(!count());
	MUST(!unlink(from));
	/* to its folder, and to the folder above */
	path_to(from, "c/linked");
	path_to(to, "elsewhere");
	MUST(!symlink(to, from));
	CHECK(!count());
	CHECK(daemon_logged("linked: a symbolic link is not followed"));
	MUST(!unlink(from) && !mkdir(from, 0755));
	path_to(from, "c/linked/run");
	path_to(to, "elsewhere/run");
	MUST(!symlink(to, from));
	CHECK(!count());
	MUST(!unlink(from));
	/* A folder that is one is; and where its socket is another name for it, too */
	MUST(!rename(to, from));
	CHECK(count() == 1);
	fake_kill(&f);
}

static void test_no_sockets(void)
{
	char path[PATH_MAX];
	int fd[4], n = 0;

	puts("no sockets");
	snprintf(path, sizeof(path), "%s/c/one/run/%d.sock", dir, getpid());
	MUST(!mkfifo(path, 0666));
	CHECK(!count());
	MUST(!unlink(path) && !mkdir(path, 0755));
	CHECK(!count());
	MUST(!rmdir(path) && !symlink(path, path));
	CHECK(!count());
	MUST(!unlink(path));
	/* sockets of another kind, or of another name */
	path_to(path, "c/one");
	snprintf(path, sizeof(path), "c/one/run/%d.sock", getpid());
	fd[n++] = listens(path, SOCK_DGRAM);
	CHECK(!count());
	snprintf(path, sizeof(path), "c/linked/run/%d.sock", getpid());
	fd[n++] = listens(path, SOCK_SEQPACKET);
	CHECK(!count());
	snprintf(path, sizeof(path), "c/one/run/%d.sock", getpid() + 1);
	fd[n++] = listens(path, SOCK_STREAM);
	fd[n++] = listens("c/one/run/01.sock", SOCK_STREAM);
	CHECK(!count());
	while (n > 0)
		close(fd[--n]);
	/* nobody listens */
	CHECK(!count());
}

/* One process is one, whatever it calls itself. */
static void test_names(void)
{
	char path[64];
	int a, b;

	puts("two names");
	snprintf(path, sizeof(path), "run/%d.sock", getpid());
	a = listens(path, SOCK_STREAM);
	snprintf(path, sizeof(path), "c/two/run/%d.sock", getpid());
	path_to(answer, "c/two");
	MUST(!mkdir(answer, 0755));
	path_to(answer, "c/two/run");
	MUST(!mkdir(answer, 0755));
	b = listens(path, SOCK_STREAM);
	CHECK(count() == 1);
	close(a);
	CHECK(count() == 1);
	close(b);
	CHECK(count() == 0);
	path_to(answer, path); /* or it would be left out of a crowd, too */
	MUST(!unlink(answer));
}

/* A folder full of sockets takes no time of those who look for somebody else. */
static void test_neighbour(void)
{
	char path[PATH_MAX], first[PATH_MAX];
	struct client c;
	struct fake f;
	int sock;

	puts("a neighbour");
	fake_start(&f, GOOD, "c/three/run");
	sock = listens("run/1.sock", SOCK_STREAM | SOCK_NONBLOCK);
	path_to(first, "run/1.sock");
	for (int i = 2; i < 10; i++) {
		snprintf(path, sizeof(path), "%s/run/%d.sock", dir, i);
		MUST(!link(first, path));
	}
	client_open(&c);
	CHECK(opened(&c, &f));
	client_close(&c);
	CHECK(fake_ended(&f) == 'r');
	CHECK(accept(sock, NULL, NULL) < 0, "it was asked who it is");
	close(sock);
	for (int i = 1; i < 10; i++) {
		snprintf(path, sizeof(path), "%s/run/%d.sock", dir, i);
		MUST(!unlink(path));
	}
	fake_kill(&f);
}

static void test_many(void)
{
	char path[PATH_MAX];

	puts("many");
	for (int i = 0; i < 6000; i++) {
		snprintf(path, sizeof(path), "%s/c/one/run/%d.sock", dir,
			 100000 + i);
		MUST(!mknod(path, S_IFREG | 0644, 0));
	}
	CHECK(count() == 0);
}

/* Whoever has many of them leaves room for others, and what is left out is said. */
static void test_crowd(void)
{
	enum {
		CROWD = 66
	};
	static struct fake crowd[CROWD];
	struct fake f;
	struct client c;

	puts("a crowd");
	for (int i = 0; i < CROWD; i++)
		fake_start(&crowd[i], GOOD, "c/two/run");
	fake_start(&f, GOOD, "c/three/run");
	CHECK(count() == 65);
	CHECK(strstr(answer, "\"left_out\":2}"));
	CHECK(daemon_logged("2 sockets are left out"));
	CHECK(listed(f.id));
	/* whoever is meant is found */
	for (int i = 0; i < CROWD; i++)
		if (*crowd[i].id) {
			client_open(&c);
			CHECK(opened(&c, &crowd[i]));
			client_close(&c);
			CHECK(fake_ended(&crowd[i]) == 'r');
		}
	for (int i = 0; i < CROWD; i++)
		fake_kill(&crowd[i]);
	fake_kill(&f);
	CHECK(!count() && !strstr(answer, "left_out"));
}

int main(void)
{
	rig_begin();
	daemon_start("run", "c/*/run");
	test_places();
	test_links();
	test_no_sockets();
	test_names();
	test_crowd();
	test_neighbour();
	test_many();
	CHECK(!daemon_end());
	CHECK(!daemon_logged_now("child"));
	rig_end();
	return check_result();
}
