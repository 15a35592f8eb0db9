/* SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR Linux-OpenIB) */
/*
 * The ioctl ABI of migratable rdma_rxe: driver methods and attributes that the
 * module adds to the RDMA_VERBS_IOCTL interface of the stock ib_uverbs.
 *
 * Every structure is passed by address in one UVERBS_ATTR_PTR_IN or PTR_OUT
 * attribute and has the same layout on 32 and 64 bit. Unless said otherwise a
 * method needs CAP_CHECKPOINT_RESTORE (or CAP_SYS_ADMIN) in the initial user
 * namespace and fails with EPERM without it.
 */
#ifndef RXE_MIGR_ABI_H
#define RXE_MIGR_ABI_H

#include <linux/types.h>

#define RXE_MIGR_NS (1U << 12) /* UVERBS_ID_NS_SHIFT: the driver's ids */

/* methods of UVERBS_OBJECT_DEVICE; each acts on the caller's context */
enum rxe_migr_device_methods {
	RXE_MIGR_METHOD_STOP = RXE_MIGR_NS,
	RXE_MIGR_METHOD_COMMIT,
	RXE_MIGR_METHOD_DUMP,
	RXE_MIGR_METHOD_RESOLVE,
	RXE_MIGR_METHOD_ATTACH,
	RXE_MIGR_METHOD_RESUME,
	RXE_MIGR_METHOD_LOAD,
	RXE_MIGR_METHOD_TRACK,
};

enum rxe_migr_qp_methods { RXE_MIGR_METHOD_QP_REFILL = RXE_MIGR_NS };
enum rxe_migr_cq_methods { RXE_MIGR_METHOD_CQ_REFILL = RXE_MIGR_NS };
enum rxe_migr_srq_methods { RXE_MIGR_METHOD_SRQ_REFILL = RXE_MIGR_NS };

/* attributes, the same two ids in all device methods */
enum rxe_migr_attrs {
	RXE_MIGR_ATTR_IN = RXE_MIGR_NS,
	RXE_MIGR_ATTR_OUT,
};

/* attribute of the REFILL methods */
enum rxe_migr_refill_attrs {
	RXE_MIGR_ATTR_REFILL_HANDLE = RXE_MIGR_NS,
};

/* attribute of UVERBS_METHOD_INVOKE_WRITE; after the two UHW attributes */
enum rxe_migr_invoke_attrs { RXE_MIGR_ATTR_RESTORE = RXE_MIGR_NS + 2 };

/* attribute values are limited to 64 KiB - 1; larger data goes through this */
struct rxe_migr_buf {
	__aligned_u64 addr;   /* user address */
	__aligned_u64 length; /* bytes */
};

/*
 * STOP: check that every connected peer is migratable, and that every MR still
 * has the pages that are mapped at its addresses, then stop every QP of
 * the context. On success the QPs stay Stopped as long as the returned guard
 * file is open; closing it (also by the death of its owner) is UNSTOP, except
 * after COMMIT, or if nobody else has the context's file, or the process that
 * made the context is being killed and not yet dead: then its application is
 * gone. A child that uses the context of such a process is not asked: its QPs
 * stay Stopped until the guard of another STOP is closed. With
 * RXE_MIGR_STOP_CHECK_ONLY nothing is stopped and no guard is returned.
 *
 * EALREADY     the context is stopped already
 * ENOKEY       no cluster key is set
 * EOPNOTSUPP   an object cannot be migrated; reason and handle say which
 * EPROTO       a peer has no answer, nor the capability bit (RXE_MIGR_WHY_PEER)
 * ETIMEDOUT    a peer does not answer, nor its driver that it is not there
 *              (RXE_MIGR_WHY_SILENT)
 * EBADF        fd is not the file of this context
 * EAGAIN       an object is just being created
 * EINTR        a signal came while a peer was asked or memory compared
 * ESRCH        there is no such process, or it has no memory any more
 * EACCES       pid is of another process, and the caller has no CAP_SYS_PTRACE
 *              over its memory
 */
#define RXE_MIGR_STOP_CHECK_ONLY (1U << 0)

