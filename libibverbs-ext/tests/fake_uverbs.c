// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>

#include <infiniband/verbs.h>
#include <rdma/rdma_user_rxe.h>

#include "fake_uverbs.h"
#include "image_builder.h"
#include "migr_restore.h"

struct fake fake;

void fake_reset(void)
{
	memset(&fake, 0, sizeof(fake));
	fake.active_mtu = IBV_MTU_1024;
	memset(fake.reach, MIGR_REACH_ROUTE, sizeof(fake.reach));
	fake.reach[5] = fake.reach[6] = MIGR_REACH_BEST;
	fake.dead_gid[0] = 0xfd;
}

/* ---- attributes ---- */

static struct ib_uverbs_attr *find(struct ib_uverbs_ioctl_hdr *hdr, uint16_t id)
{
	unsigned int i;

	for (i = 0; i < hdr->num_attrs; i++)
		if (hdr->attrs[i].attr_id == id)
			return &hdr->attrs[i];
	return NULL;
}

static void *data_of(struct ib_uverbs_attr *attr)
{
	return attr->len <= 8 ? (void *)&attr->data
			      : (void *)(uintptr_t)attr->data;
}

static void *in(struct ib_uverbs_ioctl_hdr *hdr, uint16_t id)
{
	struct ib_uverbs_attr *attr = find(hdr, id);

	return attr ? data_of(attr) : NULL;
}

/* always by address */
static void *out(struct ib_uverbs_ioctl_hdr *hdr, uint16_t id)
{
	struct ib_uverbs_attr *attr = find(hdr, id);

	return attr ? (void *)(uintptr_t)attr->data : NULL;
}

/* ---- objects ---- */

static int new_handle(uint32_t type, uint32_t identity, uint32_t *handle)
{
	uint32_t h;

	for (h = 0; fake.object[h].type; h++)
		if (h == FAKE_HANDLES - 1)
			return -ENOMEM;
	fake.in_use++;
	fake.object[h] = (struct fake_object){
		.type = type,
		.identity = identity,
	};
	*handle = h;
	return 0;
}

static bool is(uint32_t handle, uint32_t type)
{
	return handle < FAKE_HANDLES && fake.object[handle].type == type;
}

static int alloc_pd(struct ib_uverbs_ioctl_hdr *hdr)
{
	struct ib_uverbs_alloc_pd_resp *resp = out(hdr, UVERBS_ATTR_CORE_OUT);

	return new_handle(RXE_MIGR_PD, 0, &resp->pd_handle);
}

static int dealloc_pd(struct ib_uverbs_ioctl_hdr *hdr)
{
	struct ib_uverbs_dealloc_pd *cmd = in(hdr, UVERBS_ATTR_CORE_IN);

	if (!is(cmd->pd_handle, RXE_MIGR_PD))
		return -EINVAL;
	fake.object[cmd->pd_handle].type = 0;
	fake.in_use--;
	return 0;
}

/* the record that the RESTORE attribute names, of the image that was loaded */
static const void *wanted(struct ib_uverbs_ioctl_hdr *hdr, uint32_t type)
{
	struct rxe_migr_restore *r = in(hdr, RXE_MIGR_ATTR_RESTORE);
	const struct rxe_migr_rec *rec;

	if (!r || r->reserved || !fake.image)
		return NULL;
	rec = builder_find(fake.image, fake.image_length, r->handle);
	return rec && rec->type == type ? rec : NULL;
}

static int create_cq(struct ib_uverbs_ioctl_hdr *hdr)
{
	struct ib_uverbs_create_cq *cmd = in(hdr, UVERBS_ATTR_CORE_IN);
	struct ib_uverbs_create_cq_resp *resp = out(hdr, UVERBS_ATTR_CORE_OUT);
	struct rxe_create_cq_resp *ring = out(hdr, UVERBS_ATTR_UHW_OUT);
	const struct rxe_migr_rec_cq *rec = wanted(hdr, RXE_MIGR_CQ);

	if (!rec)
		return -ENOENT;
	if (!ring || (rec->comp_channel == RXE_MIGR_NO_HANDLE) !=
			     (cmd->comp_channel == -1))
		return -EINVAL;
	ring->mi.offset = rec->ring.mmap_offset;
	ring->mi.size = builder_mmap_size(cmd->cqe, 7);
	if (new_handle(RXE_MIGR_CQ, 0, &resp->cq_handle))
		return -ENOMEM;
	fake.object[resp->cq_handle].comp_vector = cmd->comp_vector;
	fake.object[resp->cq_handle].channel = cmd->comp_channel;
	return 0;
}

