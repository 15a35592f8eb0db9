// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "bound.h"

#include "control.h"
#include "names.h"
#include "post.h"

/* --- windows by their real keys, with the context's lock --- */

/* entries of the table are one more than places in the array: 0 is none */
int bound_add(struct shadow_mw *s)
{
	struct shadow_context *c = to_context(s->mw.context);
	uint32_t room = c->room_windows ? 2 * c->room_windows : 16;
	struct shadow_mw **all;

	if (!c->windows_at)
		c->windows_at = names_new();
	if (!c->windows_at)
		return ENOMEM;
	if (c->n_windows == c->room_windows) {
		all = realloc(c->windows, room * sizeof(struct shadow_mw *));
		if (!all)
			return ENOMEM;
		c->windows = all;
		c->room_windows = room;
	}
	s->slot = c->n_windows;
	if (names_set(c->windows_at, s->real->rkey >> 8, s->slot + 1))
		return ENOMEM;
	c->windows[c->n_windows++] = s;
	return 0;
}

static struct shadow_mw *find(const struct shadow_context *c, uint32_t real_key)
{
	uint32_t at =
		c->windows_at ? names_get(c->windows_at, real_key >> 8) : 0;

	return at ? c->windows[at - 1] : NULL;
}

static void change(struct shadow_mw *s, const struct binding *to)
{
	if (s->bound.mr)
		s->bound.mr->windows--;
	if (s->bound.qp)
		s->bound.qp->windows--;
	s->bound = *to;
	if (s->bound.mr)
		s->bound.mr->windows++;
	if (s->bound.qp)
		s->bound.qp->windows++;
	s->changes++;
}

/* The last one gets its place. An index may be that of a younger one since. */
void bound_remove(struct shadow_mw *s)
{
	struct shadow_context *c = to_context(s->mw.context);
	struct shadow_mw *last;

	change(s, &(struct binding){});
	if (s->slot >= c->n_windows || c->windows[s->slot] != s)
		return; /* there is no control */
	if (find(c, s->first_key) == s)
		names_set(c->windows_at, s->first_key >> 8, 0);
	last = c->windows[--c->n_windows];
	if (last == s)
		return;
	if (find(c, last->first_key) == last)
		names_set(c->windows_at, last->first_key >> 8, s->slot + 1);
	c->windows[s->slot] = last;
	last->slot = s->slot;
}

uint32_t bound_known_key(const struct shadow_mw *s, uint32_t real)
{
	const struct names *n = to_context(s->mw.context)->keys;
	uint32_t entry = n ? names_get(n, s->key >> 8) : 0;

	return entry ? (s->key & ~0xffU) | ((real - entry) & 0xff) : real;
}

/* --- requests --- */

/* Of its key only the low 8 bits are the application's. */
static void bind(struct shadow_qp *qp, struct shadow_mw *s, uint32_t key,
		 const struct ibv_mw_bind_info *info, uint64_t wr_id)
{
	bool is_mr = info->mr && is_shadow(info->mr->context);
	const struct binding to = {
		.valid = info->length,
		.unsure = info->length && !is_mr,
		.mr = info->length && is_mr ? to_mr(info->mr) : NULL,
		.addr = info->addr,
		.length = info->length,
		.access = info->mw_access_flags,
		.qp = qp,
		.wr_id = wr_id,
	};

	s->key = (s->key & ~0xffU) | (key & 0xff);
	change(s, &to);
}

static void invalidate(struct shadow_qp *qp, struct shadow_mw *s,
		       uint64_t wr_id)
{
	change(s, &(struct binding){ .qp = qp, .wr_id = wr_id });
}

/* of type 2, with this very key */
static struct shadow_mw *find_valid(struct shadow_context *c, uint32_t real_key)
{
	struct shadow_mw *s = find(c, real_key);

	return s && s->mw.type == IBV_MW_TYPE_2 && s->bound.valid &&
			       bound_known_key(s, real_key) == s->key
		       ? s
		       : NULL;
}

static void note_was(struct bound_note *note, struct shadow_mw *s)
{
	note->mw = s;
	note->key = s->key;
	note->fresh = s->fresh;
	note->was = s->bound;
	note->change = s->changes + 1;
}

void bound_post(struct shadow_qp *qp, const struct ibv_send_wr *wr,
		struct bound_note *note)
{
	struct shadow_context *c = to_context(qp->qp.context);
	struct shadow_mw *s;

	note->mw = NULL;
	if (!control_is_on())
		return;
	pthread_mutex_lock(&c->lock);
	if (wr->opcode == IBV_WR_BIND_MW) {
		s = to_mw(wr->bind_mw.mw);
		note_was(note, s);
		bind(qp, s, wr->bind_mw.rkey, &wr->bind_mw.bind_info,
		     wr->wr_id);
	} else {
		s = find_valid(c,
			       post_lkey(qp->qp.context, wr->invalidate_rkey));
		if (s) {
			note_was(note, s);
			invalidate(qp, s, wr->wr_id);
		}
	}
	pthread_mutex_unlock(&c->lock);
}

/* Others may have ended since. */
static struct binding what_is_left(struct shadow_context *c,
				   const struct binding *was)
{
	struct binding left = *was;
	struct shadow_qp *qp;
	struct shadow_mr *mr;

	TAILQ_FOREACH (qp, &c->qps, entry)
		if (qp == left.qp)
			break;
	TAILQ_FOREACH (mr, &c->mrs, entry)
		if (mr == left.mr)
			break;
	left.qp = qp;
	left.mr = mr;
	left.valid &= mr != NULL;
	return left;
}