struct rxe_migr_stop {
	__s32 fd;	  /* the context's own file, in the caller's table */
	__u32 flags;	  /* RXE_MIGR_STOP_* */
	__u32 timeout_ms; /* how long to wait for silent peers; 0: 2000 */
	__s32 pid;	  /* in whose memory the MRs are looked for: who will
			   * ATTACH, in the caller's PID namespace; 0: who has
			   * registered each
			   */
};

enum rxe_migr_why {
	RXE_MIGR_WHY_NONE,
	RXE_MIGR_WHY_PEER,	/* peer runs a driver without migration */
	RXE_MIGR_WHY_SILENT,	/* peer does not answer */
	RXE_MIGR_WHY_QP_TYPE,	/* a QP that is neither RC, UC nor UD */
	RXE_MIGR_WHY_AH,	/* address handle of a library that keeps the
				 * address itself, in work requests, too
				 */
	RXE_MIGR_WHY_QP_STATE,	/* QP in a state that cannot be carried; QP, CQ
				 * or SRQ whose rings nobody can map
				 */
	RXE_MIGR_WHY_MR_TYPE,	/* MR that is not plain user memory */
	RXE_MIGR_WHY_PIN,	/* ATTACH: pages of an MR cannot be pinned */
	RXE_MIGR_WHY_ELSEWHERE,	/* RESUME: the partner is not where it was, and
				 * was not restored here
				 */
	RXE_MIGR_WHY_MEMORY,	/* MR whose memory is not mapped as it was when
				 * its pages were pinned
				 */
	RXE_MIGR_WHY_UNHEARD,	/* COMMIT: the peer has not said that it waits */
};

/* OUT of STOP, COMMIT, ATTACH and RESUME; filled on success and on failure */
struct rxe_migr_status {
	__s32 guard_fd; /* STOP: close-on-exec; -1 if there is none */
	__u32 why;	/* enum rxe_migr_why */
	__u32 type;	/* enum rxe_migr_type of the object at fault */
	__u32 handle;	/* its uverbs handle */
	__u32 qpn;	/* its QPN, for a QP */
	__u32 peer_qpn; /* destination QPN */
	__u8 peer_gid[16];
	__u32 objects; /* how many objects the method acted on */
	/*
	 * STOP: 1: the table of descriptors of `pid` is another process's, too
	 * (CLONE_FILES); else 0
	 */
	__u32 table_shared;
};

/*
 * COMMIT: the image is safe elsewhere and the application will be destroyed;
 * closing the guard no longer means UNSTOP. IN: struct rxe_migr_commit, OUT: status,
 * also on failure. Before that every peer of an RC QP has said that it knows that the QP
 * is Stopped: whoever has missed that might speak when nobody answers any more, and
 * die. With RXE_MIGR_COMMIT_FORCE it is done all the same, and status names the first one
 * that has not; with RXE_MIGR_COMMIT_CHECK_ONLY that is all that is waited for.
 *
 * EINVAL	not stopped; another flag
 * ETIMEDOUT	a peer has not said so (RXE_MIGR_WHY_UNHEARD), and nothing has changed
 * EINTR	a signal came
 */
#define RXE_MIGR_COMMIT_CHECK_ONLY (1U << 0)
#define RXE_MIGR_COMMIT_FORCE (1U << 1)

struct rxe_migr_commit { /* 8 bytes */
	__u32 flags;	  /* RXE_MIGR_COMMIT_* */
	__u32 timeout_ms; /* how long to wait for that; 0: not at all */
};

/*
 * DUMP: write the image of the context (rxe_migr_image.h), signed with the
 * cluster key (ENOKEY). All QPs must be Stopped (EINVAL). IN: struct
 * rxe_migr_buf; OUT: struct rxe_migr_dump_resp, filled also with ENOSPC, when
 * `length` is smaller than `needed`. EAGAIN: objects were created or destroyed
 * meanwhile, or there is one by now that STOP would refuse, or a QP has got a
 * peer since that STOP has not asked; another STOP says which. EFBIG: an object
 * takes more than 4 GiB, or nobody has read more than 65536 events of a completion
 * channel, or asynchronous ones.
 *
 * An image is good until peers have heard of a restore of it, or from the QPs
 * themselves after UNSTOP.
 *
 * Each object has a record, each open completion channel with CQs, and the
 * asynchronous event file unless it is closed.
 */
