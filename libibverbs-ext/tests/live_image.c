// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * live_restore: what is made of an image without migr_restore_context(), and
 * what is in it.
 */

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <infiniband/verbs_ext.h>
#include <rdma/rdma_user_rxe.h>

#include "../../tests/check.h"
#include "live_restore.h"

void restore_single(int fd, const struct migr_image *img)
{
	static const int types[] = { RXE_MIGR_PD, RXE_MIGR_CQ, RXE_MIGR_SRQ,
				     RXE_MIGR_MR, RXE_MIGR_QP };
	const unsigned int n = sizeof(types) / sizeof(types[0]);
	struct ibv_context ctx = { .cmd_fd = fd, .num_comp_vectors = 1 };
	const struct rxe_migr_rec *rec;
	unsigned int i, k, cmd;
	void *object;
	int ret;

	for (k = 0; k < 2 * n; k++) {
		cmd = k < n ? IBV_RESTORE_CREATE : IBV_RESTORE_REFILL;
		for (i = 0; i < img->count; i++) {
			rec = img->records[i];
			if ((int)rec->type != types[k % n])
				continue;
			ret = ibv_restore_object(&ctx, &object, types[k % n],
						 (int)cmd, (void *)rec,
						 rec->length);
			CHECK(!ret, "%s", ibv_migr_error_str());
			CHECK((uintptr_t)object == rec->user_handle, "%p",
			      object);
		}
	}
}

/* only GET_CONTEXT: the rest is made by hand */
int get_context(int fd, const struct migr_image *img, struct migr_error *err)
{
	struct migr_image none = *img;
	struct migr_files files;

	none.count = 0;
	return migr_restore_context(fd, &none, &files, err);
}

/* what must not change, whatever has been sent and received since */
void same_object(const struct rxe_migr_rec *a, const struct rxe_migr_rec *b)
{
	const struct rxe_migr_rec_cq *c = (void *)a, *d = (void *)b;
	const struct rxe_migr_rec_qp *q = (void *)a, *r = (void *)b;
	const struct rxe_migr_rec_srq *s = (void *)a, *t = (void *)b;
	const size_t creation = offsetof(struct rxe_migr_rec_qp, pd);
	const size_t sgid = offsetof(struct rxe_migr_rec_qp, sgid);
	const char *type = migr_type_text(a->type);

	CHECK(a->type == b->type && a->handle == b->handle &&
		      a->user_handle == b->user_handle,
	      "%s %u, %s %u", type, a->handle, migr_type_text(b->type),
	      b->handle);
	switch (a->type) {
	case RXE_MIGR_CQ:
		CHECK(c->cqe == d->cqe &&
			      c->ring.mmap_offset == d->ring.mmap_offset,
		      "%s %u", type, a->handle);
		break;
	case RXE_MIGR_SRQ:
		CHECK(s->pd == t->pd && s->srq_num == t->srq_num &&
			      s->max_wr == t->max_wr &&
			      s->max_sge == t->max_sge &&
			      s->limit == t->limit &&
			      s->ring.mmap_offset == t->ring.mmap_offset,
		      "%s %u", type, a->handle);
		break;
	case RXE_MIGR_QP:
		CHECK(q->srq == r->srq, "%s %u", type, a->handle);
		CHECK(!memcmp((char *)q + creation, (char *)r + creation,
			      sgid - creation),
		      "%s %u", type, a->handle);
		CHECK(q->sq.mmap_offset == r->sq.mmap_offset &&
			      q->rq.mmap_offset == r->rq.mmap_offset,
		      "%s %u", type, a->handle);
		CHECK(r->epoch == q->epoch + 1, "epoch %u", r->epoch);
		break;
	default:
		CHECK(a->length == b->length && !memcmp(a, b, a->length),
		      "%s %u", type, a->handle);
	}
}

