# SPDX-License-Identifier: GPL-2.0
#
# Lines of results to the JSON file $json, with medians (see median.awk), and a table to
# standard output:
#
#	FIGURE WAY SERIES X PART UNIT VALUE	each run's
#	FIGURE WAY SERIES X - - failed [REASON...]	of a run that failed
#	timeline WAY SERIES SLOT_MS BEFORE BYTES...
#						throughput, of which the last is kept
#	omitted FIGURE WAY REASON...		what was not measured
#
# WAY is layer-DEVICE, none-DEVICE, or the protocol, which is rxe's. X is a number, of what
# the series is about. $rounds, $rate (as 100M), $delay (as 50us), $command_us and $command
# are noted.
# What takes milliseconds is given also as KiB: what the link carries in that time. The
# exit code is 1 if a run failed, or a line is none of these.

function quoted(s)
{
	gsub(/[\\"]/, "", s)
	return "\"" s "\""
}

function by(way) { sub(/-.*/, "", way); return way }
function device(way) { return way ~ /-/ ? substr(way, index(way, "-") + 1) : "rxe" }

function is_result()
{
	return NF == 7 && $2 ~ /^[a-z]+(-[a-z0-9]+)*$/ && $4 ~ /^[0-9]+$/ &&
		$7 ~ /^-?[0-9.]+$/ || $5 " " $6 " " $7 == "- - failed"
}

$1 == "timeline" {
	if (!(($2, $3) in line))
		lines[++n_lines] = $2 SUBSEP $3
	way_of[$2, $3] = $2
	series_of[$2, $3] = $3
	line[$2, $3] = $0
	next
}
$1 == "omitted" {
	if (!($0 in seen))
		left_out[++n_out] = $0
	seen[$0] = 1
	next
}
!is_result() { print "not a result: " $0; wrong = 1; next }
$7 == "failed" {
	failed[$1, $2, $3, $4]++
	wrong = 1
	reason = ""
	for (i = 8; i <= NF; i++)
		reason = reason " " $i
	none[$1 " " $2 " " $3 " " $4] = reason
	next
}
{
	key = $1 " " $2 " " $3 " " $4 " " $5
	if (!(key in unit)) {
		keys[++n] = key
		unit[key] = $6
	}
	had[$1 " " $2 " " $3 " " $4] = 1
	add(key, $7)
}

function member(name, value, last)
{
	printf "\"%s\": %s%s", name, value, (last ? "" : ", ") >json
}

function test(i, part, key)
{
	key = keys[i]
	split(key, part, " ")
	printf "    {" >json
	member("name", quoted(part[3] "." part[4] "." part[5]))
	member("figure", quoted(part[1]))
	member("way", quoted(by(part[2])))
	member("device", quoted(device(part[2])))
	member("series", quoted(part[3]))
	member("x", part[4])
	member("part", quoted(part[5]))
	member("unit", quoted(unit[key]))
	member("value", sprintf("%.3f", median(key)))
	if (unit[key] == "ms")
		member("link_kib", sprintf("%.1f", median(key) * rate / 8000 / 1024))
	member("low", sprintf("%.3f", low(key)))
	member("high", sprintf("%.3f", high(key)))
	member("runs", count[key])
	member("failed_runs", failed[part[1], part[2], part[3], part[4]] + 0)
	member("spread", sprintf("%.3f", spread(key)), 1)
	printf "}%s\n", (i < n ? "," : "") >json
	printf "%-11s %-11s %-14s %6d %-15s %12.1f %-12s %.3f\n", part[1], part[2], part[3],
		part[4], part[5], median(key), unit[key], spread(key)
}

function timeline(i, k, w, m)
{
	k = lines[i]
	m = split(line[k], w, " ")
	printf "    {" >json
	member("way", quoted(by(w[2])))
	member("device", quoted(device(w[2])))
	member("series", quoted(w[3]))
	member("slot_ms", w[4])
	member("slots_before", w[5])
	printf "\"bytes\": [" >json
	for (k = 6; k <= m; k++)
		printf "%s%d", (k > 6 ? "," : ""), w[k] >json
	printf "]}%s\n", (i < n_lines ? "," : "") >json
}

function out(i, w, m, reason, k)
{
	m = split(left_out[i], w, " ")
	for (k = 4; k <= m; k++)
		reason = reason (k > 4 ? " " : "") w[k]
	printf "    {" >json
	member("figure", quoted(w[2]))
	member("way", quoted(by(w[3])))
	member("device", quoted(device(w[3])))
	member("reason", quoted(reason), 1)
	printf "}%s\n", (i < n_out ? "," : "") >json
	print w[2] " of " w[3] " is left out: " reason
}

END {
	if (!n) {
		print "there is no result of anything"
		exit 1
	}
	json = ENVIRON["json"]
	rate = ENVIRON["rate"] * 1e6
	# a run of which nothing has succeeded is left out, with its reason
	for (k in none)
		if (!(k in had)) {
			split(k, w, " ")
			left_out[++n_out] = "omitted " w[1] " " w[2] " " w[3] " " w[4] \
				": no run succeeded" \
				(none[k] == "" ? "" : ":" none[k])
		}
	printf "{\n  \"command\": %s,\n", quoted(ENVIRON["command"]) >json
	printf "  \"rounds\": %d,\n", ENVIRON["rounds"] >json
	printf "  \"link\": {\"bits_per_s\": %d, \"delay_us\": %d, \"command_us\": %d},\n",
		rate, ENVIRON["delay"], ENVIRON["command_us"] >json
	print "  \"tests\": [" >json
	for (i = 1; i <= n; i++)
		test(i)
	print "  ],\n  \"timelines\": [" >json
	for (i = 1; i <= n_lines; i++)
		timeline(i)
	print "  ],\n  \"omitted\": [" >json
	for (i = 1; i <= n_out; i++)
		out(i)
	print "  ]\n}" >json
	exit wrong
}
