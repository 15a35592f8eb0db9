// SPDX-License-Identifier: GPL-2.0
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>

#include "memory.h"

char *at[AREAS];
const size_t length[AREAS] = {
	[PRIVATE] = 3 * PAGE,	[TRANSPARENT] = MOST, [HUGETLB] = HUGE,
	[ANONYMOUS] = 2 * PAGE, [SYSV] = 2 * PAGE,    [UNLINKED] = 2 * PAGE,
	[NAMED] = 2 * PAGE,	[COPIED] = 2 * PAGE,  [READ_ONLY] = PAGE,
	[MIXED] = 2 * PAGE,
};

static void *map(size_t size, int prot, int flags, int fd)
{
	void *p = mmap(NULL, size, prot, flags, fd, 0);

	NEED(p != MAP_FAILED);
	return p;
}

static void *map_transparent(size_t size)
{
	char *p = map(size + HUGE, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1);

	p = (char *)(((uintptr_t)p + HUGE - 1) & ~(HUGE - 1));
	/* pages that are shared with a child are split before they are pinned */
	NEED(!madvise(p, size, MADV_HUGEPAGE) &&
	     !madvise(p, size, MADV_DONTFORK));
	return p;
}

/* whoever switches them off wants to see the rest */
static int kernel_has_thp(void)
{
	FILE *f = fopen("/sys/kernel/mm/transparent_hugepage/enabled", "re");
	char line[64] = "";

	if (!f)
		return 0;
	NEED(fgets(line, sizeof(line), f));
	fclose(f);
	return !strstr(line, "[never]");
}

/* of the mapping at this address */
static unsigned long huge_kb(const void *p)
{
	unsigned long first, end, kb = 0;
	FILE *f = fopen("/proc/self/smaps", "re");
	char line[512];
	int here = 0;

	NEED(f);
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx ", &first, &end) == 2)
			here = (uintptr_t)p >= first && (uintptr_t)p < end;
		else if (here && sscanf(line, "AnonHugePages: %lu", &kb) == 1)
			break;
	}
	fclose(f);
	return kb;
}

void check_transparent(void)
{
	unsigned long kb = huge_kb(at[TRANSPARENT]);

	printf("%lu KiB in transparent huge pages\n", kb);
	NEED(!kernel_has_thp() || kb * 1024 == length[TRANSPARENT]);
}

static void *map_sysv(size_t size)
{
	int id = shmget(IPC_PRIVATE, size, 0600);
	void *p;

	NEED(id >= 0);
	p = shmat(id, NULL, 0);
	NEED(p != (void *)-1);
	return p;
}

static void *map_named(size_t size)
{
	int fd = shm_open(NAME, O_RDWR | O_CREAT | O_TRUNC, 0600);
	void *p;

	NEED(fd >= 0 && !ftruncate(fd, size));
	p = map(size, PROT_READ | PROT_WRITE, MAP_SHARED, fd);
	close(fd);
	return p;
}

static void *map_unlinked(size_t size)
{
	void *p = map_named(size);

	NEED(!shm_unlink(NAME));
	return p;
}

/* the second page is of shared memory */
static void *map_mixed(size_t size)
{
	char *p = map(size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
		      -1);

	NEED(mmap(p + PAGE, size - PAGE, PROT_READ | PROT_WRITE,
		  MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == p + PAGE);
	return p;
}

/* byte `i` of an area, in its life number `life` */
static char pattern(int area, int life, size_t i)
{
	return (char)(i * 7 + i / PAGE + area * 31 + life * 101);
}

void fill(char *to, int area, int life, size_t from, size_t size)
{
	for (size_t i = 0; i < size; i++)
		to[i] = pattern(area, life, from + i);
}

int holds(const char *p, int area, int life, size_t from, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (p[i] != pattern(area, life, from + i))
			return 0;
	return 1;
}

void map_areas(const char *file)
{
	const int rw = PROT_READ | PROT_WRITE;
	char content[2 * PAGE]; /* COPIED begins with it, too */
	int fd = open(file, O_RDWR | O_CREAT | O_TRUNC, 0600);

	NEED(fd >= 0);
	fill(content, READ_ONLY, 0, 0, sizeof(content));
	NEED(write(fd, content, sizeof(content)) == sizeof(content));
	at[PRIVATE] = map(length[PRIVATE], rw, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	NEED(!madvise(at[PRIVATE], length[PRIVATE], MADV_NOHUGEPAGE));
	at[TRANSPARENT] = map_transparent(length[TRANSPARENT]);
	at[HUGETLB] = map(length[HUGETLB], rw,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1);
	at[ANONYMOUS] =
		map(length[ANONYMOUS], rw, MAP_SHARED | MAP_ANONYMOUS, -1);
	at[SYSV] = map_sysv(length[SYSV]);
	at[UNLINKED] = map_unlinked(length[UNLINKED]);
	at[NAMED] = map_named(length[NAMED]);
	at[COPIED] = map(length[COPIED], rw, MAP_PRIVATE, fd);
	at[READ_ONLY] = map(length[READ_ONLY], PROT_READ, MAP_SHARED, fd);
	at[MIXED] = map_mixed(length[MIXED]);
	close(fd);
	for (int a = 0; a < AREAS; a++)
		if (a != READ_ONLY)
			fill(at[a], a, 0, 0, length[a]);
}
