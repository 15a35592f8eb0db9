# shellcheck shell=bash disable=SC2154 # shared with lab
# SPDX-License-Identifier: GPL-2.0
#
# Part of lab: captures of the fabric, bad lines, and slow ones.

cmd_pcap()
{
	local deadline

	case ${1-} in
	start)
		[ -n "${2-}" ] || die "pcap start FILE [OPTION...]"
		[ -e "/run/netns/$ns" ] || die "no lab is up"
		! running "$dir/pcap.pid" || die "already capturing to" \
			"$(cat "$dir/pcap.file")"
		realpath -m "$2" >"$dir/pcap.file"
		mlx5_trains USR1
		# In promiscuous mode the bridge itself sees what it forwards.
		# Written through our own descriptor: any path will do.
		# shellcheck disable=SC2016 # expanded by the inner shell
		in_ns "$toolbox" sh -c 'echo $$ >"$0/pcap.pid"; exec "$@"' \
			"$dir" dumpcap -q -i fabric -B 64 -w - \
			--capture-comment "lab $dir" "${@:3}" \
			>"$2" 2>"$dir/pcap.log" </dev/null &
		deadline=$((SECONDS + $(seconds 20)))
		until [ -s "$2" ]; do
			[ $SECONDS -lt $deadline ] || {
				mlx5_trains
				die "no capture: $(cat "$dir/pcap.log")"
			}
			sleep 0.05
		done
		;;
	stop)
		[ -e "$dir/pcap.pid" ] || die "no capture is running"
		end "$dir/pcap.pid" INT
		mlx5_trains
		say "captured to $(cat "$dir/pcap.file")"
		rm -f "$dir/pcap.file"
		;;
	*) die "pcap start FILE [OPTION...] | stop" ;;
	esac
}

# In a ring of two files. The trains of mlx5 nodes stay together: a header of
# the whole has to do, nobody is slowed down for what may not be needed.
cmd_record()
{
	case ${1-} in
	start)
		[ -e "/run/netns/$ns" ] || die "no lab is up"
		! running "$dir/record.pid" || return 0
		rm -f "$dir"/record_*.pcapng
		# The current folder is there in the toolbox, whatever it is.
		# shellcheck disable=SC2016 # expanded by the inner shell
		(cd "$dir" && in_ns "$toolbox" sh -c '
			echo $$ >"$0/record.pid"
			exec dumpcap -q -i fabric -s 160 -b filesize:16000 \
				-b files:2 -w "$0/record.pcapng"' "$dir" \
			>"$dir/record.log" 2>&1 </dev/null &)
		;;
	stop | keep)
		end "$dir/record.pid" INT
		[ "$1" = stop ] || {
			mkdir -p "${2:?which folder?}"
			mv "$dir"/record_*.pcapng "$2/"
		} 2>/dev/null || true
		rm -f "$dir"/record_*.pcapng
		;;
	*) die "record start | stop | keep FOLDER" ;;
	esac
}

# Not every host kernel has netem: the tap leaves the bridge, and a program is in
# between. On nodes with mlx5, whose RDMA does not come by their own queues, it makes
# the line bad; on others, slow.
#
#     mlx5soft or QEMU -- n1-fabric -- bad_wire -- n1-line == n1-far -- bridge
#
wire_on() # NODE SPEC...
{
	local d=$dir/$1 deadline

	wire_off "$1" >/dev/null
	[ -x "$stage/bin/bad_wire" ] ||
		die "there is no $stage/bin/bad_wire: make build"
	cp "$stage/bin/bad_wire" "$d/bad_wire"
	: >"$d/wire.json"
	: >"$d/wire.log"
	mlx5_trains
	ip -n "$ns" link add "$1-line" mtu 4200 up type veth \
		peer name "$1-far" mtu 4200
	ip -n "$ns" link set "$1-far" up
	# shellcheck disable=SC2016 # expanded by the inner shell
	setsid ip netns exec "$ns" "$toolbox" sh -c '
		echo $$ >"$0/wire.pid"
		exec "$0/bad_wire" "$@"' "$d" "$1-fabric" "$1-line" "${@:2}" \
		>"$d/wire.json" 2>"$d/wire.log" </dev/null &
	deadline=$((SECONDS + $(seconds 20)))
	until [ "$(cat "$d/wire.log")" = ready ]; do
		if { [ -s "$d/wire.pid" ] && ! running "$d/wire.pid"; } ||
			[ $SECONDS -ge $deadline ]; then
			wire_off "$1" >/dev/null
			die "bad_wire: $(cat "$d/wire.log")"
		fi
		sleep 0.05
	done
	ip -n "$ns" link set "$1-fabric" nomaster
	ip -n "$ns" link set "$1-far" master fabric
}

