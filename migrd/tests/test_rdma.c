// SPDX-License-Identifier: GPL-2.0
/*
 * Whose a queue pair is, of a kernel that is none
 */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <rdma/rdma_netlink.h>

#include "check.h"
#include "nldev.h"
#include "rdma.h"

/* --- the kernel --- */

/* QPs and PDs of devices 1 and 2 */
static const struct object {
	int command;
	uint32_t device, port, id;
	bool is_kernels;
	uint32_t pdn;
} *object;
static uint32_t tid_of_qp, tid_of_pd, tid_of_third, tids_of_mrs[2];
static unsigned int dumps_of_mrs;

static const struct object objects[] = {
	{ RDMA_NLDEV_CMD_RES_QP_GET, 1, 1, 17, false, 5 },
	{ RDMA_NLDEV_CMD_RES_QP_GET, 1, 1, 1, true, 0 },
	{ RDMA_NLDEV_CMD_RES_QP_GET, 2, 2, 18, false, 6 },
	{ RDMA_NLDEV_CMD_RES_QP_GET, 3, 1, 17, false, 5 },
	{ RDMA_NLDEV_CMD_RES_QP_GET, 4, 1, 17, false, 5 },
	{ RDMA_NLDEV_CMD_RES_QP_GET, 1, 1, 19, false, 5 },
	{ RDMA_NLDEV_CMD_RES_QP_GET, 1, 1, 20, false, 7 },
	{ RDMA_NLDEV_CMD_RES_PD_GET, 1, 0, 5, false, 5 },
	{ RDMA_NLDEV_CMD_RES_PD_GET, 1, 0, 7, false, 7 },
};

static struct mnl_socket {
	char request[512];
	unsigned int said;
} kernel;

static const char *const devices[] = { "a0", "a1", "a2", "gone" };
static int failure;

struct mnl_socket *mnl_socket_open2(int bus, int flags)
{
	(void)flags;
	CHECK(bus == NETLINK_RDMA);
	return &kernel;
}

int mnl_socket_bind(struct mnl_socket *nl, unsigned int groups, pid_t pid)
{
	(void)nl;
	(void)groups;
	(void)pid;
	return 0;
}

int mnl_socket_get_fd(const struct mnl_socket *nl)
{
	static int both[2];

	(void)nl;
	if (!both[0])
		MUST(!socketpair(AF_UNIX, SOCK_DGRAM, 0, both));
	return both[0]; /* for its time-out */
}

unsigned int mnl_socket_get_portid(const struct mnl_socket *nl)
{
	(void)nl;
	return 99;
}

int mnl_socket_close(struct mnl_socket *nl)
{
	(void)nl;
	return 0;
}

static uint32_t attribute(const struct nlmsghdr *h, uint16_t type)
{
	const struct nlattr *a;

	mnl_attr_for_each (a, h, 0)
		if (mnl_attr_get_type(a) == type)
			return mnl_attr_get_u32(a);
	return 0;
}

static int command_of(const struct nlmsghdr *h)
{
	return RDMA_NL_GET_OP(h->nlmsg_type);
}

ssize_t mnl_socket_sendto(const struct mnl_socket *nl, const void *buf,
			  size_t bytes)
{
	const struct nlmsghdr *h = buf;

	(void)nl;
	MUST(bytes <= sizeof(kernel.request) && bytes == h->nlmsg_len);
	memcpy(kernel.request, buf, bytes);
	kernel.said = 0;
	object = NULL;
	dumps_of_mrs += command_of(h) == RDMA_NLDEV_CMD_RES_MR_GET;
	for (size_t i = 0; i < sizeof(objects) / sizeof(objects[0]); i++)
		if (objects[i].command == command_of(h) &&
		    objects[i].device ==
			    attribute(h, RDMA_NLDEV_ATTR_DEV_INDEX) &&
		    objects[i].id ==
			    attribute(h,
				      command_of(h) == RDMA_NLDEV_CMD_RES_QP_GET
					      ? RDMA_NLDEV_ATTR_RES_LQPN
					      : RDMA_NLDEV_ATTR_RES_PDN) &&
		    /* else the kernel says EINVAL */
		    !attribute(h, RDMA_NLDEV_ATTR_PORT_INDEX) ==
			    (command_of(h) != RDMA_NLDEV_CMD_RES_QP_GET))
			object = &objects[i];
	return (ssize_t)bytes;
}