/* an image of the copy shows the same objects */
void dump_again(int fd, const struct migr_image *img)
{
	struct rxe_migr_status st;
	struct migr_image again;
	struct migr_error err;
	unsigned int i;
	size_t length;
	void *image;
	int ret;

	ret = migr_cmd_stop(fd, 0, 0, &st);
	migr_status_text(&st, ret, &err);
	CHECK(!ret, "%s", err.text);
	if (ret)
		return;
	ret = migr_cmd_dump(fd, &image, &length, &err);
	close(st.guard_fd);
	CHECK(!ret, "%s", err.text);
	if (ret)
		return;
	ret = migr_image_parse(image, length, &again, &err);
	CHECK(!ret, "%s", err.text);
	CHECK(ret || again.count == img->count, "%u", again.count);
	for (i = 0; !ret && i < img->count && i < again.count; i++)
		same_object(img->records[i], again.records[i]);
	migr_image_free(&again);
	free(image);
}

static void *map_ring(int fd, const struct rxe_migr_ring *ring)
{
	void *at;

	if (!ring->mmap_size)
		return NULL;
	at = mmap(NULL, ring->mmap_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
		  (off_t)ring->mmap_offset);
	MUST(at != MAP_FAILED);
	return at;
}

/*
 * All rings, as CRIU maps those of a task: from the lowest address, which is that
 * of the youngest. Returns the CQ's.
 */
struct rxe_queue_buf *map_rings(int fd, const struct migr_image *img)
{
	struct rxe_queue_buf *of_cq = NULL;
	const struct rxe_migr_rec_srq *srq;
	const struct rxe_migr_rec_cq *cq;
	const struct rxe_migr_rec_qp *qp;
	unsigned int i;

	for (i = img->count; i--;) {
		cq = (const void *)img->records[i];
		qp = (const void *)img->records[i];
		srq = (const void *)img->records[i];
		switch (img->records[i]->type) {
		case RXE_MIGR_QP:
			map_ring(fd, &qp->rq);
			map_ring(fd, &qp->sq);
			break;
		case RXE_MIGR_SRQ:
			map_ring(fd, &srq->ring);
			break;
		case RXE_MIGR_CQ:
			of_cq = map_ring(fd, &cq->ring);
			break;
		}
	}
	MUST(of_cq);
	return of_cq;
}

/* what came in since: completions in the restored ring */
uint32_t completions(const struct rxe_queue_buf *ring,
		     const struct migr_image *img)
{
	const struct rxe_migr_rec_cq *cq = NULL;
	unsigned int i;

	for (i = 0; i < img->count; i++)
		if (img->records[i]->type == RXE_MIGR_CQ)
			cq = (void *)img->records[i];
	MUST(cq);
	return (ring->producer_index - cq->ring.producer) & ring->index_mask;
}

/* a line that bench/scale-plot reads */
void report(const struct migr_image *img, size_t length)
{
	static const struct {
		uint32_t type;
		size_t fixed;
	} types[] = {
		{ RXE_MIGR_PD, sizeof(struct rxe_migr_rec_pd) },
		{ RXE_MIGR_MR, sizeof(struct rxe_migr_rec_mr) },
		{ RXE_MIGR_CQ, sizeof(struct rxe_migr_rec_cq) },
		{ RXE_MIGR_SRQ, sizeof(struct rxe_migr_rec_srq) },
		{ RXE_MIGR_QP, sizeof(struct rxe_migr_rec_qp) },
	};
	unsigned int i, k, n;
	size_t all;

	printf("{\"qps\":%d,\"srq\":%d,\"stop_ms\":%.3f,\"dump_ms\":%.3f,"
	       "\"restore_ms\":%.3f,\"map_ms\":%.3f,\"attach_ms\":%.3f,"
	       "\"resume_ms\":%.3f,\"flow_ms\":%.3f,\"image_bytes\":%zu,"
	       "\"wqe_bytes\":%zu",
	       n_qps, with_srq, took.stop, took.dump, took.restore, took.map,
	       took.attach, took.resume, took.flow, length,
	       sizeof(struct rxe_migr_recv_wqe));
	for (k = 0; k < sizeof(types) / sizeof(types[0]); k++) {
		for (i = n = 0, all = 0; i < img->count; i++) {
			if (img->records[i]->type != types[k].type)
				continue;
			all += img->records[i]->length;
			n++;
		}
		printf(",\"%s_count\":%u,\"%s_fixed\":%zu,\"%s_contents\":%zu",
		       migr_type_text(types[k].type), n,
		       migr_type_text(types[k].type), types[k].fixed,
		       migr_type_text(types[k].type),
		       n ? all / n - types[k].fixed : 0);
	}
	printf("}\n");
}
