// SPDX-License-Identifier: GPL-2.0
/* Life of a device: its configuration, its socket, its log */
#define _GNU_SOURCE
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "vfu_priv.h"

#define LOG_LINES 50 /* a second: a client must not fill the disk */

static void log_line(struct vfu *vfu, const char *line)
{
	if (vfu->cfg.ops->log)
		vfu->cfg.ops->log(vfu->cfg.priv, line);
	else
		fprintf(stderr, "%s\n", line);
}

static void log_text(struct vfu *vfu, const char *text)
{
	struct timespec now;
	char line[400];

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	if (now.tv_sec != vfu->log_second) {
		if (vfu->log_lost) {
			snprintf(line, sizeof(line), "%s: %u lines dropped",
				 vfu->name, vfu->log_lost);
			log_line(vfu, line);
		}
		vfu->log_second = now.tv_sec;
		vfu->log_lines = vfu->log_lost = 0;
	}
	if (vfu->log_lines == LOG_LINES) {
		vfu->log_lost++;
		return;
	}
	vfu->log_lines++;
	snprintf(line, sizeof(line), "%s: %s", vfu->name, text);
	log_line(vfu, line);
}

void vfu_log(struct vfu *vfu, const char *fmt, ...)
{
	char text[320];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	log_text(vfu, text);
}

int vfu_refuse(struct vfu *vfu, int err, const char *fmt, ...)
{
	char why[240];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	vfu_log(vfu, "%s refused: %s (%s)", vfu_cmd_name(vfu->msg.hdr.cmd), why,
		strerrorname_np(err));
	return -err;
}

void vfu_do_reset(struct vfu *vfu, enum vfu_reset why)
{
	vfu_pci_reset(vfu);
	if (vfu->cfg.ops->reset)
		vfu->cfg.ops->reset(vfu->cfg.priv, why);
}

/* ---- configuration ---- */

static const char *check_bars(const struct vfu_config *cfg)
{
	const struct vfu_bar *bar;

	for (unsigned int i = 0; i < VFU_NUM_BARS; i++) {
		bar = &cfg->bar[i];
		if (!bar->size)
			continue;
		if (bar->size < 16 || bar->size & (bar->size - 1))
			return "a BAR is not a power of two from 16 on";
		if (bar->flags & ~(VFU_BAR_64 | VFU_BAR_PREFETCH))
			return "unknown flags of a BAR";
		if (!(bar->flags & VFU_BAR_64) && bar->size > 1UL << 31)
			return "a BAR needs VFU_BAR_64";
		if (bar->flags & VFU_BAR_64 &&
		    (i + 1 == VFU_NUM_BARS || cfg->bar[i + 1].size))
			return "no place for the upper half of a BAR";
	}
	return NULL;
}

static const char *check_msix(const struct vfu_config *cfg)
{
	uint64_t table = cfg->vectors * 16ULL;
	uint64_t pba = (cfg->vectors + 63ULL) / 64 * 8;
	uint64_t size;

	if (!cfg->vectors)
		return NULL;
	if (cfg->vectors > VFU_MAX_VECTORS)
		return "too many MSI-X vectors";
	if (cfg->msix_bar >= VFU_NUM_BARS)
		return "no such BAR for MSI-X";
	if (cfg->msix_table % 8 || cfg->msix_pba % 8)
		return "MSI-X table or PBA is not aligned";
	size = cfg->bar[cfg->msix_bar].size;
	if (cfg->msix_table + table > size || cfg->msix_pba + pba > size)
		return "MSI-X table or PBA is outside of its BAR";
	if (cfg->msix_table < cfg->msix_pba + pba &&
	    cfg->msix_pba < cfg->msix_table + table)
		return "MSI-X table and PBA overlap";
	return NULL;
}

/* ---- socket ---- */

/* true: a socket is in the way, but nobody listens */
static bool is_stale(const struct sockaddr_un *addr)
{
	struct stat st;
	bool stale;
	int fd;

	if (lstat(addr->sun_path, &st) || !S_ISSOCK(st.st_mode))
		return false;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return false;
	stale = connect(fd, (const void *)addr, sizeof(*addr)) &&
		errno == ECONNREFUSED;
	close(fd);
	return stale;
}

static int start_listening(struct vfu *vfu)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct epoll_event ev = { .events = EPOLLIN };

	if (strlen(vfu->cfg.path) >= sizeof(addr.sun_path))
		return -ENAMETOOLONG;
	strcpy(addr.sun_path, vfu->cfg.path);
	vfu->lfd =
		socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (vfu->lfd < 0 || fchmod(vfu->lfd, 0600))
		return -errno;
	if (is_stale(&addr))
		unlink(addr.sun_path);
	if (bind(vfu->lfd, (void *)&addr, sizeof(addr)))
		return -errno;
	vfu->path = strdup(vfu->cfg.path);
	if (!vfu->path) {
		unlink(addr.sun_path);
		return -ENOMEM;
	}
	if (listen(vfu->lfd, 4) ||
	    epoll_ctl(vfu->epfd, EPOLL_CTL_ADD, vfu->lfd, &ev))
		return -errno;
	return 0;
}

/* ---- life ---- */

int vfu_create(const struct vfu_config *cfg, struct vfu **out)
{
	const char *name = cfg->name ? cfg->name : "vfu";
	struct vfu *vfu;
	const char *why;
	int ret;

	*out = NULL;
	if (!cfg->ops || !cfg->ops->bar_read || !cfg->ops->bar_write)
		return -EINVAL;
	vfu = calloc(1, sizeof(*vfu));
	if (!vfu)
		return -ENOMEM;
	vfu->cfg = *cfg;
	vfu->epfd = vfu->lfd = vfu->fd = -1;
	ret = -ENOMEM;
	vfu->name = strdup(name);
	if (!vfu->name)
		goto err;
	ret = -EINVAL;
	why = check_bars(cfg);
	if (!why)
		why = check_msix(cfg);
	if (why) {
		vfu_log(vfu, "%s", why);
		goto err;
	}
	ret = -ENOMEM;
	vfu->eventfd = malloc((cfg->vectors + 1) * sizeof(*vfu->eventfd));
	if (!vfu->eventfd)
		goto err;
	for (unsigned int i = 0; i < cfg->vectors; i++)
		vfu->eventfd[i] = -1;
	vfu_pci_init(vfu);
	vfu->epfd = epoll_create1(EPOLL_CLOEXEC);
	if (vfu->epfd < 0) {
		ret = -errno;
		goto err;
	}
	if (cfg->path) {
		ret = start_listening(vfu);
		if (ret) {
			vfu_log(vfu, "cannot listen at %s: %s", cfg->path,
				strerror(-ret));
			goto err;
		}
	}
	*out = vfu;
	return 0;

err:
	vfu_destroy(vfu);
	return ret;
}

void vfu_destroy(struct vfu *vfu)
{
	if (!vfu)
		return;
	vfu_release_client(vfu);
	if (vfu->path)
		unlink(vfu->path);
	if (vfu->lfd >= 0)
		close(vfu->lfd);
	if (vfu->epfd >= 0)
		close(vfu->epfd);
	free(vfu->eventfd);
	free(vfu->path);
	free(vfu->name);
	free(vfu);
}
