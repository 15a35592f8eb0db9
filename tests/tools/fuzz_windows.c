// SPDX-License-Identifier: GPL-2.0
/*
 * Memory windows whose records are wrong on purpose, signed as if a kernel had
 * written them: bound to what they must not reach.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "migr_fuzz.h"

#define KEY 0xabcd007 /* of the windows; nobody gets that far */
#define OTHER_KEY 0x1b007
#define VALID 2
#define REMOTE (IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE)

/* records that an image has besides those of the rig */
struct more {
	struct rxe_migr_rec_mw mw;
	struct rxe_migr_rec_mr mr;
};

/* what is in the copy besides what the rig has, and a handle of nothing */
static struct {
	uint32_t pd, mr, none;
} extra;

static int dealloc_mw(int fd, uint32_t handle)
{
	const struct ib_uverbs_dealloc_mw in = { .mw_handle = handle };
	const struct migr_write cmd = {
		.command = IB_USER_VERBS_CMD_DEALLOC_MW,
		.in = &in,
		.in_length = sizeof(in),
	};

	return migr_write_run(fd, &cmd);
}

static int alloc_mw(int fd, uint32_t pd, uint32_t type, uint32_t record,
		    uint32_t *handle)
{
	const struct ib_uverbs_alloc_mw in = { .pd_handle = pd,
					       .mw_type = (uint8_t)type };
	const struct rxe_migr_restore restore = { .handle = record };
	struct ib_uverbs_alloc_mw_resp out = {};
	const struct migr_write cmd = {
		.command = IB_USER_VERBS_CMD_ALLOC_MW,
		.in = &in,
		.in_length = sizeof(in),
		.out = &out,
		.out_length = sizeof(out),
		.restore = &restore,
	};
	int ret = migr_write_run(fd, &cmd);

	*handle = out.mw_handle;
	return ret;
}

static struct more good(struct rig *rig)
{
	struct more m = {
		.mw = { .rec = { .type = RXE_MIGR_MW,
				 .length = sizeof(m.mw),
				 .handle = 0x8000 },
			.pd = rig->mr->pd,
			.mw_type = IBV_MW_TYPE_1,
			.rkey = KEY,
			.wire_key = KEY,
			.state = VALID,
			.access = REMOTE,
			.mr = rig->mr->rec.handle,
			.qp = RXE_MIGR_NO_HANDLE,
			.addr = rig->mr->iova,
			.size = rig->mr->size },
		.mr = *rig->mr,
	};

	m.mr.rec.handle = extra.mr;
	m.mr.key = m.mr.wire_key = OTHER_KEY;
	m.mr.pd = extra.pd;
	return m;
}

static int window(struct rig *rig, int fd, const struct more *m, uint32_t *h)
{
	int ret = load_as(rig, fd, m->mw.rec.handle, m, sizeof(*m));

	return ret
		       ?: alloc_mw(fd, m->mw.pd, m->mw.mw_type,
				   m->mw.rec.handle, h);
}

/* ---- what can be wrong ---- */

struct craft {
	const char *name;
	void (*change)(struct rig *rig, struct more *m);
	int want;
};

static void as_it_is(struct rig *rig, struct more *m)
{
	(void)rig;
	(void)m;
}

static void unbound(struct rig *rig, struct more *m)
{
	(void)rig;
	m->mw.size = 0;
	m->mw.mr = RXE_MIGR_NO_HANDLE;
}

static void type_2(struct rig *rig, struct more *m)
{
	m->mw.mw_type = IBV_MW_TYPE_2;
	m->mw.qp = rig->qp[0]->rec.handle;
}

static void free_2(struct rig *rig, struct more *m)
{
	unbound(rig, m);
	m->mw.mw_type = IBV_MW_TYPE_2;
	m->mw.state = 1;
}

static void free_1(struct rig *rig, struct more *m)
{
	unbound(rig, m);
	m->mw.state = 1;
}

#define CRAFT(name, base, field, value)                   \
	static void name(struct rig *rig, struct more *m) \
	{                                                 \
		base(rig, m);                             \
		m->field = (value);                       \
	}

