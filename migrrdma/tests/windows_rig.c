// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "windows_rig.h"

#include "post.h"

bool at_once = true;
enum ibv_wc_status done_with;

static void on_posted(struct ibv_qp *real, const struct fake_sent *sent)
{
	bool is_window = sent->wr.opcode == IBV_WR_BIND_MW ||
			 sent->wr.opcode == IBV_WR_LOCAL_INV;

	if (is_window && at_once)
		fake_finish(real, UINT_MAX, done_with);
	else if (prompt && is_marker(sent))
		fake_finish(real, UINT_MAX, IBV_WC_SUCCESS);
}

void windows_make(void)
{
	fake_binds = true;
	fake_posted_hook = on_posted;
	world_make();
	CHECK(!ibv_dereg_mr(w.mr));
	MUST(w.mr = ibv_reg_mr(pd, w.memory, sizeof(w.memory),
			       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND));
}

struct ibv_mw *new_window(enum ibv_mw_type type)
{
	struct ibv_mw *mw = ibv_alloc_mw(pd, type);

	MUST(mw);
	return mw;
}

static struct ibv_mw_bind_info info_of(uint64_t length)
{
	return (struct ibv_mw_bind_info){
		.mr = length ? w.mr : NULL,
		.addr = length ? (uintptr_t)w.memory + AT : 0,
		.length = length,
		.mw_access_flags = IBV_ACCESS_REMOTE_READ,
	};
}

struct ibv_send_wr bind_wr(struct ibv_mw *mw, uint64_t length)
{
	return (struct ibv_send_wr){
		.opcode = IBV_WR_BIND_MW,
		.bind_mw = { mw, ibv_inc_rkey(mw->rkey), info_of(length) },
	};
}

struct ibv_send_wr inv_wr(uint32_t key)
{
	return (struct ibv_send_wr){
		.opcode = IBV_WR_LOCAL_INV,
		.invalidate_rkey = key,
	};
}

int bind_2(struct ibv_qp *qp, struct ibv_mw *mw)
{
	struct ibv_send_wr *bad, wr = bind_wr(mw, BYTES);
	int err = ibv_post_send(qp, &wr, &bad);

	if (!err)
		mw->rkey = wr.bind_mw.rkey;
	return err;
}

int bind_1(struct ibv_qp *qp, struct ibv_mw *mw, uint64_t length)
{
	struct ibv_mw_bind bind = { .wr_id = 77, .bind_info = info_of(length) };

	return ibv_bind_mw(qp, mw, &bind);
}

int invalidate(struct ibv_qp *qp, struct ibv_mw *mw)
{
	struct ibv_send_wr *bad, wr = inv_wr(mw->rkey);

	return ibv_post_send(qp, &wr, &bad);
}

uint32_t real_key_of(const struct ibv_mw *mw)
{
	return post_lkey(mw->context, mw->rkey);
}

void check_window(struct ibv_mw *mw, struct ibv_qp *qp, int line)
{
	const struct ibv_qp *owner = NULL;
	struct fake_window is = fake_window(to_mw(mw)->real);
	uint32_t key;

	if (qp && mw->type == IBV_MW_TYPE_2)
		owner = to_qp(qp)->real;
	CHECK(is.valid == !!qp, "line %d: %d", line, is.valid);
	key = to_mw(mw)->fresh ? to_mw(mw)->first_key : real_key_of(mw);
	CHECK(is.rkey == key, "line %d: %#x, not %#x", line, is.rkey, key);
	CHECK(is.qp == owner, "line %d: another QP", line);
	if (!qp)
		return;
	CHECK(is.mr == to_mr(w.mr)->real, "line %d", line);
	CHECK(is.addr == (uintptr_t)w.memory + AT && is.length == BYTES);
	CHECK(is.access == IBV_ACCESS_REMOTE_READ);
}
