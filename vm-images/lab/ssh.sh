# shellcheck shell=bash disable=SC2154 # shared with lab
# SPDX-License-Identifier: GPL-2.0
#
# Part of lab: reaching a node.

ssh_setup()
{
	local n

	for n in 1 2 3 4 5 6 7 8 9; do
		printf 'Host n%s\n\tHostName 10.20.0.%s\n' $n $n
	done >"$dir/ssh_config"
	cat >>"$dir/ssh_config" <<-EOF
	Host *
		User root
		IdentityFile $build/images/ssh/id_ed25519
		IdentitiesOnly yes
		UserKnownHostsFile $build/images/ssh/known_hosts
		HostKeyAlgorithms ssh-ed25519
		KexAlgorithms curve25519-sha256
		Ciphers aes128-gcm@openssh.com
		ControlMaster auto
		ControlPath ssh-%n
		ControlPersist yes
		ConnectTimeout $(seconds 20)
		ServerAliveInterval $(seconds 30)
		LogLevel ERROR
	EOF
}

# A process that has the lab's network and the toolbox's root around it, for
# commands to join: to make both anew takes longer than most of what is asked of
# a node. It is ours from the beginning, so that it ends with the lab also while
# it still makes its root.
hold_toolbox()
{
	! running "$dir/toolbox.pid" || return 0
	(cd "$dir" && exec ip netns exec "$ns" setsid "$toolbox" \
		tail -f "$dir/toolbox.pid") </dev/null >/dev/null 2>&1 8>&- &
	echo $! >"$dir/toolbox.pid"
}

holds_toolbox() # when it has come there
{
	local pid args

	running "$dir/toolbox.pid" && read -r pid <"$dir/toolbox.pid" &&
		mapfile -d '' args <"/proc/$pid/cmdline" && [[ ${args[0]} == tail ]]
} 2>/dev/null

# A command in the lab's network and the toolbox's root. The state folder is its own,
# so that a socket's name is short whatever the path.
in_lab()
{
	local pid

	if holds_toolbox && read -r pid <"$dir/toolbox.pid"; then
		nsenter --target "$pid" --net --mount --root --wd "$@"
	else
		(cd "$dir" && in_ns "$toolbox" "$@")
	fi
}
ssh_cmd() { in_lab ssh -F ssh_config "$@"; }
remote() { ssh_cmd "$@" </dev/null; }

# End the shared connection: one to a node that is gone would only hang.
hang_up() # NODE
{
	[ ! -S "$dir/ssh-$1" ] || ssh_cmd -O exit "$1" 2>/dev/null || true
	rm -f "$dir/ssh-$1"
}

cmd_ssh()
{
	need_node "${1-}"
	ssh_cmd "$@"
}

# A word of ssh's command line that the node's shell reads as what it is here
quoted() { printf '%q ' "$@"; }

# As with cp(1), the last one is where to; but always a folder.
cmd_cp()
{
	[ $# -ge 2 ] || die "copy what, and where to? (lab --help)"
	local to=${*: -1} from=("${@:1:$#-1}") node path paths=()

	if [[ $to =~ ^(all|n[1-9]): ]]; then
		for path in "${from[@]}"; do
			[ -e "$path" ] || die "there is no $path here"
			paths+=("$(realpath "$path")")
		done
		for node in $(if [[ $to == all:* ]]; then nodes; else echo "${to%%:*}"; fi); do
			copy_to "$node" "${to#*:}" "${paths[@]}"
		done
		return
	fi
	node=${from[0]%%:*}
	for path in "${from[@]}"; do
		[[ $path == "$node":?* ]] ||
			die "either the files or the folder must be on a node, as in n1:/tmp"
		paths+=("${path#*:}")
	done
	copy_from "$node" "$to" "${paths[@]}"
}

# By tar, with each file's own folder left out.
copy_to() # NODE FOLDER PATH...
{
	local path args=()

	need_node "$1"
	for path in "${@:3}"; do
		args+=(-C "$(dirname "$path")" "./$(basename "$path")")
	done
	tar -cf - "${args[@]}" | ssh_cmd "$1" \
		"mkdir -p -- $(quoted "$2") && tar -C $(quoted "$2") -xf -" ||
		die "cannot copy to $1:$2"
}

copy_from() # NODE FOLDER PATH...
{
	local path args=()

	need_node "$1"
	for path in "${@:3}"; do
		args+=(-C "$(dirname "$path")" "./$(basename "$path")")
	done
	mkdir -p -- "$2"
	remote "$1" "cd /root && tar -cf - $(quoted "${args[@]}")" |
		tar -C "$2" -xf - ||
		die "cannot copy from $1"
}

cmd_migrate() # NAME FROM TO
{
	[ $# = 3 ] || die "migrate which container, from where, to where? (lab --help)"
	need_node "$2"
	need_node "$3"
	[ "$2" != "$3" ] || die "$1 is to move from $2 to $2?"
	remote "$2" "migr-ctr move --timing $(quoted "$1" "$3")"
}

cmd_console()
{
	[ -e "$(console "${1:?which node?}")" ] || die "$1 has no console log"
	exec tail -n +1 -F "$(console "$1")"
}
