/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Migration of verbs contexts: interface between its parts, and the hooks that
 * patches/ puts into the stock driver. Included at the end of rxe_loc.h.
 */
#ifndef RXE_MIGR_H
#define RXE_MIGR_H

#include <linux/workqueue.h>
#include <rdma/uverbs_ioctl.h>

#include "rxe_migr_abi.h"
#include "rxe_migr_image.h"
#include "rxe_migr_state.h"

enum rxe_migr_peer {
	RXE_MIGR_PEER_UNKNOWN,
	RXE_MIGR_PEER_CAPABLE,
	RXE_MIGR_PEER_STOCK,
	RXE_MIGR_PEER_ABSENT, /* its driver says that it is not connected */
};

/**
 * struct rxe_migr_wanted - what an object that is restored has been
 * @type: enum rxe_migr_type; 0: nothing is wanted
 * @handle: of its record
 * @index: QP: QPN; SRQ, AH: its number; MR, MW: key
 * @mmap_offset: CQ, SRQ: [0]; QP: SQ, RQ
 * @start: MR: address in the application
 * @length: MR: bytes
 * @access: MR: enum ib_access_flags
 * @qp_type: QP: enum ib_qp_type
 * @life: QP: of its connection
 */
struct rxe_migr_wanted {
	u32	type;
	u32	handle;
	u32	index;
	u64	mmap_offset[2];
	u64	start;
	u64	length;
	u32	access;
	u32	qp_type;
	u64	life;
};

/**
 * struct rxe_migr_place - where a QP is
 * @gid: of its host
 * @qpn: its number there; 0: nobody knows where it is
 */
struct rxe_migr_place {
	u8	gid[16];
	u32	qpn;
};

/**
 * struct rxe_migr_qp - what every QP object of this driver is
 * @qp: the stock object; first, so that it keeps its size and layout
 * @work: handles @pkts and does what is due at @next
 * @pkts: packets of the protocol but NAK_STOPPED; each holds a reference to the QP
 * @lock: serializes @work, STOP, UNSTOP, RESUME and modify; who disables tasks
 *        or enables them holds it
 * @wanted: identities of the record; .type is 0 in a QP that was not restored
 * @life: of the connection to this peer, wherever both are by now; 0: never connected
 * @peer_life: the same of the peer; 0: it has not told
 * @led_to: of a QP that was restored: where its peer was at the dump
 * @from: of a QP that was restored: where its tombstone is, until nobody needs that
 * @hint: where its peer is said to be by now; that is told RESUME as well
 * @epoch: how many times the QP has been restored, or has run on after a dump
 * @nonce: of the last such time, for RESUME
 * @question: nonce of the last STOP that has asked
 * @peer_epoch: of the last RESUME accepted from the peer
 * @peer_nonce: of that RESUME
 * @since: jiffies when PAUSED or RESUMING began
 * @next: jiffies of the next probe, RESUME or NAK_STOPPED
 * @last_nak: jiffies of the last NAK_STOPPED
 * @deaf_until: jiffies until which NAK_STOPPED of the peer does not count
 * @interval_ms: between them, doubles
 * @first_psn: oldest unacknowledged PSN when TRYING began
 * @new_psn: first PSN that had not been sent then, or a later one
 * @peer: enum rxe_migr_peer, as of the last STOP, question or RESUME
 * @before: state before STOPPED, for UNSTOP; of a restored QP, that to come
 * @dumped_alive: since it was STOPPED an image was made of it, connected
 * @unheard: while STOPPED: the peer has not said that it has heard of that
 * @peer_stopped: while STOPPED or RESUMING: the peer has said that it is Stopped
 * @ran_on: RESUMING is that of the QP which was dumped
 * @untold: it has run without an answer to RESUME, and still asks for one
 * @noticed: the tombstone knows where the QP is by now
 * @refilled: REFILL has filled the QP
 * @ending: it is being destroyed, and @qp.migr does not change any more
 */
