/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * libibverbs and a provider without hardware. It knows which of its objects are
 * alive, and ends the program when it gets anything else, as when a shadow
 * leaks through.
 */
#ifndef FAKE_VERBS_H
#define FAKE_VERBS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

enum {
	FAKE_DEVICES = 3,
	FAKE_PORTS = 2,
	FAKE_POSTED = 64
};

enum fake_kind {
	FAKE_LIST,
	FAKE_DEVICE,
	FAKE_CONTEXT,
	FAKE_PD,
	FAKE_TD,
	FAKE_MR,
	FAKE_MW,
	FAKE_AH,
	FAKE_CHANNEL,
	FAKE_CQ,
	FAKE_SRQ,
	FAKE_QP,
	FAKE_WQ,
	FAKE_RWQ,
	FAKE_XRCD,
	FAKE_DM,
	FAKE_COUNTERS,
	FAKE_FLOW,
	FAKE_ACTION,
};

/** fake_newest - the last object made of this kind that is still alive, or NULL
 */
void *fake_newest(enum fake_kind kind);

/** fake_older - the one of the same kind that was made before it, or NULL */
void *fake_older(const void *object);

/** fake_next_handle - the next object has this handle, of which keys are made */
void fake_next_handle(uint32_t handle);

/* and so have those after it */
extern bool fake_same_handle;

/* or the device gives out first what it has got back last, of regions and windows */
extern bool fake_reuses;

/** fake_alive - how many there are */
unsigned int fake_alive(enum fake_kind kind);

/**
 * fake_fail - let the next call fail, once
 * @call: the name of a function of libibverbs, or of a member of a table
 * @err: what it fails with
 */
void fake_fail(const char *call, int err);

/** fake_fail_times - let that many fail */
void fake_fail_times(const char *call, int err, unsigned int times);

/** fake_fail_later - let one fail after so many that do not */
void fake_fail_later(const char *call, int err, unsigned int after);

/** fake_end - end the program unless all objects are gone and all failures were
 * had */
void fake_end(void);

/* Arguments as numbers, eight at most */
#define FAKE_U(x) ((uint64_t)(uintptr_t)(x))
#define FAKE_U1(a) FAKE_U(a)
#define FAKE_U2(a, ...) FAKE_U(a), FAKE_U1(__VA_ARGS__)
#define FAKE_U3(a, ...) FAKE_U(a), FAKE_U2(__VA_ARGS__)
#define FAKE_U4(a, ...) FAKE_U(a), FAKE_U3(__VA_ARGS__)
#define FAKE_U5(a, ...) FAKE_U(a), FAKE_U4(__VA_ARGS__)
#define FAKE_U6(a, ...) FAKE_U(a), FAKE_U5(__VA_ARGS__)
#define FAKE_U7(a, ...) FAKE_U(a), FAKE_U6(__VA_ARGS__)
#define FAKE_U8(a, ...) FAKE_U(a), FAKE_U7(__VA_ARGS__)
#define FAKE_PICK(a, b, c, d, e, f, g, h, n, ...) FAKE_U##n
#define FAKE_ARGS(...)                                                       \
	((const uint64_t[8]){ FAKE_PICK(__VA_ARGS__, 8, 7, 6, 5, 4, 3, 2, 1, \
					0)(__VA_ARGS__) })

/** fake_saw - was there such a call since the last question, lately with these?
 */
bool fake_saw(const char *call, const uint64_t args[8]);
#define SAW(call, ...) CHECK(fake_saw(call, FAKE_ARGS(__VA_ARGS__)))

/* What pointers among the arguments have led to, of the last call of each kind
 */
struct fake_last {
	struct ibv_qp_init_attr_ex qp;
	struct ibv_qp_open_attr open;
	struct ibv_srq_init_attr_ex srq;
	struct ibv_cq_init_attr_ex cq;
	struct ibv_wq_init_attr wq;
	struct ibv_parent_domain_init_attr pd;
	struct ibv_mw_bind bind;
	struct ibv_ah_attr ah;
	struct ibv_mw_bind_info info;
	uint32_t mw_rkey; /* of the window, as it is bound */
	struct ibv_qp_attr modify;
	struct ibv_moderate_cq moderate;
	unsigned int cqs, qps;	      /* that were tried to be made */
	unsigned int forgotten;	      /* how often there were no devices */
	unsigned int regions;	      /* that the first thread has registered */
	unsigned int mrs_at_once;     /* the most */
	atomic_uint queries;	      /* of QPs */
	unsigned int queries_at_once; /* the most */
};
extern struct fake_last fake_last;

