// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
#include "maps.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
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

struct cover {
	void *at, *memory;
	size_t bytes;
	struct cover *next;
};

static bool is_covered(const struct cover *all, unsigned long start)
{
	while (all && all->at != (void *)start)
		all = all->next;
	return all;
}

static int add(const struct map *m, struct cover **all)
{
	int prot = (m->prot[0] == 'r' ? PROT_READ : 0) |
		   (m->prot[1] == 'w' ? PROT_WRITE : 0);
	struct cover *c;

	if (is_covered(*all, m->start)) /* another file of the same device */
		return 0;
	c = calloc(1, sizeof(*c));
	if (!c)
		return ENOMEM;
	c->at = (void *)m->start;
	c->bytes = m->end - m->start;
	c->memory =
		mmap(NULL, c->bytes, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (c->memory == MAP_FAILED) {
		int err = errno;

		free(c);
		return err;
	}
	c->next = *all;
	*all = c;
	return 0;
}

int maps_prepare(int fd, struct cover **all)
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
			err = add(&m, all);
	fclose(f);
	return err;
}

int maps_cover(struct cover **all)
{
	struct cover *c;
	int err = 0;

	for (c = *all; c && !err; c = c->next) {
		if (mremap(c->memory, c->bytes, c->bytes,
			   MREMAP_MAYMOVE | MREMAP_FIXED, c->at) == MAP_FAILED)
			err = errno;
		else
			c->memory = NULL;
	}
	maps_drop(all);
	return err;
}

void maps_drop(struct cover **all)
{
	struct cover *c;

	while ((c = *all)) {
		*all = c->next;
		if (c->memory)
			munmap(c->memory, c->bytes);
		free(c);
	}
}
