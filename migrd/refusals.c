// SPDX-License-Identifier: GPL-2.0
#include "refusals.h"

#include <stdatomic.h>
#include <sys/mman.h>

#include "conn.h"
#include "note.h"

enum {
	MOST = 100, /* in a while */
	WHILE_MS = 60000,
};

static struct {
	atomic_llong since;
	atomic_uint n;
} *shared;

bool refusals_init(void)
{
	void *at = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		return false;
	shared = at;
	atomic_store(&shared->since, now_ms());
	return true;
}

bool refusals_tell(void)
{
	long long since = atomic_load(&shared->since), now = now_ms();
	unsigned int n;

	if (now - since >= WHILE_MS &&
	    atomic_compare_exchange_strong(&shared->since, &since, now)) {
		n = atomic_exchange(&shared->n, 0);
		if (n > MOST)
			note("%u more were refused before", n - MOST);
	}
	return atomic_fetch_add(&shared->n, 1) < MOST;
}