/* an MR, or a QP's state, takes long enough for others to come, too */
extern bool fake_slow;

/* with what is received there is a header, and it is from this QP */
extern uint32_t fake_source;

/* as of mlx5: a QP that has not been in RTS since RESET takes no requests, even in ERR */
extern bool fake_needs_rts;

/* it is told of each post by a write() of so many bytes to the context's file */
extern bool fake_bells;
enum {
	FAKE_BELL = 32
};

/* it gives no more than it is asked for, and so many SGEs at most to a QP */
extern bool fake_exact;
/* it gives half of that, of CQs and SRQs */
extern bool fake_small;
enum {
	FAKE_MOST_SGES = 40
};

/*
 * As of hardware: windows are bound and invalidated when requests are finished, which fail
 * as they should, even those after them; what they are bound to, and with, is not destroyed.
 */
extern bool fake_binds;
struct fake_window {
	bool valid;
	const struct ibv_qp *qp; /* of type 2 */
	const struct ibv_mr *mr;
	uint64_t addr, length;
	unsigned int access;
	uint32_t rkey;
};
struct fake_window fake_window(const struct ibv_mw *real);

/** fake_invalidated - the QP's peer has sent something, with that; it is received */
void fake_invalidated(struct ibv_qp *real, uint32_t key);

/* by which completions say so; rdma_rxe has IBV_WC_IP_CSUM_OK */
extern unsigned int fake_inv_flag;

/* What names of devices begin with, when they appear; "fake" */
extern const char *fake_prefix;

/* Where devices are, as dev0, dev1, ...; "/sys" */
extern const char *fake_sysfs;

/* GIDs of each device: of port 1, of the type RoCE v2, and not mapped from IPv4 */
enum {
	FAKE_GIDS = 9,
	FAKE_GROUPS = 4 /* of a QP */
};
extern struct ibv_gid_entry fake_gids[FAKE_GIDS];

/** fake_in_group - Is it? No QP that is in one is destroyed, as in the kernel. */
bool fake_in_group(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid);

/* Called with each context before it is given out */
extern void (*fake_prepare)(struct verbs_context *ctx);

/*
 * Called while devices are listed, a list is freed, or a device is opened: by whoever does
 * that, with no lock of the fake's held
 */
extern void (*fake_listing)(void), (*fake_unlisting)(void),
	(*fake_opening)(void);

/* Called while a device is imported, between the two calls that libibverbs
 * makes */
extern void (*fake_importing)(void);

/* Requests that were accepted, since fake_forget(), and calls that brought them
 */
struct fake_posted {
	void *queue;
	struct ibv_send_wr send;
	struct ibv_recv_wr recv;
	struct ibv_ops_wr op;
	uint32_t mw_rkey;
};
extern struct fake_posted fake_posted[FAKE_POSTED];
extern unsigned int fake_nposted, fake_posts;
extern unsigned int fake_most; /* requests in one call */

/**
 * fake_forget - forget what was posted
 * @bad: the number of the request, counted from here, that fails, or -1
 * @tell: does bad_wr say so, or is it left NULL?
 */
void fake_forget(int bad, bool tell);

/** fake_complete - a completion for a real CQ */
void fake_complete(struct ibv_cq *real, const struct ibv_wc *wc);

/*
 * From fake_work() on the provider works: requests are copied with all they point to,
 * and wait in send queues of the QPs' capacity until they are finished. It ends the
 * program when a CQ has no room for a completion.
 */
enum {
	FAKE_SGES = 40,
	FAKE_INLINE = 256
};

