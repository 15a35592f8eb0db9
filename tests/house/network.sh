#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
# shellcheck disable=SC2016 # expanded elsewhere, or by nobody
#
# migr-ctr: which addresses a container may have, and who is told where they live: neighbours, or
# the hook in their place. That is run only if nobody but root can have written it, has none of
# what is ours, and whatever becomes of it the container goes on.

. "$(dirname "$0")/lib.sh"

mkdir -p "$tmp"/{bin,ctr,etc,netns,libexec/migr-ctr}
export HOUSE=$tmp HOUSE_PID=$$

tool() # NAME, with its script as stdin
{
	cat >"$tmp/bin/$1"
	chmod +x "$tmp/bin/$1"
}
here() # FILE: what it says of a node is of this one, and a hook has less time
{
	sed "s,/etc/migr-ctr,$tmp/etc,; s,/run/netns,$tmp/netns,; s,/var/lib/migr-ctr,$tmp/ctr,
		s,/run/node/,$tmp/,; s,/dev/infiniband,$tmp/dev,g; s,/run/migrd,$tmp/migrd,
		s,^\(secret_[a-z]*\)=.*,\1=($tmp/\1),; s/^hook_s=[0-9]*/hook_s=2/" "$1"
}
here "$tree/vm-images/migr-ctr" | tool migr-ctr
for t in "$tree"/vm-images/ctr/*.sh; do
	here "$t" >"$tmp/libexec/migr-ctr/${t##*/}"
