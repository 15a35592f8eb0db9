#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# migr-ctr move is killed: whoever comes then is told that the container is stopped, where
# its image is, and where it may run instead, and nobody destroys that image. And its shell
# for runc is killed, or the other node says nothing: it does not wait for these, nor do
# those that the layer has stopped.

. "$(dirname "$0")/lib.sh"

mkdir -p "$tmp"/{bin,netns,ctr,at}
export HOUSE=$tmp HOUSE_PID=$$
ip=10.20.0.143

tool() # NAME, with its script as stdin
{
	cat >"$tmp/bin/$1"
	chmod +x "$tmp/bin/$1"
}
here() # FILE: what it says of a node is of this one
{
	sed "s,/run/netns,$tmp/netns,; s,/var/lib/migr-ctr,$tmp/ctr,; s,/run/node/,$tmp/,
		s,/dev/infiniband,$tmp/dev,g
		s,^\(secret_[a-z]*\)=.*,\1=(),
		s,^ready_s=[0-9]*,ready_s=20,; s,^clean_s=[0-9]*,clean_s=5," "$1"
}
here "$tree/vm-images/migr-ctr" | tool migr-ctr
mkdir -p "$tmp/libexec/migr-ctr"
for t in "$tree"/vm-images/ctr/*.sh; do
	here "$t" >"$tmp/libexec/migr-ctr/${t##*/}"
done
for t in mount mountpoint jq arping; do echo '#!/bin/sh' | tool $t; done
printf '%s\n' '#!/bin/sh' 'exit 1' | tool umount
tool ip <<'END'
#!/bin/bash
case "$*" in
"netns add "*) ln -s "/proc/$HOUSE_PID/ns/net" "$HOUSE/netns/$3" ;;
"netns del "*) rm "$HOUSE/netns/$3" ;;
esac
END

# Whoever comes to a point says so, and goes on when it may.
# shellcheck disable=SC2016 # expanded there
comes='comes() { : >"$HOUSE/at/$1"; while [ -e "$HOUSE/stop_at_$1" ]; do sleep 0.05; done; }'
tool runc <<END
#!/bin/bash
$comes
$(cat <<'REST'
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
	sleep 600 &
	echo $! >"$pid"
	;;
checkpoint)
	comes dump
	end
	head -c 1M /dev/zero >"$image/pages-1.img"
	echo image >"$image/inventory.img"
	[ -z "${MIGR_CTR_DOOR-}" ] || echo criu 0 1<>"$MIGR_CTR_DOOR/says"
	;;
*) end ;;
esac
REST
)
END
# the other node, which reads all, if it may, and then says nothing
tool ssh <<END
#!/bin/bash
$comes
[ ! -e "$tmp/mute" ] || exec sleep 600
printf '%s\n' ready 2 '[]'
for i in {1..8}; do read -r _; done
comes image
cat >/dev/null
comes end
END
cp "$tests/house/fake-layer" "$tmp/bin/migr-layer"
PATH=$tmp/bin:$PATH
ends()
{
	rm -f "$tmp"/stop_at_* "$tmp/stops_slowly"
	migr-ctr delete one >/dev/null || true
	end_house
}
trap ends EXIT

is_free() { flock -n "$tmp/ctr/.one.lock" true; }
there_is() { [ -e "$1" ]; }
has_ended() { ! kill -0 "$1" 2>/dev/null; }

says() # TEXT COMMAND...: it fails, and says so
{
	local said

	! said=$(timeout 60 migr-ctr "${@:2}" 2>&1) || fail "not refused: ${*:2}"
	[[ $said = *"$1"* ]] || fail "'$1' is not in what $2 says: $said"
}

killed_at() # POINT
{
	rm -f "$tmp/at/$1"
	touch "$tmp/stop_at_$1"
	migr-ctr move --by protocol one n9 2>"$tmp/errors" &
	until_true there_is "$tmp/at/$1"
	# the other node may be there before
	[ "$1" != image ] || until_true there_is "$tmp/ctr/one/image/inventory.img"
	[ "$1" != end ] || until_true there_is "$tmp/ctr/one/whole"
	kill -KILL $!
}

comes_back()
{
	migr-ctr restore one $ip
	migr-ctr pid one >"$tmp/out" 2>&1 || fail "it does not run"
	[ "$(wc -l <"$tmp/out")" = 1 ] || fail "it says more: $(<"$tmp/out")"
}