static int create_channel(struct ib_uverbs_ioctl_hdr *hdr)
{
	struct ib_uverbs_create_comp_channel_resp *resp =
		out(hdr, UVERBS_ATTR_CORE_OUT);

	resp->fd = (uint32_t)open("/dev/null", O_RDONLY | O_CLOEXEC);
	return 0;
}

static int create_srq(struct ib_uverbs_ioctl_hdr *hdr)
{
	struct ib_uverbs_create_srq *cmd = in(hdr, UVERBS_ATTR_CORE_IN);
	struct ib_uverbs_create_srq_resp *resp = out(hdr, UVERBS_ATTR_CORE_OUT);
	struct rxe_create_srq_resp *ring = out(hdr, UVERBS_ATTR_UHW_OUT);
	const struct rxe_migr_rec_srq *rec = wanted(hdr, RXE_MIGR_SRQ);
	size_t recv = builder_recv_size(cmd->max_sge);

	if (!rec)
		return -ENOENT;
	if (!ring || !is(cmd->pd_handle, RXE_MIGR_PD))
		return -EINVAL;
	ring->mi.offset = rec->ring.mmap_offset;
	ring->mi.size = builder_mmap_size(cmd->max_wr, builder_log2_elem(recv));
	ring->srq_num = rec->srq_num;
	return new_handle(RXE_MIGR_SRQ, rec->srq_num, &resp->srq_handle);
}

static int reg_mr(struct ib_uverbs_ioctl_hdr *hdr)
{
	struct ib_uverbs_reg_mr *cmd = in(hdr, UVERBS_ATTR_CORE_IN);
	struct ib_uverbs_reg_mr_resp *resp = out(hdr, UVERBS_ATTR_CORE_OUT);
	const struct rxe_migr_rec_mr *rec = wanted(hdr, RXE_MIGR_MR);

	if (!rec)
		return -ENOENT;
	if (!is(cmd->pd_handle, RXE_MIGR_PD))
		return -EINVAL;
	if (rec->key == fake.taken_key)
		return -EBUSY;
	resp->lkey = resp->rkey = rec->key;
	return new_handle(RXE_MIGR_MR, rec->key, &resp->mr_handle);
}

/* what it is bound to must be there already */
static int alloc_mw(struct ib_uverbs_ioctl_hdr *hdr)
{
	struct ib_uverbs_alloc_mw *cmd = in(hdr, UVERBS_ATTR_CORE_IN);
	struct ib_uverbs_alloc_mw_resp *resp = out(hdr, UVERBS_ATTR_CORE_OUT);
	const struct rxe_migr_rec_mw *rec = wanted(hdr, RXE_MIGR_MW);

	if (!rec)
		return -ENOENT;
	if (!is(cmd->pd_handle, RXE_MIGR_PD) || cmd->mw_type != rec->mw_type ||
	    (rec->mr != RXE_MIGR_NO_HANDLE && !is(rec->mr, RXE_MIGR_MR)) ||
	    (rec->qp != RXE_MIGR_NO_HANDLE && !is(rec->qp, RXE_MIGR_QP)))
		return -EINVAL;
	if (rec->rkey == fake.taken_key)
		return -EBUSY;
	resp->rkey = rec->rkey;
	return new_handle(RXE_MIGR_MW, rec->rkey, &resp->mw_handle);
}

static int create_qp(struct ib_uverbs_ioctl_hdr *hdr)
{
	struct ib_uverbs_create_qp *cmd = in(hdr, UVERBS_ATTR_CORE_IN);
	struct ib_uverbs_create_qp_resp *resp = out(hdr, UVERBS_ATTR_CORE_OUT);
	struct rxe_create_qp_resp *rings = out(hdr, UVERBS_ATTR_UHW_OUT);
	const struct rxe_migr_rec_qp *rec = wanted(hdr, RXE_MIGR_QP);
	size_t send, recv;

	if (!rec)
		return -ENOENT;
	if (!rings || !is(cmd->pd_handle, RXE_MIGR_PD) ||
	    !is(cmd->send_cq_handle, RXE_MIGR_CQ) ||
	    !is(cmd->recv_cq_handle, RXE_MIGR_CQ) ||
	    (cmd->is_srq && !is(cmd->srq_handle, RXE_MIGR_SRQ)))
		return -EINVAL;
	if (rec->qpn == fake.taken_qpn)
		return -EBUSY;
	send = builder_send_size(cmd->max_send_sge, cmd->max_inline_data);
	recv = builder_recv_size(cmd->max_recv_sge);
	rings->sq_mi.offset = rec->sq.mmap_offset;
	rings->rq_mi.offset = rec->rq.mmap_offset;
	rings->sq_mi.size =
		builder_mmap_size(cmd->max_send_wr, builder_log2_elem(send));
	rings->rq_mi.size =
		builder_mmap_size(cmd->max_recv_wr, builder_log2_elem(recv));
	resp->qpn = rec->qpn;
	return new_handle(RXE_MIGR_QP, rec->qpn, &resp->qp_handle);
}

