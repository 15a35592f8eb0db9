# shellcheck shell=bash
# shellcheck disable=SC2016,SC2154 # expanded by the nodes' shells; assigned by lib.sh
# SPDX-License-Identifier: GPL-2.0
#
# For tests with podman: sourced after lib.sh and lib-rootfs.sh.

# By command podman makes no network of addresses that the host has, too.
podman_network()
{
	jq -n '{ name: "lan", id: ("1a14" + "0" * 60), driver: "bridge", network_interface: "lan",
		created: "2025-01-01T00:00:00Z", subnets: [{ subnet: "10.20.0.0/24" }],
		internal: true, ipv6_enabled: false, dns_enabled: false,
		options: { mode: "unmanaged" }, ipam_options: { driver: "host-local" } }'
}

podman_end() # NODE
{
	ask "$1" 'podman rm -fa -t 0; podman rmi -fa; rm -rf /etc/containers/networks/lan.json \
		/run/podman.tar; nft delete table bridge hold' || true
}

# Each gets the network "lan" and the same image, with rc_mix.
podman_nodes() # NODE...
{
	local n

	mix_rootfs "$1" /run/mix-root
	on "$1" 'tar -C /run/mix-root -cf - . | podman import -q - localhost/mix
		rm -r /run/mix-root
		podman save -q -o /mnt/out/mix-image.tar localhost/mix'
	at_end rm -f "$out/mix-image.tar"
	for n in "$@"; do
		at_end podman_end "$n"
		[ "$n" = "$1" ] || on "$n" 'podman load -q -i /mnt/out/mix-image.tar'
		podman_network | "$lab" ssh "$n" 'mkdir -p /etc/containers/networks
			cat >/etc/containers/networks/lan.json'
	done
}

podman_root() { ask "$1" "podman mount $2"; } # NODE NAME: its root, as the host sees it

# one end of rc_mix, which listens
podman_mix() # NODE NAME IP [OPTION...]: of podman
{
	on "$1" "podman run -d --name $2 --runtime runc --network lan --ip $3 ${*:4} \
		--ulimit memlock=-1:-1 --device /dev/infiniband/uverbs0 localhost/mix \
		sh -c 'rc_mix -s $mix_files $mix_patience >/run/mix.log 2>&1
			echo \$? >/run/mix.exit'"
	poll_until 60 ask "$1" "nsenter -n -t \$(podman inspect -f '{{.State.Pid}}' $2) \
		ss -Hltn sport = :18600 | grep -q ."
}