CRAFT(state_0, as_it_is, mw.state, 0)
CRAFT(state_3, as_it_is, mw.state, 3)
CRAFT(mw_type_0, as_it_is, mw.mw_type, 0)
CRAFT(mw_type_3, as_it_is, mw.mw_type, 3)
CRAFT(wire_key, as_it_is, mw.wire_key, KEY + 1)
CRAFT(of_an_mr, as_it_is, mw.rkey, OTHER_KEY)
CRAFT(far_key, as_it_is, mw.rkey, ~0U)
CRAFT(access, as_it_is, mw.access, 1U << 31)
CRAFT(zero_based, as_it_is, mw.access, IBV_ACCESS_ZERO_BASED)
CRAFT(before, as_it_is, mw.addr, m->mw.addr - 1)
CRAFT(behind, as_it_is, mw.addr, m->mw.addr + 1)
CRAFT(far_behind, as_it_is, mw.addr, ~0ULL)
CRAFT(larger, as_it_is, mw.size, m->mw.size + 1)
CRAFT(wraps, as_it_is, mw.size, -m->mw.addr)
CRAFT(largest, as_it_is, mw.size, ~0ULL)
CRAFT(no_mr, as_it_is, mw.mr, RXE_MIGR_NO_HANDLE)
CRAFT(mr_is_none, as_it_is, mw.mr, extra.none)
CRAFT(mr_is_qp, as_it_is, mw.mr, rig->qp[0]->rec.handle)
CRAFT(mr_of_other_pd, as_it_is, mw.mr, extra.mr)
CRAFT(unbound_mr, unbound, mw.mr, rig->mr->rec.handle)
CRAFT(other_pd, as_it_is, mw.pd, extra.pd)
CRAFT(no_pd, as_it_is, mw.pd, rig->qp[0]->rec.handle)
CRAFT(qp_of_1, as_it_is, mw.qp, rig->qp[0]->rec.handle)
CRAFT(no_qp, type_2, mw.qp, RXE_MIGR_NO_HANDLE)
CRAFT(qp_is_mr, type_2, mw.qp, rig->mr->rec.handle)
CRAFT(qp_is_none, type_2, mw.qp, extra.none)
CRAFT(bound_free, type_2, mw.state, 1)
CRAFT(nothing_valid, free_2, mw.state, VALID)
CRAFT(free_qp, free_2, mw.qp, rig->qp[0]->rec.handle)
CRAFT(free_mr, free_2, mw.mr, rig->mr->rec.handle)

static void large_zero_based(struct rig *rig, struct more *m)
{
	type_2(rig, m);
	m->mw.access = IBV_ACCESS_ZERO_BASED;
	m->mw.size++;
}

/* the MR is this one's, the QP the other one's */
static void qp_of_other_pd(struct rig *rig, struct more *m)
{
	type_2(rig, m);
	m->mw.pd = extra.pd;
	m->mw.mr = extra.mr;
}

/* that of another context has the key, or of this one, another handle */
static void mr_of_peer(struct rig *rig, struct more *m)
{
	m->mr.key = m->mr.wire_key = rig->peer.mr->rkey;
	m->mw.mr = m->mr.rec.handle;
}

static void mr_renamed(struct rig *rig, struct more *m)
{
	m->mr.key = m->mr.wire_key = rig->mr->key;
	m->mw.mr = m->mr.rec.handle;
}

static const struct craft crafts[] = {
	{ "type 1", as_it_is, 0 },
	{ "type 1, not bound", unbound, 0 },
	{ "type 2", type_2, 0 },
	{ "type 2, free", free_2, 0 },
	{ "type 1, free", free_1, -EINVAL },
	{ "state 0", state_0, -EINVAL },
	{ "state 3", state_3, -EINVAL },
	{ "type 0", mw_type_0, -EINVAL },
	{ "type 3", mw_type_3, -EINVAL },
	{ "wire key", wire_key, -EINVAL },
	{ "key of an MR", of_an_mr, -ERANGE },
	{ "key too far", far_key, -ERANGE },
	{ "access", access, -EINVAL },
	{ "zero based type 1", zero_based, -EINVAL },
	{ "before the MR", before, -EINVAL },
	{ "behind the MR", behind, -EINVAL },
	{ "far behind", far_behind, -EINVAL },
	{ "larger than the MR", larger, -EINVAL },
	{ "end wraps", wraps, -EINVAL },
	{ "largest", largest, -EINVAL },
	{ "zero based, too large", large_zero_based, -EINVAL },
	{ "bound to no MR", no_mr, -EINVAL },
	{ "MR that is not there", mr_is_none, -EINVAL },
	{ "MR that is a QP", mr_is_qp, -EINVAL },
	{ "MR of another PD", mr_of_other_pd, -EINVAL },
	{ "MR of another context", mr_of_peer, -EINVAL },
	{ "MR under another name", mr_renamed, -EINVAL },
	{ "MR, not bound", unbound_mr, -EINVAL },
	{ "PD of another MR", other_pd, -EINVAL },
	{ "PD that is a QP", no_pd, -EINVAL },
	{ "type 1 with a QP", qp_of_1, -EINVAL },
	{ "bound to no QP", no_qp, -EINVAL },
	{ "QP that is an MR", qp_is_mr, -EINVAL },
	{ "QP that is not there", qp_is_none, -EINVAL },
	{ "QP of another PD", qp_of_other_pd, -EINVAL },
	{ "type 2, bound and free", bound_free, -EINVAL },
	{ "type 2, valid, bound to nothing", nothing_valid, -EINVAL },
	{ "free, with a QP", free_qp, -EINVAL },
	{ "free, with an MR", free_mr, -EINVAL },
};