/* two subnets of each family: 10.0.0, 10.0.5, fd01, fd02 */
static const struct {
	uint8_t gid[16];
	uint32_t index, type;
} gid_table[] = {
	{ { 0xfe, 0x80, [15] = 1 }, 0, IB_UVERBS_GID_TYPE_ROCE_V2 },
	{ { [10] = 0xff, 0xff, 10, 0, 0, 9 }, 1, IB_UVERBS_GID_TYPE_ROCE_V1 },
	{ { [10] = 0xff, 0xff, 10, 0, 5, 9 }, 4, IB_UVERBS_GID_TYPE_ROCE_V2 },
	{ { [10] = 0xff, 0xff, 10, 0, 0, 9 }, 5, IB_UVERBS_GID_TYPE_ROCE_V2 },
	{ { 0xfd, 1, [15] = 9 }, 6, IB_UVERBS_GID_TYPE_ROCE_V2 },
	{ { 0xfd, 2, [15] = 9 }, 7, IB_UVERBS_GID_TYPE_ROCE_V2 },
};

static bool is_own_gid(const uint8_t *gid, uint32_t index)
{
	size_t i;

	for (i = 0; i < sizeof(gid_table) / sizeof(gid_table[0]); i++)
		if (gid_table[i].index == index &&
		    !memcmp(gid_table[i].gid, gid, 16))
			return true;
	return false;
}

static int create_ah(struct ib_uverbs_ioctl_hdr *hdr)
{
	struct ib_uverbs_create_ah *cmd = in(hdr, UVERBS_ATTR_CORE_IN);
	struct ib_uverbs_create_ah_resp *resp = out(hdr, UVERBS_ATTR_CORE_OUT);
	struct rxe_create_ah_resp *made = out(hdr, UVERBS_ATTR_UHW_OUT);
	const struct rxe_migr_rec_ah *rec = wanted(hdr, RXE_MIGR_AH);
	struct fake_object *ah;

	if (!rec)
		return -ENOENT;
	if (!made || !is(cmd->pd_handle, RXE_MIGR_PD) || !cmd->attr.is_global ||
	    cmd->attr.port_num != 1)
		return -EINVAL;
	if (rec->ah_num == fake.taken_ah)
		return -EBUSY;
	if (!memcmp(cmd->attr.grh.dgid, fake.dead_gid, 16))
		return -EHOSTUNREACH;
	/* of a host it names itself, and leads to where the record says */
	if (rec->dgid[0] == 0xff
		    ? memcmp(cmd->attr.grh.dgid, rec->dgid, 16)
		    : !is_own_gid(cmd->attr.grh.dgid, cmd->attr.grh.sgid_index))
		return -EINVAL;
	made->ah_num = rec->ah_num;
	if (new_handle(RXE_MIGR_AH, rec->ah_num, &resp->ah_handle))
		return -ENOMEM;
	ah = &fake.object[resp->ah_handle];
	ah->sgid_index = cmd->attr.grh.sgid_index;
	memcpy(ah->dgid, rec->dgid, sizeof(ah->dgid));
	return 0;
}

static int attach_mcast(struct ib_uverbs_ioctl_hdr *hdr)
{
	struct ib_uverbs_attach_mcast *cmd = in(hdr, UVERBS_ATTR_CORE_IN);
	struct fake_object *qp = &fake.object[cmd->qp_handle];

	if (!is(cmd->qp_handle, RXE_MIGR_QP) || !qp->filled)
		return -EINVAL;
	qp->groups++;
	return 0;
}

