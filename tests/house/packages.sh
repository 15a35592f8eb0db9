#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Packages and make install, as far as that can be tried without either: what a purge removes.

. "$(dirname "$0")/lib.sh"

host=$tmp/host
purge() # what dpkg calls, on a host that is a folder
{
	sed "s,/var/,$host/var/,g; /DEBHELPER/d" "$tree/debian/migrctl.postrm" >"$tmp/postrm"
	sh "$tmp/postrm" purge || fail "postrm purge"
}

say "purge: a container that is there keeps its devices and its lock"
ctr=$host/var/lib/migr-ctr
mkdir -p "$ctr"/{.dev/pts,.none,c1/run}
touch "$ctr"/.dev/null "$ctr"/.c{1,2}.lock
purge
for f in .dev/null .dev/pts .none .c1.lock c1/run; do
	[ -e "$ctr/$f" ] || fail "$f is gone"
done
say "without one nothing is left"
rm -r "$ctr/c1"
purge
[ ! -e "$ctr" ] || fail "left: $(ls -A "$ctr")"
purge
