# shellcheck shell=bash disable=SC2034,SC2154 # shared with demo
# SPDX-License-Identifier: GPL-2.0
#
# Part of demo: by the layer, libmigrrdma, with stock drivers. There are no packets but
# ordinary ones: queue pairs end, and others begin.

. "$tree/tests/lib-migrd.sh"

by=layer
ctr_options=(--layer)
move_phases=(prepare layer_stop start dump transfer restore layer_start attach finish)
move_parts=(check suspend replace_partners hold restore_replace exchange connect resume)
move_shown='layer_stop dump transfer restore layer_start'
bad_counters="req_remote_access_errors req_remote_invalid_request \
	req_rnr_retries_exceeded req_transport_retries_exceeded \
	resp_local_length_error resp_remote_access_errors"
timeline_options=(-r)
trace=roce-trace

way_begins()
{
	local i

	dev=$(rdma_dev "n$old") || fail "n$old has no RDMA device on the fabric"
	gid=$(gid_index "n$old") || fail "n$old has no GID of RoCE v2 on the fabric"
	for i in $old $partner $new; do
		daemon "n$i" 2>>"$steps"
	done
}

way_ends() { daemons_all_end; }
way_moves() { on "n$old" "migr-ctr move --timing --by $by moved n$new"; }
received()
{
	ask "n$partner" 'ethtool -S fabric' |
		sed -n 's/^ *rx_vport_rdma_unicast_packets: //p' | grep .
}

# Its queue pairs, a line each: what it and the partner call their ends, and what these
# are now. Names are the numbers of those that it was started with.
pairs=
look_at_moved()
{
	pairs=$(ask "n$new" "
		say='migrd-say -k $keys/n$new.key -c $keys/n$new.crt -a $keys/ca.crt n$new'
		id=\$(echo processes | \$say | jq -r '
			.processes[] | select(.socket | contains(\"/moved/\")).id')
		printf '%s\n' \"open \$id\" names | \$say | tail -n 1 | jq -r '
			.qps[] | \"\(.qpn) \(.peer.qpn) \(.real) \(.peer.real)\"'" |
		grep .) || fail "nobody knows which queue pairs it has now"
	n[queue_pairs]=$(awk '{
		printf "%s{\"qpn\": %d, \"peer\": %d, \"new_qpn\": %d, \"new_peer\": %d}",
			(NR > 1 ? ", " : "["), $1, $2, $3, $4 }
		END { print "]" }' <<<"$pairs")
}

# What the layer says, and what the wire shows: these and no others, first the old ones
# and then the new ones.
check_trace()
{
	local o=10.10.0.$old p=10.10.0.$partner w=10.10.0.$new

	diff <(awk -v o="$o" -v p="$p" -v w="$w" '
		function say(from, to, qpn) { printf "%s %s 0x%06x\n", from, to, qpn }
		{ say(p, o, $1); say(o, p, $2); say(p, w, $3); say(w, p, $4) }' \
		<<<"$pairs" | sort) \
		<(awk 'NR > 1 { print $2, $3, $6 }' "$dir/trace.txt" | sort -u) >>"$steps" ||
		wrong "the capture shows other queue pairs than the layer"
	awk -v o="$o" -v w="$w" '
		$4 == "last" && ($2 == o || $3 == o) && $1 > last { last = $1 }
		$4 == "first" && ($2 == w || $3 == w) && !begun++ { first = $1 }
		END { exit !(begun && last < first) }' "$dir/trace.txt" ||
		wrong "old queue pairs have packets after new ones"
}

tell_move()
{
	cat <<-END
	  the partner waited   ${n[blackout_ms]} ms, from the last packet of n$old until
	                       each queue pair had one of n$new
	  in which             connections stopped ${n[layer_stop_ms]} ms: suspend ${n[suspend_ms]}, partner's
	                       replaced ${n[replace_partners_ms]}, held ${n[hold_ms]}
	                       CRIU starts ${n[start_ms]} ms, dump ${n[dump_ms]} ms, transfer ${n[transfer_ms]} ms
	                       ($((n[checkpoint_bytes] / 1024)) KiB), restore ${n[restore_ms]} ms
	                       connections started ${n[layer_start_ms]} ms: replace ${n[restore_replace_ms]},
	                       exchange ${n[exchange_ms]}, connect ${n[connect_ms]}, resume ${n[resume_ms]}
	  and before           check ${n[check_ms]} ms, traffic flowed
	END
}

tell_trace()
{
	awk '{ what = NR > 1 ? "" : "queue pairs" }
		NR <= 4 {
			printf "  %-20s 0x%06x to 0x%06x, now 0x%06x to 0x%06x\n",
				what, $1, $2, $3, $4
		}
		END {
			if (NR > 4)
				printf "  %-20s and %d more\n", "", NR - 4
		}' <<<"$pairs"
}

# Not all of many
show_trace()
{
	awk 'NR <= 33 { print }
		END { if (NR > 33) print "  ... " NR - 33 " more in trace.txt" }'
}
