# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0
#
# For tests of lab and tests/run that need no node.

set -euo pipefail

tests=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
tree=${tests%/*}
tmp=$(mktemp -d)
export LAB_DIR=$tmp/lab LAB_TIMEOUT_FACTOR=1
unset LAB_KEEP UNIT_RESULT UNIT_LOG UNIT_PID LAB_DEVICE LAB_LOGS LAB_MLX5SOFT THOROUGH
# A make that runs these must not tell its variables to a make that they run.
unset MAKEFLAGS MFLAGS MAKEOVERRIDES MAKELEVEL
# shellcheck disable=SC2034 # for tests
lab=$tree/lab

# As on a busy machine: while processes are looked at, one of them ends.
mkdir "$tmp/busy"
# shellcheck disable=SC2016 # expanded there
printf '%s\n' '#!/bin/bash' 'PATH=${PATH#*:} cat "$@" || exit' \
	'[ $# = 1 ] || [[ $1 != /proc/* ]]' >"$tmp/busy/cat"
chmod +x "$tmp/busy/cat"
PATH=$tmp/busy:$PATH

say() { echo "# $*"; }
fail() { echo "FAILED: $*"; exit 1; }

until_true() # CMD...
{
	local n

	for n in {1..600}; do
		! "$@" || return 0
		sleep 0.1
	done
	fail "not within a minute ($n): $* $(cat "$tmp/out" 2>/dev/null)"
}

# A node is a process whose arguments name the state folder, and a console.
fake_node() # NODE [KERNEL]
{
	mkdir -p "$LAB_DIR/$1"
	bash -c 'exec -a "$0" sleep 600' "$LAB_DIR" &
	echo $! >"$LAB_DIR/$1/pid"
	echo "lab: ready kernel=${2-x} device=rxe rxe=migr uptime=5.00" \
		>"$LAB_DIR/$1/console.log"
}

console_says() { echo "$2" >>"$LAB_DIR/$1/console.log"; } # NODE LINE

end_house()
{
	local p

	for p in $(jobs -p); do
		kill -KILL "$p" || true
	done 2>/dev/null
	rm -rf "$tmp"
}
trap end_house EXIT
