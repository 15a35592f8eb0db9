/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The part of RDMA netlink that is wanted: messages, without a socket
 */
#ifndef MIGRD_NLDEV_H
#define MIGRD_NLDEV_H

#include <stdbool.h>
#include <stdint.h>

#include <libmnl/libmnl.h>

enum {
	NLDEV_BYTES = 16384
}; /* of a message */

struct nldev_device {
	uint32_t index;
	char name[64];
};

/* an object's entry */
struct nldev_object {
	uint32_t tid; /* of the thread that has made it, 0 if it has ended */
	uint32_t pdn;
	bool has_pdn, is_kernels;
};

/* devices: a dump */
struct nlmsghdr *nldev_ask_devices(void *buf, uint32_t seq);
bool nldev_is_device(const struct nlmsghdr *h, struct nldev_device *d);

/* of a device, a QP of a port by its number, or a PD */
struct nlmsghdr *nldev_ask_qp(void *buf, uint32_t seq, uint32_t device,
			      uint32_t port, uint32_t qpn);
struct nlmsghdr *nldev_ask_pd(void *buf, uint32_t seq, uint32_t device,
			      uint32_t pdn);
bool nldev_is_object(const struct nlmsghdr *h, struct nldev_object *o);

/* all MRs of a device: a dump, whose messages have some each */
struct nlmsghdr *nldev_ask_mrs(void *buf, uint32_t seq, uint32_t device);
void nldev_each_mr(const struct nlmsghdr *h,
		   void (*each)(const struct nldev_object *o, void *arg),
		   void *arg);

#endif
