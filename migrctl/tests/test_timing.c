// SPDX-License-Identifier: GPL-2.0
/*
 * What the time of a move went into: read from logs as CRIU writes them, set beside what the
 * other end says, whatever that is, and drawn.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "flame.h"
#include "timing.h"

static const char dump_log[] =
	"(00.000000) Version: 4.1.1\n"
	"(00.100000) freezing cgroup /sys/fs/cgroup/c: 100 x 100ms attempts\n"
	"(00.200000) plugin: `rdma_plugin' hook 11 -> 0x7f\n"
	"(00.240000) rdma: pid 345, fd 4 (rxe0): 2 QPs stopped\n"
	"(00.250000) Will take pid namespace in the image\n"
	"no time at all: Dumping opened files\n"
	"(00.300000) Dumping opened files (pid: 339)\n"
	"(00.320000) plugin: `rdma_plugin' hook 2 -> 0x7f\n"
	"(00.350000) rdma: pid 345, fd 4: 1024 bytes\n"
	"(00.360000) 345 fdinfo 5: pos: 0\n"
	"(00.380000) something that nobody knows\n"
	"(00.379000) of another process\n"
	"(00.400000) Dumping pages (type: 59 pid: 339)\n"
	"(inf) Dumping opened files\n"
	"(00.500000) Running post-dump scripts\n"
	"(00.900000) Dumping finished successfully\n";

static const char restore_log[] =
	"(00.000000) Version: 4.1.1\n"
	"(00.100000) Forking task with 1 pid (flags 0x6c028000)\n"
	"(00.300000)      1: mnt: Restoring mount namespace\n"
	"(00.400000) plugin: `rdma_plugin' hook 9 -> 0x7f\n"
	"(00.450000) rdma: waits for word to go on\n"
	"(00.550000) rdma: has word to go on\n"
	"(00.600000) Preparing seqsk for 391\n"
	"(00.610000) Restore finished successfully. Tasks resumed.\n"
	"(00.650000) Running post-resume scripts\n";

static char path[64];

static void write_log(const char *text)
{
	FILE *f;

	snprintf(path, sizeof(path), "/tmp/migrctl-timing.%d", (int)getpid());
	f = fopen(path, "w");
	MUST(f && fputs(text, f) >= 0 && !fclose(f));
}

static double ms_of(const struct steps *s, const char *what)
{
	double ms = 0;

	for (int i = 0; i < s->n; i++)
		if (!strcmp(s->list[i].what, what))
			ms += (s->list[i].end - s->list[i].at) * 1000;
	return round(ms * 10) / 10;
}

static void test_dump(void)
{
	struct steps s = { 0 };

	write_log(dump_log);
	/* it began 50 ms after the log did, and was held at its 0.5 s */
	CHECK(steps_of_dump(&s, path, 1000.05, 1000.5));
	CHECK(ms_of(&s, "start") == 50);
	CHECK(ms_of(&s, "freeze") == 100);
	CHECK(ms_of(&s, STEPS_RDMA "STOP") == 50);
	CHECK(ms_of(&s, "namespaces") == 50);
	CHECK(ms_of(&s, STEPS_RDMA "objects") ==
	      40); /* and then it is files again */
	CHECK(ms_of(&s, "files") == 60);
	CHECK(ms_of(&s, "memory") == 100);
	CHECK(fabs(s.list[s.n - 1].end - 1000.5) < 1e-6);
	steps_free(&s);

	write_log("(00.1) freezing cgroup\n");
	CHECK(!steps_of_dump(&s, path, 0, 1) && !s.n);
	CHECK(!steps_of_dump(&s, "/nowhere", 0, 1) && !s.n);
}