done
for t in mount mountpoint; do echo '#!/bin/sh' | tool $t; done
printf '%s\n' '#!/bin/sh' 'exit 1' | tool umount
# A hook does not hand on what these know from here.
printf '%s\n' '#!/bin/bash' 'echo "$*" >>"${0%/bin/*}/announced"' | tool migr-announce
tool ip <<'END_OF_IP'
#!/bin/bash
HOUSE=${0%/bin/*}
case "$*" in
"netns add "*) ln -s "/proc/$HOUSE_PID/ns/net" "$HOUSE/netns/$3" ;;
"netns del "*) rm "$HOUSE/netns/$3" ;;
"netns exec "*" migr-announce "*) exec "${@:4}" ;;
"route "*)
	echo "$*" >>"$HOUSE/routes"
	[ "$2" != del ]
	;;
*" -b -") cat >"$HOUSE/batch" ;;
*" master lan") touch "$HOUSE/plugged" ;;
*" nomaster") rm "$HOUSE/plugged" ;;
esac
END_OF_IP
tool runc <<'END_OF_RUNC'
#!/bin/bash
name=${*: -1}
while [ $# -gt 0 ]; do
	case $1 in
	run)
		sleep 600 &
		echo $! >"$3/pid.new"
		;;
	--pid-file) mv "${2%/*}/pid.new" "$2" 2>/dev/null || { sleep 600 & echo $! >"$2"; } ;;
	delete)
		pid=$(cat "$HOUSE/ctr/$name/pid" 2>/dev/null) || exit 0
		kill -KILL "$pid" 2>/dev/null
		while [ -n "$(tr '\0' . <"/proc/$pid/cmdline")" ]; do sleep 0.05; done 2>/dev/null
		;;
	esac
	shift
done
END_OF_RUNC
# of a spec a field that is a string; nothing else matters here
tool jq <<'END_OF_JQ'
#!/usr/bin/env python3
import json, sys
if sys.argv[1] == "-er":
	try:
		got = json.load(sys.stdin).get(sys.argv[2].split()[0][1:])
	except ValueError:
		got = None
	sys.exit(print(got) if isinstance(got, str) else 1)
sys.exit(1 if "-e" in sys.argv else print("{}"))
END_OF_JQ
PATH=$tmp/bin:$PATH
ends()
{
	rm -f "$tmp/etc/hook"
	migr-ctr delete one >/dev/null 2>&1 || true
	end_house
}
trap ends EXIT

refused() # REASON COMMAND...
{
	local said

	! said=$("${@:2}" 2>&1 </dev/null) || fail "not refused: ${*:2}"
	[[ $said = *"$1"* ]] || fail "'$1' is not in: $said"
}
create() { migr-ctr create one "$1" -- true; } # ADDRESS
told() { [ "$(cat "$tmp/$1" 2>/dev/null)" = "$2" ] || fail "$1: $(cat "$tmp/$1")"; } # FILE TEXT
nothing_left() { [ ! -e "$tmp/ctr/one" ] || fail "left: $(ls "$tmp/ctr/one")"; }
runs() { migr-ctr pid one >/dev/null || fail "it does not run on"; }

say "addresses of IPv4 and IPv6, whose neighbours are told"
create 10.20.0.143,fd20::143
told announced "eth0 10.20.0.143 fd20::143"
grep -qx 'addr add 10.20.0.143/24 dev eth0' "$tmp/batch" || fail "$(<"$tmp/batch")"
grep -qx 'addr add fd20::143/64 dev eth0 nodad' "$tmp/batch" || fail "$(<"$tmp/batch")"
[ -e "$tmp/plugged" ] || fail "it is not plugged in"
migr-ctr delete one
nothing_left
create 10.20.0.143
told announced "eth0 10.20.0.143 fd20::143
eth0 10.20.0.143"
! grep -q nodad "$tmp/batch" || fail "$(<"$tmp/batch")"
migr-ctr delete one

say "what is no address, of who creates and of other hosts"
bad4=(10.20.0 10.20.0.1.1 10.20.0.256 010.20.0.1 10.20.0.0 10.20.0.255 127.0.0.1 224.0.0.1
	'10.20.0.1 ' 10.20.0.1/24 fd20::1 '' 'x[$(touch $HOUSE/bad)]')
bad6=(fd20::g fd20 : :: ::1 fe80::1 ff02::1 ::ffff:10.20.0.1 1:2:3:4:5:6:7 1::2::3 1:2:3:4:5:6:7:8:9
	fd20::1/64 fd20::1%lan 'fd20::1 ' 'fd20::1,fd20::2' '' 'x[$(touch $HOUSE/bad)]')
. "$tree/vm-images/ctr/address.sh"
for a in "${bad4[@]}"; do ! is_host_ipv4 "$a" || fail "that is one: $a"; done
for a in "${bad6[@]}"; do ! is_host_ipv6 "$a" || fail "that is one: $a"; done
for a in 1.2.3.4 223.254.0.1; do is_host_ipv4 $a || fail "that is none: $a"; done
for a in fd20::1 FD20::1 1:2:3:4:5:6:7:8 1:2:3:4:5:6:7:: 2001:db8:0:0:1::1; do
	is_host_ipv6 $a || fail "that is none: $a"
done
arrives() # ADDRESS
{
	printf '%s\n' "$1" / '' {} 2 '[]' 2 '[]' | timeout 20 migr-ctr receive one
}
make() # ADDRESS
{
	python3 -c 'import json, sys; print(json.dumps({"ip": sys.argv[1], "root": "/",
		"rdma": "", "config": "{}"}))' "$1" | migr-ctr driver one make
}
for how in create arrives make; do
	refused "'10.20.0.256' is no IPv4 address of a host" $how 10.20.0.256
	refused "'' is no IPv4 address of a host" $how ,fd20::1
	refused "'fe80::1' is no IPv6 address of a host" $how 10.20.0.143,fe80::1
	refused "'' is no IPv6 address of a host" $how 10.20.0.143,
	refused "'x[\$(touch \$HOUSE/bad)]' is no" $how '10.20.0.143,x[$(touch $HOUSE/bad)]'
	nothing_left
done
[ ! -e "$tmp/bad" ] || fail "an address was run"
for spec in '' '[]' '{"ip": 7, "root": "/", "rdma": "", "config": ""}'; do
	refused "this is no spec" migr-ctr driver one make <<<"$spec"
done

# ---- the hook ----

hook=$tmp/etc/hook
chmod 755 "$tmp/etc"
hook() # LINE...: what it does beside taking notes
{
	rm -rf "$hook" "$tmp/called"
	cat >"$hook" - <(printf '%s\n' "$@") <<-END
	#!/bin/bash
	echo "\$*" >>$tmp/called
	END
	chmod 755 "$hook"
}

say "a hook in the place of that: what it is told, and what it has"
rm "$tmp/announced"
hook "cat /proc/self/environ >$tmp/environ" \
	"ls /proc/\$\$/fd | grep -vxE '[012]|255' >$tmp/open" "cat >$tmp/input"
create 10.20.0.143,fd20::143
told called "arrive one c-one 02:00:0a:14:00:8f 10.20.0.143 fd20::143"
[ ! -e "$tmp/announced" ] || fail "neighbours are told, too"
told open ''
told input ''
[ "$(tr '\0' '\n' <"$tmp/environ" | sed 's/=.*//' | grep -vxE 'PWD|SHLVL|_' |
	sort | xargs)" = "HOME LC_ALL MIGR_CTR_RDMA PATH" ] || fail "$(tr '\0' '\n' <"$tmp/environ")"

