#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# tests/run fails, and says so, when a kernel complained before a test, during
# it or at down, when something is left behind, and when a test fails; it counts
# what was skipped; it keeps what was found.

. "$(dirname "$0")/lib.sh"

export FAKE_LAB=$tmp/fake LAB_COMMAND=$tests/house/fake-lab LAB_LOGS=$tmp/logs
mkdir "$FAKE_LAB"

a_test() # NAME LINE...
{
	printf '%s\n' '#!/bin/bash' "${@:2}" >"$tmp/$1.test"
}

# ran COUNTS TEST...: tests/run ends with these counts, and so does its exit code
ran()
{
	local rc=0

	timeout 100 "$tests/run" "${@:2}" >"$tmp/out" 2>&1 || rc=$?
	[ "$(tail -n 1 "$tmp/out")" = "$1" ] ||
		fail "not '$1': $(cat "$tmp/out")"
	[[ $rc = 0 && $1 = *" 0 failed" || $rc = 1 && $1 != *" 0 failed" ]] ||
		fail "exit code $rc with $1"
	[ ! -e "$FAKE_LAB/is_up" ] || fail "the lab is still up"
}

has() { grep -q "$1" "$tmp/out" || fail "'$1' is not in: $(cat "$tmp/out")"; }

a_test good 'echo fine'
a_test bad 'echo "FAILED: of its own accord"' 'exit 1'
a_test skips 'echo "skipped: no such thing here"' 'exit 77'
a_test complains "echo 'WARNING: amid' >$FAKE_LAB/check"
a_test undone ". $tests/lib.sh" 'at_end false'
# shellcheck disable=SC2016 # expanded there
a_test half_done ". $tests/lib.sh" 'ending() { sh -c "exit 3"; true; }' 'at_end ending' \
	'breaks() { fail here; }' '[ -z "${BREAKS-}" ] || breaks || true'
a_test skip_undone ". $tests/lib.sh" 'at_end false' 'skip "not here"'
a_test leaks "echo 'qp: link rxe0/1 lqpn 17' >$FAKE_LAB/leak"

say "all is well"
ran "1 passed, 0 failed" "$tmp/good.test"
say "another run has its own evidence"
echo "FAILED: another one" >"$LAB_LOGS/left.n9"
ran "1 passed, 0 failed" "$tmp/good.test"
[ -e "$LAB_LOGS/left.n9" ] || fail "that was the other's"
LAB_LOGS='' ran "1 passed, 0 failed" "$tmp/good.test"
[ -e "$LAB_DIR/tests/good.log" ] || fail "another lab's logs are not beside it"
say "a test fails, one is skipped; unit tests count"
echo 5 1 >"$tmp/units"
UNIT_RESULT=$tmp/units ran "6 passed, 2 failed" "$tmp"/{bad,good,skips}.test
UNIT_RESULT=$tmp/none ran "1 passed, 1 failed" "$tmp"/{good,skips}.test
has "they ended without a result"
UNIT_RESULT=$tmp/units ran "6 passed, 2 failed" "$tmp"/{bad,good,skips}.test
has "^FAILED .* bad: of its own accord"
has "^skip .* skips: .*no such thing"
has " 1 skipped"
[ -e "$LAB_LOGS/bad/n1/state" ] || fail "nothing was kept"
grep -q '^record keep' "$FAKE_LAB/calls" || fail "no capture was kept"

say "a test of a tier that there is not is missed by nobody"
a_test typo '# tier: sok'
rc=0
"$tests/run" "$tmp/typo.test" >"$tmp/out" 2>&1 || rc=$?
[ $rc = 2 ] || fail "exit code $rc: $(cat "$tmp/out")"
has "typo.test: there is no tier 'sok'"

say "a complaint at boot, during a test, at down"
echo 'WARNING: at boot' >"$FAKE_LAB/check"
ran "1 passed, 1 failed" "$tmp"/{good,skips,good}.test
has "WARNING: at boot"
ran "1 passed, 1 failed" "$tmp"/{complains,good}.test
has "WARNING: amid"
echo 1 >"$FAKE_LAB/down"
ran "1 passed, 1 failed" "$tmp/good.test"
has "^FAILED .* lab down"
rm "$FAKE_LAB/down"

say "a part of it is done in the soak alone"
a_test brief 'thorough() { false; }' 'thorough || exit 0'
ran "1 passed, 0 failed" "$tmp/brief.test"
has "^ok .* brief: the soak does more"
# shellcheck disable=SC2016 # expanded there
a_test deep '# tier: soak' '[ -n "$THOROUGH" ]'
ran "1 passed, 0 failed" "$tmp/deep.test"

say "so is what the folder soak has, from wherever it is called, and by its tier"
mkdir -p "$tmp/soak/tests/soak"
cp "$tests"/{run,ending.sh,leaks.sh} "$tmp/soak/tests/"
# shellcheck disable=SC2016 # expanded there
a_test soak/tests/soak/deep '[ -n "$THOROUGH" ]'
# shellcheck disable=SC2016 # expanded there
a_test soak/tests/shallow '[ -z "$THOROUGH" ]'
tests=$tmp/soak/tests
(cd "$tests/soak" && ran "1 passed, 0 failed" deep.test)
ran "1 passed, 0 failed" --tier soak
has "^ok .* deep"
ran "1 passed, 0 failed"
has "^ok .* shallow"
say "and by another path of the tree"
ln -s "$tmp/soak" "$tmp/link"
tests=$tmp/link/tests
ran "1 passed, 0 failed" --tier soak
has "^ok .* deep"
tests=$tmp/soak/tests
say "a tier without tests is no success"
echo '# tier: soak' >>"$tests/shallow.test"
! "$tests/run" 2>"$tmp/out" || fail "it is"
has "there is no test"
tests=$tree/tests

