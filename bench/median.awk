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

# The median of ever more measurements lies, with a probability of 95 % whatever
# their distribution, between the k-th smallest and the k-th largest of these;
# with less, of fewer than six. This is k.
function rank(key, n, k, c, sum)
{
	n = count[key]
	c = sum = 0.5 ^ n
	for (k = 1; k < (n + 1) / 2; k++) {
		# sum: the probability that at most k lie below the median
		c *= (n - k + 1) / k
		sum += c
		if (sum > 0.025)
			break
	}
	return k
}

function low(key)
{
	sort(key)
	return v[key, rank(key)]
}

function high(key)
{
	sort(key)
	return v[key, count[key] + 1 - rank(key)]
}
