/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Shadow objects: what the application has in its hands. Each begins with the object
 * of verbs.h, has the number and keys that the application knows, and points to the
 * real one, which the provider has made. Applications read some members, so these are
 * copies; nothing else of the shadow reaches libibverbs or a provider.
 *
 * libibverbs also calls its own functions through the names that this library
 * interposes, with real objects. These pass through: is_shadow() tells them apart.
 */
#ifndef MIGRRDMA_SHADOW_H
#define MIGRRDMA_SHADOW_H

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/queue.h>

#include "device.h"
#include "real.h"
#include "relay.h"

#define container_of(pointer, type, member) \
	((type *)((char *)(pointer) - offsetof(type, member)))

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/*
 * What a shadow has of its own is written by verbs within the gate, and with the gate
 * closed. Each remembers with what its real object was made, and can be made again:
 * then @other is the new one, until it takes the place of @real; and then the old one.
 */

struct bound_batch;
struct gids;
struct met;
struct names;
struct peer;
struct recvq;
struct slots;
struct way;

/* of a QP or AH: the real index, and what was there when it was held (gid.c) */
struct source_gid {
	uint8_t index; /* the application knows the one that it has set */
	struct ibv_gid_entry was;
};

struct shadow_context {
	struct shadow_device *device;
	struct ibv_context *real, *other;
	struct verbs_context *real_verbs; /* of @real */

	TAILQ_ENTRY(shadow_context) entry;

	pthread_mutex_t lock; /* of the lists, and of names that are given */
	pthread_mutex_t groups_lock; /* of those that its QPs are in */
	TAILQ_HEAD(, shadow_pd) pds;
	TAILQ_HEAD(, shadow_ah) ahs;
	TAILQ_HEAD(, shadow_mr) mrs;
	TAILQ_HEAD(, shadow_mw) mws;
	TAILQ_HEAD(, shadow_channel) channels;
	TAILQ_HEAD(, shadow_cq) cqs;
	TAILQ_HEAD(, shadow_srq) srqs;
	TAILQ_HEAD(, shadow_qp) qps;
	const char *foreign;   /* what it has had that has no shadow */
	bool unfinished;       /* all is replaced, and not all done for that */
	atomic_bool unplugged; /* as if: its verbs fail */
	bool put_away;	       /* and the layer has nothing to do with it */
	bool suspended;	       /* a QP of it is */
	atomic_bool
		has_iovas; /* addresses in requests may be none of the process */
	LIST_HEAD(, slots) slots; /* of SRQs that are gone */
	uint64_t cqs_made;

	/* NULL as long as all names are the real ones */
	struct names *keys, *other_keys; /* to real ones */
	struct names *qpns;		 /* from real ones */

	/* memory windows in an array, and where each is by its real index: bound.h */
	struct shadow_mw **windows;
	uint32_t n_windows, room_windows;
	struct names *windows_at, *other_windows_at;

	struct gids *gids; /* of the device of the next host; or NULL */

	struct relay async;
	pthread_mutex_t carried_lock;
	STAILQ_HEAD(, carried) carried; /* asynchronous events, from before */

	struct verbs_context
		verbs; /* last, as its last member is the public one */
};

struct shadow_channel {
	struct ibv_comp_channel channel;
	struct ibv_comp_channel *real, *other;
	struct relay relay;
	unsigned int carried; /* events of its CQs, from before; context's lock */
	atomic_bool
		held; /* it is flushed: the real one has none for the application */
	atomic_bool muted; /* nobody is told of what the real one has */

	TAILQ_ENTRY(shadow_channel) entry;
};

struct shadow_pd {
	struct ibv_pd pd;
	struct ibv_pd *real, *other;
	struct ibv_parent_domain_init_attr parent; /* of a parent domain */
	bool imported;

	TAILQ_ENTRY(shadow_pd) entry;
};

enum mr_kind {
	MR_MEMORY,
	MR_DMABUF,
	MR_DM,
	MR_NULL,
	MR_IMPORTED,
};

struct shadow_mr {
	struct ibv_mr mr;
	struct ibv_mr *real, *other;
	enum mr_kind kind;
	uint64_t iova;
	unsigned int access;
	unsigned int windows; /* that are bound to it; context's lock */

	TAILQ_ENTRY(shadow_mr) entry;
};

/* of a memory window: to what, and by which request the last change was */
struct binding {
	bool valid;
	bool unsure; /* a provider has not said so, or that request has failed */
	struct shadow_mr *mr;
	uint64_t addr, length;
	unsigned int access;
	struct shadow_qp *qp; /* NULL when it is destroyed */
	uint64_t wr_id;
};

