# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0
#
# MPI jobs that mpi-run starts on n1: sourced after lib.sh. What a job says is in
# /run/mpi.log there, its exit code in /run/mpi.exit.

mine+=(mpi0 mpi1 mpi2 mpi3)
at_end mpi_kill

# mpi-run itself, not what it has started: that is its own to end.
# shellcheck disable=SC2016 # for the node's shell
mpi_kill()
{
	poll_until 120 ask n1 '[ ! -e /run/mpi.pid ] || [ -s /run/mpi.exit ] || {
		pkill -TERM -P $(cat /run/mpi.pid)
		false
	}'
}

# mpi_launch ENVIRONMENT ARGUMENT...: of mpi-run
mpi_launch()
{
	on n1 "rm -f /run/mpi.*
		$1 setsid sh -c 'mpi-run ${*:2} >/run/mpi.log 2>&1
		echo \$? >/run/mpi.exit' </dev/null >/dev/null 2>&1 &
		echo \$! >/run/mpi.pid"
}

# The job ends, and leaves nothing
mpi_succeeds()
{
	local n

	poll_until 300 ask n1 '[ -s /run/mpi.exit ]'
	ask n1 'tail -n 40 /run/mpi.log'
	[ "$(ask n1 'cat /run/mpi.exit')" = 0 ] || fail "the job has failed"
	for n in n1 n2 n3; do
		absent $n 'ls /var/lib/migr-ctr | grep -q "^mpi"' ||
			fail "$n: a container is left"
	done
}
