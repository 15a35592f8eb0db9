/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A ConnectX as the stock mlx5 drivers expect one. No globals: several may
 * live in a process, each in one thread at a time.
 */
#ifndef MLX5SOFT_DEVICE_H
#define MLX5SOFT_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

struct nic;
struct vfu;

/* What a guest may have us allocate; its own memory is not counted. */
#define NIC_MAX_MEMORY (1ULL << 30)

struct nic_config {
	const char *path; /* of the socket; NULL: only nic_vfu() */
	uint8_t mac[6];
	/* Ethernet frames, one per read() or write(), or -1: no wire. It must
	 * not block, and stays the caller's.
	 */
	int wire;
	/* `wire` is a tap that knows UDP segmentation offload: in front of
	 * each frame is a struct virtio_net_hdr, and the kernel cuts trains of
	 * packets (wire.h).
	 */
	bool wire_trains;
	uint64_t rate, delay; /* nic_limit() from the beginning */
	/* A folder: what comes from outside is written to it, see cmd_ops.h and
	 * vfu_config.record; NULL: not
	 */
	const char *record;
	bool verbose; /* a log line for each command, and no limit of lines */
	/* One line without a newline; NULL: to stderr */
	void (*log)(void *priv, const char *line);
	void *log_priv;
};

int nic_create(const struct nic_config *cfg, struct nic **out);
void nic_destroy(struct nic *nic);

struct vfu *nic_vfu(struct nic *nic);

/* poll() tells this of the wire. False: no frame has come. */
bool nic_wire(struct nic *nic, short events);

/* The events to poll() it for, which change */
short nic_wire_events(const struct nic *nic);

/* Send trains, or each packet as a frame of its own. From the beginning they
 * are sent, if nic_config.wire_trains permits.
 */
void nic_wire_trains(struct nic *nic, bool send);

/*
 * What is sent leaves at no more than `rate` bits per second and arrives `delay`
 * ns late, see link.h; 0 and 0: no limit. What is on its way already begins anew.
 * Returns 0, -ERANGE if rate and delay together are too much, or -ENOMEM.
 */
int nic_limit(struct nic *nic, uint64_t rate, uint64_t delay);

/* Let the transport work. Returns true if there is more to do at once. */
bool nic_tick(struct nic *nic);

/* In how many ns nic_tick() is due; -1: not before something else happens */
int64_t nic_due(const struct nic *nic);

#endif /* MLX5SOFT_DEVICE_H */
