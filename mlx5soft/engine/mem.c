// SPDX-License-Identifier: GPL-2.0
/*
 * Memory of WQEs and memory that the peer names.
 */
#include "impl.h"

static int translate(struct roce_qp *qp, uint32_t pd, uint32_t key,
		     uint64_t addr, uint32_t len, unsigned int access,
		     bool remote, struct iovec *iov, int max)
{
	const struct roce_config *c = &qp->engine->config;

	return c->ops->translate(c->ctx, qp->init.ctx, pd, key, addr, len,
				 access, remote, iov, max);
}

int mem_check_list(struct roce_qp *qp, const struct roce_sge *sge,
		   uint32_t count, unsigned int access)
{
	for (uint32_t i = 0; i < count; i++) {
		int ret;

		if (!sge[i].length)
			continue;
		ret = translate(qp, qp->init.pd, sge[i].key, sge[i].addr,
				sge[i].length, access, false, NULL, 0);
		if (ret < 0)
			return ret;
	}
	return 0;
}

/*
 * A part of a list that is next: its first byte is @offset from the start of
 * the list. Returns how many bytes it has, or 0 behind the end.
 */
static uint32_t next_part(const struct roce_sge *sge, uint32_t count,
			  uint32_t *index, uint32_t *offset, uint32_t len)
{
	while (*index < count && *offset >= sge[*index].length)
		*offset -= sge[(*index)++].length;
	if (*index == count)
		return 0;
	if (len > sge[*index].length - *offset)
		len = sge[*index].length - *offset;
	return len;
}

static void *copy_from(const struct iovec *iov, int count, void *data)
{
	uint8_t *p = data;

	for (int i = 0; i < count; i++) {
		memcpy(p, iov[i].iov_base, iov[i].iov_len);
		p += iov[i].iov_len;
	}
	return p;
}

/* What stands at @offset of a message */
int mem_gather(struct roce_qp *qp, const struct slot *slot, uint32_t offset,
	       uint32_t len)
{
	const struct roce_sge *sge = slot->wqe.sge;
	void *to = qp->engine->out + OUT_PAYLOAD;
	struct iovec iov[MAX_PAYLOAD_IOV];
	uint32_t i = 0, part;

	for (; len; len -= part, offset += part) {
		int n = 1;

		part = next_part(sge, slot->wqe.num_sge, &i, &offset, len);
		if (!part)
			return -EINVAL;
		if (slot->wqe.flags & ROCE_SEND_INLINE)
			iov[0] = (struct iovec){
				(void *)(uintptr_t)(sge[i].addr + offset), part
			};
		else
			n = translate(qp, qp->init.pd, sge[i].key,
				      sge[i].addr + offset, part, 0, false, iov,
				      MAX_PAYLOAD_IOV);
		if (n < 0)
			return n;
		to = copy_from(iov, n, to);
	}
	return 0;
}

static const void *copy_to(const struct iovec *iov, int count, const void *data)
{
	const uint8_t *p = data;

	for (int i = 0; i < count; i++) {
		memcpy(iov[i].iov_base, p, iov[i].iov_len);
		p += iov[i].iov_len;
	}
	return p;
}

/* Write to the memory of a list, from its byte @offset on. */
int mem_scatter(struct roce_qp *qp, uint32_t pd, const struct roce_sge *sge,
		uint32_t count, uint32_t offset, const void *data, uint32_t len)
{
	struct iovec iov[MAX_PAYLOAD_IOV];
	uint32_t i = 0, part;

	for (; len; len -= part, offset += part) {
		int n;

		part = next_part(sge, count, &i, &offset, len);
		if (!part)
			return -EINVAL;
		n = translate(qp, pd, sge[i].key, sge[i].addr + offset, part,
			      ROCE_ACCESS_LOCAL_WRITE, false, iov,
			      MAX_PAYLOAD_IOV);
		if (n < 0)
			return n;
		data = copy_to(iov, n, data);
	}
	return 0;
}

int mem_remote(struct roce_qp *qp, uint32_t pd, uint32_t rkey, uint64_t addr,
	       uint32_t len, unsigned int access, struct iovec *iov, int max)
{
	return len ? translate(qp, pd, rkey, addr, len, access, true, iov, max)
		   : 0;
}

int mem_remote_read(struct roce_qp *qp, uint32_t pd, uint32_t rkey,
		    uint64_t addr, uint32_t len)
{
	struct iovec iov[MAX_PAYLOAD_IOV];
	int n = mem_remote(qp, pd, rkey, addr, len, ROCE_ACCESS_REMOTE_READ,
			   iov, MAX_PAYLOAD_IOV);

	if (n < 0)
		return n;
	copy_from(iov, n, qp->engine->out + OUT_PAYLOAD);
	return 0;
}

int mem_remote_write(struct roce_qp *qp, uint32_t rkey, uint64_t addr,
		     const void *data, uint32_t len)
{
	struct iovec iov[MAX_PAYLOAD_IOV];
	int n = mem_remote(qp, qp->resp.pd, rkey, addr, len,
			   ROCE_ACCESS_REMOTE_WRITE, iov, MAX_PAYLOAD_IOV);

	if (n < 0)
		return n;
	copy_to(iov, n, data);
	return 0;
}
