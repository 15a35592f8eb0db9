// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Tables of names
 */
#include "names.h"
#include "app.h"
#include "peer.h"

static void test_table(void)
{
	static const uint32_t index[] = { 0,	  1,	    0xfff,
					  0x1000, 0x123456, 0xffffff };
	struct names *n = names_new();

	puts("a table");
	MUST(n);
	for (unsigned int i = 0; i < 6; i++)
		CHECK(!names_get(n, index[i]));
	for (unsigned int i = 0; i < 6; i++)
		CHECK(!names_set(n, index[i], i + 1));
	for (unsigned int i = 0; i < 6; i++)
		CHECK(names_get(n, index[i]) == i + 1);
	CHECK(!names_get(n, 2) && !names_get(n, 0xffe));
	CHECK(!names_set(n, 1, 0) && !names_get(n, 1));
	CHECK(!names_set(n, 0x777777, 0)); /* where there is nothing */
	names_clear(n);
	for (unsigned int i = 0; i < 6; i++)
		CHECK(!names_get(n, index[i]));
	names_free(n);
	names_free(NULL);
}

static void test_keys(void)
{
	struct names *n = names_new();

	puts("keys");
	MUST(n);
	CHECK(names_key(n, 0x1234, NO_KEY) == NO_KEY);
	CHECK(!names_set_key(n, 0x123405, 0xabcd07));
	CHECK(names_key(n, 0x123405, NO_KEY) == 0xabcd07);
	/* another tag is not the same key: it is as far from the real one */
	CHECK(names_key(n, 0x123404, NO_KEY) == 0xabcd06);
	CHECK(names_key(n, 0x1234fe, NO_KEY) == 0xabcd00);
	CHECK(names_key(n, 0x123305, NO_KEY) == NO_KEY);
	/* nor is the real one */
	CHECK(names_key(n, 0xabcd07, NO_KEY) == NO_KEY);
	CHECK(!names_set_key(n, 0x123405, 0x555501));
	CHECK(names_key(n, 0x123405, NO_KEY) == 0x555501);
	CHECK(!names_set_key(n, 0xffffff00, 0xffffff00));
	CHECK(names_key(n, 0xffffff00, NO_KEY) == 0xffffff00);
	names_free(n);
}

static void test_numbers(void)
{
	struct names *n = names_new();

	puts("numbers of QPs");
	MUST(n);
	CHECK(names_qpn(n, 17) == 17); /* none has been replaced */
	CHECK(!names_set(n, 18, 17));
	CHECK(names_qpn(n, 18) == 17 && names_qpn(n, 17) == 17);
	names_free(n);
}

static void test_peers(void)
{
	struct peer *one = peer_get("one"), *other = peer_get("other");

	puts("peers");
	MUST(one && other && one != other);
	CHECK(peer_get("one") == one && peer_get("other") == other);
	CHECK(!peer_keys(one));
	CHECK(!peer_set_key(one, 0x100, 0x200));
	CHECK(names_key(peer_keys(one), 0x100, NO_KEY) == 0x200);
	CHECK(names_key(peer_keys(one), 0x200, NO_KEY) == NO_KEY);
	CHECK(!peer_keys(other));
	CHECK(!peer_forget_keys(other));
	CHECK(names_key(peer_keys(other), 0x100, NO_KEY) == NO_KEY);
	CHECK(!peer_set_key(one, 0x300, 0x400));
	CHECK(!peer_set_key(one, 0x100, 0));
	CHECK(names_key(peer_keys(one), 0x100, NO_KEY) == NO_KEY);
	CHECK(names_key(peer_keys(one), 0x300, NO_KEY) == 0x400);
	CHECK(!peer_forget_keys(one));
	CHECK(names_key(peer_keys(one), 0x300, NO_KEY) == NO_KEY);
}

int main(void)
{
	test_table();
	test_keys();
	test_numbers();
	test_peers();
	return check_result();
}
