/* SPDX-License-Identifier: GPL-2.0 */
#ifndef FRAME_H
#define FRAME_H

#include <stddef.h>
#include <stdint.h>

enum {
	FRAME_ARP = 42,
	FRAME_NA = 86,
};

/*
 * Gratuitous ARP of an address of 4 bytes, to all: as a request, and as a reply, since of
 * those who listen some heed the one, and some the other.
 */
void frame_arp(uint8_t frame[FRAME_ARP], const uint8_t mac[6],
	       const uint8_t ip[4], int is_reply);

/* An unsolicited neighbour advertisement of an address of 16 bytes, which overrides others */
void frame_na(uint8_t frame[FRAME_NA], const uint8_t mac[6],
	      const uint8_t ip[16]);

#endif /* FRAME_H */