say "an object is left behind"
ran "0 passed, 1 failed" "$tmp/leaks.test"
has "lqpn 17"
say "which is not the next test's"
ran "1 passed, 1 failed" "$tmp"/{leaks,good}.test
say "nor is what a failed test has taken away"
a_test takes "touch $FAKE_LAB/taken" 'exit 1'
a_test needs "[ ! -e $FAKE_LAB/taken ]"
ran "1 passed, 1 failed" "$tmp"/{takes,needs}.test

say "so is a bad line on this side, and what could not be done in the end is told"
a_test spoils ". $tests/lib.sh" "at_end touch $tmp/all_done" \
	"at_end sh -c 'echo no such qdisc >&2; exit 2'" \
	"at_end poll_until 0 false" "touch $LAB_DIR/n1/wire.json"
ran "0 passed, 1 failed" "$tmp/spoils.test"
has "netem is on"
has "^no such qdisc"
has "not done in the end, code 2: sh -c "
has "not done in the end, code 1: poll_until "
[ -e "$tmp/all_done" ] || fail "the others were not done"
rm "$LAB_DIR/n1/wire.json"
say "and so is a slow one"
a_test slows "touch $LAB_DIR/n1/limit"
ran "0 passed, 1 failed" "$tmp/slows.test"
has "a limit is on"
rm "$LAB_DIR/n1/limit"
ran "0 passed, 1 failed" "$tmp/undone.test"
has "^FAILED .* undone: not done in the end"
ran "0 passed, 1 failed" "$tmp/half_done.test"
has "^FAILED .* half_done: not done in the end, code 3"
BREAKS=1 ran "0 passed, 1 failed" "$tmp/half_done.test"
has "not done in the end, code 3"
ran "0 passed, 1 failed" "$tmp/skip_undone.test"
has "^FAILED .* skip_undone: not done in the end"

say "who ends without a word is given one, who has said something is not"
a_test silent ". $tests/lib.sh" 'nothing() { false here; }' nothing
ran "0 passed, 1 failed" "$tmp/silent.test"
has '^FAILED .* silent: code 1: false here, from line 4'
a_test words ". $tests/lib.sh" 'fail "this and that"'
ran "0 passed, 1 failed" "$tmp/words.test"
has "^FAILED .* words: this and that"
! grep 'code 1' "$tmp/out" || fail "that was enough"

say "what nobody could look at is not well"
a_test asks ". $tests/lib.sh" ". $tests/lib-mlx5.sh" "lab=$LAB_COMMAND" \
	"touch $LAB_DIR/n1/mlx5.log" 'quiet n1' 'lab=false' '! absent n1 ls' 'quiet n1'
ran "0 passed, 1 failed" "$tmp/asks.test"
has "^FAILED .* asks: nobody knows what n1's drivers say"

# shellcheck disable=SC2016 # expanded there
a_test greps ". $tests/lib.sh" 'ask() { bash -c "$2"; }' \
	"lacks n1 -i no.such.words $tests/lib.sh || fail 'it is not there'" \
	"! lacks n1 poll_until $tests/lib.sh || fail 'it is there'" \
	"! lacks n1 poll_until $tmp/none || fail 'there is no such file'"
ran "1 passed, 0 failed" "$tmp/greps.test"

say "the console of a node that died is kept"
a_test dies "mkdir $LAB_DIR/n2; echo panic >$LAB_DIR/n2/console.log; exit 1"
ran "0 passed, 1 failed" "$tmp/dies.test"
grep -q panic "$LAB_LOGS/dies/n2/console.log" || fail "it was not"

say "who wants the same lab comes one after the other"
a_test one '# lab: -n 1'
a_test two '# lab: -n 2'
a_test again '# lab: -n 1'
ran "3 passed, 0 failed" "$tmp"/{one,two,again}.test
[ "$(sed -n 's/^==== //p' "$tmp/out" | xargs)" = "one again two" ] ||
	fail "the order is: $(cat "$tmp/out")"

say "a test that hangs is ended, with what it has started"
a_test hangs "sleep 600 & echo \$! >$tmp/pid; wait"
TEST_SILENCE=1 ran "0 passed, 1 failed" "$tmp/hangs.test"
has "nothing was heard for 1 s"
! grep -qs '^State:.[^ZX]' "/proc/$(cat "$tmp/pid")/status" ||
	fail "what it has started runs on"
say "one that is slow, as the machine, is not"
a_test slow "touch -d '1900 seconds ago' $LAB_LOGS/slow.log" 'sleep 7'
FAKE_FACTOR=2000 TEST_SILENCE=1 ran "1 passed, 0 failed" "$tmp/slow.test"

say "so is what a failed test has left running, which holds the output"
a_test forgets "sleep 600 & echo \$! >$tmp/pid; exit 1"
ran "0 passed, 1 failed" "$tmp/forgets.test"
! grep -qs '^State:.[^ZX]' "/proc/$(cat "$tmp/pid")/status" ||
	fail "it runs on"
