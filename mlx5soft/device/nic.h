/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The NIC as its parts see it. What comes from the guest (commands, doorbells,
 * rings) is untrusted: numbers are looked up, lengths checked, guest memory is
 * read once.
 */
#ifndef MLX5SOFT_NIC_H
#define MLX5SOFT_NIC_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/queue.h>
#include <sys/uio.h>
#include <time.h>

#include "bits.h"
#include "device.h"
#include "port.h"
#include "roce.h"
#include "vfu.h"
#include "wire.h"

#define N_ELEM(a) (sizeof(a) / sizeof((a)[0]))
#define CONTAINER(ptr, type, member) \
	((type *)((char *)(ptr) - offsetof(type, member)))

#define VECTORS 16
#define UAR_PAGE 4096U
#define BAR_SIZE (8U << 20)
#define FIRST_UAR 16U /* the pages before hold the initialization segment */
#define PAGE_SHIFT_MIN 12U
#define MAX_PAGE_SHIFT \
	43U /* of a list: more than there are address bits left */

#define MAX_LOG_QUEUE 20U /* of entries, for CQ and EQ */
#define MAX_LOG_WQ 15U
#define MAX_LOG_MR 62U /* bytes of a memory key */
#define MAX_LOG_RQ_STRIDE 11U
#define DEFAULT_PKEY 0xffffU
#define MAX_WQE 1024U
#define FRAME_MAX 65536U
#define SEND_MAX ((1U << 19) + MAX_WQE) /* of a large send */
#define ROCE_ADDRESSES 32U
#define RESD_LKEY 0x200U /* of kernel QPs: all memory */

/* ---- objects ---- */

enum obj_kind {
	OBJ_NONE,
	OBJ_PD,
	OBJ_UAR,
	OBJ_XRCD,
	OBJ_TD,
	OBJ_EQ,
	OBJ_CQ,
	OBJ_MKEY,
	OBJ_SRQ,
	OBJ_XRC_SRQ,
	OBJ_RMP,
	OBJ_QP,
	OBJ_SQ,
	OBJ_RQ,
	OBJ_Q_COUNTER,
	OBJ_TIR,
	OBJ_TIS,
	OBJ_RQT,
	OBJ_FT,
	OBJ_KINDS,
};

#define MAX_DEPS 8

/*
 * Anything with a number. It holds those it needs, which then cannot be
 * destroyed: RES_BUSY.
 */
struct obj {
	enum obj_kind kind;
	u32 id;
	u32 users;
	unsigned int ndeps;
	struct obj *dep[MAX_DEPS];
	void (*free)(struct nic *nic, struct obj *obj); /* NULL: free() */
};

/* Numbers of one name space; several kinds may share one. */
struct id_table {
	u32 first, limit; /* numbers in use are first <= id < limit */
	u32 size, next;
	u32 count;
	struct obj **slot;
};

struct obj *obj_find(struct nic *nic, enum obj_kind kind, u32 id);
/* Give it a number; false: none left. The object stays the caller's then. */
bool obj_add(struct nic *nic, struct obj *obj, enum obj_kind kind);
bool obj_hold(struct obj *obj, struct obj *dep);
void obj_drop_deps(struct obj *obj);
void obj_destroy(struct nic *nic, struct obj *obj);
void obj_destroy_all(struct nic *nic);
struct id_table *obj_table(struct nic *nic, enum obj_kind kind);
void objs_init(struct nic *nic);

/* ---- lists of pages ---- */

struct pas {
	u64 *page;
	u32 count;
	u8 shift;
	u64 offset; /* in the first page */
};

/*
 * Take `size` bytes' worth of page addresses at `list`, of which `avail` bytes
 * are there. False: too few, or no memory.
 */
bool pas_init(struct pas *pas, const u8 *list, size_t avail, unsigned int shift,
	      u64 offset, u64 size);
void pas_free(struct pas *pas);
/* `len` bytes that lie in one page; NULL: outside or not mapped */
void *pas_ptr(struct nic *nic, const struct pas *pas, u64 at, u32 len);
bool pas_read(struct nic *nic, const struct pas *pas, u64 at, void *buf,
	      u32 len);

/* ---- commands ---- */

