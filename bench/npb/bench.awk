# SPDX-License-Identifier: GPL-2.0
#
# Lines of "kernel class plain|moved|frozen seconds verified result", with those of
# moved also "dump transfer restore stopped blackout bytes", and "- false -" of a run
# that failed: medians (see median.awk) to standard output, to the file $json and as
# bars to $svg. The exit code is 1 if a result was not verified, or is not that of the
# kernel's first run; and with no results at all, if one of the three was never had.

function bar(x, height, color, label)
{
	printf "<rect x='%d' y='%.1f' width='34' height='%.1f' fill='%s'/>\n",
		x, 220 - height, height, color >svg
	printf "<text x='%d' y='%.1f' text-anchor='middle'>%s</text>\n",
		x + 17, 215 - height, label >svg
}

function wrong_line()
{
	print "not a run: " $0
	bad = 1
	exit 1
}

function no_result(what)
{
	print "there is no result " what
	bad = 1
	exit 1
}

$3 !~ /^(plain|moved|frozen)$/ { wrong_line() }
!($1 in class) { names[++n] = $1; class[$1] = $2; right[$1] = 1 }
{ run = ++runs[$1 " " $3] }
$4 " " $5 " " $6 == "- false -" && NF == 6 { failed[$1]++; right[$1] = 0; next }
NF != ($3 == "moved" ? 12 : 6) { wrong_line() }
{
	for (i = 4; i <= NF; i++)
		if (i != 5 && $i !~ /^[0-9.]+$/)
			wrong_line()
}

!($1 in first) { first[$1] = $6 }
$5 != "true" || $6 != first[$1] { right[$1] = 0 }
{
	add($1 " " $3, $4)
	seconds[$1 " " $3, run] = $4
}
$3 == "moved" {
	split("dump transfer restore stopped blackout bytes", phases)
	for (i = 1; i <= 6; i++)
		add($1 " " phases[i], $(6 + i))
}

# What is compared was measured next to each other.
function compare(k, kind, i)
{
	for (i = 1; i <= runs[k " " kind]; i++)
		if ((k " plain", i) in seconds && (k " " kind, i) in seconds)
			add(k " added " kind,
				seconds[k " " kind, i] - seconds[k " plain", i])
	if (!count[k " added " kind])
		no_result("of " k " as it is and " kind)
}

END {
	if (bad)
		exit 1
	if (!n)
		no_result("of anything")
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
	printf "%-4s %9s %9s %9s %9s %9s %9s  %s\n", "", "plain s", "frozen s",
		"moved s", "added s", "stopped", "blackout", "ms"
	for (i = 1; i <= n; i++) {
		k = names[i]
		p = median(k " plain")
		f = median(k " frozen")
		m = median(k " moved")
		printf "%-4s %9.1f %9.1f %9.1f %9.1f %9.0f %9.0f  %s\n", k, p, f,
			m, median(k " added moved"), median(k " stopped"),
			median(k " blackout"), right[k] ? "" : "WRONG"
		printf "    {\"name\": \"%s\", \"class\": \"%s\", \"ranks\": 4, " \
			"\"moves\": 1, \"runs\": %d, \"failed_runs\": %d, " \
			"\"verified\": %s, ", toupper(k), class[k],
			runs[k " moved"], failed[k],
			right[k] ? "true" : "false" >json
		printf "\"seconds\": %.3f, \"baseline_seconds\": %.3f, " \
			"\"frozen_seconds\": %.3f, ", m, p, f >json
		printf "\"added_seconds\": %.3f, \"added_by_frozen_seconds\": " \
			"%.3f, ", median(k " added moved"),
			median(k " added frozen") >json
		printf "\"added_range\": [%.3f, %.3f], " \
			"\"added_by_frozen_range\": [%.3f, %.3f], ",
			low(k " added moved"), high(k " added moved"),
			low(k " added frozen"), high(k " added frozen") >json
		printf "\"dump_ms\": %.0f, \"transfer_ms\": %.0f, " \
			"\"restore_ms\": %.0f, \"stopped_ms\": %.0f, " \
			"\"blackout_ms\": %.1f, \"bytes\": %.0f, ",
			median(k " dump"), median(k " transfer"),
			median(k " restore"), median(k " stopped"),
			median(k " blackout"), median(k " bytes") >json
		printf "\"spread\": %.3f}%s\n", spread(k " moved"),
			i < n ? "," : "" >json
		top = m > f ? m : f
		top = top > p ? top : p
		x = 20 + (i - 1) * 130
		bar(x, 170 * p / top, "#999999", sprintf("%.1f", p))
		bar(x + 36, 170 * f / top, "#c8c8c8", sprintf("%.1f", f))
		bar(x + 72, 170 * m / top, "#4472c4", sprintf("%.1f", m))
		printf "<text x='%d' y='240'>%s, class %s</text>\n", x,
			toupper(k), class[k] >svg
		if (!right[k])
			all_wrong = all_wrong " " k
	}
	print "  ]\n}" >json
	print "</svg>" >svg
	if (all_wrong)
		print "not verified, or not always the same:" all_wrong
	exit all_wrong != ""
}