struct shadow_mw {
	struct ibv_mw mw; /* of type 2, with a key that the application sets */
	struct ibv_mw *real, *other;

	/* with the context's lock: */
	uint32_t slot;
	uint32_t key; /* it has, as the application knows it */
	struct binding bound;
	unsigned int changes; /* of both */

	/* the key of the real one, if it has not been bound since it got that */
	uint32_t first_key;
	bool fresh;
	/* the layer's: it has yet to be bound, is with another key, has been told to be */
	bool apart, halfway, posted;

	TAILQ_ENTRY(shadow_mw) entry;
};

struct shadow_ah {
	struct ibv_ah ah;
	struct ibv_ah *real, *other;
	struct ibv_ah_attr attr;
	struct source_gid source;
	bool lost,
		other_lost; /* the real one leads to this host, and is not used */
	struct way *_Atomic ways; /* to QPs that are elsewhere: elsewhere.h */

	TAILQ_ENTRY(shadow_ah) entry;
};

/* why a CQ cannot be polled as it is */
enum {
	CQ_SLOW = 1,	/* the layer has completions, or may have */
	CQ_BATCHES = 2, /* and gives those of ibv_start_poll(), too */
	CQ_NAMES = 4,	/* QPs have other numbers than the real ones */
	CQ_SLOTS = 8,	/* ids of RECVs of SRQs are the layer's */
	CQ_WINDOWS =
		16, /* they may say that memory windows are not bound any more */
};

/* QPs of a CQ that are flushed by the layer at a time */
#define STOP_AT_ONCE 8

/* what an extended one has to tell: flushes are told apart by it, and sources, and keys */
#define CQ_NEEDS \
	(IBV_WC_EX_WITH_QP_NUM | IBV_WC_EX_WITH_SRC_QP | IBV_WC_EX_WITH_IMM)

struct shadow_cq {
	union {
		struct ibv_cq cq;
		struct ibv_cq_ex ex;
	};
	struct ibv_cq *real, *other; /* of which cq_context is this shadow */
	int (*poll)(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc);
	_Atomic unsigned char slow; /* is any of what follows to be looked at? */

	/*
	 * The lock is held by who looks, but never while the application's code runs. Of
	 * QPs of which the completion of a marker is to come, of completions that have been
	 * taken; and is everything taken?
	 */
	pthread_mutex_t lock;
	pthread_mutex_t batch; /* of who polls from start to end what was taken */
	bool in_batch;	       /* somebody does */
	struct shadow_cq *also; /* to be locked with it */
	int spare; /* entries that the application has not asked for */
	int markers;
	LIST_HEAD(, shadow_qp) marked, recv_marked;
	struct shadow_qp *stopping[STOP_AT_ONCE]; /* flushed by the layer */
	unsigned int n_stopping;
	struct taken *flushed; /* what the layer keeps of that */
	size_t n_flushed, room_flushed;
	struct taken *taken, *current;
	size_t first_taken, n_taken, room_taken;
	uint32_t src_qp; /* of what is read, one by one, if it is another one */
	bool has_source;
	uint32_t invalidated; /* the key of what is read, if it has one */
	bool has_invalidated;
	bool draining;
	bool tells_more; /* than struct ibv_wc has */

	uint64_t number; /* of those that the context has made */
	struct ibv_cq_init_attr_ex attr;
	struct ibv_moderate_cq moderation;
	bool extended, moderated;

	/* Events: with verbs.h's mutex, which real objects use of their own. */
	uint32_t given, async_given; /* to be acknowledged */
	unsigned int carried;	     /* of them, from before; context's lock */
	atomic_uint arms;	     /* since the last event */
	atomic_bool unarmed;	     /* not the real one, that time */
	atomic_bool arms_any; /* one of them was not for solicited ones only */
	_Atomic unsigned char cause; /* of the event to come: armed.h */
	atomic_bool woken; /* the last of @carried may be taken back */

	TAILQ_ENTRY(shadow_cq) entry;
};

struct shadow_srq {
	struct ibv_srq srq;
	struct ibv_srq *real, *other; /* of which srq_context is this shadow */
	int (*post_recv)(struct ibv_srq *srq, struct ibv_recv_wr *wr,
			 struct ibv_recv_wr **bad_wr);

