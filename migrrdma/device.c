// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * A shadow device is a copy of what verbs.h shows of the real one. Behind that,
 * providers look for their functions, as mlx5dv_is_supported() does, and find none: so
 * they say that the device is none of theirs, and applications take plain verbs.
 */
#include "device.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "gate.h"

/* more than libibverbs' struct verbs_device has behind struct ibv_device */
#define HIDDEN_BYTES 256

struct shadow_device {
	struct ibv_device device;
	char hidden[HIDDEN_BYTES]; /* zeros */
	struct ibv_device *real;
	/* of another host than when it was listed: lists that keep @real, and the next */
	struct ibv_device **kept, **coming;
	bool stale; /* @real is of the host before */
	atomic_uint refs;
	struct shadow_device *next;
};

/*
 * Those there are, each real one once. A real device is there while a list of libibverbs'
 * has it that we hold, or a context; and its shadow, while a list or context of ours has it.
 */
static struct shadow_device *devices;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* A stale device is looked for by one thread at a time: it comes before @lock. */
static pthread_mutex_t finding = PTHREAD_MUTEX_INITIALIZER;

/* What ibv_get_device_list() gives; the application has @device. */
struct list {
	struct ibv_device **real;
	struct ibv_device *device[];
};

/* ibv_import_device() asks libibverbs for its list through the interposed name. */
static _Thread_local bool importing;

struct ibv_device *device_of(struct shadow_device *device)
{
	return &device->device;
}

struct shadow_device *to_device(struct ibv_device *device)
{
	struct shadow_device *d;

	pthread_mutex_lock(&lock);
	for (d = devices; d && &d->device != device; d = d->next)
		;
	pthread_mutex_unlock(&lock);
	return d;
}

struct ibv_device *real_device(struct ibv_device *device)
{
	struct shadow_device *d = to_device(device);

	if (!d)
		return device;
	pthread_mutex_lock(&lock);
	device = d->real;
	pthread_mutex_unlock(&lock);
	return device;
}

/* what the kernel says of a device's file; empty if it says nothing */
static void read_attribute(const struct ibv_device *d, const char *name,
			   char *text, int bytes)
{
	char path[IBV_SYSFS_PATH_MAX + 16];
	FILE *f;

	*text = 0;
	snprintf(path, sizeof(path), "%s/%s", d->dev_path, name);
	f = fopen(path, "re");
	if (!f)
		return;
	if (fgets(text, bytes, f))
		text[strcspn(text, "\n")] = 0;
	fclose(f);
}

/* This thread sees no file: libibverbs forgets a device without (try_access_device()). */
static _Thread_local bool blind;

void device_forget_all(void)
{
	struct ibv_device **list;
	struct shadow_device *d;

	pthread_mutex_lock(&lock);
	for (d = devices; d; d = d->next)
		d->stale = true;
	pthread_mutex_unlock(&lock);
	blind = true;
	list = real()->ibv_get_device_list(NULL);
	blind = false;
	if (list)
		real()->ibv_free_device_list(list);
}

int stat(const char *path, struct stat *st)
{
	if (blind) {
		errno = ENOENT;
		return -1;
	}
	return fstatat(AT_FDCWD, path, st, 0);
}

static struct ibv_context *open_checked(struct ibv_device *d, char *why)
{
	char is[IBV_SYSFS_NAME_MAX], dev[32], opened[32];
	struct ibv_context *ctx;
	struct stat st;

	read_attribute(d, "ibdev", is, sizeof(is));
	if (strcmp(is, d->name)) {
		snprintf(
			why, DEVICE_WHY,
			"%s is not %s here, for which libibverbs takes it, but %s",
			d->dev_name, d->name, *is ? is : "nothing");
		errno = ENODEV;
		return NULL;
	}
	ctx = real()->ibv_open_device(d);
	if (!ctx)
		return NULL;
	read_attribute(d, "dev", dev, sizeof(dev));
	if (fstat(ctx->cmd_fd, &st))
		st.st_rdev = 0;
	snprintf(opened, sizeof(opened), "%u:%u", major(st.st_rdev),
		 minor(st.st_rdev));
	if (!strcmp(dev, opened))
		return ctx;
	snprintf(why, DEVICE_WHY, "what was opened as %s is device %s, not %s",
		 d->dev_name, opened, dev);
	real()->ibv_close_device(ctx);
	errno = ENODEV;
	return NULL;
}

static struct ibv_context *open_one_of(struct ibv_device **list, int n,
				       const char *name, char *why)
{
	for (int i = 0; i < n; i++)
		if (n == 1 || !strcmp(list[i]->name, name))
			return open_checked(list[i], why);
	errno = ENODEV;
	return NULL;
}

static void free_real_list(struct ibv_device **list)
{
	if (list)
		real()->ibv_free_device_list(list);
}

