// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Events and completions that wait for whom they are of */
#include "inner.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct item *cq_events, *async_events, *completions;

void put(struct item **queue, const struct item *item)
{
	struct item *i = malloc(sizeof(*i));

	if (!i)
		die("no memory");
	*i = *item;
	i->next = NULL;
	pthread_mutex_lock(&lock);
	while (*queue)
		queue = &(*queue)->next;
	*queue = i;
	pthread_mutex_unlock(&lock);
}

bool get(struct item **queue, const void *of, struct item *item)
{
	struct item *i;

	pthread_mutex_lock(&lock);
	while (*queue && (*queue)->of != of)
		queue = &(*queue)->next;
	i = *queue;
	if (i) {
		*item = *i;
		*queue = i->next;
	}
	pthread_mutex_unlock(&lock);
	free(i);
	return i;
}

/* what an object that is destroyed leaves: of it, or with it as the element */
void purge(struct item **queue, const void *object)
{
	struct item *gone;

	pthread_mutex_lock(&lock);
	while (*queue) {
		gone = *queue;
		if (gone->of != object && gone->event.element.cq != object) {
			queue = &gone->next;
			continue;
		}
		*queue = gone->next;
		free(gone);
	}
	pthread_mutex_unlock(&lock);
}

void fake_complete(struct ibv_cq *real, const struct ibv_wc *wc)
{
	OWN(CQ, real);
	put(&completions, &(struct item){ .of = real, .wc = *wc });
}

/* Descriptors can be read, once for each event. */
int open_fd(void)
{
	int fd = eventfd(0, EFD_SEMAPHORE | EFD_NONBLOCK);

	if (fd < 0)
		die("eventfd: %s", strerror(errno));
	return fd;
}

void ring(int fd)
{
	if (write(fd, &(uint64_t){ 1 }, sizeof(uint64_t)) < 0)
		die("eventfd: %s", strerror(errno));
}

void unring(int fd)
{
	uint64_t n;

	if (read(fd, &n, sizeof(n)) < 0)
		die("eventfd: %s", strerror(errno));
}

void fake_cq_event(struct ibv_cq *real)
{
	OWN(CQ, real);
	put(&cq_events,
	    &(struct item){ .of = real->channel, .event.element.cq = real });
	ring(real->channel->fd);
}

void fake_async_event(struct ibv_context *real,
		      const struct ibv_async_event *event)
{
	OWN(CONTEXT, real);
	put(&async_events, &(struct item){ .of = real, .event = *event });
	ring(real->async_fd);
}

/* with the lock */
static unsigned int completions_of(const void *cq)
{
	unsigned int n = 0;

	for (struct item *i = completions; i; i = i->next)
		n += i->of == cq;
	return n;
}

unsigned int fake_completions(const struct ibv_cq *real)
{
	unsigned int n;

	pthread_mutex_lock(&lock);
	n = completions_of(real);
	pthread_mutex_unlock(&lock);
	return n;
}

/* with the lock: it was armed */
static void put_event(struct fake_cq *f)
{
	struct item **end = &cq_events, *i = calloc(1, sizeof(*i));

	if (!i)
		die("no memory");
	f->armed = 0;
	i->of = f->ex.channel;
	i->event.element.cq = ibv_cq_ex_to_cq(&f->ex);
	while (*end)
		end = &(*end)->next;
	*end = i;
	ring(f->ex.channel->fd);
}

/* with the lock */
void put_completion(struct ibv_cq *cq, const struct ibv_wc *wc)
{
	struct item **end = &completions, *i = calloc(1, sizeof(*i));
	struct fake_cq *f = (struct fake_cq *)cq;

	if (!i)
		die("no memory");
	if (completions_of(cq) >= (unsigned int)cq->cqe)
		die("CQ %p is overrun", (void *)cq);
	i->of = cq;
	i->wc = *wc;
	while (*end)
		end = &(*end)->next;
	*end = i;
	if (f->ex.channel &&
	    (f->armed == 1 || (f->armed && wc->status != IBV_WC_SUCCESS)))
		put_event(f);
}

bool items_left(void)
{
	return cq_events || async_events || completions;
}
