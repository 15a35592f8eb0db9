# shellcheck shell=bash disable=SC2154 # lib.sh assigns them
# SPDX-License-Identifier: GPL-2.0
#
# For tests that move rc_mix about: sourced after lib.sh.
#
# One end of the traffic lives in container "mix" on n1 or n3 and moves between
# them; the other is a plain process on n2. mix_start says which end moves.

. "$tree/tests/traffic.sh"

mix_ip=10.20.0.130
mix_at=n1
mix_only_moved='' # options of the end that moves
mix_ctr=() # and of its container
mix_huge='' # the buffers are to be in huge pages

# What the moved end leaves in its /run, which is a folder of the node
mix_moved_run=/var/lib/migr-ctr/mix/run

# mix_start client|server OPTIONS...: start both ends; OPTIONS are the traffic's.
# MIX_SEED repeats a run.
mix_start()
{
	local mover=$1 all="$mix_patience ${MIX_SEED:+-S $MIX_SEED} ${*:2}"

	mix_at=n1
	mix_huge=''
	[[ " $all " != *' -p thp '* ]] || mix_huge=yes
	mix_holds_criu
	mix_kill n2
	# shellcheck disable=SC2086 # words
	if [ "$mover" = client ]; then
		mix_launch n2 -s $all
		poll_until 20 listening n2 18600
		ctr_create n1 "${mix_ctr[@]}" mix $mix_ip -- rc_mix $mix_files $all \
			$mix_only_moved 10.20.0.2
	else
		ctr_create n1 "${mix_ctr[@]}" mix $mix_ip -- rc_mix -s $mix_files $all \
			$mix_only_moved
		poll_until 20 ask n1 \
			"ip netns exec mix ss -Hltn sport = :18600 | grep -q ."
		mix_launch n2 $all $mix_ip
	fi
	mix_goes_on
	say "$(ask n2 'grep -o "\"seed\":[0-9]*" /run/mix.progress')"
}

# mix_move: the container goes to the other of n1 and n3. The traffic rests while
# that is made ready, which takes long on emulated nodes where all are busy; it
# is back before CRIU, which waits for that, stops the container.
mix_move()
{
	local to=n3 waker rc=0

	mix_huge_pages n2 $mix_at
	[ $mix_at = n1 ] || to=n1
	ask $mix_at ': >/run/mix-hold'
	mix_rests USR1
	mix_wakes &
	waker=$!
	ctr_move $mix_at mix $to | tail -n 1 || rc=1
	if [ $rc != 0 ] || ! absent $mix_at '[ -e /run/mix-hold ]'; then
		kill $waker 2>/dev/null || true
		mix_lets_go $mix_at
		[ $rc != 0 ] || fail "CRIU did not wait"
		mix_log $mix_at dump
		mix_log_and_fail $to restore
	fi
	wait $waker || fail "CRIU did not wait for traffic"
	mix_at=$to
	mix_huge_pages $to
}

# Of buffers that are to be in huge pages some are. That is so before a move, and after
# it: CRIU has filled the memory anew before it tells the kernel that it wants huge
# pages, but our nodes give them to all (transparent_hugepage/enabled is always).
# Once they are registered khugepaged can make none of them any more.
mix_huge_pages() # NODE...
{
	local n kb

	[ -n "$mix_huge" ] || return 0
	for n in "$@"; do
		kb=$(mix_huge_kb "$n")
		say "$n: $kb KiB of the buffers in huge pages"
		[ "$kb" -gt 0 ] || fail "there are no huge pages"
	done
}

# shellcheck disable=SC2016 # expanded there
mix_huge_kb() # NODE
{
	ask "$1" 'cat /proc/$(pgrep -ox rc_mix)/smaps' | awk '
		/^AnonHugePages:/ { kb = $2 }
		/^VmFlags:.* hg( |$)/ { asked = 1; sum += kb }
		END { if (asked) print sum }' | grep .
}

# CRIU is about to dump: it does that when traffic flows, or if nobody can tell.
mix_wakes()
{
	local rc=0

	ask_until 3600 $mix_at '[ ! -e /run/mix-hold ]' &&
		(mix_rests USR2 && mix_goes_on) || rc=1
	mix_lets_go $mix_at || rc=1
	return $rc
}

# In this order: CRIU makes the one of the other.
mix_lets_go() { ask "$1" 'rm -f /run/mix-hold /run/mix-held'; } # NODE

