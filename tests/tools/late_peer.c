// SPDX-License-Identifier: GPL-2.0
/*
 * late_peer - connections that are made long after memory was registered
 *
 *   late_peer [-d DEVICE] [-p PORT] -s
 *   late_peer [-d DEVICE] [-p PORT] [-w FILE] [-f] [-n TIMES] HOST
 *
 *   -s  serve one client after the other: with memory that was registered at the start
 *   -w  register memory, print "ready", and connect when there is that file
 *   -f  be in RTR before the server is; else afterwards
 *   -n  so many connections, each with a queue pair of its own
 *
 * A client writes to the server's memory, reads it again and adds to a word of it; the server
 * reads the client's. Prints "ok" for each client; a wrong byte, or a completion with an error,
 * ends it with the reason. Exit code: 0, 1, or 2 for bad arguments.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../connect.h"
#include "../mix/conn.h"

enum {
	BYTES = 4096,	 /* that are written, and read from the client */
	COUNTER = BYTES, /* where the word to add to is */
	ROOM = 2 * BYTES,
	SECONDS = 60, /* for which the peer may be silent */
};

static const int access_all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			      IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

static struct ibv_context *context;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_mr *mr, *scratch_mr;
static _Alignas(8) unsigned char memory[ROOM], scratch[ROOM];

static bool fail(const char *what, const char *why)
{
	fprintf(stderr, "late_peer: %s: %s\n", what, why);
	return false;
}

/* --- objects --- */

static struct ibv_context *open_device(const char *name)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *found = NULL;

	for (int i = 0; list && list[i] && !found; i++)
		if (!name || !strcmp(name, ibv_get_device_name(list[i])))
			found = ibv_open_device(list[i]);
	if (list)
		ibv_free_device_list(list);
	return found;
}

/* which may be another one when it has moved */
static bool find_gid(union ibv_gid *gid, int *index)
{
	struct ibv_gid_entry e;

	for (*index = 0; *index < 256; (*index)++)
		if (!ibv_query_gid_ex(context, 1, (uint32_t)*index, &e, 0) &&
		    e.gid_type == IBV_GID_TYPE_ROCE_V2 &&
		    !e.gid.global.subnet_prefix) {
			*gid = e.gid;
			return true;
		}
	return fail("the device", "has no GID of IPv4");
}

static struct ibv_qp *make_qp(void)
{
	struct ibv_qp_init_attr init = { .send_cq = cq,
					 .recv_cq = cq,
					 .cap = { 4, 4, 1, 1, 0 },
					 .qp_type = IBV_QPT_RC };
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT,
				    .port_num = 1,
				    .qp_access_flags = (unsigned)access_all };
	struct ibv_qp *qp = ibv_create_qp(pd, &init);

	if (qp && ibv_modify_qp(qp, &attr,
				IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
					IBV_QP_ACCESS_FLAGS)) {
		ibv_destroy_qp(qp);
		qp = NULL;
	}
	return qp;
}

static bool begin(const char *device)
{
	context = open_device(device);
	pd = context ? ibv_alloc_pd(context) : NULL;
	cq = pd ? ibv_create_cq(context, 16, NULL, NULL, 0) : NULL;
	mr = cq ? ibv_reg_mr(pd, memory, ROOM, access_all) : NULL;
	scratch_mr = mr ? ibv_reg_mr(pd, scratch, ROOM, IBV_ACCESS_LOCAL_WRITE)
			: NULL;
	return scratch_mr || fail("the device", "gives not all of its objects");
}

/* --- connections --- */

struct peer {
	union ibv_gid gid;
	uint64_t qpn, rkey, addr;
};

static bool tell(int fd, const struct ibv_qp *qp, const union ibv_gid *gid)
{
	uint64_t word[5] = { qp->qp_num, mr->rkey, (uintptr_t)memory };

	memcpy(&word[3], gid, sizeof(*gid));
	return !conn_send(fd, word, 5);
}

