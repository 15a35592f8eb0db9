#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# trace.sh NAME: what tshark finds in NAME.trace is what NAME.expected says. One
# packet a line: number, type, what it belongs to; expert information below it.
# Twice over the capture (-2), so that packets know what comes after them.

. "$(dirname "$0")/lib.sh"

fields='frame.number migros.type migros.cap migros.qpn migros.epoch
migros.stopped_in migros.resumed_in migros.resend_of migros.acked_in
migros.ack_of migros.round_trip migros.blackout migros.blackout_total
_ws.expert.message'

# The first line of the table has the names, of which the last part will do.
readable()
{
	awk -F '\t' '
	NR == 1	{ split($0, name); next }
		{ printf "%s %s", $1, $2 ? $2 : "-" }
		{ for (i = 3; i < NF; i++) if ($i != "") {
			sub(/.*\./, "", name[i])
			printf " %s=%s", name[i], $i
		  } }
		{ print ""; if ($NF != "") print "\t" $NF }'
}

capture "$1" >"$tmp/in.pcap"
# shellcheck disable=SC2046,SC2086 # one -e for each field
shark -2 -r "$tmp/in.pcap" -T fields -E header=y \
	$(printf -- '-e %s ' $fields) >"$tmp/table"
readable <"$tmp/table" >"$tmp/$1.actual"
same "$here/$1.expected" "$tmp/$1.actual"
