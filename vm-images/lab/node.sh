# shellcheck shell=bash disable=SC2154 # shared with lab
# SPDX-License-Identifier: GPL-2.0
#
# Part of lab: one node, that is a QEMU, its disk and what runs beside it.

start() # NODE
{
	local d=$dir/$1

	stop "$1"
	retire "$1"
	mkdir -p "$d"
	tap "$1-fabric" fabric
	tap "$1-lan" lan
	declare -p images disk backports debug accel mem cpus stock device kernel >"$d/options"
	[ "$(device_of "$1")" = rxe ] || start_mlx5 "$1"
	power_on "$1"
}

power_on() # NODE
{
	local n=${1#n} d=$dir/$1 machine card boot modules=()

	# The device stays over a reboot, whatever has been built meanwhile.
	with "$1" "$d/mlx5soft" >"$d/with"
	boot=$(boot_of "$1")
	# shellcheck disable=SC2054 # the commas are QEMU's
	[ ! -e "$boot/modules" ] || modules=(-virtfs
		"local,path=$boot/modules,mount_tag=modules,security_model=none,readonly=on")
	# shellcheck disable=SC2054 # the commas are QEMU's
	case $(device_of "$1") in
	rxe) card=(
		-netdev "tap,id=fabric,ifname=$1-fabric,script=no,downscript=no"
		-device "virtio-net-pci,netdev=fabric,mac=52:54:00:10:00:0$n,host_mtu=4200"
	) ;;
	mlx5)
		card=(-device '{"driver":"vfio-user-pci","socket":{"type":')
		card[1]+="\"unix\",\"path\":\"$d/mlx5.sock\"}}"
		;;
	esac
	# shellcheck disable=SC2054 # the commas are QEMU's
	case $accel in
	kvm) machine=(-accel kvm -cpu host) ;;
	# Five-level page tables only make emulated page walks longer. And kernel
	# and libc copy and clear by "rep movsb" and "rep stosb" on processors that
	# are fast at it: QEMU emulates these byte by byte.
	*)
		machine=(-accel tcg -cpu max,la57=off)
		machine[-1]+=,erms=off,fsrm=off,fzrm=off,fsrs=off,fsrc=off
		;;
	esac

	"$toolbox" qemu-img create -q -f qcow2 -F raw \
		-b "$disk" "$d/disk.qcow2"
	# QEMU's monitor, see on_reset
	rm -f "$d/qmp.in" "$d/qmp.out"
	mkfifo "$d/qmp.in" "$d/qmp.out"

	# The watchdogs' defaults are meant for real processors. So is the look whether the timer
	# ticks: an emulator that has no processor just then is no broken board. Memory is
	# shareable, because a device in another process may need it.
	# shellcheck disable=SC2086 # LAB_QEMU is a list of words
	in_ns "$toolbox" qemu-system-x86_64 -name "$1" \
		-daemonize -pidfile "$d/pid" -display none -nodefaults \
		-no-reboot -machine q35,memory-backend=ram "${machine[@]}" \
		-m "$mem" -smp "$cpus" \
		-object "memory-backend-memfd,id=ram,size=${mem}M,share=on" \
		-chardev "file,id=con,path=$d/console.log,append=on" \
		-serial chardev:con \
		-qmp "pipe:$d/qmp" \
		-kernel "$boot/vmlinuz" -initrd "$boot/initrd" \
		-append "console=ttyS0 loglevel=5 panic=-1 mitigations=off \
watchdog_thresh=60 rcupdate.rcu_cpu_stall_timeout=120 kfence.sample_interval=100 \
workqueue.watchdog_thresh=120 no_timer_check \
node=$n kernel=$(kernel_of "$1") device=$(device_of "$1") rxe=$(rxe_of "$1") \
${LAB_APPEND-}" \
		-drive "file=$d/disk.qcow2,if=virtio,cache=unsafe" \
		"${card[@]}" \
		-netdev "tap,id=lan,ifname=$1-lan,script=no,downscript=no" \
		-device "virtio-net-pci,netdev=lan,mac=52:54:00:20:00:0$n" \
		-virtfs "local,path=$stage,mount_tag=stage,security_model=none,readonly=on" \
		-virtfs "local,path=$dir/out,mount_tag=out,security_model=none" \
		"${modules[@]}" -device virtio-rng-pci ${LAB_QEMU-} >"$d/qemu.log" 2>&1 ||
		die "$1: QEMU does not start: $(cat "$d/qemu.log")"
	# No device of ours has that, and every mlx5 node would say so.
	grep -v 'Could not enable error recovery' "$d/qemu.log" >&2 || true

	# When the node dies its connection and its device go with it, so that
	# commands that run there fail at once. A process of its own, since a
	# subshell would hold our lock, and a session, as whoever calls us may be
	# ended with all of its group.
	LAB_DIR=$dir setsid "$here/lab" _watch "$1" "$dir" </dev/null >/dev/null 2>&1 &
	echo $! >"$d/watch.pid"
}

power_off() # NODE
{
	wire_off "$1" >/dev/null
	end "$dir/$1/watch.pid" TERM
	hang_up "$1"
	end "$dir/$1/pid" KILL
}

stop() # NODE
{
	power_off "$1"
	end_mlx5 "$1"
	last_words "$1"
}

# Its console and its logs stay, until the lab after this one goes down.
retire() # NODE
{
	local k=1

	[ -d "$dir/$1" ] || return 0
	rm -f "$dir/$1/disk.qcow2" "$dir/$1"/mlx5soft{,_ctl} "$dir/$1/bad_wire" \
		"$dir/$1"/qmp.*
	while [ -e "$dir/gone/$1.$k" ]; do k=$((k + 1)); done
	mkdir -p "$dir/gone"
	mv "$dir/$1" "$dir/gone/$1.$k"
}

# Tell QEMU what the guest's reset does; otherwise a node whose kernel panics
# is to end, and not to come back as if nothing had happened.
on_reset() # NODE reset|shutdown
{
	printf '%s\n' '{"execute": "qmp_capabilities"}' \
		"{'execute': 'set-action', 'arguments': {'reboot': '$2'}}" \
		>"$dir/$1/qmp.in"
}

# Called with the state folder too, so that running() knows us.
cmd__watch() # NODE DIR
{
	tail --pid="$(cat "$dir/$1/pid")" -s 0.2 -f /dev/null
	end_mlx5 "$1"
	hang_up "$1"
	wire_off "$1" >/dev/null
}
