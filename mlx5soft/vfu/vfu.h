/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A vfio-user server: a PCI device in this process, for a QEMU with
 * vfio-user-pci. The library speaks the protocol, keeps the configuration
 * space, the client's memory and its interrupts; the device brings callbacks.
 *
 * One struct vfu is one device with at most one client at a time. There are no
 * globals: several may live in a process. One vfu belongs to one thread; calls
 * on the same vfu from several threads need a lock of the caller's. Callbacks
 * run inside vfu_process() (VFU_RESET_DISCONNECT also inside vfu_disconnect())
 * and may use everything here but vfu_process(), vfu_attach(),
 * vfu_disconnect() and vfu_destroy().
 *
 * No call blocks. Sizes and offsets are in bytes; a function returns 0 or a
 * negative errno unless said otherwise. Hosts are little-endian.
 */
#ifndef VFU_H
#define VFU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

#define VFU_NUM_BARS 6
#define VFU_CONFIG_SIZE 4096 /* PCIe configuration space */
#define VFU_MAX_VECTORS 2048 /* MSI-X */
#define VFU_MAX_XFER 65536   /* most that one BAR or config access moves */
#define VFU_MAX_MAPS 256     /* of the client's memory, at the same time */

struct vfu;

enum vfu_reset {
	VFU_RESET_DEVICE,     /* the client asked: a reset of the machine */
	VFU_RESET_FLR,	      /* the guest set the Function Level Reset bit */
	VFU_RESET_DISCONNECT, /* the client is gone, its memory as well */
};

/* `priv` is that of struct vfu_config. All but bar_read and bar_write may be
 * NULL.
 */
struct vfu_ops {
	/*
	 * The guest reads or writes `len` bytes at `off` of a BAR; off + len
	 * is inside the BAR and 1 <= len <= VFU_MAX_XFER. QEMU sends 1, 2, 4 or
	 * 8, naturally aligned, other clients may send anything. `buf` is
	 * aligned to 8 bytes, and zeroed before a read. An errno goes to the
	 * client as the reply; a device without an opinion returns 0.
	 *
	 * QEMU keeps the MSI-X table itself, but reads the PBA here (zeros:
	 * nothing pending). Other clients may access both: writes can be
	 * ignored.
	 */
	int (*bar_read)(void *priv, unsigned int bar, uint64_t off, void *buf,
			size_t len);
	int (*bar_write)(void *priv, unsigned int bar, uint64_t off,
			 const void *buf, size_t len);

	/*
	 * Back to the state after power-on. The configuration space is there
	 * already, so vfu_bus_master() is false. With VFU_RESET_DISCONNECT no
	 * memory and no interrupt is left; with the others both stay, as the
	 * client owns them.
	 */
	void (*reset)(void *priv, enum vfu_reset why);

	/* The client wrote `len` bytes of config space at `off`; read with
	 * vfu_pci_read() what has become of them.
	 */
	void (*config_written)(void *priv, unsigned int off, size_t len);

	/* One line without a newline; NULL: to stderr. At most 50 a second. */
	void (*log)(void *priv, const char *line);
};

#define VFU_BAR_64 1 /* takes the next BAR's place too, which must be empty */
#define VFU_BAR_PREFETCH 2

struct vfu_bar {
	uint64_t size;	    /* a power of two, at least 16; 0: no such BAR */
	unsigned int flags; /* VFU_BAR_* */
};

struct vfu_config {
	const char *name; /* in log lines; NULL: "vfu" */
	const char *path; /* of the socket; NULL: only vfu_attach() */

	uint16_t vendor, device, subsys_vendor, subsys;
	uint32_t class_code; /* 24 bits: class, subclass, interface */
	uint8_t revision;
	struct vfu_bar bar[VFU_NUM_BARS];

	/* 0 vectors: no MSI-X. Table (16 bytes a vector) and PBA (8 bytes for
	 * each 64 vectors) lie in msix_bar, at multiples of 8.
	 */
	unsigned int vectors, msix_bar;
	uint32_t msix_table, msix_pba;

	/*
	 * Also take memory the client can shrink behind our back. Touching
	 * what is gone then ends the process with SIGBUS: only for clients
	 * which are trusted. See "Guest memory".
	 */
	bool trust_memory;

	FILE *record; /* requests are written to it, see fuzz_ops.h; or NULL */
	const struct vfu_ops *ops; /* must outlive the vfu */
	void *priv;
};

/* ---- life ---- */

/*
 * Make a device of `cfg` (copied), with a PCIe capability that offers FLR and
 * an MSI-X capability. With a path, listens there: mode 0600, a socket which
 * nobody serves any more is replaced. -EINVAL for a configuration that makes no
 * sense, the log says why; -EADDRINUSE if the path is served or is not a
 * socket; others as from socket() and bind().
 */
