#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# A changed InfiniBand preference makes Wireshark put its own dissector back at
# the RoCEv2 port. Ours must be found there again, wherever that port is.

. "$(dirname "$0")/lib.sh"

# check PORT PREFERENCE...
check()
{
	port=$1
	shift
	capture migration -p "$port" >"$tmp/in.pcap"
	found=$(shark -r "$tmp/in.pcap" "$@" -Y 'migros.type == "RESUME_ACK"' |
		wc -l)
	[ "$found" = 2 ] || fail "$found of 2 RESUME_ACK with $*"
}

check 4791 -o infiniband.try_heuristic_first:FALSE
check 4792 -o infiniband.rroce.port:4792

# The port that was given up is no longer ours.
capture migration >"$tmp/in.pcap"
shark -r "$tmp/in.pcap" -o infiniband.rroce.port:4792 -Y migros >"$tmp/none"
same /dev/null "$tmp/none"

# Without our protocol the old one goes on.
count=$(shark -r "$tmp/in.pcap" --disable-protocol migros -Y infiniband | wc -l)
[ "$count" = 16 ] || fail "$count of 16 packets are RoCE"
