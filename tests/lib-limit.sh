# shellcheck shell=bash disable=SC2154 # lib.sh and lib-mlx5.sh assign them
# SPDX-License-Identifier: GPL-2.0
#
# For tests of limited links: sourced after lib-mlx5.sh.

ns=$(ip netns identify "$(cat "$state/n1/mlx5.pid")")

# What the bridge has given to a node so far, in bytes of frames
delivered() { ip netns exec "$ns" cat "/sys/class/net/$1-fabric/statistics/tx_bytes"; }

# Messages of 64 KiB
write_bw() # FROM TO COUNT [OPTION...]
{
	local cmd="ib_write_bw -F -u 20 -s 65536 -n $3 ${*:4}"

	both "$2" "$1" "listening $2 18515" \
		"$cmd -d ${device[$2]} -x ${gid[$2]}" \
		"$cmd -d ${device[$1]} -x ${gid[$1]} $2-fabric"
}

has_got() { [ "$(delivered "$1")" -ge "$2" ]; } # NODE BYTES

# From the first megabyte on so many bytes come to a node, at no more than a rate. What
# its link has kept back while the processor was somebody else's comes at once: a
# twentieth is forgiven. That it is slower says nothing.
arrived() # NODE RATE BYTES
{
	local from to began ended rate

	poll_until 60 has_got "$1" $(($(delivered "$1") + 1000000))
	began=${EPOCHREALTIME/[.,]/}
	from=$(delivered "$1")
	poll_until 300 has_got "$1" $((from + $3))
	to=$(delivered "$1")
	ended=${EPOCHREALTIME/[.,]/}
	rate=$(((to - from) * 8 * 1000000 / (ended - began)))
	say "$((to - from)) bytes in $(((ended - began) / 1000)) ms: $rate bits/s"
	[ $rate -le $(($2 + $2 / 20)) ] || fail "more than $2 bits/s"
}

# of the quickest, whole ms
round_trip() # FROM TO
{
	ask "$1" "ping -q -c 3 -i 0.2 $2-fabric" |
		sed -n 's,^rtt min[^=]*= \([0-9]*\)\..*,\1,p' | grep .
}

# Its device says something of this kind.
counted() { "$lab" mlx5 "$1" counters | grep -E "$2"; } # NODE EXPRESSION

how_many_qps() { "$lab" mlx5 "$1" counters | sed 's/.*"qps": \([0-9]*\),.*/\1/'; } # NODE
