# shellcheck shell=bash disable=SC2154 # shared with bench
# SPDX-License-Identifier: GPL-2.0
#
# Part of bench: the figures for which a container moves from n1 to n3, while its
# partner stays on n2.

moved_ip=10.20.0.140
partner_ip=10.20.0.141

serves() { ask "$1" "ip netns exec $2 ss -Hltn sport = :18515 | grep -q ."; } # NODE NAME

# pair_begins MOVER QPS BYTES DEPTH: and traffic flows. The sender is perftest's client.
pair_begins()
{
	local server=(n2 partner "$partner_ip") client=(n1 moved "$moved_ip") options

	if [ "$1" = receiver ]; then
		server=(n1 moved "$moved_ip")
		client=(n2 partner "$partner_ip")
	fi
	options=$(perftest "${@:2}")
	# shellcheck disable=SC2086 # words
	ctr_create "${server[0]}" "${ctr_options[@]}" "${server[@]:1}" -- $options
	poll_until 60 serves "${server[@]::2}"
	# shellcheck disable=SC2086 # words
	ctr_create "${client[0]}" "${ctr_options[@]}" "${client[@]:1}" -- $options \
		"${server[2]}"
	flows "${server[0]}"
}

# What CRIU's plug-in took of a dump or a restore: from the line before each of its own
# in the log. To the nearest line, then.
plugin_ms() # NODE dump|restore
{
	ask "$1" "awk '/^\([0-9.]+\)/ {
			at = substr(\$1, 2) + 0
			if (/ rdma: /)
				sum += at - last
			last = at
		}
		END { printf \"%.1f\\n\", sum * 1000 }' \
		/var/lib/migr-ctr/moved/logs/$2.log"
}

# of what `migr-ctr move --timing` has said; 0 if it is none of this way's
said_ms() # NAME
{
	sed -n "s/.*\"$1_ms\": \([0-9.]*\).*/\1/p" <<<"$timing" | grep . || echo 0
}

seen() { sed -n "s/^$1=//p" "$tmp/seen"; } # NAME: at the partner
sum() { awk "BEGIN { printf \"%.1f\", $1 }"; } # EXPRESSION

# had_pre_setup SAID [OPTION...]: by migr-ctr move. It has been where it can be, at both
# ends, unless an option says without: a move whose pre-setup fails succeeds all the same.
had_pre_setup()
{
	local taped='[1-9][0-9]*, "late": 0'

	[[ $1 != *' has no pre-setup'* ]] || return 1
	[ "$way" = layer-mlx5 ] || return 0
	[[ " ${*:2} " != *' --no-pre-setup '* ]] || taped='0,'
	grep -q "\"taped\": $taped" <<<"$1"
}

# moves NAME [OPTION...]: a container, from n1 to n3, with $timing. Options are migr-ctr move's.
moves()
{
	timing=$(on n1 "timeout $(seconds 300) \
		migr-ctr move --timing --by $by ${*:2} $1 n3 2>&1" | tee -a /dev/fd/2)
	had_pre_setup "$timing" "${@:2}" || fail "something else was measured: $timing"
	timing=$(tail -n 1 <<<"$timing")
}

# move_once MOVER QPS BYTES DEPTH [OPTION...]: from the first packet to the account, with
# what moves() and the partner say of it, and what the plug-in took
move_once()
{
	local to=n2

	tmp=$LAB_DIR/move
	mkdir -p "$tmp"
	"$lab" pcap start "$tmp/pcapng" -s 128
	pair_begins "${@:1:4}"
	moves moved "${@:5}"
	[ "$1" = sender ] || to=n3
	flows $to
	"$lab" pcap stop
	"$tree/vm-images/toolbox" "$tree/build/user/bench/compare/at-partner" 10.10.0.2 \
		10.10.0.1 10.10.0.3 /dev/fd/3 <"$tmp/pcapng" 3>"$tmp/slots" >"$tmp/seen"
	rm "$tmp/pcapng"
	cat "$tmp/seen" >&2
	[ "$(seen qps)" = "$2" ] ||
		fail "$(seen qps) of $2 QPs had a packet of the new host"
	dump_rdma=0 restore_rdma=0
	if [ "$by" = protocol ]; then
		dump_rdma=$(plugin_ms n1 dump)
		restore_rdma=$(plugin_ms n3 restore)
	fi
	way_cleans >&2
}