struct rxe_migr_qp {
	struct rxe_qp		qp;
	struct delayed_work	work;
	struct sk_buff_head	pkts;
	struct mutex		lock;	/* @work against the methods */
	struct rxe_migr_wanted	wanted;
	u64			life;
	u64			peer_life;
	union ib_gid		led_to;
	struct rxe_migr_place	from;
	struct rxe_migr_place	hint;
	u32			epoch;
	u32			nonce;
	u32			question;
	u32			peer_epoch;
	u32			peer_nonce;
	unsigned long		since;
	unsigned long		next;
	unsigned long		last_nak;
	unsigned long		deaf_until;
	unsigned int		interval_ms;
	u32			first_psn;
	u32			new_psn;
	u8			peer;
	u8			before;
	bool			dumped_alive;
	bool			unheard;
	bool			peer_stopped;
	bool			ran_on;
	bool			untold;
	bool			noticed;
	bool			refilled;
	bool			ending;
};

/* can a QP be moved that has such a peer? */
static inline bool rxe_migr_peer_ok(u8 peer)
{
	return peer == RXE_MIGR_PEER_CAPABLE || peer == RXE_MIGR_PEER_ABSENT;
}

struct rxe_migr_guard;
struct rxe_migr_loaded;

/**
 * struct rxe_migr_uc - what every ucontext of this driver is
 * @uc: the stock object
 * @lock: serializes the methods; taken before the locks of QPs. ATTACH holds it
 *        while it waits for memory, so nothing of another context may
 * @track_lock: serializes TRACK, which may have to wait for an mmap lock, so that
 *        nothing but who gets MRs waits for that; taken after @lock
 * @id: no other context has it, nor had or will have
 * @guard: keeps the QPs Stopped; its address under links_lock in rxe_migr_guard.c
 * @loaded: the image that LOAD has got, until RESUME
 * @collectors: who has collected its QPs and not released them yet
 * @stopped: STOP is done, @guard has not been closed since
 * @restored: LOAD succeeded
 * @attached: ATTACH succeeded
 * @resumed: RESUME succeeded
 * @tracked: TRACK was the last that was asked for, and not its end
 * @untracked: its end was, and nobody knows what has been written since
 * @committed: COMMIT was the last that was asked for: nothing more is written
 * @track_lost: TRACK cannot say any more what was written since it was asked
 * @told_lost: it has said so, in this round
 * @track_unseen: where what is written since then is not seen, or 0
 * @told_unseen: what it has said of that, in this round
 * @round: of the last TRACK
 * @since: the round before that one, or 0
 */
struct rxe_migr_uc {
	struct rxe_ucontext	uc;
	struct mutex		lock;	/* the methods */
	struct mutex		track_lock;	/* TRACK */
	u64			id;
	struct rxe_migr_guard	*guard;
	struct rxe_migr_loaded	*loaded;
	atomic_t		collectors;
	bool			stopped;
	bool			restored;
	bool			attached;
	bool			resumed;
	bool			tracked;
	bool			untracked;
	bool			committed;
	bool			track_lost;
	bool			told_lost;
	unsigned long		track_unseen;
	unsigned long		told_unseen;
	u64			round;
	u64			since;
};

static inline struct rxe_migr_qp *to_migr_qp(struct rxe_qp *qp)
{
	return container_of(qp, struct rxe_migr_qp, qp);
}

static inline struct rxe_migr_uc *to_migr_uc(struct ib_ucontext *uc)
{
	return container_of(uc, struct rxe_migr_uc, uc.ibuc);
}

/* elements of a receive of this QP, at most */
static inline u32 rxe_migr_recv_sge(struct rxe_qp *qp)
{
	return qp->srq ? qp->srq->rq.max_sge : qp->rq.max_sge;
}

/* types of QPs that can be stopped and restored */
static inline bool rxe_migr_can_move(struct rxe_qp *qp)
{
	return qp_type(qp) == IB_QPT_RC || qp_type(qp) == IB_QPT_UC ||
	       qp_type(qp) == IB_QPT_UD;
}

