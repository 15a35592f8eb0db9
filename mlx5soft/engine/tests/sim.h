/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Two engines on a simulated wire, in virtual time.
 */
#ifndef SIM_H
#define SIM_H

#include "../../../tests/check.h"
#include "roce.h"

#define SIM_QPS 64
#define SIM_KEYS 32
#define SIM_ALL_ACCESS                                        \
	(ROCE_ACCESS_LOCAL_WRITE | ROCE_ACCESS_REMOTE_WRITE | \
	 ROCE_ACCESS_REMOTE_READ | ROCE_ACCESS_REMOTE_ATOMIC)

struct sim;

struct sim_key {
	uint32_t key, pd;
	uint64_t base, len;
	unsigned int access;
};

struct sim_qp {
	struct sim_node *node;
	struct roce_qp *qp;
	enum roce_qp_type type;
	uint32_t qpn;
	struct roce_send_wqe *sends;
	uint32_t num_sends, next_send;
	struct roce_recv_wqe *recvs;
	uint32_t num_recvs, next_recv;
	struct sim_qp *shared; /* who has the receive queue */
	/* as an XRC SRQ, of number qpn; 0: it is none */
	uint32_t xrcd, pd;
	struct roce_send_wc *send_wcs;
	uint32_t num_send_wcs;
	uint32_t recv_looks; /* at the receive queue */
	struct roce_recv_wc *recv_wcs;
	uint32_t num_recv_wcs;
	enum roce_event events[16];
	uint32_t num_events;
	bool bad_send, bad_recv;	 /* next fetch returns -EINVAL */
	bool broken_send, broken_recv;	 /* fetches return -EIO */
	bool lose_send_wc, lose_recv_wc; /* next completion gets lost */
};

struct sim_node {
	struct sim *sim;
	int index;
	struct roce_engine *engine;
	uint8_t *mem;
	size_t mem_size;
	struct sim_key keys[SIM_KEYS];
	struct sim_qp qps[SIM_QPS];
	int num_qps;
	uint32_t room; /* frames that transmit takes until it says -EAGAIN */
	uint32_t local_ops;
	bool restless; /* memory is another with each frame that is sent */
};

struct sim_frame {
	uint64_t at, order;
	int to;
	size_t len;
	uint8_t *data; /* allocated with exactly this length */
};

struct sim {
	uint64_t now, seed, order;
	struct sim_node nodes[2];
	double loss, duplicates, reorder;
	struct sim_frame *wire; /* a heap */
	uint32_t on_wire, wire_size;
	uint64_t frames, lost;
	bool ipv6;
	bool unplugged;
	uint64_t translated; /* how often memory was looked up */
	bool poll_recv;	     /* of QPs that are created */
	/* sees each frame that is sent; true: it is lost */
	bool (*filter)(struct sim *sim, int from, uint8_t *data, size_t len);
	void *filter_arg;
};

struct sim *sim_create(size_t mem_size, const struct roce_config *config);
void sim_destroy(struct sim *sim);
uint64_t sim_random(struct sim *sim);
void sim_address(const struct sim *sim, int node, struct roce_av *av);

/* until nothing is to be done or @ns have passed */
void sim_run(struct sim *sim, uint64_t ns);
#define SIM_LONG 3600000000000ULL

/* key 1000 + n is that of keys[n]; 0 has all memory and all rights in PD 1 */
void sim_key(struct sim_node *node, int index, uint32_t pd, uint64_t base,
	     uint64_t len, unsigned int access);

struct sim_qp *sim_qp(struct sim_node *node, enum roce_qp_type type,
		      struct sim_qp *shared);
/* usual attributes of a connection, for all of the transitions */
void sim_attributes(const struct sim *sim, struct roce_qp_attr *attr, int peer,
		    uint32_t peer_qpn);
int sim_modify(struct sim_qp *q, const struct roce_qp_attr *attr,
	       enum roce_qp_state to);
/* to RTS with @attr, of which address and QPN are set here */
void sim_connect(struct sim_qp *a, struct sim_qp *b, struct roce_qp_attr *attr);

void sim_post_send(struct sim_qp *q, const struct roce_send_wqe *wqe);
void sim_post_recv(struct sim_qp *q, uint64_t cookie, uint64_t addr,
		   uint32_t len, uint32_t key);
/* a WQE with one element, key 1000 at both ends, signaled */
struct roce_send_wqe sim_wqe(struct sim_qp *q, enum roce_wr_opcode opcode,
			     uint64_t local, uint32_t len, uint64_t remote);

#endif /* SIM_H */
