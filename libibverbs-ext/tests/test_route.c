// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What the kernel's routing tables say, in a network namespace of our own. Its
 * only device is lo, with two addresses of each family and a few routes.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <sched.h>
#include <stdlib.h>

#include "../../tests/check.h"
#include "migr_restore.h"

#define LO 1 /* index of the device */

/* IPv6 answers for an address by a route that a worker makes, after ip(8) */
static const char setup[] = "set -e; ip link set lo up\n"
			    "ip addr add 10.9.0.3/32 dev lo\n"
			    "ip addr add 10.9.5.3/32 dev lo\n"
			    "ip route add 192.0.2.0/24 dev lo src 10.9.5.3\n"
			    "ip route add prohibit 198.51.100.0/24\n"
			    "ip addr add fd09::3/128 dev lo nodad\n"
			    "ip addr add fd09:5::3/128 dev lo nodad\n"
			    "ip route add fd92::/64 dev lo src fd09:5::3\n"
			    "for _ in $(seq 1000); do\n"
			    "	n=$(ip -6 route show table local |\n"
			    "		grep -c '^local fd09:') || true\n"
			    "	[ \"$n\" -lt 2 ] || exit 0\n"
			    "	sleep 0.01\n"
			    "done\n"
			    "echo 'the addresses have no local routes' >&2\n"
			    "exit 1\n";

static void gid_of(const char *text, uint8_t *gid)
{
	char mapped[64];

	snprintf(mapped, sizeof(mapped), "%s%s",
		 strchr(text, ':') ? "" : "::ffff:", text);
	MUST(inet_pton(AF_INET6, mapped, gid) == 1);
}

int main(void)
{
	static const struct {
		const char *peer, *from;
		uint32_t ifindex;
		enum migr_reach want;
	} cases[] = {
		{ "192.0.2.7", "10.9.5.3", LO, MIGR_REACH_BEST },
		{ "192.0.2.7", "10.9.0.3", LO, MIGR_REACH_ROUTE },
		{ "203.0.113.7", "10.9.0.3", LO, MIGR_REACH_NONE },
		{ "198.51.100.7", "10.9.0.3", LO, MIGR_REACH_NONE },
		{ "10.9.5.3", "10.9.5.3", LO, MIGR_REACH_BEST },
		/* of another namespace: its address, its device */
		{ "192.0.2.7", "10.9.0.4", LO, MIGR_REACH_UNKNOWN },
		{ "192.0.2.7", "10.9.0.3", 77, MIGR_REACH_UNKNOWN },
		{ "fd92::7", "fd09:5::3", LO, MIGR_REACH_BEST },
		{ "fd92::7", "fd09::3", LO, MIGR_REACH_ROUTE },
		{ "fd77::7", "fd09::3", LO, MIGR_REACH_NONE },
	};
	uint8_t peer[16], from[16];
	enum migr_reach got;
	size_t i;

	MUST(!unshare(CLONE_NEWNET));
	MUST(!system(setup));
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		gid_of(cases[i].peer, peer);
		gid_of(cases[i].from, from);
		got = migr_route(peer, from, cases[i].ifindex);
		CHECK(got == cases[i].want, "%s from %s: %d, not %d",
		      cases[i].peer, cases[i].from, got, cases[i].want);
	}
	return check_result();
}
