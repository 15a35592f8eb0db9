// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* A provider that works */
#include "inner.h"

#include <errno.h>
#include <limits.h>

bool works;
uint32_t fake_source;
static unsigned int flushes = UINT_MAX;
void (*fake_posted_hook)(struct ibv_qp *real, const struct fake_sent *sent);

void fake_work(void)
{
	works = true;
}

void fake_flush(unsigned int most)
{
	pthread_mutex_lock(&lock);
	flushes = most;
	pthread_mutex_unlock(&lock);
}

unsigned int fake_sends(const struct ibv_qp *real)
{
	unsigned int n;

	OWN(QP, real);
	pthread_mutex_lock(&lock);
	n = ((const struct fake_qp *)real)->n;
	pthread_mutex_unlock(&lock);
	return n;
}

unsigned int fake_waiting(const struct ibv_qp *real)
{
	const struct fake_qp *f = (const struct fake_qp *)real;
	unsigned int n;

	OWN(QP, real);
	pthread_mutex_lock(&lock);
	n = f->n - f->finished;
	pthread_mutex_unlock(&lock);
	return n;
}

unsigned int fake_fulls(const struct ibv_qp *real)
{
	unsigned int n;

	OWN(QP, real);
	pthread_mutex_lock(&lock);
	n = ((const struct fake_qp *)real)->fulls;
	pthread_mutex_unlock(&lock);
	return n;
}

const struct fake_sent *fake_sent(const struct ibv_qp *real, unsigned int n)
{
	const struct fake_qp *f = (const struct fake_qp *)real;
	const struct fake_sent *sent;

	OWN(QP, real);
	pthread_mutex_lock(&lock);
	sent = n < f->n ? f->sent[n] : NULL;
	pthread_mutex_unlock(&lock);
	return sent;
}

static enum ibv_wc_opcode opcode_of(enum ibv_wr_opcode opcode)
{
	switch (opcode) {
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		return IBV_WC_RDMA_WRITE;
	case IBV_WR_RDMA_READ:
		return IBV_WC_RDMA_READ;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
		return IBV_WC_COMP_SWAP;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		return IBV_WC_FETCH_ADD;
	case IBV_WR_BIND_MW:
		return IBV_WC_BIND_MW;
	case IBV_WR_LOCAL_INV:
		return IBV_WC_LOCAL_INV;
	default:
		return IBV_WC_SEND;
	}
}

unsigned int fake_finish(struct ibv_qp *real, unsigned int most,
			 enum ibv_wc_status status)
{
	struct fake_qp *f = (struct fake_qp *)real;
	struct fake_sent *sent;
	struct ibv_wc wc;
	unsigned int n;

	OWN(QP, real);
	pthread_mutex_lock(&lock);
	for (n = 0; n < most && f->finished < f->n; n++) {
		sent = f->sent[f->finished++];
		if (status == IBV_WC_SUCCESS)
			status = do_window(real, sent);
		wc = (struct ibv_wc){ .wr_id = sent->wr.wr_id,
				      .status = status,
				      .opcode = opcode_of(sent->wr.opcode),
				      .qp_num = real->qp_num };
		if (sent->signaled || status != IBV_WC_SUCCESS)
			put_completion(real->send_cq, &wc);
	}
	pthread_mutex_unlock(&lock);
	return n;
}

void fake_received(struct ibv_qp *real, uint64_t wr_id, uint32_t byte_len)
{
	struct ibv_wc wc = { .wr_id = wr_id,
			     .opcode = IBV_WC_RECV,
			     .byte_len = byte_len,
			     .qp_num = real->qp_num };

	OWN(QP, real);
	pthread_mutex_lock(&lock);
	put_completion(real->recv_cq, &wc);
	pthread_mutex_unlock(&lock);
}

static struct recvs *recvs_of(const struct ibv_qp *qp)
{
	return qp->srq ? &((struct fake_srq *)qp->srq)->recvs
		       : &((struct fake_qp *)qp)->recvs;
}

/* with the lock: the oldest one completes */
static void finish_recv(struct ibv_qp *real, struct recvs *r,
			enum ibv_wc_status status, uint32_t byte_len)
{
	struct fake_recv *f = r->first;
	struct ibv_wc wc = { .wr_id = f->wr_id,
			     .status = status,
			     .opcode = IBV_WC_RECV,
			     .byte_len = byte_len,
			     .qp_num = real->qp_num,
			     .src_qp = fake_source,
			     .wc_flags = fake_source ? IBV_WC_GRH : 0 };

