# shellcheck shell=bash disable=SC2034,SC2154 # shared with migr-ctr
# SPDX-License-Identifier: GPL-2.0
#
# Part of migr-ctr: a container under the layer, and what shadow processes make for it

layer_to='' layer_from='' # stdin and stdout of migr-layer
layer_pid=''
layer_is='' # how far it is: checked, stopping, stopped
layer_at='' # the host where it has found the container
layer_timing=''
layer_records='[]' # what is to be made before
layer_peers='[]'   # and connected

# Its input ends with us: nobody else keeps it open.
layer_is_ours() { [ -z "$layer_to" ] || exec {layer_to}>&- {layer_from}<&-; }

is_under_layer() { jq -e '.process.env | any(startswith("MIGRRDMA_DIR="))' \
	"$dir/config.json" >/dev/null; }

moves_by() # what is to be used if nobody says
{
	local file

	is_under_layer || { echo protocol; return; }
	for file in $(rdma_files); do
		[[ $file != uverbs* ]] || is_rxe "$file" || { echo layer; return; }
	done
	# all are of rdma_rxe, or there are none
	if [ -e /sys/module/rdma_rxe/parameters/migr_key ]; then
		echo protocol
	else
		echo layer
	fi
}

# the only software HCA that shows its parent; siw is an RNIC
is_rxe() # uverbsN
{
	local dev

	dev=/sys/class/infiniband/$(cat "/sys/class/infiniband_verbs/$1/ibdev" 2>/dev/null)
	[ -e "$dev/parent" ] && grep -qs ^1 "$dev/node_type"
}

# Who this host is to migrd: as its unit has it, or a node of the lab
layer_keys=(-k /etc/migrd/host.key -c /etc/migrd/host.crt -a /etc/migrd/ca.crt)
[ -e /etc/migrd/host.key ] || layer_keys=(-k "$prefix/migrd/$HOSTNAME.key"
	-c "$prefix/migrd/$HOSTNAME.crt" -a "$prefix/migrd/ca.crt")

# It is not for a terminal's ^C: whoever is suspended goes on by it.
layer_begin()
{
	rm -f "$dir/layer"
	mkfifo "$dir/layer"
	exec {layer_from}< <(
		exec setsid -w migr-layer -t "${layer_keys[@]}" "$name" "$node" \
			<"$dir/layer" {lock}>&-
	)
	layer_pid=$!
	exec {layer_to}>"$dir/layer"
	rm -f "$dir/layer"
	layer_says checked
}

# What may be long has its length before it, as read takes byte by byte. Of a thousand queue
# pairs that is half a megabyte.
tell_long() { printf '%s\n%s\n' ${#1} "$1"; } # TEXT, of ASCII
hear_long()
{
	local bytes

	IFS= read -r bytes && of_length "$bytes"
}
of_length() # BYTES [SECONDS]
{
	local end

	[[ $1 =~ ^[0-9]{1,9}$ ]] && timeout "${2-0}" head -c "$1" &&
		IFS= read -r ${2+-t "$2"} end && [ -z "$end" ]
}

layer_says() # WORD: it has done that, and may say first how long that took
{
	local line

	while read -r -u "$layer_from" line; do
		case $line in
		# of a trap: "return" alone says how that was come to
		"$1") layer_is=$1; return 0 ;;
		'{'*) layer_timing=$line ;;
		'records '*) layer_records=$(of_length "${line#records }" <&"$layer_from") ;;
		'peers '*) layer_peers=$(of_length "${line#peers }" <&"$layer_from") ;;
		'at '*) layer_at=${line#at } ;;
		esac
	done
	layer_is=''
	return 1
}

layer_do() # COMMAND WORD: and it says that it has
{
	# it says itself why it is not there
	(trap '' PIPE; echo "$1" >&"$layer_to") 2>/dev/null && layer_says "$2"
}

