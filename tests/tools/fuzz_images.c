// SPDX-License-Identifier: GPL-2.0
/*
 * LOAD: whole images, signed by a kernel of the cluster or not, and images that
 * are signed and wrong. Also what other attacks need to have signed.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cluster_key.h"
#include "migr_fuzz.h"

uint32_t fuzz_key_id;

_Static_assert(CLUSTER_KEY_MAC == RXE_MIGR_IMAGE_MAC_BYTES, "one algorithm");

void image_sign(void *image, size_t length)
{
	struct rxe_migr_image_hdr *hdr = image;

	hdr->length = length;
	hdr->key_id = (uint8_t)fuzz_key_id;
	hdr->crc32 = 0;
	memset(hdr->mac, 0, sizeof(hdr->mac));
	cluster_key_mac(image, length, hdr->mac);
}

static char *append(char *to, const void *from, size_t length)
{
	if (length)
		memcpy(to, from, length);
	return to + length;
}

int load_as(struct rig *rig, int fd, uint32_t handle, const void *record,
	    size_t length)
{
	const struct rxe_migr_rec_context *ctx = rig->img.context;
	char *image = malloc(rig->img.length + length), *end = image;
	int ret;

	MUST(image);
	end = append(end, rig->image,
		     (size_t)((char *)ctx - (char *)rig->image) +
			     ctx->rec.length);
	for (unsigned int i = 0; i < rig->img.count; i++) {
		const struct rxe_migr_rec *rec = rig->img.records[i];

		if (rec->handle != handle)
			end = append(end, rec, rec->length);
	}
	/* at the end, where a length too far does not find another record */
	end = append(end, record, length);
	image_sign(image, (size_t)(end - image));
	ret = migr_cmd_load(fd, image, (size_t)(end - image));
	free(image);
	return ret;
}

int refill_as(struct rig *rig, int fd, uint16_t object, uint32_t handle,
	      const void *record, size_t length)
{
	int ret = load_as(rig, fd, handle, record, length);

	return ret ?: raw_refill(fd, object, handle);
}

int load_good(struct rig *rig, int fd)
{
	return migr_cmd_load(fd, rig->img.data, rig->img.length);
}

/* whatever bit of it is another one, nobody has signed that */
static void not_signed(struct rig *rig, int fd)
{
	char *image = malloc(rig->img.length);
	struct rxe_migr_image_hdr *hdr = (void *)image;
	const size_t crc = offsetof(struct rxe_migr_image_hdr, crc32);

	MUST(image);
	memcpy(image, rig->image, rig->img.length);
	for (size_t at = 0; at < rig->img.length; at++) {
		char flip = (char)(1 << at % 8);

		if (at >= crc && at < crc + sizeof(hdr->crc32))
			continue; /* only user space looks at it */
		image[at] ^= flip;
		EXPECT(migr_cmd_load(fd, image, rig->img.length), -EBADMSG,
		       -EINVAL, -EPROTONOSUPPORT, -ENOKEY);
		image[at] ^= flip;
	}
	memset(hdr->mac, 0, sizeof(hdr->mac));
	EXPECT(migr_cmd_load(fd, image, rig->img.length), -EBADMSG);
	image_sign(image, rig->img.length);
	hdr->key_id ^= 1;
	EXPECT(migr_cmd_load(fd, image, rig->img.length), -ENOKEY);
	hdr->key_id ^= 1;
	EXPECT(migr_cmd_load(fd, image, rig->img.length), 0);
	free(image);
}

/* signed, but the header says what cannot be */
static void bad_headers(struct rig *rig, int fd)
{
	size_t length = rig->img.length;
	struct rxe_migr_image_hdr *hdr = malloc(length);
	const struct {
		uint32_t *field, value;
		int want;
	} cases[] = {
		{ (uint32_t *)hdr->magic, 0, -EINVAL },
		{ &hdr->version, RXE_MIGR_IMAGE_VERSION - 1, -EPROTONOSUPPORT },
		{ &hdr->version, RXE_MIGR_IMAGE_VERSION + 1, -EPROTONOSUPPORT },
		{ &hdr->hdr_length, 0, -EINVAL },
		{ &hdr->hdr_length, sizeof(*hdr) - 8, -EINVAL },
		{ &hdr->hdr_length, sizeof(*hdr) + 4, -EINVAL },
		{ &hdr->hdr_length, sizeof(*hdr) + 8, -EINVAL },
		{ &hdr->hdr_length, (uint32_t)length, -EINVAL },
		{ &hdr->hdr_length, 0xfffffff8, -EINVAL },
		{ (uint32_t *)(hdr->reserved + 3), 1, -EINVAL },
	};

	MUST(hdr);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		memcpy(hdr, rig->image, length);
		*cases[i].field = cases[i].value;
		image_sign(hdr, length);
		EXPECT(migr_cmd_load(fd, hdr, length), cases[i].want);
	}
	memcpy(hdr, rig->image, length);
	EXPECT(migr_cmd_load(fd, hdr, length - 8), -EINVAL);
	hdr->length -= 8;
	EXPECT(migr_cmd_load(fd, hdr, length), -EINVAL);
	free(hdr);
}

