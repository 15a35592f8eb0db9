# shellcheck shell=bash disable=SC2154 # lib.sh assigns $lab
# SPDX-License-Identifier: GPL-2.0
#
# MPI jobs that mpi-run starts on n1: sourced after lib.sh. What a job says is in
# /run/mpi.log there, its exit code in /run/mpi.exit.

mine+=(mpi0 mpi1 mpi2 mpi3)
at_end mpi_kill
mpi_ranks=4                       # or 2
mpi_at=(n1 n1 n2 n2)              # each container, at first and as it moves
mpi_run=/var/lib/migr-ctr/mpi0/run # of rank 0

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

# mpi_start ENVIRONMENT KERNEL OPTION...: ranks of one of the NAS kernels, each in a
# container of its own, the first half on n1, again and again until mpi_stop
mpi_start()
{
	mpi_at=(n1 n1 n2 n2)
	[ $mpi_ranks = 4 ] || mpi_at=(n1 n2)
	mpi_launch "$1" --nodes n1,n2 --per 1 -n $mpi_ranks "npb_$2" -l 0 \
		-P progress "${@:3}"
	mpi_computes
}

mpi_computes()
{
	poll_until 300 ask n1 "[ -s /run/mpi.exit ] || [ -s $mpi_run/progress ]"
}

# Rank 0 is to say that it is enough.
# shellcheck disable=SC2016 # for the node's shell
mpi_stop()
{
	ask "${mpi_at[0]}" 'for p in $(ip netns pids mpi0); do
			! grep -qxz PMIX_RANK=0 /proc/$p/environ || kill $p
		done'
}

mpi_move() # CONTAINER, as a number, TO
{
	ctr_move "${mpi_at[$1]}" "mpi$1" "$2" | tail -n 1
	mpi_at[$1]=$2
}

# The job's end, which is a good one
mpi_ends()
{
	mpi_succeeds
	ask n1 'sed -n "s/^{/{/p" /run/mpi.log' |
		grep -q '"ranks":'$mpi_ranks',.*"verified":true,' ||
		fail "not verified"
}

# It fails if nobody knows.
iterations() { ask "${mpi_at[0]}" "cat $mpi_run/progress" | grep -x '[0-9][0-9]*'; }
goes_on() # past ITERATION
{
	poll_until 300 ask "${mpi_at[0]}" "[ ! -e $mpi_run ] ||
		[ \$(cat $mpi_run/progress) -gt $1 ]"
	ask "${mpi_at[0]}" "[ -e $mpi_run ]" ||
		fail "the job has ended: $(ask n1 'cat /run/mpi.log')"
}

# mpi_sends NODE: as "packets", how many of RDMA for each iteration, of some
mpi_sends()
{
	local before from sent to

	before=$(counter "$1" sent_pkts)
	from=$(iterations)
	goes_on $((from + 20))
	sent=$(counter "$1" sent_pkts)
	to=$(iterations)
	packets=$(((sent - before) / (to - from)))
	say "$1 sends $packets packets of RDMA for an iteration"
}

mpi_over_rdma() # NODE: more than a rank that says hello, and less than it has to say
{
	mpi_sends "$1"
	[ $packets -ge 20 ] || fail "this is not RDMA"
}
