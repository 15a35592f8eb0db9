# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0
#
# For tests that move rc_mix about: sourced after lib.sh.
#
# One end of the traffic lives in container "mix" on n1 or n3 and moves between
# them; the other is a plain process on n2. mix_start says which end moves.

mix_ip=10.20.0.130
mix_at=n1

# The partner writes its progress here, on n2; and so does the container.
mix_progress=/run/mix.progress

# mix_start client|server OPTIONS...: start both ends; OPTIONS are the traffic's
mix_start()
{
	local mover=$1 partner=10.20.0.2

	shift
	mix_at=n1
	ask n2 'pkill -KILL -x rc_mix; rm -f /run/mix.*' || true
	if [ "$mover" = client ]; then
		on n2 "setsid rc_mix -s $* -P $mix_progress -O /run/mix.json \
			</dev/null >/run/mix.log 2>&1 &"
		poll_until 20 listening n2 18600
		ctr_create n1 mix $mix_ip -- rc_mix "$@" -P $mix_progress \
			$partner
	else
		ctr_create n1 mix $mix_ip -- rc_mix -s "$@" -P $mix_progress
		poll_until 20 ask n1 \
			"ip netns exec mix ss -Hltn sport = :18600 | grep -q ."
		on n2 "setsid rc_mix $* -P $mix_progress -O /run/mix.json \
			$mix_ip </dev/null >/run/mix.log 2>&1 &"
	fi
	mix_goes_on
}

# how many messages the partner has received so far
mix_received()
{
	ask n2 "cat $mix_progress" |
		sed -n 's/.*"received":\([0-9]*\).*/\1/p' | grep . || echo 0
}

mix_past() { [ "$(mix_received)" -gt "$1" ]; }

# Traffic flows, from now on, in both directions (the window sees to that).
mix_goes_on()
{
	ask n2 "[ ! -e /run/mix.json ] || { cat /run/mix.json; exit 1; }" ||
		fail "the traffic has ended"
	poll_until 90 mix_past $(($(mix_received) + 50))
}

# mix_move: the container goes to the other of n1 and n3
mix_move()
{
	local to=n3

	[ $mix_at = n1 ] || to=n1
	ctr_checkpoint $mix_at mix ||
		mix_log_and_fail $mix_at dump
	ctr_send $mix_at mix $to
	ctr_restore $to mix $mix_ip ||
		mix_log_and_fail $to restore
	mix_at=$to
}

mix_log_and_fail() # NODE dump|restore
{
	ask "$1" "grep -a 'rdma:\|Error' /var/lib/migr-ctr/mix/logs/$2.log" ||
		true
	fail "$2 on $1"
}

mix_over() { ask n2 "[ -s /run/mix.json ]"; }

# mix_end: both ends stop, compare, and find nothing wrong
mix_end()
{
	on n2 "pkill -INT -x rc_mix" || true
	poll_until 120 mix_over
	ask n2 "cat /run/mix.json"
	ask n2 "jq -e '.result == \"PASS\" and .violations == 0' /run/mix.json" \
		>/dev/null || fail "rc_mix found violations"
	poll_until 30 mix_moved_end_is_done
	ask $mix_at "migr-ctr delete mix" || true
}

mix_moved_end_is_done() { ! ask $mix_at "pgrep -x rc_mix"; }

# counter NODE NAME: a hw_counter of rxe0
counter()
{
	ask "$1" "cat /sys/class/infiniband/rxe0/ports/1/hw_counters/$2"
}
