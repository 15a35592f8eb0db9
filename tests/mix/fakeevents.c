// SPDX-License-Identifier: GPL-2.0
/*
 * Events of the NIC: a channel is a pipe. These functions have the names of
 * libibverbs's own, which want more of a context than there is here.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "fakeparts.h"

static void open_pipe(int *read_fd, int *write_fd)
{
	int fd[2];

	if (pipe(fd))
		abort();
	*read_fd = fd[0];
	*write_fd = fd[1];
}

void fake_events_new(struct fake_net *net)
{
	unsigned int side, i;
	struct fake_channel *c;

	for (side = 0; side < 2; side++) {
		open_pipe(&net->context[side].async_fd, &net->async_fd[side]);
		for (i = 0; i < 2; i++) {
			c = &net->channel[side][i];
			open_pipe(&c->channel.fd, &c->write_fd);
			c->channel.context = &net->context[side];
			c = &net->channel[side][net->setup.shared ? 0 : i];
			net->cq[side][i]->channel = &c->channel;
		}
	}
}

void fake_events_free(struct fake_net *net)
{
	unsigned int side, i;

	for (side = 0; side < 2; side++) {
		close(net->context[side].async_fd);
		close(net->async_fd[side]);
		for (i = 0; i < 2; i++) {
			close(net->channel[side][i].channel.fd);
			close(net->channel[side][i].write_fd);
		}
	}
}

static void put(int fd, const void *what, size_t size)
{
	if (write(fd, what, size) != (ssize_t)size)
		abort();
}

static bool get(int fd, void *what, size_t size)
{
	return read(fd, what, size) == (ssize_t)size;
}

/* From now on who reads when nothing is there waits for ever. */
static void make_blocking(int fd)
{
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
}

static void send_event(struct fake_cq *cq)
{
	struct fake_net *net = cq->net;
	struct ibv_cq *named = &cq->cq;
	struct fake_channel *c = (struct fake_channel *)cq->cq.channel;

	if (fake_mistake(net, FAULT_EVENT_LOST, true))
		return;
	if (fake_mistake(net, FAULT_EVENT_CQ, true))
		named = net->cq[!cq->side][0];
	if (fake_mistake(net, FAULT_EVENT_CHANNEL, true))
		c = c == net->channel[cq->side] ? c + 1 : c - 1;
	if (fake_mistake(net, FAULT_EVENT_TWICE, true))
		put(c->write_fd, &named, sizeof(named));
	put(c->write_fd, &named, sizeof(named));
	if (fake_mistake(net, FAULT_EVENT_BLOCKS, true))
		make_blocking(c->channel.fd);
}

int fake_arm(struct ibv_cq *ibcq, int solicited_only)
{
	struct fake_cq *cq = (struct fake_cq *)ibcq;

	/* who has asked for all does not get less by asking for less */
	cq->solicited = solicited_only && (!cq->armed || cq->solicited);
	cq->armed = true;
	return 0;
}

/*
 * The mistake is one as long as nothing comes that would excuse it: only with
 * the last QP, which has but this entry, and then the NIC is quiet for a while.
 */
static bool unsolicited(const struct fake_cq *cq)
{
	struct fake_net *net = cq->net;
	const struct fake_qp *last = &net->qp[0][net->setup.qps - 1];

	if (!fake_mistake(net, FAULT_EVENT_UNSOLICITED,
			  cq->armed && cq->tail - cq->head == 1 &&
				  cq->wc[cq->head % CQ_DEPTH].qp_num ==
					  last->qp.qp_num))
		return false;
	net->pause = 20;
	return true;
}

void fake_notify(struct fake_cq *cq, bool solicited)
{
	bool wanted = cq->armed && (solicited || !cq->solicited);

	if (wanted || unsolicited(cq) ||
	    fake_mistake(cq->net, FAULT_EVENT_UNARMED, !cq->armed)) {
		cq->armed = false;
		send_event(cq);
	}
}

int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq,
		     void **context)
{
	struct fake_net *net;

	if (!get(channel->fd, cq, sizeof(*cq)))
		return -1;
	net = ((struct fake_cq *)*cq)->net;
	*context = (*cq)->cq_context;
	if (fake_mistake(net, FAULT_EVENT_CONTEXT, true))
		*context = net;
	__atomic_fetch_add(&net->unacknowledged, 1, __ATOMIC_RELAXED);
	return 0;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int n)
{
	__atomic_fetch_sub(&((struct fake_cq *)cq)->net->unacknowledged, n,
			   __ATOMIC_RELAXED);
}

void fake_async(struct fake_net *net, unsigned int side,
		const struct ibv_async_event *ev)
{
	put(net->async_fd[side], ev, sizeof(*ev));
	if (fake_mistake(net, FAULT_ASYNC_BLOCKS, true))
		make_blocking(net->context[side].async_fd);
}

int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *ev)
{
	return get(context->async_fd, ev, sizeof(*ev)) ? 0 : -1;
}

void ibv_ack_async_event(struct ibv_async_event *ev)
{
	(void)ev;
}

unsigned int fake_unacknowledged(const struct fake_net *net)
{
	return net->unacknowledged;
}
