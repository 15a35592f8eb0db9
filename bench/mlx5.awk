# SPDX-License-Identifier: GPL-2.0
#
# Lines of "name unit mlx5 result cpu-before(user system) cpu-after(user system)
# messages" and "name unit rxe result", with "failed" as the result of what failed:
# medians (see median.awk) to standard output, to the file $json and as bars to $svg. A
# message of a test of bandwidth has 64 KiB. The exit code is 1 if something was not
# measured in all $rounds; what was is the result.

function bar(x, height, color, label)
{
	printf "<rect x='%d' y='%.1f' width='40' height='%.1f' fill='%s'/>\n",
		x, 220 - height, height, color >svg
	printf "<text x='%d' y='%.1f' text-anchor='middle'>%s</text>\n",
		x + 20, 215 - height, label >svg
}

function is_result(i)
{
	if (NF != ($3 == "mlx5" ? 9 : 4))
		return 0
	for (i = 4; i <= NF; i++)
		if ($i !~ /^[0-9.]+$/)
			return 0
	return $4 > 0 && (NF == 4 || $9 > 0)
}

$3 ~ /^(mlx5|rxe)$/ && !($1 in unit) { names[++n] = $1; unit[$1] = $2 }
$3 !~ /^(mlx5|rxe)$/ || !is_result() {
	if ($4 != "failed" || NF != 4) {
		print "not a result: " $0
		wrong = 1
	}
	next
}
{ add($1 " " $3, $4) }
$3 == "mlx5" {
	# hundredths of a second for so many messages: seconds a GiB
	add($1 " user", ($7 - $5) / 100 * 16384 / $9)
	add($1 " system", ($8 - $6) / 100 * 16384 / $9)
}

END {
	if (!n) {
		print "there is no result of anything"
		exit 1
	}
	rounds = ENVIRON["rounds"]
	json = ENVIRON["json"]
	svg = ENVIRON["svg"]
	printf "{\n  \"command\": \"%s\",\n", ENVIRON["command"] >json
	printf "  \"kernel\": \"%s\",\n", ENVIRON["kernel"] >json
	printf "  \"mlx5soft_cksum\": %s,\n", ENVIRON["device"] >json
	printf "  \"rounds\": %d,\n", rounds >json
	print "  \"tests\": [" >json
	printf "<svg xmlns='http://www.w3.org/2000/svg' width='%d' " \
		"height='270' font-family='sans-serif' font-size='11'>\n",
		n * 130 + 20 >svg
	print "<text x='10' y='15'>mlx5soft (blue) and rdma_rxe (grey); " \
		"bars to scale within each test</text>" >svg
	printf "%-14s %9s %9s  %6s  %s\n", "", "mlx5soft", "rdma_rxe",
		"ratio", "seconds of processor a GiB (user, system)"
	for (i = 1; i <= n; i++) {
		name = names[i]
		failed = 2 * rounds - count[name " mlx5"] - count[name " rxe"]
		printf "    {\"name\": \"%s\", \"unit\": \"%s\", " \
			"\"failed_runs\": %d, ", name, unit[name], failed >json
		if (failed)
			wrong = 1
		if (!count[name " mlx5"] || !count[name " rxe"]) {
			printf "\"ratio\": null}%s\n", i < n ? "," : "" >json
			printf "%-14s has no result\n", name
			continue
		}
		a = median(name " mlx5")
		b = median(name " rxe")
		ratio = unit[name] == "us" ? b / a : a / b
		user = median(name " user")
		system_ = median(name " system")
		printf "%-14s %9.1f %9.1f  %6.2f", name, a, b, ratio
		printf "\"mlx5soft\": %.2f, \"rdma_rxe\": %.2f, " \
			"\"ratio\": %.2f", a, b, ratio >json
		printf ", \"mlx5soft_spread\": %.3f, \"rdma_rxe_spread\": %.3f",
			spread(name " mlx5"), spread(name " rxe") >json
		if (unit[name] != "us") {
			printf "  %.2f, %.2f", user, system_
			printf ", \"user_s_per_gib\": %.2f, " \
				"\"system_s_per_gib\": %.2f", user, system_ >json
		}
		printf "  %s%s\n", unit[name],
			failed ? ", " failed " FAILED" : ""
		printf "}%s\n", i < n ? "," : "" >json
		top = a > b ? a : b
		bar(20 + (i - 1) * 130, 170 * a / top, "#4472c4",
			sprintf("%.1f", a))
		bar(65 + (i - 1) * 130, 170 * b / top, "#999999",
			sprintf("%.1f", b))
		printf "<text x='%d' y='240'>%s, %s</text>\n",
			20 + (i - 1) * 130, name, unit[name] >svg
	}
	print "  ]\n}" >json
	print "</svg>" >svg
	exit wrong
}
