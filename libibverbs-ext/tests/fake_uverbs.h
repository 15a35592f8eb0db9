/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * A device file that is not there: ioctl() of the test program, which hands
 * out handles as the core does and remembers what it was asked for.
 */
#ifndef FAKE_UVERBS_H
#define FAKE_UVERBS_H

#include <stdbool.h>
#include <stdint.h>

#include "migr_cmd.h"

#define FAKE_FD 1000
#define FAKE_HANDLES 8192
#define FAKE_IFINDEX 3

struct fake_object {
	uint32_t type;	   /* enum rxe_migr_type, 0: the handle is free */
	uint32_t identity; /* QPN, key */
	uint32_t state;
	uint32_t sgid_index;
	uint8_t dgid[16];
	uint32_t comp_vector;
	int channel; /* a CQ's; -1: none */
	uint32_t qkey;
	unsigned int groups; /* that the QP has joined */
	bool filled;
};

struct fake {
	struct fake_object object[FAKE_HANDLES];
	unsigned int calls, in_use;
	bool context;
	void *image; /* that was loaded; the caller's memory */
	size_t image_length;
	/* knobs */
	int stock; /* a driver without migration */
	uint32_t taken_qpn, taken_key, taken_ah;
	uint8_t dead_gid[16];	   /* where nobody answers */
	uint8_t active_mtu;	   /* enum ib_mtu */
	unsigned int fail_call;	   /* this one fails with ENOMEM; 0: none */
	int fail_method, fail_err; /* device method, errno */
	uint32_t why;
	uint64_t image_needed;
	bool image_grows;
	unsigned int image_changes; /* so many dumps fail with EAGAIN */
	/* enum migr_reach from each RoCEv2 GID of the table, by its index */
	uint8_t reach[16];
	unsigned int routes_asked;
};

extern struct fake fake;

void fake_reset(void);

#endif /* FAKE_UVERBS_H */
