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

field() { jq -er ".$1 | strings" <<<"$spec" || die "this is no spec"; }
takes_spec()
{
	spec=$(cat)
	ip=$(field ip) || exit
	root=$(field root) || exit
	gid=$(field rdma) || exit
	need_ip "$ip"
	must_not_be_another
	need_root "$root"
}

# Is there nothing here that would be lost, and all that it needs?
drive_vacant() # with a spec as stdin
{
	local spec ip root gid

	need_hook
	takes_spec
}

# All but the container itself
drive_make() # with a spec as stdin
{
	local spec ip root gid

	takes_spec
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

# ---- by the layer ---------------------------------------------------------

# Would its connections come along? Nothing is stopped.
drive_follow() # HOST
{
	local said

	said=$(migr-layer "${layer_keys[@]}" "$name" "$1" 2>&1 >/dev/null </dev/null) || {
		echo "${said#failed }" >&2
		exit 1
	}
	layer_must_know
}

# For as long as a move takes, behind a door: see migrctl/layer.h. Who listens may die, and then
# there is another one, who needs the lock: what is done here is no part of what that is for.
word='' come_s=20 # in which there is, or there will be none
opens_door()
{
	local any

	eval "exec $lock>/dev/null"
	exec 1<>"$MIGR_CTR_DOOR/says" {any}<>"$MIGR_CTR_DOOR/go"
	# shellcheck disable=SC2034 # it is open, or "says" would have an end when nobody listens
	exec {says}>&1 {go}<"$MIGR_CTR_DOOR/go"
	exec {any}>&-
}
hears() # the next word, of whoever it is
{
	local alone=0 # tenths of a second

	until read -r -u "$go" word; do
		[ $((alone += 1)) -le $((come_s * 10)) ] || return 1
		sleep 0.1
	done
}
is_done() { echo 0 >"$MIGR_CTR_DOOR/runc"; }

# Whoever says why has said it.
drive_connections() # IMAGES HOST
{
	local at=$1/ahead made lost

	node=$2
	opens_door
	mkdir -p "$at"
	if ! layer_begin || ! layer_do record recorded; then
		layer_has_ended
	fi
	layer_must_know
	printf %s "$layer_records" >"$at/records"
	printf %s "$layer_peers" >"$at/peers"
	layer_peers='[]'
	echo recorded
	while hears; do
		case $word in
		lead)
			made=$(<"$at/made")
			[ "$made" = '[]' ] || layer_do "made ${#made}"$'\n'"$made" led || layer_has_ended
			echo led
			;;
		suspend)
			layer_is=stopping
			layer_do stop stopped || {
				layer_has_failed
				exit 1
			}
			[ "$layer_peers" = '[]' ] || printf %s "$layer_peers" >"$at/late"
			echo suspended
			;;
		*) break ;;
		esac
	done
	connections_go_on || layer_has_ended
	[ -z "$layer_timing" ] || echo "$layer_timing" >"$MIGR_CTR_DOOR/timing"
	# the last line is the reason
	lost=$(grep 'are lost' "$MIGR_CTR_DOOR/complaints" | tail -n 1) || true
	[ -z "$lost" ] || {
		echo "$lost" >&2
		exit 1
	}
	is_done
}

layer_has_ended()
{
	layer_is_gone "migr-layer is gone, and has not said why"
	exit 1
}

# If nobody has said where it runs, it is looked for.
connections_go_on()
{
	case $layer_is:$word in
	stopped:back) layer_do aborted 'done' ;;
	stopped:arrived) layer_do "restored $node" 'done' ;;
	stopped:*)
		exec {layer_to}>&-
		layer_says 'done'
		;;
	esac
}

drive_ahead() # IMAGES: of the other end
{
	local at=$1/ahead

	opens_door
	shadows_start "$(<"$at/records")"
	shadows_ready
	[ -s "$dir/rdma" ] || {
		shadows_connect "$(<"$at/peers")"
		shadows_connected "$make_s"
	}
	printf %s "$shadows_made" >"$at/made"
	echo made
	while hears && [ "$word" = connect ]; do
		shadows_connect "$(cat "$at/late" 2>/dev/null || cat "$at/peers")"
	done
	[ "$word" != hand ] || shadows_hand_over
	shadows_end
	is_done
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
