# shellcheck shell=bash disable=SC2034,SC2154 # shared with migr-podman
# SPDX-License-Identifier: GPL-2.0
#
# Part of migr-podman: the verbs. At the source podman does not know of the move until it is over:
# runc dumps its container, and when that is held, podman packs what it has of it, as for an export,
# with a runtime that dumps nothing. At the target podman restores that, with the images where it
# expects them, and its CRIU waits until it is granted.

# Neither podman nor what it leaves running keeps the lock. It waits for others, who may wait
# for ever, and what stands still meanwhile has partners that do not.
patience=60 # s
pod()
{
	local rc=0

	timeout -k 5 "$patience" podman "$@" {lock}>&- || rc=$?
	[ $rc != 124 ] || echo "podman $1 has not come to its end in $patience s" >&2
	return $rc
}

about=''
its() { jq -er "$1" <<<"$about"; } # FILTER
is() { jq -e "$1" <<<"$about" >/dev/null; }

# Names are podman's, not the beginning of an ID. That it cannot tell is no answer.
look()
{
	local said rc=0

	said=$(pod container inspect "$name" 2>&1) || rc=$?
	[ $rc = 0 ] || [[ $said == *'no such container'* ]] || die "podman: exit code $rc, $said"
	about=$(sed -n '/^\[/,$p' <<<"$said" | jq -ec --arg name "$name" \
		'.[0] | select(.Name == $name)')
}

podman_list()
{
	local all='[]'

	! command -v podman >/dev/null ||
		all=$(timeout -k 5 20 podman ps -a --format json | jq -c 'map({ name: .Names[0],
			pid: (if .State == "running" then .Pid else null end) })') ||
		die "podman does not say what containers it has"
	jq -cn --argjson containers "$all" '{ $containers }'
}

exists() # NAME
{
	local rc=0

	pod container exists "$1" || rc=$?
	[ $rc -le 1 ] || die "podman: exit code $rc, it does not say whether there is $1"
	return $rc
}

drive_owns() { command -v podman >/dev/null && look; }

# What has changed of its image podman 5.4 looks for at the host, and packs if it finds a file of
# that name there. All else it would leave behind, and say nothing. And what was removed it
# removes there last, with all that has come to be in its place.
must_have_changed_nothing() # PID
{
	local said path

	[ -d "/proc/${1:-none}/root" ] || die "$name does not run here"
	if ! said=$(pod diff --format json "$name") || ! jq -e \
		'[.changed, .deleted] | all(. == null or all(.[]; type == "string"))' <<<"$said" >/dev/null; then
		die "podman does not say what $name has changed"
	fi
	while IFS= read -r -d '' path; do
		[ ! -d "/proc/$1/root$path" ] || [ -L "/proc/$1/root$path" ] ||
			die "$name has removed $path of its image and made it anew, which podman would leave behind"
	done < <(jq -j '.deleted // [] | .[] + "\u0000"' <<<"$said")
	while IFS= read -r -d '' path; do
		[ ! -d "/proc/$1/root$path" ] || [ -L "/proc/$1/root$path" ] || continue
		if [ ! -e "$path" ] || [ -d "$path" ]; then
			die "$name has changed $path of its image, which podman would leave behind"
		fi
	done < <(jq -j '.changed // [] | .[] + "\u0000"' <<<"$said")
}

