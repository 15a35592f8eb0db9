// SPDX-License-Identifier: GPL-2.0
/*
 * The daemon, and what it says to whom
 */
#include <glob.h>

#include "at_mover.h"
#include "check.h"

static const char nobody[] = "{\"peer\": \"admin\"}\n";

static void test_words(void)
{
	CHECK(done(NULL, "{\"do\": \"list\"}\n", "containers"));
	CHECK(done(PERSON, "{\"do\": \"status\"}\n", "moves"));
	CHECK(done(HOST, "{\"do\": \"status\"}\n", "moves"));
	CHECK(refused(NULL, "{\"do\": \"dance\"}\n", "'dance' is no word"));
	CHECK(refused(NULL, "{}\n", "'' is no word"));
	CHECK(refused(NULL, "{\"do\": 7}\n", "'' is no word"));
	/* what cannot be understood is no longer listened to */
	CHECK(refused(NULL, "do\n", "ended"));
	CHECK(refused(NULL, "[\"do\"]\n", "ended"));
}

/* Somebody who moves containers is no host, nor is who is not said to be one. */
static void test_who(void)
{
	const char *const of_hosts[] = {
		"{\"do\": \"outcome\", \"id\": \"" ID "\"}\n",
		"{\"do\": \"forget\", \"id\": \"" ID "\"}\n",
		"{\"do\": \"would\", \"name\": \"c1\", \"needs\": {}}\n",
		"{\"do\": \"reserve\", \"id\": \"" ID "\", \"name\": \"c1\"}\n",
	};

	for (size_t i = 0; i < sizeof(of_hosts) / sizeof(of_hosts[0]); i++) {
		CHECK(refused(PERSON, of_hosts[i], "not for admin"));
		CHECK(refused(nobody, of_hosts[i], "not for admin"));
	}
	CHECK(done(HOST, of_hosts[0], "answer"));
	CHECK(done(NULL, of_hosts[0], "answer"));
	CHECK(done(HOST, of_hosts[1], NULL));
	CHECK(refused(HOST, of_hosts[2], "the kernel here"));
}

static void test_names(void)
{
	CHECK(refused(
		PERSON,
		"{\"do\": \"migrate\", \"name\": \"../c\", \"to\": \"n3\"}\n",
		"no name of a container"));
	CHECK(refused(PERSON, "{\"do\": \"migrate\", \"name\": \"c1\"}\n",
		      "no host"));
	CHECK(refused(
		PERSON,
		"{\"do\": \"migrate\", \"name\": \"c1\", \"to\": \"n3\", \"pre_copy\": 99}\n",
		"no number of rounds"));
	CHECK(refused(
		PERSON,
		"{\"do\": \"migrate\", \"name\": \"c1\", \"to\": \"n3\", \"pre_copy\": 3, \"budget\": 100}\n",
		"no budget"));
	CHECK(refused(PERSON,
		      "{\"do\": \"check\", \"name\": \"-c\", \"to\": \"n3\"}\n",
		      "no name of a container"));
	/* what our own plug-in says goes before the rest */
	CHECK(refused(PERSON,
		      "{\"do\": \"check\", \"name\": \"c1\", \"to\": \"n3\"}\n",
		      "rdma: it is broken"));
	CHECK(refused(HOST,
		      "{\"do\": \"reserve\", \"id\": \"x\", \"name\": \".C\"}\n",
		      "no name of a container"));
	CHECK(refused(
		HOST,
		"{\"do\": \"reserve\", \"id\": \"x\", \"name\": \"C\", \"runtime\": \"lxc\"}\n",
		"C is of 'lxc', which is no runtime here"));
	CHECK(refused(PERSON, "{\"do\": \"abort\", \"name\": \"c1\"}\n",
		      "no move of c1 is under way"));
	CHECK(refused(
		PERSON,
		"{\"do\": \"recover\", \"name\": \"c1\", \"fenced\": \"n3\"}\n",
		"no move of c1 is under way"));
}

/* What the runtime complains of is nobody else's, and gone with who has asked. */
static void test_errors(void)
{
	glob_t left;

	CHECK(glob("/run/migrctl/errors*", 0, NULL, &left) == GLOB_NOMATCH);
}

int main(void)
{
	mover_begins();
	test_words();
	test_who();
	test_names();
	test_errors();
	mover_ends();
	return check_result();
}
