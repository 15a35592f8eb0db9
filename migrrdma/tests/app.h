/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What tests do as an application
 */
#ifndef APP_H
#define APP_H

#include <unistd.h>

#include "../../tests/check.h"
#include "fake_verbs.h"

#define WAIT(cond)                                         \
	do {                                               \
		for (int i_ = 0; !(cond); i_++) {          \
			MUST(i_ < 200000); /* some 20 s */ \
			usleep(100);                       \
		}                                          \
	} while (0)

/* errno is @err after @expr is NULL */
#define FAILS_WITH(err, expr)                                            \
	do {                                                             \
		errno = 0;                                               \
		CHECK(!(expr));                                          \
		CHECK(errno == (err), "errno is %d (%s)", errno, #expr); \
	} while (0)

static inline struct ibv_context *app_open(int n)
{
	struct ibv_device **list;
	struct ibv_context *ctx;

	list = ibv_get_device_list(NULL);
	MUST(list);
	ctx = ibv_open_device(list[n]);
	MUST(ctx);
	ibv_free_device_list(list);
	MUST(ctx != fake_newest(FAKE_CONTEXT));
	return ctx;
}

static inline void app_close(struct ibv_context *ctx)
{
	CHECK(!ibv_close_device(ctx));
	CHECK(fake_alive(FAKE_DEVICE) == 0);
}

static inline int app_end(void)
{
	fake_end();
	return check_result();
}

#endif