/* does this QP have a peer? RC and UC, from RTR on, but not in ERR */
static inline bool rxe_migr_connected(struct rxe_qp *qp)
{
	enum ib_qp_state state = qp_state(qp);

	return (qp_type(qp) == IB_QPT_RC || qp_type(qp) == IB_QPT_UC) &&
	       (state == IB_QPS_RTR || state == IB_QPS_RTS ||
		state == IB_QPS_SQD);
}

static inline bool rxe_migr_is_nak(struct rxe_pkt_info *pkt)
{
	return pkt->opcode == IB_OPCODE_RC_ACKNOWLEDGE &&
	       aeth_syn(pkt) == MIGR_AETH_NAK_STOPPED;
}

/* hook in rxe_rcv_pkt(): must rxe_migr_rcv() see this packet? */
static inline bool rxe_migr_is_special(struct rxe_pkt_info *pkt)
{
	return pkt->qp->migr || (pkt->mask & RXE_MIGR_MASK) ||
	       rxe_migr_is_nak(pkt);
}

/* rxe_migr.c */
extern const struct uapi_definition rxe_migr_uapi_defs[];
int rxe_migr_init(void);
void rxe_migr_exit(void);

/* rxe_migr_key.c */
int rxe_migr_key_active(void);
int rxe_migr_key_sign(u8 *key_id, const void *data, size_t length, u8 *mac,
		      size_t bytes);
int rxe_migr_key_check(u8 key_id, const void *data, size_t length,
		       const u8 *mac, size_t bytes);
void rxe_migr_key_exit(void);

/* rxe_migr_peer.c */
void rxe_migr_sgid(const struct rxe_av *av, u8 *gid);
bool rxe_migr_gid_fits(const struct rxe_av *av, const u8 *gid);
bool rxe_migr_has_route(struct rxe_qp *qp, const u8 *gid);
const struct ib_gid_attr *rxe_migr_own_gid(struct rxe_dev *rxe, const u8 *gid);
bool rxe_migr_lead(struct rxe_dev *rxe, const u8 *own, const u8 *gid,
		   struct sk_buff *skb, struct rxe_av *av);
bool rxe_migr_is_here(struct rxe_dev *rxe, const struct rxe_av *av);
void rxe_migr_set_peer(struct rxe_qp *qp, const u8 *gid, u32 qpn,
		       struct sk_buff *skb);

/**
 * struct rxe_migr_to - to whom a packet goes, and by whom
 * @qp: sends it
 * @av: where to
 * @qpn: to which QP there
 */
struct rxe_migr_to {
	struct rxe_qp	*qp;
	struct rxe_av	*av;
	u32		qpn;
};

static inline struct rxe_migr_to rxe_migr_to_peer(struct rxe_qp *qp)
{
	return (struct rxe_migr_to){
		.qp = qp,
		.av = &qp->pri_av,
		.qpn = qp->attr.dest_qp_num,
	};
}

/**
 * struct rxe_migr_say - what a signed packet says; see rxe_migr_wire.h
 * @opcode: of the BTH
 * @kind: MIGR_METH_KIND_*
 * @flags: MIGR_METH_FLAG_*, but UNHEARD, which goes with @to_life
 * @psn: of the BTH
 * @msn: of the AETH
 * @epoch: of the METH
 * @nonce: of the METH
 * @old_qpn: of the METH
 * @new_qpn: of the METH
 * @gid: of the METH; NULL: from where it is sent
 * @life: of the QP that says it; 0: none
 * @to_life: of whom it is said to; 0: it is not known
 */
struct rxe_migr_say {
	u8		opcode;
	u8		kind;
	u8		flags;
	u32		psn;
	u32		msn;
	u32		epoch;
	u32		nonce;
	u32		old_qpn;
	u32		new_qpn;
	const u8	*gid;
	u64		life;
	u64		to_life;
};

