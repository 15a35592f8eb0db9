# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0
#
# Dump and restore of a program of criu/tests by plain CRIU, in /tmp/c of a node:
# $program, contexts if nobody says otherwise. For tests that have sourced lib.sh,
# too.
#
# shellcheck disable=SC2016 # what stands in single quotes is for the node
# shellcheck disable=SC2154 # $lab and $migr_key are from lib.sh

env='mkdir -p /tmp/c'
program=contexts
files=

set_key() # NODE [HEX]
{
	ask "$1" "echo '1:${2-$(printf %064d 7)}' >$migr_key"
}

needs_migration() # NODE...
{
	local n

	for n in "$@"; do
		ask "$n" "test -e $migr_key" ||
			fail "$n has the stock rdma_rxe"
		ask "$n" 'test -e /usr/lib/criu/rdma_plugin.so' ||
			fail "$n has no plug-in"
		set_key "$n"
	done
}

# What RDMA files the processes have: number and kind.
rdma_files() # NODE
{
	ask "$1" "for p in \$(pgrep -x $program); do"'
		ls -l /proc/$p/fd | awk "/infiniband|memfd/ { print \$9, \$11 }"
	done'
}

processes() { ask "$1" "pgrep -cx $program" || true; } # NODE
# conditions, for the node's shell
all_say() { echo "[ \$(grep -c '^$1' /tmp/c/out) = $count ]"; } # WORD
# a line is a device, and each must be empty
no_objects="rdma res show | awk '!/ mr 0 ctx 0( |\$)/ { left = 1 }
	END { exit left || !NR }'"

# What they have found wrong they say, and end.
all_have_said() # WORD NODE SECONDS
{
	poll_until "$3" ask "$2" "$(all_say "$1") || grep -q ^FAIL /tmp/c/out"
	ask "$2" "$(all_say "$1")" ||
		fail "$program: $(ask "$2" 'cat /tmp/c/out')"
}

# -u: as an ordinary user; -U: in a user namespace; else options of contexts
start_contexts() # NODE [-u|-U] [OPTION...]
{
	local as='' node=$1

	shift
	if [ "${1-}" = -u ]; then
		as='setpriv --reuid 1000 --regid 1000 --clear-groups'
		shift
	elif [ "${1-}" = -U ]; then
		as='unshare -Ur'
		shift
	fi
	count=1
	[ "${1-}" != -p ] || count=$2
	[ "${2-}" != -p ] || count=$3
	# plain CRIU restores the same pids, which must be free on the other node
	ask "$node" "$env; pkill -9 -x $program; rm -rf /tmp/c/*; mkdir /tmp/c/i
		echo 30000 >/proc/sys/kernel/ns_last_pid
		setsid $as $program $* </dev/null >/tmp/c/out 2>&1 &"
	all_have_said ready "$node" 20
	# shellcheck disable=SC2034 # for tests
	files=$(rdma_files "$node")
}

criu_dump() # NODE [OPTION...]
{
	on "$1" "criu dump -D /tmp/c/i -o /tmp/c/log -v3 --shell-job \
		-t \$(pgrep -ox $program) ${*:2}" ||
		fail "dump: $(ask "$1" "grep -h 'rdma: \|Error' /tmp/c/log")"
}

copy_images() # FROM TO [FILE...]: that the program has, too
{
	ask "$2" 'rm -rf /tmp/c'
	"$lab" ssh "$1" "tar -C / -cf - tmp/c ${*:3}" </dev/null |
		"$lab" ssh "$2" 'tar -C / -xf -'
}

criu_restore() # NODE
{
	on "$1" "criu restore -d -D /tmp/c/i -o /tmp/c/log -v3 --shell-job" ||
		fail "restore: $(ask "$1" "grep -h 'rdma: \|Error' /tmp/c/log")"
}

refused() # NODE MESSAGE WORD...: the command fails and its log says MESSAGE
{
	if ! on "$1" "cd /tmp/c && ! ${*:3}" >/dev/null 2>&1; then
		fail "not refused: ${*:3}"
	fi
	grep -q "$2" <<<"$(ask "$1" "grep -h 'rdma: \|Missing' /tmp/c/log")" ||
		fail "the log does not say: $2"
}

use_contexts() # NODE: they work, and go away in order
{
	ask "$1" "pkill -CONT -x $program; pkill -USR1 -x $program" || true
	all_have_said PASS "$1" 60
	ask "$1" "pkill -9 -x $program" || true # what does not end by itself
}

none_left() # NODE: neither tasks nor objects
{
	poll_until 20 ask "$1" "$no_objects"
	[ "$(processes "$1")" = 0 ] || fail "$1: processes are left"
}
