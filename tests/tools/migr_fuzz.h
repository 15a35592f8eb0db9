/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The parts of migr_fuzz. A rig is what the attacks start from: a context with
 * live QPs (the peer), and the image of another one that was connected to it.
 * A copy is a restored context made from that image, record by record.
 */
#ifndef MIGR_FUZZ_H
#define MIGR_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

#include "migr_restore.h"

#define N_QPS 2
#define MSG 4096
#define DEPTH 8

extern int fuzz_failures;

#define MUST(cond) fuzz_must(!!(cond), __FILE__, __LINE__, #cond)

/* the call must end like this; several errors can be right */
#define EXPECT(call, ...)                                                      \
	fuzz_expect((call), (const int[]){ __VA_ARGS__ },                      \
		    sizeof((const int[]){ __VA_ARGS__ }) / sizeof(int), #call, \
		    __FILE__, __LINE__)

void fuzz_must(bool ok, const char *file, int line, const char *what);
int fuzz_expect(int ret, const int *want, size_t n, const char *what,
		const char *file, int line);
double fuzz_now(void); /* seconds */

/* ---- rig (fuzz_rig.c) ---- */

struct side {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_srq *srq; /* with receives, of no QP */
	struct ibv_mr *mr;
	struct ibv_qp *qp[N_QPS];
	char *mem;
};

struct rig {
	struct ibv_device *dev;
	char cdev[128];
	union ibv_gid gid;
	struct side peer;
	char *mem; /* of the moved side, where its MR is */
	void *image;
	struct migr_image img;
	const struct rxe_migr_rec_cq *cq;
	const struct rxe_migr_rec_srq *srq;
	const struct rxe_migr_rec_mr *mr;
	const struct rxe_migr_rec_qp *qp[N_QPS];
};

struct copy {
	int fd;
	struct migr_files files;
	struct migr_restore r;
	struct migr_error err;
};

void side_open(struct rig *rig, struct side *s);
void side_close(struct side *s);
void qp_connect(const struct rig *rig, struct ibv_qp *qp, uint32_t peer,
		uint32_t sq_psn, uint32_t rq_psn);
void qp_connect_as(const struct rig *rig, struct ibv_qp *qp, uint32_t peer,
		   uint32_t sq_psn, uint32_t rq_psn, int access,
		   uint8_t resources); /* of the responder */
void qp_reset(struct ibv_qp *qp);
int qp_post_send(struct side *s, int i);
int qp_post_recv(struct side *s, int i);
int qp_post_read(struct side *s, int i, uint32_t rkey, const void *from);
bool qp_polled(struct side *s);	       /* was there a completion? */
void side_wait(struct side *s, int n); /* for n good completions */

void rig_open(struct rig *rig, const char *device);
void rig_use_image(struct rig *rig, size_t length); /* rig->image */
/* stop and dump a context, then destroy it: the image is that of the rig */
void rig_take(struct rig *rig, struct side *s);
void rig_close(struct rig *rig);
/* bring the peer of QP i to the state that the image expects of it */
void rig_renew_peer(struct rig *rig, int i);
/* all must succeed; STOP returns its guard */
int side_stop(const struct side *s);
void side_dump(const struct side *s);
void side_runs_on(const struct side *s); /* STOP, DUMP, UNSTOP */
/* what the device has counted of this, in hw_counters */
long rig_counter(const struct rig *rig, const char *name);
void rig_wait_for(const struct rig *rig, const char *name, long n);
/* so many more than now: for what comes again and again by itself */
void rig_wait_more(const struct rig *rig, const char *name, int more);

/* an empty restored context; then all objects, QPs connected, no REFILL */
void copy_open(struct rig *rig, struct copy *c);
void copy_create(struct rig *rig, struct copy *c);
void copy_renew_qp(struct rig *rig, struct copy *c, int i);
void copy_close(struct copy *c);

/* ---- images (fuzz_images.c): 0 or -errno ---- */

extern uint32_t fuzz_key_id; /* of the cluster's key */

/* sign, as a kernel of the cluster would, what is otherwise complete */
void image_sign(void *image, size_t length);
/* LOAD the rig's image, but with this record in the place of that of `handle` */
int load_as(struct rig *rig, int fd, uint32_t handle, const void *record,
	    size_t length);
/* the same, and the object is filled from it */
int refill_as(struct rig *rig, int fd, uint16_t object, uint32_t handle,
	      const void *record, size_t length);
/* and as it is */
int load_good(struct rig *rig, int fd);

