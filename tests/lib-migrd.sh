# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0
#
# For tests with migrd on nodes: sourced after lib.sh. It ends when the test does.

keys=/opt/migr/migrd
daemons=()
migrd_env='' # of those that start, as words for env(1)

# shellcheck disable=SC2016 # expanded there
daemons_end() # NODE...
{
	local n

	for n in "$@"; do
		ask "$n" 'pkill -x migrd; i=0
			while pgrep -x migrd >/dev/null; do
				[ $((i += 1)) -lt 100 ] || exit 1
				sleep 0.1
			done
			rm -rf /run/migrrdma'
	done
}

# daemon NODE: and it listens
daemon()
{
	daemons+=("$1")
	on "$1" "mkdir -p /run/migrrdma /run/migrd
		setsid env $migrd_env migrd -k $keys/$1.key -c $keys/$1.crt -a $keys/ca.crt \
			-s /run/migrd/sock -m /run/migrctl/sock /run/migrrdma '/var/lib/migr-ctr/*/run/migrrdma' \
			</dev/null >>/run/migrd.log 2>&1 &"
	poll_until 20 listening "$1" 18620
}

daemons_all_end() { [ ${#daemons[@]} = 0 ] || daemons_end "${daemons[@]}"; }
at_end daemons_all_end
