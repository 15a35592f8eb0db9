// SPDX-License-Identifier: GPL-2.0
/* Verbs devices of this host, and its rdma_cm, as sysfs shows them */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <rdma/ib_user_verbs.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "rdma_plugin.h"

#define CLASS_DIR "/sys/class/infiniband_verbs"

static bool read_word(const char *path, char *buf, size_t size)
{
	FILE *f = fopen(path, "re");
	bool ok;

	if (!f)
		return false;
	ok = fgets(buf, size, f);
	fclose(f);
	if (ok)
		buf[strcspn(buf, "\n")] = '\0';
	return ok;
}

static bool read_rdev(const char *path, dev_t *rdev)
{
	unsigned int maj, min;
	char id[32];

	if (!read_word(path, id, sizeof(id)) ||
	    sscanf(id, "%u:%u", &maj, &min) != 2)
		return false;
	*rdev = makedev(maj, min);
	return true;
}

static bool read_device(const char *name, struct rp_device *dev)
{
	char path[300];

	if (strlen(name) >= sizeof(dev->name))
		return false;
	strcpy(dev->name, name);
	snprintf(path, sizeof(path), CLASS_DIR "/%s/ibdev", name);
	if (!read_word(path, dev->ibdev, sizeof(dev->ibdev)))
		return false;
	snprintf(path, sizeof(path), CLASS_DIR "/%s/dev", name);
	return read_rdev(path, &dev->rdev);
}

/* The device of which either the number or the name is given */
static int find_device(dev_t rdev, const char *ibdev, struct rp_device *dev)
{
	struct dirent *de;
	int ret = -ENODEV;
	DIR *d;

	d = opendir(CLASS_DIR);
	if (!d)
		return -ENODEV;
	while (ret && (de = readdir(d)))
		if (!strncmp(de->d_name, "uverbs", 6) &&
		    read_device(de->d_name, dev) &&
		    (ibdev ? !strcmp(dev->ibdev, ibdev) : dev->rdev == rdev))
			ret = 0;
	closedir(d);
	return ret;
}

int rp_device_of(dev_t rdev, struct rp_device *dev)
{
	return find_device(rdev, NULL, dev);
}

int rp_device_by_ibdev(const char *ibdev, struct rp_device *dev)
{
	return find_device(0, ibdev, dev);
}

int rp_device_cm(struct rp_device *dev)
{
	*dev = (struct rp_device){ .name = "rdma_cm", .ibdev = "rdma_cm" };
	return read_rdev("/sys/class/misc/rdma_cm/dev", &dev->rdev) ? 0
								    : -ENODEV;
}

/* the only software HCA that shows its parent; siw is an RNIC */
bool rp_device_is_rxe(const struct rp_device *dev)
{
	char path[160], word[64];

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/parent",
		 dev->ibdev);
	if (!read_word(path, word, sizeof(word)))
		return false;
	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/node_type",
		 dev->ibdev);
	return read_word(path, word, sizeof(word)) && word[0] == '1';
}

int rp_device_open(const struct rp_device *dev)
{
	struct stat st;
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/dev/infiniband/%s", dev->name);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0) {
		rp_err("cannot open %s (%s): %s", path, dev->ibdev,
		       strerror(errno));
		return -1;
	}
	if (fstat(fd, &st) || !S_ISCHR(st.st_mode) || st.st_rdev != dev->rdev) {
		rp_err("%s is not the device file of %s", path, dev->ibdev);
		close(fd);
		return -1;
	}
	return fd;
}

/* RESOLVE needs a context; this one dies with `fd` */
static int get_context(int fd)
{
	struct ib_uverbs_get_context_resp resp = { .async_fd = -1 };
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_get_context cmd;
	} req = {
		.hdr.command = IB_USER_VERBS_CMD_GET_CONTEXT,
		.hdr.in_words = sizeof(req) / 4,
		.hdr.out_words = sizeof(resp) / 4,
		.cmd.response = (uintptr_t)&resp,
	};

	if (write(fd, &req, sizeof(req)) != sizeof(req))
		return -errno;
	close(resp.async_fd);
	return 0;
}

int rp_device_probe(const struct rp_device *dev, struct migr_gids *gids)
{
	struct rxe_migr_resolve_resp resp;
	int fd, err;

	fd = rp_device_open(dev);
	if (fd < 0)
		return -ENODEV;
	err = get_context(fd);
	if (!err)
		err = migr_cmd_resolve(fd, fd, &resp);
	if (!err)
		err = migr_gids_query(fd, gids);
	if (err)
		rp_err("%s is not a migratable rdma_rxe device: %s", dev->ibdev,
		       err == -EOPNOTSUPP && rp_device_is_rxe(dev)
			       ? "this host runs the stock module"
			       : strerror(-err));
	close(fd);
	return err;
}