image="its image is kept in $tmp/ctr/one/image: migr-ctr restore one $ip"

migr-ctr create one $ip -- true
say "killed while CRIU dumps: nobody else begins with it"
killed_at dump
says "another command is at work" move --by protocol one n9
rm "$tmp/stop_at_dump"
until_true is_free
[ -s "$tmp/ctr/one/image/inventory.img" ] || fail "there is no image"

say "whoever comes then is told where it is"
for c in pid exit checkpoint; do
	says "one is stopped; $image" $c one
done
says "one is stopped; $image" move --by protocol one n9
says "one is stopped; $image" create one $ip -- true
echo word >"$tmp/ctr/one/run/out"
[ "$(migr-ctr out one 2>"$tmp/errors")" = word ] || fail "it does not say what it has said"
grep -qF "$image" "$tmp/errors" || fail "of its output it says: $(<"$tmp/errors")"

say "and it makes no room for another one"
! printf '%s\n' 10.20.0.144 / '' {} 2 '[]' 2 '[]' | migr-ctr receive one 2>"$tmp/errors" ||
	fail "it does"
grep -qF "$image, or migr-ctr delete one" "$tmp/errors" || fail "it says: $(<"$tmp/errors")"
! migr-ctr take one </dev/null 2>"$tmp/errors" || fail "it does"
comes_back

say "one that has ended since is not stopped"
kill "$(<"$tmp/ctr/one/pid")"
until_true eval '! migr-ctr pid one 2>&1'
[ -z "$(migr-ctr pid one 2>&1)" ] || fail "it says: $(migr-ctr pid one 2>&1)"
migr-ctr delete one >/dev/null
migr-ctr create one $ip -- true

say "killed while the image travels"
killed_at image
rm "$tmp/stop_at_image"
until_true is_free
says "one is stopped; $image" pid one
comes_back

say "killed when all of it may be there"
killed_at end
rm "$tmp/stop_at_end"
until_true is_free
says "one is stopped, unless it runs on n9; $image" pid one
comes_back

say "the shell that has started runc is killed, and runc"
rm -f "$tmp/at/dump"
touch "$tmp/stop_at_dump"
migr-ctr move --by protocol one n9 2>"$tmp/errors" &
move=$!
until_true there_is "$tmp/at/dump"
runc=$(pgrep -f "$tmp/bin/runc .*checkpoint")
shell=$(ps -o ppid= "$runc")
# shellcheck disable=SC2086 # it has spaces before it
kill -KILL $shell $runc
rm "$tmp/stop_at_dump"
until_true has_ended $move
! wait $move || fail "it has moved"
grep -q "one cannot be checkpointed" "$tmp/errors" || fail "it says: $(<"$tmp/errors")"
migr-ctr pid one >/dev/null || fail "it does not run on"

# until then the other node does not end
ended_while_it_stops()
{
	rm -f "$tmp/layer"
	touch "$tmp/stops_slowly" "$tmp/stop_at_image"
	migr-ctr move --by layer --no-pre-setup one n9 2>"$tmp/errors" &
	move=$!
	until_true grep -qsx stop "$tmp/layer"
	kill $move
	rm "$tmp/stops_slowly"
}

# and what it says is like that
it_ends() # PATTERN
{
	rm "$tmp/stop_at_image"
	until_true has_ended $move
	! wait $move || fail "it has moved"
	# shellcheck disable=SC2053 # it is one
	[[ $(<"$tmp/errors") = $1 ]] || fail "it says: $(<"$tmp/errors")"
	migr-ctr pid one >/dev/null || fail "it does not run on"
}

say "ended while the layer stops all: it is told so when it has, not when the other node ends"
ended_while_it_stops
until_true grep -qx aborted "$tmp/layer"
it_ends ''

say "or it cannot: then all goes on; but if it is gone nobody knows that"
echo 1 >"$tmp/stop_fails"
ended_while_it_stops
it_ends ''
echo 137 >"$tmp/stop_fails"
ended_while_it_stops
it_ends '*connections of one may be lost*'

say "the other node says nothing, and does not end"
touch "$tmp/mute"
says "n9 is not ready for one" move --by protocol one n9
migr-ctr pid one >/dev/null || fail "it does not run on"
