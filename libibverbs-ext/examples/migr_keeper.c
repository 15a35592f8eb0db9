// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A keeper lets a user read and write a page of its memory, and can move.
 *
 *	migr_keeper keep FILE	until a line comes in; then leave for FILE
 *	migr_keeper back FILE	from there, maybe on another host
 *	migr_keeper use		count in the keeper's memory, until a line comes
 *
 * Keeper and user first write a line, each of which is the other's input.
 */
#include <fcntl.h>
#include <infiniband/verbs_ext.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096
#define PLACE ((void *)0x200000000000) /* free in every process */
#define GID_INDEX 1
#define RIGHTS                                              \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | \
	 IBV_ACCESS_REMOTE_READ)

static struct ibv_context *ctx;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static struct ibv_qp *qp;
static uint64_t *page; /* the keeper's; the user's copy */

static void die(const char *doing, const char *why)
{
	fprintf(stderr, "migr_keeper: %s: %s\n", doing, why);
	exit(1);
}

static void check(int err, const char *doing)
{
	if (err)
		die(doing, strerror(err));
}

/* for calls that say more in a status */
static void check_status(int err, const struct rxe_migr_status *status,
			 const char *doing)
{
	char text[256];

	if (err)
		die(doing,
		    ibv_migr_status_str(status, err, text, sizeof(text)));
}

static void open_all(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	ctx = list && list[0] ? ibv_open_device(list[0]) : NULL;
	page = mmap(PLACE, PAGE, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	if (!ctx || page != PLACE)
		die("start", "no device, or no memory at the wanted place");
}

/* ---- keeper and user: an ordinary connection ---- */

static void make_objects(void)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 1,
			 .max_recv_wr = 1,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};
	struct ibv_pd *pd = ibv_alloc_pd(ctx);

	mr = pd ? ibv_reg_mr(pd, page, PAGE, RIGHTS) : NULL;
	cq = ibv_create_cq(ctx, 1, NULL, NULL, 0);
	init.send_cq = init.recv_cq = cq;
	qp = mr && cq ? ibv_create_qp(pd, &init) : NULL;
	if (!qp)
		die("objects", "cannot be made");
}

/* Returns the other's rkey */
static uint32_t connect_qp(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT,
				    .port_num = 1,
				    .qp_access_flags = RIGHTS };
	union ibv_gid *gid = &attr.ah_attr.grh.dgid;
	uint32_t rkey;

	check(ibv_modify_qp(qp, &attr,
			    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
				    IBV_QP_ACCESS_FLAGS),
	      "INIT");
	check(ibv_query_gid(ctx, 1, GID_INDEX, gid), "GID");
	printf("%u %u %" PRIx64 " %" PRIx64 "\n", qp->qp_num, mr->rkey,
	       (uint64_t)gid->global.subnet_prefix,
	       (uint64_t)gid->global.interface_id);
	fflush(stdout);
	if (scanf("%u %u %" SCNx64 " %" SCNx64, &attr.dest_qp_num, &rkey,
		  (uint64_t *)&gid->global.subnet_prefix,
		  (uint64_t *)&gid->global.interface_id) != 4 ||
	    getchar() != '\n')
		die("connection", "the line of the other end is missing");
	attr.qp_state = IBV_QPS_RTR;
	attr.path_mtu = IBV_MTU_1024;
	attr.max_dest_rd_atomic = attr.max_rd_atomic = 1;
	attr.min_rnr_timer = 12;
	attr.ah_attr.is_global = attr.ah_attr.port_num = 1;
	attr.ah_attr.grh.sgid_index = GID_INDEX;
	attr.ah_attr.grh.hop_limit = 64;
	check(ibv_modify_qp(qp, &attr,
			    IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				    IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				    IBV_QP_MAX_DEST_RD_ATOMIC |
				    IBV_QP_MIN_RNR_TIMER),
	      "RTR");
	attr.qp_state = IBV_QPS_RTS;
	attr.timeout = 17;
	attr.retry_cnt = 6;
	attr.rnr_retry = 6;
	check(ibv_modify_qp(qp, &attr,
			    IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
				    IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
				    IBV_QP_MAX_QP_RD_ATOMIC),
	      "RTS");
	return rkey;
}

static void transfer(enum ibv_wr_opcode opcode, uint64_t *local, uint32_t rkey)
{
	struct ibv_sge sge = { (uintptr_t)local, sizeof(*local), mr->lkey };
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = opcode,
				  .send_flags = IBV_SEND_SIGNALED,
				  .wr.rdma.remote_addr = (uintptr_t)PLACE,
				  .wr.rdma.rkey = rkey },
			   *bad;
	struct ibv_wc wc;

	check(ibv_post_send(qp, &wr, &bad), "post");
	while (!ibv_poll_cq(cq, 1, &wc))
		usleep(1000);
	if (wc.status)
		die("transfer", ibv_wc_status_str(wc.status));
}

