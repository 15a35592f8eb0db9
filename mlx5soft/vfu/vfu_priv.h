/* SPDX-License-Identifier: GPL-2.0 */
/* What the files of the library share, and the protocol on the wire */
#ifndef VFU_PRIV_H
#define VFU_PRIV_H

#include <sys/types.h>

#include "vfu.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the protocol and the configuration space are copied as they are"
#endif

#define VFU_MAX_FDS 16 /* in one message */
#define VFU_PAGE 4096U /* granularity of DMA maps */
#define VFU_NUM_IRQS 5 /* types, as VFIO_PCI_NUM_IRQS */

/* ---- wire ---- */

enum {
	VFU_CMD_VERSION = 1,
	VFU_CMD_DMA_MAP = 2,
	VFU_CMD_DMA_UNMAP = 3,
	VFU_CMD_GET_INFO = 4,
	VFU_CMD_GET_REGION_INFO = 5,
	VFU_CMD_GET_IRQ_INFO = 7,
	VFU_CMD_SET_IRQS = 8,
	VFU_CMD_REGION_READ = 9,
	VFU_CMD_REGION_WRITE = 10,
	VFU_CMD_RESET = 13,
};

#define VFU_HDR_TYPE 0xf
#define VFU_HDR_REPLY 0x1
#define VFU_HDR_NO_REPLY 0x10
#define VFU_HDR_ERROR 0x20

struct vfu_hdr {
	uint16_t id, cmd;
	uint32_t size;	/* with this header */
	uint32_t flags; /* VFU_HDR_* */
	uint32_t error; /* an errno */
};

struct vfu_msg_version {
	uint16_t major, minor;
	char caps[]; /* JSON, with its NUL */
};

#define VFU_DMA_READ 1
#define VFU_DMA_WRITE 2
#define VFU_DMA_MMAP 4
#define VFU_DMA_FILE 8

struct vfu_msg_map {
	uint32_t argsz, flags;
	uint64_t offset, iova, size;
};

#define VFU_UNMAP_ALL 2

struct vfu_msg_unmap {
	uint32_t argsz, flags;
	uint64_t iova, size;
};

struct vfu_msg_rw {
	uint64_t offset;
	uint32_t region, count;
	uint8_t data[];
};

#define VFU_MAX_BODY (sizeof(struct vfu_msg_rw) + VFU_MAX_XFER)

/* ---- state ---- */

struct vfu_map {
	uint64_t iova, last;
	uint8_t *ptr; /* NULL: not accessible */
	int prot;     /* PROT_* */
};

struct vfu {
	struct vfu_config cfg;
	char *name, *path;
	int epfd, lfd;
	unsigned int log_lines, log_lost;
	int64_t log_second;

	/* the client: fd is -1 without one */
	int fd;
	bool ready;	 /* the version is agreed upon */
	bool drop;	 /* after this message */
	uint32_t events; /* what epoll waits for on fd */

	/*
	 * One message at a time, and its reply in the same place. While `sent`
	 * is behind `out`, nothing is received.
	 */
	struct {
		struct vfu_hdr hdr;
		_Alignas(16) uint8_t body[VFU_MAX_BODY];
	} msg;
	size_t got, skip; /* bytes: received; to throw away */
	size_t out, sent;
	int fds[VFU_MAX_FDS]; /* -1: somebody took it */
	unsigned int nfds;
	bool fds_lost;

	struct vfu_map map[VFU_MAX_MAPS]; /* sorted */
	unsigned int nmaps, hit;
	uint64_t generation;

	int *eventfd; /* of each vector, or -1 */

	uint8_t pci[VFU_CONFIG_SIZE], pci_reset[VFU_CONFIG_SIZE];
	uint8_t pci_wmask[VFU_CONFIG_SIZE];
	unsigned int cap_link, cap_end; /* where the next capability goes */
	unsigned int devctl;		/* offset of PCI_EXP_DEVCTL */
};

/* vfu.c */
void vfu_log(struct vfu *vfu, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Log why the present message is refused; returns -err */
int vfu_refuse(struct vfu *vfu, int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void vfu_do_reset(struct vfu *vfu, enum vfu_reset why);

/* vfu_conn.c: forget the client, without a callback */
void vfu_release_client(struct vfu *vfu);

/*
 * vfu_cmd.c: do the message in vfu->msg. Returns the length of the reply's
 * body, which is in vfu->msg.body, or a negative errno.
 */
ssize_t vfu_do_message(struct vfu *vfu);
const char *vfu_cmd_name(uint16_t cmd);

/* vfu_record.c: to vfu_config.record, if it is there */
void vfu_record(const struct vfu *vfu, uint16_t cmd, const void *body,
		size_t len);

/* vfu_dma.c; these and the next return as vfu_do_message() */
ssize_t vfu_do_map(struct vfu *vfu, size_t len);
ssize_t vfu_do_unmap(struct vfu *vfu, size_t len);
void vfu_unmap_all(struct vfu *vfu);

/* vfu_irq.c */
ssize_t vfu_do_irq_info(struct vfu *vfu, size_t len);
ssize_t vfu_do_set_irqs(struct vfu *vfu, size_t len);
void vfu_irq_close(struct vfu *vfu, unsigned int first, unsigned int count);

/* vfu_pci.c */
void vfu_pci_init(struct vfu *vfu);
void vfu_pci_reset(struct vfu *vfu);
/* the client's access; off + len is inside */
void vfu_pci_client_write(struct vfu *vfu, unsigned int off, const uint8_t *buf,
			  size_t len);

#endif /* VFU_PRIV_H */