# What CRIU is on n1 and n3 from now on: itself, but a dump that it has been asked for by
# `migr-ctr move` waits until whoever wants that lets it go. (See migrctl/door.c.)
# shellcheck disable=SC2016 # expanded there
mix_holds_criu()
{
	local n

	for n in n1 n3; do
		mix_lets_go $n
		ask $n 'set -e
			! grep -q " /usr/sbin/criu " /proc/mounts || exit 0
			cp /usr/sbin/criu /run/mix-criu
			cat >/run/mix-criu.sh <<-"END"
				#!/bin/bash
				if [ "$MIGR_CTR_REQUEST" = dump ]; then
					until read -t 0 -u "$2"; do sleep 0.1; done
					! mv /run/mix-hold /run/mix-held 2>/dev/null ||
						while [ -e /run/mix-held ]; do
							sleep 0.1
						done
				fi
				exec /run/mix-criu "$@"
			END
			chmod +x /run/mix-criu.sh
			mount --bind /run/mix-criu.sh /usr/sbin/criu'
	done
}

# Windows are bound and given back in either way, at both ends, from now on: for
# this both need -M. The progress that is looked at is not one that was left here
# when the container was here before.
mix_windows_go_on()
{
	local at=(n2 "$mix_at") i more=()
	local file=(/run/mix.progress "$mix_moved_run/mix.progress")

	for i in 0 1; do
		ask "${at[i]}" ': >/run/mix-mark'
		poll_until 20 ask "${at[i]}" "[ ${file[i]} -nt /run/mix-mark ]"
		more[i]=$(ask "${at[i]}" "jq -er '$mix_windows_more' ${file[i]}")
	done
	for i in 0 1; do
		poll_until 90 ask "${at[i]}" \
			"jq -e '${more[i]}' ${file[i]} >/dev/null"
	done
}

# turns progress into a condition for later progress
# shellcheck disable=SC2016 # jq's
mix_windows_more='.ops | {bind, send_inv, local_inv} | to_entries |
	map(".ops.\(.key) > \(.value)") | join(" and ")'

# Whoever is held by a move that was interrupted goes on first, which takes a while.
mix_frees_criu()
{
	local n rc=0

	for n in n1 n3; do
		mix_lets_go $n && ask_until "$(seconds 20)" $n \
			'! grep -q " /usr/sbin/criu " /proc/mounts ||
				umount /usr/sbin/criu' || rc=1
	done
	return $rc
}
at_end mix_frees_criu

mix_log() # NODE dump|restore
{
	ask "$1" "grep -a 'rdma:\|Error' /var/lib/migr-ctr/mix/logs/$2.log" ||
		true
}

mix_log_and_fail() # NODE dump|restore
{
	mix_log "$1" "$2"
	fail "$2 on $1"
}

# mix_end: both ends stop, compare, and find nothing wrong
mix_end()
{
	local wrong=''

	ask n2 'pkill -INT -x rc_mix' || true
	poll_until 120 ask n2 '[ -s /run/mix.exit ]'
	mix_verdict n2 partner /run/mix.json "$(ask n2 'cat /run/mix.exit')" ||
		wrong=partner
	poll_until 60 ask $mix_at 'migr-ctr exit mix'
	mix_verdict $mix_at 'moved end' $mix_moved_run/mix.json \
		"$(ask $mix_at 'migr-ctr exit mix')" ||
		wrong="${wrong:+$wrong and }moved end"
	[ -z "$wrong" ] || {
		ask n2 'tail -n 20 /run/mix.log' || true
		ctr_out $mix_at mix | tail -n 20
		fail "rc_mix: $wrong"
	}
	[ "$(mix_seed n2 /run/mix.json)" = \
		"$(mix_seed $mix_at $mix_moved_run/mix.json)" ] ||
		fail "the ends had different seeds"
	mix_delete
}

# What it has left behind where it was counts as a container, too.
mix_delete()
{
	ask n1 'migr-ctr delete mix' && ask n3 'migr-ctr delete mix'
}

# mix_line_bad NETEM...: what n2's line does, both ways, until mix_line_good. That
# fails if no packet of RDMA was missing there, or late: nobody can tell which.
mix_line_bad()
{
	say "the line of n2: $*"
	[[ ${device[n2]-} == mlx5* ]] || mix_missed=$(mix_sequence_errors)
	"$lab" netem n2 "$@"
}

mix_line_good()
{
	local missed

	missed=$("$lab" netem n2 off)
	if [[ ${device[n2]-} == mlx5* ]]; then
		say "$missed"
		grep -qE '"(lost|reordered)": [1-9]' <<<"$missed" ||
			fail "the line was good"
		return
	fi
	missed=$(mix_sequence_errors)
	missed=$((missed - mix_missed))
	say "sequence errors on n2: $missed"
	[ $missed -gt 0 ] || fail "no packet of RDMA was missing, or late"
}

# Packets that n2 has missed. It fails if nobody knows.
mix_sequence_errors()
{
	local requests answers

	requests=$(counter n2 out_of_seq_request) &&
		answers=$(counter n2 rcvd_seq_err) &&
		echo $((requests + answers))
}

mix_seed() { ask "$1" "jq -e .seed $2"; } # NODE FILE
