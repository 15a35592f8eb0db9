/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The kernel is to hurry while a container stands still
 */
#ifndef MIGRCTL_HURRY_H
#define MIGRCTL_HURRY_H

#include <stdbool.h>

/* Before any move: what is so already stays so. */
void hurry_init(void);

/**
 * hurry - grace periods of RCU are expedited (/sys/kernel/rcu_expedited), or as they were
 *
 * CRIU enters namespaces and mounts, each of which waits for a grace period: tens of ms on a
 * host that does little, and nothing else in that time. It costs other processors an interrupt
 * each. Moves that overlap may end each other's hurry; nothing but time depends on it.
 */
void hurry(bool on);

#endif
