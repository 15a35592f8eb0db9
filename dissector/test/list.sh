#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# migros-trace: a line for each packet of the protocol, and an error where tshark
# has one.

. "$(dirname "$0")/lib.sh"

list()
{
	run "$here/../migros-trace" "$tmp/in.pcap" >"$tmp/list"
}

capture migration >"$tmp/in.pcap"
list || fail "a good capture is refused"
awk '{ print $4 }' "$tmp/list" >"$tmp/types"
cat >"$tmp/wanted" <<-END
	packet
	NAK_STOPPED
	NAK_STOPPED
	RESUME
	RESUME
	RESUME_ACK
	first
	NAK_STOPPED
	RESUME
	RESUME_ACK
	first
END
same "$tmp/wanted" "$tmp/types"

# what README.md shows
cp "$here/../sample.pcap" "$tmp/in.pcap"
list || fail "the sample is refused"
same "$here/sample.list" "$tmp/list"

echo "this is no capture, and long enough to see that" >"$tmp/in.pcap"
! list || fail "garbage is a good capture"
