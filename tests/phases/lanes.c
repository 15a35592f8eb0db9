// SPDX-License-Identifier: GPL-2.0
/* The objects of phase_mix: lanes differ in their CQs and in their memory. */
#include <fcntl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>

#include "check.h"
#include "conn.h"
#include "pattern.h"
#include "phases.h"

#define HELLO_SECONDS 60
#define SIZE (SLOTS * SLOT)
#define ACCESS                                              \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | \
	 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_MW_BIND)

static char *map_anonymous(int flags)
{
	return mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | flags,
		    -1, 0);
}

static char *map_private(void)
{
	return map_anonymous(MAP_PRIVATE);
}

static char *map_shared(void)
{
	return map_anonymous(MAP_SHARED);
}

static char *map_memfd(void)
{
	int fd = memfd_create("phases", MFD_CLOEXEC);
	char *mem;

	MUST(fd >= 0 && !ftruncate(fd, SIZE));
	mem = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	return mem;
}

/* which has no name any more */
static char *map_file(void)
{
	char name[] = "/tmp/phases.XXXXXX";
	int fd = mkstemp(name);
	char *mem;

	MUST(fd >= 0 && !unlink(name) && !ftruncate(fd, SIZE));
	mem = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	close(fd);
	return mem;
}

static char posix_name[MOST_LANES][32];
static unsigned int posix_names;

/* it keeps its name, by which it is found where it moves to */
static char *map_posix(void)
{
	char *name = posix_name[posix_names];
	char *mem;
	int fd;

	snprintf(name, sizeof(posix_name[0]), "/phases.%d.%u", (int)getpid(),
		 posix_names++);
	MUST((fd = shm_open(name, O_RDWR | O_CREAT | O_TRUNC, 0600)) >= 0);
	MUST(!ftruncate(fd, SIZE));
	mem = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	return mem;
}

static char *map_sysv(void)
{
	int id = shmget(IPC_PRIVATE, SIZE, 0600);
	char *mem;

	MUST(id >= 0);
	mem = shmat(id, NULL, 0);
	MUST(!shmctl(id, IPC_RMID, NULL));
	return mem;
}

static const struct {
	const char *name;
	char *(*map)(void);
} kinds[] = {
	{ "private", map_private }, { "shared", map_shared },
	{ "memfd", map_memfd },	    { "POSIX", map_posix },
	{ "SysV", map_sysv },	    { "file", map_file },
};
#define KINDS (sizeof(kinds) / sizeof(*kinds))

static void make_cq(struct phases *p, struct lane *l, bool extended)
{
	struct ibv_cq_init_attr_ex init = {
		.cqe = FEW,
		.wc_flags = IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_IMM |
			    IBV_WC_EX_WITH_QP_NUM,
	};

	if (extended) {
		MUST(l->cq_ex = ibv_create_cq_ex(p->v.context, &init));
		l->cq = ibv_cq_ex_to_cq(l->cq_ex);
	} else {
		MUST(l->cq = ibv_create_cq(p->v.context, FEW, NULL, NULL, 0));
	}
}

static void lane_open(struct phases *p, struct lane *l, uint32_t i)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
		.cap = { .max_send_wr = 8,
			 .max_recv_wr = 4,
			 .max_send_sge = 1,
			 .max_recv_sge = 1 },
	};

	l->kind = kinds[i % KINDS].name;
	l->mem = kinds[i % KINDS].map();
	MUST(l->mem != (char *)-1);
	make_cq(p, l, i % 3 == 1);
	l->overruns = i % 3 == 2;
	MUST(l->mr = ibv_reg_mr(p->pd, l->mem, SIZE, ACCESS));
	MUST(l->mw = ibv_alloc_mw(p->pd, IBV_MW_TYPE_1));
	init.send_cq = init.recv_cq = l->cq;
	MUST(l->qp = ibv_create_qp(p->pd, &init));
	l->qpn = l->qp->qp_num;
	for (uint32_t end = 0; end < 2; end++)
		l->key[end] = key_of(p->seed, 2 * i + end);
}

void lanes_open(struct phases *p)
{
	MUST(p->pd = ibv_alloc_pd(p->v.context));
	for (uint32_t i = 0; i < p->lanes; i++)
		lane_open(p, &p->lane[i], i);
}

/* once: the peer's address and numbers stay what they are */
void lanes_hello(struct phases *p, int fd)
{
	uint64_t w[2];

	memcpy(w, p->v.gid.raw, sizeof(w));
	MUST(!conn_send(fd, w, 2) && !conn_recv(fd, w, 2, HELLO_SECONDS));
	memcpy(p->peer.raw, w, sizeof(w));
	for (uint32_t i = 0; i < p->lanes; i++) {
		struct lane *l = &p->lane[i];

		w[0] = l->qpn;
		w[1] = (uintptr_t)l->mem;
		MUST(!conn_send(fd, w, 2) &&
		     !conn_recv(fd, w, 2, HELLO_SECONDS));
		l->peer_qpn = (uint32_t)w[0];
		l->peer_addr = w[1];
	}
}

/* after lives, and moves, each object can be destroyed */
static void gone(struct phases *p, const char *what, int err)
{
	if (err)
		violation(&p->verdict, "%s: %s", what, strerror(err));
}

void lanes_close(struct phases *p)
{
	for (uint32_t i = 0; i < p->lanes; i++) {
		struct lane *l = &p->lane[i];

		gone(p, "destroy QP", ibv_destroy_qp(l->qp));
		gone(p, "dealloc MW", ibv_dealloc_mw(l->mw));
		gone(p, "dereg MR", ibv_dereg_mr(l->mr));
		gone(p, "destroy CQ", ibv_destroy_cq(l->cq));
	}
	while (posix_names)
		gone(p, "unlink", shm_unlink(posix_name[--posix_names]));
	gone(p, "dealloc PD", ibv_dealloc_pd(p->pd));
	gone(p, "close", ibv_close_device(p->v.context));
}
