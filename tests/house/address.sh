#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# migr-gid, and migr-ctr as far as it calls it: nobody loses an address, or a place
# kept for one, to another, and one that is restored has its own. The node is a folder,
# with a kernel that makes GIDs as the real one, sometimes late.

. "$(dirname "$0")/lib.sh"

gids=$tmp/ib/rxe0/ports/1/gids
none=0000:0000:0000:0000:0000:0000:0000:0000
mkdir -p "$tmp/bin" "$gids" "$tmp"/{addr,busy_gid,netns,ctr}
export HOUSE=$tmp HOUSE_GIDS=$gids HOUSE_PID=$$ HOUSE_NONE=$none

tool() # NAME, with its script as stdin
{
	cat >"$tmp/bin/$1"
	chmod +x "$tmp/bin/$1"
}
here() # FILE: what it says of a node is of this one
{
	sed "s,/sys/class/infiniband,$tmp/ib,; s,/run/lock,$tmp,; s,/run/migr-gid,$tmp/migr-gid,; s,/run/netns,$tmp/netns,
		s,/var/lib/migr-ctr,$tmp/ctr,; s,/run/node/,$tmp/,
		s,/dev/infiniband,$tmp/dev,g
		s,^\(secret_[a-z]*\)=.*,\1=()," "$1"
}
for t in migr-gid migr-ctr; do
	here "$tree/vm-images/$t" | tool $t
done
mkdir -p "$tmp/libexec/migr-ctr"
for t in "$tree"/vm-images/ctr/*.sh; do
	here "$t" >"$tmp/libexec/migr-ctr/${t##*/}"
