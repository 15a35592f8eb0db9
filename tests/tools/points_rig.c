// SPDX-License-Identifier: GPL-2.0
/*
 * Ends and lanes of migr_points, and how an end moves: see points.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../connect.h"
#include "migr_cmd.h"
#include "points.h"

#define MAX_GIDS 256	   /* of which a QP can name the index */
#define FIRST_PSN 0xfffffa /* wraps in the first messages */
#define GUARD 64	   /* bytes behind the data of a slot */
#define DEPTH 16
#define MAX_RINGS 256
#define ACCESS                                               \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |  \
	 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC | \
	 IBV_ACCESS_FLUSH_GLOBAL)

size_t slot_size(const struct points_case *c)
{
	return ((size_t)c->size + 7) / 8 * 8 + GUARD;
}

char *slot_from(const struct lane *l, enum role role, int i)
{
	return l->half[role].mem + (size_t)i * slot_size(l->c);
}

char *slot_to(const struct lane *l, enum role role, int i)
{
	return slot_from(l, role, SLOTS + i);
}

/* ---- life ---- */

static bool is_ipv4(const struct ibv_gid_entry *e)
{
	static const uint8_t prefix[12] = { [10] = 0xff, [11] = 0xff };

	return e->gid_type == IBV_GID_TYPE_ROCE_V2 &&
	       !memcmp(e->gid.raw, prefix, sizeof(prefix));
}

void rig_find_addresses(struct rig *rig)
{
	struct ibv_gid_entry entry[MAX_GIDS];
	struct ibv_context *ctx;
	ssize_t count;
	int n = 0;

	NEED(ctx = ibv_open_device(rig->dev));
	NEED((count = ibv_query_gid_table(ctx, entry, MAX_GIDS, 0)) >= 0);
	for (ssize_t i = 0; i < count && n < 2; i++)
		if (is_ipv4(&entry[i]))
			rig->address[n++] =
				(struct address){ entry[i].gid,
						  (uint8_t)entry[i].gid_index };
	NEED(!ibv_close_device(ctx));
	if (n == 2)
		return;
	fprintf(stderr, "%s needs two IPv4 addresses to move between\n",
		ibv_get_device_name(rig->dev));
	exit(2);
}

static void end_open(struct rig *rig, struct end *e)
{
	const int cqe = rig->lanes * DEPTH;

	e->length = (size_t)rig->lanes * 2 * SLOTS * slot_size(&rig->c);
	NEED(e->ctx = ibv_open_device(rig->dev));
	NEED(e->pd = ibv_alloc_pd(e->ctx));
	NEED(e->cq[SEND] = ibv_create_cq(e->ctx, cqe, NULL, NULL, 0));
	NEED(e->cq[RECV] = ibv_create_cq(e->ctx, cqe, NULL, NULL, 0));
	e->mem = mmap(NULL, e->length, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	NEED(e->mem != MAP_FAILED);
	NEED(e->mr = ibv_reg_mr(e->pd, e->mem, e->length,
				ACCESS | IBV_ACCESS_MW_BIND));
}

static void half_open(struct rig *rig, struct lane *l, enum role role)
{
	struct end *e = &rig->end[role];
	struct half *h = &l->half[role];
	struct ibv_srq_init_attr srq = { .attr = { DEPTH, 1, 0 } };
	struct ibv_qp_init_attr_ex init = {
		.cap = { DEPTH, DEPTH, 1, 1, 0 },
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.comp_mask =
			IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags =
			IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM |
			IBV_QP_EX_WITH_SEND_WITH_INV |
			IBV_QP_EX_WITH_RDMA_WRITE |
			IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
			IBV_QP_EX_WITH_RDMA_READ |
			IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP |
			IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD |
			IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_FLUSH |
			IBV_QP_EX_WITH_ATOMIC_WRITE,
		.pd = e->pd,
		.send_cq = e->cq[SEND],
		.recv_cq = e->cq[RECV],
	};
	const size_t length = e->length / (size_t)rig->lanes;

	h->mem = e->mem + (size_t)l->index * length;
	NEED(h->want = malloc(length));
	if (l->c->srq)
		NEED(h->srq = ibv_create_srq(e->pd, &srq));
	init.srq = h->srq;
	NEED(h->qp = ibv_create_qp_ex(e->ctx, &init));
	h->qpx = ibv_qp_to_qp_ex(h->qp);
	for (int i = 0; op_binds(l->c->op) && role == RESPONDER && i < MESSAGES;
	     i++)
		NEED(h->mw[i] = ibv_alloc_mw(e->pd, IBV_MW_TYPE_2));
}

static const struct address *address_of(const struct rig *rig, enum role role)
{
	return &rig->address[rig->end[role].at];
}

static void half_connect(struct rig *rig, struct lane *l, enum role role)
{
	const enum role peer = role == REQUESTER ? RESPONDER : REQUESTER;
	struct ibv_qp *qp = l->half[role].qp;
	struct ibv_qp_attr a =
		rc_attr(&address_of(rig, peer)->gid,
			address_of(rig, role)->index, l->half[peer].qp->qp_num);

	a.qp_access_flags = ACCESS;
	a.rq_psn = a.sq_psn = FIRST_PSN;
	a.timeout = 0; /* never: a move is no reason to wait for it */
	NEED(!rc_to_rtr(qp, &a) && !rc_to_rts(qp, &a));
}

void rig_open(struct rig *rig)
{
	for (int role = 0; role < 2; role++)
		end_open(rig, &rig->end[role]);
	/* half of the cases go there, and half come back */
	rig->end[REQUESTER].at = rig->end[RESPONDER].at = 0;
	rig->end[rig->c.moved].at = rig->c.srq;
	for (int i = 0; i < rig->lanes; i++) {
		struct lane *l = &rig->lane[i];

		half_open(rig, l, REQUESTER);
		half_open(rig, l, RESPONDER);
		half_connect(rig, l, REQUESTER);
		half_connect(rig, l, RESPONDER);
	}
}

void lane_check_peer(struct rig *rig, struct lane *l)
{
	const enum role moved = l->c->moved;
	const enum role peer = moved == REQUESTER ? RESPONDER : REQUESTER;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr a;

	NEED(!ibv_query_qp(l->half[peer].qp, &a, IBV_QP_AV, &init));
	if (memcmp(&a.ah_attr.grh.dgid, &address_of(rig, moved)->gid,
		   sizeof(union ibv_gid)))
		lane_failed(l, "the %s has another address of its peer",
			    role_names[peer]);
}

void lane_reset(struct rig *rig, struct lane *l)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_RESET };

	(void)rig;
	for (int role = 0; role < 2; role++)
		NEED(!ibv_modify_qp(l->half[role].qp, &a, IBV_QP_STATE));
}

