// SPDX-License-Identifier: GPL-2.0
#include "rdma.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "gids.h"
#include "nldev.h"
#include "proc.h"

enum {
	MOST_DEVICES = 64,
	PATIENCE_S = 5,
};

struct query {
	struct mnl_socket *nl;
	uint32_t seq;
	struct nldev_device devices[MOST_DEVICES];
	uint32_t ports[MOST_DEVICES]; /* that have the GID, or 0 */
	unsigned int n;
	struct nldev_object object;
	bool has_object;
	pid_t tid,
		pid; /* of the last one: a process makes many of its objects by one thread */
	pid_t maker; /* of MRs of that object's PD; -1: several */
	struct {     /* the last one: most QPs of a process are on the same */
		bool known;
		uint32_t device, pdn;
		pid_t owner;
	} pd;
};

/* --- netlink --- */

static int on_device(const struct nlmsghdr *h, void *arg)
{
	struct query *q = arg;

	if (q->n < MOST_DEVICES && nldev_is_device(h, &q->devices[q->n]))
		q->n++;
	return MNL_CB_OK;
}

static int on_object(const struct nlmsghdr *h, void *arg)
{
	struct query *q = arg;

	q->has_object = nldev_is_object(h, &q->object);
	return MNL_CB_OK;
}

/* 0 or an errno */
static int talk(struct query *q, const struct nlmsghdr *h, mnl_cb_t cb)
{
	unsigned int port = mnl_socket_get_portid(q->nl);
	char buf[NLDEV_BYTES];
	ssize_t n;
	int more;

	if (mnl_socket_sendto(q->nl, h, h->nlmsg_len) < 0)
		return errno;
	do {
		n = mnl_socket_recvfrom(q->nl, buf, sizeof(buf));
		if (n < 0)
			return errno;
		more = mnl_cb_run(buf, (size_t)n, q->seq, port, cb, q);
		if (more < 0)
			return errno;
	} while (more > MNL_CB_STOP);
	return 0;
}

static pid_t process_of(struct query *q, pid_t tid)
{
	if (!q->pid || q->tid != tid) {
		q->tid = tid;
		q->pid = proc_of_thread(tid);
	}
	return q->pid;
}

static int get_devices(struct query *q)
{
	char buf[NLDEV_BYTES];

	return talk(q, nldev_ask_devices(buf, ++q->seq), on_device);
}

static int get_qp(struct query *q, uint32_t device, uint32_t port, uint32_t qpn)
{
	char buf[NLDEV_BYTES];

	q->has_object = false;
	return talk(q, nldev_ask_qp(buf, ++q->seq, device, port, qpn),
		    on_object);
}

static int get_pd(struct query *q, uint32_t device, uint32_t pdn)
{
	char buf[NLDEV_BYTES];

	q->has_object = false;
	return talk(q, nldev_ask_pd(buf, ++q->seq, device, pdn), on_object);
}

static void is_maker(const struct nldev_object *o, void *arg)
{
	struct query *q = arg;
	pid_t pid;

	if (!o->tid || !o->has_pdn || o->pdn != q->object.pdn)
		return;
	pid = process_of(q, (pid_t)o->tid);
	if (pid && q->maker && q->maker != pid)
		q->maker = -1;
	else if (pid)
		q->maker = pid;
}

static int on_mrs(const struct nlmsghdr *h, void *arg)
{
	nldev_each_mr(h, is_maker, arg);
	return MNL_CB_OK;
}

/* Return: the process that has registered memory with the PD of q->object, or 0 */
static pid_t maker_of_mrs(struct query *q, uint32_t device)
{
	char buf[NLDEV_BYTES];

	q->maker = 0;
	if (!q->object.has_pdn ||
	    talk(q, nldev_ask_mrs(buf, ++q->seq, device), on_mrs))
		return 0;
	return q->maker > 0 ? q->maker : 0;
}

/* --- who --- */

/* Return: 0, or an errno: *pid is the process of a QP whose thread has ended, or 0 */
static int owner_by_pd(struct query *q, uint32_t device,
		       const struct nldev_object *qp, pid_t *pid)
{
	int err;

	if (!q->pd.known || q->pd.device != device || q->pd.pdn != qp->pdn) {
		err = get_pd(q, device, qp->pdn);
		if (!err && !q->has_object)
			err = ENOENT;
		if (err)
			return err;
		q->pd.owner =
			q->object.tid ? process_of(q, (pid_t)q->object.tid) : 0;
		q->object = *qp;
		if (!q->pd.owner)
			q->pd.owner = maker_of_mrs(q, device);
		q->pd.known = true;
		q->pd.device = device;
		q->pd.pdn = qp->pdn;
	}
	*pid = q->pd.owner;
	return 0;
}

