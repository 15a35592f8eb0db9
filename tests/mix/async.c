// SPDX-License-Identifier: GPL-2.0
/* What the device says unasked: nothing but that the SRQ's limit is reached. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>

#include "traffic.h"

int async_start(struct traffic *t, struct ibv_context *context)
{
	t->context = context;
	return events_watch(&t->events, context->async_fd);
}

static void judge(struct traffic *t, const struct ibv_async_event *ev)
{
	if (ev->event_type != IBV_EVENT_SRQ_LIMIT_REACHED || !t->srq.srq)
		violation(&t->verdict, "async event: %s",
			  ibv_event_type_str(ev->event_type));
	else if (ev->element.srq != t->srq.srq)
		violation(&t->verdict, "SRQ limit event for %p, no SRQ of ours",
			  (void *)ev->element.srq);
	else
		srq_limit_reached(&t->srq);
}

void async_poll(struct traffic *t)
{
	struct ibv_async_event ev;
	bool came = false;

	if (!t->context || verdict_fatal(&t->verdict))
		return;
	if (!(fcntl(t->context->async_fd, F_GETFL) & O_NONBLOCK)) {
		violation_fatal(&t->verdict, "async_fd has lost O_NONBLOCK");
		return;
	}
	while (!ibv_get_async_event(t->context, &ev)) {
		judge(t, &ev);
		ibv_ack_async_event(&ev);
		came = true;
	}
	if (errno != EAGAIN && errno != EINTR)
		violation_fatal(&t->verdict, "ibv_get_async_event: %s",
				strerror(errno));
	/* not before all were read: none may come for what is armed now */
	if (came && t->srq.srq)
		post_shared(t);
}

void async_settle(struct traffic *t, unsigned int seconds)
{
	struct pollfd p = { .events = POLLIN };

	if (!t->context)
		return;
	p.fd = t->context->async_fd;
	if (t->srq.must)
		poll(&p, 1, seconds * 1000);
	async_poll(t);
}