static void test_restore(void)
{
	struct steps s = { 0 };

	write_log(restore_log);
	CHECK(steps_of_restore(&s, path, 7, 7.45));
	CHECK(ms_of(&s, "images") == 100);
	CHECK(ms_of(&s, "mounts") == 100);
	CHECK(ms_of(&s, STEPS_RDMA "ATTACH") == 50);
	CHECK(ms_of(&s, "wait") == 100);
	CHECK(ms_of(&s, STEPS_RDMA "RESUME") == 50);
	CHECK(ms_of(&s, STEPS_AFTER) == 40);
	steps_free(&s);
}

static void test_many(void)
{
	struct steps s = { 0 };

	for (int i = 0; i < 3 * STEPS_MOST; i++)
		steps_add(&s, i % 2 ? "one" : "other", i, i + 1);
	CHECK(s.n == STEPS_MOST && s.list[s.n - 1].end == 3 * STEPS_MOST);
	steps_free(&s);
}

/* A queue has two mappings, and for each one CRIU asks the plug-in. */
static void test_turns(void)
{
	struct steps s = { 0 };
	FILE *f = fopen(path, "we");

	MUST(f);
	fputs("(0.00) Collecting mappings\n", f);
	for (int i = 0; i < 2 * STEPS_MOST; i++)
		fprintf(f,
			"(%d.50) plugin: `rdma' hook 4 -> 0x1\n(%d.75) Dumping\n",
			i, i);
	fprintf(f, "(%d.0) Running post-dump scripts\n", 2 * STEPS_MOST);
	fclose(f);
	CHECK(steps_of_dump(&s, path, 0, 2 * STEPS_MOST));
	CHECK(s.n == 3 && s.list[s.n - 1].end == 2 * STEPS_MOST);
	CHECK(ms_of(&s, "mappings") == 2 * STEPS_MOST * 750);
	CHECK(ms_of(&s, STEPS_RDMA "objects") == 2 * STEPS_MOST * 250);
	steps_free(&s);
}

/* The plug-in is asked of each process, one after the other, all of which are being frozen. */
static void test_processes(void)
{
	struct steps s = { 0 };
	FILE *f = fopen(path, "we");

	MUST(f);
	fputs("(0.0) Version\n", f);
	for (int i = 1; i < 9; i++)
		fprintf(f,
			"(%d.0) plugin: `rdma' hook 10 -> 0x1\n(%d.5) freezing cgroup c\n",
			i, i);
	fputs("(9.0) Running post-dump scripts\n", f);
	fclose(f);
	CHECK(steps_of_dump(&s, path, 0, 9));
	MUST(s.n > 2);
	CHECK(!strcmp(s.list[2].what, STEPS_FREEZE));
	CHECK(fabs(s.list[2].at - 1.5) < 1e-6);
	CHECK(ms_of(&s, STEPS_FREEZE) == 4000);
	steps_free(&s);
}

/* A move that stopped at 100 s, restored there from 101 s on, as the other end says. */
static json_t *joined(struct timing *t, json_t *there, double *stopped_ms)
{
	json_t *steps;

	*t = (struct timing){ .begun = 99, .stop = 100, .there = there };
	steps_add(&t->dump, "start", 100, 100.2);
	steps_add(&t->dump, "freeze", 100.2, 100.5);
	steps_add(&t->sent, "send image", 100.5, 101);
	timing_there(t, 101, 103, 1800); /* 100 ms are the way there */
	steps = timing_steps(t, "n1", "n3", stopped_ms);
	timing_free(t);
	return steps;
}

static void test_joined(void)
{
	struct timing t;
	double stopped;
	json_t *steps, *o;

	steps = joined(&t,
		       json_pack("[{sssisi}{sssisi}]", "step", "memory",
				 "at_ms", 0, "ms", 1800, "step", STEPS_AFTER,
				 "at_ms", 2000, "ms", 1),
		       &stopped);
	CHECK(json_array_size(steps) == 5);
	o = json_array_get(steps, 3);
	CHECK(!strcmp(json_string_value(json_object_get(o, "host")), "n3"));
	CHECK(fabs(json_number_value(json_object_get(o, "at_ms")) - 1100) < 1);
	/* from the freeze at 200 ms to 1100 + 2000 ms */
	CHECK(fabs(stopped - 2900) < 1);
	json_decref(steps);
}