/* ---- pages that do not come (fuzz_faults.c) ---- */

int faults_hold(void *mem,
		size_t length); /* whole pages; a file for the others */
void faults_wait(int fd);	/* until somebody wants one */
void faults_serve(int fd, void *mem, size_t length);

/* ---- records (fuzz_records.c) ---- */

#define VICTIM (N_QPS - 1) /* the QP with work in its send queue */

/* fill all; @filled: the record of what is already, or NULL */
void refill_all_but(struct rig *rig, struct copy *c,
		    const struct rxe_migr_rec *filled);
/*
 * Fill the victim from such a record, and if it is accepted, start it if `go`;
 * then all is as it was before
 */
int try_record(struct rig *rig, struct copy *c, const void *record,
	       size_t length, bool go);

/*
 * A restored window with this key, bound to the MR of a copy, of which the image
 * knows; the image is another one then
 */
void fuzz_window(struct rig *rig, struct copy *c, uint32_t rkey, int access);

/* ---- raw commands (fuzz_rig.c): 0 or -errno ---- */

/* from the image that was loaded */
int raw_refill(int fd, uint16_t object, uint32_t handle);
int raw_destroy_qp(int fd, uint32_t handle);
/* and how many events the kernel says the QP had */
int raw_destroy_qp_events(int fd, uint32_t handle, uint32_t *events);
int raw_dereg_mr(int fd, uint32_t handle);
/* as an old library makes it, which has no room for its number */
int raw_nameless_ah(const struct rig *rig, const struct side *s,
		    uint32_t *handle);
int raw_destroy_ah(int fd, uint32_t handle);
/* rdma_rxe's part of libibverbs does not have it */
int raw_rereg_mr(int fd, uint32_t handle, uint32_t flags, uint32_t pd,
		 uint32_t access);
/* by write() itself; `in` begins with the address of the response, if any */
int raw_write(int fd, uint32_t command, void *in, size_t in_length, void *out,
	      size_t out_length);

static inline int commit_it(int fd)
{
	struct rxe_migr_status st;

	return migr_cmd_commit(fd, 0, 5000, &st);
}

static inline int refill_qp(int fd, uint32_t handle)
{
	return raw_refill(fd, UVERBS_OBJECT_QP, handle);
}

static inline int refill_cq(int fd, uint32_t handle)
{
	return raw_refill(fd, UVERBS_OBJECT_CQ, handle);
}

static inline int refill_srq(int fd, uint32_t handle)
{
	return raw_refill(fd, UVERBS_OBJECT_SRQ, handle);
}

/* ---- attacks ---- */

void attack_records(struct rig *rig, size_t part);  /* fuzz_records.c */
void attack_crafted(struct rig *rig);		    /* fuzz_crafted.c */
void attack_images(struct rig *rig);		    /* fuzz_images.c */
void attack_arguments(struct rig *rig);		    /* fuzz_args.c */
void attack_refusals(struct rig *rig);		    /* fuzz_refusals.c */
void attack_restore(struct rig *rig);		    /* fuzz_create.c */
void attack_unprivileged(struct rig *rig);	    /* fuzz_create.c */
void attack_doorbell(struct rig *rig);		    /* fuzz_doorbell.c */
void attack_absent(struct rig *rig);		    /* fuzz_absent.c */
void attack_dirty(struct rig *rig);		    /* fuzz_dirty.c */
void attack_events(struct rig *rig);		    /* fuzz_events.c */
void attack_clones(struct rig *rig);		    /* fuzz_clones.c */
void attack_flush(struct rig *rig);		    /* fuzz_flush.c */
void attack_held(struct rig *rig);		    /* fuzz_held.c */
void attack_rings(struct rig *rig);		    /* fuzz_rings.c */
void attack_runs_on(struct rig *rig);		    /* fuzz_runs_on.c */
void attack_sqd(struct rig *rig);		    /* fuzz_sqd.c */
void attack_datagrams(struct rig *rig);		    /* fuzz_datagrams.c */
void attack_rtr(struct rig *rig);		    /* fuzz_rtr.c */
void attack_tracked(struct rig *rig);		    /* fuzz_tracked.c */
void attack_uc(struct rig *rig);		    /* fuzz_uc.c */
void attack_windows(struct rig *rig);		    /* fuzz_windows.c */
void attack_lives(struct rig *rig, double seconds); /* fuzz_lives.c */
void attack_races(struct rig *rig, double seconds); /* fuzz_races.c */

#endif /* MIGR_FUZZ_H */
