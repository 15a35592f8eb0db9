/* SPDX-License-Identifier: GPL-2.0 */
/*
 * RoCEv2 packets: IBA chapters 5 and 9, annex A17. Internal.
 */
#ifndef PACKET_H
#define PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../be.h"
#include "../headers.h"

#define BTH_BYTES 12
#define DETH_BYTES 8
#define XRCETH_BYTES 4
#define RETH_BYTES 16
#define ATOMICETH_BYTES 28
#define AETH_BYTES 4
#define ATOMICACKETH_BYTES 8
#define IMM_BYTES 4
#define ICRC_BYTES 4
#define MAX_EXT_BYTES (XRCETH_BYTES + ATOMICETH_BYTES)
#define MAX_HEADER_BYTES \
	(ETH_BYTES + IPV6_BYTES + UDP_BYTES + BTH_BYTES + MAX_EXT_BYTES)
#define MAX_TAIL_BYTES (3 + ICRC_BYTES) /* with pad */

#define PSN_MASK 0xffffffU
#define QPN_MASK 0xffffffU
#define MAX_PSNS 0x800000U /* half of the numbers: what may be outstanding */
#define DEFAULT_PKEY 0xffffU

/* the upper three bits of the opcode */
enum service {
	SERVICE_RC = 0x00,
	SERVICE_UC = 0x20,
	SERVICE_UD = 0x60,
	SERVICE_XRC = 0xa0,
};

/* the lower five bits */
enum operation {
	OP_SEND_FIRST,
	OP_SEND_MIDDLE,
	OP_SEND_LAST,
	OP_SEND_LAST_IMM,
	OP_SEND_ONLY,
	OP_SEND_ONLY_IMM,
	OP_WRITE_FIRST,
	OP_WRITE_MIDDLE,
	OP_WRITE_LAST,
	OP_WRITE_LAST_IMM,
	OP_WRITE_ONLY,
	OP_WRITE_ONLY_IMM,
	OP_READ_REQUEST,
	OP_READ_RESPONSE_FIRST,
	OP_READ_RESPONSE_MIDDLE,
	OP_READ_RESPONSE_LAST,
	OP_READ_RESPONSE_ONLY,
	OP_ACKNOWLEDGE,
	OP_ATOMIC_ACKNOWLEDGE,
	OP_COMPARE_SWAP,
	OP_FETCH_ADD,
	OP_SEND_LAST_INV = 0x16,
	OP_SEND_ONLY_INV,
};

enum packet_flags {
	PKT_VALID = 1 << 0,
	PKT_SEND = 1 << 1,
	PKT_WRITE = 1 << 2,
	PKT_READ = 1 << 3,
	PKT_ATOMIC = 1 << 4,
	PKT_RESPONSE = 1 << 5,
	PKT_START = 1 << 6, /* of a message */
	PKT_END = 1 << 7,
	PKT_PAYLOAD = 1 << 8,
	PKT_DETH = 1 << 9,
	PKT_RETH = 1 << 10,
	PKT_ATOMICETH = 1 << 11,
	PKT_AETH = 1 << 12,
	PKT_ATOMICACKETH = 1 << 13,
	PKT_IMM = 1 << 14,
	PKT_INV = 1 << 15,
	PKT_XRCETH = 1 << 16,
};

/* AETH syndrome, IBA table 44 f. */
enum syndrome {
	AETH_ACK = 0x1f, /* without end-to-end credits */
	AETH_RNR_NAK = 0x20,
	AETH_NAK_SEQUENCE = 0x60,
	AETH_NAK_INVALID_REQUEST = 0x61,
	AETH_NAK_REMOTE_ACCESS = 0x62,
	AETH_NAK_REMOTE_OPERATION = 0x63,
};
#define AETH_TYPE_MASK 0x60
#define AETH_VALUE_MASK 0x1f

/* a received packet; pointers go into the frame */
struct packet {
	const uint8_t *eth;
	const uint8_t *ip;
	const uint8_t *ext; /* headers behind the BTH and the XRCETH */
	const uint8_t *payload;
	uint32_t payload_len; /* without pad */
	uint32_t flags;	      /* enum packet_flags */
	uint32_t dest_qpn;
	uint32_t psn;
	uint32_t srqn; /* of the XRCETH */
	uint16_t pkey;
	uint8_t service;
	uint8_t op;
	uint8_t tclass;
	bool v6;
	bool solicited;
	bool ack_req;
	uint8_t sgid[16];
	uint8_t dgid[16];
};

enum parse_result {
	PARSE_OK,
	PARSE_NOT_ROCE,
	PARSE_MALFORMED,
	PARSE_BAD_ICRC,
};

/* Addresses only: enough to know whether it is for us. */
enum parse_result packet_parse_network(struct packet *pkt, const void *frame,
				       size_t len);
/* The rest, after packet_parse_network() returned PARSE_OK. */
enum parse_result packet_parse_transport(struct packet *pkt);

/* enum packet_flags of an opcode, 0 for those that do not exist */
uint32_t packet_flags(uint8_t opcode);

/* what differs between the packets of a QP */
struct header {
	const uint8_t *smac, *dmac;
	const uint8_t *sgid, *dgid;
	uint8_t tclass;
	uint8_t hop_limit;
	uint32_t flow_label;
	uint16_t ip_id; /* IPv4 */
	uint16_t udp_sport;
	uint8_t opcode; /* with service */
	bool solicited;
	bool ack_req;
	uint32_t dest_qpn;
	uint32_t psn;
	const uint8_t *ext;
	uint32_t ext_len;
};

/*
 * Write the headers in front of @payload, where MAX_HEADER_BYTES are free, pad
 * and ICRC behind it, where MAX_TAIL_BYTES are. The payload must not change any
 * more. Returns where the frame begins, and how long it is.
 */
uint8_t *packet_build(const struct header *h, uint8_t *payload,
		      uint32_t payload_len, uint32_t *len);

bool gid_is_ipv4(const uint8_t gid[16]);
/* The MAC address of a multicast GID; false: it is none */
bool gid_multicast_mac(const uint8_t gid[16], uint8_t mac[6]);

#endif /* PACKET_H */
