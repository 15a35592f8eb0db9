/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * What the files of the fake know of each other. Nobody else sees it: see fake.map.
 * What applications see follows libibverbs/verbs.c and device.c; what is behind
 * that only counts and remembers.
 */
#ifndef FAKE_INNER_H
#define FAKE_INNER_H

#include "../fake_verbs.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONTAINER(pointer, type, member) \
	((type *)((char *)(pointer) - offsetof(type, member)))

#define die(...)                              \
	do {                                  \
		fprintf(stderr, "fake: ");    \
		fprintf(stderr, __VA_ARGS__); \
		fputc('\n', stderr);          \
		abort();                      \
	} while (0)

/* of all that follows */
extern pthread_mutex_t lock;

/* --- objects.c --- */

/** make - an object that is alive, all zeroes */
void *make(enum fake_kind kind, size_t size);

/** add - what is there already is alive; with the lock */
void add(enum fake_kind kind, void *p);

/** own - end the program in the name of @call unless this is alive */
void own(enum fake_kind kind, const void *p, const char *call);
#define OWN(kind, p) own(FAKE_##kind, p, __func__)
#define OWN_OR_NULL(kind, p)          \
	do {                          \
		if (p)                \
			OWN(kind, p); \
	} while (0)

/** forget - it is alive no more; drop() with the lock */
void forget(enum fake_kind kind, void *p, const char *call);
void drop(enum fake_kind kind, void *p, const char *call);
#define DESTROY(kind, p)                          \
	do {                                      \
		forget(FAKE_##kind, p, __func__); \
		free(p);                          \
	} while (0)

uint32_t new_handle(void);

/* --- calls.c --- */

int enter(const char *name, const uint64_t args[8]);

/* how functions begin: remember the arguments, fail if that is wanted */
#define ENTER(...) enter(__func__, FAKE_ARGS(__VA_ARGS__))
#define ENTER_OR(ret, ...)              \
	do {                            \
		if (ENTER(__VA_ARGS__)) \
			return ret;     \
	} while (0)
#define ENTER_ERR(...)                         \
	do {                                   \
		int err_ = ENTER(__VA_ARGS__); \
                                               \
		if (err_)                      \
			return err_;           \
	} while (0)

#define KEEP(member, value)                  \
	do {                                 \
		pthread_mutex_lock(&lock);   \
		fake_last.member = (value);  \
		pthread_mutex_unlock(&lock); \
	} while (0)

/** failures_left - were failures asked for that nobody has had? Says which */
bool failures_left(void);

/* --- events.c --- */

struct item {
	void *of;
	struct ibv_async_event event;
	struct ibv_wc wc;
	struct item *next;
};

extern struct item *cq_events, *async_events, *completions;

void put(struct item **queue, const struct item *item);
bool get(struct item **queue, const void *of, struct item *item);

/** purge - an object is destroyed: what is of it, or has it as its element */
void purge(struct item **queue, const void *object);

/** open_fd - a descriptor that can be read once for each ring() */
int open_fd(void);
void ring(int fd);
void unring(int fd);

/** put_completion - wakes who waits for it; with the lock */
void put_completion(struct ibv_cq *cq, const struct ibv_wc *wc);

bool items_left(void);

/** ring_bell - tell the kernel of a post, as rxe does, if fake_bells. Return: 0 or errno */
int ring_bell(const struct ibv_context *ctx);

/* --- what contexts have --- */

/** command - can the kernel be reached? EIO if the layer says that the device is gone */
int command(const struct ibv_context *ctx);
#define COMMAND_OR(ret, ctx)        \
	do {                        \
		if (command(ctx))   \
			return ret; \
	} while (0)

void plain_ops(struct verbs_context *v);
void mr_ops(struct verbs_context *v);
void mw_ops(struct verbs_context *v);
void cq_ops(struct verbs_context *v);
void srq_ops(struct verbs_context *v);
void qp_ops(struct verbs_context *v);
void wr_ops(struct ibv_qp_ex *ex, uint64_t flags);

/** windows_of - is one of this PD, or bound to this MR, or with this QP? If fake_binds */
bool windows_of(const void *object);

/** do_window - do a request, if it is one of windows; with the lock */
enum ibv_wc_status do_window(const struct ibv_qp *qp,
			     const struct fake_sent *sent);

/* --- queues --- */

struct fake_cq {
	struct ibv_cq_ex ex;
	bool extended, polling;
	int armed; /* 1: for any, 2: for what is solicited or has failed */
	struct ibv_wc wc;
};

/* RECVs that wait for a message */
struct recvs {
	struct fake_recv *first, **end;
	unsigned int n;
};

struct fake_srq {
	struct ibv_srq srq;
	struct recvs recvs;
	uint32_t limit;
};

void drop_recvs(struct recvs *r);

enum {
	BATCH = 32
};

struct fake_qp {
	struct ibv_qp_ex ex;
	bool extended;

	struct ibv_qp_cap cap;
	bool sq_sig_all;
	unsigned int access;
	struct fake_sent **sent; /* all there were */
	unsigned int n, room, finished, fulls;
	int refuse; /* the number of the one to refuse, or -1 */
	int refuse_err;

	struct recvs recvs;
	struct ibv_qp_attr attr; /* all that was set */
	bool last_wqe;
	bool was_rts; /* since RESET */
	bool died;    /* and only the kernel knows that it is in ERR */
	struct {
		union ibv_gid gid;
		uint16_t lid;
	} groups[FAKE_GROUPS];
	unsigned int n_groups;

	pthread_mutex_t batch_lock; /* from start to complete or abort */
	struct fake_sent batch[BATCH];
	unsigned int in_batch;
};

/* --- posted.c --- */

extern bool tell_bad;

/** slot - where the next request goes, or NULL if it is to fail; with the lock */
struct fake_posted *slot(void *queue, unsigned int in_call);

/** check_wr - are the objects in it alive? */
void check_wr(const struct ibv_qp *qp, const struct ibv_send_wr *wr);

/* each kind of request has wr_id and next; @member is where it is remembered */
#define POST_ALL(queue, wr, bad, member)        \
	do {                                    \
		unsigned int n_ = 0;            \
		struct fake_posted *p_ = NULL;  \
                                                \
		pthread_mutex_lock(&lock);      \
		fake_posts++;                   \
		for (; wr; wr = wr->next) {     \
			p_ = slot(queue, ++n_); \
			if (!p_)                \
				break;          \
			p_->member = *wr;       \
		}                               \
		pthread_mutex_unlock(&lock);    \
		if (wr) {                       \
			if (tell_bad)           \
				*(bad) = wr;    \
			return ENOMEM;          \
		}                               \
	} while (0)

/* --- work.c --- */

extern bool works;

int queue_recvs(struct recvs *r, struct ibv_recv_wr *wr, uint32_t most,
		struct ibv_recv_wr **bad_wr);
int work(struct fake_qp *f, struct ibv_send_wr *wr,
	 struct ibv_send_wr **bad_wr);
void free_work(struct ibv_qp *qp);

/** let_arrive - the message of fake_linger() is done */
void let_arrive(struct ibv_context *ctx);

/** flush - it has come to ERR: what is posted is flushed, but what is posted then
 * waits for the next time */
void flush(struct ibv_qp *real);

/* from wr_start() to wr_complete() or wr_abort() */
void start_batch(struct ibv_qp_ex *ex);
void add_to_batch(struct ibv_qp_ex *ex, const struct ibv_send_wr *wr);
void set_batch_sge(struct ibv_qp_ex *ex, const struct ibv_sge *sge);
int end_batch(struct ibv_qp_ex *ex, bool post);

#endif
