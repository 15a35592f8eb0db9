/* SPDX-License-Identifier: GPL-2.0 */
/*
 * As much of the kernel and of rxe as rxe_migr_state.c needs, so that a unit
 * test can run it: state_run_test.c.
 */
#ifndef STUB_RXE_H
#define STUB_RXE_H

#include <stdbool.h>
#include <stdint.h>

#include "rxe_migr_state.h"

typedef uint8_t u8;
typedef uint32_t u32;

#define HZ 1000
#define BTH_PSN_MASK 0xffffff
#define QUEUE_TYPE_FROM_CLIENT 0
#define queue_get_producer(q, type) ((q)->producer)
#define queue_get_consumer(q, type) ((q)->consumer)
#define queue_next_index(q, i) (((i) + 1) & (q)->index_mask)
#define queue_addr_from_index(q, i) (&(q)->wqes[i])
#define READ_ONCE(x) (x)
#define WRITE_ONCE(x, v) ((x) = (v))
#define smp_wmb() ((void)0)
#define smp_rmb() ((void)0)
#define WARN_ON_ONCE(x)              \
	({                           \
		bool w_ = (x);       \
		stub_warnings += w_; \
		w_;                  \
	})
#define min(a, b) ((a) < (b) ? (a) : (b))
#define time_before(a, b) ((long)((a) - (b)) < 0)
#define time_after(a, b) time_before(b, a)
#define msecs_to_jiffies(ms) (ms)
#define jiffies_to_msecs(j) ((unsigned int)(j))
#define lockdep_assert_held(lock) ((void)(stub_warnings += !*(lock)))
#define spin_lock_irqsave(lock, flags) ((flags) = 0, (*(lock))++)
#define spin_unlock_irqrestore(lock, flags) ((void)(flags), (*(lock))--)
#define rxe_sched_task(task) ((*(task))++)
#define timer_delete(timer) ((void)(timer))
#define rxe_err_qp(qp, fmt, ...) ((void)(qp), (void)(__VA_ARGS__))

enum ib_qp_state {
	IB_QPS_RTR = 2,
	IB_QPS_RTS,
	IB_QPS_SQD,
	IB_QPS_ERR = 6
};
enum ib_qp_type {
	IB_QPT_RC = 2,
	IB_QPT_UC,
	IB_QPT_UD
};
enum ib_event_type {
	IB_EVENT_QP_FATAL = 1
};
enum rxe_counters {
	RXE_CNT_MIGR_PAUSED,
	RXE_CNT_MIGR_TIMED_OUT
};
enum {
	RXE_MIGR_PEER_UNKNOWN,
	RXE_MIGR_PEER_CAPABLE,
	RXE_MIGR_PEER_ABSENT
};

struct rxe_pkt_info {
	u32 psn;
};

struct ib_qp;

struct ib_event {
	void *device;
	union {
		struct ib_qp *qp;
	} element;
	enum ib_event_type event;
};

struct ib_qp {
	enum ib_qp_type qp_type;
	void *device, *qp_context;
	void (*event_handler)(struct ib_event *event, void *context);
};

struct sk_buff_head {
	int qlen;
};

struct rxe_send_wqe {
	u32 first_psn, last_psn;
};

struct rxe_queue {
	struct rxe_send_wqe *wqes;
	u32 index_mask, producer, consumer;
};

struct rxe_qp {
	struct ib_qp ibqp;
	struct sk_buff_head resp_pkts;
	int state_lock, send_task, recv_task, retrans_timer;
	u8 migr;
	struct {
		enum ib_qp_state qp_state;
		u32 retry_cnt, rnr_retry;
	} attr;
	struct {
		struct rxe_queue *queue;
	} sq;
	struct {
		u32 psn, retry_cnt, rnr_retry;
		int timeout, started_retry;
	} comp;
	struct {
		u32 psn;
		int need_retry, wait_for_rnr_timer;
	} req;
};

struct rxe_migr_qp {
	struct rxe_qp qp;
	unsigned long since, next, deaf_until;
	unsigned int interval_ms;
	u32 first_psn, new_psn;
	u8 peer, before;
	bool unheard, peer_stopped, ending;
	bool dumped_alive, untold;
};

extern unsigned long jiffies;
extern unsigned int stub_warnings;

static inline struct rxe_migr_qp *to_migr_qp(struct rxe_qp *qp)
{
	return (struct rxe_migr_qp *)qp;
}

static inline int psn_compare(u32 a, u32 b)
{
	return (int)((a - b) << 8);
}

static inline enum ib_qp_state qp_state(struct rxe_qp *qp)
{
	return qp->attr.qp_state;
}

static inline enum ib_qp_type qp_type(struct rxe_qp *qp)
{
	return qp->ibqp.qp_type;
}

static inline bool rxe_migr_connected(struct rxe_qp *qp)
{
	return (qp_type(qp) == IB_QPT_RC || qp_type(qp) == IB_QPT_UC) &&
	       qp_state(qp) >= IB_QPS_RTR && qp_state(qp) <= IB_QPS_SQD;
}

void rxe_qp_error(struct rxe_qp *qp);
void rxe_migr_count(struct rxe_qp *qp, enum rxe_counters index);
void rxe_migr_schedule(struct rxe_migr_qp *m, unsigned int delay_ms);
void rxe_migr_purge(struct rxe_qp *qp, struct sk_buff_head *list);

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

#endif