	r->first = f->next;
	r->n--;
	free(f);
	put_completion(real->recv_cq, &wc);
}

void fake_receive(struct ibv_qp *real, uint32_t byte_len)
{
	OWN(QP, real);
	pthread_mutex_lock(&lock);
	if (!recvs_of(real)->first)
		die("nothing is posted to receive");
	finish_recv(real, recvs_of(real), IBV_WC_SUCCESS, byte_len);
	pthread_mutex_unlock(&lock);
}

void fake_drop(struct ibv_qp *real)
{
	OWN(QP, real);
	pthread_mutex_lock(&lock);
	finish_recv(real, recvs_of(real), IBV_WC_WR_FLUSH_ERR, 0);
	pthread_mutex_unlock(&lock);
}

const struct fake_recv *fake_recvs(const struct ibv_qp *real)
{
	OWN(QP, real);
	return recvs_of(real)->first;
}

uint64_t fake_next_recv(const struct ibv_qp *real)
{
	const struct fake_recv *r;
	uint64_t wr_id;

	OWN(QP, real);
	pthread_mutex_lock(&lock);
	r = recvs_of(real)->first;
	wr_id = r ? r->wr_id : FAKE_NO_RECV;
	pthread_mutex_unlock(&lock);
	return wr_id;
}

static bool tells = true;
static struct ibv_recv_wr *tells_what;

void fake_tell(bool right, struct ibv_recv_wr *what)
{
	tells = right;
	tells_what = what;
}

int queue_recvs(struct recvs *r, struct ibv_recv_wr *wr, uint32_t most,
		struct ibv_recv_wr **bad_wr)
{
	struct fake_recv *f, **end;
	int err = 0;

	pthread_mutex_lock(&lock);
	fake_posts++;
	for (; wr && !err; wr = wr->next) {
		if (r->n >= most) {
			*bad_wr = tells ? wr : tells_what;
			err = ENOMEM;
			break;
		}
		f = calloc(1, sizeof(*f));
		if (!f || wr->num_sge > 4)
			die("post_recv: no memory, or too many SGEs");
		f->wr_id = wr->wr_id;
		f->num_sge = wr->num_sge;
		for (int i = 0; i < wr->num_sge; i++)
			f->sge[i] = wr->sg_list[i];
		for (end = &r->first; *end; end = &(*end)->next)
			;
		*end = f;
		r->n++;
	}
	pthread_mutex_unlock(&lock);
	return err;
}

static struct ibv_qp *lingers;

void fake_linger(struct ibv_qp *real)
{
	lingers = real;
}

static void end_recvs(struct ibv_qp *real)
{
	const struct ibv_async_event last = {
		.event_type = IBV_EVENT_QP_LAST_WQE_REACHED,
		.element.qp = real,
	};

	((struct fake_qp *)real)->last_wqe = true;
	fake_async_event(real->context, &last);
}

void let_arrive(struct ibv_context *ctx)
{
	struct ibv_qp *qp = lingers;

	if (!qp || qp->context != ctx || qp->state != IBV_QPS_ERR)
		return;
	lingers = NULL;
	fake_receive(qp, 1);
	end_recvs(qp);
}

/* to ERR: what is posted is flushed, but what is posted then waits for the next time */
void flush(struct ibv_qp *real)
{
	struct fake_qp *f = (struct fake_qp *)real;

	fake_finish(real, UINT32_MAX, IBV_WC_WR_FLUSH_ERR);
	pthread_mutex_lock(&lock);
	for (; !real->srq && f->recvs.first && flushes; flushes--)
		finish_recv(real, &f->recvs, IBV_WC_WR_FLUSH_ERR, 0);
	pthread_mutex_unlock(&lock);
	if (real->srq && !f->last_wqe && real != lingers)
		end_recvs(real);
}

void fake_refuse(struct ibv_qp *real, unsigned int n, int err)
{
	struct fake_qp *f = (struct fake_qp *)real;

	OWN(QP, real);
	pthread_mutex_lock(&lock);
	f->refuse = (int)(f->n + n);
	f->refuse_err = err;
	pthread_mutex_unlock(&lock);
}

static struct fake_sent copy_of(const struct ibv_send_wr *wr)
{
	struct fake_sent sent = { .wr = *wr };
	const struct ibv_sge *sge = wr->sg_list;