struct fake_sent {
	struct ibv_send_wr wr; /* without pointers to other requests and SGEs */
	struct ibv_sge sge[FAKE_SGES];
	char data[FAKE_INLINE]; /* that was inline, of all SGEs */
	size_t bytes;
	uint32_t mw_rkey; /* of the window, when the provider got it */
	bool signaled;
};

void fake_work(void);

/** fake_sent - the nth request of a QP since it was made, or NULL */
const struct fake_sent *fake_sent(const struct ibv_qp *real, unsigned int n);

/** fake_sends - how many there were */
unsigned int fake_sends(const struct ibv_qp *real);

/** fake_waiting - how many of them are not finished */
unsigned int fake_waiting(const struct ibv_qp *real);

/**
 * fake_finish - finish the oldest requests that wait, in their order
 * @status: of all of them; failed ones have a completion always
 *
 * Return: how many there were to be finished, @most at most
 */
unsigned int fake_finish(struct ibv_qp *real, unsigned int most,
			 enum ibv_wc_status status);

/** fake_received - a receive completes */
void fake_received(struct ibv_qp *real, uint64_t wr_id, uint32_t byte_len);

struct fake_recv {
	uint64_t wr_id;
	int num_sge;
	struct ibv_sge sge[4];
	struct fake_recv *next;
};

/** fake_dgid - where a real address handle leads to */
const union ibv_gid *fake_dgid(const struct ibv_ah *real);

/** fake_recvs - what is posted to receive, the oldest one first; of its SRQ, if any */
const struct fake_recv *fake_recvs(const struct ibv_qp *real);

/** fake_next_recv - the id of the oldest one, while other threads post and receive */
#define FAKE_NO_RECV UINT64_MAX
uint64_t fake_next_recv(const struct ibv_qp *real);

/** fake_state - in which a QP is, while other threads modify it */
enum ibv_qp_state fake_state(const struct ibv_qp *real);

/** fake_dies - it comes to ERR, and nobody has modified it */
void fake_dies(struct ibv_qp *real);

/** fake_tell - does bad_wr say which RECV was refused, or is it @what? */
void fake_tell(bool right, struct ibv_recv_wr *what);

/** fake_drop - the oldest one is flushed, as what a message had in hand */
void fake_drop(struct ibv_qp *real);

/**
 * fake_linger - a message has the oldest RECV of an SRQ in hand when this QP comes to ERR:
 * it completes when somebody asks for asynchronous events, right before the QP's last one
 */
void fake_linger(struct ibv_qp *real);

/** fake_flush - no more RECVs than so many are flushed from now on */
void fake_flush(unsigned int most);

/** fake_receive - the oldest one completes */
void fake_receive(struct ibv_qp *real, uint32_t byte_len);

/** fake_refuse - refuse the nth request from now on of a QP, once; 0 is the next */
void fake_refuse(struct ibv_qp *real, unsigned int n, int err);

/** fake_fulls - requests that were refused as the queue was full */
unsigned int fake_fulls(const struct ibv_qp *real);

/** fake_completions - how many a CQ has that nobody has polled */
unsigned int fake_completions(const struct ibv_cq *real);

/* Called when a QP has got a request, with no lock held */
extern void (*fake_posted_hook)(struct ibv_qp *real,
				const struct fake_sent *sent);

/* Called when a CQ has been armed, with no lock held */
extern void (*fake_armed_hook)(struct ibv_cq *real);

/* Events of real objects */
void fake_cq_event(struct ibv_cq *real);
void fake_async_event(struct ibv_context *real,
		      const struct ibv_async_event *event);

/** fake_limit_reached - an SRQ has so few RECVs: its limit is armed no more */
void fake_limit_reached(struct ibv_srq *real);

/** fake_parent_alloc - let the allocator of a real parent domain work, as
 * providers do */
void *fake_parent_alloc(struct ibv_pd *real, size_t size, size_t align,
			uint64_t type);
void fake_parent_free(struct ibv_pd *real, void *ptr, uint64_t type);

/** fake_dv_is_supported - is it a device of this provider? as
 * mlx5dv_is_supported() */
bool fake_dv_is_supported(struct ibv_device *device);

#endif