done
for t in mount mountpoint jq; do echo '#!/bin/sh' | tool $t; done
printf '%s\n' '#!/bin/sh' 'exit 1' | tool umount
echo '#!/bin/sh
echo link rxe0/1 state ACTIVE physical_state LINK_UP netdev fabric' | tool rdma
# shellcheck disable=SC2016 # expanded there
printf '%s\n' '#!/bin/sh' '[ ! -e "$HOUSE/mute" ]' | tool migr-announce
# Another node has what is in this file.
tool arping <<'END'
#!/bin/bash
! grep -qsx -e "${@: -1}" "$HOUSE/elsewhere"
END
# A late GID comes between two looks.
tool grep <<'END'
#!/bin/bash
[[ $* != *gids/* ]] || [ ! -e "$HOUSE/late" ] || bash "$HOUSE/late"
PATH=${PATH#*:}
exec grep "$@"
END
tool ip <<'END'
#!/bin/bash
. "$HOUSE/libexec/migr-ctr/address.sh"
gid()
{
	ipv6_groups "$1" || printf '0000:0000:0000:0000:0000:ffff:%02x%02x:%02x%02x' ${1//./ }
}
remove()
{
	local at

	rm "$HOUSE/addr/$1" || exit 2
	at=$(PATH=${PATH#*:} grep -lx "$(gid "$1")" "$HOUSE_GIDS"/*) || return 0
	case $1 in
	169.254.0.*) # and not to a folder that is being removed
		(sleep 0.2
		echo "$HOUSE_NONE" | dd of="$at" conv=nocreat,notrunc) >/dev/null 2>&1 & ;;
	*) echo "$HOUSE_NONE" >"$at" ;;
	esac
}
add()
{
	local i do

	rm -f "$HOUSE/adds_slowly"
	until [ ! -e "$HOUSE/may_not_add" ]; do sleep 0.05; done
	(set -C; : >"$HOUSE/addr/$1") || exit 2
	for i in {0..9}; do
		[ "$(<"$HOUSE_GIDS/$i")" = "$HOUSE_NONE" ] &&
			[ ! -e "$HOUSE/busy_gid/$i" ] || continue
		do="echo $(gid "$1") >$HOUSE_GIDS/$i"
		[ -e "$HOUSE/is_late" ] || { eval "$do"; return; }
		echo "$do" >"$HOUSE/late"
		return
	done
}
[ "$1" != -o ] || shift
case "$*" in
"netns add "*) ln -s "/proc/$HOUSE_PID/ns/net" "$HOUSE/netns/$3" ;;
"netns del "*) rm "$HOUSE/netns/$3" ;;
"-b -") while read -r line; do "$0" $line || exit; done ;;
"addr add "*) add "${3%/*}" ;;
"addr del "*) remove "${3%/*}" ;;
"link set dev c-one master lan") touch "$HOUSE/plugged" ;;
"addr flush "*)
	[ ! -e "$HOUSE/going" ] || rm "$HOUSE/busy_gid/2" "$HOUSE/going"
	for a in $(cd "$HOUSE/addr" && ls); do
		[[ $a != 169.254.0.* ]] || remove "$a"
	done ;;
"neigh show "*)
	if grep -qsx -e "$3" "$HOUSE/elsewhere"; then
		echo "$3 lladdr 02:00:00:00:00:01 REACHABLE"
	else
		echo "$3 FAILED"
	fi ;;
"addr show "*) [ ! -e "$HOUSE/addr/${*: -1}" ] || echo "inet ${*: -1}" ;;
esac
END

# A dump ends the container, and fails if it is to. What waits at a door to restore gives up.
tool runc <<'END'
#!/bin/bash
name=${*: -1} do=
while [ $# -gt 0 ]; do
	case $1 in
	run | checkpoint | restore) do=$1 ;;
	--pid-file) pid=$2 ;;
	--image-path) image=$2 ;;
	esac
	shift
done
end()
{
	local pid

	pid=$(cat "$HOUSE/ctr/$name/pid") || return 0
	kill -KILL "$pid"
	while [ -n "$(tr '\0' . <"/proc/$pid/cmdline")" ]; do sleep 0.05; done
} 2>/dev/null
if [ -n "${MIGR_CTR_DOOR-}" ]; then
	echo ready >"$MIGR_CTR_DOOR/says"
	read -r word <"$MIGR_CTR_DOOR/go"
	[ "$word" = dump ] || exit 1
fi
case $do in
run | restore)
	rm -f "$HOUSE/plugged"
	until [ ! -e "$HOUSE/starts_slowly" ]; do sleep 0.05; done
	sleep 600 &
	echo $! >"$pid"
	;;
checkpoint)
	end
	head -c 1M /dev/urandom >"$image/pages-1.img"
	echo image >"$image/inventory.img"
	[ -z "${MIGR_CTR_DOOR-}" ] || echo criu 0 1<>"$MIGR_CTR_DOOR/says"
	[ ! -e "$HOUSE/dump_fails" ]
	;;
*) end ;;
esac
END
# the other node, which is lost when the image is on its way
tool ssh <<'END'
#!/bin/bash
printf '%s\n' ready 2 '[]'
for i in {1..8}; do read -r _; done
exit 255
END
cp "$tests/house/fake-layer" "$tmp/bin/migr-layer"
PATH=$tmp/bin:$PATH
ends()
{
	local c

	for c in one two; do
		migr-ctr delete $c >/dev/null || true
	done
	end_house
}
trap ends EXIT

# GIDs 0 and 1 are the node's.
for i in {0..9}; do echo $none >"$gids/$i"; done
ip addr add 10.10.0.1/24
ip addr add 169.254.9.1/16

is_at() # INDEX ADDRESS
{
	# shellcheck disable=SC2046,SC2183 # four numbers
	[ "$(<"$gids/$1")" = "$(printf '0000:0000:0000:0000:0000:ffff:%02x%02x:%02x%02x' \
		$(tr . ' ' <<<"$2"))" ] || fail "GID $1 is $(<"$gids/$1"), not $2"
}
only() # ADDRESS...: beside the node's
{
	local got

	got=$(cd "$tmp/addr" && for a in *; do [[ $a = *.1 ]] || echo "$a"; done | xargs)
	[ "$got" = "$*" ] || fail "there are: $got, not: $*"
}
refused() # REASON COMMAND...
{
	local said

	! said=$("${@:2}" 2>&1) || fail "not refused: ${*:2}"
	[[ $said = *"$1"* ]] || fail "'$1' is not in: $said"
}
create() { migr-ctr create --rdma "$1" "$2" 10.20.0.143 -- true; } # ADDRESS NAME

say "an address that a container of the same node has"
create 10.10.0.143 one
is_at 2 10.10.0.143
refused "10.10.0.143 is in use" create 10.10.0.143 two
refused "10.10.0.1 is in use" create 10.10.0.1 two
is_at 2 10.10.0.143
refused "GID 2 of rxe0 is in use" create 10.10.0.144@2 two
only 10.10.0.143

say "and of one that is to come here"
! printf '%s\n' 10.20.0.143 / 10.10.0.143@2 {} 2 '[]' 2 '[]' | migr-ctr receive two 2>/dev/null ||
	fail "two have it"
is_at 2 10.10.0.143
only 10.10.0.143

say "a place for one that does not get its address"
mv "$tmp/bin/migr-gid" "$tmp/bin/real-gid"
tool migr-gid <<'END'
#!/bin/bash
[ "$1" != take ] && exec real-gid "$@"
END
mkdir -p "$tmp/sent/image"
touch "$tmp/sent/whole"
! {
	printf '%s\n' 10.20.0.143 / 10.10.0.200@3 {} 2 '[]' 2 '[]' 2 '[]'
	for f in image whole; do tar -C "$tmp/sent" -cf - $f; done
} | migr-ctr receive two >"$tmp/said" 2>/dev/null || fail "it is restored"
grep -qx transfer "$tmp/said" || fail "it has not arrived"
mv "$tmp/bin/real-gid" "$tmp/bin/migr-gid"
only 10.10.0.143

say "one that got it first of two who have asked whether it is free"
mv "$tmp/bin/migr-gid" "$tmp/bin/real-gid"
tool migr-gid <<'END'
#!/bin/bash
[ "$1" = free ] || exec real-gid "$@"
END
! create 10.10.0.143@3 two 2>/dev/null || fail "two have it"
say "who is ended while another one has the turn"
# shellcheck disable=SC2016 # for sh
flock "$tmp/migr-gid" sh -c 'until [ -e "$HOUSE/turn" ]; do sleep 0.05; done' &
until ! flock -n "$tmp/migr-gid" true; do sleep 0.05; done
migr-ctr create --rdma 10.10.0.143@3 two 10.20.0.143 -- true 2>/dev/null &
until pgrep -f "$tmp/bin/real-gid take" >/dev/null; do sleep 0.05; done
kill $!
touch "$tmp/turn"
! wait $! || fail "two have it"
mv "$tmp/bin/real-gid" "$tmp/bin/migr-gid"
is_at 2 10.10.0.143
only 10.10.0.143

say "a dump that fails when it was killed: it is restored as it was told to"
touch "$tmp/dump_fails"
refused "migr-ctr restore one 10.20.0.143" migr-ctr checkpoint one
only
say "also at the second try"
echo '#!/bin/sh
exit 1' | tool mountpoint
cp "$tmp/bin/mountpoint" "$tmp/bin/mount"
! migr-ctr restore one 10.20.0.143 2>/dev/null || fail "it is restored"
only
for t in mount mountpoint; do echo '#!/bin/sh' | tool $t; done
say "and by one who is ended meanwhile"
touch "$tmp/starts_slowly" "$tmp/plugged"
migr-ctr restore one 10.20.0.143 &
while [ -e "$tmp/plugged" ]; do sleep 0.05; done
kill $!
rm "$tmp/starts_slowly"
! wait $! || fail "it does not say that it was ended"
[ -e "$tmp/plugged" ] || fail "what it has restored has no network"
is_at 2 10.10.0.143
say "also when nobody has cleaned up; but not while it lives elsewhere"
rm "$tmp/dump_fails"
migr-ctr checkpoint one
only
cp "$tmp/ctr/one/image/rdma" "$tmp/ctr/one/"
migr-gid take 10.10.0.143@2
echo 10.10.0.143 >"$tmp/elsewhere"
refused "10.10.0.143 is in use" migr-ctr restore one 10.20.0.143
only
rm "$tmp/elsewhere"
migr-ctr restore one 10.20.0.143
is_at 2 10.10.0.143

say "one that comes back, while its place is still kept where it was to go"
move() { migr-ctr move --by layer --no-pre-setup one n9; }
echo 169.254.255.143 >"$tmp/elsewhere"
refused "the image of one cannot be read" move
migr-ctr pid one >/dev/null || fail "it does not run"
is_at 2 10.10.0.143
[ "$(xargs <"$tmp/layer")" = "stop aborted" ] || fail "the layer was told: $(<"$tmp/layer")"
say "but not while another one has its address"
echo 10.10.0.143 >"$tmp/elsewhere"
! said=$(move 2>&1) || fail "it has moved"
[[ $said = *"one is stopped; its image is kept"* && $said != *"has come back"* ]] ||
	fail "it says: $said"
only
rm "$tmp/elsewhere"
migr-ctr restore one 10.20.0.143
is_at 2 10.10.0.143

say "what is dumped has no address to take from another one"
migr-ctr checkpoint one
create 10.10.0.143 two
refused "10.10.0.143 is in use" migr-ctr restore one 10.20.0.143
migr-ctr delete one >/dev/null
is_at 2 10.10.0.143
migr-ctr delete two
only

say "one that has left, and may come back, has its index still"
create 10.10.0.143 one
driver() { migr-ctr driver one "$@"; } # VERB...
driver leave
only
refused "GID 2 of rxe0 is in use" create 10.10.0.144@2 two
create 10.10.0.144 two
is_at 3 10.10.0.144
driver back 10.10.0.143@2
is_at 2 10.10.0.143
say "but not when it runs elsewhere"
driver leave
driver gone n9
migr-ctr delete two
create 10.10.0.144@2 two
is_at 2 10.10.0.144
migr-ctr delete two
say "who cannot come back to it does the rest"
create 10.10.0.143 one
driver leave
rm -r "$tmp/migr-gid.left"
create 10.10.0.144@2 two
refused "GID 2 of rxe0 is in use" driver back 10.10.0.143@2
[ -e "$tmp/ctr/one/arrived" ] || fail "nobody was told that it is back"
migr-ctr delete two
migr-ctr delete one >/dev/null
only

say "a place that is kept for another one"
migr-gid keep 10.10.0.200@2
refused "GID 2 of rxe0 is in use" migr-gid take 10.10.0.201@2
refused "GID 2 of rxe0 is in use" migr-gid keep 10.10.0.201@2
migr-gid drop 10.10.0.201@2
is_at 2 169.254.255.200
refused "10.10.0.200 is in use" migr-gid free 10.10.0.200
migr-gid drop 10.10.0.200@3
is_at 2 169.254.255.200
migr-gid take 10.10.0.200@2
is_at 2 10.10.0.200
migr-gid drop 10.10.0.200@3
is_at 2 10.10.0.200
migr-gid drop 10.10.0.200@2
only
echo 169.254.255.200 >"$tmp/elsewhere"
refused "10.10.0.200 is in use" migr-gid free 10.10.0.200
migr-gid unused 10.10.0.200
echo 10.10.0.200 >"$tmp/elsewhere"
refused "10.10.0.200 is in use" migr-gid unused 10.10.0.200
rm "$tmp/elsewhere"

say "one of IPv6, however it is written"
create FD10:0::143 one
[ "$(<"$gids/2")" = fd10:0000:0000:0000:0000:0000:0000:0143 ] || fail "GID 2 is $(<"$gids/2")"
refused "FD10:0::143 is in use" create FD10:0::143 two
refused "GID 2 of rxe0 is in use" create fd10::144@2 two
migr-ctr delete one
only
echo fd10::143 >"$tmp/elsewhere"
refused "fd10::143 is in use" create fd10::143 one
say "its place is not one of IPv4's, nor of one with another end"
migr-gid keep fd10::143@2
only 169.254.129.67
migr-gid drop fd10::243@2
migr-gid drop 10.10.0.67@2
only 169.254.129.67
echo 169.254.129.67 >"$tmp/elsewhere"
refused "fd10::143 is in use" migr-gid free fd10::143
migr-gid unused fd10::143
rm "$tmp/elsewhere"
migr-gid take fd10::143@2
only fd10::143
migr-gid drop fd10::143@2
only

say "the first index that is free when it is taken"
migr-gid take 10.10.0.201
migr-gid take 10.10.0.202
is_at 3 10.10.0.202
migr-gid drop 10.10.0.202@3
migr-gid drop 10.10.0.201@2
only

say "no address for a container"
for a in 10.010.0.200 10.10.0.256 10.10.0.0 fe80::1 ff02::1 ::1 fd10::g fd10::1/128 x; do
	refused "'$a' is no address" migr-gid take $a
	refused "'$a@2' is no address" migr-gid keep $a@2
done
refused "no address with an index" migr-gid take fd10::143@two
refused "no address with an index" migr-gid keep fd10::143
refused "for fillers and places" migr-gid take 169.254.0.3

say "who fails when it has the address keeps nothing"
touch "$tmp/mute"
! migr-gid take 10.10.0.200@2 || fail "nobody has heard of it"
rm "$tmp/mute"
only
touch "$tmp/may_not_add" "$tmp/adds_slowly"
migr-gid take 10.10.0.200@2 &
while [ -e "$tmp/adds_slowly" ]; do sleep 0.05; done
kill $!
rm "$tmp/may_not_add"
! wait $! || fail "it does not say that it was ended"
while pgrep -f "$tmp/bin/ip addr add" >/dev/null; do sleep 0.05; done
only

say "a GID that comes while it is looked for"
touch "$tmp/is_late"
migr-gid take 10.10.0.200@2
is_at 2 10.10.0.200
rm "$tmp/is_late" "$tmp/late"
migr-gid drop 10.10.0.200@2

say "an index before which there are fillers that still go"
migr-gid take 10.10.0.200@5
migr-gid take 10.10.0.201@3
is_at 5 10.10.0.200
is_at 3 10.10.0.201
say "one before which is none that is free, though it seems so"
touch "$tmp/busy_gid/2" "$tmp/going"
migr-gid take 10.10.0.202@4
is_at 4 10.10.0.202
for i in 200@5 201@3 202@4; do migr-gid drop 10.10.0.$i; done

say "fillers of one that was killed"
ip addr add 169.254.0.5/32 # at 2
migr-gid take 10.10.0.200@2
is_at 2 10.10.0.200
migr-gid drop 10.10.0.200@2
ip addr add 169.254.0.3/32 # at 2
migr-gid take 10.10.0.200@4
is_at 4 10.10.0.200
only 10.10.0.200
