/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Before a process lets go of its device: could it have all once more, next to what it has?
 * On another host nothing of that is left, but who does not get there goes on here.
 */
#ifndef MIGRRDMA_HERE_H
#define MIGRRDMA_HERE_H

#include "swap.h"

/**
 * here_check - may it pin as much memory again? And has it nothing open of a device of which
 *		the layer does not know?
 *
 * What a device or a cgroup has left is not asked for.
 *
 * Context: the gate is closed
 * Return: 0; EOPNOTSUPP or ENOMEM, with a reason
 */
int here_check(struct swap *s);

#endif
