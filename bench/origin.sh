# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0
#
# For benches, which source it: where a result comes from. Called at the begin
# and at the end, with the lab still up, it notes in the JSON file which machine
# and which commit that was, and what else the machine had to do meanwhile.

# user nice system idle iowait irq softirq steal
origin_cpu() { sed -n '1s/^cpu *//p' /proc/stat | cut -d' ' -f1-8; }

# The tree may change while the bench runs.
origin_begin()
{
	local tree

	tree=$(cd "${BASH_SOURCE[0]%/*}/.." && pwd)
	origin_commit=$(git -C "$tree" describe --always --dirty --abbrev=12 \
		2>/dev/null) || origin_commit=unknown
	origin_before=$(origin_cpu)
	origin_load=$(cut -d' ' -f1 /proc/loadavg)
}

origin_json() # LAB_DIR: one member of an object
{
	local model accel

	model=$(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -n 1)
	accel=$(sed -n 's/^declare -- accel="\(.*\)"$/\1/p' "$1/n1/options")
	awk -v commit="$origin_commit" -v model="$model" -v accel="$accel" \
		-v date="$(date -u +%FT%TZ)" -v kernel="$(uname -r)" \
		-v cpus="$(nproc)" -v before="$origin_before" \
		-v after="$(origin_cpu)" -v load="$origin_load" \
		-v load_after="$(cut -d' ' -f1 /proc/loadavg)" '
		/^MemTotal/ { mib = $2 / 1024 }
		END {
			split(before, b)
			n = split(after, a)
			for (i = 1; i <= n; i++)
				all += a[i] - b[i]
			all = all ? all : 1
			printf "  \"origin\": {\n"
			printf "    \"date\": \"%s\",\n", date
			printf "    \"commit\": \"%s\",\n", commit
			printf "    \"machine\": \"%s\",\n", model
			printf "    \"processors\": %d,\n", cpus
			printf "    \"memory_mib\": %d,\n", mib
			printf "    \"host_kernel\": \"%s\",\n", kernel
			printf "    \"accelerator\": \"%s\",\n", accel
			printf "    \"load\": [%s, %s],\n", load, load_after
			printf "    \"busy\": %.3f,\n",
				1 - (a[4] - b[4] + a[5] - b[5]) / all
			printf "    \"stolen\": %.3f\n  },\n",
				(a[8] - b[8]) / all
		}' /proc/meminfo
}

origin_end() # JSON LAB_DIR: put it first
{
	[ "$(head -n 1 "$1")" = '{' ] || {
		echo "origin: $1 is no JSON object" >&2
		return 1
	}
	{ echo '{' && origin_json "$2" && tail -n +2 "$1"; } >"$1.new" &&
		mv "$1.new" "$1"
}