static bool hear(int fd, struct peer *p)
{
	uint64_t word[5];

	if (conn_recv(fd, word, 5, SECONDS))
		return false;
	p->qpn = word[0];
	p->rkey = word[1];
	p->addr = word[2];
	memcpy(&p->gid, &word[3], sizeof(p->gid));
	return true;
}

static bool connect_qp(struct ibv_qp *qp, const struct peer *p, int index)
{
	struct ibv_qp_attr a = rc_attr(&p->gid, index, (uint32_t)p->qpn);

	a.qp_state = IBV_QPS_RTR;
	a.qp_access_flags = (unsigned)access_all;
	return (!ibv_modify_qp(qp, &a,
			       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				       IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				       IBV_QP_MAX_DEST_RD_ATOMIC |
				       IBV_QP_MIN_RNR_TIMER) &&
		!rc_to_rts(qp, &a)) ||
	       fail("a queue pair", "cannot be connected");
}

/*
 * Who is to be in RTR first hears of the other one before it tells; the client says who that
 * is.
 */
static bool meet(int fd, struct ibv_qp *qp, struct peer *p, bool first)
{
	union ibv_gid gid;
	int index;

	if (!find_gid(&gid, &index))
		return false;
	if (first)
		return hear(fd, p) && connect_qp(qp, p, index) &&
		       tell(fd, qp, &gid);
	return tell(fd, qp, &gid) && hear(fd, p) && connect_qp(qp, p, index);
}

/* both are in RTS */
static bool sync_with(int fd, uint64_t mine)
{
	uint64_t word;

	return !conn_send(fd, &mine, 1) && !conn_recv(fd, &word, 1, SECONDS) &&
	       word == mine;
}

/* --- what is done --- */

static bool complete(struct ibv_qp *qp, struct ibv_send_wr *wr,
		     const char *what)
{
	const struct timespec pause = { .tv_nsec = 100000 };
	struct ibv_send_wr *bad;
	struct ibv_wc wc;
	int n;

	wr->num_sge = 1;
	wr->send_flags = IBV_SEND_SIGNALED;
	if (ibv_post_send(qp, wr, &bad))
		return fail(what, "is not posted");
	while (!(n = ibv_poll_cq(cq, 1, &wc)))
		nanosleep(&pause, NULL);
	return (n == 1 && !wc.status) ||
	       fail(what, n < 0 ? "no poll" : ibv_wc_status_str(wc.status));
}

static void fill(unsigned char *at, unsigned int seed)
{
	for (unsigned int i = 0; i < BYTES; i++)
		at[i] = (unsigned char)(seed + i * 7 + i / 256);
}

static bool is_filled(const unsigned char *at, unsigned int seed,
		      const char *what)
{
	static unsigned char wanted[BYTES];

	fill(wanted, seed);
	return !memcmp(at, wanted, BYTES) || fail(what, "other bytes");
}

static struct ibv_sge scratch_of(unsigned int bytes)
{
	return (struct ibv_sge){ (uintptr_t)scratch, bytes, scratch_mr->lkey };
}

static bool read_from(struct ibv_qp *qp, const struct peer *p,
		      unsigned int seed, const char *what)
{
	struct ibv_sge sge = scratch_of(BYTES);
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .opcode = IBV_WR_RDMA_READ,
				  .wr.rdma = { p->addr, (uint32_t)p->rkey } };

	memset(scratch, 0, BYTES);
	return complete(qp, &wr, what) && is_filled(scratch, seed, what);
}

static bool use(struct ibv_qp *qp, const struct peer *p, unsigned int seed)
{
	struct ibv_sge sge = scratch_of(BYTES), word = scratch_of(8);
	struct ibv_send_wr wr = { .sg_list = &sge,
				  .opcode = IBV_WR_RDMA_WRITE,
				  .wr.rdma = { p->addr, (uint32_t)p->rkey } };
	struct ibv_send_wr add = {
		.sg_list = &word,
		.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
		.wr.atomic = { p->addr + COUNTER, 1, 0, (uint32_t)p->rkey },
	};

	fill(scratch, seed);
	return complete(qp, &wr, "the client's WRITE") &&
	       read_from(qp, p, seed, "the client's READ") &&
	       complete(qp, &add, "the client's atomic");
}

