/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The GIDs of this host's devices, as sysfs has them
 */
#ifndef MIGRD_GIDS_H
#define MIGRD_GIDS_H

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>

enum {
	MOST_GIDS = 1024, /* of a port */
};

struct gid_entry {
	struct in6_addr gid;
	unsigned int index;
	char type[16]; /* "RoCE v2", ... */
};

/** gids_port - the port of a device that has it, or 0 */
uint32_t gids_port(const char *device, const struct in6_addr *gid);

/**
 * gids_beside - all that the port has which has this one
 * @all: MOST_GIDS
 *
 * Return: how many; 0 if no device has it
 */
size_t gids_beside(const struct in6_addr *gid, struct gid_entry *all);

#endif
