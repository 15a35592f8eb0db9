#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# A container arrives whatever becomes of the shadow processes that make what its own will
# need. There are two, of processes 1 and 2; one of them fails at each point.

. "$(dirname "$0")/lib.sh"

mkdir -p "$tmp"/{bin,ctr,sent/image}
touch "$tmp/sent/whole"
export HOUSE=$tmp HOUSE_FAULT=''

tool() # NAME, with its script as stdin
{
	cat >"$tmp/bin/$1"
	chmod +x "$tmp/bin/$1"
}
here() # FILE: what it says of a node is of this one, and it has less patience
{
	sed "s,/run/netns,$tmp/netns,; s,/var/lib/migr-ctr,$tmp/ctr,; s,/run/node/,$tmp/,
		s,/dev/infiniband,$tmp/dev,g; s,^\(secret_[a-z]*\)=.*,\1=(),
		s/^\(make\|hand\)_s=[0-9]*/\1_s=1/" "$1"
}
here "$tree/vm-images/migr-ctr" | tool migr-ctr
mkdir -p "$tmp/libexec/migr-ctr"
for t in "$tree"/vm-images/ctr/*.sh; do
	here "$t" >"$tmp/libexec/migr-ctr/${t##*/}"
done
for t in ip mount mountpoint; do echo '#!/bin/sh' | tool $t; done
printf '%s\n' '#!/bin/sh' 'exit 1' | tool umount
tool runc <<'END'
#!/bin/sh
echo ready >"$MIGR_CTR_DOOR/says"
read -r word <"$MIGR_CTR_DOOR/go"
[ "$word" = restore ]
END
# as migr-ctr calls it: jq FILTER, for all numbers of processes; jq -c --argjson pid PID --arg
# name NAME FILTER, for what one of them has; with another -c it is the configuration, in which
# nothing is hidden (-r)
tool jq <<'END'
#!/usr/bin/env python3
import json, sys
a = sys.argv[1:]
if a[0] == "-c" and a[2] != "pid":
	sys.exit(print("{}"))
if a[0] == "-r":
	sys.exit()
for one in json.load(sys.stdin):
	if a[0] != "-c":
		print(json.dumps(one["pid"]))
	elif one["pid"] == int(a[3]):
		print(json.dumps(one.get(a[6])))
END
# HOUSE_FAULT: a signal that process 1 gets, and when
tool migr-presetup <<'END'
#!/bin/bash
may_fail() # WHEN
{
	[ "${HOUSE_FAULT#* }" != "$1" ] || [ "$record" != 1 ] ||
		kill "-${HOUSE_FAULT% *}" $$
}
read -r record
may_fail made
echo "ready {}"
while read -r word rest; do
	may_fail "$word"
	case $word in
	connect)
		{ grep -q ready "$HOUSE/said" && echo after || echo before; } \
			>>"$HOUSE/connected"
		printf 'connected 9\n%s\n' '[[1,2,3]]' ;;
	hand)
		echo "${rest##*/}" >>"$HOUSE/handed"
		echo handed
		exit
		;;
	esac
done
END
PATH=$tmp/bin:$PATH

peers='[{"pid": 1, "peers": []}, {"pid": 2, "peers": []}]'
arrives() # [RECORDS [PEERS [LATE]]]: those that are known before it stops, or only then
{
	local records=${1-'[{"pid": 1, "record": 1}, {"pid": 2, "record": 2}]'}
	local early=${2-$peers} late=${3-'[]'}

	rm -f "$tmp/handed" "$tmp/connected"
	touch "$tmp/handed" "$tmp/connected"
	{
		printf '%s\n' 10.20.0.143 / '' {} ${#records} "$records" \
			${#early} "$early" ${#late} "$late"
		for f in image whole; do tar -C "$tmp/sent" -cf - $f; done
	} | timeout 60 migr-ctr receive one >"$tmp/said" 2>"$tmp/errors" ||
		fail "it does not arrive: $(<"$tmp/errors")"
	[ "$(grep '^[a-z]' "$tmp/said" | xargs)" = "ready transfer restore attach" ] ||
		fail "it says: $(<"$tmp/said")"
	! grep -F 'exec migr-presetup' "$tmp/errors" || fail "that is nothing to say"
	! pgrep -f "$tmp/bin/migr-presetup" || fail "there is one left"
}
handed() # SOCKET...
{
	[ "$(sort "$tmp/handed" | xargs)" = "$*" ] || fail "handed: $(<"$tmp/handed")"
}

say "all is well"
arrives
handed 1.sock 2.sock
[ ! -s "$tmp/errors" ] || fail "it says: $(<"$tmp/errors")"
[ "$(xargs <"$tmp/connected")" = "before before" ] || fail "$(<"$tmp/connected")"
made='[{"pid":1,"made":[[1,2,3]]},{"pid":2,"made":[[1,2,3]]}]'
printf '%s\n' ready ${#made} "$made" transfer restore attach | diff - "$tmp/said"

say "peers that are known late"
arrives '[{"pid": 1, "record": 1}, {"pid": 2, "record": 2}]' '[]' "$peers"
handed 1.sock 2.sock
[ "$(xargs <"$tmp/connected")" = "after after" ] || fail "$(<"$tmp/connected")"
[ "$(sed -n 2,3p "$tmp/said" | xargs)" = '2 []' ] || fail "$(<"$tmp/said")"

for signal in KILL STOP; do
	for when in made connect hand; do
		say "$signal: $when"
		HOUSE_FAULT="$signal $when" arrives
		handed 2.sock
	done
done

say "what is no list of records, or of peers"
# shellcheck disable=SC2016 # nobody may expand it
for list in '' '{' 7 '{"pid": 1}' '[7]' '[{"pid": 1.5}]' \
	'[{"pid": "a[$(touch $HOUSE/bad)]", "record": 1, "peers": 1}]'; do
	arrives "$list"
	handed
	HOUSE_FAULT='' arrives '[{"pid": 1, "record": 1}]' "$list"
	handed 1.sock
	HOUSE_FAULT='' arrives '[{"pid": 1, "record": 1}]' '[]' "$list"
	handed 1.sock
done
[ ! -e "$tmp/bad" ] || fail "a list was run"

say "there is no such program"
rm "$tmp/bin/migr-presetup"
arrives
handed