	struct ibv_srq_init_attr_ex attr;
	struct ibv_srq_attr became; /* as the application knows it */
	bool extended;
	struct slots
		*slots; /* what is posted to receive, if it can be replaced */
	uint32_t async_given;
	uint32_t limit; /* to be armed with, when it is replaced */

	TAILQ_ENTRY(shadow_srq) entry;
};

/* why work requests cannot be handed on as they are */
enum {
	SLOW_AH = 1,	    /* they name address handles */
	SLOW_MW = 2,	    /* they may name memory windows */
	SLOW_SUSPENDED = 4, /* they are collected */
	SLOW_BATCHES = 8,   /* those of ibv_wr_*(), too */
	SLOW_NAMES = 16, /* they name keys by other values than the real ones */
	SLOW_RECVS = 32, /* RECVs are collected */
};

struct shadow_qp {
	union {
		struct ibv_qp qp;
		struct ibv_qp_ex ex;
	};
	struct ibv_qp *real, *other; /* of which qp_context is this shadow */
	struct ibv_qp_ex *real_ex;
	int (*post_send)(struct ibv_qp *qp, struct ibv_send_wr *wr,
			 struct ibv_send_wr **bad_wr);
	int (*post_recv)(struct ibv_qp *qp, struct ibv_recv_wr *wr,
			 struct ibv_recv_wr **bad_wr);
	_Atomic unsigned char slow;
	struct recvq *recvq; /* what is posted to receive; NULL without control */
	struct slots *slots; /* ids of that, of UD */
	/* whose keys requests name, if they are not the real ones; context's lock */
	struct peer *_Atomic peer;

	uint32_t real_num;     /* also when the real one is destroyed */
	struct ibv_qp_cap cap; /* as the application knows it */
	unsigned int spare; /* requests that it has not asked for: for a marker */
	bool unqueueable;   /* it may post what cannot be collected */
	bool suspended;	    /* its verbs wait, and, in RTS, its requests */

	struct ibv_qp_init_attr_ex init;
	bool extended;
	struct ibv_qp_attr attr; /* all that was set since RESET */
	int attr_mask;
	const char *foreign; /* what it has had that cannot be made again */
	struct source_gid source;
	struct ibv_ah *to_self, *old_to_self; /* of a UD QP's markers */
	SLIST_HEAD(, group) groups;
	uint32_t async_given;

	STAILQ_HEAD(, met) met; /* met.h; context's lock */

	/* The real one is to be replaced, or has been: stop.c, replace.c, connect.c. */
	struct {
		bool chosen;
		atomic_bool moved; /* the layer has moved the real one to ERR */
		atomic_bool was_err; /* where it was already */
		bool dead; /* the application's is in ERR, if it knows or not */
		atomic_bool last_wqe; /* that event has come */
		bool marked; /* the flush of a RECV that is a marker is to come */
		bool stopped; /* all is flushed */
		bool asked;   /* the device, for the real one's state: stop.c */
		bool apart; /* the real one is not in the application's state */
		bool spent; /* @other is what was replaced, not what is to come */
		unsigned int turn; /* in which it was made: ahead.h */
		bool led;   /* @other, to come, is connected already: ahead.c */
		bool there; /* and the real one was so: to */
		uint32_t led_num;
		union ibv_gid led_gid;
		bool told; /* where its peer is now: */
		uint32_t peer_num;
		union ibv_gid peer_gid;
	} swap;

	pthread_mutex_t lock; /* of what is collected */
	STAILQ_HEAD(, pending) sendq;
	unsigned int pendings; /* in it */
	struct {
		STAILQ_HEAD(, pending) all;
		struct pending *last;
		unsigned int n;
		int err;
	} batch;

	unsigned int windows; /* whose last change was by it; context's lock */
	struct bound_batch *binds; /* of a batch of the provider's */
	bool lost_bind;		   /* there was no memory for one */

	LIST_ENTRY(shadow_qp) marked, recv_marked; /* with the CQs' locks */
	bool is_marked, was_marked;
	enum ibv_wc_status marker_status; /* of the last one */
	bool was_rts; /* the real one, since it was in RESET */

	TAILQ_ENTRY(shadow_qp) entry;
};

/* is it connected to a QP, as soon as it is in RTR? */
static inline bool qp_has_peer(const struct shadow_qp *qp)
{
	return qp->qp.qp_type == IBV_QPT_RC || qp->qp.qp_type == IBV_QPT_UC;
}

