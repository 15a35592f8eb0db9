# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0
#
# Part of migr-ctr and migr-gid: addresses, as people and other hosts write them

# Four numbers up to 255, without zeros ahead, for which others take octal ones
is_ipv4() # WORD
{
	local byte

	[[ $1 =~ ^((0|[1-9][0-9]{0,2})\.){3}(0|[1-9][0-9]{0,2})$ ]] || return
	for byte in ${1//./ }; do
		[ "$byte" -le 255 ] || return
	done
}

# All of an IPv6 address, as sysfs has it: fd20:0000:0000:0000:0000:0000:0000:0120
ipv6_groups() # WORD
{
	local head=$1 tail='' missing group first last text

	[[ $1 =~ ^[0-9a-fA-F:]{2,39}$ && $1 != *:::* && $1 != *::*::* ]] || return
	[[ $1 != *::* ]] || head=${1%%::*} tail=${1#*::}
	[[ $head != :* && $head != *: && $tail != *: ]] || return
	IFS=: read -ra first <<<"$head"
	IFS=: read -ra last <<<"$tail"
	missing=$((8 - ${#first[@]} - ${#last[@]}))
	if [[ $1 == *::* ]]; then
		[ $missing -gt 0 ] || return
	else
		[ $missing = 0 ] || return
	fi
	for ((; missing > 0; missing--)); do first+=(0); done
	first+=("${last[@]}")
	for group in "${first[@]}"; do
		[ ${#group} -le 4 ] || return
	done
	printf -v text ':%04x' "${first[@]/#/0x}"
	echo "${text:1}"
}

# Of one host, in a network of 24 bits
is_host_ipv4() # WORD
{
	is_ipv4 "$1" || return
	case $1 in
	0.* | 127.* | 22[4-9].* | 2[3-5]?.* | *.0 | *.255) return 1 ;;
	esac
}

# Of one host, and not of this link alone
is_host_ipv6() # WORD
{
	local groups

	groups=$(ipv6_groups "$1") || return
	case $groups in
	ff* | fe[89ab]* | 0000:0000:0000:0000:*) return 1 ;;
	esac
}
