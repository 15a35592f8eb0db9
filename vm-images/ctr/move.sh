# shellcheck shell=bash disable=SC2034,SC2154 # shared with migr-ctr
# SPDX-License-Identifier: GPL-2.0
#
# Part of migr-ctr: a move in one piece, both ends of it

to='' from='' # the other node's stdin and stdout
go='' says='' runc='' # the doors, and what is behind them
ready_s=300 # until the other node is, while it runs on here: shadow processes have their part
clean_s=60  # in which it has cleaned up what never had the image

# Here and there runc is started, and CRIU; between them is migr-door (see there), which waits
# until it is told to go on. "says" is what is said meanwhile, and ends with all who may say
# something: our shell here, runc, and the door.
doors_open() # SUBCOMMAND: of runc
{
	door=$dir/door
	rm -rf "$door"
	mkdir "$door"
	mkfifo "$door/go" "$door/says"
	exec {go}<>"$door/go" 9<>"$door/says"
	exec {says}<"$door/says"
	(
		# not '', which would be runc's, too
		trap : HUP INT TERM
		export MIGR_CTR_DOOR=$door MIGR_CTR_LINK=$veth
		export PATH=$parts:$PATH
		# Neither we nor our peer must wait for what runc leaves open. The lock
		# stays: if we are killed, nobody takes what is being dumped for what runs.
		exec {go}>&- {says}<&-
		layer_is_ours
		[ -z "$to" ] || exec {to}>&- {from}<&-
		rc=0
		"runc_$1" 2>>"$door/errors" 9>&- || rc=$?
		echo "runc $rc" 1<>"$door/says" # nobody may listen any more
	) &
	runc=$!
	exec 9>&-
}

# Whoever waits gives up, here and there; runc has come to its end.
doors_close()
{
	[ -z "$go" ] || echo stop >&"$go"
	[ -z "$to" ] || exec {to}>&-
	[ -z "$runc" ] || wait "$runc" || true
}

# The next words of runc or what it has started: are they these?
said()
{
	local line

	if ! read -r -u "$says" line || [ "$line" != "$*" ]; then
		wait "$runc" || true # it has more to say
		cat "$door/errors" >&2
		return 1
	fi
}

answered() # WORD [SECONDS]: by the other end
{
	local line

	read -r ${2+-t "$2"} -u "$from" line && [ "$line" = "$1" ]
}

# It never had the image, so nothing can run there: nobody waits for it for ever.
peer_ends()
{
	local until=$((SECONDS + clean_s))

	while kill -0 "$peer" 2>/dev/null && [ $SECONDS -lt $until ]; do sleep 0.1; done
	kill -KILL "$peer" 2>/dev/null || true
	wait "$peer" || true
}

# The reason, unless the connection was lost: that is known when both ends have ended.
why=''
does_not_arrive() # REASON
{
	why=$1
	exit 1
}

# It may have arrived, or do so yet.
connection_lost()
{
	layer_looks
	case $layer_at in
	"$node")
		echo "migr-ctr: the connection to $node was lost; $name runs there, but" \
			"nobody has said that its address is plugged in" >&2
		has_left
		clear_away
		return
		;;
	'') echo "migr-ctr: the connection to $node was lost: look there" \
		"first, with migr-ctr pid $name, whether $name runs" >&2 ;;
	*) echo "migr-ctr: the connection to $node was lost; $name runs here" >&2 ;;
	esac
	after_dump
}

# Here it must not be restored any more.
has_left()
{
	[ -e "$dir/image" ] || return 0
	rm -rf "$dir/moved"
	mv "$dir/image" "$dir/moved"
}

# It runs there, whatever has ended here.
has_arrived() # CODE: of the other end
{
	has_left
	if [ "$1" = 0 ]; then
		echo "migr-ctr: $name runs on $node" >&2
	else
		echo "migr-ctr: $name runs on $node, but nobody has said that its" \
			"address is plugged in there" >&2
	fi
	layer_looks
	wait "$runc" || true # it cleans up here
	clear_away
}

marks=()
mark() { marks+=("$1 ${EPOCHREALTIME/./}"); } # PHASE: that ends now

