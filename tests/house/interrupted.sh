#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Whatever is interrupted by a signal takes its lab down, and its processes are
# gone: tests/run in a test and in `lab up`, and `lab up` for who takes it down.

. "$(dirname "$0")/lib.sh"

export FAKE_LAB=$tmp/fake LAB_COMMAND=$tests/house/fake-lab LAB_LOGS=$tmp/logs
mkdir "$FAKE_LAB"

gone() { ! grep -qs '^State:.[^ZX]' "/proc/$1/status"; } # or waits to be buried
called() { grep -qsx "$1" "$FAKE_LAB/calls"; }

printf '%s\n' '#!/bin/bash' "echo \$\$ >$tmp/pid" 'sleep 600' >"$tmp/long.test"
for where in test up; do
	for signal in TERM HUP; do
		say "SIG$signal, tests/run is in: $where"
		rm -rf "$FAKE_LAB" "$tmp/pid"
		mkdir "$FAKE_LAB"
		[ $where = test ] || touch "$FAKE_LAB/slow_up"
		"$tests/run" "$tmp/long.test" >"$tmp/out" 2>&1 &
		run=$!
		if [ $where = test ]; then
			until_true test -s "$tmp/pid"
		else
			until_true called up
		fi
		kill -$signal $run
		until_true gone $run
		called down || fail "no lab down: $(cat "$tmp/out")"
		[ ! -s "$tmp/pid" ] || gone "$(cat "$tmp/pid")" ||
			fail "the test runs on"
	done
done

say "Ctrl-C, which everybody on the terminal gets, but not a test"
rm -rf "$FAKE_LAB" "$tmp/pid"
mkdir "$FAKE_LAB"
set -m # or it would ignore that signal
"$tests/run" "$tmp/long.test" >"$tmp/out" 2>&1 </dev/null &
set +m
until_true test -s "$tmp/pid"
kill -INT -- -$!
until_true gone $!
called down || fail "no lab down: $(cat "$tmp/out")"
gone "$(cat "$tmp/pid")" || fail "the test runs on"

say "lab down while lab up still starts nodes"
mkdir -p "$LAB_DIR"
bash -c '. "$0/ending.sh"; exec 8>>"$1/lock"; flock 8
	sed "s/^\([0-9]*\) (.*)\( [^ ]*\)\{19\} \([0-9]*\) .*/\1 \3/" \
		/proc/$$/stat >"$1/lock"
	while sleep 0.1; do :; done 8>&-' "$tests" "$LAB_DIR" &
up=$!
until_true test -s "$LAB_DIR/lock"
"$lab" down
gone $up || fail "it still starts nodes"

say "a number that is another process's by now is let alone"
sleep 600 &
echo "$! 1" >"$LAB_DIR/lock"
"$lab" down
! gone $! || fail "a stranger was killed"