	if (wr->num_sge < 0 || wr->num_sge > FAKE_SGES)
		die("post_send: %d SGEs", wr->num_sge);
	for (int i = 0; i < wr->num_sge; i++) {
		sent.sge[i] = sge[i];
		if (!(wr->send_flags & IBV_SEND_INLINE))
			continue;
		if (sge[i].length > FAKE_INLINE - sent.bytes)
			die("post_send: too much inline data");
		memcpy(sent.data + sent.bytes, (void *)(uintptr_t)sge[i].addr,
		       sge[i].length);
		sent.bytes += sge[i].length;
	}
	if (wr->opcode == IBV_WR_BIND_MW)
		sent.mw_rkey = wr->bind_mw.mw->rkey;
	sent.wr.next = NULL;
	sent.wr.sg_list = NULL;
	return sent;
}

bool fake_needs_rts;

/* with the lock */
static int enqueue(struct fake_qp *f, const struct fake_sent *sent)
{
	struct fake_sent *copy;

	if (fake_needs_rts && !f->was_rts)
		return ENOMEM;
	if ((int)f->n == f->refuse) {
		f->refuse = -1;
		return f->refuse_err;
	}
	if (f->n - f->finished >= f->cap.max_send_wr) {
		f->fulls++;
		return ENOMEM;
	}
	if (f->n == f->room) {
		f->room = f->room ? 2 * f->room : 16;
		f->sent = realloc(f->sent, f->room * sizeof(f->sent[0]));
	}
	copy = malloc(sizeof(*copy));
	if (!f->sent || !copy)
		die("no memory");
	*copy = *sent;
	copy->signaled =
		f->sq_sig_all || sent->wr.send_flags & IBV_SEND_SIGNALED;
	f->sent[f->n++] = copy;
	return 0;
}

int work(struct fake_qp *f, struct ibv_send_wr *wr, struct ibv_send_wr **bad_wr)
{
	struct fake_sent sent;
	int err;

	for (; wr; wr = wr->next) {
		sent = copy_of(wr);
		pthread_mutex_lock(&lock);
		err = enqueue(f, &sent);
		pthread_mutex_unlock(&lock);
		if (err) {
			*bad_wr = wr;
			return err;
		}
		if (fake_posted_hook)
			fake_posted_hook(&f->ex.qp_base, &sent);
	}
	return 0;
}

void start_batch(struct ibv_qp_ex *ex)
{
	struct fake_qp *f = (struct fake_qp *)ex;

	if (works) {
		pthread_mutex_lock(&f->batch_lock);
		f->in_batch = 0;
	}
}

void add_to_batch(struct ibv_qp_ex *ex, const struct ibv_send_wr *wr)
{
	struct fake_qp *f = (struct fake_qp *)ex;
	struct fake_sent *sent;

	if (!works)
		return;
	if (f->in_batch == BATCH)
		die("a batch of too many");
	sent = &f->batch[f->in_batch++];
	*sent = (struct fake_sent){ .wr = *wr };
	sent->wr.wr_id = ex->wr_id;
	sent->wr.send_flags = ex->wr_flags;
	if (wr->opcode == IBV_WR_BIND_MW)
		sent->mw_rkey = wr->bind_mw.mw->rkey;
}

void set_batch_sge(struct ibv_qp_ex *ex, const struct ibv_sge *sge)
{
	struct fake_qp *f = (struct fake_qp *)ex;

	if (works) {
		f->batch[f->in_batch - 1].sge[0] = *sge;
		f->batch[f->in_batch - 1].wr.num_sge = 1;
	}
}

int end_batch(struct ibv_qp_ex *ex, bool post)
{
	struct fake_qp *f = (struct fake_qp *)ex;
	int err = 0;

	if (!works)
		return 0;
	pthread_mutex_lock(&lock);
	if (post && f->in_batch > f->cap.max_send_wr - (f->n - f->finished))
		err = ENOMEM;
	for (unsigned int i = 0; post && !err && i < f->in_batch; i++)
		err = enqueue(f, &f->batch[i]);
	pthread_mutex_unlock(&lock);
	pthread_mutex_unlock(&f->batch_lock);
	return err;
}

void free_work(struct ibv_qp *qp)
{
	struct fake_qp *f = (struct fake_qp *)qp;

	for (unsigned int i = 0; i < f->n; i++)
		free(f->sent[i]);
	free(f->sent);
}
