// SPDX-License-Identifier: GPL-2.0
/*
 * A connection that goes on as one to migr-mover, which is this program
 */
#include <pthread.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "rig.h"

static int listener;

static void listen_at_mover(void)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/n2.mover", dir);
	listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	MUST(listener >= 0 &&
	     !bind(listener, (struct sockaddr *)&addr, sizeof(addr)) &&
	     !listen(listener, 8));
}

/* the mover's end of what that client says next; the client is answered, and it is announced */
static int come(struct client *c, const char *announced)
{
	char line[256] = "";
	size_t n = 0;
	int fd;

	CHECK(said(c, "mover", "{\"ok\":true}"), "%s", answer);
	fd = accept(listener, NULL, NULL);
	MUST(fd >= 0);
	while (n < sizeof(line) - 1 && read(fd, line + n, 1) == 1 &&
	       line[n++] != '\n')
		;
	CHECK(!strcmp(line, announced), "%s", line);
	return fd;
}

static void test_words(void)
{
	struct client c;
	char text[64];
	int fd;

	puts("words");
	client_open(&c);
	fd = come(&c, "{\"peer\": \"n1\", \"operator\": false}\n");
	put(&c, "processes\n\0x", 12);
	MUST(recv(fd, text, 12, MSG_WAITALL) == 12);
	CHECK(!memcmp(text, "processes\n\0x", 12));
	MUST(write(fd, "all of it\n", 10) == 10);
	CHECK(hear(&c) && !strcmp(answer, "all of it"));
	/* what was said before an end arrives */
	MUST(write(fd, "the last\n", 9) == 9);
	close(fd);
	CHECK(hear(&c) && !strcmp(answer, "the last"));
	CHECK(!hear(&c));
	client_close(&c);

	client_open(&c);
	fd = come(&c, "{\"peer\": \"n1\", \"operator\": false}\n");
	put(&c, "bye", 3);
	client_die(&c);
	MUST(recv(fd, text, 3, MSG_WAITALL) == 3);
	CHECK(read(fd, text, 1) == 0);
	close(fd);
}

static void test_operator(void)
{
	struct client c;
	int fd;

	puts("operator");
	MUST(client_try(&c, "admin", "ca", TLS1_3_VERSION));
	CHECK(said(&c, "processes", "{\"ok\":false"));
	CHECK(said(&c, "find 17 ::ffff:10.10.0.2", "{\"ok\":false"));
	CHECK(strstr(answer, "hosts only"), "%s", answer);
	fd = come(&c, "{\"peer\": \"admin\", \"operator\": true}\n");
	close(fd);
	client_close(&c);
}

enum {
	MANY = 20 << 20,
};

static unsigned char byte_at(size_t at)
{
	return (unsigned char)(at * 31 + at / 4093);
}

/* Both ways at once, so that each end has to wait for the other one. */
static void *talks(void *arg)
{
	unsigned char block[50000];
	int fd = *(int *)arg;
	size_t at = 0, n;

	while (at < MANY) {
		n = MANY - at < sizeof(block) ? MANY - at : sizeof(block);
		for (size_t i = 0; i < n; i++)
			block[i] = byte_at(at + i);
		MUST(send(fd, block, n, MSG_NOSIGNAL) == (ssize_t)n);
		at += n;
	}
	return NULL;
}

static void test_much(void)
{
	static unsigned char block[65536];
	pthread_t talker;
	struct client c;
	size_t at = 0, wrong = 0;
	int fd, n;

	puts("much, to who is slow at first");
	client_open(&c);
	fd = come(&c, "{\"peer\": \"n1\", \"operator\": false}\n");
	MUST(!pthread_create(&talker, NULL, talks, &fd));
	usleep(200000);
	while (at < MANY) {
		n = SSL_read(c.ssl, block, sizeof(block));
		MUST(n > 0);
		for (int i = 0; i < n; i++)
			wrong += block[i] != byte_at(at + (size_t)i);
		at += (size_t)n;
	}
	CHECK(!wrong);
	pthread_join(talker, NULL);
	for (at = 0; at < MANY; at += sizeof(block)) {
		for (size_t i = 0; i < sizeof(block); i++)
			block[i] = byte_at(at + i);
		put(&c, (const char *)block, sizeof(block));
		MUST(recv(fd, block, sizeof(block), MSG_WAITALL) ==
		     sizeof(block));
		for (size_t i = 0; i < sizeof(block); i++)
			wrong += block[i] != byte_at(at + i);
	}
	CHECK(!wrong);
	close(fd);
	client_close(&c);
}

/* how much of what the client has said is in the mover's socket, when no more comes in */
static int all_that_fits(int fd)
{
	int n = 0, before, same = 0;

	while (same < 10) {
		before = n;
		MUST(!ioctl(fd, FIONREAD, &n));
		same = n && n == before ? same + 1 : 0;
		usleep(20000);
	}
	return n;
}

/* A mover that refuses says why, and does not read what it is still told. */
static void test_last(void)
{
	static const char block[65536];
	struct client c;
	int fd;

	puts("the last word, to who still talks");
	client_open(&c);
	fd = come(&c, "{\"peer\": \"n1\", \"operator\": false}\n");
	for (int i = 0; i < 8; i++)
		put(&c, block, sizeof(block));
	CHECK(all_that_fits(fd) < 8 * (int)sizeof(block));
	MUST(write(fd, "dropped\n", 8) == 8);
	close(fd);
	CHECK(hear(&c) && !strcmp(answer, "dropped"));
	client_close(&c);
}

static void test_nobody(void)
{
	struct client c;

	puts("nobody there");
	close(listener);
	client_open(&c);
	CHECK(said(&c, "mover", "{\"ok\":false"));
	CHECK(strstr(answer, "Connection refused"), "%s", answer);
	CHECK(said(&c, "processes", "{\"ok\":true"));
	client_close(&c);
}

int main(void)
{
	rig_begin();
	listen_at_mover();
	daemon_start("run", "none");
	test_words();
	test_operator();
	test_much();
	test_last();
	test_nobody();
	CHECK(!daemon_end());
	rig_end();
	return check_result();
}