# What podman or CRIU would not carry to another host, or the host would start again
must_move()
{
	look || die "$name does not run here"
	is '.State.Running' || die "$name does not run here, it is $(its .State.Status)"
	is '.OCIRuntime == "runc"' || die "$name: its runtime is $(its .OCIRuntime), not runc"
	is '.Pod == ""' || die "$name is in a pod"
	is '.Dependencies == []' || die "$name depends on other containers"
	is '.Rootfs == ""' || die "$name has a folder as its root, and no image"
	is '.HostConfig.UsernsMode == ""' || die "$name has a user namespace"
	is '.HostConfig.RestartPolicy.Name | . == "" or . == "no"' ||
		die "$name is started again when it ends (--restart)"
	is '.Config.Healthcheck.Test | . == null or . == [] or . == ["NONE"]' ||
		die "$name has a healthcheck, with which podman does not go on"
	is '.Config.Labels.PODMAN_SYSTEMD_UNIT == null' || die "$name is a unit of systemd"
	must_not_be_started
	is '.HostConfig.IpcMode | . == "shareable" or . == "private"' ||
		die "$name has the shared memory of others (--ipc)"
	is '.HostConfig | .PidMode == "private" and .UTSMode == "private"' ||
		die "$name has a namespace of others (--pid, --uts)"
	# one in the environment is shown as stars
	is '(.Config.Secrets | . == null or . == []) and
		all(.Config.Env[]?; endswith("=*******") | not)' ||
		die "$name has a secret of this host (--secret)"
	is '.HostConfig.Cgroups | . == "default" or . == "no-conmon"' ||
		die "$name has no cgroup of its own (--cgroups)"
	is '.HostConfig.PortBindings == {}' || die "$name has published ports"
	is 'all(.Mounts[]; .Type != "volume")' || die "$name has a volume"
	must_have_mounted_folders
	is '.HostConfig.NetworkMode == "bridge" and (.NetworkSettings.Networks | length == 1)' ||
		die "$name has not one network of a bridge"
}

# An overlay that it has made podman calls a folder, as one that the host has.
must_have_mounted_folders()
{
	local storage

	storage=$(its '.StaticDir | sub("-containers/[0-9a-f]{64}/userdata$"; "")')
	if ! is 'all(.Mounts[]; .Type == "bind" and (.Source | startswith("/")))' ||
		awk -v of="$storage" '
			$5 != "/" && / - [^ ]*overlay/ && index($NF, "dir=" of) { found = 1 }
			END { exit !found }' "/proc/$(its .State.Pid)/mountinfo"; then
		die "$name has something mounted that is no folder of the host"
	fi
}

# By whoever sees that it has ended: a unit whose program is podman, or who waits for it there
units=({/etc,/run,/usr/local/lib,/usr/lib}/systemd/system)
must_not_be_started()
{
	local at pid words

	while IFS= read -r -d '' at; do
		! is_started_by "$at" || die "$name is started by a unit of systemd ($at)"
	done < <(grep -rlsZ podman "${units[@]}" || true)
	for pid in $(pgrep -x podman || true); do
		mapfile -d '' words 2>/dev/null <"/proc/$pid/cmdline" || continue
		! is_waited_for "${words[@]}" ||
			die "$name has somebody who waits for its end (pid $pid): run it with -d"
	done
}

# Podman takes the beginning of an ID, too.
is_called() # WORD
{
	[ "$1" = "$name" ] || { [[ $1 =~ ^[0-9a-f]{3,}$ ]] && [[ $(its .Id) = "$1"* ]]; }
}

