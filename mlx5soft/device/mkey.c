// SPDX-License-Identifier: GPL-2.0
/* Memory keys: from (key, address) to places in memory, with all checks. */

#include <errno.h>
#include <stdlib.h>

#include "commands/cmd.h"
#include "mkey.h"
#include "nic.h"

#define MODE_PA 0
#define MODE_MTT 1
#define SMALL_PAGE 4096U

static void mkey_free(struct nic *nic, struct obj *obj)
{
	struct mkey *mkey = (struct mkey *)obj;

	(void)nic;
	pas_free(&mkey->pas);
	free(mkey);
}

static int parse(struct nic *nic, struct cmd *cmd, struct mkey *mkey)
{
	const uint8_t *mkc = mkey->mkc;
	unsigned int shift = GET(mkc, mkc, log_page_size), mode;
	uint64_t list =
		GET(create_mkey_in, cmd->in, translations_octword_actual_size) *
		16;
	uint64_t first;
	int ret;

	mode = GET(mkc, mkc, access_mode_4_2) << 2 |
	       GET(mkc, mkc, access_mode_1_0);
	mkey->pd = GET(mkc, mkc, pd);
	mkey->invalid = GET(mkc, mkc, free);
	mkey->local_read = GET(mkc, mkc, lr);
	mkey->remote_invalidate = GET(mkc, mkc, en_rinval);
	mkey->access = (GET(mkc, mkc, lw) ? MKEY_LOCAL_WRITE : 0) |
		       (GET(mkc, mkc, rw) ? MKEY_REMOTE_WRITE : 0) |
		       (GET(mkc, mkc, rr) ? MKEY_REMOTE_READ : 0) |
		       (GET(mkc, mkc, a) ? MKEY_REMOTE_ATOMIC : 0);
	mkey->all = GET(mkc, mkc, length64);
	mkey->start = GET(mkc, mkc, start_addr);
	mkey->len = GET(mkc, mkc, len);
	if (!cmd_hold(nic, &mkey->obj, OBJ_PD, mkey->pd))
		return FAIL(BAD_RES, "no such PD");
	if (mode == MODE_PA) {
		mkey->physical = true;
	} else if (mode != MODE_MTT) {
		return FAIL(BAD_PARAM, "access mode");
	} else if (mkey->all) {
		return FAIL(BAD_PARAM, "a list cannot reach everything");
	} else if (!mkey->invalid) {
		if (shift < PAGE_SHIFT_MIN || shift > 40)
			return FAIL(BAD_PARAM, "page size");
		if (mkey->len > 1ULL << MAX_LOG_MR)
			return FAIL(BAD_PARAM, "length");
		first = mkey->start & ((1ULL << shift) - 1);
		if (list > cmd->in_len - BYTES(create_mkey_in))
			return FAIL(BAD_PARAM, "list too short");
		ret = pas_init(&mkey->pas, cmd->in + BYTES(create_mkey_in),
			       list, shift, 0, first + mkey->len);
		if (ret)
			return FAIL_WITH(ret, "list too short");
	}
	if (!mkey->all && mkey->len &&
	    mkey->start + (mkey->len - 1) < mkey->start)
		return FAIL(BAD_PARAM, "range");
	return CMD_OK;
}

static int create_mkey(struct nic *nic, struct cmd *cmd)
{
	struct mkey *mkey = calloc(1, sizeof(*mkey));
	int ret;

	if (!mkey)
		return FAIL(LIMIT, "no memory");
	mkey->obj.free = mkey_free;
	memcpy(mkey->mkc, AT_RO(create_mkey_in, cmd->in, memory_key_mkey_entry),
	       sizeof(mkey->mkc));
	ret = parse(nic, cmd, mkey);
	if (ret) {
		obj_destroy(nic, &mkey->obj);
		return ret;
	}
	ret = cmd_created(nic, cmd, &mkey->obj, OBJ_MKEY);
	if (!ret)
		mkey->key = mkey->obj.id << 8 | GET(mkc, mkey->mkc, mkey_7_0);
	return ret;
}