struct rxe_migr_dump_resp {
	__aligned_u64 needed; /* bytes */
	__u32 count;	      /* records, without the CONTEXT record */
	__u32 reserved;
};

/*
 * RESOLVE: tell what a file in the caller's table is to this context.
 * ENOENT: nothing of it. EOPNOTSUPP: an asynchronous event file beside the one
 * that the context got first; its events would be in no image.
 */
struct rxe_migr_resolve {
	__s32 fd;	 /* the file in question */
	__s32 context_fd; /* the context's own file */
};

struct rxe_migr_resolve_resp {
	__u32 type; /* enum rxe_migr_type: CONTEXT, ASYNC_FD or COMP_CHANNEL */
	union {
		/*
		 * COMP_CHANNEL: the CQ by which images know it, as long as CQs
		 * neither come nor go; RXE_MIGR_NO_HANDLE: it has no CQ
		 */
		__u32 handle;
		/*
		 * CONTEXT: how often it is used: by descriptors, which are
		 * counted once in a table that several processes share, also in
		 * messages on their way; mappings of its rings; guards of STOP;
		 * and calls under way of those who share a table, threads too,
		 * also this one. 0: the module does not count
		 */
		__u32 users;
	};
};

/*
 * LOAD: give the context an image, from which objects can then be restored. IN:
 * struct rxe_migr_buf. The context becomes a restored one and keeps a copy of
 * the image until RESUME; another LOAD replaces it, but not after ATTACH, nor between
 * STOP and the end of its guard (EBUSY).
 *
 * EPROTO	another version of images
 * EBADMSG	not signed by a kernel of this cluster, or changed since
 * ENOKEY	signed with a key that is not set here
 * EINVAL	not a chain of records; the kernel log says where
 * ENOMEM	no memory for the copy
 */

/*
 * RESTORE attribute of the create commands (INVOKE_WRITE of CREATE_CQ,
 * CREATE_SRQ, CREATE_QP, REG_MR, ALLOC_MW, CREATE_AH): which record of the image says what
 * the object was. It gets the identities of the record. ENOENT: there is no such
 * record of this type. EBUSY: index or key index taken. ERANGE: index outside the
 * device's range. EINVAL: the command asks for another object than the record.
 *
 * REG_MR makes a shell: keys and range, no pages, no access, until ATTACH.
 * A QP is created Stopped. A memory window is created bound: the MR and the QP of
 * its record are there before, and the MR is still a shell (else EINVAL, and the
 * kernel log names the field). An AH gets its number, and leads to the dgid of its
 * record: of a host the command names the device's own GID, from which it comes.
 *
 * In the MODIFY_QP that gives a restored QP its address vector it means the same: the
 * command names the device's own GID, and the QP leads to the dgid of its record. So
 * nobody has to answer there.
 */
struct rxe_migr_restore {
	__u32 handle;	/* of the record */
	__u32 reserved; /* 0 */
};

/*
 * REFILL (QP, CQ, SRQ): fill a restored object from the record of its handle, which
 * is checked whole first; EINVAL names the bad field in the kernel log. ENOENT:
 * no such record. EBUSY: not a restored object, or one in use. A QP must be in
 * the verbs state that the record demands, or in RTS for SQD, or in INIT or
 * RESET for ERR, and connected to the same peer. The MRs and the
 * windows of its PD come first: a READ of anything else that might be asked for
 * again is forgotten.
 */

/*
 * ATTACH: called by the restored task itself: pin the pages of all MR shells
 * of the context in the caller's memory and make the caller's credentials those
 * of the file, for write(). Needs a restored context instead of the capability.
 * IN: struct rxe_migr_attach, OUT: status. EALREADY: that has been done.
 */
struct rxe_migr_attach {
	__s32 fd; /* the context's own file, in the caller's table */
	__u32 reserved;
};

