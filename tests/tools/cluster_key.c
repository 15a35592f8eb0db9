// SPDX-License-Identifier: GPL-2.0
/*
 * HMACs are computed by the kernel, so that no library is needed on the node.
 */
#include <err.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <linux/if_alg.h>
#include <sys/socket.h>

#include "cluster_key.h"
#include "rxe_migr_wire.h"

static uint8_t key[MIGR_KEY_BYTES];
static int tfm = -1;

void cluster_key_read(const char *path, uint32_t *id)
{
	FILE *f = fopen(path, "r");

	if (!f || fscanf(f, "%" SCNu32 ":", id) != 1)
		errx(2, "no key in %s", path);
	for (int i = 0; i < MIGR_KEY_BYTES; i++)
		if (fscanf(f, "%2hhx", &key[i]) != 1)
			errx(2, "no key in %s", path);
	fclose(f);
	if (tfm >= 0)
		close(tfm);
	tfm = -1;
}

static void open_tfm(void)
{
	struct sockaddr_alg a = { .salg_family = AF_ALG,
				  .salg_type = "hash",
				  .salg_name = "hmac(sha256)" };

	tfm = socket(AF_ALG, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (tfm < 0 || bind(tfm, (void *)&a, sizeof(a)) ||
	    setsockopt(tfm, SOL_ALG, ALG_SET_KEY, key, sizeof(key)))
		err(2, "hmac(sha256)");
}

void cluster_key_mac(const void *in, size_t length, uint8_t *mac)
{
	int op;

	if (tfm < 0)
		open_tfm();
	op = accept(tfm, NULL, NULL);
	if (op < 0 || write(op, in, length) != (ssize_t)length ||
	    read(op, mac, CLUSTER_KEY_MAC) != CLUSTER_KEY_MAC)
		err(2, "hmac(sha256)");
	close(op);
}
