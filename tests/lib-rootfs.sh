# shellcheck shell=bash
# shellcheck disable=SC2016,SC2154 # expanded by the nodes' shells; assigned by lib.sh
# SPDX-License-Identifier: GPL-2.0
#
# For tests with containers of runtimes as they are, without migr-ctr: sourced after lib.sh.

# What rc_mix and a shell need, and nothing else, as the root of a container
mix_rootfs() # NODE FOLDER
{
	on "$1" "root=$2; set -e"'
		lib=/usr/lib/x86_64-linux-gnu/libibverbs
		mkdir -p $root/{bin,dev,etc,proc,run,sys,tmp}
		cp /opt/migr/bin/rc_mix /usr/bin/busybox $root/bin
		ln -sf busybox $root/bin/sh
		cp -L --parents $lib/librxe-*.so /etc/libibverbs.d/rxe.driver \
			$(ldd /opt/migr/bin/rc_mix $lib/librxe-*.so |
				sed -n "s,^[^/]*\(/[^ :]*\) (.*,\1,p" | sort -u) $root'
}

# Both ends come to their end, which the one on n2 is told, and find nothing wrong; the other
# one has left its result in a folder of a node.
mix_ends_well() # NODE FOLDER
{
	ask n2 'pkill -INT -x rc_mix' || true
	poll_until 120 ask n2 '[ -s /run/mix.exit ]'
	mix_verdict n2 partner /run/mix.json "$(ask n2 'cat /run/mix.exit')" ||
		fail "the partner: $(ask n2 'tail /run/mix.log')"
	poll_until 60 ask "$1" "[ -s $2/mix.exit ]"
	mix_verdict "$1" 'moved end' "$2/mix.json" "$(ask "$1" "cat $2/mix.exit")" ||
		fail "the moved end: $(ask "$1" "tail $2/mix.log")"
}
