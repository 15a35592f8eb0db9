# shellcheck shell=bash disable=SC2154 # shared with migr-ctr
# SPDX-License-Identifier: GPL-2.0
#
# Part of migr-ctr: what migr-mover wants of a runtime, for a move that it carries out (its
# man page has the verbs). It has the lock, whose descriptor is MIGR_CTR_LOCK. What is the same
# with podman is in runc.sh.

# What is to be known here and there; the target gets the spec. Its numbers are larger than
# others read them, so the configuration is a string.
drive_describe()
{
	must_run
	need_hook
	local pid cgroup leaves=false

	! there_is_hook || leaves=true
	pid=$(first_pid)
	cgroup=$(sed -n 's,^0::/,/sys/fs/cgroup/,p' "/proc/$pid/cgroup")
	jq -cn --arg cgroup "$cgroup" --argjson pid "$pid" \
		--arg ip "$(<"$dir/ip")" --arg root "$(<"$dir/root")" \
		--arg rdma "$(cat "$dir/rdma" 2>/dev/null)" --arg by "$(moves_by)" \
		--arg config "$(<"$dir/config.json")" --argjson files "$(its_files)" \
		--argjson leaves $leaves '
		{ $pid, $cgroup, $by, $leaves, $files, spec: { $ip, $root, $rdma, $config } }'
}

# What moves with it, besides its memory
its_files() { jq -cn --arg at "$dir" '{ $at, names: $ARGS.positional }' --args "${folders[@]}"; }

drive_runs() { if runs; then echo '{"runs":true}'; else echo '{"runs":false}'; fi; }

# Is there nothing here that would be lost?
drive_vacant()
{
	need_hook
	must_not_be_another
}

# All but the container itself
drive_make() # with a spec as stdin
{
	local spec ip root gid

	spec=$(cat)
	field() { jq -er ".$1 | strings" <<<"$spec" || die "this is no spec"; }
	ip=$(field ip) || exit
	root=$(field root) || exit
	gid=$(field rdma) || exit
	need_ip "$ip"
	must_not_be_another
	need_root "$root"
	clear_away
	make_folders
	echo "$root" >"$dir/root"
	field config >"$dir/config.json" || exit
	must_hide_all
	add_netns "$ip"
	mount_rootfs
	allow_rdma_cm
	[ -z "$gid" ] || rdma keep "$gid"
	its_files
}

# Whatever came to be of a container that is not to run here
drive_unmake()
{
	runc delete -f "$name" 2>/dev/null || true
	! runs || die "$name cannot be ended"
	clear_away
}

drive_round() { round "$@"; }
drive_checkpoint() { checkpoint "$@"; }

drive_restore() # IMAGES
{
	logs=$1/logs
	mkdir -p "$1/image" "$logs"
	# runc reads this before it starts CRIU: what stdin, stdout and stderr were, see quietly().
	echo '["/dev/null","/dev/null","/dev/null"]' >"$1/image/descriptors.json"
	behind_door runc_restores "$1"
}
runc_restores()
{
	quietly restore -d --tcp-established --image-path "$1/image" --pid-file "$dir/pid" \
		--work-path "$1/logs" --bundle "$dir" "$name"
}

# It is stopped, and its addresses go with it; or it was not to. That somebody could not be
# told so is none of its business, and is said when it is over.
drive_leave()
{
	leaves 2>"$dir/amiss" || true
	[ ! -s "$dir/rdma" ] || {
		migr-gid leave "$(<"$dir/rdma")"
		mv "$dir/rdma" "$dir/left"
	}
}
drive_arrive() # with the place that is kept for it
{
	[ ! -s "$dir/rdma" ] || migr-gid take "$(<"$dir/rdma")" >/dev/null
}
# What cannot be done does not keep the rest from it.
drive_back() # [ADDRESS@INDEX]
{
	local rc=0

	rm -f "$dir/amiss"
	! runs || plug || rc=1
	[ -z "${1-}" ] || [ -s "$dir/rdma" ] || (rdma take "$1") || rc=1
	[ ! -s "$dir/rdma" ] || rm -f "$dir/left"
	! runs || [ -e "$dir/arrived" ] || (arrives back) || rc=1
	! runs || rounds_end || rc=1
	return $rc
}

drive_attach() { attach; }

drive_gone() # NODE: it runs there
{
	local amiss

	printf '%s\n' "$HOSTNAME" "$1" >>"$dir/been"
	amiss=$(cat "$dir/amiss" 2>/dev/null) || true
	drive_unmake
	[ -z "$amiss" ] || die "${amiss#migr-ctr: }"
}

cmd_driver() # NAME VERB...
{
	declare -F "drive_${2-}" >/dev/null || usage 2
	"drive_$2" "${@:3}"
}

# of all, and nobody's lock
drivers_list()
{
	local at pid

	for at in "$state"/*/run; do
		at=${at%/run}
		pid=$(cat "$at/pid" 2>/dev/null) &&
			[ "/proc/$pid/ns/net" -ef "/run/netns/${at##*/}" ] || pid=null
		[ ! -d "$at" ] || printf '%s %s\n' "${at##*/}" "$pid"
	done | jq -Rnc '{ containers: [inputs | split(" ") |
		{ name: .[0], pid: .[1] | fromjson }] }'
}