/* rxe_migr_pkt.c */
int rxe_migr_send(const struct rxe_migr_to *to, u8 opcode, u32 psn,
		  bool ack_req, const u8 *body, size_t len);
int rxe_migr_send_signed(const struct rxe_migr_to *to,
			 const struct rxe_migr_say *say);
int rxe_migr_send_by_driver(struct rxe_dev *rxe, const u8 *own,
			    const struct rxe_migr_place *place,
			    struct sk_buff *skb,
			    const struct rxe_migr_say *say);
void rxe_migr_send_back(struct rxe_dev *rxe, struct sk_buff *skb,
			const struct rxe_migr_say *say);
void rxe_migr_get_place(const u8 *meth, struct rxe_migr_place *place);
const u8 *rxe_migr_meth(struct rxe_pkt_info *pkt);
int rxe_migr_chk_form(struct rxe_pkt_info *pkt);
int rxe_migr_chk_mac(struct rxe_pkt_info *pkt, u64 life);
void rxe_migr_count_bad(struct rxe_dev *rxe, int err);

/* rxe_migr_handle.c */
void rxe_migr_send_resume(struct rxe_migr_qp *m);
void rxe_migr_send_question(struct rxe_migr_qp *m);
void rxe_migr_send_stopped(struct rxe_migr_qp *m);
void rxe_migr_send_notice(struct rxe_migr_qp *m, u8 flags);
void rxe_migr_handle(struct rxe_migr_qp *m, struct sk_buff *skb);

/* rxe_migr_show.c */
int rxe_migr_fill_res_qp(struct sk_buff *msg, struct ib_qp *ibqp);

/* rxe_migr_tomb.c */
void rxe_migr_leave(struct rxe_qp *qp);
void rxe_migr_come_back(struct rxe_qp *qp);
bool rxe_migr_keeps(struct rxe_pool_elem *elem);
void rxe_migr_claim(struct rxe_dev *rxe, u32 qpn, u64 life);
bool rxe_migr_has_tomb(struct rxe_dev *rxe, u32 qpn);
bool rxe_migr_has_left(struct rxe_dev *rxe, u32 qpn);
bool rxe_migr_tomb_rcv(struct rxe_dev *rxe, struct sk_buff *skb);
void rxe_migr_tomb_dealloc(struct rxe_dev *rxe);
void rxe_migr_tomb_init(void);
void rxe_migr_tomb_exit(void);

/* rxe_migr_absent.c */
bool rxe_migr_peer_absent(struct rxe_qp *qp);
bool rxe_migr_stray(struct rxe_pkt_info *pkt, struct sk_buff *skb);
void rxe_migr_absent_init(void);

/* rxe_migr_proto.c */
bool rxe_migr_wants(struct rxe_pkt_info *pkt, struct rxe_qp *qp);
bool rxe_migr_rcv(struct rxe_pkt_info *pkt, struct sk_buff *skb);
void rxe_migr_send_probe(struct rxe_qp *qp);
void rxe_migr_send_nak(struct rxe_qp *qp);
void rxe_migr_count(struct rxe_qp *qp, enum rxe_counters index);
void rxe_migr_schedule(struct rxe_migr_qp *m, unsigned int delay_ms);
void rxe_migr_queue_work(struct work_struct *work);
void rxe_migr_proto_init_qp(struct rxe_migr_qp *m);
int rxe_migr_proto_init(void);
void rxe_migr_proto_exit(void);

/* rxe_migr_walk.c */
struct ib_uobject *rxe_migr_uobject(struct rxe_pool_elem *elem);
struct rxe_pool_elem *rxe_migr_next(struct rxe_pool *pool,
				    struct ib_ucontext *uc,
				    unsigned long *index);
struct rxe_pool_elem *rxe_migr_get(struct rxe_pool *pool, u32 index);
void rxe_migr_set_pd(struct rxe_mr *mr, struct ib_pd *pd);
int rxe_migr_collect(struct ib_ucontext *uc, struct rxe_qp ***qps,
		     unsigned int *n);
