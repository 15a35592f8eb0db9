/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Waiting at a descriptor as a read of it would, whatever it is
 */
#ifndef MIGRRDMA_WAIT_H
#define MIGRRDMA_WAIT_H

/**
 * wait_readable - wait until it can be read
 *
 * A signal ends that, unless all handlers that the program has were set up with SA_RESTART.
 *
 * Return: 0 or an errno
 */
int wait_readable(int fd);

#endif
