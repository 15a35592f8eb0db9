# SPDX-License-Identifier: GPL-2.0
#
# Lines of "name unit module value", with each of the modules stock, fixes and migr once
# a round, and "failed" as the value of what failed: medians and ratios to standard
# output and to the file $json. The exit code is 1 if a ratio is above $limit or cannot
# be told from it, as with less than three rounds, and if something was not measured in
# all $rounds; what was is the result.

# how much longer b takes than a, or how much less it does in its time
function ratio(name, a, b)
{
	return unit[name] == "us" ? b / a : a / b
}

# What is compared was measured next to each other.
function compare(name, key, a, b, i)
{
	for (i = 1; i <= runs[name " " a]; i++)
		if ((name, a, i) in value && (name, b, i) in value)
			add(name " " key,
				ratio(name, value[name, a, i], value[name, b, i]))
}

$3 ~ /^(stock|fixes|migr)$/ {
	if (!($1 in unit)) {
		names[++n] = $1
		unit[$1] = $2
	}
	run = ++runs[$1 " " $3]
}
$3 !~ /^(stock|fixes|migr)$/ || NF != 4 || $4 !~ /^[0-9.]+$/ || $4 + 0 == 0 {
	if ($4 != "failed") {
		print "not a result: " $0
		wrong = 1
	}
	next
}
{
	add($1 " " $3, $4)
	value[$1, $3, run] = $4
}

END {
	if (!n) {
		print "there is no result of anything"
		exit 1
	}
	json = ENVIRON["json"]
	limit = ENVIRON["limit"]
	rounds = ENVIRON["rounds"]
	printf "{\n  \"command\": \"%s\",\n", ENVIRON["command"] >json
	printf "  \"kernel\": \"%s\",\n", ENVIRON["kernel"] >json
	printf "  \"module_cksum\": %s,\n", ENVIRON["cksum"] >json
	printf "  \"rounds\": %d,\n  \"limit\": %s,\n", rounds, limit >json
	printf "  \"tests\": [\n" >json
	printf "%-14s %9s %9s %9s  %-23s %8s %8s  %s\n", "", "stock", "fixes",
		"migr", "ratio", "fixes", "protocol", "spread"
	for (i = 1; i <= n; i++) {
		name = names[i]
		wide = failed = 0
		compare(name, "all", "stock", "migr")
		compare(name, "of fixes", "stock", "fixes")
		compare(name, "of migr", "fixes", "migr")
		split("stock fixes migr", arms)
		for (k = 1; k <= 3; k++) {
			key = name " " arms[k]
			if (count[key] != rounds) {
				printf "%s was measured %d times, not %d\n",
					key, count[key], rounds
				failed += rounds - count[key]
				wrong = 1
			}
			mid[k] = median(key)
			if (spread(key) > wide)
				wide = spread(key)
		}
		printf "    {\"name\": \"%s\", \"unit\": \"%s\", " \
			"\"failed_runs\": %d, ", name, unit[name], failed >json
		if (!count[name " all"] || !count[name " fixes"]) {
			printf "\"ratio\": null}%s\n", i < n ? "," : "" >json
			lost = lost " " name
			continue
		}
		all = median(name " all")
		from = low(name " all")
		to = high(name " all")
		printf "\"stock\": %.4f, \"fixes\": %.4f, \"migr\": %.4f, ",
			mid[1], mid[2], mid[3] >json
		printf "\"ratio\": %.4f, \"low\": %.4f, \"high\": %.4f, ", all,
			from, to >json
		printf "\"ratio_of_fixes\": %.4f, \"ratio_of_protocol\": %.4f, ",
			median(name " of fixes"), median(name " of migr") >json
		printf "\"spread\": %.4f}%s\n", wide, i < n ? "," : "" >json
		printf "%-14s %9.3f %9.3f %9.3f  %.4f (%.4f..%.4f) %8.4f %8.4f" \
			"  %.4f  %s\n", name, mid[1], mid[2], mid[3], all,
			from, to, median(name " of fixes"),
			median(name " of migr"), wide, unit[name]
		if (from > limit)
			above = above " " name
		else if (to > limit || count[name " all"] < 3)
			open = open " " name
	}
	print "  ]\n}" >json
	if (above)
		print "above the limit of " limit ":" above
	if (open)
		print "not to be told from the limit of " limit \
			", which wants more rounds:" open
	if (lost)
		print "there is no result of:" lost
	if (!above && !open && !lost)
		print "none is above " limit
	exit above != "" || open != "" || lost != "" || wrong
}