static void try_all(struct rig *rig, int fd)
{
	uint32_t handle;

	for (size_t i = 0; i < sizeof(crafts) / sizeof(*crafts); i++) {
		struct more m = good(rig);
		int ret;

		crafts[i].change(rig, &m);
		ret = window(rig, fd, &m, &handle);
		if (!ret)
			EXPECT(dealloc_mw(fd, handle), 0);
		if (ret == crafts[i].want)
			continue;
		fprintf(stderr, "%s: %d, not %d\n", crafts[i].name, ret,
			crafts[i].want);
		fuzz_failures++;
	}
}

/* every bit, and all bits, of a byte of such a record; what is made is usable */
static unsigned int flip(struct rig *rig, int fd, struct more m)
{
	uint32_t type = m.mw.mw_type, pd = m.mw.pd, name = m.mw.rec.handle;
	unsigned int accepted = 0;
	uint32_t handle;
	int ret;

	for (size_t at = 0; at < sizeof(m.mw); at++) {
		for (int bit = 0; bit < 9; bit++) {
			char mask = (char)(bit < 8 ? 1 << bit : 0xff);

			((char *)&m.mw)[at] ^= mask;
			ret = load_as(rig, fd, name, &m, sizeof(m));
			/* of what the application says itself, nothing else */
			if (!ret)
				ret = alloc_mw(fd, pd, type, name, &handle);
			((char *)&m.mw)[at] ^= mask;
			if (ret) {
				EXPECT(ret, -EINVAL, -ENOENT, -ERANGE, -EBUSY);
				continue;
			}
			EXPECT(dealloc_mw(fd, handle), 0);
			accepted++;
		}
	}
	return accepted;
}

static void flip_all(struct rig *rig, int fd)
{
	struct more m = good(rig);
	unsigned int accepted;

	accepted = flip(rig, fd, m);
	type_2(rig, &m);
	accepted += flip(rig, fd, m);
	free_2(rig, &m);
	accepted += flip(rig, fd, m);
	printf("MW: 3 records of %zu bytes flipped, %u accepted\n",
	       sizeof(m.mw), accepted);
}

/* a PD of its own with an MR, whose handles are those of its records */
static void make_extra(struct rig *rig, struct copy *c)
{
	struct more m;

	MUST(!migr_alloc_pd(c->fd, &extra.pd));
	MUST(!migr_alloc_pd(c->fd, &extra.mr));
	MUST(!migr_free_pd(c->fd, extra.mr));
	extra.none = 0x9000;
	m = good(rig);
	MUST(!load_as(rig, c->fd, m.mw.rec.handle, &m, sizeof(m)));
	MUST(!migr_create_object(&c->r, &m.mr.rec));
}

void attack_windows(struct rig *rig)
{
	struct rxe_migr_status st;
	uint32_t handle, second;
	struct copy c;
	struct more m;

	copy_open(rig, &c);
	copy_create(rig, &c);
	make_extra(rig, &c);
	try_all(rig, c.fd);
	flip_all(rig, c.fd);

	/* the command is about another one than its record */
	m = good(rig);
	MUST(!load_as(rig, c.fd, m.mw.rec.handle, &m, sizeof(m)));
	EXPECT(alloc_mw(c.fd, m.mw.pd, IBV_MW_TYPE_2, m.mw.rec.handle, &handle),
	       -EINVAL);
	EXPECT(alloc_mw(c.fd, extra.pd, m.mw.mw_type, m.mw.rec.handle, &handle),
	       -EINVAL);
	EXPECT(alloc_mw(c.fd, m.mw.pd, 1, rig->mr->rec.handle, &handle),
	       -ENOENT);
	EXPECT(alloc_mw(c.fd, m.mw.pd, 1, extra.none, &handle), -ENOENT);

	/* what is bound stays; the same key only once */
	EXPECT(window(rig, c.fd, &m, &handle), 0);
	EXPECT(window(rig, c.fd, &m, &second), -EBUSY);
	EXPECT(raw_dereg_mr(c.fd, rig->mr->rec.handle), -EINVAL);
	EXPECT(dealloc_mw(c.fd, handle), 0);
	EXPECT(raw_dereg_mr(c.fd, extra.mr), 0);

	/* the MR is no shell any more */
	EXPECT(window(rig, c.fd, &m, &handle), 0);
	EXPECT(migr_cmd_attach(c.fd, &st), 0);
	EXPECT(dealloc_mw(c.fd, handle), 0);
	EXPECT(alloc_mw(c.fd, m.mw.pd, 1, m.mw.rec.handle, &handle), -EINVAL);
	copy_close(&c);
}

void fuzz_window(struct rig *rig, struct copy *c, uint32_t rkey, int access)
{
	struct more m = good(rig);
	uint32_t handle;

	m.mr.rec.handle = 0x9001; /* of nothing */
	m.mw.rkey = m.mw.wire_key = rkey;
	m.mw.access = (uint32_t)access;
	if (access & IBV_ACCESS_ZERO_BASED) {
		m.mw.mw_type = IBV_MW_TYPE_2;
		m.mw.qp = rig->qp[VICTIM]->rec.handle;
	}
	EXPECT(window(rig, c->fd, &m, &handle), 0);
}
