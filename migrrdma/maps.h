/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
#ifndef MIGRRDMA_MAPS_H
#define MIGRRDMA_MAPS_H

/**
 * maps_cover - what is mapped of a file is memory from now on, zero at first
 *
 * Return: 0 or an errno
 */
int maps_cover(int fd);

#endif
