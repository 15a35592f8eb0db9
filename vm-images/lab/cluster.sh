# shellcheck shell=bash disable=SC2034,SC2154 # shared with lab
# SPDX-License-Identifier: GPL-2.0
#
# Part of lab: the commands that start and stop nodes, and tell what runs.

give_up() # NODE WHY
{
	say "$1 $2. The end of its console:"
	tail -n 30 "$(console "$1")" >&2 || true
	exit 1
}

# QEMU's emulation now and then lets one processor run the breakpoint by which
# another one is patching the kernel when that is over, and nobody knows it any more.
# If that is the first thing of which a node complains that `lab up` has started, and it
# dies, it boots anew; its console stays among those that are gone.
declare -A slipped=()
again() # NODE: once
{
	local words

	[ "${accel-}" = tcg ] && [ -z "${slipped[$1]-}" ] &&
		[[ " ${new[*]-} " = *" $1 "* ]] &&
		words=$(console_complaints "$1" "$(checked "$1")") &&
		[[ ${words%%$'\n'*} = *'Oops: int3: '* ]] || return
	slipped[$1]=1
	say "$1 died of its emulation: again. ${words%%$'\n'*}"
	stat -c %s "$(console "$1")" >"$dir/$1/checked"
	start "$1"
}

await() # NODE DEADLINE
{
	until ready "$1"; do
		running "$dir/$1/pid" || again "$1" ||
			give_up "$1" "died while booting"
		[ $SECONDS -lt "$2" ] || give_up "$1" "did not come up in time"
		sleep 0.2
	done
	calibrate "$1"
	# Opening the shared connection now makes every later command quick.
	until [ -S "$dir/ssh-$1" ] || remote "$1" true 2>"$dir/$1/ssh.log"; do
		[ $SECONDS -lt "$2" ] || give_up "$1" "refuses ssh"
		sleep 0.2
	done
}

