/* SPDX-License-Identifier: GPL-2.0 */
/*
 * All that runs on a host moves off it, one container after the other
 */
#ifndef MIGRCTL_DRAIN_H
#define MIGRCTL_DRAIN_H

#include "agent.h"

/* to hosts of a list, "n2,n3", in turn. Return: the exit code */
int drain(const struct options *o);

#endif
