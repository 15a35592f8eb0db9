# shellcheck shell=bash disable=SC2154 # keys, of lib-migrd.sh
# SPDX-License-Identifier: GPL-2.0
#
# For tests with migr-mover on nodes: sourced after lib-migrd.sh. It ends when the test does.

movers=()

# mover NODE [NAME=VALUE]: and it answers
mover()
{
	movers+=("$1")
	on "$1" "setsid env ${2-} migr-mover -k $keys/$1.key -c $keys/$1.crt -a $keys/ca.crt \
		</dev/null >>/run/mover.log 2>&1 &"
	poll_until 20 ask "$1" 'migrctl status'
}

# the process of a move that has come to MIGR_MOVER_STOPS_AT
# shellcheck disable=SC2016 # there
mover_stopped() # NODE
{
	ask "$1" 'for p in $(pgrep -x migr-mover); do
		! grep -q "^State:.T" /proc/$p/status || exec echo $p
	done; exit 1'
}

movers_end() # NODE...
{
	local n

	for n in "$@"; do
		# shellcheck disable=SC2016 # there
		ask "$n" 'pkill -KILL -x migr-mover
			umount /run/migrctl/moves/*/images 2>/dev/null
			rm -rf --one-file-system /run/migrctl' || true
	done
}

# Whatever has become of the moves of a test: their ends have come, and no memory of a container is
# kept. Who cleans up first would hide that.
# shellcheck disable=SC2016 # there
moves_are_over() # NODE
{
	ask "$1" '[ -z "$(ls /run/migrctl/moves 2>/dev/null)" ] &&
		! grep " /run/migrctl/" /proc/mounts && [ -z "$(ls /run/migrctl/errors* 2>/dev/null)" ]'
}

movers_all_end()
{
	local n

	[ ${#movers[@]} != 0 ] || return 0
	for n in "${movers[@]}"; do
		(poll_until 60 moves_are_over "$n") || told=1
	done
	movers_end "${movers[@]}"
	[ -z "$told" ]
}
at_end movers_all_end
