// SPDX-License-Identifier: GPL-2.0
/*
 * What is said over a connection, whole and in pieces, and what is none
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "check.h"
#include "talk.h"

static struct talk a;
static int b;

static void meet(void)
{
	int ends[2];

	MUST(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends));
	MUST(talk_init(&a, ends[0]));
	b = ends[1];
}

static void part(void)
{
	talk_free(&a);
	if (b >= 0)
		close(b);
}

static void put(const char *text)
{
	MUST(send(b, text, strlen(text), MSG_NOSIGNAL) ==
	     (ssize_t)strlen(text));
}

static bool hears(const char *key, int value)
{
	json_t *o = talk_hear(&a, 1000);
	bool is = json_integer_value(json_object_get(o, key)) == value;

	json_decref(o);
	return o && is;
}

static void test_objects(void)
{
	meet();
	put("{\"a\": 1}\n{\"a\": ");
	CHECK(hears("a", 1));
	CHECK(!talk_hear(&a, 10) && strstr(a.reason, "in time"));
	put("2}\n");
	CHECK(hears("a", 2));
	put("{\"a\": 1, \"a\": 2}\n");
	CHECK(!talk_hear(&a, 1000));
	put("[1]\n{}\n");
	CHECK(!talk_hear(&a, 1000) && strstr(a.reason, "no object"));
	CHECK(hears("a", 0));
	shutdown(b, SHUT_WR);
	CHECK(!talk_hear(&a, 1000) && strstr(a.reason, "ended"));
	part();
}

static void test_answers(void)
{
	json_t *o;

	meet();
	put("{\"ok\": true, \"a\": 1}\n");
	o = talk_answered(&a, 1000);
	CHECK(o);
	json_decref(o);
	put("{\"ok\": false, \"error\": \"no room\"}\n");
	CHECK(!talk_answered(&a, 1000) && !strcmp(a.reason, "no room"));
	put("{}\n");
	CHECK(!talk_answered(&a, 1000) && strstr(a.reason, "not say why"));
	part();
}

static void *floods(void *arg)
{
	char block[65536];

	(void)arg;
	memset(block, 'x', sizeof(block));
	while (send(b, block, sizeof(block), MSG_NOSIGNAL) > 0)
		;
	return NULL;
}

static void test_long_line(void)
{
	pthread_t other;

	meet();
	MUST(!pthread_create(&other, NULL, floods, NULL));
	CHECK(!talk_hear(&a, 5000) && strstr(a.reason, "too long"));
	talk_free(&a);
	pthread_join(other, NULL);
	close(b);
}

/* ---- streams ------------------------------------------------------------------ */

enum {
	MANY = 3000000,
};

static void *gives(void *from)
{
	uint64_t bytes = 0;
	struct talk t;

	MUST(talk_init(&t, b));
	CHECK(talk_give(&t, *(int *)from, &bytes), "%s", t.reason);
	CHECK(bytes == MANY);
	CHECK(talk_say(&t, json_pack("{si}", "after", 7)));
	talk_free(&t);
	b = -1;
	return NULL;
}

static int file(void)
{
	char name[] = "/tmp/talk.XXXXXX";
	int fd = mkostemp(name, O_CLOEXEC);

	MUST(fd >= 0 && !unlink(name));
	return fd;
}

static void test_stream(void)
{
	int from = file(), to = file();
	char one[4096], other[4096];
	uint64_t bytes = 0;
	pthread_t giver;

	for (int i = 0; i < MANY; i += 4)
		MUST(write(from, &i, 4) == 4);
	lseek(from, 0, SEEK_SET);
	meet();
	MUST(!pthread_create(&giver, NULL, gives, &from));
	CHECK(talk_take(&a, to, &bytes), "%s", a.reason);
	CHECK(bytes == MANY);
	CHECK(hears("after", 7));
	pthread_join(giver, NULL);
	for (off_t at = 0; at < MANY; at += (off_t)sizeof(one)) {
		ssize_t n = pread(from, one, sizeof(one), at);

		CHECK(pread(to, other, sizeof(other), at) == n &&
		      !memcmp(one, other, (size_t)n));
	}
	part();
	close(from);
	close(to);
}

/* What cannot be written is told, and the connection is as after a stream. */
static void test_stream_to_nowhere(void)
{
	int from = file(), full = open("/dev/full", O_WRONLY | O_CLOEXEC);
	uint64_t bytes = 0;
	pthread_t giver;

	MUST(!ftruncate(from, MANY));
	meet();
	MUST(!pthread_create(&giver, NULL, gives, &from));
	CHECK(!talk_take(&a, full, &bytes) && bytes == MANY);
	CHECK(strstr(a.reason, "space"), "%s", a.reason);
	CHECK(hears("after", 7));
	pthread_join(giver, NULL);
	part();
	close(from);
	close(full);
}

static void test_bad_stream(void)
{
	const uint32_t huge = htonl(TALK_FRAME + 1), some = htonl(10);
	int to = file();
	uint64_t bytes = 0;

	meet();
	MUST(send(b, &huge, 4, 0) == 4);
	CHECK(!talk_take(&a, to, &bytes) && strstr(a.reason, "too long"));
	part();
	meet();
	MUST(send(b, &some, 4, 0) == 4 && send(b, "abc", 3, 0) == 3);
	close(b);
	b = -1;
	CHECK(!talk_take(&a, to, &bytes) && strstr(a.reason, "ended"));
	part();
	close(to);
}

/* ---- to end --------------------------------------------------------------------- */

static void *ends_us(void *arg)
{
	(void)arg;
	usleep(20000);
	kill(getpid(), SIGTERM);
	return NULL;
}

static void test_end(void)
{
	pthread_t other;

	talk_hold_signals();
	meet();
	MUST(!pthread_create(&other, NULL, ends_us, NULL));
	CHECK(!talk_hear(&a, 30000) && strstr(a.reason, "to end"));
	pthread_join(other, NULL);
	CHECK(talk_is_ended());
	/* nothing waits any more, until that is past */
	CHECK(!talk_hear(&a, 30000));
	talk_never_ends();
	kill(getpid(), SIGTERM);
	put("{\"a\": 3}\n");
	CHECK(hears("a", 3));
	part();
}

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	test_objects();
	test_answers();
	test_long_line();
	test_stream();
	test_stream_to_nowhere();
	test_bad_stream();
	test_end();
	return check_result();
}
