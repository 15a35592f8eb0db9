#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Packages and make install, as far as that can be tried without a build: what a purge removes,
# what an installation leaves as it is, where packages may be made, what they depend on, and whose
# they are.

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
mkdir "$host/var/log"
touch "$host"/var/log/{migrctl.jsonl{,.1,.2.gz},syslog}
purge
[ ! -e "$ctr" ] || fail "left: $(ls -A "$ctr")"
[ "$(ls "$host/var/log")" = syslog ] || fail "left: $(ls "$host/var/log")"
purge

say "make install: folders that are there keep their modes, and links to folders stay"
mkdir -p "$tmp/make/build" "$tmp/make/vm-images"
cp "$tree/Makefile" "$tmp/make/"
mkdir -p "$tmp/bin"
printf '%s\n' '#!/bin/sh' 'exec "$@"' >"$tmp/make/vm-images/toolbox"
printf '%s\n' '#!/bin/sh' "echo >>$tmp/linker" >"$tmp/bin/ldconfig"
# In the place of a build
cat >"$tmp/bin/cmake" <<'END'
#!/bin/bash
[ "$1" = --install ] || exit 0
mkdir "$DESTDIR" && cd "$DESTDIR" || exit
mkdir -p usr/local/{sbin,lib/x,share/man}
install -m 755 /bin/true usr/local/sbin/migrctl
install -m 644 /etc/passwd usr/local/share/man/page
ln -s x usr/local/lib/y
END
chmod +x "$tmp/make/vm-images/toolbox" "$tmp"/bin/*

installs() # DESTDIR
{
	(umask 077; PATH=$tmp/bin:$PATH make -C "$tmp/make" -s -o toolbox install DESTDIR="$1") \
		>"$tmp/out" 2>&1 || fail "it fails: $(<"$tmp/out")"
}
modes() { (cd "$1" && stat -c '%n %a %F' -- "${@:2}"); } # FOLDER FILE...
dest=$tmp/dest
mkdir -m 755 "$dest"
mkdir -p "$dest/usr/local/share/pages"
chmod 1777 "$dest/usr/local"
ln -s pages "$dest/usr/local/share/man"
mkdir -m 750 "$dest/usr/local/sbin"
before=$(modes "$dest" . usr usr/local usr/local/sbin usr/local/share/man)
installs "$dest"
[ "$(modes "$dest" . usr usr/local usr/local/sbin usr/local/share/man)" = "$before" ] ||
	fail "modes: $(modes "$dest" . usr usr/local usr/local/sbin usr/local/share/man)"
[ "$(modes "$dest/usr/local" sbin/migrctl lib lib/y lib/x share/pages/page | sed 's/ [a-z].*//')" = \
	"$(printf '%s\n' 'sbin/migrctl 755' 'lib 755' 'lib/y 777' 'lib/x 755' \
		'share/pages/page 644')" ] || fail "not all is there"
[ ! -e "$tmp/linker" ] || fail "a folder is no place for the linker"

say "and this host's linker learns of new libraries"
# shellcheck disable=SC2016 # expanded there
unshare --mount bash -euc 'mount -t tmpfs -o mode=2775 tmpfs /usr/local
	(umask 077; PATH=$1:$PATH make -C "$2" -s -o toolbox install DESTDIR= PREFIX=/usr/local)
	[ "$(stat -c %a /usr/local)" = 2775 ] && [ -x /usr/local/sbin/migrctl ]
	' install "$tmp/bin" "$tmp/make" >"$tmp/out" 2>&1 || fail "it fails: $(<"$tmp/out")"
[ -e "$tmp/linker" ] || fail "it does not"

say "packages are made in no folder of somebody's"
mkdir -p "$tmp/source/vm-images" "$tmp/source/debian" "$tmp/home" "$tmp/packages"
cp "$tree/debian/build" "$tmp/source/debian/"
echo control >"$tmp/source/debian/control"
printf '%s\n' '#!/bin/sh' "touch '$tmp/packages/made'" >"$tmp/source/vm-images/toolbox"
chmod +x "$tmp/source/vm-images/toolbox"
# shellcheck disable=SC2016 # expanded there
printf '%s\n' '#!/bin/sh' 'cd "$2" && find debian -type f -print0' >"$tmp/bin/git"
chmod +x "$tmp/bin/git"
builds() { PATH=$tmp/bin:$PATH env -u IN_TOOLBOX "$tmp/source/debian/build" "$@" >"$tmp/out" 2>&1; }
echo mine >"$tmp/home/letter"
! builds "$tmp/home" || fail "it is made in somebody's"
grep -q "$tmp/home is there" "$tmp/out" || fail "it says: $(<"$tmp/out")"
[ -s "$tmp/home/letter" ] || fail "a letter is gone"
for _ in 1 2; do
	builds "$tmp/packages" || fail "it is not made: $(<"$tmp/out")"
	[ -e "$tmp/packages/made" ] || fail "nothing is made"
done

say "the plug-in is for the CRIU that it is made with, and no later one"
criu=$(dpkg-query -W -f '${Version}' libcriu-dev)
for o in '>=' '<<'; do
	bound=$(sed -n "s/^Depends:.* criu ($o \([^)]*\)).*/\1/p" "$tree/debian/control")
	[ -n "$bound" ] || fail "there is no $o"
	dpkg --compare-versions "$criu" "$o" "$bound" || fail "CRIU here is $criu, not $o $bound"
done

say "what units start is in packages that are there"
while read -r program; do
	case $program in
	@*) ;;
	kill) grep -qx ' procps,' "$tree/debian/control" || fail "kill is procps'" ;;
	*) fail "of which package is $program?" ;;
	esac
done < <(sed -n 's/^Exec[A-Za-z]*=\([^ ]*\).*/\1/p' "$tree"/*/*.service.in)

say "debian/copyright has each licence, and whose lines patches quote"
cat >"$tmp/licences" <<'END'
import fnmatch, os, re, sys

NAMES = {
	"GPL-2.0": "GPL-2", "GPL-2.0-or-later": "GPL-2+",
	"GPL-2.0 OR Linux-OpenIB": "GPL-2 or Linux-OpenIB",
	"((GPL-2.0 WITH Linux-syscall-note) OR Linux-OpenIB)":
		"GPL-2 with Linux-syscall-note, or Linux-OpenIB",
}
os.chdir(sys.argv[1])
text = open("debian/copyright").read()
parts = re.findall(r"^Files: (.*?)^Copyright:.*?^License: (.*?)$", text, re.M | re.S)
bad = "System Fabric Works" not in text
for folder, folders, files in os.walk("."):
	folders[:] = [f for f in folders if f not in (".git", "build", "LICENSES")]
	for name in files:
		path = os.path.join(folder, name)[2:]
		head = open(path, "rb").read(400).decode(errors="replace")
		spdx = re.search(r"^\W*SPDX-License-Identifier: (.*?)(?: ?[*]/| -->)?$", head, re.M)
		if not spdx:
			continue
		there = [l for f, l in parts for p in f.split() if fnmatch.fnmatch(path, p)][-1]
		if NAMES.get(spdx[1].strip("()"), NAMES.get(spdx[1])) != there:
			print(f"{path}: {spdx[1]}, and there {there}")
			bad = True
sys.exit(bad)
END
python3 "$tmp/licences" "$tree" || fail "it has others"
