// SPDX-License-Identifier: GPL-2.0
/*
 * Queue pairs as a file says, "QPN PID" lines in qps of the working folder, all at each
 * address of 10.10.0.0/16; whoever asks for one of -1 dies. Those that were asked of as
 * a process' are in the file asked.
 */
#include "gids.h"
#include "rdma.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int rdma_owner(uint32_t qpn, const struct in6_addr *gid, pid_t *pid,
	       char *reason, size_t bytes)
{
	char text[INET6_ADDRSTRLEN];
	FILE *f = fopen("qps", "r");
	unsigned int number;
	int err = ENOENT;

	inet_ntop(AF_INET6, gid, text, sizeof(text));
	if (!strncmp(text, "::ffff:10.10.", 13))
		while (err && f && fscanf(f, "%u %d", &number, pid) == 2)
			if (number == qpn)
				err = 0;
	if (!err && *pid < 0)
		_exit(23); /* as a sanitizer does */
	if (f)
		fclose(f);
	if (err)
		snprintf(reason, bytes, "there is no QP %u at %s", qpn, text);
	return err;
}

int rdma_owns(pid_t pid, const uint32_t *qpns, size_t n,
	      const struct in6_addr *gid, char *reason, size_t bytes)
{
	FILE *f = fopen("asked", "a");
	pid_t owner;
	int err = 0;

	for (size_t i = 0; f && i < n; i++)
		fprintf(f, "%u ", qpns[i]);
	if (f)
		fclose(f);
	for (size_t i = 0; !err && i < n; i++) {
		err = rdma_owner(qpns[i], gid, &owner, reason, bytes);
		if (!err && owner != pid) {
			snprintf(reason, bytes, "QP %u is another process'",
				 qpns[i]);
			err = EPERM;
		}
	}
	return err;
}

/* "GID INDEX TYPE" lines in gids: of all ports */
size_t gids_beside(const struct in6_addr *gid, struct gid_entry *all)
{
	FILE *f = fopen("gids", "r");
	char text[INET6_ADDRSTRLEN];
	bool found = false;
	size_t n = 0;

	while (f && n < MOST_GIDS &&
	       fscanf(f, "%45s %u %15[^\n]", text, &all[n].index,
		      all[n].type) == 3 &&
	       inet_pton(AF_INET6, text, &all[n].gid) == 1) {
		found |= !memcmp(gid, &all[n].gid, sizeof(*gid));
		n++;
	}
	if (f)
		fclose(f);
	return found ? n : 0;
}