static void use(void)
{
	struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };
	uint32_t rkey = connect_qp();

	for (uint64_t n = 1; poll(&in, 1, 0) == 0; n++) {
		page[0] = n;
		transfer(IBV_WR_RDMA_WRITE, &page[0], rkey);
		transfer(IBV_WR_RDMA_READ, &page[1], rkey);
		if (page[1] != n)
			die("memory", "not what was written");
		printf("used %" PRIu64 "\n", n);
		fflush(stdout);
	}
}

/* ---- the keeper leaves ---- */

static void keep(const char *file)
{
	struct rxe_migr_status status;
	char text[256];
	size_t length;
	FILE *out;
	void *dump;
	int count;

	connect_qp();
	getchar();
	check_status(ibv_migr_check_peers(ctx, 0, &status), &status, "peers");
	check_status(ibv_migr_stop(ctx, 0, &status), &status, "stop");
	check(ibv_migr_dump_size(ctx, &length), "size");
	dump = malloc(length);
	if (!dump || ibv_dump_context(ctx, &count, dump, length))
		die("dump", ibv_migr_error_str());
	if (ibv_migr_image_check(dump, length, text, sizeof(text)))
		die("image", text);

	/* memory is not part of an image; it is ours to carry */
	out = fopen(file, "w");
	if (!out || fwrite(page, PAGE, 1, out) != 1 ||
	    fwrite(dump, length, 1, out) != 1 || fclose(out))
		die(file, "cannot write");
	/* until here, an end of this process would restart the QP */
	check_status(ibv_migr_commit(ctx, 0, 5000, &status), &status, "commit");
	printf("left, %d records\n", count);
}

/* ---- and comes back ---- */

static void *read_file(const char *file, struct iovec *image)
{
	FILE *in = fopen(file, "r");
	long end;

	if (!in || fseek(in, 0, SEEK_END) || (end = ftell(in)) <= PAGE)
		die(file, "cannot read");
	rewind(in);
	image->iov_len = (size_t)end - PAGE;
	image->iov_base = malloc(image->iov_len);
	if (!image->iov_base || fread(page, PAGE, 1, in) != 1 ||
	    fread(image->iov_base, image->iov_len, 1, in) != 1)
		die(file, "cannot read");
	fclose(in);
	return image->iov_base;
}

/* Give a command for all records but the first, which is the context's own */
static void restore(struct rxe_migr_image_hdr *hdr, int cmd)
{
	char *end = (char *)hdr + hdr->length;
	struct rxe_migr_rec *rec = (void *)((char *)hdr + hdr->hdr_length);
	int type;

	for (;;) {
		rec = (void *)((char *)rec + rec->length);
		if ((char *)rec == end)
			break;
		type = (int)rec->type;
		if (ibv_restore_object(ctx, NULL, type,
				       cmd == IBV_RESTORE_CREATE &&
						       type == RXE_MIGR_MR
					       ? IBV_RESTORE_MR_KEYS
					       : cmd,
				       rec, rec->length))
			die("restore", ibv_migr_error_str());
	}
}

static void back(const char *file)
{
	struct rxe_migr_resolve_resp what;
	struct rxe_migr_status status;
	struct iovec image;
	char text[256];
	void *dump = read_file(file, &image);

	if (ibv_migr_image_check(dump, image.iov_len, text, sizeof(text)))
		die("image", text);
	/* the kernel wants to see what a kernel has signed, before it changes */
	if (ibv_migr_load(ctx, dump, image.iov_len))
		die("image", ibv_migr_error_str());
	/* this host's addresses instead of the old one's */
	if (ibv_migr_relocate(ctx, &image, 1))
		die("addresses", ibv_migr_error_str());
	restore(dump, IBV_RESTORE_CREATE);
	restore(dump, IBV_RESTORE_REFILL);
	check_status(ibv_migr_attach(ctx, &status), &status, "attach");
	check_status(ibv_migr_resume(ctx, &status), &status, "resume");
	check(ibv_migr_resolve(ctx, ctx->async_fd, &what), "resolve");
	if (what.type != RXE_MIGR_ASYNC_FD)
		die("resolve", "not the asynchronous event file");
	printf("back, %u queue pairs\n", status.objects);
	fflush(stdout);
	getchar();
	printf("kept %" PRIu64 "\n", page[0]);
}

int main(int argc, char **argv)
{
	open_all();
	if (argc == 3 && !strcmp(argv[1], "back")) {
		back(argv[2]);
		return 0;
	}
	make_objects();
	if (argc == 3 && !strcmp(argv[1], "keep"))
		keep(argv[2]);
	else if (argc == 2 && !strcmp(argv[1], "use"))
		use();
	else
		die("usage", "keep FILE | back FILE | use");
	return 0;
}