/* --- both ends --- */

static bool serve_one(int fd, struct ibv_qp *qp, uint64_t n)
{
	struct peer p;
	uint64_t word;

	return !conn_recv(fd, &word, 1, SECONDS) && meet(fd, qp, &p, !word) &&
	       sync_with(fd, 1) &&
	       sync_with(fd, 2) && /* it has written, and added */
	       is_filled(memory, (unsigned int)n, "the server's memory") &&
	       read_from(qp, &p, (unsigned int)n + 100, "the server's READ") &&
	       sync_with(fd, 3);
}

static bool serve(const char *port)
{
	uint64_t *counter = (uint64_t *)(memory + COUNTER);
	struct ibv_qp *qp;
	bool good = true;
	int fd;

	for (uint64_t n = 0; good; n++) {
		fd = conn_listen(port);
		qp = make_qp();
		good = fd >= 0 && qp && !conn_send(fd, &n, 1) &&
		       serve_one(fd, qp, n) &&
		       (*counter == n + 1 || fail("the counter", "is another"));
		if (good)
			puts("ok");
		fflush(stdout);
		if (fd >= 0)
			close(fd);
		if (qp)
			ibv_destroy_qp(qp);
	}
	return false;
}

/* Between two clients nobody listens. */
static int dial(const char *host, const char *port)
{
	const struct timespec pause = { .tv_nsec = 100000000 };
	int fd = -1;

	for (int i = 0; i < 100 && fd < 0; i++) {
		if (i)
			nanosleep(&pause, NULL);
		fd = conn_connect(host, port);
	}
	return fd;
}

static bool client_one(const char *host, const char *port, bool first)
{
	struct ibv_qp *qp = make_qp();
	int fd = dial(host, port);
	uint64_t n, word = first;
	struct peer p;
	bool good;

	good = qp && fd >= 0 && !conn_recv(fd, &n, 1, SECONDS) &&
	       !conn_send(fd, &word, 1);
	if (good)
		fill(memory, (unsigned int)n + 100);
	good = good && meet(fd, qp, &p, first) && sync_with(fd, 1) &&
	       use(qp, &p, (unsigned int)n) && sync_with(fd, 2) &&
	       sync_with(fd, 3);
	puts(good ? "ok" : "failed");
	fflush(stdout);
	if (qp)
		ibv_destroy_qp(qp);
	if (fd >= 0)
		close(fd);
	return good;
}

static void wait_for(const char *file)
{
	const struct timespec pause = { .tv_nsec = 100000000 };

	puts("ready");
	fflush(stdout);
	while (access(file, F_OK))
		nanosleep(&pause, NULL);
}

static int usage(void)
{
	fprintf(stderr,
		"usage: late_peer [-d DEVICE] [-p PORT] -s\n"
		"       late_peer [-d DEVICE] [-p PORT] [-w FILE] [-f] [-n TIMES] HOST\n");
	return 2;
}

int main(int argc, char **argv)
{
	const char *device = NULL, *port = "18610", *file = NULL;
	bool server = false, first = false, good = true;
	int option, times = 1;

	while ((option = getopt(argc, argv, "d:p:sw:fn:")) != -1) {
		switch (option) {
		case 'd':
			device = optarg;
			break;
		case 'p':
			port = optarg;
			break;
		case 's':
			server = true;
			break;
		case 'w':
			file = optarg;
			break;
		case 'f':
			first = true;
			break;
		case 'n':
			times = atoi(optarg);
			break;
		default:
			return usage();
		}
	}
	if (argc - optind != !server || times < 1)
		return usage();
	if (!begin(device))
		return 1;
	if (server)
		return !serve(port);
	if (file)
		wait_for(file);
	while (good && times--)
		good = client_one(argv[optind], port, first);
	return !good;
}
