# SPDX-License-Identifier: GPL-2.0
#
# Lines of "kernel class plain|moved|frozen seconds verified result", with those of
# moved also "dump transfer restore stopped blackout bytes", with those of frozen for
# how long, and "- false -" of a run that failed, or of "first", with which each kernel
# begins: medians (see median.awk) to standard output, to the file $json and as bars to
# $svg. What was never had is null there. The exit code is 1 if a run failed, if a result
# was not verified, or is not that of the kernel's first run, and if there was anything
# else to be read.

function bar(x, height, color, label)
{
	printf "<rect x='%d' y='%.1f' width='34' height='%.1f' fill='%s'/>\n",
		x, 220 - height, height, color >svg
	printf "<text x='%d' y='%.1f' text-anchor='middle'>%s</text>\n",
		x + 17, 215 - height, label >svg
}

function is_run(i)
{
	if (NF != ($3 == "moved" ? 12 : $3 == "frozen" ? 7 : 6))
		return 0
	for (i = 4; i <= NF; i++)
		if (i != 5 && $i !~ /^[0-9.]+$/)
			return 0
	return 1
}

# the median for the JSON
function number(key, format)
{
	return count[key] ? sprintf(format, median(key)) : "null"
}

function range(key)
{
	return count[key] ? sprintf("[%.3f, %.3f]", low(key), high(key)) : "null"
}

function share(key)
{
	return count[key] ? sprintf("%.3f", spread(key)) : "null"
}

# and for who reads the table
function cell(key, format, width)
{
	return sprintf(" %" width "s", count[key] ? sprintf(format, median(key)) : "-")
}

$3 !~ /^(plain|moved|frozen|first)$/ {
	print "not a run: " $0
	odd = 1
	next
}
{ k = $1 " " $2 }
!(k in right) { names[++n] = k; right[k] = 1 }
{ run = ++runs[k " " $3] }
!is_run() {
	if ($4 " " $5 " " $6 != "- false -" || NF != 6) {
		print "not a run: " $0
		odd = 1
	}
	failed[k]++
	right[k] = 0
	next
}

!(k in first) { first[k] = $6 }
$5 != "true" || $6 != first[k] { right[k] = 0 }
{
	add(k " " $3, $4)
	seconds[k " " $3, run] = $4
}
$3 == "moved" {
	split("dump transfer restore stopped blackout bytes", phases)
	for (i = 1; i <= 6; i++)
		add(k " " phases[i], $(6 + i))
}
$3 == "frozen" { add(k " frozen_ms", $7) }

# What is compared was measured next to each other.
function compare(k, kind, i)
{
	for (i = 1; i <= runs[k " " kind]; i++)
		if ((k " plain", i) in seconds && (k " " kind, i) in seconds)
			add(k " added " kind,
				seconds[k " " kind, i] - seconds[k " plain", i])
	if (!count[k " added " kind]) {
		print "there is no result of " k " as it is and " kind
		odd = 1
	}
}

END {
	if (!n) {
		print "there is no result of anything"
		exit 1
	}
	for (i = 1; i <= n; i++) {
		compare(names[i], "moved")
		compare(names[i], "frozen")
	}
	json = ENVIRON["json"]
	svg = ENVIRON["svg"]
	printf "{\n  \"command\": \"%s\",\n", ENVIRON["command"] >json
	print "  \"tests\": [" >json
	printf "<svg xmlns='http://www.w3.org/2000/svg' width='%d' " \
		"height='270' font-family='sans-serif' font-size='11'>\n",
		n * 130 + 20 >svg
	print "<text x='10' y='15'>seconds of a job of four ranks: as it is " \
		"(grey), one frozen (light), one moved (blue)</text>" >svg
	printf "%-6s %9s %9s %9s %9s %9s %9s %9s  %s\n", "", "plain s", "frozen s",
		"moved s", "added s", "frozen", "stopped", "blackout", "ms"
	for (i = 1; i <= n; i++) {
		k = names[i]
		split(k, is, " ") # name and class
		printf "%-6s%s%s%s%s%s%s%s  %s\n", k, cell(k " plain", "%.1f", 9),
			cell(k " frozen", "%.1f", 9), cell(k " moved", "%.1f", 9),
			cell(k " added moved", "%.1f", 9),
			cell(k " frozen_ms", "%.0f", 9),
			cell(k " stopped", "%.0f", 9),
			cell(k " blackout", "%.0f", 9),
			(failed[k] ? failed[k] " FAILED " : "") \
			(right[k] ? "" : "WRONG")
		printf "    {\"name\": \"%s\", \"class\": \"%s\", \"ranks\": 4, " \
			"\"moves\": 1, \"runs\": %d, \"failed_runs\": %d, " \
			"\"verified\": %s, ", toupper(is[1]), is[2],
			runs[k " moved"], failed[k],
			right[k] ? "true" : "false" >json
		printf "\"seconds\": %s, \"baseline_seconds\": %s, " \
			"\"frozen_seconds\": %s, ", number(k " moved", "%.3f"),
			number(k " plain", "%.3f"),
			number(k " frozen", "%.3f") >json
		printf "\"added_seconds\": %s, \"added_by_frozen_seconds\": " \
			"%s, ", number(k " added moved", "%.3f"),
			number(k " added frozen", "%.3f") >json
		printf "\"added_range\": %s, \"added_by_frozen_range\": %s, ",
			range(k " added moved"), range(k " added frozen") >json
		printf "\"dump_ms\": %s, \"transfer_ms\": %s, " \
			"\"restore_ms\": %s, \"stopped_ms\": %s, " \
			"\"frozen_ms\": %s, \"blackout_ms\": %s, \"bytes\": %s, ",
			number(k " dump", "%.0f"), number(k " transfer", "%.0f"),
			number(k " restore", "%.0f"),
			number(k " stopped", "%.0f"),
			number(k " frozen_ms", "%.0f"),
			number(k " blackout", "%.1f"),
			number(k " bytes", "%.0f") >json
		printf "\"spread\": %s, \"baseline_spread\": %s, " \
			"\"frozen_spread\": %s}%s\n", share(k " moved"),
			share(k " plain"), share(k " frozen"),
			i < n ? "," : "" >json
		p = count[k " plain"] ? median(k " plain") : 0
		f = count[k " frozen"] ? median(k " frozen") : 0
		m = count[k " moved"] ? median(k " moved") : 0
		top = m > f ? m : f
		top = top > p ? top : p
		top = top ? top : 1
		x = 20 + (i - 1) * 130
		bar(x, 170 * p / top, "#999999", sprintf("%.1f", p))
		bar(x + 36, 170 * f / top, "#c8c8c8", sprintf("%.1f", f))
		bar(x + 72, 170 * m / top, "#4472c4", sprintf("%.1f", m))
		printf "<text x='%d' y='240'>%s, class %s</text>\n", x,
			toupper(is[1]), is[2] >svg
		if (!right[k])
			all_wrong = all_wrong (all_wrong ? ", " : " ") k
	}
	print "  ]\n}" >json
	print "</svg>" >svg
	if (all_wrong)
		print "not verified, or not always the same:" all_wrong
	exit all_wrong != "" || odd
}
