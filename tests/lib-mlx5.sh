# shellcheck shell=bash disable=SC2154 # lib.sh assigns them
# SPDX-License-Identifier: GPL-2.0
#
# For tests of mlx5soft: sourced after lib.sh. n1 and n2 have one.

state=${LAB_DIR:-$tree/build/lab}
driver=/sys/bus/pci/drivers/mlx5_core
declare -A gid=()              # by node, see find_devices; and so is device
declare -A serves=() before=() # by node: process and length of the log

. "$tree/tests/traffic.sh"

# What the devices have said before is not the business of this test.
for n in n1 n2; do
	[ ! -e "$state/$n/mlx5.log" ] ||
		before[$n]=$(wc -l <"$state/$n/mlx5.log")
done

# ---- the drivers ----------------------------------------------------------

active() # NODE [DEVICE]
{
	ask "$1" "rdma link show ${2:-mlx5_0}/1" |
		grep ' state ACTIVE .* netdev '
}

pings() # FROM TO [OPTION...]
{
	ask "$1" "ping -q -c 3 -i 0.2 -W 5 ${*:3} $2-fabric" |
		grep ' 0% packet loss'
}

# No error or warning of the drivers, none of the device.
quiet() # NODE
{
	local lines

	lines=$(ask "$1" 'dmesg -l emerg,alert,crit,err,warn') ||
		fail "nobody knows what $1's drivers say"
	lines=$(grep -E 'mlx5|infiniband|fabric' <<<"$lines") &&
		fail "$1's drivers complain: $lines"
	lines=$(tail -n +$((${before[$1]-0} + 1)) "$state/$1/mlx5.log") ||
		fail "nobody knows what $1's mlx5soft says"
	lines=$(grep -vE '^$| client |one by one' <<<"$lines") &&
		fail "$1's mlx5soft complains: $lines"
	return 0
}

# Everything is as after the start, and the same process serves it.
works() # NODE
{
	local other=n1 pid

	[ "$1" != n1 ] || other=n2
	poll_until 30 active "$1"
	poll_until 30 pings "$1" $other
	pings $other "$1" -s 4100 -M "do" || fail "no big ping from $other to $1"
	pid=$(cat "$state/$1/mlx5.pid")
	[ "${serves[$1]:=$pid}" = "$pid" ] || fail "$1 has got another mlx5soft"
	quiet "$1"
}

card() { echo "/run/node/card fabric 10.10.0.${1#n}/24 4200"; } # NODE

pci_of() # NODE
{
	ask "$1" 'readlink -f /sys/class/infiniband/mlx5_0/device' |
		sed 's,.*/,,'
}

rebind() # NODE
{
	local at

	at=$(pci_of "$1")
	on "$1" "set -e; echo $at >$driver/unbind; echo $at >$driver/bind
		$(card "$1")"
}

reload() # NODE
{
	on "$1" "set -e; modprobe -r mlx5_ib; modprobe -r mlx5_core
		modprobe -a mlx5_core mlx5_ib; $(card "$1")"
}

# ---- traffic --------------------------------------------------------------

find_devices() # NODE...
{
	local n

	for n in "$@"; do
		device[$n]=$(rdma_dev "$n")
		gid[$n]=$(gid_index "$n")
	done
}

cm_listening() # NODE PROGRAM
{
	ask "$1" 'rdma resource show cm_id' | grep "state LISTEN .* comm $2 "
}

# both SERVER CLIENT "READY CMD..." SERVER-COMMAND CLIENT-COMMAND
log=$out/server.log
both()
{
	local pid limit

	limit="timeout $(seconds 60)"
	on "$1" "$limit stdbuf -oL $4 2>&1" >"$log" &
	pid=$!
	# shellcheck disable=SC2086 # words
	poll_until 30 $3
	on "$2" "$limit stdbuf -oL $5 2>&1" ||
		fail "client on $2; server: $(cat "$log")"
	wait $pid || fail "server on $1: $(cat "$log")"
	# Pingpongs say so, and succeed.
	! grep 'invalid data' "$log" || fail "server on $1: $(cat "$log")"
}

pingpong() # SERVER CLIENT SERVICE [OPTION...]
{
	local cmd="ibv_${3}_pingpong -c -n 200 ${*:4}"

	both "$1" "$2" "listening $1 18515" \
		"$cmd -d ${device[$1]} -g ${gid[$1]}" \
		"$cmd -d ${device[$2]} -g ${gid[$2]} $1"
}

rping() # SERVER CLIENT
{
	local at=10.10.0.${1#n}

	both "$1" "$2" "cm_listening $1 rping" \
		"rping -s -a $at -C 50 -V" "rping -c -a $at -C 50 -V"
}
