// SPDX-License-Identifier: GPL-2.0
/*
 * A peer that says nothing is waited for up to the deadline, whenever that passes; what another one
 * has said stays.
 */
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "client.h"

static long now, step;

int clock_gettime(clockid_t which, struct timespec *t)
{
	(void)which;
	now += step;
	*t = (struct timespec){ now / 1000, now % 1000 * 1000000 };
	return 0;
}

int main(void)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
	struct conn c;
	size_t bytes;
	int fds[2];

	alarm(20); /* if it waits forever */
	for (step = 1; step <= 64; step *= 2) {
		MUST(!socketpair(AF_UNIX, SOCK_STREAM, 0, fds));
		MUST(conn_init(&c, ctx, fds[0], LINE_BYTES));
		SSL_set_connect_state(c.ssl);
		CHECK(!client_hear(&c, &bytes, now + 65));
		CHECK(c.is_late && strstr(c.reason, "too long"));
		CHECK(conn_grow(&c, 200000));
		c.len = 100000;
		CHECK(!conn_grow(&c, 99999) && c.room == 200000);
		CHECK(conn_grow(&c, 100000) && c.room == 100000);
		conn_free(&c);
		close(fds[1]);
	}
	SSL_CTX_free(ctx);
	return check_result();
}