# How slow this machine turns out to be, as every time-out should know: a node
# that comes up in 20 s is the measure.
calibrate() # NODE
{
	local uptime slow

	uptime=$(self "$1")
	uptime=${uptime##*uptime=}
	slow=$(((${uptime%%.*} + 19) / 20))
	[ "$slow" -le "$(slowness)" ] || echo "$slow" >"$dir/slowness"
}

cmd_up()
{
	local count=3 i n have deadline mlx5='' new=()
	local stock='' mem=${LAB_MEM:-1536} cpus=${LAB_CPUS:-2}
	local device=${LAB_DEVICE:-rxe} kernel=${LAB_KERNEL:-stable}
	local backports='' debug='' disk more=${LAB_APPS:+apps}

	while [ $# -gt 0 ]; do
		case $1 in
		--apps | --podman)
			more=${1#--}
			shift
			continue
			;;
		-n) count=$2 ;;
		--device) device=$2 ;;
		--stock) stock=$2 ;;
		--kernel) kernel=$2 ;;
		--mem) mem=$2 ;;
		--cpus) cpus=$2 ;;
		*) die "up: what is '$1'? (lab --help)" ;;
		esac
		shift 2
	done
	[[ $count =~ ^[1-9]$ ]] || die "1 to 9 nodes, not '$count'"
	check_choices --device "$device" rxe mlx5
	check_choices --kernel "$kernel" stable backports debug
	for ((i = 1; i <= count; i++)); do
		check_kernel "n$i"
	done

	images=$("$here/vm-images/mkimage")
	disk=$images/base.ext4
	[ -z "$more" ] || disk=$("$here/vm-images/mkimage" "$more")/base.ext4
	for ((i = 1; i <= count; i++)); do
		case $(kernel_of "n$i") in
		backports) backports=$("$here/vm-images/mkimage" backports) ;;
		debug) debug=$("$here/vm-images/mkimage" debug) ;;
		esac
	done
	accel=${LAB_ACCEL:-$(accel)}
	mkdir -p "$dir/out" "$stage"
	take_lock
	trap interrupted HUP INT TERM
	ssh_setup

	for ((i = 1; i <= count; i++)); do
		if running "$dir/n$i/pid"; then
			wire_lives "n$i" || {
				wire_off "n$i"
				has_mlx5 "n$i" || rm -f "$dir/n$i/limit"
			}
			if ! mlx5_lives "n$i"; then
				say "n$i has lost its mlx5soft: again"
			elif [ "$(cat "$dir/n$i/with")" = "$(with "n$i")" ]; then
				continue
			else
				say "n$i was started with something else: again"
			fi
			stop "n$i"
		fi
		new+=("n$i")
		[ "$(device_of "n$i")" = rxe ] || mlx5=1
	done
	[ -z "$mlx5" ] || need_vfio_user
	have=$(awk '/^MemAvailable/ { print int($2 / 1024) }' /proc/meminfo)
	[ "$have" -ge $((${#new[@]} * mem)) ] ||
		die "${#new[@]} nodes of $mem MiB do not fit in $have MiB:" \
			"use fewer (-n) or smaller (--mem) ones"

	deadline=$((SECONDS + $(seconds 600)))
	network
	hold_toolbox
	for n in "${new[@]}"; do
		say "starting $n"
		start "$n" 8>&-
	done
	for ((i = 1; i <= count; i++)); do
		await "n$i" $deadline 8>&-
	done
	for n in "${new[@]}"; do
		say "$n $(self "$n")"
	done
	[ ${#new[@]} -eq 0 ] ||
		say "$count nodes ready after $SECONDS s ($accel)"
}

# How often its kernel has said that it restarts
restarts() { grep -ac 'reboot: Restarting system' "$(console "$1")" || true; } # NODE

cmd_reboot()
{
	local power='' d deadline before images disk backports debug accel mem cpus stock device kernel

	[ "${1-}" != --power ] || { power=1; shift; }
	need_node "${1-}"
	d=$dir/$1
	deadline=$((SECONDS + $(seconds 600)))
	take_lock
	boots "$1" >"$d/booted"
	rm -f "$d/netem" # the guest forgets it
	if [ -n "$power" ]; then
		# What up had been told, but LAB_QEMU and the like are today's.
		eval "$(sed 's/^declare -- //' "$d/options")"
		power_off "$1"
		power_on "$1" 8>&-
		limit_again "$1" 8>&-
	else
		! has_mlx5 "$1" || wire_off "$1" >/dev/null
		on_reset "$1" reset
		before=$(restarts "$1")
		# A kernel that resets itself does not close our connection, nor
		# those that others open until it does.
		remote "$1" 'sync; busybox reboot -f -d 1 </dev/null >/dev/null 2>&1 &' \
			2>/dev/null 8>&- || true
		hang_up "$1"
		until [ "$(restarts "$1")" -gt "$before" ] || ready "$1" ||
			! running "$d/pid" || [ $SECONDS -ge $deadline ]; do
			sleep 0.1
		done
		hang_up "$1"
	fi
	await "$1" $deadline 8>&-
	[ -n "$power" ] || on_reset "$1" shutdown
	say "$1 $(self "$1")"
}

# A command that has the lock and still starts nodes ends first.
end_holder()
{
	local pid began

	read -r pid began <"$dir/lock" 2>/dev/null || return 0
	[ "$(life "$pid")" = "$pid $began" ] || return 0
	say "the lab's command $pid is still at work: it is ended"
	kill -TERM "$pid" 2>/dev/null || true
	await_end "$pid" || true
}

cmd_down()
{
	local n bad=0

	if [ -d "$dir" ]; then
		end_holder
		take_lock
	fi
	[ ! -e "$dir/pcap.pid" ] || cmd_pcap stop || true
	cmd_record stop
	for n in $(nodes); do
		stop "$n"
		retire "$n"
	done
	dismantle
	# Consoles stay for the curious, out of the way of the next up.
	rm -rf "$dir/last"
	[ ! -d "$dir/gone" ] || mv "$dir/gone" "$dir/last"
	rm -f "$dir/ssh_config" "$dir/slowness" "$dir/ns"
	if [ -s "$dir/reports" ]; then
		mkdir -p "$dir/last"
		mv "$dir/reports" "$dir/last/"
		say "there were complaints: $dir/last/reports"
		bad=1
	fi
	return $bad
}

dismantle()
{
	end "$dir/toolbox.pid" KILL
	[ ! -e "/run/netns/$ns" ] || ip netns del "$ns"
}

# Nodes that were on their way up do not stay when the command is ended.
interrupted()
{
	local n

	trap '' HUP INT TERM
	say "interrupted: ${new[*]-} go down again"
	for n in "${new[@]}"; do
		stop "$n"
		retire "$n"
	done
	[ -n "$(nodes)" ] || dismantle
	exit 143
}

# What other state folders have: a lab is known by its QEMUs.
other_labs()
{
	local p d n since

	{ grep -lasF -e '-pidfile' /proc/[0-9]*/cmdline || true; } |
		while read -r p; do
			d=$(tr '\0' '\n' 2>/dev/null <"$p" |
				sed -n '/^-pidfile$/{n;s,/\(n[1-9]\)/pid$, \1,p}') ||
				continue
			since=$(stat -c %Y "${p%/*}" 2>/dev/null) || continue
			[ -z "$d" ] || [ "${d% n?}" = "$dir" ] ||
				echo "$(date -d "@$since" +%FT%T) $d"
		done | sort | awk '{
			n = $NF; since = $1
			sub(/^[^ ]* /, ""); sub(/ n[1-9]$/, "")
			if (!($0 in at)) { at[$0] = since; order[++labs] = $0 }
			nodes[$0] = nodes[$0] " " n
		}
		END {
			for (i = 1; i <= labs; i++)
				printf "another lab: %s:%s, since %s\n",
					order[i], nodes[order[i]], at[order[i]]
		}'
}

# By which every time-out is multiplied
cmd_factor() { seconds 1; }

cmd_status()
{
	local n state

	other_labs
	[ -n "$(nodes)" ] || { echo "no lab is up in $dir"; return; }
	for n in $(nodes | tr ' ' '\n'); do
		if ! running "$dir/$n/pid"; then
			state="dead (console: $(console "$n"))"
		elif ready "$n"; then
			state=$(self "$n")
			state=${state% uptime=*}
		else
			state=booting
		fi
		mlx5_lives "$n" || state="$state, but its mlx5soft ended (log: \
$dir/$n/mlx5.log)"
		[ ! -e "$dir/$n/limit" ] ||
			state="$state, limit $(cat "$dir/$n/limit")"
		wire_lives "$n" || state="$state, but its bad_wire ended: \
$(if has_mlx5 "$n"; then echo netem; else echo limit; fi) $n off"
		echo "$n  lan 10.20.0.${n#n}  fabric 10.10.0.${n#n}  $state"
	done
	if running "$dir/pcap.pid"; then
		echo "capturing to $(cat "$dir/pcap.file")"
	fi
}