static void half_close(struct half *h)
{
	for (int i = 0; i < MESSAGES; i++)
		if (h->mw[i])
			NEED(!ibv_dealloc_mw(h->mw[i]));
	NEED(!ibv_destroy_qp(h->qp));
	if (h->srq)
		NEED(!ibv_destroy_srq(h->srq));
	free(h->want);
}

void rig_close(struct rig *rig)
{
	for (int role = 0; role < 2; role++) {
		struct end *e = &rig->end[role];

		for (int i = 0; i < rig->lanes; i++)
			half_close(&rig->lane[i].half[role]);
		NEED(!ibv_destroy_cq(e->cq[SEND]));
		NEED(!ibv_destroy_cq(e->cq[RECV]));
		NEED(!ibv_dereg_mr(e->mr));
		NEED(!ibv_dealloc_pd(e->pd));
		NEED(!ibv_close_device(e->ctx));
		munmap(e->mem, e->length);
	}
}

/* ---- a move ---- */

struct ring {
	void *at;
	size_t length;
	uint64_t offset;
};

static void need_done(int ret, const char *what, const char *why)
{
	if (!ret)
		return;
	fprintf(stderr, "%s: %s\n", what, why);
	need_failed(__FILE__, __LINE__, what);
}

static bool is_of_image(const struct migr_image *img, uint64_t offset)
{
	for (unsigned int i = 0; i < img->count; i++) {
		const void *rec = img->records[i];
		const struct rxe_migr_rec_cq *cq = rec;
		const struct rxe_migr_rec_srq *srq = rec;
		const struct rxe_migr_rec_qp *qp = rec;

		switch (img->records[i]->type) {
		case RXE_MIGR_CQ:
			if (cq->ring.mmap_offset == offset)
				return true;
			break;
		case RXE_MIGR_SRQ:
			if (srq->ring.mmap_offset == offset)
				return true;
			break;
		case RXE_MIGR_QP:
			if (qp->sq.mmap_offset == offset ||
			    (qp->rq.mmap_size && qp->rq.mmap_offset == offset))
				return true;
			break;
		}
	}
	return false;
}

