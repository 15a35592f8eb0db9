# shellcheck shell=bash disable=SC2154 # shared with bench
# SPDX-License-Identifier: GPL-2.0
#
# Part of bench: how long the layer waits until nothing is in flight. Nothing moves:
# processes are suspended and resumed, those of n1, which send, and their partners, all at
# once, as migr-layer does it.

wait_times=3 # in each run

figure_wait()
{
	local n

	if [ "$by" = protocol ]; then
		omitted wait it does not wait: what is in flight is sent again
		return
	fi
	for n in "${numbers[@]}"; do
		attempt wait qps "$n" wait_for qps "$n" "$n" 4096 1
	done
	for n in 512 4096 65536; do
		attempt wait bytes $n wait_for bytes $n 16 $n 1
	done
	for n in 1 2 4; do
		attempt wait partners $n wait_for partners $n 1 65536 $n
	done
}

# wait_for SERIES X QPS BYTES PARTNERS: each partner with so many QPs, whose queues are full
wait_for()
{
	local i ms in_flight='' depth

	depth=$(depth_of "$3")
	for ((i = 0; i < $5; i++)); do
		pair_of_layer $i "$3" "$4" "$depth" $((i % 2 ? 3 : 2))
	done
	flows n2
	if [ "$way" = layer-mlx5 ]; then
		in_flight=$("$lab" mlx5 n1 counters | tee -a /dev/fd/2 | sed -n \
			's/.*"in_flight": {[^}]*"bytes": \([0-9]*\).*/\1/p' | grep .)
		echo "wait $way $1 $2 device_had bytes $in_flight"
	fi
	echo "wait $way $1 $2 queues_had bytes $(($3 * $4 * depth * $5))"
	on n1 "$(declare -f suspend_all); suspend_all $wait_times $(seconds 60)000 $((2 * $5))" |
		tee -a /dev/fd/2 | while read -r ms; do
		echo "wait $way $1 $2 waited ms $ms"
	done
	way_cleans >&2
}

# pair_of_layer I QPS BYTES DEPTH NODE: a sender on n1 and its partner there
pair_of_layer()
{
	local port=$((18515 + $1)) env="env LD_PRELOAD=$layer MIGRRDMA_DIR=/run/migrrdma" line

	line="$env $(perftest "$2" "$3" "$4" -p $port)"
	launch "n$5" "$line"
	poll_until 60 listening "n$5" $port
	launch n1 "$line 10.20.0.$5"
}

launch() { on "$1" "setsid -f $2 </dev/null >>/run/perftest.log 2>&1"; } # NODE COMMAND

# suspend_all TIMES BUDGET PROCESSES: all processes under the layer, of which there are so
# many, and how many ms that took by this node's clock, each time
# shellcheck disable=SC2317 # runs on n1
suspend_all()
{
	local dir keys=/opt/migr/migrd host id i times=$1 to=() from=() line begin say pids=()

	set -euo pipefail
	dir=$(mktemp -d)
	say="migrd-say -k $keys/n1.key -c $keys/n1.crt -a $keys/ca.crt"
	all() # WORD...: everybody has done that
	{
		for i in "${to[@]}"; do echo "$*" >&"$i"; done
		for i in "${from[@]}"; do
			read -r -u "$i" line
			[[ $line =~ ^'{"ok": '?true ]] || { echo "$line" >&2; exit 1; }
		done
	}
	for host in n1 n2 n3; do
		for id in $(echo processes | $say $host | jq -r '.processes[]?.id'); do
			rm -f "$dir"/*
			mkfifo "$dir/to" "$dir/from"
			$say $host <"$dir/to" >"$dir/from" &
			pids+=($!)
			exec {i}>"$dir/to"
			to+=("$i")
			echo "open $id" >&"$i"
			exec {i}<"$dir/from"
			from+=("$i")
			read -r -u "$i" line
			[[ $line == '{"ok":true'* ]] || { echo "$line" >&2; exit 1; }
		done
	done
	[ ${#to[@]} = "$3" ] || {
		echo "there are ${#to[@]} processes under the layer, not $3" >&2
		exit 1
	}
	while [ $((times--)) -gt 0 ]; do
		sleep 1 # queues become full
		begin=${EPOCHREALTIME/[.,]/}
		all suspend "$2"
		awk "BEGIN { print (${EPOCHREALTIME/[.,]/} - $begin) / 1000 }"
		all resume
	done
	rm -r "$dir"
	kill "${pids[@]}"
}
