# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=sh
#
# What the tests share. Wants ROCE_PCAP (the generator) and PLUGINS (the folder
# with the plug-in) in the environment, as ctest gives them.

set -eu

here=$(cd "$(dirname "$0")" && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
chmod a+rx "$tmp" # whoever tshark-migros becomes reads the captures

# A bug in a dissector is a crash.
export WIRESHARK_ABORT_ON_DISSECTOR_BUG=1 TZ=UTC LC_ALL=C.UTF-8

fail()
{
	echo "FAILED: $*" >&2
	exit 1
}

# say what is done, and do it
run()
{
	echo "+ $*" >&2
	"$@"
}

# capture TRACE [OPTION]... > PCAP
capture()
{
	trace=$here/$1.trace
	shift
	run "$ROCE_PCAP" "$@" <"$trace"
}

# tshark with our plug-in. RoCEv2 has no UDP checksum, over IPv6 neither.
shark()
{
	echo "+ tshark $*" >&2
	"$here/../tshark-migros" -o udp.ignore_ipv6_zero_checksum:TRUE "$@" \
		2>"$tmp/errors" || {
		cat "$tmp/errors" >&2
		fail "tshark"
	}
	! grep -i 'dissector bug\|plugin' "$tmp/errors" >&2 ||
		fail "tshark complains"
}

# same EXPECTED ACTUAL; lines with # in EXPECTED are for the reader
same()
{
	sed '/^#/d' "$1" >"$tmp/expected"
	run diff -u "$tmp/expected" "$2" || fail "not as $1 says"
}
