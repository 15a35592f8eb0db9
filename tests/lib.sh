# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0
#
# What every cluster test starts with:  . "$(dirname "$0")/lib.sh"
#
# A test is a bash script that says what it does, waits for conditions instead
# of sleeping, and ends with an error as soon as something is not as it should
# be. Containers it makes are removed when it ends.

set -euo pipefail

tree=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
lab=$tree/lab
# shellcheck disable=SC2034 # for tests
out=${LAB_DIR:-$tree/build/lab}/out # the nodes see it as /mnt/out
mine=()

say() { echo "# $*"; }
fail() { echo "FAILED: $*"; told=1; exit 1; }
told=
skip() { echo "skipped: $*"; exit 77; }
factor=$("$lab" factor) # of the lab that is up by now
seconds() { echo $(($1 * factor)); }

# What the check has no time for, and something alike, is done in the soak.
thorough() { [ -n "${THOROUGH-}" ]; }

# on NODE CMD: run CMD there, as ssh would, and say so.
on()
{
	echo "$1# ${*:2}" >&2
	"$lab" ssh "$@"
}

# The same for values to work with, in silence.
ask() { "$lab" ssh "$@" </dev/null 2>/dev/null; }

# absent NODE CMD...: it fails there. A node that cannot be asked is no proof of it.
absent() { ask "$1" "! { ${*:2}; }"; }

# lacks NODE ARGUMENT...: grep looks there, and finds nothing. That a file is not
# there, or cannot be read, is no proof of it.
lacks() { ask "$1" "grep -q ${*:2}; [ \$? = 1 ]"; }