enum cmd_status {
	CMD_OK = 0x0,
	CMD_INTERNAL = 0x1,
	CMD_BAD_OP = 0x2,
	CMD_BAD_PARAM = 0x3,
	CMD_BAD_SYS_STATE = 0x4,
	CMD_BAD_RES = 0x5,
	CMD_RES_BUSY = 0x6,
	CMD_LIMIT = 0x8,
	CMD_BAD_RES_STATE = 0x9,
	CMD_BAD_INDEX = 0xa,
	CMD_NO_RES = 0xf,
	CMD_BAD_QP_STATE = 0x10,
	CMD_BAD_INP_LEN = 0x50,
	CMD_BAD_OUTP_LEN = 0x51,
};

struct cmd;
typedef int (*cmd_handler)(struct nic *nic, struct cmd *cmd);

/* A row of the table: in and out are the smallest sizes in bytes. */
struct cmd_desc {
	u16 op;
	const char *name;
	cmd_handler run;
	u16 in, out;
	u16 arg; /* for handlers of several commands, mostly enum obj_kind */
};

struct cmd {
	const struct cmd_desc *desc;
	const u8 *in;
	u8 *out;
	u32 in_len, out_len;
	u16 op_mod;
	u32 syndrome;
};

/* Each part brings its rows; cmd_find() knows all. */
struct cmd_rows {
	const struct cmd_desc *row;
	size_t count;
};
extern const struct cmd_rows rows_base, rows_queue, rows_qp, rows_eth,
	rows_vport, rows_regs, rows_counter;

const struct cmd_desc *cmd_find(u16 op);
int cmd_fail(struct nic *nic, struct cmd *cmd, int status, unsigned int where,
	     const char *what);
/* The syndrome is the number of the command and of the line in the source. */
#define FAIL(status, what) cmd_fail(nic, cmd, CMD_##status, __LINE__, what)

#define CMD_MAX (1U << 20) /* bytes of a command, either way */
#define CMD_BUFFER (CMD_MAX + 512)

void cmd_doorbell(struct nic *nic, u32 slots);
/* a number in bits 23:0 of dword 2, where most commands have it */
static inline u32 cmd_id(const struct cmd *cmd)
{
	return get_be32(cmd->in + 8) & 0xffffff;
}
static inline void cmd_set_id(struct cmd *cmd, u32 id)
{
	put_be32(cmd->out + 8, id);
}
/* Fill a command's number in, or free what got none */
int cmd_created(struct nic *nic, struct cmd *cmd, struct obj *obj,
		enum obj_kind kind);
int cmd_destroy(struct nic *nic, struct cmd *cmd);
struct obj *cmd_hold(struct nic *nic, struct obj *obj, enum obj_kind kind,
		     u32 id);

/* ---- event queues ---- */

struct cq;

enum event {
	EVENT_COMP = 0x00,
	EVENT_COMM_EST = 0x02,
	EVENT_SQ_DRAINED = 0x03,
	EVENT_CQ_ERROR = 0x04,
	EVENT_QP_FATAL = 0x05,
	EVENT_PORT_CHANGE = 0x09,
	EVENT_CMD = 0x0a,
	EVENT_QP_REQ_ERR = 0x10,
	EVENT_QP_ACCESS_ERR = 0x11,
	EVENT_SRQ_LAST_WQE = 0x13,
	EVENT_SRQ_LIMIT = 0x14,
};

#define EQE_DATA 28

struct eq {
	struct obj obj;
	struct pas pas;
	u8 log_size;
	u16 vector;
	u32 uar;
	bool armed, overrun;
	u32 pi, ci;
	u64 events[4];
	/* CQs with an event that had no room */
	TAILQ_HEAD(, cq) waiting;
	u8 eqc[BYTES(eqc)];
};

/* False: it had no room and is lost. */
bool eq_post(struct nic *nic, struct eq *eq, u8 type, u8 subtype,
	     const u8 data[EQE_DATA]);
/* A completion event, which is not lost: without room it waits. */
void eq_post_cq(struct nic *nic, struct eq *eq, struct cq *cq);
/* The CQ goes away. */
void eq_forget_cq(struct cq *cq);
/* to the EQ that wants events of this type; false: there is none */
bool event_post(struct nic *nic, u8 type, u8 subtype, const u8 data[EQE_DATA]);
/* about a QP, RQ, SQ (subtype 0, 1, 2) or SRQ */
void event_queue(struct nic *nic, u8 type, u8 queue_type, u32 number);
void eq_doorbell(struct nic *nic, u32 uar, u32 value, bool arm);
/* The device is bus master again: what could not be told or raised is. */
void eq_resume(struct nic *nic);

