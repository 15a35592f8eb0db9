/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
#ifndef MIGRRDMA_TELL_H
#define MIGRRDMA_TELL_H

#include <stdbool.h>

/**
 * tell_names - write all QPs and keys, by their names and the real ones, as JSON
 *
 * Return: true, or false if a verb is under way for long
 */
bool tell_names(int fd);

#endif
