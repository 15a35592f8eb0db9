// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "suspend_rig.h"

#include <sys/stat.h>

char dir[] = "/tmp/migrrdma.XXXXXX";
struct ibv_context *ctx, *real_ctx;
struct ibv_pd *pd;

/* --- what the application has --- */

struct ibv_cq *new_cq(int cqe, struct ibv_cq **real)
{
	struct ibv_cq *cq = ibv_create_cq(ctx, cqe, NULL, NULL, 0);

	MUST(cq);
	*real = fake_newest(FAKE_CQ);
	return cq;
}

void set_state(struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };

	MUST(!ibv_modify_qp(qp, &attr, IBV_QP_STATE));
}

struct ibv_qp *new_qp(enum ibv_qp_type type, struct ibv_cq *cq,
		      struct ibv_qp **real)
{
	struct ibv_qp_init_attr attr = { .send_cq = cq,
					 .recv_cq = cq,
					 .cap = { 6, 1, 2, 1, 14 },
					 .qp_type = type };
	struct ibv_qp *qp = ibv_create_qp(pd, &attr);

	MUST(qp);
	*real = fake_newest(FAKE_QP);
	set_state(qp, IBV_QPS_RTS);
	return qp;
}

struct ibv_qp *new_qp_ex(enum ibv_qp_type type, struct ibv_cq *cq, uint64_t ops,
			 struct ibv_qp **real)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.cap = { 6, 1, 2, 1, 14 },
		.qp_type = type,
		.comp_mask =
			IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = pd,
		.send_ops_flags = ops,
	};
	struct ibv_qp *qp = ibv_create_qp_ex(ctx, &attr);

	MUST(qp);
	*real = fake_newest(FAKE_QP);
	set_state(qp, IBV_QPS_RTS);
	return qp;
}

const struct ibv_qp_cap cap = { 6 + GROWN, 21, 32, 41, 64 };

int send_one(struct ibv_qp *qp, uint64_t wr_id, unsigned int flags)
{
	struct ibv_sge sge = { .addr = 0x1000 + wr_id, .length = 8, .lkey = 9 };
	struct ibv_send_wr *bad, wr = { .wr_id = wr_id,
					.sg_list = &sge,
					.num_sge = 1,
					.opcode = IBV_WR_SEND,
					.send_flags = flags };

	return ibv_post_send(qp, &wr, &bad);
}

/* the ids of all it has, at most so many in one call */
void check_polled(struct ibv_cq *cq, int at_once, const uint64_t *ids,
		  unsigned int n)
{
	struct ibv_wc wc[32];
	unsigned int seen = 0;
	int got;

	while ((got = ibv_poll_cq(cq, at_once, wc)) > 0) {
		MUST(got <= at_once);
		for (int i = 0; i < got; i++, seen++)
			CHECK(seen < n && wc[i].wr_id == ids[seen],
			      "completion %u is of %#llx", seen,
			      (unsigned long long)wc[i].wr_id);
	}
	CHECK(got == 0);
	CHECK(seen == n, "%u completions, not %u", seen, n);
}
void check_nothing(struct ibv_cq *cq)
{
	struct ibv_wc wc[4];

	CHECK(ibv_poll_cq(cq, 4, wc) == 0);
}

/* the layer is out of the way again: the provider gets the application's buffer */
void check_direct(struct ibv_cq *cq, struct ibv_cq *real)
{
	struct ibv_wc wc[3];

	CHECK(ibv_poll_cq(cq, 3, wc) == 0); /* the last one that looks */
	CHECK(ibv_poll_cq(cq, 3, wc) == 0);
	SAW("poll_cq", real, 3, wc);
}

struct ibv_cq_ex *new_cq_ex(uint64_t flags, struct ibv_cq **real)
{
	struct ibv_cq_init_attr_ex attr = { .cqe = 32, .wc_flags = flags };
	struct ibv_cq_ex *ex = ibv_create_cq_ex(ctx, &attr);

	MUST(ex);
	*real = fake_newest(FAKE_CQ);
	return ex;
}

/* a completion of which each member is another one, made of its id */
/* --- what its peer does --- */

atomic_bool prompt =
	true; /* does it do what is asked for, when a marker comes? */

bool is_marker(const struct fake_sent *sent)
{
	return !sent->wr.num_sge && (sent->wr.opcode == IBV_WR_RDMA_WRITE ||
				     (sent->wr.opcode == IBV_WR_SEND &&
				      sent->wr.wr.ud.remote_qpn == 0xfffffe));
}