/* ---- completion queues ---- */

struct cq {
	struct obj obj;
	struct eq *eq;
	struct pas pas;
	u8 log_size;
	bool big; /* entries of 128 bytes, the CQE in the second half */
	bool ignore_overrun, failed;
	bool armed, armed_solicited;
	bool news, solicited_news; /* CQEs that no event has told of yet */
	u32 pi, solicited_pi;	   /* behind the last such CQE */
	u32 notified_pi;	   /* behind the last that had an event */
	u32 uar;
	u64 db;
	/* moderation: CQEs and microseconds from event to event; 0: none */
	u16 max_count, period;
	bool from_cqe;	 /* the time counts from the last CQE */
	u64 notified_at; /* ns, of the last event */
	bool timed;	 /* in nic.cq_timed, an event is due at... */
	u64 due;
	TAILQ_ENTRY(cq) next_timed;
	bool waiting; /* in eq->waiting */
	TAILQ_ENTRY(cq) next_waiting;
	u8 cqc[BYTES(cqc)];
};

/* where the fields of a CQE are, in bytes */
enum cqe_at {
	CQE_AT_FLAGS_RQPN = 24,
	CQE_AT_SRQN = 32, /* or the user's index */
	CQE_AT_IMM = 36,
	CQE_AT_BYTE_CNT = 44,
	CQE_AT_TIMESTAMP = 48,
	CQE_AT_VENDOR_SYNDROME = 54, /* of errors, which have no time stamp */
	CQE_AT_SYNDROME = 55,
	CQE_AT_QPN = 56, /* with the opcode of a send WQE in front */
	CQE_AT_WQE_COUNTER = 60,
};

enum cqe_op {
	CQE_REQ = 0x0,
	CQE_RESP_WRITE_IMM = 0x1,
	CQE_RESP_SEND = 0x2,
	CQE_RESP_SEND_IMM = 0x3,
	CQE_RESP_SEND_INV = 0x4,
	CQE_RESIZE = 0x5,
	CQE_REQ_ERR = 0xd,
	CQE_RESP_ERR = 0xe,
};

/*
 * Whom a CQE is about, as user space counts. Queues of the kernel and of old
 * libraries have no such number.
 */
#define NO_USER_INDEX 0xffffffU
static inline void cqe_set_user_index(u8 cqe[64], u32 index)
{
	if (index != NO_USER_INDEX)
		put_be32(cqe + CQE_AT_SRQN, index);
}

/* Post a CQE; op_own of it is made here. False: the CQ is full or broken. */
bool cq_post(struct nic *nic, struct cq *cq, u8 cqe[64], enum cqe_op op,
	     bool solicited);
void cq_doorbell(struct nic *nic, u32 uar, u32 first, u32 number);
/* Events that moderation has kept, from nic.cq_due on */
void cq_tick(struct nic *nic, u64 now);

/* ---- memory keys ---- */

enum mkey_access {
	MKEY_LOCAL_READ = 0,
	MKEY_LOCAL_WRITE = 1 << 0,
	MKEY_REMOTE_WRITE = 1 << 1,
	MKEY_REMOTE_READ = 1 << 2,
	MKEY_REMOTE_ATOMIC = 1 << 3,
};

struct mkey {
	struct obj obj;
	u32 key;
	u32 pd;
	bool invalid, all, physical;
	u8 access; /* enum mkey_access */
	bool local_read, remote_invalidate;
	u64 start, len;
	struct pas pas;
	u8 mkc[BYTES(mkc)];
};

#define ANY_PD 0xffffffffU

/*
 * Where the memory of `key` at `addr` lies. Returns how many of `max` elements
 * it filled, with iov NULL >= 0 after a mere check; -EACCES: no such key,
 * another PD, outside or a right missing; -EFAULT: the memory is gone;
 * -E2BIG: more than max. `reserved` permits the reserved lkey.
 */
int mkey_translate(struct nic *nic, u32 pd, u32 key, u64 addr, u32 len,
		   unsigned int access, bool reserved, struct iovec *iov,
		   int max);
