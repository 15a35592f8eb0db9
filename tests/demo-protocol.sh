# shellcheck shell=bash disable=SC2034,SC2154 # shared with demo
# SPDX-License-Identifier: GPL-2.0
#
# Part of demo: by the protocol of our rdma_rxe, and by migrctl.

. "$tree/tests/lib-migrd.sh"
. "$tree/tests/lib-mover.sh"

by=protocol dev=rxe0 gid=1
ctr_options=()
move_phases=(prepare start dump transfer restore attach finish)
move_parts=(stopped)
move_shown='dump transfer restore'
bad_counters="migr_bad_* migr_unexpected migr_old_epoch migr_qp_timed_out \
	retry_exceeded_err retry_rnr_exceeded_err"
timeline_options=()
trace=migros-trace

way_begins()
{
	local i

	for i in $old $partner $new; do
		# Tests may have left another one.
		ask "n$i" 'cat /opt/migr/cluster.key >/sys/module/rdma_rxe/parameters/migr_key' ||
			fail "n$i does not run our rdma_rxe"
	done
	for i in $old $new; do
		daemon "n$i" 2>>"$steps"
		mover "n$i" 2>>"$steps"
	done
}

way_ends()
{
	local rc=0

	movers_all_end || rc=1
	daemons_all_end
	return $rc
}

# It tells what took how long, a line each, and in the last one the parts of the report.
way_moves()
{
	local said=/run/demo.json

	on "n$old" "migrctl --json --timing=/run/demo.svg migrate moved --to n$new \
		>$said || { cat $said; exit 1; }
		grep '\"ok\":true' $said >$said.end" || return
	ask "n$old" 'cat /run/demo.svg' >"$dir/timing.svg" || return
	ask "n$old" "jq -r '.steps[] | [.host, .step, .ms] | @tsv' $said.end" | awk -F '\t' '
		{ k = $1 FS $2 }
		!(k in ms) { order[n++] = k }
		{ ms[k] += $3 }
		END {
			for (i = 0; i < n; i++) {
				split(order[i], p, FS)
				printf "  %-3s %-16s %6.0f ms\n", p[1], p[2], ms[order[i]]
			}
		}'
	ask "n$old" "jq -c '
		def of(f): [.steps[] | select(f)];
		(.timing | map({(.phase): .ms}) | add) as \$p
		| (of(.step == \"freeze\")[0].at_ms) as \$frozen
		| (of(.step == \"CRIU ends\")[0].at_ms) as \$runs
		| (of(.step == \"attach\")[-1] | .at_ms + .ms) as \$attached
		| { prepare_ms: \$p.prepare, start_ms: \$frozen, dump_ms: (\$p.dump - \$frozen),
			transfer_ms: \$p.transfer, restore_ms: (\$runs - \$p.dump - \$p.transfer),
			attach_ms: (\$attached - \$runs), finish_ms: \$p.finish, stopped_ms, bytes }
		| map_values(round)' $said.end"
}

received() { counter "n$partner" rcvd_pkts; }
look_at_moved() { :; }

# Two readers, one truth.
check_trace()
{
	local k v

	for k in NAK_STOPPED RESUME RESUME_ACK; do
		v=$(awk -v k=$k '$4 == k' "$dir/trace.txt" | wc -l)
		[ "$v" = "${n[${k,,}]}" ] ||
			wrong "tshark sees $v $k, timeline ${n[${k,,}]}"
	done
	[ "${n[nak_stopped]}" -gt 0 ] || wrong "no NAK_STOPPED was seen"
	[ "${n[resume]}" -ge "$qps" ] || wrong "${n[resume]} RESUME for $qps QPs"
	[ "${n[resume_ack]}" -ge "$qps" ] || wrong "${n[resume_ack]} RESUME_ACK"
}

tell_move()
{
	cat <<-END
	  the partner waited   ${n[blackout_ms]} ms, from the last packet of n$old until
	                       each QP had one of n$new; NAK_STOPPED to RESUME ${n[nak_to_resume_ms]} ms
	  it stood still       ${n[stopped_ms]} ms, of which the steps are in timing.svg
	  in which             dump ${n[dump_ms]} ms, transfer ${n[transfer_ms]} ms ($((n[checkpoint_bytes] / 1024)) KiB), restore ${n[restore_ms]} ms
	END
}

tell_trace()
{
	echo "  packets              NAK_STOPPED ${n[nak_stopped]}," \
		"RESUME ${n[resume]}, RESUME_ACK ${n[resume_ack]}"
}

# Not all of many QPs, but something of every kind.
show_trace()
{
	awk '{ show = $4 == "NAK_STOPPED" ? ++naks <= 8 : ++others <= 18 }
		show { print }
		!show { hidden++ }
		END { if (hidden) print "  ... " hidden " more in trace.txt" }'
}
