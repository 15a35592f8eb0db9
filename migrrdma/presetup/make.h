/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
#ifndef PRESETUP_MAKE_H
#define PRESETUP_MAKE_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

/**
 * make_ready - have a driver make what the process' own commands would need
 *
 * Nothing is left of it in this process, and no tape is used.
 */
void make_ready(json_t *record);

/**
 * make_all - make what the record of a process tells, as that process' layer will
 * @record: its answer to "record"; may be anything
 * @reason: receives why not
 *
 * The objects are there until this process ends, and those who have got its files.
 */
bool make_all(json_t *record, char *reason, size_t bytes);

/**
 * make_connected - bring QPs into the states that they had, before the process has come
 * @peers: a list of lists: the number that the process knows a QP by, the real number of its
 *	new peer, and that one's GID; may be anything
 *
 * Return: false, and a reason; nothing has been done if a peer is missing
 */
bool make_connected(json_t *peers, char *reason, size_t bytes);

/**
 * make_numbers - the QPs that are connected then
 *
 * Return: a list of lists: a number that the process knows, the real one, and the GID; NULL
 * if there is no memory, or a device does not say
 */
json_t *make_numbers(void);

#endif
