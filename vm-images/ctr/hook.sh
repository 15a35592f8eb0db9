# shellcheck shell=bash disable=SC2154 # shared with migr-ctr
# SPDX-License-Identifier: GPL-2.0
#
# Part of migr-ctr: who is told where a container's addresses live: neighbours, or what a program
# of the host's owner tells (its man page has the words)

hook=/etc/migr-ctr/hook
hook_s=30 # for its work
netns='' link='' mac='' # if they are not NAME, eth0, and what belongs to its address

there_is_hook() { [ -e "$hook" ] || [ -L "$hook" ]; }

# It runs as root: who may write it, or put another one in its place, would be root, too.
hook_fault() # fails if there is none
{
	local at owner mode

	for at in "${hook%/*}" "$hook"; do
		[ ! -L "$at" ] || { echo "$at is a symbolic link"; return; }
		read -r owner mode < <(stat -c '%u %a' "$at") || {
			echo "$at cannot be looked at"
			return
		}
		[ "$owner" = 0 ] || { echo "$at is not root's"; return; }
		(((8#$mode & 8#22) == 0)) || { echo "others than root may write $at"; return; }
	done
	[ -f "$hook" ] || { echo "$hook is no file"; return; }
	((8#$mode & 8#100)) || { echo "$hook cannot be executed"; return; }
	return 1
}

# before anything is done
need_hook()
{
	local why

	! there_is_hook || ! why=$(hook_fault) || die "$why: it is not run"
}

mac_of() # IP: the hardware address belongs to it, wherever it lives
{
	# shellcheck disable=SC2086 # four numbers
	printf '02:00:%02x:%02x:%02x:%02x' ${1//./ }
}

# What it leaves behind has nothing of ours open, and what it says is in a file: others
# wait for the end of what we say.
hook_runs() # VERB IP[,IP6]
{
	(
		exec </dev/null >"$dir/hook.log" 2>&1
		for fd in "/proc/$BASHPID/fd"/*; do
			fd=${fd##*/}
			[ "$fd" -le 2 ] || exec {fd}>&-
		done
		# shellcheck disable=SC2086 # one or two
		exec timeout -k 5 $hook_s env -i --default-signal \
			PATH="$PATH" HOME=/root LC_ALL=C.UTF-8 \
			MIGR_CTR_RDMA="$(sed 's/@.*//' "$dir/rdma" 2>/dev/null)" \
			"$hook" "$1" "$name" "$veth" "${mac:-$(mac_of "${2%%,*}")}" ${2//,/ }
	)
}

tells() # arrive|leave|back
{
	local ip why rc=0

	ip=$(<"$dir/ip") || return
	if ! there_is_hook; then
		# shellcheck disable=SC2086 # one or two
		[ "$1" = leave ] || ip netns exec "${netns:-$name}" \
			migr-announce "${link:-eth0}" ${ip//,/ }
		return
	fi
	if why=$(hook_fault); then
		why+=": it is not run"
	else
		hook_runs "$1" "$ip" || rc=$?
		case $rc in
		0) return ;;
		124 | 137) why="not done within $hook_s s" ;;
		*) why="exit code $rc: $(tail -n 1 "$dir/hook.log" | tr -cd '[:print:]')" ;;
		esac
		why="$hook $1: $why"
	fi
	echo "migr-ctr: $name: $why" >&2
	return 1
}

# From now on somebody may have to be told that it leaves.
arrives() # arrive|back
{
	: >"$dir/arrived"
	tells "$1"
}

leaves()
{
	local rc=0

	[ -e "$dir/arrived" ] || return 0
	tells leave || rc=1
	rm -f "$dir/arrived" # then: rather twice than never, if this is killed
	return $rc
}
