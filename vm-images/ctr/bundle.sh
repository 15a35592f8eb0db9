# shellcheck shell=bash disable=SC2154 # shared with migr-ctr
# SPDX-License-Identifier: GPL-2.0
#
# Part of migr-ctr: what a container is made of

# What moves, beside the image that CRIU makes.
folders=(run tmp shm)

# Under systemd all mounts are shared, and a second view of / would get a copy of each mount that
# comes after it: of every container twice as many as of the one before. So it is on its own, before
# another one comes.
mount_alone() # FOLDER, MOUNT'S OPTIONS AND SOURCE...
{
	(
		flock 9
		mount "${@:2}" "$1" && mount --make-private "$1"
	) 9<"$state"
}

# Pages of a file on disk can be no MR (EFAULT): the kernel keeps no page of it pinned
# for writing. Those of POSIX shared memory can.
make_folders()
{
	mkdir -p "${folders[@]/#/$dir/}" /run/migrd
	chmod 1777 "$dir/tmp"
	mountpoint -q "$dir/shm" ||
		mount_alone "$dir/shm" -t tmpfs -o nosuid,nodev,mode=1777 shm
}

# somebody's shell may be in there
unmount() # FOLDER
{
	while mountpoint -q "$1"; do
		umount -l "$1" || break
	done
}

