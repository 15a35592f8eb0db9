// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "here.h"

#include <dirent.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "gate.h"

/* --- files --- */

/*
 * A rdma_rxe that can migrate by itself is carried by the kernel's protocol, whoever has
 * opened it. No other driver has the module's parameter, or shows a parent.
 */
static bool migrates(int fd)
{
	char path[PATH_MAX], name[IBV_SYSFS_NAME_MAX];
	struct stat st;
	FILE *f;
	int n;

	if (access("/sys/module/rdma_rxe/parameters/migr_first", F_OK) ||
	    fstat(fd, &st))
		return false;
	snprintf(path, sizeof(path), "/sys/dev/char/%u:%u/ibdev",
		 major(st.st_rdev), minor(st.st_rdev));
	f = fopen(path, "re");
	if (!f)
		return false;
	n = fscanf(f, "%63s", name);
	fclose(f);
	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/parent", name);
	return n == 1 && !access(path, F_OK);
}

static bool is_ours(int fd)
{
	struct shadow_context *c;

	TAILQ_FOREACH (c, &contexts, entry)
		if (c->real->cmd_fd == fd)
			return true;
	return gate_is_unplugged(fd);
}

static int check_file(const char *name, struct swap *s)
{
	static const char what[] = "/dev/infiniband/uverbs";
	char path[64], link[PATH_MAX], *at;
	int fd = atoi(name);
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = readlink(path, link, sizeof(link) - 1);
	if (n < 0)
		return 0;
	link[n] = 0;
	at = strstr(link, what);
	if (!at || is_ours(fd) || migrates(fd))
		return 0;
	return swap_refuse(
		s, EOPNOTSUPP,
		"descriptor %d is %.64s, which was not opened through the layer",
		fd, at);
}

static int check_files(struct swap *s)
{
	DIR *d = opendir("/proc/self/fd");
	const struct dirent *e;
	int err = 0;

	if (!d)
		return swap_refuse(s, errno, "/proc/self/fd: %s",
				   strerror(errno));
	while (!err && (e = readdir(d)))
		err = check_file(e->d_name, s);
	closedir(d);
	return err;
}

/* --- memory --- */

/* The kernel looks at the thread's, and so for CAP_IPC_LOCK. */
static bool has_no_limit(void)
{
	struct __user_cap_header_struct header = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct data[2];

	return !syscall(SYS_capget, &header, data) &&
	       data[0].effective & 1U << CAP_IPC_LOCK;
}

static uint64_t pinned(void)
{
	FILE *f = fopen("/proc/self/status", "re");
	uint64_t kib = 0;
	char line[256];

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "VmPin: %" SCNu64, &kib) == 1)
			break;
	if (f)
		fclose(f);
	return kib;
}

static uint64_t kib_of_regions(void)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	struct shadow_context *c;
	struct shadow_mr *mr;
	uint64_t kib = 0, at;

	EACH (c, mr, mrs)
		if (mr->kind == MR_MEMORY &&
		    !(mr->access & IBV_ACCESS_ON_DEMAND)) {
			at = (uintptr_t)mr->mr.addr % page;
			kib += (at + mr->mr.length + page - 1) / page * page /
			       1024;
		}
	return kib;
}

/* Queues are pinned, too, where they are the process' memory. */
static int check_memory(struct swap *s)
{
	uint64_t is = pinned(), again = kib_of_regions(), most;
	struct rlimit limit;

	if (again < is)
		again = is;
	if (getrlimit(RLIMIT_MEMLOCK, &limit) ||
	    limit.rlim_cur == RLIM_INFINITY || has_no_limit())
		return 0;
	most = limit.rlim_cur / 1024;
	if (is + again <= most)
		return 0;
	return swap_refuse(
		s, ENOMEM,
		"RLIMIT_MEMLOCK is %" PRIu64 " KiB: %" PRIu64
		" are pinned, and %" PRIu64
		" more would be for what takes the place of that here",
		most, is, again);
}

int here_check(struct swap *s)
{
	int err = check_files(s);

	return err ? err : check_memory(s);
}
