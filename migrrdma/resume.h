/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The end of a suspension
 */
#ifndef MIGRRDMA_RESUME_H
#define MIGRRDMA_RESUME_H

#include "shadow.h"

/**
 * resume_some - post what has been collected, as far as there is room, and give the CQs
 *		 back of which all is posted
 *
 * Context: the gate is closed
 * Return: is that all of them?
 */
bool resume_some(void);

/**
 * resume_others - post more of what has been collected of QPs that are not suspended
 *
 * Context, return: the same
 */
bool resume_others(void);

/* a context of a process that has just been forked */
void resume_in_child(struct shadow_context *c);

#endif