# poll_until SECONDS CMD...: try CMD until it succeeds. What is asked of a node
# is tried there: a connection for each try would keep it busy.
poll_until()
{
	local deadline limit cmd=() rc

	limit=$(seconds "$1")
	deadline=$((SECONDS + limit))
	echo "... until ${*:2}" >&2
	case $2 in
	ask) cmd=("${@:3}") ;;
	listening) cmd=("$3" "$(is_listening "$4")") ;;
	esac
	until if [ ${#cmd[@]} -gt 0 ]; then
		ask_until $((deadline - SECONDS)) "${cmd[@]}"
	else
		"${@:2}"
	fi >/dev/null 2>&1; do
		[ $SECONDS -lt $deadline ] || fail "not within $limit s: ${*:2}"
		sleep 0.1
	done
}

# Comes back sooner only if the node does not answer.
ask_until() # SECONDS NODE CMD...
{
	ask "$2" "end=\$((SECONDS + $1))
		until (
			${*:3}
		); do
			[ \$SECONDS -lt \$end ] || exit 1
			sleep 0.1
		done"
}

is_listening() { echo "ss -Hltn sport = :$1 | grep -q ."; }  # PORT
listening() { ask "$1" "$(is_listening "$2")"; } # NODE PORT

hw_counters=/sys/class/infiniband/rxe0/ports/1/hw_counters
counter() { ask "$1" "cat $hw_counters/$2"; }               # NODE NAME
counted_past() { echo "[ \$(cat $hw_counters/$1) -gt $2 ]"; } # NAME COUNT

# shellcheck disable=SC2034 # for tests
migr_key=/sys/module/rdma_rxe/parameters/migr_key
cluster_key() { ask "$1" "cat /opt/migr/cluster.key >$migr_key"; } # NODE: it has that

# rdma_dev NODE: its RDMA device on the fabric
rdma_dev()
{
	ask "$1" 'rdma link show' |
		sed -n 's,^link \([^/]*\)/.* netdev fabric.*,\1,p' | grep .
}

# gid_index NODE: of RoCE v2 with the fabric's IPv4 address, on that device
gid_index()
{
	ask "$1" "cd /sys/class/infiniband/$(rdma_dev "$1")/ports/1
		for i in \$(ls gids | sort -n); do
			grep -qi ':ffff:0a0a:' gids/\$i || continue
			grep -q v2 gid_attrs/types/\$i || continue
			echo \$i
			exit
		done
		exit 1"
}

# ---- containers -----------------------------------------------------------

ctr_create() # NODE [--layer] [OPTION VALUE]... NAME IP -- CMD...
{
	local words=("${@:2}")

	while [[ ${words[0]} == --* ]]; do
		[ "${words[0]}" = --layer ] || words=("${words[@]:1}")
		words=("${words[@]:1}")
	done
	mine+=("${words[0]}")
	on "$1" "migr-ctr create $(printf '%q ' "${@:2}")"
}

# What does something in CRIU's place ($real) when runc of `migr-ctr move` asks CRIU for its
# work begins with this: until then it is asked for its version, and waits (migrctl/door.c).
# shellcheck disable=SC2016,SC2034 # for the node; for tests
criu_asked='[ -n "$MIGR_CTR_REQUEST" ] || exec $real "$@"
	until read -t 0 -u "$2"; do sleep 0.1; done
	'

ctr_checkpoint() { on "$1" "migr-ctr checkpoint ${*:2}"; } # NODE NAME [OPT...]
ctr_send() { on "$1" "migr-ctr send $2 $3"; }              # NODE NAME TO
ctr_restore() { on "$1" "migr-ctr restore ${*:2}"; }       # NODE NAME IP [OPT...]
ctr_move() { on "$1" "migr-ctr move --timing $2 $3"; }     # NODE NAME TO
ctr_out() { ask "$1" "migr-ctr out $2"; }                  # NODE NAME

ctr_delete_mine()
{
	local n pids=()

	[ ${#mine[@]} -gt 0 ] || return 0
	for n in $("$lab" status | awk '/ ready / { print $1 }'); do
		ask "$n" "cd /var/lib/migr-ctr && for c in ${mine[*]}; do
			[ ! -e \$c ] || migr-ctr delete \$c >/dev/null
		done" &
		pids+=($!)
	done
	wait "${pids[@]}" || true
}

# job_script NAME LINE...: a program of every node
job_script()
{
	local dir

	dir=$(mktemp -d)
	printf '%s\n' '#!/bin/sh' "${@:2}" >"$dir/$1"
	chmod +x "$dir/$1"
	"$lab" cp "$dir/$1" all:/usr/local/bin
	rm -r "$dir"
}

# ---- the end --------------------------------------------------------------

# at_end CMD...: whatever happens; the last one said is the first one done
at_end() { ends=("$(printf '%q ' "$@")" "${ends[@]}"); }
ends=()

# What is lost otherwise when a test fails, as tests/run asks for it
# shellcheck disable=SC2016 # expanded by the nodes' shells
keep_logs()
{
	local n

	for n in $("$lab" status | awk '/ ready / { print $1 }'); do
		mkdir -p "$LAB_KEEP/$n"
		ask "$n" 'cd / && for c in $(ls /var/lib/migr-ctr 2>/dev/null); do
				migr-ctr out $c >/run/$c.out 2>&1
			done
			tar --ignore-failed-read -cf - \
				var/lib/migr-ctr/*/logs var/lib/migr-ctr/*/run \
				var/lib/migr-ctr/*/image/rdma-*.img \
				tmp/c/log tmp/c/out run/*.log run/*.json \
				run/*.out run/*.progress run/*.exit' |
			tar -C "$LAB_KEEP/$n" -xf - 2>/dev/null || true
	done
}

finish()
{
	local rc=$? last=$BASH_COMMAND cmd code

	trap - EXIT
	set +e
	case $rc in
	0 | 77) ;;
	*)
		# Of a function's command, which line has led to it
		[ ${#FUNCNAME[@]} = 2 ] || last+=", from line ${BASH_LINENO[-2]}"
		[ -n "$told" ] || echo "FAILED: code $rc: $last"
		[ -z "${LAB_KEEP-}" ] || keep_logs
		;;
	esac
	# In a shell of its own: one that fails does not end the others. Nothing may
	# be said behind it, or not every command of a function would have to succeed.
	for cmd in "${ends[@]}"; do
		(set -e; eval "$cmd")
		code=$?
		[ $code != 0 ] || continue
		echo "FAILED: not done in the end, code $code: $cmd"
		[ $rc != 0 ] && [ $rc != 77 ] || rc=1
	done
	ctr_delete_mine
	exit $rc
}

trap finish EXIT
trap 'exit 143' HUP INT TERM

# ---- the layer ------------------------------------------------------------

layer=/opt/migr/lib/migrrdma/libmigrrdma.so

# From now on whatever starts on these nodes has verbs from the layer. It is known that
# it has only when a program says so.
layer_on() # NODE...
{
	local n

	for n in "$@"; do
		at_end ask "$n" 'rm -f /etc/ld.so.preload'
		on "$n" "echo $layer >/etc/ld.so.preload
			LD_DEBUG=bindings ibv_devinfo 2>&1 |
			grep -q 'ibv_devinfo .* $layer .* symbol .ibv_open_device.'" ||
			fail "the layer of $n is not there"
	done
}

# LAYER="NODE...": any test under it
# shellcheck disable=SC2086 # words
[ -z "${LAYER-}" ] || layer_on $LAYER