static int modify_qp(struct ib_uverbs_ioctl_hdr *hdr)
{
	struct ib_uverbs_modify_qp *cmd = in(hdr, UVERBS_ATTR_CORE_IN);
	struct fake_object *qp = &fake.object[cmd->qp_handle];
	const struct rxe_migr_rec_qp *rec = wanted(hdr, RXE_MIGR_QP);

	if (!is(cmd->qp_handle, RXE_MIGR_QP) || cmd->qp_state != qp->state + 1)
		return -EINVAL;
	if (!rec != !in(hdr, RXE_MIGR_ATTR_RESTORE))
		return -ENOENT;
	if (rec && (!(cmd->attr_mask & IBV_QP_AV) ||
		    rec->rec.handle != cmd->qp_handle ||
		    !is_own_gid(cmd->dest.dgid, cmd->dest.sgid_index)))
		return -EINVAL;
	if (cmd->attr_mask & IBV_QP_AV &&
	    !memcmp(cmd->dest.dgid, fake.dead_gid, 16))
		return -ETIMEDOUT;
	qp->state = cmd->qp_state;
	if (cmd->attr_mask & IBV_QP_QKEY)
		qp->qkey = cmd->qkey;
	if (cmd->attr_mask & IBV_QP_AV) {
		qp->sgid_index = cmd->dest.sgid_index;
		memcpy(qp->dgid, rec ? rec->dgid : cmd->dest.dgid,
		       sizeof(qp->dgid));
	}
	return 0;
}

static int refill(struct ib_uverbs_ioctl_hdr *hdr, uint32_t type)
{
	struct ib_uverbs_attr *handle = find(hdr, RXE_MIGR_ATTR_REFILL_HANDLE);

	if (!is((uint32_t)handle->data, type) || handle->len ||
	    hdr->num_attrs != 1)
		return -EINVAL;
	if (!fake.image || !builder_find(fake.image, fake.image_length,
					 (uint32_t)handle->data))
		return -ENOENT;
	fake.object[handle->data].filled = true;
	return 0;
}

static int query_port(struct ib_uverbs_ioctl_hdr *hdr)
{
	struct ib_uverbs_query_port *cmd = in(hdr, UVERBS_ATTR_CORE_IN);
	struct ib_uverbs_query_port_resp *resp = out(hdr, UVERBS_ATTR_CORE_OUT);

	if (cmd->port_num != 1)
		return -EINVAL;
	resp->active_mtu = fake.active_mtu;
	return 0;
}

/* ---- methods ---- */

static int query_gids(struct ib_uverbs_ioctl_hdr *hdr)
{
	struct ib_uverbs_gid_entry *entry =
		out(hdr, UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES);
	uint64_t *count =
		out(hdr, UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES);
	size_t i;

	for (i = 0; i < sizeof(gid_table) / sizeof(gid_table[0]); i++) {
		memcpy(entry[i].gid, gid_table[i].gid, 16);
		entry[i].gid_index = gid_table[i].index;
		entry[i].gid_type = gid_table[i].type;
		entry[i].netdev_ifindex = FAKE_IFINDEX;
	}
	*count = i;
	return 0;
}

/* a test's routing table */
enum migr_reach migr_route(const uint8_t *dgid, const uint8_t *sgid,
			   uint32_t ifindex)
{
	size_t i;

	(void)dgid;
	fake.routes_asked++;
	for (i = 0; i < sizeof(gid_table) / sizeof(gid_table[0]); i++)
		if (ifindex == FAKE_IFINDEX &&
		    gid_table[i].type == IB_UVERBS_GID_TYPE_ROCE_V2 &&
		    !memcmp(gid_table[i].gid, sgid, 16))
			return fake.reach[gid_table[i].index];
	return MIGR_REACH_NONE;
}

static int dump(struct ib_uverbs_ioctl_hdr *hdr)
{
	struct rxe_migr_buf *buf = in(hdr, RXE_MIGR_ATTR_IN);
	struct rxe_migr_dump_resp *resp = out(hdr, RXE_MIGR_ATTR_OUT);

	if (fake.image_changes) {
		fake.image_changes--;
		return -EAGAIN;
	}
	resp->needed = fake.image_needed;
	resp->count = 7;
	if (fake.image_grows)
		fake.image_needed *= 2;
	if (buf->length < resp->needed)
		return -ENOSPC;
	memset((void *)(uintptr_t)buf->addr, 0x5a, resp->needed);
	return 0;
}

static int load(struct ib_uverbs_ioctl_hdr *hdr)
{
	struct rxe_migr_buf *buf = in(hdr, RXE_MIGR_ATTR_IN);

	if (!fake.context)
		return -EINVAL;
	fake.image = (void *)(uintptr_t)buf->addr;
	fake.image_length = buf->length;
	return 0;
}