int mkey_invalidate(struct nic *nic, u32 pd, u32 key);

/* ---- queues of work ---- */

/* a receive queue that others share: SRQ, XRC SRQ or RMP */
struct srq {
	struct obj obj;
	struct cq *cq; /* XRC */
	u32 pd, xrcd;
	struct pas pas;
	u8 log_size, log_stride;
	u64 db;
	u16 next, ci; /* element to take; how many were taken */
	u16 limit;
	u16 ctx_len;
	u8 ctx[BYTES(rmpc)];
};

/* Take the next element: 1, 0 if there is none, or -EINVAL if it is bad. */
int srq_take(struct nic *nic, struct srq *srq, struct roce_recv_wqe *out);

struct inline_data {
	u8 *data;
	u32 room;
};

struct qp {
	struct obj obj;
	enum roce_qp_type roce_type;
	bool umr; /* the driver's own, may change memory keys */
	struct roce_qp *roce;
	struct cq *send_cq, *recv_cq;
	struct srq *srq; /* NULL for XRC: any of its XRCD */
	u32 pd, xrcd;
	struct pas pas;
	bool rlky, no_sq, no_rq;
	u8 log_sq, log_rq, rq_shift;
	u32 sq_at; /* the SQ is behind the RQ */
	u64 db;
	u16 sq_ci, rq_ci;
	u32 sq_fetched;
	struct roce_qp_counters counted; /* up to here in a Q counter */
	struct inline_data *inl; /* of WQEs under way; NULL: never had any */
	u8 qpc[BYTES(qpc)];
};

enum qp_state {
	QP_RST,
	QP_INIT,
	QP_RTR,
	QP_RTS,
	QP_SQER,
	QP_SQD,
	QP_ERR,
};

/* an Ethernet queue, send or receive */
struct wq {
	struct obj obj;
	struct cq *cq;
	struct pas pas;
	u8 log_size, log_stride, state;
	bool rlky;
	u32 pd;
	u64 db;
	u16 ci;
	u32 sent;      /* segments that are out of the large send at ci */
	bool starved;  /* frames were dropped, as there was no buffer */
	bool runnable; /* in nic.tx_run or nic.rx_flush */
	TAILQ_ENTRY(wq) next_run;
	/* a receive queue: frames without a buffer; it is in nic.holding then */
	TAILQ_HEAD(, held) held;
	TAILQ_ENTRY(wq) next_holding;
	u32 held_bytes;
	u8 ctx[BYTES(rqc) > BYTES(sqc) ? BYTES(rqc) : BYTES(sqc)];
};

TAILQ_HEAD(wq_list, wq);

/* what the CQE tells of a frame's hash */
struct rx_hash {
	u32 value;
	u8 type;
};

enum wq_state {
	WQ_RST = 0,
	WQ_RDY = 1,
	WQ_ERR = 3
};

struct tir {
	struct obj obj;
	u8 ctx[BYTES(tirc)];
};

struct tis {
	struct obj obj;
	u8 ctx[BYTES(tisc)];
};

#define MAX_LOG_RQT 8U
struct rqt {
	struct obj obj;
	u32 count, max;
	u32 rqn[1U << MAX_LOG_RQT];
};

/* There may be something to send, or to flush: with the next eth_tick() */
void sq_kick(struct nic *nic, struct wq *sq);
/* ...no more */
void sq_stop(struct nic *nic, struct wq *sq);
/* Send for a while. Returns whether there is more. */
bool eth_tick(struct nic *nic);
/*
 * The queue is in the error state now: its WQEs end with an error, those that
 * are posted later as well.
 */
void rq_flush(struct nic *nic, struct wq *rq);
/* Nothing of it waits any more, frames or flushing. */
void rq_stop(struct nic *nic, struct wq *rq);
/* Look again at receive queues, whose posts ring no doorbell. */
#define IDLE_RECV_NS 2000000
void eth_flush(struct nic *nic);
void qp_doorbell(struct nic *nic, struct qp *qp);
/* A frame to the wire; false: it has no room, nic_wire() goes on later. */
bool eth_transmit(struct nic *nic, const u8 *frame, u32 len);
/*
 * A frame from the wire, or one of the guest's own that may come `back`, from
 * the transport domain `td`, 0: unknown. It is changed when it is delivered.
 * False: nobody wants it back.
 */
