// SPDX-License-Identifier: GPL-2.0
#include <endian.h>
#include <string.h>

#include "pattern.h"

/* One multiplication a word; the key has been through mix64() already. */
static inline uint64_t word(uint64_t key, uint64_t i)
{
	uint64_t x = key + i * 0x9e3779b97f4a7c15;

	x ^= x >> 32;
	x *= 0xd6e8feb86659fd93;
	return htole64(x ^ x >> 32);
}

uint8_t pattern_byte(uint64_t key, uint64_t off)
{
	uint64_t w = word(key, off / 8);

	return ((uint8_t *)&w)[off % 8];
}

void pattern_fill(void *buf, uint64_t key, uint64_t off, size_t len)
{
	uint8_t *p = buf;
	uint64_t w;

	for (; len && off % 8; len--)
		*p++ = pattern_byte(key, off++);
	for (; len >= 8; len -= 8, off += 8, p += 8) {
		w = word(key, off / 8);
		memcpy(p, &w, 8);
	}
	for (; len; len--)
		*p++ = pattern_byte(key, off++);
}

/* The first wrong byte of up to 8, for the message; len if all are right. */
static size_t first_wrong(const uint8_t *p, uint64_t key, uint64_t off,
			  size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		if (p[i] != pattern_byte(key, off + i))
			break;
	return i;
}

ssize_t pattern_check(const void *buf, uint64_t key, uint64_t off, size_t len)
{
	const uint8_t *start = buf, *p = buf;
	size_t n, good;
	uint64_t seen;

	for (; len; len -= n, off += n, p += n) {
		n = 8 - off % 8;
		if (n > len)
			n = len;
		if (n == 8) {
			memcpy(&seen, p, 8);
			if (seen == word(key, off / 8))
				continue;
		}
		good = first_wrong(p, key, off, n);
		if (good < n)
			return p + good - start;
	}
	return -1;
}