/* signed, but not a chain of records, each there once */
static void bad_chains(struct rig *rig, int fd)
{
	const struct rxe_migr_rec_mr *good = rig->mr;
	struct rxe_migr_rec_mr rec[2];
	const uint32_t handle = good->rec.handle;
	static const uint32_t lengths[] = {
		0, 8, 16, 28, 0x7fffffff, 0xfffffff8
	};

	for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		rec[0] = *good;
		rec[0].rec.length = lengths[i];
		EXPECT(load_as(rig, fd, handle, rec, sizeof(*rec)), -EINVAL);
	}
	rec[0] = *good;
	rec[1] = *good;
	EXPECT(load_as(rig, fd, handle, rec, 2 * sizeof(*rec)), -EINVAL);
	rec[1].rec.handle = rig->cq->rec.handle;
	EXPECT(load_as(rig, fd, handle, rec, 2 * sizeof(*rec)), -EINVAL);
	rec[1].rec.handle = 0xffffffff;
	EXPECT(load_as(rig, fd, handle, rec, 2 * sizeof(*rec)), 0);
	rec[1].rec.type = 77;
	EXPECT(load_as(rig, fd, handle, rec, 2 * sizeof(*rec)), -EINVAL);
	rec[1].rec.type = 77 | RXE_MIGR_SKIPPABLE;
	EXPECT(load_as(rig, fd, handle, rec, 2 * sizeof(*rec)), 0);
	rec[1].rec.type = RXE_MIGR_CONTEXT;
	EXPECT(load_as(rig, fd, handle, rec, 2 * sizeof(*rec)), -EINVAL);
	rec[0].rec.type = RXE_MIGR_QP;
	EXPECT(load_as(rig, fd, handle, rec, sizeof(*rec)), -EINVAL);
	rec[0].rec.type = RXE_MIGR_MR;
	rec[0].rec.reserved = 1;
	EXPECT(load_as(rig, fd, handle, rec, sizeof(*rec)), -EINVAL);
}

/* and buffers that are none */
static void bad_buffers(struct rig *rig, int fd)
{
	const char *image = rig->img.data;
	size_t length = rig->img.length;
	char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	MUST(page != MAP_FAILED);
	memcpy(page, image, length < 4096 ? length : 4096);
	MUST(!munmap(page, 4096));
	EXPECT(migr_cmd_load(fd, NULL, length), -EFAULT);
	EXPECT(migr_cmd_load(fd, page, length), -EFAULT);
	EXPECT(migr_cmd_load(fd, (void *)~4095UL, 4096), -EFAULT);
	EXPECT(migr_cmd_load(fd, image, 0), -EINVAL);
	EXPECT(migr_cmd_load(fd, image, sizeof(struct rxe_migr_image_hdr) - 1),
	       -EINVAL);
	EXPECT(migr_cmd_load(fd, image, 1ULL << 44), -ENOMEM);
	EXPECT(migr_cmd_load(fd, image, ~0ULL), -ENOMEM);
}

