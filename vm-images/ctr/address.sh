# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0
#
# Part of migr-ctr and migr-gid: addresses as people, and other hosts, write them

# Four numbers up to 255, without zeros ahead, which others take for octal
is_ipv4() # WORD
{
	local byte

	[[ $1 =~ ^((0|[1-9][0-9]{0,2})\.){3}(0|[1-9][0-9]{0,2})$ ]] || return
	for byte in ${1//./ }; do
		[ "$byte" -le 255 ] || return
	done
}

# All that it stands for, as sysfs has it: fd20:0000:0000:0000:0000:0000:0000:0120
ipv6_groups() # WORD
{
	local head=$1 tail='' group missing all=() last=()

	[[ $1 =~ ^[0-9a-fA-F:]{2,39}$ && $1 != *:::* && $1 != *::*::* ]] || return
	[[ $1 != *::* ]] || head=${1%%::*} tail=${1#*::}
	[[ $head != :* && $head != *: && $tail != *: ]] || return
	IFS=: read -ra all <<<"$head"
	IFS=: read -ra last <<<"$tail"
	missing=$((8 - ${#all[@]} - ${#last[@]}))
	if [[ $1 == *::* ]]; then [ $missing -gt 0 ]; else [ $missing = 0 ]; fi || return
	for ((; missing > 0; missing--)); do all+=(0); done
	all+=("${last[@]}")
	for group in "${all[@]}"; do [ ${#group} -le 4 ] || return; done
	printf '%04x' "0x${all[0]}"
	printf ':%04x' "${all[@]/#/0x}" | cut -c1-0
}
