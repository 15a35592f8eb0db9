# shellcheck shell=bash disable=SC2154 # shared with lab
# SPDX-License-Identifier: GPL-2.0
#
# Part of lab: what each node is made of: its device, its kernel, the accelerator.

kvm=/dev/kvm

# Does the accelerator really run a guest? /dev/kvm may open and the guest
# still hang, so a kernel is booted; the answer is kept for this kernel and
# this boot of the host. Without /dev/kvm it is kept until that is there, and for
# the rest of the hour if time was up: the guest hangs, or the host was busy.
accel()
{
	local cache=$images/accel log answer=tcg was='' of='' boot rc=0

	boot=$(cat /proc/sys/kernel/random/boot_id)
	[ -w "$kvm" ] || boot+=-without-kvm
	read -r was of 2>/dev/null <"$cache" || true
	case $of in
	"$boot" | "$boot-$(date +%F-%H)")
		echo "$was"
		return
		;;
	esac
	if [ -w "$kvm" ]; then
		say "trying $kvm"
		# If it works it takes a second.
		log=$(timeout 10 "$toolbox" qemu-system-x86_64 \
			-accel kvm -cpu host -m 512 -nodefaults -display none \
			-no-reboot -serial stdio -kernel "$images/vmlinuz" \
			-initrd "$images/initrd" \
			-append "console=ttyS0 probe panic=-1" \
			</dev/null 2>&1) || rc=$?
		case $log in *"lab: probe ok"*) answer=kvm ;; esac
	fi
	[ $answer = kvm ] || say "no usable KVM: emulating"
	[ $rc != 124 ] || boot+=-$(date +%F-%H)
	echo "$answer $boot" >"$cache"
	echo $answer
}

rxe_of() # NODE
{
	case ,$stock, in
	*,"$1",* | *,all,*) echo stock ;;
	*) echo migr ;;
	esac
}

# What a list like "a,n2=b" says of a node.
choice() # NODE LIST DEFAULT
{
	local word all=$3 one=

	for word in ${2//,/ }; do
		case $word in
		"$1="*) one=${word#*=} ;;
		*=*) ;;
		*) all=$word ;;
		esac
	done
	echo "${one:-$all}"
}

device_of() { choice "$1" "$device" rxe; }    # NODE
kernel_of() { choice "$1" "$kernel" stable; } # NODE

check_choices() # OPTION LIST CHOICE...
{
	local word choices

	choices=$(IFS='|' && echo "${*:3}")
	for word in ${2//,/ }; do
		[[ $word =~ ^(n[1-9]=)?($choices)$ ]] ||
			die "$1: '$word' is none of ${*:3}, with or without NODE="
	done
}

# The folder with a node's kernel
boot_of() # NODE
{
	case $(kernel_of "$1") in
	stable) echo "$images" ;;
	backports) echo "$backports" ;;
	debug) echo "$debug" ;;
	esac
}

check_kernel() # NODE
{
	case $(kernel_of "$1"),$(device_of "$1"),$(rxe_of "$1") in
	backports,rxe,migr)
		die "$1: our rdma_rxe is for the stable kernel: with" \
			"--kernel $1=backports it takes --device $1=mlx5 or" \
			"--stock $1"
		;;
	debug,mlx5,*) die "$1: the debug kernel has no driver for mlx5" ;;
	debug,rxe,migr)
		[ -e "$(module_of "$1")" ] ||
			die "$1: there is no $(module_of "$1"): make debug"
		;;
	esac
}

module_of() # NODE: our rdma_rxe for its kernel
{
	case $(kernel_of "$1") in
	debug) echo "$stage/debug/rdma_rxe.ko" ;;
	*) echo "$stage/rdma_rxe.ko" ;;
	esac
}

# What a node's behaviour depends on; `up` starts those anew that have another.
with() # NODE [MLX5SOFT]
{
	local rxe boot

	boot=$(boot_of "$1")
	rxe=$(rxe_of "$1")
	[ "$(device_of "$1")" = rxe ] || rxe=mlx5
	echo "$mem MiB, $cpus cpus${LAB_ACCEL:+, $LAB_ACCEL}, ${LAB_APPEND-}, ${LAB_QEMU-}, $rxe"
	echo "$boot $disk"
	cat "$boot/initrd.hash"
	case $rxe in
	migr) cksum "$(module_of "$1")" 2>&1 || true ;;
	mlx5) cksum <"${2-$mlx5soft}" || true ;;
	esac
}
