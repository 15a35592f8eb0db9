/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Bytes that know where they belong.
 *
 * A pattern is an endless string of bytes named by a 64-bit key. Any part of
 * it can be written or checked without the parts before it, a 64-bit word at
 * a time, so that checking every byte stays cheap under emulation.
 */
#ifndef MIX_PATTERN_H
#define MIX_PATTERN_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A bijection in which every input bit reaches every output bit. */
static inline uint64_t mix64(uint64_t x)
{
	x ^= x >> 30;
	x *= 0xbf58476d1ce4e5b9;
	x ^= x >> 27;
	x *= 0x94d049bb133111eb;
	return x ^ x >> 31;
}

/* The key of the @n-th thing below @key. */
static inline uint64_t key_of(uint64_t key, uint64_t n)
{
	return mix64(key + (n + 1) * 0x9e3779b97f4a7c15);
}

uint8_t pattern_byte(uint64_t key, uint64_t off);

/* Write bytes @off .. @off + @len of the pattern @key to @buf. */
void pattern_fill(void *buf, uint64_t key, uint64_t off, size_t len);

/* Returns the index in @buf of the first wrong byte, or -1. */
ssize_t pattern_check(const void *buf, uint64_t key, uint64_t off, size_t len);

#endif