void rxe_migr_release(struct ib_ucontext *uc, struct rxe_qp **qps,
		      unsigned int n);
void rxe_migr_hide_qp(struct rxe_qp *qp);

/* rxe_migr_state.c */
bool __rxe_migr_change(struct rxe_qp *qp, unsigned int from,
		       enum rxe_migr_state to);
bool rxe_migr_change(struct rxe_qp *qp, unsigned int from,
		     enum rxe_migr_state to);
void rxe_migr_stop(struct rxe_qp *qp);
void rxe_migr_announce(struct rxe_qp *qp);
void rxe_migr_unstop(struct rxe_qp *qp);
void rxe_migr_run(struct rxe_qp *qp, enum rxe_migr_state to);
void rxe_migr_pause(struct rxe_qp *qp);
void rxe_migr_wait_anew(struct rxe_qp *qp);
void rxe_migr_try(struct rxe_qp *qp);
bool rxe_migr_ignores(struct rxe_qp *qp, struct rxe_pkt_info *pkt);
bool rxe_migr_spares(struct rxe_qp *qp);
bool rxe_migr_due(struct rxe_migr_qp *m);
bool rxe_migr_timed_out(struct rxe_migr_qp *m);

/* rxe_migr_ask.c */
int rxe_migr_ask(struct rxe_qp **qps, unsigned int n, unsigned int timeout_ms,
		 struct rxe_migr_status *st);
void rxe_migr_answered(struct rxe_migr_qp *m);
void rxe_migr_seems_stock(struct rxe_migr_qp *m);
void rxe_migr_not_there(struct rxe_migr_qp *m);
void rxe_migr_heard(struct rxe_migr_qp *m);
void rxe_migr_is_heard(struct rxe_migr_qp *m);
int rxe_migr_wait_heard(struct rxe_qp **qps, unsigned int n,
			unsigned int timeout_ms, struct rxe_migr_status *st);

/* rxe_migr_stop.c */
void rxe_migr_purge(struct rxe_qp *qp, struct sk_buff_head *list);
void rxe_migr_stop_qps(struct rxe_qp **qps, unsigned int n);
void rxe_migr_unstop_qp(struct rxe_qp *qp);
int rxe_migr_modify_qp(struct rxe_qp *qp, struct ib_qp_attr *attr, int mask,
		       struct ib_udata *udata);
int rxe_migr_chk_resumed(struct rxe_migr_uc *muc, struct rxe_migr_status *st);
int rxe_migr_chk_context(struct ib_ucontext *uc, struct rxe_qp **qps,
			 unsigned int n, struct rxe_migr_status *st);
void rxe_migr_qp_destroy(struct rxe_qp *qp);
void rxe_migr_qp_cleanup(struct rxe_qp *qp);

/* rxe_migr_guard.c */
struct rxe_migr_guard *rxe_migr_guard_new(struct ib_ucontext *uc,
					  struct file *file);
void rxe_migr_guard_drop(struct rxe_migr_guard *guard);
int rxe_migr_guard_file(struct rxe_migr_guard *guard, struct file **file);
int rxe_migr_guard_commit(struct rxe_migr_uc *muc);
void rxe_migr_uc_init(struct rxe_ucontext *uc);
void rxe_migr_uc_cleanup(struct rxe_ucontext *uc);

#define RXE_MIGR_BATCH	512UL	/* pages */

/**
 * struct rxe_migr_memory - pages that were pinned, and where they have to be mapped
 * @mm: in whose memory; its users are counted
 * @addr: at which address
 * @n: pages
 * @writable: it must be allowed to write to them there
 * @flags: FOLL_WRITE: as if somebody did
 * @at_once: whoever serves a file is not waited for
 * @pinned: the pages, which are only compared
 *
 * Faults may take as long as somebody likes who serves a file, and who destroys an MR
 * does not wait for us for ever; so this is used without a reference to it.
 */