is_started_by() # UNIT
{
	local line words

	while IFS= read -r line; do
		[[ $line = *podman* && $line != [\#\;]* ]] || continue
		read -ra words <<<"${line//[\"\'=]/ }"
		! is_waited_for "${words[@]}" || return 0
	done < <(sed ':a; /\\$/ { N; s/\\\n/ /; ba }' "$1" 2>/dev/null)
	return 1
}

# The words after a program's name, as they were given
zero() { shift; [ $# = 0 ] || printf '%s\0' "$@"; }

# By "podman run --name NAME", "podman start ID", or the very words by which it was made
is_waited_for() # WORD...
{
	local verb='' word after=''

	! cmp -s <(its '.Config.CreateCommand[1:][] | . + "\u0000"' | tr -d '\n') <(zero "$@") ||
		return 0
	for word in "${@:2}"; do
		if [ -z "$verb" ]; then
			[[ $word != @(run|start|restart|attach|wait) ]] || verb=$word
		elif [ "$verb" != run ]; then
			! is_called "$word" || return 0
		elif [ "$word" = "--name=$name" ] || [ "$after $word" = "--name $name" ]; then
			return 0
		fi
		after=$word
	done
	return 1
}

# Its link and its addresses, as they are; here its peer is plugged into a bridge.
veth='' bridge='' ips=''
look_at_network() # PID
{
	local index

	netns=$(ip netns identify "$1")
	[ -n "$netns" ] || die "$name has no network that has a name"
	read -r link mac index ips < <(ip -n "$netns" -j addr show type veth | jq -er '
		if length == 1 then .[0] else empty end |
		[.ifname, .address, .link_index, ([.addr_info[] |
			select(.scope == "global") | .local] | join(","))] | join(" ")') ||
		die "$name has not one link"
	read -r veth bridge < <(ip -j link show type veth | jq -er --argjson index "$index" '
		.[] | select(.ifindex == $index) | .ifname + " " + .master // ""') || true
	[ -n "$bridge" ] || die "$name is plugged into no bridge"
}

network_of() # NAME: the bridge of a network that hosts share
{
	pod network inspect "$1" 2>/dev/null | jq -er '.[0] |
		select(.driver == "bridge" and .options.mode == "unmanaged") | .network_interface'
}

drive_describe()
{
	local network

	must_move
	need_hook
	must_have_changed_nothing "$(its .State.Pid)"
	look_at_network "$(its .State.Pid)"
	network=$(its '.NetworkSettings.Networks | keys[0]')
	network_of "$network" >/dev/null ||
		die "$name: its network $network is this host's own, not one of \"mode\": \"unmanaged\""
	jq -c --arg network "$network" --arg at "$dir" --arg ips "$ips" --arg mac "$mac" '{
		pid: .State.Pid, cgroup: ("/sys/fs/cgroup" + .State.CgroupPath),
		by: "protocol", leaves: true, files: { $at, names: ["about"] },
		spec: { id: .Id, image: .Image, from: .ImageName, $network, $ips, $mac,
			mounted: [.Mounts[] | .Source] } }' <<<"$about"
}

# What is known of it without podman, here, and where it is to come to; nothing once it is over.
remember() # KEY VALUE [KEY VALUE]...
{
	[ -d "$dir" ] || install -d -m 700 "$state" "$dir"
	for (( ; $#; )); do
		printf '%s\n' "$2" >"$dir/$1"
		shift 2
	done
}
recall() # VARIABLE...
{
	local key

	for key; do
		printf -v "$key" %s "$(cat "$dir/$key" 2>/dev/null)"
	done
}
forget() { rm -rf --one-file-system "$dir"; }

# While another process may have remembered it, or podman knows it by its name
know()
{
	recall runc_id
	[ -n "$runc_id" ] || ! look || runc_id=$(its .Id)
	[ -n "$runc_id" ]
}

# That runc cannot tell is no answer: that ends the shell, by a code of its own.
cannot_tell=3
first_pid()
{
	local said

	said=$(runc state "$runc_id" 2>&1) || {
		[[ $said != *'does not exist'* ]] || return 1
		echo "migr-podman: runc: $said" >&2
		exit $cannot_tell
	}
	jq -er 'select(.status != "stopped") | .pid' < <(sed -n '/^{/,$p' <<<"$said")
}
runs() { know && first_pid >/dev/null; }

drive_runs() { if runs; then echo '{"runs":true}'; else echo '{"runs":false}'; fi; }

# ---- the source -------------------------------------------------------------------

# Of a container of that name that there was before somebody may have gone and left this. Who
# asks has the lock.
mine()
{
	if [ -e "$dir/bundle" ]; then
		recall runc_id veth
		! first_pid >/dev/null || return 0
		forget
	fi
	look || die "$name does not run here"
	look_at_network "$(its .State.Pid)"
	runc_id=$(its .Id)
	remember about "$about" runc_id "$runc_id" netns "$netns" link "$link" mac "$mac" \
		veth "$veth" bridge "$bridge" ip "$ips" bundle "$(its .StaticDir)"
}

drive_round()
{
	mine
	round "$@"
}

drive_checkpoint()
{
	mine
	remember images "$1"
	checkpoint "$@"
}

# It is stopped, and all of its memory is dumped. That somebody could not be told that its addresses
# leave is said when it is over.
drive_leave()
{
	recall runc_id netns link mac veth images
	must_have_changed_nothing "$(first_pid)"
	: >"$dir/arrived" # by whomever
	: >"$dir/left"
	leaves 2>"$dir/amiss" || true
	printf '[engine.runtimes]\nrunc = ["%s"]\n' "$parts/dumps-nothing" >"$dir/containers.conf"
	patience=300
	CONTAINERS_CONF_OVERRIDE=$dir/containers.conf pod container checkpoint --leave-running \
		--compress none --export "$images/image/podman.tar" "$runc_id" >/dev/null
}

# What podman has left of that: it removes it with its container, and not before.
unpacked=(artifacts checkpoint rounds {dump,restore}.log stats-{dump,restore} devshm-checkpoint.tar
	network.status rootfs-diff.tar deleted.files volumes)

# What cannot be done does not keep the rest from it. Who may run has his network again.
drive_back()
{
	local bundle rc=0 runs=0

	recall runc_id netns link mac veth bridge bundle
	[ -n "$bundle" ] || return 0 # it was not begun
	rm -f "$dir/amiss"
	rm -rf --one-file-system "${unpacked[@]/#/$bundle/}" || rc=1
	(runs) || runs=$?
	if [ $runs != 1 ]; then
		ip link set dev "$veth" master "$bridge" || rc=1
		[ ! -e "$dir/left" ] || (arrives back) || rc=1
		(rounds_end) || rc=1
	fi
	[ $runs != $cannot_tell ] || return $cannot_tell
	forget
	return $rc
}

drive_gone() # NODE: it runs there
{
	local amiss

	know || return 0
	amiss=$(cat "$dir/amiss" 2>/dev/null) || true
	ends
	[ -z "$amiss" ] || die "${amiss#migr-ctr: }"
}

ends()
{
	pod rm -f -i -t 0 "$runc_id" >/dev/null || true
	runc delete -f "$runc_id" 2>/dev/null || true
	if first_pid >/dev/null || exists "$runc_id"; then
		die "$name cannot be ended"
	fi
	forget
}

# ---- the target -------------------------------------------------------------------

field() { its ".$1 | strings | select(test(\"^$2\$\"))" || die "this is no spec"; } # NAME FORM
takes_spec()
{
	local image from network at

	about=$(cat)
	id=$(field id '[0-9a-f]{64}') || exit
	image=$(field image '[0-9a-f]{64}') || exit
	from=$(field from '[^-[:space:]][^[:space:]]*') || exit
	network=$(field network '[^-[:space:]][^[:space:]]*') || exit
	ips=$(field ips '[0-9a-f.:,]+') || exit
	mac=$(field mac '([0-9a-f]{2}:){5}[0-9a-f]{2}') || exit
	command -v nft >/dev/null || die "there is no nft here"
	[ "$(pod image inspect -f '{{.Id}}' "$from" 2>/dev/null)" = "$image" ] ||
		die "$name needs the image $from, which is not here, or another one"
	at=$(network_of "$network") || at=none
	[ -d "/sys/class/net/$at/bridge" ] ||
		die "$name needs the network $network, and there is none of a bridge here"
	while read -r at; do
		[ -e "$at" ] || die "$name has $at mounted, which is not here"
	done < <(its '.mounted[] | strings')
	! exists "$id" || die "$name exists here under another name"
}

drive_vacant() # with a spec as stdin
{
	local id ips mac

	command -v podman >/dev/null || die "there is no podman here"
	need_hook
	! exists "$name" || die "$name exists here, and is another one: podman rm $name"
	[ ! -e "/var/lib/migr-ctr/$name/run" ] || die "$name exists here, as one of migr-ctr"
	takes_spec
}

drive_make() # with a spec as stdin
{
	local id ips mac at

	takes_spec
	at=$(pod info -f '{{.Store.GraphRoot}}/{{.Store.GraphDriverName}}') ||
		die "podman does not say where its containers are"
	remember runc_id "$id" ip "$ips" mac "$mac" bundle "$at-containers/$id/userdata"
	jq -cn --arg at "$dir" '{ $at, names: ["about"] }'
}

# Its network is there before its connections are: what comes for one would be answered with a
# reset. So nothing comes, and nobody hears of it.
table() { echo "migr_${runc_id:0:12}"; }
hold()
{
	nft -f - <<-END
		table bridge $(table) {
			chain from_ports {
				type filter hook prerouting priority -300
				ether daddr $mac drop
				ether saddr $mac drop
			}
			chain from_here {
				type filter hook output priority -300
				ether daddr $mac drop
			}
		}
	END
}
let_go() { nft delete table bridge "$(table)" 2>/dev/null || true; }

# Podman gives the runtime four minutes, so it is started only when all is here. Nor does it ever
# have what comes to run later: CRIU is told to give up, if it has not been told to go on.
# That pipe is closed, by whatever numbers it is open here.
hush() # DESCRIPTOR
{
	local fd all=()

	for fd in "/proc/$BASHPID/fd"/*; do
		[ ! "$fd" -ef "/proc/$BASHPID/fd/$1" ] || all+=("${fd##*/}")
	done
	for fd in "${all[@]}"; do
		exec {fd}>&-
	done
}

drive_restore() # IMAGES
{
	local any go word='' rc=0

	recall runc_id mac bundle
	exec 9>&1 >/dev/null </dev/null
	# shellcheck disable=SC2094 # it is a pipe, which has an end only after somebody could write
	exec {any}<>"$MIGR_CTR_DOOR/go" {go}<"$MIGR_CTR_DOOR/go"
	exec {any}>&-
	echo ready >&9
	read -r word <&"$go" || true
	exec {go}<&-
	[ "$word" = restore ] || exit
	(
		hush 9 # what podman leaves running has nothing more to say
		restores "$1"
	) || rc=$?
	echo $rc >"$MIGR_CTR_DOOR/runc" # for who comes later, too
}
# An image's parent is where it was: beside it
binds() # FOLDER NAME
{
	mkdir -p "$bundle/$2" && mount --bind "$1" "$bundle/$2" && mount --make-private "$bundle/$2"
}
unbind()
{
	[ -z "$bundle" ] || umount -l "$bundle/checkpoint" "$bundle/rounds" 2>/dev/null || true
}

restores() # IMAGES
{
	local timer

	export MIGR_CTR_HOLD=1
	mkdir -p "$1/logs" "$1/rounds" && binds "$1/image" checkpoint && binds "$1/rounds" rounds &&
		hold || return
	rm -f "$bundle/restore.log"
	gives_up {lock}>&- &
	timer=$!
	patience=0
	pod container restore --keep --tcp-established --import "$1/image/podman.tar" || {
		kill $timer
		echo stop 1<>"$MIGR_CTR_DOOR/go"
		grep -h Error "$bundle/restore.log" 2>/dev/null | tail -n 20 >&2
		return 1
	}
	kill $timer
	# which may have come to its end, and have gone
	cp "$bundle/restore.log" "$1/logs/" || true
}

# Before podman loses its patience, for it would take away what has just been granted: that is
# for its runtime alone, of which CRIU's log tells that it has begun.
gives_up()
{
	until [ -e "$bundle/restore.log" ]; do sleep 1; done
	SECONDS=0
	until [ $SECONDS -ge 200 ]; do sleep 1; done
	echo stop 1<>"$MIGR_CTR_DOOR/go"
}

# The images are somewhere else, and go with that.
clear_away()
{
	unbind
	rm -rf --one-file-system "${unpacked[@]/#/$bundle/}"
}

# It runs, and is to be reached before anything else; or it has come to its end meanwhile.
drive_attach()
{
	local bundle rc=0

	recall runc_id bundle
	[ -n "$bundle" ] || return 0 # that was done
	let_go
	(attaches) || rc=$?
	clear_away
	forget
	return $rc
}
attaches()
{
	local rc=0

	first_pid >/dev/null || return 0
	look_at_network "$(first_pid)"
	(arrives arrive) || rc=1
	if ! look || ! is '.State.Running'; then
		die "$name runs here, but podman does not know it"
	fi
	return $rc
}

drive_unmake()
{
	local bundle

	recall runc_id bundle
	[ -n "$runc_id" ] || return 0
	ends_here
}
ends_here()
{
	unbind
	ends
	# if podman has not come to make it
	[ -z "$bundle" ] ||
		rmdir "$bundle"/{checkpoint,rounds} "$bundle" "${bundle%/*}" 2>/dev/null || true
	let_go
}
