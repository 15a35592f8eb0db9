#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# What migr-ctr mounts on a host where all mounts are shared, as systemd has them: as much for the
# last container as for the first, nothing of it in another one, and all of it goes. The host is a
# folder, in a mount namespace of its own.

. "$(dirname "$0")/lib.sh"

host=$tmp/host
mkdir "$host"
# what it says of a host is of this one
sed "s,/dev/infiniband,$host/dev/infiniband,g; s,/run/migrd,$host/run/migrd," \
	"$tree/vm-images/ctr/bundle.sh" >"$tmp/bundle.sh"

cat >"$tmp/try" <<'END'
set -euo pipefail
host=$1
mount -t tmpfs tmpfs "$host"
mount --make-rshared /
mount --make-rshared "$host"
mkdir -p "$host/lib/migrrdma"
# shellcheck disable=SC2034 # the part's
prefix=$host state=$host/var/lib/migr-ctr none=$host/var/lib/migr-ctr/.none
mkdir -p "$state"
. "$2"
ours=/lib/migrrdma
mounts() { grep -c " $host/" /proc/self/mountinfo || true; }
for n in 1 2 3 4 5; do
	dir=$state/c$n
	mkdir "$dir"
	echo "$host" >"$dir/root"
	make_folders
	mount_rootfs
	make_folders # as at a restore
	mount_rootfs
	[ "$(mounts)" = $((2 * n)) ] || {
		echo "FAILED: with $n containers there are $(mounts) mounts"
		exit 1
	}
done
[ -e "$state/c5/rootfs/var/lib/migr-ctr/c1/run" ] || {
	echo "FAILED: it does not see its root"
	exit 1
}
mount -t tmpfs later "$host/run"
! grep " $state/c1/rootfs/run " /proc/self/mountinfo || {
	echo "FAILED: a mount of the host comes to containers"
	exit 1
}
umount "$host/run"
for n in 1 2 3 4 5; do
	unmount "$state/c$n/rootfs"
	unmount "$state/c$n/shm"
done
[ "$(mounts)" = 0 ] || {
	echo "FAILED: left: $(grep " $host/" /proc/self/mountinfo)"
	exit 1
}
END

say "mounts do not double"
unshare --mount bash "$tmp/try" "$host" "$tmp/bundle.sh" || fail "they do"
