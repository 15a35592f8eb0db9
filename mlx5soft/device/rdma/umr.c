// SPDX-License-Identifier: GPL-2.0
/*
 * User-mode memory registration as far as mlx5_ib insists: another PD, other
 * rights, valid or not. Ranges and page lists change with CREATE_MKEY only, as
 * the capabilities say.
 */

#include "mkey.h"
#include "nic.h"
#include "rdma/rdma.h"
#include "rdma/wqe.h"

/* the WQE: control segment, UMR control segment, mkey context */
#define AT_CTRL 16U
#define AT_MKC 64U
#define UMR_BYTES (AT_MKC + BYTES(mkc))

/* UMR control segment, byte 0 */
#define FAIL_UNLESS_FREE (1 << 5)
#define FAIL_IF_FREE (2 << 5)

/* what to change: a mask in its bytes 8 to 15 */
enum mask {
	MASK_PD = 1 << 7,
	MASK_KEY = 1 << 13,
	MASK_LR = 1 << 17,
	MASK_LW = 1 << 18,
	MASK_RR = 1 << 19,
	MASK_RW = 1 << 20,
	MASK_A = 1 << 21,
	MASK_FREE = 1 << 29,
	/* told with the others, and nothing to us */
	MASK_QPN = 1 << 14,
	MASK_SMALL_FENCE = 1 << 23,
};
#define MASK_KNOWN                                                             \
	(MASK_PD | MASK_KEY | MASK_LR | MASK_LW | MASK_RR | MASK_RW | MASK_A | \
	 MASK_FREE | MASK_QPN | MASK_SMALL_FENCE)

static bool change_pd(struct nic *nic, struct mkey *mkey, uint32_t pd)
{
	struct obj *to = obj_find(nic, OBJ_PD, pd);

	if (!to)
		return false;
	obj_drop_deps(&mkey->obj); /* a PD is all it has */
	mkey->pd = pd;
	return obj_hold(&mkey->obj, to);
}

static void change_right(struct mkey *mkey, bool asked, uint8_t right, bool on)
{
	if (asked)
		mkey->access = (mkey->access & ~right) | (on ? right : 0);
}

enum roce_wc_status umr_execute(struct nic *nic, const uint8_t *wqe,
				uint32_t len)
{
	const uint8_t *mkc = wqe + AT_MKC;
	uint32_t key = get_be32(wqe + 12);
	struct mkey *mkey;
	uint64_t mask;

	if (len < UMR_BYTES)
		return ROCE_WC_LOC_QP_OP_ERR;
	mask = get_be64(wqe + AT_CTRL + 8);
	mkey = (struct mkey *)obj_find(nic, OBJ_MKEY, key >> 8);
	if (!mkey || (mask & ~(uint64_t)MASK_KNOWN) ||
	    (wqe[AT_CTRL] & FAIL_UNLESS_FREE && !mkey->invalid) ||
	    (wqe[AT_CTRL] & FAIL_IF_FREE && mkey->invalid))
		return ROCE_WC_MW_BIND_ERR;
	if (mask & MASK_PD && !change_pd(nic, mkey, GET(mkc, mkc, pd)))
		return ROCE_WC_MW_BIND_ERR;
	change_right(mkey, mask & MASK_LW, MKEY_LOCAL_WRITE, GET(mkc, mkc, lw));
	change_right(mkey, mask & MASK_RW, MKEY_REMOTE_WRITE,
		     GET(mkc, mkc, rw));
	change_right(mkey, mask & MASK_RR, MKEY_REMOTE_READ, GET(mkc, mkc, rr));
	change_right(mkey, mask & MASK_A, MKEY_REMOTE_ATOMIC, GET(mkc, mkc, a));
	if (mask & MASK_LR)
		mkey->local_read = GET(mkc, mkc, lr);
	if (mask & MASK_KEY)
		mkey->key = (mkey->key & ~0xffU) | GET(mkc, mkc, mkey_7_0);
	if (mask & MASK_FREE)
		mkey->invalid = GET(mkc, mkc, free);
	return ROCE_WC_SUCCESS;
}