rdma_files() # that its processes have open: uverbs0, ...
{
	local pid p

	pid=$(first_pid) || return
	# links go while they are read
	for p in /proc/[0-9]*; do
		[ ! "$p/ns/pid" -ef "/proc/$pid/ns/pid" ] || readlink "$p"/fd/*
	done 2>/dev/null | sed -n 's,^/dev/infiniband/,,p' | sort -u
}

# Who is not known is not stopped, and then it cannot be dumped. Whoever has told what is to
# be made is known.
layer_knows()
{
	[ "$layer_records" = '[]' ] && [ -n "$(rdma_files)" ] || return 0
	echo "processes $name" | migrd-say "${layer_keys[@]}" "$HOSTNAME" | tail -n 1 |
		jq -e --arg at "/$name/run/migrrdma/" \
			'[.processes[].socket | select(contains($at))] != []' >/dev/null
}

layer_must_know()
{
	layer_knows || die "$name has RDMA files, and migrd here knows no process of it"
}

layer_stop()
{
	layer_is=stopping # whoever ends this move tells it so
	layer_do stop stopped || {
		layer_has_failed
		die "the connections of $name cannot be stopped"
	}
}

# To stop: all goes on where it is. That migr-layer has seen to if it says that it has failed.
layer_has_failed()
{
	layer_is=''
	layer_is_gone "migr-layer is gone, and has not said why: connections of $name may be" \
		"lost, which runs here"
}
layer_is_gone() # WORD...: what that means, if it has not said itself why
{
	local rc=0

	wait "$layer_pid" || rc=$?
	[ $rc -le 1 ] || echo "migr-ctr: $*" >&2
}

# It has not arrived. Those that it speaks to do not wait until somebody else restores it,
# nor until the other node, where it cannot run any more, gives up its place there.
comes_back()
{
	[ "$layer_is" = stopped ] && ! runs && has_image || return 0
	# In the background, as an error must end it.
	(
		layer_is_ours
		rdma_must_be=unused
		cmd_restore "$name" "$(<"$dir/ip")"
	) &
	wait $! || ! runs || echo "migr-ctr: $name has come back, but is not whole here" >&2
}

# A move has ended early: where the container is now its programs go on.
layer_goes_back()
{
	case $layer_is in
	stopped) layer_do aborted 'done' || layer_lost ;;
	stopping)
		if layer_do aborted stopped; then
			layer_says 'done' || layer_lost
		else
			layer_has_failed
		fi
		;;
	esac
}

layer_lost() { echo "migr-ctr: connections of $name are lost" >&2; }

# Nobody else can tell where it is: its programs go on where they are found.
layer_looks()
{
	[ "$layer_is" = stopped ] || return 0
	exec {layer_to}>&-
	layer_to=''
	layer_says 'done' || layer_lost
}

# Shadow processes (migr-presetup) make what those of the container will need. They end
# with us; if one fails, it says why, and its process makes everything when it is there.
shadow_to=() shadow_from=() shadow_pid=() shadow_connects=() # by the process' number in the container
make_s=60 # until they have made all; its programs run on meanwhile
hand_s=20 # until they have handed it over; a part of migr-layer's HOLD_S
shadows_until=0

# the numbers of processes in a list, and what there is with that name for one of them
pids_of() { jq '.[].pid' <<<"$1" | grep -xP '[1-9]\d{0,8}' || true; } # LIST
of_one() # PID NAME LIST
{
	jq -c --argjson pid "$1" --arg name "$2" 'first(.[] | select(.pid == $pid))[$name]' \
		<<<"$3"
}

shadows_start() # RECORDS
{
	local pid fd

	for pid in $(pids_of "$1"); do
		rm -f "$dir/shadow"
		mkfifo "$dir/shadow"
		exec {fd}< <(
			for fd in "${shadow_to[@]}" "${shadow_from[@]}"; do
				exec {fd}>&-
			done
			exec migr-presetup <"$dir/shadow" {lock}>&- {go}>&- {says}>&-
		)
		shadow_pid[pid]=$!
		shadow_from[pid]=$fd
		exec {fd}>"$dir/shadow"
		shadow_to[pid]=$fd
		shadow_told "$pid" "$(of_one "$pid" record "$1")"
	done
	rm -f "$dir/shadow"
}

shadow_told() { (trap '' PIPE; echo "$2" >&"${shadow_to[$1]}") 2>/dev/null || true; }

shadow_line=''
shadow_said() # PID WORD: before it is too late
{
	local left=$((shadows_until - SECONDS))

	[ $left -gt 0 ] || left=0.1 # it may have said it already
	read -r -t $left -u "${shadow_from[$1]}" shadow_line && [[ $shadow_line == "$2"* ]]
}

shadow_drop() # PID
{
	local fd

	for fd in "${shadow_to[$1]}" "${shadow_from[$1]}"; do
		exec {fd}>&-
	done
	kill -KILL "${shadow_pid[$1]}" 2>/dev/null || true # what it has handed over stays
	wait "${shadow_pid[$1]}" || true
	unset "shadow_to[$1]" "shadow_from[$1]" "shadow_pid[$1]"
}

shadows_ready()
{
	local pid

	shadows_until=$((SECONDS + make_s))
	for pid in "${!shadow_pid[@]}"; do
		shadow_said "$pid" ready || shadow_drop "$pid"
	done
}

# Partners have made their new queue pairs.
shadows_connect() # PEERS
{
	local pid

	for pid in $(pids_of "$1"); do
		[ -z "${shadow_pid[pid]-}" ] || {
			shadow_told "$pid" "connect $(of_one "$pid" peers "$1")"
			shadow_connects[pid]=1
		}
	done
}

# Who is not in time does not hand over either.
shadows_made='[]' # what they have connected, as they have said
shadows_connected() # SECONDS
{
	local pid made list=()

	shadows_until=$((SECONDS + $1))
	for pid in "${!shadow_connects[@]}"; do
		[ -n "${shadow_pid[pid]-}" ] || continue
		shadow_said "$pid" 'connected ' || continue
		made=$(of_length "${shadow_line#connected }" "$hand_s" <&"${shadow_from[pid]}") ||
			continue
		[ -z "$made" ] || list+=("{\"pid\":$pid,\"made\":$made}")
	done
	shadow_connects=()
	shadows_made=[$(IFS=,; echo "${list[*]}")]
}

shadows_end()
{
	local pid

	for pid in "${!shadow_pid[@]}"; do
		shadow_drop "$pid"
	done
}

# The container runs, and its processes have got nothing yet.
shadows_hand_over()
{
	local pid at

	at=$(realpath "$dir") # what is below is the container's, and no link is followed there
	for pid in "${!shadow_pid[@]}"; do
		shadow_told "$pid" "hand $at/run/migrrdma/$pid.sock"
	done
	shadows_connected "$hand_s"
	for pid in "${!shadow_pid[@]}"; do
		shadow_said "$pid" handed || echo "migr-ctr: process $pid of" \
			"$name has no pre-setup" >&2
		shadow_drop "$pid"
	done
}
