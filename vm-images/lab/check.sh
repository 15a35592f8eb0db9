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

cmd_check()
{
	local n bad=0 from total hits

	for n in $(nodes | tr ' ' '\n'); do
		from=0
		if [ "${1-}" = --new ]; then
			from=$(cat "$dir/$n/checked" 2>/dev/null || echo 0)
			total=$(stat -c %s "$(console "$n")")
			echo "$total" >"$dir/$n/checked"
		fi
		if hits=$(tail -c +$((from + 1)) "$(console "$n")" |
			grep -aE "$complaints"); then
			say "$n complains:"
			echo "$hits" | tr -d '\r'
			bad=1
		fi
		if ! running "$dir/$n/pid"; then
			say "$n is dead; the end of its console:"
			tail -n 20 "$(console "$n")" | tr -d '\r'
			bad=1
		fi
		if ! mlx5_lives "$n"; then
			say "$n: mlx5soft ended; the end of its log:"
			mlx5_report "$n" || tail -n 20 "$dir/$n/mlx5.log"
			bad=1
		fi
		if ! wire_lives "$n"; then
			say "$n: bad_wire ended: $(cat "$dir/$n/wire.log")"
			bad=1
		fi
	done
	return $bad
}