struct rxe_migr_memory {
	struct mm_struct *mm;
	unsigned long	  addr;
	unsigned long	  n;
	bool		  writable;
	bool		  at_once;
	unsigned int	  flags;
	struct page	  **pinned;
};

/* rxe_migr_pages.c */
int rxe_migr_compare(const struct rxe_migr_memory *mem, struct page **pages);
int rxe_migr_chk_memory(struct ib_ucontext *uc, struct mm_struct *mm,
			struct rxe_migr_status *st);

/**
 * struct rxe_migr_unseen - where memory is that is written without becoming soft-dirty
 * @now: an address of such, or 0
 * @next: an address of what is it when the bits have been cleared, or 0
 */
struct rxe_migr_unseen {
	unsigned long now;
	unsigned long next;
};

/* rxe_migr_unseen.c */
int rxe_migr_find_unseen(const struct rxe_migr_memory *mem,
			 struct rxe_migr_unseen *unseen);

/* rxe_migr_dirty.c */
void __rxe_migr_dirty(struct rxe_mr *mr, unsigned long index);
void rxe_migr_track_mr(struct rxe_migr_uc *muc, struct rxe_mr *mr);
int rxe_migr_finish_mr(struct rxe_mr *mr);
void rxe_migr_mr_cleanup(struct rxe_mr *mr);
int rxe_migr_track(struct rxe_migr_uc *muc, struct mm_struct *mm, u64 round,
		   struct rxe_migr_track_resp *resp);
void rxe_migr_track_end(struct rxe_migr_uc *muc,
			struct rxe_migr_track_resp *resp);
void rxe_migr_track_init(void);
void rxe_migr_track_cleanup(struct rxe_migr_uc *muc);

/* hook where a page of an MR, that of this index, has been written */
static inline void rxe_migr_dirty(struct rxe_mr *mr, unsigned long index)
{
	if (unlikely(READ_ONCE(mr->migr_track)))
		__rxe_migr_dirty(mr, index);
}

/* rxe_migr_dump.c */
int rxe_migr_dump(struct ib_ucontext *uc, struct ib_uverbs_file *ufile,
		  u64 length, void **image, struct rxe_migr_dump_resp *resp);

/* rxe_migr_load.c */
int rxe_migr_sign(struct rxe_migr_image_hdr *hdr);
int rxe_migr_load(struct rxe_migr_uc *muc, const struct rxe_migr_buf *buf);
void rxe_migr_unload(struct rxe_migr_uc *muc);
const void *rxe_migr_record(struct rxe_migr_uc *muc, u32 type, u32 handle);
const struct rxe_migr_rec *
rxe_migr_next_record(struct rxe_migr_uc *muc, const struct rxe_migr_rec *rec);

/* rxe_migr_replay.c */
int rxe_migr_replay(struct rxe_migr_uc *muc, struct ib_uverbs_file *ufile,
		    bool check);

/* rxe_migr_restore.c: creation hooks */
u32 rxe_migr_first(const struct xa_limit *limit);
int rxe_migr_get_wanted(struct ib_udata *udata, enum rxe_migr_type type,
			struct rxe_migr_wanted *wanted);
int rxe_migr_add_at(struct rxe_pool *pool, struct rxe_pool_elem *elem,
		    u32 index);
int rxe_migr_add_qp(struct rxe_dev *rxe, struct rxe_qp *qp,
		    struct ib_udata *udata);
int rxe_migr_finish_qp(struct rxe_qp *qp, struct ib_udata *udata);
int rxe_migr_finish_cq(struct rxe_cq *cq, struct ib_udata *udata);
int rxe_migr_add_srq(struct rxe_dev *rxe, struct rxe_srq *srq,
		     struct ib_udata *udata, struct rxe_migr_wanted *wanted);
int rxe_migr_finish_srq(struct rxe_srq *srq, struct ib_udata *udata,
			const struct rxe_migr_wanted *wanted);
