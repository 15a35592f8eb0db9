#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Packets of other drivers look as they do without the plug-in, but for the one
# line that says whether their sender can migrate.

. "$(dirname "$0")/lib.sh"

capture stock >"$tmp/in.pcap"
shark -V -r "$tmp/in.pcap" >"$tmp/all"
run grep -c 'Migratable sender' "$tmp/all" || fail "the plug-in says nothing"
grep -v 'Migratable sender' "$tmp/all" >"$tmp/with"
HOME=$tmp run tshark -V -r "$tmp/in.pcap" >"$tmp/without" 2>"$tmp/errors"
same "$tmp/without" "$tmp/with"