/* events of what is not there, of no type, or more than there are bytes */
static void bad_events(struct rig *rig)
{
	const uint32_t cq = rig->cq->rec.handle, qp = rig->qp[0]->rec.handle;
	const struct {
		struct rxe_migr_event event;
		uint32_t type, count; /* of the record */
		int err;	      /* of RESUME */
	} cases[] = {
		{ { IBV_EVENT_CQ_ERR, qp }, RXE_MIGR_ASYNC_FD, 1, -EINVAL },
		{ { IBV_EVENT_SQ_DRAINED, cq }, RXE_MIGR_ASYNC_FD, 1, -EINVAL },
		{ { IBV_EVENT_SQ_DRAINED, 0xffff },
		  RXE_MIGR_ASYNC_FD,
		  1,
		  -EINVAL },
		{ { IBV_EVENT_SRQ_ERR, qp }, RXE_MIGR_ASYNC_FD, 1, -EINVAL },
		{ { 77, 0 }, RXE_MIGR_ASYNC_FD, 1, -EINVAL },
		{ { IBV_EVENT_PORT_ERR, 1 }, RXE_MIGR_ASYNC_FD, 0, -EINVAL },
		{ { IBV_EVENT_PORT_ERR, 1 }, RXE_MIGR_ASYNC_FD, 2, -EINVAL },
		{ { IBV_EVENT_PORT_ERR, 1 }, RXE_MIGR_ASYNC_FD, ~0U, -EINVAL },
		{ { cq, 0 },
		  RXE_MIGR_COMP_CHANNEL,
		  1,
		  -EINVAL }, /* it has none */
		{ { qp, 0 }, RXE_MIGR_COMP_CHANNEL, 1, -EINVAL },
		{ { 0xffff, 0 }, RXE_MIGR_COMP_CHANNEL, 1, -EINVAL },
		{ { cq, cq }, RXE_MIGR_COMP_CHANNEL, 3, -EINVAL },
		{ { cq, cq }, RXE_MIGR_COMP_CHANNEL, ~0U, -EINVAL },
		/* these are none */
		{ { IBV_EVENT_CQ_ERR, cq }, RXE_MIGR_ASYNC_FD, 1, 0 },
		{ { IBV_EVENT_PORT_ERR, 1 }, RXE_MIGR_ASYNC_FD, 1, 0 },
	};
	struct {
		struct rxe_migr_rec_mr mr;
		struct rxe_migr_rec_async_fd file;
		struct rxe_migr_event event;
	} rec = { .mr = *rig->mr,
		  .file.rec.length = sizeof(rec.file) + sizeof(rec.event) };
	struct rxe_migr_status st;
	struct copy c;

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		rec.file.rec.type = cases[i].type;
		rec.file.events = cases[i].count;
		rec.event = cases[i].event;
		if (cases[i].type == RXE_MIGR_COMP_CHANNEL) {
			/* `events` is where the other has `reserved` */
			rec.file.events = cq;
			rec.file.reserved = cases[i].count;
		} else {
			rec.file.reserved = 0;
		}
		copy_open(rig, &c);
		copy_create(rig, &c);
		EXPECT(load_as(rig, c.fd, rig->mr->rec.handle, &rec,
			       sizeof(rec)),
		       0);
		refill_all_but(rig, &c, NULL);
		EXPECT(migr_cmd_attach(c.fd, &st), 0);
		EXPECT(migr_cmd_resume(c.fd, &st), cases[i].err);
		copy_close(&c);
	}
}

/* of several events none comes before all of them are found to be right */
static void half_bad_events(struct rig *rig)
{
	struct {
		struct rxe_migr_rec_mr mr;
		struct rxe_migr_rec_async_fd file;
		struct rxe_migr_event event[2];
	} rec = { .mr = *rig->mr,
		  .file.rec.type = RXE_MIGR_ASYNC_FD,
		  .file.rec.length = sizeof(rec.file) + sizeof(rec.event),
		  .file.events = 2,
		  .event = { { IBV_EVENT_PORT_ERR, 1 }, { 77, 0 } } };
	struct rxe_migr_status st;
	struct pollfd events = { .events = POLLIN };
	struct copy c;

	copy_open(rig, &c);
	copy_create(rig, &c);
	EXPECT(load_as(rig, c.fd, rig->mr->rec.handle, &rec, sizeof(rec)), 0);
	refill_all_but(rig, &c, NULL);
	EXPECT(migr_cmd_attach(c.fd, &st), 0);
	EXPECT(migr_cmd_resume(c.fd, &st), -EINVAL);
	events.fd = c.files.async_fd;
	EXPECT(poll(&events, 1, 0), 0);
	copy_close(&c);
}

