/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Devices as the application sees them.
 */
#ifndef MIGRRDMA_DEVICE_H
#define MIGRRDMA_DEVICE_H

#include <stdbool.h>

#include "real.h"

struct shadow_device;

/**
 * shadow_device_get - another reference, for a context
 *
 * Return: @device
 */
struct shadow_device *shadow_device_get(struct shadow_device *device);

/** shadow_device_put - give a reference back; the last one frees the device */
void shadow_device_put(struct shadow_device *device);

/** to_device - the shadow that this is, or NULL if it is none */
struct shadow_device *to_device(struct ibv_device *device);

/** real_device - the one behind a shadow; itself of one that is none */
struct ibv_device *real_device(struct ibv_device *device);

enum {
	DEVICE_WHY = 256
};

/**
 * device_forget_all - the process has come to another host, and libibverbs looks at its
 * devices: it tells them from those of the host before by the numbers of their files only,
 * and would take one for another, and for the provider of that
 */
void device_forget_all(void);

/**
 * device_open_again - open the same device anew; after the process has come to another
 * host, the one of the same name there, or the only one
 * @dead: the context that there was is of the host before
 * @why: receives the reason if it is not what libibverbs takes it for
 *
 * Return: a real context, or NULL and errno
 */
struct ibv_context *device_open_again(struct ibv_device *device, bool dead,
				      char why[DEVICE_WHY]);

/**
 * device_open - a shadow's, also if it was listed on the host before
 *
 * Return: a real context, or NULL and errno
 */
struct ibv_context *device_open(struct ibv_device *device);

/** device_is_now - the real device behind a shadow is that of this real context */
void device_is_now(struct ibv_device *device, const struct ibv_context *real);

/* in a process that has just been forked */
void device_in_child(void);

/** device_of - the part that the application sees */
struct ibv_device *device_of(struct shadow_device *device);

#endif