/*
 * The kernel knows the thread, if that has not ended. Then the one that has made the
 * PD may still be there. If a shadow process has made both, they are of who has registered
 * memory with that PD: only its owner can.
 */
static int owner_on(struct query *q, const struct nldev_device *d,
		    uint32_t port, uint32_t qpn, pid_t *pid, char *reason,
		    size_t bytes)
{
	int err = get_qp(q, d->index, port, qpn);
	const struct nldev_object qp = q->object;

	if (err == EAGAIN) /* there is one, of another port or of none yet */
		err = ENOENT;
	if (!err && q->has_object && q->object.is_kernels) {
		snprintf(reason, bytes, "QP %u of %s is the kernel's", qpn,
			 d->name);
		return EPERM;
	}
	if (!err && !q->has_object)
		err = ENOENT;
	*pid = 0;
	if (!err && qp.tid) {
		*pid = process_of(q, (pid_t)qp.tid);
		if (!*pid)
			*pid = maker_of_mrs(q, d->index);
	} else if (!err && qp.has_pdn) {
		err = owner_by_pd(q, d->index, &qp, pid);
	}
	if (err) {
		snprintf(reason, bytes, "QP %u of %s: %s", qpn, d->name,
			 strerror(err));
		return err;
	}
	if (*pid)
		return 0;
	snprintf(
		reason, bytes,
		"QP %u of %s: who has made it is gone, or cannot be seen from here",
		qpn, d->name);
	return ESRCH;
}

static int search(struct query *q, uint32_t qpn, const struct in6_addr *gid,
		  pid_t *pid, char *reason, size_t bytes)
{
	char text[INET6_ADDRSTRLEN];
	unsigned int devices = 0;
	bool found = false;
	pid_t p;
	int err;

	inet_ntop(AF_INET6, gid, text, sizeof(text));
	for (unsigned int i = 0; i < q->n; i++) {
		if (!q->ports[i])
			continue;
		devices++;
		err = owner_on(q, &q->devices[i], q->ports[i], qpn, &p, reason,
			       bytes);
		if (err == ENOENT)
			continue;
		if (err)
			return err;
		if (found && *pid != p) {
			snprintf(reason, bytes,
				 "several devices have the GID %s and a QP %u",
				 text, qpn);
			return ENOTUNIQ;
		}
		found = true;
		*pid = p;
	}
	if (found)
		return 0;
	if (devices)
		snprintf(reason, bytes, "there is no QP %u at %s", qpn, text);
	else
		snprintf(reason, bytes, "no device has the GID %s", text);
	return ENOENT;
}

/* 0 or an errno; query_end() also if it is that */
static int query_begin(struct query *q, const struct in6_addr *gid,
		       char *reason, size_t bytes)
{
	const struct timeval patience = { .tv_sec = PATIENCE_S };
	int err;

	*q = (struct query){ .nl = mnl_socket_open2(NETLINK_RDMA,
						    SOCK_CLOEXEC) };
	if (!q->nl || mnl_socket_bind(q->nl, 0, MNL_SOCKET_AUTOPID) < 0 ||
	    setsockopt(mnl_socket_get_fd(q->nl), SOL_SOCKET, SO_RCVTIMEO,
		       &patience, sizeof(patience)))
		err = errno;
	else
		err = get_devices(q);
	if (err)
		snprintf(reason, bytes, "RDMA netlink: %s", strerror(err));
	for (unsigned int i = 0; !err && i < q->n; i++)
		q->ports[i] = gids_port(q->devices[i].name, gid);
	return err;
}

static void query_end(struct query *q)
{
	if (q->nl)
		mnl_socket_close(q->nl);
}

int rdma_owner(uint32_t qpn, const struct in6_addr *gid, pid_t *pid,
	       char *reason, size_t bytes)
{
	struct query q;
	int err = query_begin(&q, gid, reason, bytes);

	if (!err)
		err = search(&q, qpn, gid, pid, reason, bytes);
	query_end(&q);
	return err;
}

int rdma_owns(pid_t pid, const uint32_t *qpns, size_t n,
	      const struct in6_addr *gid, char *reason, size_t bytes)
{
	struct query q;
	int err = query_begin(&q, gid, reason, bytes);
	pid_t owner;

	for (size_t i = 0; !err && i < n; i++) {
		err = search(&q, qpns[i], gid, &owner, reason, bytes);
		if (!err && owner != pid) {
			snprintf(reason, bytes, "QP %u is another process'",
				 qpns[i]);
			err = EPERM;
		}
	}
	query_end(&q);
	return err;
}