say "one that is not its last word when it moves: it leaves once, and comes back"
hook
migr-ctr driver one leave
migr-ctr driver one leave
migr-ctr driver one back
migr-ctr driver one back
told called "leave one c-one 02:00:0a:14:00:8f 10.20.0.143 fd20::143
back one c-one 02:00:0a:14:00:8f 10.20.0.143 fd20::143"
runs

say "it leaves when it is deleted"
hook
migr-ctr delete one
told called "leave one c-one 02:00:0a:14:00:8f 10.20.0.143 fd20::143"
nothing_left

say "one that fails: nothing is created"
hook 'echo "no such" >&2; echo "route table" >&2' '[ "$1" != arrive ]'
refused "$hook arrive: exit code 1: route table" create 10.20.0.143
told called "arrive one c-one 02:00:0a:14:00:8f 10.20.0.143
leave one c-one 02:00:0a:14:00:8f 10.20.0.143"
nothing_left

say "but what is there runs on, and it is said when all is done"
hook
create 10.20.0.143
hook 'echo no >&2; exit 7'
said=$(migr-ctr driver one leave 2>&1) || fail "it does not leave: $said"
refused "$hook back: exit code 7: no" migr-ctr driver one back
runs
rm "$tmp/plugged"
refused "$hook arrive: exit code 7: no" migr-ctr driver one attach
[ -e "$tmp/plugged" ] || fail "it is not plugged in"
runs
migr-ctr driver one leave
refused "$hook leave: exit code 7: no" migr-ctr driver one gone n9
[ ! -e "$tmp/ctr/one/run" ] || fail "it is not gone"
grep -qx n9 "$tmp/ctr/one/been" || fail "nobody knows where it is"
hook
migr-ctr delete one >/dev/null
nothing_left

say "that of examples/, with routes"
cp "$tree/examples/hook-route" "$hook"
printf '%s\n' here=192.0.2.1 here6=2001:db8::1 >"$tmp/etc/hook.conf"
rm -f "$tmp/announced"
create 10.20.0.143,fd20::143
migr-ctr delete one
told routes "route replace 10.20.0.143 via 192.0.2.1
route replace fd20::143 via 2001:db8::1
route del 10.20.0.143 via 192.0.2.1
route del fd20::143 via 2001:db8::1"
told announced "eth0 10.20.0.143 fd20::143"

say "one that does not end, also when signals are ignored; one that leaves somebody behind"
hook
create 10.20.0.143
hook 'trap "" TERM' 'while :; do sleep 0.1; done'
sed -i 's/timeout -k 5/timeout -k 1/' "$tmp/libexec/migr-ctr/hook.sh"
refused "$hook arrive: not done within 2 s" migr-ctr driver one attach
runs
hook "sleep 600 & echo \$! >$tmp/behind"
said=$(timeout 20 migr-ctr driver one attach 2>&1) || fail "it does not end: $said"
kill "$(<"$tmp/behind")"

say "one that somebody else could have written is not run, and nothing moves"
bad() # REASON
{
	rm -f "$tmp/called"
	for how in "migr-ctr driver one describe" "migr-ctr driver two vacant" \
		"migr-ctr move one n9" "migr-ctr create two 10.20.0.144 -- true"; do
		# shellcheck disable=SC2086 # words
		refused "$1: it is not run" $how
	done
	# what is under way goes on
	refused "$1: it is not run" migr-ctr driver one attach
	runs
	[ ! -e "$tmp/called" ] || fail "it was run"
	hook
	chmod 755 "$tmp/etc"
}
hook
for mode in 775 757; do
	chmod $mode "$hook"
	bad "others than root may write $hook"
	chmod $mode "$tmp/etc"
	bad "others than root may write $tmp/etc"
done
chown 1000 "$hook"
bad "$hook is not root's"
chmod 644 "$hook"
bad "$hook cannot be executed"
mv "$hook" "$tmp/other"
ln -s "$tmp/other" "$hook"
bad "$hook is a symbolic link"
rm "$hook"
ln -s "$tmp/none" "$hook"
bad "$hook is a symbolic link"
rm "$hook"
mkdir "$hook"
bad "$hook is no file"
migr-ctr driver one describe >/dev/null || fail "a good one is refused"