# What this end is called: if both send, nobody is the sender
end_name() # MOVER
{
	case $both:$1 in
	1:sender) echo client ;;
	1:receiver) echo server ;;
	*) echo "$1" ;;
	esac
}

# ---- the figures ----------------------------------------------------------

figure_blackout()
{
	local mover qps end

	case $way in
	protocol) omitted blackout pre-setup: it has none ;;
	layer-rxe) omitted blackout pre-setup: its provider takes no allocator for queues ;;
	esac
	for qps in "${numbers[@]}"; do
		for mover in "${movers[@]}"; do
			end=$(end_name "$mover")
			attempt blackout "$end" "$qps" blackout "$end" "$mover" "$qps"
			[ "$way" != layer-mlx5 ] ||
				attempt blackout "${end}_no_pre-setup" "$qps" blackout \
					"${end}_no_pre-setup" "$mover" "$qps" --no-pre-setup
		done
	done
}

# The parts as milliseconds. For the protocol nothing has stopped while CRIU starts; the
# layer has suspended by then.
blackout() # SERIES MOVER QPS [OPTION]
{
	local series=$1 qps=$3

	move_once "$2" "$qps" 4096 "$(depth_of "$qps")" "${@:4}"
	part() { echo "blackout $way $series $qps $1 ms $(sum "$2")"; } # NAME EXPRESSION
	if [ "$by" = protocol ]; then
		part dump_rdma "$dump_rdma"
		part dump_others "$(said_ms dump) - $dump_rdma"
		part transfer "$(said_ms transfer)"
		part restore_others "$(said_ms restore) - $restore_rdma"
		part restore_rdma "$restore_rdma"
		part connect_resume "$(seen all_ms) - $(seen resume_ms)"
	else
		part suspend "$(said_ms suspend)"
		part dump_rdma "$(said_ms replace_partners) + $(said_ms hold)"
		part dump_others "$(said_ms start) + $(said_ms dump)"
		part transfer "$(said_ms transfer)"
		part restore_others "$(said_ms restore)"
		part restore_rdma "$(said_ms restore_replace) + $(said_ms exchange)"
		part connect_resume "$(said_ms connect) + $(said_ms resume)"
	fi
	part partner "$(seen all_ms)"
}

figure_throughput()
{
	local mover

	for mover in "${movers[@]}"; do
		attempt throughput "$(end_name "$mover")" 16 throughput "$mover" 16
	done
}

throughput() # MOVER QPS
{
	local as

	as="$way $(end_name "$1")"
	move_once "$1" "$2" 65536 8
	echo "throughput $as $2 before Mbit/s $(sum "$(seen before_bits_per_s) / 1e6")"
	echo "throughput $as $2 after Mbit/s $(sum "$(seen after_bits_per_s) / 1e6")"
	echo "throughput $as $2 silence ms $(seen first_ms)"
	echo "timeline $as $(cat "$tmp/slots")"
}

figure_stop()
{
	local depth qps

	for qps in 1 16; do
		for depth in 1 64; do
			attempt stop "depth_$depth" $qps stop "depth_$depth" $qps $depth
		done
		attempt stop depth_64_loss $qps stop depth_64_loss $qps 64 1%
	done
}

# The sender moves. For the layer the stop begins with the wait for what is in flight.
stop() # SERIES QPS DEPTH [LOSS]
{
	[ $# = 3 ] || "$lab" netem n2 loss "$4"
	move_once sender "$2" 65536 "$3"
	echo "stop $way $1 $2 wait ms $(said_ms suspend)"
	echo "stop $way $1 $2 first ms $(seen first_ms)"
	echo "stop $way $1 $2 total ms $(sum "$(said_ms suspend) + $(seen first_ms)")"
	echo "stop $way $1 $2 all ms $(sum "$(seen all_ms) - $(seen first_ms)")"
}