int rxe_migr_add_mr(struct rxe_dev *rxe, struct rxe_mr *mr,
		    struct ib_udata *udata, struct rxe_migr_wanted *wanted);
int rxe_migr_mr_init(struct rxe_dev *rxe, u64 start, u64 length, int access,
		     struct rxe_mr *mr, const struct rxe_migr_wanted *wanted);
struct rxe_migr_uc *rxe_migr_lock_shell(struct rxe_mr *mr);
int rxe_migr_attach_mrs(struct ib_ucontext *uc, struct rxe_migr_status *st);
int rxe_migr_resume(struct ib_ucontext *uc, struct ib_uverbs_file *ufile,
		    u32 flags, struct rxe_migr_status *st);

/* rxe_migr_mw.c */
int rxe_migr_add_mw(struct rxe_dev *rxe, struct rxe_mw *mw,
		    struct ib_udata *udata, struct rxe_migr_wanted *wanted);
int rxe_migr_finish_mw(struct rxe_mw *mw, struct ib_udata *udata,
		       const struct rxe_migr_wanted *wanted);
bool rxe_migr_mw_reads(struct rxe_qp *qp, u32 rkey);

/* rxe_migr_ah.c */
int rxe_migr_add_ah(struct rxe_dev *rxe, struct rxe_ah *ah,
		    struct rdma_ah_init_attr *init, struct ib_udata *udata);
int rxe_migr_lead_qp(struct rxe_qp *qp, struct ib_qp_attr *attr, int mask,
		     struct ib_udata *udata);

/* rxe_migr_mcast.c */
u32 rxe_migr_get_groups(struct ib_qp *qp, struct rxe_migr_group *groups,
			u32 max);

/* rxe_migr_refill.c */
int rxe_migr_refill_qp(struct rxe_migr_uc *muc, struct rxe_qp *qp, u32 handle);
int rxe_migr_refill_cq(struct rxe_migr_uc *muc, struct rxe_cq *cq, u32 handle);
int rxe_migr_refill_srq(struct rxe_migr_uc *muc, struct rxe_srq *srq,
			u32 handle);

/* rxe_migr_event.c */
void rxe_migr_get_cq_events(struct ib_cq *cq, u32 *comp, u32 *async);
void rxe_migr_set_cq_events(struct ib_cq *cq, u32 comp, u32 async);
u32 rxe_migr_get_qp_events(struct ib_qp *qp);
void rxe_migr_set_qp_events(struct ib_qp *qp, u32 async);
u32 rxe_migr_get_srq_events(struct ib_srq *srq);
void rxe_migr_set_srq_events(struct ib_srq *srq, u32 async);
void *rxe_migr_channel(struct ib_cq *cq);
void *rxe_migr_file_channel(struct ib_uobject *uobj);
/* unread ones of a file, which are looked at with interrupts off */
#define RXE_MIGR_MOST_EVENTS	65536
int rxe_migr_get_comp_events(struct ib_cq *cq, u32 *handles, int max, u32 *crc);
int rxe_migr_get_async_events(struct ib_uverbs_file *ufile,
			      struct rxe_migr_event *events, int max, u32 *crc);
bool rxe_migr_is_default_async(struct ib_uverbs_file *ufile,
			       struct ib_uobject *uobj);
int rxe_migr_alloc_event(struct list_head *spare);
void rxe_migr_free_events(struct list_head *spare);
void rxe_migr_put_comp_event(struct list_head *spare, struct ib_cq *cq);
void rxe_migr_put_async_event(struct list_head *spare, struct ib_uobject *uobj,
			      u32 type);
void rxe_migr_put_port_event(struct list_head *spare,
			     struct ib_uverbs_file *ufile, u32 port, u32 type);

/* rxe_migr_cred.c */
int rxe_migr_open_doorbell(struct file *file);
const struct file_operations *rxe_migr_stock_fops(struct file *file);

#endif /* RXE_MIGR_H */
