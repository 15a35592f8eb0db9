/* SPDX-License-Identifier: GPL-2.0 */
/* Memory keys: where the memory of a key is, and who may use it */
#ifndef MLX5SOFT_MKEY_H
#define MLX5SOFT_MKEY_H

#include <sys/uio.h>

#include "dma.h"
#include "object.h"

enum mkey_access {
	MKEY_LOCAL_READ = 0,
	MKEY_LOCAL_WRITE = 1 << 0,
	MKEY_REMOTE_WRITE = 1 << 1,
	MKEY_REMOTE_READ = 1 << 2,
	MKEY_REMOTE_ATOMIC = 1 << 3,
};

struct mkey {
	struct obj obj;
	uint32_t key;
	uint32_t pd;
	bool invalid, all, physical;
	uint8_t access; /* enum mkey_access */
	bool local_read, remote_invalidate;
	uint64_t start, len;
	struct pas pas;
	uint8_t mkc[BYTES(mkc)];
};

#define RESD_LKEY 0x200U /* of kernel QPs: all memory */
#define ANY_PD 0xffffffffU

/*
 * Where the memory of `key` at `addr` lies. Returns how many of `max` elements
 * it filled, with iov NULL >= 0 after a mere check; -EACCES: no such key,
 * another PD, outside or a right missing; -EFAULT: the memory is gone;
 * -E2BIG: more than max. `reserved` permits the reserved lkey.
 */
int mkey_translate(struct nic *nic, uint32_t pd, uint32_t key, uint64_t addr,
		   uint32_t len, unsigned int access, bool reserved,
		   struct iovec *iov, int max);
int mkey_invalidate(struct nic *nic, uint32_t pd, uint32_t key);

#endif /* MLX5SOFT_MKEY_H */
