// SPDX-License-Identifier: GPL-2.0
/*
 * Dead files and mappings: from images to what the task gets, which is this very
 * process, on a host that need not have any RDMA device
 */
#define _GNU_SOURCE
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <rdma/rdma_user_ioctl.h>

#include "../restore.c"

#include "../../libibverbs-ext/tests/image_builder.h"
#include "../../tests/check.h"

#define PAGE 4096UL
#define MAX_FD 40

static int dir;

int criu_get_image_dir(void)
{
	return dir;
}

static void write_file(uint32_t id, uint32_t type, uint32_t flags)
{
	struct rp_file_image img = {
		.context = RXE_MIGR_NO_HANDLE,
		.type = type,
		.flags = flags,
		.channel = RXE_MIGR_NO_HANDLE,
	};
	char name[32];

	rp_image_seal(&img, RP_IMAGE_FILE, sizeof(img));
	snprintf(name, sizeof(name), "rdma-file-%x.img", id);
	MUST(!rp_write_file(dir, name, &img, sizeof(img)));
}

static void write_task(unsigned int number, uint32_t vpid, uint32_t nr_files,
		       const struct rp_vma *vmas, uint32_t nr_vmas)
{
	size_t size = rp_dead_image_size(nr_vmas);
	struct rp_dead_image *img = calloc(1, size);
	char name[32];

	MUST(img);
	img->vpid = vpid;
	img->max_fd = MAX_FD;
	img->nr_files = nr_files;
	img->nr_vmas = nr_vmas;
	if (nr_vmas)
		memcpy(img + 1, vmas, nr_vmas * sizeof(*vmas));
	rp_image_seal(img, RP_IMAGE_DEAD, size);
	snprintf(name, sizeof(name), "rdma-dead-%u.img", number);
	MUST(!rp_write_file(dir, name, img, size));
	free(img);
}

/* Two tasks: this one with files 1 and 2, another one with file 3 */
static void write_tree(const struct rp_vma *vmas, uint32_t nr_vmas)
{
	MUST(!rp_remove_images(dir));
	write_file(1, RP_FILE_DEAD, O_RDWR);
	write_file(2, RP_FILE_DEAD, O_RDONLY | O_NONBLOCK);
	write_file(3, RP_FILE_DEAD, O_RDONLY);
	write_task(0, getpid(), 2, vmas, nr_vmas);
	write_task(1, getpid() + 1, 1, NULL, 0);
}

static bool readable(void)
{
	int err = rp_restore_init();

	rp_restore_fini();
	CHECK(!files && !rp_dead && !rp_nr_dead);
	return !err;
}

static void corrupt(const char *name, size_t at)
{
	int fd = openat(dir, name, O_RDWR);
	char byte;

	MUST(fd >= 0 && pread(fd, &byte, 1, at) == 1);
	byte ^= 1;
	MUST(pwrite(fd, &byte, 1, at) == 1);
	close(fd);
}

static void refused(void)
{
	write_tree(NULL, 0);
	CHECK(readable());
	MUST(!unlinkat(dir, "rdma-file-2.img", 0));
	CHECK(!readable());
	write_tree(NULL, 0);
	write_file(4, RP_FILE_DEAD, 0); /* of nobody */
	CHECK(!readable());
	write_tree(NULL, 0);
	MUST(!unlinkat(dir, "rdma-dead-1.img", 0));
	CHECK(!readable());
	write_tree(NULL, 0);
	write_task(2, getpid() + 1, 1, NULL, 0); /* the same task again */
	write_file(4, RP_FILE_DEAD, 0);
	CHECK(!readable());
	/* whole, but of another dump, as which all of them would be good */
	write_tree(NULL, 0);
	MUST(!rp_image_new_dump());
	write_file(2, RP_FILE_DEAD, O_RDONLY);
	CHECK(!readable());
	write_tree(NULL, 0);
	CHECK(readable());
	MUST(!rp_image_new_dump());
	write_task(1, getpid() + 1, 1, NULL, 0);
	CHECK(!readable());
	write_tree(NULL, 0);
	CHECK(readable());
	for (size_t i = 0; i < sizeof(struct rp_dead_image); i++) {
		write_tree(NULL, 0);
		corrupt("rdma-dead-1.img", i);
		CHECK(!readable());
	}
	for (size_t i = 0; i < sizeof(struct rp_file_image); i++) {
		write_tree(NULL, 0);
		corrupt("rdma-file-2.img", i);
		CHECK(!readable());
	}
	write_tree(NULL, 0);
	write_file(2, RP_FILE_DEAD, O_DIRECT); /* no such file can have that */
	MUST(!rp_restore_init());
	CHECK(rp_restore_file(2) == -1);
	rp_restore_fini();
	/* nothing that would need a device or a context */
	write_file(2, RXE_MIGR_CONTEXT, 0);
	CHECK(!readable());
}