static int migr_method(struct ib_uverbs_ioctl_hdr *hdr)
{
	struct rxe_migr_status *st = out(hdr, RXE_MIGR_ATTR_OUT);

	if (fake.stock)
		return -EPROTONOSUPPORT;
	if (fake.fail_method == hdr->method_id) {
		if (st && fake.why) {
			st->why = fake.why;
			st->type = RXE_MIGR_QP;
			st->handle = 4;
		}
		return -fake.fail_err;
	}
	switch (hdr->method_id) {
	case RXE_MIGR_METHOD_DUMP:
		return dump(hdr);
	case RXE_MIGR_METHOD_LOAD:
		return load(hdr);
	default:
		return 0;
	}
}

static int invoke(struct ib_uverbs_ioctl_hdr *hdr)
{
	uint64_t *cmd = in(hdr, UVERBS_ATTR_WRITE_CMD);

	if (!fake.context)
		return -EINVAL;
	switch (*cmd) {
	case IB_USER_VERBS_CMD_ALLOC_PD:
		return alloc_pd(hdr);
	case IB_USER_VERBS_CMD_DEALLOC_PD:
		return dealloc_pd(hdr);
	case IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL:
		return create_channel(hdr);
	case IB_USER_VERBS_CMD_CREATE_CQ:
		return create_cq(hdr);
	case IB_USER_VERBS_CMD_CREATE_SRQ:
		return create_srq(hdr);
	case IB_USER_VERBS_CMD_REG_MR:
		return reg_mr(hdr);
	case IB_USER_VERBS_CMD_ALLOC_MW:
		return alloc_mw(hdr);
	case IB_USER_VERBS_CMD_CREATE_QP:
		return create_qp(hdr);
	case IB_USER_VERBS_CMD_CREATE_AH:
		return create_ah(hdr);
	case IB_USER_VERBS_CMD_ATTACH_MCAST:
		return attach_mcast(hdr);
	case IB_USER_VERBS_CMD_MODIFY_QP:
		return modify_qp(hdr);
	case IB_USER_VERBS_CMD_QUERY_PORT:
		return query_port(hdr);
	default:
		return -EOPNOTSUPP;
	}
}

static int device_method(struct ib_uverbs_ioctl_hdr *hdr)
{
	uint32_t *vectors;

	switch (hdr->method_id) {
	case UVERBS_METHOD_GET_CONTEXT:
		if (fake.context)
			return -EINVAL;
		fake.context = true;
		vectors = out(hdr, UVERBS_ATTR_GET_CONTEXT_NUM_COMP_VECTORS);
		*vectors = 2;
		return 0;
	case UVERBS_METHOD_INVOKE_WRITE:
		return invoke(hdr);
	case UVERBS_METHOD_INFO_HANDLES:
		return 0;
	case UVERBS_METHOD_QUERY_GID_TABLE:
		return query_gids(hdr);
	default:
		return migr_method(hdr);
	}
}

static int dispatch(struct ib_uverbs_ioctl_hdr *hdr)
{
	switch (hdr->object_id) {
	case UVERBS_OBJECT_DEVICE:
		return device_method(hdr);
	case UVERBS_OBJECT_ASYNC_EVENT:
		hdr->attrs[0].data_s64 =
			open("/dev/null", O_RDONLY | O_CLOEXEC);
		return 0;
	case UVERBS_OBJECT_CQ:
		return refill(hdr, RXE_MIGR_CQ);
	case UVERBS_OBJECT_SRQ:
		return refill(hdr, RXE_MIGR_SRQ);
	case UVERBS_OBJECT_QP:
		return refill(hdr, RXE_MIGR_QP);
	default:
		return -EPROTONOSUPPORT;
	}
}

int ioctl(int fd, unsigned long request, ...)
{
	struct ib_uverbs_ioctl_hdr *hdr;
	va_list args;
	int ret;

	va_start(args, request);
	hdr = va_arg(args, void *);
	va_end(args);

	fake.calls++;
	if (fake.calls == fake.fail_call)
		ret = -ENOMEM;
	else if (fd != FAKE_FD || request != RDMA_VERBS_IOCTL)
		ret = -ENOTTY;
	else if (hdr->driver_id != RDMA_DRIVER_RXE ||
		 hdr->length !=
			 sizeof(*hdr) + hdr->num_attrs * sizeof(hdr->attrs[0]))
		ret = -EINVAL;
	else
		ret = dispatch(hdr);
	if (!ret)
		return 0;
	errno = -ret;
	return -1;
}