wire_off() # NODE: if there is one; prints what it has done
{
	local d=$dir/$1

	[ -e "$d/wire.json" ] || return 0
	end "$d/wire.pid" TERM
	ip -n "$ns" link del "$1-line" 2>/dev/null || true
	ip -n "$ns" link set "$1-fabric" master fabric 2>/dev/null || true
	# The node's watcher may have been quicker.
	cat "$d/wire.json" 2>/dev/null || true
	rm -f "$d/wire.json"
	mlx5_trains
}

wire_lives() # NODE: if it has one
{
	[ ! -e "$dir/$1/wire.pid" ] || running "$dir/$1/wire.pid"
}

# What a node sends leaves at a rate, and arrives later. With mlx5 the device sees to
# it, whose send queues then wait; with rxe, the other end of the tap. Both have their
# link from mlx5soft/device/link.c.
cmd_limit()
{
	local d=$dir/${1-} said

	need_node "${1-}"
	check_limit "${@:2}"
	if has_mlx5 "$1"; then
		said=$(mlx5_ctl "$1" limit "${@:2}") || die "limit: $said"
	elif [ "$2" = off ]; then
		[ ! -e "$d/limit" ] || wire_off "$1" | lost_frames "$1"
	else
		rm -f "$d/limit" # if it is refused, there is none
		wire_on "$1" --one-way "${@:2}"
	fi
	rm -f "$d/limit"
	[ "$2" = off ] || echo "${*:2}" >"$d/limit"
}

check_limit() # SPEC...
{
	local said=' '

	[ "$*" != off ] || return 0
	while [ $# -ge 2 ] && [[ $1 =~ ^(rate|delay)$ && $said != *" $1 "* ]]; do
		said+="$1 "
		shift 2
	done
	if [ $# != 0 ] || [ "$said" = ' ' ]; then
		die "limit NODE [rate RATE] [delay TIME] | off"
	fi
}

# A link loses nothing, but who may send without end could fill it.
lost_frames() # NODE: stdin is what bad_wire has done
{
	local json

	json=$(cat)
	[[ $json =~ \"$1-fabric\":\ \{([^\}]*)\} ]] || return 0
	[[ ${BASH_REMATCH[1]} =~ \"missed\":\ 0,\ \"refused\":\ 0$ ]] ||
		say "$1's link has lost frames: $json"
}

# When the tap has been without its node
limit_again() # NODE
{
	local spec

	! has_mlx5 "$1" && read -ra spec 2>/dev/null <"$dir/$1/limit" || return 0
	wire_on "$1" --one-way "${spec[@]}"
}

# On the node. What comes in takes a detour over an ifb device, as tc-netem(8)
# only delays what goes out. What still waits there is lost, and what comes until it is,
# so that nothing is overtaken by what takes the straight way again.
node_netem() # NODE SPEC... | off
{
	remote "$1" "
		tc qdisc del dev fabric root 2>/dev/null
		tc filter add dev fabric parent ffff: prio 1 matchall \
			action drop 2>/dev/null
		ip link del netem 2>/dev/null
		tc qdisc del dev fabric ingress 2>/dev/null
		[ '$2' != off ] || exit 0
		set -e
		ip link add netem mtu 4200 type ifb
		ip link set netem up
		tc qdisc add dev netem root netem limit 100000 ${*:2}
		tc qdisc add dev fabric ingress
		tc filter add dev fabric parent ffff: matchall \
			action mirred egress redirect dev netem
		tc qdisc add dev fabric root netem limit 100000 ${*:2}"
}

cmd_netem()
{
	need_node "${1-}"
	[ -n "${2-}" ] || die "netem NODE SPEC | off"
	if ! has_mlx5 "$1"; then
		rm -f "$dir/$1/netem"
		[ "$2" = off ] || : >"$dir/$1/netem"
		mlx5_trains
		node_netem "$@"
	elif [ "$2" = off ]; then
		wire_off "$1"
	else
		wire_on "$@"
	fi
}