/* can it have requests whose end nobody sees? */
static inline bool qp_has_sends(const struct shadow_qp *qp)
{
	return qp_has_peer(qp) || qp->qp.qp_type == IBV_QPT_UD;
}

/* the same, as it was made: who has no send queue is drained */
static inline bool qp_can_send(const struct shadow_qp *qp)
{
	return qp_has_sends(qp) && qp->cap.max_send_wr;
}

/* context.c: what a shadow context's ops.poll_cq is, and no other's */
int shadow_poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc);

static inline bool is_shadow(const struct ibv_context *ctx)
{
	return ctx->ops.poll_cq == shadow_poll_cq;
}

static inline struct shadow_context *to_context(struct ibv_context *ctx)
{
	return container_of(ctx, struct shadow_context, verbs.context);
}

/* of a shadow context: do all verbs fail? */
static inline bool is_unplugged(struct ibv_context *ctx)
{
	return atomic_load(&to_context(ctx)->unplugged);
}

/*
 * TO_SHADOW(type, member) - to_TYPE() of what the application gives; real_TYPE() of it,
 * which is itself if it is real, or none
 */
#define TO_SHADOW(type, member)                                              \
	static inline struct shadow_##type *to_##type(                       \
		struct ibv_##member *obj)                                    \
	{                                                                    \
		return container_of(obj, struct shadow_##type, type);        \
	}                                                                    \
	static inline struct ibv_##member *real_##type(                      \
		struct ibv_##member *obj)                                    \
	{                                                                    \
		return obj && is_shadow(obj->context) ? to_##type(obj)->real \
						      : obj;                 \
	}
TO_SHADOW(channel, comp_channel)
TO_SHADOW(pd, pd)
TO_SHADOW(mr, mr)
TO_SHADOW(mw, mw)
TO_SHADOW(ah, ah)
TO_SHADOW(cq, cq)
TO_SHADOW(srq, srq)
TO_SHADOW(qp, qp)
#undef TO_SHADOW

/* COMING(type, member) - coming_TYPE(): what is to take the place of the real one, if
 * something is, for objects to be made of it */
#define COMING(type, member)                                                   \
	static inline struct ibv_##member *coming_##type(                      \
		struct ibv_##member *obj)                                      \
	{                                                                      \
		return obj && is_shadow(obj->context) && to_##type(obj)->other \
			       ? to_##type(obj)->other                         \
			       : real_##type(obj);                             \
	}
COMING(channel, comp_channel)
COMING(pd, pd)
COMING(cq, cq)
COMING(srq, srq)
#undef COMING

static inline struct ibv_context *real_context(struct ibv_context *ctx)
{
	return is_shadow(ctx) ? to_context(ctx)->real : ctx;
}

static inline struct ibv_context *coming_context(struct ibv_context *ctx)
{
	struct shadow_context *s = to_context(ctx);

	return s->other ? s->other : s->real;
}

/* Shadows of real objects, or these themselves if there is none; NULL of NULL */
static inline struct ibv_cq *shadow_of_cq(struct ibv_cq *cq)
{
	return cq ? cq->cq_context : NULL;
}

static inline struct ibv_srq *shadow_of_srq(struct ibv_srq *srq)
{
	return srq ? srq->srq_context : NULL;
}

/*
 * The constructors of each file, for a context's tables. They get shadows only, and
 * there is such a function of the real context.
 */
struct ibv_pd *
shadow_alloc_parent_domain(struct ibv_context *ctx,
			   struct ibv_parent_domain_init_attr *attr);
int shadow_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice,
		     uint32_t flags, struct ibv_sge *sg_list, uint32_t num_sge);
struct ibv_mr *shadow_alloc_null_mr(struct ibv_pd *pd);
struct ibv_mr *shadow_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm,
				uint64_t dm_offset, size_t length,
				unsigned int access);
struct ibv_mw *shadow_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int shadow_dealloc_mw(struct ibv_mw *mw);
int shadow_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw,
		   struct ibv_mw_bind *bind);
struct ibv_cq_ex *shadow_create_cq_ex(struct ibv_context *ctx,
				      struct ibv_cq_init_attr_ex *attr);
int shadow_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr);
int shadow_req_notify_cq(struct ibv_cq *cq, int solicited_only);
struct ibv_srq *shadow_create_srq_ex(struct ibv_context *ctx,
				     struct ibv_srq_init_attr_ex *attr);
int shadow_get_srq_num(struct ibv_srq *srq, uint32_t *srq_num);
int shadow_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr,
			 struct ibv_recv_wr **bad_wr);
