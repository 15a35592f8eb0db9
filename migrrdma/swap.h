/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Replacement: real objects that have been made anew take the place of those that are
 * there, and are connected. The application keeps its objects, numbers and keys (MigrRDMA,
 * sections 3.2 and 3.3).
 */
#ifndef MIGRRDMA_SWAP_H
#define MIGRRDMA_SWAP_H

#include "shadow.h"

/* what a replacement has done */
struct swap {
	unsigned int qps;
	unsigned int objects; /* that were made, with them */
	unsigned int recvs;   /* that were posted again */
	bool swapped;	      /* new ones have taken the place of the old */
	uint64_t build_ns;    /* for new objects */
	uint64_t regions_ns;  /* for regions, which are not among them */
	uint64_t stop_ns;     /* for flushing the old */
	uint64_t swap_ns;     /* until the new ones have their RECVs */
	uint64_t destroy_ns;  /* for destroying the old */
	unsigned int taped;   /* commands that a shadow process had given */
	char presetup[256];   /* why its objects were not taken */
	char reason[256];     /* why not */
};

/**
 * layer_replace - replace all objects of the process, or some QPs on what they are on
 * @qpns: numbers of these QPs, as the application knows them; not NULL
 * @n: how many; 0 of all objects
 * @timeout_ms: for what has to be waited for
 *
 * Until they are flushed nothing has changed, if it fails. After that it may be tried
 * again; the QPs are not connected.
 *
 * Return: 0; EINVAL if the process is not suspended or there is no such QP, EOPNOTSUPP
 * if something cannot be made again, ETIMEDOUT, or what the provider says; with a reason
 */
int layer_replace(const uint32_t *qpns, unsigned int n, unsigned int timeout_ms,
		  struct swap *s);

/**
 * layer_check - could layer_hold() let go, and layer_replace() make all again, here, too?
 *
 * So it can be known before anybody's QPs are replaced for that.
 *
 * Return: 0, or EINVAL and EOPNOTSUPP as layer_replace(), and what here_check() says
 */
int layer_check(struct swap *s);

/**
 * layer_hold - let go of the device: the process may be moved to another host
 * @timeout_ms: for what has to be waited for
 * @seconds: at least 1. When the process has run for so long, and nobody has replaced its
 *	objects, it gets other ones where it is, with QPs in ERR.
 *
 * What is posted and armed waits, and polls find what there was, until all objects are
 * replaced (layer_replace()): here, or, with dead files in the place of the device's, on
 * another host. If it fails QPs may have been flushed: they can be replaced.
 *
 * Return: as layer_replace(); EBUSY if it is held
 */
int layer_hold(unsigned int timeout_ms, unsigned int seconds, struct swap *s);
bool layer_is_held(void);

/**
 * layer_tick - it has been held, and has run, for another second
 *
 * When no second is left its objects are replaced where it is, with QPs in ERR. If that
 * fails ten times, a second after another, they end as if their devices had been unplugged
 * (unplug.h).
 */
void layer_tick(void);

/**
 * layer_set_peer - say where a replaced QP leads to
 * @qpn: number of the QP
 * @peer_num: the real number of its peer; 0: that is gone, and the QP will be in ERR
 * @gid: of its peer
 * @id: of the process that has its peer: its keys are meant by requests
 *
 * Return: 0, EINVAL or ENOMEM, with a reason
 */
int layer_set_peer(uint32_t qpn, uint32_t peer_num, const union ibv_gid *gid,
		   const char *id, struct swap *s);

/**
 * connect_ahead - bring what was made ahead of a QP to where that is, with this peer
 *
 * When it has taken the place of the real one that peer has to be told still, and no other:
 * else it has to be replaced again.
 *
 * Context: the gate is closed
 * Return: 0; EINVAL if there is none, or it has a peer, or what the provider says; with a reason
 */
int connect_ahead(struct shadow_qp *qp, uint32_t peer_num,
		  const union ibv_gid *gid, struct swap *s);

/**
 * layer_forget_keys - that process has no keys but those that it is told to have
 * @id: of a process; all QPs that lead there are suspended, or, if none is suspended, there
 *	are none
 *
 * Return: 0, EBUSY or ENOMEM, with a reason
 */
int layer_forget_keys(const char *id, struct swap *s);

/**
 * layer_set_key - it has this key: after layer_forget_keys(), or instead of that
 * @real: the real one, or 0 if it has it no more
 *
 * Return: the same, or EINVAL if that has to come first
 */
int layer_set_key(const char *id, uint32_t key, uint32_t real, struct swap *s);

/**
 * layer_connect - bring all that were replaced into the states of the old ones
 *
 * If it fails it may be tried again.
 *
 * Return: 0; EINVAL if the process is not suspended, or held, or a QP has no peer, or what
 * the provider says; with a reason
 */
int layer_connect(struct swap *s);

/* replace.c: is no QP without its peer? Return: 0, or EBUSY and a reason */
int swap_is_whole(char *reason, size_t bytes);

/* connect.c: move those to ERR that are, with all they have */
void swap_give_up(void);

/* swap.c: note the limits of SRQs, whose QPs are all stopped */
int swap_note_limits(struct swap *s);

/* swap.c: give an SRQ the limit that its predecessor had, if it has not got it yet */
int swap_limit(struct shadow_srq *srq);

/* replace.c: write a reason. Return: @err */
int swap_refuse(struct swap *s, int err, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* replace.c: the QP of this number; NULL and a reason, if there is none, or two */
struct shadow_qp *swap_find(uint32_t qpn, struct swap *s);

#endif
