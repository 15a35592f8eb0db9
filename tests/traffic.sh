# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0
#
# For tests with checked traffic: sourced after lib.sh.
#
# Each end of it, an rc_mix, leaves its progress, its result, its words and its
# exit code in mix.* of its node's /run.

declare -A device=() # by node, where it is not to be rc_mix's choice
mix_files='-P /run/mix.progress -O /run/mix.json'
# What waits longer is stuck, and says so: sooner than whoever waits for it.
mix_patience="-D $(seconds 80)"
mix_ends=()
mix_env='' # of rc_mix, as words for env(1)
mix_watched=n2 # the progress of this end is looked at

mix_kill() # NODE...
{
	local n

	for n in "$@"; do
		ask "$n" 'pkill -KILL -x rc_mix; rm -f /run/mix.*' || true
	done
}

mix_launch() # NODE ARGUMENT...
{
	on "$1" "setsid sh -c 'env $mix_env rc_mix ${device[$1]:+-d ${device[$1]}} \
		$mix_files ${*:2} >/run/mix.log 2>&1
		echo \$? >/run/mix.exit' </dev/null >/dev/null 2>&1 &"
}

# mix_between SERVER CLIENT OPTION...: and the server's progress is watched
mix_between()
{
	# shellcheck disable=SC2086 # words
	set -- "$1" "$2" $mix_patience "${@:3}"
	mix_ends=("$1" "$2") mix_watched=$1
	mix_kill "$1" "$2"
	mix_launch "$1" -s "${@:3}"
	poll_until 20 listening "$1" 18600
	mix_launch "$2" "${@:3}" "10.20.0.${1#n}"
}

# mix_number received|least: how many messages have been received so far, of all QPs or
# of that with the least: none, if nothing has been said yet. It fails if nobody knows.
mix_number()
{
	ask $mix_watched "if [ -e /run/mix.progress ]; then cat /run/mix.progress
			else echo '\"$1\":0,'; fi" |
		sed -n "s/.*\"$1\":\([0-9]*\)[,}].*/\1/p" | grep .
}

# mix_past ALL LEAST: a condition for the node's shell
mix_past()
{
	cat <<-END
	set -- \$(sed -n 's/.*"received":\([0-9]*\),"least":\([0-9]*\)}.*/\1 \2/p' \
		/run/mix.progress)
	[ \$1 -gt $1 ] && [ \$2 -gt $2 ]
	END
}

# Traffic flows, from now on, on each QP. With up to three it does in both directions:
# that is more than their windows.
mix_goes_on()
{
	local from least

	ask $mix_watched '[ ! -e /run/mix.json ] ||
		{ cat /run/mix.json; exit 1; }' || fail "the traffic has ended"
	from=$(mix_number received) || fail "nobody knows what $mix_watched has received"
	least=$(mix_number least) || fail "nobody knows what each QP has received"
	poll_until 90 ask $mix_watched "$(mix_past $((from + 50)) "$least")"
}

# From now on (USR1), or until now (USR2): where all are busy emulated nodes take
# long for anything else.
mix_rests() { ask $mix_watched "pkill -$1 -x rc_mix"; } # USR1|USR2

# mix_verdict NODE WHICH FILE EXIT: of one end
mix_verdict()
{
	echo "$2, on $1: exit code $4, $(ask "$1" "cat $3")"
	[ "$4" = 0 ] && ask "$1" "jq -e '.result == \"PASS\" and \
		.violations == 0 and .ops.received > 0' $3" >/dev/null
}

# Both ends come to their end, which one of them may be told, and find nothing
# wrong.
mix_passes()
{
	local n

	for n in "${mix_ends[@]}"; do
		poll_until 120 ask "$n" '[ -s /run/mix.exit ]'
		mix_verdict "$n" rc_mix /run/mix.json \
			"$(ask "$n" 'cat /run/mix.exit')" ||
			fail "rc_mix on $n: $(ask "$n" 'tail /run/mix.log')"
	done
}

mix_stops()
{
	ask $mix_watched 'pkill -INT -x rc_mix' || true
	mix_passes
}
