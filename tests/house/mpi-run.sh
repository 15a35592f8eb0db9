#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# mpi-run from the host, without a terminal: its exit code is the job's, and whoever
# ends it ends the job, and its containers. The node is this machine, with programs
# that are none.

. "$(dirname "$0")/lib.sh"

mkdir -p "$tmp/tree/bench/mpi" "$tmp/bin" "$tmp/node"
sed "s,/run/node,$tmp/node.none,g" "$tree/bench/mpi/mpi-run" \
	>"$tmp/tree/bench/mpi/mpi-run"
sed "s,/run/node,$tmp/node,g; s,/run/mpi-run,$tmp/node/job,g" \
	"$tree/bench/mpi/mpi-run" >"$tmp/bin/mpi-run"
printf '%s\n' '#!/bin/bash' "echo \"\$*\" >>$tmp/lab" \
	"PATH=$tmp/bin:\$PATH exec bash -c \"\${*:3}\"" >"$tmp/tree/lab"
printf '%s\n' '#!/bin/bash' "echo \"\$*\" >>$tmp/ssh" >"$tmp/bin/ssh"
printf '%s\n' '#!/bin/bash' 'exit 1' >"$tmp/bin/ping"
printf '%s\n' '#!/bin/bash' "echo \$\$ >$tmp/mpirun" \
	"cat >$tmp/stdin; [ \"\${*: -1}\" != 3 ] || exit 3" \
	'exec sleep 600' >"$tmp/bin/mpirun"
chmod +x "$tmp"/bin/* "$tmp/tree/lab" "$tmp/tree/bench/mpi/mpi-run"

gone() { ! grep -qs '^State:.[^ZX]' "/proc/$1/status"; } # or waits to be buried
no_job() { [ "$(ls "$tmp/node")" = '' ]; }

mpi_run() # ARGUMENT
{
	exec "$tmp/tree/bench/mpi/mpi-run" --nodes n1,n2 -n 2 true "$1"
}

say "it ends by itself, and nobody waits for anybody"
rc=0
(mpi_run 3) </dev/null >"$tmp/out" 2>&1 || rc=$?
[ $rc = 3 ] || fail "exit code $rc: $(cat "$tmp/out")"
no_job || fail "there is something left: $(ls "$tmp/node")"
rc=0
(mpi_run 3) <"$tmp/lab" >"$tmp/out" 2>&1 || rc=$?
[ $rc = 3 ] || fail "exit code $rc: $(cat "$tmp/out")"
[ ! -s "$tmp/stdin" ] || fail "it has read what was for nobody"

for signal in INT TERM HUP KILL; do
	say "SIG$signal"
	rm -f "$tmp/ssh" "$tmp/mpirun"
	set -m # or it would ignore SIGINT
	(mpi_run 600) </dev/null >"$tmp/out" 2>&1 &
	set +m
	run=$!
	until_true test -s "$tmp/mpirun"
	kill -$signal -- -$run
	until_true gone $run
	# Who is killed waits for nothing.
	[ $signal != KILL ] || until_true no_job
	no_job || fail "it does not wait for the job: $(cat "$tmp/out")"
	gone "$(cat "$tmp/mpirun")" || fail "the job runs on"
	[ "$(grep -c 'migr-ctr delete' "$tmp/ssh")" = 2 ] ||
		fail "containers were made, and these removed: $(cat "$tmp/ssh")"
	if [ $signal != KILL ]; then
		rc=0
		wait $run || rc=$?
		[ $rc = 143 ] || fail "exit code $rc"
	fi
done
