#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# What tests/leaks.sh finds on a node, which is this host here: of processes those of this
# session only, of the kernel's words what this test says.

[ "$(ps -o sid= $$ | xargs)" = $$ ] || exec setsid -w bash "$0"
. "$(dirname "$0")/lib.sh"
trap end_house EXIT
# shellcheck disable=SC2034 # of leaks.sh
state=$LAB_DIR
. "$tests/leaks.sh"

for folder in /sys/module /sys/class/net /var/lib/migr-ctr /run/netns /etc/ld.so.preload \
	/run/migrctl /run/runc /sys/fs/cgroup/migr-ctr /proc/mounts; do
	left_behind=${left_behind//$folder/$tmp$folder}
done
mkdir "$tmp/bin" "$tmp/proc"
: >"$tmp/proc/mounts"
tool() # NAME SCRIPT
{
	printf '#!/bin/bash\n%s\n' "$2" >"$tmp/bin/$1"
	chmod +x "$tmp/bin/$1"
}
for name in rdma ip tc nft ps; do
	tool $name ''
done
tool dmesg "cat $tmp/dmesg"
# shellcheck disable=SC2016 # expanded there
tool pgrep '/usr/bin/pgrep -s 0 "$@"'
# shellcheck disable=SC2016
tool lab 'exec bash -c "$3"'
: >"$tmp/dmesg"
PATH=$tmp/bin:$PATH
# shellcheck disable=SC2034
lab=$tmp/bin/lab

clean()
{
	local said

	said=$(none_left_behind n1 0) || fail "it finds what is not there: $said"
}
finds() # TEXT
{
	local said

	! said=$(none_left_behind n1 0) || fail "it does not find: $1"
	[[ $said == *"$1"* ]] || fail "it does not find $1: $said"
}
# runs NAME FILE ARGUMENT...: it is a process of that name
runs()
{
	(exec -a "$1" "${@:2}") &
	pid=$!
	until_true pgrep -f "^$1" >/dev/null
}
ends()
{
	kill $pid
	wait $pid || true
	clean
}

clean
for name in migrd migrd-say migr-layer migr-presetup migr-gid migr-mover migrctl criu runc tar \
	tcpcount blackout_load; do
	say "$name"
	cp "$(command -v sleep)" "$tmp/$name"
	runs "$tmp/$name" "$tmp/$name" 600
	finds $name
	ends
done
for word in move receive; do
	say "migr-ctr $word"
	runs "migr-ctr $word one" sleep 600
	finds "migr-ctr $word one"
	ends
done
for folder in /run/migrctl/moves /run/runc /sys/fs/cgroup/migr-ctr /run/netns /var/lib/migr-ctr; do
	say "something in $folder"
	mkdir -p "$tmp$folder/c9"
	finds c9
	rmdir "$tmp$folder/c9"
	clean
done
for mount in /run/migrctl/moves/1-source/images /var/lib/migr-ctr/c9/rootfs; do
	say "$mount is mounted"
	echo "tmpfs $tmp$mount tmpfs rw 0 0" >"$tmp/proc/mounts"
	finds "mount: $tmp$mount"
	: >"$tmp/proc/mounts"
	clean
done
for line in 'migrd[7]: segfault at 0' 'rc_mix[7]: segfault at 0' 'criu[7]: segfault at 0' \
	'traps: migrd[7] general protection fault ip:0' 'traps: rc_mix[7] trap int3 ip:0' \
	'ib_write_bw[9]: segfault at 0 ip 0 sp 0 error 4 in libmigrrdma.so[1,2+3]'; do
	say "$line"
	echo "[ 1.0] $line" >"$tmp/dmesg"
	finds "$line"
done
say "a crash of others"
echo '[ 1.0] python3[3]: segfault at 0 ip 0 sp 0 error 4 in libc.so.6[1,2+3]' >"$tmp/dmesg"
clean
