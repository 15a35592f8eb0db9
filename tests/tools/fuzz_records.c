// SPDX-License-Identifier: GPL-2.0
/*
 * Corrupted records. What REFILL refuses leaves the object as it was, so that
 * the next one can be tried on it. What it accepts is started and gets traffic.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "migr_fuzz.h"

#define PAGE 4096

static unsigned int tried, accepted, started;

/* a record of `length` bytes that ends where unmapped memory begins */
static char *at_end_of_memory(size_t length)
{
	size_t size = (length / PAGE + 1) * PAGE;
	char *p = mmap(NULL, size + PAGE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	MUST(p != MAP_FAILED);
	MUST(!munmap(p + size, PAGE));
	return p + size - length;
}

static void free_at_end(char *p, size_t length)
{
	size_t size = (length / PAGE + 1) * PAGE;

	MUST(!munmap(p + length - size, size));
}

void refill_all_but(struct rig *rig, struct copy *c,
		    const struct rxe_migr_rec *filled)
{
	if (filled != &rig->cq->rec)
		refill_cq(c->fd, rig->cq->rec.handle);
	if (filled != &rig->srq->rec)
		refill_srq(c->fd, rig->srq->rec.handle);
	for (int i = 0; i < N_QPS; i++)
		if (filled != &rig->qp[i]->rec)
			EXPECT(refill_qp(c->fd, rig->qp[i]->rec.handle), 0);
}

/* then all is started */
static void start(struct rig *rig, struct copy *c,
		  const struct rxe_migr_rec *filled)
{
	struct rxe_migr_status st;
	struct ibv_wc wc;
	double end;

	refill_all_but(rig, c, filled);
	rig_renew_peer(rig, VICTIM);
	EXPECT(migr_cmd_attach(c->fd, &st), 0);
	/* not what it is connected to is wrong, but what the image says of it */
	if (migr_cmd_resume(c->fd, &st) &&
	    EXPECT((int)st.why, RXE_MIGR_WHY_ELSEWHERE) ==
		    RXE_MIGR_WHY_ELSEWHERE)
		return;
	qp_post_send(&rig->peer, VICTIM);
	qp_post_send(&rig->peer, VICTIM);
	end = fuzz_now() + 0.03;
	while (fuzz_now() < end)
		ibv_poll_cq(rig->peer.cq, 1, &wc);
	started++;
}

static void renew(struct rig *rig, struct copy *c)
{
	copy_close(c);
	copy_open(rig, c);
	copy_create(rig, c);
}

int try_record(struct rig *rig, struct copy *c, const void *rec, size_t length,
	       bool go)
{
	int ret = refill_as(rig, c->fd, UVERBS_OBJECT_QP,
			    rig->qp[VICTIM]->rec.handle, rec, length);

	MUST(!load_good(rig, c->fd));
	tried++;
	if (ret) {
		EXPECT(ret, -EINVAL, -ENOENT);
		return ret;
	}
	accepted++;
	if (go) {
		start(rig, c, &rig->qp[VICTIM]->rec);
		renew(rig, c);
	} else {
		copy_renew_qp(rig, c, VICTIM);
	}
	return 0;
}

/* the numbers below n in an order that the seed decides */
static size_t *shuffled(size_t n)
{
	size_t *order = malloc(n * sizeof(*order));

	MUST(order);
	for (size_t i = 0; i < n; i++) {
		size_t j = (size_t)random() % (i + 1);

		order[i] = order[j];
		order[j] = i;
	}
	return order;
}

static void flip_qp(struct rig *rig, struct copy *c, size_t part)
{
	const struct rxe_migr_rec_qp *good = rig->qp[VICTIM];
	size_t length = good->rec.length;
	char *rec = at_end_of_memory(length);
	size_t *order = shuffled(sizeof(*good));
	size_t done;

	memcpy(rec, good, length);
	/* every bit, and all bits, of a byte */
	for (done = 0; done * part < sizeof(*good); done++) {
		size_t at = order[done];

		for (int bit = 0; bit < 9; bit++) {
			char flip = (char)(bit < 8 ? 1 << bit : 0xff);

			rec[at] ^= flip;
			try_record(rig, c, rec, length, bit == (int)(done % 9));
			rec[at] ^= flip;
		}
	}
	printf("QP: %zu of %zu bytes flipped\n", done, sizeof(*good));
	free(order);
	free_at_end(rec, length);
}

/* words that are just beyond what can be */
static void extremes_qp(struct rig *rig, struct copy *c, size_t part)
{
	static const uint32_t values[] = { 0,	       1,	   0x7fffffff,
					   0x80000000, 0xffffffff, 0xffffff,
					   0x1000000 };
	const struct rxe_migr_rec_qp *good = rig->qp[VICTIM];
	size_t length = good->rec.length, n = sizeof(*good) / 4, done;
	size_t *order = shuffled(n);
	uint32_t *rec = malloc(length);

	memcpy(rec, good, length);
	for (done = 0; done * part < n; done++) {
		size_t at = order[done];
		uint32_t old = rec[at];

		for (size_t v = 0; v < sizeof(values) / sizeof(*values); v++) {
			rec[at] = values[v];
			try_record(rig, c, rec, length, v == done % 7);
		}
		rec[at] = old;
	}
	printf("QP: %zu of %zu words set\n", done, n);
	free(order);
	free(rec);
}

/* the slots: what an application could write there anyhow, and more */
static void random_slots(struct rig *rig, struct copy *c, size_t part)
{
	const struct rxe_migr_rec_qp *good = rig->qp[VICTIM];
	size_t length = good->rec.length;
	char *rec = malloc(length);
	unsigned int done;

	for (done = 0; done * part < 400; done++) {
		size_t tail = length - sizeof(*good);

		memcpy(rec, good, length);
		for (long n = random() % 4; n >= 0; n--)
			rec[sizeof(*good) + (size_t)random() % tail] =
				(char)random();
		try_record(rig, c, rec, length, done % 8 == 0);
	}
	printf("QP: %u times random slots\n", done);
	free(rec);
}

/* a record that is cut, with and without it knowing */
static void truncate_qp(struct rig *rig, struct copy *c)
{
	const struct rxe_migr_rec_qp *good = rig->qp[VICTIM];
	size_t step = 1;

	for (size_t n = 0; n < good->rec.length; n += step) {
		char *rec = at_end_of_memory(n);

		memcpy(rec, good, n);
		EXPECT(try_record(rig, c, rec, n, false), -EINVAL, -ENOENT);
		if (n >= sizeof(good->rec)) {
			((struct rxe_migr_rec *)rec)->length = (uint32_t)n;
			EXPECT(try_record(rig, c, rec, n, false), -EINVAL);
		}
		free_at_end(rec, n);
		if (n > 64)
			step = 8;
	}
}

/*
 * Of a CQ or an SRQ: every bit of its fixed part, and cut. Of a CQ entries are made then
 * by the work of a QP; the SRQ is no QP's.
 */
static void flip_other(struct rig *rig, struct copy *c, uint16_t object,
		       const struct rxe_migr_rec *good, size_t fixed)
{
	size_t length = good->length;
	char *rec = malloc(length);
	int ret;

	memcpy(rec, good, length);
	for (size_t at = 0; at < fixed; at++) {
		for (int bit = 0; bit < 9; bit++) {
			char flip = (char)(bit < 8 ? 1 << bit : 0xff);

			rec[at] ^= flip;
			ret = refill_as(rig, c->fd, object, good->handle, rec,
					length);
			rec[at] ^= flip;
			tried++;
			if (ret) {
				EXPECT(ret, -EINVAL, -ENOENT);
				continue;
			}
			accepted++;
			if (bit == (int)(at % 9)) {
				MUST(!load_good(rig, c->fd));
				start(rig, c, good);
			}
			renew(rig, c);
		}
	}
	for (size_t n = 0; n < length; n++)
		EXPECT(refill_as(rig, c->fd, object, good->handle, good, n),
		       -EINVAL, -ENOENT);
	MUST(!load_good(rig, c->fd));
	free(rec);
}

void attack_records(struct rig *rig, size_t part)
{
	double begin = fuzz_now();
	struct copy c;

	copy_open(rig, &c);
	copy_create(rig, &c);
	flip_other(rig, &c, UVERBS_OBJECT_CQ, &rig->cq->rec, sizeof(*rig->cq));
	flip_other(rig, &c, UVERBS_OBJECT_SRQ, &rig->srq->rec,
		   sizeof(*rig->srq));
	truncate_qp(rig, &c);
	flip_qp(rig, &c, part);
	extremes_qp(rig, &c, part);
	random_slots(rig, &c, part);
	copy_close(&c);
	printf("%u records, %u accepted, %u of them started, %.0f s\n", tried,
	       accepted, started, fuzz_now() - begin);
}
