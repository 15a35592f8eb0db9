/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A device that remembers what happened to it, and a client that speaks the
 * protocol to it, in one thread: a call sends and lets the device work until
 * the reply is there.
 */
#ifndef CLIENT_H
#define CLIENT_H

#include "../../../tests/check.h"
#include "vfu_priv.h"

#define VECTORS 40
#define BAR0_SIZE 0x100000ULL
#define BAR2_SIZE 0x200000000ULL
#define BAR4_SIZE 0x1000ULL
#define MSIX_TABLE 0x1000
#define MSIX_PBA 0x2000
#define GONE 1000 /* instead of an errno: the server has closed */

struct fixture {
	struct vfu *vfu;
	int fd; /* the client's */
	uint16_t id;
	uint8_t bar0[BAR0_SIZE];
	unsigned int reads, writes, resets[3], config;
	unsigned int bar; /* of the last access */
	uint64_t off;
	size_t len;
	int result;    /* for accesses */
	char log[400]; /* the last line */
	unsigned int lines;
	/* of the last reply */
	struct vfu_hdr hdr;
	uint8_t body[VFU_MAX_BODY];
};

extern const struct vfu_config fixture_config;

/* A device as above, or of `cfg`; without a client */
void fixture_init(struct fixture *f, const struct vfu_config *cfg);
/* Connect a client over a socket pair */
void fixture_connect(struct fixture *f);
/* All of it, with the handshake */
void fixture_start(struct fixture *f);
void fixture_stop(struct fixture *f);

/* Let the device work until nothing changes any more */
void run(struct fixture *f);

/* One message as it is; the header's size is `size`, `len` bytes follow */
void send_raw(struct fixture *f, uint16_t cmd, uint32_t flags, uint32_t size,
	      const void *body, size_t len, const int *fds, unsigned int nfds);
/* true: a reply is in hdr and body */
bool get_reply(struct fixture *f);

/* Returns the errno of the reply, 0, or GONE */
int call_fds(struct fixture *f, uint16_t cmd, const void *body, size_t len,
	     const int *fds, unsigned int nfds);
int call(struct fixture *f, uint16_t cmd, const void *body, size_t len);

int handshake(struct fixture *f);
int dma_map(struct fixture *f, int fd, uint64_t offset, uint64_t iova,
	    uint64_t size, uint32_t flags);
int dma_unmap(struct fixture *f, uint64_t iova, uint64_t size);
int region_read(struct fixture *f, uint32_t region, uint64_t off, void *buf,
		uint32_t len);
int region_write(struct fixture *f, uint32_t region, uint64_t off,
		 const void *buf, uint32_t len);
int set_irqs(struct fixture *f, uint32_t flags, uint32_t index, uint32_t start,
	     uint32_t count, const void *data, size_t len, const int *fds,
	     unsigned int nfds);

/* A memfd of `size` bytes; `flags` as of memfd_create() */
int memory(size_t size, unsigned int flags);
/* How many descriptors this process has */
unsigned int count_fds(void);

/* Run a test and see that it leaves no descriptor behind */
#define TEST(test)                                                        \
	do {                                                              \
		unsigned int before = count_fds();                        \
		test();                                                   \
		CHECK(count_fds() == before, "%s: %u descriptors", #test, \
		      count_fds() - before);                              \
	} while (0)

#endif /* CLIENT_H */
