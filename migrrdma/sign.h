/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The sign by which the CRIU plug-in (../criu/foreign.c) knows that this process holds
 * still: a memfd of a certain name with the process' id in it.
 */
#ifndef MIGRRDMA_SIGN_H
#define MIGRRDMA_SIGN_H

/** sign_show - Return: 0 or an errno */
int sign_show(void);

/** sign_hide - if it is shown */
void sign_hide(void);

#endif