static void tell_object(struct nlmsghdr *h)
{
	bool is_qp = object->command == RDMA_NLDEV_CMD_RES_QP_GET;
	uint32_t tid = is_qp ? tid_of_qp : tid_of_pd;

	if (object->device == 3)
		tid = tid_of_third;
	if (object->is_kernels) {
		mnl_attr_put_strz(h, RDMA_NLDEV_ATTR_RES_KERN_NAME, "ib_core");
		return;
	}
	if (tid)
		mnl_attr_put_u32(h, RDMA_NLDEV_ATTR_RES_PID, tid);
	mnl_attr_put_u32(h, RDMA_NLDEV_ATTR_RES_PDN, object->pdn);
}

static void tell_mr(struct nlmsghdr *h, uint32_t tid, uint32_t pdn)
{
	struct nlattr *a = mnl_attr_nest_start(h, RDMA_NLDEV_ATTR_RES_MR_ENTRY);

	if (tid)
		mnl_attr_put_u32(h, RDMA_NLDEV_ATTR_RES_PID, tid);
	mnl_attr_put_u32(h, RDMA_NLDEV_ATTR_RES_PDN, pdn);
	mnl_attr_nest_end(h, a);
}

/* one is of another PD */
static void tell_mrs(struct nlmsghdr *h)
{
	struct nlattr *a = mnl_attr_nest_start(h, RDMA_NLDEV_ATTR_RES_MR);

	tell_mr(h, tids_of_mrs[0], 5);
	tell_mr(h, (uint32_t)getppid(), 6);
	tell_mr(h, tids_of_mrs[1], 5);
	mnl_attr_nest_end(h, a);
}

static void tell_end(struct nlmsghdr *h, uint16_t type, int err)
{
	struct nlmsgerr *e;

	h->nlmsg_type = type;
	e = mnl_nlmsg_put_extra_header(h, sizeof(*e));
	e->error = -err;
}

/* a message at a time */
ssize_t mnl_socket_recvfrom(const struct mnl_socket *nl, void *buf, size_t room)
{
	const struct nlmsghdr *asked = (const void *)kernel.request;
	bool is_dump =
		asked->nlmsg_flags == (NLM_F_REQUEST | NLM_F_ACK | NLM_F_DUMP);
	struct nlmsghdr *h = mnl_nlmsg_put_header(buf);
	uint32_t n = kernel.said++;

	(void)nl;
	MUST(room >= 4096);
	h->nlmsg_type = asked->nlmsg_type;
	h->nlmsg_seq = asked->nlmsg_seq;
	h->nlmsg_pid = 99;
	if (failure) {
		tell_end(h, NLMSG_ERROR, failure);
	} else if (is_dump && !n &&
		   command_of(asked) == RDMA_NLDEV_CMD_RES_MR_GET) {
		h->nlmsg_flags = NLM_F_MULTI;
		tell_mrs(h);
	} else if (is_dump && n < 4 &&
		   command_of(asked) == RDMA_NLDEV_CMD_GET) {
		h->nlmsg_flags = NLM_F_MULTI;
		mnl_attr_put_u32(h, RDMA_NLDEV_ATTR_DEV_INDEX, n + 1);
		mnl_attr_put_strz(h, RDMA_NLDEV_ATTR_DEV_NAME, devices[n]);
	} else if (is_dump) {
		h->nlmsg_flags = NLM_F_MULTI;
		tell_end(h, NLMSG_DONE, 0);
	} else if (!object) {
		tell_end(h, NLMSG_ERROR, ENOENT);
	} else if (object->port !=
		   attribute(asked, RDMA_NLDEV_ATTR_PORT_INDEX)) {
		tell_end(h, NLMSG_ERROR, EAGAIN); /* fill_res_qp_entry() */
	} else if (!n) {
		tell_object(h);
	} else {
		tell_end(h, NLMSG_ERROR, 0);
	}
	return h->nlmsg_len;
}

