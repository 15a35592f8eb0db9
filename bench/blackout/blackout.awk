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
	steps[key] = $10
}

function has(key) { return (key " stopped", 1) in v }

function value(key, what) { return median(key " " what) }

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
		if (p[2] == 0 || !has(key) || !has(floor_key))
			continue
		name = p[1] " MiB, " p[2] " QP" (p[2] == 1 ? "" : "s") ", " p[3] \
			(p[4] == "rounds" ? ", pre-copy" : "")
		b = value(key, "blackout")
		f = value(floor_key, "stopped")
		r = value(key, "rdma")
		if (b > largest)
			largest = b
		shown[++k] = key
		names[k] = name
		printf "%-30s %11.0f %9.0f %6.2f %9.0f\n", name, b, f, b / f, r
		printf "%s    {\"name\": \"%s\", \"memory_mb\": %d, \"qps\": %d, " \
			"\"written\": %s, \"precopy\": %s, \"blackout_ms\": %.1f, " \
			"\"floor_ms\": %.1f, \"ratio\": %.3f, \"all_qps_ms\": %.1f, " \
			"\"stopped_ms\": %.1f, \"rdma_ms\": %.1f, \"bytes\": %d, " \
			"\"failed\": %d,\n      \"steps_ms\": %s,\n      \"floor_steps_ms\": %s}",
			(k > 1 ? ",\n" : ""), name, p[1], p[2],
			(p[3] == "written" ? "true" : "false"),
			(p[4] == "rounds" ? "true" : "false"), b, f, b / f,
			value(key, "all"), value(key, "stopped"), r, value(key, "bytes"),
			failed[key], steps[key], steps[floor_key] >json
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
