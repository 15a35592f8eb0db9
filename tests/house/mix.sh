#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# tests/mix.sh: however late the traffic goes on, CRIU stops the container after
# that; a move during which it did not wait fails; whatever has become of a
# move, CRIU is itself again in the end; and both ends' verdicts are heard.
# shellcheck disable=SC2317,SC2329 # mix.sh calls them
. "$(dirname "$0")/lib.sh"

# All nodes are a folder here, where what still runs is not unmounted.
node=$tmp/node
dead='' # it does not answer
mkdir -p "$node/run" "$node/net/c-mix"
touch "$node/mounts"
printf '%s\n' '#!/bin/sh' "cat $node/run/mix.progress >>$tmp/\${1:-version}" >"$node/criu"
chmod +x "$node/criu"
at_end() { :; }
poll_until() { until "${@:2}"; do sleep 0.1; done; }
ask()
{
	[ "$1" != "$dead" ] || return 255
	bash -c "mount() { echo \" \$3 \" >>$node/mounts; cp \$2 \$3; }
	umount() { ! pgrep -fx \"/bin/sh \$1 dump\" >/dev/null || return 32
		: >$node/mounts; cp $node/run/mix-criu \$1; }
	$(sed "s,/run/,$node&,g; s,/usr/sbin,$node,g; s,/proc/mounts,$node/mounts,g
		s,/sys/class/net,$node/net,g" <<<"$2")"
}
absent() { ! ask "$@"; }
ask_until()
{
	local end=$((SECONDS + $1))

	until ask "${@:2}"; do
		[ "$SECONDS" -lt "$end" ] || return 1
		sleep 0.1
	done
}
seconds() { echo "$1"; }

# shellcheck source=SCRIPTDIR/../mix.sh
. "$tests/mix.sh"

traffic()
{
	local n

	for ((n = 0; ; n++)); do
		echo "{\"ops\":{\"received\":$n,\"least\":$n}}" >"$tmp/now"
		mv "$tmp/now" "$node/run/mix.progress"
		[ -e "$tmp/flows" ] || touch "$tmp/rests"
		until [ -e "$tmp/flows" ]; do sleep 0.01; done
		rm -f "$tmp/rests"
		sleep 0.005
	done
}
mix_rests()
{
	[ "$1" = USR1 ] || {
		sleep 1
		touch "$tmp/flows"
		return 0
	}
	rm -f "$tmp/flows"
	until [ -e "$tmp/rests" ]; do sleep 0.01; done
	mix_number received >"$tmp/rested"
}
criu() { MIGR_CTR_REQUEST=$1 "$node/criu" "$1" 0 </dev/null; } # REQUEST: there is one
ctr_move() { criu '' && criu dump && criu restore; }
received() { grep -o '[0-9]*' "$tmp/$1" | head -n 1; } # FILE

say "nothing has been received yet, or nobody knows"
[ "$(mix_number received)" = 0 ] || fail "there was no traffic"
dead=n2
! mix_number received || fail "it cannot know"
dead=''

touch "$tmp/flows"
traffic &
mix_holds_criu
mix_holds_criu # once is enough
for move in 1 2; do
	say "move $move"
	rm -f "$tmp"/{version,dump,restore}
	mix_move
	[ "$(received version)" = "$(<"$tmp/rested")" ] || fail "it did not rest"
	[ "$(received dump)" -gt $(($(<"$tmp/rested") + 50)) ] ||
		fail "CRIU did not wait"
	[ -s "$tmp/restore" ] || fail "it was not restored"
done

say "there are huge pages at both ends before a move, and after it where it has led"
mix_huge=yes
huge='' # the node without: n1 is left, n3 reached
mix_huge_kb() { [ "$1" = "$huge" ] && echo 0 || echo 2048; }
mix_move
for huge in n2 n1 n3; do
	mix_at=n1
	! said=$(mix_move) || fail "$huge has none, and nobody says so"
	[[ $said = *"$huge: 0 KiB"*"no huge pages"* ]] || fail "it says: $said"
done
mix_at=n1
mix_huge=''
mix_move

say "CRIU does not wait"
cp "$node/run/mix-criu" "$node/criu"
! said=$(mix_move) || fail "nobody has noticed"
[[ $said = *"CRIU did not wait"* ]] || fail "it says: $said"

say "nobody can tell whether CRIU waits"
(
	ask_until() { return 1; }
	touch "$node/run/mix-held"
	mix_wakes &
	! wait $! || fail "it succeeds"
	[ ! -e "$node/run/mix-held" ] || fail "CRIU is held for ever"
)

say "the verdicts of both ends are heard, and their exit codes"
(
	pass='{"result":"PASS","violations":0,"seed":7,"ops":{"received":1}}'
	lines=("$pass" "$pass") codes=(0 0)
	poll_until() { :; }
	ctr_out() { :; }
	ask()
	{
		local end=1

		[ "$1" != n2 ] || end=0
		case $2 in
		*'jq -e .seed'*) grep -o '"seed":.' <<<"${lines[end]}" ;;
		*'jq '*) grep -q PASS <<<"${lines[end]}" ;; # which the toolbox lacks
		*mix.json) echo "${lines[end]}" ;;
		*exit*) echo "${codes[end]}" ;;
		esac
	}
	mix_at=n3
	(mix_end) || fail "both have passed"
	bad() # END: is found wrong
	{
		! said=$(mix_end) || fail "$1 is not heard"
		[[ $said = *"rc_mix: $1"* ]] || fail "it says: $said"
	}
	for i in 0 1; do
		end=partner
		[ $i = 0 ] || end='moved end'
		lines[i]=${pass/PASS/FAIL}
		bad "$end"
		lines[i]=$pass codes[i]=1
		bad "$end"
		codes[i]=0
	done
	lines[1]=${pass/:7/:8}
	! said=$(mix_end) || fail "they had different seeds"
	[[ $said = *seeds* ]] || fail "it says: $said"
)

say "an interrupted move leaves CRIU as it was, also if a node does not answer"
for dead in '' n1 n3; do
	cp "$node/run/mix-criu.sh" "$node/criu"
	echo " $node/criu " >"$node/mounts"
	touch "$node/run/mix-hold"
	criu dump &
	criu=$!
	until [ -e "$node/run/mix-held" ]; do sleep 0.01; done
	code=0
	mix_frees_criu & # as at_end does it: what fails ends it
	wait $! || code=$?
	[ ! -e "$node/run/mix-held" ] || fail "it is held"
	wait $criu || fail "it was not let go"
	cmp -s "$node/criu" "$node/run/mix-criu" || fail "it is bound over"
	[ $code = $((${#dead} > 0)) ] || fail "code $code${dead:+, without $dead}"
done
