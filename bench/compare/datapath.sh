# shellcheck shell=bash disable=SC2034,SC2154 # shared with bench
# SPDX-License-Identifier: GPL-2.0
#
# Part of bench: what a post and a poll cost, on this machine to a provider that does
# nothing, and on nodes to those that there are.

figure_datapath()
{
	way=none-null round=0
	attempt datapath all 0 "$tree/vm-images/toolbox" \
		"$tree/build/user/bench/compare/datapath" "$((5 * rounds))"
}

figure_devices()
{
	if [ "$by" = protocol ]; then
		omitted datapath it changes nothing in user space, and what it costs in \
			the kernel is what bench/hotpath measures
	else
		attempt datapath devices 0 device_steps
	fi
}

device_steps()
{
	local steps="device_steps $dev $gid ${way#layer-}" dir=/run/device_steps

	on n1 "$steps"
	on n1 "mkdir -p $dir && LD_PRELOAD=$layer MIGRRDMA_DIR=$dir $steps && rm -r $dir"
}
