/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Packets of one's own making for one of two QPs, and what they answer.
 */
#ifndef CRAFT_H
#define CRAFT_H

#include "packet.h"
#include "sim.h"

#define MTU 1024
#define PSN 0xfffff0

struct crafted {
	uint8_t opcode;
	uint32_t psn;
	uint64_t addr;
	uint32_t rkey, len; /* of the RETH */
	uint32_t payload;
	uint8_t syndrome;
	uint64_t add, compare;
	bool quiet; /* asks for no ACK */
};

#define RETH(a, n) .addr = (a), .rkey = 1000, .len = (n)

extern struct sim *sim;
extern struct roce_config config; /* of the engines that setup() makes */
extern struct sim_qp *a, *b;
/* by the node that sent it */
extern uint8_t last[2][8192];
extern size_t last_len[2];
extern uint32_t count[2];
extern bool swallow[2];

void setup(enum roce_qp_type type, bool ipv6);
size_t craft(uint8_t *frame, int to, const struct crafted *c);
uint32_t icrc(const uint8_t *frame, size_t len);
enum parse_result parse(struct packet *pkt, const uint8_t *data, size_t len);

#endif /* CRAFT_H */
