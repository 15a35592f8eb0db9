// SPDX-License-Identifier: GPL-2.0
/*
 * When there is another round, what is asked for, and what is kept of one that was sent
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "rounds.h"

enum {
	MIB = 1 << 20
};

/* In the runtime's place: a round has two files of pages, and what else CRIU writes. */
static off_t next_bytes;

static void make_file(const char *folder, const char *name, off_t bytes)
{
	char path[512];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	CHECK(fd >= 0 && !ftruncate(fd, bytes));
	close(fd);
}

bool move_drive(struct move *m, const char *verb, const char *arg,
		json_t *input, json_t **output)
{
	(void)m;
	CHECK(!strcmp(verb, "round") && !input && !output);
	CHECK(!mkdir(arg, 0700));
	make_file(arg, "pages-1.img", next_bytes / 2);
	make_file(arg, "pages-2.img", next_bytes - next_bytes / 2);
	make_file(arg, "pagemap-1.img", 77);
	return true;
}

bool move_fails(struct move *m, const char *fmt, ...)
{
	snprintf(m->reason, sizeof(m->reason), "%s", fmt);
	return false;
}

static off_t bytes_of(const struct move *m, const char *name)
{
	char path[512];
	struct stat st = { 0 };

	snprintf(path, sizeof(path), "%s/%s", m->images, name);
	CHECK(!stat(path, &st));
	return st.st_size;
}

static void test_wanted(void)
{
	static const struct {
		const char *asked;
		int most, budget; /* most is -1: refused */
	} cases[] = {
		{ "{}", 0, 0 },
		{ "{\"pre_copy\": 0}", 0, 0 },
		{ "{\"pre_copy\": 16}", 16, 0 },
		{ "{\"pre_copy\": 17}", -1, 0 },
		{ "{\"pre_copy\": 99}", -1, 0 },
		{ "{\"pre_copy\": -1}", -1, 0 },
		{ "{\"pre_copy\": 4294967297}", -1, 0 },
		{ "{\"pre_copy\": true}", -1, 0 },
		{ "{\"pre_copy\": \"many\"}", -1, 0 },
		{ "{\"pre_copy\": \"auto\"}", ROUNDS_AUTO, 0 },
		{ "{\"pre_copy\": \"auto\", \"budget\": 1}", ROUNDS_AUTO, 1 },
		{ "{\"pre_copy\": \"auto\", \"budget\": 600000}", ROUNDS_AUTO,
		  600000 },
		{ "{\"pre_copy\": \"auto\", \"budget\": 600001}", -1, 0 },
		{ "{\"pre_copy\": \"auto\", \"budget\": 0}", -1, 0 },
		{ "{\"pre_copy\": \"auto\", \"budget\": \"1s\"}", -1, 0 },
		{ "{\"pre_copy\": 3, \"budget\": 100}", -1, 0 },
		{ "{\"budget\": 100}", -1, 0 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		json_t *o = json_loads(cases[i].asked, 0, NULL);
		struct rounds r;
		bool ok = rounds_wanted(&r, o);

		if (ok != (cases[i].most >= 0) ||
		    (ok &&
		     (r.most != cases[i].most || r.budget != cases[i].budget)))
			fprintf(stderr, "%s\n", cases[i].asked);
		CHECK(ok == (cases[i].most >= 0));
		CHECK(!ok ||
		      (r.most == cases[i].most && r.budget == cases[i].budget));
		json_decref(o);
	}
}

/* rounds until none is to follow, of so many bytes each, within a second each */
static int made(struct rounds *r, struct move *m, const off_t *bytes, int n)
{
	char folder[32];

	while (rounds_go_on(r)) {
		CHECK(r->n < n);
		next_bytes = bytes[r->n];
		CHECK(rounds_make(r, m, folder, sizeof(folder)));
		CHECK(rounds_sent(r, m, 1));
		CHECK(r->bytes == (uint64_t)next_bytes);
	}
	return r->n;
}

static void test_ends(void)
{
	static const struct {
		struct rounds r;
		int n; /* that are made of */
		off_t bytes[18];
	} cases[] = {
		{ { .most = 0 }, 0, { 0 } },
		{ { .most = 3 }, 3, { 9 * MIB, 9 * MIB, 9 * MIB } },
		/* it does not shrink */
		{ { .most = ROUNDS_AUTO }, 2, { 9 * MIB, 8 * MIB } },
		{ { .most = ROUNDS_AUTO }, 3, { 9 * MIB, 4 * MIB, 4 * MIB } },
		/* nothing is left that is worth one */
		{ { .most = ROUNDS_AUTO }, 2, { 9 * MIB, MIB - 1 } },
		{ { .most = ROUNDS_AUTO }, 1, { 9 } },
		/* what is left fits: 100 MiB/s, of which 3 are 30 ms */
		{ { .most = ROUNDS_AUTO, .budget = 500 },
		  3,
		  { 100 * MIB, 60 * MIB, 40 * MIB } },
		{ { .most = ROUNDS_AUTO, .budget = 30 },
		  3,
		  { 100 * MIB, 8 * MIB, 3 * MIB } },
		/* it never will */
		{ { .most = ROUNDS_AUTO, .budget = 10 },
		  3,
		  { 100 * MIB, 60 * MIB, 59 * MIB } },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct move m = { .images = "/tmp/rounds.XXXXXX" };
		struct rounds r = cases[i].r;
		char *rm, rounds[512];

		CHECK(mkdtemp(m.images));
		snprintf(rounds, sizeof(rounds), "%s/rounds", m.images);
		CHECK(!mkdir(rounds, 0700));
		CHECK(made(&r, &m, cases[i].bytes, 18) == cases[i].n);
		if (cases[i].n) {
			CHECK(!bytes_of(&m, "rounds/1/pages-1.img"));
			CHECK(!bytes_of(&m, "rounds/1/pages-2.img"));
			CHECK(bytes_of(&m, "rounds/1/pagemap-1.img") == 77);
		}
		CHECK(asprintf(&rm, "rm -r %s", m.images) > 0 && !system(rm));
		free(rm);
	}
}

/* The rate is that of the round that had most in a second. */
static void test_estimate(void)
{
	struct rounds r = { .most = ROUNDS_AUTO };

	CHECK(rounds_estimate(&r) == 0);
	r.rate = 10 * MIB;
	r.bytes = 5 * MIB;
	CHECK(rounds_estimate(&r) == 500);
}

static void test_lost(void)
{
	struct move m = { .images = "/nowhere" };
	struct rounds r = { .most = 1, .n = 1 };

	CHECK(!rounds_sent(&r, &m, 1));
	CHECK(*m.reason);
}

int main(void)
{
	test_wanted();
	test_ends();
	test_estimate();
	test_lost();
	return check_result();
}
