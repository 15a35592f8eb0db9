# shellcheck shell=bash disable=SC2034,SC2154 # shared with bench
# SPDX-License-Identifier: GPL-2.0
#
# Part of bench: the three ways, and their labs.

declare -A way_options=(
	[protocol]="--device rxe"
	[layer-rxe]="--device rxe --stock all"
	[layer-mlx5]="--device mlx5"
)
ways_started=()

way_dir() { echo "$tree/build/lab-compare-$1"; } # WAY

# way_use WAY: what follows is in its lab, and by it
way_use()
{
	way=$1
	by=${way%-*}
	LAB_DIR=$(way_dir "$way")
	export LAB_DIR
	factor=$("$lab" factor)
	ctr_options=()
	[ "$by" = protocol ] || ctr_options=(--layer)
	[ ! -e "$LAB_DIR/fabric" ] || read -r dev gid ns <"$LAB_DIR/fabric"
}

way_up() # WAY
{
	local n

	way_use "$1"
	if [ "$("$lab" status | grep -c ' ready ')" = 0 ]; then
		ways_started+=("$1")
	fi
	# shellcheck disable=SC2086 # words
	"$lab" up -n 3 ${way_options[$1]} >&2
	way_use "$1"
	dev=$(rdma_dev n1)
	gid=$(gid_index n1)
	ns=$(ip netns list | awk -v ns="lab-$(echo "$LAB_DIR" | cksum | cut -d' ' -f1)" \
		'$1 == ns { print $1 }' | grep .)
	echo "$dev $gid $ns" >"$LAB_DIR/fabric"
	for n in n1 n2 n3; do
		"$lab" limit $n rate "$rate" delay "$delay" >&2
		[ "$1" != layer-mlx5 ] || "$lab" mlx5 $n commands "${command_us}us" >&2
		if [ "$by" = layer ] && ! listening $n 18620; then
			daemon $n >&2
		fi
	done
}

ways_up()
{
	local w

	for w in "${ways[@]}"; do
		word "the lab for $w"
		way_up "$w"
	done
}

ways_down()
{
	local w n

	for w in "${ways_started[@]}"; do
		way_use "$w"
		"$lab" down || true
	done
	# What was up before is left as it was.
	for w in "${ways[@]}"; do
		way_use "$w"
		[[ " ${ways_started[*]} " != *" $w "* ]] || continue
		[ -e "$LAB_DIR/fabric" ] || continue
		for n in n1 n2 n3; do
			"$lab" limit $n off
			[ "$w" != layer-mlx5 ] || "$lab" mlx5 $n commands off
		done
		way_cleans
	done
}

# Whatever a run has left
way_cleans()
{
	local n

	[ ! -e "$LAB_DIR/pcap.pid" ] || "$lab" pcap stop
	"$lab" netem n2 off >/dev/null
	# shellcheck disable=SC2016 # expanded there
	for n in n1 n2 n3; do
		ask $n 'pkill -KILL "^ib_"
			pkill -TERM -x mpi-run # it takes its containers along
			while pgrep -x mpi-run; do sleep 0.1; done
			for c in moved partner; do
				[ ! -e /var/lib/migr-ctr/$c ] || migr-ctr delete $c
			done' >/dev/null || true
	done
}

# ---- traffic --------------------------------------------------------------

# perftest QPS BYTES DEPTH [OPTION...]: WRITEs until somebody ends it. It is nice to
# those who have something to do; a QP's time-out (4 s) is longer than what may be in
# front of the link.
perftest()
{
	echo "nice ib_write_bw -d $dev -x $gid -F -q $1 -s $2 -t $3 -u 20 -f 0 -D 36000" \
		"--use_old_post_send ${both:+-b} ${*:4}"
}

# depth_of QPS: messages in the queue of each. In all they are no more than 4096, 16 MiB of
# 4 KiB each, or the link would be longer at it than a QP waits for an answer.
depth_of() { echo $(($1 <= 64 ? 64 : $1 < 4096 ? 4096 / $1 : 1)); }

# What a node has got so far, in bytes of frames, as its tap says
delivered() { ip netns exec "$ns" cat "/sys/class/net/$1-fabric/statistics/tx_bytes"; }

# flows NODE: so many bytes arrive there, from now on, as the link carries in a second
flows()
{
	local until

	until=$(($(delivered "$1") + ${rate%M} * 125000))
	poll_until 120 has_got "$1" $until
}
has_got() { [ "$(delivered "$1")" -ge "$2" ]; } # NODE BYTES
