# SPDX-License-Identifier: GPL-2.0
#
# What was measured several times: add() it, then ask.

function add(key, value)
{
	v[key, ++count[key]] = value
}

# in the order of size, from then on
function sort(key, i, j, t)
{
	for (i = 1; i <= count[key]; i++)
		for (j = i + 1; j <= count[key]; j++)
			if (v[key, j] < v[key, i]) {
				t = v[key, i]
				v[key, i] = v[key, j]
				v[key, j] = t
			}
}

function median(key, n)
{
	sort(key)
	n = count[key]
	return (v[key, int((n + 1) / 2)] + v[key, int(n / 2) + 1]) / 2
}

# from the smallest to the largest, as a share of the median
function spread(key, mid)
{
	mid = median(key)
	return mid ? (v[key, count[key]] - v[key, 1]) / mid : 0
}
