/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Devices as the application sees them.
 */
#ifndef MIGRRDMA_DEVICE_H
#define MIGRRDMA_DEVICE_H

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

/** device_of - the part that the application sees */
struct ibv_device *device_of(struct shadow_device *device);

#endif