need_root() # FOLDER
{
	[[ $1 == /* && $1 != *$'\n'* && -d $1 ]] ||
		die "'$1' is no folder with an absolute path"
}

# All devices that a container sees but those of RDMA, which are mounted there.
nodes=$state/.dev
make_nodes() # of containers that may be made at once
{
	(
		flock 9
		node_files
	) 9<"$state"
}

node_files()
{
	local name major minor

	mkdir -p "$nodes"/{pts,shm,infiniband} /dev/infiniband
	while read -r name major minor; do
		[ -e "$nodes/$name" ] || mknod -m 666 "$nodes/$name" c "$major" "$minor"
	done <<-END
		null 1 3
		zero 1 5
		full 1 7
		random 1 8
		urandom 1 9
		tty 5 0
	END
	ln -sfn pts/ptmx "$nodes/ptmx"
	ln -sfn /proc/self/fd "$nodes/fd"
	ln -sfn /proc/self/fd/0 "$nodes/stdin"
	ln -sfn /proc/self/fd/1 "$nodes/stdout"
	ln -sfn /proc/self/fd/2 "$nodes/stderr"
}

# Of major 10, which has all kinds of devices, a container has rdma_cm, whose minor each
# host chooses.
allow_rdma_cm()
{
	local minor=null

	[ ! -c /dev/infiniband/rdma_cm ] ||
		minor=$((0x$(stat -c %T /dev/infiniband/rdma_cm)))
	jq -c --argjson minor "$minor" '.linux.resources.devices |=
		map(select(.major != 10)) + if $minor then [{ allow: true, type: "c",
			major: 10, minor: $minor, access: "rw" }] else [] end' \
		"$dir/config.json" >"$dir/config.new"
	mv "$dir/config.new" "$dir/config.json"
}

# What of the host's own root is not for containers, whose root may read what this one may: of
# these what is there. Whatever else is secret wants --root.
secret_folders=(/etc/migrd /etc/ssh /etc/ssl/private /root/.ssh /var/lib/dkms)
secret_files=(/etc/shadow /etc/gshadow)
secret_copies=(/etc/shadow- /etc/gshadow-) # which come at any time

there() # FILE...: of these, on one line
{
	local file all=()

	for file; do
		[ ! -e "$file" ] || all+=("$file")
	done
	echo "${all[*]}"
}

make_file() { [ -e "$1" ] || (umask 077; : >"$1"); }
make_secrets() # of ours, and those that would come later
{
	local file

	for file in "${secret_folders[@]:0:1}"; do
		[ -e "$file" ] || (umask 077 && mkdir -p "$file")
	done
	for file in "${secret_copies[@]}"; do
		make_file "$file"
	done
}

is_hidden_by() # SOURCE: where that is mounted in a container that was made elsewhere
{
	jq -r --arg source "$1" '.mounts[] | select(.source == $source) | .destination' \
		"$dir/config.json"
}

# What is hidden has to have a place, as it had where the container was made.
make_places()
{
	local file

	while read -r file; do
		[ -e "$file" ] || (umask 077 && mkdir -p "$file")
	done < <(is_hidden_by "$none")
	while read -r file; do
		make_file "$file"
	done < <(is_hidden_by /dev/null)
}

# What was not there has no mount in it.
must_hide_all()
{
	local file hidden

	[ "$(<"$dir/root")" = / ] || return 0
	hidden=$(is_hidden_by "$none"; is_hidden_by /dev/null)
	for file in $(there "${secret_folders[@]}" "${secret_files[@]}" "${secret_copies[@]}"); do
		grep -qxF -e "$file" <<<"$hidden" ||
			die "$name would see $file of this host: there was none where it was made"
	done
}

# What of ours is in there: the layer's library. In the lab it is all, but for keys.
ours=$prefix/lib/migrrdma lab=''
[ ! -e "$prefix/cluster.key" ] || ours=$prefix lab=1

# What is mounted in there needs a place, which nobody can make when it is read-only.
mount_rootfs()
{
	local root

	root=$(<"$dir/root")
	mkdir -p "$dir/rootfs" "$none"
	make_nodes
	if [ "$root" = / ]; then
		make_secrets
		[ ! -e "$dir/config.json" ] || make_places
	fi
	mountpoint -q "$dir/rootfs" || {
		mkdir -p "$root"/{proc,sys,dev,run,tmp,var/lib/migr-ctr} "$root$ours"
		mount_alone "$dir/rootfs" -o bind,ro "$root"
	}
}

# The same on every node, and on one line. Every mount has to be dumped and made
# again, and CRIU calls tar and gzip for each tmpfs: so there is none of its own, and no
# path of /proc or /sys is masked. CRIU makes the cgroup that was dumped: runc has to look for it
# there, and not beside the one that it happens to be in. Devices need no controller.
spec() # CMD..., with $layer
{
	# shellcheck disable=SC2016 # for the shell inside
	jq -cn --arg name "$name" --arg dir "$dir" --arg none "$none" \
		--arg gid "$(sed 's/.*@//' "$dir/rdma" 2>/dev/null)" \
		--arg layer "$layer" --arg nodes "$nodes" --arg root "$(<"$dir/root")" \
		--arg prefix "$prefix" --arg ours "$ours" --arg lab "$lab" \
		--arg folders "$(there "${secret_folders[@]}")" \
		--arg files "$(there "${secret_files[@]}" "${secret_copies[@]}")" '
		def bind($from; $to; $how): { destination: $to, type: "bind",
			source: $from, options: ["bind", "nosuid", $how] };
		{ ociVersion: "1.0.2",
		  hostname: $name,
		  root: { path: "rootfs", readonly: true },
		  process: {
			cwd: "/run",
			user: { uid: 0, gid: 0 },
			args: (["/bin/sh", "-c",
				"exec </dev/null >/run/out 2>&1
				\"$@\"; echo $? >/run/exit",
				"sh"] + $ARGS.positional),
			env: ["LC_ALL=C.UTF-8", "HOME=/run",
				"PATH=/usr/local/bin:/usr/sbin:/usr/bin:" + $prefix + "/bin",
				"RDMA_GID_INDEX=" + $gid | select(. != "RDMA_GID_INDEX="),
				if $layer == "" then empty else "LD_PRELOAD=" + $layer,
					"MIGRRDMA_DIR=/run/migrrdma" end],
			rlimits: [
				{ type: "RLIMIT_MEMLOCK",
				  soft: 18446744073709551615,
				  hard: 18446744073709551615 },
				{ type: "RLIMIT_NOFILE", soft: 4096, hard: 4096 }],
			noNewPrivileges: true,
			capabilities: (["CAP_AUDIT_WRITE", "CAP_KILL",
				"CAP_NET_BIND_SERVICE"] |
				{ bounding: ., effective: ., permitted: . })
		  },
		  mounts: [
			{ destination: "/proc", type: "proc", source: "proc" },
			{ destination: "/sys", type: "sysfs", source: "sysfs",
			  options: ["nosuid", "noexec", "nodev", "ro"] },
			bind($nodes; "/dev"; "ro"),
			bind("/dev/infiniband"; "/dev/infiniband"; "ro"),
			{ destination: "/dev/pts", type: "devpts", source: "devpts",
			  options: ["nosuid", "noexec", "newinstance",
				"ptmxmode=0666", "mode=0620", "gid=5"] },
			bind($dir + "/shm"; "/dev/shm"; "nodev"),
			bind($dir + "/run"; "/run"; "nodev"),
			bind($dir + "/tmp"; "/tmp"; "nodev"),
			if $layer == "" then empty else
				bind("/run/migrd"; "/run/migrd"; "ro") end,
			bind($ours; $ours; "ro"),
			if $lab == "" then empty else
				bind("/dev/null"; $ours + "/cluster.key"; "ro"),
				bind($none; $ours + "/migrd"; "ro") end,
			bind($none; "/var/lib/migr-ctr"; "ro"),
			if $root != "/" then empty else
				bind($none; ($folders | split(" ")[]); "ro"),
				bind("/dev/null"; ($files | split(" ")[]); "ro") end],
		  linux: {
			cgroupsPath: ("/migr-ctr/" + $name),
			resources: { devices: [
				{ allow: false, access: "rwm" },
				{ allow: true, type: "c", major: 231, access: "rwm" }] },
			namespaces: [{ type: "pid" }, { type: "ipc" },
				{ type: "uts" }, { type: "mount" }, { type: "cgroup" },
				{ type: "network", path: ("/run/netns/" + $name) }]
		  }
		}' --args -- "$@"
}
