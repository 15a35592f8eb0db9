/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What /proc tells of a process
 */
#ifndef MIGRD_PROC_H
#define MIGRD_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* when it was started, in the kernel's units; 0 if it is not there */
unsigned long long proc_start(pid_t pid);

/* the process that a thread belongs to, 0 if it is not there */
pid_t proc_of_thread(pid_t tid);

/* its number as it sees itself */
pid_t proc_inner(pid_t pid);

/* its name, fit for a log; "gone" */
void proc_comm(pid_t pid, char *comm, size_t bytes);

#endif