static int query_mkey(struct nic *nic, struct cmd *cmd)
{
	struct mkey *mkey = (struct mkey *)obj_find(nic, OBJ_MKEY, cmd_id(cmd));
	uint8_t *mkc = AT(query_mkey_out, cmd->out, memory_key_mkey_entry);

	if (!mkey)
		return FAIL(BAD_RES, "no such mkey");
	memcpy(mkc, mkey->mkc, sizeof(mkey->mkc));
	SET(mkc, mkc, free, mkey->invalid);
	return CMD_OK;
}

static struct mkey *mkey_get(struct nic *nic, uint32_t pd, uint32_t key)
{
	struct mkey *mkey = (struct mkey *)obj_find(nic, OBJ_MKEY, key >> 8);

	if (!mkey || mkey->key != key || mkey->invalid)
		return NULL;
	return pd == ANY_PD || pd == mkey->pd ? mkey : NULL;
}

int mkey_invalidate(struct nic *nic, uint32_t pd, uint32_t key)
{
	struct mkey *mkey = mkey_get(nic, pd, key);

	if (!mkey || !mkey->remote_invalidate)
		return -EACCES;
	mkey->invalid = true;
	return 0;
}

static bool in_range(const struct mkey *mkey, uint64_t addr, uint32_t len)
{
	return mkey->all || (addr >= mkey->start && len <= mkey->len &&
			     addr - mkey->start <= mkey->len - len);
}

static void *place(struct nic *nic, uint64_t addr, uint32_t len, bool write)
{
	return write ? dma_ptr_write(nic, addr, len)
		     : (void *)dma_ptr_read(nic, addr, len);
}

/* the largest piece at `addr` that lies in one place */
static void *piece(struct nic *nic, const struct mkey *mkey, uint64_t addr,
		   uint32_t *len, bool write)
{
	uint64_t pa = addr, in, size;
	void *p;

	if (mkey && !mkey->physical) {
		size = 1ULL << mkey->pas.shift;
		in = addr - mkey->start + (mkey->start & (size - 1));
		if (in >> mkey->pas.shift >= mkey->pas.count)
			return NULL;
		pa = mkey->pas.page[in >> mkey->pas.shift];
		in &= size - 1;
		pa += in;
		if (*len > size - in)
			*len = size - in;
	}
	p = place(nic, pa, *len, write);
	if (p)
		return p;
	/* perhaps over the border of two maps */
	in = SMALL_PAGE - pa % SMALL_PAGE;
	if (*len > in)
		*len = in;
	return place(nic, pa, *len, write);
}

int mkey_translate(struct nic *nic, uint32_t pd, uint32_t key, uint64_t addr,
		   uint32_t len, unsigned int access, bool reserved,
		   struct iovec *iov, int max)
{
	bool write = access & ~(unsigned int)MKEY_REMOTE_READ;
	struct mkey *mkey = NULL;
	int used = 0;
	uint32_t n;

	if (len && addr + (len - 1) < addr)
		return -EACCES;
	if (key != RESD_LKEY || !reserved) {
		mkey = mkey_get(nic, pd, key);
		if (!mkey || (mkey->access & access) != access ||
		    (!access && !mkey->local_read) ||
		    !in_range(mkey, addr, len))
			return -EACCES;
	}
	for (; iov && len; addr += n, len -= n) {
		if (used == max)
			return -E2BIG;
		n = len;
		iov[used].iov_base = piece(nic, mkey, addr, &n, write);
		if (!iov[used].iov_base)
			return -EFAULT;
		iov[used++].iov_len = n;
	}
	return used;
}

static const struct cmd_desc rows[] = {
	ROW(CREATE_MKEY, create_mkey, BYTES(create_mkey_in), 16, 0),
	ROW(DESTROY_MKEY, cmd_destroy, 16, 16, OBJ_MKEY),
	ROW(QUERY_MKEY, query_mkey, 16,
	    BYTE_OF(query_mkey_out, memory_key_mkey_entry) + BYTES(mkc), 0),
};

const struct cmd_rows rows_mkey = { rows, N_ELEM(rows) };
