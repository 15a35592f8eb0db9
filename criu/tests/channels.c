// SPDX-License-Identifier: GPL-2.0
/*
 * channels: files of rdma_cm.
 *
 *	channels [-d DEVICE] [-g GID_INDEX] [-n] [-e EXTRA]
 *
 * A process has a channel of rdma_cm without ids, which is not blocking, watched
 * by epoll and duplicated, and a verbs context (-n: none). "ready" goes to stdout;
 * on SIGUSR1 the channel must be as it was, but that nothing can be made on it, and
 * a new one must work. Then "PASS", else "FAIL: reason".
 *
 * EXTRA is something that cannot be moved, an id: "bound" to the device's address,
 * "listening" on all addresses, or bound by a thread that has ended ("thread") or by a
 * process that has left the channel to its child since ("child"). An id that is
 * bound to nothing ("unbound") is lost, of which a dump warns.
 */
#include <arpa/inet.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loop.h"

static struct ibv_context *verbs;
static struct rdma_event_channel *channel;
static struct rdma_cm_id *id;
static struct sockaddr_in address = { .sin_family = AF_INET };
static struct watched file; /* the channel's */
static pid_t heir;	    /* has the channel; 0: we have it */

/* RoCE's GIDs end with the IPv4 address */
static void find_address(int gid_index)
{
	union ibv_gid gid;

	NEED(!ibv_query_gid(verbs, 1, gid_index, &gid));
	memcpy(&address.sin_addr, gid.raw + 12, 4);
}

static void make(void)
{
	NEED(channel = rdma_create_event_channel());
	file = loop_watch(channel->fd);
}

static void *make_id(void *to)
{
	NEED(!rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
	NEED(!rdma_bind_addr(id, to));
	return NULL;
}

/* has the channel, and nothing else of ours; SIGUSR1 comes to it, too */
static void be_heir(void)
{
	sigset_t usr1;
	int sig;

	NEED(!close(verbs->cmd_fd) && !close(verbs->async_fd));
	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	NEED(!sigwait(&usr1, &sig));
	loop_need_watched(&file);
	NEED(!loop_is_ready(&file, 0));
	_exit(0);
}

static void make_extra(const char *extra)
{
	struct sockaddr_in any = { .sin_family = AF_INET };
	pthread_t thread;

	if (!strcmp(extra, "unbound")) {
		NEED(!rdma_create_id(channel, &id, NULL, RDMA_PS_TCP));
	} else if (!strcmp(extra, "bound")) {
		make_id(&address);
	} else if (!strcmp(extra, "listening")) {
		make_id(&any);
		NEED(!rdma_listen(id, 1));
	} else if (!strcmp(extra, "thread")) {
		NEED(!pthread_create(&thread, NULL, make_id, &address));
		NEED(!pthread_join(thread, NULL));
	} else if (!strcmp(extra, "child")) {
		make_id(&address);
		NEED((heir = fork()) >= 0);
		if (!heir)
			be_heir();
		NEED(!close(file.fd) && !close(file.dup) && !close(file.epoll));
	} else {
		printf("FAIL: unknown extra %s\n", extra);
		exit(2);
	}
}

/* there is nothing to be done with the id, not even to destroy it */
static void need_lost(void)
{
	struct sockaddr_in any = { .sin_family = AF_INET };

	NEED(rdma_bind_addr(id, (struct sockaddr *)&any) && errno == EACCES);
	NEED(rdma_destroy_id(id) && errno == EACCES);
}

/* one file by two numbers, empty, and watched */
static void check_channel(int moved)
{
	struct rdma_cm_event *event;

	loop_need_watched(&file);
	NEED(!loop_is_ready(&file, 0));
	NEED(!epoll_ctl(file.epoll, EPOLL_CTL_DEL, channel->fd, NULL));
	NEED(rdma_get_cm_event(channel, &event));
	/* the kernel lets only those use it whose credentials opened it */
	NEED(errno == (moved ? EACCES : EAGAIN));
	if (id && moved)
		need_lost();
	else if (id)
		NEED(!rdma_destroy_id(id));
	rdma_destroy_event_channel(channel);
	NEED(!close(file.dup));
}

static void check(int moved)
{
	struct sockaddr_in any = { .sin_family = AF_INET };
	int status;

	if (heir)
		NEED(wait(&status) == heir && WIFEXITED(status) &&
		     !WEXITSTATUS(status));
	else
		check_channel(moved);
	NEED(channel = rdma_create_event_channel());
	make_id(&any);
	NEED(!rdma_listen(id, 1));
	NEED(!rdma_destroy_id(id));
	rdma_destroy_event_channel(channel);
	NEED(!verbs || !ibv_close_device(verbs));
}

int main(int argc, char **argv)
{
	const char *device = NULL, *extra = NULL;
	int opt, gid_index = 1, no_context = 0;

	while ((opt = getopt(argc, argv, "d:g:e:n")) != -1) {
		if (opt == 'd')
			device = optarg;
		else if (opt == 'g')
			gid_index = atoi(optarg);
		else if (opt == 'e')
			extra = optarg;
		else if (opt == 'n')
			no_context = 1;
		else
			return 2;
	}
	verbs = loop_open(device);
	find_address(gid_index);
	make();
	if (extra)
		make_extra(extra);
	if (no_context) {
		NEED(!ibv_close_device(verbs));
		verbs = NULL;
	}
	loop_wait();
	check(!extra || !strcmp(extra, "unbound"));
	puts("PASS");
	return 0;
}
