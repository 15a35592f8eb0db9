/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Fields of the device's structures, which the kernel's mlx5_ifc.h describes:
 * one array element is one bit, the first is the highest of a big-endian word.
 * The header comes from the kernel package at build time.
 *
 *	GET(eqc, p, log_eq_size)	value of a field up to 64 bits
 *	SET(eqc, p, intr, 3)		...which it fits into, else it is cut
 *	AT(create_eq_in, p, eq_context_entry)	where a structure starts
 *	BYTES(eqc), BYTE_OF(eqc, intr)	sizes, offsets
 *
 * With constant fields the compiler leaves a load, a shift and a mask.
 */
#ifndef MLX5SOFT_BITS_H
#define MLX5SOFT_BITS_H

#include <stddef.h>
#include <stdint.h>

#include "../be.h"

/* as the kernel calls it, for its header */
typedef uint8_t u8;

#ifndef __packed
#define __packed __attribute__((packed))
#endif
#define BIT(n) (1UL << (n))
#define BIT_ULL(n) (1ULL << (n))
#define DECLARE_FLEX_ARRAY(type, name) \
	struct {                       \
		struct {               \
		} __empty_##name;      \
		type name[];           \
	}
#include "mlx5_ifc.h"

#define BITS_TYPE(type) struct mlx5_ifc_##type##_bits
#define BITS_AT(type, field) offsetof(BITS_TYPE(type), field)
#define BITS_LEN(type, field) sizeof(((BITS_TYPE(type) *)0)->field)

#define BYTES(type) (sizeof(BITS_TYPE(type)) / 8)
#define BYTE_OF(type, field) (BITS_AT(type, field) / 8)
#define AT(type, p, field) ((void *)((uint8_t *)(p) + BYTE_OF(type, field)))
#define AT_RO(type, p, field) \
	((const void *)((const uint8_t *)(p) + BYTE_OF(type, field)))
#define GET(type, p, field) \
	bits_get(p, BITS_AT(type, field), BITS_LEN(type, field))
#define SET(type, p, field, value) \
	bits_set(p, BITS_AT(type, field), BITS_LEN(type, field), value)
/* a field of one structure into the other of the same type */
#define COPY(type, to, from, field) SET(type, to, field, GET(type, from, field))

/* the rest, bit by bit: fields over the border of a word */
static inline uint64_t bits_get_slow(const uint8_t *p, size_t at, size_t len)
{
	uint64_t v = 0;

	for (; len; len--, at++)
		v = v << 1 | (p[at / 8] >> (7 - at % 8) & 1);
	return v;
}

static inline void bits_set_slow(uint8_t *p, size_t at, size_t len, uint64_t v)
{
	for (; len; len--, at++) {
		uint8_t bit = 0x80 >> at % 8;

		if (v >> (len - 1) & 1)
			p[at / 8] |= bit;
		else
			p[at / 8] &= ~bit;
	}
}

static inline uint64_t bits_get(const void *p, size_t at, size_t len)
{
	const uint8_t *word = (const uint8_t *)p + at / 32 * 4;
	unsigned int in = at % 32;

	if (len == 64 && !in)
		return get_be64(word);
	if (in + len <= 32)
		return get_be32(word) >> (32 - in - len) &
		       (uint32_t)(0xffffffffULL >> (32 - len));
	return bits_get_slow(p, at, len);
}

static inline void bits_set(void *p, size_t at, size_t len, uint64_t v)
{
	uint8_t *word = (uint8_t *)p + at / 32 * 4;
	unsigned int in = at % 32, shift;
	uint32_t mask;

	if (len == 64 && !in) {
		put_be64(word, v);
	} else if (in + len <= 32) {
		shift = 32 - in - len;
		mask = (uint32_t)(0xffffffffULL >> (32 - len)) << shift;
		put_be32(word, (get_be32(word) & ~mask) |
				       ((uint32_t)v << shift & mask));
	} else {
		bits_set_slow(p, at, len, v);
	}
}

#endif /* MLX5SOFT_BITS_H */
