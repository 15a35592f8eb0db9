#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# tshark -z migros,tree: the counts and times of a trace.

. "$(dirname "$0")/lib.sh"

capture migration >"$tmp/in.pcap"
# Up to the maximum: rates and bursts are Wireshark's business.
shark -q -r "$tmp/in.pcap" -z migros,tree |
	cut -c 1-84 | sed '/^[-=]*$/d; s/ *$//' >"$tmp/stats.actual"
same "$here/stats.expected" "$tmp/stats.actual"
