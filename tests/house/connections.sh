#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# What a move by the layer has at either end besides the container (migr-ctr driver NAME
# connections, and ahead), with a migr-layer and a migr-presetup that are none. Whoever gives
# the words dies at each step, and another one comes, or none; and these two die.
#
# shellcheck disable=SC2016 # expanded by others

. "$(dirname "$0")/lib.sh"

export HOUSE=$tmp
mkdir -p "$tmp"/{bin,at/run/migrrdma}
printf '%s\n' '#!/bin/sh' 'echo "{\"processes\": [{\"socket\": \"/one/run/migrrdma/1.sock\"}]}"' \
	>"$tmp/bin/migrd-say"
# what it was told is in layer, and what it is to do in does_WORD
cat >"$tmp/bin/migr-layer" <<'END'
#!/bin/bash
does() { [ ! -e "$HOUSE/does_$1" ] || . "$HOUSE/does_$1"; }
list='[{"pid":1,"record":{}}]' peers='[{"pid":1,"peers":[]}]'
does begin
echo checked
stopped=
while read -r word more; do
	echo "$word${more:+ $more}" >>"$HOUSE/layer"
	does "$word"
	case $word in
	record) printf 'records %s\n%s\npeers %s\n%s\nrecorded\n' ${#list} "$list" ${#peers} "$peers" ;;
	made) read -r line; echo "$line" >>"$HOUSE/layer"; echo led ;;
	stop) stopped=1; echo stopped ;;
	restored | aborted) echo '{"suspend_ms": 1.0}'; echo done; exit ;;
	esac
done
[ -z "$stopped" ] || { echo looks >>"$HOUSE/layer"; echo "at n9"; echo done; }
END
cat >"$tmp/bin/migr-presetup" <<'END'
#!/bin/bash
made='[[1,2,"::1"]]'
read -r record
echo "record" >>"$HOUSE/shadow"
[ ! -e "$HOUSE/shadow_fails" ] || exit 1
echo 'ready {}'
while read -r word more; do
	echo "$word $more" >>"$HOUSE/shadow"
	case $word in
	connect) printf 'connected %s\n%s\n' ${#made} "$made" ;;
	hand) echo handed ;;
	esac
done
END
# which a toolbox need not have: what layer.sh asks it for
cat >"$tmp/bin/jq" <<'END'
#!/usr/bin/python3
import json, sys
words, told = sys.argv[1:], json.load(sys.stdin)
if words == [".[].pid"]:
	print("\n".join(str(o["pid"]) for o in told))
elif words[0] == "-e":
	sys.exit(not any(words[3] in o["socket"] for o in told["processes"]))
else:
	print(json.dumps(next(o for o in told if o["pid"] == int(words[3]))[words[6]]))
