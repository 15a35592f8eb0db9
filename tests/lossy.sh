# shellcheck shell=bash disable=SC2154 # of lib.sh
# SPDX-License-Identifier: GPL-2.0
#
# For tests with lossy_mix, of which one end moves in a container and the other stays on n2:
# sourced after lib.sh.

lossy_env='' # of the end that stays, as words for env(1)
lossy_ctr=() # of the container, as options

here=n1
mover=client
own='' # address for RDMA, as an option
run=/var/lib/migr-ctr/lossy/run # of the container, on its node

# progress and result
lossy_file() { [ "$1" = n2 ] && echo /run/lossy.json || echo $run/lossy.json; } # NODE
lossy_number() { ask "$1" "jq -e .$2 $(lossy_file "$1")"; }      # NODE NAME
lossy_is() { echo "jq -e '$2' $(lossy_file "$1") >/dev/null"; } # NODE EXPRESSION

# in both directions, on every QP, and more than can lie unread
lossy_flows()
{
	local n before

	for n in n2 $here; do
		before=$(lossy_number "$n" least)
		poll_until 60 ask "$n" "$(lossy_is "$n" ".least > $((before + 70))")"
	done
}

lossy_partner() # ARGUMENT...: the end on n2
{
	on n2 "rm -f /run/lossy.*; setsid sh -c 'env $lossy_env lossy_mix $* \
		-P /run/lossy.json >/run/lossy.out 2>&1; echo \$? >/run/lossy.exit' \
		</dev/null >/dev/null 2>&1 &"
}

lossy_container() # ARGUMENT...: the end that moves
{
	# shellcheck disable=SC2016,SC2086 # for the shell in the container; words
	ctr_create n1 "${lossy_ctr[@]}" $own lossy 10.20.0.142 -- sh -c 'exec \
		lossy_mix ${RDMA_GID_INDEX:+-g $RDMA_GID_INDEX} "$@"' \
		sh -P /run/lossy.json "$@"
}

# What is the client's to say the server takes from it.
lossy_start() # OPTION...
{
	here=n1
	say "the $mover moves: lossy_mix $*${own:+, with $own}"
	if [ "$mover" = client ]; then
		lossy_partner -s "$@"
		poll_until 20 listening n2 18700
		lossy_container "$@" 10.20.0.2
	else
		lossy_container -s "$@"
		poll_until 20 ask n1 \
			"ip netns exec lossy $(is_listening 18700)"
		lossy_partner "$@" 10.20.0.142
	fi
	poll_until 20 ask n2 '[ -e /run/lossy.json ]'
	poll_until 20 ask n1 "[ -e $run/lossy.json ]"
	lossy_flows
	[ "$(lossy_number n2 lost) $(lossy_number n1 lost)" = '0 0' ] ||
		fail "something was lost before"
}

lossy_move_only()
{
	local to=n3

	[ $here = n1 ] || to=n1
	ctr_move $here lossy $to | tail -n 1 || fail "it does not move"
	here=$to
	lossy_flows
}

# lossy_ends [CODE]: both
lossy_ends()
{
	local code=${1-0}

	ask n2 'pkill -INT -x lossy_mix'
	ask $here 'pkill -INT -x lossy_mix'
	poll_until 30 ask n2 '[ -s /run/lossy.exit ]'
	poll_until 30 ask $here 'migr-ctr exit lossy'
	ask n2 'cat /run/lossy.out'
	ctr_out $here lossy
	[ "$(ask n2 'cat /run/lossy.exit')" = "$code" ] || fail "the partner"
	[ "$(ask $here 'migr-ctr exit lossy')" = "$code" ] || fail "the moved end"
}

lossy_lose() # cut|lost: what messages are there
{
	local n before

	say "n2: 5 % loss"
	"$lab" netem n2 loss 5%
	for n in n2 $here; do
		before=$(lossy_number "$n" "$1")
		poll_until 60 ask "$n" "$(lossy_is "$n" ".$1 > $((before + 8))")"
	done
}

at_end "$lab" netem n2 off
at_end ask n2 'pkill -KILL -x lossy_mix || true'
