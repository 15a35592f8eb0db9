# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0
#
# For scripts that start labs: what is interrupted cleans up, whatever it was
# doing. A trap on EXIT (and on no signal) runs at once when bash is ended by a
# signal, while the command it waits for runs on. So that trap begins with
# end_children.

# All processes, without their names. One that ends meanwhile cannot be read, and is no
# reason to end for who has set -e or pipefail.
processes()
{
	{ cat /proc/[0-9]*/stat 2>/dev/null || true; } | sed 's/ (.*) / /'
}

# What this process has started and what that has started; not what detached
# itself, as nodes do.
descendants()
{
	processes | awk -v me=$$ '
		{ parent[$1] = $3 }
		END {
			for (p in parent) {
				for (q = p; q in parent && q != me; q = parent[q])
					;
				if (q == me && p != me)
					print p
			}
		}'
}

# Nobody interrupts the cleaning. What still runs may tidy up itself for a while.
end_children()
{
	local deadline=$((SECONDS + 60)) p all

	trap '' HUP INT TERM
	all=$(descendants) # with those that looked for them, which are gone now
	for p in $all; do
		kill -TERM "$p" 2>/dev/null || true
	done
	for p in $all; do
		while grep -qs '^State:.[^ZX]' "/proc/$p/status"; do
			if [ $SECONDS -ge $deadline ]; then
				# shellcheck disable=SC2046 # words
				kill -KILL $(descendants) 2>/dev/null || true
				return 0
			fi
			sleep 0.1
		done
	done
}
