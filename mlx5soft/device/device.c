// SPDX-License-Identifier: GPL-2.0
/* A NIC's life, and its place on the PCI bus. */

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "commands/cmd.h"
#include "cq.h"
#include "eq.h"
#include "nic.h"
#include "rdma/rdma.h"
#include "record.h"

#define VENDOR_MELLANOX 0x15b3
#define DEVICE_VF 0x101e /* "ConnectX Family mlx5Gen Virtual Function" */
#define CLASS_ETHERNET 0x020000
#define MSIX_BAR 2
#define LOG_LINES 64 /* a second */

static void put_line(void *priv, const char *line)
{
	struct nic *nic = priv;

	if (nic->cfg.log)
		nic->cfg.log(nic->cfg.log_priv, line);
	else
		fprintf(stderr, "%s\n", line);
}

static void log_lost(struct nic *nic)
{
	char line[64];

	if (!nic->log.lost)
		return;
	snprintf(line, sizeof(line), "mlx5soft: %u lines left out",
		 nic->log.lost);
	nic->log.lost = 0;
	put_line(nic, line);
}

void nic_log(struct nic *nic, const char *fmt, ...)
{
	char line[256];
	struct timespec now;
	va_list ap;
	int n;

	clock_gettime(CLOCK_MONOTONIC, &now);
	if (now.tv_sec != nic->log.second) {
		log_lost(nic);
		nic->log.second = now.tv_sec;
		nic->log.lines = 0;
	}
	if (nic->log.lines == LOG_LINES && !nic->cfg.verbose) {
		nic->log.lost++;
		return;
	}
	if (nic->log.lines < LOG_LINES)
		nic->log.lines++;
	n = snprintf(line, sizeof(line), "mlx5soft: ");
	va_start(ap, fmt);
	vsnprintf(line + n, sizeof(line) - n, fmt, ap);
	va_end(ap);
	put_line(nic, line);
}

uint64_t nic_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

static void reset(void *priv, enum vfu_reset why)
{
	struct nic *nic = priv;

	(void)why;
	obj_destroy_all(nic);
	vport_reset(nic);
	nic->wire.count = 0; /* made by what is gone now, and not sent yet */
	nic->up = nic->enabled = false;
	nic->cmdq = 0;
	nic->cmdq_known = false;
	nic->cmd_rung = nic->cmd_slots = 0;
	nic->issi = 0;
	nic->cq_half_uar = 0;
}

/*
 * Without bus mastering the device neither touches memory nor raises an
 * interrupt: nic_tick() does nothing, frames that come are lost. What was rung
 * meanwhile has waited: queues run with the next nic_tick(), the rest here.
 */
static void config_written(void *priv, unsigned int off, size_t len)
{
	struct nic *nic = priv;
	uint32_t rung = nic->cmd_rung;

	(void)off;
	(void)len;
	if (!vfu_bus_master(nic->vfu))
		return;
	nic->cmd_rung = 0;
	cmd_doorbell(nic, rung);
	eq_resume(nic);
}

static const struct vfu_ops ops = {
	.bar_read = bar_read,
	.bar_write = bar_write,
	.reset = reset,
	.config_written = config_written,
	.log = put_line,
};

int nic_create(const struct nic_config *cfg, struct nic **out)
{
	struct vfu_config pci = {
		.name = "mlx5soft",
		.path = cfg->path,
		.vendor = VENDOR_MELLANOX,
		.device = DEVICE_VF,
		.subsys_vendor = VENDOR_MELLANOX,
		.subsys = 1,
		.class_code = CLASS_ETHERNET,
		.bar[0] = { BAR_SIZE, VFU_BAR_64 | VFU_BAR_PREFETCH },
		.bar[MSIX_BAR] = { 0x10000, 0 },
		.vectors = VECTORS,
		.msix_bar = MSIX_BAR,
		.msix_table = 0,
		.msix_pba = 0x2000,
		.ops = &ops,
	};
	struct nic *nic = calloc(1, sizeof(*nic));
	int ret = -ENOMEM, i;

	if (!nic)
		return ret;
	nic->cfg = *cfg;
	TAILQ_INIT(&nic->cq_timed);
	nic->cq_due = UINT64_MAX;
	TAILQ_INIT(&nic->tx_run);
	for (i = 0; i <= MAX_LOOKS; i++)
		TAILQ_INIT(&nic->rx_flush[i]);
	TAILQ_INIT(&nic->holding);
	nic->counted_from = nic_now();
	nic->wire.fd = cfg->wire;
	nic->wire.vnet = cfg->wire_trains;
	nic_wire_trains(nic, true);
	/* EUI-64 of the MAC address */
	for (i = 0; i < 6; i++)
		nic->guid |= (uint64_t)cfg->mac[i]
			     << (i < 3 ? 56 - 8 * i : 40 - 8 * i);
	nic->guid = (nic->guid ^ 1ULL << 57) | 0xfffeULL << 24;
	ret = rdma_create(nic);
	if (ret) {
		free(nic);
		return ret;
	}
	ret = nic_limit(nic, cfg->rate, cfg->delay);
	if (ret) {
		nic_destroy(nic);
		return ret;
	}
	nic->cmd_in = malloc(CMD_MAX + CMD_SPARE);
	nic->cmd_out = malloc(CMD_OUT_MAX + CMD_SPARE);
	objs_init(nic);
	vport_reset(nic);
	pci.priv = nic;
	ret = cfg->record ? record_open(nic, cfg->record) : 0;
	if (ret) {
		nic_destroy(nic);
		return ret;
	}
	pci.record = nic->record_vfu;
	ret = -ENOMEM;
	if (nic->cmd_in && nic->cmd_out && caps_init(nic))
		ret = vfu_create(&pci, &nic->vfu);
	if (ret) {
		nic_destroy(nic);
		return ret;
	}
	*out = nic;
	return 0;
}

