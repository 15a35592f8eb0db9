# shellcheck shell=bash disable=SC2154 # lib.sh assigns it
# SPDX-License-Identifier: GPL-2.0
#
# Other RDMA modules on running nodes: sourced after lib.sh. When the test ends
# every node has what it had before.

declare -A had=() # module, by node: what it had before

has_migr() { ask "$1" "test -e $migr_key"; } # NODE

module_of() # NODE
{
	if ask "$1" 'test -e /sys/module/rdma_rxe/parameters/migr_point'; then
		echo points
	elif has_migr "$1"; then
		echo migr
	else
		echo stock
	fi
}

remember() { [ -n "${had[$1]-}" ] || had[$1]=$(module_of "$1"); } # NODE

# use_module NODE stock|migr|points: nobody may have the device open
use_module()
{
	# shellcheck disable=SC2016 # for the node's shell
	local load='insmod /opt/migr/rdma_rxe.ko $(cat /run/node/rxe.options)'

	case $2 in
	stock) load='modprobe rdma_rxe' ;;
	points) load=${load/migr/migr/points} ;;
	esac
	remember "$1"
	on "$1" "set -e
		rdma link del rxe0 2>/dev/null || true
		rmmod rdma_rxe 2>/dev/null || true
		$load
		rdma link add rxe0 type rxe netdev fabric"
	[ "$2" = stock ] || use_key "$1"
	# The second GID, which everybody uses, is that of the IPv4 address.
	poll_until 20 ask "$1" \
		'grep ffff: /sys/class/infiniband/rxe0/ports/1/gids/1'
}

# use_key NODE [KEY]: of the cluster if not said, none if empty
use_key()
{
	remember "$1"
	if [ $# -gt 1 ]; then
		ask "$1" "echo '1:$2' >$migr_key"
	else
		cluster_key "$1"
	fi
}

default_modules()
{
	local n

	for n in "${!had[@]}"; do
		"$lab" netem "$n" off || true
		ask "$n" 'pkill -9 "^(ib_|rc_mix|migr_points|python3)"' || true
		if [ "$(module_of "$n")" != "${had[$n]}" ]; then
			use_module "$n" "${had[$n]}"
		elif [ "${had[$n]}" = migr ]; then
			use_key "$n"
		fi
	done
}

at_end default_modules