# Whatever ends a move early, a signal too: where the container is now.
move_ends()
{
	local rc=$? code=0

	trap '' HUP INT TERM PIPE
	case $phase in
	prepare | dump)
		# CRIU comes to its end, whatever it is. What runs on has its
		# network again before the other node has cleaned up.
		doors_close
		[ "$phase" = prepare ] || {
			comes_back
			after_dump
		}
		layer_goes_back
		peer_ends
		;;
	transfer | restore)
		[ -z "$to" ] || exec {to}>&-
		wait "$runc" || true # it cleans up here
		wait "$peer" || code=$?
		if [ $code = 0 ] || [ $code = $runs_there ]; then
			has_arrived $code
		elif [ $code -lt 128 ] || [ -z "$packed" ]; then
			[ -z "$why" ] || echo "migr-ctr: $why" >&2
			rm -f "$dir/whole" # it is nowhere else
			comes_back
			after_dump
			layer_goes_back
		else
			connection_lost
		fi
		;;
	attach)
		wait "$peer" || code=$?
		has_arrived $code
		;;
	esac
	exit $rc
}

cmd_move() # [--timing] [--by layer|protocol] [--no-pre-setup] NAME NODE
{
	local timing='' by='' lost='' before=1 made amiss=''

	while [[ $1 == --* ]]; do
		case $1 in
		--timing) timing=1 ;;
		--by) by=$2; shift ;;
		--no-pre-setup) before='' ;;
		*) usage 2 ;;
		esac
		shift
	done
	[ -n "${2-}" ] || usage 2
	node=$2
	must_run
	need_hook
	[ -n "$by" ] || by=$(moves_by)
	case $by in
	layer) is_under_layer || die "$name is not under the layer" ;;
	protocol) ;;
	*) usage 2 ;;
	esac

	mark begin
	phase=begin
	[ "$by" = protocol ] || layer_begin ||
		die "$name cannot be moved by the layer"
	[ "$by" = protocol ] || [ -z "$before" ] || layer_do record recorded ||
		die "$name cannot be moved by the layer"
	[ "$by" = protocol ] || layer_must_know
	coproc {
		layer_is_ours
		# shellcheck disable=SC2029 # meant to be expanded here
		exec setsid -w "${ssh[@]}" "$node" "migr-ctr receive $name" {lock}>&-
	}
	peer=$!
	exec {to}>&"${COPROC[1]}" {from}<&"${COPROC[0]}"
	eval "exec ${COPROC[0]}<&- ${COPROC[1]}>&-"
	{
		cat "$dir/ip" "$dir/root"
		printf '%s\n' "$(cat "$dir/rdma" 2>/dev/null)"
		cat "$dir/config.json"
		tell_long "$layer_records"
		tell_long "$layer_peers"
	} >&"$to"
	layer_peers='[]' # they are told
	empty_image
	doors_open checkpoint
	phase=prepare
	trap move_ends EXIT
	trap 'exit 143' HUP INT TERM
	said ready || die "$name cannot be checkpointed"
	answered ready $ready_s || die "$node is not ready for $name"
	made=$(hear_long <&"$from") || die "$node is not ready for $name"
	[ "$made" = '[]' ] || layer_do "made ${#made}"$'\n'"$made" led ||
		die "$name cannot be moved by the layer"
	# From now on there may be something there, whatever we get to know of it.
	printf '%s\n' "$HOSTNAME" "$node" >>"$dir/been"
	mark prepare

	if [ "$by" = layer ]; then
		layer_stop
		mark layer_stop
	fi
	# it may not listen any more
	(trap '' PIPE; tell_long "$layer_peers" >&"$to") 2>/dev/null || true
	phase=dump
	echo dump >&"$go"
	said criu 0 || die "$name cannot be checkpointed"
	mark dump
	phase=transfer
	has_image || die "CRIU has left no image of $name"
	leaves || amiss=1
	rdma_drop
	pack been >&"$to" || does_not_arrive "the image of $name cannot be read, or not be sent to $node"
	exec {to}>&-
	to=''
	answered transfer || does_not_arrive "$name did not arrive on $node"
	mark transfer
	phase=restore
	answered restore || does_not_arrive "$name cannot be restored on $node"
	phase=attach
	has_left
	mark restore
	if [ "$by" = layer ]; then
		layer_do "restored $node" 'done' || lost=1
		mark layer_start
	fi
	answered attach || die "$name is not whole on $node"
	mark attach
	phase=finish
	said runc 0 || die "runc cannot clean up here; $name runs on $node"
	clear_away
	mark finish
	[ -z "$timing" ] || tell_timing
	[ -z "$lost" ] || die "$name runs on $node, but connections of it are lost"
	[ -z "$amiss" ] || die "$name runs on $node, but $hook has failed here"
}

