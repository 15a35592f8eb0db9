// SPDX-License-Identifier: GPL-2.0
/*
 * migr_squat - hold what the restore of an image wants to have
 *
 *   migr_squat keys|qpns IMAGE [CDEV]
 *
 *   IMAGE  of a context, as the driver dumped it (rdma-ctx-N.img)
 *   CDEV   of the device (/dev/infiniband/uverbs0)
 *
 * Makes the MRs, or the QPs, with what these need, at the identities of the
 * image; says "ready" and holds them until it is killed. Exit code: 1 if it
 * cannot, 2 for bad arguments.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "migr_restore.h"

static int fail(const char *what, const char *why)
{
	fprintf(stderr, "migr_squat: %s: %s\n", what, why);
	return 1;
}

static bool wanted(uint32_t type, bool keys)
{
	return type == RXE_MIGR_PD ||
	       (keys ? type == RXE_MIGR_MR
		     : type == RXE_MIGR_CQ || type == RXE_MIGR_QP);
}

static int squat(int cdev, const struct migr_image *img, bool keys)
{
	struct migr_image none = *img;
	struct migr_error err = {};
	struct migr_restore r;
	struct migr_files files;
	int ret;

	none.count = 0;
	ret = migr_restore_context(cdev, &none, &files, &err);
	migr_restore_init(&r, cdev, &err);
	for (unsigned int i = 0; i < img->count && !ret; i++)
		if (wanted(img->records[i]->type, keys))
			ret = migr_place_object(&r, img->records[i]);
	if (ret)
		return fail("cannot", err.text);

	puts("ready");
	fflush(stdout);
	pause();
	return 0;
}

int main(int argc, char **argv)
{
	struct migr_error err = {};
	struct migr_image img;
	struct stat st;
	void *data;
	int fd, cdev;

	if (argc < 3 || argc > 4 ||
	    (strcmp(argv[1], "keys") && strcmp(argv[1], "qpns"))) {
		fprintf(stderr, "migr_squat keys|qpns IMAGE [CDEV]\n");
		return 2;
	}
	fd = open(argv[2], O_RDONLY);
	if (fd < 0 || fstat(fd, &st))
		return fail(argv[2], "cannot be opened");
	data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (data == MAP_FAILED)
		return fail(argv[2], "cannot be mapped");
	if (migr_image_parse(data, (size_t)st.st_size, &img, &err))
		return fail(argv[2], err.text);
	cdev = open(argc > 3 ? argv[3] : "/dev/infiniband/uverbs0",
		    O_RDWR | O_CLOEXEC);
	if (cdev < 0)
		return fail("device", "cannot be opened");
	return squat(cdev, &img, !strcmp(argv[1], "keys"));
}
