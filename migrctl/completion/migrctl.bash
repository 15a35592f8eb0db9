# shellcheck shell=bash disable=SC2154 # variables of _migrctl
# SPDX-License-Identifier: GPL-2.0
#
# What bash completes behind migrctl: commands and options, names of containers, which the agent
# is asked for, and hosts of /etc/hosts. A name from elsewhere is offered only if nothing in it
# means anything to a shell.

# for no longer than somebody waits
_migrctl_ask() # WORD
{
	timeout 3 migrctl "${asking[@]}" --json "$1" 2>/dev/null </dev/null
}

_migrctl_names() # WORD: of what the agent answers
{
	_migrctl_ask "$1" | grep -oE '"name":"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}"' | cut -d '"' -f 4 | sort -u
}

_migrctl_hosts()
{
	sed 's/#.*//' "${HOSTFILE:-/etc/hosts}" 2>/dev/null |
		awk '{ for (i = 2; i <= NF; i++) print $i }' |
		grep -E '^[A-Za-z0-9][A-Za-z0-9._-]*$' | grep -vE '^(localhost|ip6-)' | sort -u
}

_migrctl_options()
{
	local all='-a -c -k -p -s -h --help --json --on'

	case $command in
	migrate | drain) echo "$all --from --to --pre-copy --budget --timing" ;;
	check) echo "$all --from --to" ;;
	recover) echo "$all --fenced" ;;
	list | status | log | abort) echo "$all" ;;
	*) echo "$all --from --to --fenced --pre-copy --budget --timing" ;;
	esac
}

# Readline has cut --to=n3 into three words.
_migrctl_join()
{
	local i word glue=

	for ((i = 1; i <= COMP_CWORD; i++)); do
		word=${COMP_WORDS[i]}
		if [ -n "$glue" ] || { [ "$word" = = ] && [[ ${line[*]: -1} == --* ]]; }; then
			line[-1]+=$word
			glue=
			[ "$word" != = ] || glue=yes
		else
			line+=("$word")
		fi
	done
}

# Of the words before the last one: the command, how many are behind it, who would be asked, and
# which option wants the last one
_migrctl_read()
{
	local i last=$((${#line[@]} - 1)) word

	for ((i = 0; i < last; i++)); do
		word=${line[i]}
		case $word in
		-[ackps] | --on | --from | --to | --fenced | --budget)
			i=$((i + 1))
			if [ $i = $last ]; then
				wants=$word
			elif [[ $word != --to && $word != --fenced && $word != --budget ]]; then
				asking+=("$word" "${line[i]}")
			fi
			;;
		--on=* | --from=* | -[ackps]?*) asking+=("$word") ;;
		-*) ;;
		*)
			[ -z "$command" ] || behind=$((behind + 1))
			command=${command:-$word}
			;;
		esac
	done
}

# the last one itself
_migrctl_read_last()
{
	cur=${line[*]: -1}
	[[ $cur == --*=* ]] || return 0
	wants=${cur%%=*}
	cur=${cur#*=}
	# unless it was cut
	[[ ${COMP_WORDS[COMP_CWORD]} != --* ]] || begun=$wants=
}

_migrctl_words()
{
	case $command in
	'') echo migrate drain check abort recover list status log ;;
	migrate | check) [ "$behind" -gt 0 ] || _migrctl_names list ;;
	abort | recover) [ "$behind" -gt 0 ] || _migrctl_names status ;;
	drain) [ "$behind" -gt 0 ] || _migrctl_hosts ;;
	esac
}

_migrctl()
{
	local IFS=$' \t\n' line=() asking=() command='' wants='' cur='' begun='' behind=0 all=''

	COMPREPLY=()
	_migrctl_join
	_migrctl_read
	_migrctl_read_last
	case $wants in
	-[acks] | --timing)
		compopt -o filenames 2>/dev/null
		mapfile -t COMPREPLY < <(compgen -P "$begun" -f -- "$cur")
		return
		;;
	--on | --from | --to | --fenced) all=$(_migrctl_hosts) ;;
	--pre-copy) all=auto ;;
	--budget) ;;
	'') [[ $cur == -* ]] && all=$(_migrctl_options) || all=$(_migrctl_words) ;;
	esac
	if [ "$command$wants" = drain--to ] && [[ $cur == *,* ]]; then
		begun+=${cur%,*},
		cur=${cur##*,}
	fi
	mapfile -t COMPREPLY < <(compgen -P "$begun" -W "$all" -- "$cur")
}

complete -F _migrctl migrctl
