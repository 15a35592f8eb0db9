#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# All fields of each type of packet, named and nested as people will use them,
# and the packet list.

. "$(dirname "$0")/lib.sh"

capture kinds >"$tmp/in.pcap"
# The index of each packet is the day of the capture: of no interest.
shark -2 -r "$tmp/in.pcap" -T json -J migros -Y migros |
	grep -v '"_index"' >"$tmp/kinds.actual"
same "$here/kinds.json" "$tmp/kinds.actual"

shark -2 -r "$tmp/in.pcap" >"$tmp/list.actual"
same "$here/kinds.list" "$tmp/list.actual"
