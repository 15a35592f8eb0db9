// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * What cannot be replaced is named, and nothing has changed.
 */
#include <fcntl.h>
#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "replace_rig.h"

static void refused(const char *what)
{
	unsigned int contexts = fake_alive(FAKE_CONTEXT);

	suspend();
	CHECK(layer_replace(NULL, 0, LONG, &swapped) == EOPNOTSUPP, "%s", what);
	CHECK(strstr(swapped.reason, what), "%s: %s", what, swapped.reason);
	CHECK(fake_alive(FAKE_CONTEXT) == contexts);
	CHECK(layer_check(&swapped) == EOPNOTSUPP, "%s", what);
	CHECK(strstr(swapped.reason, what), "%s: %s", what, swapped.reason);
	resume();
}

static void test_qps(void)
{
	struct ibv_qp_rate_limit_attr limit = { .rate_limit = 1 };
	struct ibv_ece ece = { 0 };
	struct ibv_qp_attr attr = { 0 };
	struct ibv_qp *qp, *real;
	struct ibv_cq *cq, *real_cq;

	puts("QPs");
	cq = new_cq(64, &real_cq);
	qp = new_qp(IBV_QPT_XRC_RECV, cq, &real);
	refused("of a type that cannot");
	CHECK(!ibv_destroy_qp(qp));

	for (int i = 0; i < 5; i++) {
		qp = new_qp(IBV_QPT_RC, cq, &real);
		switch (i) {
		case 0:
			set_state(qp, IBV_QPS_SQD);
			refused("in SQD");
			break;
		case 1:
			CHECK(!ibv_modify_qp(qp, &attr, IBV_QP_ALT_PATH));
			refused("an alternate path");
			break;
		case 2:
			CHECK(!ibv_modify_qp(qp, &attr, IBV_QP_AV));
			refused("a peer without a GID");
			break;
		case 3:
			CHECK(!ibv_modify_qp_rate_limit(qp, &limit));
			refused("a rate limit");
			break;
		case 4:
			CHECK(!ibv_set_ece(qp, &ece));
			refused("ECE");
			break;
		}
		/* in RESET all that was set is void */
		if (i == 1 || i == 2) {
			set_state(qp, IBV_QPS_RESET);
			suspend();
			CHECK(!layer_replace(NULL, 0, LONG, &swapped));
			resume();
		}
		CHECK(!ibv_destroy_qp(qp));
	}
	CHECK(!ibv_destroy_cq(cq));

	cq = new_cq(8, &real_cq);
	qp = new_qp(IBV_QPT_RC, cq, &real);
	refused("smaller than its receive queue");
	CHECK(!ibv_destroy_qp(qp) && !ibv_destroy_cq(cq));
}

#define MANY (40U << 20)

static void test_memory(void)
{
	char *many;
	struct ibv_alloc_dm_attr dm_attr = { .length = 8 };
	struct ibv_mr *mr;
	struct ibv_pd *other;
	struct ibv_dm *dm;
	char memory[8];

	puts("PDs and regions");
	mr = ibv_reg_dmabuf_mr(pd, 0, 8, 0, 3, 0);
	MUST(mr);
	refused("of a dma-buf");
	CHECK(!ibv_dereg_mr(mr));
	mr = ibv_alloc_null_mr(pd);
	MUST(mr);
	refused("a null region");
	CHECK(!ibv_dereg_mr(mr));
	mr = ibv_import_mr(pd, 5);
	MUST(mr);
	refused("imported");
	ibv_unimport_mr(mr);
	other = ibv_import_pd(ctx, 6);
	MUST(other);
	refused("PD 6 is imported");
	ibv_unimport_pd(other);

	/* as far as its last page */
	MUST((many = mmap(NULL, MANY, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0)) != MAP_FAILED);
	for (int odp = 0; odp < 2; odp++) {
		mr = ibv_reg_mr(pd, many + 7, MANY - 7,
				odp ? IBV_ACCESS_ON_DEMAND : 0);
		MUST(mr);
		suspend();
		CHECK(!layer_check(&swapped), "%s", swapped.reason);
		resume();
		MUST(!munmap(many + MANY - 4096, 4096));
		if (!odp)
			refused("memory that is gone");
		suspend();
		CHECK(layer_check(&swapped) == (odp ? 0 : EOPNOTSUPP));
		resume();
		CHECK(!ibv_dereg_mr(mr));
		MUST(mmap(many + MANY - 4096, 4096, PROT_READ,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
			  0) != MAP_FAILED);
	}
	MUST(!munmap(many, MANY));

	/* that is the device's, in contexts that had it once */
	dm = ibv_alloc_dm(ctx, &dm_attr);
	MUST(dm);
	mr = ibv_reg_dm_mr(pd, dm, 0, 8, 0);
	MUST(mr);
	refused("device memory");
	CHECK(!ibv_dereg_mr(mr) && !ibv_free_dm(dm));
	refused("fake0 has had device memory");
	mr = ibv_reg_mr(pd, memory, 8, 0);
	MUST(mr);
	CHECK(!ibv_dereg_mr(mr));
}

