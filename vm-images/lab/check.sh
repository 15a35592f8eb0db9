# shellcheck shell=bash disable=SC2154 # shared with lab
# SPDX-License-Identifier: GPL-2.0
#
# Part of lab: complaints of kernels and devices.

complaints='WARNING:|BUG:|Oops|general protection|Kernel panic|kernel BUG'
complaints+='|possible (circular|recursive|irq)|inconsistent lock|lockdep'
complaints+='|suspicious RCU|rcu.*(stall|detected)|soft lockup|hard LOCKUP'
complaints+='|blocked for more than|kmemleak:.*new|unreferenced object'
complaints+='|KASAN|KCSAN|UBSAN|refcount_t|corruption|use-after-free'
complaints+='|page allocation failure|Call Trace|lab: cannot|lab: initrd:'
complaints+='|unregister_netdevice: waiting for'

# What a debug kernel takes for a wrong use of RCU and is none, since the list is
# locked; told upstream by 28b7a6b84c0a and its like (netfilter: nf_tables: avoid
# false-positive lockdep splat...), which 6.12 does not have.
unfounded='net/netfilter/nf_tables_[a-z]+.c:[0-9]+ RCU-list traversed in'
# vmalloc() tells of what live_restore -F has made it fail for.
unfounded+='|live_restore: vmalloc error: size [0-9]+'

# How what may be of that kind begins; it ends with its trace.
doubtful='WARNING: suspicious RCU usage|: vmalloc error: '

# stdin to stdout, without these: of what is unfounded, from its first to its last
# line, only what is neither that nor a line of its trace
founded()
{
	awk -v unfounded="$unfounded" -v doubtful="$doubtful" \
		-v complaints="$complaints" '
		function flush()
		{
			printf "%s", known ? others : text
			held = known = 0
			text = others = ""
		}
		$0 ~ doubtful { flush(); held = 1 }
		!held { print; next }
		{ text = text $0 "\n" }
		$0 ~ unfounded { known = 1 }
		$0 ~ complaints && $0 !~ doubtful && $0 !~ unfounded && !/Call Trace:/ &&
			!/^[^]]*\] +(\? )?[A-Za-z_][A-Za-z0-9_.]*\+0x[0-9a-f]+\/0x[0-9a-f]+/ {
			others = others $0 "\n"
		}
		/<\/TASK>/ { flush() }
		END { flush() }'
}

# stdin ends within what may be unfounded: there is more to come.
amid() { awk -v doubtful="$doubtful" '
	/<\/TASK>/ { held = 0 }
	$0 ~ doubtful { held = 1 }
	END { exit !held }'; }

# stdin to stdout, so many lines of it; the rest is read, too: a console grows, and
# whoever writes to a pipe that nobody reads fails for that.
first_lines() { head -n "$1"; cat >/dev/null; } # LINES

console_lines() # NODE FROM [LINES]
{
	tail -c +$(($2 + 1)) "$(console "$1")" 2>/dev/null |
		first_lines "${3--0}" | tr -d '\r'
}

# A console's complaints among so many lines from a byte on
console_complaints() { console_lines "$@" | founded | grep -aE "$complaints"; }

checked() { cat "$dir/$1/checked" 2>/dev/null || echo 0; } # NODE

# What nobody has been told of before the node goes: kept for the next check,
# or for down.
last_words() # NODE
{
	local words

	[ -e "$(console "$1")" ] || return 0
	if words=$(console_complaints "$1" "$(checked "$1")"); then
		printf '%s, which is gone, complained:\n%s\n' "$1" "$words" |
			tee -a "$dir/reports" >&2
	fi
	stat -c %s "$(console "$1")" >"$dir/$1/checked"
	if words=$(mlx5_report "$1" --new); then
		printf '%s, which is gone: mlx5soft complained:\n%s\n' "$1" \
			"$words" | tee -a "$dir/reports" >&2
	fi
}

# Memory that nobody points to any more goes to the console of a debug kernel.
# Its first scan only notes what a new object looks like. Fails if it cannot scan:
# kmemleak switches itself off when something goes wrong.
scan_leaks() # NODE
{
	case $(self "$1") in *' kernel='*-debug*) ;; *) return 0 ;; esac
	# shellcheck disable=SC2016 # expanded by the node's shell
	remote "$1" 'f=/sys/kernel/debug/kmemleak
		echo on >/proc/sys/kernel/printk_devkmsg # without a limit
		echo scan >$f && echo scan >$f || exit
		sed "s/^/<3>kmemleak: /" $f | while read -r l; do
			echo "$l" >/dev/kmsg
		done
		echo clear >$f' 2>&1
}

check_console() # NODE FROM [--new]
{
	local lines hits rc=0 end=$((SECONDS + $(seconds 5)))

	# Of whole lines only: half a one would not be recognised. Nor half of what
	# is unfounded; a trace takes its time on a slow console.
	while
		lines=$(tail -c +$(($2 + 1)) "$(console "$1")" | wc -l)
		[ $SECONDS -lt $end ] && console_lines "$1" "$2" "$lines" | amid
	do
		sleep 0.2
	done
	if hits=$(console_complaints "$1" "$2" "$lines"); then
		say "$1 complains:"
		echo "$hits"
		rc=1
	fi
	[ "${3-}" != --new ] ||
		echo $(($2 + $(tail -c +$(($2 + 1)) "$(console "$1")" |
			first_lines "$lines" | wc -c))) >"$dir/$1/checked"
	return $rc
}

cmd_check()
{
	local n bad=0 from size hits

	[ -n "$(nodes)" ] || [ -s "$dir/reports" ] ||
		die "check: no lab is up, so there was nothing to look at"
	if [ -s "$dir/reports" ]; then
		cat "$dir/reports"
		bad=1
		[ "${1-}" != --new ] || rm "$dir/reports"
	fi
	for n in $(nodes | tr ' ' '\n'); do
		if running "$dir/$n/pid" && ! hits=$(scan_leaks "$n"); then
			say "$n: kmemleak cannot look for leaks: $hits"
			bad=1
		fi
		from=0
		[ "${1-}" != --new ] || from=$(checked "$n")
		size=$(stat -c %s "$(console "$n")")
		[ "$size" = "$from" ] ||
			check_console "$n" "$from" "$@" || bad=1
		if ! running "$dir/$n/pid"; then
			say "$n is dead; the end of its console:"
			tail -n 20 "$(console "$n")" | tr -d '\r'
			bad=1
		fi
		if hits=$(mlx5_report "$n" "$@"); then
			say "$n: mlx5soft complains:"
			echo "$hits"
			bad=1
		fi
		if ! mlx5_lives "$n"; then
			say "$n: mlx5soft ended; the end of its log:"
			[ -n "$hits" ] || tail -n 20 "$dir/$n/mlx5.log"
			bad=1
		fi
		if ! wire_lives "$n"; then
			say "$n: bad_wire ended: $(cat "$dir/$n/wire.log")"
			bad=1
		fi
	done
	return $bad
}
