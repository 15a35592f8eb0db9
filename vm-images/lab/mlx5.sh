# shellcheck shell=bash disable=SC2119,SC2120,SC2154 # shared with lab
# SPDX-License-Identifier: GPL-2.0
#
# Part of lab: mlx5soft, the device of mlx5 nodes, in a process beside QEMU.

# Debian's QEMU can do it since the backports of trixie.
need_vfio_user()
{
	local help

	help=$("$toolbox" qemu-system-x86_64 -device help 2>&1) || true
	case $help in *'"vfio-user-pci"'*) return ;; esac
	die "this QEMU has no vfio-user-pci, which mlx5 nodes need:" \
		"$("$toolbox" qemu-system-x86_64 --version 2>&1 | head -n 1)"
}

# The device runs before QEMU connects to it. A copy of the program, because a
# build may replace the original meanwhile.
start_mlx5() # NODE
{
	local d=$dir/$1 socket=$dir/$1/mlx5.sock deadline program

	for program in "$mlx5soft" "${mlx5soft}_ctl"; do
		[ -x "$program" ] ||
			die "$1: there is no $program: make build, or make asan"
	done
	[ ${#socket} -lt 108 ] ||
		die "$1: $socket is too long for a socket: set LAB_DIR"
	cp "$mlx5soft" "${mlx5soft}_ctl" "$d/"
	# Not by in_ns, whose subshell would hold our lock; in a session of its
	# own, so that a terminal's interrupt does not reach it.
	# shellcheck disable=SC2016 # expanded by the inner shell
	setsid ip netns exec "$ns" "$toolbox" sh -c '
		trap "" USR1 USR2 # mlx5_trains may be early
		echo $$ >"$0/mlx5.pid"
		exec "$0/mlx5soft" -s "$0/mlx5.sock" -c "$0/mlx5.ctl" "$@"' "$d" \
		-m "52:54:00:10:00:0${1#n}" -f "tap:$1-fabric" \
		>"$d/mlx5.log" 2>&1 </dev/null &
	deadline=$((SECONDS + $(seconds 20)))
	until [ -S "$socket" ] && [ -S "$d/mlx5.ctl" ]; do
		[ ! -s "$d/mlx5.pid" ] || running "$d/mlx5.pid" ||
			die "$1: mlx5soft ended: $(cat "$d/mlx5.log")"
		[ $SECONDS -lt $deadline ] ||
			die "$1: mlx5soft makes no $socket: $(cat "$d/mlx5.log")"
		sleep 0.05
	done
	mlx5_trains
}

# Several packets in one frame are fine for a bridge. While a capture or a bad
# line looks at them, each is sent by itself.
mlx5_trains() # [USR1]: off in any case
{
	local n sig=${1-USR2}

	! running "$dir/pcap.pid" || sig=USR1
	for n in $(nodes); do
		[ ! -e "$dir/$n/wire.json" ] && [ ! -e "$dir/$n/netem" ] ||
			sig=USR1
	done
	for n in $(nodes); do
		! running "$dir/$n/mlx5.pid" ||
			kill "-$sig" "$(cat "$dir/$n/mlx5.pid")" 2>/dev/null ||
			true
	done
}

end_mlx5() # NODE: if it has one
{
	end "$dir/$1/mlx5.pid" TERM "$1: mlx5soft did not end and was killed: \
nobody knows what it leaked"
}

has_mlx5() { [ -e "$dir/$1/mlx5.pid" ]; } # NODE

# What a running device says to it; that of its own build asks.
mlx5_ctl() # NODE REQUEST...
{
	in_lab "$1/mlx5soft_ctl" "$1/mlx5.ctl" "${@:2}"
}

cmd_mlx5()
{
	need_node "${1-}"
	has_mlx5 "$1" || die "$1 has no mlx5soft"
	case ${*:2} in
	counters) mlx5_ctl "$1" counters ;;
	"counters --reset") mlx5_ctl "$1" counters reset ;;
	commands | "commands "*)
		[ $# -le 3 ] || die "mlx5 NODE commands [TIME|off]"
		mlx5_ctl "$1" "${@:2}"
		;;
	*) die "mlx5 NODE counters [--reset] | commands [TIME|off]" ;;
	esac
}

# What the sanitizers have to say of it: errors end it, leaks come at its end.
# With --new only in lines that are new since the last --new.
mlx5_report() # NODE [--new]
{
	local log=$dir/$1/mlx5.log told=0 lines

	[ -e "$log" ] || return
	lines=$(wc -l <"$log")
	if [ "${2-}" = --new ]; then
		told=$(cat "$dir/$1/mlx5.told" 2>/dev/null || echo 0)
		echo "$lines" >"$dir/$1/mlx5.told"
	fi
	head -n "$lines" "$log" | tail -n "+$((told + 1))" |
		sed -n '/ERROR: [A-Za-z]*Sanitizer\|: runtime error: /,$p' |
		grep .
}

mlx5_lives() # NODE: if it has one
{
	! has_mlx5 "$1" || running "$dir/$1/mlx5.pid"
}
