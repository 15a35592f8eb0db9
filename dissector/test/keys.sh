#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Who has the key is told whether a MAC is right, and a forged RESUME ends no
# blackout. Who has not is told nothing.

. "$(dirname "$0")/lib.sh"

key=000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f

# macs EXPECTED [OPTION]...: frame, whether its MAC is right, blackout
macs()
{
	printf '%s\n' "$1" >"$tmp/macs.expected"
	shift
	shark -r "$tmp/in.pcap" "$@" -Y migros -T fields -E separator=, \
		-e frame.number -e migros.mac_ok -e migros.blackout \
		>"$tmp/macs.actual"
	same "$tmp/macs.expected" "$tmp/macs.actual"
}

capture keys >"$tmp/in.pcap"
macs '1,,
2,,0.100000000
3,,
4,,
5,,
6,,
7,,
8,,
9,,
10,,'
macs '1,,
2,False,
3,True,0.200000000
4,True,
5,,
6,False,
7,,
8,True,
9,True,
10,,' -o "uat:migros_keys:\"7\",$key"

# A key that is none is refused when it is given.
! (shark -r "$tmp/in.pcap" -o 'uat:migros_keys:"7",0011') 2>"$tmp/refusal" ||
	fail "a short key was taken"
run grep '64 hexadecimal digits' "$tmp/refusal" || fail "no reason given"
