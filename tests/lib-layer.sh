# shellcheck shell=bash disable=SC2034,SC2154 # of lib.sh and traffic.sh
# SPDX-License-Identifier: GPL-2.0
#
# For tests that speak to rc_mix under the layer: sourced after lib.sh and traffic.sh.
# As long as somebody is connected to its socket it stays as it is told to be.

layer_to=() layer_from=() # descriptors, by node number
layer_dir=$(mktemp -d)
at_end rm -r "$layer_dir"
mix_env=MIGRRDMA_DIR=/run

layer_relay='
import socket, sys
sock = socket.socket(socket.AF_UNIX)
sock.connect(sys.argv[1])
talk = sock.makefile("rw")
for line in iter(sys.stdin.readline, ""):
    talk.write(line)
    talk.flush()
    print(talk.readline().rstrip(), flush=True)
'

# That of a node: the host need not have it.
jq() { "$lab" ssh n1 "jq$(printf ' %q' "$@")"; }

layer_socket=() # by node number, if it is not that of a plain rc_mix there

# layer_dial NODE...: to its rc_mix
layer_dial()
{
	local n fd socket

	for n in "$@"; do
		# shellcheck disable=SC2016 # for the node's shell
		socket=${layer_socket[${n#n}]-'/run/$(pgrep -x rc_mix).sock'}
		rm -f "$layer_dir/$n".*
		mkfifo "$layer_dir/$n.to" "$layer_dir/$n.from"
		# who is told that the connection ends must be the only one who has it
		(
			for fd in "${layer_to[@]}"; do exec {fd}>&-; done
			exec "$lab" ssh "$n" "python3 -c '$layer_relay' \
				$socket" \
				<"$layer_dir/$n.to" >"$layer_dir/$n.from" 2>/dev/null
		) &
		exec {fd}>"$layer_dir/$n.to"
		layer_to[${n#n}]=$fd
		exec {fd}<"$layer_dir/$n.from"
		layer_from[${n#n}]=$fd
	done
}

layer_hang_up() # NODE...
{
	local n fd

	for n in "$@"; do
		fd=${layer_to[${n#n}]}
		exec {fd}>&-
		fd=${layer_from[${n#n}]}
		exec {fd}<&-
		unset "layer_to[${n#n}]" "layer_from[${n#n}]"
	done
}

# layer_ask NODE WORD...: the answer, a line of JSON
layer_ask()
{
	local answer

	echo "${*:2}" >&"${layer_to[${1#n}]}"
	read -r -t "$(seconds 60)" answer <&"${layer_from[${1#n}]}" ||
		fail "$1 does not answer to: ${*:2}"
	echo "$answer"
}

# layer_does NODE WORD...: and it does
layer_does()
{
	local answer

	answer=$(layer_ask "$@")
	echo "$1: ${*:2}: ${answer::200}" >&2
	[[ $answer == '{"ok": true'* ]] || fail "$1: ${*:2}: $answer"
	echo "$answer"
}

# layer_tell NODE OTHER NAMES NAMES: where its QPs lead to, and what keys the other has.
# The names are those of both, the node's first.
layer_tell()
{
	local word

	while read -r word; do
		layer_does "$1" "$word" >/dev/null
	done < <(
		# shellcheck disable=SC2016 # jq's
		jq -nr --argjson own "$3" --argjson other "$4" --arg id "$2" '
			"keys \($id)",
			($other.keys[] | "key \($id) \(.virtual) \(.real)"),
			($own.qps[] | . as $q | $other.qps[] |
			 select(.qpn == $q.peer.qpn and .peer.qpn == $q.qpn) |
			 "peer \($q.qpn) \(.real) \(.gid) \($id)")'
	)
}
