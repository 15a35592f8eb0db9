// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "maps.h"

#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

struct map {
	unsigned long start, end, inode;
	char prot[5];
	dev_t dev;
};

/* a line of /proc/PID/maps, see proc_pid_maps(5) */
static int parse(const char *line, struct map *m)
{
	unsigned int major_, minor_;

	if (sscanf(line, "%lx-%lx %4s %*x %x:%x %lu", &m->start, &m->end,
		   m->prot, &major_, &minor_, &m->inode) != 6)
		return -1;
	m->dev = makedev(major_, minor_);
	return 0;
}

static int cover(const struct map *m)
{
	int prot = (m->prot[0] == 'r' ? PROT_READ : 0) |
		   (m->prot[1] == 'w' ? PROT_WRITE : 0);

	return mmap((void *)m->start, m->end - m->start, prot,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		    0) == MAP_FAILED
		       ? errno
		       : 0;
}

int maps_cover(int fd)
{
	char line[4096 + 128];
	struct stat st;
	struct map m;
	int err = 0;
	FILE *f;

	if (fstat(fd, &st))
		return errno;
	f = fopen("/proc/self/maps", "re");
	if (!f)
		return errno;
	while (!err && fgets(line, sizeof(line), f))
		if (!parse(line, &m) && m.inode == st.st_ino &&
		    m.dev == st.st_dev)
			err = cover(&m);
	fclose(f);
	return err;
}