/* A context's image that is good, and not the one of its task's dump */
static void other_context(void)
{
	const uint32_t fd = 3;
	size_t size = rp_task_image_size(0, 1);
	struct rp_task_image *img = calloc(1, size);
	struct builder b[2];

	MUST(img && !rp_remove_images(dir));
	for (uint32_t i = 0; i < 2; i++) {
		builder_start(b + i, 10 + i);
		builder_finish(b + i);
	}
	img->vpid = 17;
	img->fd = img->max_fd = fd;
	img->contexts = img->nr_fds = 1;
	img->context_crc32 = ((struct rxe_migr_image_hdr *)b[0].data)->crc32;
	memcpy((void *)rp_image_fds(img), &fd, sizeof(fd));
	rp_image_seal(img, RP_IMAGE_TASK, size);
	MUST(!rp_write_file(dir, "rdma-task-0.img", img, size));
	free(img);
	for (int i = 0; i < 2; i++) {
		MUST(!rp_write_file(dir, "rdma-ctx-0.img", b[i].data,
				    b[i].length));
		CHECK(read_tasks(dir) == (i ? -EINVAL : 0));
		rp_restore_fini();
		builder_free(b + i);
	}
}

static bool is_ready(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN | POLLPRI };

	return poll(&p, 1, 0);
}

static void dead_file(int fd)
{
	uint32_t buf[64] = { 0 };

	CHECK(!is_ready(fd));
	CHECK(write(fd, buf, sizeof(buf)) == -1 && errno == EINVAL);
	CHECK(ioctl(fd, RDMA_VERBS_IOCTL, buf) == -1 && errno == ENOTTY);
	CHECK(mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED);
	CHECK(!is_ready(fd));
}

static void in_epoll(int fd, uint32_t events)
{
	const struct itimerspec soon = { .it_value.tv_nsec = 1 }, never = {};
	struct epoll_event e = { .events = events, .data.fd = fd };
	int set = epoll_create1(EPOLL_CLOEXEC);

	MUST(set >= 0);
	CHECK(!epoll_ctl(set, EPOLL_CTL_ADD, fd, &e));
	CHECK(!epoll_wait(set, &e, 1, 0));
	/* and that it is never ready is not because epoll is deaf */
	MUST(!timerfd_settime(fd, 0, &soon, NULL));
	CHECK(epoll_wait(set, &e, 1, 10000) == 1 && e.data.fd == fd);
	CHECK(epoll_wait(set, &e, 1, 0) == !(events & EPOLLET));
	MUST(!timerfd_settime(fd, 0, &never, NULL));
	CHECK(!epoll_wait(set, &e, 1, 0));
	close(set);
}

/* Another file in its place: the set knows, once it has no other number */
static void replaced(int fd)
{
	const struct itimerspec soon = { .it_value.tv_nsec = 1 }, never = {};
	struct epoll_event e = { .events = EPOLLIN, .data.u64 = 17 };
	int set = epoll_create1(EPOLL_CLOEXEC);
	int other = rp_dead_open();
	int copy = dup(fd), last = dup(fd);

	MUST(set >= 0 && other >= 0 && copy >= 0 && last >= 0);
	CHECK(!epoll_ctl(set, EPOLL_CTL_ADD, copy, &e));
	MUST(dup2(other, copy) == copy && !close(fd));
	/* it is still there, and can no longer be taken out */
	MUST(!timerfd_settime(last, 0, &soon, NULL));
	CHECK(epoll_wait(set, &e, 1, 10000) == 1 && e.data.u64 == 17);
	CHECK(epoll_ctl(set, EPOLL_CTL_DEL, copy, NULL) && errno == ENOENT);
	MUST(!timerfd_settime(last, 0, &never, NULL));
	CHECK(!epoll_ctl(set, EPOLL_CTL_ADD, copy, &e));
	CHECK(!epoll_ctl(set, EPOLL_CTL_DEL, copy, NULL));
	MUST(!timerfd_settime(last, 0, &soon, NULL));
	CHECK(epoll_wait(set, &e, 1, 10000) == 1);
	MUST(dup2(other, last) == last);
	CHECK(!epoll_wait(set, &e, 1, 0));
	close(set);
	close(other);
	close(copy);
	close(last);
}

static bool is_reading(pid_t pid, int fd)
{
	char path[64], line[128];
	long nr;
	int arg;
	FILE *f;
	bool is;

	snprintf(path, sizeof(path), "/proc/%d/syscall", pid);
	f = fopen(path, "re");
	MUST(f);
	is = fgets(line, sizeof(line), f) &&
	     sscanf(line, "%ld 0x%x", &nr, &arg) == 2 && nr == SYS_read &&
	     arg == fd;
	fclose(f);
	return is;
}

