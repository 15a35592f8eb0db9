/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
#ifndef MIGRRDMA_TELL_H
#define MIGRRDMA_TELL_H

#include <stdbool.h>
#include <stdio.h>

/**
 * tell_names - say what QPs and keys are called, in a line of JSON
 *
 * Return: 0; ETIMEDOUT or ENOMEM, and nothing is said
 */
int tell_names(int fd);

/**
 * tell_other_keys - write those that others may use and that are not the real ones, a line
 *		     "key VIRTUAL REAL" each
 *
 * Context: within the gate
 * Return: are there any?
 */
bool tell_other_keys(FILE *f);

/**
 * tell_closed - say what @tell writes while no verb is under way
 * @tell: returns 0, or an errno, and nothing is said
 *
 * Return: that; ETIMEDOUT or ENOMEM
 */
int tell_closed(int fd, int (*tell)(FILE *f, void *arg), void *arg);

#endif
