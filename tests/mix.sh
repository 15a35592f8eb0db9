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

# What the moved end leaves in its /run, which is a folder of the node
mix_moved_run=/var/lib/migr-ctr/mix/run

# mix_start client|server OPTIONS...: start both ends; OPTIONS are the traffic's.
# MIX_SEED repeats a run.
mix_start()
{
	local mover=$1 all="-D 600 ${MIX_SEED:+-S $MIX_SEED} ${*:2}"

	mix_at=n1
	mix_kill n2
	# shellcheck disable=SC2086 # words
	if [ "$mover" = client ]; then
		mix_launch n2 -s $all
		poll_until 20 listening n2 18600
		ctr_create n1 mix $mix_ip -- rc_mix $mix_files $all \
			$mix_only_moved 10.20.0.2
	else
		ctr_create n1 mix $mix_ip -- rc_mix -s $mix_files $all \
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
# is back before CRIU stops the container, for which CRIU needs a second or two.
mix_move()
{
	local to=n3 waker rc=0

	[ $mix_at = n1 ] || to=n1
	mix_rests USR1
	{
		ask_until 3600 $mix_at '[ ! -e /sys/class/net/c-mix/master ]'
		mix_rests USR2
	} &
	waker=$!
	ctr_move $mix_at mix $to | tail -n 1 || rc=1
	[ $rc = 0 ] || kill $waker
	wait $waker || mix_rests USR2
	[ $rc = 0 ] || {
		mix_log $mix_at dump
		mix_log_and_fail $to restore
	}
	mix_at=$to
}

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
	poll_until 60 ask $mix_at 'migr-ctr exit mix'
	mix_verdict n2 partner /run/mix.json "$(ask n2 'cat /run/mix.exit')" ||
		wrong=partner
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

mix_seed() { ask "$1" "jq -e .seed $2"; } # NODE FILE