bool eth_receive(struct nic *nic, u8 *frame, u32 len, bool back, u32 td);
/* Try again what waits for a buffer. */
void eth_retry_held(struct nic *nic);

struct frame;
/* whom a frame belongs to; NULL: nobody wants it */
struct tir *flow_lookup(struct nic *nic, const u8 *f, u32 len,
			const struct frame *h);
struct wq *tir_to_rq(struct nic *nic, const struct tir *tir, u32 hash);

struct q_counter {
	struct obj obj;
	u32 out_of_buffer; /* Ethernet's */
	struct roce_qp_counters rdma;
	u32 retries_exceeded, rnr_retries_exceeded;
};

/* What it has counted since last time goes to its Q counter. */
void q_account(struct nic *nic, struct qp *qp);
/* A send WQE of it has failed. */
void q_failed(struct nic *nic, const struct qp *qp, enum roce_wc_status why);
int rdma_create(struct nic *nic);
/* A WQE that changes a memory key; `len` bytes of it are there. */
enum roce_wc_status umr_execute(struct nic *nic, const u8 *wqe, u32 len);
/* Is it for the transport? */
bool rdma_receive(struct nic *nic, const void *frame, size_t len);
/* a QP that goes away */
void rdma_forget(struct nic *nic, struct qp *qp);

/* ---- the NIC ---- */

#define CAP_TYPES 0x40
#define CAP_BYTES 4096

struct nic {
	struct vfu *vfu;
	struct nic_config cfg;
	struct id_table table[OBJ_KINDS];

	/* command queue */
	u64 cmdq;
	bool cmdq_known;
	u32 cmd_rung; /* slots, while the device was not bus master */
	u32 health;
	u8 *cmd_in, *cmd_out;
	u16 issi;
	bool enabled; /* between ENABLE_HCA and DISABLE_HCA */
	bool up;      /* between INIT_HCA and TEARDOWN_HCA */
	u64 cmds;

	u32 root_ft;
	u8 nic_vport[BYTES(nic_vport_context)];
	u8 uc_list[32][6], mc_list[32][6];
	u32 uc_count, mc_count;
	u8 roce_addr[ROCE_ADDRESSES][BYTES(roce_addr_layout)];
	u8 *cap[CAP_TYPES]; /* NULL: all zero */
	u64 guid;
	u16 mtu;
	bool port_down;

	struct roce_engine *roce;
	u64 flush_due; /* of Ethernet receive queues in ERR, 0: there are none */

	TAILQ_HEAD(, cq) cq_timed;
	u64 cq_due;
	u32 cq_half, cq_half_uar; /* first half of a CQ doorbell */

	struct {
		time_t second;
		unsigned int lines, lost;
	} log;

	struct port port;
	FILE *record, *record_vfu;

	/* the wire has no room: send queues wait */
	bool tx_blocked;
	struct wq_list tx_run;	 /* send queues with something to do */
	struct wq_list rx_flush; /* receive queues in the error state */
	struct wq_list holding;	 /* ...with frames that wait for a buffer */
	u32 held_bytes;
	struct wire wire;
	u8 tx_frame[SEND_MAX]; /* of a large send, before it is cut */
};

/* At most 64 lines a second: what a guest does must not fill the disk. */
void nic_log(struct nic *nic, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
#define nic_debug(nic, ...)                        \
	do {                                       \
		if ((nic)->cfg.verbose)            \
			nic_log(nic, __VA_ARGS__); \
	} while (0)

/* Recording, if it is on: what the command buffer holds, a doorbell, a frame */
int record_open(struct nic *nic, const char *folder);
void record_close(struct nic *nic);
void record_cmd(struct nic *nic, u32 in_len, u32 out_len);
void record_bar(struct nic *nic, u64 off, const void *bytes, size_t n);
void record_frame(struct nic *nic, const u8 *frame, u32 n);

/* the device's clock, ns */
u64 nic_now(void);

bool caps_init(struct nic *nic);
void caps_free(struct nic *nic);
void vport_reset(struct nic *nic);
void port_event(struct nic *nic, bool down);
int bar_read(void *priv, unsigned int bar, u64 off, void *buf, size_t len);
int bar_write(void *priv, unsigned int bar, u64 off, const void *buf,
	      size_t len);

#endif /* MLX5SOFT_NIC_H */