# However it ends, nothing is left but logs, or a container that runs; the exit code
# says which.
runs_there=3
receive_ends()
{
	local rc=$?

	trap '' HUP INT TERM PIPE
	doors_close
	shadows_end
	if runs; then
		rc=$runs_there
		attach
	else
		# what runc may have begun, and nobody will go on with
		runc delete -f "$name" 2>/dev/null
		clear_away
	fi || true
	exit $rc
}

cmd_receive() # NAME, with addresses, root, configuration, records and image as stdin
{
	local ip root rdma spec records peers late

	IFS= read -r ip
	IFS= read -r root
	IFS= read -r rdma
	IFS= read -r spec
	records=$(hear_long) || exit 1
	peers=$(hear_long) || exit 1
	must_not_be_another
	need_root "$root"
	need_ip "$ip"
	need_hook
	trap receive_ends EXIT
	trap 'exit 143' HUP INT TERM
	clear_away
	make_folders
	empty_image
	echo "$root" >"$dir/root"
	echo "$spec" >"$dir/config.json"
	# runc reads this before it starts CRIU, for it has been told to: what
	# stdin, stdout and stderr were, see quietly().
	echo '["/dev/null","/dev/null","/dev/null"]' >"$dir/image/descriptors.json"
	must_hide_all
	add_netns "$ip"
	mount_rootfs
	allow_rdma_cm
	doors_open restore
	[ -z "$rdma" ] || rdma keep "$rdma"
	shadows_start "$records"
	said ready || exit 1
	shadows_ready
	[ -n "$rdma" ] || {
		shadows_connect "$peers"
		shadows_connected "$make_s"
	}
	echo ready
	tell_long "$shadows_made"

	late=$(hear_long) || exit 1
	[ "$late" = '[]' ] || peers=$late
	[ -n "$rdma" ] || shadows_connect "$late"
	unpack || die "$name did not arrive whole"
	echo transfer
	# whose place is written down
	[ -z "$rdma" ] || {
		migr-gid take "$rdma" >/dev/null || exit 1
		shadows_connect "$peers" # by its address
	}
	echo restore >&"$go"
	said runc 0 || exit 1
	# It runs: from now on nobody has to listen.
	trap '' HUP INT TERM PIPE
	shadows_hand_over
	echo restore || true
	attach || die "$name runs here, but its network is not whole"
	echo attach || true
	trap - EXIT
}

# The dump in two parts: with the program running, and stopped.
tell_timing()
{
	awk -v file="$dir/logs/dump.log" '
		function seconds(line)
		{
			sub(/^\(/, "", line)
			return line + 0
		}
		BEGIN {
			while ((getline line <file) > 0) {
				if (line !~ /^\([0-9.]+\)/)
					continue
				last = seconds(line)
				if (!frozen && line ~ /freeze=1|Seized task/)
					frozen = last
			}
			stopped = (last - frozen) * 1000
		}
		function tell(phase, ms, what)
		{
			printf "  %-11s %8.0f ms  %s\n", phase, ms, what
			json = json sprintf(", \"%s_ms\": %.0f", phase, ms)
		}
		{ at[$1] = $2 / 1000 }
		END {
			tell("prepare", at["prepare"] - at["begin"],
				"there and here; the program runs on")
			layer = "layer_stop" in at
			if (layer)
				tell("layer_stop", at["layer_stop"] - at["prepare"],
					"its connections stop; it runs on")
			begin = layer ? at["layer_stop"] : at["prepare"]
			dump = at["dump"] - begin
			tell("start", dump - stopped, "CRIU starts; it runs on")
			tell("dump", stopped, "it is stopped")
			tell("transfer", at["transfer"] - at["dump"], "")
			tell("restore", at["restore"] - at["transfer"],
				"it runs at the end of this")
			if (layer)
				tell("layer_start",
					at["layer_start"] - at["restore"],
					"its connections go on")
			begin = layer ? at["layer_start"] : at["restore"]
			tell("attach", at["attach"] - begin,
				"its address is plugged in")
			tell("finish", at["finish"] - at["attach"],
				"what is left here is removed")
			tell("stopped", stopped + at["restore"] - at["dump"],
				"dump, transfer, restore")
			tell("total", at["finish"] - at["begin"], "")
			if (parts != "")
				json = json ", \"layer\": " parts
			print "{" substr(json, 3) ", \"bytes\": " bytes "}"
		}' parts="$layer_timing" bytes="$(du -sb "$dir/moved" | cut -f1)" \
		<(printf '%s\n' "${marks[@]}")
}