static void blocks(int fd)
{
	pid_t pid = fork();
	char buf[64];

	MUST(pid >= 0);
	if (!pid)
		_exit(read(fd, buf, sizeof(buf)) == -1 && errno != EAGAIN);
	for (int i = 0; i < 1000 && !is_reading(pid, fd); i++)
		usleep(10000);
	CHECK(is_reading(pid, fd));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void restored_files(void)
{
	char buf[64];
	int a, b;

	write_tree(NULL, 0);
	MUST(!rp_restore_init());
	a = rp_restore_file(1);
	b = rp_restore_file(2);
	MUST(a >= 0 && b >= 0);
	CHECK(rp_restore_file(9) == RP_NOT_OURS);
	CHECK(!(fcntl(a, F_GETFL) & O_NONBLOCK));
	CHECK(fcntl(b, F_GETFL) & O_NONBLOCK);
	dead_file(a);
	dead_file(b);
	CHECK(read(b, buf, sizeof(buf)) == -1 && errno == EAGAIN);
	blocks(a);
	in_epoll(a, EPOLLIN);
	in_epoll(b, EPOLLIN | EPOLLET);
	replaced(a);
	close(b);
	rp_restore_fini();
}

/* As CRIU does it: neighbours from one file */
static void restored_mappings(void)
{
	static const uint64_t size[] = { 1, 2, 1 };
	const int prot = PROT_READ | PROT_WRITE;
	struct rp_vma vma[3] = {};
	uint64_t offset;
	int fd[3], file;
	char *area, *p;

	area = mmap(NULL, 5 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		    0);
	MUST(area != MAP_FAILED);
	p = area;
	for (int i = 0; i < 3; i++) {
		vma[i].start = (uintptr_t)p;
		p += size[i] * PAGE;
		vma[i].end = (uintptr_t)p;
		vma[i].offset = i * 0x1000000ULL;
		vma[i].prot = i == 2 ? PROT_READ : prot;
		p += i == 1 ? PAGE : 0;
	}
	write_tree(vma, 3);
	MUST(!rp_restore_init());
	CHECK(rp_restore_vma(vma[0].start, 0x1000, &offset, fd) == RP_NOT_OURS);
	CHECK(rp_restore_vma(vma[1].start + PAGE, vma[1].offset, &offset, fd) ==
	      RP_NOT_OURS);
	for (int i = 0; i < 3; i++) {
		MUST(rp_restore_vma(vma[i].start, vma[i].offset, &offset,
				    fd + i) == 1);
		CHECK(fd[i] >= RP_HIGH_FD(MAX_FD));
		/* one memory: a file is kept for each mapping, not a copy */
		CHECK(!rp_compare_files(fd[0], fd[i]));
		file = i == 1 ? fd[0] : fd[i];
		p = (char *)vma[i].start;
		MUST(mmap(p, vma[i].end - vma[i].start, vma[i].prot,
			  MAP_SHARED | MAP_FIXED, file, offset) == p);
	}
	/* zero to the last byte, and none is another's */
	for (int i = 0; i < 3; i++) {
		for (p = (char *)vma[i].start; p < (char *)vma[i].end; p++) {
			CHECK(!*p);
			if (i < 2)
				*p = i + 1;
		}
	}
	CHECK(*(char *)vma[0].start == 1 && *(char *)vma[1].start == 2);
	for (int i = 0; i < 3; i++)
		close(fd[i]);
	munmap(area, 5 * PAGE);
	rp_restore_fini();
}

/* as many as it can have: how long is asked of the last one is as of any other */
static void many_mappings(void)
{
	const uint32_t nr = 65530;
	struct rp_vma *vma = calloc(nr, sizeof(*vma));
	const struct rp_dead *mine;
	uint64_t place, sum = 0;
	clock_t start;

	MUST(vma);
	for (uint32_t i = 0; i < nr; i++) {
		vma[i].start = (1 + 4 * (uint64_t)i) * PAGE;
		vma[i].end = vma[i].start + (1 + i % 3) * PAGE;
		vma[i].prot = PROT_READ;
	}
	write_tree(vma, nr);
	MUST(!rp_restore_init());
	mine = rp_dead_of(getpid());
	start = clock();
	for (uint32_t i = 0; i < nr; i++) {
		CHECK(rp_dead_find_vma(vma[i].start, 0, &place) == mine);
		CHECK(place == sum);
		sum += vma[i].end - vma[i].start;
	}
	CHECK(rp_dead_size(mine) == sum);
	CHECK(clock() - start < 2 * CLOCKS_PER_SEC);
	free(vma);
	rp_restore_fini();
}

int main(void)
{
	char path[] = "/tmp/criu-test-XXXXXX", cmd[64];

	MUST(mkdtemp(path));
	dir = open(path, O_RDONLY | O_DIRECTORY);
	MUST(dir >= 0);
	refused();
	other_context();
	restored_files();
	restored_mappings();
	many_mappings();
	snprintf(cmd, sizeof(cmd), "rm -rf %s", path);
	CHECK(!system(cmd));
	return check_result();
}