/* --- its files --- */

static void put_gid(const char *device, int port, int i, const char *text)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "class/%s", device);
	mkdir(path, 0755);
	strcat(path, "/ports");
	mkdir(path, 0755);
	snprintf(path, sizeof(path), "class/%s/ports/%d", device, port);
	mkdir(path, 0755);
	strcat(path, "/gids");
	mkdir(path, 0755);
	snprintf(path, sizeof(path), "class/%s/ports/%d/gids/%d", device, port,
		 i);
	f = fopen(path, "w");
	MUST(f);
	fputs(text, f);
	fclose(f);
}

static void make_files(void)
{
	static char where[] = "/tmp/migrd-test-XXXXXX";

	MUST(mkdtemp(where) && !chdir(where) && !mkdir("class", 0755));
	put_gid("a0", 1, 0, "fe80:0000:0000:0000:0000:0000:0000:0001\n");
	put_gid("a0", 1, 1, "0000:0000:0000:0000:0000:ffff:0a0a:0002\n");
	put_gid("a0", 1, 2, "0000:0000:0000:0000:0000:0000:0000:0000\n");
	put_gid("a1", 1, 0, "fe80:0000:0000:0000:0000:0000:0000:0002\n");
	put_gid("a1", 1, 1, ""); /* one that is not there */
	put_gid("a1", 2, 0, "fe80:0000:0000:0000:0000:0000:0000:0003\n");
	put_gid("a2", 1, 0, "fe80:0000:0000:0000:0000:0000:0000:0001\n");
	/* a file of a device that others have not */
	put_gid("other", 1, 0, "fe80:0000:0000:0000:0000:0000:0000:0009\n");
}

static void remove_files(void)
{
	char where[64], command[128];

	MUST(getcwd(where, sizeof(where)));
	snprintf(command, sizeof(command), "rm -r %s", where);
	CHECK(!system(command));
}

/* --- who --- */

static pid_t pid;
static char reason[256];

static int ask(uint32_t qpn, const char *text)
{
	struct in6_addr gid;

	MUST(inet_pton(AF_INET6, text, &gid) == 1);
	pid = 0;
	reason[0] = 0;
	return rdma_owner(qpn, &gid, &pid, reason, sizeof(reason));
}

static void test_owner(void)
{
	puts("owners");
	tid_of_qp = (uint32_t)getpid();
	CHECK(!ask(17, "::ffff:10.10.0.2") && pid == getpid());
	CHECK(ask(18, "::ffff:10.10.0.2") == ENOENT);
	CHECK(!strcmp(reason, "there is no QP 18 at ::ffff:10.10.0.2"), "%s",
	      reason);
	/* of the second port, behind a GID that cannot be read */
	CHECK(!ask(18, "fe80::3") && pid == getpid());
	CHECK(ask(18, "fe80::2") == ENOENT); /* its other one */
	CHECK(!strcmp(reason, "there is no QP 18 at fe80::2"), "%s", reason);
	CHECK(ask(17, "fe80::9") == ENOENT);
	CHECK(!strcmp(reason, "no device has the GID fe80::9"), "%s", reason);
	CHECK(ask(1, "::ffff:10.10.0.2") == EPERM);
	CHECK(!strcmp(reason, "QP 1 of a0 is the kernel's"), "%s", reason);
}

