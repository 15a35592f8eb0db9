# shellcheck shell=bash disable=SC2154 # shared with migr-ctr and migr-podman
# SPDX-License-Identifier: GPL-2.0
#
# Part of migr-ctr and migr-podman: runc, and what of a move by migr-mover is its own

runc_id='' # by which it knows the container, if not by its name

# CRIU's network lock is to drop what arrives for a container that is stopped.
# Here nothing arrives, as its address is unplugged, and six iptables less have
# to be started.
export CRIU_CONFIG_FILE=$parts/criu.conf

# runc hands its own stdio to the container, so its words go to a log. It is not for
# a terminal's ^C, nor is CRIU: what is half infected must come to its end.
quietly()
{
	rm -f "$dir/runc.log"
	setsid -w runc --log "$dir/runc.log" "$@" </dev/null >/dev/null 2>&1 {lock}>&- || {
		cat "$dir/runc.log" >&2
		# CRIU's own account, if there is one.
		grep -h Error "${logs:-$dir/logs}"/*.log 2>/dev/null | tail -n 20 >&2
		return 1
	}
}

# The container runs on while that is told to go on, by a word: see migrctl/door.c. What is said
# to stdout is the door's; it ends with all who may say something.
behind_door() # COMMAND...
{
	local rc=0

	exec 9>&1
	export MIGR_CTR_LINK=$veth MIGR_CTR_HOLD=1 PATH=$parts:$PATH
	"$@" 9>&- || rc=$?
	echo $rc >"$MIGR_CTR_DOOR/runc" # for who comes later, too
}

# A round of its memory, while it runs; each has the one before as its parent.
round() # FOLDER, whose name is its number
{
	local parent=()

	[ "${1##*/}" = 1 ] || parent=(--parent-path "../$((${1##*/} - 1))")
	logs=$1
	mkdir -p "$1"
	runc_dumps "$1" "$1" --pre-dump "${parent[@]}"
}

checkpoint() # IMAGES [PARENT, as the image sees it]
{
	logs=$1/logs
	mkdir -p "$1/image" "$logs"
	behind_door runc_dumps "$1/image" "$1/logs" ${2+--parent-path "$2"}
}
runc_dumps() # IMAGE LOGS OPTION...
{
	quietly checkpoint --tcp-established --image-path "$1" --work-path "$2" "${@:3}" "${runc_id:-$name}"
}

# Those that were given up before there was a dump: it runs on without that. Its processes may
# have groups of their own. Without the plug-in there was nothing to end.
rounds_end()
{
	local pid at procs

	command -v migr-untrack >/dev/null || return 0
	pid=$(first_pid) || return
	at=$(sed -n 's/^0:://p' "/proc/$pid/cgroup") || return
	# the root of all is everybody's
	[[ $at == /?* ]] || return
	at=/sys/fs/cgroup$at
	# what goes meanwhile, or is none of its own, has no process to be told
	procs=$(find "$at" -name cgroup.procs -exec cat {} + 2>/dev/null) || true
	# shellcheck disable=SC2086 # words
	[ -z "$procs" ] || migr-untrack $procs >/dev/null
}
