/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The kernel is to hurry while a container stands still
 */
#ifndef MIGRCTL_HURRY_H
#define MIGRCTL_HURRY_H

#include <stdbool.h>

/**
 * hurry - grace periods of RCU are expedited (/sys/kernel/rcu_expedited), or as they were
 *
 * CRIU enters namespaces and mounts, each of which waits for a grace period: tens of ms on a
 * host that does little, and nothing else in that time. It costs other processors an interrupt
 * each. What is so already stays so, and who has not hurried changes nothing; of moves that
 * overlap the last one does.
 */
void hurry(bool on);

/* It is as it was, if all are dead who have hurried. */
void hurry_mend(void);

#endif
