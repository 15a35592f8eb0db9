# shellcheck shell=bash disable=SC2154 # shared with lab
# SPDX-License-Identifier: GPL-2.0
#
# Part of lab: the namespace with the two bridges, and the taps of the nodes.

network()
{
	local br

	[ -e "/run/netns/$ns" ] || ip netns add "$ns"
	echo "$ns $dir" >"$dir/ns"
	# Only our own packets belong on these wires.
	in_ns sh -c 'echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6
		echo 1 >/proc/sys/net/ipv6/conf/all/disable_ipv6'
	for br in fabric lan; do
		ip -n "$ns" link show $br >/dev/null 2>&1 ||
			ip -n "$ns" link add $br type bridge stp_state 0 \
				forward_delay 0 mcast_snooping 0
	done
	# Nor are they anything for the packet filter, if the host has a bridge
	# look there.
	# shellcheck disable=SC2016 # expanded by the inner shell
	in_ns sh -c 'cd /proc/sys/net/bridge 2>/dev/null || exit 0
		for f in bridge-nf-call-*; do echo 0 >$f; done'
	ip -n "$ns" link set fabric mtu 4200 up
	ip -n "$ns" addr replace 10.20.0.254/24 dev lan
	ip -n "$ns" link set lan up
	ip -n "$ns" link set lo up
}

# Made anew, because a tap keeps the offloads of whoever used it last. Its queue holds
# what many QPs send at once: a line that nobody has made bad loses nothing.
tap() # NAME BRIDGE
{
	ip -n "$ns" link del "$1" 2>/dev/null || true
	in_ns ip tuntap add "$1" mode tap
	ip -n "$ns" link set "$1" txqueuelen 16384
	[ "$2" = lan ] || ip -n "$ns" link set "$1" mtu 4200
	ip -n "$ns" link set "$1" master "$2" up
}
