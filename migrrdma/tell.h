/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
#ifndef MIGRRDMA_TELL_H
#define MIGRRDMA_TELL_H

/**
 * tell_names - write all QPs and keys, by their names and the real ones, as JSON
 *
 * Return: 0; ETIMEDOUT if a verb is under way for long, or ENOMEM
 */
int tell_names(int fd);

#endif
