// SPDX-License-Identifier: GPL-2.0
/*
 * The client
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rig.h"

/* its exit code; what it has said is the answer */
static int says(const char *input, const char *cert, const char *name,
		const char *options)
{
	char command[1024];
	size_t n;
	FILE *f;
	int status;

	snprintf(command, sizeof(command),
		 "%s | %s -k %s/%s.key -c %s/%s.crt -a %s/ca.crt %s%s %s "
		 "127.0.0.1 %s 2>&1",
		 input, MIGRD_SAY, dir, cert, dir, cert, dir,
		 *name ? "-n " : "", name, options, daemon_port());
	f = popen(command, "r");
	MUST(f);
	n = fread(answer, 1, 4096, f);
	answer[n] = 0;
	status = pclose(f);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void test_words(void)
{
	puts("words");
	CHECK(!says("printf 'processes\\nprocesses\\n'", "n1", "n2", ""));
	CHECK(!strcmp(answer, "{\"ok\":true,\"processes\":[]}\n"
			      "{\"ok\":true,\"processes\":[]}\n"),
	      "%s", answer);
	CHECK(!says("printf processes", "n1", "n2", ""));
	CHECK(!says("true", "n1", "n2", "") && !*answer, "%s", answer);
	CHECK(says("printf 'x\\nprocesses\\n'", "n1", "n2", "") == 1);
	CHECK(strstr(answer, "[]"), "%s", answer);
}

static void test_peers(void)
{
	puts("names");
	/* The name counts, which is that of the host if it has no other. */
	CHECK(says("echo processes", "n1", "", "") == 1);
	CHECK(strstr(answer, "IP address mismatch"), "%s", answer);
	CHECK(says("echo processes", "n1", "n3", "") == 1);
	CHECK(strstr(answer, "ostname mismatch"), "%s", answer);
	CHECK(says("echo processes", "none", "n2", "") == 1);
	CHECK(strstr(answer, "none.crt: No such file"), "%s", answer);
	CHECK(says("echo processes", "n1", "n2", "-x") == 2);
}

/* nothing more is to be said, and the end of the other side is noticed */
static void test_ends(void)
{
	struct fake f;
	char input[160];

	puts("ends");
	fake_start(&f, GOOD, "run");
	snprintf(input, sizeof(input), "printf 'open %s\\nsuspend\\nresume\\n'",
		 f.id);
	CHECK(!says(input, "n1", "n2", ""), "%s", answer);
	CHECK(fake_ended(&f) == 'r');
	snprintf(input, sizeof(input), "(echo open %s; echo die; sleep 1)",
		 f.id);
	CHECK(says(input, "n1", "n2", "") == 1);
	CHECK(strstr(answer, "\"errno\":104"), "%s", answer);
	fake_kill(&f);

	fake_start(&f, TALKS, "run");
	snprintf(input, sizeof(input), "(echo open %s; echo x; sleep 1)", f.id);
	CHECK(says(input, "n1", "n2", "") == 1);
	fake_kill(&f);
	fake_start(&f, NO_JSON, "run");
	snprintf(input, sizeof(input), "(echo open %s; echo x)", f.id);
	CHECK(says(input, "n1", "n2", "") == 1);
	CHECK(strstr(answer, "no JSON with") && !strchr(answer, 27), "%s",
	      answer);
	fake_kill(&f);

	daemon_signal(SIGKILL);
	daemon_end();
	CHECK(says("echo processes", "n1", "n2", "") == 1);
	CHECK(strstr(answer, "127.0.0.1: Connection refused"), "%s", answer);
}

int main(void)
{
	rig_begin();
	daemon_start("run", "none");
	test_words();
	test_peers();
	test_ends();
	rig_end();
	return check_result();
}
