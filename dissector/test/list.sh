#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# migros-trace: a line for each packet of the protocol, and an error where tshark
# has one. roce-trace: two lines for each queue pair that packets go to.

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

capture migration >"$tmp/in.pcap"
run "$here/../roce-trace" "$tmp/in.pcap" >"$tmp/list" ||
	fail "a good capture is refused"
cat >"$tmp/wanted" <<-END
	time from to packet QPN
	0.000000 10.0.0.1 10.0.0.2 first packet 0x000012
	0.001000 10.0.0.2 10.0.0.1 first packet 0x000011
	0.600000 10.0.0.3 10.0.0.1 first packet 0x000011
	0.612000 10.0.0.1 10.0.0.3 first packet 0x000015
	1.000000 10.0.0.1 10.0.0.3 last packet 0x000015
	1.001000 10.0.0.3 10.0.0.1 last packet 0x000011
	1.252000 10.0.0.1 10.0.0.2 last packet 0x000012
	1.254000 10.0.0.2 10.0.0.1 last packet 0x000011
END
tr -s ' ' <"$tmp/list" | sed 's/^ //' >"$tmp/words"
same "$tmp/wanted" "$tmp/words"

echo "this is no capture, and long enough to see that" >"$tmp/in.pcap"
! list || fail "garbage is a good capture"
! run "$here/../roce-trace" "$tmp/in.pcap" || fail "garbage has queue pairs"