void nic_destroy(struct nic *nic)
{
	if (!nic)
		return;
	obj_destroy_all(nic);
	vfu_destroy(nic->vfu);
	roce_engine_destroy(nic->roce);
	log_lost(nic);
	caps_free(nic);
	free(nic->cmd_in);
	free(nic->cmd_out);
	record_close(nic);
	free(nic->wire.limit);
	free(nic);
}

struct vfu *nic_vfu(struct nic *nic)
{
	return nic->vfu;
}

#define HELD_RETRY_NS 1000000 /* a frame that waits for a buffer */

void nic_wire_trains(struct nic *nic, bool send)
{
	nic->wire.trains = send && nic->wire.vnet;
}

int nic_limit(struct nic *nic, uint64_t rate, uint64_t delay)
{
	return wire_limit(&nic->wire, nic_now(), rate, delay);
}

/* What has arrived leaves, and perhaps there is room now. */
static void run_limit(struct nic *nic, uint64_t t, bool waited)
{
	wire_run(&nic->wire, t, waited);
	if (nic->tx_blocked && wire_flush(&nic->wire) && wire_room(&nic->wire))
		nic->tx_blocked = false;
}

bool nic_tick(struct nic *nic)
{
	uint64_t t = nic_now();
	/* Who is first may fill the wire: the one that did not send last */
	bool more, eth_first = nic->eth_first, waited = nic->tx_waits;

	if (nic->wire.limit) /* of its frames the device knows no more */
		run_limit(nic, t, waited);
	nic->tx_waits = false;
	if (!vfu_bus_master(nic->vfu))
		return false;
	cmd_tick(nic, t);
	if (nic->flush_due && t >= nic->flush_due)
		eth_flush(nic);
	more = eth_retry_held(nic); /* perhaps there are buffers now */
	more |= eth_first && eth_tick(nic);
	more |= roce_tick(nic->roce, t);
	if (!eth_first)
		more |= eth_tick(nic);
	if (nic->cq_due <= t)
		cq_tick(nic, t);
	if (!wire_flush(&nic->wire))
		nic->tx_blocked = true;
	nic->tx_waits = nic->tx_blocked || (waited && more);
	return more;
}

/* ...of what needs the guest's memory */
static uint64_t work_due(const struct nic *nic, uint64_t t)
{
	uint64_t due = roce_next_deadline(nic->roce);

	if (nic->cq_due < due)
		due = nic->cq_due;
	if (nic->flush_due && nic->flush_due < due)
		due = nic->flush_due;
	if (nic->cmd_slots && nic->cmd_began + nic->cmd_time < due)
		due = nic->cmd_began + nic->cmd_time;
	if (!TAILQ_EMPTY(&nic->tx_run) && !nic->tx_blocked)
		return 0;
	if (!TAILQ_EMPTY(&nic->holding) && t + HELD_RETRY_NS < due)
		due = t + HELD_RETRY_NS;
	return due;
}

int64_t nic_due(const struct nic *nic)
{
	uint64_t due = wire_due(&nic->wire, nic->tx_blocked), t = nic_now();
	bool runs = vfu_bus_master(nic->vfu);
	uint64_t work = runs ? work_due(nic, t) : UINT64_MAX;

	if (work < due)
		due = work;
	if (due == UINT64_MAX)
		return -1;
	return due <= t ? 0 : due - t;
}
