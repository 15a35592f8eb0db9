#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# What of the host a container does not see: what is there, when it is made. Nothing is made for
# that but what is ours, or would come later; where a container comes to it has places for what it
# hides, and is refused if it would see more.

. "$(dirname "$0")/lib.sh"

host=$tmp/host
mkdir -p "$host"/etc/ssh "$tmp/c1"
echo secret >"$host/etc/shadow"
# what it says of a host is of this one
# shellcheck disable=SC2034 # the part's
name=c1 dir=$tmp/c1 state=$tmp none=$tmp/none prefix=/usr layer=
# shellcheck source=/dev/null
. <(sed "/^secret_/s,\([( ]\)/,\1$host/,g" "$tree/vm-images/ctr/bundle.sh")
make_nodes() { :; }
mountpoint() { :; }
die() { echo "$*"; exit 1; }
echo / >"$dir/root"

# It gets lists of what is to be hidden, and has them of what is: in a file for each source.
jq()
{
	if [ "$1" = -r ]; then
		cat "$tmp/hides/${4##*/}"
		return
	fi
	while [ $# -gt 0 ]; do
		case $1:${2-} in
		--arg:folders) folders=$3 ;;
		--arg:files) files=$3 ;;
		esac
		shift
	done
}
all() { (cd "$host" && find . -mindepth 1 -printf '%P %m\n' | sort); }
is() { [ "$1" = "$2" ] || fail "'$1', not '$2'"; }

say "what is there is hidden, and nothing is made of others'"
chmod 755 "$host" "$host/etc" "$host/etc/ssh"
chmod 640 "$host/etc/shadow"
mount_rootfs
spec sleep 1
is "$folders" "$host/etc/migrd $host/etc/ssh"
is "$files" "$host/etc/shadow $host/etc/shadow- $host/etc/gshadow-"
is "$(all)" "$(printf '%s\n' 'etc 755' 'etc/gshadow- 600' 'etc/migrd 700' 'etc/shadow 640' \
	'etc/shadow- 600' 'etc/ssh 755')"
mkdir -p "$host/var/lib/dkms"
spec sleep 1
is "$folders" "$host/etc/migrd $host/etc/ssh $host/var/lib/dkms"

say "where it comes to"
mkdir "$tmp/hides"
touch "$dir/config.json"
printf '%s\n' "$host"/{etc/migrd,etc/ssh,root/.ssh} >"$tmp/hides/none"
printf '%s\n' "$host"/etc/{shadow,gshadow,shadow-,gshadow-} >"$tmp/hides/null"
! said=$(must_hide_all) || fail "it would see dkms' key"
is "$said" "c1 would see $host/var/lib/dkms of this host: there was none where it was made"
echo "$host/var/lib/dkms" >>"$tmp/hides/none"
must_hide_all
mount_rootfs
is "$(all | grep -E 'gshadow|ssh')" "$(printf '%s\n' 'etc/gshadow 600' 'etc/gshadow- 600' \
	'etc/ssh 755' 'root/.ssh 700')"
echo secret >"$host/etc/shadow"
mount_rootfs
is "$(<"$host/etc/shadow")" secret

say "with a root of its own there is nothing of the host's"
echo /somewhere >"$dir/root"
: >"$tmp/hides/none"
must_hide_all
