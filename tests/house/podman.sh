#!/bin/bash
# SPDX-License-Identifier: GPL-2.0
#
# Parts of migr-podman by themselves: who would start a container again, what it has of its host,
# a runtime that cannot tell, and how long podman is waited for.
#
# shellcheck disable=SC2034,SC2317,SC2329 # what the part uses, and calls

. "$(dirname "$0")/lib.sh"

name=no.1
id=$(printf 'a%.0s' {1..64})
state=$tmp/states dir=$tmp/states/no.1
mkdir "$tmp/bin" "$tmp/units" "$tmp/proc"
PATH=$tmp/bin:$PATH
die() { echo "migr-podman: $*" >&2; exit 1; }
# shellcheck source=/dev/null
. <(sed "s,/proc/,$tmp/proc/,g" "$tree/vm-images/ctr/podman.sh")
units=("$tmp/units" "$tmp/none")
about=$(jq -cn --arg id "$id" '{ Id: $id, StaticDir: "/c/storage/overlay-containers/\($id)/userdata",
	State: { Pid: 100 }, Mounts: [],
	Config: { CreateCommand: ["podman", "run", "--rm", "im age", "sleep", "9"], Env: ["A=B"] } }')
pgrep() { echo 7; }

says() # WORDS COMMAND...: it is refused by these
{
	local said

	! said=$("${@:2}" 2>&1) || fail "not refused: $*"
	[[ $said = *"$1"* ]] || fail "it says: $said"
}

say "who waits for its end"
waits() { printf '%s\0' "$@" >"$tmp/proc/7/cmdline"; } # WORD...
mkdir "$tmp/proc/7"
while read -ra line; do
	waits "${line[@]}"
	says "somebody who waits" must_not_be_started
done <<END
podman run --name no.1 x
/usr/bin/podman --log-level info run --name=no.1 x
podman wait no.1
podman attach aaaaaaaaaaaa
podman start -a $id
podman start start no.1
END
waits /usr/bin/podman run --rm "im age" sleep 9
says "somebody who waits" must_not_be_started
while read -ra line; do
	waits "${line[@]}"
	must_not_be_started
done <<END
podman
podman run --name other no.1
podman run --rm im age sleep 9
podman start noX1
podman wait bbbbbbbbbbbb
podman ps no.1
END

say "units of systemd that start it"
waits podman
while IFS= read -r line; do
	printf '[Service]\n%b\n' "$line" >"$tmp/units/x.service"
	says "is started by a unit of systemd ($tmp/units/x.service)" must_not_be_started
done <<'END'
ExecStart=/usr/bin/podman run -d \\\\\n  --rm \\\\\n --name no.1 localhost/x
ExecStart=-/usr/bin/podman start -a "no.1"
ExecStart=podman start aaaaaaaaaaaa
ExecStart=podman run --name=no.1 x
END
while IFS= read -r line; do
	printf '[Service]\n%b\n' "$line" >"$tmp/units/x.service"
	must_not_be_started
done <<'END'
ExecStart=podman run --name other localhost/no.1
ExecStart=podman run --name noX1 x
# podman run --name no.1 x
ExecStart=podman system service
END

say "what it has mounted"
mkdir "$tmp/proc/100"
mounted() { printf '%s\n' "$@" >"$tmp/proc/100/mountinfo"; }
root="1 2 0:1 / / rw - overlay overlay rw,lowerdir=/c/storage/overlay/l/X,upperdir=/c/storage/overlay/Y"
mounted "$root" "3 1 0:2 / /x rw - ext4 /dev/sda rw" \
	"4 1 0:3 /share /z ro - overlay overlay ro,lowerdir=/sysroot/a,upperdir=/media/overlay/b"
must_have_mounted_folders
mounted "$root" "5 1 0:4 / /x rw - overlay overlay rw,lowerdir=/srv,upperdir=/c/storage/overlay-containers/$id/userdata/overlay/1/upper"
says "no folder of the host" must_have_mounted_folders

say "a runtime that cannot tell is no answer, and what is remembered stays"
runc() { cat "$tmp/runc"; return 1; }
ip() { echo "ip $*" >>"$tmp/did"; }
rounds_end() { :; }
remembered() { remember runc_id "$id" veth v1 bridge lan bundle "$tmp/bundle"; : >"$tmp/did"; }
backs() { (set -e; drive_back) 2>/dev/null; }
remembered
echo "container $id does not exist" >"$tmp/runc"
backs || fail "it has ended, and cannot go back"
[ ! -e "$dir" ] || fail "it has ended, and is remembered"
[ ! -s "$tmp/did" ] || fail "it has ended: $(cat "$tmp/did")"
remembered
echo "input/output error" >"$tmp/runc"
! backs || fail "it says that it is back"
[ -e "$dir/bundle" ] || fail "what was remembered is forgotten"
grep -qx 'ip link set dev v1 master lan' "$tmp/did" || fail "it has no network: $(cat "$tmp/did")"
rm -r "$dir"

say "what another one of that name has left is forgotten by who has the lock, and by nobody else"
look() { :; }
look_at_network() { netns=n link=l mac=m veth=v2 bridge=b ips=i; }
remembered
remember mine no
echo "container $id does not exist" >"$tmp/runc"
mine
[ ! -e "$dir/mine" ] || fail "it is believed"
[ "$(cat "$dir/veth")" = v2 ] || fail "the new one is not remembered"
grep -q forget <(sed -n '/^drive_describe/,/^}/p' "$tree/vm-images/ctr/podman.sh") && fail "describe forgets"
rm -r "$dir"

say "CRIU is told to give up 200 s after it has begun, however slow the machine is"
bundle=$tmp/bundle MIGR_CTR_DOOR=$tmp/door
mkdir "$bundle" "$MIGR_CTR_DOOR"
: >"$MIGR_CTR_DOOR/go"
slept=0
# each takes two seconds; that of the runtime begins after a while
sleep() { slept=$((slept + 1)); [ $slept != 300 ] || : >"$bundle/restore.log"; SECONDS=$((SECONDS + 2)); }
gives_up
[ $slept = 400 ] || fail "after $slept times"
[ "$(cat "$MIGR_CTR_DOOR/go")" = stop ] || fail "it is not told"