/* the rings of the image's objects, which are where libibverbs mapped them */
static int find_rings(const struct migr_image *img, struct ring *ring)
{
	unsigned long at, end, offset;
	char line[512];
	FILE *maps;
	int n = 0;

	NEED(maps = fopen("/proc/self/maps", "r"));
	while (fgets(line, sizeof(line), maps)) {
		if (!strstr(line, "/dev/infiniband/uverbs") ||
		    sscanf(line, "%lx-%lx %*s %lx", &at, &end, &offset) != 3 ||
		    !is_of_image(img, offset))
			continue;
		NEED(n < MAX_RINGS);
		ring[n++] =
			(struct ring){ (void *)at, (size_t)(end - at), offset };
	}
	fclose(maps);
	return n;
}

static void map_rings(const struct ring *ring, int n, int fd)
{
	const int flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
	const int prot = fd < 0 ? PROT_NONE : PROT_READ | PROT_WRITE;

	for (int i = 0; i < n; i++) {
		off_t offset = fd < 0 ? 0 : (off_t)ring[i].offset;

		NEED(mmap(ring[i].at, ring[i].length, prot, flags | MAP_FIXED,
			  fd, offset) == ring[i].at);
	}
}

static void stop_and_dump(int fd, void **image, size_t *length, int *guard)
{
	struct rxe_migr_status st;
	struct migr_error err;
	int ret;

	ret = migr_cmd_stop(fd, 0, 0, &st);
	migr_status_text(&st, ret, &err);
	need_done(ret, "STOP", err.text);
	ret = migr_cmd_dump(fd, image, length, &err);
	need_done(ret, "DUMP", err.text);
	*guard = st.guard_fd;
	ret = migr_cmd_commit(fd, 0, 5000, &st);
	migr_status_text(&st, ret, &err);
	need_done(ret, "COMMIT", err.text);
}

/* all its QPs are connected, and their peers stay where they are */
static void readdress(struct migr_image *img, const struct address *to)
{
	NEED(img->address = calloc(img->count, sizeof(*img->address)));
	for (unsigned int i = 0; i < img->count; i++) {
		const struct rxe_migr_rec_qp *qp = (void *)img->records[i];

		if (qp->rec.type != RXE_MIGR_QP)
			continue;
		memcpy(img->address[i].sgid, to->gid.raw, 16);
		memcpy(img->address[i].dgid, qp->dgid, 16);
		img->address[i].sgid_index = to->index;
	}
}

static void restore(int fd, const struct migr_image *img,
		    struct migr_files *files)
{
	struct rxe_migr_status st;
	struct migr_error err = {};
	int ret;

	ret = migr_restore_context(fd, img, files, &err);
	need_done(ret, "restore", err.text);
	ret = migr_cmd_attach(fd, &st);
	migr_status_text(&st, ret, &err);
	need_done(ret, "ATTACH", err.text);
}

/*
 * As CRIU does it, but in the same process: the files get their old descriptors,
 * and the rings their old places. Who may have any address of the device keeps his,
 * so the other one is not left to migr_relocate().
 */
void end_move(struct rig *rig, enum role role)
{
	struct end *e = &rig->end[role];
	struct ibv_context *ctx = e->ctx;
	struct ring ring[MAX_RINGS];
	struct migr_files files;
	struct migr_image img;
	struct migr_error err;
	char path[128];
	int guard, fd, n, ret;
	size_t length;
	void *image;

	stop_and_dump(ctx->cmd_fd, &image, &length, &guard);
	ret = migr_image_parse(image, length, &img, &err);
	need_done(ret, "image", err.text);
	e->at = !e->at;
	readdress(&img, address_of(rig, role));
	n = find_rings(&img, ring);

	/* with the last mapping and descriptor goes the context */
	map_rings(ring, n, -1);
	snprintf(path, sizeof(path), "/dev/infiniband/%s", rig->dev->dev_name);
	NEED((fd = open(path, O_RDWR | O_CLOEXEC)) >= 0);
	close(guard);
	NEED(dup2(fd, ctx->cmd_fd) == ctx->cmd_fd);
	close(fd);

	restore(ctx->cmd_fd, &img, &files);
	NEED(dup2(files.async_fd, ctx->async_fd) == ctx->async_fd);
	map_rings(ring, n, ctx->cmd_fd);
	migr_files_close(&files);
	migr_image_free(&img);
	free(image);
}

void end_resume(struct rig *rig, enum role role)
{
	struct rxe_migr_status st;
	struct migr_error err;
	int ret = migr_cmd_resume(rig->end[role].ctx->cmd_fd, &st);

	migr_status_text(&st, ret, &err);
	need_done(ret, "RESUME", err.text);
}
