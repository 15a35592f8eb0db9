// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "successor.h"

#include <netinet/in.h>
#include <string.h>

const char *successor_family(const union ibv_gid *gid)
{
	const struct in6_addr *addr = (const struct in6_addr *)gid->raw;

	if (IN6_IS_ADDR_V4MAPPED(addr))
		return "IPv4";
	return IN6_IS_ADDR_LINKLOCAL(addr) ? "link-local" : "IPv6";
}

/* how well it takes that one's place; 0: not at all */
static int rank(const struct ibv_gid_entry *e, const struct ibv_gid_entry *was,
		uint32_t index)
{
	if (e->port_num != was->port_num || e->gid_type != was->gid_type ||
	    strcmp(successor_family(&e->gid), successor_family(&was->gid)))
		return 0;
	if (!memcmp(&e->gid, &was->gid, sizeof(e->gid)))
		return 3;
	return e->gid_index == index ? 2 : 1;
}

const struct ibv_gid_entry *successor_of(const struct ibv_gid_entry *all,
					 size_t n,
					 const struct ibv_gid_entry *was,
					 uint32_t index)
{
	const struct ibv_gid_entry *best = NULL;

	for (size_t i = 0; i < n; i++)
		if (rank(&all[i], was, index) >
		    (best ? rank(best, was, index) : 0))
			best = &all[i];
	return best;
}