/* The layer's part is before the dump, and after all that the other end has done. */
static void test_layer(void)
{
	struct timing t = { .begun = 99, .stop = 100, .dumped = 100.5 };
	json_t *said = json_pack("{sfsfsfsfsfsfsf}", "suspend_ms", 300.0,
				 "replace_partners_ms", 100.0, "hold_ms", 100.0,
				 "restore_replace_ms", 10.0, "exchange_ms",
				 20.0, "connect_ms", 30.0, "resume_ms", 40.0);
	double stopped;
	json_t *steps;

	timing_layer(&t, said, 103);
	steps_add(&t.dump, "start", 100.5, 101);
	CHECK(ms_of(&t.suspended, STEPS_LAYER "suspend") == 300);
	CHECK(fabs(t.suspended.list[2].end - 100.5) < 1e-6);
	CHECK(fabs(timing_suspended(&t) - 3100) < 1e-6);
	steps = timing_steps(&t, "n1", "n3", &stopped);
	CHECK(json_array_size(steps) == 8);
	CHECK(!strcmp(json_string_value(
			      json_object_get(json_array_get(steps, 7), "step")),
		      STEPS_LAYER "resume"));
	json_decref(steps);
	timing_free(&t);

	/* nobody has said so much, or when */
	t = (struct timing){ .stop = 100 };
	timing_layer(&t, NULL, 103);
	json_object_set_new(said, "hold_ms", json_real(-1));
	timing_layer(&t, said, 0);
	CHECK(t.suspended.n == 2 && !t.connected.n && !timing_suspended(&t));
	timing_free(&t);
	json_decref(said);
}

/* Whatever the other end says: it is a picture in the end, or nothing is said of it. */
static void test_hostile(void)
{
	static const char *const said[] = {
		"null",
		"7",
		"{}",
		"[null]",
		"[{}]",
		"[{\"step\":7}]",
		"[{\"step\":\"a\",\"at_ms\":\"b\",\"ms\":[]}]",
		"[{\"step\":\"a\",\"at_ms\":-1e308,\"ms\":1e308}]",
		"[{\"step\":\"<svg>&\\\"\\u0007\",\"at_ms\":1,\"ms\":900}]",
		"[{\"step\":\"CRIU ends\",\"at_ms\":1e308,\"ms\":1e308}]",
	};
	char svg[4096], ascii[128] = "\n";
	struct timing t;
	double stopped;
	json_t *o;
	FILE *f;
	size_t n;

	for (char c = ' '; c <= '~'; c++)
		ascii[c - ' ' + 1] = c;
	for (size_t i = 0; i < sizeof(said) / sizeof(said[0]); i++) {
		o = json_pack("{ssssssso}", "name", "c<\303\244", "from", "n1",
			      "to", "n3", "steps",
			      joined(&t,
				     json_loads(said[i], JSON_DECODE_ANY, NULL),
				     &stopped));
		CHECK(flame_draw(path, o));
		json_decref(o);
		f = fopen(path, "r");
		n = fread(svg, 1, sizeof(svg) - 1, f);
		fclose(f);
		svg[n] = 0;
		CHECK(strstr(svg, "</svg>\n") && !strstr(svg, "<svg>&"));
		CHECK(!strstr(svg, "c<") && !strstr(svg, "inf"));
		/* what is cut to its length is text still */
		CHECK(strspn(svg, ascii) == n);
	}
	CHECK(!flame_draw("/nowhere/at/all", NULL));
}

int main(void)
{
	test_dump();
	test_restore();
	test_many();
	test_turns();
	test_processes();
	test_joined();
	test_layer();
	test_hostile();
	unlink(path);
	return check_result();
}
