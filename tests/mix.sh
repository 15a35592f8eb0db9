# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0
#
# For tests that move rc_mix about: sourced after lib.sh.
#
# One end of the traffic lives in container "mix" on n1 or n3 and moves between
# them; the other is a plain process on n2. mix_start says which end moves.

mix_ip=10.20.0.130
mix_at=n1
mix_only_moved='' # options of the end that moves

# Both ends leave these in their /run: the partner on n2, the moved end in its
# container, whose /run is a folder of the node.
mix_files='-P /run/mix.progress -O /run/mix.json'
mix_moved_run=/var/lib/migr-ctr/mix/run

# mix_start client|server OPTIONS...: start both ends; OPTIONS are the traffic's.
# MIX_SEED repeats a run.
mix_start()
{
	local mover=$1 all="$mix_files ${MIX_SEED:+-S $MIX_SEED} ${*:2}"

	mix_at=n1
	ask n2 'pkill -KILL -x rc_mix; rm -f /run/mix.*' || true
	# shellcheck disable=SC2086 # words
	if [ "$mover" = client ]; then
		mix_partner "-s $all"
		poll_until 20 listening n2 18600
		ctr_create n1 mix $mix_ip -- rc_mix $all $mix_only_moved \
			10.20.0.2
	else
		ctr_create n1 mix $mix_ip -- rc_mix -s $all $mix_only_moved
		poll_until 20 ask n1 \
			"ip netns exec mix ss -Hltn sport = :18600 | grep -q ."
		mix_partner "$all $mix_ip"
	fi
	mix_goes_on
	say "$(ask n2 'grep -o "\"seed\":[0-9]*" /run/mix.progress')"
}

mix_partner() # ARGUMENTS
{
	on n2 "setsid sh -c 'rc_mix $1 >/run/mix.log 2>&1
		echo \$? >/run/mix.exit' </dev/null >/dev/null 2>&1 &"
}

# how many messages the partner has received so far
mix_received()
{
	ask n2 "cat /run/mix.progress" |
		sed -n 's/.*"received":\([0-9]*\).*/\1/p' | grep . || echo 0
}

# a condition for n2's shell
mix_past()
{
	cat <<-END
	[ \$(sed -n 's/.*"received":\([0-9]*\).*/\1/p' /run/mix.progress) -gt $1 ]
	END
}

# Traffic flows, from now on, in both directions (the window sees to that).
mix_goes_on()
{
	ask n2 "[ ! -e /run/mix.json ] || { cat /run/mix.json; exit 1; }" ||
		fail "the traffic has ended"
	poll_until 90 ask n2 "$(mix_past $(($(mix_received) + 50)))"
}

# mix_move: the container goes to the other of n1 and n3
mix_move()
{
	local to=n3

	[ $mix_at = n1 ] || to=n1
	ctr_move $mix_at mix $to | tail -n 1 || {
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

# mix_verdict NODE WHICH FILE EXIT: of one end
mix_verdict()
{
	echo "$2, on $1: exit code $4, $(ask "$1" "cat $3")"
	[ "$4" = 0 ] && ask "$1" "jq -e '.result == \"PASS\" and \
		.violations == 0 and .ops.received > 0' $3" >/dev/null
}

mix_seed() { ask "$1" "jq -e .seed $2"; } # NODE FILE

# counter NODE NAME: a hw_counter of rxe0
counter()
{
	ask "$1" "cat /sys/class/infiniband/rxe0/ports/1/hw_counters/$2"
}