static int owns(pid_t whose, uint32_t a, uint32_t b)
{
	const uint32_t qpns[] = { a, b };
	struct in6_addr gid;

	MUST(inet_pton(AF_INET6, "::ffff:10.10.0.2", &gid) == 1);
	reason[0] = 0;
	return rdma_owns(whose, qpns, 2, &gid, reason, sizeof(reason));
}

static void test_owns(void)
{
	puts("all of them");
	tid_of_qp = (uint32_t)getpid();
	CHECK(!owns(getpid(), 17, 17));
	CHECK(owns(getpid(), 17, 18) == ENOENT);
	CHECK(owns(getpid(), 17, 1) == EPERM);
	CHECK(owns(getppid(), 17, 17) == EPERM);
	CHECK(!strcmp(reason, "QP 17 is another process'"), "%s", reason);
}

static void *of_thread(void *arg)
{
	(void)arg;
	tid_of_qp = (uint32_t)syscall(SYS_gettid);
	CHECK((pid_t)tid_of_qp != getpid());
	CHECK(!ask(17, "::ffff:10.10.0.2") && pid == getpid());
	return NULL;
}

static void test_threads(void)
{
	pthread_t thread;

	puts("threads");
	MUST(!pthread_create(&thread, NULL, of_thread, NULL));
	pthread_join(thread, NULL);
	/* It has ended, as the kernel knows. */
	tid_of_qp = 0;
	tid_of_pd = (uint32_t)getpid();
	CHECK(!ask(17, "::ffff:10.10.0.2") && pid == getpid());
	tid_of_pd = 0;
	CHECK(ask(17, "::ffff:10.10.0.2") == ESRCH);
	CHECK(strstr(reason, "QP 17 of a0: who has made it is gone"), "%s",
	      reason);
	/* a shadow process has made both */
	tids_of_mrs[0] = (uint32_t)getpid();
	CHECK(!ask(17, "::ffff:10.10.0.2") && pid == getpid());
	tids_of_mrs[1] = tids_of_mrs[0];
	CHECK(!ask(17, "::ffff:10.10.0.2") && pid == getpid());
	/* that is asked for once, of all that are on a PD */
	dumps_of_mrs = 0;
	CHECK(!owns(getpid(), 17, 19) && dumps_of_mrs == 1);
	CHECK(owns(getpid(), 17, 20) == ESRCH && dumps_of_mrs == 3);
	CHECK(owns(getppid(), 19, 17) == EPERM);
	tids_of_mrs[1] = (uint32_t)getppid();
	CHECK(ask(17, "::ffff:10.10.0.2") == ESRCH);
	tids_of_mrs[0] = tids_of_mrs[1] = 0;
	/* a PD that is gone meanwhile */
	CHECK(ask(18, "fe80::3") == ENOENT);
	/* ... or the thread */
	tid_of_qp = 4000000;
	CHECK(ask(17, "::ffff:10.10.0.2") == ESRCH);
}

/* The same GID, as two networks may have it */
static void test_several(void)
{
	puts("several devices");
	tid_of_qp = (uint32_t)getpid();
	tid_of_third = tid_of_qp;
	CHECK(!ask(17, "fe80::1") && pid == getpid());
	tid_of_third = (uint32_t)getppid();
	CHECK(ask(17, "fe80::1") == ENOTUNIQ);
	CHECK(!strcmp(reason,
		      "several devices have the GID fe80::1 and a QP 17"),
	      "%s", reason);
}

static void test_failure(void)
{
	puts("failures");
	failure = EOPNOTSUPP;
	CHECK(ask(17, "fe80::1") == EOPNOTSUPP);
	CHECK(!strncmp(reason, "RDMA netlink: ", 14), "%s", reason);
	failure = 0;
}

int main(void)
{
	make_files();
	test_owner();
	test_owns();
	test_threads();
	test_several();
	test_failure();
	remove_files();
	return check_result();
}