static void peer(struct ibv_qp *real, const struct fake_sent *sent)
{
	if (prompt && is_marker(sent))
		fake_finish(real, UINT_MAX, IBV_WC_SUCCESS);
}

unsigned int markers_of(struct ibv_qp *real)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < fake_sends(real); i++)
		n += is_marker(fake_sent(real, i));
	return n;
}

/* the requests of the application that the provider has got */
void check_sent(struct ibv_qp *real, const uint64_t *ids, unsigned int n)
{
	const struct fake_sent *sent;
	unsigned int seen = 0;

	for (unsigned int i = 0; i < fake_sends(real); i++) {
		sent = fake_sent(real, i);
		if (is_marker(sent))
			continue;
		CHECK(seen < n && sent->wr.wr_id == ids[seen],
		      "request %u is %#llx", seen,
		      (unsigned long long)sent->wr.wr_id);
		seen++;
	}
	CHECK(seen == n, "%u requests, not %u", seen, n);
}
/* --- who suspends --- */

struct suspension found;

void suspend(void)
{
	int err = layer_suspend(LONG, &found);

	CHECK(!err, "%d: %s", err, found.reason);
}

void resume(void)
{
	CHECK(!layer_resume(&found));
}

struct other other;

static void *suspend_thread(void *arg)
{
	(void)arg;
	other.err =
		other.qpn ? layer_suspend_some(&other.qpn, 1, other.ms, &found)
			  : layer_suspend(other.ms, &found);
	other.done = true;
	return NULL;
}

void begin_suspend_one(uint32_t qpn, unsigned int ms)
{
	other.qpn = qpn;
	other.ms = ms;
	other.done = false;
	MUST(!pthread_create(&other.thread, NULL, suspend_thread, NULL));
}

void begin_suspend(unsigned int ms)
{
	begin_suspend_one(0, ms);
}

int end_suspend(void)
{
	MUST(!pthread_join(other.thread, NULL));
	return other.err;
}

/* --- two QPs --- */

struct two two;

void two_make(void)
{
	two.cq = new_cq(64, &two.real_cq);
	two.a = new_qp(IBV_QPT_RC, two.cq, &two.real_a);
	two.b = new_qp(IBV_QPT_RC, two.cq, &two.real_b);
}

void two_destroy(void)
{
	CHECK(!ibv_destroy_qp(two.a) && !ibv_destroy_qp(two.b));
	CHECK(!ibv_destroy_cq(two.cq));
}

int suspend_one(struct ibv_qp *qp, unsigned int ms)
{
	return layer_suspend_some(&qp->qp_num, 1, ms, &found);
}

void suspend_a(void)
{
	CHECK(!suspend_one(two.a, LONG), "%s", found.reason);
	CHECK(found.qps == 1 && found.markers == 1);
}

/* --- all of it --- */

void say_of_device(const char *file, const char *text)
{
	char path[300];
	FILE *f;

	snprintf(path, sizeof(path), "%s/dev0/%s", fake_sysfs, file);
	MUST(f = fopen(path, "w"));
	MUST(fputs(text, f) >= 0 && !fclose(f));
}

static void sysfs_make(void)
{
	char path[300];

	fake_sysfs = dir;
	snprintf(path, sizeof(path), "%s/dev0", dir);
	MUST(!mkdir(path, 0755));
	say_of_device("ibdev", "fake0\n");
	say_of_device("dev", "0:0\n");
}

static void sysfs_remove(void)
{
	static const char *const all[] = { "dev0/ibdev", "dev0/dev", "dev0" };
	char path[300];

	for (int i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, all[i]);
		CHECK(!remove(path));
	}
}

void rig_open(void)
{
	MUST(mkdtemp(dir));
	sysfs_make();
	MUST(!setenv("MIGRRDMA_DIR", dir, 1));
	fake_work();
	fake_posted_hook = peer;
	ctx = app_open(0);
	real_ctx = fake_newest(FAKE_CONTEXT);
	pd = ibv_alloc_pd(ctx);
	MUST(pd);
}

int rig_close(void)
{
	char path[64];

	CHECK(!ibv_dealloc_pd(pd));
	app_close(ctx);
	snprintf(path, sizeof(path), "%s/%d.sock", dir, getpid());
	sysfs_remove();
	CHECK(!unlink(path) && !rmdir(dir));
	return app_end();
}
