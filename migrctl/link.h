/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A container's end of the lan, a veth with a bridge above it
 */
#ifndef MIGRCTL_LINK_H
#define MIGRCTL_LINK_H

#include <stdbool.h>

/* what it was plugged into; 0: nothing. (rtnetlink(7): IFLA_MASTER of RTM_GETLINK) */
bool link_master(const char *name, unsigned int *master);

/* plug it into that; 0: into nothing. Both are false with errno. */
bool link_plug(const char *name, unsigned int master);

#endif
