/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
#ifndef MIGRRDMA_MAPS_H
#define MIGRRDMA_MAPS_H

/* memory for what is mapped of files */
struct cover;

/**
 * maps_prepare - get memory for all that is mapped of a file
 * @all: NULL at first; more comes to it
 *
 * Return: 0 or an errno; what there is in *@all stays
 */
int maps_prepare(int fd, struct cover **all);

/**
 * maps_cover - what is mapped there is that memory from now on, zero at first
 *
 * Return: 0 or an errno; *@all is NULL
 */
int maps_cover(struct cover **all);

/** maps_drop - the memory is not needed */
void maps_drop(struct cover **all);

#endif
