/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A picture of what the time of a move went into, while the container stood still
 */
#ifndef MIGRCTL_FLAME_H
#define MIGRCTL_FLAME_H

#include <stdbool.h>

#include <jansson.h>

/**
 * flame_draw - write an SVG: the phases, and under them the steps of each host
 * @said: the outcome of a move, of which nothing has to be as it should
 *
 * Return: false if the file cannot be written, and errno says why
 */
bool flame_draw(const char *file, const json_t *said);

#endif
