# shellcheck shell=bash disable=SC2154 # lib.sh assigns it
# SPDX-License-Identifier: GPL-2.0
#
# Other RDMA modules on running nodes: sourced after lib.sh. When the test ends
# every node has the default again.

changed=()

has_migr() { ask "$1" 'test -e /sys/module/rdma_rxe/parameters/migr_key'; } # NODE

# use_module NODE stock|migr: nobody may have the device open
use_module()
{
	local load='insmod /opt/migr/rdma_rxe.ko'

	[ "$2" != stock ] || load='modprobe rdma_rxe'
	changed+=("$1")
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
	if [ $# -gt 1 ]; then
		ask "$1" "echo '1:$2' >/sys/module/rdma_rxe/parameters/migr_key"
	else
		ask "$1" "cat /opt/migr/cluster.key \
			>/sys/module/rdma_rxe/parameters/migr_key"
	fi
}

default_modules()
{
	local n

	for n in $(printf '%s\n' "${changed[@]}" | sort -u); do
		"$lab" netem "$n" off || true
		ask "$n" 'pkill -9 "ib_|rc_mix|run_tests"; sleep 0.3' || true
		if ! has_migr "$n"; then
			use_module "$n" migr
		else
			use_key "$n"
		fi
	done
	ctr_delete_mine
}

trap default_modules EXIT