int vfu_create(const struct vfu_config *cfg, struct vfu **out);

/* Drops the client (without a callback), unlinks the socket. NULL is fine. */
void vfu_destroy(struct vfu *vfu);

/*
 * Serve a connected SOCK_STREAM Unix socket, which the vfu owns from now on
 * (also on failure). -EBUSY if there is a client.
 */
int vfu_attach(struct vfu *vfu, int fd);

/* Drop the client as if it had gone, with the callback */
void vfu_disconnect(struct vfu *vfu);

/* True from the connection on, before the first message */
bool vfu_connected(const struct vfu *vfu);

/* ---- event loop ---- */

/*
 * One descriptor for poll(), select() or epoll (level-triggered): when it is
 * readable, call vfu_process(). The same for the life of the vfu.
 */
int vfu_fd(const struct vfu *vfu);

/*
 * Do what is there to do: accept, receive, answer. Handles a limited number of
 * messages, so that a client which never stops cannot starve the loop. Returns
 * how many; 0 is normal. A client that sends half a message, or does not read
 * its replies, is left waiting and costs nothing.
 */
int vfu_process(struct vfu *vfu);

/* ---- Guest memory ---- */

/*
 * The client maps its memory at IO virtual addresses (without a vIOMMU:
 * guest-physical). Maps change only inside vfu_process() and vfu_disconnect():
 * pointers from here are valid until the next of these calls; inside a
 * callback, until it returns.
 *
 * What a client maps without a file descriptor (ROMs, other devices' BARs) is
 * known, but not accessible. Memory must be a memfd that cannot shrink:
 * F_SEAL_SHRINK is set, or can be set by us. The guest can change memory at
 * any time: read a value once, then check it.
 *
 * Nothing here looks at the Bus Master bit: vfu_bus_master() does.
 */

/*
 * Where [iova, iova + len) lies, for reading and writing; NULL if it is not
 * inside one map that permits both. len == 0 is NULL.
 */
void *vfu_dma_ptr(struct vfu *vfu, uint64_t iova, size_t len);

/* The same for reading only */
const void *vfu_dma_ptr_ro(struct vfu *vfu, uint64_t iova, size_t len);

/*
 * Copy from or to guest memory, also over the border of maps. -EFAULT if a
 * part is not mapped, not accessible, or wraps around; -EACCES if the client
 * did not permit the direction. On failure what comes first may have been
 * copied. len == 0 is fine.
 */
int vfu_dma_read(struct vfu *vfu, uint64_t iova, void *buf, size_t len);
int vfu_dma_write(struct vfu *vfu, uint64_t iova, const void *buf, size_t len);

/*
 * Changes whenever a map comes or goes, never repeats: who keeps pointers
 * longer than above compares it, and asks again when it differs.
 */
uint64_t vfu_dma_generation(const struct vfu *vfu);

/* ---- interrupts ---- */

/*
 * Raise MSI-X vector `vector`. -EINVAL: no such vector; -ENOENT: the client has
 * set no eventfd for it (vector masked or not in use), the interrupt is lost;
 * -EAGAIN: its counter is full, so it is pending anyway.
 */
int vfu_irq(struct vfu *vfu, unsigned int vector);

/* ---- configuration space ---- */

/*
 * The value of 1, 2 or 4 bytes at `off`, as the guest would read it. 0 for
 * what is outside.
 */
uint32_t vfu_pci_read(const struct vfu *vfu, unsigned int off, size_t len);

/*
 * Set `len` bytes at `off` in the present and in the reset value; `wmask`
 * (NULL: none) has ones for the bits the guest may write. -EINVAL outside.
 */
int vfu_pci_set(struct vfu *vfu, unsigned int off, const void *value,
		const void *wmask, size_t len);

/*
 * Change `len` (1, 2 or 4) bytes at `off` until the next reset, as hardware
 * does with a status register. -EINVAL outside.
 */
int vfu_pci_write(struct vfu *vfu, unsigned int off, uint32_t value,
		  size_t len);

/*
 * Append a capability of `len` bytes, whose first two (ID and next) are filled
 * in here. `wmask` as above. Returns its offset; -ENOSPC if the first 256 bytes
 * are full, -EINVAL for a len below 2.
 */
int vfu_pci_add_cap(struct vfu *vfu, uint8_t id, const void *cap,
		    const void *wmask, size_t len);

/* May the device touch memory and raise interrupts? */
bool vfu_bus_master(const struct vfu *vfu);

#ifdef __cplusplus
}
#endif

#endif /* VFU_H */