static void test_srqs(void)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = { 4, 1, 0 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
		.pd = pd,
	};
	struct ibv_srq *srq;

	puts("SRQs");
	attr.srq_type = IBV_SRQT_BASIC;
	srq = ibv_create_srq_ex(ctx, &attr);
	MUST(srq);
	suspend();
	CHECK(!layer_replace(NULL, 0, LONG, &swapped));
	resume();
	CHECK(!ibv_destroy_srq(srq));
	attr.srq_type = IBV_SRQT_TM;
	srq = ibv_create_srq_ex(ctx, &attr);
	MUST(srq);
	refused("of a type that cannot");
	CHECK(!ibv_destroy_srq(srq));
}

static void not_here(int err, const char *what)
{
	unsigned int contexts = fake_alive(FAKE_CONTEXT);

	suspend();
	CHECK(layer_check(&swapped) == err, "%s: %s", what, swapped.reason);
	CHECK(strstr(swapped.reason, what), "%s: %s", what, swapped.reason);
	CHECK(fake_alive(FAKE_CONTEXT) == contexts);
	resume();
}

static void may_lock(bool may)
{
	struct __user_cap_header_struct header = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct data[2];

	MUST(!syscall(SYS_capget, &header, data));
	data[0].effective &= ~(1U << CAP_IPC_LOCK);
	if (may)
		data[0].effective |= data[0].permitted & 1U << CAP_IPC_LOCK;
	MUST(!syscall(SYS_capset, &header, data));
}

/* who does not get away needs all of it twice, here */
static void test_here(void)
{
	struct rlimit before, little;
	struct ibv_mr *mr, *odp;
	char *memory;

	puts("what there cannot be twice on this host");
	MUST(!getrlimit(RLIMIT_MEMLOCK, &before));
	little = (struct rlimit){ 512 << 10, before.rlim_max };
	MUST((memory = malloc(1 << 20)));
	mr = ibv_reg_mr(pd, memory, (512 << 10) - 8192, 0);
	odp = ibv_reg_mr(pd, memory, 1 << 20, IBV_ACCESS_ON_DEMAND);
	MUST(mr && odp);
	MUST(!setrlimit(RLIMIT_MEMLOCK, &little));
	may_lock(false);
	suspend();
	CHECK(!layer_check(&swapped), "%s", swapped.reason);
	resume();
	CHECK(!ibv_dereg_mr(mr));
	mr = ibv_reg_mr(pd, memory, (512 << 10) + 1, 0);
	MUST(mr);
	not_here(ENOMEM, "RLIMIT_MEMLOCK is 512 KiB");
	may_lock(true);
	MUST(!setrlimit(RLIMIT_MEMLOCK, &before));
	suspend();
	CHECK(!layer_check(&swapped), "%s", swapped.reason);
	resume();
	CHECK(!ibv_dereg_mr(mr) && !ibv_dereg_mr(odp));
	free(memory);
}

static void test_other_files(void)
{
	static const char *const dirs[] = { "dev", "dev/infiniband",
					    "dev/infiniband/uverbs7" };
	char path[300], what[80];
	int fd;

	puts("files of devices that the layer does not know of");
	for (int i = 0; i < 3; i++) {
		snprintf(path, sizeof(path), "%s/%s", dir, dirs[i]);
		MUST(i == 2 || !mkdir(path, 0755));
	}
	MUST((fd = open(path, O_RDWR | O_CREAT, 0600)) >= 0);
	snprintf(what, sizeof(what),
		 "descriptor %d is /dev/infiniband/uverbs7, which", fd);
	not_here(EOPNOTSUPP, what);
	puts("and those that it knows");
	real_ctx = fake_newest(FAKE_CONTEXT);
	MUST(dup2(fd, real_ctx->cmd_fd) == real_ctx->cmd_fd && !close(fd));
	suspend();
	CHECK(!layer_check(&swapped), "%s", swapped.reason);
	resume();
	MUST(!close(real_ctx->cmd_fd));
	for (int i = 2; i >= 0; i--) {
		snprintf(path, sizeof(path), "%s/%s", dir, dirs[i]);
		MUST(!remove(path));
	}
}

int main(void)
{
	rig_open();
	test_qps();
	test_srqs();
	test_here();
	test_other_files();
	test_memory();
	return rig_close();
}
