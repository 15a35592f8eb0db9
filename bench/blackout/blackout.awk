# SPDX-License-Identifier: GPL-2.0
#
# From lines of bench/blackout/bench to JSON, a table and a picture: used after median.awk.
# A line is: MIB QPS KIND WAY BLACKOUT ALL STOPPED BYTES RDMA STEPS, times in ms; or it ends
# with "failed". With 0 QPs it is the floor. Exit code 1 if something failed.

{
	key = $1 " " $2 " " $3 " " $4
	if (!(key in seen)) {
		seen[key] = 1
		order[++n] = key
	}
}

$NF == "failed" { failed[key]++; next }

{
	add(key " blackout", $5)
	add(key " all", $6)
	add(key " stopped", $7)
	add(key " bytes", $8)
	add(key " rdma", $9)
	gsub(/~/, " ", $10)
	steps[key, ++runs[key]] = $10
	by[key, runs[key]] = $2 ? $5 : $7
}

function value(key, what) { return median(key " " what) }

# those of the run that is nearest to the median
function its_steps(key, what, i, best, least, d)
{
	for (i = 1; i <= runs[key]; i++) {
		d = by[key, i] - value(key, what)
		d = d < 0 ? -d : d
		if (i == 1 || d < least) {
			least = d
			best = i
		}
	}
	return runs[key] ? steps[key, best] : "null"
}

# or null, if there is none
function figure(key, what, format)
{
	return runs[key] ? sprintf(format, value(key, what)) : "null"
}
function least_of(key, what) { sort(key " " what); return v[key " " what, 1] }
function most_of(key, what) { sort(key " " what); return v[key " " what, runs[key]] }

# Memory that is written has no floor: without RDMA nobody writes it.
function ratio(kind, r) { return kind == "idle" ? sprintf("%.2f", r) : "" }

function bar(x, y, ms, colour)
{
	printf "<rect x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"11\" fill=\"%s\"/>\n",
		x, y, ms * px, colour >svg
	printf "<text x=\"%.1f\" y=\"%d\" font-size=\"10\">%.0f ms</text>\n",
		x + ms * px + 4, y + 9, ms >svg
}

END {
	print "{\n  \"rounds\": " rounds ",\n  \"tests\": [" >json
	printf "%-30s %11s %9s %6s %9s\n", "", "blackout ms", "floor ms", "ratio", "RDMA ms"
	for (i = 1; i <= n; i++) {
		key = order[i]
		split(key, p, " ")
		floor_key = p[1] " 0 idle " p[4]
		bad += failed[key]
		if (p[2] == 0)
			continue
		name = p[1] " MiB, " p[2] " QP" (p[2] == 1 ? "" : "s") ", " p[3] \
			(p[4] == "rounds" ? ", pre-copy" : "")
		measured = runs[key] && runs[floor_key]
		b = runs[key] ? value(key, "blackout") : 0
		f = runs[floor_key] ? value(floor_key, "stopped") : 0
		if (b > largest)
			largest = b
		if (measured) {
			shown[++k] = key
			names[k] = name
			printf "%-30s %11.0f %9.0f %6s %9.0f\n", name, b, f,
				ratio(p[3], b / f), value(key, "rdma")
		} else {
			printf "%-30s failed\n", name
		}
		printf "%s    {\"name\": \"%s\", \"memory_mb\": %d, \"qps\": %d, " \
			"\"written\": %s, \"precopy\": %s, \"blackout_ms\": %s, " \
			"\"floor_ms\": %s, \"ratio\": %s, \"runs\": %d, \"failed\": %d, " \
			"\"floor_failed\": %d,\n      \"blackout_min_ms\": %s, " \
			"\"blackout_max_ms\": %s, \"floor_min_ms\": %s, \"floor_max_ms\": %s, " \
			"\"all_qps_ms\": %s, \"stopped_ms\": %s, \"rdma_ms\": %s, " \
			"\"bytes\": %s,\n      \"steps_ms\": %s,\n      \"floor_steps_ms\": %s}",
			(lines++ ? ",\n" : ""), name, p[1], p[2],
			(p[3] == "written" ? "true" : "false"),
			(p[4] == "rounds" ? "true" : "false"), figure(key, "blackout", "%.1f"),
			figure(floor_key, "stopped", "%.1f"),
			(measured && p[3] == "idle" ? sprintf("%.3f", b / f) : "null"), runs[key], failed[key],
			failed[floor_key],
			(runs[key] ? least_of(key, "blackout") : "null"),
			(runs[key] ? most_of(key, "blackout") : "null"),
			(runs[floor_key] ? least_of(floor_key, "stopped") : "null"),
			(runs[floor_key] ? most_of(floor_key, "stopped") : "null"),
			figure(key, "all", "%.1f"), figure(key, "stopped", "%.1f"),
			figure(key, "rdma", "%.1f"), figure(key, "bytes", "%.0f"),
			its_steps(key, "blackout"), its_steps(floor_key, "stopped") >json
	}
	print "\n  ]\n}" >json
	px = largest ? 600 / largest : 1
	printf "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"960\" height=\"%d\" " \
		"font-family=\"sans-serif\" font-size=\"12\" fill=\"#222\">\n" \
		"<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n" \
		"<text x=\"10\" y=\"24\" font-size=\"16\">How long a partner waits " \
		"(orange), and the floor (blue)</text>\n", 50 + 34 * k >svg
	for (i = 1; i <= k; i++) {
		split(shown[i], p, " ")
		y = 10 + 34 * i
		printf "<text x=\"10\" y=\"%d\">%s</text>\n", y + 14, names[i] >svg
		bar(260, y, value(shown[i], "blackout"), "#e8833a")
		bar(260, y + 12, value(p[1] " 0 idle " p[4], "stopped"), "#9fc5e8")
	}
	print "</svg>" >svg
	exit bad || !k
}
