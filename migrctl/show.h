/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What agents say, for people
 */
#ifndef MIGRCTL_SHOW_H
#define MIGRCTL_SHOW_H

#include <stdbool.h>

#include <jansson.h>

void show_nothing(const json_t *said);
void show_list(const json_t *said);
void show_status(const json_t *said);
void show_log(const json_t *said);

void show_phase(const json_t *said); /* while it goes on */
void show_moved(const json_t *said, bool timing);

#endif