void bound_refused(const struct bound_note *note, bool unsure)
{
	struct shadow_mw *s = note->mw;
	struct shadow_context *c;
	struct binding left;

	if (!s)
		return;
	c = to_context(s->mw.context);
	pthread_mutex_lock(&c->lock);
	if (s->changes != note->change) {
		pthread_mutex_unlock(&c->lock);
		return;
	}
	if (unsure) {
		s->bound.unsure = true;
	} else {
		left = what_is_left(c, &note->was);
		change(s, &left);
		s->changes = note->change - 1;
		s->key = note->key;
		s->fresh = note->fresh;
	}
	pthread_mutex_unlock(&c->lock);
}

/* --- batches of the provider's, which has a lock of the QP's from start to end --- */

struct bound_batch {
	unsigned int n, room;
	struct {
		struct ibv_send_wr wr;
		bool fresh;
		struct bound_note note;
	} all[];
};

static struct bound_batch *grow(struct bound_batch *b)
{
	unsigned int room = b ? 2 * b->room : 4;
	struct bound_batch *more;

	if (b && b->n < b->room)
		return b;
	more = realloc(b, sizeof(*b) + room * sizeof(b->all[0]));
	if (!more)
		return NULL;
	if (!b)
		*more = (struct bound_batch){};
	more->room = room;
	return more;
}

void bound_in_batch(struct shadow_qp *qp, const struct ibv_send_wr *wr)
{
	struct bound_batch *b = grow(qp->binds);

	qp->lost_bind |= !b;
	if (!b)
		return;
	qp->binds = b;
	b->all[b->n].fresh =
		wr->opcode == IBV_WR_BIND_MW && to_mw(wr->bind_mw.mw)->fresh;
	b->all[b->n++].wr = *wr;
}

int bound_end_batch(struct shadow_qp *qp, bool post)
{
	struct bound_batch *b = qp->binds;
	struct ibv_qp_ex *r = qp->real_ex;
	int err = qp->lost_bind ? ENOMEM : 0;

	qp->binds = NULL;
	qp->lost_bind = false;
	if (!post || err) {
		r->wr_abort(r);
		for (unsigned int i = 0; b && i < b->n; i++)
			if (b->all[i].fresh)
				to_mw(b->all[i].wr.bind_mw.mw)->fresh = true;
		free(b);
		return err;
	}
	for (unsigned int i = 0; i < b->n; i++) {
		bound_post(qp, &b->all[i].wr, &b->all[i].note);
		b->all[i].note.fresh = b->all[i].fresh;
	}
	err = r->wr_complete(r);
	for (unsigned int i = b->n; err && i; i--)
		bound_refused(&b->all[i - 1].note, false);
	free(b);
	return err;
}

/* --- completions --- */

/*
 * A window of type 1 may be bound as before, or not. Of type 2 it is one of a QP in ERR. What
 * is flushed may be anything of that id, long after it was bound.
 */
static void failed(struct shadow_context *c, const struct ibv_wc *wc)
{
	struct shadow_mw *s;

	if (wc->status == IBV_WC_WR_FLUSH_ERR)
		return;
	for (uint32_t i = 0; i < c->n_windows; i++) {
		s = c->windows[i];
		if (s->mw.type == IBV_MW_TYPE_1 && s->bound.qp &&
		    s->bound.qp->real_num == wc->qp_num &&
		    s->bound.wr_id == wc->wr_id)
			s->bound.unsure = true;
	}
}

void bound_completed(struct shadow_context *c, struct ibv_wc *wc)
{
	struct shadow_mw *s;

	if (wc->status == IBV_WC_SUCCESS && !bound_is_inv(wc->wc_flags))
		return;
	pthread_mutex_lock(&c->lock);
	if (wc->status != IBV_WC_SUCCESS) {
		failed(c, wc);
	} else {
		s = find_valid(c, wc->invalidated_rkey);
		if (s)
			invalidate(NULL, s, 0);
		s = find(c, wc->invalidated_rkey);
		if (s)
			wc->invalidated_rkey =
				bound_known_key(s, wc->invalidated_rkey);
	}
	pthread_mutex_unlock(&c->lock);
}

/* --- what is gone --- */

void bound_forget_mr(struct shadow_mr *mr)
{
	struct shadow_context *c = to_context(mr->mr.context);

	for (uint32_t i = 0; mr->windows && i < c->n_windows; i++)
		if (c->windows[i]->bound.mr == mr)
			change(c->windows[i], &(struct binding){});
}

void bound_doubt_mr(struct shadow_mr *mr)
{
	struct shadow_context *c = to_context(mr->mr.context);

	for (uint32_t i = 0; mr->windows && i < c->n_windows; i++)
		if (c->windows[i]->bound.mr == mr)
			c->windows[i]->bound.unsure = true;
}

/* One of type 2 belongs to it; one of type 1 stays bound. */
void bound_forget_qp(struct shadow_qp *qp)
{
	struct shadow_context *c = to_context(qp->qp.context);
	struct binding left;
	struct shadow_mw *s;

	for (uint32_t i = 0; qp->windows && i < c->n_windows; i++) {
		s = c->windows[i];
		if (s->bound.qp != qp)
			continue;
		left = s->bound;
		left.qp = NULL;
		change(s, s->mw.type == IBV_MW_TYPE_1 ? &left
						      : &(struct binding){});
	}
}

void bound_forget(struct shadow_mw *s)
{
	change(s, &(struct binding){});
}
