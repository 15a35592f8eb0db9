/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
#ifndef TEST_CORRUPT_H
#define TEST_CORRUPT_H

#include <stddef.h>
#include <stdint.h>

#define C_MCAST 0xfffffffbU
#define C_CHANNEL 0xfffffffcU
#define C_ASYNC 0xfffffffdU
#define C_HEADER 0xfffffffeU
#define C_CONTEXT 0xffffffffU

/* one number in the sample image is changed: what must the refusal say? */
struct corruption {
	uint32_t handle; /* of the record, or one of these */
	uint32_t offset; /* in the record */
	uint32_t size;	 /* bytes */
	uint64_t value;
	const char *expect;
};

extern const struct corruption corruptions[];
extern const size_t corruption_count;

#endif /* TEST_CORRUPT_H */
