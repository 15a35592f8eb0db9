# shellcheck shell=bash disable=SC2154 # $lab, $state
# shellcheck disable=SC2016 # expanded by the nodes' shells
# SPDX-License-Identifier: GPL-2.0
#
# What tests must not leave behind on a node: RDMA objects of a process, whether
# it lives or not, references to the modules, threads of theirs; a bad line or a slow
# one, the layer, daemons and helpers, containers, what runc, CRIU and moves have of them,
# their networks and addresses, rules for packets (the empty tables of iptables are
# nobody's); and a crash of what is ours.
# Objects of the kernel are listed with its modules' names in brackets. What is
# torn down in the background has some time for it.

left_behind='
	left()
	{
		objects=$(printf "resource show %s\n" \
			ctx pd cq qp srq mr cm_id | rdma -b -) ||
			echo "rdma: exit code $?"
		grep . <<<"$objects" | grep -v "comm \["
		# Devices of a module that is not one of a driver hold nothing.
		for m in ib_uverbs rdma_rxe rdma_ucm mlx5_ib; do
			cd /sys/module/$m 2>/dev/null || continue
			users=(holders/*)
			[ "$(<refcnt)" -le ${#users[@]} ] || echo \
				"$m: $(<refcnt) references, ${#users[@]} modules use it"
		done
		tc qdisc show 2>/dev/null | grep -w netem
		[ ! -e /sys/module/nf_tables ] || nft list tables |
			grep -vwE "filter|nat|mangle|raw|security"
		[ ! -e /etc/ld.so.preload ] || echo "the layer is on"
		pgrep -xl "migrd|migrd-say|migr-layer|migr-presetup|migr-gid|migr-mover|migrctl|criu|runc|tar|\
tcpcount|blackout_load"
		ls /run/migrctl/moves 2>/dev/null | sed "s/^/move: /"
		pgrep -fa "migr-ctr (move|receive)"
		dmesg | grep -E "(segfault|general protection).* in libmigr|\
(migr|rc_mix|criu|late_peer)[^ ]*\[[0-9]+\]:? (segfault|general protection|trap )"
		ls /var/lib/migr-ctr 2>/dev/null | sed "s/^/container: /"
		ls /run/runc 2>/dev/null | sed "s/^/container of runc: /"
		for m in /sys/fs/cgroup/migr-ctr/*/; do
			echo "cgroup: $m"
		done
		grep -oE " (/run/migrctl|/var/lib/migr-ctr)/[^ ]*" /proc/mounts | sed "s/^/mount:/"
		ls /run/netns 2>/dev/null | sed "s/^/network namespace: /"
		for m in /sys/class/net/c-*; do
			echo "link of a container: ${m##*/}"
		done
		# what migr-gid adds
		ip -o addr show dev fabric 2>/dev/null | grep -E "/(32|128) "
		ps --ppid 2 -o comm= | grep -E "^(rxe|migr_)" | sed "s/^/thread: /"
	}
	shopt -s nullglob
	end=$((SECONDS + limit))
	until [ -z "$(left)" ]; do
		if [ $SECONDS -ge $end ]; then
			left
			exit 1
		fi
		sleep 0.5
	done'

none_left_behind() # NODE SECONDS
{
	[ ! -e "$state/$1/limit" ] || {
		echo "a limit is on"
		return 1
	}
	# That of a node with mlx5 is on this side.
	[ ! -e "$state/$1/wire.json" ] || {
		echo "netem is on"
		return 1
	}
	"$lab" ssh "$1" "limit=$2; $left_behind" </dev/null
}