END
chmod +x "$tmp/bin"/*
PATH=$tmp/bin:$PATH

# One of the two, as migr-ctr runs it, with what of migr-ctr it needs
verb='set -euo pipefail
	name=one dir=$HOUSE/at prefix=$HOUSE lock=9 HOSTNAME=n1
	die() { echo "migr-ctr: $*" >&2; exit 1; }
	. "$1/vm-images/ctr/layer.sh"
	. "$1/vm-images/ctr/driver.sh"
	rdma_files() { cat "$HOUSE/files" 2>/dev/null || true; }
	first_pid() { echo 1; }
	come_s=2
	shift
	"drive_$@"'
door=$tmp/door
going='' # who has it
# begins VERB IMAGES [HOST]: its words are given by this process, at $to, and it says at $says
begins()
{
	rm -rf "$door" "$tmp/layer" "$tmp/shadow"
	mkdir -p "$door" "$tmp/images"
	mkfifo "$door/go" "$door/says"
	exec {to}<>"$door/go" {says}<>"$door/says"
	MIGR_CTR_DOOR=$door bash -c "$verb" bash "$tree" "$@" \
		</dev/null 9>"$tmp/lock" {to}>&- {says}>&- 2>"$door/complaints" &
	going=$!
}
connections() { rm -rf "$tmp/images"; begins connections "$tmp/images" n9; }
ahead() { begins ahead "$tmp/images"; }
says() # WORD
{
	local word

	read -r -t 30 -u "$says" word || fail "it does not say $1: $(<"$door/complaints")"
	[ "$word" = "$1" ] || fail "it says $word, and not $1"
}
tell() { echo "$1" >&"$to"; }
dies() { exec {to}>&-; }
another() { exec {to}<>"$door/go"; }
ends() # well|badly [TEXT]
{
	local how=well

	until_true eval "! kill -0 $going 2>/dev/null"
	wait "$going" || true
	exec {to}>&- {says}>&-
	[ "$(cat "$door/runc" 2>/dev/null)" = 0 ] || how=badly
	[ $how = "$1" ] || fail "it has ended $how: $(<"$door/complaints")"
	tail -n 1 "$door/complaints" | grep -q -e "${2-}" ||
		[ -z "${2-}" ] || fail "it does not say '$2': $(<"$door/complaints")"
	rm -f "$tmp"/does_*
}
layer_heard() # LINE...: and nothing else
{
	local heard

	heard=$(xargs <"$tmp/layer") || true
	[ "$heard" = "$*" ] || fail "migr-layer has heard: $heard"
}
layer_does() { echo "$2" >"$tmp/does_$1"; } # WORD SCRIPT

suspended()
{
	connections
	says recorded
	echo '[{}]' >"$tmp/images/ahead/made"
	tell lead
	says led
	tell suspend
	says suspended
}

say "all of it"
suspended
grep -q record "$tmp/images/ahead/records" || fail "there is no record"
grep -q peers "$tmp/images/ahead/peers" || fail "there are no peers"
[ ! -e "$tmp/images/ahead/late" ] || fail "they are told twice"
flock -n "$tmp/lock" true || fail "it has the container's lock"
tell arrived
ends well
layer_heard record made 4 '[{}]' stop restored n9
grep -q suspend_ms "$door/timing" || fail "it does not say how long it took"

say "it is given up: before anything is stopped, and after it"
connections
says recorded
tell back
ends well
layer_heard record
suspended
tell back
ends well
layer_heard record made 4 '[{}]' stop aborted

say "whoever gives the words dies, and another one comes"
suspended
dies
until_true pgrep -x -P $going sleep # it has seen that
another
tell back
ends well
layer_heard record made 4 '[{}]' stop aborted
say "while all are told to stop, too"
layer_does stop 'until [ -e "$HOUSE/may" ]; do sleep 0.05; done'
connections
says recorded
tell suspend
until_true grep -qsx stop "$tmp/layer"
dies
touch "$tmp/may"
another
tell back
says suspended
ends well
layer_heard record stop aborted

say "after some time, too"
suspended
sleep 3 # that is more than come_s
dies
until_true pgrep -x -P $going sleep
another
tell back
ends well
layer_heard record made 4 '[{}]' stop aborted

say "or nobody comes: it is looked for where it is"
connections
says recorded
dies
ends well
layer_heard record
suspended
dies
ends well
layer_heard record made 4 '[{}]' stop looks

say "what migr-layer refuses"
layer_does begin 'echo "failed the peer of QP 17" >&2; exit 1'
connections
ends badly 'failed the peer of QP 17'
layer_does stop 'echo "failed send queues" >&2; exit 1'
connections
says recorded
tell suspend
ends badly 'failed send queues'
layer_does record 'printf "records 2\n[]\nrecorded\n"; continue'
echo uverbs0 >"$tmp/files"
echo 'echo "{\"processes\": []}"' >>"$tmp/bin/migrd-say"
connections
ends badly 'migrd here knows no process of it'
layer_heard record
rm "$tmp/files"

say "or it dies"
layer_does record 'kill -KILL $$'
connections
ends badly 'migr-layer is gone, and has not said why'
layer_does stop 'kill -KILL $$'
connections
says recorded
tell suspend
ends badly 'connections of one may be lost'
suspended
layer_does aborted 'kill -KILL $$'
tell back
ends badly 'migr-layer is gone, and has not said why'

say "a partner is lost, and the others go on"
suspended
layer_does restored 'echo "migr-layer: n2: process 7: it has ended: its connections are lost" >&2
	echo "migr-layer: something else" >&2'
tell arrived
ends badly 'process 7: .*are lost'

say "partners that could make nothing ahead are told of late"
layer_does record 'printf "records 2\n[]\nrecorded\n"; continue'
layer_does stop 'printf "peers %s\n%s\n" ${#peers} "$peers"'
connections
says recorded
tell suspend
says suspended
grep -q peers "$tmp/images/ahead/late" || fail "they are not told"
tell back
ends well

shadow_heard()
{
	local heard

	heard=$(cut -d' ' -f1 "$tmp/shadow" | xargs) || true
	[ "$heard" = "$*" ] || fail "migr-presetup has heard: $heard"
}

say "where it goes: shadow processes make, connect, and hand over"
mkdir -p "$tmp/images/ahead"
echo '[{"pid":1,"record":{}}]' >"$tmp/images/ahead/records"
echo '[{"pid":1,"peers":[]}]' >"$tmp/images/ahead/peers"
rm -f "$tmp/images/ahead/late"
ahead
says made
[ "$(<"$tmp/images/ahead/made")" = '[{"pid":1,"made":[[1,2,"::1"]]}]' ] ||
	fail "it has made: $(<"$tmp/images/ahead/made")"
tell hand
ends well
shadow_heard record connect hand

say "with an address, when that is there"
echo 10.10.0.7@3 >"$tmp/at/rdma"
ahead
says made
[ "$(<"$tmp/images/ahead/made")" = '[]' ] || fail "it has connected"
tell connect
until_true grep -qs connect "$tmp/shadow"
tell hand
ends well
shadow_heard record connect hand
rm "$tmp/at/rdma"

say "it is given up, or nobody comes: they end"
ahead
says made
tell stop
ends well
absent_shadows() { ! pgrep -f "$tmp/bin/migr-presetup"; }
absent_shadows || fail "a shadow process is left"
ahead
says made
dies
ends well
absent_shadows || fail "a shadow process is left"

say "one that fails is left out"
touch "$tmp/shadow_fails"
ahead
says made
tell hand
ends well
[ "$(<"$tmp/images/ahead/made")" = '[]' ] || fail "it has made something"