/* the good commands, with this in the place of the MR's record, as far as it goes */
static int restore_as(struct rig *rig, const void *rec, size_t length)
{
	struct rxe_migr_status st;
	struct copy c;
	int ret;

	copy_open(rig, &c);
	ret = load_as(rig, c.fd, rig->mr->rec.handle, rec, length);
	for (unsigned int i = 0; i < rig->img.count; i++)
		if (rig->img.records[i]->type < RXE_MIGR_COMP_CHANNEL)
			ret = ret
				      ?: migr_create_object(
						 &c.r, rig->img.records[i]);
	for (int i = 0; i < N_QPS; i++)
		ret = ret ?: migr_connect_qp(&c.r, &rig->qp[i]->rec);
	if (!ret) {
		refill_all_but(rig, &c, NULL);
		rig_renew_peer(rig, VICTIM);
		ret = migr_cmd_attach(c.fd, &st) ?: migr_cmd_resume(c.fd, &st);
	}
	copy_close(&c);
	return ret;
}

/* of the MR, and of an unread event, each bit, and all of a byte */
static void flip(struct rig *rig)
{
	struct {
		struct rxe_migr_rec_mr mr;
		struct rxe_migr_rec_async_fd file;
		struct rxe_migr_event event;
	} rec = { .mr = *rig->mr,
		  .file.rec.type = RXE_MIGR_ASYNC_FD,
		  .file.rec.length = sizeof(rec.file) + sizeof(rec.event),
		  .file.events = 1,
		  .event = { IBV_EVENT_PORT_ERR, 1 } };
	unsigned int refused = 0, tried = 9 * sizeof(rec);
	int ret;

	EXPECT(restore_as(rig, &rec, sizeof(rec)), 0);
	for (size_t i = 0; i < tried; i++) {
		char *at = (char *)&rec + i / 9, good = *at;

		*at = (char)(good ^ (i % 9 < 8 ? 1 << i % 9 : 0xff));
		ret = restore_as(rig, &rec, sizeof(rec));
		*at = good;
		if (ret) {
			EXPECT(ret, -EINVAL, -ENOENT, -EFAULT, -ENOMEM, -EBUSY,
			       -EPERM, -ERANGE);
			refused++;
		}
	}
	EXPECT(restore_as(rig, &rec, sizeof(rec)), 0);
	printf("MR and event: %u of %u flips refused\n", refused, tried);
}

/* what is restored goes on where it was connected to, and nowhere else */
static void another_peer(struct rig *rig)
{
	const struct rxe_migr_rec_qp *good = rig->qp[VICTIM];
	struct rxe_migr_rec_qp *rec = malloc(good->rec.length);
	struct rxe_migr_status st;
	struct copy c;

	MUST(rec);
	memcpy(rec, good, good->rec.length);
	rec->dgid[15] ^= 1;
	copy_open(rig, &c);
	copy_create(rig, &c);
	refill_all_but(rig, &c, &rig->qp[VICTIM]->rec);
	EXPECT(refill_as(rig, c.fd, UVERBS_OBJECT_QP, rec->rec.handle, rec,
			 rec->rec.length),
	       0);
	EXPECT(migr_cmd_attach(c.fd, &st), 0);
	EXPECT(migr_cmd_resume(c.fd, &st), -EINVAL);
	EXPECT((int)st.why, RXE_MIGR_WHY_ELSEWHERE);
	EXPECT((int)st.qpn, (int)rec->qpn);
	copy_close(&c);
	free(rec);
}

/* a context is stopped, or restored, but not both */
static void stopped(struct rig *rig)
{
	struct rxe_migr_status st;
	struct side s = {};
	struct copy c;

	side_open(rig, &s);
	EXPECT(migr_cmd_stop(s.ctx->cmd_fd, 0, 0, &st), 0);
	EXPECT(load_good(rig, s.ctx->cmd_fd), -EBUSY);
	close(st.guard_fd);
	side_close(&s);
	copy_open(rig, &c);
	EXPECT(migr_cmd_stop(c.fd, 0, 0, &st), -EOPNOTSUPP);
	EXPECT((int)st.type, RXE_MIGR_CONTEXT);
	copy_close(&c);
}

void attack_images(struct rig *rig)
{
	struct copy c;

	stopped(rig);
	copy_open(rig, &c);
	not_signed(rig, c.fd);
	bad_headers(rig, c.fd);
	bad_chains(rig, c.fd);
	bad_buffers(rig, c.fd);
	/* none of these has cost the good one its place */
	copy_create(rig, &c);
	copy_close(&c);
	another_peer(rig);
	bad_events(rig);
	half_bad_events(rig);
	flip(rig);
}