struct ibv_context *device_open_again(struct ibv_device *device, bool dead,
				      char why[DEVICE_WHY])
{
	struct shadow_device *d = to_device(device);
	struct ibv_device **list, **unused;
	struct ibv_context *ctx;
	int n, err;

	*why = 0;
	if (!dead)
		return real()->ibv_open_device(real_device(device));
	list = real()->ibv_get_device_list(&n);
	if (!list)
		return NULL;
	ctx = open_one_of(list, n, device->name, why);
	err = errno;
	unused = ctx ? d->coming : list;
	if (ctx)
		d->coming = list;
	free_real_list(unused);
	errno = err;
	return ctx;
}

static bool is_stale(struct ibv_device *device)
{
	const struct shadow_device *d = to_device(device);
	bool is;

	pthread_mutex_lock(&lock);
	is = d->stale;
	pthread_mutex_unlock(&lock);
	return is;
}

/* What one thread has found others need not look for. */
static struct ibv_context *open_stale(struct ibv_device *device)
{
	struct ibv_context *ctx = NULL;
	char why[DEVICE_WHY];
	bool is;

	pthread_mutex_lock(&finding);
	is = is_stale(device);
	if (is)
		ctx = device_open_again(device, true, why);
	if (ctx)
		device_is_now(device, ctx);
	pthread_mutex_unlock(&finding);
	return is ? ctx : real()->ibv_open_device(real_device(device));
}

struct ibv_context *device_open(struct ibv_device *device)
{
	return is_stale(device) ? open_stale(device)
				: real()->ibv_open_device(real_device(device));
}

void device_is_now(struct ibv_device *device, const struct ibv_context *real)
{
	struct shadow_device *d = to_device(device);
	struct ibv_device **before = NULL;

	pthread_mutex_lock(&lock);
	d->real = real->device;
	d->stale = false;
	if (d->coming) {
		before = d->kept;
		d->kept = d->coming;
		d->coming = NULL;
	}
	pthread_mutex_unlock(&lock);
	free_real_list(before);
}

struct shadow_device *shadow_device_get(struct shadow_device *device)
{
	atomic_fetch_add(&device->refs, 1);
	return device;
}

void shadow_device_put(struct shadow_device *device)
{
	struct shadow_device **d;

	pthread_mutex_lock(&lock);
	if (atomic_fetch_sub(&device->refs, 1) == 1) {
		for (d = &devices; *d != device; d = &(*d)->next)
			;
		*d = device->next;
		free_real_list(device->kept);
		free_real_list(device->coming);
		free(device);
	}
	pthread_mutex_unlock(&lock);
}

/* the shadow of this device, with a reference, or NULL for want of memory */
static struct shadow_device *shadow_of(struct ibv_device *dev)
{
	struct shadow_device *d;

	pthread_mutex_lock(&lock);
	for (d = devices; d && d->real != dev; d = d->next)
		;
	if (d) {
		shadow_device_get(d);
	} else {
		d = calloc(1, sizeof(*d));
		if (d) {
			d->device = *dev;
			d->real = dev;
			atomic_init(&d->refs, 1);
			d->next = devices;
			devices = d;
		}
	}
	pthread_mutex_unlock(&lock);
	return d;
}

static void free_list(struct list *list)
{
	for (size_t i = 0; list->device[i]; i++)
		shadow_device_put(to_device(list->device[i]));
	real()->ibv_free_device_list(list->real);
	free(list);
}

static struct ibv_device **get_list(int *num_devices)
{
	struct shadow_device *d;
	struct ibv_device **dev;
	struct list *list;
	int n;

	if (num_devices)
		*num_devices = 0;
	dev = real()->ibv_get_device_list(&n);
	if (!dev)
		return NULL;
	list = calloc(1, sizeof(*list) + ((size_t)n + 1) * sizeof(*dev));
	if (!list) {
		real()->ibv_free_device_list(dev);
		errno = ENOMEM;
		return NULL;
	}
	list->real = dev;
	for (int i = 0; i < n; i++) {
		d = shadow_of(dev[i]);
		if (!d) {
			free_list(list);
			errno = ENOMEM;
			return NULL;
		}
		list->device[i] = &d->device;
	}
	if (num_devices)
		*num_devices = n;
	return list->device;
}

/* Not while devices are replaced: whose shadow another one will be is not known then. */
struct ibv_device **ibv_get_device_list(int *num_devices)
{
	if (importing)
		return real()->ibv_get_device_list(num_devices);
	return GATED(get_list(num_devices));
}

void ibv_free_device_list(struct ibv_device **list)
{
	if (importing)
		real()->ibv_free_device_list(list);
	else
		free_list((struct list *)((char *)list -
					  offsetof(struct list, device)));
}

struct ibv_context *ibv_import_device(int cmd_fd)
{
	struct ibv_context *ctx;

	importing = true;
	ctx = real()->ibv_import_device(cmd_fd);
	importing = false;
	return ctx;
}

void device_in_child(void)
{
	pthread_mutex_init(&lock, NULL);
	pthread_mutex_init(&finding, NULL);
}

__be64 ibv_get_device_guid(struct ibv_device *device)
{
	return real()->ibv_get_device_guid(real_device(device));
}

int ibv_get_device_index(struct ibv_device *device)
{
	return real()->ibv_get_device_index(real_device(device));
}
