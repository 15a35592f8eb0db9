# SPDX-License-Identifier: GPL-2.0
#
# Lines of "name unit module value", with the modules stock, fixes and migr in
# turn: medians and ratios to standard output and to the file $json. The exit
# code is 1 if a ratio is above $limit or cannot be told from it, as with less than
# three rounds.

# how much longer b takes than a, or how much less it does in its time
function ratio(name, a, b)
{
	return unit[name] == "us" ? b / a : a / b
}

NF != 4 || $4 !~ /^[0-9.]+$/ || $4 + 0 == 0 {
	print "not a result: " $0
	wrong = 1
	exit 1
}

!($1 in unit) { names[++n] = $1; unit[$1] = $2 }
{
	add($1 " " $3, $4)
	last[$1, $3] = $4
}
# What is compared was measured next to each other.
$3 == "migr" {
	add($1 " all", ratio($1, last[$1, "stock"], $4))
	add($1 " of fixes", ratio($1, last[$1, "stock"], last[$1, "fixes"]))
	add($1 " of migr", ratio($1, last[$1, "fixes"], $4))
}

END {
	if (wrong)
		exit 1
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
		wide = 0
		split("stock fixes migr", arms)
		for (k = 1; k <= 3; k++) {
			key = name " " arms[k]
			if (count[key] != rounds) {
				printf "%s was measured %d times, not %d\n",
					key, count[key], rounds
				exit 1
			}
			mid[k] = median(key)
			if (spread(key) > wide)
				wide = spread(key)
		}
		all = median(name " all")
		from = low(name " all")
		to = high(name " all")
		printf "    {\"name\": \"%s\", \"unit\": \"%s\", ", name,
			unit[name] >json
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
		else if (to > limit || rounds < 3)
			open = open " " name
	}
	print "  ]\n}" >json
	if (above)
		print "above the limit of " limit ":" above
	if (open)
		print "not to be told from the limit of " limit \
			", which wants more rounds:" open
	if (!above && !open)
		print "none is above " limit
	exit above != "" || open != ""
}
