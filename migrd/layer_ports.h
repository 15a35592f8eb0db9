/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Ports of QPs that get datagrams, and the GIDs that each has
 */
#ifndef MIGRD_LAYER_PORTS_H
#define MIGRD_LAYER_PORTS_H

#include "layer.h"

/** layer_port - that of a host which has this GID; asked for once. NULL, and the reason */
const struct layer_port *layer_port(struct layer *l, const char *host,
				    const struct in6_addr *gid, char *reason,
				    size_t bytes);

size_t layer_port_gids(const struct layer_port *p);

/**
 * layer_port_pair - which GID takes the place of the i-th
 *
 * Return: false if none does, or that address had its turn
 */
bool layer_port_pair(const struct layer_port *was, const struct layer_port *is,
		     size_t i, const struct in6_addr **gid,
		     const struct in6_addr **at);

void layer_free_ports(struct layer *l);

#endif
