# SPDX-License-Identifier: GPL-2.0
#
# Lines of "name unit mlx5 rxe cpu-before(user system) cpu-after(user system)
# messages": medians (see median.awk) to standard output, to the file $json and as
# bars to $svg. A message of a test of bandwidth has 64 KiB.

function bar(x, height, color, label)
{
	printf "<rect x='%d' y='%.1f' width='40' height='%.1f' fill='%s'/>\n",
		x, 220 - height, height, color >svg
	printf "<text x='%d' y='%.1f' text-anchor='middle'>%s</text>\n",
		x + 20, 215 - height, label >svg
}

!($1 in unit) { names[++n] = $1; unit[$1] = $2 }
{
	add($1 " mlx5", $3)
	add($1 " rxe", $4)
	# hundredths of a second for so many messages: seconds a GiB
	add($1 " user", ($7 - $5) / 100 * 16384 / $9)
	add($1 " system", ($8 - $6) / 100 * 16384 / $9)
}

END {
	json = ENVIRON["json"]
	svg = ENVIRON["svg"]
	printf "{\n  \"command\": \"%s\",\n", ENVIRON["command"] >json
	printf "  \"kernel\": \"%s\",\n", ENVIRON["kernel"] >json
	printf "  \"mlx5soft_cksum\": %s,\n", ENVIRON["device"] >json
	printf "  \"rounds\": %d,\n", count[names[1] " mlx5"] >json
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
		a = median(name " mlx5")
		b = median(name " rxe")
		ratio = unit[name] == "us" ? b / a : a / b
		user = median(name " user")
		system_ = median(name " system")
		printf "%-14s %9.1f %9.1f  %6.2f", name, a, b, ratio
		printf "    {\"name\": \"%s\", \"unit\": \"%s\", " \
			"\"mlx5soft\": %.2f, \"rdma_rxe\": %.2f, " \
			"\"ratio\": %.2f", name, unit[name], a, b, ratio >json
		printf ", \"mlx5soft_spread\": %.3f, \"rdma_rxe_spread\": %.3f",
			spread(name " mlx5"), spread(name " rxe") >json
		if (unit[name] != "us") {
			printf "  %.2f, %.2f", user, system_
			printf ", \"user_s_per_gib\": %.2f, " \
				"\"system_s_per_gib\": %.2f", user, system_ >json
		}
		printf "  %s\n", unit[name]
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
}