/*
 * RESUME: start the restored QPs: each connected one sends RESUME until its
 * partner acknowledges; until then it keeps its partner (modify with AV or
 * DEST_QPN: EINVAL). Before that the events that nobody had read are in their
 * files again. The partner is where the image says, or has been restored on this
 * host as well. IN, optional: RXE_MIGR_RESUME_*; OUT: status. With
 * RXE_MIGR_RESUME_CHECK_ONLY nothing changes: of who has been told so RESUME fails
 * only for want of memory, or if something has changed since. A RESUME that fails
 * has changed nothing, and can be asked for again.
 *
 * EINVAL	not a restored context, or not attached, or resumed already; a QP
 *		without REFILL or with a partner elsewhere
 *		(RXE_MIGR_WHY_ELSEWHERE); an event of no object: the kernel log
 *		says which
 * ENOKEY	no cluster key
 * ENOMEM	no memory
 * EAGAIN	an object is just being created
 */
enum rxe_migr_resume_flags { RXE_MIGR_RESUME_CHECK_ONLY = 1U << 0 };

/*
 * TRACK: the device writes to pinned pages, past the page tables of the process. Make all
 * that it has written to the context's MRs since the last TRACK soft-dirty in the process
 * (/proc/PID/pagemap), as if that had written it: whoever copies the memory of a process
 * that runs on, in rounds between which he clears soft-dirty bits, misses nothing then.
 * Of an MR that was there before the first TRACK all pages are made so; one that comes later
 * is tracked from the beginning. Nothing is written. An MR that is destroyed is seen to at
 * that moment. What was written to memory that has been unmapped, and that nobody else has,
 * is not missed.
 *
 * To be called while the processes are frozen, QPs may run, in each round before the bits
 * are cleared; and once more after STOP, before the last one. Rounds have numbers, which
 * are the caller's: he may call it several times in one, and is told from which other one
 * on all that was written is seen. With RXE_MIGR_TRACK_END
 * nothing is made soft-dirty, and nothing is tracked any more; it can be given at any
 * time. No file server and nobody who answers userfaults is waited for.
 *
 * EINVAL	another flag
 * EACCES	the memory of another process, without CAP_SYS_PTRACE over that
 * EINTR	a signal came while memory was waited for, some pages are lost; or one that
 *		kills, at any time
 * ENOMEM	no memory
 * ESRCH	there is no such process, or it has no memory any more
 */
#define RXE_MIGR_TRACK_END (1U << 0)

struct rxe_migr_track { /* 16 bytes */
	__u32 flags; /* RXE_MIGR_TRACK_* */
	__s32 pid;   /* in whose memory the MRs are, as with STOP; 0: who has
		      * registered each
		      */
	__aligned_u64 round; /* a random number; 0: one that nobody knows */
};

/*
 * LOST: since the round before something was written that is in none of the pages that are
 * mapped where the MR was registered, or may have been written `unseen`. Only a copy of
 * all memory has it. It is said in each TRACK of the round.
 * BEGUN: it is the first round of the context, or the first since TRACK_END. What was
 * written before to MRs that are gone is not seen.
 *
 * `since`: the round before. Who copies what has changed since another round than that
 * misses what was written in between: it may have been LOST then, or soft-dirty, and
 * copied by somebody else.
 *
 * When a context ends for which TRACK would say LOST, or has said so in its last round, or
 * that is not tracked any more since TRACK_END, the module's parameter migr_lost counts it,
 * not after COMMIT. It has lines: how many by now, from a random number on, 32 bits, and the
 * contexts, the last ones first, at most 64.
 */
#define RXE_MIGR_TRACK_LOST (1U << 0)
#define RXE_MIGR_TRACK_BEGUN (1U << 1)

struct rxe_migr_track_resp { /* 40 bytes */
	__aligned_u64 pages; /* that it has written since the last TRACK, at first all */
	__aligned_u64 context; /* a number that no other context ever has, not 0 */
	/*
	 * Where there is memory of an MR that may have been written since the round before
	 * without becoming soft-dirty, by the device or by the process; or 0. That is
	 * pages of hugetlb, and small private ones that the process could write without
	 * a fault when their bits were to be cleared, for they are left alone while
	 * they are pinned (by mprotect(), in a mapping that was new or had grown); also
	 * those beside an MR that have one huge page in common with it.
	 */
	__aligned_u64 unseen;
	__aligned_u64 since; /* a round; 0: BEGUN. With TRACK_END: the last one, if any */
	__u32 regions;	     /* that are tracked now */
	__u32 flags;	     /* of these two */
};

#endif /* RXE_MIGR_ABI_H */