int shadow_post_srq_ops(struct ibv_srq *srq, struct ibv_ops_wr *op,
			struct ibv_ops_wr **bad_op);
struct ibv_qp *shadow_create_qp_ex(struct ibv_context *ctx,
				   struct ibv_qp_init_attr_ex *attr);
struct ibv_qp *shadow_open_qp(struct ibv_context *ctx,
			      struct ibv_qp_open_attr *attr);
int shadow_modify_qp_rate_limit(struct ibv_qp *qp,
				struct ibv_qp_rate_limit_attr *attr);
int shadow_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr,
		     struct ibv_send_wr **bad_wr);
int shadow_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr,
		     struct ibv_recv_wr **bad_wr);

/*
 * mw.c: the real window of a bind to come, which has @key when that is posted, and the real
 * key that it gets instead of *@next
 */
struct ibv_mw *real_mw_to_bind(struct ibv_mw *mw, uint32_t key, uint32_t *next);
/* mw.c: the same of what is bound */
struct ibv_mw_bind_info real_bind_info(const struct ibv_mw_bind_info *info);

/*
 * Make a real object for a shadow, of what it remembers and of what is coming: another one,
 * or, of a PD, MR or AH, its first. Return: the object, or NULL and errno; ENOSPC if
 * there would be less than the application knows of
 */
struct ibv_pd *pd_make(struct shadow_pd *pd);
struct ibv_mr *mr_make(struct shadow_mr *mr);
struct ibv_mw *mw_make(struct shadow_mw *mw);
struct ibv_ah *ah_make_other(struct shadow_ah *ah);

/*
 * ah.c: a real handle that leads to another GID; with the gate closed, unless that was not
 * found since somebody was told to look again
 */
struct ibv_ah *ah_make_at(struct shadow_ah *ah, const union ibv_gid *gid);
struct ibv_ah *ah_make_if_found(struct shadow_ah *ah, const union ibv_gid *gid);
void ah_look_again(void);
struct ibv_cq *cq_make(struct shadow_cq *cq);
struct ibv_srq *srq_make(struct shadow_srq *srq);
struct ibv_qp *qp_make(struct shadow_qp *qp);

/* cq.c: nobody has the lock */
void cq_init_locks(struct shadow_cq *cq);

/* poll.c: what the application sees of a completion, instead of what the provider says */
void cq_name(struct shadow_cq *cq, struct ibv_wc *wc);
/* poll.c: and what it says of windows is noted */
void cq_look(struct shadow_cq *cq, struct ibv_wc *wc);
/* poll.c: poll the real CQ, within a section or with the CQ's lock */
int cq_poll_real(struct shadow_cq *cq, int num_entries, struct ibv_wc *wc);

/* qp.c: this is the real one */
void qp_use(struct shadow_qp *s, struct ibv_qp *qp);
/* qp.c: it may be in another state than before */
void qp_note_rts(struct shadow_qp *s);

/* qp.c: from now on QPs of this context have to look for memory windows, or not */
void qps_mind_mws(struct shadow_context *ctx, bool mind);
/* cq.c: the same of CQs, for bound_completed() */
void cqs_mind_mws(struct shadow_context *ctx, bool mind);

/* F(TYPE, reader, member of struct taken): what is read of a completion, one by one */
#define CQ_READERS(F)                                 \
	F(enum ibv_wc_opcode, opcode, wc.opcode)      \
	F(uint32_t, vendor_err, wc.vendor_err)        \
	F(uint32_t, byte_len, wc.byte_len)            \
	F(__be32, imm_data, wc.imm_data)              \
	F(uint32_t, qp_num, wc.qp_num)                \
	F(uint32_t, src_qp, wc.src_qp)                \
	F(unsigned int, wc_flags, wc.wc_flags)        \
	F(uint32_t, slid, wc.slid)                    \
	F(uint8_t, sl, wc.sl)                         \
	F(uint8_t, dlid_path_bits, wc.dlid_path_bits) \
	F(uint64_t, completion_ts, completion_ts)     \
	F(uint16_t, cvlan, cvlan)                     \
	F(uint32_t, flow_tag, flow_tag)               \
	F(uint64_t, completion_wallclock_ns, completion_wallclock_ns)

/* qp_ex.c, cq_ex.c: the functions of extended objects */
void shadow_qp_ex_init(struct shadow_qp *qp, const struct ibv_qp_ex *real);
void shadow_cq_ex_init(struct shadow_cq *cq, struct ibv_cq_ex *real);

#endif
